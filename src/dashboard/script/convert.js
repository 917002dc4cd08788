// The page that converts.
