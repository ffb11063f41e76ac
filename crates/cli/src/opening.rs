//! Files that are opened before they are looked at.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// To open a pipe that nobody writes does not wait for anybody.
#[cfg(unix)]
#[allow(clippy::cast_possible_wrap, reason = "a few bits")]
pub(crate) const WITHOUT_WAITING: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// What a socket is opened with, and a device that is not there.
#[cfg(unix)]
pub(crate) const NO_SUCH_DEVICE: i32 = rustix::io::Errno::NXIO.raw_os_error();

/// Opens what is a plain file; `None` if it is anything else, though it was one a moment ago.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn plain(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(WITHOUT_WAITING);
    }
    let file = options.open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_writes_is_no_plain_file_and_keeps_nobody_waiting() {
        let directory = std::env::temp_dir().join(format!("millpond-opening-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("made");
        let (pipe, file) = (directory.join("pipe"), directory.join("file"));
        // An earlier run may have left it.
        let _ = std::fs::remove_file(&pipe);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("POSIX has mkfifo");
        assert!(made.success());
        std::fs::write(&file, "plain").expect("written");
        assert!(plain(&pipe).expect("opened").is_none());
        assert!(plain(&file).expect("opened").is_some());
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
