//! Files below one directory and nothing else.
//!
//! The directory is opened once, and every name is looked up from there by the operating system with links that lead out
//! of it refused (cap-std), so that no path, however it is written, reaches another file.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::tags::{FileBody, Tags, Version, entity_tag};
use crate::draft;

/// Bytes of the names of one directory that are told. As links each of them may take three.
const LONGEST_LISTING: usize = 1 << 20;

/// Bytes of a link beside its name, about.
const LINK: u64 = 32;

/// A directory whose files are served.
#[derive(Debug)]
pub struct Directory {
    root: Dir,
    written: AtomicU64,
    /// One change at a time, with what must hold before it. What is to be written lies ready by then.
    changes: Mutex<()>,
    tags: Tags,
}

/// What stands at a path, as far as it is known without being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A file of so many bytes, with its tag if that is known, and whether its bytes are in memory.
    File { length: u64, tag: Option<[u8; 8]>, is_at_hand: bool },
    /// A directory with links of so many bytes, about.
    Directory(u64),
}

/// A file that lies ready beside a path, and goes unless it is put there.
#[derive(Debug)]
pub(super) struct Draft {
    root: Dir,
    path: PathBuf,
    draft: PathBuf,
    version: Option<Version>,
    tag: [u8; 8],
}

impl Draft {
    /// Of what is in it.
    pub(super) const fn tag(&self) -> [u8; 8] {
        self.tag
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has its name by now, or never will.
        let _ = self.root.remove_file(&self.draft);
    }
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Stored {
    /// A file's bytes.
    File(FileBody),
    /// A directory's entries in the order of their names, directories with a slash behind.
    Directory(Vec<String>),
}

impl Directory {
    /// Opens it.
    ///
    /// # Errors
    /// There is none, it is no directory, or it may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = Dir::open_ambient_dir(path, ambient_authority())?;
        root.entries()?;
        Ok(Self { root, written: AtomicU64::new(0), changes: Mutex::new(()), tags: Tags::default() })
    }

