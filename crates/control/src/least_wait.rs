//! Waits that are no shorter than a least one, whatever their controller says.
//!
//! An estimator knows how long the path takes when a peer answers at once. A server may also take its time before it
//! acknowledges (RFC 7252 §5.2.2), and nothing in a fast answer tells so. On a path of a millisecond all copies would be
//! sent, and the message given up, before such an acknowledgement leaves. TCP has the same trouble with delayed
//! acknowledgements and the same cure: a least timeout, of 200 ms on Linux.

use crate::{Exchange, Instant, Span, Wait};

/// After [`on_start`](crate::Controller::on_start): the exchange, and the wait of its first copy, with at least this wait.
pub fn begun(exchange: &mut Exchange, now: Instant, wait: Wait, least: Span) -> Wait {
    if wait.span >= least {
        return wait;
    }
    let told = *exchange;
    exchange.begin(now, least);
    kept(exchange, &told, wait)
}

/// After [`on_timeout`](crate::Controller::on_timeout): the exchange, which was `before`, and the wait of its next copy, with at
/// least this wait.
pub fn advanced(exchange: &mut Exchange, before: &Exchange, wait: Wait, least: Span) -> Wait {
    if wait.span >= least {
        return wait;
    }
    let told = core::mem::replace(exchange, *before);
    exchange.advance(least);
    kept(exchange, &told, wait)
}

/// What the controller left in its record.
fn kept(exchange: &mut Exchange, told: &Exchange, wait: Wait) -> Wait {
    exchange.set_mark(told.mark());
    exchange.set_series(told.series());
    Wait { span: exchange.current(), ..wait }
}
