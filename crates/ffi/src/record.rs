//! Records in the caller's memory: eight bytes that say what they are, then a Rust value.

mod published;
mod shape;

use crate::{
    calls::Answer,
    types::{millpond_error, millpond_exchange, millpond_peer},
};
use core::{hint, ptr};
use millpond_control::{Exchange, Span, layout::Layout};
use shape::{Head, LEAST_WAIT, behind};

pub(crate) use shape::Shape;

/// A peer whose settings go together.
const SETTLED: u8 = 0x50;
/// A peer whose settings contradict each other.
const UNSETTLED: u8 = 0x51;
/// An exchange that was started.
const OPEN: u8 = 0x52;
/// An exchange that was started and has ended.
const ENDED: u8 = 0x53;
/// What a calm server knows of a peer, and of a path.
pub(crate) const CALM_PEER: u8 = 0x54;
pub(crate) const CALM_PATH: u8 = 0x55;

/// The one list of algorithms: cargo feature, number in records (never used again for another), type and variant.
///
/// - `families!(number, |Family| body)`: the body for the algorithm with this number, with its type; nothing if there is
///   none.
/// - `families!(found number, |Family, any| body)`: the same where the number is that of a record which was found to be of
///   an algorithm; with what makes an `AnyController` of it.
/// - `families!(each => |number, Family, Any| body)`: a body for each, with its variant of `AnyController`.
macro_rules! families {
    (@list $($form:tt)+) => {
        $crate::record::families! { @$($form)+
            "rfc7252" 1 Rfc7252,
            "cocoa" 2 Cocoa,
            "fasor" 3 Fasor,
            "linux-rto" 4 LinuxRto,
            "peak-hopper" 5 PeakHopper,
            "basic-rto" 6 BasicRto,
            "coap-plus-rate" 7 CoapPlusRate,
            "bbr-con" 8 BbrCon,
            "calm" 9 Calm,
            "tfrc-non" 10 TfrcNon,
        }
    };
    (@by_number [$number:expr] [$Family:ident] [$body:expr] $($feature:literal $own:literal $family:ident,)+) => {
        match $number {
            $(
                #[cfg(feature = $feature)]
                $own => {
                    type $Family = ::millpond_control::$family;
                    Some($body)
                }
            )+
            _ => None,
        }
    };
    (@by_found [$number:expr] [$Family:ident] [$any:ident] [$body:expr]
        $($feature:literal $own:literal $family:ident,)+) => {
        match $number {
            $(
                #[cfg(feature = $feature)]
                $own => {
                    type $Family = ::millpond_control::$family;
                    #[allow(dead_code, reason = "few bodies make one")]
                    let $any = ::millpond_control::AnyController::$family;
                    $body
                }
            )+
            // SAFETY: records are found only of the algorithms above.
            _ => unsafe { ::core::hint::unreachable_unchecked() },
        }
    };
    (@by_each [$number:ident] [$Family:ident] [$Any:ident] [$body:expr]
        $($feature:literal $own:literal $family:ident,)+) => {
        $(
            #[cfg(feature = $feature)]
            {
                type $Family = ::millpond_control::$family;
                const $number: u8 = $own;
                use ::millpond_control::AnyController::$family as $Any;
                $body
            }
        )+
    };
    (found $number:expr, |$Family:ident, $any:ident| $body:expr) => {
        $crate::record::families!(@list by_found [$number] [$Family] [$any] [$body])
    };
    (each => |$number:ident, $Family:ident, $Any:ident| $body:expr) => {
        $crate::record::families!(@list by_each [$number] [$Family] [$Any] [$body])
    };
    ($number:expr, |$Family:ident| $body:expr) => {
        $crate::record::families!(@list by_number [$number] [$Family] [$body])
    };
}
pub(crate) use families;

fn shape_of(family: u8) -> Option<&'static Shape> {
    families!(family, |Family| const { &Shape::of::<Family, millpond_peer>().with_least_wait(size_of::<Family>()) })
}

/// Finds out whether this is a peer. Then a controller of [`family_of`] it lies at [`controller_of`] it. A peer whose
/// settings contradict each other counts only if `unsettled` says so.
///
/// # Safety
///
/// `peer` is null or points to the initialised memory of a peer.
#[inline(never)]
pub(crate) unsafe fn find_peer(peer: *const millpond_peer, unsettled: bool) -> Result<(), millpond_error> {
    aligned(peer)?;
    let head = peer.cast::<Head>();
    // SAFETY: the head comes first, and every bit pattern is one.
    let Head { kind, family, .. } = unsafe { head.read() };
    if kind != SETTLED && kind != UNSETTLED {
        return Err(strange(kind));
    }
    let shape = shape_of(family).ok_or(millpond_error::MILLPOND_E_FOREIGN)?;
    // SAFETY: a peer has room for every family.
    unsafe { shape.verify(head)? };
    if kind == UNSETTLED && !unsettled { Err(millpond_error::MILLPOND_E_CONFLICT) } else { Ok(()) }
}

