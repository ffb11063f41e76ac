//! Requests, built step by step.

use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    ops::Range,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::{
    RetransmitOptions,
    block::BlockSize,
    message::{Code, Kind, Token, number},
};
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::sleep_until,
};

use super::{
    Client, Commands,
    cache::{CacheKey, Cached, cache_key},
    command::{Command, Reply, RequestNumber, RequestSpec},
    deadline::{Until, by, until, within},
    lasting::{Lasting, Registration},
    observation::{Newest, Observation},
    peer::{IntoUri, Peers, secure_name},
    progress::{OnProgress, Progress},
    reconnect::{Reconnect, chance},
    unanswered::Outcome,
};
use crate::{
    ContentFormat, Error, NotSent, Options, PeerIdentity, Response, Transport, Uri, UriError, clock::span,
    transfer::Piece, udp::canonical,
};

/// How often a request shows where its client is: for the address, and under OSCORE for the sequence numbers after a restart
/// (RFC 8613 Appendix B.1.2, B.2).
const MOST_PROOFS: u8 = 2;

/// A request that is being put together. It can be awaited as it is.
#[must_use = "a request does nothing until it is sent or awaited"]
#[derive(Debug)]
pub struct RequestBuilder {
    pub(super) client: Client,
    pub(super) uri: Result<Uri, UriError>,
    pub(super) method: Code,
    pub(super) options: Options,
    /// Or why the value that was to be it has no form.
    pub(super) payload: Result<Bytes, Error>,
    pub(super) address: Option<SocketAddr>,
    kind: Kind,
    pub(super) block_size: Option<u16>,
    pub(super) upload_size: Option<u32>,
    pub(super) deadline: Option<Duration>,
    pub(super) token: Option<Token>,
    one_token: bool,
    leaves_out_host: bool,
    retransmit: RetransmitOptions,
    q_block: bool,
    identity: Option<Arc<PeerIdentity>>,
    pub(super) progress: Option<OnProgress>,
    /// Not every response is wanted (RFC 7967).
    pub(super) limits_responses: bool,
    /// For how long an interrupted observation is tried again.
    pub(super) give_up_after: Duration,
}

impl RequestBuilder {
    pub(crate) fn new(client: Client, method: Code, uri: impl IntoUri) -> Self {
        Self {
            deadline: client.settings.deadline,
            q_block: client.settings.q_block,
            uri: uri.into_uri(client.settings.base.as_ref()),
            client,
            method,
            options: Options::new(),
            payload: Ok(Bytes::new()),
            address: None,
            kind: Kind::Confirmable,
            block_size: None,
            upload_size: None,
            token: None,
            one_token: false,
            leaves_out_host: false,
            retransmit: RetransmitOptions::DEFAULT,
            identity: None,
            progress: None,
            limits_responses: false,
            give_up_after: Duration::from_secs(86_400),
        }
    }

