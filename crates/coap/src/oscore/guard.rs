use alloc::{boxed::Box, vec::Vec};

use hashbrown::HashTable;

use super::{Context, Protector, ReceivedRequest, Refusal, SentRequest, only::Only};
use crate::block::{Block, BlockSize, slice};
use crate::endpoint::{ExchangeId, Outgoing, RequestId, beside::Beside};
use crate::message::{Code, Kind, Message, MessageId, Token, is_for_responses, number, sort};
use crate::parts;
use crate::protection::{Cut, Observer, ProtectError, Protection, ResponseFault, written};
use crate::quota::Source;

/// A protector that layers share.
pub(super) trait Shared: Protector {
    fn share(&self) -> Box<dyn Shared>;
}

impl<T: Protector + Clone + 'static> Shared for T {
    fn share(&self) -> Box<dyn Shared> {
        Box::new(self.clone())
    }
}

/// What a layer knows of its protected messages under way.
pub(crate) struct Guard<P> {
    protector: Box<dyn Shared>,
    sent: Beside<Sent>,
    /// The request that was protected last, until it has a name, and what is kept of it.
    unnamed: Option<(SentRequest, Box<[u8]>)>,
    received: Beside<ReceivedRequest>,
    /// Of requests to be answered those whose answers are cut, and the last such answer.
    cuts: Beside<Cut<P>>,
    whole: Option<(Cut<P>, Vec<u8>)>,
    /// The registration that was answered last, until it has an observer.
    registered: Option<Registration<P>>,
    observers: HashTable<(Observer<P>, Registration<P>)>,
    plain: Option<Vec<u8>>,
}

/// What notifications answer, and how they are cut.
struct Registration<P> {
    request: ReceivedRequest,
    cut: Option<Cut<P>>,
}

/// A request of ours whose responses are awaited.
struct Sent {
    request: SentRequest,
    /// As it left, without the payload of a POST.
    written: Box<[u8]>,
    /// It registers, so that more than one may come.
    registers: bool,
    /// The request for the same observation that it renews, or that renews it. As long as the later one was not answered, what comes on
    /// their token may belong to either.
    other: Option<ExchangeId>,
}

impl<P> Guard<P> {
    pub(crate) fn new(protector: impl Protector + Clone + 'static) -> Self {
        Self::with(Box::new(protector))
    }

    /// By one context that no other layer has.
    pub(crate) fn of_one(context: Context, store: impl FnMut(u64) -> bool + Send + Sync + 'static) -> Self {
        Self::with(Box::new(Only::of(context, store)))
    }

    const fn with(protector: Box<dyn Shared>) -> Self {
        Self {
            protector,
            sent: Beside::new(),
            unnamed: None,
            received: Beside::new(),
            cuts: Beside::new(),
            whole: None,
            registered: None,
            observers: HashTable::new(),
            plain: None,
        }
    }

    fn protect_response(
        protector: &mut dyn Shared,
        request: &mut ReceivedRequest,
        response: &Outgoing<'_>,
    ) -> Result<Vec<u8>, ProtectError> {
        let (plain, mut protected) = (written(response)?, Vec::new());
        protector.protect_response(request, &parsed(&plain)?, &mut protected)?;
        Ok(protected)
    }

    /// Of a protected response the block that leaves. What of it is left to be asked for can be [taken](Protection::take_cut).
    fn cut_to_block(&mut self, whole: Vec<u8>, cut: Option<Cut<P>>) -> Result<Vec<u8>, ProtectError> {
        self.whole = None;
        let Some(cut) = cut.filter(|_| parts::SERVE_BLOCKS) else { return Ok(whole) };
        let block = block_of(&whole, &cut)?;
        self.whole = Some((cut, whole));
        Ok(block)
    }
}

