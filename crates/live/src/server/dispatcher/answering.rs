//! What becomes of a handler's response, and what is said where none is asked.

use std::{net::SocketAddr, sync::Arc};

use millpond_coap::{
    RequestId,
    block::Block,
    message::{Code, NoResponse, number},
};
use millpond_control::Instant;

use super::{
    ASK_AGAIN, Action, AddressState, Admission, Busy, Dispatcher, Held, Observed, PendingRequest, Refused, TaskEvent,
    UNVALIDATED,
};
use crate::{Request, Response};

impl Dispatcher {
    /// A response is there: it goes out, in blocks that are small enough for whom it is for.
    pub(super) fn answered(&mut self, now: Instant, pending: PendingRequest, mut response: Response) {
        if let Some(valid) = still_valid(&pending.request, &response) {
            response = valid;
        }
        if response.asks_for_proof() {
            return self.ask_for_proof(now, pending);
        }
        if pending.pieces.is_none() && is_past_end(&pending.request, &response) {
            let why = "a block behind the end";
            self.accesses.because(pending.id, why);
            response = Response::bad_request(why);
        }
        if self.is_answered_with_part(&pending, &mut response) {
            return;
        }
        let pieces = match pending.pieces {
            None if response.has_stream() && pending.request.may_stream() && !pending.by_group => {
                // Its later blocks are admitted as a part of it.
                self.downloaders.remember(pending.request.peer());
                pending.request.fit().and_then(|fit| fit.pieces(&pending.request))
            }
            pieces => pieces,
        };
        if let Some(pieces) = pieces {
            return self.answered_in_pieces(now, pending, pieces, response);
        }
        if response.has_stream() {
            tracing::error!(
                target: "millpond_live",
                "a handler answered with a stream where Request::may_stream() does not hold; its request is answered with 5.00"
            );
            return self.actions.push_back(heeding(
                &pending.request,
                pending.id,
                Response::new(Code::INTERNAL_SERVER_ERROR),
            ));
        }
        if pending.is_cut(&response) {
            response = match self.admission.bodies.at_once(response) {
                Ok(response) => response,
                Err(response) => return self.share(now, pending, response),
            };
        }
        let is_observed = |resource: &usize| pending.wants_to_observe && self.observers.has(*resource);
        let observed = pending.resource.filter(is_observed).filter(|_| response.is_success() && !self.is_closing);
        // Rights may have been withdrawn while the handler took its time.
        let observed = observed.filter(|_| self.policing.permits(&pending.request, pending.request.peer()));
        let room = observed.map(|resource| self.observers.room_for(resource, &pending.request));
        if room == Some(Err(Busy::Unvalidated)) {
            return self.ask_for_proof(now, pending);
        }
        let PendingRequest { id, request, version, .. } = pending;
        self.actions.push_back(match (observed, room) {
            (Some(resource), Some(Ok(()))) => {
                Action::Observe { id, response, observed: Observed { resource, request, version } }
            }
            // Without Observe it says that it will be notified of no changes.
            _ => heeding(&request, id, response),
        });
    }

    /// To share its body takes longer than others are to wait: the response comes again.
    fn share(&mut self, now: Instant, mut pending: PendingRequest, response: Response) {
        let peer = pending.request.peer();
        if pending.place.is_none() {
            match self.admission.enter(now, peer, pending.address_state, pending.weight()) {
                Ok(place) => pending.place = Some(place),
                Err(busy) => return self.refuse(now, pending, busy),
            }
        }
        let (response, held) = held(&self.admission, pending.whose(), response);
        self.running += 1;
        let (events, admission) = (self.events.clone(), Arc::clone(&self.admission));
        self.tasks_of(wants_none(&pending.request)).spawn(async move {
            let response = match held {
                Some(_) => Arc::clone(&admission.bodies).shared(peer, response).await,
                None => response,
            };
            let _ = events.send(TaskEvent::Answered(Box::new(pending), response, held));
        });
    }

    /// 4.01 with what the client is to send back (RFC 9175 §2.3). Nobody is told so by an answer to a group.
    pub(super) fn ask_for_proof(&mut self, now: Instant, pending: PendingRequest) {
        self.accesses.because(pending.id, UNVALIDATED);
        if pending.by_group {
            return self.actions.push_back(Action::Reject(pending.id));
        }
        let value = self.reachability.challenge(now, pending.request.peer());
        let prove = Response::new(Code::UNAUTHORIZED).with_option(number::ECHO, value.to_vec());
        self.actions.push_back(heeding(&pending.request, pending.id, prove));
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
    pub(super) fn refuse(&mut self, now: Instant, pending: PendingRequest, busy: Busy) {
        let code = match busy {
            Busy::Unvalidated => return self.ask_for_proof(now, pending),
            Busy::Server => Code::SERVICE_UNAVAILABLE,
            Busy::Peer => Code::TOO_MANY_REQUESTS,
        };
        self.overloaded += 1;
        self.accesses.because(pending.id, "too much is under way");
        let refusal = Response::new(code).with_max_age(ASK_AGAIN);
        self.actions.push_back(heeding(&pending.request, pending.id, refusal));
    }
}

/// Who asked may not. Who has shown who it is, and may not, need not show it again (RFC 7252 §5.9.2.2, §5.9.2.4).
pub(super) fn forbidden(request: &Request) -> Response {
    Response::new(if request.identity().is_some() { Code::FORBIDDEN } else { Code::UNAUTHORIZED })
}

/// An answer, unless who asks wants none of its class.
pub(super) fn heeding(request: &Request, id: RequestId, response: Response) -> Action {
    match is_unwanted(request, response.code()) {
        true => Action::SuppressResponse(id),
        false => Action::Answer { id, response, is_proved: request.is_address_proved() },
    }
}

/// What a handler has answered in a task, until it is taken over; 5.03 if there is no room for it. A body that costs by its length
/// to be shared is shared there; who has not proved its address may have to do that first.
pub(super) async fn taken_over(
    admission: &Arc<Admission>,
    pending: &PendingRequest,
    response: Response,
) -> (Response, Option<Held>) {
    let peer = pending.request.peer();
    let (response, held) = held(admission, pending.whose(), response);
    match pending.is_cut(&response) && pending.request.is_address_proved() {
        true => (Arc::clone(&admission.bodies).shared(peer, response).await, held),
        false => (response, held),
    }
}

/// The same as it is.
pub(super) fn held(
    admission: &Arc<Admission>,
    whose: (SocketAddr, AddressState),
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
