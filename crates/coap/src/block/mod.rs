//! Block-wise transfer (RFC 7959): bodies that do not fit one message, piece by piece.
//!
//! [`robust`] is the variant of RFC 9177 for paths that lose much. The rest of this page is RFC 7959.
//!
//! Four state machines that know neither transport nor clock. Code that drives them sends a message for each piece, over an
//! [`Endpoint`](crate::Endpoint) or a [`stream::Connection`](crate::stream::Connection):
//!
//! | | client | server |
//! |---|---|---|
//! | body in the response (Block2) | [`Download`] | [`slice()`] |
//! | body in the request (Block1) | [`Upload`] | [`Assemblies`] |
//!
//! ```
//! use millpond_coap::block::{BlockSize, Download, Next, Part, slice};
//! use millpond_coap::message::Code;
//!
//! let body: Vec<u8> = (0..=255).cycle().take(1_000).collect();
//! let mut download = Download::new(None, 65_536);
//! let mut asked = download.first();
//! loop {
//!     // The server's side: one piece of the body for each request.
//!     let piece = slice(&body, asked, BlockSize::B256)?;
//!     let (code, format) = (Code::CONTENT, Some(0));
//!     let (etag, total) = (Some(&b"v1"[..]), Some(piece.total));
//!     let part = Part { code, format, block: piece.block, etag, total, payload: piece.payload };
//!     match download.take(&part)? {
//!         Next::Request(block) => asked = Some(block),
//!         Next::Done => break,
//!     }
//! }
//! assert_eq!(download.into_body(), body);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assembly;
mod download;
mod option;
pub mod robust;
mod serve;
mod upload;

pub use assembly::{Assemblies, AssemblyLimits, Verdict};
pub use download::{Download, DownloadBlocks, DownloadError, Next, Part, Taken};
pub use option::{BadBlock, Block, BlockSize};
pub use serve::{PastEnd, Piece, slice, slice_of_blocks};
pub use upload::{Answer, Upload, UploadError, UploadNext, UploadPiece};

/// How long what is kept of an answer is given without the application. It may have been asked by who proved where it is, and requests
/// for more of it may be anybody's, which would go on for ever. As long as the value that proves it counts. A judgement.
pub(crate) const GIVEN_FOR: millpond_control::Span = millpond_control::Span::from_secs(3_600);
