//! Files that are there whole or as they were before.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// What is to take the place of a file once it is whole, by way of a draft beside it: if there is no room for it the file is
/// what it was. What is no plain file, such as a pipe, is written to as it is, and so is a file whose directory takes no other.
/// Nothing is touched before the first byte, and a draft that is not finished goes.
#[derive(Debug)]
pub(crate) struct Draft {
    file: PathBuf,
    opened: Option<Opened>,
    /// Bytes of it, and how many there may be.
    pub(crate) length: usize,
    limit: usize,
    /// Why it cannot be written.
    pub(crate) failed: Option<io::Error>,
}

#[derive(Debug)]
struct Opened {
    written: File,
    /// Where the draft is, whose place it takes, and the rights that it has then; none where it is written to as it is.
    place: Option<(PathBuf, PathBuf, Option<Permissions>)>,
}

impl Draft {
    /// For this file, of so many bytes at most.
    pub(crate) fn of(file: &Path, limit: usize) -> Self {
        Self { file: file.to_owned(), opened: None, length: 0, limit, failed: None }
    }

    /// It is whole with these bytes, and takes its place.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn put(mut self, last: &[u8]) -> io::Result<()> {
        self.opened()?.write_all(last)?;
        let Some(Opened { written, place: Some((draft, target, rights)) }) = self.opened.take() else { return Ok(()) };
        let put = rights.map_or(Ok(()), |rights| written.set_permissions(rights));
        drop(written);
        let put = put.and_then(|()| fs::rename(&draft, &target));
        if put.is_err() {
            // What it says is why it was not put there.
            let _ = fs::remove_file(&draft);
        }
        put
    }

    fn opened(&mut self) -> io::Result<&mut File> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => Opened::at(&self.file)?,
        };
        Ok(&mut self.opened.insert(opened).written)
    }
}

impl Opened {
    fn at(file: &Path) -> io::Result<Self> {
        let as_it_is = || Ok(Self { written: File::create(file)?, place: None });
        // Of a link it is the file behind it.
        let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let before = match fs::metadata(&target) {
            Ok(before) if before.is_file() => Some(before),
            // A link to nothing is one all the same, and stays.
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(file).is_err() => None,
            _ => return as_it_is(),
        };
        if before.as_ref().is_some_and(|before| before.permissions().readonly()) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        match beside(&target, 0.., |draft| OpenOptions::new().write(true).create_new(true).open(draft)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && before.is_some() => as_it_is(),
            made => {
                let (draft, written) = made?;
                Ok(Self { written, place: Some((draft, target, before.map(|before| before.permissions()))) })
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(Opened { place: Some((draft, ..)), .. }) = &self.opened {
            // Nobody is left to report it to.
            let _ = fs::remove_file(draft);
        }
    }
}

/// The disk is waited for: nobody else does anything meanwhile in a program that asks once.
impl AsyncWrite for Draft {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let limit = self.limit;
        let written = match self.length.saturating_add(bytes.len()) > limit {
            true => Err(io::Error::new(ErrorKind::FileTooLarge, too_long(limit))),
            false => self.opened().and_then(|file| file.write_all(bytes)),
        };
        Poll::Ready(match written {
            Ok(()) => {
                self.length = self.length.saturating_add(bytes.len());
                Ok(bytes.len())
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What is reported of a body that is longer than it may be.
pub(crate) fn too_long(limit: usize) -> String {
    format!("the body is longer than {limit} bytes; raise --max-size to take it")
}

/// Has a draft made beside a file, hidden so that nobody is served half of it, under the first of these numbers that is free:
/// a program that was killed leaves its draft, and its successor may have the same number of a process.
///
/// # Errors
/// What making it fails with, but that its name is taken.
pub(crate) fn beside<F>(
    file: &Path,
    numbers: impl IntoIterator<Item = u64>,
    make: impl Fn(&Path) -> io::Result<F>,
) -> io::Result<(PathBuf, F)> {
    for number in numbers {
        let draft = file.with_file_name(format!(".millpond-{}-{number}", std::process::id()));
        match make(&draft) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((draft, made?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_somebody_left_is_in_nobodys_way() {
        let directory = std::env::temp_dir().join(format!("millpond-drafts-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory");
        let left = directory.join(format!(".millpond-{}-0", std::process::id()));
        fs::write(&left, "half of it").expect("written");
        Draft::of(&directory.join("file"), 5).put(b"whole").expect("written beside it");
        assert_eq!(fs::read(directory.join("file")).expect("there"), b"whole");
        assert_eq!(fs::read_dir(&directory).expect("there").count(), 2, "what was left, and the file");
        fs::remove_dir_all(&directory).expect("removed");
    }
}