    /// With this payload. What does not fit one message goes in blocks.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = Ok(payload.into());
        self
    }

    /// With what a value was written as.
    #[cfg(any(feature = "cbor", feature = "json"))]
    pub(crate) fn written(mut self, format: ContentFormat, payload: Result<Bytes, Error>) -> Self {
        self.payload = payload;
        self.content_format(format)
    }

    /// The payload's Content-Format.
    pub fn content_format(mut self, format: impl Into<ContentFormat>) -> Self {
        self.options.set_format(number::CONTENT_FORMAT, format.into());
        self
    }

    /// The Content-Format that is wanted.
    pub fn accept(mut self, format: impl Into<ContentFormat>) -> Self {
        self.options.set_format(number::ACCEPT, format.into());
        self
    }

    /// Only if the resource has this ETag; else nothing is done, and the answer is 4.12 (If-Match, RFC 7252 §5.10.8.1). Of several
    /// any will do; an empty one is any state that there is.
    pub fn if_match(self, etag: impl Into<Bytes>) -> Self {
        self.option(number::IF_MATCH, etag)
    }

    /// Only if there is no such resource yet; else nothing is done, and the answer is 4.12 (If-None-Match, RFC 7252 §5.10.8.2).
    pub fn if_none_match(self) -> Self {
        self.option(number::IF_NONE_MATCH, Bytes::new())
    }

    /// Through so many proxies at most, the last of which answers 5.08 (Hop-Limit, RFC 8768); 0 is refused with 4.00.
    pub fn hop_limit(mut self, proxies: u8) -> Self {
        self.options.set(number::HOP_LIMIT, vec![proxies]);
        self
    }

    /// With one option more.
    pub fn option(mut self, number: u16, value: impl Into<Bytes>) -> Self {
        self.options.add(number, value);
        self
    }

    /// With one option more whose value is a number.
    pub fn uint_option(mut self, number: u16, value: u32) -> Self {
        self.options.add_uint(number, value);
        self
    }

    /// As non-confirmable messages: sent once, held back by the controller's pace and by PROBING_RATE (RFC 7252 §4.7).
    pub const fn non_confirmable(mut self) -> Self {
        self.kind = Kind::NonConfirmable;
        self
    }

    /// In blocks of this many bytes at most, from the first one on: 16, 32, 64, 128, 256, 512 or 1024.
    pub const fn block_size(mut self, bytes: u16) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Tells the server how many bytes [`upload`](Self::upload) will send (Size1, RFC 7959 §4). Of a [`payload`](Self::payload) it
    /// is told anyway.
    pub fn upload_size(mut self, bytes: u64) -> Self {
        self.upload_size = u32::try_from(bytes).ok();
        self
    }

    /// Ends as [`Error::Deadline`] if there is no answer by then. For an observation it means the first representation.
    pub const fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }

    /// MAX_RETRANSMIT of this request (RFC 7252 §4.8): copies after the first, of each of its messages; at most 250. What
    /// the client has otherwise is set by [`max_retransmit`](super::ClientBuilder::max_retransmit). For UDP: TCP repeats
    /// by itself.
    pub const fn max_retransmit(mut self, count: u8) -> Self {
        self.retransmit.max_retransmit = Some(count);
        self
    }

    /// The first copy of each of its messages waits at least this long for an acknowledgement, and a wait that this has
    /// lengthened doubles. Never shorter than the controller has it: what is safe is known to the controller of the peer,
    /// and not to one request (RFC 8085 §3.1.1). At most 71 minutes. For UDP: TCP has timers of its own.
    ///
    /// To change the timer of all requests, either way, choose the controller
    /// [`with_ack_timeout`](crate::ControllerChoice::with_ack_timeout).
    pub fn ack_timeout(mut self, least: Duration) -> Self {
        self.retransmit.ack_timeout = span(least);
        self
    }

    /// Long bodies travel in bursts, both ways, by Q-Block1 and Q-Block2 (RFC 9177), if the server knows these; it is asked
    /// once. Else they go block by block, and so do observations. For paths that lose much, and for UDP and DTLS; TCP needs
    /// neither. [`max_retransmit`](Self::max_retransmit), [`ack_timeout`](Self::ack_timeout), [`token`](Self::token) and
    /// [`non_confirmable`](Self::non_confirmable) are for what goes block by block.
    pub const fn q_block(mut self) -> Self {
        self.q_block = true;
        self
    }

    /// With this token, if it is one message; without one unpredictable ones are made. It waits while another request to
    /// the same peer has the token.
    pub const fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Asks for all blocks of the answer with the token of the first one, for servers that know a transfer by its token and answer the
    /// second block of another as if it were the first. Not for observations.
    pub const fn one_token(mut self) -> Self {
        self.one_token = true;
        self
    }

    /// Without Uri-Host, where the URI names its host (RFC 7252 §5.10.1): for servers that refuse the option, or look for another
    /// name in it.
    pub const fn without_uri_host(mut self) -> Self {
        self.leaves_out_host = true;
        self
    }

    /// Goes to this address, whatever the name in its URI resolves to; Uri-Host and the name in the certificate stay those of the URI.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(canonical(address));
        self
    }

    /// Only in a session of DTLS or TLS in which the other side has proved this [identity](crate::Request::identity): else nothing is
    /// sent, and it ends as [`Error::Insecure`]. With it a server asks the device that it means, no matter who has its address by now.
    /// A server proves its certificate by this, and nothing by a pre-shared key. An identity of OSCORE is proved by whatever transport:
    /// the request is protected by [its context](crate::OscoreContexts::add).
    ///
    /// What a server [observes](Self::observe) in a session that a peer has begun is for the identity of that session without this, too:
    /// it is registered again in the next session that the same identity begins from that address, and ends where there is none.
    pub fn identity(mut self, identity: PeerIdentity) -> Self {
        self.identity = Some(Arc::new(identity));
        self
    }

    /// Reports how far its bodies have come, each time that they went on, from the client's task: do little there. Over UDP
    /// and DTLS, where long bodies go in blocks; over TCP and TLS of [`download`](Self::download) and [`upload`](Self::upload).
    /// The server is asked how long its body is ([`Progress::total`]), which it need not tell.
    pub fn progress(mut self, hook: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress(Arc::new(hook)));
        self
    }

    /// Sends it and waits for the whole answer. Dropping the future cancels the request.
    ///
    /// A server that wants to know first whether the client is where it says gets the proof (RFC 9175 §2.3). Of a name that
    /// has several addresses the next one is asked when one cannot be reached or is silent; a request that is not idempotent
    /// (RFC 7252 §5.1) only when none of it can have arrived.
    ///
    /// # Errors
    /// No answer came, and why. An answer with an error code is an answer.
    pub async fn send(mut self) -> Result<Response, Error> {
        let key = self.key();
        let kept = match key.as_ref().and_then(|key| self.kept(key)) {
            Some(Cached::Fresh(answer)) => return Ok(answer),
            Some(Cached::Stale(answer, _)) => Some(answer),
            None => None,
        };
        if let Some(etag) = kept.as_ref().and_then(|kept| kept.options().get(number::ETAG)) {
            self.options.add(number::ETAG, etag.clone());
        }
        let (cache, clock) = (self.client.cache.clone(), self.client.clock);
        let answer = self.exchange().await?;
        let (Some(key), Some(Ok(mut cache))) = (key, cache.as_ref().map(|cache| cache.lock())) else {
            return Ok(answer);
        };
        Ok(cache.take(clock.now(), &key, kept.as_ref(), answer))
    }

    /// What the answer is kept by, or what is kept of it is forgotten by; none where that does not concern the cache.
    pub(super) fn key(&self) -> Option<CacheKey> {
        let (Ok(uri), Ok(payload), Some(_)) = (&self.uri, &self.payload, &self.client.cache) else { return None };
        let is_validated = self.options.get(number::ETAG).is_some();
        (!is_validated).then(|| cache_key(self.method, uri, &self.options, payload))
    }

    fn kept(&self, key: &CacheKey) -> Option<Cached> {
        let mut cache = self.client.cache.as_ref()?.lock().ok()?;
        cache.get(self.client.clock.now(), key)
    }

    /// Sends it and waits for the whole answer.
    async fn exchange(mut self) -> Result<Response, Error> {
        let mut peers = within(self.deadline, Peers::of(&self)).await?;
        let until = peers.until();
        let answered = by(until, self.answer(&mut peers, None)).await;
        match answered {
            Err(Error::Deadline { after }) if peers.lacks_settings().await => {
                let peer = peers.left().first().copied().ok_or(Error::Closed)?;
                Err(Error::NoSettings { peer, after })
            }
            answered => answered,
        }
    }

    /// Its answer from the first of these addresses that gives one; of a body that goes block by block, that to one block.
    pub(super) async fn answer(&mut self, peers: &mut Peers, piece: Option<Piece>) -> Result<Response, Error> {
        match self.outcome(peers, piece, None).await? {
            Outcome::Answered(response) => Ok(response),
            // For those that do not want all responses.
            Outcome::Sent | Outcome::Acknowledged => Err(Error::Closed),
        }
    }

    /// What becomes of it with the first of these addresses that does not fail.
    pub(super) async fn outcome(
        &mut self,
        peers: &mut Peers,
        piece: Option<Piece>,
        until: Until,
    ) -> Result<Outcome, Error> {
        let (mut proofs, mut has_moved, mut refusals) = (0..MOST_PROOFS, false, 0);
        // Of a body later blocks are for the connection alone that knows those before.
        let is_first =
            piece.is_none_or(|piece| piece.block1.is_none() && piece.block2.is_none_or(|block| block.number == 0));
        loop {
            let (reply, told) = oneshot::channel();
            let mut guard = by(until, self.start(peers, Reply::Once(reply), piece)).await?;
            let outcome = guard.outcome(told, until).await;
            guard.is_over = true;
            if let Ok(Outcome::Answered(response)) = &outcome {
                peers.heed(self, response);
            }
            match outcome {
                Ok(Outcome::Answered(response)) if self.proves(&response, &mut proofs) => {}
                // What is streamed is not there any more.
                Ok(Outcome::Answered(response)) if piece.is_none() => {
                    refusals += 1;
                    match self.client.settings.attempts.again(refusals, &response, peers.until(), chance) {
                        Some(at) => {
                            drop(guard);
                            sleep_until(at).await;
                        }
                        None => return peers.served(self, Ok(Outcome::Answered(response))),
                    }
                }
                Err(error) if is_first && !has_moved && peers.move_on(&error).await => has_moved = true,
                Err(error) if peers.go_on(self, &error) => {}
                outcome => return peers.served(self, outcome),
            }
        }
    }

    /// Sends it as the registration of an observer and waits for the first representation. Once it stands it
    /// [lasts](Observation).
    ///
    /// # Errors
    /// No answer came, and why; [`Error::NotObserved`] with the answer of a server that does not let it be observed, or
    /// answered with an error.
    pub async fn observe(mut self) -> Result<Observation, Error> {
        if !matches!(self.method, Code::GET | Code::FETCH) {
            let reason = "only GET and FETCH can observe (RFC 7641 §2, RFC 8132 §2.4)";
            return Err(Error::refused(NotSent::Combination, reason));
        }
        let first = self.register_first().await?;
        if self.asks_where_peers_begin() && self.identity.is_none() {
            // What was said to one is asked of no other that has its address later.
            self.identity = first.newest.identity();
        }
        Ok(Observation::kept(first, |first, told, current| {
            tokio::spawn(Lasting { request: self, told, current }.keep(first)).abort_handle()
        }))
    }

    /// For how long an observation that is interrupted is tried again before it ends with what interrupted it; 24 hours, after
    /// which no server need know it (RFC 7641 §4.5). Zero ends it at the first interruption.
    pub const fn give_up_after(mut self, longest: Duration) -> Self {
        self.give_up_after = longest;
        self
    }

    /// For how long an observation that was interrupted is tried again. What a server observes in a session that a peer has begun it
    /// observes of that peer alone: where that has proved no identity, nobody knows who begins the next one there.
    pub(super) fn lasts_for(&self) -> Duration {
        if self.asks_where_peers_begin() && self.identity.is_none() { Duration::ZERO } else { self.give_up_after }
    }

    /// How it comes back to its server.
    pub(super) fn reconnect(&self) -> Reconnect {
        self.client.settings.attempts.policy
    }

    /// Whether it is asked in a session, or connection, that a peer has begun.
    fn asks_where_peers_begin(&self) -> bool {
        self.uri.as_ref().is_ok_and(|uri| self.client.asks_where_peers_begin(uri.transport()))
    }

    /// Whether its registration is kept in the order of datagrams, which nothing but the client's own care keeps up.
    pub(super) fn is_over_datagrams(&self) -> bool {
        self.uri.as_ref().is_ok_and(|uri| uri.transport().is_datagram())
    }

    /// Registers as an observer, again after refusals if its policy says so.
    async fn register_first(&mut self) -> Result<Registration, Error> {
        let until = until(self.deadline);
        let register = async {
            let mut refusals = 0;
            loop {
                let registered = self.register().await;
                let Err(Error::NotObserved { answer }) = &registered else { return registered };
                refusals += 1;
                match self.client.settings.attempts.again(refusals, answer, until, chance) {
                    Some(at) => sleep_until(at).await,
                    None => return registered,
                }
            }
        };
        by(until, register).await
    }

    /// Registers as an observer.
    pub(super) async fn register(&mut self) -> Result<Registration, Error> {
        within(self.deadline, async {
            let mut peers = Peers::of(self).await?;
            let (mut proofs, mut has_moved) = (0..MOST_PROOFS, false);
            loop {
                let newest = Newest::default();
                let mut guard = self.start(&mut peers, Reply::Observed(newest.clone()), None).await?;
                match newest.ready().await {
                    Ok((first, _)) if self.proves(&first, &mut proofs) => {}
                    Ok((_, true)) => {
                        guard.place = None;
                        return peers.served(self, Ok(Registration { newest, guard }));
                    }
                    Ok((answer, false)) => return Err(Error::NotObserved { answer: Box::new(answer) }),
                    Err(error) if !has_moved && peers.move_on(&error).await => has_moved = true,
                    Err(error) if peers.go_on(self, &error) => {}
                    Err(error) => return Err(error),
                }
            }
        })
        .await
    }

    /// A server wants to know whether this client is where it says: the request, or that for one block, is to be sent again
    /// with what it gave for that (RFC 9175 §2.3), if proofs are left. What it has been given does not help again.
    pub(super) fn proves(&mut self, response: &Response, left: &mut Range<u8>) -> bool {
        let value = response.options().get(number::ECHO).filter(|_| response.code() == Code::UNAUTHORIZED);
        let value = value.filter(|value| self.options.get(number::ECHO) != Some(value));
        let Some(value) = value.filter(|_| left.next().is_some()) else { return false };
        self.options.set(number::ECHO, value.clone());
        true
    }

    /// Over a stream nothing is repeated that could be repeated otherwise.
    fn check_patience(&self, transport: Transport) -> Result<(), Error> {
        if !transport.is_datagram() && self.retransmit != RetransmitOptions::DEFAULT {
            let reason = "max_retransmit and ack_timeout are for UDP, and TCP repeats by itself; leave them out";
            return Err(Error::refused(NotSent::Combination, reason));
        }
        Ok(())
    }

    /// Those of the URI, and those that were added.
    pub(super) fn all_options(&self, uri: &Uri) -> Options {
        let of_uri = uri.uri_options().into_iter();
        let mut options: Options =
            of_uri.filter(|(number, _)| !(self.leaves_out_host && *number == number::URI_HOST)).collect();
        for (number, value) in self.options.iter() {
            options.add(number, value.clone());
        }
        options
    }

    async fn start(&self, peers: &mut Peers, reply: Reply, piece: Option<Piece>) -> Result<Guard, Error> {
        let uri = self.uri.as_ref().map_err(Clone::clone)?;
        let block = match self.block_size {
            Some(bytes) => block_size(bytes)?,
            None => self.client.settings.block,
        };
        let mut options = self.all_options(uri);
        self.client.settings.protecting.choose(uri, self.identity.as_deref(), &mut options)?;
        self.check_patience(uri.transport())?;
        // The context proves the other kind, whatever carries the message.
        let identity = self.identity.clone().filter(|identity| !matches!(**identity, PeerIdentity::Oscore(_)));
        if identity.is_some() && !matches!(uri.transport(), Transport::Dtls | Transport::Tls) {
            let reason = "an identity is proved to a request in a session of DTLS or TLS; ask by coaps or coaps+tcp, or leave it out";
            return Err(Error::refused(NotSent::Combination, reason));
        }
        if !self.limits_responses && self.options.get(number::NO_RESPONSE).is_some() {
            let reason = "No-Response is said by send_no_response, which tells what becomes of the request";
            return Err(Error::refused(NotSent::Combination, reason));
        }
        let peer = peers.left().first().copied().ok_or(Error::Closed)?;
        let place = Arc::clone(&self.client.room).acquire_owned().await.map_err(|_| Error::Closed)?;
        let number = self.client.number();
        let wanted = RequestSpec {
            number,
            peer,
            kind: self.kind,
            method: self.method,
            options,
            payload: self.payload.clone()?,
            block,
            is_block_wished: self.block_size.is_some(),
            longest: self.client.settings.longest_body,
            token: self.token,
            one_token: self.one_token,
            name: secure_name(uri.transport(), uri.host())?,
            identity,
            retransmit: self.retransmit,
            q_block: self.q_block,
            // Of a block nothing is told but that it came.
            progress: self.progress.clone().filter(|_| piece.is_none()),
            wants_total: self.progress.is_some(),
            piece,
            reply,
        };
        let command = Command::Request(Box::new(wanted));
        let commands = peers.order(self, command, piece.is_some()).await?;
        Ok(Guard { number, commands, is_over: false, place: Some(place) })
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A block size of RFC 7959.
pub(crate) fn block_size(bytes: u16) -> Result<BlockSize, Error> {
    let size = BlockSize::at_most(usize::from(bytes));
    if size.bytes() == u32::from(bytes) {
        return Ok(size);
    }
    let reason = format!("{bytes} is no size of a block; use 16, 32, 64, 128, 256, 512 or 1024");
    Err(Error::Setting { name: "block_size", reason })
}

/// Cancels a request when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(super) number: RequestNumber,
    pub(super) commands: Commands,
    is_over: bool,
    /// Its place among the requests of the client; an observation that has begun has none.
    place: Option<OwnedSemaphorePermit>,
}

impl Guard {
    pub(crate) fn forget(mut self) {
        self.is_over = true;
        // The driver may have ended; then there is nothing to forget.
        let _ = self.commands.send(Command::Forget(self.number));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.commands.send(Command::Cancel(self.number));
        }
    }
}
