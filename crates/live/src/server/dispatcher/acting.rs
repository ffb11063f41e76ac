//! What a stack does of what a dispatcher wants done, whatever carries its messages.

use millpond_coap::{
    RequestId,
    layer::MessageLayer,
    message::{Code, Kind},
};
use millpond_control::Instant;

use super::{Action, Dispatcher, UNVALIDATED};
use crate::{
    Response,
    server::AccessOutcome,
    transfer::{Answer, CoapStack, Refused, Sent},
};

impl Dispatcher {
    /// A request was answered with this, unless the stack had to send less.
    fn ended(&mut self, id: RequestId, outcome: AccessOutcome, sent: &Sent) {
        let AccessOutcome::Answered { code, bytes } = outcome else { return self.accesses.ended(id, outcome) };
        // A dispatcher asks for a proof with nothing beside it, and has said why.
        if !sent.asks_for_proof || code == Code::UNAUTHORIZED {
            return self.accesses.ended(id, outcome);
        }
        if sent.code != code {
            self.accesses.because(id, UNVALIDATED);
            return self.accesses.ended(id, AccessOutcome::Answered { code: sent.code, bytes: sent.payload });
        }
        self.accesses.because(
            id,
            match sent.block {
                Some(block) => format!("{UNVALIDATED}; blocks of {} bytes", block.size.bytes()),
                None => format!("{UNVALIDATED}; {} bytes", sent.payload),
            },
        );
        self.accesses.ended(id, AccessOutcome::Answered { code, bytes });
    }

    /// Does what is to be done. The stack is to be drained then, or takes what it says in its own time.
    pub(crate) fn carry_out<L: MessageLayer>(&mut self, now: Instant, stack: &mut CoapStack<L>, action: Action) {
        match action {
            Action::Answer { id, response, is_proved } => {
                let sent = response
                    .options()
                    .lend(|options| stack.answer(now, id, &Answer { is_proved, ..answer_of(&response, options) }));
                self.was_sent(id, sent, answered(&response), &stack.sent());
            }
            Action::Piece(id, response) => {
                let sent =
                    response.options().lend(|options| stack.answer(now, id, &answer_of(&response, options).as_piece()));
                self.was_sent(id, sent, answered(&response), &stack.sent());
            }
            Action::SuppressResponse(id) => {
                let _ = stack.suppress_response(now, id);
                self.accesses.ended(id, AccessOutcome::Unanswered);
            }
            Action::Leave(id) => {
                stack.leave(now, id);
                self.accesses.ended(id, AccessOutcome::Unanswered);
            }
            Action::Reject(id) => {
                // It may have been dropped meanwhile.
                let _ = stack.reject(now, id);
                self.accesses.ended(id, AccessOutcome::Unanswered);
            }
            Action::Fail(id) => match stack.answer(now, id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[])) {
                Ok(()) => {
                    let outcome = AccessOutcome::Answered { code: Code::INTERNAL_SERVER_ERROR, bytes: 0 };
                    self.ended(id, outcome, &stack.sent());
                }
                // The client gets nothing, and its request keeps no place. It may be gone altogether.
                Err(_) => self.actions.push_front(Action::Reject(id)),
            },
            Action::Observe { id, response, observed } => {
                let is_proved = observed.is_proved();
                let accepted = response.options().lend(|options| {
                    stack.accept_observer(now, id, &Answer { is_proved, ..answer_of(&response, options) })
                });
                let sent = accepted.map(|observer| {
                    if let Some(observer) = observer {
                        self.observe(observer, observed);
                    }
                });
                self.was_sent(id, sent, answered(&response), &stack.sent());
            }
            Action::Notify { observer, response, is_confirmable, is_last } => {
                let kind = is_confirmable.then_some(Kind::Confirmable);
                let notified = response
                    .options()
                    .lend(|options| stack.notify(now, observer, &Answer { kind, ..answer_of(&response, options) }));
                self.observers.have_changed = true;
                if let Err(error) = notified {
                    tracing::debug!(target: "millpond_live", "an observer was not notified: {error}");
                }
                if is_last && response.is_success() {
                    self.actions.push_front(Action::RemoveObserver(observer));
                }
            }
            Action::RemoveObserver(observer) => {
                stack.remove_observer(now, observer);
            }
        }
    }

    /// A request was answered. What cannot be sent is answered with 5.00.
    fn was_sent(&mut self, id: RequestId, sent: Result<(), Refused>, outcome: AccessOutcome, what: &Sent) {
        match sent {
            Ok(()) => self.ended(id, outcome, what),
            Err(error) => {
                tracing::warn!(target: "millpond_live", "an answer could not be sent: {error}");
                self.actions.push_front(Action::Fail(id));
            }
        }
    }
}

/// A response as a stack takes it.
fn answer_of<'a>(response: &'a Response, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
    let answer = Answer::new(response.code(), options);
    match response.shared() {
        Some(body) => answer.with_shared_body(body),
        None => answer.with_body(response.payload()),
    }
}

fn answered(response: &Response) -> AccessOutcome {
    AccessOutcome::Answered { code: response.code(), bytes: response.payload().len() }
}