impl<P: Copy + PartialEq + Send + Sync + 'static> Protection<P> for Guard<P> {
    fn sibling(&self) -> Box<dyn Protection<P>> {
        Box::new(Self::with(self.protector.share()))
    }

    fn is_for_all(&self) -> bool {
        !self.protector.passes_others()
    }

    fn request(&mut self, request: &Outgoing<'_>) -> Result<Option<Vec<u8>>, ProtectError> {
        let (plain, mut protected) = (written(request)?, Vec::new());
        let sent = match self.protector.protect_request(&parsed(&plain)?, &mut protected) {
            Err(ProtectError::Plain | ProtectError::Nested) if !self.is_for_all() => return Ok(None),
            sent => sent?,
        };
        let kept = if parts::BLOCK { without_payload(&protected) } else { Box::default() };
        self.unnamed = Some((sent, kept));
        Ok(Some(protected))
    }

    fn sent(&mut self, exchange: ExchangeId, renews: Option<ExchangeId>) {
        let Some((request, written)) = self.unnamed.take() else { return };
        let other = renews.filter(|other| self.sent.get_mut(*other).is_some());
        if let Some(renewed) = other.and_then(|other| self.sent.get_mut(other)) {
            renewed.other = Some(exchange);
        }
        self.sent.set(exchange, Sent { registers: request.observes(), request, written, other });
    }

    fn has_sent(&self, exchange: ExchangeId) -> bool {
        self.sent.borrow(exchange).is_some()
    }

    fn written(&self, exchange: ExchangeId) -> Option<Vec<u8>> {
        self.sent.borrow(exchange).filter(|_| parts::BLOCK).map(|sent| sent.written.to_vec())
    }

    fn rename(&mut self, exchange: ExchangeId, to: ExchangeId) {
        let Some(sent) = self.sent.take(exchange).filter(|_| parts::BLOCK) else { return };
        if let Some(other) = sent.other.and_then(|other| self.sent.get_mut(other)) {
            other.other = Some(to);
        }
        self.sent.set(to, sent);
    }

    fn forget(&mut self, exchange: ExchangeId) {
        self.sent.take(exchange);
    }

    fn answer(&mut self, to: RequestId, answer: &Outgoing<'_>) -> Option<Result<Vec<u8>, ProtectError>> {
        let request = self.received.get_mut(to).filter(|_| parts::SERVER)?;
        let protected = Self::protect_response(&mut *self.protector, request, answer);
        let cut = self.cuts.get(to);
        Some(protected.and_then(|whole| self.cut_to_block(whole, cut)))
    }

    fn cut(&mut self, to: RequestId, cut: Cut<P>) {
        if parts::SERVE_BLOCKS {
            self.cuts.set(to, cut);
        }
    }

    fn is_to_be_cut(&self, peer: P, key: u64) -> bool {
        parts::SERVE_BLOCKS && self.cuts.iter().any(|cut| cut.peer == peer && cut.key == key)
    }

    fn take_cut(&mut self) -> Option<(Cut<P>, Vec<u8>)> {
        self.whole.take().filter(|_| parts::SERVE_BLOCKS)
    }

    fn answered(&mut self, to: RequestId, observes: bool) {
        if !parts::SERVER {
            return;
        }
        let (request, cut) = (self.received.take(to), self.cuts.take(to));
        if observes {
            // No notification answers blocks of the request.
            let cut = cut.filter(|cut| cut.block2.is_some()).map(|cut| Cut { block1: None, ..cut });
            self.registered = request.map(|request| Registration { request, cut });
        }
    }

    fn observes(&mut self, observer: Observer<P>, begins: bool) {
        if !parts::NOTIFY {
            return;
        }
        if let Ok(entry) = self.observers.find_entry(observer.hash, |(known, _)| *known == observer) {
            entry.remove();
        }
        if let Some(registration) = self.registered.take_if(|_| begins) {
            self.observers.insert_unique(observer.hash, (observer, registration), |(known, _)| known.hash);
        }
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    fn registration(&mut self, observer: Observer<P>) -> Option<Vec<u8>> {
        let found = self.observers.find(observer.hash, |(known, _)| *known == observer);
        let Some((_, Registration { request, .. })) = found else { return (!self.is_for_all()).then(Vec::new) };
        outlives(&mut *self.protector, request).then(|| request.to_bytes())
    }

    #[cfg(all(feature = "server", feature = "observe"))]
    fn recall(&mut self, registration: &[u8]) -> bool {
        if registration.is_empty() && !self.is_for_all() {
            self.registered = None;
            return true;
        }
        let request = ReceivedRequest::from_bytes(registration);
        let request = request.filter(|request| outlives(&mut *self.protector, request));
        self.registered = request.map(|request| Registration { request, cut: None });
        self.registered.is_some()
    }

    fn notification(&mut self, observer: Observer<P>, message: &Outgoing<'_>) -> Option<Result<Vec<u8>, ProtectError>> {
        if !parts::NOTIFY {
            return None;
        }
        let found = self.observers.find_mut(observer.hash, |(known, _)| *known == observer);
        let Some((_, Registration { request, cut })) = found else {
            return self.is_for_all().then_some(Err(ProtectError::Plain));
        };
        let (protected, cut) = (Self::protect_response(&mut *self.protector, request, message), *cut);
        Some(protected.and_then(|whole| self.cut_to_block(whole, cut)))
    }

    fn takes(&self, request: &Message<'_>) -> bool {
        self.is_for_all() || self.protector.is_for(request)
    }

    fn context_of(&self, request: RequestId) -> Option<&[u8]> {
        self.received.borrow(request).filter(|_| parts::SERVER).map(ReceivedRequest::kid)
    }

    fn take_request(&mut self, id: RequestId, from: Observer<P>, request: &Message<'_>) -> Result<(), Option<Vec<u8>>> {
        if !parts::SERVER {
            return Err(Some(Vec::new()));
        }
        let mut plain = Vec::new();
        let others_pass = !self.is_for_all();
        let taken = match request.token.len() <= Token::MAX {
            true => self.protector.unprotect_request(request, &mut plain),
            false if others_pass => Err(Refusal::UnknownContext),
            false => Err(Refusal::Malformed),
        };
        let received = match taken {
            Ok(received) => Some(received),
            Err(Refusal::NotProtected) if others_pass && !self.protector.is_for(request) => None,
            // One that has the ID of another's context by chance is not authentic here.
            Err(Refusal::UnknownContext | Refusal::DecryptionFailed) if others_pass => None,
            Err(Refusal::NotProtected) => return Err(None),
            Err(refusal) => return Err(Some(refused(&mut *self.protector, refusal).unwrap_or_default())),
        };
        // Who has a context of its own or none, and forges an address, neither ends nor takes over an observation of another context.
        let known = self.observers.find(from.hash, |(known, _)| *known == from);
        let is_anothers =
            known.is_some_and(|(_, known)| received.as_ref().is_none_or(|it| it.kid() != known.request.kid()));
        let once = is_anothers.then(|| match received {
            Some(_) => Message::parse(&plain).ok().and_then(|plain| without_observe(&plain)),
            None => without_observe(request),
        });
        self.plain = once.flatten().or_else(|| received.is_some().then_some(plain));
        if let Some(received) = received {
            self.received.set(id, received);
        }
        Ok(())
    }

    fn establish(&mut self, request: &Message<'_>, from: Source) -> Vec<u8> {
        let mut answer = Vec::new();
        if !parts::SERVER {
            return answer;
        }
        match self.protector.establish(request, from, &mut answer) {
            Some(()) => answer,
            None => refused(&mut *self.protector, Refusal::NotProtected).unwrap_or_default(),
        }
    }

    fn take_response(&mut self, exchange: ExchangeId, response: &Message<'_>) -> Result<(), ResponseFault> {
        let Some(mut own) = self.sent.take(exchange) else { return Ok(()) };
        let mut other = own.other.and_then(|name| Some((name, self.sent.take(name)?)));
        let (first, second) = match &mut other {
            Some((_, other)) if other.request.is_after(&own.request) => (other, Some(&mut own)),
            other => (&mut own, other.as_mut().map(|(_, other)| other)),
        };
        let mut plain = Vec::new();
        let mut taken = self.protector.unprotect_response(&mut first.request, response, &mut plain);
        // What the renewal has begun its predecessor does not go on with.
        if let Some(second) = second.filter(|_| taken.is_err() && !first.request.was_answered())
            && self.protector.unprotect_response(&mut second.request, response, &mut plain).is_ok()
        {
            taken = Ok(());
        }
        if own.registers {
            self.sent.set(exchange, own);
        }
        if let Some((name, other)) = other {
            self.sent.set(name, other);
        }
        if taken.is_ok()
            && let Ok(message) = Message::parse(&plain)
            && let Some(number) = message.options().refused(is_for_responses)
        {
            taken = Err(ResponseFault::BadOption(number));
        }
        self.plain = taken.is_ok().then_some(plain);
        taken
    }

    fn plain(&self) -> Option<Message<'_>> {
        Message::parse(self.plain.as_deref()?).ok()
    }

    fn next(&mut self) {
        self.plain = None;
        self.whole = None;
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
            .saturating_add(self.sent.memory())
            .saturating_add(self.sent.iter().map(|sent| sent.written.len()).sum())
            .saturating_add(self.received.memory())
            .saturating_add(self.cuts.memory())
            .saturating_add(self.observers.allocation_size())
            .saturating_add(self.plain.as_ref().map_or(0, Vec::capacity))
    }
}

