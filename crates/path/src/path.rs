//! The path: one direction to the server and one back.

use millpond_control::ChanceSeed;
use millpond_link::{AccessError, Levels};
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};

use crate::{
    Access, Direction, InputError, Size, Wifi, access::access_or_none, direction::DirectionKeys, profile,
    trace::read_files, word_or_table,
};

/// The path that all clients share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Bytes of IP and UDP header in front of every CoAP message.
    pub header: Size,
    /// From the clients to the server.
    pub uplink: Direction,
    /// From the server to the clients.
    pub downlink: Direction,
    /// How clients come to send over it, if they may not always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The Wi-Fi hop between the clients and both directions, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
}

/// IPv4 and UDP.
const HEADER: Size = Size(28);
/// More than any IP and UDP header.
const MOST_HEADER: Size = Size(1_000);

impl Path {
    /// Reads and checks the path of a file: its section `[path]`, whatever stands beside it, or `[uplink]` and `[downlink]`
    /// of a file that holds a path alone. `origin` names the source in errors.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, InputError> {
        Self::with_files(text, origin, |file| Err(format!("{file}: there is nobody here to read it")))
    }

    /// The same of a path whose traces may lie in files, which `read` gives by their names as they are written.
    ///
    /// # Errors
    /// One line with the place and the fix, or what `read` says.
    pub fn with_files(
        text: &str,
        origin: &str,
        read: impl FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, InputError> {
        let refused = |error: toml::de::Error| InputError::from_toml(origin, text, &error);
        let mut table: toml::Table = toml::from_str(text).map_err(refused)?;
        // What was read in between has no lines of this text.
        let has_read = read_files(&mut table, read).map_err(|problem| InputError::new(origin, problem))?;
        if table.contains_key("path") {
            let sections = if has_read { table.try_into() } else { toml::from_str(text) };
            let Sections { path } = sections.map_err(refused)?;
            path.check("path", origin)?;
            return Ok(path);
        }
        if let Some(other) = ["network", "mesh", "radio"].into_iter().find(|key| table.contains_key(*key)) {
            let problem = "this is a network, and here one path is needed: [path.uplink] and [path.downlink]";
            return Err(InputError::at_key(origin, other, problem));
        }
        let alone: Alone = if has_read { table.try_into() } else { toml::from_str(text) }.map_err(refused)?;
        let path = alone.path().map_err(|problem| InputError::new(origin, problem))?;
        path.check("", origin)?;
        Ok(path)
    }

    /// The path that a profile names.
    ///
    /// # Errors
    /// That there is none of this name, with the nearest.
    pub fn of_profile(name: &str) -> Result<Self, String> {
        profile::find(name).map(|profile| profile.path)
    }

    /// Whether links can be built from it. `key` is the path's own place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        let at = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        self.uplink.check(&at("uplink"), origin)?;
        self.downlink.check(&at("downlink"), origin)?;
        if self.header > MOST_HEADER {
            let problem = format!("{} is more than any IP and UDP header (at most {MOST_HEADER})", self.header);
            return Err(InputError::at_key(origin, &at("header"), problem));
        }
        if self.wifi.is_some() && self.access.is_some() {
            let problem = "there is an `access` already, and a client has one radio: write one of the two";
            return Err(InputError::at_key(origin, &at("wifi"), problem));
        }
        self.wifi.iter().try_for_each(|wifi| wifi.check(&at("wifi"), origin))?;
        self.access.iter().try_for_each(|access| access.check(&self.uplink, &at("access"), origin))
    }

    /// How often packets of its devices are repeated.
    #[must_use]
    pub fn levels(&self) -> Levels {
        self.access.as_ref().and_then(|access| access.repetitions().ok()).unwrap_or(Levels::ONE)
    }

    /// What stands before both, if clients may not always send or be reached.
    ///
    /// # Errors
    /// What access cannot be made of: of a path that was made by hand.
    pub fn access<P>(&self, seed: ChanceSeed) -> Result<Option<millpond_link::Access<P>>, AccessError> {
        let rules = self.access.as_ref().map(|access| access.rules(&self.uplink)).transpose()?;
        rules.map(|rules| millpond_link::Access::new(rules, seed)).transpose()
    }
}

/// The keys of a path as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathKeys {
    /// What the others are laid over.
    #[serde(default)]
    profile: Option<Named>,
    #[serde(default)]
    header: Option<Size>,
    #[serde(default)]
    uplink: Option<DirectionKeys>,
    #[serde(default)]
    downlink: Option<DirectionKeys>,
    #[serde(default, deserialize_with = "access_or_none")]
    access: Option<Option<Access>>,
    #[serde(default)]
    wifi: Option<Wifi>,
}

/// The path of a profile, written by its name.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Named(Path);

impl TryFrom<String> for Named {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Path::of_profile(&name).map(Self)
    }
}

impl TryFrom<PathKeys> for Path {
    type Error = String;

    fn try_from(keys: PathKeys) -> Result<Self, String> {
        let (header, uplink, downlink, access, wifi) = match keys.profile {
            Some(Named(path)) => (path.header, Some(path.uplink), Some(path.downlink), path.access, path.wifi),
            None => (HEADER, None, None, None, None),
        };
        Ok(Self {
            header: keys.header.unwrap_or(header),
            uplink: DirectionKeys::complete(keys.uplink, uplink, "uplink")?,
            downlink: DirectionKeys::complete(keys.downlink, downlink, "downlink")?,
            access: match keys.access {
                None => access,
                Some(written) => written.map(|written| written.over(access.unwrap_or_default())),
            },
            wifi: keys.wifi.or(wifi),
        })
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A path, in a table.
        #[derive(Deserialize)]
        #[serde(try_from = "PathKeys")]
        struct Written(Path);
        impl TryFrom<PathKeys> for Written {
            type Error = String;
            fn try_from(keys: PathKeys) -> Result<Self, String> {
                keys.try_into().map(Self)
            }
        }
        let word = |name: &str| Path::of_profile(name).map(Written);
        let expecting = "a profile's name, or a table with the keys `uplink` and `downlink`";
        word_or_table(deserializer, expecting, word).map(|Written(path)| path)
    }
}

/// A file whose path is a section. Its other sections are for whom they concern.
#[derive(Deserialize)]
struct Sections {
    path: Path,
}

/// A file that is a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alone {
    /// One line for people.
    #[serde(default)]
    pub(crate) title: String,
    /// Where it is described.
    #[serde(default)]
    pub(crate) source: String,
    #[serde(default)]
    profile: Option<Named>,
    #[serde(default)]
    header: Option<Size>,
    #[serde(default)]
    uplink: Option<DirectionKeys>,
    #[serde(default)]
    downlink: Option<DirectionKeys>,
    #[serde(default, deserialize_with = "access_or_none")]
    access: Option<Option<Access>>,
    #[serde(default)]
    wifi: Option<Wifi>,
    /// Among the names that errors offer.
    #[serde(default, rename = "path")]
    _path: IgnoredAny,
}

impl Alone {
    pub(crate) fn path(self) -> Result<Path, String> {
        let Self { profile, header, uplink, downlink, access, wifi, .. } = self;
        if profile.is_none() && uplink.is_none() && downlink.is_none() {
            return Err("no path here: write [path.uplink] and [path.downlink], or [uplink] and [downlink]".to_owned());
        }
        PathKeys { profile, header, uplink, downlink, access, wifi }.try_into()
    }
}
