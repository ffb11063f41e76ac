//! Calm: what docs/calm.md states, worked out by hand.

use crate::{Peer, printed_series, secs};
use millpond_control::{
    Admit, AnyController, Calm, Chance, Class, Controller, Cx, Exchange, Named, Naming, Preset, Reason, ReplyKind,
    Sample, Span,
    calm::{Parts, Without},
};

const RTT: &str = "0.24";

fn peer() -> Peer<Calm> {
    Peer::new(Calm::new(Parts::UNLIMITED))
}

/// A peer whose round trips were all of this length, with no queue in sight.
fn measured(rtt: &str) -> Peer<Calm> {
    let mut peer = peer();
    for _ in 0..8 {
        peer.start();
        peer.answer_after(rtt);
        peer.now = peer.now.after(Span::from_secs(1));
    }
    peer
}

#[test]
fn an_unknown_peer_waits_as_rfc_7252_has_it_and_then_longer() {
    assert_eq!(peer().start_drawing(Chance::LOWEST), secs("2"));
    assert_eq!(peer().start_drawing(Chance::HIGHEST), secs("3"));
    // 2, then 4 twice, then 1.5, up to 120 s.
    assert_eq!(peer().series(Chance::LOWEST, 6), printed_series("2 4 16 64 96 120"));
    assert_eq!(peer().controller.wishes().naming, Naming::Token);
}

#[test]
fn a_measured_peer_without_a_queue_waits_a_little_longer_than_a_round_trip() {
    let mut peer = measured(RTT);
    // SRTT 240 ms; RTTVAR, 60 ms at first, has shrunk by a quarter seven times; four of it are 32.036 ms.
    assert_eq!(peer.controller.view().srtt, Some(secs(RTT)));
    let rto = peer.controller.view().rto.expect("a timeout");
    assert_eq!(rto, secs("0.272036"));
    // 1.5, 2, 2, and from the fourth expiry on 1.5.
    let series = printed_series("0.272036 0.408054 0.816108 1.632216 2.448324");
    assert_eq!(peer.series(Chance::LOWEST, 5), series);
    assert_eq!(measured(RTT).start_drawing(Chance::HIGHEST), rto.plus(Span::from_millis(24)), "a tenth of SRTT");
}

/// A name proves it, and so does that the answer came when one to the last copy would have.
#[test]
fn random_loss_without_a_queue_leaves_no_backoff_behind() {
    for named in [Named::Copy(2), Named::Nothing] {
        let mut peer = measured(RTT);
        for _ in 0..6 {
            peer.start();
            peer.expire();
            peer.expire();
            let waited = peer.now.since(peer.started).plus(secs(RTT));
            let text = format!("{}.{:06}", waited.as_micros() / 1_000_000, waited.as_micros() % 1_000_000);
            assert_eq!(peer.answer_naming(&text, named), 2);
            assert_eq!(peer.controller.view().carried, None, "{named:?}");
            peer.now = peer.now.after(Span::from_secs(5));
        }
        assert!(peer.controller.loss() >= 500, "{}", peer.controller.loss());
    }
}

/// An answer that comes too soon or too late for the last copy, and names none, may be one to an earlier copy through a queue.
#[test]
fn a_reply_without_a_name_that_fits_no_copy_leaves_the_backoff() {
    for late in ["0.1", "0.6"] {
        let mut peer = measured(RTT);
        peer.start();
        let wait = peer.expire();
        let waited = peer.now.since(peer.started).plus(secs(late));
        peer.wait.span = Span::from_secs(60);
        peer.answer_naming(&format!("0.{:06}", waited.as_micros()), Named::Nothing);
        assert_eq!(peer.controller.view().carried, Some(wait), "{late}");
    }
}

#[test]
fn a_reply_after_a_long_round_trip_keeps_the_backoff() {
    let mut peer = measured(RTT);
    peer.start();
    peer.expire();
    peer.answer_naming("3", Named::Copy(1));
    let carried = peer.controller.view().carried;
    assert!(carried.is_some_and(|kept| kept >= secs("0.4")), "{carried:?}");
    assert_eq!(peer.wait.reason, Reason::BackedOff);
}

