//! What a flood from forged addresses does to those who ask in earnest.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use quinn_udp::{Transmit, UdpSocketState};

use crate::{
    Arguments, Failure, OUTSTANDING,
    generator::{Generator, Limit},
    process::{Running, megabytes},
    sides,
};

/// Unvalidated peers' datagrams a second; the last is as many as one thread can send.
const RATES: [u64; 4] = [0, 10_000, 40_000, u64::MAX];

/// Known clients beside more and more datagrams of unvalidated peers, of ours and of the bare loop.
pub(crate) fn flood(arguments: &Arguments) -> Result<(), Failure> {
    println!("{OUTSTANDING} known clients beside datagrams from forged addresses:");
    println!("                   unvalidated  known clients' requests       ms to an answer      not        MB");
    println!("                     a second   a second                      median     99 %      answered   resident");
    for side in [sides::floor()?, sides::ours()?] {
        let running = Running::start(&side)?;
        let mut generator = Generator::new(OUTSTANDING)?;
        generator.run(&running, Limit::Time(side.warm_up))?;
        let mut calm = None;
        for rate in RATES {
            let flood = Flood::start(running.address, rate)?;
            let start = Instant::now();
            let run = generator.run(&running, Limit::Time(arguments.time))?;
            let sent = flood.stop() as f64 / start.elapsed().as_secs_f64();
            let (its_rate, median) = (run.rate(), run.within(0.5));
            let (calm_rate, calm_median) = *calm.get_or_insert((its_rate, median));
            println!(
                "  {:<16} {sent:11.0} {its_rate:10.0} (1/{:.1}) {:17.2} ({:4.1}x) {:8.2} {:10} {:10.1}",
                side.name,
                calm_rate / its_rate,
                median,
                median / calm_median,
                run.within(0.99),
                run.lost,
                megabytes(running.resident()),
            );
        }
    }
    Ok(())
}

/// A thread that sends what unvalidated peers might: requests of either type with identities drawn at random, unknown paths, and
/// bytes that are no message, each from an address of its own.
struct Flood {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: thread::JoinHandle<io::Result<()>>,
}

impl Flood {
    fn start(server: SocketAddr, rate: u64) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        let (is_over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut word = 1_u64;
            while !over.load(Ordering::Relaxed) {
                let so_far = count.load(Ordering::Relaxed);
                if rate < u64::MAX && so_far as f64 >= start.elapsed().as_secs_f64() * rate as f64 {
                    thread::sleep(Duration::from_micros(500));
                    continue;
                }
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let drawn = word.to_be_bytes();
                let source = Some(IpAddr::V4(Ipv4Addr::new(127, drawn[0] | 16, drawn[1], drawn[2] | 1)));
                let transmit = Transmit {
                    destination: server,
                    ecn: None,
                    contents: &datagram(drawn),
                    segment_size: None,
                    src_ip: source,
                };
                match state.try_send((&socket).into(), &transmit) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => count.store(so_far + 1, Ordering::Relaxed),
                }
            }
            Ok(())
        });
        Ok(Self { is_over, sent, thread })
    }

    /// Ends it. Returns how many datagrams left.
    fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        if let Ok(Err(error)) = self.thread.join() {
            println!("  the flood ended early: {error}");
        }
        self.sent.load(Ordering::Relaxed)
    }
}

/// What an unvalidated peer sends.
fn datagram(drawn: [u8; 8]) -> Vec<u8> {
    let [.., kind, high, low, a, b] = drawn;
    let (confirmable, non_confirmable) = (0x44, 0x54);
    let head = |first: u8| vec![first, 1, high, low, a, b, low, high];
    match kind % 8 {
        0 => drawn.repeat(1 + usize::from(a % 8)),
        1 => [head(confirmable), vec![0xb4, a | 1, b | 1, b'x', b'y']].concat(),
        2 => [head(non_confirmable), b"\xb5bench".to_vec()].concat(),
        _ => [head(confirmable), b"\xb5bench".to_vec()].concat(),
    }
}
