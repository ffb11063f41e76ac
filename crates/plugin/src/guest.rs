//! The laboratory's side: a controller behind the functions of a plugin.
//!
//! Such a call can fail, a call of a controller cannot. The first failure is told, the plugin is not called again, and the
//! controller goes on with waits that keep its contract.
#![expect(unsafe_code, reason = "functions of the C ABI take what they are about as a pointer")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_control::{
    Admit, Class, Controller, Cx, End, Exchange, Feedback, Reason, Sample, Span, View, Wait, Wishes,
};

use crate::plugin::{Calls, Plugin, VERSION};
use crate::records::{Answer, CLASSES, ENDS, FeedbackRecord, Question, Record, SampleRecord, number, what};

/// What a controller that failed answers, within its own bounds.
const IDLE: Span = Span::from_secs(2);

/// Is told, once or several times, in one line why a guest cannot go on: the call and what was wrong with it.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// Why a plugin is not taken, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The controller of one peer, out of a plugin. A clone goes its own way.
pub struct Guest {
    state: State,
    kind: Arc<Kind>,
    tell: Tell,
    failed: AtomicBool,
}

/// What the controller knows, and the functions of its type.
struct State {
    calls: Calls,
    /// Null once cloning has failed.
    pointer: *mut c_void,
}

/// What all controllers of a plugin have in common.
#[derive(Debug)]
struct Kind {
    wishes: Wishes,
    shortest: Span,
    /// By number of the copy.
    longest: Vec<Span>,
}

// SAFETY: a plugin is made of controllers that are Send.
unsafe impl Send for State {}
// SAFETY: and Sync; through a shared guest only calls are made that change nothing.
unsafe impl Sync for State {}

impl Guest {
    /// A controller of the plugin, asked for all that never changes.
    ///
    /// # Errors
    /// The plugin is of another version, or its bounds make no sense.
    ///
    /// # Safety
    /// `plugin` points to a [`Plugin`] of whatever version, alive during the call, whose code stays loaded.
    pub unsafe fn of(plugin: *const Plugin) -> Result<Self, Refused> {
        // SAFETY: the version is the first word of every version.
        let version = unsafe { *plugin.cast::<u32>() };
        if version != VERSION {
            return Err(Refused(format!(
                "built for version {version} of controllers in modules, and this laboratory has version {VERSION}: \
                 build it with the millpond-plugin of millpond {}",
                env!("CARGO_PKG_VERSION")
            )));
        }
        // SAFETY: it is of our version.
        let plugin = unsafe { &*plugin };
        // SAFETY: the state is of the type of `fork`, and the plugin's owner does not change it.
        let pointer = unsafe { (plugin.calls.fork)(plugin.state) };
        let state = State { calls: plugin.calls, pointer };
        let kind = Arc::new(Kind { wishes: Wishes::NONE, shortest: Span::ZERO, longest: Vec::new() });
        let mut guest = Self { state, kind, tell: Arc::new(|_| ()), failed: AtomicBool::new(false) };
        guest.kind = Arc::new(guest.read().map_err(Refused)?);
        Ok(guest)
    }

    /// The same controller, whose failures are told to `tell`.
    #[must_use]
    pub fn telling(&self, tell: Tell) -> Self {
        let mut guest = self.clone();
        guest.tell = tell;
        guest
    }

    fn read(&self) -> Result<Kind, String> {
        let shortest = Span::from_micros(self.ask(&Question::of(what::SHORTEST_WAIT))?.span_us);
        if shortest == Span::ZERO {
            return Err("shortest_wait is 0: a wait is never zero".to_owned());
        }
        let mut longest = Vec::with_capacity(1 << u8::BITS);
        let mut previous = Span::ZERO;
        for copy in 0..=u8::MAX {
            let question = Question { word: copy, span_us: previous.as_micros(), ..Question::of(what::LONGEST_WAIT) };
            previous = Span::from_micros(self.ask(&question)?.span_us);
            if previous < shortest {
                let us = previous.as_micros();
                return Err(format!("longest_wait is {us} µs for copy {copy}, less than shortest_wait"));
            }
            longest.push(previous);
        }
        Ok(Kind { wishes: self.ask(&Question::of(what::WISHES))?.wishes(), shortest, longest })
    }

    fn ask(&self, question: &Question) -> Result<Answer, String> {
        if self.state.pointer.is_null() {
            return Err("clone panicked".to_owned());
        }
        let mut answer = Answer::default();
        // SAFETY: the state is of the type of `call`. Only methods that have the guest for themselves ask what changes it.
        unsafe { (self.state.calls.call)(self.state.pointer, question, &raw mut answer) };
        let name = what::NAMES.get(usize::from(question.what)).copied().unwrap_or_default();
        answer.failure().map_or(Ok(answer), |told| Err(format!("{name} {told}")))
    }

