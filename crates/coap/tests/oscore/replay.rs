use millpond_coap::oscore::{Context, PartialIv, ProtectError, Refusal, Start};

use super::messages::*;

/// Protected requests with the numbers from 0 on.
fn numbered(client: &mut Context, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| protected_request(client, &get("a")).1).collect()
}

#[test]
fn a_request_is_taken_once() {
    let (mut client, mut server) = pair(&CLIENT);
    for request in numbered(&mut client, 200) {
        assert!(received(&mut server, &request).is_ok());
        assert_eq!(received(&mut server, &request).unwrap_err(), Refusal::Replay);
    }
}

#[test]
fn requests_out_of_order_are_taken_once_within_the_window_and_not_beyond_its_edge() {
    let (mut client, mut server) = pair(&CLIENT);
    let requests = numbered(&mut client, 101);
    assert!(received(&mut server, &requests[100]).is_ok());
    // The oldest within 64, the one before it, and all between in the worst order.
    assert!(received(&mut server, &requests[37]).is_ok());
    assert_eq!(received(&mut server, &requests[36]).unwrap_err(), Refusal::Replay);
    for request in requests[38..100].iter().rev() {
        assert!(received(&mut server, request).is_ok());
    }
    for request in &requests {
        assert_eq!(received(&mut server, request).unwrap_err(), Refusal::Replay);
    }
}

#[test]
fn a_forged_request_does_not_move_the_window() {
    let (mut client, mut server) = pair(&CLIENT);
    let (mut other, _) =
        pair(&millpond_coap::oscore::Parameters { secret: b"another secret of the same length", ..CLIENT });
    let requests = numbered(&mut client, 1);
    let forged = numbered(&mut other, 1_000);
    assert_eq!(received(&mut server, &forged[999]).unwrap_err(), Refusal::DecryptionFailed);
    assert!(received(&mut server, &requests[0]).is_ok());
}

#[test]
fn after_the_last_sequence_number_nothing_is_protected_and_what_comes_is_still_read() {
    let last = PartialIv::LIMIT - 1;
    let mut client = Context::derive(&CLIENT, Start::Stored(last)).unwrap();
    let (_, mut server) = pair(&CLIENT);
    assert_eq!(client.bound_to_store(100), Some(PartialIv::LIMIT));
    client.bound_is_stored(PartialIv::LIMIT);
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let mut refused = b"before".to_vec();
    assert_eq!(client.protect_request(&parsed(&get("a")), &mut refused), Err(ProtectError::Exhausted));
    assert_eq!(refused, b"before");
    assert_eq!(client.bound_to_store(100), None);
    let (mut came, _) = received(&mut server, &request).unwrap();
    assert_eq!(received(&mut server, &request).unwrap_err(), Refusal::Replay);
    let response = protected_response(&mut server, &mut came, &content(b"last"));
    assert_eq!(answered(&mut client, &mut sent, &response), Ok(content(b"last")));
}
