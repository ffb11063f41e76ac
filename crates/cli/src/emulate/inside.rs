//! The verb that runs programs behind a path, in network namespaces of their own.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use millpond_emulate::LatenessBound;
use millpond_emulate::linux::{self, Emulation, EmulationOptions, End};
use tokio::time::sleep;

use super::{copies::Copies, paths, told};
use crate::arguments::Emulate;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signalled, no_signals};

/// How often it is looked whether programs have ended.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(10);
/// So often a server is looked at before the command begins without its socket: ten seconds.
const MOST_LOOKS: u32 = 1_000;
/// What a process that was told to terminate ends with, as shells tell it.
const TERMINATED: u8 = 128 + 15;

/// Runs the command behind the path and gives its exit code.
///
/// # Errors
/// What this machine lacks, with the fix; a command that cannot be started; a run that was too late to be believed.
pub async fn emulate(flags: Emulate, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let mut termination = Signalled::to_terminate().map_err(no_signals)?;
    let over = &flags.over;
    let path = paths::read(&over.path)?;
    told::make_room(over)?;
    let failed = |error: millpond_emulate::Error| Failure::Failed(error.to_string());
    if let Some(deputy) = linux::enter().map_err(failed)? {
        // It is in the foreground as we are, and hears Ctrl-C itself.
        return ended(wait(&mut [deputy], interrupt, &mut termination, true).await?.first());
    }
    let mtu = flags.mtu.unwrap_or_else(|| paths::mtu(&path));
    let options = EmulationOptions {
        devices: flags.devices,
        mtu,
        seed: over.seed,
        bound: over.lateness.map(LatenessBound::from_usual),
        capture: flags.capture.clone(),
    };
    let emulation = Emulation::begin(&path, &options, Some(Box::<Copies>::default())).map_err(failed)?;
    if !over.quiet {
        announce(&flags, &path, mtu);
    }
    let mut server = match &flags.server {
        Some(line) => Some(serve(&emulation, line).await?),
        None => None,
    };
    let mut running = Vec::new();
    for number in 1..=flags.devices {
        running.push(start(&emulation, &flags, number)?);
    }
    let live = told::Live::show(emulation.watch(), flags.shell || over.quiet || over.json);
    let codes = wait(&mut running, interrupt, &mut termination, flags.shell).await;
    drop(live);
    if let Some(status) = server.as_mut().and_then(|server| server.try_wait().ok().flatten()) {
        eprintln!("millpond: the server ended before the command did: {status}");
    }
    running.extend(server);
    let report = emulation.end(&mut running).map_err(failed)?;
    let told = told::report(over, &report);
    match (ended(codes?.iter().find(|code| **code != 0)), told) {
        (Ok(()), told) => told,
        (Err(code), Err(Failure::Late(line))) => {
            eprintln!("millpond: {line}");
            Err(code)
        }
        (code, _) => code,
    }
}

fn ended(code: Option<&u8>) -> Result<(), Failure> {
    match code {
        None | Some(0) => Ok(()),
        Some(code) => Err(Failure::Command(*code)),
    }
}

fn announce(flags: &Emulate, path: &millpond_path::Path, mtu: u32) {
    eprintln!(
        "uplink {}; downlink {}; seed {}",
        paths::words(&path.uplink),
        paths::words(&path.downlink),
        flags.over.seed
    );
    let with_ipv6 = mtu >= linux::LEAST_MTU_6;
    let names = |end: End| if with_ipv6 { format!("{}, {}", end.ipv4(), end.ipv6()) } else { end.ipv4().to_string() };
    eprintln!("server is {}, device1 is {}", names(End::Server), names(End::Device(1)));
    if !with_ipv6 {
        eprintln!("IPv4 alone: an MTU of {} B is too short for IPv6 (1280 B)", mtu);
    }
}

/// Starts the server, and waits until somebody could reach it.
async fn serve(emulation: &Emulation, line: &str) -> Result<Child, Failure> {
    let mut command = Command::new("/bin/sh");
    // Standard output is the command's.
    command.args(["-c", line]).stdin(Stdio::null()).stdout(std::io::stderr());
    let started = emulation.spawn(End::Server, own(command));
    let mut server = started.map_err(|error| Failure::of_file("--server: /bin/sh", &error))?;
    for _ in 0..MOST_LOOKS {
        if let Ok(Some(status)) = server.try_wait() {
            return Err(Failure::Failed(format!("--server {line:?} ended before it could be reached: {status}")));
        }
        if Emulation::has_socket(&server) {
            return Ok(server);
        }
        sleep(LOOKED_AT_EVERY).await;
    }
    eprintln!("millpond: --server {line:?} has no socket after 10 s; going on without");
    Ok(server)
}

fn start(emulation: &Emulation, flags: &Emulate, number: u16) -> Result<Child, Failure> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let (program, arguments) = match flags.command.split_first() {
        Some((program, arguments)) => (program.clone(), arguments),
        None => (shell, &[][..]),
    };
    let mut command = Command::new(&program);
    command.args(arguments).env("MILLPOND_DEVICE", number.to_string());
    if flags.devices > 1 {
        command.stdin(Stdio::null());
    }
    if flags.over.json {
        command.stdout(std::io::stderr());
    }
    let started = emulation.spawn(End::Device(number), own(command));
    started.map_err(|error| Failure::of_file(program.display(), &error))
}

/// What we said to ourselves is nobody else's.
fn own(mut command: Command) -> Command {
    command.env_remove(linux::MARK);
    command
}

/// Waits until all have ended, and gives their exit codes. A Ctrl-C at a terminal they hear themselves; one that was sent to
/// this process alone is forwarded to them; the second ends them, unless they are a shell or us once more.
async fn wait(
    running: &mut [Child],
    interrupt: &mut Interrupt,
    termination: &mut Signalled,
    patient: bool,
) -> Result<Vec<u8>, Failure> {
    let mut interrupted = false;
    loop {
        let statuses: Vec<_> = running.iter_mut().map(Child::try_wait).collect::<Result<_, _>>()?;
        if let Some(codes) = statuses.into_iter().map(|status| status.map(code)).collect() {
            return Ok(codes);
        }
        tokio::select! {
            () = sleep(LOOKED_AT_EVERY) => {}
            () = termination.heard() => {
                running.iter_mut().for_each(|child| _ = child.kill());
                return Ok(vec![TERMINATED]);
            }
            () = interrupt.heard() => {
                if !std::io::stdin().is_terminal() {
                    running.iter().for_each(linux::interrupt);
                }
                if interrupted && !patient {
                    return Err(Failure::Stopped);
                }
                interrupted = true;
            }
        }
    }
}

/// The exit code, or as shells tell it what ended the program.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
