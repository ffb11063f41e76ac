//! The calls: copy in, ask the controller, copy out.
//!
//! Every call is unsafe for the same reason: each pointer must be null, or point to memory for what its type says. What
//! is read must be initialised; that much is true of all memory that comes from C.

use crate::{
    header::{SIZES, VERSION},
    kept::{ended, keep},
    record::{self, aligned, controller_of, families},
    said::{evidence, known},
    types::{
        millpond_admission, millpond_class, millpond_cx, millpond_end, millpond_error, millpond_exchange,
        millpond_feedback, millpond_naming, millpond_numbers, millpond_peer, millpond_sample, millpond_wait,
    },
};
use millpond_control::{
    Admit, Chance, Class, Controller, Cx, End, Exchange, Instant, Naming, Setting, SettingError, Span,
};

/// Looks at the controller of a peer that was found.
macro_rules! asked {
    ($peer:ident, |$controller:ident| $call:expr) => {
        // SAFETY: the peer was found. Nothing writes there meanwhile.
        families!(found unsafe { record::family_of($peer) }, |Family, _any| {
            // SAFETY: it is of this family.
            let $controller = unsafe { &*controller_of::<Family>($peer) };
            $call
        })
    };
}
pub(crate) use asked;

/// Tells the controller of a peer that was found something.
macro_rules! told {
    ($peer:ident, |$controller:ident| $call:expr) => {
        // SAFETY: the peer was found. Nothing else uses it meanwhile.
        families!(found unsafe { record::family_of($peer) }, |Family, _any| {
            // SAFETY: it is of this family.
            let $controller = unsafe { &mut *controller_of::<Family>($peer) };
            $call
        })
    };
}
pub(crate) use told;

/// The version of the library: MILLPOND_VERSION of the header that belongs to it.
#[unsafe(no_mangle)]
pub extern "C" fn millpond_version() -> u32 {
    VERSION
}

/// Makes the controller of a peer about which nothing is known. sizes is MILLPOND_SIZES, preset a MILLPOND_PRESET_.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_peer_init(peer: *mut millpond_peer, sizes: u32, preset: u16) -> i32 {
    answer(|| {
        aligned(peer)?;
        // SAFETY: see the module; the peer of any header has the few bytes that this writes.
        unsafe { record::blank(peer) };
        if sizes != SIZES {
            return Err(millpond_error::MILLPOND_E_HEADER);
        }
        // SAFETY: the sizes agree, so there is memory for a peer.
        unsafe { record::publish(peer, preset) }
    })
}

/// Sets a MILLPOND_SETTING_, meant for before the first use: what was learnt stays as it is. value is in microseconds
/// or thousandths, a number, or a constant of that setting. After MILLPOND_E_CONFLICT the value is set, but until the
/// settings go together the peer serves only this call and those that look: where two depend on each other, set both.
/// Every peer has MILLPOND_SETTING_LEAST_WAIT: no wait is shorter. It is 200 ms under calm, and 0 under the others.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_peer_set(peer: *mut millpond_peer, setting: u16, value: u32) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, true)? };
        let setting = Setting::from_id(setting).ok_or(millpond_error::MILLPOND_E_UNKNOWN_SETTING)?;
        let settled = told!(peer, |controller| match controller.put_number(setting, value) {
            Ok(()) => controller.is_settled(),
            Err(SettingError::Unknown { .. }) if setting == Setting::LeastWait => {
                if value > Setting::LeastWait.range().1 {
                    return Err(millpond_error::MILLPOND_E_OUT_OF_RANGE);
                }
                // SAFETY: the peer was found.
                unsafe { record::set_least_wait(peer, Span::from_micros(value)) };
                controller.is_settled()
            }
            Err(SettingError::Unknown { .. }) => return Err(millpond_error::MILLPOND_E_UNKNOWN_SETTING),
            Err(_) => return Err(millpond_error::MILLPOND_E_OUT_OF_RANGE),
        });
        // SAFETY: the peer was found.
        unsafe { record::settle(peer, settled) };
        if settled { Ok(0) } else { Err(millpond_error::MILLPOND_E_CONFLICT) }
    })
}

