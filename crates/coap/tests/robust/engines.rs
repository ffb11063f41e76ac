//! Q-Block1 and Q-Block2 (RFC 9177): sets, pauses, complaints, and giving up.

use alloc::vec::Vec;

use crate::block::robust::{
    Accepted, BurstParameters, BurstReceiver, BurstSender, Feedback, Leaving, Receipt, ReceiverAction, missing_blocks,
    read_missing_blocks,
};
use crate::block::{Block, BlockSize};
use millpond_control::{Chance, Instant, Span};
use proptest::prelude::*;

use super::world::body;

const PARAMETERS: BurstParameters = BurstParameters::RFC9177;
const PACED: BurstParameters = BurstParameters { paced: true, ..PARAMETERS };
const PAUSE: Span = Span::from_millis(2_500);

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

/// What leaves at once, and until when nothing more does.
fn burst(sender: &mut BurstSender, now: Instant) -> (Vec<u32>, Option<Instant>) {
    let mut numbers = Vec::new();
    loop {
        match sender.poll(now) {
            Leaving::Block { number, .. } => numbers.push(number),
            Leaving::Wait(until) => return (numbers, Some(until)),
            Leaving::Nothing => return (numbers, None),
        }
    }
}

fn receiver(total: u32) -> BurstReceiver {
    BurstReceiver::new(PARAMETERS, BlockSize::B16, total, 100_000, at(0)).unwrap()
}

fn take(receiver: &mut BurstReceiver, now: Instant, body: &[u8], number: u32) -> Accepted {
    let start = number as usize * 16;
    let payload = &body[start..(start + 16).min(body.len())];
    let block = Block { number, more: start + payload.len() < body.len(), size: BlockSize::B16 };
    receiver.take(now, &Receipt { block, total: body.len() as u32, payload })
}

#[test]
fn a_pause_is_drawn_once_between_one_and_one_and_a_half() {
    assert_eq!(PARAMETERS.drawn_pause(Chance::LOWEST), Span::from_secs(2));
    assert_eq!(PARAMETERS.drawn_pause(Chance::HIGHEST), Span::from_secs(3));
}

#[test]
fn sets_of_ten_with_pauses_unless_told_to_go_on() {
    let mut sender = BurstSender::new(PARAMETERS, 25, PAUSE);
    assert_eq!(burst(&mut sender, at(0)), ((0..10).collect(), Some(at(2_500))));
    assert_eq!(burst(&mut sender, at(2_499)).0, []);
    sender.feedback(at(700), Feedback::GoOn(10));
    assert_eq!(burst(&mut sender, at(700)).0, (10..20).collect::<Vec<_>>());
    // An old "go on" changes nothing.
    sender.feedback(at(800), Feedback::GoOn(10));
    assert_eq!(burst(&mut sender, at(800)).0, []);
    assert_eq!(burst(&mut sender, at(3_200)), ((20..25).collect(), None));
    assert!(sender.has_sent_all());
}

#[test]
fn what_is_missing_leaves_first_and_each_block_once() {
    let mut sender = BurstSender::new(PARAMETERS, 25, PAUSE);
    burst(&mut sender, at(0));
    sender.feedback(at(100), Feedback::Missing(&[2, 5, 99]));
    sender.feedback(at(100), Feedback::Missing(&[5]));
    assert_eq!(burst(&mut sender, at(100)), (vec![2, 5], Some(at(2_600))), "another pause; 99 is no part");
    // What was never sent is not missing, but may leave now.
    sender.feedback(at(200), Feedback::Missing(&[12]));
    assert_eq!(burst(&mut sender, at(200)).0, (10..20).collect::<Vec<_>>());
}

#[test]
fn one_block_and_the_rest_of_a_set() {
    let mut sender = BurstSender::resting(PARAMETERS, 25, PAUSE, Instant::ORIGIN);
    assert_eq!(burst(&mut sender, at(0)), (vec![], None), "nothing that was not asked for");
    sender.only(7);
    assert_eq!(burst(&mut sender, at(0)), (vec![7], None));
    sender.rest_of_set(Instant::ORIGIN, 17);
    assert_eq!(burst(&mut sender, at(0)).0, [17, 18, 19]);
    sender.feedback(at(100), Feedback::GoOn(20));
    assert_eq!(burst(&mut sender, at(100)), ((20..25).collect(), None));
}

