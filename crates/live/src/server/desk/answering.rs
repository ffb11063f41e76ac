//! What becomes of a handler's response, and what is said where none is asked.

use std::{net::SocketAddr, sync::Arc};

use millpond_coap::{
    RequestId,
    block::Block,
    message::{Code, NoResponse, number},
};
use millpond_control::Instant;

use super::{ASK_AGAIN, Action, Admission, Asked, Busy, Desk, Held, Observed, Refused, Standing, Told, UNVALIDATED};
use crate::{Request, Response};

impl Desk {
    /// A response is there: it goes out, in blocks that are small enough for whom it is for.
    pub(super) fn answered(&mut self, now: Instant, asked: Asked, mut response: Response) {
        if let Some(valid) = still_valid(&asked.request, &response) {
            response = valid;
        }
        if response.asks_for_proof() {
            return self.ask_for_proof(now, asked);
        }
        if asked.pieces.is_none() && is_past_end(&asked.request, &response) {
            let why = "a block behind the end";
            self.accesses.because(asked.id, why);
            response = Response::bad_request(why);
        }
        if self.is_answered_with_part(&asked, &mut response) {
            return;
        }
        if let Some(pieces) = asked.pieces {
            return self.answered_in_pieces(now, asked, pieces, response);
        }
        if response.has_stream() {
            tracing::error!(
                target: "millpond_live",
                "a handler answered with a stream, and its resource is not streaming(); its request is answered with 5.00"
            );
            return self.actions.push_back(heeding(
                &asked.request,
                asked.id,
                Response::new(Code::INTERNAL_SERVER_ERROR),
            ));
        }
        if asked.is_cut(&response) {
            response = match self.admission.bodies.at_once(response) {
                Ok(response) => response,
                Err(response) => return self.share(now, asked, response),
            };
        }
        let is_observed = |resource: &usize| asked.wants_to_observe && self.observers.has(*resource);
        let observed = asked.resource.filter(is_observed).filter(|_| response.is_success() && !self.is_closing);
        // Rights may have been withdrawn while the handler took its time.
        let observed = observed.filter(|_| self.policing.permits(&asked.request, asked.request.peer()));
        let room = observed.map(|resource| self.observers.room_for(resource, &asked.request));
        if room == Some(Err(Busy::Unproved)) {
            return self.ask_for_proof(now, asked);
        }
        let Asked { id, request, version, .. } = asked;
        self.actions.push_back(match (observed, room) {
            (Some(resource), Some(Ok(()))) => {
                Action::Observe { id, response, observed: Observed { resource, request, version } }
            }
            // Without Observe it says that it will be notified of no changes.
            _ => heeding(&request, id, response),
        });
    }

    /// To share its body takes longer than others are to wait: the response comes again.
    fn share(&mut self, now: Instant, mut asked: Asked, response: Response) {
        let peer = asked.request.peer();
        if asked.place.is_none() {
            match self.admission.enter(peer, asked.standing, asked.weight()) {
                Ok(place) => asked.place = Some(place),
                Err(busy) => return self.refuse(now, asked, busy),
            }
        }
        let (response, held) = held(&self.admission, asked.whose(), response);
        self.running += 1;
        let (told, admission) = (self.told.clone(), Arc::clone(&self.admission));
        self.tasks_of(wants_none(&asked.request)).spawn(async move {
            let response = match held {
                Some(_) => Arc::clone(&admission.bodies).shared(peer, response).await,
                None => response,
            };
            let _ = told.send(Told::Answered(Box::new(asked), response, held));
        });
    }

    /// 4.01 with what the client is to send back (RFC 9175 §2.3). Nobody is told so by an answer to a group.
    pub(super) fn ask_for_proof(&mut self, now: Instant, asked: Asked) {
        self.accesses.because(asked.id, UNVALIDATED);
        if asked.by_group {
            return self.actions.push_back(Action::Reject(asked.id));
        }
        let value = self.reachability.challenge(now, asked.request.peer());
        let prove = Response::new(Code::UNAUTHORIZED).with_option(number::ECHO, value.to_vec());
        self.actions.push_back(heeding(&asked.request, asked.id, prove));
    }

