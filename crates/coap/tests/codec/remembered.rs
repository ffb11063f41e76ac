//! What is remembered of paths: its bytes, its bounds and its age.

use std::time::Duration;

use millpond_coap::{Backoff, PathCache};
use millpond_control::Span;
use proptest::prelude::*;

/// Two paths, worked out by hand.
const TWO: &[u8] = b"\x01\x00\x02\
    \x01a\x00\x09\xc4\x00\x00\x00\x00\x00\x00\x00\x00\x07\
    \x02ab\xff\xff\xff\xff\x00\x00\x00\x01\x00\x00\x00\x00";

fn one() -> PathCache {
    let mut memory = PathCache::new();
    assert!(memory.learn(b"a", Span::from_micros(640_000), 7));
    memory
}

#[test]
fn the_bytes_are_those_of_the_page() {
    assert_eq!(PathCache::new().to_bytes(), b"\x01\x00\x00");
    assert_eq!(one().to_bytes(), &b"\x01\x00\x01\x01a\x00\x09\xc4\x00\x00\x00\x00\x00\x00\x00\x00\x07"[..]);
    let read = PathCache::from_bytes(TWO).unwrap();
    assert_eq!(read.base_rtt(b"a", 7), Some(Span::from_millis(640)));
    assert_eq!(read.base_rtt(b"ab", 1 << 32), Some(Span::MAX));
    assert_eq!((read.len(), read.base_rtt(b"b", 7)), (2, None));
}

/// One backoff, worked out by hand: 5 failures, a pause of 16 s that began at 7.
const BACKOFF: &[u8] = b"\x02\x00\x00\x00\x01\
    \x01a\x00\x00\x00\x05\x00\x00\x3e\x80\x00\x00\x00\x00\x00\x00\x00\x07";

fn backing_off(pause: Duration, since: u64) -> PathCache {
    let mut memory = PathCache::new();
    memory.set_backoffs([(b"a".to_vec(), Backoff { failures: 5, pause, since })]);
    memory
}

#[test]
fn a_backoff_is_remembered_beside_paths() {
    let mut memory = backing_off(Duration::from_secs(16), 7);
    assert_eq!(memory.to_bytes(), BACKOFF);
    assert_eq!(PathCache::from_bytes(BACKOFF), Ok(memory.clone()));
    assert!(memory.learn(b"b", Span::from_secs(1), 7) && !memory.is_empty());
    assert_eq!(PathCache::from_bytes(&memory.to_bytes()), Ok(memory.clone()));
    memory.set_backoffs([]);
    assert_eq!((memory.backoffs(7).count(), memory.to_bytes()[0]), (0, 1), "as if there never were any");
}

/// Time goes on while a device is off, and what its clock says of that may be wrong.
#[test]
fn what_is_left_of_a_pause_is_at_most_all_of_it_whatever_the_clock_says() {
    let left = |memory: &PathCache, now| memory.backoffs(now).next().map(|(_, backoff)| backoff.left(now).as_secs());
    let memory = backing_off(Duration::from_secs(16), 1_000_000);
    assert_eq!([0, 1_000_000, 1_000_010, 1_000_016].map(|now| left(&memory, now)), [16, 16, 6, 0].map(Some));
    // The failures count for a week.
    assert_eq!([PathCache::LIFE, PathCache::LIFE + 1].map(|later| left(&memory, 1_000_000 + later)), [Some(0), None]);
    let memory = backing_off(Duration::MAX, 1_000_000);
    assert_eq!(left(&memory, 0), Some(5_400));
}

#[test]
fn the_backoffs_that_began_first_make_room() {
    let backoff = |since| Backoff { failures: 1, pause: Duration::from_secs(1), since };
    let mut memory = PathCache::new();
    memory.set_backoffs((0..2_000_u64).map(|since| (since.to_be_bytes().to_vec(), backoff(since))));
    assert_eq!(memory.backoffs(0).count(), PathCache::MOST_PATHS);
    assert!(memory.backoffs(0).all(|(_, backoff)| backoff.since >= 2_000 - PathCache::MOST_PATHS as u64));
    memory.set_backoffs([(vec![0; PathCache::LONGEST_KEY + 1], backoff(0))]);
    assert!(memory.is_empty());
    // As many as may be, with the longest names.
    let key = |number: u16| [&number.to_be_bytes()[..], &[0; PathCache::LONGEST_KEY - 2]].concat();
    (0..1_024).for_each(|number| assert!(memory.learn(&key(number), Span::MAX, 0)));
    memory.set_backoffs((0..1_024).map(|number| (key(number), backoff(0))));
    assert_eq!(memory.to_bytes().len(), PathCache::MOST_BYTES);
}

#[test]
fn what_is_no_backoff_is_refused() {
    let long = [&BACKOFF[..11], &5_400_001_u32.to_be_bytes(), &BACKOFF[15..]].concat();
    for (bytes, at, why) in [
        (&BACKOFF[..3], 3, "ends too early"),
        (b"\x02\x00\x00\x00\x00", 3, "no backoffs"),
        (b"\x02\x00\x00\x04\x01", 3, "more paths"),
        (&BACKOFF[..20], 20, "ends too early"),
        (&long, 11, "more than 90 minutes"),
        (&[BACKOFF, b"\0"].concat(), 23, "more than the paths"),
    ] {
        let error = PathCache::from_bytes(bytes).expect_err(why);
        assert!(error.to_string().contains(why) && error.at == at, "{error}, and not {why} at {at}");
    }
}

