//! Records as a C caller holds them: every algorithm through the calls, and bytes that are no record.
//!
//! Also run by miri (`make miri`), which finds a value that is none, a read of what was never written, and a reference
//! that should not be.

use millpond::*;
use millpond_control::{
    Admit, AnyController, Chance, ChanceSeed, Class, Controller, Cx, End, Exchange, Instant, Preset, Purpose,
    ReplyKind, Sample, Setting, Span, Wait,
};
use std::mem::MaybeUninit;

/// A record. To the compiler some of its bytes are padding and were never written, so it is moved about as bytes that
/// need not be initialised; to a C program every byte is some byte.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Record<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> Record<BYTES> {
    /// What was in memory before.
    fn filled_with(byte: u8) -> Self {
        Self([MaybeUninit::new(byte); BYTES])
    }

    fn with(mut self, place: usize, byte: u8) -> Self {
        self.0[place] = MaybeUninit::new(byte);
        self
    }

    fn pointer<T>(&mut self) -> *mut T {
        assert!(size_of::<T>() <= BYTES);
        self.0.as_mut_ptr().cast()
    }
}

type Peer = Record<{ size_of::<millpond_peer>() }>;
type Open = Record<{ size_of::<millpond_exchange>() }>;

const CX: millpond_cx = millpond_cx { now_us: 7, chance: 1, open: 1, waiting: 0 };
const NO_WAIT: millpond_wait = millpond_wait { span_us: 0, then: 0, reason: 0, reserved: 0 };

fn peer_of(preset: Preset) -> Peer {
    let mut peer = Peer::filled_with(0xA5);
    // SAFETY: every pointer in this file is that of a record or of a Rust value.
    assert_eq!(unsafe { millpond_peer_init(peer.pointer(), SIZES, preset.id()) }, 0, "{preset:?}");
    peer
}

fn start(peer: &mut Peer, open: &mut Open) -> i32 {
    let mut wait = NO_WAIT;
    // SAFETY: as above.
    unsafe { millpond_on_start(peer.pointer(), open.pointer(), 40, &CX, &mut wait) }
}

/// What the calls that need a peer or an exchange answer.
fn answers(peer: &mut Peer, open: &mut Open) -> [i32; 11] {
    let (mut wait, mut numbers, mut at) = (NO_WAIT, millpond_numbers::default(), 0);
    let mut base_rtt = 0;
    let sample = millpond_sample {
        since_first_us: 9,
        since_last_us: 5,
        since_named_us: 5,
        retransmissions: 1,
        kind: 1,
        names: 1,
        named: 1,
        len: 40,
        reply_len: 100,
    };
    let feedback =
        millpond_feedback { since_us: 5, len: 40, reply_len: 0, message: 0, fate: 2, reserved: 0, number: 0 };
    // SAFETY: as above.
    unsafe {
        [
            millpond_view(peer.pointer(), &mut numbers),
            millpond_wishes(peer.pointer()),
            millpond_admit(peer.pointer(), 1, 40, &CX, &mut at),
            millpond_on_plain_send(peer.pointer(), 40, &CX),
            millpond_on_feedback(peer.pointer(), &feedback, &CX),
            millpond_on_timeout(peer.pointer(), open.pointer(), &CX, &mut wait),
            millpond_on_reply(peer.pointer(), open.pointer(), &sample, &CX),
            millpond_on_end(peer.pointer(), open.pointer(), 0, &CX),
            millpond_peer_base_rtt(peer.pointer(), &mut base_rtt),
            millpond_peer_recall(peer.pointer(), 240_000),
            start(peer, &mut Open::filled_with(0)),
        ]
    }
}

/// Every how many of the many cases are tried.
const STRIDE: usize = if cfg!(miri) { 11 } else { 1 };

#[test]
fn records_stay_small() {
    assert_eq!((size_of::<millpond_peer>(), size_of::<millpond_exchange>()), (96, 32));
    assert_eq!((size_of::<millpond_calm_peer>(), size_of::<millpond_calm_path>()), (32, 72));
}

