use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::oscore::{Algorithm, Hash, OscoreOption, Parameters, Refusal, ResponseFault, protection};
use proptest::prelude::*;

use super::messages::*;

/// Everything that a pair may have been given.
#[derive(Clone, Debug)]
struct Given {
    secret: Vec<u8>,
    salt: Vec<u8>,
    id_context: Option<Vec<u8>>,
    ids: (Vec<u8>, Vec<u8>),
    algorithm: Algorithm,
    hash: Hash,
}

impl Given {
    fn parameters(&self) -> Parameters<'_> {
        Parameters {
            secret: &self.secret,
            salt: &self.salt,
            id_context: self.id_context.as_deref(),
            sender_id: &self.ids.0,
            recipient_id: &self.ids.1,
            algorithm: self.algorithm,
            hash: self.hash,
        }
    }
}

fn given() -> impl Strategy<Value = Given> {
    let bytes = |length| prop::collection::vec(any::<u8>(), length);
    let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
    let hash = prop::sample::select(vec![Hash::Sha256, Hash::Sha512]);
    let ids = (bytes(0..=1), bytes(0..=1)).prop_filter("equal IDs", |(one, other)| one != other);
    (bytes(16..=40), bytes(0..=20), prop::option::of(bytes(0..=40)), ids, algorithm, hash).prop_map(
        |(secret, salt, id_context, ids, algorithm, hash)| Given { secret, salt, id_context, ids, algorithm, hash },
    )
}

/// The message with another Observe, and no other if it has none.
fn observing(message: &[u8], observe: &[u8]) -> Vec<u8> {
    let message = parsed(message);
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, message.kind, message.code, message.id, message.token);
    for option in message.options() {
        let value = if option.number == number::OBSERVE { observe } else { option.value };
        writer.option(option.number, value).unwrap();
    }
    writer.payload(message.payload()).unwrap();
    writer.finish().unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_request_and_its_response_come_back_as_they_were(
        given in given(), request in requests(), response in responses()
    ) {
        let (mut client, mut server) = pair(&given.parameters());
        let (mut sent, protected) = protected_request(&mut client, &request);
        let (mut came, plain) = received(&mut server, &protected).unwrap();
        prop_assert_eq!(&plain, &request);
        let protected = protected_response(&mut server, &mut came, &response);
        // With the nonce of the request it grows by code, tag and option, and marker where there was no payload.
        prop_assert!(protected.len() <= response.len() + given.algorithm.tag_length() + 12);
        let is_registration = parsed(&request).option(number::OBSERVE).is_some_and(|value| value.iter().all(|b| *b == 0));
        let is_notification = parsed(&response).option(number::OBSERVE).is_some();
        match answered(&mut client, &mut sent, &protected) {
            // The first notification.
            Ok(plain) => prop_assert_eq!(plain, observing(&response, &[])),
            Err(fault) => {
                prop_assert_eq!(fault, ResponseFault::UnexpectedNotification);
                prop_assert!(is_notification && !is_registration);
            }
        }
    }

    #[test]
    fn what_is_inner_is_not_seen(given in given(), request in requests()) {
        let (mut client, _) = pair(&given.parameters());
        let (_, protected) = protected_request(&mut client, &request);
        let (outer, plain) = (parsed(&protected), parsed(&request));
        let observes = plain.option(number::OBSERVE).is_some();
        prop_assert_eq!(outer.code, if observes { Code::FETCH } else { Code::POST });
        prop_assert_eq!((outer.kind, outer.id, outer.token), (plain.kind, plain.id, plain.token));
        let shown = outer.options().filter(|option| option.number != number::OSCORE).collect::<Vec<_>>();
        let to_show = |number| number == number::OBSERVE || !protection(number).is_inner;
        prop_assert_eq!(shown, plain.options().filter(|option| to_show(option.number)).collect::<Vec<_>>());
    }

    #[test]
    fn options_that_could_be_inner_are_not_believed_outside(request in requests(), outside in requests()) {
        let (mut client, mut server) = pair(&CLIENT);
        let (_, protected) = protected_request(&mut client, &request);
        let (protected, outside) = (parsed(&protected), parsed(&outside));
        let injected = outside.options().filter(|option| protection(option.number).is_inner);
        let mut options: Vec<_> = protected.options().chain(injected).collect();
        options.sort_by_key(|option| option.number);
        let options: Vec<_> = options.iter().map(|option| (option.number, option.value)).collect();
        let (_, plain) = received(&mut server, &written(Kind::Confirmable, outside.code, &options, protected.payload())).unwrap();
        prop_assert_eq!(plain, request);
    }
}

