//! Names for numbers and numbers for names: for programs with a configuration file or a log. A micro-controller does
//! without (feature `names`), or does not call them, and then its linker leaves them out.
//!
//! Every call is unsafe for the same reason: each pointer must be null, or point to what its type says: a `const char`
//! to a string that ends with a zero, a `char` to as much memory as the size beside it says.

use crate::{
    calls::{Answer, answer},
    record::{self, aligned, controller_of, families},
    types::{millpond_error, millpond_peer},
};
use core::{
    ffi::{CStr, c_char},
    fmt::{self, Write},
};
use millpond_control::{AnyController, Preset, Setting, SettingKind};

/// The number of the preset with this name.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_preset_id(name: *const c_char) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let name = unsafe { text(name)? };
        let preset = Preset::all().find(|preset| preset.name().as_bytes() == name);
        preset.map(|preset| i32::from(preset.id())).ok_or(millpond_error::MILLPOND_E_UNKNOWN_PRESET)
    })
}

/// The number of the preset whose name is the nearest to this one, to be proposed where millpond_preset_id knows none:
/// at most a third of its letters differ.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_preset_nearest(name: *const c_char) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let name = unsafe { text(name)? };
        let near = Preset::all().filter_map(|preset| Some((slips(name, preset.name().as_bytes())?, preset)));
        let nearest = near.min_by_key(|(slips, _)| *slips);
        nearest.map(|(_, preset)| i32::from(preset.id())).ok_or(millpond_error::MILLPOND_E_UNKNOWN_PRESET)
    })
}

/// The number of the setting with this name that this peer has.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_setting_id(peer: *const millpond_peer, name: *const c_char) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let (controller, name) = unsafe { (copy_of(peer)?, text(name)?) };
        let of_every_peer = [Setting::LeastWait];
        let mut settings = controller.settings().iter().chain(&of_every_peer);
        let setting = settings.find(|setting| setting.name().as_bytes() == name);
        setting.map(|setting| i32::from(setting.id())).ok_or(millpond_error::MILLPOND_E_UNKNOWN_SETTING)
    })
}

/// The value of a setting that takes words for this word.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_setting_word(setting: u16, word: *const c_char) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let word = unsafe { text(word)? };
        let setting = Setting::from_id(setting).ok_or(millpond_error::MILLPOND_E_UNKNOWN_SETTING)?;
        let SettingKind::Word(words) = setting.kind() else { return Err(millpond_error::MILLPOND_E_OUT_OF_RANGE) };
        let place = words.iter().position(|legal| legal.as_bytes() == word);
        place.and_then(|place| i32::try_from(place).ok()).ok_or(millpond_error::MILLPOND_E_OUT_OF_RANGE)
    })
}

/// Writes the name of a preset to text, cut to size bytes with the zero at its end. Answers its whole length.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_preset_name(preset: u16, text: *mut c_char, size: u32) -> i32 {
    answer(|| {
        let preset = Preset::from_id(preset).ok_or(millpond_error::MILLPOND_E_UNKNOWN_PRESET)?;
        // SAFETY: see the module.
        unsafe { written(text, size, &preset.name()) }
    })
}

/// The same for the name of a setting.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_setting_name(setting: u16, text: *mut c_char, size: u32) -> i32 {
    answer(|| {
        let setting = Setting::from_id(setting).ok_or(millpond_error::MILLPOND_E_UNKNOWN_SETTING)?;
        // SAFETY: see the module.
        unsafe { written(text, size, &setting.name()) }
    })
}

/// The same for what a setting takes: a range with its unit, or words.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_setting_takes(setting: u16, text: *mut c_char, size: u32) -> i32 {
    answer(|| {
        let setting = Setting::from_id(setting).ok_or(millpond_error::MILLPOND_E_UNKNOWN_SETTING)?;
        // SAFETY: see the module.
        unsafe { written(text, size, &setting.kind()) }
    })
}

/// The same for which settings of a peer contradict each other; an empty text if none do.
///
/// # Safety
///
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millpond_peer_conflict(peer: *const millpond_peer, text: *mut c_char, size: u32) -> i32 {
    answer(|| {
        // SAFETY: see the module.
        let controller = unsafe { copy_of(peer)? };
        match controller.check() {
            // SAFETY: see the module.
            Ok(()) => unsafe { written(text, size, &"") },
            // SAFETY: see the module.
            Err(conflict) => unsafe { written(text, size, &conflict) },
        }
    })
}

