//! Client and server in a loop of your own: a socket and a clock of the standard library, and no runtime.
//! `cargo run -p millpond-coap --example own_loop` serves `uptime` on port 5683 of this machine, and with the arguments
//! `127.0.0.1:5683 uptime` it asks for that. `own_loop_mio` beside it waits for several things at a time.
#![allow(clippy::disallowed_methods, reason = "who drives a stack has the clock")]

use std::{
    error::Error,
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
    time::{self, Duration},
};

use millpond_coap::{
    ChanceSeed, Endpoint, IdGenerator, Instant, Output, Preset,
    message::{Code, number},
    transfer::{Answer, ClientRequest, CoapStack, Config, Event},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(server) = arguments.next() else {
        let mut node = Node::new("127.0.0.1:5683")?;
        loop {
            node.turn()?;
        }
    };
    println!("{}", ask(server.parse()?, &arguments.next().unwrap_or_else(|| "uptime".into()))?);
    Ok(())
}

/// The response of this server to a GET, as text.
fn ask(server: SocketAddr, path: &str) -> Result<String, Box<dyn Error>> {
    let mut node = Node::new(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    let (now, options) = (node.now(), [(number::URI_PATH, path.as_bytes())]);
    node.stack.request(now, server, &ClientRequest::new(Code::GET, &options))?;
    loop {
        if let Some(answer) = node.turn()? {
            return Ok(answer);
        }
    }
}

/// A socket, and the state machines that say what it is to do.
struct Node {
    socket: UdpSocket,
    stack: CoapStack<Endpoint<SocketAddr>>,
    began: time::Instant,
}

impl Node {
    fn new(address: &str) -> Result<Self, Box<dyn Error>> {
        // What must not be guessed comes from the operating system.
        let (mut key, mut seed) = ([0; 16], [0; 8]);
        getrandom::fill(&mut key)?;
        getrandom::fill(&mut seed)?;
        let chance = ChanceSeed::new(u64::from_le_bytes(seed));
        let (config, id_generator) = (millpond_coap::Config::default(), IdGenerator::secret(key));
        let endpoint = Endpoint::new(config, Preset::CALM.build(), chance, 0, id_generator)?;
        let stack = CoapStack::new(endpoint, Config::default(), chance)?;
        Ok(Self { socket: UdpSocket::bind(address)?, stack, began: time::Instant::now() })
    }

    /// Microseconds since the node was made.
    fn now(&self) -> Instant {
        Instant::from_micros(self.began.elapsed().as_micros() as u64)
    }

    /// Takes whatever the stack has, then hands it what is next: the responses of this server, or a datagram. Answers what came
    /// for the client, if anything did.
    fn turn(&mut self) -> Result<Option<String>, Box<dyn Error>> {
        let (mut requests, mut answer) = (Vec::new(), None);
        let until = loop {
            let now = self.now();
            match self.stack.poll(now) {
                Output::Transmit(transmit) => drop(self.socket.send_to(transmit.bytes, transmit.to)?),
                Output::Event(Event::Request { id, .. }) => requests.push(id),
                Output::Event(Event::Answer { message, body, .. }) => {
                    answer = Some(format!("{}: {}", message.code, String::from_utf8_lossy(&body)));
                }
                Output::Event(Event::Failed { why, .. }) => return Err(why.into()),
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(until, _) => break until,
                Output::Idle => break Instant::NEVER,
            }
        };
        for request in &requests {
            let uptime = format!("{} s", self.began.elapsed().as_secs());
            let response = Answer::new(Code::CONTENT, &[]).with_body(uptime.as_bytes());
            let now = self.now();
            self.stack.answer(now, *request, &response)?;
        }
        if requests.is_empty() && answer.is_none() {
            self.wait(until)?;
        }
        Ok(answer)
    }

    /// Until a datagram comes, which is handed in, or the stack wants to be asked again.
    fn wait(&mut self, until: Instant) -> Result<(), Box<dyn Error>> {
        let micros = until.as_micros().saturating_sub(self.now().as_micros()).clamp(1, 60_000_000);
        self.socket.set_read_timeout(Some(Duration::from_micros(micros)))?;
        let mut datagram = [0; 2_048];
        match self.socket.recv_from(&mut datagram) {
            Ok((length, from)) => {
                let now = self.now();
                self.stack.receive(now, from, datagram.get(..length).unwrap_or_default());
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_serves_itself() -> Result<(), Box<dyn Error>> {
        let mut server = Node::new("127.0.0.1:0")?;
        let address = server.socket.local_addr()?;
        std::thread::spawn(move || while server.turn().is_ok() {});
        for _ in 0..2 {
            let answer = ask(address, "uptime")?;
            assert!(answer.starts_with("2.05: ") && answer.ends_with(" s"), "{answer}");
        }
        Ok(())
    }
}