/// The family of a record.
///
/// # Safety
///
/// `record` was found to be one.
pub(crate) unsafe fn family_of<R>(record: *const R) -> u8 {
    // SAFETY: so says the caller.
    unsafe { record.cast::<Head>().read() }.family
}

/// Where the controller of a peer is.
pub(crate) fn controller_of<T>(peer: *const millpond_peer) -> *mut T {
    behind(peer.cast_mut().cast())
}

/// Where the least wait of a peer is, in microseconds.
fn least_wait_of(peer: *const millpond_peer) -> *mut u32 {
    behind::<u8>(peer.cast_mut().cast()).wrapping_add(LEAST_WAIT).cast()
}

/// The least wait of a peer.
///
/// # Safety
///
/// `peer` was found to be one.
pub(crate) unsafe fn least_wait(peer: *const millpond_peer) -> Span {
    // SAFETY: so says the caller; it was written when the peer was made.
    Span::from_micros(unsafe { least_wait_of(peer).read() })
}

/// Sets the least wait of a peer.
///
/// # Safety
///
/// `peer` was found to be one.
pub(crate) unsafe fn set_least_wait(peer: *mut millpond_peer, least_wait: Span) {
    // SAFETY: so says the caller.
    unsafe { least_wait_of(peer).write(least_wait.as_micros()) };
}

/// Makes the record vouch for the controller as it is now.
///
/// # Safety
///
/// `peer` was found to be one, and nothing wrote there but its controller.
#[inline(never)]
pub(crate) unsafe fn seal_peer(peer: *mut millpond_peer) {
    // SAFETY: so says the caller: the head is as it was found.
    unsafe {
        let shape = shape_of(family_of(peer));
        shape.unwrap_or_else(|| hint::unreachable_unchecked()).seal_again(peer.cast());
    }
}

/// Makes a peer as this preset has it.
///
/// # Safety
///
/// `peer` points to the memory of a peer, aligned.
pub(crate) unsafe fn publish(peer: *mut millpond_peer, preset: u16) -> Answer {
    // SAFETY: so says the caller.
    unsafe {
        let family = published::write(controller_of(peer), preset);
        seal_as(peer, SETTLED, family.ok_or(millpond_error::MILLPOND_E_UNKNOWN_PRESET)?)
    }
}

/// The same where its settings may have changed.
///
/// # Safety
///
/// As [`seal_peer`].
pub(crate) unsafe fn settle(peer: *mut millpond_peer, settled: bool) {
    // SAFETY: so says the caller.
    unsafe {
        (*peer.cast::<Head>()).kind = if settled { SETTLED } else { UNSETTLED };
        seal_peer(peer);
    }
}

/// # Safety
///
/// `peer` holds a controller of this family and its least wait.
unsafe fn seal_as(peer: *mut millpond_peer, kind: u8, family: u8) -> Answer {
    let shape = shape_of(family).ok_or(millpond_error::MILLPOND_E_UNKNOWN_PRESET)?;
    // SAFETY: so says the caller.
    unsafe { shape.seal(peer.cast(), kind, family) };
    Ok(0)
}

/// Makes a peer blank, so that every later call refuses it. Writes no more than the head.
///
/// # Safety
///
/// `peer` points to eight bytes that can be written, aligned.
pub(crate) unsafe fn blank(peer: *mut millpond_peer) {
    // SAFETY: so says the caller.
    unsafe { peer.cast::<Head>().write(Head::BLANK) };
}

const EXCHANGE: &Shape = &Shape::of::<Exchange, millpond_exchange>();

/// Finds out whether this is an open exchange that a peer of this family started, and reads it.
///
/// # Safety
///
/// `exchange` is null or points to the initialised memory of an exchange.
#[inline(always)] // then only what is used is copied
pub(crate) unsafe fn load_exchange(exchange: *const millpond_exchange, family: u8) -> Result<Exchange, millpond_error> {
    // SAFETY: so says the caller. Once it is found, an exchange lies behind the head.
    unsafe {
        find_exchange(exchange, family)?;
        Ok(behind::<Exchange>(exchange.cast_mut().cast()).read())
    }
}

