use alloc::vec::Vec;

use super::{
    Context, OscoreOption, PartialIv, ReceivedRequest, Refusal, ResponseFault, SentRequest,
    context::{Id, read_bytes},
    protection,
    window::Window,
};
use crate::message::{Code, Message, Opt, Options, Uint, Writer, number, sort, split_body};
use crate::parts;

/// What a server says of a request that it has received before (RFC 8613 §7.4).
const REPLAY: &[u8] = Refusal::Replay.diagnostic().as_bytes();

impl Context {
    /// Appends a request that came in as its sender wrote it (RFC 8613 §8.2).
    ///
    /// # Errors
    /// Why it must not be processed, and how to answer it. Nothing is appended then.
    pub fn unprotect_request(&mut self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<ReceivedRequest, Refusal> {
        let option = option_of(request).ok_or(Refusal::NotProtected)?.ok_or(Refusal::Malformed)?;
        let (Some(partial_iv), Some(_)) = (option.partial_iv, option.kid) else { return Err(Refusal::Malformed) };
        if !self.is_for(&option) {
            return Err(Refusal::UnknownContext);
        }
        if parts::OSCORE_ANEW && self.lacks(&option) {
            return self.take_anew(request, &option, partial_iv, into);
        }
        self.open_request(request, partial_iv, into)
    }

    /// Appends a request of this sequence number that is for this context.
    pub(super) fn open_request(
        &mut self,
        request: &Message<'_>,
        partial_iv: PartialIv,
        into: &mut Vec<u8>,
    ) -> Result<ReceivedRequest, Refusal> {
        if self.window.is_some_and(|window| !window.is_new(partial_iv)) {
            return Err(Refusal::Replay);
        }
        if !self.numbers.are_stored() {
            return Err(Refusal::NotStored);
        }
        let generated = (self.recipient.id, partial_iv);
        let plain = self.open(request.payload(), generated, generated).ok_or(Refusal::DecryptionFailed)?;
        let nonce_is_free = self.window.is_some();
        let mut received = ReceivedRequest {
            kid: self.recipient.id,
            partial_iv,
            nonce_is_free,
            generation: self.generation(),
            first: None,
        };
        if let Some(window) = &mut self.window {
            window.take(partial_iv);
        }
        let plain = Plain::read(&plain).filter(|plain| plain.code.is_request()).ok_or(Refusal::Malformed)?;
        if !nonce_is_free {
            if !plain.echo().is_some_and(|echo| self.numbers.was_taken(echo)) {
                return Err(Refusal::Unsure(received));
            }
            // It was sent after the restart, so nothing up to it needs to be told apart any more.
            self.window = Some(Window::above(partial_iv));
        }
        plain.write(request, None, into).ok_or(Refusal::Malformed)?;
        received.nonce_is_free = true;
        Ok(received)
    }

    /// Appends a response that came in as its sender wrote it (RFC 8613 §8.4). The Observe option of a notification counts those that
    /// were taken: a notification that is not newer than the one before is refused here (§7.4.1).
    ///
    /// # Errors
    /// Why it must not be processed. Nothing is appended then, and the request is still unanswered.
    pub fn unprotect_response(
        &mut self,
        request: &mut SentRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault> {
        let not_protected = match (response.code, response.payload()) {
            (Code::UNAUTHORIZED, REPLAY) => ResponseFault::SaidReplayed,
            (code, _) => ResponseFault::NotProtected(code),
        };
        let option = option_of(response).ok_or(not_protected)?.ok_or(ResponseFault::Malformed)?;
        if parts::OSCORE_ANEW && request.under.is_some() {
            let r2 = option.kid_context.and_then(read_bytes).filter(|_| request.taken == 0);
            match r2 {
                Some(r2) => return self.derive_by(request, response, &option, r2, into),
                None if request.generation != self.generation() => return Err(ResponseFault::OtherContext),
                None => {}
            }
        }
        let is_other = |named: Option<&[u8]>, own: Option<&[u8]>| named.is_some() && named != own;
        if is_other(option.kid, Some(self.recipient_id())) || is_other(option.kid_context, self.id_context()) {
            return Err(ResponseFault::OtherContext);
        }
        let is_new = match option.partial_iv {
            _ if request.taken == 0 => true,
            Some(partial_iv) => request.observes && request.newest.is_none_or(|newest| partial_iv > newest),
            None => false,
        };
        if !is_new {
            return Err(ResponseFault::NotNew);
        }
        let plain = self.open_response(request, response, &option)?;
        let plain = Plain::read(&plain).filter(|plain| plain.code.is_response()).ok_or(ResponseFault::Malformed)?;
        let has_observe = plain.has(number::OBSERVE);
        if has_observe && !request.observes {
            return Err(ResponseFault::UnexpectedNotification);
        }
        plain.write(response, Some(Uint::new(request.taken & 0xff_ffff)), into).ok_or(ResponseFault::Malformed)?;
        // A response that is no notification ends the observation, and so does a proxy that leaves the outer option out.
        request.observes &= has_observe && response.option(number::OBSERVE).is_some();
        request.newest = option.partial_iv.or(request.newest);
        request.taken = request.taken.saturating_add(1);
        if parts::OSCORE_ANEW {
            self.is_shared();
        }
        Ok(())
    }

    fn open_response(
        &self,
        request: &SentRequest,
        response: &Message<'_>,
        option: &OscoreOption<'_>,
    ) -> Result<Vec<u8>, ResponseFault> {
        let of_request = (self.sender.id, request.partial_iv);
        let nonce = option.partial_iv.map_or(of_request, |partial_iv| (self.recipient.id, partial_iv));
        self.open(response.payload(), nonce, of_request).ok_or(ResponseFault::DecryptionFailed)
    }

    /// With what a request is to be sent again that is answered by 4.01: the Echo option, or any byte if there is none.
    pub(super) fn open_refusal(
        &self,
        request: &SentRequest,
        response: &Message<'_>,
        option: &OscoreOption<'_>,
    ) -> Result<Vec<u8>, ResponseFault> {
        let plain = self.open_response(request, response, option)?;
        let plain = Plain::read(&plain).filter(|plain| plain.code == Code::UNAUTHORIZED);
        let mut options = plain.ok_or(ResponseFault::Malformed)?.options();
        let echo = options.find(|option| option.number == number::ECHO);
        Ok(echo.map_or(&[0][..], |echo| echo.value).to_vec())
    }

    fn open(
        &self,
        ciphertext: &[u8],
        (generated_by, partial_iv): (Id, PartialIv),
        (request_kid, request_piv): (Id, PartialIv),
    ) -> Option<Vec<u8>> {
        let mut buffer = ciphertext.to_vec();
        let nonce = self.nonce(&generated_by, partial_iv);
        let aad = self.aad(&request_kid, request_piv);
        self.algorithm.decrypt(&self.recipient.key, &nonce, &aad, &mut buffer)?;
        Some(buffer)
    }
}

/// The OSCORE option of a message, if it has one, and if that can be read. It stands once, and never without a payload
/// (RFC 8613 §2).
fn option_of<'m>(message: &Message<'m>) -> Option<Option<OscoreOption<'m>>> {
    let mut values = message.values(number::OSCORE);
    let value = values.next()?;
    let is_legal = values.next().is_none() && !message.payload().is_empty();
    Some(OscoreOption::decode(value).ok().filter(|_| is_legal))
}