    /// What stands at a path; the links of a directory are counted until there are more than `enough` bytes of them. `None` if
    /// nothing is there that may be seen.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(super) fn look(&self, segments: &[String], enough: u64) -> io::Result<Option<Seen>> {
        let Some(path) = safe(segments) else { return Ok(None) };
        let Some((_, metadata)) = self.opened(&path)? else { return Ok(None) };
        if metadata.is_file() {
            let version = Version::of(&metadata);
            let tag = version.and_then(|version| self.tags.tag(&version));
            let is_at_hand = version.is_some_and(|version| self.tags.body(&version).is_some());
            return Ok(Some(Seen::File { length: metadata.len(), tag, is_at_hand }));
        }
        let mut length = 0_u64;
        for entry in self.root.read_dir(&path)? {
            length = length.saturating_add(entry?.file_name().len() as u64).saturating_add(LINK);
            if length > enough {
                break;
            }
        }
        Ok(Some(Seen::Directory(length)))
    }

    /// Opens a file or directory; `None` if there is neither. It is opened before it is looked at, and without waiting: what is
    /// swapped for a pipe in between would keep the reader for ever.
    fn opened(&self, path: &Path) -> io::Result<Option<(File, Metadata)>> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.custom_flags(crate::opening::WITHOUT_WAITING);
        }
        let file = match self.root.open_with(path, &options) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            // A socket, or a device without a driver.
            #[cfg(unix)]
            Err(error) if error.raw_os_error() == Some(crate::opening::NO_SUCH_DEVICE) => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        Ok((metadata.is_file() || metadata.is_dir()).then_some((file, metadata)))
    }

    /// What stands at a path given in segments; `None` if nothing does that may be seen. A file that somebody is given is not read
    /// again.
    ///
    /// # Errors
    /// It cannot be read, or has more than `limit` bytes, or the names in it more than a mebibyte.
    pub fn read(&self, segments: &[String], limit: usize) -> io::Result<Option<Stored>> {
        let Some(path) = safe(segments) else { return Ok(None) };
        let Some((mut file, metadata)) = self.opened(&path)? else { return Ok(None) };
        if metadata.is_dir() {
            return self.entries(&path).map(|names| Some(Stored::Directory(names)));
        }
        let most = u64::try_from(limit).unwrap_or(u64::MAX);
        let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("longer than {limit} bytes"));
        if metadata.len() > most {
            return Err(too_large());
        }
        let version = Version::of(&metadata);
        if let Some(body) = version.and_then(|version| self.tags.body(&version)) {
            return Ok(Some(Stored::File(body)));
        }
        let mut bytes = Vec::new();
        (&mut file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(too_large());
        }
        let body = FileBody::of(bytes);
        // Somebody may have written it meanwhile.
        if let Some(version) =
            version.filter(|before| file.metadata().ok().and_then(|now| Version::of(&now)) == Some(*before))
        {
            self.tags.was_read(version, &body);
        }
        Ok(Some(Stored::File(body)))
    }

    /// Puts a file at a path, whole or not at all. True if there was none before.
    ///
    /// # Errors
    /// The path is none that may be written, or its directory is not there.
    pub fn write(&self, segments: &[String], bytes: &[u8]) -> io::Result<bool> {
        self.write_if(segments, bytes, || Ok(true)).map(|made| made == Some(true))
    }

    /// The same if a condition holds, which nothing else that is written here can change in between; `None` if it does not.
    ///
    /// # Errors
    /// As [`write`](Self::write), and those of the condition.
    pub fn write_if(
        &self,
        segments: &[String],
        bytes: &[u8],
        condition: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Option<bool>> {
        self.put_if(&self.draft(segments, bytes)?, condition)
    }

    /// Puts a draft where it is for.
    ///
    /// # Errors
    /// As [`write_if`](Self::write_if).
    pub(super) fn put_if(
        &self,
        draft: &Draft,
        condition: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Option<bool>> {
        let _alone = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if !condition()? {
            return Ok(None);
        }
        let existed = match self.root.metadata(&draft.path) {
            Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() => true,
            // A pipe, a socket or a device is somebody else's, and is not shown either.
            Ok(_) => return Err(ErrorKind::PermissionDenied.into()),
            Err(error) if is_absent(&error) => false,
            Err(error) => return Err(error),
        };
        self.root.rename(&draft.draft, &self.root, &draft.path)?;
        self.is_put(draft);
        Ok(Some(!existed))
    }

    /// Puts a file at a path at which there is nothing, whole or not at all.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::AlreadyExists`] if there is something.
    pub fn create(&self, segments: &[String], bytes: &[u8]) -> io::Result<()> {
        self.put_at(&self.draft(segments, bytes)?, segments)
    }

    /// Puts a draft at a path in its directory at which there is nothing.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(super) fn put_at(&self, draft: &Draft, segments: &[String]) -> io::Result<()> {
        let path = writable(segments)?;
        let _alone = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match self.root.hard_link(&draft.draft, &self.root, &path) {
            // File systems that know no second name for a file.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                match self.root.symlink_metadata(&path) {
                    Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
                    Err(_) => self.root.rename(&draft.draft, &self.root, &path)?,
                }
            }
            done => done?,
        }
        self.is_put(draft);
        Ok(())
    }

    fn is_put(&self, draft: &Draft) {
        if let Some(version) = draft.version {
            self.tags.was_written(version, draft.tag);
        }
    }

    /// Writes a draft beside a path.
    ///
    /// # Errors
    /// The path is none that may be written, or its directory is not there.
    pub(super) fn draft(&self, segments: &[String], bytes: &[u8]) -> io::Result<Draft> {
        let path = writable(segments)?;
        if self.root.metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let numbers = std::iter::repeat_with(|| self.written.fetch_add(1, Ordering::Relaxed));
        let root = self.root.try_clone()?;
        let (draft, mut file) = draft::beside(&path, numbers, |draft| {
            self.root.open_with(draft, OpenOptions::new().write(true).create_new(true))
        })?;
        let mut draft = Draft { root, path, draft, version: None, tag: entity_tag(bytes) };
        file.write_all(bytes)?;
        draft.version = Version::of(&file.metadata()?);
        Ok(draft)
    }

    /// Takes a file away. False if there was none.
    ///
    /// # Errors
    /// It is no file, or cannot be taken away.
    pub fn remove(&self, segments: &[String]) -> io::Result<bool> {
        self.remove_if(segments, || Ok(true)).map(|gone| gone == Some(true))
    }

    /// The same if a condition holds; `None` if it does not.
    ///
    /// # Errors
    /// As [`remove`](Self::remove), and those of the condition.
    pub fn remove_if(
        &self,
        segments: &[String],
        condition: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Option<bool>> {
        let _alone = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if !condition()? {
            return Ok(None);
        }
        let Some(path) = safe(segments) else { return Ok(Some(false)) };
        match self.root.metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() => self.root.remove_file(&path).map(|()| Some(true)),
            Ok(_) => Err(ErrorKind::PermissionDenied.into()),
            Err(error) if is_absent(&error) => Ok(Some(false)),
            Err(error) => Err(error),
        }
    }

    fn entries(&self, path: &Path) -> io::Result<Vec<String>> {
        let (mut names, mut length) = (Vec::new(), 0_usize);
        for entry in self.root.read_dir(path)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let kind = entry.file_type()?;
            if name.starts_with('.') || !(kind.is_dir() || kind.is_file() || kind.is_symlink()) {
                continue;
            }
            length = length.saturating_add(name.len());
            if length > LONGEST_LISTING {
                return Err(io::Error::new(ErrorKind::FileTooLarge, "too many names"));
            }
            names.push(if kind.is_dir() { name + "/" } else { name });
        }
        names.sort();
        Ok(names)
    }
}

