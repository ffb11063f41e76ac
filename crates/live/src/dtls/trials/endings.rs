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
    assert_eq!(trial.server.sessions.standing(), 1);
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
    assert_eq!((trial.client.sessions.standing(), trial.server.sessions.standing()), (0, 0));
    assert_eq!(trial.client.ended()[1..], ["the session was idle"]);
}

#[test]
fn a_server_that_lost_the_session_is_doubted_and_asked_anew() {
    let (client, server) = (shared("a", "b"), serving(&[("a", "b")]));
    let mut trial = Trial::new(&client, &server);
    trial.connect("x");
    trial.run(SECOND);
    trial.server = Side::new(Keys::Server(ServerKeys::new(&server).unwrap()), None, "192.0.2.2:5684");
    assert!(!trial.talks("x"));
    assert!(matches!(trial.link("x"), Link::Standing(_)), "not yet");
    trial.run(10 * SECOND);
    assert_eq!(trial.link("x"), Link::None);
    trial.connect("x");
    trial.run(SECOND);
    assert!(trial.talks("x"));
    assert_eq!(trial.client.ended(), ["the peer began another session"]);
}
