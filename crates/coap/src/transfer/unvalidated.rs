//! What goes to an address that has not shown that it receives what is sent there (RFC 7252 §11.3, RFC 9175 §2.4).
//!
//! A peer that forges an address could have a server send much to it. So for a request there goes at most [`FACTOR`] times what came,
//! counted in bytes on the wire, or [`ALWAYS`] bytes of CoAP, which is the same for the shortest request. What is longer is cut into
//! blocks that fit, and asks for a proof at the same time (Echo): who knows that option goes on with large blocks, who does not
//! goes on with small ones. Nothing is kept for that.

use alloc::boxed::Box;
use core::fmt::Debug;

use millpond_control::Instant;

use super::{
    Answer, CoapStack, Refused, options,
    representation::{Cut, Representation},
    server::Pending,
};
use crate::block::{Block, BlockSize, PastEnd};
use crate::endpoint::{ExchangeId, Outgoing, RequestId, RetransmitOptions};
use crate::layer::MessageLayer;
use crate::message::{Code, HEADER, number};

/// So many times the bytes that came may go to an address that has shown nothing (RFC 9175 §2.4, item 3).
pub const FACTOR: u32 = 3;
/// Bytes of CoAP that may go there in any case: 3 · 66 − 62, for the shortest request over IPv6 and Ethernet (RFC 9175 §2.4).
pub const ALWAYS: u32 = 136;
/// Bytes on the wire around a datagram's payload: the headers of Ethernet without its checksum, of IPv4 or IPv6, and of UDP, as RFC 9175
/// §2.4 counts them. On links with longer headers, or that compress them, the factor is nearer to 1 or to that of CoAP alone.
pub const AROUND_IPV4: u8 = 14 + 20 + 8;
/// The same for IPv6.
pub const AROUND_IPV6: u8 = 14 + 40 + 8;
/// Bytes of a value of the option Echo, which may have 1 to 40 (RFC 9175 §2.2.1).
pub const ECHO_LENGTH: usize = 12;

/// Bytes of a notification that a peer that observes must be able to get after the answer to its registration.
pub const NOTIFICATION: usize = 48;

/// Knows who receives what is sent to its address.
pub trait Validation<A>: Debug + Send {
    /// What may be sent for a request of so many bytes with this in its option Echo.
    fn address_validation(&mut self, now: Instant, peer: A, echoed: Option<&[u8]>, request: usize)
    -> AddressValidation;

    /// What the client is to send back to show that it is there; `None` if it need not show anything.
    fn echo(&mut self, now: Instant, peer: A) -> Option<[u8; ECHO_LENGTH]>;
}

/// What may be sent for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressValidation {
    /// Whatever is asked for: the request itself brought what was sent there, or nobody need show anything.
    #[default]
    Validated,
    /// The same, but of a burst one block alone: it was shown lately, and requests may be forged in its name.
    Remembered,
    /// So much.
    Unvalidated(Limit),
}

/// Bytes that may go to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// On the wire.
    bytes: u32,
    /// Around CoAP in each datagram.
    around: u8,
}

impl Limit {
    /// For a request of so many bytes of CoAP, with so many around it on the wire.
    #[must_use]
    pub fn of(request: usize, around: u8) -> Self {
        let request = u32::try_from(request).unwrap_or(u32::MAX).saturating_add(around.into());
        Self { bytes: request.saturating_mul(FACTOR).max(ALWAYS.saturating_add(around.into())), around }
    }

