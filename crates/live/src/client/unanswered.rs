//! Requests that do not want all responses (No-Response, RFC 7967).

use std::sync::PoisonError;

use millpond_coap::message::{NoResponse, number};
use tokio::sync::oneshot;

use super::{
    Command, RequestBuilder,
    deadline::{Until, by, until},
    peer::Peers,
    request::Guard,
};
use crate::{Error, Response};

/// What became of a request that does not want all responses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It left, non-confirmably or over a stream. Whether it arrived is not known.
    Sent,
    /// The peer has acknowledged it, and has it.
    Acknowledged,
    /// A response came all the same: of a class that is wanted, or of a peer that does not know the option.
    Answered(Response),
}

impl RequestBuilder {
    /// Sends it, and says that responses of these classes are not wanted: `NoResponse::ALL`, or
    /// `NoResponse::SUCCESS | NoResponse::SERVER_ERROR`. The server carries it out and does not send them.
    ///
    /// Where none is wanted, it is over once it was acknowledged; [non-confirmable](Self::non_confirmable) or over TCP, once it
    /// left. Where some are, these are awaited until the [deadline](Self::deadline), or as long as one may come: 145 s after a
    /// non-confirmable request, 247 s after an acknowledgement and over TCP. That none came is no error then.
    ///
    /// Nothing comes back for what is sent non-confirmably like this, so it leaves every 3 s at most to one peer (RFC 8085 §3.1.3),
    /// and with 1 byte/s to one that has never answered (PROBING_RATE). A peer that has more to say does so confirmably: that goes as
    /// fast as it is acknowledged. A token given by [`token`](Self::token) is not that of a request which wants a response until none
    /// can come any more (RFC 7967: some minutes): such a one waits.
    ///
    /// A server that wants to know first whether the client is where it says ([`send`](Self::send)) says so by a 4.01, which has to be
    /// wanted.
    ///
    /// # Errors
    /// It was not acknowledged, or did not leave, and why; [`Error::Refused`] for a body of several blocks, each of which needs its
    /// response.
    pub async fn send_no_response(mut self, unwanted: NoResponse) -> Result<Outcome, Error> {
        self.options.set(number::NO_RESPONSE, vec![unwanted.value()]);
        self.limits_responses = true;
        let until = until(self.deadline);
        let key = self.key();
        let cache = self.client.cache.clone();
        let mut peers = by(until, Peers::of(&self)).await?;
        let outcome = self.outcome(&mut peers, None, until).await?;
        if let (Some(key), Some(cache)) = (key, cache) {
            cache.lock().unwrap_or_else(PoisonError::into_inner).changed(&key);
        }
        Ok(outcome)
    }
}

impl Guard {
    /// What becomes of its request. One that wants some responses, and of which nothing else is awaited, has not failed when its
    /// time is over.
    pub(super) async fn outcome(
        &self,
        mut told: oneshot::Receiver<Result<Outcome, Error>>,
        until: Until,
    ) -> Result<Outcome, Error> {
        let Some((at, after)) = until else { return told.await.unwrap_or(Err(Error::Closed)) };
        if let Ok(outcome) = tokio::time::timeout_at(at, &mut told).await {
            return outcome.unwrap_or(Err(Error::Closed));
        }
        // The driver may have ended, which is told as well.
        let _ = self.commands.send(Command::EndUnanswered(self.number));
        match told.await {
            Ok(Ok(outcome)) => Ok(outcome),
            _ => Err(Error::Deadline { after }),
        }
    }
}