/// The path of these segments, for a file to be written there.
fn writable(segments: &[String]) -> io::Result<PathBuf> {
    safe(segments).filter(|path| path.file_name().is_some()).ok_or_else(|| ErrorKind::PermissionDenied.into())
}

/// The path of these segments; `None` if one of them is none of a plain, visible file. The last may be empty: a
/// directory is asked for with or without the slash behind it.
fn safe(segments: &[String]) -> Option<PathBuf> {
    let (last, before) = match segments.split_last() {
        Some((last, before)) if last.is_empty() => (None, before),
        Some((last, before)) => (Some(last), before),
        None => (None, segments),
    };
    let names = before.iter().chain(last);
    let mut path = PathBuf::new();
    for name in names {
        let odd = name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0']);
        if odd {
            return None;
        }
        path.push(name);
    }
    // An empty path is the directory itself.
    Some(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
}

/// Errors that mean that nothing is there: no such name, or one that leads out of the directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
        || error.kind() == ErrorKind::InvalidFilename
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Each first block of a file had it read and hashed anew.
    #[test]
    fn a_file_that_somebody_is_given_is_not_read_again_and_its_tag_is_known_until_it_is_written() {
        let root = std::env::temp_dir().join(format!("millpond-tagged-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("made");
        let (path, written) = (["file".to_owned()], SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9));
        let write = |text: &str| {
            std::fs::write(root.join("file"), text).expect("written");
            let file = std::fs::File::options().write(true).open(root.join("file")).expect("opened");
            file.set_modified(written).expect("it is ours");
        };
        let directory = Directory::open(&root).expect("it is there");
        let read = || directory.read(&path, 100).expect("read");
        let look = || directory.look(&path, 0).expect("looked at");
        write("one");
        let one = FileBody::of(b"one".to_vec());
        let held = read();
        assert_eq!(held, Some(Stored::File(one.clone())));
        // As long, and by its time the same: who does not read it cannot tell.
        write("two");
        assert_eq!(read(), held);
        assert_eq!(look(), Some(Seen::File { length: 3, tag: Some(one.tag()), is_at_hand: true }));
        drop(held);
        assert_eq!(look(), Some(Seen::File { length: 3, tag: Some(one.tag()), is_at_hand: false }));
        write("three");
        assert_eq!(look(), Some(Seen::File { length: 5, tag: None, is_at_hand: false }));
        // What was written here need not be read.
        directory.write(&path, b"four").expect("written");
        let tag = Some(entity_tag(b"four"));
        assert_eq!(look(), Some(Seen::File { length: 4, tag, is_at_hand: false }));
        let Some(Seen::Directory(length)) = directory.look(&[], 1_000).expect("looked at") else { panic!("it is one") };
        assert!((33..100).contains(&length), "{length}");
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
