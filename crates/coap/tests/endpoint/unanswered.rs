//! Requests that do not want all responses, or none (No-Response, RFC 7967).

use millpond_coap::Outgoing;
use millpond_coap::message::{Code, Kind, NoResponse, Token, number};
use millpond_control::Wishes;

use crate::pair::{Pair, SECOND, Side, get};

const NOTHING: &[(u16, &[u8])] = &[(number::URI_PATH, b"hello"), (number::NO_RESPONSE, &[NoResponse::ALL.value()])];
const ERRORS: &[(u16, &[u8])] = &[(number::URI_PATH, b"hello"), (number::NO_RESPONSE, &[NoResponse::SUCCESS.value()])];

const CON: Outgoing<'static> = Outgoing::confirmable(Code::PUT, NOTHING);
const NON: Outgoing<'static> = Outgoing::non_confirmable(Code::PUT, NOTHING);

/// Its server leaves unanswered what it is asked.
fn suppressing() -> Pair {
    let mut pair = Pair::usual();
    pair.think = None;
    pair
}

impl Pair {
    /// The server's application leaves the last request unanswered, as its sender wishes.
    fn suppress_response(&mut self) {
        let request = self.handed.take().unwrap();
        self.server.suppress_response(self.now(), request).unwrap();
        self.drain(Side::Server);
    }

    /// The client has answers from the server: PROBING_RATE does not hold.
    fn acquainted(mut self) -> Self {
        self.think = Some(0);
        self.get();
        self.run();
        self.take_log();
        self.think = None;
        self
    }
}

#[test]
fn a_confirmable_request_is_over_once_it_is_acknowledged_and_that_is_a_sample() {
    let mut pair = suppressing();
    pair.ask(&CON).unwrap();
    pair.run_until(SECOND / 20);
    pair.suppress_response();
    pair.run();
    pair.happened(&[
        "0 C sends CON PUT 0",
        "0.05 S has CON PUT 0",
        "0.05 S sends ACK 0",
        "0.1 C has delivered: EmptyAck after 0.1 s",
    ]);
    assert_eq!((pair.client.exchanges(), pair.client.counters().delivered), (0, 1));
}

#[test]
fn with_the_first_copy_or_its_acknowledgement_lost() {
    let mut pair = suppressing().losing([0, 2]);
    pair.ask(&CON).unwrap();
    pair.run_until(2_550_000);
    pair.suppress_response();
    pair.run();
    pair.happened(&[
        "0 C sends CON PUT 0 (lost)",
        "2.5 C sends CON PUT 0 #1",
        "2.55 S has CON PUT 0",
        "2.55 S sends ACK 0 (lost)",
        "7.5 C sends CON PUT 0 #2",
        "7.55 S sends ACK 0",
        "7.6 C has delivered: EmptyAck after 7.6 s",
    ]);
}

#[test]
fn one_that_nobody_acknowledges_or_that_is_cancelled_fails() {
    let mut pair = suppressing().losing(0..5);
    pair.ask(&CON).unwrap();
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "77.5 C fails: GaveUp");
    let exchange = pair.ask(&CON).unwrap();
    assert!(pair.cancel(exchange));
    assert_eq!(pair.client.exchanges(), 0);
    assert!(pair.take_log().last().unwrap().ends_with("C fails: Cancelled"));
}

/// Of a server that does not know the option, or wants to be heard all the same.
#[test]
fn a_response_that_comes_with_or_before_the_acknowledgement_is_told() {
    let mut pair = Pair::usual();
    pair.ask(&CON).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends CON PUT 0",
        "0.05 S has CON PUT 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
    ]);
    let mut pair = suppressing();
    pair.ask(&CON).unwrap();
    pair.take_log();
    pair.inject(Side::Client, b"\x54\x45\x00\x07\0\0\0\0\xffworld");
    pair.happened(&["0 C gets NON Content 7: Separate after 0 s"]);
}

#[test]
fn one_that_comes_later_is_late_and_rejected_if_it_is_confirmable() {
    let mut pair = Pair::usual().thinking(SECOND);
    pair.ask(&CON).unwrap();
    pair.run();
    let log = pair.take_log();
    assert_eq!(
        log[4..],
        [
            "1.05 S sends CON Content 0",
            "1.1 C sends RST 0",
            "1.1 C is told late CON Content 0",
            "1.15 S has not delivered: Reset"
        ]
    );
    let mut pair = Pair::usual();
    pair.answer = Kind::NonConfirmable;
    pair.ask(&NON).unwrap();
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "0.1 C is told late NON Content 0");
}

#[test]
fn a_non_confirmable_request_is_over_once_it_left_and_holds_no_other_kind_back() {
    let mut pair = suppressing().acquainted();
    let start = pair.now;
    pair.ask(&NON).unwrap();
    assert_eq!((pair.client.exchanges(), pair.now), (0, start));
    pair.get();
    let sent = pair.take_log();
    assert!(sent[0].ends_with("C sends NON PUT 1") && sent[1].ends_with("C sends CON GET 2"), "{sent:?}");
}

