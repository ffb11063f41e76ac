//! What stands at a path.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use millpond_coap::message::Code;

use super::{Observable, Request};
use crate::Response;

/// A handler's answer on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;
/// A handler, whatever it was written as.
pub(crate) type Handler = Arc<dyn Fn(Request) -> Answering + Send + Sync>;

pub(crate) fn handler<F, R>(handler: F) -> Handler
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

/// What stands at a path: a handler for each method, and what `/.well-known/core` says of it.
///
/// A method without handler is answered with 4.05.
#[derive(Default)]
pub struct Resource {
    methods: Vec<(Code, Handler)>,
    pub(crate) observable: Option<Observable>,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) is_hidden: bool,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods.iter().map(|(method, _)| method)).finish()
    }
}

macro_rules! methods {
    ($($name:ident = $code:ident, $text:literal;)*) => {
        $(
            #[doc = concat!("Answers ", $text, " with this handler.")]
            #[must_use]
            pub fn $name<F, R>(self, handler: F) -> Self
            where
                F: Fn(Request) -> R + Send + Sync + 'static,
                R: Future<Output = Response> + Send + 'static,
            {
                self.method(Code::$code, handler)
            }
        )*
    };
}

impl Resource {
    /// One that answers no method yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    methods! {
        get = GET, "GET";
        put = PUT, "PUT";
        post = POST, "POST";
        delete = DELETE, "DELETE";
        fetch = FETCH, "FETCH";
        patch = PATCH, "PATCH";
        ipatch = IPATCH, "iPATCH";
    }

    /// Answers a method with this handler.
    #[must_use]
    pub fn method<F, R>(mut self, method: Code, handler: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        self.methods.retain(|(known, _)| *known != method);
        self.methods.push((method, self::handler(handler)));
        self
    }

    /// Its GET and FETCH can be observed: `observable` says when its state changes.
    #[must_use]
    pub fn observable(mut self, observable: &Observable) -> Self {
        self.observable = Some(observable.clone());
        self
    }

    /// The link attribute `title`.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.attribute("title", title)
    }

    /// The link attribute `rt`; several, separated by spaces.
    #[must_use]
    pub fn resource_type(self, rt: &str) -> Self {
        self.attribute("rt", rt)
    }

    /// The link attribute `if`; several, separated by spaces.
    #[must_use]
    pub fn interface(self, interface: &str) -> Self {
        self.attribute("if", interface)
    }

    /// The link attribute `ct`: a Content-Format that it has. Repeatable.
    #[must_use]
    pub fn content_format(mut self, format: u16) -> Self {
        match self.attributes.iter_mut().find(|(name, _)| *name == "ct") {
            Some((_, formats)) => *formats = format!("{formats} {format}"),
            None => self.attributes.push(("ct", format.to_string())),
        }
        self
    }

    /// The link attribute `sz`: about how many bytes its representation has.
    #[must_use]
    pub fn size(self, bytes: u32) -> Self {
        self.attribute("sz", &bytes.to_string())
    }

    /// It is not listed in `/.well-known/core`.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    fn attribute(mut self, name: &'static str, value: &str) -> Self {
        self.attributes.retain(|(known, _)| *known != name);
        self.attributes.push((name, value.into()));
        self
    }

    pub(crate) fn handler(&self, method: Code) -> Option<&Handler> {
        self.methods.iter().find(|(known, _)| *known == method).map(|(_, handler)| handler)
    }
}
