//! Flags of every verb that sends confirmable messages: how often and after which time they are sent again.

use std::time::Duration;

use clap::Args;
use millpond_coap::Transmission;
use millpond_live::{ClientBuilder, ControllerChoice, Transport};

use crate::{failure::Failure, values};

/// Transmission parameters of RFC 7252 §4.8.
#[derive(Clone, Debug, Default, Args)]
pub struct Repeating {
    /// Retransmissions of a message (MAX_RETRANSMIT).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=250), help = max_retransmit_help())]
    pub max_retransmit: Option<u8>,
    /// First wait for an acknowledgement before the path is known, at least 1s [the controller's] (ACK_TIMEOUT).
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub ack_timeout: Option<Duration>,
}

impl Repeating {
    /// A client that repeats as asked, with this controller or the usual one.
    ///
    /// # Errors
    /// TCP, which repeats by itself; a wait that is not safe, or none that the controller knows.
    pub fn apply(
        &self,
        builder: ClientBuilder,
        controller: Option<&ControllerChoice>,
        transport: Transport,
    ) -> Result<ClientBuilder, Failure> {
        let Self { max_retransmit, ack_timeout } = *self;
        if !transport.is_datagram() && (max_retransmit.is_some() || ack_timeout.is_some()) {
            let why = "--max-retransmit and --ack-timeout are for UDP, and TCP repeats by itself; leave them out";
            return Err(Failure::Usage(why.to_owned()));
        }
        let mut controller = controller.cloned().unwrap_or_default();
        if let Some(wait) = ack_timeout {
            controller = controller.with_ack_timeout(wait)?;
        }
        let builder = builder.controller(controller);
        Ok(match max_retransmit {
            Some(count) => builder.max_retransmit(count),
            None => builder,
        })
    }
}

fn max_retransmit_help() -> String {
    let usual = Transmission::RFC7252.max_retransmit;
    format!("Retransmissions of a message, 0 to {} (MAX_RETRANSMIT) [{usual}]", Transmission::MOST_RETRANSMISSIONS)
}
