//! The machines of medium access, worked out by hand.

use super::*;

const CONTIKI: Rules = Rules::contiki(4, 4);
const IEEE: Rules = Rules { access: Access::Ieee, ..Rules::contiki(4, 8) };

fn draws(seed: u64) -> (ChanceSeed, Node) {
    (ChanceSeed::new(seed), 3)
}

fn frame(copy: u32, to: Node) -> Frame {
    Frame { carries: Carries::Data, copy, part: 0, number: copy as u8, to, bytes: 96 }
}

fn after(start: Instant, micros: u32) -> Instant {
    start.after(Span::from_micros(micros))
}

/// Wakes the machine until it hands a frame out or one has left; when that is.
fn until_step(mac: &mut Mac, rules: &Rules, seed: u64, ear: Ear) -> (Instant, Step) {
    loop {
        let at = mac.next();
        assert_ne!(at, Instant::NEVER, "it sleeps for good");
        match mac.wake(at, ear, rules, draws(seed)) {
            Step::Wait => {}
            step => return (at, step),
        }
    }
}

#[test]
fn the_first_attempt_is_made_at_once() {
    let (mut mac, start) = (Mac::new(), Instant::from_micros(7));
    mac.offer(start, &[frame(1, 9)], &CONTIKI, draws(1)).unwrap();
    // 128 µs to assess the channel, 192 µs to turn the radio.
    assert_eq!(until_step(&mut mac, &CONTIKI, 1, Ear::default()), (after(start, 320), Step::Send(frame(1, 9))));
}

#[test]
fn waits_climb_the_ladder_of_125_milliseconds_and_end_with_the_fourth_attempt() {
    let mut widest = [0_u32; 3];
    for seed in 0..400 {
        let mut mac = Mac::new();
        mac.offer(Instant::ORIGIN, &[frame(1, 9)], &CONTIKI, draws(seed)).unwrap();
        let mut failed = None;
        for attempt in 0..4 {
            let (at, step) = until_step(&mut mac, &CONTIKI, seed, Ear::default());
            assert_eq!(step, Step::Send(frame(1, 9)));
            if let Some(failed) = failed {
                let waited = at.as_micros() - u64::from(320_u32) - Instant::as_micros(failed);
                let rung: usize = attempt - 1;
                // After the first failure up to 3 timebases, after the second and third up to 4.
                let most = [375_000, 500_000, 500_000][rung];
                assert!((125_000..most).contains(&waited), "{waited} µs after failure {attempt}");
                widest[rung] = widest[rung].max(waited as u32);
            }
            let end = after(at, 3_264);
            assert_eq!(mac.sent(end, &CONTIKI, draws(seed)), Step::Wait);
            // Nothing is heard 0.4 ms later.
            assert_eq!(mac.next(), after(end, 400));
            let step = mac.wake(after(end, 400), Ear::default(), &CONTIKI, draws(seed));
            let given_up = Step::Ended(frame(1, 9), End::NoAck);
            assert_eq!(step, if attempt == 3 { given_up } else { Step::Wait });
            failed = Some(after(end, 400));
        }
        assert_eq!((mac.next(), mac.held()), (Instant::NEVER, 0));
    }
    assert!(widest[0] > 370_000 && widest[1] > 494_000 && widest[2] > 494_000, "{widest:?}");
}

#[test]
fn a_radio_that_receives_is_waited_for_without_end() {
    let mut mac = Mac::new();
    mac.offer(Instant::ORIGIN, &[frame(1, 9)], &CONTIKI, draws(1)).unwrap();
    let receiving = Ear { receiving: true, ..Ear::default() };
    let mut last = Instant::ORIGIN;
    for _ in 0..50 {
        assert_eq!(mac.wake(last, receiving, &CONTIKI, draws(1)), Step::Wait);
        let waits = mac.next().as_micros() - last.as_micros();
        assert!((125_000..250_000).contains(&waits), "{waits}");
        last = mac.next();
    }
    let (_, step) = until_step(&mut mac, &CONTIKI, 1, Ear::default());
    assert_eq!(step, Step::Send(frame(1, 9)));
}

