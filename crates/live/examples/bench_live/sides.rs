//! The servers that are measured, and how each is started.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use millpond_coap::message::{Code, Uint};

use crate::{Arguments, Failure, PATH, PAYLOAD, STATE, generator::BLOCK, secured::KEY, serving::MEBIBYTE};

/// One server.
#[derive(Debug)]
pub(crate) struct Side {
    /// Its name.
    pub(crate) name: &'static str,
    program: PathBuf,
    /// What stands before the port, and behind it.
    before: Vec<String>,
    behind: Vec<String>,
    /// How long it is asked before anything is measured: as long as it still becomes faster.
    pub(crate) warm_up: Duration,
    /// What must be done before `/bench` is there.
    pub(crate) prepare: fn(SocketAddr) -> Result<(), Failure>,
    /// It speaks CoAP.
    pub(crate) is_server: bool,
}

impl Side {
    fn new(name: &'static str, program: impl Into<PathBuf>, before: &[&str], behind: &[&str]) -> Self {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Self {
            name,
            program: program.into(),
            before: words(before),
            behind: words(behind),
            warm_up: Duration::from_millis(500),
            prepare: |_| Ok(()),
            is_server: true,
        }
    }

    /// A command of the shell, in which `$0` is the port.
    pub(crate) fn in_shell(name: &'static str, command: &str) -> Self {
        Self::new(name, "sh", &["-c", command], &[])
    }

    /// Of one of `interop/peers`: with all that is measured.
    fn with_all(mut self) -> Self {
        self.before.iter_mut().filter(|word| *word == "serve").for_each(|word| "measured".clone_into(word));
        self
    }

    /// How it is started.
    pub(crate) fn command(&self, port: u16) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).arg(port.to_string()).args(&self.behind);
        command
    }
}

/// The bare loop.
pub(crate) fn floor() -> Result<Side, Failure> {
    Ok(Side { is_server: false, ..Side::new("recvfrom, sendto", std::env::current_exe()?, &["floor"], &[]) })
}

/// The bare loop with many datagrams in a call, where there are such calls.
pub(crate) fn batched_floor() -> Result<Option<Side>, Failure> {
    let program = std::env::current_exe()?;
    let side = Side { is_server: false, ..Side::new("recvmmsg, sendmmsg", program, &["batched-floor"], &[]) };
    Ok(cfg!(target_os = "linux").then_some(side))
}

/// Our server, bound to all addresses.
pub(crate) fn ours_at_all() -> Result<Side, Failure> {
    Ok(Side::new("millpond, 0.0.0.0", std::env::current_exe()?, &["serve-all"], &[]))
}

/// Our server.
pub(crate) fn ours() -> Result<Side, Failure> {
    Ok(Side::new("millpond", std::env::current_exe()?, &["serve"], &[]))
}

/// Our server, under OSCORE.
pub(crate) fn ours_protected() -> Result<Side, Failure> {
    Ok(Side::new("under OSCORE", std::env::current_exe()?, &["serve-protected"], &[]))
}

/// aiocoap's server under OSCORE, with the context in this directory, where it is installed and wanted.
pub(crate) fn aiocoap_protected(arguments: &Arguments, context: &Path) -> Option<Side> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (python, peer) = (root.join(".tools/interop/venv/bin/python"), root.join("interop/peers/aiocoap_protected.py"));
    if !arguments.wants_beside("aiocoap") || !is_there(&python) {
        return None;
    }
    let side = Side::new("aiocoap, OSCORE", python, &[&peer.to_string_lossy(), "serve"], &[&context.to_string_lossy()]);
    Some(Side { warm_up: Duration::from_secs(2), ..side })
}

