//! What representations are in, by the numbers of the IANA registry.

use std::fmt;

use millpond_coap::message::Uint;

/// A Content-Format: media type and content coding as one number (RFC 7252 §12.3 and its IANA registry, "CoAP
/// Content-Formats"). Those without a constant here are made from their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentFormat(u16);

macro_rules! formats {
    ($($name:ident = $number:literal, $media_type:literal;)*) => {
        impl ContentFormat {
            $(
                #[doc = concat!("`", $media_type, "`, ", $number, ".")]
                pub const $name: Self = Self($number);
            )*

            /// Its media type, if it is one of the constants.
            #[must_use]
            pub const fn media_type(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($media_type),)*
                    _ => None,
                }
            }
        }
    };
}

formats! {
    TEXT = 0, "text/plain; charset=utf-8";
    LINK_FORMAT = 40, "application/link-format";
    XML = 41, "application/xml";
    OCTET_STREAM = 42, "application/octet-stream";
    EXI = 47, "application/exi";
    JSON = 50, "application/json";
    CBOR = 60, "application/cbor";
    CBOR_SEQUENCE = 63, "application/cbor-seq";
    SENML_JSON = 110, "application/senml+json";
    SENML_CBOR = 112, "application/senml+cbor";
}

impl ContentFormat {
    /// The one with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The value of an option. One that is too long is as if it were not there (RFC 7252 §5.4.3).
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let value = Some(value).filter(|value| value.len() <= 2)?;
        Uint::read(value).and_then(|format| u16::try_from(format).ok()).map(Self)
    }
}

impl From<u16> for ContentFormat {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

/// The media type, or else the number.
impl fmt::Display for ContentFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.media_type() {
            Some(media_type) => f.write_str(media_type),
            None => write!(f, "Content-Format {}", self.0),
        }
    }
}
