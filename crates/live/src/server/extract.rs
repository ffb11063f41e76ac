//! What handlers take: values made from a request.

use std::{any::type_name, borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use millpond_coap::message::Code;
use serde::de::{
    self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor,
    value::{MapDeserializer, SeqDeserializer},
};

use super::{HandlerError, Request, RequestBody, request::States};
use crate::Response;

/// What a [handler](crate::Handler) may take as an argument.
///
/// Of this crate: the [`Request`] itself; of its path, its queries and its body [`Path`], [`Query`], [`Json`](crate::Json),
/// [`Cbor`](crate::Cbor), text as a `String`, [`Bytes`], a [`RequestBody`]; [`State`] of the server. A type of the program's own reads
/// the request in the same way:
///
/// ```
/// use millpond_live::{FromRequest, HandlerError, Request, Response, number};
///
/// /// Who asks, by an option of the program's own.
/// struct Tenant(String);
///
/// impl FromRequest for Tenant {
///     fn from_request(request: &Request) -> Result<Self, HandlerError> {
///         let value = request.options().get(65_000).ok_or_else(|| Response::bad_request("option 65000 is missing"))?;
///         Ok(Self(String::from_utf8_lossy(value).into_owned()))
///     }
/// }
/// ```
pub trait FromRequest: Sized {
    /// Makes one.
    ///
    /// # Errors
    /// The response to a request of which none can be made; its handler is not asked.
    fn from_request(request: &Request) -> Result<Self, HandlerError>;

    /// As [`from_request`](Self::from_request), for the last argument, to which the request may be moved.
    ///
    /// # Errors
    /// The same.
    #[doc(hidden)]
    fn from_last(request: Request) -> Result<Self, HandlerError> {
        Self::from_request(&request)
    }

    /// Whether one can be made at a server that offers this. A server of which an argument wants more does not start.
    ///
    /// # Errors
    /// What is missing, and what to do.
    fn check(_: &Offered<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// What a server offers the handlers of a route.
#[derive(Debug)]
pub struct Offered<'s> {
    pub(super) states: &'s States,
    pub(super) parameters: &'s [Arc<str>],
}

impl Offered<'_> {
    /// Whether the server was given a [state](crate::ServerBuilder::state) of this type.
    #[must_use]
    pub fn has_state<T: 'static>(&self) -> bool {
        self.states.get::<T>().is_some()
    }

    /// The parameters in the path of the route, as in `/sensors/{id}`.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parameters.iter().map(|name| &**name)
    }
}

impl FromRequest for Request {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        Ok(request.clone())
    }

    fn from_last(request: Request) -> Result<Self, HandlerError> {
        Ok(request)
    }
}

impl FromRequest for Bytes {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        Ok(request.payload().clone())
    }
}

impl FromRequest for String {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        let text = std::str::from_utf8(request.payload());
        Ok(text.map_err(|_| Response::bad_request("the body is not UTF-8"))?.into())
    }
}

impl FromRequest for RequestBody {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        Ok(request.body())
    }
}

/// What the server was given by [`state`](crate::ServerBuilder::state), by its type. An [`Arc`] is such a type. A server that was given none
/// does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromRequest for State<T> {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        request.state().cloned().map(Self)
    }

    fn check(offered: &Offered<'_>) -> Result<(), String> {
        let name = type_name::<T>();
        match offered.has_state::<T>() {
            true => Ok(()),
            false => {
                Err(format!("wants a state of {name}, which the server was not given; add .state(…) to its builder"))
            }
        }
    }
}

/// The parameters of the path: one as a number, text or an enum; several as a tuple in the order of the path, or as a struct by their
/// names. A path in which one of them is no such value is answered with 4.04. A server whose route has other parameters does not
/// start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Path<T> {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        T::deserialize(Parameters(request.parameters())).map(Self).map_err(|error| match error {
            Unfit::Value(reason) => Response::new(Code::NOT_FOUND).with_payload(format!("the path: {reason}")).into(),
            error @ Unfit::Shape(_) => error.into(),
        })
    }

    fn check(offered: &Offered<'_>) -> Result<(), String> {
        let parameters: Vec<_> = offered.parameters.iter().map(|name| (Arc::clone(name), String::new())).collect();
        match T::deserialize(Parameters(&parameters)) {
            Err(Unfit::Shape(reason)) => Err(reason),
            // Without a value there is nothing that a value could be wrong with.
            Err(Unfit::Value(_)) | Ok(_) => Ok(()),
        }
    }
}

