//! The numbers of presets, settings and words.

use crate::declarations::{comment, enumeration};
use millpond_control::{Preset, Setting, SettingKind};

const PREFACE: &str = "\
/* millpond_constants.h - the presets and settings for millpond.h
 *
 * A number never changes its meaning, and none is used twice.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 * Made from crates/control/src by `make header`. */

#ifndef MILLPOND_CONSTANTS_H
#define MILLPOND_CONSTANTS_H
";

/// `millpond_constants.h`.
pub(crate) fn header() -> String {
    let presets = Preset::all()
        .map(|preset| (constant("PRESET", &capitals(preset.name()), preset.id()), preset.summary().to_owned()))
        .collect();
    let settings = Setting::ALL
        .iter()
        .map(|setting| (constant("SETTING", &capitals_of(*setting), setting.id()), setting.kind().to_string()))
        .collect();
    let words: String = Setting::ALL.iter().map(|setting| values(*setting)).collect();
    [
        PREFACE,
        "\n",
        &comment("", "Published controllers. The manual says where each is described."),
        &enumeration(presets),
        "\n",
        &comment(
            "",
            "What can be set, and what it takes. Times are shown in seconds and handed over in microseconds; ratios \
             are handed over in thousandths.",
        ),
        &enumeration(settings),
        "\n",
        &comment("", "The value of a length of time that may be none."),
        "#define MILLPOND_UNLIMITED 0xffffffffu\n\n",
        &comment("", "The values of settings that take one of several words."),
        &words,
        "#endif\n",
    ]
    .concat()
}

fn constant(kind: &str, name: &str, number: u16) -> String {
    format!("MILLPOND_{kind}_{name} = {number}")
}

/// The words of a setting, if it takes words.
fn values(setting: Setting) -> String {
    let SettingKind::Word(words) = setting.kind() else { return String::new() };
    let lines = (0..)
        .zip(words)
        .map(|(number, word)| (constant(&capitals_of(setting), &capitals(word), number), String::new()));
    enumeration(lines.collect()) + "\n"
}

/// Two settings of different controllers may have the same name, but not the same variant.
fn capitals_of(setting: Setting) -> String {
    let mut name = String::new();
    for letter in format!("{setting:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

fn capitals(name: &str) -> String {
    name.replace('+', "_plus").replace(|letter: char| !letter.is_ascii_alphanumeric(), "_").to_uppercase()
}