/// What is sent again is under the pause too, a set of it at a time (RFC 9177 §7.2).
#[test]
fn sets_of_repetitions_are_a_pause_apart() {
    let mut sender = BurstSender::new(PARAMETERS, 25, PAUSE);
    sender.feedback(at(0), Feedback::GoOn(25));
    let all: Vec<u32> = (0..25).collect();
    sender.feedback(at(0), Feedback::Missing(&all));
    assert_eq!(burst(&mut sender, at(0)), ((0..10).collect(), Some(at(2_500))));
    assert_eq!(burst(&mut sender, at(2_500)), ((10..20).collect(), Some(at(5_000))));
    assert_eq!(burst(&mut sender, at(5_000)), ((20..25).collect(), None));
}

#[test]
fn a_whole_set_is_told_at_once() {
    let (mut receiver, body) = (receiver(400), body(400));
    for number in 0..9 {
        assert_eq!(take(&mut receiver, at(10), &body, number), Accepted::Kept);
        assert_eq!(receiver.poll(at(10)), ReceiverAction::Wait(at(4_010)));
    }
    take(&mut receiver, at(10), &body, 9);
    assert_eq!(receiver.poll(at(10)), ReceiverAction::GoOn(10));
    assert_eq!(receiver.poll(at(10)), ReceiverAction::Wait(at(4_010)));
    assert_eq!(take(&mut receiver, at(11), &body, 9), Accepted::Repeated);
    for number in 10..25 {
        take(&mut receiver, at(20), &body, number);
    }
    assert!(receiver.is_whole());
    assert_eq!(receiver.into_body(), body);
}

/// The first block of the next set shows the gaps of the earlier ones.
#[test]
fn gaps_are_told_with_the_next_set() {
    let (mut receiver, body) = (receiver(400), body(400));
    for number in [0, 1, 3, 4, 5, 6, 8, 9, 10] {
        take(&mut receiver, at(10), &body, number);
        if number < 10 {
            assert_eq!(receiver.poll(at(10)), ReceiverAction::Wait(at(4_010)));
        }
    }
    assert_eq!(receiver.poll(at(10)), ReceiverAction::Missing(vec![2, 7]));
    assert_eq!(receiver.poll(at(10)), ReceiverAction::Wait(at(4_010)), "once");
}

/// After silence: 4 s, then 8, 16, 32 more, then it is over.
#[test]
fn silence_is_complained_about_and_then_given_up() {
    let (mut receiver, body) = (receiver(400), body(400));
    for number in [0, 1, 3] {
        take(&mut receiver, at(0), &body, number);
    }
    let missing = ReceiverAction::Missing(vec![2, 4, 5, 6, 7, 8, 9]);
    for (due, next) in [(4_000, 12_000), (12_000, 28_000), (28_000, 60_000), (60_000, 124_000)] {
        assert_eq!(receiver.poll(at(due - 1)), ReceiverAction::Wait(at(due)));
        assert_eq!(receiver.poll(at(due)), missing);
        assert_eq!(receiver.poll(at(due)), ReceiverAction::Wait(at(next)));
    }
    assert_eq!(receiver.poll(at(124_000)), ReceiverAction::GiveUp);
}

/// Something that comes starts the patience afresh.
#[test]
fn an_answer_starts_the_patience_afresh() {
    let (mut receiver, body) = (receiver(400), body(400));
    take(&mut receiver, at(0), &body, 0);
    assert!(matches!(receiver.poll(at(4_000)), ReceiverAction::Missing(_)));
    take(&mut receiver, at(5_000), &body, 1);
    assert_eq!(receiver.poll(at(5_000)), ReceiverAction::Wait(at(9_000)));
}

/// When a set is whole and nothing follows, the next one is missing.
#[test]
fn a_lost_go_on_is_made_good() {
    let (mut receiver, body) = (receiver(400), body(400));
    for number in 0..10 {
        take(&mut receiver, at(0), &body, number);
    }
    assert_eq!(receiver.poll(at(0)), ReceiverAction::GoOn(10));
    assert_eq!(receiver.poll(at(4_000)), ReceiverAction::Missing((10..20).collect()));
}