/// The message with its OSCORE option or its ciphertext replaced.
fn changed(message: &Message<'_>, option: Option<&[u8]>, payload: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, message.kind, message.code, MessageId(1), Token::EMPTY);
    for each in message.options() {
        writer
            .option(each.number, if each.number == number::OSCORE { option.unwrap_or(each.value) } else { each.value })
            .unwrap();
    }
    writer.payload(payload.unwrap_or(message.payload())).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Every way to flip one bit of these bytes.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

#[test]
fn any_flipped_bit_of_option_or_ciphertext_is_refused() {
    for algorithm in Algorithm::ALL {
        let parameters = Parameters { id_context: Some(b"abc"), algorithm: *algorithm, ..CLIENT };
        let (mut client, mut server) = pair(&parameters);
        let (mut sent, protected) = protected_request(&mut client, &get("some/path"));
        let request = parsed(&protected);
        for option in flipped(request.option(number::OSCORE).unwrap()) {
            let refusal = received(&mut server, &changed(&request, Some(&option), None)).unwrap_err();
            // Another number, or another kid.
            let expected = match OscoreOption::decode(&option) {
                Ok(read) if read.partial_iv.is_none() || read.kid.is_none() => Refusal::Malformed,
                Ok(read) if server.is_for(&read) => Refusal::DecryptionFailed,
                Ok(_) => Refusal::UnknownContext,
                Err(_) => Refusal::Malformed,
            };
            assert_eq!(refusal, expected, "{option:02x?}");
        }
        for payload in flipped(request.payload()) {
            let refusal = received(&mut server, &changed(&request, None, Some(&payload))).unwrap_err();
            assert_eq!(refusal, Refusal::DecryptionFailed);
        }
        for length in 1..request.payload().len() {
            let cut = &request.payload()[..length];
            let refusal = received(&mut server, &changed(&request, None, Some(cut))).unwrap_err();
            assert_eq!(refusal, Refusal::DecryptionFailed);
        }
        // None of that spoilt the window.
        let (mut came, _) = received(&mut server, &protected).unwrap();
        let protected = protected_response(&mut server, &mut came, &content(b"21.5"));
        let response = parsed(&protected);
        for payload in flipped(response.payload()) {
            let fault = answered(&mut client, &mut sent, &changed(&response, None, Some(&payload))).unwrap_err();
            assert_eq!(fault, ResponseFault::DecryptionFailed);
        }
        // Nor the request, which waits for its response.
        assert!(answered(&mut client, &mut sent, &protected).is_ok());
    }
}

#[test]
fn a_response_is_bound_to_its_request() {
    let (mut client, mut server) = pair(&CLIENT);
    let (mut first, one) = protected_request(&mut client, &get("a"));
    let (mut second, other) = protected_request(&mut client, &get("a"));
    let (mut came_first, _) = received(&mut server, &one).unwrap();
    let (mut came_second, _) = received(&mut server, &other).unwrap();
    for round in 0..2 {
        let to_first = protected_response(&mut server, &mut came_first, &content(b"first"));
        let to_second = protected_response(&mut server, &mut came_second, &content(b"second"));
        // With the nonce of the request, then with one of its own.
        assert_eq!(parsed(&to_first).option(number::OSCORE).unwrap().is_empty(), round == 0);
        assert_eq!(
            answered(&mut client, &mut first, &to_second),
            Err(if round == 0 { ResponseFault::DecryptionFailed } else { ResponseFault::NotNew })
        );
        assert_eq!(
            answered(&mut client, &mut second, &to_first),
            Err(if round == 0 { ResponseFault::DecryptionFailed } else { ResponseFault::NotNew })
        );
        if round == 0 {
            assert_eq!(answered(&mut client, &mut first, &to_first), Ok(content(b"first")));
            assert_eq!(answered(&mut client, &mut second, &to_second), Ok(content(b"second")));
        }
        // Only one is taken.
        assert_eq!(answered(&mut client, &mut first, &to_first), Err(ResponseFault::NotNew));
    }
}