/// What was encrypted (RFC 8613 §5.3).
#[derive(Clone, Copy)]
struct Plain<'p> {
    code: Code,
    options: &'p [u8],
    payload: &'p [u8],
}

impl<'p> Plain<'p> {
    /// `None` if it cannot be read, or is protected once more.
    fn read(plaintext: &'p [u8]) -> Option<Self> {
        let (&code, body) = plaintext.split_first()?;
        let (options, payload, _) = split_body(body).ok()?;
        let plain = Self { code: Code::from_byte(code), options, payload };
        plain.options().all(|option| option.number != number::OSCORE).then_some(plain)
    }

    fn options(&self) -> Options<'p> {
        Options::over(self.options)
    }

    fn has(&self, number: u16) -> bool {
        self.options().any(|option| option.number == number)
    }

    /// The sequence number that an Echo option repeats, if it has one.
    fn echo(&self) -> Option<PartialIv> {
        self.options().find(|option| option.number == number::ECHO).and_then(|echo| PartialIv::read(echo.value))
    }

    /// Writes the message with the header and those outer options of the one that it came in that nobody could have
    /// put inside. Observe counts if it stands in both: a proxy that does not know it leaves the outer one out (RFC 8613 §4.1.3.5.1).
    fn write(&self, outer: &Message<'_>, observe: Option<Uint>, into: &mut Vec<u8>) -> Option<()> {
        let is_kept = |option: &Opt<'_>| option.number != number::OSCORE && !protection(option.number).is_inner;
        let observes = outer.option(number::OBSERVE).is_some();
        let inner = self.options().filter(|option| observes || option.number != number::OBSERVE);
        let all = inner.chain(outer.options().filter(is_kept));
        let mut options: Vec<_> = all.map(|option| (option.number, option.value)).collect();
        sort(&mut options);
        let mut writer = Writer::start(into, outer.kind, self.code, outer.id, outer.token);
        for (number, value) in options {
            let observe = observe.as_ref().filter(|_| number == number::OBSERVE);
            writer.option(number, observe.map_or(value, Uint::as_bytes)).ok()?;
        }
        writer.payload(self.payload).ok()?;
        writer.finish().ok()?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, MessageId, Token};
    use crate::oscore::{Parameters, Start};
    use proptest::prelude::*;

    fn pair() -> (Context, Context) {
        let parameters = Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(b"0123456789abcdef") };
        let context = |parameters| Context::derive(parameters, Start::Fresh).unwrap();
        (context(&parameters), context(&parameters.mirrored()))
    }

    /// What only a holder of the key can send: this plaintext, whatever it is, in a message for `of_request` or in that request.
    fn sealed(by: &mut Context, code: Code, plain: &[u8], of_request: Option<PartialIv>) -> Vec<u8> {
        let partial_iv = by.numbers.take().unwrap();
        let request = of_request.map_or((by.sender.id, partial_iv), |partial_iv| (by.recipient.id, partial_iv));
        let nonce = by.nonce(&by.sender.id, partial_iv);
        let aad = by.aad(&request.0, request.1);
        let mut sealed = plain.to_vec();
        by.algorithm.encrypt(&by.sender.key, &nonce, &aad, &mut sealed).unwrap();
        let kid = of_request.is_none().then(|| by.sender_id().to_vec());
        let option = OscoreOption { partial_iv: Some(partial_iv), kid_context: None, kid: kid.as_deref() };
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, Kind::Confirmable, code, MessageId(1), Token::EMPTY);
        writer.option(number::OSCORE, &option.encode().unwrap()).unwrap();
        writer.payload(&sealed).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn what_decrypts_to_no_message_is_malformed() {
        let (mut client, mut server) = pair();
        for plain in [
            &b""[..],
            b"\x00",
            b"\x45\xffa response",
            b"\x01\xff",
            b"\x01\xb5cut",
            b"\x01\xf0reserved",
            b"\x01\x90\xffwith an OSCORE option",
        ] {
            let bytes = sealed(&mut client, Code::POST, plain, None);
            let (message, mut into) = (Message::parse(&bytes).unwrap(), Vec::new());
            assert_eq!(server.unprotect_request(&message, &mut into), Err(Refusal::Malformed), "{plain:?}");
            assert!(into.is_empty());
            // It was authentic, so it is not looked at again.
            assert_eq!(server.unprotect_request(&message, &mut into), Err(Refusal::Replay));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A client that was broken into knows its key.
        #[test]
        fn any_plaintext_that_is_authentic_is_a_message_or_malformed(
            code in any::<u8>(),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let plain = [&[code], &rest[..]].concat();
            let (mut client, mut server) = pair();
            let bytes = sealed(&mut client, Code::POST, &plain, None);
            let mut into = Vec::new();
            match server.unprotect_request(&Message::parse(&bytes).unwrap(), &mut into) {
                Ok(_) => prop_assert!(Message::parse(&into).unwrap().code.is_request()),
                Err(refusal) => prop_assert_eq!((refusal, into.len()), (Refusal::Malformed, 0)),
            }

            let mut asked = Vec::new();
            let request = [0x50, 1, 0, 1];
            let mut sent = client.protect_request(&Message::parse(&request).unwrap(), &mut asked).unwrap();
            let bytes = sealed(&mut server, Code::CHANGED, &plain, Some(sent.partial_iv));
            let mut into = Vec::new();
            match client.unprotect_response(&mut sent, &Message::parse(&bytes).unwrap(), &mut into) {
                Ok(()) => prop_assert!(Message::parse(&into).unwrap().code.is_response()),
                Err(fault) => {
                    prop_assert!(matches!(fault, ResponseFault::Malformed | ResponseFault::UnexpectedNotification));
                    prop_assert!(into.is_empty());
                }
            }
        }
    }
}
