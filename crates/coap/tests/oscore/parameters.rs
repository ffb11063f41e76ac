use millpond_coap::oscore::{Algorithm, Context, Parameters, ProtectError, Start};

use super::messages::*;
use millpond_coap::message::{Code, Kind, number};

fn refused(parameters: &Parameters<'_>) -> String {
    Context::derive(parameters, Start::Fresh).unwrap_err().to_string()
}

#[test]
fn what_would_not_be_safe_is_refused_in_one_line_that_names_the_fix() {
    let short = Parameters { secret: &SECRET[..15], ..CLIENT };
    assert_eq!(refused(&short), "a secret of 15 bytes: give at least 16, random ones");
    for id in [&[][..], &[1], b"1234567"] {
        let equal = Parameters { sender_id: id, recipient_id: id, ..CLIENT };
        assert_eq!(refused(&equal), "sender ID and recipient ID are equal: give each side its own");
    }
    let long = Parameters { recipient_id: b"12345678", ..CLIENT };
    assert_eq!(refused(&long), "an ID of 8 bytes: AES-CCM-16-64-128 takes at most 7");
    let long = Parameters { sender_id: b"1234567", algorithm: Algorithm::ChaCha20Poly1305, ..CLIENT };
    assert_eq!(refused(&long), "an ID of 7 bytes: ChaCha20/Poly1305 takes at most 6");
    let long = Parameters { sender_id: b"12", algorithm: Algorithm::AesCcm64_64_128, ..CLIENT };
    assert_eq!(refused(&long), "an ID of 2 bytes: AES-CCM-64-64-128 takes at most 1");
    let long = Parameters { id_context: Some(&[0; 248]), ..CLIENT };
    assert_eq!(refused(&long), "an ID context that does not fit the 255 bytes of an option: give a shorter one");
    let longest = Parameters { id_context: Some(&[0; 247]), ..CLIENT };
    assert!(Context::derive(&longest, Start::Fresh).is_ok());
}

#[test]
fn ids_of_every_length_that_fits_are_told_apart() {
    let ids: Vec<&[u8]> = (0..=7).map(|length| &b"\0\0\0\0\0\0\0"[..length]).collect();
    for one in &ids {
        for other in ids.iter().filter(|other| *other != one) {
            let parameters = Parameters { sender_id: one, recipient_id: other, ..CLIENT };
            let (mut client, mut server) = pair(&parameters);
            let (_, protected) = protected_request(&mut client, &get("a"));
            assert_eq!(received(&mut server, &protected).unwrap().1, get("a"));
            assert_eq!((client.sender_id(), server.sender_id()), (*one, *other));
        }
    }
}

#[test]
fn nothing_that_is_printed_holds_a_key() {
    let salt = *b"saltsalt";
    let parameters = Parameters { salt: &salt, ..CLIENT };
    let (mut client, _) = pair(&parameters);
    let (sent, _) = protected_request(&mut client, &get("a"));
    assert_eq!(
        format!("{parameters:?}"),
        "Parameters { id_context: None, sender_id: [1], recipient_id: [2], algorithm: AesCcm16_64_128, hash: Sha256, .. }"
    );
    assert_eq!(
        format!("{client:?}"),
        "Context { algorithm: AesCcm16_64_128, id_context: None, sender_id: 01, recipient_id: 02, numbers: Numbers { first: \
         0, next: 1, bound: 1099511627776 }, window: Some(Window { end: 0, seen: 18446744073709551615 }), .. }"
    );
    assert_eq!(
        format!("{sent:?}"),
        "SentRequest { partial_iv: PartialIv(0), observes: false, taken: 0, newest: None, generation: 0, under: None, by: 0 }"
    );
}

#[test]
fn what_cannot_be_protected_is_refused_and_takes_no_number() {
    let (mut client, mut server) = pair(&CLIENT);
    for (message, error) in [
        (content(b"a"), ProtectError::UnsuitedCode(Code::CONTENT)),
        (written(Kind::Confirmable, Code::GET, &[(number::OSCORE, b"")], b"a"), ProtectError::Nested),
        (
            written(Kind::Confirmable, Code::GET, &[(number::PROXY_URI, b"coap://a/secret")], b""),
            ProtectError::ProxyUri,
        ),
    ] {
        let mut into = b"before".to_vec();
        assert_eq!(client.protect_request(&parsed(&message), &mut into), Err(error));
        assert_eq!(into, b"before");
    }
    let (_, protected) = protected_request(&mut client, &get("a"));
    let (mut came, _) = received(&mut server, &protected).unwrap();
    assert_eq!(parsed(&protected).option(number::OSCORE), Some(&[0x09, 0, 1][..]));
    let mut into = Vec::new();
    let request = get("a");
    let refused = server.protect_response(&mut came, &parsed(&request), &mut into);
    assert_eq!(refused, Err(ProtectError::UnsuitedCode(Code::GET)));
    let nested = written(Kind::NonConfirmable, Code::CONTENT, &[(number::OSCORE, b"")], b"a");
    assert_eq!(server.protect_response(&mut came, &parsed(&nested), &mut into), Err(ProtectError::Nested));
    // The nonce of the request is still free.
    let response = protected_response(&mut server, &mut came, &content(b"a"));
    assert_eq!(parsed(&response).option(number::OSCORE), Some(&[][..]));
}
