//! Where programs run: one thread in mount and process namespaces of its own, which starts them. All of them end when the
//! run does, however it ends: the first process of their namespace waits for us to be gone, and with it the kernel ends
//! every other.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    process::{Child, Command},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount},
    thread::{UnshareFlags, unshare_unsafe},
};

use super::namespace::Namespace;
use crate::Error;

/// Where the files that are put over others are made, seen by nobody else.
const WORKSHOP: &str = "/tmp";

type Started = io::Result<Child>;

/// Starts programs, and ends all of them when it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    orders: Option<SyncSender<(usize, Command, SyncSender<Started>)>>,
    thread: Option<JoinHandle<()>>,
    /// The first process of the children's namespace.
    first: i32,
    /// As long as it is open, the first process waits.
    alive: Option<OwnedFd>,
}

impl Keeper {
    /// `hosts` is what names mean inside.
    pub(super) fn new(namespaces: Arc<Mutex<Vec<Namespace>>>, hosts: String) -> Result<Self, Error> {
        let (orders, ordered) = sync_channel(1);
        let (said, says) = sync_channel(1);
        let run = move || match settle(&hosts) {
            Ok((first, alive)) => {
                let _ = said.send(Ok((first, alive)));
                serve(&ordered, &namespaces);
            }
            Err(error) => _ = said.send(Err(error)),
        };
        let thread = thread::Builder::new().name("keeper".to_owned()).spawn(run);
        let thread = thread.map_err(Error::system("no thread could be started"))?;
        let broke_off = |_| Error::System("namespaces", io::Error::other("their thread broke off"));
        let (first, alive) = says.recv().map_err(broke_off)??;
        Ok(Self { orders: Some(orders), thread: Some(thread), first, alive: Some(alive) })
    }

    /// Starts a program in a network namespace.
    pub(super) fn spawn(&self, place: usize, command: Command) -> Started {
        let gone = || io::Error::other("the emulator is ending");
        let (answer, answered) = sync_channel(1);
        self.orders.as_ref().ok_or_else(gone)?.send((place, command, answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

impl Keeper {
    /// Ends every program inside and waits until all are gone. `children` are those that [`Keeper::spawn`] gave: as long as
    /// one is not buried, the kernel lets the first process of their namespace not end.
    pub(super) fn end(mut self, children: &mut [Child]) {
        self.alive = None;
        for child in children {
            // Ended already, or is being ended.
            let _ = child.wait();
        }
        bury(self.first);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The first process ends, and with it the kernel ends all others.
        self.alive = None;
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(ordered: &Receiver<(usize, Command, SyncSender<Started>)>, namespaces: &Mutex<Vec<Namespace>>) {
    for (place, mut command, answer) in ordered {
        let namespaces = namespaces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entered = namespaces.get(place).map_or(Err(io::ErrorKind::NotFound.into()), Namespace::enter);
        drop(namespaces);
        // Children are where the thread is that starts them.
        let _ = answer.send(entered.and_then(|()| command.spawn()));
    }
}

/// Moves this thread into namespaces of its own. Gives the first process of the children's, and what keeps it.
fn settle(hosts: &str) -> Result<(i32, OwnedFd), Error> {
    // SAFETY: descriptors are not unshared, and nobody relies on what this new thread sees of files.
    #[expect(unsafe_code, reason = "descriptors could be unshared with it, which they are not")]
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWPID) }.map_err(|e| Error::Namespaces(e.into()))?;
    let failed = |what| Error::system(what);
    // What is mounted from here on is seen here alone.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| failed("mounts cannot be made private")(error.into()))?;
    put_over("/etc/hosts", hosts).map_err(failed("names cannot be put into /etc/hosts"))?;
    let (waits, alive) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| failed("no pipe could be made")(error.into()))?;
    let first = first_process(&waits, &alive).map_err(failed("no process could be started"))?;
    Ok((first, alive))
}

/// Puts a file of ours over another, for every process in this mount namespace.
fn put_over(path: &str, text: &str) -> io::Result<()> {
    mount("millpond", WORKSHOP, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    let made = format!("{WORKSHOP}/made");
    let put = std::fs::write(&made, text).and_then(|()| Ok(mount_bind(&made, path)?));
    // What is bound stays.
    unmount(WORKSHOP, UnmountFlags::DETACH)?;
    put
}

/// Forks the first process of the children's namespace. It waits until the pipe is closed at our end, or we are gone.
#[expect(unsafe_code, reason = "a process that runs no program cannot be started otherwise")]
fn first_process(waits: &OwnedFd, alive: &OwnedFd) -> io::Result<i32> {
    let (waits, alive) = (waits.as_raw_fd(), alive.as_raw_fd());
    // SAFETY: the child, a copy of one thread of perhaps many, calls nothing but functions that are safe after a fork
    // (signal-safety(7)), allocates nothing, touches no lock, and never returns.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_IGN);
                }
                // Children that were left to it are buried by the kernel.
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                libc::close(alive);
                libc::dup2(waits, 0);
                // A reader of our output shall not wait for this process.
                // By number: musl has no such function.
                libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
                let mut byte = 0_u8;
                while libc::read(0, (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
                libc::_exit(0)
            }
            child => Ok(child),
        }
    }
}

/// Buries the first process, which the kernel lets end when every other is buried.
#[expect(unsafe_code, reason = "a process that runs no program is no Child")]
fn bury(first: i32) {
    // SAFETY: no status is asked for, so nothing is written.
    while unsafe { libc::waitpid(first, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