/// A server that stores replies names the first copy it saw, whichever reply got through.
#[test]
fn a_stored_reply_is_no_sample() {
    let mut doubtful = measured(RTT);
    doubtful.start();
    doubtful.series(Chance::LOWEST, 3);
    let before = doubtful.controller.view();
    let waited = doubtful.now.since(doubtful.started).plus(secs(RTT));
    let text = format!("0.{:06}", waited.as_micros());
    doubtful.answer_naming(&text, Named::Copy(0));
    assert_eq!(doubtful.controller.view().srtt, before.srtt, "the third copy fits as well");

    let mut believing = Peer::new(Calm::new(Parts { without: Without::Grades, ..Parts::UNLIMITED }));
    believing.learn(0, RTT);
    believing.start();
    believing.expire();
    believing.answer_naming("1.2", Named::Copy(0));
    assert!(believing.controller.view().srtt > Some(secs(RTT)), "without the rule it is believed");
}

/// A reply that is stored comes sooner than one that has to be made: here the server takes 100 ms for the first copy of a request, and the
/// answer to it is lost in every third exchange. What its name dates back to includes the wait of the client, which so would lengthen itself.
#[test]
fn timeouts_do_not_grow_where_a_slow_server_sends_stored_replies_again() {
    let mut peer = measured(RTT);
    for exchange in 0..300 {
        let first = peer.start();
        assert!(first < secs("1"), "after {exchange} exchanges: {first}");
        if exchange % 3 == 0 {
            peer.expire();
            let again = peer.now.since(peer.started).plus(secs("0.14"));
            peer.answer_naming(&format!("0.{:06}", again.as_micros()), Named::Copy(0));
        } else {
            peer.answer_after(RTT);
        }
        peer.now = peer.now.after(Span::from_secs(1));
    }
}

#[test]
fn requests_are_held_back_while_a_queue_stands() {
    let mut peer = measured(RTT);
    for _ in 0..4 {
        peer.start();
        peer.answer_after("0.24");
    }
    assert_eq!(admit(&peer), Admit::Now);
    for _ in 0..4 {
        peer.start();
        // Answers take 10 s: longer than any wait, so that no copy leaves before.
        peer.wait.span = secs("11");
        peer.answer_after("10");
    }
    // 16 times (10 s - 2 s) is more than 8 round trips; the lowest draw is half of that.
    assert_eq!(admit(&peer), Admit::At(peer.now.after(secs("40"))));
}

/// One short round trip says that the queue is gone.
#[test]
fn one_short_round_trip_ends_the_pauses() {
    let mut peer = measured(RTT);
    for rtt in ["10", "10", "10", "10", "0.3"] {
        peer.now = peer.now.after(Span::from_secs(300));
        peer.start();
        peer.wait.span = secs("11");
        peer.answer_after(rtt);
    }
    assert_eq!(admit(&peer), Admit::Now);
}

/// RFC 3168 §6.1.2, of a congestion window of one: the next leaves when the retransmission timer would have expired; and each round trip
/// with a mark doubles that.
#[test]
fn an_answer_that_was_marked_is_as_good_as_lost() {
    let answer = |peer: &mut Peer<Calm>, exchange: &Exchange, is_marked: bool| {
        let sample = Sample::new(ReplyKind::Piggybacked, secs(RTT), secs(RTT), 0);
        let sample = if is_marked { sample.marked() } else { sample };
        peer.controller.on_reply(exchange, sample, Cx::new(peer.now, Chance::MIDDLE));
        match admit(peer) {
            Admit::At(at) => at.since(peer.now),
            Admit::Now | Admit::WhenOneEnds => Span::ZERO,
        }
    };
    let mut peer = measured(RTT);
    let (loss, mut last) = (peer.controller.loss(), Span::ZERO);
    for round in 0..6 {
        peer.now = peer.now.after(last);
        let wait = peer.start_drawing(Chance::LOWEST);
        let exchange = peer.exchange;
        peer.now = peer.now.after(secs(RTT));
        let held = answer(&mut peer, &exchange, true);
        let expected = if round == 0 { wait } else { last.doubled() };
        assert!(held.distance(expected) <= Span::from_micros(2), "{round}: {held}, not {expected}");
        // Another, that left with it and is marked too: once a round trip.
        assert_eq!(answer(&mut peer, &exchange, true), held);
        last = held;
    }
    assert!(peer.controller.loss() < loss, "nothing was lost");
    peer.now = peer.now.after(last);
    peer.start();
    let exchange = peer.exchange;
    assert_eq!(answer(&mut peer, &exchange, false), Span::ZERO, "without a mark it is over");
}

