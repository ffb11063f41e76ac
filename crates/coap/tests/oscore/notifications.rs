use millpond_coap::message::{Code, Kind, number};
use millpond_coap::oscore::{Context, OscoreOption, ReceivedRequest, ResponseFault, SentRequest};

use super::messages::*;

/// An observation that was registered for.
fn observation() -> (Context, Context, SentRequest, ReceivedRequest) {
    let (mut client, mut server) = pair(&CLIENT);
    let (sent, request) = protected_request(&mut client, &registration());
    assert_eq!(parsed(&request).option(number::OBSERVE), Some(&[][..]));
    let (came, plain) = received(&mut server, &request).unwrap();
    assert_eq!(plain, registration());
    (client, server, sent, came)
}

/// As the client sees the one that it took after so many others.
fn seen(taken: u8, payload: &[u8]) -> Vec<u8> {
    let count: &[u8] = if taken == 0 { &[] } else { &[taken] };
    written(Kind::NonConfirmable, Code::CONTENT, &[(number::OBSERVE, count)], payload)
}

#[test]
fn all_but_the_first_notification_have_a_partial_iv_and_each_is_taken_once_in_its_order() {
    let (mut client, mut server, mut sent, mut came) = observation();
    let all: Vec<_> =
        (0..5).map(|at| protected_response(&mut server, &mut came, &notification(at + 100, &[at]))).collect();
    for (at, one) in all.iter().enumerate() {
        let outer = parsed(one);
        assert_eq!((outer.code, outer.option(number::OBSERVE)), (Code::CONTENT, Some(&[at as u8 + 100][..])));
        let option = OscoreOption::decode(outer.option(number::OSCORE).unwrap()).unwrap();
        assert_eq!(option.partial_iv.is_some(), at > 0);
    }
    assert_eq!(answered(&mut client, &mut sent, &all[0]), Ok(seen(0, &[0])));
    assert_eq!(answered(&mut client, &mut sent, &all[0]), Err(ResponseFault::NotNew));
    assert_eq!(answered(&mut client, &mut sent, &all[2]), Ok(seen(1, &[2])));
    // Later than a newer one, and once more.
    assert_eq!(answered(&mut client, &mut sent, &all[1]), Err(ResponseFault::NotNew));
    assert_eq!(answered(&mut client, &mut sent, &all[2]), Err(ResponseFault::NotNew));
    assert_eq!(answered(&mut client, &mut sent, &all[4]), Ok(seen(2, &[4])));
    // Without a Partial IV it is the oldest, whenever it comes.
    let (mut client, mut server, mut sent, mut came) = observation();
    let all: Vec<_> = (0..2).map(|at| protected_response(&mut server, &mut came, &notification(at, &[at]))).collect();
    assert_eq!(answered(&mut client, &mut sent, &all[1]), Ok(seen(0, &[1])));
    assert_eq!(answered(&mut client, &mut sent, &all[0]), Err(ResponseFault::NotNew));
}

#[test]
fn what_is_not_authentic_ends_no_observation_and_a_plain_response_does() {
    let (mut client, mut server, mut sent, mut came) = observation();
    let first = protected_response(&mut server, &mut came, &notification(1, b"1"));
    assert!(answered(&mut client, &mut sent, &first).is_ok());
    let mut forged = protected_response(&mut server, &mut came, &notification(2, b"2"));
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(answered(&mut client, &mut sent, &forged), Err(ResponseFault::DecryptionFailed));
    let plain = written(Kind::NonConfirmable, Code::NOT_FOUND, &[], b"");
    assert_eq!(answered(&mut client, &mut sent, &plain), Err(ResponseFault::NotProtected(Code::NOT_FOUND)));
    let third = protected_response(&mut server, &mut came, &notification(3, b"3"));
    assert_eq!(answered(&mut client, &mut sent, &third), Ok(seen(1, b"3")));
    // The resource is gone.
    let gone = protected_response(&mut server, &mut came, &plain);
    assert_eq!(parsed(&gone).code, Code::CHANGED);
    let late = protected_response(&mut server, &mut came, &notification(4, b"4"));
    assert_eq!(answered(&mut client, &mut sent, &gone), Ok(plain));
    assert_eq!(answered(&mut client, &mut sent, &late), Err(ResponseFault::NotNew));
}

#[test]
fn a_request_that_does_not_register_gets_no_notification() {
    for request in [
        get("temperature"),
        written(Kind::Confirmable, Code::GET, &[(number::OBSERVE, &[1]), (number::URI_PATH, b"temperature")], b""),
    ] {
        let (mut client, mut server) = pair(&CLIENT);
        let (mut sent, protected) = protected_request(&mut client, &request);
        let (mut came, _) = received(&mut server, &protected).unwrap();
        let answer = protected_response(&mut server, &mut came, &notification(1, b"1"));
        assert_eq!(answered(&mut client, &mut sent, &answer), Err(ResponseFault::UnexpectedNotification));
        // The request still waits.
        let answer = protected_response(&mut server, &mut came, &content(b"1"));
        assert_eq!(answered(&mut client, &mut sent, &answer), Ok(content(b"1")));
    }
}
