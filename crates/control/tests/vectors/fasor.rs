//! draft-ietf-core-fasor-02.

use crate::{Peer, assert_near, printed_series, secs};
use millpond_control::{
    Admit, Chance, Class, Controller, End, Fasor, Instant, Named, Naming, Preset, Reason, ReplyKind, Sample, Span,
    fasor::{Echo, GivingUp, Init, Parts, Spread, State},
};

/// Without dither, so that waits are the series itself.
const EVEN: Parts = Parts { spread: Spread::Nothing, ..Parts::DRAFT_02 };

/// The timeout takes four variations, and each step rounds them by half a microsecond.
#[track_caller]
fn near(ours: Option<Span>, printed: &str, what: &str) {
    assert_near(ours, printed, 4_000, what);
}

/// FASOR after samples of 0.6 s and 0.7 s: the fast timeout is 0.9375 s.
fn after_two_samples(parts: Parts) -> Peer<Fasor> {
    let mut peer = Peer::new(Fasor::new(parts));
    peer.learn(0, "0.6");
    peer.learn(0, "0.7");
    assert_eq!(peer.controller.view().rto, Some(secs("0.9375")));
    peer
}

#[test]
fn the_fast_timeout_and_its_dither() {
    let mut peer = Peer::new(Fasor::new(Parts::DRAFT_02));
    for (sample, srtt, rttvar, rto, low, high) in [
        ("0.6", "0.6", "0.075", "0.9", "1.05", "1.5"),
        ("0.7", "0.6125", "0.08125", "0.9375", "1.090625", "1.55"),
        ("1.0", "0.6609375", "0.1578125", "1.2921875", "1.45742188", "1.953125"),
        ("0.7", "0.66582031", "0.128125", "1.17832031", "1.34477539", "1.84414063"),
    ] {
        peer.learn(0, sample);
        let view = peer.controller.view();
        near(view.srtt, srtt, "SRTT");
        near(view.rttvar, rttvar, "RTTVAR");
        near(view.rto, rto, "RTO");
        near(Some(peer.clone().start_drawing(Chance::LOWEST)), low, "the shortest first wait");
        near(Some(peer.clone().start_drawing(Chance::HIGHEST)), high, "the longest first wait");
    }
}

#[test]
fn before_any_sample_a_third_of_the_default_is_the_dither() {
    let mut peer = Peer::new(Fasor::new(Parts::DRAFT_02));
    assert_eq!(peer.start_drawing(Chance::LOWEST), Span::from_micros(2_166_667));
    assert_eq!(peer.wait.reason, Reason::Blind);
    assert_eq!(peer.start_drawing(Chance::HIGHEST), Span::from_micros(2_666_667));
}

#[test]
fn the_pseudo_code_begins_otherwise() {
    let mut peer = Peer::new(Fasor::new(Parts { init: Init::PseudoCode, ..EVEN }));
    for (sample, rto) in [("0.6", "0.9"), ("0.7", "1.6125"), ("1.0", "1.7984375"), ("0.7", "1.55800781")] {
        peer.learn(0, sample);
        near(peer.controller.view().rto, rto, sample);
    }
}

#[test]
fn from_state_to_state() {
    let mut peer = after_two_samples(EVEN);
    assert_eq!(peer.clone().series(Chance::LOWEST, 4), printed_series("0.9375 1.875 3.75 7.5"));
    peer.start();
    assert_eq!(peer.answer_after("3.5"), 2);
    assert_eq!((peer.controller.state(), peer.controller.slow()), (State::FastSlowFast, Some(secs("5.25"))));

    assert_eq!(peer.clone().series(Chance::LOWEST, 4), printed_series("0.9375 5.25 1.875 3.75"));
    peer.start();
    assert_eq!(peer.answer_after("2"), 1);
    assert_eq!((peer.controller.state(), peer.controller.slow()), (State::SlowFast, Some(secs("3"))));

    assert_eq!(peer.clone().series(Chance::LOWEST, 4), printed_series("3 0.9375 1.875 3.75"));
    assert_eq!(peer.controller.view().rto, Some(secs("0.9375")), "no ambiguous sample moved it");
    peer.start();
    assert_eq!(peer.wait.reason, Reason::Slow);
    assert_eq!(peer.answer_after("1"), 0);
    assert_eq!(peer.controller.state(), State::Fast);
    near(peer.controller.view().rto, "1.2921875", "the fast timeout");
}