#[test]
fn part_of_a_body_is_not_kept_for_ever() {
    let slow = BurstParameters { repeats: u8::MAX, ..PARAMETERS };
    let mut receiver = BurstReceiver::new(slow, BlockSize::B16, 400, 1_000, at(0)).unwrap();
    while receiver.poll(at(246_999)) != ReceiverAction::Wait(at(247_000)) {}
    assert_eq!(receiver.poll(at(247_000)), ReceiverAction::GiveUp);
}

#[test]
fn blocks_that_do_not_fit_the_body_are_told_apart() {
    let (mut receiver, body) = (receiver(40), body(40));
    let ours = Block { number: 0, more: true, size: BlockSize::B16 };
    let receipt = Receipt { block: ours, total: 40, payload: &body[..16] };
    for misfit in [
        Receipt { total: 41, ..receipt },
        Receipt { block: Block { size: BlockSize::B32, ..ours }, payload: &body[..32], ..receipt },
        Receipt { payload: &body[..15], ..receipt },
        Receipt { block: Block { more: false, ..ours }, ..receipt },
        Receipt { block: Block { number: 3, more: false, ..ours }, ..receipt },
        Receipt { block: Block { number: Block::MOST, more: false, ..ours }, payload: &[], ..receipt },
    ] {
        assert_eq!(receiver.take(at(0), &misfit), Accepted::Misfit, "{misfit:?}");
    }
    assert_eq!(receiver.take(at(0), &receipt), Accepted::Kept);
    assert!(BurstReceiver::new(PARAMETERS, BlockSize::B16, 1_001, 1_000, at(0)).is_none());
    assert!(BurstReceiver::new(PARAMETERS, BlockSize::B16, u32::MAX, usize::MAX, at(0)).is_none());
}

/// What the first answer took may be the time of its lost copies, so it is no round trip. Complaints that come sooner are believed.
#[test]
fn a_first_round_trip_that_was_too_long_hides_no_complaints() {
    let mut sender = BurstSender::resting(PACED, 25, PAUSE, at(0));
    sender.feedback(at(18_000), Feedback::GoOn(1));
    assert_eq!(burst(&mut sender, at(18_000)).0, (1..10).collect::<Vec<_>>());
    assert_eq!(sender.timeout(), Some(PAUSE), "of which nothing is known");
    // Something behind block 3 came, and has left 700 ms ago.
    sender.feedback(at(18_700), Feedback::Missing(&[3]));
    assert_eq!(burst(&mut sender, at(18_700)).0.first(), Some(&3));
    assert_eq!(sender.timeout(), Some(Span::from_millis(1_425)));
}

/// A set is told to be there once what was missing before it is. How long that took is not how long its last block did.
#[test]
fn a_set_that_waited_for_repairs_before_it_is_no_round_trip() {
    let mut sender = BurstSender::new(PACED, 40, PAUSE);
    sender.probed(Span::from_millis(100));
    burst(&mut sender, at(0));
    sender.feedback(at(100), Feedback::Missing(&[3]));
    let mut now = 100;
    while sender.next() < 20 {
        burst(&mut sender, at(now));
        now += 10;
    }
    let before = sender.timeout();
    // The repair was lost, and is repeated; the next set is there all the while.
    sender.feedback(at(now + 100), Feedback::Missing(&[3]));
    burst(&mut sender, at(now + 100));
    sender.feedback(at(now + 5_000), Feedback::GoOn(20));
    assert_eq!(sender.timeout(), before);
}

/// The round trip of a receiver is that of a complaint to a block that it asked for first, also if it took more for one before.
#[test]
fn a_receiver_corrects_its_round_trip_by_what_it_asked_for_first() {
    let (mut receiver, body) = (BurstReceiver::new(PACED, BlockSize::B16, 400, 1_000, at(0)).unwrap(), body(400));
    receiver.probed(Span::from_secs(10));
    for number in [0, 1, 2, 4, 5, 6, 7, 8, 9] {
        take(&mut receiver, at(0), &body, number);
    }
    assert_eq!(receiver.poll(at(0)), ReceiverAction::Missing(vec![3]));
    take(&mut receiver, at(500), &body, 3);
    assert_eq!(receiver.poll(at(500)), ReceiverAction::GoOn(10));
    // Twice half a second, 25 ms, and half a second from the block before: not half a minute.
    assert_eq!(receiver.poll(at(500)), ReceiverAction::Wait(at(2_025)));
}

