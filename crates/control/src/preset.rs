//! Published controllers by name.
//!
//! Each family lists its presets in its own module with `presets!`. What builds a controller (an identifier and parts)
//! stands apart from what is said about it, so that an image that only builds links no text.

use crate::any::{AnyController, Family};
use core::fmt;

/// A controller as one source describes it: a small handle, which reports what it is and builds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Preset {
    pub(crate) family: Family,
    id: u16,
}

/// What is said about a preset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) source: &'static str,
    pub(crate) readings: &'static [&'static str],
    pub(crate) summary: &'static str,
}

impl Preset {
    #[allow(dead_code, reason = "without any algorithm there are no presets")]
    pub(crate) const fn new(family: Family, id: u16) -> Self {
        Self { family, id }
    }

    /// Every preset whose algorithm is compiled in, family by family.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Family::ALL.iter().flat_map(|family| family.presets().iter().copied())
    }

    /// The preset with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|preset| preset.name() == name)
    }

    /// The preset with this number.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        Self::all().find(|preset| preset.id == id)
    }

    /// Its number, for callers without strings. It never changes, and no other preset ever gets it.
    #[must_use]
    pub const fn id(self) -> u16 {
        self.id
    }

    /// The name by which scenarios call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.text().name
    }

    /// What people call it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.text().label
    }

    /// The algorithm that it is a setting of, by the module that has it.
    #[must_use]
    pub const fn family(self) -> &'static str {
        self.family.name()
    }

    /// Where it is described, in one line.
    #[must_use]
    pub const fn source(self) -> &'static str {
        self.text().source
    }

    /// Where its sources are silent or disagree: the headings in `docs/appendix/interpretations.md` that say what was chosen.
    #[must_use]
    pub const fn readings(self) -> &'static [&'static str] {
        self.text().readings
    }

    /// What it does, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.text().summary
    }

    /// The controller, for a peer about which nothing is known.
    #[must_use]
    pub const fn build(self) -> AnyController {
        self.family.build(self)
    }

    const fn text(self) -> &'static Text {
        self.family.text(self)
    }
}

impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The presets of one family: the constant, its number for ever, its parts, and what is said about it.
#[allow(unused_macros, reason = "without any algorithm there are no presets")]
macro_rules! presets {
    ($family:ident {
        $first:ident = $first_id:literal, $first_parts:expr, $first_text:tt;
        $($preset:ident = $id:literal, $parts:expr, $text:tt;)*
    }) => {
        $crate::preset::presets!(@constant $family, $first = $first_id, $first_text);
        $($crate::preset::presets!(@constant $family, $preset = $id, $text);)*

        impl $family {
            /// Its presets.
            pub const PRESETS: &[$crate::Preset] = &[$crate::Preset::$first, $($crate::Preset::$preset),*];

            pub(crate) const fn published(preset: $crate::Preset) -> Self {
                match preset.id() {
                    $($id => Self::new($parts),)*
                    _ => Self::new($first_parts),
                }
            }

            pub(crate) const fn text(preset: $crate::Preset) -> &'static $crate::preset::Text {
                match preset.id() {
                    $($id => &$crate::preset::Text $text,)*
                    _ => &$crate::preset::Text $first_text,
                }
            }
        }
    };
    (@constant $family:ident, $preset:ident = $id:literal, {
        name: $name:literal, label: $label:literal, source: $source:expr, readings: $readings:expr, summary: $summary:literal $(,)?
    }) => {
        impl $crate::Preset {
            #[doc = concat!("`", $name, "`: ", $summary, ".\n\nSource: ", $source, ".")]
            pub const $preset: Self = Self::new($crate::any::Family::$family, $id);
        }
        const _: () = assert!($crate::preset::is_name_of($name, stringify!($preset)), "constant and name differ");
    };
}
#[allow(unused_imports, reason = "without any algorithm there are no presets")]
pub(crate) use presets;

/// Whether `constant` is `name` in capitals, with underscores for hyphens.
#[allow(dead_code, reason = "without any algorithm there are no presets")]
pub(crate) const fn is_name_of(name: &str, constant: &str) -> bool {
    let (mut name, mut constant) = (name.as_bytes(), constant.as_bytes());
    while let (Some((letter, name_rest)), Some((capital, constant_rest))) = (name.split_first(), constant.split_first())
    {
        let expected = if *letter == b'-' { b'_' } else { letter.to_ascii_uppercase() };
        if expected != *capital {
            return false;
        }
        (name, constant) = (name_rest, constant_rest);
    }
    name.is_empty() && constant.is_empty()
}

#[cfg(all(test, feature = "rfc7252"))]
mod tests {
    extern crate std;
    use super::*;
    use std::{collections::BTreeSet, vec::Vec};

    #[test]
    fn presets_are_found_by_name_and_by_number() {
        for preset in Preset::all() {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
            assert_eq!(Preset::from_id(preset.id()), Some(preset));
        }
        for name in ["cocoa", "", "RFC7252"] {
            assert_eq!(Preset::from_name(name), None);
        }
        assert_eq!(Preset::from_id(0), None);
    }

    #[test]
    fn names_numbers_and_texts_are_told_apart() {
        let all: Vec<_> = Preset::all().collect();
        assert_eq!(all.iter().map(|preset| preset.name()).collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.iter().map(|preset| preset.id()).collect::<BTreeSet<_>>().len(), all.len());
        for (i, one) in all.iter().enumerate() {
            for text in [one.label(), one.source(), one.summary()] {
                assert!(!text.is_empty() && !text.contains('\n') && !text.ends_with('.'), "{one:?}: {text}");
            }
            for other in all.iter().skip(i.saturating_add(1)) {
                assert_ne!(one.build(), other.build(), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn constants_are_named_as_their_presets() {
        assert!(is_name_of("cocoa-03", "COCOA_03"));
        for (name, constant) in [("cocoa-03", "COCOA_3"), ("cocoa", "COCOA_03"), ("cocoa-03", "COCOA"), ("a_b", "A-B")]
        {
            assert!(!is_name_of(name, constant), "{name} {constant}");
        }
    }
}
