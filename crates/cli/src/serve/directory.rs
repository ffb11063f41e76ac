//! Files below one directory and nothing else.
//!
//! The directory is opened once, and every name is looked up from there by the operating system with links that lead out
//! of it refused (cap-std), so that no path, however it is written, reaches another file.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::tags::{FileBody, Tag, Version, tag_of};
use crate::draft;

/// Bytes of the names of one directory that are told. As links each of them may take three.
const LONGEST_LISTING: usize = 1 << 20;

/// Bytes of a short file, which is read whole and named by what is in it. A longer one is named without being read.
pub(super) const SHORT: usize = 64 << 10;

/// How often a part of a file is read that changes meanwhile.
const ATTEMPTS: u32 = 8;

/// Bytes of a link beside its name, about.
const LINK: u64 = 32;

/// A directory whose files are served.
#[derive(Debug)]
pub struct Directory {
    root: Dir,
    written: AtomicU64,
    /// One change at a time, with what must hold before it. What is to be written lies ready by then.
    changes: Mutex<()>,
}

/// What stands at a path and was not read yet.
#[derive(Debug)]
pub(super) enum Found {
    File(Box<OpenFile>),
    Directory(PathBuf),
}

/// A file that is open.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    metadata: Metadata,
    /// All of it, once it is read for its tag.
    short: Option<FileBody>,
}

impl OpenFile {
    /// Its version. One that was changed this moment is waited for: what it is called then, nothing else will be called.
    fn version(&mut self) -> io::Result<Version> {
        let version = Version::of(&self.metadata)?;
        let settles_in = version.settles_in();
        if settles_in.is_zero() {
            return Ok(version);
        }
        std::thread::sleep(settles_in);
        self.metadata = self.file.metadata()?;
        Version::of(&self.metadata)
    }

    pub(super) fn length(&self) -> u64 {
        self.metadata.len()
    }

    /// Which bytes of it are read if so much of a long one is wanted.
    pub(super) fn wanted(&self, part_of: impl Fn(u64) -> Range<u64>) -> Range<u64> {
        let length = self.metadata.len();
        if is_long(&self.metadata) { part_of(length) } else { 0..length }
    }

    /// The tag of what is in it.
    ///
    /// # Errors
    /// It is short, and cannot be read.
    pub(super) fn tag(&mut self) -> io::Result<Tag> {
        if is_long(&self.metadata) {
            return Ok(self.version()?.tag());
        }
        let short = match self.short.take() {
            Some(short) => short,
            None => FileBody::of(self.bytes(0..SHORT as u64)?),
        };
        Ok(self.short.insert(short).tag)
    }

    /// What is wanted of it, and the tag of all of it at that time.
    ///
    /// # Errors
    /// It cannot be read, or has more than `limit` bytes; [`ErrorKind::ResourceBusy`] if it changes all the time.
    pub(super) fn read(mut self, limit: usize, part_of: impl Fn(u64) -> Range<u64>) -> io::Result<FileBody> {
        for _ in 0..ATTEMPTS {
            let tag = self.tag()?;
            let total = self.metadata.len();
            if total > limit as u64 {
                return Err(io::Error::new(ErrorKind::FileTooLarge, format!("longer than {limit} bytes")));
            }
            if let Some(short) = self.short {
                return Ok(short);
            }
            let wanted = self.wanted(&part_of);
            let bytes = self.bytes(wanted.clone())?;
            self.metadata = self.file.metadata()?;
            if Version::of(&self.metadata)?.tag() == tag {
                return Ok(FileBody { bytes, tag, start: wanted.start, total });
            }
        }
        Err(io::Error::new(ErrorKind::ResourceBusy, "it is being written"))
    }

