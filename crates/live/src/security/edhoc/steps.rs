//! The handshake of RFC 9528, a message at a time, without clock and network.

use std::fmt;

use lakers::{
    BufferMessage1, CBORDecoder, Completed, ConnId, Credential, CredentialTransfer, EADItem, EDHOCError, EdhocBuffer,
    EdhocMessageBuffer, IdCred, InitiatorStart, MAX_KDF_CONTEXT_LEN, ResponderStart, WaitM2, WaitM3, WaitM4,
    edhoc_exporter, i_complete_without_message_4, i_parse_message_2, i_prepare_message_1, i_prepare_message_3,
    i_process_message_4, i_verify_message_2, parse_message_1, parse_message_2, r_parse_message_3, r_prepare_message_2,
    r_prepare_message_4, r_process_message_1, r_verify_message_3,
};
use zeroize::{Zeroize, Zeroizing};

use super::keys::{PrivateKey, algorithms, is_public};
use super::{EdhocCredentials, setting};
use crate::Error;

/// Static Diffie-Hellman keys on both sides.
const METHOD: u8 = 3;

/// AES-CCM-16-64-128, SHA-256, P-256; also for what is protected afterwards.
pub(super) const SUITE: u8 = 2;

/// Bytes of the tag that ends what is encrypted.
const TAG: usize = 8;

const NO_DATA: Option<EADItem> = None;

/// Bytes of external authorisation data in message_2 and message_3, so that all that is computed of them fits what lakers has room for.
const LONGEST_DATA: usize = 40;

/// Why a handshake ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::security) enum Fault {
    #[error("a message cannot be read")]
    Malformed,
    #[error("cipher suite 2 alone is done")]
    Suite,
    #[error("unknown credential")]
    Unknown,
    #[error("a message is not authentic")]
    NotAuthentic,
    /// RFC 9528 §3.8.
    #[error("critical authorisation data is unknown here")]
    Critical,
    #[error("no message_3 of this session is awaited")]
    Unawaited,
    /// Nothing that the other side could help.
    #[error("not done here")]
    Own,
}

impl From<EDHOCError> for Fault {
    fn from(error: EDHOCError) -> Self {
        match error {
            EDHOCError::UnsupportedCipherSuite => Self::Suite,
            EDHOCError::MacVerificationFailed => Self::NotAuthentic,
            EDHOCError::UnexpectedCredential | EDHOCError::MissingIdentity => Self::Unknown,
            _ => Self::Malformed,
        }
    }
}

impl From<Error> for Fault {
    fn from(_: Error) -> Self {
        Self::Own
    }
}

impl Fault {
    /// The error message (RFC 9528 §6).
    pub(super) fn message(self) -> Vec<u8> {
        match self {
            Self::Suite => vec![0x02, SUITE],
            Self::Unknown => vec![0x03, super::TRUE],
            _ => {
                let words = self.to_string();
                let mut message = vec![0x01];
                match words.len() as u8 {
                    length @ 0..24 => message.push(0x60 | length),
                    length => message.extend_from_slice(&[0x78, length]),
                }
                message.extend_from_slice(words.as_bytes());
                message
            }
        }
    }

    /// What an error message says.
    pub(super) fn told(message: &[u8]) -> Option<String> {
        let mut decoder = CBORDecoder::new(message);
        match decoder.u8().ok()? {
            1 => {
                let words = std::str::from_utf8(decoder.str().ok()?).ok()?;
                Some(words.chars().filter(|character| !character.is_control()).collect())
            }
            2 => Some("the server does not do cipher suite 2".into()),
            3 => Some("the server does not know this credential".into()),
            _ => None,
        }
    }
}

/// What an initiator keeps until message_2 comes.
pub(super) struct Asked {
    state: WaitM2,
    ours: ConnId,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.state.x.zeroize();
    }
}

pub(super) fn message_1(key: PrivateKey, ours: ConnId, suites: &[u8]) -> Result<(Vec<u8>, Asked), Error> {
    let suites_i = EdhocBuffer::new_from_slice(suites).map_err(|_| setting("too many suites"))?;
    let mut start = InitiatorStart { suites_i, method: METHOD, x: *key.bytes(), g_x: key.public() };
    let made = i_prepare_message_1(&start, &mut algorithms(), ours, &NO_DATA);
    start.x.zeroize();
    let (state, message) = made.map_err(|_| setting("message_1 does not fit"))?;
    Ok((message.as_slice().to_vec(), Asked { state, ours }))
}

/// Keys that both sides have once message_3 was taken.
pub(super) struct Agreed {
    /// By which the other side is named: the sender ID.
    pub(super) theirs: ConnId,
    /// The recipient ID.
    pub(super) ours: ConnId,
    completed: Completed,
    /// An initiator's.
    unconfirmed: WaitM4,
}

