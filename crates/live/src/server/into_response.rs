//! What handlers may return, and what ends them early.

use std::{error::Error, fmt};

use bytes::Bytes;
use millpond_coap::message::Code;

use crate::{ContentFormat, Response};

/// What a handler may return.
///
/// Besides a [`Response`]: a [`Code`]; text (2.05, `text/plain`); bytes (2.05, `application/octet-stream`); a code with one of
/// these; a `Result` of two of them. So `?` works in handlers, with an error type of the program that is made a response here, or
/// with a [`HandlerError`].
///
/// ```
/// use millpond_live::{Code, HandlerError, IntoResponse, Request, Resource, Response};
///
/// async fn set(request: Request) -> Result<Code, HandlerError> {
///     let text = std::str::from_utf8(request.payload()).map_err(|_| Response::bad_request("not UTF-8"))?;
///     std::fs::write("level", text)?; // an error of the system's is 5.00
///     Ok(Code::CHANGED)
/// }
///
/// let level = Resource::new().put(set).get(|| async { "21.5" });
/// # drop(level);
/// ```
pub trait IntoResponse {
    /// The response.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for Code {
    fn into_response(self) -> Response {
        Response::new(self)
    }
}

/// With this code in place of its own.
impl<T: IntoResponse> IntoResponse for (Code, T) {
    fn into_response(self) -> Response {
        self.1.into_response().with_code(self.0)
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(answer) => answer.into_response(),
            Err(error) => error.into_response(),
        }
    }
}

macro_rules! contents {
    ($($type:ty => $format:ident,)*) => {
        $(
            impl IntoResponse for $type {
                fn into_response(self) -> Response {
                    Response::content(self).with_content_format(ContentFormat::$format)
                }
            }
        )*
    };
}

contents! {
    &'static str => TEXT,
    String => TEXT,
    Bytes => OCTET_STREAM,
    Vec<u8> => OCTET_STREAM,
}

/// Why a handler has not the answer that it is there for: the response that says so.
///
/// `?` makes one of a [`Response`], and of any error: that is 5.00, what it says goes to `tracing` (target `millpond_live`)
/// and not to who asked, whom the inside of a server does not concern.
pub struct HandlerError(Box<Response>);

impl IntoResponse for HandlerError {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Response> for HandlerError {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut beneath = error.source();
        while let Some(error) = beneath {
            text.push_str(": ");
            text.push_str(&error.to_string());
            beneath = error.source();
        }
        tracing::error!(target: "millpond_live", "a handler failed, and its request is answered with 5.00: {text}");
        Response::new(Code::INTERNAL_SERVER_ERROR).into()
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_texts_bytes_and_results_are_responses() {
        let cases = [
            (Code::CHANGED.into_response(), Code::CHANGED, None, ""),
            ("a".into_response(), Code::CONTENT, Some(ContentFormat::TEXT), "a"),
            (String::from("b").into_response(), Code::CONTENT, Some(ContentFormat::TEXT), "b"),
            (Bytes::from("c").into_response(), Code::CONTENT, Some(ContentFormat::OCTET_STREAM), "c"),
            (vec![b'd'].into_response(), Code::CONTENT, Some(ContentFormat::OCTET_STREAM), "d"),
            ((Code::CREATED, "e").into_response(), Code::CREATED, Some(ContentFormat::TEXT), "e"),
            (Ok::<_, Code>("f").into_response(), Code::CONTENT, Some(ContentFormat::TEXT), "f"),
            (Err::<Code, _>((Code::CONFLICT, "g")).into_response(), Code::CONFLICT, Some(ContentFormat::TEXT), "g"),
        ];
        for (response, code, format, text) in cases {
            assert_eq!((response.code(), response.content_format()), (code, format), "{text}");
            assert_eq!(response.text(), Ok(text));
        }
    }

    #[test]
    fn an_error_is_told_to_nobody_outside_and_a_response_stays_what_it_is() {
        let failing = || -> Result<Code, HandlerError> {
            std::fs::read("/there/is/no/such/file")?;
            Ok(Code::CHANGED)
        };
        assert_eq!(failing().into_response(), Response::new(Code::INTERNAL_SERVER_ERROR));
        let missing = || -> Result<&'static str, HandlerError> { Ok(None.ok_or_else(Response::not_found)?) };
        assert_eq!(missing().into_response(), Response::not_found());
    }
}