/// What is left of a set that came at once is asked for after a quarter of a round trip, what was asked for after one and an eighth, both
/// and 25 ms, and then as silence has it.
#[test]
fn a_paced_receiver_asks_as_soon_as_something_is_late() {
    let body = body(400);
    let begin = |numbers: &[u32]| {
        let mut receiver = BurstReceiver::new(PACED, BlockSize::B16, 400, 1_000, at(0)).unwrap();
        receiver.probed(Span::from_millis(100));
        for number in numbers {
            take(&mut receiver, at(0), &body, *number);
        }
        receiver
    };
    let mut receiver = begin(&[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(receiver.poll(at(0)), ReceiverAction::Wait(at(50)));
    assert_eq!(receiver.poll(at(50)), ReceiverAction::Missing(vec![8, 9]));
    assert_eq!(receiver.poll(at(50)), ReceiverAction::Wait(at(275)), "twice 100 ms, and 25");
    assert_eq!(receiver.poll(at(275)), ReceiverAction::Missing(vec![8, 9]));
    // Somebody who may be somewhere else is asked so often as RFC 9177 has it: twice sooner, and then after 28 and 60 s.
    receiver.is_from(false);
    assert_eq!(receiver.poll(at(275)), ReceiverAction::Wait(at(28_000)));
    assert_eq!(receiver.poll(at(28_000)), ReceiverAction::Missing(vec![8, 9]));
    assert_eq!(receiver.poll(at(28_000)), ReceiverAction::Wait(at(60_000)));
    let mut receiver = begin(&[0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(receiver.poll(at(0)), ReceiverAction::Missing(vec![3]));
    assert_eq!(receiver.poll(at(0)), ReceiverAction::Wait(at(0).after(Span::from_micros(137_500))));
    // Behind the first block comes nothing before it was asked for.
    assert_eq!(begin(&[0]).poll(at(0)), ReceiverAction::Wait(at(225)));
}

/// The time of a block that was asked for twice counts if it is no longer than one takes: the first copy may have been lost.
#[test]
fn a_receiver_takes_no_lost_copies_for_a_round_trip() {
    let body = body(400);
    for (came, timeout) in [(110, 227), (400, 225)] {
        let mut receiver = BurstReceiver::new(PACED, BlockSize::B16, 400, 1_000, at(0)).unwrap();
        receiver.probed(Span::from_millis(100));
        for number in [0, 1, 2, 4, 5, 6, 7, 8, 9] {
            take(&mut receiver, at(0), &body, number);
        }
        assert_eq!(receiver.poll(at(0)), ReceiverAction::Missing(vec![3]));
        take(&mut receiver, at(60), &body, 11);
        take(&mut receiver, at(60), &body, 19);
        assert!(matches!(receiver.poll(at(60)), ReceiverAction::Missing(_)));
        take(&mut receiver, at(came), &body, 3);
        for number in 10..19 {
            take(&mut receiver, at(came), &body, number);
        }
        assert_eq!(receiver.poll(at(came)), ReceiverAction::GoOn(20));
        let ReceiverAction::Wait(until) = receiver.poll(at(came)) else { panic!() };
        let waits = until.since(at(came)).as_micros() / 1_000;
        assert_eq!(waits, timeout, "{came}");
    }
}

/// A complaint was lost, and silence or the end of a later set called forth the next: that is no round trip, and no queue.
#[test]
fn a_complaint_that_came_late_is_no_queue() {
    let mut sender = BurstSender::new(PACED, 60, PAUSE);
    sender.probed(Span::from_millis(100));
    burst(&mut sender, at(0));
    sender.feedback(at(100), Feedback::GoOn(10));
    let mut now = 100;
    while sender.next() < 40 {
        burst(&mut sender, at(now));
        now += 1;
    }
    let before = sender.timeout();
    // Block 39 has left 110 ms ago, and block 19 about 200.
    sender.feedback(at(now + 110), Feedback::Missing(&[14]));
    assert_eq!(sender.timeout(), before);
}

/// What a receiver asks for after silence, of its own or of the sender, is no round trip either.
#[test]
fn what_silence_calls_forth_is_no_queue() {
    let mut sender = BurstSender::new(PACED, 60, PAUSE);
    sender.probed(Span::from_millis(100));
    burst(&mut sender, at(0));
    burst(&mut sender, at(225));
    let mut before = sender.timeout();
    assert_eq!(before, Some(Span::from_millis(325)), "the first silence");
    sender.feedback(at(400), Feedback::Missing(&[3]));
    assert_eq!(sender.timeout(), Some(Span::from_millis(225)), "400 ms are not what it takes");
    let mut now = 400;
    while sender.next() < 25 {
        burst(&mut sender, at(now));
        now += 1;
    }
    sender.feedback(at(now), Feedback::GoOn(10));
    before = sender.timeout();
    sender.feedback(at(now + 500), Feedback::Missing(&[14, 25, 26, 27, 28, 29]));
    assert_eq!(sender.timeout(), before);
}

/// A list that is full says nothing about the blocks behind it: they are on their way.
#[test]
fn a_full_list_is_no_short_round_trip() {
    let mut sender = BurstSender::new(PACED, 60, PAUSE);
    sender.probed(Span::from_millis(100));
    burst(&mut sender, at(0));
    sender.feedback(at(100), Feedback::GoOn(10));
    let mut now = 100;
    while sender.next() < 23 {
        burst(&mut sender, at(now));
        now += 1;
    }
    let before = sender.timeout();
    sender.feedback(at(now + 10), Feedback::Missing(&[12, 13, 14, 15, 16, 17, 18, 19, 20, 21]));
    assert_eq!(sender.timeout(), before);
    sender.feedback(at(now + 10), Feedback::Missing(&[21]));
    assert_ne!(sender.timeout(), before, "block 22 has come, and left 11 ms ago");
}

/// What is missing is asked for a set at a time, and the next as soon as the last of it has come.
#[test]
fn a_paced_receiver_asks_on_when_what_it_asked_for_has_come() {
    let body = body(400);
    for (parameters, next) in
        [(PACED, ReceiverAction::Missing(vec![1, 12])), (PARAMETERS, ReceiverAction::Wait(at(4_100)))]
    {
        let mut receiver = BurstReceiver::new(parameters, BlockSize::B16, 400, 1_000, at(0)).unwrap();
        receiver.probed(Span::from_millis(100));
        take(&mut receiver, at(0), &body, 0);
        for number in 13..20 {
            take(&mut receiver, at(0), &body, number);
        }
        assert_eq!(
            receiver.poll(at(0)),
            ReceiverAction::Missing(if parameters.paced { (1..11).collect() } else { (1..10).collect() })
        );
        for number in 2..12 {
            take(&mut receiver, at(100), &body, number);
        }
        assert_eq!(receiver.poll(at(100)), next);
    }
}

#[test]
fn lists_of_missing_blocks_byte_by_byte() {
    let numbers = [0, 23, 24, 255, 256, 65_535, 65_536];
    let bytes = missing_blocks(&numbers, 100);
    let expected = [0, 23, 0x18, 24, 0x18, 255, 0x19, 1, 0, 0x19, 255, 255, 0x1a, 0, 1, 0, 0];
    assert_eq!(bytes, expected);
    assert_eq!(read_missing_blocks(&bytes).unwrap(), numbers);
    assert_eq!(missing_blocks(&numbers, 5), expected[..4], "what does not fit is asked for later");
    for (bad, place) in [(&[5, 5][..], 1), (&[6, 5], 1), (&[0x18], 0), (&[1, 0x19, 1], 1), (&[0x20], 0), (&[0xff], 0)] {
        assert_eq!(read_missing_blocks(bad).unwrap_err().at, place, "{bad:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is lost on either way, as long as not everything is: the body arrives whole.
    #[test]
    fn bodies_arrive_over_lossy_paths(
        blocks in 1_u32..60,
        last in 1_usize..=16,
        luck in prop::collection::vec(any::<bool>(), 40..200),
    ) {
        let body = body((blocks as usize - 1) * 16 + last);
        let mut sender = BurstSender::new(PARAMETERS, blocks, PAUSE);
        let mut receiver = BurstReceiver::new(PARAMETERS, BlockSize::B16, body.len() as u32, 100_000, at(0)).unwrap();
        // Two of three arrive when the random numbers are against them, so that silence does not last.
        let mut lost = luck.iter().cycle().enumerate().map(|(index, unlucky)| *unlucky && index % 3 == 0);
        let (mut now, mut steps) = (at(0), 0);
        while !receiver.is_whole() {
            steps += 1;
            prop_assert!(steps < 2_000);
            let (numbers, until) = burst(&mut sender, now);
            let mut quiet = numbers.is_empty();
            for number in numbers {
                if !lost.next().unwrap() {
                    take(&mut receiver, now, &body, number);
                }
            }
            let wait = loop {
                let wanted = receiver.poll(now);
                let heard = !lost.next().unwrap();
                match wanted {
                    ReceiverAction::Wait(until) => break until,
                    ReceiverAction::GiveUp => return Err(TestCaseError::fail("given up")),
                    ReceiverAction::GoOn(number) if heard => sender.feedback(now, Feedback::GoOn(number)),
                    ReceiverAction::Missing(numbers) if heard => sender.feedback(now, Feedback::Missing(&numbers)),
                    _ => continue,
                }
                quiet = false;
                if receiver.is_whole() { break now; }
            };
            if quiet {
                now = until.map_or(wait, |until| until.min(wait));
            }
        }
        prop_assert_eq!(receiver.into_body(), body);
    }
}

/// A body of a million blocks of which the last of each set comes, again and again: what that takes is not a million each time.
#[test]
fn the_last_blocks_of_a_long_body_are_taken_in_time_that_does_not_grow_with_it() {
    let blocks = 1_000_000;
    let mut receiver = BurstReceiver::new(PACED, BlockSize::B16, blocks << 4, usize::MAX, at(0)).unwrap();
    for number in (9..blocks).step_by(10).rev().take(20_000) {
        let block = Block { number, more: number + 1 < blocks, size: BlockSize::B16 };
        receiver.take(at(0), &Receipt { block, total: blocks << 4, payload: &[0; 16] });
        assert_eq!(
            receiver.poll(at(0)),
            ReceiverAction::Missing((0..10).filter(|missing| *missing != number).collect())
        );
    }
}

/// Four bytes say what happens next, to both ends at once.
fn any_blocks(bytes: &[u8]) {
    let mut now = at(0);
    let mut receiver = receiver(500);
    let mut sender = BurstSender::new(PARAMETERS, 32, PARAMETERS.pause);
    for step in bytes.chunks_exact(4) {
        let [value @ .., what] = step else { return };
        now = now.after(Span::from_millis(u32::from(*what) * 16));
        let Ok(block) = Block::read(value, true) else { panic!("three bytes always make a block") };
        let full = block.size.bytes() as usize;
        let payload = vec![*what; if what & 1 == 0 { full } else { usize::from(*what) }];
        let receipt = Receipt { block, total: if what & 16 == 0 { 500 } else { 499 }, payload: &payload };
        if receiver.take(now, &receipt) == Accepted::Misfit {
            assert!(
                !receiver.is_whole() || receipt.total != 500 || block.size != BlockSize::B16 || !payload.is_empty()
            );
        }
        for _ in 0..8 {
            match receiver.poll(now) {
                ReceiverAction::GoOn(number) => sender.feedback(now, Feedback::GoOn(number)),
                ReceiverAction::Missing(numbers) => {
                    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.len() <= 32);
                    let list = missing_blocks(&numbers, 1_024);
                    assert_eq!(read_missing_blocks(&list).as_deref(), Ok(&numbers[..]));
                    sender.feedback(now, Feedback::Missing(&numbers));
                }
                ReceiverAction::Wait(until) => {
                    assert!(until > now);
                    break;
                }
                ReceiverAction::GiveUp => break,
            }
        }
        let mut left = 0;
        while let Leaving::Block { number, more, .. } = sender.poll(now) {
            assert!(number < 32 && more == (number < 31));
            left += 1;
            assert!(left <= 64, "there is no end to a burst");
        }
        let _list = read_missing_blocks(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_keep_every_promise(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        any_blocks(&bytes);
    }
}
