//! The program as a child: once, or as a server that ends with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What the program said, and its exit code.
pub(crate) struct Said {
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Said {
    /// What was printed, of a program that ended well.
    #[track_caller]
    pub(crate) fn well(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}", self.err);
        std::str::from_utf8(&self.out).expect("UTF-8")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }

    /// Such messages in its trace, each one once, however often it was sent.
    pub(crate) fn traced(&self, what: &str) -> usize {
        self.err.lines().filter(|line| line.contains(what) && !line.contains(", copy ")).count()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self { out: output.stdout, err: String::from_utf8(output.stderr).expect("UTF-8"), code: output.status.code() }
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn millpond(arguments: &[&str]) -> Said {
    command(arguments).output().expect("the program is built").into()
}

/// The program with something on its standard input.
pub(crate) fn fed(arguments: &[&str], input: &[u8]) -> Said {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().expect("the program is built");
    child.stdin.take().expect("it is piped").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}

/// A port that nobody has, over UDP and TCP and either version of IP. It lies below those that systems give to sockets that
/// ask for any, so that no other test takes it before, or while a server that had it starts again.
pub(crate) fn free_port() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ports = (0..20_000).map(|_| 10_000 + (std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000);
    let is_free = |port: &String| {
        let address = format!("[::]:{port}");
        UdpSocket::bind(&address).is_ok() && TcpListener::bind(&address).is_ok()
    };
    ports.map(|port| port.to_string()).find(is_free).expect("a free port")
}

/// A server at a free port of 127.0.0.1.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    base: String,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::with_log(Stdio::null(), "0", arguments)
    }

    /// The same at this port.
    pub(crate) fn start_at(port: &str, arguments: &[&str]) -> Self {
        Self::with_log(Stdio::null(), port, arguments)
    }

    /// With a pipe as its standard error, which nobody reads.
    pub(crate) fn with_unread_log(arguments: &[&str]) -> Self {
        Self::with_log(Stdio::piped(), "0", arguments)
    }

    fn with_log(log: Stdio, port: &str, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--bind", "127.0.0.1"];
        // With keys or a certificate the port for security is the only one.
        if !arguments.iter().any(|argument| matches!(*argument, "--cert" | "--psk-file")) {
            all.extend(["--port", port]);
        }
        all.extend(arguments);
        let mut child = command(&all).stderr(log).spawn().expect("the program is built");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let base = line.trim_end().strip_prefix("listening on ").expect("a URI").to_owned();
        Self { child, out, base }
    }

    /// The URI of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Where it says that it listens for this scheme.
    pub(crate) fn listening(&mut self, scheme: &str) -> String {
        let wanted = format!("{scheme}://127.0.0.1:");
        let mut base = self.base.clone();
        while !base.starts_with(&wanted) {
            let line = self.line();
            base = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        }
        base
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it is not gone");
        line.trim_end().to_owned()
    }

    /// Bytes that it has read of files so far.
    #[cfg(target_os = "linux")]
    pub(crate) fn bytes_read(&self) -> u64 {
        let counted = std::fs::read_to_string(format!("/proc/{}/io", self.child.id())).expect("it runs");
        let read = counted.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("Linux counts them");
        read.parse().expect("a number")
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Asks it to end, as a terminal or an operating system does; what it printed besides, and its exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        signal(&self.child, "TERM");
        let status = self.child.wait().expect("it ends");
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("UTF-8");
        (rest, status.code())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// A directory of the test's own. What an earlier run left is taken away.
pub(crate) fn fresh_directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a temporary directory");
    path
}