/// Default CoAP would send two copies too many for ever.
#[test]
fn a_cold_start_on_a_slow_path() {
    let mut peer = Peer::new(Fasor::new(EVEN));
    peer.start();
    assert_eq!(peer.answer_after("9"), 2);
    assert_eq!(peer.controller.slow(), Some(secs("13.5")));
    assert_eq!(peer.clone().series(Chance::LOWEST, 3), printed_series("2 13.5 4"));
    peer.start();
    assert_eq!(peer.answer_after("9"), 1);
    assert_eq!(peer.start(), secs("13.5"));
    assert_eq!(peer.answer_after("9"), 0);
    let view = peer.controller.view();
    assert_eq!((view.srtt, view.rttvar, view.rto), (Some(secs("9")), Some(secs("1.125")), Some(secs("13.5"))));
    peer.start();
    assert_eq!(peer.answer_after("9"), 0);
    assert_eq!(peer.controller.view().rto, Some(secs("12.375")));
}

#[test]
fn a_named_copy_is_a_sample_of_its_own_age() {
    for naming in [Naming::Token, Naming::Count] {
        for (copy, srtt, rttvar, rto) in
            [(2, "0.621875", "0.0796875", "0.940625"), (0, "0.9734375", "0.7828125", "4.1046875")]
        {
            let mut peer = after_two_samples(Parts { naming, ..EVEN });
            peer.start();
            assert_eq!(peer.answer_naming("3.5", Named::Copy(copy)), 2);
            let view = peer.controller.view();
            near(view.srtt, srtt, "SRTT");
            near(view.rttvar, rttvar, "RTTVAR");
            near(view.rto, rto, "RTO");
            assert_eq!((peer.controller.state(), peer.controller.slow()), (State::Fast, None));
        }
    }
}

/// What believes the last copy alone takes the reply to an earlier one for an ambiguous one.
#[test]
fn an_earlier_copy_can_be_distrusted() {
    let mut peer = after_two_samples(Parts { naming: Naming::Token, echo: Echo::ExactOnly, ..EVEN });
    let before = peer.controller.view();
    peer.start();
    peer.answer_naming("3.5", Named::Copy(0));
    assert_eq!(peer.controller.view(), before);
    assert_eq!((peer.controller.state(), peer.controller.slow()), (State::FastSlowFast, Some(secs("5.25"))));
    peer.start();
    assert_eq!(peer.answer_naming("3.5", Named::Copy(1)), 1);
    assert_eq!(peer.controller.state(), State::Fast);
}

/// An exchange draws once, and its whole series hangs on that draw, the doubled wait beside the slow one included.
#[test]
fn one_draw_for_the_whole_series() {
    let mut peer = after_two_samples(Parts::DRAFT_02);
    // F = 1.55 s.
    assert_eq!(peer.clone().series(Chance::HIGHEST, 3), printed_series("1.55 3.1 6.2"));
    peer.start_drawing(Chance::HIGHEST);
    assert_eq!(peer.answer_after("2"), 1);
    assert_eq!(peer.clone().series(Chance::HIGHEST, 4), printed_series("1.55 3.1 3.1 6.2"), "L = 3 s is shorter");
    peer.start_drawing(Chance::HIGHEST);
    assert_eq!(peer.answer_after("2"), 1);
    assert_eq!(peer.clone().series(Chance::HIGHEST, 4), printed_series("3 1.55 3.1 6.2"));
}

