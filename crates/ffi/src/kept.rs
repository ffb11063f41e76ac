//! What a call leaves: the peer and the exchange, written back.

use crate::{
    calls::Answer,
    record,
    types::{millpond_exchange, millpond_peer, millpond_reason, millpond_then, millpond_wait},
};
use millpond_control::{Exchange, Reason, Then, Wait, least_wait};

/// Writes back what `on_start` and `on_timeout` changed, and the wait, which is at least the peer's least one; in the order
/// of [`ended`], and for its reason.
#[inline(never)]
pub(crate) unsafe fn keep(
    peer: *mut millpond_peer,
    exchange: *mut millpond_exchange,
    mut open: Exchange,
    wait: *mut millpond_wait,
    armed: Wait,
) -> Answer {
    // SAFETY: see the module `calls`.
    let armed = least_wait::at_least(unsafe { record::least_wait(peer) }, &mut open, armed);
    let then = match armed.then {
        Then::Retransmit => millpond_then::MILLPOND_THEN_RETRANSMIT,
        Then::Abandon => millpond_then::MILLPOND_THEN_ABANDON,
    };
    let reason = match armed.reason {
        Reason::Initial => millpond_reason::MILLPOND_REASON_INITIAL,
        Reason::BackedOff => millpond_reason::MILLPOND_REASON_BACKED_OFF,
        Reason::Slow => millpond_reason::MILLPOND_REASON_SLOW,
        Reason::Carried => millpond_reason::MILLPOND_REASON_CARRIED,
        Reason::Blind => millpond_reason::MILLPOND_REASON_BLIND,
        _ => millpond_reason::MILLPOND_REASON_OTHER,
    };
    // SAFETY: see the module `calls`.
    unsafe {
        let family = record::family_of(peer);
        record::seal_peer(peer);
        record::store_exchange(exchange, family, &open);
        wait.write(millpond_wait {
            span_us: armed.span.as_micros(),
            then: then as u8,
            reason: reason as u8,
            reserved: 0,
        });
    }
    Ok(0)
}

/// Writes back what `on_reply` and `on_end` changed. The peer first: what is written into its memory after that, by
/// way of another pointer, is damage and will be found.
pub(crate) unsafe fn ended(peer: *mut millpond_peer, exchange: *mut millpond_exchange) -> Answer {
    // SAFETY: see the module `calls`.
    unsafe {
        record::seal_peer(peer);
        record::end_exchange(exchange);
    }
    Ok(0)
}