#[test]
fn what_is_older_than_a_week_is_forgotten_and_a_clock_that_went_back_forgets_nothing() {
    let (mut memory, now) = (one(), 7 + PathCache::LIFE);
    assert_eq!(memory.base_rtt(b"a", now), Some(Span::from_millis(640)));
    assert_eq!(memory.base_rtt(b"a", now + 1), None);
    assert_eq!(memory.base_rtt(b"a", 0), Some(Span::from_millis(640)), "7 s before");
    // It is still there for a clock that is set right afterwards, until something is learnt.
    assert_eq!(memory.len(), 1);
    assert!(memory.learn(b"b", Span::from_secs(1), now + 1));
    assert_eq!(memory.len(), 1);
    // What was learnt in a far future is no better than what is old.
    assert_eq!(memory.base_rtt(b"b", 0), None);
}

#[test]
fn what_is_learnt_takes_the_place_of_what_was() {
    let mut memory = one();
    assert!(memory.learn(b"a", Span::from_secs(2), 8));
    assert_eq!((memory.len(), memory.base_rtt(b"a", 8)), (1, Some(Span::from_secs(2))));
    assert!(!memory.learn(b"a", Span::ZERO, 9), "that is none");
    assert!(!memory.learn(&[0; PathCache::LONGEST_KEY + 1], Span::from_secs(2), 9));
    assert!(memory.learn(&[0; PathCache::LONGEST_KEY], Span::from_secs(2), 9));
    assert_eq!((memory.len(), memory.base_rtt(b"a", 9)), (2, Some(Span::from_secs(2))));
}

#[test]
fn the_path_learnt_longest_ago_makes_room() {
    let mut memory = PathCache::new();
    let most = PathCache::MOST_PATHS as u64;
    // The one in the middle is the oldest.
    for path in 0..most {
        let learned = if path == 500 { 1 } else { 1_000 + path };
        assert!(memory.learn(&path.to_be_bytes(), Span::from_secs(1), learned));
    }
    assert_eq!(memory.len(), PathCache::MOST_PATHS);
    // Who is known already needs no room.
    assert!(memory.learn(&0_u64.to_be_bytes(), Span::from_secs(2), 3_000));
    assert_eq!(memory.base_rtt(&500_u64.to_be_bytes(), 3_000), Some(Span::from_secs(1)));
    for (new, gone) in [(most, 500_u64), (most + 1, 1), (most + 2, 2)] {
        assert!(memory.learn(&new.to_be_bytes(), Span::from_secs(1), 3_000));
        assert_eq!((memory.len(), memory.base_rtt(&gone.to_be_bytes(), 3_000)), (PathCache::MOST_PATHS, None));
    }
    assert_eq!(PathCache::from_bytes(&memory.to_bytes()), Ok(memory));
}

#[test]
fn what_is_no_memory_is_refused_in_one_line() {
    let with = |at: usize, byte: u8| {
        let mut bytes = TWO.to_vec();
        bytes[at] = byte;
        bytes
    };
    let zero = [&TWO[..5], &[0; 4], &TWO[9..]].concat();
    for (bytes, at, why) in [
        (Vec::new(), 0, "ends too early"),
        (b"{}".to_vec(), 0, "version"),
        (with(0, 3), 0, "version"),
        (with(0, 2), TWO.len(), "ends too early"),
        (with(1, 3), TWO.len(), "ends too early"),
        (with(1, 4), 1, "more paths"),
        (with(2, 1), 17, "more than the paths"),
        (with(2, 3), TWO.len(), "ends too early"),
        (with(18, b'A'), 17, "out of order"),
        (zero, 5, "no time at all"),
        (TWO[..TWO.len() - 1].to_vec(), TWO.len() - 1, "ends too early"),
        ([TWO, b"\0"].concat(), TWO.len(), "more than the paths"),
    ] {
        let error = PathCache::from_bytes(&bytes).expect_err(why);
        assert!(error.to_string().contains(why) && error.at == at, "{error}, and not {why} at {at}");
    }
    let twice = [b"\x01\x00\x02", &TWO[3..17], &TWO[3..17]].concat();
    let error = PathCache::from_bytes(&twice).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 17 of what is remembered of paths: a path out of order; without it all of that is learnt anew"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(
        entries in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), 1..u32::MAX, 0..2_000_000_u64), 0..50)
    ) {
        let mut memory = PathCache::new();
        for (path, micros, now) in &entries {
            prop_assert!(memory.learn(path, Span::from_micros(*micros), *now));
        }
        let bytes = memory.to_bytes();
        prop_assert_eq!(PathCache::from_bytes(&bytes), Ok(memory));
        super::memory::check(&bytes);
    }

    #[test]
    fn any_bytes_keep_every_promise(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        super::memory::check(&bytes);
    }

    /// Few other bytes come past the version.
    #[test]
    fn any_change_of_a_byte_keeps_every_promise(at in 0..BACKOFF.len(), byte in any::<u8>(), length in 0..=TWO.len()) {
        for bytes in [TWO, BACKOFF] {
            let mut bytes = bytes.to_vec();
            bytes[at] = byte;
            super::memory::check(&bytes);
            super::memory::check(&bytes[..length.min(bytes.len())]);
        }
    }
}
