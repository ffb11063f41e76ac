//! Packets to a file, beside the loop that must not wait for a disk.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

use millpond_control::Instant;
use millpond_path::capture::{Capture, Seen};

/// Packets that may wait to be written.
const WAITING: usize = 16_384;

struct Packet {
    at: Instant,
    seen: Seen,
    bytes: Vec<u8>,
    comment: &'static str,
}

/// Writes packets in a thread of its own.
#[derive(Debug)]
pub(super) struct Recorder {
    packets: SyncSender<Packet>,
    thread: JoinHandle<io::Result<()>>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let (packets, written) = sync_channel(WAITING);
        let thread = thread::Builder::new().name("capture".to_owned()).spawn(move || write(capture, &written))?;
        Ok(Self { packets, thread })
    }

    /// True if it will be written; false if the disk does not keep up.
    pub(super) fn packet(&self, at: Instant, seen: Seen, bytes: &[u8], comment: &'static str) -> bool {
        self.packets.try_send(Packet { at, seen, bytes: bytes.to_vec(), comment }).is_ok()
    }

    /// Waits until all is written.
    pub(super) fn end(self) -> io::Result<()> {
        drop(self.packets);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the capture broke off")))
    }
}

fn write(mut capture: Capture<BufWriter<File>>, packets: &Receiver<Packet>) -> io::Result<()> {
    for Packet { at, seen, bytes, comment } in packets {
        capture.packet(at, seen, &bytes, comment)?;
    }
    capture.into_inner().flush()
}
