//! The limits of a form, which are not set by the operator: no form for this service needs more.

/// The most parts: twice as many as there are parameters, and as many as a head may have headers.
pub const MAX_PARTS: usize = 64;

/// The most bytes of the headers of a part. A file's name has up to 255 bytes, three times that in
/// percent encoding, and it may be there twice.
pub const MAX_PART_HEADERS: usize = 4 << 10;

/// The most bytes of the names and values of all fields together: as much as a query may have.
pub const MAX_FIELDS: usize = 16 << 10;
