//! What all of OSCORE stands on: no nonce is used twice with a key (RFC 8613 §7.2, Appendix D.4).

use std::collections::BTreeMap;

use millpond_coap::message::{Code, Kind, MessageId, Token, number};
use millpond_coap::oscore::{Context, OscoreOption, Parameters, ReceivedRequest, Refusal, Start};
use proptest::prelude::*;

use super::messages::*;

const GAP: u32 = 4;

/// One side, which asks and answers, stops and starts again.
struct Side {
    parameters: Parameters<'static>,
    context: Context,
    stored: u64,
    received: Vec<(ReceivedRequest, Nonce)>,
    /// What was encrypted with which nonce.
    used: BTreeMap<Nonce, Vec<u8>>,
}

/// The ID of the endpoint that gave the number, and the number.
type Nonce = (Vec<u8>, u64);

impl Side {
    fn new(parameters: Parameters<'static>) -> Self {
        let context = Context::derive(&parameters, Start::Stored(0)).unwrap();
        Self { parameters, context, stored: 0, received: Vec::new(), used: BTreeMap::new() }
    }

    /// Memory is lost, and what was stored is not.
    fn restart(&mut self) {
        self.context = Context::derive(&self.parameters, Start::Stored(self.stored)).unwrap();
        self.received.clear();
    }

    fn store(&mut self) {
        if let Some(bound) = self.context.bound_to_store(GAP) {
            self.stored = bound;
            self.context.bound_is_stored(bound);
        }
    }

    /// The nonce is that of the option, or that of the request.
    fn encrypted(&mut self, message: &[u8], of_request: Option<&Nonce>) {
        let option = OscoreOption::decode(parsed(message).option(number::OSCORE).unwrap()).unwrap();
        let own = option.partial_iv.map(|own| (self.context.sender_id().to_vec(), own.number()));
        let nonce = own.or(of_request.cloned()).unwrap();
        let before = self.used.insert(nonce.clone(), message.to_vec());
        assert_eq!(before, None, "{nonce:?} was used before");
    }

    fn ask(&mut self) -> Option<Vec<u8>> {
        let mut request = Vec::new();
        self.context.protect_request(&parsed(&get("a")), &mut request).ok()?;
        self.encrypted(&request, None);
        Some(request)
    }

    fn hear(&mut self, request: &[u8]) {
        let option = OscoreOption::decode(parsed(request).option(number::OSCORE).unwrap()).unwrap();
        let nonce = (option.kid.unwrap().to_vec(), option.partial_iv.unwrap().number());
        match received(&mut self.context, request) {
            Ok((came, _)) => self.received.push((came, nonce)),
            Err(Refusal::Unsure(mut came)) => {
                let mut challenge = Vec::new();
                let (kind, id) = (Kind::Acknowledgement, MessageId(1));
                if self.context.challenge(&mut came, kind, id, Token::EMPTY, &mut challenge).is_ok() {
                    self.encrypted(&challenge, Some(&nonce));
                }
            }
            Err(refusal) => assert!(matches!(refusal, Refusal::Replay | Refusal::NotStored), "{refusal}"),
        }
    }

    fn answer(&mut self, which: usize) {
        if self.received.is_empty() {
            return;
        }
        let at = which % self.received.len();
        let (came, nonce) = &mut self.received[at];
        let (mut response, nonce) = (Vec::new(), nonce.clone());
        if self.context.protect_response(came, &parsed(&content(&[which as u8])), &mut response).is_ok() {
            self.encrypted(&response, Some(&nonce));
        }
    }

    /// Asks with a number as an Echo that the other side may have given. Those that it has still to give it alone knows.
    fn ask_with_echo(&mut self, echo: u64) -> Option<Vec<u8>> {
        let value = echo.to_be_bytes();
        let value = &value[value.iter().take(7).take_while(|byte| **byte == 0).count()..];
        let plain = written(Kind::Confirmable, Code::GET, &[(number::ECHO, value)], b"");
        let mut request = Vec::new();
        self.context.protect_request(&parsed(&plain), &mut request).ok()?;
        self.encrypted(&request, None);
        Some(request)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn none_is_used_twice_whatever_both_sides_do_and_lose(
        steps in prop::collection::vec((any::<bool>(), 0_u8..9, any::<u8>()), 1..300)
    ) {
        let mut sides = [Side::new(CLIENT), Side::new(CLIENT.mirrored())];
        let mut requests: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        for (which, step, argument) in steps {
            let (own, other) = (usize::from(which), usize::from(!which));
            let argument = usize::from(argument);
            let given = sides[other].stored;
            match step {
                0 | 1 => requests[own].extend(sides[own].ask()),
                2 if given > 0 => {
                    let echo = (given - 1).saturating_sub(argument as u64 % 8);
                    requests[own].extend(sides[own].ask_with_echo(echo));
                }
                // Also one that came before.
                3..=5 if !requests[other].is_empty() => {
                    let at = requests[other].len().saturating_sub(1 + argument % 70);
                    let request = requests[other][at].clone();
                    sides[own].hear(&request);
                }
                6 | 7 => sides[own].answer(argument),
                8 if argument < 30 => sides[own].restart(),
                _ => sides[own].store(),
            }
        }
    }
}
