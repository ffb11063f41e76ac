//! A stream and the host that speaks over it.

use std::io;

use millpond_coap::stream::{
    Closing,
    host::{Event, Host, Output},
};
use millpond_control::Instant;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Bytes that may wait to be written before the host is asked for no more.
const MOST_UNWRITTEN: usize = 256 << 10;
/// Bytes read at once.
const READ: usize = 65_536;

/// A stream, the host over it, and what waits to be written.
pub(crate) struct Link {
    pub(crate) host: Host,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    unwritten: Vec<u8>,
    room: Vec<u8>,
    has_ended: bool,
    /// When the host wants to be asked again.
    pub(crate) next: Option<Instant>,
    /// It has ended, and why.
    pub(crate) closing: Option<Closing>,
}

impl Link {
    pub(crate) fn new(stream: TcpStream, host: Host) -> Self {
        // Small messages do not wait for one another.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        Self {
            host,
            reader,
            writer,
            unwritten: Vec::new(),
            room: Vec::new(),
            has_ended: false,
            next: None,
            closing: None,
        }
    }

    /// Waits until bytes came, or were written. The host is to be drained then.
    pub(crate) async fn turn(&mut self, now: impl Fn() -> Instant) {
        let Self { reader, writer, unwritten, room, has_ended, .. } = self;
        room.resize(READ, 0);
        let may_read = !*has_ended && unwritten.is_empty();
        let came: io::Result<Option<usize>> = tokio::select! {
            read = reader.read(room), if may_read => read.map(Some),
            written = writer.write(unwritten), if !unwritten.is_empty() => written.map(|count| {
                unwritten.drain(..count);
                None
            }),
            () = std::future::pending() => Ok(None),
        };
        match came {
            Ok(None) => {}
            Ok(Some(count)) if count > 0 => self.host.receive(now(), self.room.get(..count).unwrap_or_default()),
            Ok(Some(_)) | Err(_) => {
                self.has_ended = true;
                self.host.stream_ended();
            }
        }
    }

    /// Asks the host for all its output, unless the stream has not taken what came before: notifications wait inside,
    /// and of each observer the newest only.
    pub(crate) fn drain(&mut self, now: Instant, mut event: impl FnMut(Event)) {
        while self.unwritten.len() < MOST_UNWRITTEN {
            match self.host.poll(now) {
                Output::Transmit(bytes) => self.unwritten.extend_from_slice(bytes),
                Output::Event(told) => event(told),
                Output::Close(why) => self.closing = Some(why),
                Output::Sleep(until) => return self.next = Some(until),
                Output::Idle => return self.next = None,
            }
        }
    }

    /// Writes what waits, and closes.
    pub(crate) async fn close(mut self) {
        /// How long a peer may take to accept the last bytes.
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
        let last = async {
            self.writer.write_all(&self.unwritten).await?;
            self.writer.shutdown().await
        };
        // Who does not take them has gone.
        let _ = tokio::time::timeout(PATIENCE, last).await;
    }
}

/// Why a connection ended, in words.
pub(crate) fn reason(closing: Option<Closing>) -> String {
    match closing {
        Some(Closing::Released) => "it was released".into(),
        Some(Closing::AbortedByPeer) => "the peer aborted it".into(),
        Some(Closing::BadFrame(error)) => format!("the peer sent what is no frame: {error}"),
        Some(Closing::BadSignal(error)) => error.to_string(),
        Some(Closing::NoSettings) => "the peer did not begin with its settings".into(),
        Some(Closing::ReleaseTimedOut) => "the peer did not close it in time".into(),
        _ => "the stream ended".into(),
    }
}
