//! Which path is meant.

use std::io;

use millpond_path::{BitRate, Direction, Path, QueueLimit, Size};

use crate::failure::{Failure, without_number};

/// The longest packet where the path has no limit of its own: Ethernet's.
const USUAL_MTU: u32 = 1_500;

/// What a relay is told for no path at all.
pub(super) const NONE: &str = "none";
/// The rate and the queue of none, bit/s and bytes: what a relay can forward comes near neither.
const UNNOTICED: (BitRate, QueueLimit) = (BitRate(100_000_000_000), QueueLimit::Bytes(64 << 20));

/// A path that changes nothing.
pub(super) fn none() -> Path {
    let (rate, queue) = UNNOTICED;
    let direction = || Direction::plain(rate, millpond_path::Duration(0), queue);
    Path { header: Size(28), uplink: direction(), downlink: direction(), access: None, wifi: None }
}

/// The path of a profile's name, or of a file.
///
/// # Errors
/// One line with the place and the fix.
pub(super) fn read(name: &str) -> Result<Path, Failure> {
    let is_file = name.ends_with(".toml") || name.contains(std::path::is_separator);
    if !is_file && let Ok(path) = Path::of_profile(name) {
        return Ok(path);
    }
    match std::fs::read_to_string(name) {
        Ok(text) => {
            let folder = std::path::Path::new(name).parent().unwrap_or(std::path::Path::new(""));
            let read = |file: &str| {
                let file = folder.join(file);
                let told = |error: io::Error| format!("{}: {}", file.display(), without_number(&error));
                std::fs::read_to_string(&file).map_err(told)
            };
            Path::with_files(&text, name, read).map_err(|error| Failure::Usage(error.to_string()))
        }
        Err(error) if !is_file && error.kind() == io::ErrorKind::NotFound => {
            let unknown = Path::of_profile(name).err().unwrap_or_default();
            Err(Failure::Usage(format!("{unknown}; nor is there a file of this name")))
        }
        Err(error) => Err(Failure::of_file(name, &error)),
    }
}

/// The longest packet that both directions carry in one piece.
pub(super) fn mtu(path: &Path) -> u32 {
    let shortest = [&path.uplink, &path.downlink].into_iter().filter_map(|direction| direction.mtu).min();
    shortest.map_or(USUAL_MTU, |mtu| u32::try_from(mtu.0).unwrap_or(u32::MAX))
}

/// A direction in a few words.
pub(super) fn words(direction: &Direction) -> String {
    let Direction { rate, delay, queue, .. } = direction;
    let trace = if direction.trace.is_none() { "" } else { ", trace" };
    let loss = if direction.loss == millpond_path::Loss::None { "" } else { ", losses" };
    let aqm = if direction.aqm == millpond_path::Aqm::None { "" } else { ", managed" };
    let jitter = if direction.jitter.is_none() { "" } else { ", jitter" };
    format!("{rate}, {delay}, queue {queue}{aqm}{jitter}{loss}{trace}")
}
