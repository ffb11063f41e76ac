//! What was read of files, by which file it was and when it was written.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use cap_std::fs::Metadata;

/// Files of which the tag is remembered.
const MOST: usize = 4_096;

/// A file that was written so lately may be written once more within what its file system takes for the same time.
const LATELY: Duration = Duration::from_secs(2);

/// The bytes of a file, in memory once for all who are given them, and their entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBody {
    bytes: Arc<Vec<u8>>,
    tag: [u8; 8],
}

impl FileBody {
    /// Of these bytes, which are hashed.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        let tag = entity_tag(&bytes);
        Self { bytes: Arc::new(bytes), tag }
    }

    /// A name for these bytes that changes when they do.
    #[must_use]
    pub const fn tag(&self) -> [u8; 8] {
        self.tag
    }
}

impl AsRef<[u8]> for FileBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A name for these bytes that changes when they do.
pub(super) fn entity_tag(bytes: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

/// Which file it is, how long, and when it was written: as long as that is so its bytes are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    length: u64,
    written: SystemTime,
}

impl Version {
    /// Of what the system says of an open file; `None` where it does not number its files.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use cap_std::fs::MetadataExt;

        let written = metadata.modified().ok()?.into_std();
        Some(Self { device: metadata.dev(), inode: metadata.ino(), length: metadata.len(), written })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Option<Self> {
        None
    }

    #[allow(clippy::disallowed_methods, reason = "what files say is the time of day")]
    fn is_settled(&self) -> bool {
        SystemTime::now().duration_since(self.written).is_ok_and(|age| age >= LATELY)
    }
}

/// The tags of files that were read lately, and their bytes as long as anybody is given them.
#[derive(Debug, Default)]
pub(super) struct Tags(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    files: HashMap<Version, ([u8; 8], Weak<Vec<u8>>)>,
    /// In the order in which they were read.
    order: VecDeque<Version>,
}

impl Tags {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of a file.
    pub(super) fn tag(&self, version: &Version) -> Option<[u8; 8]> {
        self.known().files.get(version).map(|(tag, _)| *tag)
    }

    /// Its bytes, if somebody is given them.
    pub(super) fn body(&self, version: &Version) -> Option<FileBody> {
        let known = self.known();
        let (tag, bytes) = known.files.get(version)?;
        Some(FileBody { bytes: bytes.upgrade()?, tag: *tag })
    }

    /// A file was read.
    pub(super) fn was_read(&self, version: Version, body: &FileBody) {
        if version.is_settled() {
            self.put(version, body.tag, Arc::downgrade(&body.bytes));
        }
    }

    /// A file was written here.
    pub(super) fn was_written(&self, version: Version, tag: [u8; 8]) {
        self.put(version, tag, Weak::new());
    }

    fn put(&self, version: Version, tag: [u8; 8], bytes: Weak<Vec<u8>>) {
        let mut known = self.known();
        if known.files.insert(version, (tag, bytes)).is_some() {
            return;
        }
        known.order.push_back(version);
        while known.order.len() > MOST {
            if let Some(oldest) = known.order.pop_front() {
                known.files.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(inode: u64, written: SystemTime) -> Version {
        Version { device: 1, inode, length: 3, written }
    }

    #[test]
    fn a_file_is_known_by_what_it_is_and_when_it_was_written() {
        let (tags, body, long_ago) = (Tags::default(), FileBody::of(b"one".to_vec()), SystemTime::UNIX_EPOCH);
        tags.was_read(version(1, long_ago), &body);
        assert_eq!(tags.body(&version(1, long_ago)), Some(body.clone()));
        assert_eq!(tags.tag(&version(1, long_ago + Duration::from_nanos(1))), None);
        let tag = body.tag();
        drop(body);
        assert_eq!(tags.body(&version(1, long_ago)), None, "nobody is given them any more");
        assert_eq!(tags.tag(&version(1, long_ago)), Some(tag));
        // It may be written once more at what is the same time.
        let ahead = long_ago + Duration::from_secs(1 << 40);
        tags.was_read(version(2, ahead), &FileBody::of(b"two".to_vec()));
        assert_eq!(tags.tag(&version(2, ahead)), None);
        for inode in 0..2 * MOST as u64 {
            tags.was_written(version(inode, long_ago), tag);
        }
        let known = tags.known();
        assert_eq!((known.files.len(), known.order.len()), (MOST, MOST));
    }
}