/// Whether the context of a request goes on after a restart.
#[cfg(all(feature = "server", feature = "observe"))]
fn outlives(protector: &mut dyn Shared, request: &ReceivedRequest) -> bool {
    let mut outlives = false;
    protector.with_context(super::Which::Of(request.kid()), &mut |context| outlives = context.outlives());
    outlives
}

/// The answer to a request that is refused.
fn refused(protector: &mut dyn Shared, refusal: Refusal) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let (kind, id, token) = (Kind::NonConfirmable, MessageId(0), Token::EMPTY);
    match refusal {
        Refusal::Unsure(mut request) => protector.challenge(&mut request, kind, id, token, &mut answer).ok()?,
        refusal => refusal.write(kind, id, token, &mut answer).map(|_| ()).ok()?,
    }
    Some(answer)
}

fn parsed(bytes: &[u8]) -> Result<Message<'_>, ProtectError> {
    Message::parse(bytes).map_err(|_| ProtectError::UnsuitedCode(crate::message::Code::EMPTY))
}

/// A request without its payload, which is part of what is asked for by FETCH alone.
fn without_payload(request: &[u8]) -> Box<[u8]> {
    let payload = Message::parse(request).map_or(0, |message| match message.code {
        Code::FETCH => 0,
        _ => message.payload().len(),
    });
    // With the payload goes what marks it.
    let end = request.len().saturating_sub(payload).saturating_sub(usize::from(payload > 0));
    request.get(..end).unwrap_or(request).into()
}

