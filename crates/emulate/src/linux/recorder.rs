//! Packets to a file, beside the loop that must not wait for a disk.

use std::{
    collections::VecDeque,
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

/// What is reported of packets, in the order of time.
#[derive(Debug)]
pub(super) enum Told {
    /// One was seen. If it was offered to a link, it is written once its fate is told by this number.
    Packet { at: Instant, seen: Seen, bytes: Vec<u8>, comment: &'static str, offered: Option<u64> },
    /// The packet with this number arrived (no words), or why it did not.
    Fate(u64, &'static str),
}

/// Writes packets in a thread of its own.
#[derive(Debug)]
pub(super) struct Recorder {
    told: SyncSender<Told>,
    thread: JoinHandle<io::Result<()>>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let (told, written) = sync_channel(WAITING);
        let thread = thread::Builder::new().name("capture".to_owned()).spawn(move || write(capture, &written))?;
        Ok(Self { told, thread })
    }

    /// True if it will be written; false if the disk does not keep up.
    pub(super) fn tell(&self, told: Told) -> bool {
        self.told.try_send(told).is_ok()
    }

    /// Waits until all is written.
    pub(super) fn end(self) -> io::Result<()> {
        drop(self.told);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the capture broke off")))
    }
}

/// A packet that was seen and is not written yet.
struct Held {
    at: Instant,
    seen: Seen,
    bytes: Vec<u8>,
    comment: &'static str,
    /// Its number, as long as nobody knows whether it arrives.
    open: Option<u64>,
}

/// What was lost behind the queue is known only when it would have arrived: until then it is held, and all that was seen
/// after it, so that the file keeps the order of time.
fn write(mut capture: Capture<impl Write>, told: &Receiver<Told>) -> io::Result<()> {
    let mut held: VecDeque<Held> = VecDeque::new();
    for told in told {
        match told {
            Told::Packet { at, seen, bytes, comment, offered: open } => {
                held.push_back(Held { at, seen, bytes, comment, open });
            }
            Told::Fate(number, comment) => {
                if let Some(packet) = held.iter_mut().find(|packet| packet.open == Some(number)) {
                    (packet.open, packet.comment) = (None, comment);
                }
            }
        }
        // Where a fate could not be told, because the disk did not keep up, nothing waits for it for ever.
        while held.front().is_some_and(|first| first.open.is_none()) || held.len() > WAITING {
            if let Some(Held { at, seen, bytes, comment, .. }) = held.pop_front() {
                capture.packet(at, seen, &bytes, comment)?;
            }
        }
    }
    for Held { at, seen, bytes, comment, .. } in held {
        capture.packet(at, seen, &bytes, comment)?;
    }
    capture.into_inner().flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_on_the_way_is_marked_where_it_left_and_the_order_of_time_is_kept() {
        let (send, told) = sync_channel(16);
        let packet = |at: u64, byte: u8, offered| Told::Packet {
            at: Instant::from_micros(at),
            seen: Seen::Clients,
            bytes: vec![0x45, byte],
            comment: "",
            offered,
        };
        for told in [
            packet(1, 1, Some(7)),
            packet(2, 2, Some(8)),
            packet(3, 3, None),
            Told::Fate(8, "lost: radio"),
            Told::Fate(7, ""),
            packet(4, 4, Some(9)),
        ] {
            send.send(told).expect("room");
        }
        drop(send);
        let mut file = Vec::new();
        write(Capture::new(&mut file).expect("memory"), &told).expect("memory");
        let place = |wanted: &[u8]| file.windows(wanted.len()).position(|window| window == wanted);
        let places: Vec<_> = (1..=4).map(|byte| place(&[0x45, byte])).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        let lost = place(b"lost: radio").expect("it is told");
        assert!(places[1] < Some(lost) && Some(lost) < places[2], "beside the packet that was lost");
    }
}