/// libcoap's server under OSCORE, with the context in this file, where `interop/libcoap-from-source` has built it and it is wanted.
pub(crate) fn libcoap_protected(arguments: &Arguments, context: &Path) -> Option<Side> {
    let scratch = std::env::var_os("LIBCOAP_SCRATCH").map(PathBuf::from);
    let program = scratch.unwrap_or_else(|| std::env::temp_dir().join("millpond-libcoap")).join("build/coap-server");
    if !arguments.wants_beside("libcoap") || !is_there(&program) {
        return None;
    }
    let context = context.to_string_lossy();
    let before = ["-A", "127.0.0.1", "-d", "10", "-v", "0", "-E", &context, "-p"];
    Some(Side { prepare: put_bench, ..Side::new("libcoap, OSCORE", program, &before, &[]) })
}

/// Under what messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Udp,
    Tcp,
    Dtls,
}

/// Those that speak so: ours, and the others that are installed and wanted, each with all that is measured beside `/bench`. Those
/// that do not are named in a line each.
pub(crate) fn speaking(arguments: &Arguments, over: Over) -> Result<Vec<Side>, Failure> {
    let mut all = vec![Side::new("millpond", std::env::current_exe()?, &["serve-measured"], &[])];
    for side in others(arguments) {
        let without = match (side.name, over) {
            ("node-coap", Over::Tcp | Over::Dtls) => "which speaks UDP alone",
            ("coap-rs", Over::Tcp) => "which has no TCP",
            ("coap-rs", Over::Dtls) => "which interop/install builds without DTLS",
            ("aiocoap", Over::Dtls) => "whose DTLS, tinydtls, refuses the handshake of this program's",
            _ => "",
        };
        match side.name {
            name if !without.is_empty() => println!("left out: {name}, {without}"),
            // Ways of one server to know duplicates.
            CALIFORNIUM_BY_PEER => {}
            // It tells observers only of what was put.
            "coap-rs" => all.push(Side { prepare: |server| put(server, STATE), ..side.with_all() }),
            "libcoap" if over == Over::Dtls => {
                for (name, program) in
                    [("libcoap, OpenSSL", "coap-server-openssl"), ("libcoap, GnuTLS", "coap-server-gnutls")]
                {
                    let before = ["-A", "127.0.0.1", "-d", "10", "-v", "0", "-k", KEY, "-p"];
                    match is_there(Path::new(program)) {
                        true => all.push(Side { prepare: put_all, ..Side::new(name, program, &before, &[]) }),
                        false => println!("left out: {name}, which is not installed"),
                    }
                }
            }
            "libcoap" => all.push(Side { prepare: put_all, ..side }),
            _ => all.push(side.with_all()),
        }
    }
    Ok(all)
}

/// What [`MARK_AND_SWEEP`] is called in the table.
pub(crate) const CALIFORNIUM_BY_PEER: &str = "Californium, by peer";
/// Keeps what came from a peer lately, a bounded number for each; not Californium's default.
const MARK_AND_SWEEP: &str = "PEERS_MARK_AND_SWEEP";

/// The others that are installed and wanted. Those that are not installed are named in a line each.
pub(crate) fn others(arguments: &Arguments) -> Vec<Side> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tools = root.join(".tools/interop");
    let java =
        ["-cp", &format!("{0}:{0}/lib/*", tools.join("californium").display()), "Peer", "serve"].map(str::to_owned);
    let java: Vec<&str> = java.iter().map(String::as_str).collect();
    let (node, peer) = (tools.join("node/peer.js"), root.join("interop/peers/aiocoap_peer.py"));
    let (node, peer) = (node.to_string_lossy(), peer.to_string_lossy());
    let a_while = Duration::from_secs(5);
    let sides = [
        Side {
            prepare: put_bench,
            ..Side::new("libcoap", "coap-server-notls", &["-A", "127.0.0.1", "-d", "10", "-v", "0", "-p"], &[])
        },
        Side { warm_up: a_while, ..Side::new("Californium", "java", &java, &[]) },
        Side { warm_up: a_while, ..Side::new(CALIFORNIUM_BY_PEER, "java", &java, &[MARK_AND_SWEEP]) },
        Side::new("go-coap", tools.join("go/peer"), &["serve"], &[]),
        Side::new("coap-rs", tools.join("coap-rs/release/peer"), &["serve"], &[]),
        Side { warm_up: Duration::from_secs(2), ..Side::new("node-coap", "node", &[&node, "serve"], &[]) },
        Side::new("aiocoap", tools.join("venv/bin/python"), &[&peer, "serve"], &[]),
    ];
    let mut installed = Vec::new();
    for side in sides {
        if !arguments.wants_beside(side.name) {
            continue;
        }
        let needed = match side.name {
            "node-coap" => tools.join("node/node_modules/coap"),
            "Californium" | CALIFORNIUM_BY_PEER => tools.join("californium/Peer.class"),
            _ => side.program.clone(),
        };
        if is_there(&side.program) && is_there(&needed) {
            installed.push(side);
        } else {
            println!("left out: {}, which is not installed (interop/install)", side.name);
        }
    }
    installed
}

