//! What a host does of what a desk wants done, whatever carries its messages.

use millpond_coap::{
    RequestId,
    layer::MessageLayer,
    message::{Code, Kind},
};
use millpond_control::Instant;

use super::{Action, Desk, UNVALIDATED};
use crate::{
    Response,
    server::AccessOutcome,
    transfer::{Answer, Host, Refused, Sent},
};

/// A host, and what is to be done after each of its inputs.
pub(crate) trait Hosted {
    type Layer: MessageLayer;

    fn host(&mut self) -> &mut Host<Self::Layer>;

    /// Takes what the host says. A stream says it in its own time.
    fn drain(&mut self, _now: Instant) {}

    /// Gives the host an input.
    fn input<T>(&mut self, now: Instant, input: impl FnOnce(&mut Host<Self::Layer>) -> T) -> T {
        let done = input(self.host());
        self.drain(now);
        done
    }
}

impl Desk {
    /// A request was answered with this, unless the host had to send less.
    fn ended(&mut self, id: RequestId, outcome: AccessOutcome, sent: &Sent) {
        let AccessOutcome::Answered { code, bytes } = outcome else { return self.accesses.ended(id, outcome) };
        // A desk asks for a proof with nothing beside it, and has said why.
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

    /// Does what is to be done.
    pub(crate) fn carry_out<H: Hosted>(&mut self, now: Instant, on: &mut H, action: Action) {
        match action {
            Action::Answer { id, response, is_proved } => {
                let outcome = answer(now, on, id, &response, |answer| Answer { is_proved, ..answer });
                self.ended(id, outcome, &on.host().sent());
            }
            Action::Piece(id, response) => {
                let outcome = answer(now, on, id, &response, |answer| answer.as_piece());
                self.ended(id, outcome, &on.host().sent());
            }
            Action::Hush(id) => {
                let _ = on.input(now, |host| host.hush(now, id));
                self.accesses.ended(id, AccessOutcome::Unanswered);
            }
            Action::Reject(id) => {
                // It may have been dropped meanwhile.
                let _ = on.input(now, |host| host.reject(now, id));
                self.accesses.ended(id, AccessOutcome::Unanswered);
            }
            Action::Observe { id, response, observed } => {
                let accepted = response.options().lend(|options| {
                    let is_proved = observed.is_proved();
                    let answer = Answer { is_proved, ..answer_of(&response, options) };
                    on.input(now, |host| host.accept_observer(now, id, &answer))
                });
                let outcome = match accepted {
                    Ok(observer) => {
                        if let Some(observer) = observer {
                            self.observe(observer, observed);
                        }
                        answered(&response)
                    }
                    Err(error) => unanswered(now, on, id, &error),
                };
                self.ended(id, outcome, &on.host().sent());
            }
            Action::Notify { observer, response, is_confirmable, is_last } => {
                let kind = is_confirmable.then_some(Kind::Confirmable);
                let notified = response.options().lend(|options| {
                    let answer = Answer { kind, ..answer_of(&response, options) };
                    on.input(now, |host| host.notify(now, observer, &answer))
                });
                if let Err(error) = notified {
                    tracing::debug!(target: "millpond_live", "an observer was not notified: {error}");
                }
                if is_last && response.is_success() {
                    on.input(now, |host| host.dismiss(now, observer));
                }
            }
        }
    }
}

/// A response as a host takes it.
fn answer_of<'a>(response: &'a Response, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
    let answer = Answer::new(response.code(), options);
    match response.shared() {
        Some(body) => answer.with_shared_body(body),
        None => answer.with_body(response.payload()),
    }
}

fn answer(
    now: Instant,
    on: &mut impl Hosted,
    id: RequestId,
    response: &Response,
    how: impl FnOnce(Answer<'_>) -> Answer<'_>,
) -> AccessOutcome {
    let sent = response.options().lend(|options| {
        let answer = how(answer_of(response, options));
        on.input(now, |host| host.answer(now, id, &answer))
    });
    match sent {
        Ok(()) => answered(response),
        Err(error) => unanswered(now, on, id, &error),
    }
}

fn answered(response: &Response) -> AccessOutcome {
    AccessOutcome::Answered { code: response.code(), bytes: response.payload().len() }
}

/// What cannot be sent is answered with 5.00.
fn unanswered(now: Instant, on: &mut impl Hosted, id: RequestId, error: &Refused) -> AccessOutcome {
    tracing::warn!(target: "millpond_live", "an answer could not be sent: {error}");
    let broken = Answer::new(Code::INTERNAL_SERVER_ERROR, &[]);
    if on.input(now, |host| host.answer(now, id, &broken)).is_ok() {
        return AccessOutcome::Answered { code: broken.code, bytes: 0 };
    }
    // Whoever asked gets nothing, and its request keeps no place. It may be gone altogether.
    let _ = on.input(now, |host| host.reject(now, id));
    AccessOutcome::Unanswered
}