/// The series of an exchange stays as it began while others change the peer's state.
#[test]
fn a_running_series_is_not_changed() {
    let mut peer = after_two_samples(EVEN);
    peer.start();
    peer.answer_after("3.5");
    let mut running = peer.clone();
    running.start();
    running.learn(0, "0.6");
    assert_eq!(running.controller.state(), State::Fast);
    assert_eq!([running.wait.span, running.expire(), running.expire()], [secs("0.9375"), secs("5.25"), secs("1.875")]);
}

#[test]
fn caps() {
    let mut peer = Peer::new(Fasor::new(EVEN));
    assert_eq!(peer.series(Chance::LOWEST, 7), printed_series("2 4 8 16 32 60 60"));
    peer.answer_after("200");
    assert_eq!(peer.controller.slow(), Some(secs("247")), "1.5 · 200 s would outlive the exchange");
    // A first wait above the cap stays, and nothing grows from it.
    let mut peer = Peer::new(Fasor::new(Parts { ack_timeout: secs("80"), ..EVEN }));
    assert_eq!(peer.series(Chance::LOWEST, 3), printed_series("80 80 80"));
    // No first wait lies above both caps.
    let mut peer = Peer::new(Fasor::new(Parts { ack_timeout: secs("300"), ..EVEN }));
    assert_eq!(peer.start(), secs("247"));
}

#[test]
fn giving_up() {
    for (giving_up, state, slow) in
        [(GivingUp::StepsDown, State::FastSlowFast, Some(secs("93"))), (GivingUp::ChangesNothing, State::Fast, None)]
    {
        let mut peer = Peer::new(Fasor::new(Parts { giving_up, ..EVEN }));
        peer.start();
        peer.give_up(4);
        assert_eq!((peer.controller.state(), peer.controller.slow()), (state, slow), "62 s without an answer");
    }
}

#[test]
fn a_message_without_acknowledgement_waits_for_the_fast_timeout() {
    let mut peer = after_two_samples(Parts::DRAFT_02);
    let cx = peer.cx(Chance::LOWEST, 0);
    peer.controller.on_plain_send(40, cx);
    assert_eq!(peer.controller.admit(Class::Plain, 40, cx), Admit::At(peer.now.after(secs("0.9375"))));
    assert_eq!(peer.controller.admit(Class::Confirmable, 40, cx), Admit::Now);
    let mut peer = Peer::new(Fasor::new(Parts { ack_timeout: secs("60"), ..Parts::DRAFT_02 }));
    peer.controller.on_plain_send(3, cx);
    assert_eq!(peer.controller.admit(Class::Plain, 40, cx), Admit::At(Instant::ORIGIN.after(secs("3"))));
    assert_eq!(peer.controller.wishes().confirmable_every, 8);
}

#[test]
fn presets_ask_for_their_naming() {
    for (preset, naming) in
        [(Preset::FASOR, Naming::None), (Preset::FASOR_TOKEN, Naming::Token), (Preset::FASOR_COUNT, Naming::Count)]
    {
        assert_eq!(preset.build().wishes().naming, naming);
    }
}

/// What a separate response, a reset or a cancelled exchange teaches: nothing, however many copies there were.
#[test]
fn no_evidence_no_change() {
    let mut peer = after_two_samples(EVEN);
    peer.start();
    peer.expire();
    let (fresh, cx) = (peer.controller, peer.cx(Chance::LOWEST, 1));
    let separate = Sample::new(ReplyKind::Separate, secs("3"), secs("1"), 1);
    peer.controller.on_reply(&peer.exchange, separate, cx);
    assert_eq!(
        (peer.controller.state(), peer.controller.slow(), peer.controller.view()),
        (State::Fast, None, fresh.view())
    );
    for why in [End::Reset, End::Cancelled] {
        peer.controller = fresh;
        peer.controller.on_end(&peer.exchange, why, cx);
        assert_eq!((peer.controller.state(), peer.controller.slow()), (State::Fast, None));
    }
}
