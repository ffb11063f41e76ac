//! Events on their way to the application, without the bytes that the endpoint holds.

use alloc::vec::Vec;

use super::{ClientRequestId, Gone, GroupId, ObserverId, Refusal, RequestFailure, request_table::Exchanged};
use crate::block::robust::Whole;
use crate::endpoint::RequestId;
use crate::message::{Kind, MessageId, Token, Writer};
use crate::output::Entry;

#[derive(Debug)]
pub(super) enum QueuedEvent<A> {
    Request { entry: Entry<A>, id: RequestId, body: Option<Vec<u8>>, wants_to_observe: bool },
    Refused { entry: Entry<A>, why: Refusal, by_group: bool },
    Answer { entry: Entry<A>, request: ClientRequestId, body: Option<Vec<u8>>, goes_on: bool, exchanged: Exchanged },
    Unanswered { request: ClientRequestId, to: A, is_acknowledged: bool },
    Failed { request: ClientRequestId, to: A, why: RequestFailure, copies: u8 },
    GroupAnswer { entry: Entry<A>, group: GroupId, body: Option<Vec<u8>> },
    GroupAnswerLost { group: GroupId, from: A, why: RequestFailure },
    GroupOver { group: GroupId },
    ObserverGone { observer: ObserverId, peer: A, why: Gone },
    BurstRequest { id: RequestId, from: A, whole: Whole },
    BurstAnswer { request: ClientRequestId, from: A, whole: Whole },
}

impl<A> QueuedEvent<A> {
    /// Whether a message belongs to it whose bytes are not here.
    pub(super) fn is_held_below(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Refused { .. } | Self::Answer { .. } | Self::GroupAnswer { .. })
    }
}

impl Whole {
    /// A message with its code and options, for a reader of them there. Its options stood in messages, each in its order.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        let mut writer = Writer::start(bytes, Kind::Confirmable, self.code, MessageId(0), Token::EMPTY);
        for (number, value) in self.options.iter() {
            let _ = writer.option(number, value);
        }
        let _ = writer.finish();
    }
}