impl Drop for Agreed {
    fn drop(&mut self) {
        let Self { completed, unconfirmed, .. } = self;
        for secret in [
            &mut completed.prk_out,
            &mut completed.prk_exporter,
            &mut unconfirmed.prk_4e3m,
            &mut unconfirmed.prk_out,
            &mut unconfirmed.prk_exporter,
        ] {
            secret.zeroize();
        }
    }
}

impl Agreed {
    /// Master Secret and Master Salt (RFC 9528 Appendix A.1).
    pub(super) fn exported(&self) -> (Zeroizing<[u8; 16]>, Zeroizing<[u8; 8]>) {
        (Zeroizing::new(self.export(0)), Zeroizing::new(self.export(1)))
    }

    fn export<const N: usize>(&self, label: u8) -> [u8; N] {
        let mut bytes = edhoc_exporter(&self.completed, &mut algorithms(), label, &[0; MAX_KDF_CONTEXT_LEN], 0, N);
        let exported = bytes.first_chunk().copied().unwrap_or([0; N]);
        bytes.zeroize();
        exported
    }

    /// Takes message_4.
    pub(super) fn confirm(&mut self, message_4: &[u8]) -> Result<(), Fault> {
        let message = encrypted(message_4)?;
        let (_, data) = i_process_message_4(&mut self.unconfirmed, &mut algorithms(), &message)?;
        ignore(data.as_ref(), usize::MAX)
    }
}

pub(super) fn message_3(
    asked: &Asked,
    message_2: &[u8],
    credentials: &EdhocCredentials,
) -> Result<(Vec<u8>, Agreed), Fault> {
    let message_2 = buffer(message_2)?;
    let (g_y, _) = parse_message_2(&message_2)?;
    if !is_public(&g_y) {
        return Err(Fault::Malformed);
    }
    let mut algorithms = algorithms();
    let (mut state, theirs, id, data) = i_parse_message_2(&asked.state, &mut algorithms, &message_2)?;
    // Both sides would encrypt with one key and the same nonces.
    if !is_shortest(theirs) || theirs == asked.ours {
        return Err(Fault::Malformed);
    }
    ignore(data.as_ref(), LONGEST_DATA)?;
    let (_, peer) = named(&id, &credentials.peers)?;
    let verified = i_verify_message_2(&state, &mut algorithms, *peer, credentials.key.bytes());
    state.x.zeroize();
    let mut verified = verified?;
    let by = CredentialTransfer::ByReference;
    let made = i_prepare_message_3(&verified, &mut algorithms, credentials.own, by, &NO_DATA);
    verified.prk_3e2m.zeroize();
    verified.prk_4e3m.zeroize();
    let (unconfirmed, message, mut prk_out) = made?;
    prk_out.zeroize();
    let completed = i_complete_without_message_4(&unconfirmed)?;
    Ok((message.as_slice().to_vec(), Agreed { theirs, ours: asked.ours, completed, unconfirmed }))
}

/// What a responder keeps until message_3 comes.
pub(super) struct Answered {
    pub(super) ours: ConnId,
    theirs: ConnId,
    state: WaitM3,
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered").field("ours", &self.ours).finish_non_exhaustive()
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.state.y.zeroize();
        self.state.prk_3e2m.zeroize();
    }
}

/// `name` gives the identifier of this side, other than the one of the other.
pub(super) fn message_2(
    key: &PrivateKey,
    message_1: &[u8],
    credentials: &EdhocCredentials,
    name: impl FnOnce(ConnId) -> Result<ConnId, Error>,
) -> Result<(Vec<u8>, Answered), Fault> {
    let message_1: BufferMessage1 = buffer(message_1)?;
    let (method, suites, g_x, theirs, data) = parse_message_1(&message_1)?;
    // The selected one is the last.
    if method != METHOD || !is_public(&g_x) || !is_shortest(theirs) || !begins_shortest(&message_1, suites.as_slice()) {
        return Err(Fault::Malformed);
    }
    ignore(data.as_ref(), usize::MAX)?;
    if suites.as_slice().last() != Some(&SUITE) {
        return Err(Fault::Suite);
    }
    let mut algorithms = algorithms();
    let mut start = ResponderStart { method: METHOD, y: *key.bytes(), g_y: key.public() };
    let processed = r_process_message_1(&start, &mut algorithms, &message_1);
    start.y.zeroize();
    let (mut processed, theirs, _) = processed?;
    let ours = name(theirs)?;
    let (own, by) = (credentials.own, CredentialTransfer::ByReference);
    let made = r_prepare_message_2(&processed, &mut algorithms, own, credentials.key.bytes(), ours, by, &NO_DATA);
    processed.y.zeroize();
    let (state, message) = made?;
    Ok((message.as_slice().to_vec(), Answered { ours, theirs, state }))
}

