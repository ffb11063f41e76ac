//! The TCP models over one path, against the long-lived connections of the MSc thesis on CoAP over TCP (University of
//! Helsinki, 2020), chapter 5: one client downloads 102,400 bytes without errors. Figures in seconds.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config as LinkConfig, Delivered, Limit, Link, Loss, Probability, Rate};
use millpond_sim::tcp::{Config, Connection, Control, DelayedAcks, Phase, Polled, Recovery, Segment, Totals};

/// Frames of RFC 8323: CSM, GET /hello, and the response with 102,400 bytes of payload.
const CSM: usize = 2;
const REQUEST: usize = 8;
const RESPONSE: usize = 102_408;
/// The connection was opened, and the server's CSM acknowledged, before the request.
const ASKED: Instant = Instant::from_micros(1_600_000);

struct Download {
    seconds: f64,
    server: Totals,
    drops: u64,
    /// Times that the server's congestion control came into this phase.
    probe_rtt: u32,
}

/// Client and server over the path of the thesis.
fn download(buffer: u64, loss: f64, seed: u64, config: &Config) -> Download {
    let link = |rate, delay, number| {
        let path = LinkConfig {
            loss: Loss::Bernoulli { rate: Probability::from_f64(loss).unwrap() },
            ..LinkConfig::plain(Rate::BitsPerSecond(rate), Span::from_millis(delay), Limit::Bytes(buffer))
        };
        Link::<Segment>::new(&path, ChanceSeed::new(seed), number).unwrap()
    };
    let mut links = [link(60_000, 215, 0), link(30_000, 415, 1)];
    let mut ends = [Connection::connect(config.clone()), Connection::listen(config.clone())];
    ends[1].write(&[0; CSM]);
    let mut wake = [Instant::ORIGIN, Instant::NEVER];
    let (mut asked, mut heard, mut received, mut probe_rtt, mut phase) = (false, 0, 0, 0, "");
    loop {
        let next = |link: &Link<Segment>| link.next().unwrap_or(Instant::NEVER);
        let question = if asked { Instant::NEVER } else { ASKED };
        let now = [wake[0], wake[1], next(&links[0]), next(&links[1]), question].into_iter().min().unwrap();
        assert!(now < Instant::NEVER, "nothing happens any more");
        for way in 0..2 {
            while let Some(delivered) = links[way].deliver(now) {
                if let Delivered::Arrived(parcel) = delivered {
                    ends[1 - way].receive(now, parcel.payload);
                    wake[1 - way] = now;
                }
            }
        }
        if now == question {
            asked = true;
            ends[0].write(&[0; CSM]);
            ends[0].write(&[0; REQUEST]);
            wake[0] = now;
        }
        if heard < CSM + REQUEST {
            heard += ends[1].read().len();
            if heard == CSM + REQUEST {
                ends[1].write(&[0; RESPONSE]);
            }
        }
        received += ends[0].read().len();
        if received == CSM + RESPONSE {
            let drops = links[1].counters().dropped_by_queue().packets;
            return Download {
                seconds: now.since(ASKED).as_micros() as f64 / 1e6,
                server: ends[1].totals(),
                drops,
                probe_rtt,
            };
        }
        for end in 0..2 {
            if wake[end] > now {
                continue;
            }
            wake[end] = loop {
                match ends[end].poll(now) {
                    Polled::Send(segment) => {
                        let length = segment.length(config);
                        let _full = links[end].offer(now, length, segment);
                    }
                    Polled::Sleep(until) => break until,
                    Polled::Idle => break Instant::NEVER,
                }
            };
        }
        let before = std::mem::replace(&mut phase, ends[1].progress().phase);
        probe_rtt += u32::from(phase == "probe-rtt" && before != phase);
    }
}

fn new_reno(acks: DelayedAcks) -> Config {
    Config { acks, control: Control::NewReno(Recovery::RateHalving), ..Config::HELSINKI }
}

