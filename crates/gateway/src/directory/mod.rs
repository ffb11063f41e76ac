//! The resource directory (RFC 9176).
