//! Requests to groups of servers, and the stream of their answers (RFC 7252 §8).

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use millpond_coap::{
    block::BlockSize,
    message::{Code, number},
};

use super::{
    Client, Command, Commands, IntoUri, RequestNumber, block_size,
    group_responses::{self, GroupReceiver, GroupSender},
    peer::resolve,
};
use crate::{ContentFormat, Error, NotSent, Options, Response, Transport, Uri, UriError, udp::is_group};

/// For how long answers of a group are taken: DEFAULT_LEISURE of RFC 7252 §8.2, over which they are spread, and ACK_TIMEOUT
/// (§4.8), which is long enough for most paths there and back.
pub(crate) const GATHER_FOR: Duration = Duration::from_secs(7);

/// Bytes of the longest answer of a member.
const LONGEST: usize = 1 << 20;

/// A request to a group that is being put together.
#[must_use = "a request does nothing until it is sent"]
#[derive(Debug)]
pub struct GroupRequest {
    client: Client,
    uri: Result<Uri, UriError>,
    method: Code,
    options: Options,
    payload: Bytes,
    block_size: Option<u16>,
    period: Duration,
    discovers: bool,
}

impl GroupRequest {
    pub(crate) fn new(client: Client, method: Code, uri: impl IntoUri, discovers: bool) -> Self {
        Self {
            uri: uri.into_uri(client.settings.base.as_ref()),
            client,
            method,
            options: Options::new(),
            payload: Bytes::new(),
            block_size: None,
            period: GATHER_FOR,
            discovers,
        }
    }

    /// With this payload, which must fit one message.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// The payload's Content-Format.
    pub fn content_format(mut self, format: impl Into<ContentFormat>) -> Self {
        self.options.set_format(number::CONTENT_FORMAT, format.into());
        self
    }

    /// The Content-Format that is wanted.
    pub fn accept(mut self, format: impl Into<ContentFormat>) -> Self {
        self.options.set_format(number::ACCEPT, format.into());
        self
    }

    /// With one option more.
    pub fn option(mut self, number: u16, value: impl Into<Bytes>) -> Self {
        self.options.add(number, value);
        self
    }

    /// With answers in blocks of this many bytes at most: 16, 32, 64, 128, 256, 512 or 1024. The first block of each comes
    /// by itself, the others are fetched from its sender (RFC 7959 §2.8).
    pub const fn block_size(mut self, bytes: u16) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Takes answers that begin to come within this time after the request left; 7 s: the 5 s over which servers spread
    /// their answers (RFC 7252 §8.2), and 2 s for the way there and back.
    pub const fn gather_for(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Sends it, once and without acknowledgement.
    ///
    /// To one group a client sends at most one request in 5 s, in which answers to the one before may come, and as long as
    /// nobody has answered, not more than PROBING_RATE (RFC 7252 §4.7): a further request waits.
    ///
    /// # Errors
    /// A URI that names no group, or a transport other than UDP; what cannot be sent.
    pub async fn send(self) -> Result<GroupAnswers, Error> {
        let uri = self.uri?;
        let refused = |reason: String| Err(Error::refused(NotSent::Destination, reason));
        if uri.transport() != Transport::Udp {
            return refused(format!("{uri}: only coap:// reaches groups"));
        }
        let group = resolve(&uri).await?;
        if !is_group(group.ip()) {
            return refused(format!("{} is one host and no group; ask it with get", group.ip()));
        }
        let mut options: Options = uri.uri_options().into_iter().collect();
        if self.discovers && uri.path().is_empty() {
            options.add(number::URI_PATH, ".well-known");
            options.add(number::URI_PATH, "core");
        }
        for (number, value) in self.options.iter() {
            options.add(number, value.clone());
        }
        let number = self.client.number();
        let (answers, responses) = group_responses::channel();
        let spec = GroupRequestSpec {
            number,
            group,
            method: self.method,
            options,
            payload: self.payload,
            block: self.block_size.map(block_size).transpose()?,
            longest: self.client.settings.longest_body.min(LONGEST),
            period: self.period,
            answers,
        };
        let commands = self.client.commands.clone()?;
        commands.send(Command::Gather(Box::new(spec))).map_err(|_| Error::Closed)?;
        Ok(GroupAnswers { responses, commands, number })
    }
}

/// A request to a group as the driver gets it.
#[derive(Debug)]
pub(crate) struct GroupRequestSpec {
    pub(crate) number: RequestNumber,
    pub(crate) group: SocketAddr,
    pub(crate) method: Code,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) block: Option<BlockSize>,
    pub(crate) longest: usize,
    pub(crate) period: Duration,
    pub(crate) answers: GroupSender,
}

/// The answers of a group as they come, one of each member; [`Response::exchange`] says who it is. An error is reported of a
/// member whose answer came in part, or of the request if it could not be sent. The end comes once the time is over and
/// what was begun is fetched. Dropping it ends that sooner.
///
/// 16 MiB of answers wait to be taken. Those beyond are dropped, and [`Error::NotTaken`] before the end says how many.
#[derive(Debug)]
pub struct GroupAnswers {
    responses: GroupReceiver,
    commands: Commands,
    number: RequestNumber,
}

impl GroupAnswers {
    /// The next answer; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        poll_fn(|cx| self.responses.poll(cx)).await
    }
}

impl Stream for GroupAnswers {
    type Item = Result<Response, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.responses.poll(cx)
    }
}

impl Drop for GroupAnswers {
    fn drop(&mut self) {
        // The driver may have ended; then there is nothing to forget.
        let _ = self.commands.send(Command::StopGathering(self.number));
    }
}