/// The queries (`key=value`) as a struct or a map. Queries that make none are answered with 4.00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Query<T> {
    fn from_request(request: &Request) -> Result<Self, HandlerError> {
        let pairs = request.query().map(|query| query.split_once('=').unwrap_or((query, "")));
        let pairs = pairs.map(|(key, value)| (key, Text(value)));
        let value = T::deserialize(MapDeserializer::<_, Unfit>::new(pairs));
        value.map(Self).map_err(|error| Response::bad_request(&format!("the query: {error}")).into())
    }
}

/// Why parameters make no value.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    /// They are other ones, whatever their values.
    #[error("{0}")]
    Shape(String),
    /// A value is none of its type.
    #[error("{0}")]
    Value(String),
}

impl de::Error for Unfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Value(message.to_string())
    }
}

/// The parameters of a path, to be made a value.
struct Parameters<'p>(&'p [(Arc<str>, String)]);

impl<'p> Parameters<'p> {
    /// There have to be so many.
    fn counted(&self, wanted: usize) -> Result<(), Unfit> {
        let (count, names) = (self.0.len(), self.names());
        let wants = if wanted == 1 { "1 parameter of its path" } else { &format!("{wanted} parameters of its path") };
        (count == wanted).then_some(()).ok_or_else(|| Unfit::Shape(format!("wants {wants}, which has {names}")))
    }

    fn names(&self) -> Cow<'static, str> {
        match self.0 {
            [] => "none".into(),
            some => some.iter().map(|(name, _)| format!("{{{name}}}")).collect::<Vec<_>>().join(", ").into(),
        }
    }

    fn only(&self) -> Result<Text<'p>, Unfit> {
        self.counted(1)?;
        self.0.first().map(|(_, value)| Text(value)).ok_or_else(|| Unfit::Shape("wants a parameter".into()))
    }
}

macro_rules! forward {
    ($from:ident: $($method:ident)*) => {
        $(
            fn $method<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
                self.$from()?.$method(visitor)
            }
        )*
    };
}

impl<'p> Deserializer<'p> for Parameters<'p> {
    type Error = Unfit;

    forward! {
        only: deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_identifier
    }

    fn deserialize_enum<V: Visitor<'p>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'p>>(self, _: &'static str, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.counted(0)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'p>>(self, _: &'static str, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_seq<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_seq(SeqDeserializer::new(self.0.iter().map(|(_, value)| Text(value))))
    }

    fn deserialize_tuple<V: Visitor<'p>>(self, count: usize, visitor: V) -> Result<V::Value, Unfit> {
        self.counted(count)?;
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'p>>(
        self,
        _: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_map<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_map(MapDeserializer::new(self.0.iter().map(|(name, value)| (&**name, Text(value)))))
    }

    fn deserialize_struct<V: Visitor<'p>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        match fields.iter().find(|field| !self.0.iter().any(|(name, _)| **name == ***field)) {
            Some(field) => Err(Unfit::Shape(format!("wants {{{field}}} of its path, which has {}", self.names()))),
            None => self.deserialize_map(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_unit()
    }
}

/// Text that is to be a value.
#[derive(Clone, Copy)]
struct Text<'p>(&'p str);

impl<'p> IntoDeserializer<'p, Unfit> for Text<'p> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident = $visit:ident, $what:literal;)*) => {
        $(
            fn $method<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
                match self.0.parse() {
                    Ok(value) => visitor.$visit(value),
                    Err(_) => Err(Unfit::Value(format!("{:?} is not {}", self.0, $what))),
                }
            }
        )*
    };
}

impl<'p> Deserializer<'p> for Text<'p> {
    type Error = Unfit;

    parsed! {
        deserialize_bool = visit_bool, "true or false";
        deserialize_i8 = visit_i8, "a whole number from -128 to 127";
        deserialize_i16 = visit_i16, "a whole number of 16 bits";
        deserialize_i32 = visit_i32, "a whole number of 32 bits";
        deserialize_i64 = visit_i64, "a whole number of 64 bits";
        deserialize_i128 = visit_i128, "a whole number of 128 bits";
        deserialize_u8 = visit_u8, "a whole number from 0 to 255";
        deserialize_u16 = visit_u16, "a whole number from 0 to 65535";
        deserialize_u32 = visit_u32, "a whole number of 32 bits without sign";
        deserialize_u64 = visit_u64, "a whole number of 64 bits without sign";
        deserialize_u128 = visit_u128, "a whole number of 128 bits without sign";
        deserialize_f32 = visit_f32, "a number";
        deserialize_f64 = visit_f64, "a number";
        deserialize_char = visit_char, "one character";
    }

    fn deserialize_any<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'p>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'p>>(self, _: &'static str, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'p>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'p>>
        str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
