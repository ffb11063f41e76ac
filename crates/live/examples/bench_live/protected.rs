//! What a request costs our server under OSCORE (RFC 8613) beside one in the clear.

use millpond_coap::oscore::{Context, ContextError, Parameters, Start};

use crate::{Arguments, Failure, OUTSTANDING, comparison::beside, generator::Generator, sides};

/// That of the server, or of its clients: AES-CCM-16-64-128.
pub(crate) fn context(is_server: bool) -> Result<Context, ContextError> {
    let of_clients = Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(b"for measurements alone") };
    Context::derive(&if is_server { of_clients.mirrored() } else { of_clients }, Start::Fresh)
}

/// CPU for each request and requests a second, in the clear and protected, one after the other in each round.
pub(crate) fn cost(arguments: &Arguments) -> Result<(), Failure> {
    let plain = (sides::ours()?, Generator::new(OUTSTANDING)?);
    beside(arguments, vec![plain, (sides::ours_protected()?, Generator::protected(OUTSTANDING, context(false)?)?)])
}