#[test]
fn the_calls_answer_what_the_controllers_answer() {
    for preset in Preset::all() {
        let (mut peer, mut twin) = (peer_of(preset), preset.build());
        let (mut open, mut twin_open) = (Open::filled_with(0), Exchange::new());
        let mut now = 0_u64;
        for step in 0..if cfg!(miri) { 6 } else { 300_u32 } {
            let word = |copy| ChanceSeed::new(7252).at(Purpose::Dither, [step, copy, 0, 0]);
            let cx = |now, copy| millpond_cx { now_us: now, chance: word(copy).word(), open: 1, waiting: 0 };
            let mut wait = NO_WAIT;
            // SAFETY: as above.
            let answer = unsafe { millpond_on_start(peer.pointer(), open.pointer(), 40, &cx(now, 0), &mut wait) };
            same_wait(answer, wait, twin.on_start(&mut twin_open, 40, rust(cx(now, 0))));
            let (first, mut last) = (now, now);
            let copies = (word(9).pick(0, 5) as u8).saturating_sub(1);
            for copy in 1..=u32::from(copies) {
                now += u64::from(wait.span_us);
                last = now;
                // SAFETY: as above.
                let answer = unsafe { millpond_on_timeout(peer.pointer(), open.pointer(), &cx(now, copy), &mut wait) };
                same_wait(answer, wait, twin.on_timeout(&mut twin_open, rust(cx(now, copy))));
            }
            now += u64::from(word(10).pick(0, wait.span_us));
            if word(11).falls_below(100_000) {
                let why = word(12).pick(0, 2) as u8;
                // SAFETY: as above.
                assert_eq!(unsafe { millpond_on_end(peer.pointer(), open.pointer(), why, &cx(now, 13)) }, 0);
                let why = [End::GaveUp, End::Reset, End::Cancelled][usize::from(why)];
                twin.on_end(&twin_open, why, rust(cx(now, 13)));
            } else {
                let (since_first, since_last) = (span(now - first), span(now - last));
                let sample = millpond_sample {
                    since_first_us: since_first.as_micros(),
                    since_last_us: since_last.as_micros(),
                    since_named_us: since_last.as_micros(),
                    retransmissions: copies,
                    kind: millpond_kind::MILLPOND_KIND_PIGGYBACKED as u8,
                    names: word(14).pick(0, 2) as u8,
                    named: copies,
                    len: 40,
                    reply_len: 0,
                };
                // SAFETY: as above.
                assert_eq!(unsafe { millpond_on_reply(peer.pointer(), open.pointer(), &sample, &cx(now, 15)) }, 0);
                let twin_sample = Sample::new(ReplyKind::Piggybacked, since_first, since_last, copies);
                let twin_sample = match sample.names {
                    0 => twin_sample,
                    1 => twin_sample.naming(copies, since_last),
                    _ => twin_sample.naming_a_further_copy(),
                };
                twin.on_reply(&twin_open, twin_sample, rust(cx(now, 15)));
            }
            same_view(&mut peer, &twin);
            same_admission(&mut peer, &mut twin, cx(now, 16));
        }
    }
}

fn rust(cx: millpond_cx) -> Cx {
    Cx {
        now: Instant::from_micros(cx.now_us),
        chance: Chance::from_word(cx.chance),
        open: cx.open,
        waiting: cx.waiting,
    }
}

fn span(us: u64) -> Span {
    Span::from_micros(u32::try_from(us).unwrap_or(u32::MAX))
}

fn same_wait(answer: i32, wait: millpond_wait, twin: Wait) {
    assert_eq!(answer, 0);
    assert_eq!((wait.span_us, wait.then, wait.reserved), (twin.span.as_micros(), twin.then as u8, 0));
    assert_eq!(wait.reason, twin.reason as u8);
}

fn same_view(peer: &mut Peer, twin: &AnyController) {
    let mut numbers = millpond_numbers::default();
    // SAFETY: as above.
    assert_eq!(unsafe { millpond_view(peer.pointer(), &mut numbers) }, 0);
    let view = twin.view();
    let millpond_numbers { kept, rto_us, srtt_us, rttvar_us, weak_srtt_us, weak_rttvar_us, carried_us } = numbers;
    let spans = [view.rto, view.srtt, view.rttvar, view.weak_srtt, view.weak_rttvar, view.carried];
    let ours = [rto_us, srtt_us, rttvar_us, weak_srtt_us, weak_rttvar_us, carried_us];
    for (bit, (ours, span)) in ours.into_iter().zip(spans).enumerate() {
        assert_eq!((kept >> bit & 1 == 1, ours), (span.is_some(), span.unwrap_or_default().as_micros()));
    }
    let mut base_rtt = u32::MAX;
    // SAFETY: as above.
    assert_eq!(unsafe { millpond_peer_base_rtt(peer.pointer(), &mut base_rtt) }, 0);
    assert_eq!(base_rtt, twin.base_rtt().unwrap_or_default().as_micros());
}

