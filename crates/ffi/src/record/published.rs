//! The controllers of all presets, as few bytes as possible.
//!
//! A controller that was built from its parts would be copied into the record: of each preset all its bytes, and a
//! function that copies them. Most presets differ from the one before in a few bytes, so a list of the differences is
//! made when the library is compiled, and followed up to the preset that is wanted.

use super::{families, shape::Head};
use crate::types::millpond_peer;
use core::ptr;
use millpond_control::{Preset, layout::Layout};

/// Bytes behind the head of a peer.
const ROOM: usize = size_of::<millpond_peer>() - size_of::<Head>();
/// The same in words.
const WORDS: usize = ROOM / size_of::<u32>();

/// The list. Of each preset its number, the number of its algorithm, and runs of bytes in which it differs from the preset
/// before, the first of them from zeros: a byte with how many bytes are passed over (upper half) and how many follow
/// (lower half), then these; zero ends the runs, and as the number of a preset the list.
static PRESETS: [u8; WRITTEN.len] = {
    let mut list = [0; WRITTEN.len];
    list.copy_from_slice(WRITTEN.bytes.split_at(WRITTEN.len).0);
    list
};

const WRITTEN: List = {
    let mut list = List { bytes: [0; 4_096], len: 0 };
    let mut before = [0; ROOM];
    families!(each => |NUMBER, Family, Any| {
        let mut left: &[Preset] = Family::PRESETS;
        while let [preset, rest @ ..] = left {
            let Any(controller) = preset.build() else { panic!("a preset of another algorithm") };
            let bytes = bytes_of(&controller);
            list.add(preset.id(), NUMBER, &before, &bytes);
            (before, left) = (bytes, rest);
        }
    });
    list.push(0);
    list
};

/// Writes the controller of a preset, and zeros behind it; the number of its algorithm, or nothing if there is no such
/// preset.
///
/// # Safety
///
/// `controller` points to where the controller of a peer is, with all the room behind it, aligned for words.
pub(super) unsafe fn write(controller: *mut u8, preset: u16) -> Option<u8> {
    let words = controller.cast::<u32>();
    for word in 0..WORDS {
        // SAFETY: so says the caller. As plain writes they would become a function that clears memory.
        unsafe { words.wrapping_add(word).write_volatile(0) };
    }
    let mut list = PRESETS.as_ptr();
    let mut next = || {
        let byte = list;
        list = list.wrapping_add(1);
        // SAFETY: what is read below is what `List::add` wrote, and the list ends where that says so.
        unsafe { byte.read() }
    };
    loop {
        let (number, family) = match next() {
            0 => return None,
            number => (number, next()),
        };
        let mut place = controller;
        loop {
            let run = next();
            if run == 0 {
                break;
            }
            place = place.wrapping_add(usize::from(run >> 4));
            for _ in 0..run & 0xf {
                // SAFETY: so says the caller; no run leaves the room of a controller.
                unsafe { place.write(next()) };
                place = place.wrapping_add(1);
            }
        }
        if u16::from(number) == preset {
            return Some(family);
        }
    }
}

/// A list that is being made.
struct List {
    bytes: [u8; 4_096],
    len: usize,
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "runs when the library is compiled"
)]
impl List {
    const fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    const fn add(&mut self, preset: u16, family: u8, before: &[u8; ROOM], after: &[u8; ROOM]) {
        const MOST: usize = 15;
        assert!(0 < preset && preset < 256, "a number of a preset that is no byte");
        self.push(preset as u8);
        self.push(family);
        let (mut place, mut told) = (0, 0);
        while place < ROOM {
            if before[place] == after[place] {
                place += 1;
                continue;
            }
            while place - told > MOST {
                self.push((MOST as u8) << 4);
                told += MOST;
            }
            let mut end = place + 1;
            while end < ROOM && end - place < MOST && before[end] != after[end] {
                end += 1;
            }
            self.push(((place - told) as u8) << 4 | (end - place) as u8);
            while place < end {
                self.push(after[place]);
                place += 1;
            }
            told = end;
        }
        self.push(0);
    }
}

/// The bytes of a controller; zero where it has none, or one that holds nothing.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "runs when the library is compiled")]
const fn bytes_of<T: Layout>(controller: &T) -> [u8; ROOM] {
    let mut bytes = [0; ROOM];
    let mut place = 0;
    while place < size_of::<T>() {
        if T::FILLED >> place & 1 == 1 {
            // SAFETY: a byte of the controller that holds information, and no part of a pointer.
            bytes[place] = unsafe { ptr::from_ref(controller).cast::<u8>().add(place).read() };
        }
        place += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_written_to_the_byte() {
        let mut compared = 0_usize;
        families!(each => |NUMBER, Family, Any| {
            for preset in Family::PRESETS {
                let Any(controller) = preset.build() else { continue };
                let mut room = [0xA5A5_A5A5_u32; WORDS];
                // SAFETY: that is the room.
                assert_eq!(unsafe { write(room.as_mut_ptr().cast(), preset.id()) }, Some(NUMBER), "{preset:?}");
                let bytes = room.iter().flat_map(|word| word.to_ne_bytes());
                assert!(bytes.eq(bytes_of(&controller)), "{preset:?}");
                compared = compared.saturating_add(1);
            }
        });
        assert_eq!(compared, Preset::all().count());
        for none in [0, 4, 256, 257, u16::MAX] {
            // SAFETY: as above.
            assert_eq!(unsafe { write([0_u32; WORDS].as_mut_ptr().cast(), none) }, None);
        }
    }
}
