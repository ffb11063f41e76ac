use millpond_coap::message::{Message, number};
use millpond_coap::oscore::{Context, OscoreOption, Parameters, Start};

const SECRET: [u8; 16] = *b"0123456789abcdef";

/// Whatever these bytes are: as the value of an option, as a request and as a response. Nothing panics, what is read of an option is
/// written the same, and nothing is taken that was not protected by a holder of the key.
pub(crate) fn check(bytes: &[u8]) {
    if let Ok(option) = OscoreOption::decode(bytes) {
        assert_eq!(option.encode().as_deref(), Some(bytes));
    }
    let Ok(message) = Message::parse(bytes) else { return };
    let parameters = Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(&SECRET) };
    let Ok(mut server) = Context::derive(&parameters, Start::Fresh) else { panic!("these are legal") };
    let mut into = Vec::new();
    if message.code.is_request() && message.option(number::OSCORE).is_none() {
        // What can be protected is read as it was.
        let Ok(mut client) = Context::derive(&parameters.mirrored(), Start::Fresh) else { panic!("these are legal") };
        if client.protect_request(&message, &mut into).is_ok() {
            let mut plain = Vec::new();
            let protected = Message::parse(&into).unwrap_or_else(|error| panic!("{error}"));
            server.unprotect_request(&protected, &mut plain).unwrap_or_else(|refusal| panic!("{refusal}"));
            assert_eq!(plain, bytes);
        }
    }
    into.clear();
    // Nobody can write an authentic message without the key, and a fuzzer does not find one.
    assert!(server.unprotect_request(&message, &mut into).is_err());
    let mut asked = Vec::new();
    let get = [0x40, 0x01, 0, 0, 0xb1, b'a'];
    let Ok(request) = Message::parse(&get) else { panic!("this is legal") };
    let Ok(mut sent) = server.protect_request(&request, &mut asked) else { panic!("it has numbers left") };
    assert!(server.unprotect_response(&mut sent, &message, &mut into).is_err());
    assert!(into.is_empty());
}

#[cfg(test)]
proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_comes_nothing_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        check(&bytes);
    }

    #[test]
    fn whatever_comes_in_a_message_nothing_panics(
        option in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12),
        payload in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)
    ) {
        for code in [2, 68] {
            let code = millpond_coap::message::Code::from_byte(code);
            let kind = millpond_coap::message::Kind::Confirmable;
            check(&super::messages::written(kind, code, &[(number::OSCORE, &option)], &payload));
        }
    }
}