/// Half of all copies are lost beside a queue: a window of eight closes to one, and opens again when losses are rare.
#[test]
fn while_loss_looks_like_congestion_one_request_is_open_at_a_time() {
    let admit = |peer: &Peer<Calm>, open| {
        let cx = Cx { open, ..Cx::new(peer.now, Chance::LOWEST) };
        [Class::Confirmable, Class::Plain].map(|class| peer.controller.admit(class, 40, cx))
    };
    let lose = |peer: &mut Peer<Calm>, copies: u8, rtt: &str| {
        for _ in 0..6 {
            peer.series(Chance::LOWEST, usize::from(copies) + 1);
            // No retransmission leaves before the answer.
            peer.wait.span = secs("11");
            let waited = peer.now.since(peer.started).plus(secs(rtt));
            let text = format!("{}.{:06}", waited.as_micros() / 1_000_000, waited.as_micros() % 1_000_000);
            peer.answer_naming(&text, Named::Copy(copies));
        }
    };
    let mut peer = measured(RTT);
    assert_eq!(admit(&peer, 8), [Admit::Now; 2]);
    lose(&mut peer, 1, RTT);
    assert_eq!(admit(&peer, 8), [Admit::Now; 2], "loss alone is no congestion");
    lose(&mut peer, 1, "0.4");
    assert_eq!(admit(&peer, 8), [Admit::WhenOneEnds, Admit::Now]);
    assert_eq!(admit(&peer, 1), [Admit::Now; 2], "nothing else is open");
    lose(&mut peer, 0, "0.4");
    assert_eq!(admit(&peer, 2), [Admit::Now; 2], "delay alone is none either");
}

/// Where every answer comes at once, nothing tells that the next may take its time.
#[test]
fn no_wait_is_shorter_than_the_least() {
    let mut peer = Peer::new(Calm::new(Parts::CALM));
    for _ in 0..8 {
        peer.start();
        peer.answer_after("0.001");
    }
    assert_eq!(peer.controller.view().rto, Some(secs("0.021")));
    // 1.5, 2 and 2 times the least, and from the fourth expiry on 1.5.
    assert_eq!(peer.series(Chance::LOWEST, 5), printed_series("0.2 0.3 0.6 1.2 1.8"));
}

#[test]
fn patience_bounds_the_steps() {
    let parts = Parts::CALM;
    // Twice at most, and from the fourth expiry on 1.5.
    assert_eq!(Peer::new(Calm::new(parts)).series(Chance::LOWEST, 5), printed_series("2 4 8 16 24"));
}

/// As with RFC 7252, whose fifth wait is sixteen times ACK_TIMEOUT; no other preset wishes anything of that kind.
#[test]
fn an_answer_to_the_last_copy_is_awaited_for_as_long_as_with_the_timer_of_the_standard() {
    let last_wait = |parts| Calm::new(parts).wishes().last_wait;
    assert_eq!(last_wait(Parts::UNLIMITED), secs("32"));
    assert_eq!(last_wait(Parts { ack_timeout: secs("1.5"), ..Parts::CALM }), secs("24"));
    assert_eq!(last_wait(Parts { max_wait: secs("20"), ..Parts::UNLIMITED }), secs("20"));
    for preset in Preset::all().filter(|preset| preset.family() != "calm") {
        assert_eq!(preset.build().wishes().last_wait, Span::ZERO, "{}", preset.name());
    }
}

/// Nothing is learnt from it but that the exchange took long.
#[test]
fn a_reply_that_names_a_copy_never_sent_names_nothing() {
    let mut liar = measured(RTT);
    let mut silent = liar.clone();
    for peer in [&mut liar, &mut silent] {
        peer.series(Chance::LOWEST, 2);
    }
    // Two copies were sent; the helper asks when the ninth left, which nobody knows.
    liar.copies.resize(10, liar.started);
    liar.answer_naming("0.9", Named::Copy(9));
    silent.answer_naming("0.9", Named::Nothing);
    assert_eq!(liar.controller, silent.controller);
}