/// What a negative answer means, in one line.
#[unsafe(no_mangle)]
pub extern "C" fn millpond_error_text(error: i32) -> *const c_char {
    millpond_error::ALL
        .iter()
        .find(|(known, _)| *known as i32 == error)
        .map_or(if error < 0 { c"unknown error" } else { c"no error" }, |(_, text)| text)
        .as_ptr()
}

impl millpond_error {
    /// Every error and what it means.
    const ALL: [(Self, &'static CStr); 12] = [
        (Self::MILLPOND_E_NULL, c"a pointer is null"),
        (Self::MILLPOND_E_ALIGNMENT, c"a pointer is not aligned as its type must be"),
        (
            Self::MILLPOND_E_HEADER,
            c"header and library do not belong together: compile again with the library's header",
        ),
        (
            Self::MILLPOND_E_UNKNOWN_PRESET,
            c"no preset has this number or name, or its algorithm is not in this library",
        ),
        (Self::MILLPOND_E_UNKNOWN_SETTING, c"the controller of this peer has no such setting"),
        (Self::MILLPOND_E_OUT_OF_RANGE, c"the value is out of range for its setting"),
        (Self::MILLPOND_E_CONFLICT, c"two settings of this peer contradict each other"),
        (Self::MILLPOND_E_ARGUMENT, c"an argument is none of its constants"),
        (Self::MILLPOND_E_BLANK, c"the peer was never initialised, or the exchange never started"),
        (Self::MILLPOND_E_FOREIGN, c"the record is of another kind, another build, or another kind of peer"),
        (Self::MILLPOND_E_DAMAGED, c"the record was changed by something else: a stray pointer, or a second thread"),
        (Self::MILLPOND_E_ENDED, c"the exchange has ended already"),
    ];
}

/// How many letters have to be put in, taken out or changed to make the one of the other, capitals or not; `None` if they
/// are more than a third of the longer.
fn slips(one: &[u8], other: &[u8]) -> Option<u8> {
    /// Bytes of the longest name, and a few.
    const LONGEST: u8 = 32;
    let longer = one.len().max(other.len());
    if longer > usize::from(LONGEST) {
        return None;
    }
    // How far each beginning of `other` is from what was read of `one`; that of the empty one is `left`, at first.
    let mut row = [0; LONGEST as usize];
    row.iter_mut().zip(1..=LONGEST).for_each(|(cell, length)| *cell = length);
    for (read, letter) in (0..LONGEST).zip(one) {
        let (mut diagonal, mut left) = (read, read.saturating_add(1));
        for (cell, letter_there) in row.iter_mut().zip(other) {
            let changed = diagonal.saturating_add(u8::from(!letter.eq_ignore_ascii_case(letter_there)));
            diagonal = *cell;
            *cell = changed.min(diagonal.min(left).saturating_add(1));
            left = *cell;
        }
    }
    let slips = *row.get(..other.len())?.last()?;
    (usize::from(slips).saturating_mul(3) <= longer).then_some(slips)
}

/// A copy of the controller of a peer, even if its settings contradict each other.
unsafe fn copy_of(peer: *const millpond_peer) -> Result<AnyController, millpond_error> {
    // SAFETY: see the module.
    unsafe { record::find_peer(peer, true)? };
    // SAFETY: the peer was found.
    let family = unsafe { record::family_of(peer) };
    // SAFETY: it is of this family.
    Ok(families!(found family, |Family, any| any(unsafe { controller_of::<Family>(peer).read() })))
}

/// The bytes of a C string.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a [u8], millpond_error> {
    aligned(text)?;
    // SAFETY: see the module.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Writes what `shown` shows as a C string, cut to `size` bytes; answers its whole length.
unsafe fn written(text: *mut c_char, size: u32, shown: &dyn fmt::Display) -> Answer {
    /// The rest of the caller's memory, and what it would take to hold everything.
    struct Room {
        next: *mut c_char,
        left: u32,
        length: i32,
    }

    impl Write for Room {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            for byte in part.bytes() {
                self.length = self.length.saturating_add(1);
                // One byte stays for the zero.
                if self.left > 1 {
                    // SAFETY: see the module; `left` counts what is left.
                    unsafe { self.next.write(byte.cast_signed() as c_char) };
                    self.next = self.next.wrapping_add(1);
                    self.left = self.left.saturating_sub(1);
                }
            }
            Ok(())
        }
    }

    aligned(text)?;
    let mut room = Room { next: text, left: size, length: 0 };
    // Room never fails.
    let _ = write!(room, "{shown}");
    if room.left > 0 {
        // SAFETY: see the module; `left` counts what is left.
        unsafe { room.next.write(0) };
    }
    Ok(room.length)
}
