//! Why the directory does not do what it is asked for.

use std::time::Duration;

use millpond_live::{Code, IntoResponse, Response};

/// Why a request to a directory is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request is wrong; what is, and what would be right: 4.00.
    #[error("{0}")]
    Malformed(String),
    /// The registration is another's: 4.03.
    #[error("the registration is another's, who has proved {0}")]
    Foreign(&'static str),
    /// There is no such registration: 4.04.
    #[error("there is no such registration; register again")]
    NotFound,
    /// The links are longer than one registration may have: 4.13.
    #[error("a registration may have {limit} bytes of links")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The network of who registers holds as much as it may: 4.29.
    #[error("its network holds as much as one network may")]
    NetworkFull {
        /// When something may have expired.
        retry_after: Duration,
    },
    /// The directory is full: 5.03.
    #[error("the directory is full")]
    Full {
        /// When something may have expired.
        retry_after: Duration,
    },
    /// It has another Content-Format than links have: 4.15.
    #[error("links are application/link-format (40)")]
    Format,
    /// Another Content-Format than links have is wanted: 4.06.
    #[error("links are told as application/link-format (40)")]
    NotAcceptable,
    /// Its links are being fetched already, or those of many others: 5.03.
    #[error("links are being fetched; ask again later")]
    Busy {
        /// When that may be over.
        retry_after: Duration,
    },
    /// Whose links were to be fetched did not answer: 5.04.
    #[error("/.well-known/core was not answered: {0}")]
    Unanswered(String),
    /// Whose links were to be fetched did not answer with links: 5.02.
    #[error("/.well-known/core was answered with {0}")]
    NoLinks(String),
    /// What matches is longer than one answer may be: 4.00.
    #[error("more than {limit} bytes match; ask in pages, with count=100&page=0 and further pages")]
    LongAnswer {
        /// The limit in bytes.
        limit: usize,
    },
}

impl Refusal {
    pub(super) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// With what is wrong as its diagnostic payload (RFC 7252 §5.5.2).
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = match self {
            Self::Malformed(_) | Self::LongAnswer { .. } => Code::BAD_REQUEST,
            Self::Foreign(_) => Code::FORBIDDEN,
            Self::NotFound => Code::NOT_FOUND,
            Self::TooLong { .. } => Code::REQUEST_ENTITY_TOO_LARGE,
            Self::NetworkFull { .. } => Code::TOO_MANY_REQUESTS,
            Self::Full { .. } | Self::Busy { .. } => Code::SERVICE_UNAVAILABLE,
            Self::Format => Code::UNSUPPORTED_CONTENT_FORMAT,
            Self::NotAcceptable => Code::NOT_ACCEPTABLE,
            Self::Unanswered(_) => Code::GATEWAY_TIMEOUT,
            Self::NoLinks(_) => Code::BAD_GATEWAY,
        };
        let response = Response::new(code).with_payload(self.to_string());
        match self {
            Self::NetworkFull { retry_after } | Self::Full { retry_after } | Self::Busy { retry_after } => {
                response.with_max_age(u32::try_from(retry_after.as_secs()).unwrap_or(u32::MAX))
            }
            _ => response,
        }
    }
}