fn bbr(acks: DelayedAcks, seed: u64) -> Config {
    Config { acks, control: Control::Bbr(seed), ..Config::HELSINKI }
}

#[track_caller]
fn assert_near(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours - expected).abs() <= tolerance, "{ours} s, expected {expected} ± {tolerance} s");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Table 6: 32.867 s, without a loss.
#[test]
fn new_reno_through_a_buffer_that_never_fills() {
    let run = download(1_410_000, 0.0, 1, &new_reno(DelayedAcks::AS_PRINTED));
    assert_near(run.seconds, 32.867, 0.001);
    assert_eq!((run.drops, run.server.segments, run.server.retransmissions), (0, 402, 0));
}

/// Table 6: 95.138 s and 99 drops. Slow start overshoots once and pays for it hole by hole.
#[test]
fn new_reno_through_28200_bytes() {
    let run = download(28_200, 0.0, 1, &new_reno(DelayedAcks::AS_PRINTED));
    assert_near(run.seconds, 95.130, 0.001);
    assert_eq!((run.drops, run.server.recoveries, run.server.timeouts), (99, 1, 0));
}

/// Table 6: 58.235 s, which only acknowledgements after 40 ms give.
#[test]
fn new_reno_through_14100_bytes() {
    let printed = download(14_100, 0.0, 1, &new_reno(DelayedAcks::AS_PRINTED));
    assert_near(printed.seconds, 57.665, 0.001);
    let linux = download(14_100, 0.0, 1, &new_reno(DelayedAcks::LINUX));
    assert_near(linux.seconds, 58.261, 0.001);
    assert_eq!((printed.drops, linux.drops), (55, 56));
}

/// Table 6: 36.213 s. One packet more or less in the buffer moves this by seconds, hence the wide bound.
#[test]
fn new_reno_through_2500_bytes() {
    let run = download(2_500, 0.0, 1, &new_reno(DelayedAcks::AS_PRINTED));
    assert_near(run.seconds, 36.213, 3.6);
}

/// The classical repair takes longer than the rate halving of Linux or about as long, and loses nothing for good.
#[test]
fn the_repair_of_rfc_6582_delivers_as_well() {
    for buffer in [2_500, 14_100, 28_200] {
        let config = Config { control: Control::NewReno(Recovery::Inflation), ..Config::HELSINKI };
        let run = download(buffer, 0.0, 1, &config);
        assert!(run.server.recoveries > 0 && run.seconds < 200.0, "{buffer} B: {} s", run.seconds);
    }
}

/// Table 6: 34.568 s at the three larger buffers, no loss, two visits to the least round-trip time.
#[test]
fn bbr_is_alike_at_the_larger_buffers() {
    for buffer in [14_100, 28_200, 1_410_000] {
        for seed in [1, 2, 3] {
            let run = download(buffer, 0.0, 1, &bbr(DelayedAcks::AS_PRINTED, seed));
            assert_near(run.seconds, 34.591, 0.001);
            assert_eq!((run.drops, run.probe_rtt), (0, 2));
        }
    }
    let run = download(28_200, 0.0, 1, &bbr(DelayedAcks::LINUX, 1));
    assert_near(run.seconds, 34.431, 0.001);
}

/// Table 6 and §5.1: 51.7 to 79.4 s, 677 segments, first timeout at about 13 s: two bandwidth-delay products do not fit
/// a buffer of one. The kind of failure is the published one; it takes one to three timeouts more.
#[test]
fn bbr_fails_at_one_bandwidth_delay_product_as_published() {
    for seed in 0..6 {
        let run = download(2_500, 0.0, 1, &bbr(DelayedAcks::AS_PRINTED, seed));
        assert_near(run.server.first_timeout.unwrap() as f64 / 1e6, 13.0, 1.0);
        assert!(run.server.timeouts >= 3 && (600..=820).contains(&run.server.segments), "{:?}", run.server);
    }
}

