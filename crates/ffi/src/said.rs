//! What C says of answers, in Rust's types.

use crate::types::{
    millpond_error, millpond_fate, millpond_feedback, millpond_kind, millpond_message, millpond_names, millpond_sample,
};
use millpond_control::{Fate, Feedback, PlainMessage, ReplyKind, Sample, Span};

/// What C says of an answer.
pub(crate) fn evidence(said: millpond_sample) -> Result<Sample, millpond_error> {
    const EMPTY_ACK: u8 = millpond_kind::MILLPOND_KIND_EMPTY_ACK as u8;
    const PIGGYBACKED: u8 = millpond_kind::MILLPOND_KIND_PIGGYBACKED as u8;
    const SEPARATE: u8 = millpond_kind::MILLPOND_KIND_SEPARATE as u8;
    const NOTHING: u8 = millpond_names::MILLPOND_NAMES_NOTHING as u8;
    const COPY: u8 = millpond_names::MILLPOND_NAMES_COPY as u8;
    const FURTHER: u8 = millpond_names::MILLPOND_NAMES_FURTHER as u8;
    let kind = match said.kind {
        EMPTY_ACK => ReplyKind::EmptyAck,
        PIGGYBACKED => ReplyKind::Piggybacked,
        SEPARATE => ReplyKind::Separate,
        _ => return Err(millpond_error::MILLPOND_E_ARGUMENT),
    };
    let [first, last, named] = [said.since_first_us, said.since_last_us, said.since_named_us].map(Span::from_micros);
    let sample = Sample::new(kind, first, last, said.retransmissions).of_bytes(said.len, said.reply_len);
    match said.names {
        NOTHING => Ok(sample),
        COPY => Ok(sample.naming(said.named, named)),
        FURTHER => Ok(sample.naming_a_further_copy()),
        _ => Err(millpond_error::MILLPOND_E_ARGUMENT),
    }
}

/// What C says of a message that nobody acknowledges.
pub(crate) fn known(said: millpond_feedback) -> Result<Feedback, millpond_error> {
    const REQUEST: u8 = millpond_message::MILLPOND_MESSAGE_REQUEST as u8;
    const FURTHER: u8 = millpond_message::MILLPOND_MESSAGE_FURTHER as u8;
    const BLOCK: u8 = millpond_message::MILLPOND_MESSAGE_BLOCK as u8;
    const ANSWERED: u8 = millpond_fate::MILLPOND_FATE_ANSWERED as u8;
    const ARRIVED: u8 = millpond_fate::MILLPOND_FATE_ARRIVED as u8;
    const LOST: u8 = millpond_fate::MILLPOND_FATE_LOST as u8;
    let message = match said.message {
        REQUEST => PlainMessage::Request,
        FURTHER => PlainMessage::Further,
        BLOCK => PlainMessage::Block,
        _ => return Err(millpond_error::MILLPOND_E_ARGUMENT),
    };
    let fate = match said.fate {
        ANSWERED => Fate::Answered,
        ARRIVED => Fate::Arrived,
        LOST => Fate::Lost,
        _ => return Err(millpond_error::MILLPOND_E_ARGUMENT),
    };
    let since = Span::from_micros(said.since_us);
    Ok(Feedback { message, fate, since, len: said.len, reply_len: said.reply_len, number: said.number })
}
