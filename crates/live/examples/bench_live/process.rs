//! A server in a process of its own, watched from outside.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::{Failure, Side};

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Running {
    /// Starts a server on a free port of the loopback, and waits until it answers.
    pub(crate) fn start(side: &Side) -> Result<Self, Failure> {
        let address = free_address()?;
        let mut command = side.command(address.port());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let running = Self { child, address };
        running.wait_for_pong().map_err(|why| format!("{}: {why}", side.name))?;
        (side.prepare)(address)?;
        Ok(running)
    }

    /// Where it listens under DTLS, if it does.
    pub(crate) fn secure(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), self.address.port() + 1)
    }

    /// Pings it (RFC 7252 §4.3) until it answers anything.
    fn wait_for_pong(&self) -> Result<(), Failure> {
        let probe = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        probe.set_read_timeout(Some(Duration::from_millis(100)))?;
        probe.connect(self.address)?;
        let end = Instant::now() + Duration::from_secs(30);
        for id in 1_u16.. {
            let [high, low] = id.to_be_bytes();
            // Refused as long as it does not listen yet.
            if probe.send(&[0x40, 0, high, low]).is_ok() && probe.recv(&mut [0; 64]).is_ok() {
                return Ok(());
            }
            if Instant::now() > end {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("no server answers".into())
    }

    /// CPU that all its threads have used. Those that ended are included in steps of the system's clock, mostly 10 ms; as long as
    /// none has it is exact where the kernel tells of threads.
    pub(crate) fn cpu(&self) -> Duration {
        let process = format!("/proc/{}", self.child.id());
        let steps = || -> Option<u64> {
            let text = fs::read_to_string(format!("{process}/stat")).ok()?;
            // The name, in brackets, may hold anything; after it the 12th and 13th are the ticks of user and system.
            let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
            let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(user + system)
        };
        let steps = steps().unwrap_or(0) as f64 / rustix::param::clock_ticks_per_second() as f64;
        let of_thread = |thread: fs::DirEntry| -> Option<u64> {
            fs::read_to_string(thread.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        let threads = fs::read_dir(format!("{process}/task")).into_iter().flatten();
        let exact = threads.filter_map(Result::ok).filter_map(of_thread).sum();
        Duration::from_secs_f64(steps).max(Duration::from_nanos(exact))
    }

    /// Bytes of it that are resident.
    pub(crate) fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap_or_default();
        let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * rustix::param::page_size() as u64
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free, as is the one behind it.
fn free_address() -> Result<SocketAddr, Failure> {
    loop {
        let address = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let behind = address.port().checked_add(1);
        if behind.is_some_and(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return Ok(address);
        }
    }
}

/// Bytes as millions of them.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
