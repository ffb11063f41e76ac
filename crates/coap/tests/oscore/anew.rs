//! Keys that both sides derive anew (RFC 8613 Appendix B.2), message by message as its figure has them.

use millpond_coap::message::{Code, Kind, MessageId, Token, number};
use millpond_coap::oscore::{
    Context, OscoreOption, ProtectError, ReceivedRequest, Refusal, ResponseFault, SentRequest, Start,
};

use super::messages::*;

/// One that has just begun; no two begin with the same random bytes.
fn client(begun: u8) -> Context {
    Context::derive_anew(&CLIENT, [begun; 32]).unwrap()
}

fn server(begun: u8) -> Context {
    Context::derive_anew(&CLIENT.mirrored(), [begun | 128; 32]).unwrap()
}

fn kid_context(message: &[u8]) -> Option<Vec<u8>> {
    let option = OscoreOption::decode(parsed(message).option(number::OSCORE).unwrap()).unwrap();
    option.kid_context.map(<[u8]>::to_vec)
}

/// The answer to a request that no keys are known for.
fn given(server: &mut Context, request: &[u8]) -> Vec<u8> {
    let Err(Refusal::Unsure(mut came)) = received(server, request) else { panic!("taken, or not authentic") };
    let mut answer = Vec::new();
    server
        .challenge(&mut came, Kind::Acknowledgement, MessageId(0x1234), Token::new(b"tok").unwrap(), &mut answer)
        .unwrap();
    answer
}

/// It asks for the request once more.
fn is_challenge(plain: &[u8]) -> bool {
    let challenge = parsed(plain);
    challenge.code == Code::UNAUTHORIZED && challenge.option(number::ECHO).is_some()
}

fn taken(client: &mut Context, server: &mut Context) -> (SentRequest, ReceivedRequest, Vec<u8>) {
    let (sent, request) = protected_request(client, &get("a"));
    let (came, plain) = received(server, &request).unwrap();
    assert_eq!(plain, get("a"));
    (sent, came, request)
}

fn is_answered(client: &mut Context, server: &mut Context) -> Vec<u8> {
    let (mut sent, mut came, request) = taken(client, server);
    let response = protected_response(server, &mut came, &content(b"1"));
    assert_eq!(answered(client, &mut sent, &response), Ok(content(b"1")));
    request
}

/// The whole of a derivation. With both requests.
fn derive(client: &mut Context, server: &mut Context) -> [Vec<u8>; 2] {
    let (mut sent, first) = protected_request(client, &get("a"));
    let answer = given(server, &first);
    assert!(is_challenge(&answered(client, &mut sent, &answer).unwrap()));
    let second = is_answered(client, server);
    [first, second]
}

#[test]
fn both_sides_derive_keys_by_two_exchanges_and_go_on_with_them() {
    let (mut client, mut server) = (client(1), server(1));
    let (mut sent, request_1) = protected_request(&mut client, &get("a"));
    // A nonce, as a byte string of CBOR.
    let r1 = kid_context(&request_1).unwrap();
    assert_eq!((r1[0], r1.len()), (0x48, 9));
    let response_1 = given(&mut server, &request_1);
    let r2 = kid_context(&response_1).unwrap();
    assert_eq!((r2[0], r2.len()), (0x50, 17));
    assert!(is_challenge(&answered(&mut client, &mut sent, &response_1).unwrap()));

    let (mut sent, mut came, request_2) = taken(&mut client, &mut server);
    let r2_r3 = kid_context(&request_2).unwrap();
    assert_eq!((&r2_r3[..2], r2_r3.len()), (&[0x58, 24][..], 26));
    assert_eq!(r2_r3[2..18], r2[1..]);
    let response_2 = protected_response(&mut server, &mut came, &content(b"1"));
    assert_eq!(kid_context(&response_2), None);
    assert_eq!(answered(&mut client, &mut sent, &response_2), Ok(content(b"1")));

    // Now that both have it, it is named as it is.
    let request = is_answered(&mut client, &mut server);
    assert_eq!(kid_context(&request).unwrap(), r2_r3[2..]);
    assert_eq!(client.id_context(), server.id_context());
}

#[test]
fn a_server_that_has_lost_its_keys_gets_new_ones_by_one_more_exchange() {
    let (mut client, mut before) = (client(1), server(1));
    derive(&mut client, &mut before);
    let used = client.id_context().unwrap().to_vec();
    let mut after = server(2);
    derive(&mut client, &mut after);
    assert_ne!(client.id_context().unwrap(), used);
    is_answered(&mut client, &mut after);
}

#[test]
fn a_server_that_loses_its_keys_within_a_derivation_begins_another_one() {
    let (mut client, mut before) = (client(1), server(1));
    let (mut sent, request_1) = protected_request(&mut client, &get("a"));
    let response_1 = given(&mut before, &request_1);
    answered(&mut client, &mut sent, &response_1).unwrap();
    // The nonce of before is none of this server's.
    derive(&mut client, &mut server(2));
}

#[test]
fn a_client_that_begins_again_replaces_the_keys_and_its_former_ones_are_good_for_nothing() {
    let (mut before, mut server) = (client(1), server(1));
    derive(&mut before, &mut server);
    let (_, delayed) = protected_request(&mut before, &get("delayed"));
    let mut after = client(2);
    derive(&mut after, &mut server);
    given(&mut server, &delayed);
    is_answered(&mut after, &mut server);
}