#[test]
fn what_waits_for_a_neighbour_follows_back_to_back_and_after_a_loss_a_timebase_later() {
    let mut mac = Mac::new();
    for copy in 1..=3 {
        mac.offer(Instant::ORIGIN, &[frame(copy, 9)], &CONTIKI, draws(1)).unwrap();
    }
    let (at, _) = until_step(&mut mac, &CONTIKI, 1, Ear::default());
    let end = after(at, 3_264);
    mac.sent(end, &CONTIKI, draws(1));
    // The acknowledgement is being received when the radio is asked, and read 670 µs later.
    let hears = Ear { receiving: true, ..Ear::default() };
    assert_eq!(mac.wake(after(end, 400), hears, &CONTIKI, draws(1)), Step::Wait);
    mac.acknowledged(after(end, 544), 1, true, &CONTIKI, draws(1));
    let known = after(end, 1_070);
    assert_eq!(mac.next(), known);
    let step = mac.wake(known, Ear::default(), &CONTIKI, draws(1));
    assert_eq!(step, Step::Ended(frame(1, 9), End::Acknowledged));
    let (at, step) = until_step(&mut mac, &CONTIKI, 1, Ear::default());
    assert_eq!((at, step), (after(known, 320), Step::Send(frame(2, 9))));
    // Nobody acknowledges the second, ever.
    let mut end = after(at, 3_264);
    mac.sent(end, &CONTIKI, draws(1));
    let dropped = loop {
        match until_step(&mut mac, &CONTIKI, 1, Ear::default()) {
            (at, Step::Send(_)) => {
                end = after(at, 3_264);
                mac.sent(end, &CONTIKI, draws(1));
            }
            (at, step) => {
                assert_eq!(step, Step::Ended(frame(2, 9), End::NoAck));
                break at;
            }
        }
    };
    assert_eq!(mac.next(), after(dropped, 125_000));
}

#[test]
fn in_contiki_26_the_next_of_a_list_waits_a_timebase_and_loading_comes_before_every_attempt() {
    let timebase = Span::from_micros(62_500);
    let rules = Rules { access: Access::Contiki26, timebase, loading: Span::from_micros(2_470), ..CONTIKI };
    let mut mac = Mac::new();
    for copy in 1..=2 {
        mac.offer(Instant::ORIGIN, &[frame(copy, 9)], &rules, draws(1)).unwrap();
    }
    let (at, step) = until_step(&mut mac, &rules, 1, Ear::default());
    assert_eq!((at, step), (after(Instant::ORIGIN, 2_470 + 320), Step::Send(frame(1, 9))));
    mac.sent(at, &rules, draws(1));
    mac.acknowledged(after(at, 300), 1, true, &rules, draws(1));
    let (known, step) = until_step(&mut mac, &rules, 1, Ear::default());
    assert_eq!((known, step), (after(at, 1_070), Step::Ended(frame(1, 9), End::Acknowledged)));
    let (next, _) = until_step(&mut mac, &rules, 1, Ear::default());
    assert_eq!(next, after(known, 62_500 + 2_470 + 320));
    // In 2.7 it follows at once.
    let rules = Rules { access: Access::Contiki27, ..rules };
    mac.offer(next, &[frame(3, 9)], &rules, draws(1)).unwrap();
    mac.sent(next, &rules, draws(1));
    mac.acknowledged(after(next, 300), 2, true, &rules, draws(1));
    let (known, _) = until_step(&mut mac, &rules, 1, Ear::default());
    assert_eq!(until_step(&mut mac, &rules, 1, Ear::default()).0, after(known, 2_470 + 320));
}

#[test]
fn an_acknowledgement_for_somebody_else_counts_as_a_busy_channel() {
    let mut mac = Mac::new();
    mac.offer(Instant::ORIGIN, &[frame(1, 9)], &CONTIKI, draws(1)).unwrap();
    let (at, _) = until_step(&mut mac, &CONTIKI, 1, Ear::default());
    mac.sent(at, &CONTIKI, draws(1));
    mac.acknowledged(after(at, 300), 1, false, &CONTIKI, draws(1));
    assert_eq!(mac.wake(after(at, 400), Ear::default(), &CONTIKI, draws(1)), Step::Wait);
    assert_eq!(mac.wake(after(at, 1_070), Ear::default(), &CONTIKI, draws(1)), Step::Wait);
    assert_eq!(mac.queues[0].tries, 0);
    assert!(mac.next() >= after(at, 126_070));
}

