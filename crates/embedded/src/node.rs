use alloc::{collections::VecDeque, vec::Vec};
use core::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use embassy_futures::select::{Either, select};
use embedded_nal_async::UnconnectedUdp;
use millpond_coap::{
    Config, Endpoint, Event, ExchangeId, Limits, Outgoing, Output, Pauses, Refused, RetransmitOptions,
    block::{Assemblies, AssemblyLimits, BlockSize, Verdict},
    message::{Code, Kind, Message, number},
    transfer::{AROUND_IPV4, AROUND_IPV6, Limit, NOTIFICATION, Read},
};
use millpond_control::{Chance, ChanceSeed, Instant, Purpose, Span};

use crate::{
    Clock, Error, Observation, Request, Resource, Response, Setup, SetupError,
    observation::Notified,
    observers::{Observer, Observers},
    resource::{Answered, Asked, Form, Reply, Waiting, segments},
    transfer::{Head, Step, Transfer},
};

/// Names a body that comes in blocks: whose it is, and the options that tell one resource from another.
type BodyKey = (SocketAddr, Vec<u8>);

/// Bytes of a message beside its payload, with a token of 8 bytes and some options.
const OVERHEAD: usize = 64;

/// Client and server over one UDP socket. See the [crate](crate).
pub struct Node<'b, U, C> {
    pub(crate) endpoint: Endpoint<SocketAddr>,
    udp: U,
    local: SocketAddr,
    pub(crate) clock: C,
    /// Where datagrams come in, and where an answer's payload is made.
    buffer: &'b mut [u8],
    resource: Option<&'b mut dyn Resource>,
    pub(crate) block: BlockSize,
    bodies: Assemblies<BodyKey>,
    waiting: Option<Waiting>,
    observers: Observers,
    /// What a call waits for. A call that was dropped leaves it here.
    under_way: Option<ExchangeId>,
    /// The newest state of each observation that was not taken yet.
    pub(crate) notified: VecDeque<Notified>,
    chance: ChanceSeed,
    /// Words of chance that were drawn.
    drawn: u32,
    unsent: u32,
}