/// RFC 8085 §3.1.3: nothing comes back, so one in 3 s; to who never answered 1 byte/s as well, of 17 bytes each.
#[test]
fn non_confirmable_ones_are_3_s_apart_and_longer_to_a_peer_that_has_never_answered() {
    for (mut pair, pause) in [(suppressing().acquainted(), 3), (suppressing(), 17)] {
        let start = pair.now;
        for _ in 0..4 {
            pair.ask(&NON).unwrap();
        }
        for count in 1..=4 {
            let sent = pair.take_log().iter().filter(|line| line.contains("C sends NON")).count();
            assert_eq!(sent, 1, "with a pause of {pause} s");
            pair.run_until(start + count * pause * SECOND);
        }
        assert_eq!(pair.client.counters().begun, pair.client.counters().answered);
    }
}

/// What is cancelled before its response came must not be a way around the pause.
#[test]
fn those_that_want_some_responses_are_3_s_apart_too_even_if_they_are_cancelled() {
    let ask = Outgoing::non_confirmable(Code::PUT, ERRORS);
    let mut pair = suppressing().acquainted();
    let start = pair.now;
    for count in 0..3 {
        let exchange = pair.ask(&ask).unwrap();
        assert_eq!(pair.client.awaits_response(exchange), count == 0);
        pair.run_until(start + count * 3 * SECOND);
        assert!(pair.client.awaits_response(exchange));
        assert_eq!(pair.take_log().iter().filter(|line| line.contains("C sends")).count(), 1);
        pair.cancel(exchange);
        pair.take_log();
    }
    // A response of theirs is told as ever.
    pair.think = Some(0);
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ask).unwrap();
    pair.run();
    assert!(pair.take_log().last().unwrap().contains("C gets NON Content"));
}

#[test]
fn a_controller_has_every_nth_leave_confirmably() {
    let mut pair = suppressing().acquainted().wishing(Wishes { confirmable_every: 2, ..Wishes::NONE });
    pair.ask(&NON).unwrap();
    pair.ask(&NON).unwrap();
    pair.run_until(pair.now + SECOND / 20);
    pair.suppress_response();
    pair.run_until(pair.now + SECOND);
    let log = pair.take_log();
    assert!(log.iter().any(|line| line.contains("C sends CON PUT")), "{log:?}");
    assert!(log.last().unwrap().contains("C has delivered"), "{log:?}");
}

#[test]
fn a_reset_is_told_of_either() {
    let mut pair = suppressing();
    pair.ask(&NON).unwrap();
    pair.inject(Side::Client, b"\x70\0\0\0");
    assert_eq!(pair.take_log().last().unwrap(), "0 C is rejected");
    pair.ask(&CON).unwrap();
    pair.inject(Side::Client, b"\x70\0\0\x01");
    assert_eq!(pair.take_log().last().unwrap(), "0 C fails: Reset");
}

/// TOKEN_REUSE_TIME: NON_LIFETIME (137.5 s here), MAX_LATENCY and MAX_SERVER_RESPONSE_DELAY.
#[test]
fn its_token_is_out_of_use_for_who_wants_a_response_until_none_can_come_any_more() {
    let token = Token::new(b"mine");
    let mut pair = suppressing().acquainted();
    let start = pair.now;
    pair.ask(&Outgoing { token, ..NON }).unwrap();
    pair.ask(&Outgoing { token, ..CON }).unwrap();
    assert_eq!(pair.take_log().iter().filter(|line| line.contains("C sends")).count(), 2, "of those that want none");
    pair.run_until(start + SECOND / 20);
    pair.suppress_response();
    pair.run_until(start + SECOND);
    pair.take_log();
    let exchange = pair.ask(&Outgoing { token, ..get() }).unwrap();
    pair.happened(&[]);
    pair.run_until(start + 487_400_000);
    pair.happened(&[]);
    pair.run_until(start + 487_500_000);
    assert!(pair.take_log()[0].contains("C sends CON GET"));
    assert!(pair.cancel(exchange));
}

/// Tokens of one byte come again after 256 requests: those on which a response may come are passed over as long as there are others.
#[test]
fn short_tokens_that_are_out_of_use_are_not_made_for_others() {
    let mut pair = Pair::new(|_, config| config.token_length = 1);
    let mut tokens = |count, request: &Outgoing<'_>, wants_none: bool| -> Vec<u8> {
        let first = pair.datagrams.len();
        pair.think = if wants_none { None } else { Some(0) };
        for _ in 0..count {
            pair.ask(request).unwrap();
            pair.run_until(pair.now + SECOND / 20);
            if wants_none {
                pair.suppress_response();
            }
            pair.run_until(pair.now + SECOND / 20);
        }
        pair.datagrams[first..]
            .iter()
            .filter(|datagram| datagram[1] < 32 && datagram[1] > 0)
            .map(|one| one[4])
            .collect()
    };
    let retired = tokens(100, &CON, true);
    let others = tokens(256, &get(), false);
    assert_eq!((retired.len(), others.len()), (100, 256));
    assert!(others.iter().all(|token| !retired.contains(token)));
    // Where all are out of use, requests go on.
    assert_eq!(tokens(300, &CON, true).len(), 300);
    assert_eq!(tokens(3, &get(), false).len(), 3);
    assert_eq!(pair.client.counters().answered, 259);
}