/// Table 8, low error profile: 42.4 s with the infinite buffer.
#[test]
fn new_reno_under_two_per_cent_of_loss() {
    let runs =
        (0..31).map(|seed| download(1_410_000, 0.02, seed, &new_reno(DelayedAcks::AS_PRINTED)).seconds).collect();
    assert_near(median(runs), 42.4, 4.2);
}

/// Loss of either opening segment: it is sent again after 2 s, and data starts with a window of one.
#[test]
fn a_lost_handshake_is_repeated() {
    let mut client = Connection::connect(Config::HELSINKI);
    let mut server = Connection::listen(Config::HELSINKI);
    let at = |millis| Instant::ORIGIN.after(Span::from_millis(millis));
    let sent = |end: &mut Connection, now| match end.poll(now) {
        Polled::Send(segment) => segment,
        other => panic!("{other:?}"),
    };
    let _lost = sent(&mut client, at(0));
    assert_eq!(client.poll(at(0)), Polled::Sleep(at(2_000)));
    let again = sent(&mut client, at(2_000));
    assert!(again.opens() && again.copy);
    server.receive(at(2_200), again);
    let _lost = sent(&mut server, at(2_200));
    assert_eq!(server.poll(at(2_200)), Polled::Sleep(at(4_200)));
    let answer = sent(&mut server, at(4_200));
    client.receive(at(4_600), answer);
    assert_eq!(client.phase(), Phase::Open);
    assert_eq!(client.progress().window, 1);
    server.receive(at(4_800), sent(&mut client, at(4_600)));
    assert_eq!((server.phase(), server.progress().window), (Phase::Open, 1));
    assert_eq!(server.progress().timeout, 3_000_000);
}

/// A timer that ran out without need: everything is sent again, and the duplicates that this draws start no repair.
#[test]
fn a_needless_resend_starts_no_repair() {
    let mut client = Connection::connect(Config::HELSINKI);
    let mut server = Connection::listen(Config::HELSINKI);
    let at = |millis| Instant::ORIGIN.after(Span::from_millis(millis));
    let flight = |end: &mut Connection, now| {
        let mut segments = Vec::new();
        while let Polled::Send(segment) = end.poll(now) {
            segments.push(segment);
        }
        segments
    };
    for (from, to) in [(0, 300), (600, 900)] {
        flight(&mut client, at(from)).into_iter().for_each(|segment| server.receive(at(to), segment));
        flight(&mut server, at(to)).into_iter().for_each(|segment| client.receive(at(to + 300), segment));
    }
    client.write(&[1; 1_024]);
    let first = flight(&mut client, at(1_000));
    assert_eq!(first.len(), 4);
    let mut late = Vec::new();
    for segment in first {
        server.receive(at(1_300), segment);
        late.extend(flight(&mut server, at(1_300)));
    }
    // The acknowledgements are so late that the timer runs out.
    client.write(&[2; 2_048]);
    let mut again = flight(&mut client, at(3_000));
    assert_eq!(client.totals().timeouts, 1);
    for ack in late {
        client.receive(at(3_100), ack);
        again.extend(flight(&mut client, at(3_100)));
    }
    assert!(again.iter().filter(|segment| segment.copy).count() >= 3, "{again:?}");
    for segment in again {
        server.receive(at(3_400), segment);
        flight(&mut server, at(3_400)).into_iter().for_each(|ack| client.receive(at(3_700), ack));
    }
    assert!(client.totals().duplicate_acks >= 3, "{:?}", client.totals());
    assert_eq!(client.totals().recoveries, 0);
}

/// Nobody answers: the last copy of the opening segment is followed by failure.
#[test]
fn nobody_answers() {
    let mut client = Connection::connect(Config { syn_retries: 2, ..Config::HELSINKI });
    let (mut now, mut copies) = (Instant::ORIGIN, 0);
    loop {
        match client.poll(now) {
            Polled::Send(_) => copies += 1,
            Polled::Sleep(until) => now = until,
            Polled::Idle => break,
        }
    }
    assert_eq!((copies, client.phase(), now), (3, Phase::Failed, Instant::from_micros(14_000_000)));
}
