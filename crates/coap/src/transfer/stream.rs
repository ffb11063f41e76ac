//! What a stack over a stream has beside what all stacks have.

use millpond_control::{ChanceSeed, Instant};

use super::{CoapStack, Config, Refused};
use crate::{
    block::BlockSize,
    layer::MessageLayer,
    stream::{Connection, Settings},
};

impl CoapStack<Connection> {
    /// A stack that owns this connection, which is to have [a secret](Connection::with_id_generator) if it serves. Of the
    /// configuration `block`, what is said about the pace of notifications and of renewals, and bursts are not looked at.
    #[must_use]
    pub fn over_stream(connection: Connection, config: Config) -> Self {
        let options = connection.options();
        let ours =
            Settings { max_message_size: options.max_message_size, block_wise: options.block_wise, ..Settings::BASE };
        let block = if ours.bert() { BlockSize::BERT } else { BlockSize::B1024 };
        Self::with(connection, Config { block, q_block: None, ..config }, ChanceSeed::new(0))
    }

    /// Input: bytes came in, cut in whatever way. Events that stand ready are to be taken before, which they are after
    /// [`Transmit`](crate::Output::Transmit), [`Sleep`](crate::Output::Sleep) and [`Idle`](crate::Output::Idle).
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        debug_assert!(self.events.is_empty(), "bytes before all events were taken");
        self.layer.receive(now, bytes);
    }

    /// Input: the stream ended or broke. Requests fail, observers are gone.
    pub fn stream_ended(&mut self) {
        self.layer.stream_ended();
    }

    /// Input: is the other side alive? See [`Connection::ping`].
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ping(&mut self, now: Instant, custody: bool) -> Result<(), Refused> {
        Ok(self.layer.ping(now, custody)?)
    }

    /// Input: an orderly end is wanted. See [`Connection::release`].
    ///
    /// # Errors
    /// An alternative address that does not fit; a connection that has ended.
    pub fn release(&mut self, now: Instant, alternative: Option<&[u8]>, hold_off: Option<u32>) -> Result<(), Refused> {
        Ok(self.layer.release(now, alternative, hold_off)?)
    }

    /// Input: the connection ends at once; the other side is told why.
    pub fn abort(&mut self, diagnostic: &str) {
        self.layer.abort(diagnostic);
    }

    /// What the other side said it can do.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.layer.settings()
    }

    /// The largest blocks that fit a message to the other side beside so many bytes of options, and how many of them (BERT,
    /// RFC 8323 §6): for a sender of a body [piece by piece](super::Piece). `None` until it has said what it takes.
    #[must_use]
    pub fn blocks(&self, options: usize) -> Option<(BlockSize, u32)> {
        self.layer.room().filter(|room| room.is_settled).map(|room| room.blocks(options))
    }

    /// Whether nothing that either side asked waits for its answer ([`Connection::is_quiet`]).
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.layer.is_quiet()
    }
}
