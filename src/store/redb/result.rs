//! The result of functions on rows.

/// A value, or one of redb's own errors: the file cannot be read or written, or it is damaged.
pub type Result<T, E = redb::Error> = std::result::Result<T, E>;
