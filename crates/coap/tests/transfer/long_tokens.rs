//! Bodies and observations on tokens of more than 8 bytes (RFC 8974).

use millpond_coap::message::{Code, Message};
use millpond_coap::transfer::ClientRequest;

use crate::pair::{CLIENT, Pair, SECOND, body, get};

/// A client whose tokens have 40 bytes, and a server that takes them.
fn pair() -> Pair {
    Pair::new(|node, endpoint, _| match node {
        CLIENT => endpoint.token_length = 40,
        _ => endpoint.longest_token = 40,
    })
}

/// All messages but those that are empty have such a token.
fn check(pair: &Pair) {
    for (_, _, datagram) in &pair.datagrams {
        let (message, token) = Message::parse_extended(datagram).unwrap();
        assert!(message.code.is_empty() || token.len() == 40, "{message:?}");
    }
}

#[test]
fn bodies_come_and_go_in_blocks() {
    let mut pair = pair();
    pair.application.body = body(3_000);
    pair.get();
    pair.run_for(60 * SECOND);
    assert_eq!(pair.answers(), [(body(3_000), false)]);
    pair.application.echoes = true;
    let sent = body(2_500);
    pair.ask(&ClientRequest::new(Code::PUT, &[]).with_body(&sent));
    pair.run_for(60 * SECOND);
    assert_eq!(pair.answers().last(), Some(&(sent, false)));
    check(&pair);
}

/// A network has 256 places for such tokens.
#[test]
fn an_observation_holds_its_token_whatever_comes_after_it() {
    let mut pair = pair();
    pair.application.body = body(10);
    let ask = pair.ask(&get().observing());
    pair.run_for(SECOND);
    for _ in 0..300 {
        pair.get();
        pair.run_for(SECOND);
    }
    pair.notify(b"news");
    pair.run_for(10 * SECOND);
    assert_eq!(pair.answers().last(), Some(&(b"news".to_vec(), true)));
    assert!(pair.cancel(ask));
    pair.run_for(10 * SECOND);
    assert_eq!(pair.stacks[1].observers(), 0);
    check(&pair);
}
