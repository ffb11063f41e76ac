//! A calm server's rules before a server that knows nothing of them.

use std::net::SocketAddr;

use millpond_coap::{CalmGate, IdGenerator, Repeats};
use millpond_control::Instant;
use millpond_emulate::{Gate, GateRow, network};

use crate::failure::Failure;

/// Bytes that the tables of peers and of paths may take for each client of a relay, and at least.
const EACH: usize = 256;
const LEAST: usize = 1 << 20;

/// A gate that knows nobody, with keys that nobody guesses, for so many clients.
///
/// # Errors
/// The operating system gives no random bytes.
pub(super) fn gate(clients: usize) -> Result<Box<dyn Gate>, Failure> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|error| Failure::Failed(format!("the operating system gives no random bytes: {error}")))?;
    // A network is taken for the path to those in it.
    Ok(Box::new(Calm(CalmGate::new(network, IdGenerator::secret(key), LEAST.max(clients.saturating_mul(EACH))))))
}

struct Calm(CalmGate<SocketAddr>);

impl Gate for Calm {
    fn request(&mut self, now: Instant, client: SocketAddr, datagram: &[u8]) -> bool {
        self.0.request(now, client, datagram)
    }

    fn ping(&mut self) -> Option<(SocketAddr, [u8; 4])> {
        self.0.ping()
    }

    fn answer(&mut self, now: Instant, client: SocketAddr, datagram: &[u8]) {
        self.0.answer(now, client, datagram);
    }

    fn rows(&self) -> Vec<GateRow> {
        let Repeats { due, lost, third, unknown, withheld } = self.0.repeats();
        [
            ("withheld", "copies held back, their answers being on their way", withheld),
            ("due", "copies forwarded, the answer before being likely to be lost", due),
            ("lost", "copies forwarded, a later ping having come back", lost),
            ("third", "copies forwarded, being every third of their request", third),
            ("unknown", "copies forwarded, nothing being known of their answer or path", unknown),
            ("unreadable", "datagrams forwarded that cannot be read, such as those of DTLS", self.0.unreadable()),
        ]
        .map(|(name, what, datagrams)| GateRow { name, what, datagrams })
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_path_and_strangers_do_not() {
        let of = |text: &str| network(&text.parse().expect("an address"));
        assert_eq!(of("192.0.2.1:1"), of("192.0.2.254:2"));
        assert_eq!(of("192.0.2.1:1"), of("[::ffff:192.0.2.9]:1"));
        assert_ne!(of("192.0.2.1:1"), of("192.0.3.1:1"));
        assert_eq!(of("[2001:db8:1:2::3]:1"), of("[2001:db8:1:9::4]:1"));
        assert_ne!(of("[2001:db8:1::3]:1"), of("[2001:db8:2::3]:1"));
    }
}
