//! What became of messages that nobody acknowledges: answered requests, and what the receiver of a burst says of its blocks.

use crate::{evidence::ExactRtt, time::Span};

/// What a message was that nobody acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlainMessage {
    /// A request that awaits an answer.
    Request,
    /// A response beyond the first to its request: a notification.
    Further,
    /// A block of a body that travels in bursts (RFC 9177), whichever way.
    Block,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// It drew an answer, which came now: the time since it left is a round trip and what the peer took.
    Answered,
    /// It arrived. What says so answers another message, so the time since it left is longer than a round trip.
    Arrived,
    /// It is lost: the peer misses it, or no answer came in the time for one.
    Lost,
}

/// What is known of one message that nobody acknowledges, some time after it left.
///
/// A message has one feedback at most; many have none, for example notifications that nobody rejects. A block that is sent
/// again is another message. Feedback may be of a message that left before the controller took over its peer, or out of the
/// order in which the messages left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Feedback {
    /// What was sent.
    pub message: PlainMessage,
    /// What became of it.
    pub fate: Fate,
    /// How long ago it left.
    pub since: Span,
    /// Its length, bytes of CoAP: as [`on_plain_send`](crate::Controller::on_plain_send) was told.
    pub len: u16,
    /// The length of the answer, bytes of CoAP; zero unless it was answered.
    pub reply_len: u16,
    /// Of a request: how many requests that nobody acknowledges had left on the path before it, so that a gap among those
    /// answered shows. It wraps, and goes on when the path gets another controller. Zero for anything else.
    pub number: u32,
}

impl Feedback {
    /// The round-trip time, if this is one: the message was sent once and the answer is its own. It includes what the peer
    /// took to answer, which nothing bounds: no acknowledgement goes before.
    #[must_use]
    pub const fn rtt(&self) -> Option<ExactRtt> {
        match self.fate {
            Fate::Answered => Some(ExactRtt::of_a_single_copy(self.since)),
            Fate::Arrived | Fate::Lost => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_of_its_own_is_a_round_trip() {
        let feedback = |fate| Feedback {
            message: PlainMessage::Block,
            fate,
            since: Span::from_millis(700),
            len: 1_044,
            reply_len: 0,
            number: 0,
        };
        assert_eq!(feedback(Fate::Answered).rtt().map(ExactRtt::span), Some(Span::from_millis(700)));
        assert_eq!([Fate::Arrived, Fate::Lost].map(|fate| feedback(fate).rtt()), [None, None]);
    }
}
