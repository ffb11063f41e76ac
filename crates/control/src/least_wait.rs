//! Waits that are no shorter than a least one, whatever their controller says.
//!
//! An estimator knows how long the path takes when a peer answers at once. A server may also take its time before it
//! acknowledges (RFC 7252 §5.2.2), and nothing in a fast answer tells so. On a path of a millisecond all copies would be
//! sent, and the message given up, before such an acknowledgement leaves. TCP has the same trouble with delayed
//! acknowledgements and the same cure: a least timeout, of 200 ms on Linux.

use crate::{Exchange, Span, Wait};

/// After [`on_start`](crate::Controller::on_start) or [`on_timeout`](crate::Controller::on_timeout): the wait that they armed, with
/// at least this wait, and the exchange told so.
pub const fn at_least(least: Span, exchange: &mut Exchange, wait: Wait) -> Wait {
    if wait.span.as_micros() >= least.as_micros() {
        return wait;
    }
    exchange.lengthen(least);
    Wait { span: least, ..wait }
}
