//! The calls of a calm server: which copies of a request it answers once more.
//!
//! Every call is unsafe for the same reason as those of `calls`: each pointer must be null, or point to memory for what
//! its type says.

use crate::{
    calls::answer,
    header::SIZES,
    record::{self, CALM_PATH, CALM_PEER, Shape, aligned},
    types::{millpond_again, millpond_calm_path, millpond_calm_peer, millpond_error},
};
use millpond_control::{Again, CalmPath, CalmPeer, Instant, Voter};

const PEER: &Shape = &Shape::of::<CalmPeer, millpond_calm_peer>();
const PATH: &Shape = &Shape::of::<CalmPath, millpond_calm_path>();

/// Makes a path of which nothing is known: for the first peer on it, or in place of one that was forgotten. sizes is
/// MILLPOND_SIZES.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_path_init(path: *mut millpond_calm_path, sizes: u32) -> i32 {
    answer(|| {
        aligned(path)?;
        if sizes != SIZES {
            return Err(millpond_error::MILLPOND_E_HEADER);
        }
        // SAFETY: see the module.
        unsafe { record::store(path, CALM_PATH, PATH, CalmPath::new()) };
        Ok(0)
    })
}

/// Makes a peer that was never answered: for the first request of one, or in place of one that was forgotten.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_peer_init(peer: *mut millpond_calm_peer) -> i32 {
    answer(|| {
        aligned(peer)?;
        // SAFETY: see the module.
        unsafe { record::store(peer, CALM_PEER, PEER, CalmPeer::new()) };
        Ok(0)
    })
}

/// A new confirmable request of a peer came.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_asked(peer: *mut millpond_calm_peer) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe {
            let of_peer: &mut CalmPeer = record::find(peer, CALM_PEER, PEER)?;
            of_peer.asked();
            record::seal(peer, CALM_PEER, PEER);
        }
        Ok(0)
    })
}

/// The answer to the newest request of a peer leaves for the first time.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_answered(peer: *mut millpond_calm_peer, now_us: u64) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe {
            let of_peer: &mut CalmPeer = record::find(peer, CALM_PEER, PEER)?;
            of_peer.answered(Instant::from_micros(now_us));
            record::seal(peer, CALM_PEER, PEER);
        }
        Ok(0)
    })
}

/// A copy of the newest request of a peer came: is it answered once more? Answers a MILLPOND_AGAIN_; unless that is
/// MILLPOND_AGAIN_WITHHOLD, or if the call refuses, the answer leaves now. Compare token and payload with those of the
/// request before you ask: another request under the same message ID is no copy.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_asked_again(
    path: *mut millpond_calm_path,
    peer: *mut millpond_calm_peer,
    now_us: u64,
) -> i32 {
    let ask = |path: &mut CalmPath, peer: &mut CalmPeer| told(path.asked_again(peer, Instant::from_micros(now_us)));
    // SAFETY: see the module.
    unsafe { changed(path, peer, ask) }
}

/// After each millpond_calm_asked and millpond_calm_asked_again: 1 if an empty confirmable message is to leave for the peer now,
/// before an answer does, under a message ID that nobody guesses; else 0.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_pings(
    path: *mut millpond_calm_path,
    peer: *mut millpond_calm_peer,
    now_us: u64,
) -> i32 {
    let ask = |path: &mut CalmPath, peer: &mut CalmPeer| i32::from(path.pings(peer, Instant::from_micros(now_us)));
    // SAFETY: see the module.
    unsafe { changed(path, peer, ask) }
}

/// The peer rejected the last of these messages, by its message ID. voter is a number of its own from 1 to 65535, such as a
/// hash of its address: each peer has as much to say about its path as any other.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_rejected(
    path: *mut millpond_calm_path,
    peer: *mut millpond_calm_peer,
    voter: u32,
    now_us: u64,
) -> i32 {
    let tell = |path: &mut CalmPath, peer: &mut CalmPeer| {
        let voter = Voter::new(voter as u16).unwrap_or(Voter::MAX);
        path.rejected(peer, voter, Instant::from_micros(now_us));
        0
    };
    // SAFETY: see the module.
    unsafe { changed(path, peer, tell) }
}

/// A copy of an older request of a peer came, which was answered at first_us for the first time; how many copies of it came,
/// this one included, or 0 if you do not count them: then the third is not answered for being the third. Answers as
/// millpond_calm_asked_again does.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_calm_asked_late(
    path: *mut millpond_calm_path,
    first_us: u64,
    copies: u32,
    now_us: u64,
) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        unsafe {
            let of_path: &mut CalmPath = record::find(path, CALM_PATH, PATH)?;
            let [first, now] = [first_us, now_us].map(Instant::from_micros);
            Ok(told(of_path.asked_late(first, copies as u8, now)))
        }
    })
}

/// The answer of a call that changes a path and a peer.
///
/// # Safety
///
/// See the module.
unsafe fn changed(
    path: *mut millpond_calm_path,
    peer: *mut millpond_calm_peer,
    call: impl FnOnce(&mut CalmPath, &mut CalmPeer) -> i32,
) -> i32 {
    answer(|| {
        // SAFETY: so says the caller; both are found before they are sealed.
        unsafe {
            let (of_path, of_peer) = find(path, peer)?;
            let told = call(of_path, of_peer);
            seal(path, peer);
            Ok(told)
        }
    })
}

/// A path and a peer.
///
/// # Safety
///
/// See the module.
#[inline(never)]
unsafe fn find<'r>(
    path: *mut millpond_calm_path,
    peer: *mut millpond_calm_peer,
) -> Result<(&'r mut CalmPath, &'r mut CalmPeer), millpond_error> {
    // SAFETY: so says the caller; records of different kinds are not in one place.
    unsafe { Ok((record::find(path, CALM_PATH, PATH)?, record::find(peer, CALM_PEER, PEER)?)) }
}

/// Makes them vouch for what they are now.
///
/// # Safety
///
/// They were found.
#[inline(never)]
unsafe fn seal(path: *mut millpond_calm_path, peer: *mut millpond_calm_peer) {
    // SAFETY: so says the caller.
    unsafe {
        record::seal(path, CALM_PATH, PATH);
        record::seal(peer, CALM_PEER, PEER);
    }
}

const fn told(verdict: Again) -> i32 {
    let again = match verdict {
        Again::Withhold => millpond_again::MILLPOND_AGAIN_WITHHOLD,
        Again::Unknown => millpond_again::MILLPOND_AGAIN_UNKNOWN,
        Again::Due => millpond_again::MILLPOND_AGAIN_DUE,
        Again::Lost => millpond_again::MILLPOND_AGAIN_LOST,
        Again::Third => millpond_again::MILLPOND_AGAIN_THIRD,
    };
    again as i32
}