#[test]
fn a_replay_of_a_derivation_changes_nothing() {
    let (mut first, mut server) = (client(1), server(1));
    let [request_1, request_2] = derive(&mut first, &mut server);
    // While its keys are used.
    assert_eq!(received(&mut server, &request_2).unwrap_err(), Refusal::Replay);
    given(&mut server, &request_1);
    is_answered(&mut first, &mut server);
    // After they were replaced, and after the server has lost all of them.
    let mut second = client(2);
    derive(&mut second, &mut server);
    for replay in [&request_1, &request_2] {
        given(&mut server, replay);
        is_answered(&mut second, &mut server);
        given(&mut self::server(3), replay);
    }
}

#[test]
fn an_answer_that_gives_a_nonce_is_for_one_request_and_is_taken_once() {
    let (mut client, mut server) = (client(1), server(1));
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let (mut other, _) = protected_request(&mut client, &get("b"));
    let answer = given(&mut server, &request);
    let begun = client.id_context().unwrap().to_vec();
    assert_eq!(answered(&mut client, &mut other, &answer), Err(ResponseFault::DecryptionFailed));
    let mut changed = answer.clone();
    // In the nonce.
    changed[12] ^= 1;
    assert_eq!(answered(&mut client, &mut sent, &changed), Err(ResponseFault::DecryptionFailed));
    assert_eq!(client.id_context().unwrap(), begun);
    answered(&mut client, &mut sent, &answer).unwrap();
    let derived = client.id_context().unwrap().to_vec();
    assert_eq!(answered(&mut client, &mut sent, &answer), Err(ResponseFault::OtherContext));
    assert_eq!(client.id_context().unwrap(), derived);
}

#[test]
fn requests_at_once_are_all_asked_for_again_under_the_same_keys() {
    let (mut client, mut server) = (client(1), server(1));
    let mut asked: Vec<_> = (0..4).map(|_| protected_request(&mut client, &get("a"))).collect();
    let answers: Vec<_> = asked.iter().map(|(_, request)| given(&mut server, request)).collect();
    let mut derived = Vec::new();
    for ((sent, _), answer) in asked.iter_mut().zip(&answers) {
        assert!(is_challenge(&answered(&mut client, sent, answer).unwrap()));
        derived.push(client.id_context().unwrap().to_vec());
    }
    assert!(derived.iter().all(|id| *id == derived[0]));
    // Whichever comes first brings the keys.
    let again: Vec<_> = (0..4).map(|_| protected_request(&mut client, &get("a")).1).collect();
    for request in again.iter().rev() {
        received(&mut server, request).unwrap();
    }
    is_answered(&mut client, &mut server);
}

#[test]
fn who_was_not_verified_costs_a_server_no_memory_and_is_not_answered_at_length() {
    let mut server = server(1);
    let mut begun: Vec<_> = (0..100).map(client).collect();
    let mut answers = Vec::new();
    for client in &mut begun {
        let (sent, request) = protected_request(client, &written(Kind::Confirmable, Code::GET, &[], b""));
        let answer = given(&mut server, &request);
        assert!(answer.len() <= 3 * request.len());
        answers.push((sent, answer));
    }
    // No two nonces are equal, and the first is as good as the last: none is kept.
    let mut nonces: Vec<_> = answers.iter().map(|(_, answer)| kid_context(answer).unwrap()).collect();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 100);
    let (sent, answer) = &mut answers[0];
    answered(&mut begun[0], sent, answer).unwrap();
    is_answered(&mut begun[0], &mut server);
    // Now all others were given before.
    let (sent, answer) = &mut answers[99];
    answered(&mut begun[99], sent, answer).unwrap();
    let (_, request) = protected_request(&mut begun[99], &get("a"));
    given(&mut server, &request);
}

#[test]
fn what_came_under_keys_that_were_replaced_is_not_answered() {
    let (mut before, mut server) = (client(1), server(1));
    derive(&mut before, &mut server);
    let (_, mut came, _) = taken(&mut before, &mut server);
    derive(&mut client(2), &mut server);
    let refused = server.protect_response(&mut came, &parsed(&content(b"1")), &mut Vec::new());
    assert_eq!(refused, Err(ProtectError::Replaced));
}

#[test]
fn what_is_not_authentic_begins_nothing() {
    let mut server = server(1);
    let (_, request) = protected_request(&mut client(1), &get("a"));
    for place in [request.len() - 1, 12] {
        let mut changed = request.clone();
        changed[place] ^= 1;
        assert_eq!(received(&mut server, &changed).unwrap_err(), Refusal::DecryptionFailed);
    }
    // Nor what names no ID context, or is of a client that does not derive keys anew.
    let (mut plain, mut of_plain) = pair(&CLIENT);
    let (_, unnamed) = protected_request(&mut plain, &get("a"));
    assert_eq!(received(&mut server, &unnamed).unwrap_err(), Refusal::UnknownContext);
    // A server that does not is for its own context alone.
    assert_eq!(received(&mut of_plain, &request).unwrap_err(), Refusal::UnknownContext);
    let parameters = CLIENT.mirrored();
    let mut named =
        Context::derive(&millpond_coap::oscore::Parameters { id_context: Some(b"x"), ..parameters }, Start::Fresh);
    assert_eq!(received(named.as_mut().unwrap(), &request).unwrap_err(), Refusal::UnknownContext);
}
