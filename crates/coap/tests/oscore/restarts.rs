use millpond_coap::message::{Code, Kind, MessageId, Token, Writer, number};
use millpond_coap::oscore::{Context, OscoreOption, ReceivedRequest, Refusal, Start};

use super::messages::*;

const GAP: u32 = 10;

/// A server that stores its bounds.
fn server(stored: u64) -> (Context, u64) {
    let mut server = Context::derive(&CLIENT.mirrored(), Start::Stored(stored)).unwrap();
    let bound = server.bound_to_store(GAP).unwrap();
    server.bound_is_stored(bound);
    (server, bound)
}

fn challenged(server: &mut Context, request: &[u8]) -> (ReceivedRequest, Vec<u8>) {
    let Err(Refusal::Unsure(mut came)) = received(server, request) else { panic!("not challenged") };
    let mut challenge = Vec::new();
    server
        .challenge(&mut came, Kind::Acknowledgement, MessageId(0x1234), Token::new(b"tok").unwrap(), &mut challenge)
        .unwrap();
    (came, challenge)
}

/// The value of the Echo option that a challenge has, and nothing else.
fn echo_of(plain: &[u8]) -> Vec<u8> {
    let challenge = parsed(plain);
    assert_eq!((challenge.code, challenge.payload()), (Code::UNAUTHORIZED, &[][..]));
    let options: Vec<_> = challenge.options().collect();
    assert_eq!(options.iter().map(|option| option.number).collect::<Vec<_>>(), [number::ECHO]);
    options[0].value.to_vec()
}

fn with_echo(echo: &[u8]) -> Vec<u8> {
    written(Kind::Confirmable, Code::GET, &[(number::URI_PATH, b"a"), (number::ECHO, echo)], b"")
}

#[test]
fn after_a_restart_an_echo_opens_the_window_and_nothing_from_before_is_taken() {
    let (mut client, _) = pair(&CLIENT);
    let (mut before, stored) = server(0);
    let (_, old) = protected_request(&mut client, &get("old"));
    let (_, never_received) = protected_request(&mut client, &get("delayed"));
    received(&mut before, &old).unwrap();

    let (mut after, _) = server(stored);
    for replay in [&old, &never_received] {
        challenged(&mut after, replay);
    }
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let (_, challenge) = challenged(&mut after, &request);
    // It has a Partial IV of its own: the nonce of the request may have been used before the restart.
    let option = OscoreOption::decode(parsed(&challenge).option(number::OSCORE).unwrap()).unwrap();
    assert!(option.partial_iv.is_some());
    let echo = echo_of(&answered(&mut client, &mut sent, &challenge).unwrap());
    let (mut sent, request) = protected_request(&mut client, &with_echo(&echo));
    let (mut came, plain) = received(&mut after, &request).unwrap();
    assert_eq!(plain, with_echo(&echo));
    // It is known to be new, so its nonce is free.
    let response = protected_response(&mut after, &mut came, &content(b"1"));
    assert_eq!(parsed(&response).option(number::OSCORE), Some(&[][..]));
    assert_eq!(answered(&mut client, &mut sent, &response), Ok(content(b"1")));
    for replay in [&old, &never_received, &request] {
        assert_eq!(received(&mut after, replay).unwrap_err(), Refusal::Replay);
    }
    let (_, next) = protected_request(&mut client, &get("next"));
    assert!(received(&mut after, &next).is_ok());
}

#[test]
fn an_echo_of_an_earlier_run_opens_nothing() {
    let (mut client, _) = pair(&CLIENT);
    let (mut first, stored) = server(5);
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let (_, challenge) = challenged(&mut first, &request);
    let echo = echo_of(&answered(&mut client, &mut sent, &challenge).unwrap());
    let (_, answer) = protected_request(&mut client, &with_echo(&echo));

    let (mut second, _) = server(stored);
    challenged(&mut second, &answer);
    // Nor does one that was not given yet, in whatever form.
    for echo in [&[200][..], &[0, 15], &[], &[255; 5], &[1; 8]] {
        let (_, guess) = protected_request(&mut client, &with_echo(echo));
        challenged(&mut second, &guess);
    }
    // The same bytes in the run that gave them do.
    assert!(received(&mut first, &answer).is_ok());
}

#[test]
fn a_challenge_that_was_lost_is_asked_for_again() {
    let (mut client, _) = pair(&CLIENT);
    let (mut server, _) = server(100);
    let mut challenges = Vec::new();
    for _ in 0..3 {
        let (sent, request) = protected_request(&mut client, &get("a"));
        challenges.push((sent, challenged(&mut server, &request).1));
    }
    // Any of them will do.
    let (sent, challenge) = &mut challenges[1];
    let echo = echo_of(&answered(&mut client, sent, challenge).unwrap());
    let (_, request) = protected_request(&mut client, &with_echo(&echo));
    assert!(received(&mut server, &request).is_ok());
}

#[test]
fn an_echo_outside_of_the_ciphertext_opens_nothing() {
    let (mut client, _) = pair(&CLIENT);
    let (mut server, _) = server(100);
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let (_, challenge) = challenged(&mut server, &request);
    let echo = echo_of(&answered(&mut client, &mut sent, &challenge).unwrap());
    let (_, request) = protected_request(&mut client, &get("a"));
    let request = parsed(&request);
    let mut outside = Vec::new();
    let mut writer = Writer::start(&mut outside, request.kind, request.code, request.id, request.token);
    for option in request.options() {
        writer.option(option.number, option.value).unwrap();
    }
    writer.option(number::ECHO, &echo).unwrap().payload(request.payload()).unwrap();
    writer.finish().unwrap();
    challenged(&mut server, &outside);
}

#[test]
fn a_challenge_has_a_number_of_its_own_for_a_new_request_too() {
    let (mut client, mut server) = pair(&CLIENT);
    let (mut sent, request) = protected_request(&mut client, &get("a"));
    let (mut came, _) = received(&mut server, &request).unwrap();
    let mut challenge = Vec::new();
    server.challenge(&mut came, Kind::Acknowledgement, MessageId(1), Token::EMPTY, &mut challenge).unwrap();
    assert_eq!(parsed(&challenge).option(number::OSCORE), Some(&[0x01, 0x00][..]));
    assert_eq!(echo_of(&answered(&mut client, &mut sent, &challenge).unwrap()), [0]);
}
