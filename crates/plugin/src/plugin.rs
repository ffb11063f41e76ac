//! The module's side: a controller of Rust behind functions of the C ABI.
#![expect(unsafe_code, reason = "functions of the C ABI take what they are about as a pointer")]

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use millpond_control::{Controller, Exchange, Span};

use crate::records::{Answer, CLASSES, ENDS, Question, what, word};

/// The name of the capsule that `__millpond__` returns.
pub const CAPSULE: &CStr = c"millpond.controller";

/// What module and laboratory have to agree on.
pub const VERSION: u32 = 1;

/// A controller about which nothing happened yet, and the functions of its type. The value of a capsule.
#[derive(Debug)]
#[repr(C)]
pub struct Plugin {
    /// First in every version.
    pub(crate) version: u32,
    pub(crate) state: *mut c_void,
    pub(crate) calls: Calls,
}

/// The functions of a type of controllers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Calls {
    pub(crate) fork: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    pub(crate) drop: unsafe extern "C" fn(*mut c_void),
    pub(crate) call: unsafe extern "C" fn(*mut c_void, *const Question, *mut Answer),
}

// SAFETY: `of` takes only what is Send.
unsafe impl Send for Plugin {}
// SAFETY: a plugin has no methods; and `of` takes only what is Sync.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// What a module hands over. Every peer gets a clone of the controller.
    #[must_use]
    pub fn of<C: Controller + Clone + Debug + Send + Sync + 'static>(controller: C) -> Self {
        let calls = Calls { fork: fork::<C>, drop: drop_state::<C>, call: call::<C> };
        Self { version: VERSION, state: Box::into_raw(Box::new(controller)).cast(), calls }
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // SAFETY: the state is of the type of `drop`, and nobody else's.
        unsafe { (self.calls.drop)(self.state) };
    }
}

/// A clone of the state; null if cloning it panicked.
unsafe extern "C" fn fork<C: Clone>(state: *const c_void) -> *mut c_void {
    // SAFETY: the caller passes a state of this type, which nobody changes meanwhile.
    let state = unsafe { &*state.cast::<C>() };
    let forked = catch_unwind(AssertUnwindSafe(|| Box::into_raw(Box::new(state.clone())).cast()));
    forked.unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn drop_state<C>(state: *mut c_void) {
    // SAFETY: the caller passes a state of this type, which a box was made into, for the last time.
    let state = unsafe { Box::from_raw(state.cast::<C>()) };
    // A panic must not cross; the state is gone either way.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(state)));
}

unsafe extern "C" fn call<C: Controller>(state: *mut c_void, question: *const Question, answer: *mut Answer) {
    // SAFETY: the caller passes a question, and an answer that nobody else looks at.
    let (question, answer) = unsafe { (&*question, &mut *answer) };
    let state = state.cast::<C>();
    let served = catch_unwind(AssertUnwindSafe(|| match question.what {
        // SAFETY: the caller passes a state of this type, and has it for itself while a call may change it.
        changes if (what::ON_START..=what::ON_FEEDBACK).contains(&changes) || changes == what::RECALL => unsafe {
            serve_change(&mut *state, question, answer);
        },
        // SAFETY: as above; nobody changes it meanwhile.
        _ => unsafe { serve(&*state, question, answer) },
    }));
    if let Err(panic) = served {
        answer.fail(&format!("panicked: {}", told(panic.as_ref())));
    }
}

fn told(panic: &(dyn Any + Send)) -> &str {
    let fixed = panic.downcast_ref::<&str>().copied();
    let told = fixed.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    told.lines().next().unwrap_or("no message")
}

/// Calls that change the controller.
fn serve_change(controller: &mut impl Controller, question: &Question, answer: &mut Answer) {
    let cx = question.cx();
    let mut exchange = Exchange::new();
    question.exchange.write(&mut exchange);
    match question.what {
        what::ON_START => {
            exchange = Exchange::new();
            let wait = controller.on_start(&mut exchange, question.len, cx);
            answer.set_wait(wait, &exchange);
        }
        what::ON_TIMEOUT => {
            let wait = controller.on_timeout(&mut exchange, cx);
            answer.set_wait(wait, &exchange);
        }
        what::ON_REPLY => controller.on_reply(&exchange, question.sample.sample(), cx),
        what::ON_END => controller.on_end(&exchange, word(ENDS, question.word), cx),
        what::ON_PLAIN_SEND => controller.on_plain_send(question.len, cx),
        what::ON_FEEDBACK => controller.on_feedback(question.feedback.feedback(), cx),
        _ => controller.recall(Span::from_micros(question.span_us)),
    }
}

/// Calls that change nothing.
fn serve(controller: &impl Controller, question: &Question, answer: &mut Answer) {
    match question.what {
        what::ADMIT => answer.set_admit(controller.admit(word(CLASSES, question.word), question.len, question.cx())),
        what::WISHES => answer.set_wishes(controller.wishes()),
        what::VIEW => answer.set_view(controller.view()),
        what::BASE_RTT => answer.set_numbers(&[controller.base_rtt()]),
        what::SHORTEST_WAIT => answer.span_us = controller.shortest_wait().as_micros(),
        _ => {
            let longest = controller.longest_wait(question.word, Span::from_micros(question.span_us));
            answer.span_us = longest.as_micros();
        }
    }
}
