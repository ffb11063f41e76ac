//! What handles ask of the driver.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use millpond_coap::{
    RetransmitOptions,
    block::BlockSize,
    message::{Code, Kind, Token},
};
use tokio::sync::oneshot;

use super::{groups::GroupRequestSpec, observation::Newest, progress::OnProgress, unanswered::Outcome};
use crate::{
    ControllerChoice, Error, Options, Stats,
    security::{PeerIdentity, ServerName},
    transfer::{ClientRequest, Piece},
};

/// Names a request among all of a client.
pub(crate) type RequestNumber = u64;

/// One command.
#[derive(Debug)]
pub(crate) enum Command {
    Request(Box<RequestSpec>),
    /// A group is to be asked.
    Gather(Box<GroupRequestSpec>),
    /// The answers of a group are no longer wanted.
    StopGathering(RequestNumber),
    /// The answer, or the observation, is no longer wanted.
    Cancel(RequestNumber),
    /// Of a request that does not want all responses none is awaited any more: if nothing else is, it has not failed.
    EndUnanswered(RequestNumber),
    /// The observation is forgotten without a word to the server.
    Forget(RequestNumber),
    /// How much of a body a message of a connection may hold, beside so many bytes of options, is to be told once it is known.
    Room(usize, oneshot::Sender<Result<Room, Error>>),
    SetController(SocketAddr, ControllerChoice, oneshot::Sender<Result<(), Error>>),
    Stats(oneshot::Sender<Stats>),
    /// A sign of life is wanted, in a secure session of a server of this name.
    Ping(SocketAddr, Option<ServerName>, oneshot::Sender<Result<Duration, Error>>),
    /// Everything is cancelled; the sender is dropped once the last datagram has left.
    Shutdown(oneshot::Sender<()>),
}

/// How much of a body one message may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Blocks of which size.
    pub(crate) size: BlockSize,
    /// Bytes, a multiple of that; of a peer that knows no blocks those of the whole body.
    pub(crate) most: usize,
    pub(crate) knows_blocks: bool,
}

/// A request as the driver gets it.
#[derive(Debug)]
pub(crate) struct RequestSpec {
    pub(crate) number: RequestNumber,
    pub(crate) peer: SocketAddr,
    pub(crate) kind: Kind,
    pub(crate) method: Code,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) block: BlockSize,
    /// The block size is asked for from the first block on.
    pub(crate) is_block_wished: bool,
    pub(crate) longest: usize,
    pub(crate) token: Option<Token>,
    /// All blocks of the answer are asked for with one token.
    pub(crate) one_token: bool,
    /// Whose certificate the server must have, if the request goes over DTLS.
    pub(crate) name: Option<ServerName>,
    /// Who the other side of its session must have proved to be.
    pub(crate) identity: Option<Arc<PeerIdentity>>,
    pub(crate) retransmit: RetransmitOptions,
    /// Long bodies travel in bursts, if the server knows them.
    pub(crate) q_block: bool,
    pub(crate) progress: Option<OnProgress>,
    /// How long the answer's body is, is to be told before its end.
    pub(crate) wants_total: bool,
    /// One block of a body that the client takes or sends block by block.
    pub(crate) piece: Option<Piece>,
    pub(crate) reply: Reply,
}

impl RequestSpec {
    /// The request as a stack takes it, with these of its options.
    pub(crate) fn to_request<'a>(&'a self, options: &'a [(u16, &'a [u8])]) -> ClientRequest<'a> {
        ClientRequest {
            kind: self.kind,
            body: &self.payload,
            upload: self.block,
            early: self.is_block_wished.then_some(self.block),
            wants_total: self.wants_total,
            observe: self.reply.observes(),
            longest: self.longest,
            token: self.token,
            one_token: self.one_token,
            retransmit: self.retransmit,
            piece: self.piece,
            q_block: self.q_block,
            ..ClientRequest::new(self.method, options)
        }
    }
}

/// Where answers go.
#[derive(Debug)]
pub(crate) enum Reply {
    Once(oneshot::Sender<Result<Outcome, Error>>),
    Observed(Newest),
}

impl Reply {
    /// The request observes.
    pub(crate) const fn observes(&self) -> bool {
        matches!(self, Self::Observed(_))
    }

    /// The request goes to who has proved to be this.
    pub(crate) fn asked_of(&self, identity: Option<&Arc<PeerIdentity>>) {
        if let Self::Observed(newest) = self {
            newest.asked_of(identity);
        }
    }

    /// The last there is to say.
    pub(crate) fn end(self, outcome: Result<Outcome, Error>) {
        match self {
            // The client may have gone.
            Self::Once(sender) => drop(sender.send(outcome)),
            Self::Observed(newest) => {
                match outcome {
                    Ok(Outcome::Answered(response)) => newest.put_last(response),
                    // An observation wants all responses.
                    Ok(Outcome::Sent | Outcome::Acknowledged) => {}
                    Err(error) => newest.fail(error),
                }
                newest.end();
            }
        }
    }
}

/// A GET request of nothing else, for trials.
#[cfg(test)]
pub(crate) fn request_for_test(peer: SocketAddr, reply: Reply) -> RequestSpec {
    RequestSpec {
        number: 1,
        peer,
        kind: Kind::Confirmable,
        method: Code::GET,
        options: Options::new(),
        payload: Bytes::new(),
        block: BlockSize::B1024,
        is_block_wished: false,
        longest: 1 << 20,
        token: None,
        one_token: false,
        name: None,
        identity: None,
        retransmit: RetransmitOptions::DEFAULT,
        q_block: false,
        progress: None,
        wants_total: false,
        piece: None,
        reply,
    }
}