    /// For a message for which nothing came.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self { bytes: ALWAYS.saturating_add(self.around as u32), ..self }
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) const fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.bytes.to_be_bytes();
        [a, b, c, d, self.around]
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) const fn from_bytes([a, b, c, d, around]: [u8; 5]) -> Self {
        Self { bytes: u32::from_be_bytes([a, b, c, d]), around }
    }

    /// What is left when a message of so many bytes has gone.
    #[must_use]
    pub fn after(self, message: usize) -> Self {
        let message = u32::try_from(message).unwrap_or(u32::MAX).saturating_add(self.around.into());
        Self { bytes: self.bytes.saturating_sub(message), ..self }
    }

    /// Bytes of the longest message that may go.
    #[must_use]
    pub const fn message(self) -> usize {
        self.bytes.saturating_sub(self.around as u32) as usize
    }

    /// How often a message of so many bytes may be sent again.
    #[must_use]
    pub fn again(self, message: usize) -> u8 {
        let each = u32::try_from(message).unwrap_or(u32::MAX).saturating_add(self.around.into()).max(1);
        u8::try_from(self.bytes.checked_div(each).unwrap_or(0).saturating_sub(1)).unwrap_or(u8::MAX)
    }
}

/// What was sent as an answer to an address that is not validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its code.
    pub code: Code,
    /// Bytes of its payload.
    pub payload: usize,
    /// The block that this is.
    pub block: Option<Block>,
    /// The client is to show that it receives what is sent to its address (Echo).
    pub asks_for_proof: bool,
    /// It said that its receiver observes.
    pub(super) observes: bool,
    /// What may go there after it.
    pub(super) left: Option<Limit>,
}

impl Sent {
    /// Nothing yet.
    pub(super) const NOTHING: Self =
        Self { code: Code::EMPTY, payload: 0, block: None, asks_for_proof: false, observes: false, left: None };

    fn of(message: &Outgoing<'_>, left: Limit) -> Self {
        let mut sent = Self { code: message.code, payload: message.payload.len(), left: Some(left), ..Self::NOTHING };
        for (number, value) in message.options {
            match *number {
                number::BLOCK2 => sent.block = Block::read(value, true).ok(),
                number::ECHO => sent.asks_for_proof = true,
                number::OBSERVE => sent.observes = true,
                _ => {}
            }
        }
        sent
    }
}

/// A notification as it left, and its name.
type Notified<'a, L> = (Representation<'a>, Result<Option<ExchangeId>, <L as MessageLayer>::Refused>);

/// An answer as it fits so many bytes: as it is, or in blocks that are small enough and with the wish for a proof, which is made
/// for these alone.
fn fit<'a, A>(
    answer: &'a Answer<'a>,
    to: &Pending<A>,
    (size, etag_length): (BlockSize, u8),
    most: usize,
    observe: Option<u32>,
    echo: impl FnOnce() -> Option<[u8; ECHO_LENGTH]>,
) -> Result<Option<Representation<'a>>, PastEnd> {
    const SMALLER: [BlockSize; 6] =
        [BlockSize::B512, BlockSize::B256, BlockSize::B128, BlockSize::B64, BlockSize::B32, BlockSize::B16];
    let fits =
        |one: &Representation<'_>| one.message(to.block2, to, observe, |message| message.length_with(to.token) <= most);
    let whole = Representation::of(answer, Cut::of(size), etag_length);
    if fits(&whole)? {
        return Ok(Some(whole));
    }
    // What fits the smallest block is long enough for an ETag in any other.
    let mut cut = Representation { echo: echo(), ..Representation::of(answer, Cut::of(BlockSize::B16), etag_length) };
    for size in [size].into_iter().chain(SMALLER.into_iter().filter(|smaller| *smaller < size)) {
        cut.cut = Cut::of(size);
        if fits(&cut)? {
            return Ok(Some(cut));
        }
    }
    Ok(None)
}

/// The beginning of a diagnostic payload (RFC 7252 §5.5.2), of so many bytes at most.
fn beginning(words: &[u8], most: usize) -> &[u8] {
    let cut = words.get(..most.min(words.len())).unwrap_or_default();
    match core::str::from_utf8(cut) {
        Ok(_) => cut,
        Err(error) => cut.get(..error.valid_up_to()).unwrap_or_default(),
    }
}

impl<L: MessageLayer> CoapStack<L> {
    /// Setting: who gets how much. Without it everybody gets everything. A [sibling](Self::sibling) does not have this by itself.
    pub fn validate_by(&mut self, validation: impl Validation<L::Peer> + 'static) {
        self.validation = Some(Box::new(validation));
    }

