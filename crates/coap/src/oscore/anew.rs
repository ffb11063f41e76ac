//! Contexts whose keys are derived anew, by random bytes of both sides in the ID context (RFC 8613 Appendix B.2).
//!
//! A client that has no keys yet takes a nonce R1 for ID context. The server, which has none of this ID context, answers a request that
//! it can verify by 4.01 under R2 || R1; the client goes on under R2 || R3, and once a request of that ID context is verified, the server
//! does so too. Where the server has lost its keys, the ID context that the client had takes the place of R1.
//!
//! The server keeps nothing of those whom it has answered: an R2 shows by itself that it was given since keys were replaced last.

use alloc::vec::Vec;
use core::mem::replace;

use zeroize::Zeroizing;

use super::{
    Context, Hash, OscoreOption, Parameters, PartialIv, ProtectError, ReceivedRequest, Refusal, ResponseFault,
    SentRequest, Start,
    context::{put_bytes, read_bytes},
};
use crate::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use crate::parts;

/// Bytes of a nonce, and of what shows that an R2 was given here.
const NONCE: usize = 8;
/// Bytes of our R2.
const GIVEN: usize = 2 * NONCE;
/// Bytes of the longest R2 of the other side with which what is sent fits the option.
const LONGEST_R2: usize = 64;

/// How the keys of a context are derived once more.
pub(super) struct Anew {
    secret: Zeroizing<Vec<u8>>,
    salt: Zeroizing<Vec<u8>>,
    hash: Hash,
    /// Of all nonces, which nobody else knows before they are sent.
    seed: Zeroizing<[u8; 32]>,
    /// Nonces that were taken.
    drawn: u64,
    /// How often keys were replaced.
    generation: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The ID context is R1: a server does not know it.
    Begun,
    /// The ID context is R2 || R3, and the server may not know it yet.
    Offered,
    /// The other side has it too.
    Shared,
}

impl Anew {
    fn bytes(&self, what: &str, number: u64, more: &[u8]) -> [u8; NONCE] {
        let mut bytes = [0; NONCE];
        self.hash.derive(&[], &*self.seed, &[what.as_bytes(), &number.to_be_bytes(), more].concat(), &mut bytes);
        bytes
    }

    fn nonce(&mut self) -> [u8; NONCE] {
        self.drawn = self.drawn.saturating_add(1);
        self.bytes("nonce", self.drawn, &[])
    }

    /// An R2, never given before: a nonce and what shows that it is ours, and that keys were not replaced since.
    fn r2(&mut self) -> Vec<u8> {
        let nonce = self.nonce();
        [nonce, self.shows(&nonce)].concat()
    }

    fn shows(&self, nonce: &[u8]) -> [u8; NONCE] {
        self.bytes("given", self.generation.into(), nonce)
    }

    /// It begins with an R2 that was given since keys were replaced last. Who guesses one cannot protect a request by it.
    fn gave(&self, id_context: &[u8]) -> bool {
        id_context.len() > GIVEN
            && id_context.split_at_checked(NONCE).is_some_and(|(nonce, rest)| rest.starts_with(&self.shows(nonce)))
    }

    /// The context of the same two sides with this ID context, never used.
    fn derive(&self, like: &Context, id_context: &[u8]) -> Option<Context> {
        let parameters = Parameters {
            secret: &self.secret,
            salt: &self.salt,
            id_context: Some(id_context),
            sender_id: like.sender_id(),
            recipient_id: like.recipient_id(),
            algorithm: like.algorithm,
            hash: self.hash,
        };
        Context::derive(&parameters, Start::Fresh).ok()
    }

    /// That of the first answer, for what has the nonce of the request: it was made with the IV of the first context (§8.3).
    fn second(&self, like: &Context, r2: &[u8], first: &[u8]) -> Option<Context> {
        let mut second = self.derive(like, &[r2, first].concat())?;
        second.common_iv = self.derive(like, first)?.common_iv;
        Some(second)
    }
}

impl Context {
    /// A context whose keys the two sides derive anew whenever one of them begins or has lost them, by random bytes of both (RFC 8613
    /// Appendix B.2): nothing needs to outlive a restart, at the cost of one round trip, and the ID context of the parameters does not
    /// count. Both sides have to do so. `seed` is random bytes that are used for nothing else, neither before nor after.
    ///
    /// A server answers what it has no keys for as what [may be a replay](Refusal::Unsure). A client takes that answer as one with
    /// an Echo option: the request is to be sent again.
    ///
    /// # Errors
    /// As [`derive`](Self::derive).
    #[cfg(feature = "oscore-anew")]
    pub fn derive_anew(parameters: &Parameters<'_>, seed: [u8; 32]) -> Result<Self, super::ContextError> {
        let mut anew = Anew {
            secret: Zeroizing::new(parameters.secret.to_vec()),
            salt: Zeroizing::new(parameters.salt.to_vec()),
            hash: parameters.hash,
            seed: Zeroizing::new(seed),
            drawn: 0,
            generation: 0,
            stage: Stage::Begun,
        };
        let r1 = anew.nonce();
        let mut context = Self::derive(&Parameters { id_context: Some(&r1), ..*parameters }, Start::Fresh)?;
        context.anew = Some(anew.into());
        Ok(context)
    }

    /// How often keys were replaced.
    pub(super) fn generation(&self) -> u32 {
        self.anew.as_ref().filter(|_| parts::OSCORE_ANEW).map_or(0, |anew| anew.generation)
    }

