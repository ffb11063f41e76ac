//! Python's own controllers behind the calls of a controller.
//!
//! A call into Python can fail, a call of a controller cannot. The first failure is kept where the run finds it, Python is
//! not called again, and until the run ends the controller answers waits that keep its contract.

use std::sync::{Arc, OnceLock};

use millpond_control::{
    Admit, Class, Controller, Cx, End, Exchange, Feedback, Instant, PeerController, Reason, Sample, Span, View, Wait,
    Wishes,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::class::OwnClass;
use super::failure::{Failure, Fault};
use super::numbers::{NoLength, length, shown, word_for};
use super::values::{self, ENDS};

pub(super) const NOW: &str = "now";
pub(super) const WHEN_ONE_ENDS: &str = "when-one-ends";
pub(super) const CLASSES: &[(&str, Class)] = &[("confirmable", Class::Confirmable), ("plain", Class::Plain)];
/// What a controller that failed answers until the run ends, within its own bounds.
const IDLE: Span = Span::from_secs(2);

/// The controller of one peer, written in Python.
#[derive(Debug)]
pub(super) struct PythonController {
    class: Arc<OwnClass>,
    failed: Arc<OnceLock<Failure>>,
    /// Made when it is first needed: most endpoints keep one that only ever serves as a pattern.
    instance: OnceLock<Py<PyAny>>,
    /// The records of open exchanges as Python knows them, under the number left in the mark of the endpoint's record.
    open: Vec<(u32, Py<values::Exchange>)>,
    last_key: u32,
}

impl Clone for PythonController {
    /// As a pattern it gives a new object of its class; once in use, a deep copy.
    fn clone(&self) -> Self {
        let instance = OnceLock::new();
        if self.instance.get().is_some() {
            let copied = self.ask("__deepcopy__", |me| {
                let py = me.py();
                let copied = py.import(intern!(py, "copy"))?.call_method1(intern!(py, "deepcopy"), (me,))?;
                Ok(copied.unbind())
            });
            if let Some(copied) = copied {
                let _ = instance.set(copied);
            }
        }
        let (class, failed) = (Arc::clone(&self.class), Arc::clone(&self.failed));
        Self { class, failed, instance, open: Vec::new(), last_key: self.last_key }
    }
}

impl PythonController {
    /// A controller for a peer about which nothing is known. It leaves its first failure in `failed`.
    pub(super) fn of(class: &Arc<OwnClass>, failed: &Arc<OnceLock<Failure>>) -> PeerController {
        PeerController::own(Self {
            class: Arc::clone(class),
            failed: Arc::clone(failed),
            instance: OnceLock::new(),
            open: Vec::new(),
            last_key: 0,
        })
    }

    /// Makes a call into Python, unless one has failed before.
    fn ask<T>(&self, call: &str, ask: impl FnOnce(&Bound<'_, PyAny>) -> Result<T, Fault>) -> Option<T> {
        if self.failed.get().is_some() {
            return None;
        }
        let answer = Python::try_attach(|py| {
            let answer = match self.instance.get() {
                Some(instance) => ask(instance.bind(py)),
                None => self.class.make.bind(py).call0().map_err(Fault::from).and_then(|made| {
                    let instance = self.instance.get_or_init(|| made.unbind());
                    ask(instance.bind(py))
                }),
            };
            answer.map_err(|fault| fault.told(py, &self.class.name, call))
        });
        let failure = match answer {
            Some(Ok(answer)) => return Some(answer),
            Some(Err(failure)) => failure,
            None => Failure { told: "the Python interpreter is closing".to_owned(), cause: None },
        };
        // Only the first one counts.
        let _ = self.failed.set(failure);
        None
    }

    /// The exchange as Python knows it.
    fn exchange<'py>(&self, py: Python<'py>, record: &Exchange) -> PyResult<Bound<'py, values::Exchange>> {
        match self.open.iter().find(|(key, _)| *key == record.mark().as_micros()) {
            Some((_, object)) => Ok(object.bind(py).clone()),
            None => Bound::new(py, values::Exchange::of(*record)),
        }
    }

    fn forget(&mut self, record: &Exchange) {
        self.open.retain(|(key, _)| *key != record.mark().as_micros());
    }

    /// The wait that Python answered, if it is one and keeps the bounds.
    fn wait(&self, answer: &Bound<'_, PyAny>, copy: u8, reason: Reason) -> Result<Wait, Fault> {
        let wait = match answer.cast::<values::Wait>() {
            Ok(wait) => wait.get().0,
            Err(_) => Wait::then_retransmit(self.span(answer)?, reason),
        };
        let (us, shortest, longest) = (wait.span.as_micros(), self.class.shortest, self.class.longest(copy));
        if wait.span < shortest {
            return Err(Fault::Returned(format!(
                "a wait of {us} µs, less than its shortest_wait_us(), {} µs: waits are in microseconds",
                shortest.as_micros()
            )));
        }
        if wait.span > longest {
            return Err(Fault::Returned(format!(
                "a wait of {us} µs, more than its longest_wait_us() for copy {copy}, {} µs: cap it, or say that it can be",
                longest.as_micros()
            )));
        }
        Ok(wait)
    }

    fn span(&self, answer: &Bound<'_, PyAny>) -> Result<Span, Fault> {
        length(answer).map_err(|why| {
            let fix = match why {
                NoLength::NotANumber => ": return the wait as a number of microseconds or a Wait",
                _ => "",
            };
            Fault::Returned(format!("{}, {why}{fix}", shown(answer)))
        })
    }

    /// What it answers once it has failed.
    fn idle(&self, copy: u8) -> Wait {
        let span = IDLE.max(self.class.shortest).min(self.class.longest(copy));
        Wait::then_retransmit(span, Reason::Initial)
    }
}