/// One that always names the first copy, in time for the last: stored replies, or lies.
#[test]
fn a_peer_that_lies_in_names_moves_no_estimate_and_no_wait_beyond_the_cap() {
    let mut peer = measured(RTT);
    let before = peer.controller.view();
    for _ in 0..50 {
        for wait in peer.series(Chance::HIGHEST, 4) {
            assert!(wait <= secs("60"), "{wait}");
        }
        let waited = peer.now.since(peer.started).plus(secs(RTT));
        let text = format!("{}.{:06}", waited.as_micros() / 1_000_000, waited.as_micros() % 1_000_000);
        peer.answer_naming(&text, Named::Copy(0));
        let view = peer.controller.view();
        assert_eq!((view.srtt, view.rttvar), (before.srtt, before.rttvar));
        match admit(&peer) {
            Admit::Now => {}
            Admit::At(at) => assert!(at <= peer.now.after(secs("1.5")), "held back until {at:?}"),
            Admit::WhenOneEnds => panic!("nothing is open"),
        }
        peer.now = peer.now.after(secs("2"));
    }
}

#[test]
fn ten_minutes_of_silence_forget_everything() {
    let mut peer = measured("1.5");
    peer.now = peer.now.after(Span::from_secs(601));
    assert_eq!(peer.start_drawing(Chance::LOWEST), secs("2"));
    assert_eq!(peer.wait.reason, Reason::Blind);
}

/// A peer that remembers this base round trip from an earlier life.
fn remembering(base_rtt: &str) -> Peer<Calm> {
    let mut peer = peer();
    peer.controller.recall(secs(base_rtt));
    peer
}

/// An exchange whose answer comes after so long, before its first wait is over, five minutes after the one before.
fn answered_in_time(peer: &mut Peer<Calm>, rtt: &str) {
    peer.now = peer.now.after(Span::from_secs(300));
    peer.start();
    peer.wait.span = secs(rtt).plus(Span::from_secs(1));
    peer.answer_after(rtt);
}

#[test]
fn what_is_remembered_is_no_measurement() {
    let mut peer = remembering("0.24");
    assert_eq!(peer.controller.base_rtt(), None, "it is not handed on as if it were new");
    assert_eq!(peer.controller.view(), Calm::new(Parts::UNLIMITED).view());
    assert_eq!(
        peer.series(Chance::LOWEST, 6),
        printed_series("2 4 16 64 96 120"),
        "waits are those of an unknown peer"
    );
}

/// 10 s where 0.24 s were remembered: 9.76 s of queue, of which a sixty-fourth is believed to be the path's.
#[test]
fn what_is_remembered_tells_a_queue_from_a_long_path_at_the_first_answer() {
    let (mut fresh, mut peer) = (self::peer(), remembering("0.24"));
    for peer in [&mut fresh, &mut peer] {
        answered_in_time(peer, "10");
    }
    assert_eq!(fresh.controller.base_rtt(), Some(secs("10")));
    assert_eq!(admit(&fresh), Admit::Now);
    assert_eq!(peer.controller.base_rtt(), Some(secs("0.3925")));
    // One round trip, as 16 times (10 s - 2 s) is more; the lowest draw is half of that.
    assert_eq!(admit(&peer), Admit::At(peer.now.after(secs("5"))));
    assert_eq!(peer.controller.view(), fresh.controller.view(), "estimates are those of the samples");
    // From the second on 8.
    answered_in_time(&mut peer, "10");
    assert_eq!(admit(&peer), Admit::At(peer.now.after(secs("40"))));
}

/// The same where a guess, which is no certain sample, comes first.
#[test]
fn what_is_remembered_outlives_a_guess() {
    let mut peer = remembering("0.24");
    peer.start();
    peer.expire();
    peer.expire();
    peer.answer_naming("9", Named::Copy(0));
    assert_eq!((peer.controller.view().srtt, peer.controller.base_rtt()), (Some(secs("9")), None));
    answered_in_time(&mut peer, "10");
    assert_eq!(peer.controller.base_rtt(), Some(secs("0.3925")));
}