    /// The ID context in whose form a request names it: as CBOR until it is known that the server has it.
    pub(super) fn named_id_context(&self) -> Option<Vec<u8>> {
        let is_known = !parts::OSCORE_ANEW || self.anew.as_ref().is_none_or(|anew| anew.stage == Stage::Shared);
        self.id_context().map(|id| if is_known { id.to_vec() } else { wrapped(id) })
    }

    /// A response has shown that the server has the keys.
    pub(super) fn is_shared(&mut self) {
        if let Some(anew) = &mut self.anew {
            anew.stage = Stage::Shared;
        }
    }

    /// There are no keys for such a request, and it may be one that begins a derivation or ends it.
    pub(super) fn lacks(&self, option: &OscoreOption<'_>) -> bool {
        let is_other = |named| Some(named) != self.id_context() && read_bytes(named) != self.id_context();
        self.anew.as_ref().is_some_and(|anew| anew.stage == Stage::Begun || option.kid_context.is_some_and(is_other))
    }

    /// Takes the second request of a derivation, and with it its keys. The first is [unsure](Refusal::Unsure).
    pub(super) fn take_anew(
        &mut self,
        request: &Message<'_>,
        option: &OscoreOption<'_>,
        partial_iv: PartialIv,
        into: &mut Vec<u8>,
    ) -> Result<ReceivedRequest, Refusal> {
        let Some((anew, named)) = self.anew.as_ref().zip(option.kid_context) else {
            return Err(Refusal::UnknownContext);
        };
        let unwrapped = read_bytes(named);
        if let Some(third) = unwrapped.filter(|id| anew.gave(id)) {
            let mut third = anew.derive(self, third).ok_or(Refusal::Malformed)?;
            let mut received = third.open_request(request, partial_iv, into)?;
            self.replace(third, Stage::Shared);
            received.generation = self.generation();
            return Ok(received);
        }
        // The ID context of keys that were lost here is not wrapped, but may look so.
        let mut refused = Refusal::DecryptionFailed;
        for id in [unwrapped, Some(named)].into_iter().flatten() {
            let mut first = anew.derive(self, id).ok_or(Refusal::Malformed)?;
            match first.open_request(request, partial_iv, &mut Vec::new()) {
                Ok(received) => return Err(Refusal::Unsure(ReceivedRequest { first: Some(id.into()), ..received })),
                Err(refusal) => refused = refusal,
            }
        }
        Err(refused)
    }

    /// Answers the first request of a derivation, whose ID context was this.
    pub(super) fn give(
        &mut self,
        request: &ReceivedRequest,
        first: &[u8],
        (kind, id, token): (Kind, MessageId, Token),
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        let Some(anew) = &mut self.anew else { return Err(ProtectError::Replaced) };
        let r2 = anew.r2();
        let second = self.anew.as_ref().and_then(|anew| anew.second(self, &r2, first));
        let mut second = second.ok_or(ProtectError::Replaced)?;
        let mut plain = Vec::new();
        Writer::start(&mut plain, kind, Code::UNAUTHORIZED, id, token).finish()?;
        let message = Message::parse(&plain).map_err(|_| ProtectError::UnsuitedCode(Code::UNAUTHORIZED))?;
        let mut to = ReceivedRequest {
            kid: request.kid,
            partial_iv: request.partial_iv,
            nonce_is_free: true,
            generation: 0,
            first: None,
        };
        second.respond(&mut to, &message, Some(&wrapped(&r2)), into)
    }

    /// The answer to the first request of a derivation, or to one for which the server has no keys any more. Keys are replaced, unless they
    /// were since the request, and a challenge is appended that has the request sent again under them.
    pub(super) fn derive_by(
        &mut self,
        request: &mut SentRequest,
        response: &Message<'_>,
        option: &OscoreOption<'_>,
        r2: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault> {
        let is_first = request.generation == self.generation();
        let first = request.under.as_deref().unwrap_or_default();
        let anew = self.anew.as_mut().filter(|_| r2.len() <= LONGEST_R2).ok_or(ResponseFault::Malformed)?;
        let r3 = anew.nonce();
        let anew = self.anew.as_ref().ok_or(ResponseFault::Malformed)?;
        let second = match option.partial_iv {
            Some(_) => anew.derive(self, &[r2, first].concat()),
            None => anew.second(self, r2, first),
        };
        let echo = second.ok_or(ResponseFault::Malformed)?.open_refusal(request, response, option)?;
        let third = anew.derive(self, &[r2, &r3].concat()).ok_or(ResponseFault::Malformed)?;
        let mut writer = Writer::start(into, response.kind, Code::UNAUTHORIZED, response.id, response.token);
        let written = writer.option(number::ECHO, &echo).map(|_| ()).and_then(|()| writer.finish().map(|_| ()));
        written.map_err(|_| ResponseFault::Malformed)?;
        if is_first {
            self.replace(third, Stage::Offered);
        }
        request.taken = request.taken.saturating_add(1);
        Ok(())
    }

    /// These keys are used from now on.
    fn replace(&mut self, by: Self, stage: Stage) {
        let old = replace(self, by);
        self.anew = old.anew.map(|mut anew| {
            anew.generation = anew.generation.saturating_add(1);
            anew.stage = stage;
            anew
        });
    }
}

/// A byte string of CBOR.
fn wrapped(bytes: &[u8]) -> Vec<u8> {
    let mut wrapped = Vec::new();
    put_bytes(&mut wrapped, bytes);
    wrapped
}
