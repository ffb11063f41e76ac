use millpond_coap::{
    ConfigError, Failure, Refused,
    block::{DownloadError, UploadError},
};

/// Why there is no response. `E` is the socket's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// The request cannot be sent, or exceeds a limit.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An exchange failed.
    #[error("no response after {copies} {}: {why:?}", if *.copies == 1 { "copy" } else { "copies" })]
    Failed {
        /// Why.
        why: Failure,
        /// Copies that were sent of its last message.
        copies: u8,
    },
    /// The response's body did not become whole, or is longer than the buffer for it.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The request's body did not arrive.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// The server sent something as Block1 or Block2 that is no block.
    #[error("the server sent a block option that is none")]
    BadBlock,
    /// The observation is over: the server ended it, or could not be reached to renew it.
    #[error("the observation is over; observe again")]
    Over,
    /// The socket can no longer receive.
    #[error("the socket cannot receive")]
    Udp(E),
}

/// Why there can be no such node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A buffer that is too short.
    #[error("the buffer has {length} bytes; use {least} or more")]
    Buffer {
        /// Bytes of the buffer.
        length: usize,
        /// The fewest.
        least: usize,
    },
    /// What the message layer refuses.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
