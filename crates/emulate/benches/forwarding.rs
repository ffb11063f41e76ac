//! How late, how busy and how fast the emulator is: `cargo bench -p millpond-emulate`, about half a minute.
//!
//! Datagrams of 1472 B go one way, paced or as fast as they come, through the relay over the loopback interface, and where this
//! machine makes namespaces through TUN devices. Sender and receiver are this program once more, as processes of their own, so
//! that the time on the processor is the emulator's alone.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the clock is what is measured with")]

use std::env;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use millpond_emulate::{LatenessBound, Relay, RelayOptions, Report};
use millpond_path::Path;

/// Payload of a datagram: with IP and UDP in front, 1500 B.
const PAYLOAD: usize = 1_472;
const LASTS: Duration = Duration::from_secs(4);

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", to, bits] => return send(to.parse()?, bits.parse()?),
        ["take", at] => return take(at.parse()?),
        _ => {}
    }
    println!("{:<28} {:>14} {:>10} {:>10} {:>10} {:>12}", "", "forwarded", "50 %", "99 %", "all", "processor");
    // The link, and what is sent into it: as much as it carries, and for the last far more than that.
    for (name, link, sent) in [
        ("30 kbit/s", 30_000_u64, 30_000_u64),
        ("1 Mbit/s", 1_000_000, 1_000_000),
        ("100 Mbit/s", 100_000_000, 98_000_000),
        ("as fast as it goes", 100_000_000_000, 0),
    ] {
        let text = format!("rate = \"{link} bit/s\"\ndelay = \"20 ms\"\nqueue = \"100 MB\"\n");
        let path = Path::from_toml(&format!("[uplink]\n{text}[downlink]\n{text}"), "bench")?;
        tell(&format!("relay, {name}"), relay(&path, sent)?);
        match tun(&path, sent) {
            Ok(measured) => tell(&format!("TUN, {name}"), measured),
            Err(why) => println!("TUN, {name}: left out: {why}"),
        }
    }
    Ok(())
}

/// A run, how long it was sent for, and how long the emulator was on a processor.
type Measured = (Report, Duration, Duration);

fn tell(name: &str, (report, lasted, busy): Measured) {
    let bits = report.links[0].delivered_bytes as f64 * 8.0 / lasted.as_secs_f64();
    let late = |micros: u64| format!("{:.3} ms", micros as f64 / 1e3);
    let lateness = &report.lateness;
    println!(
        "{name:<28} {:>7.2} Mbit/s {:>10} {:>10} {:>10} {:>10.1} %",
        bits / 1e6,
        late(lateness.p50_us),
        late(lateness.p99_us),
        late(lateness.max_us),
        100.0 * busy.as_secs_f64() / lasted.as_secs_f64()
    );
}

fn relay(path: &Path, bits: u64) -> Result<Measured, Failed> {
    let sink = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let bound = Some(LatenessBound::from_usual(Duration::from_secs(60)));
    let options =
        RelayOptions { listen: "127.0.0.1:0".parse()?, to: sink, from: Vec::new(), seed: 1, most_clients: 8, bound };
    let relay = Relay::bind(path, options)?;
    let (at, stop) = (relay.local_addr()?, relay.stop());
    let mut taker = this_program(&["take", &sink.to_string()]).spawn()?;
    thread::sleep(Duration::from_millis(200));
    let run = thread::spawn(move || relay.run());
    let (lasted, busy) = sent_by(this_program(&["send", &at.to_string(), &bits.to_string()]).spawn()?)?;
    stop.stop();
    taker.kill()?;
    taker.wait()?;
    let report = run.join().map_err(|_| "the relay broke off")??;
    Ok((report, lasted, busy))
}

#[cfg(target_os = "linux")]
fn tun(path: &Path, bits: u64) -> Result<Measured, Failed> {
    use millpond_emulate::linux::{Emulation, EmulationOptions, End};
    let bound = Some(LatenessBound::from_usual(Duration::from_secs(60)));
    let options = EmulationOptions { devices: 1, mtu: 1_500, seed: 1, bound, capture: None };
    let emulation = Emulation::begin(path, &options, None)?;
    let at = SocketAddr::new(End::Server.ipv4().into(), 5683).to_string();
    let taker = emulation.spawn(End::Server, this_program(&["take", &at]))?;
    while !Emulation::has_socket(&taker) {
        thread::sleep(Duration::from_millis(10));
    }
    let sender = emulation.spawn(End::Device(1), this_program(&["send", &at, &bits.to_string()]))?;
    let (lasted, busy) = sent_by(sender)?;
    Ok((emulation.end(&mut [taker])?, lasted, busy))
}

#[cfg(not(target_os = "linux"))]
fn tun(_: &Path, _: u64) -> Result<Measured, Failed> {
    Err("needs Linux".into())
}

/// Waits for a sender. How long that was, and how long this process was on a processor meanwhile.
fn sent_by(mut sender: Child) -> Result<(Duration, Duration), Failed> {
    let (begun, before) = (Instant::now(), processor_time());
    sender.wait()?;
    Ok((begun.elapsed(), processor_time() - before))
}

#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> Duration {
    Duration::ZERO
}

fn this_program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap_or_default());
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Sends so many bits a second of IP, or all that go.
fn send(to: SocketAddr, bits: u64) -> Result<(), Failed> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    let begun = Instant::now();
    for count in 0_u64.. {
        // At no pace at all nothing is waited for.
        if let Some(nanos) = (count * (PAYLOAD as u64 + 28) * 8 * 1_000_000_000).checked_div(bits) {
            let due = begun + Duration::from_nanos(nanos);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        if begun.elapsed() > LASTS {
            break;
        }
        // What nobody takes is nobody's.
        let _ = socket.send(&[0; PAYLOAD]);
    }
    Ok(())
}

fn take(at: SocketAddr) -> Result<(), Failed> {
    let socket = UdpSocket::bind(at)?;
    let mut bytes = [0; 2_048];
    loop {
        let _ = socket.recv(&mut bytes);
    }
}