/// The block of a protected answer that is asked for, or all of it with the block of the request that it answers.
fn block_of<P>(whole: &[u8], cut: &Cut<P>) -> Result<Vec<u8>, ProtectError> {
    let message = parsed(whole)?;
    // Several blocks in a message are no smaller than what is protected.
    let block2 = cut.block2.filter(|block| !block.size.is_bert());
    let piece = slice(message.payload(), block2, BlockSize::BERT).ok().filter(|_| block2.is_some());
    let block2 = piece.and_then(|piece| piece.block).map(Block::value);
    let block1 = cut.block1.map(Block::value);
    let own = [(number::BLOCK1, &block1), (number::BLOCK2, &block2)];
    let own = own.into_iter().filter_map(|(number, value)| Some((number, value.as_ref()?.as_bytes())));
    let mut options: Vec<_> = message.options().map(|option| (option.number, option.value)).chain(own).collect();
    sort(&mut options);
    let payload = piece.map_or(message.payload(), |piece| piece.payload);
    let answer = Outgoing { options: &options, payload, ..Outgoing::confirmable(message.code, &[]) };
    Ok(written(&answer)?)
}

/// The request without its Observe option, so that it is answered once (RFC 7641 §2).
fn without_observe(message: &Message<'_>) -> Option<Vec<u8>> {
    message.rewritten(|number| number != number::OBSERVE, message.payload()).ok()
}