#[test]
fn a_fifth_frame_finds_the_buffers_full_and_a_third_neighbour_no_queue() {
    let mut mac = Mac::new();
    assert_eq!(mac.offer(Instant::ORIGIN, &[frame(1, 7)], &CONTIKI, draws(1)), Ok(()));
    assert_eq!(mac.offer(Instant::ORIGIN, &[frame(2, 8)], &CONTIKI, draws(1)), Ok(()));
    assert_eq!(mac.offer(Instant::ORIGIN, &[frame(3, 9)], &CONTIKI, draws(1)), Err(Refused::Neighbours));
    // Two fragments need a third buffer while they are made.
    let pair = [frame(4, 8), Frame { part: 1, ..frame(4, 8) }];
    let narrow = Rules { buffers: 4, ..CONTIKI };
    assert_eq!(mac.offer(Instant::ORIGIN, &pair, &narrow, draws(1)), Err(Refused::Full));
    assert_eq!(mac.offer(Instant::ORIGIN, &pair, &Rules { buffers: 5, ..narrow }, draws(1)), Ok(()));
    assert_eq!(mac.offer(Instant::ORIGIN, &[frame(5, 7)], &CONTIKI, draws(1)), Err(Refused::Full));
    assert_eq!(mac.held(), 4);
}

#[test]
fn without_acknowledgements_a_frame_is_sent_once() {
    let rules = Rules { attempts: 0, ..CONTIKI };
    let mut mac = Mac::new();
    mac.offer(Instant::ORIGIN, &[frame(1, 9)], &rules, draws(1)).unwrap();
    let (at, _) = until_step(&mut mac, &rules, 1, Ear::default());
    assert_eq!(mac.sent(after(at, 3_264), &rules, draws(1)), Step::Ended(frame(1, 9), End::Sent));
}

#[test]
fn ieee_waits_before_the_first_attempt_and_gives_a_busy_channel_up_after_five() {
    let mut longest = 0;
    for seed in 0..200 {
        let mut mac = Mac::new();
        mac.offer(Instant::ORIGIN, &[frame(1, 9)], &IEEE, draws(seed)).unwrap();
        longest = longest.max(mac.next().as_micros());
        let busy = Ear { carrier: true, ..Ear::default() };
        let mut assessments = 0;
        loop {
            let before = mac.phase;
            match mac.wake(mac.next(), busy, &IEEE, draws(seed)) {
                Step::Wait => assessments += u32::from(matches!(before, Phase::Assessing(..))),
                step => {
                    assert_eq!(step, Step::Ended(frame(1, 9), End::NoChannel));
                    break;
                }
            }
        }
        assert_eq!(assessments + 1, 5);
    }
    // 2³ - 1 units of 320 µs.
    assert_eq!(longest, 2_240);
}

#[test]
fn ieee_knows_of_an_acknowledgement_as_soon_as_it_has_come() {
    let mut mac = Mac::new();
    mac.offer(Instant::ORIGIN, &[frame(1, 9)], &IEEE, draws(1)).unwrap();
    let (at, _) = until_step(&mut mac, &IEEE, 1, Ear::default());
    let end = after(at, 3_264);
    mac.sent(end, &IEEE, draws(1));
    assert_eq!(mac.next(), after(end, 864));
    assert_eq!(mac.acknowledged(after(end, 544), 2, true, &IEEE, draws(1)), Step::Wait);
    let step = mac.acknowledged(after(end, 544), 1, true, &IEEE, draws(1));
    assert_eq!(step, Step::Ended(frame(1, 9), End::Acknowledged));
}

#[test]
fn an_assessment_hears_a_frame_that_ends_within_it() {
    let mut mac = Mac::new();
    mac.offer(Instant::ORIGIN, &[frame(1, 9)], &IEEE, draws(1)).unwrap();
    let busy = Ear { carrier: true, ..Ear::default() };
    assert_eq!(mac.wake(mac.next(), busy, &IEEE, draws(1)), Step::Wait);
    assert_eq!(mac.wake(mac.next(), Ear::default(), &IEEE, draws(1)), Step::Wait);
    assert_eq!((mac.phase, mac.queues[0].busy), (Phase::Idle, 1));
}