    fn bytes(&mut self, wanted: Range<u64>) -> io::Result<Vec<u8>> {
        let length = wanted.end.saturating_sub(wanted.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        self.file.seek(SeekFrom::Start(wanted.start))?;
        (&mut self.file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn is_long(metadata: &Metadata) -> bool {
    metadata.len() > SHORT as u64
}

/// A file that lies ready beside a path, and goes unless it is put there.
#[derive(Debug)]
pub(super) struct Draft {
    root: Dir,
    path: PathBuf,
    draft: PathBuf,
    /// Of what is in it.
    tag: Tag,
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
        Ok(Self { root, written: AtomicU64::new(0), changes: Mutex::new(()) })
    }

    /// What stands at a path given in segments; `None` if nothing does that may be seen.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(super) fn find(&self, segments: &[String]) -> io::Result<Option<Found>> {
        let Some(path) = safe(segments) else { return Ok(None) };
        let Some((file, metadata)) = self.opened(&path)? else { return Ok(None) };
        Ok(Some(if metadata.is_dir() {
            Found::Directory(path)
        } else {
            Found::File(Box::new(OpenFile { file, metadata, short: None }))
        }))
    }

    /// Bytes of the links of a directory, about; they are counted until there are more than `enough`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn length_of_links(&self, path: &Path, enough: u64) -> io::Result<u64> {
        let mut length = 0_u64;
        for entry in self.root.read_dir(path)? {
            length = length.saturating_add(entry?.file_name().len() as u64).saturating_add(LINK);
            if length > enough {
                break;
            }
        }
        Ok(length)
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

    /// What stands at a path given in segments, whole; `None` if nothing does that may be seen.
    ///
    /// # Errors
    /// It cannot be read, or has more than `limit` bytes, or the names in it more than a mebibyte.
    pub fn read(&self, segments: &[String], limit: usize) -> io::Result<Option<Stored>> {
        Ok(match self.find(segments)? {
            Some(Found::File(file)) => Some(Stored::File(file.read(limit, |length| 0..length)?)),
            Some(Found::Directory(path)) => Some(Stored::Directory(self.entries(&path)?)),
            None => None,
        })
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
        Ok(self.put_if(&self.draft(segments, bytes)?, condition)?.map(|(made, _)| made))
    }

    /// Puts a draft where it is for. Whether there was none before, and its tag.
    ///
    /// # Errors
    /// As [`write_if`](Self::write_if).
    pub(super) fn put_if(
        &self,
        draft: &Draft,
        condition: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<Option<(bool, Tag)>> {
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
        // It was changed by getting its name.
        let tag = match self.root.metadata(&draft.path) {
            Ok(metadata) if is_long(&metadata) => Version::of(&metadata)?.tag(),
            _ => draft.tag,
        };
        Ok(Some((!existed, tag)))
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
        Ok(())
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
        let draft = Draft { root, path, draft, tag: tag_of(bytes) };
        file.write_all(bytes)?;
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

    /// The names in a directory.
    pub(super) fn entries(&self, path: &Path) -> io::Result<Vec<String>> {
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
    use super::*;

    /// Each first block of a file had it read and hashed anew.
    #[test]
    fn a_long_file_is_named_without_being_read_and_by_another_name_once_it_was_written() {
        let root = std::env::temp_dir().join(format!("millpond-tagged-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("made");
        let (path, at) = (["file".to_owned()], std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9));
        let write = |length: usize, byte: u8| {
            std::fs::write(root.join("file"), vec![byte; length]).expect("written");
            let file = std::fs::File::options().write(true).open(root.join("file")).expect("opened");
            file.set_modified(at).expect("it is ours");
        };
        let directory = Directory::open(&root).expect("it is there");
        let open = || match directory.find(&path).expect("found") {
            Some(Found::File(file)) => file,
            other => panic!("{other:?}"),
        };
        let long = SHORT + 1;
        write(long, 1);
        let tag = open().tag().expect("known");
        assert_eq!(open().tag().expect("known"), tag);
        let part = open().read(long, |length| 10..length.min(20)).expect("read");
        assert_eq!(part, FileBody { bytes: vec![1; 10], tag, start: 10, total: long as u64 });
        // As long, and as if it had been written at the same time.
        write(long, 2);
        let other = open().tag().expect("known");
        assert_ne!(other, tag);
        let condition = || Ok(open().tag()? == other);
        let draft = |byte| directory.draft(&path, &vec![byte; long]).expect("made");
        let put = directory.put_if(&draft(3), condition).expect("put");
        assert_eq!(put, Some((false, open().tag().expect("known"))), "its tag is told");
        assert_eq!(directory.put_if(&draft(4), condition).expect("not put"), None);
        assert_eq!(open().read(long, |length| 0..length).expect("read").bytes, vec![3; long]);
        // A short one is what is in it.
        write(3, 1);
        let short = FileBody::of(vec![1; 3]);
        assert_eq!(open().tag().expect("read"), short.tag);
        assert_eq!(open().read(3, |_| 1..2).expect("read"), short);
        let Some(Found::Directory(all)) = directory.find(&[]).expect("found") else { panic!("it is one") };
        let length = directory.length_of_links(&all, 1_000).expect("counted");
        assert!((33..100).contains(&length), "{length}");
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
