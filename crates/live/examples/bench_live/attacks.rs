//! What else unvalidated peers may try, and what known clients notice of it.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use quinn_udp::{Transmit, UdpSocketState};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::{
    Arguments, Failure, OUTSTANDING,
    generator::{Generator, Limit, Run},
    process::{Running, megabytes},
    sides,
};

/// Unvalidated peers that ask for a handler that takes a minute.
const SLOW: u32 = 5_000;
/// Ports of one machine that do, and requests of each.
const PORTS: (u32, u16) = (70, 62);
/// Connections that say nothing.
const SILENT: u32 = 20_000;
/// Requests at once for 16 MiB each.
const LARGE: u32 = 64;

/// Known clients of a server of ours before and during each attack.
pub(crate) fn attacks(arguments: &Arguments) -> Result<(), Failure> {
    // Both this process and the servers that it starts need a descriptor for each connection; root may ask for more.
    let files = getrlimit(Resource::Nofile);
    let enough = files.maximum.map(|most| most.max(u64::from(2 * SILENT)));
    setrlimit(Resource::Nofile, Rlimit { current: enough, maximum: enough })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }))?;
    println!("{OUTSTANDING} known clients beside attacks:");
    println!("                                        requests a second    not        MB resident");
    println!("                                        before    during     answered   before   during");
    let attacks: [(&str, Attack); 4] = [
        ("5,000 unknown peers ask a slow handler", slow),
        ("so do 70 ports, 4,340 times", ports),
        ("64 ask for 16 MiB at once", large),
        ("20,000 silent TCP connections", silent),
    ];
    for (name, attack) in attacks {
        let running = Running::start(&sides::ours()?)?;
        let mut generator = Generator::new(OUTSTANDING)?;
        let measure = |generator: &mut Generator| -> Result<(Run, f64), Failure> {
            let run = generator.run(&running, Limit::Time(arguments.time))?;
            Ok((run, megabytes(running.resident())))
        };
        let (before, calm) = measure(&mut generator)?;
        let under = attack(&running)?;
        let (during, loud) = measure(&mut generator)?;
        println!(
            "  {name:<36} {:8.0} {:8.0} (1/{:.2}) {:8} {calm:10.1} {loud:8.1}{}",
            before.rate(),
            during.rate(),
            before.rate() / during.rate(),
            during.lost + during.refused,
            fresh(running.address)?,
        );
        drop(under);
    }
    Ok(())
}

/// Attacks a server.
type Attack = fn(&Running) -> Result<Under, Failure>;
/// What is kept until an attack is over.
type Under = Vec<TcpStream>;

/// How long a client that comes now waits for its answer over TCP.
fn fresh(server: SocketAddr) -> Result<String, Failure> {
    let start = Instant::now();
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    // Settings, and GET /bench with the token `t`.
    stream.write_all(b"\0\xe1\x61\x01t\xb5bench")?;
    let (mut came, mut room) = (Vec::new(), [0; 256]);
    while !came.windows(2).any(|bytes| bytes == b"Et") {
        match stream.read(&mut room) {
            Ok(count) if count > 0 => came.extend_from_slice(&room[..count]),
            _ => return Ok("; a fresh client over TCP is not answered".into()),
        }
    }
    Ok(format!("; {:.1} ms to a fresh client over TCP", start.elapsed().as_secs_f64() * 1e3))
}

/// Sends a datagram from each of so many addresses.
fn strangers(server: SocketAddr, count: u32, contents: &[u8]) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let state = UdpSocketState::new((&socket).into())?;
    for number in 0..count {
        let [_, high, middle, low] = (number << 4).to_be_bytes();
        let src_ip = Some(IpAddr::V4(Ipv4Addr::new(127, 16 + high, middle, low)));
        let transmit = Transmit { destination: server, ecn: None, contents, segment_size: None, src_ip };
        while let Err(error) = state.try_send((&socket).into(), &transmit) {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            thread::yield_now();
        }
        if number % 64 == 63 {
            // The server is to get all of them.
            thread::sleep(Duration::from_millis(1));
        }
    }
    thread::sleep(Duration::from_millis(300));
    Ok(())
}

fn slow(server: &Running) -> Result<Under, Failure> {
    strangers(server.address, SLOW, b"\x50\x01\0\x01\xb4slow")?;
    Ok(Vec::new())
}

fn large(server: &Running) -> Result<Under, Failure> {
    strangers(server.address, LARGE, b"\x50\x01\0\x01\xb5large")?;
    Ok(Vec::new())
}

fn ports(server: &Running) -> Result<Under, Failure> {
    for _ in 0..PORTS.0 {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        for id in 0..PORTS.1 {
            let [high, low] = id.to_be_bytes();
            socket.send_to(&[&[0x50, 1, high, low][..], b"\xb4slow"].concat(), server.address)?;
        }
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(300));
    Ok(Vec::new())
}

fn silent(server: &Running) -> Result<Under, Failure> {
    let mut open = Vec::new();
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Some are for a peer that else is to be asked.
    let count = SILENT.min(u32::try_from(files.saturating_sub(256)).unwrap_or(u32::MAX));
    if count < SILENT {
        println!("  {count} connections, as many as a process may have here");
    }
    for number in 0..count {
        let [_, high, middle, low] = (number << 4).to_be_bytes();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([127, 16 + high, middle, low | 1], 0)).into())?;
        match socket.connect(&server.address.into()) {
            Ok(()) => open.push(socket.into()),
            Err(error) => {
                println!("  after {number} connections: {error}");
                break;
            }
        }
    }
    Ok(open)
}