/// The point in time that Python answered, which must lie ahead.
fn deferred(answer: &Bound<'_, PyAny>, now: Instant) -> Result<Admit, Fault> {
    if let Ok(word) = answer.cast::<PyString>() {
        return match word.to_string_lossy().as_ref() {
            NOW => Ok(Admit::Now),
            WHEN_ONE_ENDS => Ok(Admit::WhenOneEnds),
            _ => {
                Err(Fault::Returned(format!("{}: write '{NOW}', '{WHEN_ONE_ENDS}' or a point in time", shown(answer))))
            }
        };
    }
    let Ok(micros) = answer.extract::<u64>() else {
        return Err(Fault::Returned(format!(
            "{}: write '{NOW}', '{WHEN_ONE_ENDS}' or a whole number of microseconds",
            shown(answer)
        )));
    };
    if micros <= now.as_micros() {
        let told = format!("{micros}, a point in time that does not lie after cx.now_us, {}", now.as_micros());
        return Err(Fault::Returned(told));
    }
    Ok(Admit::At(Instant::from_micros(micros)))
}

impl Controller for PythonController {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        if !self.class.defines.admit {
            return Admit::Now;
        }
        let answer = self.ask("admit", |me| {
            let kind = word_for(class, CLASSES);
            let answer = me.call_method1(intern!(me.py(), "admit"), (kind, len, values::Cx(cx)))?;
            deferred(&answer, cx.now)
        });
        answer.unwrap_or(Admit::Now)
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        let answer = self.ask("on_start", |me| {
            let py = me.py();
            let object = Bound::new(py, values::Exchange::default())?;
            let answer = me.call_method1(intern!(py, "on_start"), (&object, len, values::Cx(cx)))?;
            let wait = self.wait(&answer, 0, Reason::Initial)?;
            let record = &mut object.try_borrow_mut().map_err(PyErr::from)?.record;
            // A built-in controller to which the call was passed on has told the record already.
            if *record == Exchange::new() {
                record.begin(cx.now, wait.span);
            }
            Ok((wait, object.unbind()))
        });
        self.last_key = self.last_key.checked_add(1).unwrap_or(1);
        let (wait, object) = answer.map_or_else(|| (self.idle(0), None), |(wait, object)| (wait, Some(object)));
        exchange.begin(cx.now, wait.span);
        exchange.set_mark(Span::from_micros(self.last_key));
        self.open.extend(object.map(|object| (self.last_key, object)));
        wait
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        let copy = exchange.retransmissions().saturating_add(1);
        let answer = self.ask("on_timeout", |me| {
            let py = me.py();
            let object = self.exchange(py, exchange)?;
            let answer = me.call_method1(intern!(py, "on_timeout"), (&object, values::Cx(cx)))?;
            let wait = self.wait(&answer, copy, Reason::BackedOff)?;
            let record = &mut object.try_borrow_mut().map_err(PyErr::from)?.record;
            if record.retransmissions() < copy {
                record.advance(wait.span);
            }
            Ok(wait)
        });
        let wait = answer.unwrap_or_else(|| self.idle(copy));
        exchange.advance(wait.span);
        wait
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.ask("on_reply", |me| {
            let py = me.py();
            let object = self.exchange(py, exchange)?;
            me.call_method1(intern!(py, "on_reply"), (object, values::Sample(sample), values::Cx(cx)))?;
            Ok(())
        });
        self.forget(exchange);
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        if self.class.defines.on_end {
            self.ask("on_end", |me| {
                let py = me.py();
                let object = self.exchange(py, exchange)?;
                me.call_method1(intern!(py, "on_end"), (object, word_for(why, ENDS), values::Cx(cx)))?;
                Ok(())
            });
        }
        self.forget(exchange);
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        if self.class.defines.on_plain_send {
            self.ask("on_plain_send", |me| {
                me.call_method1(intern!(me.py(), "on_plain_send"), (len, values::Cx(cx)))?;
                Ok(())
            });
        }
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        if self.class.defines.on_feedback {
            self.ask("on_feedback", |me| {
                let feedback = super::feedback::Feedback(feedback);
                me.call_method1(intern!(me.py(), "on_feedback"), (feedback, values::Cx(cx)))?;
                Ok(())
            });
        }
    }

    fn wishes(&self) -> Wishes {
        self.class.wishes
    }

    fn view(&self) -> View {
        if !self.class.defines.view {
            return View::default();
        }
        let answer = self.ask("view", |me| {
            let answer = me.call_method0(intern!(me.py(), "view"))?;
            match answer.cast::<values::View>() {
                Ok(view) => Ok(view.get().0),
                Err(_) => Err(Fault::Returned(format!("{}, not a View", shown(&answer)))),
            }
        });
        answer.unwrap_or_default()
    }

    fn base_rtt(&self) -> Option<Span> {
        if !self.class.defines.base_rtt {
            return None;
        }
        let answer = self.ask("base_rtt_us", |me| {
            let answer = me.call_method0(intern!(me.py(), "base_rtt_us"))?;
            if answer.is_none() {
                return Ok(None);
            }
            let told = |why| Fault::Returned(format!("{}, {why}: return None if nothing was measured", shown(&answer)));
            length(&answer).map(Some).map_err(told)
        });
        answer.flatten()
    }

    fn recall(&mut self, base_rtt: Span) {
        if self.class.defines.recall {
            self.ask("recall", |me| {
                me.call_method1(intern!(me.py(), "recall"), (base_rtt.as_micros(),))?;
                Ok(())
            });
        }
    }

    fn shortest_wait(&self) -> Span {
        self.class.shortest
    }

    fn longest_wait(&self, copy: u8, _previous: Span) -> Span {
        self.class.longest(copy)
    }
}
