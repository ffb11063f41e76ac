//! What stands at a path.

use std::{fmt, sync::Arc};

use millpond_coap::message::Code;

use super::{
    Handler, IntoResponse, METHODS, Next, Observable, Offered, Request,
    handler::Handling,
    layer::{Layer, layer},
    request::States,
};
use crate::ContentFormat;

/// What stands at a path: a handler for each method, and what `/.well-known/core` says of it.
///
/// A method without handler is answered with 4.05.
#[derive(Default)]
pub struct Resource {
    methods: Vec<(Code, Handling)>,
    any: Option<Handling>,
    layers: Vec<Layer>,
    pub(crate) observable: Option<Observable>,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) is_hidden: bool,
    pub(crate) is_after_proof: bool,
    pub(crate) is_conditional: bool,
    pub(crate) is_streaming: bool,
    /// Bytes that its handlers hold of a body that comes, if bodies come to them.
    pub(crate) upload: Option<usize>,
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
            pub fn $name<A: 'static>(self, handler: impl Handler<A>) -> Self {
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
    pub fn method<A: 'static>(mut self, method: Code, handler: impl Handler<A>) -> Self {
        self.methods.retain(|(known, _)| *known != method);
        self.methods.push((method, Handling::new(handler)));
        self
    }

    /// Answers each method that has no handler of its own with this one.
    #[must_use]
    pub fn any<A: 'static>(mut self, handler: impl Handler<A>) -> Self {
        self.any = Some(Handling::new(handler));
        self
    }

    /// Puts this around all its handlers: it gets each request, asks [`Next`] or answers itself, and may change both request and
    /// response. Repeatable; the first one is outermost, within those of the [server](crate::ServerBuilder::layer).
    ///
    /// ```
    /// use millpond_live::{Code, IntoResponse, Next, Request, Resource, Response};
    ///
    /// async fn known_alone(request: Request, next: Next) -> Response {
    ///     match request.identity() {
    ///         Some(_) => next.run(request).await,
    ///         None => Code::FORBIDDEN.into_response(),
    ///     }
    /// }
    ///
    /// let valve = Resource::new().put(|| async { Code::CHANGED }).layer(known_alone);
    /// # drop(valve);
    /// ```
    #[must_use]
    pub fn layer<F, R>(mut self, around: F) -> Self
    where
        F: Fn(Request, Next) -> R + Send + Sync + 'static,
        R: Future<Output: IntoResponse> + Send + 'static,
    {
        self.layers.push(layer(around));
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
    pub fn content_format(mut self, format: impl Into<ContentFormat>) -> Self {
        let format = format.into().number();
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

    /// Its handlers keep to If-Match and If-None-Match, and answer 4.12 (RFC 7252 §5.10.8). Without this a request with
    /// one of them is answered with 4.02: nobody would look at its condition.
    #[must_use]
    pub const fn conditional(mut self) -> Self {
        self.is_conditional = true;
        self
    }

    /// Its handlers cost much: they are asked only by who has proved its address. Others are told to do so first (4.01 with
    /// Echo, RFC 9175), which takes a round trip. [`AddressRule`](crate::AddressRule) says who need not.
    #[must_use]
    pub const fn after_proof(mut self) -> Self {
        self.is_after_proof = true;
        self
    }

    /// Bodies of its requests and answers are never whole in memory, however long they are: its handlers read them by
    /// [`Request::body`] as they come, and may answer with a [stream](crate::Response::stream). [`longest_body`](crate::ServerBuilder::longest_body)
    /// is no limit for either; what is too much a handler says with 4.13.
    ///
    /// Over datagrams each block waits until the handler has taken the one before (RFC 7959), and a body of more than one is
    /// taken from proved addresses alone, as with [`after_proof`](Self::after_proof). Over connections bodies of up to 64 KiB come in
    /// one message, and longer ones in blocks of as much. It cannot be observed, and does not take bodies in bursts.
    ///
    /// ```no_run
    /// use millpond_live::{Code, HandlerError, Request, Resource, Response};
    ///
    /// async fn store(request: Request) -> Result<Code, HandlerError> {
    ///     let mut body = request.body();
    ///     if body.total().is_some_and(|total| total > 8 << 20) {
    ///         return Ok(Code::REQUEST_ENTITY_TOO_LARGE);
    ///     }
    ///     let mut image = Vec::new(); // or a file, or flash
    ///     while let Some(chunk) = body.chunk().await? {
    ///         image.extend_from_slice(&chunk);
    ///         println!("{} of {:?} bytes", body.received(), body.total());
    ///     }
    ///     Ok(Code::CHANGED)
    /// }
    ///
    /// async fn fetch(_: Request) -> Response {
    ///     Response::stream(tokio::io::repeat(7)).with_progress(|progress| println!("{} bytes arrived", progress.sent))
    /// }
    ///
    /// let firmware = Resource::new().put(store).get(fetch).streaming();
    /// # drop(firmware);
    /// ```
    #[must_use]
    pub const fn streaming(mut self) -> Self {
        self.is_streaming = true;
        self
    }

    /// Bodies in blocks of requests that change something go to its handlers while they come, as those of a
    /// [streaming](Self::streaming) resource: they are read by [`Request::body`]. All else is as without this: it can be observed, its
    /// answers are whole, and so are bodies of FETCH and of bursts. Its handlers hold so many bytes of such a body at a time, which
    /// count until they have answered; so who has not proved its address may send one, as long as there is room for those.
    #[must_use]
    pub const fn streaming_uploads(mut self, held: usize) -> Self {
        self.upload = Some(held);
        self
    }

    /// Whether a request by this method goes block by block, if its body comes in blocks or not.
    pub(crate) const fn streams(&self, method: Code, comes_in_blocks: bool) -> bool {
        let changes = matches!(method, Code::PUT | Code::POST | Code::PATCH | Code::IPATCH);
        self.is_streaming || self.upload.is_some() && comes_in_blocks && changes
    }

    fn attribute(mut self, name: &'static str, value: &str) -> Self {
        self.attributes.retain(|(known, _)| *known != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// Puts its own layers, and outside of them those of its server, around its handlers.
    pub(crate) fn put_within(&mut self, outer: &[Layer]) {
        let own = std::mem::take(&mut self.layers);
        for handling in self.methods.iter_mut().map(|(_, handling)| handling).chain(&mut self.any) {
            handling.put_within(outer.iter().chain(&own));
        }
    }

    /// Whether a server with these states has what its handlers want of it and of a route with these parameters.
    ///
    /// # Errors
    /// Which handler wants what, and what to do.
    pub(super) fn check(&self, states: &States, parameters: &[Arc<str>]) -> Result<(), String> {
        let offered = Offered { states, parameters };
        let named = self.methods.iter().map(|(method, handling)| (name(*method), handling));
        let mut all = named.chain(self.any.iter().map(|any| ("any method".into(), any)));
        all.try_for_each(|(method, it)| it.check(&offered).map_err(|why| format!("the handler of {method} {why}")))
    }

    pub(crate) fn handling(&self, method: Code) -> Option<&Handling> {
        let own = self.methods.iter().find(|(known, _)| *known == method).map(|(_, handling)| handling);
        own.or(self.any.as_ref())
    }
}

/// What a method is called.
fn name(method: Code) -> String {
    METHODS.iter().find(|(_, known)| *known == method).map_or_else(|| method.to_string(), |(name, _)| (*name).into())
}
