//! The presets and `docs/appendix/interpretations.md` name each other.

#![cfg(feature = "all")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use millpond_control::{Preset, Setting, SettingKind};
use std::{collections::BTreeMap, fs, path::Path};

/// The document's sections: number and text.
fn sections() -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/appendix/interpretations.md");
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.split("\n## ")
        .skip(1)
        .map(|section| {
            let (number, rest) = section.split_once(' ').unwrap();
            (number.to_owned(), rest.to_owned())
        })
        .collect()
}

/// What a section says behind this word.
fn line<'s>(section: &'s str, word: &str) -> Option<&'s str> {
    section.lines().find_map(|line| line.strip_prefix("- **")?.strip_prefix(word)?.strip_prefix(":** "))
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_reading_names_its_presets_and_every_preset_its_readings() {
    let sections = sections();
    for (number, section) in &sections {
        let named: Vec<_> =
            Preset::all().filter(|preset| preset.readings().contains(&number.as_str())).map(Preset::name).collect();
        match line(section, "Presets") {
            Some(presets) => assert_eq!(quoted(presets), named, "{number}"),
            None => {
                assert_eq!(line(section, "Concerns"), Some("the endpoint"), "{number} names no presets");
                assert!(named.is_empty(), "{number} is named by {named:?}");
            }
        }
        assert!(line(section, "Taken").is_some() && line(section, "Otherwise").is_some(), "{number}");
    }
    for preset in Preset::all() {
        for reading in preset.readings() {
            assert!(sections.contains_key(*reading), "{preset:?} names {reading}, which the appendix has not");
        }
    }
}

#[test]
fn none_is_left_out() {
    let expected = (1..=16).map(|number| format!("D{number}")).chain((1..=15).map(|number| format!("E{number}")));
    let expected = expected.chain((1..=16).map(|number| format!("P{number}")));
    let expected = expected.chain((1..=6).map(|number| format!("B{number}")));
    let expected = expected.chain((1..=8).map(|number| format!("T{number}")));
    let sections = sections();
    for number in expected {
        assert!(sections.contains_key(&number), "{number}");
    }
}

/// The other reading is one that can be set: each setting there is one that the presets have, with a legal word.
#[test]
fn the_other_readings_can_be_set() {
    for (number, section) in sections() {
        let presets: Vec<_> = line(&section, "Presets")
            .map(quoted)
            .unwrap_or_default()
            .into_iter()
            .filter_map(Preset::from_name)
            .collect();
        // Up to the next item of the list.
        let otherwise = section.split_once("- **Otherwise:**").map_or("", |(_, rest)| rest);
        let otherwise = otherwise.split_once("\n- **").map_or(otherwise, |(otherwise, _)| otherwise);
        for assignment in quoted(otherwise) {
            let (name, value) = assignment.split_once(" = ").unwrap_or((assignment, ""));
            let settings: Vec<Setting> = presets.iter().filter_map(|preset| preset.build().setting(name)).collect();
            if settings.is_empty() {
                assert!(value.is_empty() && assignment.starts_with('"'), "{number}: its presets have no {assignment}");
            }
            if let Some(word) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
                let taken = settings.iter().any(|setting| match setting.kind() {
                    SettingKind::Word(words) => words.contains(&word),
                    SettingKind::Time { none, .. } => none && word == "none",
                    _ => false,
                });
                assert!(taken, "{number}: {name} does not take {word}");
            }
        }
    }
}
