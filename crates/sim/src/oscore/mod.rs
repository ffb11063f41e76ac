//! Messages of clients that OSCORE (RFC 8613) protects, by the code that ships, if this build has it.

#[cfg(feature = "oscore")]
mod contexts;
#[cfg(not(feature = "oscore"))]
mod left_out;

#[cfg(feature = "oscore")]
pub(crate) use contexts::Contexts;
#[cfg(not(feature = "oscore"))]
pub(crate) use left_out::Contexts;