/// # Safety
///
/// As [`load_exchange`].
#[inline(never)]
unsafe fn find_exchange(exchange: *const millpond_exchange, family: u8) -> Result<(), millpond_error> {
    aligned(exchange)?;
    let head = exchange.cast::<Head>();
    // SAFETY: the head comes first, and every bit pattern is one.
    let found = unsafe { head.read() };
    if found.kind == ENDED {
        return Err(millpond_error::MILLPOND_E_ENDED);
    }
    if found.kind != OPEN {
        return Err(strange(found.kind));
    }
    if found.family != family {
        return Err(millpond_error::MILLPOND_E_FOREIGN);
    }
    // SAFETY: an exchange has room for this shape.
    unsafe { EXCHANGE.verify(head) }
}

/// Writes an exchange that is open with a peer of this family.
///
/// # Safety
///
/// `exchange` points to the memory of an exchange, aligned.
pub(crate) unsafe fn store_exchange(exchange: *mut millpond_exchange, family: u8, open: &Exchange) {
    const WORDS: usize = {
        assert!(Exchange::FILLED.count_ones() as usize == size_of::<Exchange>(), "an exchange has padding");
        size_of::<Exchange>() / size_of::<u32>()
    };
    let head = exchange.cast::<Head>();
    let (from, to) = (ptr::from_ref(open).cast::<u32>(), behind::<u32>(head));
    for word in 0..WORDS {
        // SAFETY: so says the caller; `Shape::of` has asserted room and alignment. A plain write could become a
        // call of a function that copies, of 600 bytes.
        unsafe { to.wrapping_add(word).write_volatile(from.wrapping_add(word).read()) };
    }
    // SAFETY: the exchange was just written.
    unsafe { EXCHANGE.seal(head, OPEN, family) };
}

/// Marks an exchange as ended. Nothing vouches for its value any more.
///
/// # Safety
///
/// `exchange` points to the memory of an exchange, aligned.
pub(crate) unsafe fn end_exchange(exchange: *mut millpond_exchange) {
    // SAFETY: so says the caller.
    unsafe { exchange.cast::<Head>().write(Head { kind: ENDED, ..Head::BLANK }) };
}

/// Finds the value of a record of this kind and shape, where it lies: copying it would bring a function for that along.
///
/// # Safety
///
/// `record` is null or points to an initialised record with room for this shape, which is that of `T`, and nothing else
/// refers to it for as long as the value is used.
pub(crate) unsafe fn find<'r, T: Layout, R>(
    record: *mut R,
    kind: u8,
    shape: &Shape,
) -> Result<&'r mut T, millpond_error> {
    let head = record.cast::<Head>();
    // SAFETY: so says the caller. Once it is verified, a value lies behind the head.
    unsafe {
        verify(head, align_of::<R>(), kind, shape)?;
        Ok(&mut *behind::<T>(head))
    }
}

/// Whether a record of this kind and shape lies there.
///
/// # Safety
///
/// `head` is null or points to an initialised record with room for this shape.
#[inline(never)]
unsafe fn verify(head: *const Head, unit: usize, kind: u8, shape: &Shape) -> Result<(), millpond_error> {
    is_multiple(head.addr(), unit)?;
    // SAFETY: so says the caller.
    unsafe {
        let found = head.read().kind;
        if found != kind {
            return Err(strange(found));
        }
        shape.verify(head)
    }
}

/// Makes a record vouch for the value that it has now.
///
/// # Safety
///
/// `record` holds a value of this shape.
pub(crate) unsafe fn seal<R>(record: *mut R, kind: u8, shape: &Shape) {
    // SAFETY: so says the caller.
    unsafe { shape.seal(record.cast(), kind, 0) };
}

/// Writes a record of this kind and shape.
///
/// # Safety
///
/// `record` points to the memory of such a record, aligned, with room for this shape, which is that of `T`.
pub(crate) unsafe fn store<T: Layout, R>(record: *mut R, kind: u8, shape: &Shape, value: T) {
    let head = record.cast::<Head>();
    // SAFETY: so says the caller; `Shape::of` has asserted room and alignment.
    unsafe {
        behind::<T>(head).write(value);
        shape.seal(head, kind, 0);
    }
}

/// What to say of a record that is not of the wanted kind.
fn strange(kind: u8) -> millpond_error {
    match kind {
        // All there are.
        SETTLED..=CALM_PATH => millpond_error::MILLPOND_E_FOREIGN,
        _ => millpond_error::MILLPOND_E_BLANK,
    }
}

/// Refuses what cannot be the address of a `T`.
pub(crate) fn aligned<T>(pointer: *const T) -> Result<(), millpond_error> {
    is_multiple(pointer.addr(), align_of::<T>())
}

#[inline(never)]
fn is_multiple(address: usize, unit: usize) -> Result<(), millpond_error> {
    if address == 0 {
        Err(millpond_error::MILLPOND_E_NULL)
    } else if address & unit.wrapping_sub(1) == 0 {
        Ok(())
    } else {
        Err(millpond_error::MILLPOND_E_ALIGNMENT)
    }
}
