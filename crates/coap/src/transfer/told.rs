//! Events on their way to the application, without the bytes that the endpoint holds.

use alloc::vec::Vec;

use super::{AskFailure, AskId, Gone, GroupId, ObserverId, asks::Exchanged};
use crate::endpoint::{RequestId, queue::Entry};

#[derive(Debug)]
pub(super) enum Told<A> {
    Request { entry: Entry<A>, id: RequestId, body: Option<Vec<u8>>, wants_to_observe: bool },
    Answer { entry: Entry<A>, ask: AskId, body: Option<Vec<u8>>, goes_on: bool, exchanged: Exchanged },
    Failed { ask: AskId, to: A, why: AskFailure, copies: u8 },
    GroupAnswer { entry: Entry<A>, group: GroupId, body: Option<Vec<u8>> },
    GroupAnswerLost { group: GroupId, from: A, why: AskFailure },
    GroupOver { group: GroupId },
    ObserverGone { observer: ObserverId, peer: A, why: Gone },
}
