//! What a message of CoAP says that a diagnosis needs.

use millpond_coap::message::{Code, Kind, Message as Parsed, MessageId, Token, number};

use super::Datagram;

/// A message, reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub kind: Kind,
    pub sort: Sort,
    pub id: MessageId,
    pub token: Token,
    /// Bytes of its payload.
    pub payload: u32,
    /// Of a request, that it registers; of a response, that it may be a notification (RFC 7641 §2).
    pub observes: bool,
}

/// What its code makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Request,
    Response,
    Empty,
}

/// The message in a datagram, also if its end was not captured; `None` if it is none.
pub(crate) fn message(datagram: &Datagram<'_>) -> Option<Message> {
    let missing = datagram.length.saturating_sub(datagram.payload.len());
    match Parsed::parse(datagram.payload) {
        Ok(read) => {
            let payload = if read.payload().is_empty() { 0 } else { read.payload().len().saturating_add(missing) };
            let observes = |value: &[u8]| !read.code.is_request() || value.iter().all(|&byte| byte == 0);
            let observes = read.option(number::OBSERVE).is_some_and(observes);
            Some(Message { observes, ..reduced(read.kind, read.code, read.id, read.token, payload)? })
        }
        Err(error) => {
            let (kind, id) = error.header?;
            let code = Code::from_byte(*datagram.payload.get(1)?);
            let token = usize::from(*datagram.payload.first()? & 0x0f);
            if missing == 0 || !code.suits(kind) || code.is_reserved() {
                return None;
            }
            reduced(kind, code, id, Token::new(datagram.payload.get(4..4_usize.checked_add(token)?)?)?, 0)
        }
    }
}

fn reduced(kind: Kind, code: Code, id: MessageId, token: Token, payload: usize) -> Option<Message> {
    let sort = match code {
        code if code.is_request() => Sort::Request,
        code if code.is_response() => Sort::Response,
        code if code.is_empty() => Sort::Empty,
        _ => return None,
    };
    Some(Message { kind, sort, id, token, payload: u32::try_from(payload).unwrap_or(u32::MAX), observes: false })
}
