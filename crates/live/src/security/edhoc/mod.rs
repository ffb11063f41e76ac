//! Contexts that two sides agree upon by public keys (EDHOC, RFC 9528): method 3, static Diffie-Hellman keys, with cipher suite 2, over
//! CoAP as its Appendix A.2 has it.
//!
//! The handshake is that of lakers 0.8 with RustCrypto. It was written for what is well-formed: a message is checked here before, so that none makes
//! it panic. It wipes nothing, so what is kept of a handshake is wiped here. It takes one suite and one method, and credentials by kid or value
//! (only the former is taken here). Of external authorisation data nothing is known here: what is not critical is ignored, and a message with
//! critical data is refused, or with more than lakers has room for, or with a first label above 23.

mod accepting;
mod credentials;
mod keys;
mod steps;

use millpond_coap::message::Code;
use millpond_coap::oscore::{Context, Start};

use super::OscoreContexts;
use crate::{Client, Error, Response, Uri};

pub use credentials::EdhocCredentials;

pub(crate) use accepting::Acceptor;
use steps::Fault;
#[cfg(fuzzing)]
pub(super) use steps::hostile;

/// Where messages go (RFC 9528 Appendix A.2).
const PATH: &str = "/.well-known/edhoc";

/// Content-Format application/edhoc+cbor-seq: of a message, or an error.
const MESSAGE: u16 = 64;

/// Content-Format application/cid-edhoc+cbor-seq: a message after a connection identifier, or after `true`.
const NAMED_MESSAGE: u16 = 65;

/// What stands before message_1.
const TRUE: u8 = 0xf5;

impl OscoreContexts {
    /// Agrees with the server of this URI upon a context, and adds it. The client speaks in the clear, or by DTLS or TLS; what is agreed
    /// upon is for another one, that takes these contexts.
    ///
    /// The keys are gone with the last clone of these contexts, and need no storage.
    ///
    /// # Errors
    /// The server does not answer, does not take these credentials, or has others than are taken here.
    pub async fn establish(&self, client: &Client, server: &Uri, ours: &EdhocCredentials) -> Result<(), Error> {
        let uri = server.join(PATH).map_err(|error| setting(&error.to_string()))?;
        let ask = async |message: Vec<u8>| {
            let answer = client.post(uri.clone()).content_format(NAMED_MESSAGE).payload(message).send().await?;
            match answer.code() {
                Code::CHANGED => Ok(answer),
                _ => Err(refused(&answer)),
            }
        };
        let (message_1, asked) = steps::message_1(keys::PrivateKey::random()?, keys::identifier()?, &[steps::SUITE])?;
        let answer = ask([&[TRUE], &*message_1].concat()).await?;
        let insecure = |fault: Fault| insecure(&answer, format!("EDHOC: {fault}"));
        let (message_3, mut agreed) = steps::message_3(&asked, answer.payload(), ours).map_err(insecure)?;
        let answer = ask([agreed.theirs.as_cbor(), &*message_3].concat()).await?;
        // A server need not send message_4: then its first protected answer shows that it has the keys.
        if !answer.payload().is_empty() {
            agreed.confirm(answer.payload()).map_err(insecure)?;
        }
        self.add(agreed.context()?, |_| Ok(()))
    }
}

impl steps::Agreed {
    /// The context, whose keys were never used.
    fn context(&self) -> Result<Context, Error> {
        let (secret, salt) = self.exported();
        let parameters = millpond_coap::oscore::Parameters {
            salt: &*salt,
            sender_id: self.theirs.as_slice(),
            recipient_id: self.ours.as_slice(),
            ..millpond_coap::oscore::Parameters::of(&*secret)
        };
        Context::derive(&parameters, Start::Fresh).map_err(|error| setting(&error.to_string()))
    }
}

fn setting(reason: &str) -> Error {
    Error::Setting { name: "edhoc", reason: reason.into() }
}

fn insecure(answer: &Response, reason: String) -> Error {
    match answer.exchange() {
        Some(exchange) => Error::Insecure { peer: exchange.peer, reason, source: None },
        None => setting(&reason),
    }
}

/// An answer that is no message of EDHOC.
fn refused(answer: &Response) -> Error {
    let reason = match Fault::told(answer.payload()).filter(|_| answer.content_format() == Some(MESSAGE.into())) {
        Some(told) => format!("EDHOC is refused: {told}"),
        None => format!("EDHOC is answered {}: check that the server does it", answer.code()),
    };
    insecure(answer, reason)
}