/// May a message of this MILLPOND_CLASS_ and of len bytes leave now? Answers a MILLPOND_ADMIT_. Your own limit on open
/// exchanges (NSTART) is not asked about here.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_admit(
    peer: *const millpond_peer,
    message_class: u8,
    len: u16,
    cx: *const millpond_cx,
    at_us: *mut u64,
) -> i32 {
    const CONFIRMABLE: u8 = millpond_class::MILLPOND_CLASS_CONFIRMABLE as u8;
    const PLAIN: u8 = millpond_class::MILLPOND_CLASS_PLAIN as u8;
    answer(|| {
        aligned(at_us)?;
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        let class = match message_class {
            CONFIRMABLE => Class::Confirmable,
            PLAIN => Class::Plain,
            _ => return Err(millpond_error::MILLPOND_E_ARGUMENT),
        };
        let admission = match asked!(peer, |controller| controller.admit(class, len, cx)) {
            Admit::Now => millpond_admission::MILLPOND_ADMIT_NOW,
            Admit::At(at) => {
                // SAFETY: see the module.
                unsafe { at_us.write(at.as_micros()) };
                millpond_admission::MILLPOND_ADMIT_AT
            }
            Admit::WhenOneEnds => millpond_admission::MILLPOND_ADMIT_WHEN_ONE_ENDS,
        };
        Ok(admission as i32)
    })
}

/// The first copy of a confirmable message of len bytes leaves now. How long until the second?
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_start(
    peer: *mut millpond_peer,
    exchange: *mut millpond_exchange,
    len: u16,
    cx: *const millpond_cx,
    wait: *mut millpond_wait,
) -> i32 {
    answer(|| {
        aligned(exchange)?;
        aligned(wait)?;
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        let mut begun = Exchange::new();
        let armed = told!(peer, |controller| controller.on_start(&mut begun, len, cx));
        // SAFETY: see the module.
        unsafe { keep(peer, exchange, begun, wait, armed) }
    })
}

/// The wait ran out and a retransmission leaves now. How long this time? Ask for the last copy too.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_timeout(
    peer: *mut millpond_peer,
    exchange: *mut millpond_exchange,
    cx: *const millpond_cx,
    wait: *mut millpond_wait,
) -> i32 {
    answer(|| {
        aligned(wait)?;
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        // SAFETY: see the module.
        let mut open = unsafe { record::load_exchange(exchange, record::family_of(peer))? };
        let armed = told!(peer, |controller| controller.on_timeout(&mut open, cx));
        // SAFETY: see the module.
        unsafe { keep(peer, exchange, open, wait, armed) }
    })
}

/// The exchange ended with an answer.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_reply(
    peer: *mut millpond_peer,
    exchange: *mut millpond_exchange,
    sample: *const millpond_sample,
    cx: *const millpond_cx,
) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        aligned(sample)?;
        // SAFETY: see the module.
        let sample = evidence(unsafe { sample.read() })?;
        // SAFETY: see the module.
        let open = unsafe { record::load_exchange(exchange, record::family_of(peer))? };
        told!(peer, |controller| controller.on_reply(&open, sample, cx));
        // SAFETY: see the module.
        unsafe { ended(peer, exchange) }
    })
}

/// The exchange ended without an answer. why is a MILLPOND_END_.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_end(
    peer: *mut millpond_peer,
    exchange: *mut millpond_exchange,
    why: u8,
    cx: *const millpond_cx,
) -> i32 {
    const GAVE_UP: u8 = millpond_end::MILLPOND_END_GAVE_UP as u8;
    const RESET: u8 = millpond_end::MILLPOND_END_RESET as u8;
    const CANCELLED: u8 = millpond_end::MILLPOND_END_CANCELLED as u8;
    answer(|| {
        let why = match why {
            GAVE_UP => End::GaveUp,
            RESET => End::Reset,
            CANCELLED => End::Cancelled,
            _ => return Err(millpond_error::MILLPOND_E_ARGUMENT),
        };
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        // SAFETY: see the module.
        let open = unsafe { record::load_exchange(exchange, record::family_of(peer))? };
        told!(peer, |controller| controller.on_end(&open, why, cx));
        // SAFETY: see the module.
        unsafe { ended(peer, exchange) }
    })
}

/// A message of len bytes that nobody will acknowledge left now.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_plain_send(peer: *mut millpond_peer, len: u16, cx: *const millpond_cx) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        told!(peer, |controller| controller.on_plain_send(len, cx));
        // SAFETY: see the module.
        unsafe { record::seal_peer(peer) };
        Ok(0)
    })
}