    /// Who asks may not do so, or not so often. A group's members say nothing of that.
    pub(super) fn refuse_by_policy(&mut self, request: &Request, id: RequestId, by_group: bool, refused: Refused) {
        let refusal = match refused {
            Refused::Forbidden => {
                self.accesses.because(id, "its sender may not do this");
                forbidden(request)
            }
            Refused::TooSoon { again_in } => {
                self.accesses.because(id, "its sender, or its network, asks too often");
                Response::new(Code::TOO_MANY_REQUESTS).with_max_age(again_in)
            }
        };
        self.actions.push_back(if by_group { Action::Reject(id) } else { heeding(request, id, refusal) });
    }

    /// Too much is under way for a handler to be asked.
    pub(super) fn refuse(&mut self, now: Instant, asked: Asked, busy: Busy) {
        let code = match busy {
            Busy::Unproved => return self.ask_for_proof(now, asked),
            Busy::Server => Code::SERVICE_UNAVAILABLE,
            Busy::Peer => Code::TOO_MANY_REQUESTS,
        };
        self.overloaded += 1;
        self.accesses.because(asked.id, "too much is under way");
        let refusal = Response::new(code).with_max_age(ASK_AGAIN);
        self.actions.push_back(heeding(&asked.request, asked.id, refusal));
    }
}

/// Who asked may not. Who has shown who it is, and may not, need not show it again (RFC 7252 §5.9.2.2, §5.9.2.4).
pub(super) fn forbidden(request: &Request) -> Response {
    Response::new(if request.identity().is_some() { Code::FORBIDDEN } else { Code::UNAUTHORIZED })
}

/// An answer, unless who asks wants none of its class.
pub(super) fn heeding(request: &Request, id: RequestId, response: Response) -> Action {
    match is_unwanted(request, response.code()) {
        true => Action::Hush(id),
        false => Action::Answer { id, response, is_proved: request.is_address_proved() },
    }
}

/// What a handler has answered in a task, until it is taken over; 5.03 if there is no room for it. A body that costs by its length
/// to be shared is shared there; who has not proved its address may have to do that first.
pub(super) async fn taken_over(
    admission: &Arc<Admission>,
    asked: &Asked,
    response: Response,
) -> (Response, Option<Held>) {
    let peer = asked.request.peer();
    let (response, held) = held(admission, asked.whose(), response);
    match asked.is_cut(&response) && asked.request.is_address_proved() {
        true => (Arc::clone(&admission.bodies).shared(peer, response).await, held),
        false => (response, held),
    }
}

/// The same as it is.
pub(super) fn held(
    admission: &Arc<Admission>,
    whose: (SocketAddr, Standing),
    response: Response,
) -> (Response, Option<Held>) {
    match admission.hold(Some(whose), response.payload().len()) {
        Some(held) => (response, Some(held)),
        None => (Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN), None),
    }
}

/// Whether who asks wants no response with this code (RFC 7967).
pub(super) fn is_unwanted(request: &Request, code: Code) -> bool {
    unwanted(request).covers(code)
}

/// Whether who asks wants no response at all.
pub(super) fn wants_none(request: &Request) -> bool {
    unwanted(request).is_all()
}

fn unwanted(request: &Request) -> NoResponse {
    request.value(number::NO_RESPONSE).map_or(NoResponse::NONE, NoResponse::read)
}

/// Whether a block is asked for that begins behind the end of the representation (RFC 7959 §2.4).
fn is_past_end(request: &Request, response: &Response) -> bool {
    if response.code() != Code::CONTENT || response.has_stream() {
        return false;
    }
    let block = request.value(number::BLOCK2).and_then(|value| Block::read(value, true).ok());
    block.is_some_and(|block| block.number > 0 && block.offset() >= response.total())
}

/// What is answered for a representation that the client has already (RFC 7252 §5.10.6.2).
fn still_valid(request: &Request, response: &Response) -> Option<Response> {
    let etag = response.options().get(number::ETAG).filter(|_| response.code() == Code::CONTENT)?;
    if request.method() != Code::GET || !request.values(number::ETAG).any(|known| known == &etag[..]) {
        return None;
    }
    let mut valid = Response::new(Code::VALID).with_etag(etag.clone());
    if let Some(seconds) = response.options().uint(number::MAX_AGE) {
        valid = valid.with_max_age(seconds);
    }
    Some(valid)
}