    /// The answer, unless a call has failed.
    fn answer(&self, question: &Question) -> Option<Answer> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.ask(question).map_err(|told| self.fail(told)).ok()
    }

    fn fail(&self, told: String) {
        self.failed.store(true, Ordering::Relaxed);
        (self.tell)(told);
    }

    /// Makes a call that answers with a wait, which has to lie within the bounds and in the exchange's record.
    fn wait(&self, question: &Question, exchange: &mut Exchange, copy: u8) -> Option<Wait> {
        let answer = self.answer(question)?;
        let (wait, shortest, longest) = (answer.wait(), self.kind.shortest, self.longest(copy));
        let name = what::NAMES.get(usize::from(question.what)).copied().unwrap_or_default();
        let told = |what: String| self.fail(format!("{name} answered a wait of {} µs, {what}", wait.span.as_micros()));
        if wait.span < shortest {
            told(format!("less than its shortest_wait, {} µs", shortest.as_micros()));
            return None;
        }
        if wait.span > longest {
            told(format!("more than its longest_wait for copy {copy}, {} µs", longest.as_micros()));
            return None;
        }
        if (answer.exchange.current_us, answer.exchange.retransmissions) != (wait.span.as_micros(), copy) {
            told("of which it did not tell the exchange: call begin, then advance".to_owned());
            return None;
        }
        answer.exchange.write(exchange);
        Some(wait)
    }

    fn longest(&self, copy: u8) -> Span {
        self.kind.longest.get(usize::from(copy)).copied().unwrap_or(Span::MAX)
    }

    fn idle(&self, copy: u8) -> Wait {
        Wait::then_retransmit(IDLE.max(self.kind.shortest).min(self.longest(copy)), Reason::Initial)
    }
}

impl Clone for Guest {
    fn clone(&self) -> Self {
        let failed = AtomicBool::new(self.failed.load(Ordering::Relaxed));
        Self { state: self.state.clone(), kind: Arc::clone(&self.kind), tell: Arc::clone(&self.tell), failed }
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        let mut pointer = self.pointer;
        if !pointer.is_null() {
            // SAFETY: the pointer is one of the type of `fork`, and nobody changes what is there while it is shared.
            pointer = unsafe { (self.calls.fork)(pointer) };
        }
        Self { calls: self.calls, pointer }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.pointer.is_null() {
            // SAFETY: the pointer is one of the type of `drop`, and nobody else's.
            unsafe { (self.calls.drop)(self.pointer) };
        }
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Guest").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Controller for Guest {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        let question = Question { word: number(CLASSES, class), len, ..Question::at(what::ADMIT, cx) };
        let admit = self.answer(&question).map_or(Admit::Now, |answer| answer.admit());
        if matches!(admit, Admit::At(at) if at <= cx.now) {
            self.fail("admit answered a point in time that does not lie after now".to_owned());
            return Admit::Now;
        }
        admit
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        let question = Question { len, ..Question::at(what::ON_START, cx) };
        self.wait(&question, exchange, 0).unwrap_or_else(|| {
            let idle = self.idle(0);
            exchange.begin(cx.now, idle.span);
            idle
        })
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        let question = Question { exchange: Record::of(exchange), ..Question::at(what::ON_TIMEOUT, cx) };
        let copy = exchange.retransmissions().saturating_add(1);
        self.wait(&question, exchange, copy).unwrap_or_else(|| {
            let idle = self.idle(copy);
            exchange.advance(idle.span);
            idle
        })
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        let (exchange, sample) = (Record::of(exchange), SampleRecord::of(sample));
        self.answer(&Question { exchange, sample, ..Question::at(what::ON_REPLY, cx) });
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        let (exchange, word) = (Record::of(exchange), number(ENDS, why));
        self.answer(&Question { exchange, word, ..Question::at(what::ON_END, cx) });
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        self.answer(&Question { len, ..Question::at(what::ON_PLAIN_SEND, cx) });
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        let feedback = FeedbackRecord::of(feedback);
        self.answer(&Question { feedback, ..Question::at(what::ON_FEEDBACK, cx) });
    }

    fn wishes(&self) -> Wishes {
        self.kind.wishes
    }

    fn view(&self) -> View {
        self.answer(&Question::of(what::VIEW)).map_or_else(View::default, |answer| answer.view())
    }

    fn base_rtt(&self) -> Option<Span> {
        self.answer(&Question::of(what::BASE_RTT))?.number(0)
    }

    fn recall(&mut self, base_rtt: Span) {
        self.answer(&Question { span_us: base_rtt.as_micros(), ..Question::of(what::RECALL) });
    }

    fn shortest_wait(&self) -> Span {
        self.kind.shortest
    }

    fn longest_wait(&self, copy: u8, _previous: Span) -> Span {
        self.longest(copy)
    }
}
