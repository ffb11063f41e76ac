//! Bodies that are values of serde, in JSON and in CBOR.

use bytes::Bytes;
use millpond_coap::message::Code;
use serde::{Serialize, de::DeserializeOwned};

use crate::{ContentFormat, Error, NotSent, Options, RequestBuilder, Response, Why};

macro_rules! formats {
    ($($feature:literal: $Name:ident, $name:ident, $format:ident = $module:ident, $rfc:literal;)*) => {
        $(
            #[doc = concat!("A value as a body in ", stringify!($format), " (", $rfc, "), for handlers to take and to return: 2.05, or ")]
            /// 5.00 if it has no such form.
            #[cfg(feature = $feature)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $Name<T>(pub T);

            #[cfg(all(feature = $feature, feature = "server"))]
            impl<T: Serialize> crate::IntoResponse for $Name<T> {
                fn into_response(self) -> Response {
                    match $module::written(&self.0) {
                        Ok(body) => Response::content(body).with_content_format(ContentFormat::$format),
                        Err(reason) => {
                            let name = stringify!($format);
                            tracing::error!(target: "millpond_live", "a value has no form in {name}: {reason}");
                            Response::new(Code::INTERNAL_SERVER_ERROR)
                        }
                    }
                }
            }

            #[cfg(feature = $feature)]
            impl RequestBuilder {
                #[doc = concat!("With this value in ", stringify!($format), " as its payload, and the Content-Format that says so. A ")]
                /// value without such a form is [`Error::Refused`] when the request is sent.
                pub fn $name(self, value: &impl Serialize) -> Self {
                    let written = $module::written(value).map_err(|reason| {
                        let name = stringify!($format);
                        Error::refused(NotSent::Body, format!("the payload has no form in {name}: {reason}"))
                    });
                    self.written(ContentFormat::$format, written)
                }
            }

            #[cfg(feature = $feature)]
            impl Response {
                #[doc = concat!("The body as a value, from ", stringify!($format), ".")]
                ///
                /// # Errors
                /// [`Error::NotDecoded`]: the code is none of success, the Content-Format is another, or the body is not such
                /// a value.
                pub fn $name<T: DeserializeOwned>(&self) -> Result<T, Error> {
                    if !self.is_success() {
                        let said = if self.content_format().is_none() { self.text().unwrap_or_default() } else { "" };
                        let code = self.code();
                        let reason = if said.is_empty() { code.to_string() } else { format!("{code}, {said}") };
                        return Err(Error::not_decoded(format!("the server answered with {reason}")));
                    }
                    read(ContentFormat::$format, self.options(), self.payload(), $module::read)
                        .map_err(|(_, why)| Error::not_decoded(why))
                }
            }

            #[cfg(all(feature = $feature, feature = "server"))]
            impl<T: DeserializeOwned> crate::FromRequest for $Name<T> {
                fn from_request(request: &crate::Request) -> Result<Self, crate::HandlerError> {
                    request.$name().map(Self)
                }
            }

            #[cfg(all(feature = $feature, feature = "server"))]
            impl crate::Request {
                #[doc = concat!("The body as a value, from ", stringify!($format), ".")]
                ///
                /// # Errors
                /// The response to give: 4.15 if the Content-Format is another, 4.00 if the body is not such a value.
                pub fn $name<T: DeserializeOwned>(&self) -> Result<T, crate::HandlerError> {
                    read(ContentFormat::$format, self.options(), self.payload(), $module::read)
                        .map_err(|(code, why)| Response::new(code).with_payload(why.reason).into())
                }
            }
        )*
    };
}

formats! {
    "json": Json, json, JSON = json, "RFC 8259";
    "cbor": Cbor, cbor, CBOR = cbor, "RFC 8949";
}

/// A value of a body in this format; else the code for who sent it, and why. A body without Content-Format is tried.
fn read<T>(
    format: ContentFormat,
    options: &Options,
    body: &Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, Why>,
) -> Result<T, (Code, Why)> {
    match options.content_format() {
        Some(other) if other != format => {
            Err((Code::UNSUPPORTED_CONTENT_FORMAT, format!("the body is in {other}, not in {format}").into()))
        }
        _ => read(body).map_err(|why| {
            (Code::BAD_REQUEST, why.said(|reason| format!("the body is not as it should be: {reason}")))
        }),
    }
}

#[cfg(feature = "json")]
mod json {
    use super::{Bytes, DeserializeOwned, Serialize, Why};

    pub(super) fn written(value: &impl Serialize) -> Result<Bytes, String> {
        serde_json::to_vec(value).map(Bytes::from).map_err(|error| error.to_string())
    }

    pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Why> {
        serde_json::from_slice(body).map_err(Why::said_by)
    }
}

#[cfg(feature = "cbor")]
mod cbor {
    use super::{Bytes, DeserializeOwned, Serialize, Why};

    pub(super) fn written(value: &impl Serialize) -> Result<Bytes, String> {
        let mut body = Vec::new();
        ciborium::into_writer(value, &mut body).map_err(|error| error.to_string())?;
        Ok(body.into())
    }

    pub(super) fn read<T: DeserializeOwned>(mut body: &[u8]) -> Result<T, Why> {
        let value = ciborium::from_reader(&mut body).map_err(Why::said_by)?;
        if body.is_empty() { Ok(value) } else { Err(format!("{} bytes follow the value", body.len()).into()) }
    }
}