fn same_admission(peer: &mut Peer, twin: &mut AnyController, cx: millpond_cx) {
    let mut at = 0;
    // SAFETY: as above.
    let answer = unsafe { millpond_admit(peer.pointer(), 1, 20, &cx, &mut at) };
    let expected = match twin.admit(Class::Plain, 20, rust(cx)) {
        Admit::Now => (0, 0),
        Admit::At(at) => (1, at.as_micros()),
        Admit::WhenOneEnds => (2, 0),
    };
    assert_eq!((answer, at), expected);
    if answer == 0 {
        // SAFETY: as above.
        assert_eq!(unsafe { millpond_on_plain_send(peer.pointer(), 20, &cx) }, 0);
        twin.on_plain_send(20, rust(cx));
    }
}

#[test]
fn every_setting_reaches_its_controller() {
    for preset in Preset::all() {
        for setting in Setting::ALL {
            // Every peer has a least wait.
            let known = *setting == Setting::LeastWait || preset.build().settings().contains(setting);
            let mut peer = peer_of(preset);
            // SAFETY: as above.
            let answer = unsafe { millpond_peer_set(peer.pointer(), setting.id(), 1_500_000) };
            assert_eq!(answer == millpond_error::MILLPOND_E_UNKNOWN_SETTING as i32, !known, "{preset:?} {setting:?}");
            assert!(answer <= 0);
        }
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    for preset in Preset::all() {
        let (mut peer, mut open) = (peer_of(preset), Open::filled_with(0));
        assert_eq!(start(&mut peer, &mut open), 0);
        let mut noticed = 0;
        for place in (0..size_of::<millpond_peer>()).step_by(STRIDE) {
            for byte in [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF] {
                let [view, .., start] = answers(&mut peer.with(place, byte), &mut { open });
                assert!(view == 0 && start == 0 || view < 0 && start < 0, "{preset:?}, byte {place}: {view}, {start}");
                noticed += usize::from(view < 0);
            }
        }
        assert!(noticed > 0);
        for place in (0..size_of::<millpond_exchange>()).step_by(STRIDE) {
            for byte in [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF] {
                answers(&mut { peer }, &mut open.with(place, byte));
            }
        }
    }
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    for byte in (0..=255).step_by(if cfg!(miri) { 15 } else { 1 }) {
        let all = answers(&mut Peer::filled_with(byte), &mut Open::filled_with(byte));
        assert!(all.iter().all(|answer| *answer < 0), "{byte}: {all:?}");
    }
    // The head is right but for its check, or its print; the value is nothing.
    for preset in Preset::all() {
        let mut nothing = peer_of(preset);
        for place in 8..size_of::<millpond_peer>() {
            nothing = nothing.with(place, 0xEE);
        }
        assert!(answers(&mut nothing, &mut Open::filled_with(0)).iter().all(|answer| *answer < 0), "{preset:?}");
    }
}

#[test]
fn a_record_may_be_moved() {
    for preset in Preset::all() {
        let (mut peer, mut open) = (peer_of(preset), Open::filled_with(0));
        assert_eq!(start(&mut peer, &mut open), 0);
        let mut elsewhere = vec![peer; 3];
        let mut opened = vec![open; 3];
        for (peer, open) in elsewhere.iter_mut().zip(&mut opened) {
            assert_eq!(answers(peer, open).iter().filter(|answer| **answer < 0).count(), 1, "the exchange ends once");
        }
    }
}

#[test]
fn records_that_overlap_do_no_harm() {
    for preset in Preset::all() {
        for distance in (0..=size_of::<millpond_peer>() - size_of::<millpond_exchange>()).step_by(8 * STRIDE) {
            let mut record = peer_of(preset);
            let peer = record.pointer::<millpond_peer>();
            let inside = peer.cast::<u8>().wrapping_add(distance).cast::<millpond_exchange>();
            let mut wait = NO_WAIT;
            for _ in 0..2 {
                // SAFETY: that the exchange and the rest lie inside the peer is the mistake; the memory is there.
                unsafe {
                    millpond_on_start(peer, inside, 40, &CX, &mut wait);
                    millpond_on_timeout(peer, inside, &CX, &mut wait);
                    millpond_on_timeout(peer, inside, &CX, peer.cast());
                    millpond_view(peer, peer.cast());
                    millpond_peer_base_rtt(peer, peer.cast());
                    millpond_peer_recall(peer, 240_000);
                    millpond_on_end(peer, inside, 0, &CX);
                }
            }
        }
    }
}

#[test]
fn pointers_askew_are_refused() {
    let mut room = Record::<128>::filled_with(0);
    for by in 1..8 {
        let askew = room.pointer::<u8>().wrapping_add(by);
        // SAFETY: the memory is there; that it is not aligned is the point.
        let answer = unsafe { millpond_peer_init(askew.cast(), SIZES, Preset::RFC7252.id()) };
        assert_eq!(answer, millpond_error::MILLPOND_E_ALIGNMENT as i32);
    }
}