/// It became known what happened to a message that nobody acknowledges. Nothing depends on this call: for many such
/// messages it is never known.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_on_feedback(
    peer: *mut millpond_peer,
    feedback: *const millpond_feedback,
    cx: *const millpond_cx,
) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let cx = unsafe { serving(peer, cx)? };
        aligned(feedback)?;
        // SAFETY: see the module.
        let feedback = known(unsafe { feedback.read() })?;
        told!(peer, |controller| controller.on_feedback(feedback, cx));
        // SAFETY: see the module.
        unsafe { record::seal_peer(peer) };
        Ok(0)
    })
}

/// What the algorithm asks of your message layer: in the low byte a MILLPOND_NAMING_, in the next one among how many
/// non-confirmable messages one should be confirmable (0: no wish), and in the 14 bits above how many exchanges may be open (NSTART; 0:
/// as you are set). Bit 30 is set if the algorithm governs plain requests by their answers, so that PROBING_RATE need not hold for them; then do not
/// ask it about other non-confirmable messages, nor tell it of them.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_wishes(peer: *const millpond_peer) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, true)? };
        let wishes = asked!(peer, |controller| controller.wishes());
        let naming = match wishes.naming {
            Naming::Token => millpond_naming::MILLPOND_NAMING_TOKEN,
            Naming::Count => millpond_naming::MILLPOND_NAMING_COUNT,
            Naming::Flag => millpond_naming::MILLPOND_NAMING_FLAG,
            Naming::Timestamp => millpond_naming::MILLPOND_NAMING_TIMESTAMP,
            _ => millpond_naming::MILLPOND_NAMING_NONE,
        };
        // What is answered is not negative.
        let nstart = i32::from(wishes.nstart.min(0x3fff));
        Ok(i32::from(wishes.governs_requests) << 30
            | nstart << 16
            | i32::from(wishes.confirmable_every) << 8
            | naming as i32)
    })
}

/// How long, in microseconds, an answer to the last copy is awaited at least if nothing else is to leave for this peer, drawn up to
/// half as much again: only then is the request given up. 0: the last wait is all. Of the presets calm wishes it.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_last_wait(peer: *const millpond_peer, last_wait_us: *mut u32) -> i32 {
    answer(|| {
        aligned(last_wait_us)?;
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, true)? };
        let wished = asked!(peer, |controller| controller.wishes().last_wait);
        // SAFETY: see the module.
        unsafe { last_wait_us.write(wished.as_micros()) };
        Ok(0)
    })
}

/// Numbers for traces and reports.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_view(peer: *const millpond_peer, numbers: *mut millpond_numbers) -> i32 {
    answer(|| {
        aligned(numbers)?;
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, true)? };
        let view = asked!(peer, |controller| controller.view());
        let mut kept = 0_u32;
        let mut bit = 1_u32;
        let mut told = |span: Option<Span>| {
            if span.is_some() {
                kept |= bit;
            }
            bit <<= 1;
            span.unwrap_or(Span::ZERO).as_micros()
        };
        let seen = millpond_numbers {
            rto_us: told(view.rto),
            srtt_us: told(view.srtt),
            rttvar_us: told(view.rttvar),
            weak_srtt_us: told(view.weak_srtt),
            weak_rttvar_us: told(view.weak_rttvar),
            carried_us: told(view.carried),
            kept,
        };
        // SAFETY: see the module.
        unsafe { numbers.write(seen) };
        Ok(0)
    })
}

/// What a call answers: a number that is not negative, or why it refuses.
pub(crate) type Answer = Result<i32, millpond_error>;

pub(crate) fn answer(call: impl FnOnce() -> Answer) -> i32 {
    match call() {
        Ok(number) => number,
        Err(error) => error as i32,
    }
}

/// Finds a peer whose settings go together, and reads the context.
unsafe fn serving(peer: *const millpond_peer, cx: *const millpond_cx) -> Result<Cx, millpond_error> {
    // SAFETY: see the module.
    unsafe { find_serving(peer, cx)? };
    // SAFETY: see the module.
    let cx = unsafe { cx.read() };
    Ok(Cx {
        now: Instant::from_micros(cx.now_us),
        chance: Chance::from_word(cx.chance),
        open: cx.open,
        waiting: cx.waiting,
    })
}

#[inline(never)]
unsafe fn find_serving(peer: *const millpond_peer, cx: *const millpond_cx) -> Result<(), millpond_error> {
    // SAFETY: see the module.
    unsafe { record::find_peer(peer, false)? };
    aligned(cx)
}
