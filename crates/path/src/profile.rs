//! Paths that have a name and a source.

use crate::{Path, path::Alone, unknown};

/// A path that has a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What a file calls it by.
    pub name: &'static str,
    /// One line for people.
    pub title: String,
    /// Where its figures are printed, and what was read into them.
    pub source: String,
    /// Its file, with the place of every figure beside it.
    pub text: &'static str,
    /// The path itself.
    pub path: Path,
}

/// Names and texts, in the order in which they are listed. A file's comments give the place of every figure.
const TEXTS: &[(&str, &str)] = &[
    ("nbiot-anrw18", include_str!("../profiles/nbiot-anrw18.toml")),
    ("nbiot-tcp20-low", include_str!("../profiles/nbiot-tcp20-low.toml")),
    ("nbiot-tcp20-medium", include_str!("../profiles/nbiot-tcp20-medium.toml")),
    ("nbiot-tcp20-high", include_str!("../profiles/nbiot-tcp20-high.toml")),
    ("nbiot-upc", include_str!("../profiles/nbiot-upc.toml")),
    ("nbiot-upc-two-host", include_str!("../profiles/nbiot-upc-two-host.toml")),
    ("nbiot-ce0", include_str!("../profiles/nbiot-ce0.toml")),
    ("nbiot-ce1", include_str!("../profiles/nbiot-ce1.toml")),
    ("nbiot-ce2", include_str!("../profiles/nbiot-ce2.toml")),
    ("lte-m", include_str!("../profiles/lte-m.toml")),
    ("thread-hop", include_str!("../profiles/thread-hop.toml")),
    ("wifi", include_str!("../profiles/wifi.toml")),
    ("geo-nbiot", include_str!("../profiles/geo-nbiot.toml")),
    ("leo-nbiot", include_str!("../profiles/leo-nbiot.toml")),
];

/// Every profile, in the order in which they are listed.
#[must_use]
pub fn profiles() -> Vec<Profile> {
    TEXTS.iter().filter_map(|(name, _)| find(name).ok()).collect()
}

/// The profile of this name.
pub(crate) fn find(wanted: &str) -> Result<Profile, String> {
    let Some((name, text)) = TEXTS.iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<_> = TEXTS.iter().map(|(name, _)| *name).collect();
        return Err(unknown("profile", wanted, &names));
    };
    let alone: Alone = toml::from_str(text).map_err(|error| error.to_string())?;
    let (title, source) = (alone.title.clone(), alone.source.clone());
    Ok(Profile { name, title, source, text, path: alone.path()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_used_and_says_where_it_is_from() {
        let profiles = profiles();
        assert_eq!(profiles.len(), TEXTS.len(), "every text is read");
        for (profile, (name, text)) in profiles.iter().zip(TEXTS) {
            assert_eq!(profile.name, *name);
            assert!(!profile.title.is_empty() && !profile.source.is_empty(), "{name}");
            assert_eq!(Path::from_toml(text, name).as_ref(), Ok(&profile.path));
            assert_eq!(Path::from_toml(&format!("path = \"{name}\""), name).as_ref(), Ok(&profile.path));
        }
    }
}
