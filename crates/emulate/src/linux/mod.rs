//! Programs in network namespaces of their own, with the links of a path between them. Linux alone.

mod addresses;
mod bridge;
mod entry;
mod keeper;
mod namespace;
mod netlink;
mod packet;
mod recorder;

use std::{
    io,
    path::PathBuf,
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use millpond_path::Path;

pub use addresses::{End, MOST_DEVICES};
pub use entry::{MARK, enter};
pub use namespace::LEAST_MTU_6;

use crate::{Error, LatenessBound, Reader, Report, Stop, Watch};
use bridge::Bridge;
use keeper::Keeper;
use namespace::{LEAST_MTU_4, Namespace};
use recorder::Recorder;

/// The longest packet of IP.
const MOST_MTU: u32 = 65_535;

/// Forwards a Ctrl-C that a child did not hear.
pub fn interrupt(child: &Child) {
    let process = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    // One that is gone needs none.
    let _ = process.map(|process| rustix::process::kill_process(process, rustix::process::Signal::INT));
}

/// What an emulation is asked for.
#[derive(Clone, Debug)]
pub struct EmulationOptions {
    /// Devices that share the path.
    pub devices: u16,
    /// The longest packet that the interfaces take, in bytes. Below [`LEAST_MTU_6`] there is no IPv6.
    pub mtu: u32,
    /// Where random numbers come from.
    pub seed: u64,
    /// How late it may be; none: what the path demands.
    pub bound: Option<LatenessBound>,
    /// Where packets are written.
    pub capture: Option<PathBuf>,
}

/// Namespaces with a path between them, at work until [`Emulation::end`]. Dropping it ends every program inside.
#[derive(Debug)]
pub struct Emulation {
    keeper: Option<Keeper>,
    stop: Stop,
    watch: Watch,
    run: Option<JoinHandle<Result<Report, Error>>>,
}

impl Emulation {
    /// Makes the namespaces and lets the links work; `reader` is told what arrives. Wants the rights that [`enter`] sees to.
    ///
    /// # Errors
    /// What this machine lacks, with the fix; options and paths that cannot be used.
    pub fn begin(path: &Path, options: &EmulationOptions, reader: Option<Box<dyn Reader>>) -> Result<Self, Error> {
        let &EmulationOptions { devices, mtu, seed, bound, .. } = options;
        if !(LEAST_MTU_4..=MOST_MTU).contains(&mtu) {
            return Err(Error::Mtu(mtu));
        }
        if !(1..=MOST_DEVICES).contains(&devices) {
            return Err(Error::Devices(devices));
        }
        let record = |path: &PathBuf| Recorder::create(path).map_err(|error| Error::File(path.clone(), error));
        let recorder = options.capture.as_ref().map(record).transpose()?;
        let namespaces = End::all(devices).map(|end| Namespace::new(end, mtu)).collect::<Result<Vec<_>, _>>()?;
        let namespaces = Arc::new(Mutex::new(namespaces));
        let keeper = Keeper::new(Arc::clone(&namespaces), addresses::hosts(devices, mtu >= LEAST_MTU_6))?;
        let bridge = Bridge::new(path, seed, bound, namespaces, recorder, reader)?;
        let (stop, watch) = (bridge.stop(), bridge.watch());
        let run = thread::Builder::new().name("links".to_owned()).spawn(move || bridge.run());
        let run = run.map_err(Error::system("no thread could be started"))?;
        Ok(Self { keeper: Some(keeper), stop, watch, run: Some(run) })
    }

    /// Starts a program at one end.
    ///
    /// # Errors
    /// What the operating system says of the program.
    pub fn spawn(&self, end: End, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the emulator is ending");
        self.keeper.as_ref().ok_or_else(gone)?.spawn(end.place(), command)
    }

    /// Whether at the end where this child runs a socket is open that somebody could send to.
    #[must_use]
    pub fn has_socket(child: &Child) -> bool {
        // A child that is gone has none.
        bridge::has_socket(child.id()).unwrap_or(false)
    }

    /// What reports how it stands.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Whether the links work still: only a fault ends them before their time.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_finished())
    }

    /// Ends the links and every program inside, and reports what it came to. `children` are those that were started.
    ///
    /// # Errors
    /// A fault of the links; a capture that cannot be written.
    pub fn end(mut self, children: &mut [Child]) -> Result<Report, Error> {
        self.stop.stop();
        let broke_off = || Error::System("the links", io::Error::other("their thread broke off"));
        let report = self.run.take().ok_or_else(broke_off)?.join().map_err(|_| broke_off())?;
        if let Some(keeper) = self.keeper.take() {
            keeper.end(children);
        }
        report
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.stop();
        drop(self.keeper.take());
        if let Some(run) = self.run.take() {
            let _ = run.join();
        }
    }
}
