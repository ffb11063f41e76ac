//! Files that are there whole or as they were before.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Puts these bytes in the place of a file, by way of a draft beside it: if there is no room for them the file is what it was.
/// What is no plain file, such as a pipe, is written to as it is, and so is a file whose directory takes no other.
///
/// # Errors
/// What the system says.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // Of a link it is the file behind it.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let before = match fs::metadata(&target) {
        Ok(before) if before.is_file() => Some(before),
        // A link to nothing is one all the same, and stays.
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(file).is_err() => None,
        _ => return fs::write(file, bytes),
    };
    if before.as_ref().is_some_and(|before| before.permissions().readonly()) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let made = beside(&target, 0.., |draft| OpenOptions::new().write(true).create_new(true).open(draft));
    let (draft, mut written) = match made {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && before.is_some() => return fs::write(file, bytes),
        opened => opened?,
    };
    let put = written.write_all(bytes).and_then(|()| match before {
        Some(before) => written.set_permissions(before.permissions()),
        None => Ok(()),
    });
    drop(written);
    let put = put.and_then(|()| fs::rename(&draft, &target));
    if put.is_err() {
        // What it says is why it was not put there.
        let _ = fs::remove_file(&draft);
    }
    put
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
        write(&directory.join("file"), b"whole").expect("written beside it");
        assert_eq!(fs::read(directory.join("file")).expect("there"), b"whole");
        assert_eq!(fs::read_dir(&directory).expect("there").count(), 2, "what was left, and the file");
        fs::remove_dir_all(&directory).expect("removed");
    }
}
