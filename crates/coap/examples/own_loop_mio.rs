//! The loop of `own_loop` on mio, where a socket is one of many things that are waited for: several servers are asked at a time.
//! `cargo run -p millpond-coap --example own_loop_mio -- uptime 127.0.0.1:5683 192.0.2.1:5683`.
#![allow(clippy::disallowed_methods, reason = "who drives a stack has the clock")]

use std::{
    error::Error,
    io::ErrorKind,
    net::SocketAddr,
    time::{self, Duration},
};

use millpond_coap::{
    ChanceSeed, Endpoint, IdGenerator, Instant, Output, Preset,
    message::{Code, number},
    transfer::{ClientRequest, CoapStack, Config, Event},
};
use mio::{Events, Interest, Poll, Token, net::UdpSocket};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "uptime".into());
    let servers = arguments.map(|server| server.parse()).collect::<Result<Vec<_>, _>>()?;
    for (server, answer) in ask_all(&servers, &path)? {
        println!("{server} {answer}");
    }
    Ok(())
}

/// What each server says to a GET, in the order of their answers.
fn ask_all(servers: &[SocketAddr], path: &str) -> Result<Vec<(SocketAddr, String)>, Box<dyn Error>> {
    // What must not be guessed comes from the operating system.
    let (mut key, mut seed) = ([0; 16], [0; 8]);
    getrandom::fill(&mut key)?;
    getrandom::fill(&mut seed)?;
    let chance = ChanceSeed::new(u64::from_le_bytes(seed));
    let (config, id_generator) = (millpond_coap::Config::default(), IdGenerator::secret(key));
    let endpoint = Endpoint::new(config, Preset::CALM.build(), chance, 0, id_generator)?;
    let mut stack = CoapStack::new(endpoint, Config::default(), chance)?;

    let mut socket = UdpSocket::bind("0.0.0.0:0".parse()?)?;
    let (mut poll, mut ready) = (Poll::new()?, Events::with_capacity(16));
    poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
    let began = time::Instant::now();
    let now = || Instant::from_micros(began.elapsed().as_micros() as u64);

    // Any number of inputs, then all outputs.
    for server in servers {
        stack.request(now(), *server, &ClientRequest::new(Code::GET, &[(number::URI_PATH, path.as_bytes())]))?;
    }
    let (mut answers, mut datagram) = (Vec::new(), [0; 2_048]);
    while answers.len() < servers.len() {
        let until = loop {
            match stack.poll(now()) {
                // A socket that takes nothing more loses the datagram, as a path would.
                Output::Transmit(transmit) => drop(socket.send_to(transmit.bytes, transmit.to)),
                Output::Event(Event::Answer { from, message, body, .. }) => {
                    answers.push((from, format!("{}: {}", message.code, String::from_utf8_lossy(&body))));
                }
                Output::Event(Event::Failed { to, why, .. }) => answers.push((to, why.to_string())),
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(until, _) => break until,
                Output::Idle => break Instant::NEVER,
            }
        };
        if answers.len() == servers.len() {
            break;
        }
        let micros = until.as_micros().saturating_sub(now().as_micros()).min(60_000_000);
        match poll.poll(&mut ready, Some(Duration::from_micros(micros))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        // mio says once that there are datagrams: all of them are handed in before the stack is polled again.
        while let Ok((length, from)) = socket.recv_from(&mut datagram) {
            stack.receive(now(), from, datagram.get(..length).unwrap_or_default());
        }
    }
    Ok(answers)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_asked_at_a_time() -> Result<(), Box<dyn Error>> {
        let mut servers = Vec::new();
        for _ in 0..3 {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
            servers.push(socket.local_addr()?);
            // Each answers one GET with 2.05 and its payload, under the message ID and token of the request.
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut request = [0; 64];
                let (_, client) = socket.recv_from(&mut request)?;
                let token = usize::from(request[0] & 15);
                let mut answer = request[..4 + token].to_vec();
                (answer[0], answer[1]) = (request[0] | 0x20, 0x45);
                answer.extend(b"\xffhere");
                socket.send_to(&answer, client).map(drop)
            });
        }
        let mut answers = ask_all(&servers, "uptime")?;
        answers.sort();
        servers.sort();
        assert_eq!(answers, servers.iter().map(|server| (*server, "2.05: here".to_owned())).collect::<Vec<_>>());
        Ok(())
    }
}
