use core::fmt;

use coap_numbers::code as registry;

use super::Kind;

/// Request method, response code or "empty": one byte, written `class.detail` (RFC 7252 §3 and §12.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u8);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self(registry::$name);)*
        }
    };
}

codes! {
    /// 0.00: neither request nor response (RFC 7252 §4.1).
    EMPTY;
    /// 0.01 GET (RFC 7252).
    GET;
    /// 0.02 POST (RFC 7252).
    POST;
    /// 0.03 PUT (RFC 7252).
    PUT;
    /// 0.04 DELETE (RFC 7252).
    DELETE;
    /// 0.05 FETCH (RFC 8132).
    FETCH;
    /// 0.06 PATCH (RFC 8132).
    PATCH;
    /// 0.07 iPATCH (RFC 8132).
    IPATCH;
    /// 2.01 Created (RFC 7252).
    CREATED;
    /// 2.02 Deleted (RFC 7252).
    DELETED;
    /// 2.03 Valid (RFC 7252).
    VALID;
    /// 2.04 Changed (RFC 7252).
    CHANGED;
    /// 2.05 Content (RFC 7252).
    CONTENT;
    /// 2.31 Continue (RFC 7959).
    CONTINUE;
    /// 4.00 Bad Request (RFC 7252).
    BAD_REQUEST;
    /// 4.01 Unauthorized (RFC 7252).
    UNAUTHORIZED;
    /// 4.02 Bad Option (RFC 7252).
    BAD_OPTION;
    /// 4.03 Forbidden (RFC 7252).
    FORBIDDEN;
    /// 4.04 Not Found (RFC 7252).
    NOT_FOUND;
    /// 4.05 Method Not Allowed (RFC 7252).
    METHOD_NOT_ALLOWED;
    /// 4.06 Not Acceptable (RFC 7252).
    NOT_ACCEPTABLE;
    /// 4.08 Request Entity Incomplete (RFC 7959).
    REQUEST_ENTITY_INCOMPLETE;
    /// 4.09 Conflict (RFC 8132).
    CONFLICT;
    /// 4.12 Precondition Failed (RFC 7252).
    PRECONDITION_FAILED;
    /// 4.13 Request Entity Too Large (RFC 7252).
    REQUEST_ENTITY_TOO_LARGE;
    /// 4.15 Unsupported Content-Format (RFC 7252).
    UNSUPPORTED_CONTENT_FORMAT;
    /// 4.22 Unprocessable Entity (RFC 8132).
    UNPROCESSABLE_ENTITY;
    /// 4.29 Too Many Requests (RFC 8516).
    TOO_MANY_REQUESTS;
    /// 5.00 Internal Server Error (RFC 7252).
    INTERNAL_SERVER_ERROR;
    /// 5.01 Not Implemented (RFC 7252).
    NOT_IMPLEMENTED;
    /// 5.02 Bad Gateway (RFC 7252).
    BAD_GATEWAY;
    /// 5.03 Service Unavailable (RFC 7252).
    SERVICE_UNAVAILABLE;
    /// 5.04 Gateway Timeout (RFC 7252).
    GATEWAY_TIMEOUT;
    /// 5.05 Proxying Not Supported (RFC 7252).
    PROXYING_NOT_SUPPORTED;
    /// 5.08 Hop Limit Reached (RFC 8768).
    HOP_LIMIT_REACHED;
}

impl Code {
    /// The code `class.detail`; `None` if the class is above 7 or the detail above 31.
    pub const fn new(class: u8, detail: u8) -> Option<Self> {
        if class > 7 || detail > 31 { None } else { Some(Self((class << 5) | detail)) }
    }

    /// The code that this byte of a message stands for; every byte stands for one.
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// The byte that stands for this code in a message.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    /// The part before the dot, 0 to 7.
    #[inline]
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Of class 2: the request was carried out.
    #[inline]
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Of class 4 or 5: the request, or the server, failed.
    #[inline]
    pub const fn is_error(self) -> bool {
        matches!(self.class(), 4 | 5)
    }

    /// 5.03 and 4.29: the server refused for a while, and Max-Age says when to ask again (RFC 7252 §5.9.3.4, RFC 8516).
    #[inline]
    pub const fn refuses_for_a_while(self) -> bool {
        matches!(self, Self::SERVICE_UNAVAILABLE | Self::TOO_MANY_REQUESTS)
    }

    /// The part after the dot, 0 to 31.
    #[inline]
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// 0.00.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// 0.01 to 0.31.
    #[inline]
    pub const fn is_request(self) -> bool {
        self.0 != 0 && self.class() == 0
    }

    /// 2.00 to 5.31. Class 3 is set aside for responses to come (RFC 7252 §12.1), so it counts.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2..=5)
    }

    /// Classes 1, 6 and 7, which no message over UDP may carry (RFC 7252 §4.2 and §4.3). Over streams, class 7 is
    /// signalling (RFC 8323 §5).
    #[inline]
    pub const fn is_reserved(self) -> bool {
        matches!(self.class(), 1 | 6 | 7)
    }

    /// May a message of this kind carry this code? RFC 7252 §4, table 1, and §4.2: confirmable anything, even nothing
    /// ("ping"); non-confirmable a request or response; acknowledgement a response or nothing; reset nothing.
    #[inline]
    pub const fn suits(self, kind: Kind) -> bool {
        match kind {
            Kind::Confirmable => !self.is_reserved(),
            Kind::NonConfirmable => self.is_request() || self.is_response(),
            Kind::Acknowledgement => self.is_empty() || self.is_response(),
            Kind::Reset => self.is_empty(),
        }
    }

    /// The name in the IANA registry, such as "Content"; `None` if the code has none.
    pub fn name(self) -> Option<&'static str> {
        registry::to_name(self.0)
    }
}

impl From<u8> for Code {
    fn from(byte: u8) -> Self {
        Self::from_byte(byte)
    }
}

impl From<Code> for u8 {
    fn from(code: Code) -> Self {
        code.to_byte()
    }
}

/// `2.05`, as the RFC writes it.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        registry::format_dotted(self.0, f)
    }
}

/// `2.05 Content`, for traces and failed tests.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        registry::format_dotted(self.0, f)?;
        match self.name() {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}
