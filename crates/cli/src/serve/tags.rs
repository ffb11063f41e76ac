//! What names a state of a file: its bytes if they are few, else which file it is and when it was changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::time::{Duration, SystemTime};

use cap_std::fs::Metadata;

/// An entity tag (RFC 7252 §5.10.6).
pub(super) type Tag = [u8; 8];

/// Within what file systems take for one time: a file that was changed so lately may be changed once more and look the same. The
/// clock of Linux for files ticks every 10 ms at the longest.
const TICK: Duration = Duration::from_millis(20);

/// Bytes of a file, all of them or a part, and the entity tag of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBody {
    pub(super) bytes: Vec<u8>,
    pub(super) tag: Tag,
    /// Where they begin, and the bytes of the whole.
    pub(super) start: u64,
    pub(super) total: u64,
}

impl FileBody {
    /// Of all its bytes, which are hashed.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { tag: tag_of(&bytes[..]), start: 0, total: bytes.len() as u64, bytes }
    }
}

/// A name for this that changes when it does.
pub(super) fn tag_of(named: impl Hash) -> Tag {
    let mut hasher = DefaultHasher::new();
    named.hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

/// Which file it is, how long, when it was written, and when anything of it was changed: as long as that is so its bytes are the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    length: u64,
    written: SystemTime,
    /// Seconds and nanoseconds. No program sets this time.
    changed: (i64, i64),
}

impl Version {
    /// Of what the system says of an open file.
    ///
    /// # Errors
    /// It does not say when it was written.
    pub(super) fn of(metadata: &Metadata) -> io::Result<Self> {
        let (length, written) = (metadata.len(), metadata.modified()?.into_std());
        #[cfg(unix)]
        {
            use cap_std::fs::MetadataExt;

            let changed = (metadata.ctime(), metadata.ctime_nsec());
            Ok(Self { device: metadata.dev(), inode: metadata.ino(), length, written, changed })
        }
        #[cfg(not(unix))]
        Ok(Self { device: 0, inode: 0, length, written, changed: (0, 0) })
    }

    pub(super) fn tag(&self) -> Tag {
        tag_of(self)
    }

    /// How long it may still be changed and look the same; nothing if not at all.
    #[allow(clippy::disallowed_methods, reason = "what files say is the time of day")]
    pub(super) fn settles_in(&self) -> Duration {
        let (now, changed) = (SystemTime::now(), self.changed());
        // In the time to come, by a clock that was set: as if it were changed now.
        now.duration_since(changed).map_or(TICK, |age| TICK.saturating_sub(age))
    }

    fn changed(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        let since = Duration::new(seconds.try_into().unwrap_or(0), nanos.try_into().unwrap_or(0));
        SystemTime::UNIX_EPOCH.checked_add(since).map_or(self.written, |changed| changed.max(self.written))
    }
}