#[test]
fn what_is_remembered_too_long_or_too_late_or_is_nothing_changes_nothing() {
    let mut fresh = peer();
    answered_in_time(&mut fresh, "1");
    for absurd in [Span::ZERO, secs("1"), secs("1.000001"), secs("100"), Span::MAX] {
        let mut peer = peer();
        peer.controller.recall(absurd);
        answered_in_time(&mut peer, "1");
        assert_eq!(peer.controller, fresh.controller, "{absurd}");
    }
    let mut late = fresh.clone();
    late.controller.recall(secs("0.001"));
    assert_eq!(late.controller, fresh.controller);
}

/// The path has 5 s now, and no queue. least(n) = 5 s - 4.76 s (63/64)^n: requests are held back until 1.5 of that are 5 s,
/// after 67 answers, and from the second on for 8 round trips until 16 (5 s - 1.5 least) is less than that, after 23. From a
/// microsecond it is 5 s (1 - (63/64)^n), and 70 answers and 26.
#[test]
fn what_is_remembered_of_a_path_that_became_longer_ages() {
    for (remembered, held, longest) in [("0.24", 66, 21), ("0.000001", 69, 24)] {
        let mut peer = remembering(remembered);
        let (mut pauses, mut full) = (0, 0);
        for answers in 1..=100 {
            answered_in_time(&mut peer, "5");
            let Admit::At(at) = admit(&peer) else { continue };
            assert_eq!(pauses, answers - 1, "once over they do not come back");
            pauses = answers;
            full += usize::from(at == peer.now.after(secs("20")));
        }
        assert_eq!((pauses, full), (held, longest), "{remembered}");
    }
}

/// Where round trips are below 2 s, however much shorter than they are it is remembered, nothing is held back.
#[test]
fn an_absurdly_short_memory_of_a_fast_path_costs_nothing_without_loss() {
    let (mut fresh, mut peer) = (self::peer(), remembering("0.000001"));
    for rtt in ["1.9", "1.2", "1.9", "1.5", "1.9", "1.9"] {
        for peer in [&mut fresh, &mut peer] {
            answered_in_time(peer, rtt);
            assert_eq!(admit(peer), Admit::Now);
        }
        assert_eq!(peer.controller.view(), fresh.controller.view());
    }
}

#[test]
fn the_preset_is_what_the_page_says() {
    for (preset, parts) in [(Preset::CALM, Parts::CALM), (Preset::CALM_UNLIMITED, Parts::UNLIMITED)] {
        assert_eq!(preset.build(), AnyController::Calm(Calm::new(parts)));
    }
}

fn admit(peer: &Peer<Calm>) -> Admit {
    peer.controller.admit(Class::Confirmable, 40, Cx::new(peer.now, Chance::LOWEST))
}

/// Answers come a second after the request, over a path of 0.24 s, and name the first copy or the last whichever they
/// answer. Waits stay below their cap, and after some forty honest answers at most nothing of it is left.
#[test]
fn abuse_by_a_peer_that_lies_in_echoed_names() {
    let exchange = |peer: &mut Peer<Calm>, names_last: bool| {
        peer.start();
        let end = peer.started.after(secs("1"));
        let mut longest = peer.wait.span;
        // MAX_RETRANSMIT of RFC 7252.
        while peer.now.after(peer.wait.span) < end && peer.copies.len() < 5 {
            longest = longest.max(peer.expire());
        }
        peer.wait.span = Span::from_secs(60);
        let last = peer.copies.len() as u8 - 1;
        peer.answer_naming("1", Named::Copy(if names_last { last } else { 0 }));
        peer.now = peer.now.after(Span::from_secs(300));
        longest
    };
    for names_last in [false, true] {
        let mut peer = measured(RTT);
        for _ in 0..200 {
            let longest = exchange(&mut peer, names_last);
            assert!(longest <= secs("60"), "{longest}");
        }
        let mut honest = 0;
        while peer.start() > secs("0.6") || peer.wait.span < secs(RTT) {
            peer.answer_after(RTT);
            peer.now = peer.now.after(Span::from_secs(300));
            honest += 1;
            assert!(honest <= 40, "{:?}", peer.controller.view());
        }
        println!("names the {}: {honest} honest answers", if names_last { "last" } else { "first" });
    }
}
