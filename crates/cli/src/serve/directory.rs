//! Files below one directory and nothing else.
//!
//! The directory is opened once, and every name is looked up from there by the operating system with links that lead out
//! of it refused (cap-std), so that no path, however it is written, reaches another file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

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
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Stored {
    /// A file's bytes.
    File(Vec<u8>),
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

    /// Bytes of the file at a path, or about those of a directory told as links, which are counted until there are more than
    /// `enough`; `None` if nothing is there that may be seen.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn length(&self, segments: &[String], enough: u64) -> io::Result<Option<u64>> {
        let Some(path) = safe(segments) else { return Ok(None) };
        match self.root.metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                let mut length = 0_u64;
                for entry in self.root.read_dir(&path)? {
                    length = length.saturating_add(entry?.file_name().len() as u64).saturating_add(LINK);
                    if length > enough {
                        break;
                    }
                }
                Ok(Some(length))
            }
            Ok(metadata) => Ok(metadata.is_file().then(|| metadata.len())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What stands at a path given in segments; `None` if nothing does that may be seen.
    ///
    /// # Errors
    /// It cannot be read, or has more than `limit` bytes, or the names in it more than a mebibyte.
    pub fn read(&self, segments: &[String], limit: usize) -> io::Result<Option<Stored>> {
        let Some(path) = safe(segments) else { return Ok(None) };
        let metadata = match self.root.metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            return self.entries(&path).map(|names| Some(Stored::Directory(names)));
        }
        // A pipe or a device would keep the reader waiting.
        if !metadata.is_file() {
            return Ok(None);
        }
        let most = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        self.root.open(&path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(io::Error::new(ErrorKind::FileTooLarge, format!("longer than {limit} bytes")));
        }
        Ok(Some(Stored::File(bytes)))
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
        self.drafted(segments, bytes, |path, draft| {
            if !condition()? {
                return Ok(None);
            }
            let existed = match self.root.metadata(path) {
                Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
                Ok(metadata) if metadata.is_file() => true,
                // A pipe, a socket or a device is somebody else's, and is not shown either.
                Ok(_) => return Err(ErrorKind::PermissionDenied.into()),
                Err(error) if is_absent(&error) => false,
                Err(error) => return Err(error),
            };
            self.root.rename(draft, &self.root, path)?;
            Ok(Some(!existed))
        })
    }

    /// Puts a file at a path at which there is nothing, whole or not at all.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::AlreadyExists`] if there is something.
    pub fn create(&self, segments: &[String], bytes: &[u8]) -> io::Result<()> {
        self.drafted(segments, bytes, |path, draft| match self.root.hard_link(draft, &self.root, path) {
            // File systems that know no second name for a file.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                match self.root.symlink_metadata(path) {
                    Ok(_) => Err(ErrorKind::AlreadyExists.into()),
                    Err(_) => self.root.rename(draft, &self.root, path),
                }
            }
            done => done,
        })
    }

    /// Writes a draft beside a path, and has it put there while nothing else changes.
    fn drafted<T>(
        &self,
        segments: &[String],
        bytes: &[u8],
        put: impl FnOnce(&Path, &Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = safe(segments).filter(|path| path.file_name().is_some()).ok_or(ErrorKind::PermissionDenied)?;
        if self.root.metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let numbers = std::iter::repeat_with(|| self.written.fetch_add(1, Ordering::Relaxed));
        let (draft, mut file) = draft::beside(&path, numbers, |draft| {
            self.root.open_with(draft, OpenOptions::new().write(true).create_new(true))
        })?;
        let written = (|| {
            file.write_all(bytes)?;
            drop(file);
            let _alone = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            put(&path, &draft)
        })();
        // It has its name by now, or never will.
        let _ = self.root.remove_file(&draft);
        written
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

/// A name for these bytes that changes when they do.
#[must_use]
pub(super) fn entity_tag(bytes: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish().to_be_bytes()
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