    /// What was sent as the last answer, if its receiver's address is not validated: then it may be less than what was given.
    #[must_use]
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    fn echo(&mut self, now: Instant, peer: L::Peer) -> Option<[u8; ECHO_LENGTH]> {
        self.validation.as_mut()?.echo(now, peer)
    }

    /// An answer goes to whom so much may be sent: whole, else in small blocks, and in any case nothing but the wish for a proof. What of
    /// it is left to be asked for is given back.
    pub(super) fn respond_within<'a>(
        &mut self,
        now: Instant,
        id: RequestId,
        (answer, pending): (&'a Answer<'a>, &Pending<L::Peer>),
        limit: Limit,
        observe: Option<u32>,
    ) -> Result<Option<Representation<'a>>, Refused> {
        let limit = if self.layer.was_acknowledged(id) { limit.after(HEADER) } else { limit };
        // Nobody is asked to prove anything by an answer to a group: the rest is asked for by unicast.
        let by_group = self.layer.came_by_group(id);
        let form = (self.block_size(answer.block, pending.block2), self.config.etag_length);
        // Nearly every answer fits as it is: it is measured and sent in one go.
        let whole = Representation::of(answer, Cut::of(form.0), form.1);
        let most = if observe.is_some() { limit.after(NOTIFICATION) } else { limit }.message();
        let sent = whole.message(pending.block2, pending, observe, |message| {
            let fits = message.length_with(pending.token) <= most;
            fits.then(|| self.respond_once(now, id, (message, pending), limit))
        });
        if let Ok(Some(sent)) = sent {
            return sent.map(|()| Some(whole));
        }
        let mut echo = || if by_group { None } else { self.validation.as_mut()?.echo(now, pending.from) };
        let observed =
            observe.map(|_| fit(answer, pending, form, limit.after(NOTIFICATION).message(), observe, &mut echo));
        let (fitting, observe) = match observed {
            Some(Ok(Some(fitting))) => (Ok(Some(fitting)), observe),
            _ => (fit(answer, pending, form, limit.message(), None, &mut echo), None),
        };
        let Ok(fitting) = fitting else {
            self.pending.take(id);
            self.respond_with_refusal(now, id, super::Refusal::PastEnd);
            return Ok(None);
        };
        let Some(representation) = fitting else {
            return match answer.code.class() {
                _ if by_group => {
                    self.pending.take(id);
                    self.layer.reject(now, id).map(|()| None).map_err(Into::into)
                }
                2 => self.ask_for_proof(now, id, pending, limit).map(|()| None),
                _ => {
                    let echo = echo();
                    self.respond_with_less(now, id, (answer, pending), limit, echo).map(|()| None)
                }
            };
        };
        let begins = pending.block2.is_none_or(|block| block.number == 0);
        self.counts.limited = self.counts.limited.saturating_add(u64::from(begins && representation.echo.is_some()));
        let sent = representation
            .message(pending.block2, pending, observe, |message| self.respond_once(now, id, (message, pending), limit));
        let Ok(sent) = sent else { return Ok(None) };
        sent.map(|()| Some(representation))
    }

    /// A message answers a request. Late, it is confirmable, and must not go five times to whom has never answered anything.
    fn respond_once(
        &mut self,
        now: Instant,
        id: RequestId,
        (message, pending): (&Outgoing<'_>, &Pending<L::Peer>),
        limit: Limit,
    ) -> Result<(), Refused> {
        let length = message.length_with(pending.token);
        self.sent = Sent::of(message, limit.after(length));
        let most = (!self.layer.is_validated(pending.from)).then(|| limit.again(length));
        let retransmit = RetransmitOptions { max_retransmit: most, ..message.retransmit };
        let sent = self.layer.respond(now, id, &Outgoing { retransmit, ..*message });
        self.was_answered(now, id, sent)
    }

    /// An error goes with the beginning of what it says: the code is what matters.
    fn respond_with_less(
        &mut self,
        now: Instant,
        id: RequestId,
        (answer, pending): (&Answer<'_>, &Pending<L::Peer>),
        limit: Limit,
        echo: Option<[u8; ECHO_LENGTH]>,
    ) -> Result<(), Refused> {
        self.counts.limited = self.counts.limited.saturating_add(u64::from(echo.is_some()));
        let is_format = |(number, _): &(u16, &[u8])| *number == number::CONTENT_FORMAT;
        let is_words = !answer.options.iter().any(is_format);
        let block1 = pending.block1.map(Block::value);
        let own =
            [(number::BLOCK1, options::value(block1.as_ref())), (number::ECHO, echo.as_ref().map(|value| &value[..]))];
        let theirs = answer.options.iter().copied().filter(|option| !is_format(option));
        let mut merged = options::merge(theirs, &own);
        let kind = answer.kind.unwrap_or(pending.kind);
        let length =
            |options: &[_]| Outgoing { options, ..Outgoing::confirmable(answer.code, &[]) }.length_with(pending.token);
        if length(&merged) > limit.message() {
            merged = options::merge([], &own);
        }
        let room = limit.message().saturating_sub(length(&merged)).saturating_sub(1);
        let payload = if is_words { beginning(answer.body, room) } else { &[] };
        let message = Outgoing { kind, payload, options: &merged, ..Outgoing::confirmable(answer.code, &[]) };
        self.respond_once(now, id, (&message, pending), limit)
    }

    /// 4.01 with what is to be sent back (RFC 9175 §2.3), and nothing else.
    pub(super) fn ask_for_proof(
        &mut self,
        now: Instant,
        id: RequestId,
        pending: &Pending<L::Peer>,
        limit: Limit,
    ) -> Result<(), Refused> {
        self.counts.limited = self.counts.limited.saturating_add(1);
        let value = self.echo(now, pending.from).unwrap_or_default();
        let options = [(number::ECHO, &value[..])];
        let message = Outgoing { kind: pending.kind, ..Outgoing::confirmable(Code::UNAUTHORIZED, &options) };
        self.respond_once(now, id, (&message, pending), limit)
    }

    /// A notification goes to whom so much may be sent, as often as that allows. Nothing if not even the smallest block of it may.
    pub(super) fn notify_within<'a>(
        &mut self,
        now: Instant,
        (answer, pending): (&'a Answer<'a>, &Pending<L::Peer>),
        limit: Limit,
        observe: Option<u32>,
    ) -> Option<Notified<'a, L>> {
        let form = (self.block_size(answer.block, pending.block2), self.config.etag_length);
        let echo = || self.validation.as_mut()?.echo(now, pending.from);
        let representation = fit(answer, pending, form, limit.message(), observe, echo).ok()??;
        let is_known = self.layer.is_validated(pending.from);
        let layer = &mut self.layer;
        let sent = representation.message(pending.block2, pending, observe, |message| {
            let most = Some(limit.again(message.length_with(pending.token))).filter(|_| !is_known);
            let retransmit = RetransmitOptions { max_retransmit: most, ..message.retransmit };
            layer.notify(now, pending.from, pending.token, &Outgoing { retransmit, ..*message })
        });
        Some((representation, sent.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_rfc_9175() {
        assert_eq!(Limit::of(4, 62).message(), 136, "3 · 66 − 62");
        assert_eq!(Limit::of(20, 62).message(), 184);
        // Over IPv4 less is around it, and 136 bytes are always allowed.
        assert_eq!((Limit::of(4, 42).message(), Limit::of(20, 42).message()), (136, 144));
        let left = Limit::of(20, 62).after(HEADER);
        assert_eq!((left.message(), left.again(20), left.again(118), left.again(500)), (118, 1, 0, 0));
    }

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(beginning("größe".as_bytes(), 3), b"gr");
        assert_eq!(beginning("größe".as_bytes(), 4), "grö".as_bytes());
        assert_eq!(beginning(b"short", 100), b"short");
    }
}