/// With message_4, and the place of the other side among the peers.
pub(super) fn message_4(
    answered: &mut Answered,
    message_3: &[u8],
    credentials: &EdhocCredentials,
) -> Result<(Vec<u8>, Agreed, usize), Fault> {
    let message_3 = encrypted(message_3)?;
    let mut algorithms = algorithms();
    let (mut state, id, data) = r_parse_message_3(&mut answered.state, &mut algorithms, &message_3)?;
    let verified = match (ignore(data.as_ref(), LONGEST_DATA), named(&id, &credentials.peers)) {
        (Ok(()), Ok((place, peer))) => r_verify_message_3(&mut state, &mut algorithms, *peer)
            .map(|verified| (place, verified))
            .map_err(Fault::from),
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    };
    state.y.zeroize();
    state.prk_3e2m.zeroize();
    let (place, (mut verified, mut prk_out)) = verified?;
    prk_out.zeroize();
    let made = r_prepare_message_4(&verified, &mut algorithms, &NO_DATA);
    for secret in [&mut verified.prk_4e3m, &mut verified.prk_out, &mut verified.prk_exporter] {
        secret.zeroize();
    }
    let (completed, message) = made?;
    let agreed = Agreed { theirs: answered.theirs, ours: answered.ours, completed, unconfirmed: WaitM4::default() };
    Ok((message.as_slice().to_vec(), agreed, place))
}

/// Whether an identifier has the one form that it may have (RFC 9528 §3.3.2), so that two that are equal look so.
fn is_shortest(id: ConnId) -> bool {
    ConnId::from_slice(id.as_slice()) == Some(id)
}

/// Whether method and suites are in as few bytes as they take (RFC 9528 §3.1).
fn begins_shortest(message_1: &BufferMessage1, suites: &[u8]) -> bool {
    let mut shortest = vec![METHOD];
    if suites.len() > 1 {
        shortest.push(0x80 | suites.len() as u8);
    }
    for suite in suites {
        shortest.extend_from_slice(if *suite < 24 { &[] } else { &[0x18] });
        shortest.push(*suite);
    }
    message_1.as_slice().starts_with(&shortest)
}

/// The credential that is named by its kid.
fn named<'a>(id: &IdCred, known: &'a [Credential]) -> Result<(usize, &'a Credential), Fault> {
    let is_meant = |credential: &Credential| credential.by_kid().is_ok_and(|known| known == *id);
    known.iter().enumerate().find(|(_, credential)| is_meant(credential)).ok_or(Fault::Unknown)
}

/// External authorisation data, of which none is known here: what is not critical is ignored, and padding is such (RFC 9528 §3.8). lakers
/// takes all that follows the first label for the value of that, and no first label of more than one byte.
fn ignore(data: Option<&EADItem>, most: usize) -> Result<(), Fault> {
    let Some(EADItem { is_critical, value, .. }) = data else { return Ok(()) };
    let mut rest = value.as_ref().map_or(&[][..], |value| value.as_slice());
    if *is_critical {
        return Err(Fault::Critical);
    }
    if rest.len() >= most {
        return Err(Fault::Malformed);
    }
    let mut has_value = false;
    while !rest.is_empty() {
        let (major, argument, behind) = cbor_head(rest).ok_or(Fault::Malformed)?;
        rest = behind;
        match major {
            0 => has_value = false,
            1 => return Err(Fault::Critical),
            2 if !has_value => {
                let length = usize::try_from(argument).map_err(|_| Fault::Malformed)?;
                (has_value, rest) = (true, rest.get(length..).ok_or(Fault::Malformed)?);
            }
            _ => return Err(Fault::Malformed),
        }
    }
    Ok(())
}

/// The major type and the argument of what CBOR begins here (RFC 8949 §3), and what is behind these.
fn cbor_head(bytes: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (major, info) = (first >> 5, first & 0x1f);
    let length = match info {
        0..=23 => return Some((major, info.into(), rest)),
        24..=27 => 1 << (info - 24),
        _ => return None,
    };
    let (argument, rest) = rest.split_at_checked(length)?;
    Some((major, argument.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)), rest))
}

fn buffer(bytes: &[u8]) -> Result<EdhocMessageBuffer, Fault> {
    EdhocMessageBuffer::new_from_slice(bytes).map_err(|_| Fault::Malformed)
}

/// A message that is one byte string with a tag at its end, and nothing more.
fn encrypted(bytes: &[u8]) -> Result<EdhocMessageBuffer, Fault> {
    let content = match bytes {
        [head @ 0x40..=0x57, content @ ..] if usize::from(head & 0x1f) == content.len() => content,
        [0x58, length @ 24..=u8::MAX, content @ ..] if usize::from(*length) == content.len() => content,
        _ => return Err(Fault::Malformed),
    };
    if content.len() < TAG {
        return Err(Fault::Malformed);
    }
    buffer(bytes)
}

#[cfg(any(fuzzing, test))]
#[path = "hostile.rs"]
pub mod hostile;