/// A file, or a program on the path.
pub(crate) fn is_there(file: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    file.exists() || (file.components().count() == 1 && std::env::split_paths(&path).any(|at| at.join(file).exists()))
}

/// Makes `/bench` on a server that lets its clients make resources.
fn put_bench(server: SocketAddr) -> Result<(), Failure> {
    put(server, PATH).map_err(|_| "the resource to be asked for could not be made".into())
}

/// The same of all that is measured.
fn put_all(server: SocketAddr) -> Result<(), Failure> {
    put_bench(server)?;
    put(server, STATE)?;
    let socket = connected(server)?;
    let blocks = MEBIBYTE.chunks(BLOCK);
    let last = blocks.len() - 1;
    for (number, block) in blocks.enumerate() {
        let [high, low] = (number as u16 + 1).to_be_bytes();
        // Uri-Path is option 11, Block1 option 27.
        let value = Uint::new((number as u32) << 4 | u32::from(number < last) << 3 | 6);
        let mut datagram = [&[0x42, 3, high, low, 1, 1, 0xb8][..], b"mebibyte"].concat();
        datagram.extend([0xd0 | value.len() as u8, 27 - 11 - 13]);
        datagram.extend_from_slice(&value);
        datagram.push(0xff);
        datagram.extend_from_slice(block);
        socket.send(&datagram)?;
        let mut answer = [0; 64];
        socket.recv(&mut answer)?;
        // 2.31, 2.01 or 2.04.
        if !matches!(answer[1], 0x5f | 0x41 | 0x44) {
            return Err(format!("block {number} of what is to be fetched is refused").into());
        }
    }
    Ok(())
}

fn connected(server: SocketAddr) -> Result<UdpSocket, Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.connect(server)?;
    Ok(socket)
}

/// Changes a resource of a server.
fn put(server: SocketAddr, path: &[u8]) -> Result<(), Failure> {
    is_changed(&ask_to_change(server, path)?)
}

/// Asks a server to change a resource.
pub(crate) fn ask_to_change(server: SocketAddr, path: &[u8]) -> Result<UdpSocket, Failure> {
    let socket = connected(server)?;
    let mut datagram = vec![0x40, Code::PUT.to_byte(), 0x77, 1, 0xb0 | path.len() as u8];
    // So that no two are taken for one.
    datagram[2..4].copy_from_slice(&socket.local_addr()?.port().to_be_bytes());
    datagram.extend_from_slice(path);
    datagram.push(0xff);
    datagram.extend_from_slice(PAYLOAD);
    socket.send(&datagram)?;
    Ok(socket)
}

/// Whether it did.
pub(crate) fn is_changed(socket: &UdpSocket) -> Result<(), Failure> {
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer)?;
    match answer.get(1) {
        Some(0x41 | 0x44) if length >= 4 => Ok(()),
        _ => Err("it is not changed".into()),
    }
}
