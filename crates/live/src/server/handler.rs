//! Functions that answer requests, whatever their arguments.

use std::{
    any::Any,
    cell::Cell,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use super::{
    FromRequest, HandlerError, IntoResponse, Offered, Request,
    layer::{Layer, Next},
};
use crate::Response;

/// A handler's answer on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What answers requests: an async function, or a closure that returns a future, of up to six arguments that are made
/// [from the request](FromRequest). Of a closure the types of the arguments are written out.
///
/// ```
/// use millpond_live::{Code, Path, Query, Request, Resource, State};
///
/// #[derive(Clone)]
/// struct Unit(&'static str);
///
/// async fn reading(Path(sensor): Path<u32>, State(unit): State<Unit>) -> String {
///     format!("{sensor}: 21.5 {}", unit.0)
/// }
///
/// let sensor = Resource::new()
///     .get(reading)
///     .put(|request: Request| async move { if request.payload().is_empty() { Code::BAD_REQUEST } else { Code::CHANGED } })
///     .delete(|| async { Code::DELETED });
/// # let server = millpond_live::Server::builder().state(Unit("°C")).route("/sensors/{id}", sensor);
/// ```
#[diagnostic::on_unimplemented(
    message = "this answers no requests",
    note = "a handler is an async function whose arguments each implement `FromRequest`, and whose result implements `IntoResponse`; write out the types of a closure's arguments, as in `|request: Request| async {{ … }}`"
)]
pub trait Handler<Arguments>: Send + Sync + 'static {
    /// Its answer on its way.
    type Answering: Future<Output: IntoResponse> + Send + 'static;

    /// Asks it.
    ///
    /// # Errors
    /// The response to a request of which the arguments cannot be made.
    fn ask(&self, request: Request) -> Result<Self::Answering, HandlerError>;

    /// Whether a server that offers this has what the arguments want.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    fn check(offered: &Offered<'_>) -> Result<(), String>;
}

macro_rules! handlers {
    ($([$($Argument:ident),*] $Last:ident;)*) => {
        $(
            impl<F, R, $($Argument,)* $Last> Handler<($($Argument,)* $Last,)> for F
            where
                F: Fn($($Argument,)* $Last) -> R + Send + Sync + 'static,
                R: Future<Output: IntoResponse> + Send + 'static,
                $($Argument: FromRequest,)*
                $Last: FromRequest,
            {
                type Answering = R;

                fn ask(&self, request: Request) -> Result<R, HandlerError> {
                    Ok(self($($Argument::from_request(&request)?,)* $Last::from_last(request)?))
                }

                fn check(offered: &Offered<'_>) -> Result<(), String> {
                    $($Argument::check(offered)?;)*
                    $Last::check(offered)
                }
            }
        )*
    };
}

handlers! {
    [] A;
    [A] B;
    [A, B] C;
    [A, B, C] D;
    [A, B, C, D] E;
    [A, B, C, D, E] G;
}

impl<F, R> Handler<()> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output: IntoResponse> + Send + 'static,
{
    type Answering = R;

    fn ask(&self, _: Request) -> Result<R, HandlerError> {
        Ok(self())
    }

    fn check(_: &Offered<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// A handler of whatever arguments.
pub(super) trait AnyHandler: Send + Sync {
    /// Asks it.
    fn ask(&self, request: Request) -> Answering;

    /// Asks it, and looks once whether it has its answer at hand.
    fn ask_once(&self, request: Request) -> Result<Response, Answering> {
        let mut answering = self.ask(request);
        match answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Err(answering),
        }
    }
}

/// A handler as it was written.
struct Plain<H, A>(H, PhantomData<fn(A)>);

thread_local! {
    /// Where handlers had what they had under way when they were asked last, to be filled again: several handlers share one.
    static PLACES: [Cell<Option<Box<dyn Any>>>; 16] = const { [const { Cell::new(None) }; 16] };
}

impl<A: 'static, H: Handler<A>> AnyHandler for Plain<H, A> {
    fn ask(&self, request: Request) -> Answering {
        match self.0.ask(request) {
            Ok(answering) => Box::pin(async move { answering.await.into_response() }),
            Err(error) => Box::pin(std::future::ready(error.into_response())),
        }
    }

    /// What is under way cannot be moved, and takes memory of its own only as long as it waits.
    fn ask_once(&self, request: Request) -> Result<Response, Answering> {
        let answering = match self.0.ask(request) {
            Ok(answering) => answering,
            Err(error) => return Ok(error.into_response()),
        };
        let number = (std::ptr::from_ref(self).addr() >> 5) % 16;
        let kept = PLACES.with(|places| places.get(number).and_then(Cell::take));
        let kept = kept.and_then(|place| place.downcast::<Pin<Box<Option<H::Answering>>>>().ok());
        let mut place = kept.unwrap_or_else(|| Box::new(Box::pin(None)));
        place.set(Some(answering));
        let polled = place.as_mut().as_mut().as_pin_mut().map(|it| it.poll(&mut Context::from_waker(Waker::noop())));
        let Some(Poll::Ready(response)) = polled else {
            return Err(Box::pin(async move {
                let answer = poll_fn(|cx| place.as_mut().as_mut().as_pin_mut().map_or(Poll::Pending, |it| it.poll(cx)));
                answer.await.into_response()
            }));
        };
        place.set(None);
        PLACES.with(|places| places.get(number).map(|free| free.set(Some(place))));
        Ok(response.into_response())
    }
}

/// A handler with a layer around it.
struct Layered(Layer, Arc<dyn AnyHandler>);

impl AnyHandler for Layered {
    fn ask(&self, request: Request) -> Answering {
        (self.0)(request, Next(Arc::clone(&self.1)))
    }
}

/// A handler, and how it behaves.
pub(crate) struct Handling {
    handler: Arc<dyn AnyHandler>,
    check: fn(&Offered<'_>) -> Result<(), String>,
    /// It did not always have its answer at hand.
    waits: AtomicBool,
}

impl Handling {
    pub(super) fn new<A: 'static, H: Handler<A>>(handler: H) -> Self {
        Self { handler: Arc::new(Plain(handler, PhantomData)), check: H::check, waits: AtomicBool::new(false) }
    }

    /// Whether a server that offers this has what the handler wants.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(super) fn check(&self, offered: &Offered<'_>) -> Result<(), String> {
        (self.check)(offered)
    }

    /// Puts layers around it, the first one outermost.
    pub(crate) fn put_within<'l>(&mut self, layers: impl DoubleEndedIterator<Item = &'l Layer>) {
        for layer in layers.rev() {
            self.handler = Arc::new(Layered(Arc::clone(layer), Arc::clone(&self.handler)));
        }
    }

    /// Asks it, and looks once whether it has its answer at hand.
    pub(crate) fn ask(&self, request: Request) -> Result<Response, Answering> {
        self.handler.ask_once(request)
    }

    /// It may have to wait for its answer.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// It had to.
    pub(crate) fn has_waited(&self) {
        if !self.waits() {
            self.waits.store(true, Ordering::Relaxed);
        }
    }
}
