//! The rights that an emulation needs: those of root, or of root in a user namespace.

use std::{
    ffi::CString,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use rustix::thread::{CapabilitySet, capabilities};

use crate::Error;

/// The variable that says to the program in its user namespace that it is there.
pub const MARK: &str = "MILLPOND_IN_USER_NAMESPACE";

/// Whether this process may make namespaces.
fn is_root() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN))
}

/// Sees to the rights. `None`: this process has them. Otherwise the same program was started once more, with the same
/// arguments, as root of a user namespace; it does everything, and ends when this process does.
///
/// # Errors
/// This machine lets nobody make user namespaces.
#[expect(unsafe_code, reason = "a user namespace is entered between fork and exec")]
pub fn enter() -> Result<Option<Child>, Error> {
    if is_root() {
        return Ok(None);
    }
    if std::env::var_os(MARK).is_some() {
        return Err(Error::Namespaces(io::ErrorKind::PermissionDenied.into()));
    }
    let mut arguments = arguments().map_err(Error::system("/proc/self/cmdline"))?.into_iter();
    let map = |inside: u32, outside: u32| CString::new(format!("{inside} {outside} 1")).unwrap_or_default();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let files = [
        (c"/proc/self/setgroups", c"deny".to_owned()),
        (c"/proc/self/uid_map", map(0, uid)),
        (c"/proc/self/gid_map", map(0, gid)),
    ];
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(MARK, "1");
    let entering = move || {
        // SAFETY: signal-safe calls alone, on text that was made before the fork.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::unshare(libc::CLONE_NEWUSER) != 0 {
                return Err(io::Error::last_os_error());
            }
            for (file, text) in &files {
                let open = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let length = text.as_bytes().len();
                if open < 0 || libc::write(open, text.as_ptr().cast(), length) != length as isize {
                    return Err(io::Error::last_os_error());
                }
                libc::close(open);
            }
        }
        Ok(())
    };
    // SAFETY: what runs between fork and exec is safe there, see above.
    unsafe { command.pre_exec(entering) };
    command.spawn().map(Some).map_err(Error::Namespaces)
}

/// The arguments of this process as it was started, the interpreter's too if there is one.
fn arguments() -> io::Result<Vec<std::ffi::OsString>> {
    use std::os::unix::ffi::OsStringExt;
    let line = std::fs::read("/proc/self/cmdline")?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    Ok(line.split(|byte| *byte == 0).map(|word| std::ffi::OsString::from_vec(word.to_vec())).collect())
}
