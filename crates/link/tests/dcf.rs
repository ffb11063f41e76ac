//! A Wi-Fi hop against Bianchi's closed form and by hand.

use millpond_control::{ChanceSeed, Instant};
use millpond_link::{Dcf, DcfCounters, DcfRules};

/// Table II of Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function" (JSAC 2000): FHSS at
/// 1 Mbit/s, with the propagation delay of 1 us at the end of each frame. Headers of MAC and PHY have 400 bits, packets 8184.
const BIANCHI: DcfRules = DcfRules {
    slot: 50,
    sifs: 28,
    difs: 128,
    cw_min: 31,
    cw_max: 255,
    retries: u8::MAX,
    preamble: 128,
    rate: 1_000_000,
    symbol: 1,
    around: 0,
    extension: 1,
    header: 34,
    ack: 241,
    after_collision: 0,
    room: 1,
};
const PACKET: u32 = 1_023;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// So many stations always have a packet; gives the share of the time that carries payload, and the counts.
fn saturated(rules: DcfRules, stations: u32, packets: u64) -> (f64, DcfCounters) {
    let mut dcf = Dcf::new(rules, ChanceSeed::new(7));
    (0..stations).for_each(|station| dcf.offer(at(0), station, false, PACKET, ()));
    let mut end = at(0);
    for _ in 0..packets {
        let passing = std::iter::from_fn(|| {
            let next = dcf.next()?;
            dcf.release(next).map(Some).or(Some(None))
        });
        let passing = passing.flatten().next().unwrap();
        end = passing.at;
        dcf.offer(end, passing.device, false, PACKET, ());
    }
    let bits = packets as f64 * f64::from(PACKET) * 8.0;
    (bits * 1e6 / rules.rate as f64 / end.as_micros() as f64, *dcf.counters())
}

/// Equations 7, 9 and 13 of the same for basic access: the throughput in shares of the rate, and the probability of a collision.
fn closed_form(rules: DcfRules, stations: u32) -> (f64, f64) {
    let w = f64::from(rules.cw_min) + 1.0;
    let m = ((f64::from(rules.cw_max) + 1.0) / w).log2();
    let n = f64::from(stations);
    // Equation 7 with its geometric series written out: as it stands it is 0 / 0 at one half.
    let doublings = m.round() as i32;
    let sends = |p: f64| 2.0 / (1.0 + w + p * w * (0..doublings).map(|i| (2.0 * p).powi(i)).sum::<f64>());
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p: f64 = (low + high) / 2.0;
        // The more collide, the less they send.
        if 1.0 - (1.0 - sends(p)).powf(n - 1.0) > p { low = p } else { high = p }
    }
    let (p, tau) = (low, sends(low));
    let some = 1.0 - (1.0 - tau).powf(n);
    let one = n * tau * (1.0 - tau).powf(n - 1.0) / some;
    let frame = rules.frame(PACKET) as f64;
    let success = frame + f64::from(rules.sifs + rules.ack + rules.difs);
    let collision = frame + f64::from(rules.difs + rules.after_collision);
    let payload = f64::from(PACKET) * 8e6 / rules.rate as f64;
    let round = (1.0 - some) * f64::from(rules.slot) + some * one * success + some * (1.0 - one) * collision;
    (some * one * payload / round, p)
}

#[test]
fn saturated_stations_have_the_throughput_of_bianchi() {
    for (cw_min, cw_max) in [(31, 255), (15, 1_023), (31, 1_023)] {
        let rules = DcfRules { cw_min, cw_max, ..BIANCHI };
        for stations in [2, 5, 10, 20, 50] {
            let (ours, counters) = saturated(rules, stations, 20_000);
            let (expected, collides) = closed_form(rules, stations);
            assert!((ours / expected - 1.0).abs() < 0.03, "{cw_min} {cw_max} {stations}: {ours}, not {expected}");
            let share = counters.collided as f64 / counters.frames as f64;
            assert!((share - collides).abs() < 0.03, "{cw_min} {cw_max} {stations}: {share}, not {collides}");
        }
    }
}

/// Without others a packet's delay is its service time.
#[test]
fn a_packet_alone_takes_its_frame_and_nothing_else() {
    let mut dcf = Dcf::new(BIANCHI, ChanceSeed::new(1));
    let frame = BIANCHI.frame(PACKET);
    assert_eq!(frame, 128 + 272 + 8_184 + 1);
    for n in 0..100 {
        let now = at(1_000_000 * n + 13 * n);
        dcf.offer(now, 3, n % 2 == 0, PACKET, n);
        assert_eq!(dcf.next(), Some(now));
        assert_eq!(dcf.release(now), None);
        let arrives = at(now.as_micros() + frame);
        assert_eq!(dcf.next(), Some(arrives));
        let passing = dcf.release(arrives).unwrap();
        assert_eq!(
            (passing.payload, passing.to_device, passing.is_dropped, passing.at),
            (n, n % 2 == 0, false, arrives)
        );
        assert_eq!(dcf.release(at(now.as_micros() + 900_000)), None);
    }
    assert_eq!(dcf.counters().collided, 0);
}

#[test]
fn a_second_packet_waits_for_acknowledgement_difs_and_a_backoff() {
    let mut waits = Vec::new();
    for seed in 0..200 {
        let mut dcf = Dcf::new(DcfRules { room: 2, ..BIANCHI }, ChanceSeed::new(seed));
        (0..2).for_each(|n| dcf.offer(at(0), 0, false, PACKET, n));
        dcf.offer(at(0), 0, false, PACKET, 2);
        assert!(dcf.release(at(0)).unwrap().is_dropped, "there is no room for a third");
        let first = dcf.release(at(100_000)).unwrap();
        let second = dcf.release(at(100_000)).unwrap();
        let frame = BIANCHI.frame(PACKET);
        let waited = second.at.as_micros() - first.at.as_micros() - 28 - 241 - 128 - frame;
        assert!(waited.is_multiple_of(50) && waited <= 31 * 50, "{waited}");
        waits.push(waited);
    }
    let mean = waits.iter().sum::<u64>() as f64 / 200.0 / 50.0;
    assert!((mean - 15.5).abs() < 2.0, "{mean}");
}

#[test]
fn who_collides_too_often_gives_up() {
    let rules = DcfRules { cw_min: 0, cw_max: 0, retries: 3, ..BIANCHI };
    let mut dcf = Dcf::new(rules, ChanceSeed::new(1));
    (0..2).for_each(|station| dcf.offer(at(0), station, false, PACKET, ()));
    let lost: Vec<_> = std::iter::from_fn(|| dcf.release(at(1_000_000))).collect();
    assert_eq!(
        lost.iter().map(|passing| (passing.device, passing.is_dropped)).collect::<Vec<_>>(),
        [(0, true), (1, true)]
    );
    assert_eq!((dcf.counters().frames, dcf.counters().collided, dcf.counters().given_up), (8, 8, 2));
    assert_eq!((dcf.held(), dcf.next()), (0, None));
}
