//! The same state machines in a custom loop: a socket of the standard library, and no runtime at all.
//! `cargo run -p millpond-live --example own_loop_without_tokio -- 192.0.2.1:5683 time`.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use millpond_coap::{
    Endpoint, Identities, Output,
    message::{Code, number},
    transfer::{ClientRequest, CoapStack, Config, Event},
};
use millpond_control::{ChanceSeed, Instant, Preset};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server: SocketAddr = arguments.next().unwrap_or_else(|| "127.0.0.1:5683".into()).parse()?;
    let path = arguments.next().unwrap_or_else(|| "time".into());

    // What must not be guessed comes from the operating system.
    let (mut key, mut seed) = ([0; 16], [0; 8]);
    getrandom::fill(&mut key).map_err(|error| error.to_string())?;
    getrandom::fill(&mut seed).map_err(|error| error.to_string())?;
    let chance = ChanceSeed::new(u64::from_le_bytes(seed));
    let controller = Preset::FASOR_TOKEN.build();
    let endpoint = Endpoint::new(millpond_coap::Config::default(), controller, chance, 0, Identities::secret(key))?;
    let mut stack = CoapStack::new(endpoint, Config::default(), chance)?;

    let socket = UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    stack.request(now(), server, &ClientRequest::new(Code::GET, &[(number::URI_PATH, path.as_bytes())]))?;
    let mut datagram = [0; 2_048];
    loop {
        // One input, then drain.
        let sleep = loop {
            match stack.poll(now()) {
                Output::Transmit(transmit) => drop(socket.send_to(transmit.bytes, transmit.to)?),
                Output::Event(Event::Answer { message, body, .. }) => {
                    println!("{}: {}", message.code, String::from_utf8_lossy(&body));
                    return Ok(());
                }
                Output::Event(Event::Failed { why, .. }) => return Err(why.into()),
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(until, _) => break until,
                Output::Idle => break Instant::NEVER,
            }
        };
        // Until something comes, or the stack wants to be asked again.
        let micros = sleep.as_micros().saturating_sub(now().as_micros()).clamp(1, 60_000_000);
        socket.set_read_timeout(Some(Duration::from_micros(micros)))?;
        match socket.recv_from(&mut datagram) {
            Ok((length, from)) => stack.receive(now(), from, datagram.get(..length).unwrap_or_default()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Microseconds of a clock that never goes back.
fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_micros(time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000)
}