impl<U, C> fmt::Debug for Node<'_, U, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl<'b, U: UnconnectedUdp, C: Clock> Node<'b, U, C> {
    /// Of the shortest buffer: blocks of 16 bytes, and one byte by which a datagram is seen to be too long.
    pub const SHORTEST_BUFFER: usize = 16 + OVERHEAD + 1;

    /// Over a socket that is bound. `local` is the address that [`bind_single`](embedded_nal_async::UdpStack::bind_single) gave, or an
    /// unspecified one. Datagrams have a byte less than the buffer at most.
    ///
    /// # Errors
    /// What cannot work, with its fix.
    pub fn new(udp: U, local: SocketAddr, clock: C, setup: Setup, buffer: &'b mut [u8]) -> Result<Self, SetupError> {
        let (length, least) = (buffer.len(), Self::SHORTEST_BUFFER);
        if length < least {
            return Err(SetupError::Buffer { length, least });
        }
        let Setup { config, controller, chance, id_generator, block, longest_upload, observers } = setup;
        let longest = u16::try_from(length.saturating_sub(1)).unwrap_or(u16::MAX);
        let Limits { datagram, received, .. } = config.limits;
        let limits = Limits { datagram: datagram.min(longest), received: received.min(longest), ..config.limits };
        let endpoint = Endpoint::new(Config { limits, ..config }, controller, chance, 0, id_generator)?;
        let fits = longest_payload(&limits);
        let block = block.min(BlockSize::at_most(fits)).min(BlockSize::B1024);
        let of_bodies = AssemblyLimits { body: longest_upload, bodies: 2, size: block, ..AssemblyLimits::default() };
        Ok(Self {
            endpoint,
            udp,
            local,
            clock,
            buffer,
            resource: None,
            block,
            bodies: Assemblies::new(of_bodies),
            waiting: None,
            observers: Observers::new(observers),
            under_way: None,
            notified: VecDeque::new(),
            chance,
            drawn: 0,
            unsent: 0,
        })
    }

    /// The same node as a server: whatever it waits for, requests are answered by this. Without it they are answered with 4.04.
    #[must_use]
    pub fn serving(mut self, resource: &'b mut dyn Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// What is [observable](Reply::observable) at this path, as in `config/period`, has a new state: the next call that waits or serves
    /// tells its observers. Of states that follow each other faster than they are acknowledged the newest is told.
    pub fn notify(&mut self, path: &str) {
        self.observers.changed(segments(path));
    }

    /// Observers of what is served.
    #[must_use]
    pub fn observers(&self) -> usize {
        self.observers.len()
    }

    /// Asks a server and returns its whole response, whose body is written to `body`. A call that is dropped is cancelled by the
    /// next one.
    ///
    /// # Errors
    /// There is no response, or its body is longer than `body`. A response with an error code is no error.
    pub async fn request<'o>(
        &mut self,
        server: SocketAddr,
        request: &Request<'_>,
        body: &'o mut [u8],
    ) -> Result<Response<'o>, Error<U::Error>> {
        self.settle().await;
        let mut transfer = Transfer::new(request, &mut *body, self.block);
        let head = self.carry(server, &mut transfer, Step::Next, None).await?;
        Ok(head.response(body))
    }

    /// Serves, and does nothing else, until this point in time.
    ///
    /// # Errors
    /// The socket can no longer receive.
    pub async fn serve_until(&mut self, at: Instant) -> Result<(), Error<U::Error>> {
        self.settle().await;
        while self.clock.now() < at {
            let until = self.turn(None).await;
            self.wait(until.min(at)).await?;
        }
        Ok(())
    }

    /// When a device that has just started is to speak to its server: after its part of the [spread](Pauses::spread), or of the pause after
    /// the attempts that had failed in a row before, if that is longer. So that a power cut does not make a device forget that, flash
    /// keeps the number. Chance is this node's: devices that were interrupted together come apart.
    ///
    /// ```no_run
    /// # use core::net::SocketAddr;
    /// # use millpond_embedded::{Clock, EmbassyClock, Error, Node, Request, UnconnectedUdp, coap::Pauses};
    /// # async fn report<U: UnconnectedUdp>(
    /// #     node: &mut Node<'_, U, EmbassyClock>, server: SocketAddr, from_flash: u32, into_flash: fn(u32),
    /// # ) -> Result<(), Error<U::Error>> {
    /// // One of 400 devices that share a link of 60 kbit/s.
    /// let pauses = Pauses::new().spread_by_load(400, 134, 60_000);
    /// let (mut body, mut failures) = ([0; 64], from_flash);
    /// let mut at = node.first_attempt(&pauses, failures);
    /// loop {
    ///     node.serve_until(at).await?;
    ///     let answered = node.request(server, &Request::post("reports", b"21.5"), &mut body).await.ok();
    ///     if answered.is_some_and(|response| response.code.is_success()) {
    ///         break into_flash(0);
    ///     }
    ///     failures += 1;
    ///     into_flash(failures);
    ///     at = node.next_attempt(&pauses, failures, answered.as_ref());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn first_attempt(&mut self, pauses: &Pauses, failures: u32) -> Instant {
        let chance = self.draw().word();
        self.in_a_while(pauses.after_restart(failures, chance))
    }

    /// When to try again to reach a server after so many failures in a row, the last of which ended with this response, if there was one:
    /// one that refuses for a while (5.03, 4.29) says how long at least.
    pub fn next_attempt(&mut self, pauses: &Pauses, failures: u32, response: Option<&Response<'_>>) -> Instant {
        let chance = self.draw().word();
        self.in_a_while(pauses.after_failures(failures, response.and_then(Response::refusal), chance))
    }

    fn in_a_while(&self, pause: Duration) -> Instant {
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        Instant::from_micros(self.clock.now().as_micros().saturating_add(micros))
    }

    /// The base round trip that was measured to a server, for [`recall`](Self::recall) after a restart.
    #[must_use]
    pub fn base_rtt(&self, server: SocketAddr) -> Option<Span> {
        self.endpoint.base_rtt(server)
    }

    /// Tells what was measured to a server before a restart, a week ago at most.
    ///
    /// # Errors
    /// There is no room for another peer.
    pub fn recall(&mut self, server: SocketAddr, base_rtt: Span) -> Result<(), Refused> {
        self.endpoint.recall(self.clock.now(), server, base_rtt)
    }

    /// The message layer, for what it knows and has counted.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<SocketAddr> {
        &self.endpoint
    }

    /// Datagrams that the socket did not take. They are repeated as if they were lost on their way.
    #[must_use]
    pub const fn unsent(&self) -> u32 {
        self.unsent
    }

    /// Exchanges message after message, from this step on, until the response is whole. The first message registers if
    /// `observation` says so.
    pub(crate) async fn carry(
        &mut self,
        server: SocketAddr,
        transfer: &mut Transfer<'_, U::Error>,
        first: Step<U::Error>,
        observation: Option<&mut Observation<'_>>,
    ) -> Result<Head, Error<U::Error>> {
        let mut observation = observation;
        let mut step = first;
        loop {
            match step {
                Step::Next => {}
                Step::Done => return transfer.head.ok_or(Error::BadBlock),
                Step::Failed(why) => return Err(why),
            }
            let (now, endpoint) = (self.clock.now(), &mut self.endpoint);
            let exchange = match observation.as_deref_mut().filter(|_| transfer.head.is_none()) {
                Some(observation) => {
                    let token = transfer.token.or(observation.token);
                    let exchange = transfer
                        .message(true, |message| endpoint.subscribe(now, server, &Outgoing { token, ..*message }))?;
                    observation.exchange = Some(exchange);
                    exchange
                }
                None => transfer.message(false, |message| endpoint.request(now, server, message))?,
            };
            (transfer.exchange, self.under_way) = (Some(exchange), Some(exchange));
            step = loop {
                let until = self.turn(Some(transfer)).await;
                if let Some(step) = transfer.step.take() {
                    break step;
                }
                self.wait(until).await?;
            };
            self.under_way = None;
        }
    }

    /// Ends what a call began that was dropped.
    pub(crate) async fn settle(&mut self) {
        self.turn(None).await;
        if let Some(exchange) = self.under_way.take() {
            self.endpoint.cancel(self.clock.now(), exchange);
            self.turn(None).await;
        }
    }

    /// Sends what is to leave, and takes down what is told. Says until when there is nothing more.
    pub(crate) async fn turn(&mut self, mut transfer: Option<&mut Transfer<'_, U::Error>>) -> Instant {
        loop {
            let now = self.clock.now();
            let until = match self.endpoint.poll(now) {
                Output::Transmit(datagram) => {
                    // From the address of the same family that the socket has.
                    let local = match (datagram.to, self.local) {
                        (SocketAddr::V4(_), local @ SocketAddr::V4(_)) => local,
                        (SocketAddr::V6(_), local @ SocketAddr::V6(_)) => local,
                        (SocketAddr::V4(_), local) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), local.port()),
                        (SocketAddr::V6(_), local) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), local.port()),
                    };
                    if self.udp.send(local, datagram.to, datagram.bytes).await.is_err() {
                        self.unsent = self.unsent.saturating_add(1);
                    }
                    continue;
                }
                Output::Event(event) => {
                    let transfer = transfer.as_deref_mut();
                    match event {
                        Event::Response { exchange, message, copies, .. } => {
                            if let Some(transfer) = transfer.filter(|transfer| transfer.exchange == Some(exchange)) {
                                transfer.answered(&message, copies);
                            }
                        }
                        Event::Failed { exchange, why, copies, .. } => {
                            if let Some(transfer) = transfer.filter(|transfer| transfer.exchange == Some(exchange)) {
                                transfer.failed(why, copies);
                            }
                        }
                        Event::AdditionalResponse { exchange, message, .. } => {
                            self.notified.retain(|other| other.exchange != exchange);
                            self.notified.push_back(Notified::new(exchange, now, &message));
                        }
                        Event::Request { from, id, message } => {
                            // It is answered when nothing of the message layer is borrowed any more.
                            let request = message.rewritten(|_| true, message.payload()).ok();
                            self.waiting = request.map(|request| Waiting { from, to: id, request });
                        }
                        Event::Delivered { exchange, .. } => self.observers.delivered(exchange),
                        Event::Undelivered { exchange, .. } => self.observers.undelivered(exchange),
                        _ => {}
                    }
                    continue;
                }
                Output::Sleep(until, _) => until,
                Output::Idle => Instant::NEVER,
            };
            self.release_tokens();
            if let Some(waiting) = self.waiting.take() {
                self.respond(now, &waiting);
            } else if let Some(observer) = self.observers.take_changed() {
                self.tell(now, observer);
            } else {
                return until;
            }
        }
    }

    /// What goes to a peer for a request of so many bytes, if its address is not validated: RFC 7252 §11.3, RFC 9175 §2.4.
    fn limit(&self, peer: SocketAddr, request: usize) -> Option<Limit> {
        let around = if peer.ip().to_canonical().is_ipv4() { AROUND_IPV4 } else { AROUND_IPV6 };
        (!self.endpoint.is_validated(peer)).then(|| Limit::of(request, around))
    }

    fn respond(&mut self, now: Instant, waiting: &Waiting) {
        let Waiting { from, to, request } = waiting;
        let Ok(message) = Message::parse(request) else { return };
        let limit = self.limit(*from, request.len());
        let mut answer = self.answer(now, *from, &message, limit);
        if answer.has_changed {
            self.observers.changed(message.uri_path());
        }
        if message.option(number::OBSERVE).is_some() {
            self.observers.remove(*from, message.token);
            self.release_tokens();
        }
        if answer.observe.is_some() {
            let (peer, token, request) = (*from, message.token, request.clone());
            // Of a validated peer it is not looked at until that is forgotten.
            let alone = limit.unwrap_or_else(|| Limit::of(0, AROUND_IPV4));
            let observer = Observer { peer, token, request, under_way: None, has_changed: false, limit: alone };
            answer.observe = self.observers.add(observer, |peer| self.endpoint.is_validated(peer));
        }
        let payload = self.buffer.get(..answer.length).unwrap_or_default();
        let (endpoint, observers) = (&mut self.endpoint, &mut self.observers);
        // What cannot be answered any more was dropped by its sender, or by the message layer.
        let _ = answer.message(message.kind, payload, |outgoing| {
            if let (Some(limit), Some(observer)) = (limit, observers.get_mut(*from, message.token)) {
                observer.limit = limit.after(outgoing.length_with(message.token));
            }
            endpoint.respond(now, *to, outgoing)
        });
        if answer.observe.is_some() {
            self.endpoint.hold_token(*from, message.token, true);
        }
    }

    /// Has the new state of what it observes leave to an observer, confirmable. What cannot be sent ends the observation.
    fn tell(&mut self, now: Instant, mut observer: Observer) {
        let Ok(message) = Message::parse(&observer.request) else { return };
        let Some(resource) = self.resource.as_deref_mut() else { return };
        let Observer { peer, token, .. } = observer;
        let limit = (!self.endpoint.is_validated(peer)).then_some(observer.limit);
        let asked = Read::of(&message, None).block2.and_then(Result::ok);
        let form = Form { asked, size: self.block, token, block1: None, observes: true, limit, kept: 0 };
        let mut reply = Reply::new(self.buffer, form);
        resource.answer(&Asked { from: peer, message, body: message.payload() }, &mut reply);
        let mut answer = reply.into_head();
        let is_last = !(answer.is_success() && answer.observe.is_some());
        answer.observe = (!is_last).then(|| self.observers.next_sequence());
        let payload = self.buffer.get(..answer.length).unwrap_or_default();
        let endpoint = &mut self.endpoint;
        let sent = answer.message(Kind::Confirmable, payload, |message| {
            let max_retransmit = limit.map(|limit| limit.again(message.length_with(token)));
            let retransmit = RetransmitOptions { max_retransmit, ..message.retransmit };
            endpoint.send_additional(now, peer, token, &Outgoing { retransmit, ..*message })
        });
        match sent {
            Ok(exchange) if !is_last => {
                (observer.under_way, observer.has_changed) = (Some(exchange), false);
                self.observers.put_back(observer);
            }
            _ => self.endpoint.hold_token(peer, token, false),
        }
    }

    /// No more is sent on the tokens of observers that are gone.
    fn release_tokens(&mut self) {
        while let Some((peer, token)) = self.observers.gone.pop() {
            self.endpoint.hold_token(peer, token, false);
        }
    }

    /// The answer to a request, with its payload at the beginning of the buffer.
    fn answer(&mut self, now: Instant, from: SocketAddr, message: &Message<'_>, limit: Option<Limit>) -> Answered {
        // Preconditions and proxies are left out.
        const KNOWN: [u16; 7] = [
            number::URI_HOST,
            number::URI_PORT,
            number::URI_PATH,
            number::URI_QUERY,
            number::ACCEPT,
            number::BLOCK1,
            number::BLOCK2,
        ];
        if message.options().refused(|number| KNOWN.contains(&number)).is_some() {
            return Answered::new(Code::BAD_OPTION);
        }
        let Some(resource) = self.resource.as_deref_mut() else { return Answered::new(Code::NOT_FOUND) };
        let read = Read::of(message, None);
        let (Ok(block1), Ok(block2)) = (read.block1.transpose(), read.block2.transpose()) else {
            return Answered::new(Code::BAD_REQUEST);
        };
        let (buffer, size, token) = (&mut *self.buffer, self.block, message.token);
        let observes = read.observe == Some(0)
            && matches!(message.code, Code::GET | Code::FETCH)
            && block1.is_none()
            && block2.is_none_or(|block| block.number == 0);
        let mut hand_up = |body: &[u8], block1| {
            let form = Form { asked: block2, size, token, block1, observes, limit, kept: NOTIFICATION };
            let mut reply = Reply::new(buffer, form);
            resource.answer(&Asked { from, message: *message, body }, &mut reply);
            reply.into_head()
        };
        let Some(block1) = block1 else { return hand_up(message.payload(), None) };
        match self.bodies.take(now, (from, key(message)), block1, read.size1, message.payload()) {
            Verdict::Whole(body, block) => hand_up(&body, Some(block)),
            Verdict::Continue(block) => Answered::new(Code::CONTINUE).with_block1(Some(block)),
            // Its answer is not kept: copies of the message itself are answered by the message layer.
            Verdict::Repeated(_) | Verdict::Incomplete => Answered::new(Code::REQUEST_ENTITY_INCOMPLETE),
            Verdict::TooLarge(most) => Answered::new(Code::REQUEST_ENTITY_TOO_LARGE).with_size1(most),
            Verdict::WrongLength => Answered::new(Code::BAD_REQUEST),
        }
    }

    /// Until a datagram came, or this point in time.
    pub(crate) async fn wait(&mut self, until: Instant) -> Result<(), Error<U::Error>> {
        match select(self.udp.receive_into(self.buffer), self.clock.until(until)).await {
            Either::First(Ok((length, _, from))) => {
                let datagram = self.buffer.get(..length).unwrap_or(self.buffer);
                self.endpoint.receive(self.clock.now(), from, datagram);
                Ok(())
            }
            Either::First(Err(error)) => Err(Error::Udp(error)),
            Either::Second(()) => Ok(()),
        }
    }

    /// When to renew what is fresh for so many seconds: 5 to 15 s later (RFC 7641 §3.3.1).
    pub(crate) fn renewal(&mut self, now: Instant, max_age: u32) -> Instant {
        let jitter = self.draw().between(Span::from_secs(5), Span::from_secs(15));
        let fresh = u64::from(max_age).saturating_mul(1_000_000);
        Instant::from_micros(now.as_micros().saturating_add(fresh)).after(jitter)
    }

    /// A word of chance of its own.
    fn draw(&mut self) -> Chance {
        self.drawn = self.drawn.wrapping_add(1);
        self.chance.at(Purpose::Dither, [0, u32::MAX, self.drawn, 0])
    }
}

/// What is left for a payload in a datagram that may be sent and received.
pub(crate) fn longest_payload(limits: &Limits) -> usize {
    usize::from(limits.datagram.min(limits.longest_received())).saturating_sub(OVERHEAD)
}

/// Code and options of a request, as far as they tell one resource from another (RFC 7252 §5.4.6).
fn key(message: &Message<'_>) -> Vec<u8> {
    let mut key = Vec::from([message.code.to_byte()]);
    for option in message.options().filter(millpond_coap::message::Opt::is_cache_key) {
        key.extend_from_slice(&option.number.to_be_bytes());
        key.extend_from_slice(&(option.value.len() as u16).to_be_bytes());
        key.extend_from_slice(option.value);
    }
    key
}
