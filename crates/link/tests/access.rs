//! Access to a cell against closed forms: collisions of preambles, sleep, grants, duty cycles.

use millpond_control::{ChanceSeed, Instant, Purpose, Span};
use millpond_link::{
    Access, AccessRules, Config, Connection, Delivered, DutyCycle, Levels, Limit, Link, Passing, Probability,
    RandomAccess, Rate,
};

const fn ms(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

const RANDOM: RandomAccess = RandomAccess {
    preambles: 54,
    every: Span::from_millis(5),
    grants: None,
    attempts: 1,
    response: Span::from_millis(5),
    backoff: Span::from_millis(20),
    ramping: false,
};

const CONNECTION: Connection = Connection {
    random: Some(RANDOM),
    set_up: Span::from_millis(50),
    inactivity: Span::from_secs(10),
    paging: 0,
    sleeps_after: None,
};

fn access(connection: Option<Connection>, grant: Span, duty: Option<DutyCycle>, seed: u64) -> Access<u32> {
    let rules = AccessRules { connection, grant, levels: Levels::ONE, duty };
    Access::new(rules, ChanceSeed::new(seed)).unwrap()
}

/// All that comes through until nothing is left.
fn drain(access: &mut Access<u32>) -> Vec<Passing<u32>> {
    let mut all = Vec::new();
    while let Some(now) = access.next() {
        all.extend(std::iter::from_fn(|| access.release(now)));
    }
    let counters = *access.counters();
    assert_eq!(counters.offered, counters.passed + counters.dropped + access.held());
    all
}

#[test]
fn devices_that_speak_together_collide_as_often_as_the_birthdays_say() {
    // Each of n is alone with its preamble, of p, with probability (1 - 1/p)^(n-1).
    for (n, p) in [(10_u32, 54_u16), (54, 54), (150, 48), (30, 12)] {
        let runs = 400;
        let mut alone = 0;
        for seed in 0..runs {
            let random = RandomAccess { preambles: p, ..RANDOM };
            let mut access = access(Some(Connection { random: Some(random), ..CONNECTION }), Span::ZERO, None, seed);
            (0..n).for_each(|device| access.offer(ms(7), device, false, 50, device));
            let passed = drain(&mut access).iter().filter(|packet| !packet.is_dropped).count() as u64;
            let counters = access.counters();
            assert_eq!((counters.connections, counters.preambles), (passed, u64::from(n)));
            assert_eq!(counters.collided + counters.connections, u64::from(n));
            alone += passed;
        }
        let chance = (1.0 - 1.0 / f64::from(p)).powi(n as i32 - 1);
        let expected = runs as f64 * f64::from(n) * chance;
        // Collisions come in pairs: at most twice the variance of independent devices.
        let error = 4.0 * (2.0 * expected * (1.0 - chance)).sqrt();
        assert!((alone as f64 - expected).abs() < error, "{n} devices, {p} preambles: {alone}, not {expected:.0}");
    }
}

/// 3GPP TR 37.868, results for traffic model 2: of 30,000 devices that an event synchronises within 10 s 29.5 % get access.
#[test]
fn thirty_thousand_devices_fare_as_in_tr_37_868() {
    let (n, seed) = (30_000_u32, ChanceSeed::new(3));
    let random = RandomAccess { attempts: 10, grants: Some(15), ramping: true, ..RANDOM };
    let mut access = access(Some(Connection { random: Some(random), ..CONNECTION }), Span::ZERO, None, 3);
    // Beta(3, 4) is the third smallest of six uniform times.
    let mut arrivals: Vec<(u64, u32)> = (0..n)
        .map(|device| {
            let mut six: Vec<u32> =
                (0..6).map(|draw| seed.at(Purpose::Workload, [device, draw, 0, 0]).pick(0, 9_999_999)).collect();
            six.sort_unstable();
            (u64::from(six[2]), device)
        })
        .collect();
    arrivals.sort_unstable();
    let mut passed = 0;
    for (at, device) in arrivals {
        while let Some(next) = access.next().filter(|next| next.as_micros() < at) {
            passed += std::iter::from_fn(|| access.release(next)).filter(|packet| !packet.is_dropped).count();
        }
        access.offer(Instant::from_micros(at), device, false, 50, device);
    }
    passed += drain(&mut access).iter().filter(|packet| !packet.is_dropped).count();
    let share = passed as f64 / f64::from(n);
    assert!((share - 0.295).abs() < 0.03, "{share}");
}

#[test]
fn a_connection_is_made_once_and_ends_after_its_last_packet() {
    let mut access = access(Some(CONNECTION), Span::from_millis(8), None, 1);
    access.offer(ms(1), 3, false, 50, 0);
    access.offer(ms(2), 3, false, 50, 1);
    // Opportunity at 5 ms, answer at 10, connected at 60: both go.
    let at = |access: &mut Access<u32>| {
        drain(access).iter().map(|p| (p.at.as_micros() / 1_000, p.payload)).collect::<Vec<_>>()
    };
    assert_eq!(at(&mut access), [(60, 0), (60, 1)]);
    // Connected until 10.06 s: a packet waits for its grant, one for the device does not wait.
    access.offer(ms(9_000), 3, false, 50, 2);
    access.offer(ms(9_001), 3, true, 50, 3);
    assert_eq!(at(&mut access), [(9_001, 3), (9_008, 2)]);
    assert_eq!(access.counters().connections, 1);
    // Until 19.008 s; then again an opportunity, an answer and the set-up, also if a packet for it comes first.
    access.offer(ms(19_008), 3, true, 50, 4);
    assert_eq!(at(&mut access), [(19_010 + 55, 4)]);
    assert_eq!(access.counters().connections, 2);
}

#[test]
fn a_device_is_reached_when_it_listens_and_not_while_it_sleeps() {
    let cycle = 20_480_000;
    let connection = Connection { random: None, paging: cycle, sleeps_after: Some(60_000_000), ..CONNECTION };
    let mut access = access(Some(connection), Span::ZERO, None, 5);
    let devices = 2_000;
    for device in 0..devices {
        access.offer(ms(1_000), device, true, 50, device);
    }
    let all = drain(&mut access);
    assert_eq!(all.len(), devices as usize);
    // Uniform over a cycle, each at its own time, and then the set-up.
    let waits: Vec<f64> = all.iter().map(|packet| (packet.at.as_micros() - 1_050_000) as f64).collect();
    let mean = waits.iter().sum::<f64>() / f64::from(devices);
    let error = 4.0 * cycle as f64 / (12.0 * f64::from(devices)).sqrt();
    assert!((mean - cycle as f64 / 2.0).abs() < error && waits.iter().all(|wait| *wait < cycle as f64), "{mean}");
    // Asleep a minute after its connection ended: it is reached when it sends by itself.
    let late = all.iter().map(|packet| packet.at.as_micros()).max().unwrap() / 1_000 + 10_000 + 60_000;
    access.offer(ms(late), 7, true, 50, 1);
    assert_eq!((drain(&mut access).len(), access.held()), (0, 1));
    access.offer(ms(late + 500_000), 7, false, 50, 2);
    assert_eq!(drain(&mut access).iter().map(|packet| packet.payload).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_duty_cycle_leaves_its_share_of_the_rate() {
    // 250 B at 10 kbit/s take 0.2 s: at 1 % one in 20 s.
    let share = Probability::from_f64(0.01).unwrap();
    let duty = DutyCycle { share, rate: 10_000, overhead: 0 };
    let mut access = access(None, Span::ZERO, Some(duty), 1);
    let (mut bytes, mut end) = (0_u64, 0);
    for packet in 0..1_000 {
        access.offer(Instant::from_micros(end), 0, false, 250, packet);
        let out = drain(&mut access);
        assert_eq!(out.len(), 1);
        bytes += 250;
        end = out[0].at.as_micros();
    }
    let rate = (bytes - 250) as f64 * 8e6 / end as f64;
    assert!((rate - 100.0).abs() < 0.001, "{rate} bit/s of 10 kbit/s");
    // Another device has its own.
    access.offer(Instant::from_micros(end), 1, false, 250, 0);
    assert_eq!(drain(&mut access)[0].at.as_micros(), end);
}

#[test]
fn a_repeated_packet_takes_so_many_times_as_long() {
    // 100 B at 8 kbit/s take 0.1 s, sixteen times 1.6 s, also where the rate changes while they wait.
    let levels = Levels::new(&[(1, 1), (1, 16)]).unwrap();
    let once = (0..).find(|device| levels.of(*device) == 0).unwrap();
    let often = (0..).find(|device| levels.of(*device) == 1).unwrap();
    let config = Config::plain(Rate::BitsPerSecond(8_000), Span::ZERO, Limit::Packets(10));
    let mut link = Link::new(&config, ChanceSeed::new(1), 0).unwrap().repeat(levels);
    for radio in [once, often, often, once] {
        link.offer_of(ms(0), radio, 100, ()).unwrap();
    }
    link.set_rate(ms(1_700), Rate::BitsPerSecond(16_000)).unwrap();
    let mut at = Vec::new();
    while let Some(now) = link.next() {
        while let Some(Delivered::Arrived(parcel)) = link.deliver(now) {
            at.push(parcel.at.as_micros() / 1_000);
        }
    }
    assert_eq!(at, [100, 1_700, 2_500, 2_550]);
    link.check_conservation().unwrap();
}

#[test]
fn who_is_never_answered_gives_up_and_a_device_holds_no_more_than_it_has_room_for() {
    let random = RandomAccess { preambles: 1, attempts: 3, ..RANDOM };
    let mut access = access(Some(Connection { random: Some(random), ..CONNECTION }), Span::ZERO, None, 1);
    let both: Vec<u32> = (0..2).collect();
    // Two with one preamble meet until chance parts them.
    both.iter().for_each(|device| access.offer(ms(1), *device, false, 50, *device));
    drain(&mut access);
    assert!(access.counters().collided >= 2);
    for packet in 0..100 {
        access.offer(ms(5_000_000), 9, false, 50, packet);
    }
    let all = drain(&mut access);
    assert_eq!(all.iter().filter(|packet| packet.is_dropped).count(), 100 - Access::<u32>::ROOM);
}

#[test]
fn what_gives_nobody_access_is_refused() {
    let rules = |connection| AccessRules { connection, grant: Span::ZERO, levels: Levels::ONE, duty: None };
    let refused = |connection: Connection| rules(Some(connection)).check().unwrap_err().field();
    let with = |random| Connection { random: Some(random), ..CONNECTION };
    assert_eq!(refused(with(RandomAccess { preambles: 0, ..RANDOM })), "preambles");
    assert_eq!(refused(with(RandomAccess { attempts: 0, ..RANDOM })), "attempts");
    assert_eq!(refused(with(RandomAccess { grants: Some(0), ..RANDOM })), "grants");
    assert_eq!(refused(with(RandomAccess { every: Span::ZERO, ..RANDOM })), "every");
    assert_eq!(refused(Connection { inactivity: Span::ZERO, ..CONNECTION }), "inactivity");
    let duty = Some(DutyCycle { share: Probability::ZERO, rate: 1, overhead: 0 });
    assert_eq!(AccessRules { duty, ..rules(None) }.check().unwrap_err().field(), "duty_cycle");
}
