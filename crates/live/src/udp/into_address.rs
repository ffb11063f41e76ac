use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::canonical;
use crate::Error;

/// What an address of this machine can be given as: an address and a port, or text with both, as in `127.0.0.1:5683` and
/// `[::1]:5683`. Text that is none is refused when the client or server starts.
pub trait IntoAddress {
    /// The address, for the setting of this name.
    ///
    /// # Errors
    /// It is none.
    fn into_address(self, setting: &'static str) -> Result<SocketAddr, Error>;
}

impl IntoAddress for &str {
    fn into_address(self, setting: &'static str) -> Result<SocketAddr, Error> {
        let wrong = || format!("{self:?} is no address with a port; write one as in 127.0.0.1:5683 or [::1]:5683");
        self.parse().map(canonical).map_err(|_| Error::Setting { name: setting, reason: wrong() })
    }
}

impl IntoAddress for &String {
    fn into_address(self, setting: &'static str) -> Result<SocketAddr, Error> {
        self.as_str().into_address(setting)
    }
}

impl IntoAddress for String {
    fn into_address(self, setting: &'static str) -> Result<SocketAddr, Error> {
        self.as_str().into_address(setting)
    }
}

macro_rules! addresses {
    ($($Form:ty $(, of $I:ident)?;)*) => {
        $(
            impl$(<$I: Into<IpAddr>>)? IntoAddress for $Form {
                fn into_address(self, _: &'static str) -> Result<SocketAddr, Error> {
                    Ok(canonical(self.into()))
                }
            }
        )*
    };
}

addresses! {
    SocketAddr;
    SocketAddrV4;
    SocketAddrV6;
    (I, u16), of I;
}
