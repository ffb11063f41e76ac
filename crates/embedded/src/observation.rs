use alloc::vec::Vec;
use core::net::SocketAddr;

use embedded_nal_async::UnconnectedUdp;
use millpond_coap::{
    ExchangeId, Failure, Newest, ResponseFault,
    message::{Code, Message, Token},
    transfer::Read,
};
use millpond_control::Instant;

use crate::{
    Clock, Error, Node, Request, Response,
    transfer::{Head, MAX_AGE, Step, Transfer},
};

/// Under protection (RFC 8613), of the answer to a renewal: a notification that was sent later has come before it.
const OVERTAKEN: Failure = Failure::Protection(ResponseFault::NotNew);

/// A resource that is observed. Hand it to [`Node::next`] until that says that it is over, or to [`Node::forget`].
#[derive(Debug)]
pub struct Observation<'r> {
    server: SocketAddr,
    request: &'r Request<'r>,
    pub(crate) exchange: Option<ExchangeId>,
    pub(crate) token: Option<Token>,
    newest: Newest,
    renew_at: Instant,
}

/// A notification that was not taken yet.
#[derive(Debug)]
pub(crate) struct Notified {
    pub(crate) exchange: ExchangeId,
    at: Instant,
    code: Code,
    token: Token,
    read: Read<'static>,
    etag: Option<Vec<u8>>,
    payload: Vec<u8>,
}

impl Notified {
    pub(crate) fn new(exchange: ExchangeId, at: Instant, message: &Message<'_>) -> Self {
        let Read { observe, block2, size2, format, max_age, etag, .. } = Read::of(message, None);
        Self {
            exchange,
            at,
            code: message.code,
            token: message.token,
            read: Read { observe, block2, size2, format, max_age, ..Read::default() },
            etag: etag.map(<[u8]>::to_vec),
            payload: message.payload().to_vec(),
        }
    }
}

impl<U: UnconnectedUdp, C: Clock> Node<'_, U, C> {
    /// Observes a resource (RFC 7641). Returns its state, and the observation if the server grants one.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn observe<'r, 'o>(
        &mut self,
        server: SocketAddr,
        request: &'r Request<'r>,
        body: &'o mut [u8],
    ) -> Result<(Response<'o>, Option<Observation<'r>>), Error<U::Error>> {
        self.settle().await;
        let mut observation = Observation {
            server,
            request,
            exchange: None,
            token: None,
            newest: Newest { sequence: 0, at: Instant::ORIGIN },
            renew_at: Instant::NEVER,
        };
        let (head, is_granted) = self.register(&mut observation, &mut *body).await?;
        Ok((head.response(body), is_granted.then_some(observation)))
    }

    /// The next state of what is observed. A registration that is no longer fresh is renewed: a server that was restarted has it
    /// again.
    ///
    /// # Errors
    /// [`Error::Over`] once the server has ended it, and what came before has been taken. Any other error ends it, too.
    pub async fn next<'o>(
        &mut self,
        observation: &mut Observation<'_>,
        body: &'o mut [u8],
    ) -> Result<Response<'o>, Error<U::Error>> {
        self.settle().await;
        if observation.renew_at == Instant::NEVER {
            return Err(Error::Over);
        }
        loop {
            let place = self.notified.iter().position(|notified| Some(notified.exchange) == observation.exchange);
            if let Some(notified) = place.and_then(|place| self.notified.remove(place)) {
                if !self.is_news(observation, &notified) {
                    continue;
                }
                let request = Request { payload: &[], format: None, ..*observation.request };
                let mut transfer = Transfer::new(&request, &mut *body, self.block);
                let Notified { code, token, read, etag, payload, .. } = &notified;
                let step = transfer.begin_with(*code, *token, &Read { etag: etag.as_deref(), ..*read }, payload);
                let head = self.carry(observation.server, &mut transfer, step, None).await?;
                return Ok(head.response(body));
            }
            let now = self.clock.now();
            if now >= observation.renew_at {
                let renewed = self.register(observation, &mut *body).await;
                if let Err(Error::Failed { why: OVERTAKEN, .. }) = renewed {
                    observation.renew_at = self.renewal(now, MAX_AGE);
                    continue;
                }
                if !matches!(renewed, Ok((_, true))) {
                    observation.renew_at = Instant::NEVER;
                }
                return renewed.map(|(head, _)| head.response(body));
            }
            let until = self.turn(None).await;
            self.wait(until.min(observation.renew_at)).await?;
            self.turn(None).await;
        }
    }

    /// Ends an observation: the next notification is answered with a reset (RFC 7641 §3.6).
    pub async fn forget(&mut self, observation: Observation<'_>) {
        self.settle().await;
        self.unsubscribe(observation.exchange).await;
    }

    /// Registers, or renews a registration. Says whether it was granted.
    async fn register(
        &mut self,
        observation: &mut Observation<'_>,
        body: &mut [u8],
    ) -> Result<(Head, bool), Error<U::Error>> {
        let (server, request, renewed) = (observation.server, observation.request, observation.exchange);
        let mut transfer = Transfer::new(request, body, self.block);
        let carried = self.carry(server, &mut transfer, Step::Next, Some(&mut *observation)).await;
        let now = self.clock.now();
        let sequence = carried.as_ref().ok().filter(|head| head.code.class() == 2).and_then(|head| head.observe);
        match (&carried, sequence) {
            (Ok(head), Some(sequence)) => {
                observation.token = Some(head.token);
                observation.newest = Newest { sequence, at: now };
                observation.renew_at = self.renewal(now, head.max_age);
            }
            (Err(Error::Failed { why: OVERTAKEN, .. }), _) => {
                let overtook = self.notified.iter_mut().filter(|notified| Some(notified.exchange) == renewed);
                overtook.for_each(|notified| notified.exchange = observation.exchange.unwrap_or(notified.exchange));
            }
            _ => self.unsubscribe(observation.exchange).await,
        }
        Ok((carried?, sequence.is_some()))
    }

    /// Takes down when a notification came, if it is newer than those before; one that is no success ends the observation.
    fn is_news(&mut self, observation: &mut Observation<'_>, notified: &Notified) -> bool {
        let at = notified.at;
        match notified.read.observe.filter(|_| notified.code.class() == 2) {
            // Of protected ones none comes that is older.
            Some(sequence) if !self.endpoint.is_protected() && !observation.newest.is_before(sequence, at) => {
                return false;
            }
            Some(sequence) => {
                observation.newest = Newest { sequence, at };
                observation.renew_at = self.renewal(at, notified.read.max_age.unwrap_or(MAX_AGE));
            }
            None => {
                observation.renew_at = Instant::NEVER;
                if let Some(exchange) = observation.exchange {
                    self.endpoint.unsubscribe(self.clock.now(), exchange);
                }
            }
        }
        true
    }

    async fn unsubscribe(&mut self, exchange: Option<ExchangeId>) {
        let Some(exchange) = exchange else { return };
        self.endpoint.unsubscribe(self.clock.now(), exchange);
        self.turn(None).await;
        self.notified.retain(|notified| notified.exchange != exchange);
    }
}
