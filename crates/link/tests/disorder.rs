//! Jitter: order kept or not, and wake-ups that fit.

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Delivered, Jitter, Limit, Link, Loss, LossAt, Order, Probability, Rate};

const FROM: Span = Span::from_millis(10);
const TO: Span = Span::from_millis(20);

fn config(order: Order, loss: Loss) -> Config {
    // A packet of 94 B each 4 ms, jitter of up to 10 ms: overtaking is common.
    let plain = Config::plain(Rate::BitsPerSecond(188_000), Span::from_millis(200), Limit::Packets(10_000));
    Config { jitter: Jitter::Uniform { from: FROM, to: TO, order }, loss, ..plain }
}

struct Outcome {
    /// Number, departure, arrival (µs), lost.
    packets: Vec<(u64, u64, u64, bool)>,
    /// Wake-ups at which nothing was due.
    vain: usize,
}

fn run(config: Config, count: u64) -> Outcome {
    let mut link = Link::new(&config, ChanceSeed::new(5), 2).unwrap();
    for number in 0..count {
        let _ = link.offer(Instant::ORIGIN, 94, number);
    }
    let mut outcome = Outcome { packets: Vec::new(), vain: 0 };
    while let Some(now) = link.next() {
        let before = outcome.packets.len();
        while let Some(delivered) = link.deliver(now) {
            let (parcel, lost) = match delivered {
                Delivered::Arrived(parcel) => (parcel, false),
                Delivered::Lost(parcel) | Delivered::Dropped(parcel, _) => (parcel, true),
            };
            assert_eq!(parcel.number, parcel.payload);
            assert_eq!(parcel.at, now, "handed out when due, not later");
            outcome.packets.push((parcel.number, parcel.left.as_micros(), parcel.at.as_micros(), lost));
        }
        outcome.vain += usize::from(outcome.packets.len() == before);
    }
    link.check_conservation().unwrap();
    outcome
}

fn some_loss() -> Loss {
    Loss::Bernoulli { rate: Probability::from_f64(0.3).unwrap() }
}

#[test]
fn preserved_order_is_that_of_departure_and_nobody_waits_in_vain() {
    let outcome = run(config(Order::Preserved, Loss::None), 5_000);
    assert_eq!(outcome.vain, 0);
    assert_eq!(outcome.packets.len(), 5_000);
    let own = run(config(Order::Free, Loss::None), 5_000);
    let mut undisturbed: Vec<_> = own.packets;
    undisturbed.sort_unstable();
    let mut latest = 0;
    for (expected, &(number, left, at, _)) in outcome.packets.iter().enumerate() {
        assert_eq!(number, expected as u64);
        // The same random numbers as without order, and no more waiting than the packets before it make necessary.
        latest = undisturbed[expected].2.max(latest);
        assert_eq!((left, at), (undisturbed[expected].1, latest));
    }
}

#[test]
fn free_packets_take_their_own_time_and_overtake() {
    let outcome = run(config(Order::Free, Loss::None), 5_000);
    assert!(outcome.packets.is_sorted_by_key(|&(number, _, at, _)| (at, number)));
    for &(number, left, at, _) in &outcome.packets {
        assert_eq!(left, (number + 1) * 4_000);
        assert!((left + 210_000..=left + 220_000).contains(&at), "{number}");
    }
    let overtaken = outcome.packets.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    // A packet is overtaken by the next if its jitter is 4 ms longer: 0.6²/2 = 18 %, less by what others put between.
    assert!((500..1_000).contains(&overtaken), "{overtaken}");
    assert!(outcome.vain <= 5_000);
}

#[test]
fn a_lost_packet_holds_nobody_up_and_comes_in_its_place() {
    let lossy = run(config(Order::Preserved, some_loss()), 5_000);
    let lost = lossy.packets.iter().filter(|packet| packet.3).count();
    assert!((1_300..1_700).contains(&lost), "{lost}");
    assert!(lossy.packets.iter().enumerate().all(|(n, packet)| packet.0 == n as u64));
    assert!(lossy.packets.is_sorted_by_key(|packet| packet.2));
    let mut own = run(config(Order::Free, Loss::None), 5_000).packets;
    own.sort_unstable();
    let mut latest = 0;
    for (packet, undisturbed) in lossy.packets.iter().zip(own).filter(|(packet, _)| !packet.3) {
        latest = undisturbed.2.max(latest);
        assert_eq!(packet.2, latest);
    }
    assert!(lossy.vain <= 5_000);
}

#[test]
fn with_losses_before_the_rate_stage_wake_ups_are_exact_again() {
    let outcome = run(Config { loss_at: LossAt::BeforeRate, ..config(Order::Preserved, some_loss()) }, 5_000);
    assert_eq!(outcome.vain, 0);
    assert!(outcome.packets.len() < 4_000);
}

#[test]
fn jitter_belongs_to_the_packet_whatever_its_length_and_moment() {
    let jitter = |len: u32, gap: u64| -> Vec<u64> {
        let mut link = Link::new(&config(Order::Free, Loss::None), ChanceSeed::new(5), 2).unwrap();
        (0..200_u64).for_each(|n| link.offer(Instant::from_micros(n * gap), len, ()).unwrap());
        let mut delays = vec![0; 200];
        while let Some(now) = link.next() {
            if let Some(Delivered::Arrived(parcel)) = link.deliver(now) {
                delays[parcel.number as usize] = parcel.at.as_micros() - parcel.left.as_micros();
            }
        }
        delays
    };
    assert_eq!(jitter(94, 0), jitter(1_400, 77_777));
}
