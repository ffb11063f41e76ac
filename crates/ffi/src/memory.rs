//! The calls of a client that remembers: what it keeps of a peer where its own memory does not outlive a restart.
//!
//! Every call is unsafe for the same reason as those of `calls`.

use crate::{
    calls::{answer, asked, told},
    record::{self, aligned, controller_of, families},
    types::millpond_peer,
};
use millpond_control::{Controller, Span};

/// Writes the base round trip of the path in microseconds: what it takes without a queue, as far as this peer measured it
/// itself. 0 if it measured none yet, or if its algorithm keeps none; of the presets calm does. It is worth keeping over a
/// restart, for a week at most, beside the address that it belongs to.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_peer_base_rtt(peer: *const millpond_peer, base_rtt_us: *mut u32) -> i32 {
    answer(|| {
        aligned(base_rtt_us)?;
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, true)? };
        let measured = asked!(peer, |controller| controller.base_rtt());
        // SAFETY: see the module.
        unsafe { base_rtt_us.write(measured.unwrap_or(Span::ZERO).as_micros()) };
        Ok(0)
    })
}

/// Tells a new peer the base round trip, in microseconds, that millpond_peer_base_rtt gave in an earlier life. It may be old
/// or wrong: it is a bound that the first samples correct, and no wait is shorter by it. Nothing changes, and the answer is 0
/// all the same, if it is 0 or longer than the first certain sample, after that sample, and if the algorithm keeps none.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_peer_recall(peer: *mut millpond_peer, base_rtt_us: u32) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe { record::find_peer(peer, false)? };
        told!(peer, |controller| controller.recall(Span::from_micros(base_rtt_us)));
        // SAFETY: the peer was found to be of this family.
        unsafe { record::seal_peer(peer) };
        Ok(0)
    })
}
