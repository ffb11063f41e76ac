//! The closed loop of clients over TCP (RFC 8323): one thread, a connection for each client, one request under way on it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{
    Failure, OUTSTANDING, PATH,
    generator::{Limit, Run},
    process::Running,
};

/// Signalling messages, and what was asked for.
const CSM: u8 = 0xe1;
const PING: u8 = 0xe2;
const CONTENT: u8 = 0x45;
/// What a server says must fit.
const ROOM: usize = 4_096;
/// Seconds without any answer after which there will be none.
const PATIENCE: i64 = 5;

/// The connections.
pub(crate) struct Streams {
    all: Vec<Stream>,
    request: Vec<u8>,
}

struct Stream {
    socket: TcpStream,
    came: Vec<u8>,
    is_waiting: bool,
}

impl Streams {
    /// Connects.
    pub(crate) fn to(server: SocketAddr) -> io::Result<Self> {
        let connect = |_| {
            let mut socket = TcpStream::connect(server)?;
            socket.set_nodelay(true)?;
            socket.write_all(&[0, CSM])?;
            socket.set_nonblocking(true)?;
            Ok(Stream { socket, came: Vec::new(), is_waiting: false })
        };
        // A token of two bytes, and Uri-Path, which is option 11.
        let request = [&[(PATH.len() as u8 + 1) << 4 | 2, 1, 7, 7, 0xb0 | PATH.len() as u8], PATH].concat();
        Ok(Self { all: (0..OUTSTANDING).map(connect).collect::<io::Result<_>>()?, request })
    }

    /// Asks until the limit is reached, and for what is then under way, which belongs to nobody.
    pub(crate) fn run(&mut self, server: &Running, limit: Limit) -> Result<Run, Failure> {
        let (start, cpu) = (Instant::now(), server.cpu());
        let mut run = Run::default();
        loop {
            run.elapsed = start.elapsed();
            let is_over = match limit {
                Limit::Time(time) | Limit::Quiet(time) => run.elapsed >= time,
                Limit::Requests(most) | Limit::Told(most) => run.answers >= most,
            };
            if is_over {
                run.cpu = server.cpu().saturating_sub(cpu);
                return Ok(run);
            }
            for stream in self.all.iter_mut().filter(|stream| !stream.is_waiting) {
                stream.socket.write_all(&self.request)?;
                stream.is_waiting = true;
            }
            let mut sockets: Vec<_> =
                self.all.iter().map(|stream| PollFd::new(&stream.socket, PollFlags::IN)).collect();
            let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
            match poll(&mut sockets, Some(&patience)) {
                Ok(0) => return Err("it does not answer over TCP".into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let are_ready: Vec<_> = sockets.iter().map(|socket| !socket.revents().is_empty()).collect();
            for (stream, _) in self.all.iter_mut().zip(are_ready).filter(|(_, is_ready)| *is_ready) {
                stream.read(&mut run)?;
            }
        }
    }
}

impl Stream {
    /// Takes what is there.
    fn read(&mut self, run: &mut Run) -> Result<(), Failure> {
        let mut room = [0; ROOM];
        match self.socket.read(&mut room) {
            Ok(0) => return Err("it closes the connection".into()),
            Ok(count) => self.came.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        while let Some((code, length)) = first_of(&self.came)? {
            match code {
                PING => self.socket.write_all(&[0, PING + 1])?,
                // Capabilities and the like.
                0xe0.. => {}
                CONTENT => (self.is_waiting, run.answers) = (false, run.answers + 1),
                _ => (self.is_waiting, run.refused) = (false, run.refused + 1),
            }
            self.came.drain(..length);
        }
        Ok(())
    }
}

/// Code and length of the first message (RFC 8323 §3.2), if all of it is there.
fn first_of(bytes: &[u8]) -> Result<Option<(u8, usize)>, Failure> {
    let Some(first) = bytes.first() else { return Ok(None) };
    let (length, more) = match first >> 4 {
        13 => match bytes.get(1) {
            Some(more) => (13 + usize::from(*more), 1),
            None => return Ok(None),
        },
        14 | 15 => return Err("a message longer than any that was asked for".into()),
        short => (usize::from(short), 0),
    };
    let all = 2 + more + usize::from(first & 15) + length;
    Ok(bytes.get(1 + more).copied().filter(|_| bytes.len() >= all).map(|code| (code, all)))
}
