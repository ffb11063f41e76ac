//! Sessions that end, and those that take their place.

use super::*;

#[test]
fn each_session_has_a_peer_of_its_own_and_the_new_one_counts() {
    let (client, server) = (shared("a", "b"), serving(&[("a", "b")]));
    let mut trial = Trial::new(&client, &server);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let before = trial.server.messages[0].0;
    // The client loses all it knows, and begins anew from the same port.
    trial.client = Side::new(Keys::Client(ClientKeys::new(&client).unwrap()), None, "192.0.2.1:40000");
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let after = trial.server.messages[1].0;
    assert!(after != before && after.peer() == before.peer());
    assert_eq!(trial.server.sessions.established(), 1);
    assert!(!trial.server.sessions.send(trial.at(), before, b"late", &mut trial.server.outbox));
    assert_eq!(trial.server.ended(), ["the peer began another session"]);
}

/// Who begins one after the other would have what they are woken by pile up for an hour.
#[test]
fn of_a_session_whose_place_another_took_nothing_is_left() {
    let (client, server) = (shared("a", "b"), serving(&[("a", "b")]));
    let mut trial = Trial::new(&client, &server);
    let mut held = Vec::new();
    for _ in 0..20 {
        trial.client = Side::new(Keys::Client(ClientKeys::new(&client).unwrap()), None, "192.0.2.1:40000");
        trial.connect("x");
        trial.run(SECOND);
        held.push(trial.server.sessions.woken());
    }
    assert_eq!(held, [1; 20]);
}

#[test]
fn who_closes_tells_the_other_side() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    trial.run(SECOND);
    trial.server.sessions.close_all(trial.at(), &mut trial.server.outbox);
    trial.run(SECOND);
    assert_eq!(trial.client.ended(), ["the peer closed the session"]);
    assert_eq!(trial.link("x"), Link::None);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    // The client closes before the server does.
    trial.run(31 * 60 * SECOND);
    assert_eq!((trial.client.sessions.established(), trial.server.sessions.established()), (0, 0));
    assert_eq!(trial.client.ended()[1..], ["the session was idle"]);
}

/// A client and a server, in whose session something was said.
fn talking() -> Trial {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    trial
}

/// The server begins anew, at the same address.
fn restart(trial: &mut Trial) {
    let server = serving(&[("a", "b")]);
    trial.server = Side::new(Keys::Server(ServerKeys::new(&server).unwrap()), None, "192.0.2.2:5684");
}

fn ask(trial: &mut Trial) {
    let Link::Established(server) = trial.link("x") else { panic!("no session") };
    let now = trial.at();
    assert!(trial.client.sessions.send(now, server, QUESTION, &mut trial.client.outbox));
}

const LOST: &str = "the server knew its session no more, as after a restart; another one stands now";

#[test]
fn a_server_that_lost_its_sessions_says_so_and_gets_another_one_at_once() {
    let mut trial = talking();
    restart(&mut trial);
    ask(&mut trial);
    // What is sent once more on the way to the new session does no harm.
    trial.run(SECOND / 5);
    assert_eq!(trial.link("x"), Link::Handshaking);
    let (now, server) = (trial.at(), trial.client.sessions.inside(trial.server.address).unwrap());
    assert!(trial.client.sessions.send(now, server, QUESTION, &mut trial.client.outbox));
    trial.run(SECOND);
    assert_eq!(trial.client.ended(), [LOST]);
    assert!(trial.talks("x"));
    assert_eq!((trial.client.sessions.established(), trial.server.sessions.established()), (1, 1));
}

#[test]
fn a_server_that_lost_its_sessions_and_is_silent_about_it_is_found_out_after_a_while() {
    let mut trial = talking();
    restart(&mut trial);
    // The question is the next that is sent, and then what the server says of it.
    trial.lost.push(trial.sent + 1);
    ask(&mut trial);
    trial.run(9 * SECOND);
    assert!(matches!(trial.link("x"), Link::Established(_)), "not yet");
    trial.run(9 * SECOND);
    // The next request would begin another one, and without one nothing happens yet.
    assert_eq!((trial.link("x"), trial.client.ended()), (Link::None, vec![]));
    trial.run(4 * SECOND);
    assert_eq!(trial.client.ended(), [LOST]);
    assert!(trial.talks("x"));
}

#[test]
fn a_forged_word_that_a_session_is_lost_ends_nothing_and_costs_little() {
    let mut trial = talking();
    let alert = crate::dtls::record::fatal_alert(0, 10);
    for _ in 0..20 {
        ask(&mut trial);
        for _ in 0..100 {
            let (now, server) = (trial.at(), trial.server.address);
            trial.client.receive(now, server, &alert);
        }
        let known = trial.server.messages.len();
        trial.run(60_000);
        let (now, (client, _)) = (trial.at(), trial.server.messages[known].clone());
        assert!(trial.server.sessions.send(now, client, b"answer", &mut trial.server.outbox));
        trial.run(SECOND);
        assert_eq!(trial.client.sessions.handshakes(), 0);
    }
    assert_eq!((trial.client.ended(), trial.server.ended()), (vec![], vec![]));
    // Another one is begun once in 20 s at most, and who waited for it is told that the first stands.
    let resumed = trial.client.events.iter().filter(|event| matches!(event.what, SessionChange::Resumed)).count();
    assert!((1..=2).contains(&resumed), "{resumed}");
    assert!(trial.talks("x"));
}

#[test]
fn what_need_not_be_answered_and_was_not_says_nothing_of_a_session() {
    let mut trial = talking();
    let Link::Established(server) = trial.link("x") else { panic!("no session") };
    let now = trial.at();
    // An acknowledgement.
    assert!(trial.client.sessions.send(now, server, b"\x60\0\0\x01", &mut trial.client.outbox));
    trial.run(60 * SECOND);
    assert!(matches!(trial.link("x"), Link::Established(_)));
    assert_eq!(trial.client.sessions.handshakes(), 0);
}

#[test]
fn where_nobody_answers_handshakes_end_with_what_was_asked() {
    let mut trial = talking();
    ask(&mut trial);
    // The path is cut.
    trial.lost.extend(trial.sent..trial.sent + 1_000);
    let began = trial.sent;
    trial.run(600 * SECOND);
    assert_eq!(trial.client.sessions.established(), 1, "it may be well still");
    assert!(trial.sent - began <= 1 + 6, "{} datagrams: the question, and one handshake", trial.sent - began);
}
