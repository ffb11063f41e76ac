//! Servers that end, or are killed, and others in their place that go on.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use millpond_coap::message::{Code, Message, Uint, number};
use millpond_live::database::redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use crate::program::{command, fresh_directory, millpond, signal};
use crate::protected::{file, pair, relay};

/// A server at a socket that is bound already, and that another has at the same time (sd_listen_fds(3)).
fn serving(socket: &UdpSocket, flags: &[&str]) -> Serving {
    let port = socket.local_addr().expect("it is bound").port().to_string();
    let passed: OwnedFd = socket.try_clone().expect("a socket").into();
    let mut child = Command::new("sh")
        .args(["-c", "exec 3<&0 </dev/null; LISTEN_PID=$$ exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_millpond"), "serve", "--quiet", "--bind", "127.0.0.1", "--port", &port])
        .args(flags)
        .env("LISTEN_FDS", "1")
        .stdin(Stdio::from(passed))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("where it listens");
    assert!(line.starts_with("listening on coap://"), "{line}");
    Serving(child)
}

/// Waits until it is written that somebody observes.
fn until_kept(state: &str) {
    let table = TableDefinition::<&[u8], &[u8]>::new("observers 1");
    let (state, copy) = (Path::new(state), Path::new(state).with_extension("copy"));
    loop {
        std::fs::copy(state, &copy).expect("it is there");
        // A copy that was made while it was written may be none.
        let count = || Database::open(&copy).ok()?.begin_read().ok()?.open_table(table).ok()?.len().ok();
        if count().is_some_and(|count| count > 0) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// One that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Observes `/count`: a number that goes up.
struct Observing {
    child: Child,
    states: Lines<BufReader<ChildStdout>>,
}

impl Observing {
    fn of(uri: &str, flags: &[&str]) -> Self {
        let mut child = command(&[&["observe"], flags, &[uri]].concat()).spawn().expect("the program is built");
        let states = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, states }
    }

    /// Waits for so many states.
    fn takes(&mut self, count: usize) {
        let states = self.states.by_ref().take(count).map(|state| state.expect("UTF-8").parse::<u64>());
        assert_eq!(states.filter(Result::is_ok).count(), count);
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that it is over, also where the test fails.
struct Ending<'t>(&'t AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until a server has notified twice since there were so many datagrams. None of the server before is under way then.
fn until_notified(seen: &Mutex<Vec<(usize, Vec<u8>)>>, since: usize) {
    let notifies = |(side, datagram): &&(usize, Vec<u8>)| {
        let message = Message::parse(datagram).expect("a message");
        *side == 1 && message.code.is_success() && message.option(number::OBSERVE).is_some()
    };
    while seen.lock().expect("unpoisoned").iter().skip(since).filter(notifies).count() < 2 {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Registrations among these datagrams, each one once, however often it was sent.
fn registrations(seen: &[(usize, Vec<u8>)]) -> usize {
    let registers = |datagram: &[u8]| {
        let message = Message::parse(datagram).expect("a message");
        let observe = message.option(number::OBSERVE).and_then(Uint::read);
        (matches!(message.code, Code::GET | Code::FETCH) && observe == Some(0)).then_some(message.id.0)
    };
    let of_client = seen.iter().filter(|(side, _)| *side == 0);
    of_client.filter_map(|(_, datagram)| registers(datagram)).collect::<BTreeSet<_>>().len()
}

/// A server in the clear and one under OSCORE: with each of two contexts of clients.
fn kinds(name: &str) -> [(String, Vec<String>, [Vec<String>; 2]); 2] {
    let state = |kind: &str| {
        let directory = fresh_directory(&format!("{name}-{kind}"));
        file(&directory, "state")
    };
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (_, [one, of_one]) = pair(&format!("{name}-one"));
    let (_, [two, of_two]) = pair(&format!("{name}-two"));
    let contexts = words(&["--oscore", &of_one, "--oscore", &of_two]);
    [
        (state("plain"), Vec::new(), [Vec::new(), Vec::new()]),
        (state("protected"), contexts, [words(&["--oscore", &one]), words(&["--oscore", &two])]),
    ]
}

#[test]
fn whoever_observes_at_a_server_that_is_killed_is_told_by_the_next_one_without_asking_again() {
    for (state, flags, [client, _]) in kinds("killed") {
        let flags: Vec<&str> = ["--state", &state].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let client: Vec<&str> = client.iter().map(String::as_str).collect();
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (relayed, seen) = relay(&socket.local_addr().expect("it is bound").port().to_string());
        let mut server = serving(&socket, &flags);
        let mut observing = Observing::of(&format!("coap://127.0.0.1:{relayed}/count"), &client);
        for _ in 0..3 {
            observing.takes(4);
            until_kept(&state);
            drop(server);
            let since = seen.lock().expect("unpoisoned").len();
            server = serving(&socket, &flags);
            until_notified(&seen, since);
        }
        drop(server);
        assert_eq!(registrations(&seen.lock().expect("unpoisoned")), 1, "{flags:?}");
    }
}

/// One after the other: what comes between waits in the socket, which both were given.
#[test]
fn one_server_after_the_other_at_one_address_answers_every_request_and_tells_every_observer() {
    for (state, flags, [client, other]) in kinds("rolling") {
        let flags: Vec<&str> = ["--state", &state].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let [client, other] = [&client, &other].map(|flags| flags.iter().map(String::as_str).collect::<Vec<_>>());
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("it is bound").port().to_string();
        let (relayed, seen) = relay(&port);
        let mut server = serving(&socket, &flags);
        let mut observing = Observing::of(&format!("coap://127.0.0.1:{relayed}/count"), &client);
        observing.takes(4);

        // Not both at a time.
        let second = millpond(&[&["serve", "--bind", "127.0.0.1", "--port", "0"], &flags[..]].concat());
        assert_eq!(second.code, Some(2));
        let told = if client.is_empty() { "another program has it open" } else { "in use by another process" };
        assert!(second.err.contains(told) && second.err.lines().count() == 1, "{}", second.err);

        let (is_over, uri) = (AtomicBool::new(false), format!("coap://127.0.0.1:{port}/hello"));
        thread::scope(|scope| {
            let ending = Ending(&is_over);
            let asking = scope.spawn(|| {
                let mut answered = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let got = millpond(&[&["get"], &other[..], &[&uri]].concat());
                    assert_eq!(got.well(), "Hello from Millpond.\n", "request {answered}");
                    answered += 1;
                }
                answered
            });
            for _ in 0..3 {
                signal(&server.0, "TERM");
                assert!(server.0.wait().expect("it ends").success());
                let since = seen.lock().expect("unpoisoned").len();
                server = serving(&socket, &flags);
                until_notified(&seen, since);
                observing.takes(1);
            }
            drop(ending);
            assert!(asking.join().expect("every request is answered") > 0);
        });
        signal(&server.0, "TERM");
        assert!(server.0.wait().expect("it ends").success());
        let seen = seen.lock().expect("unpoisoned");
        assert_eq!(registrations(&seen), 1, "{flags:?}");
        // Nobody was told an end.
        let is_error = |datagram: &[u8]| Message::parse(datagram).is_ok_and(|message| message.code.class() > 2);
        assert!(!seen.iter().any(|(side, datagram)| *side == 1 && is_error(datagram)));
    }
}

#[test]
fn a_file_that_is_something_else_is_one_line() {
    let directory = fresh_directory("state-malformed");
    let state = file(&directory, "state");
    std::fs::File::create(&state).and_then(|mut file| file.write_all(b"observers")).expect("written");
    let refused = millpond(&["serve", "--bind", "127.0.0.1", "--port", "0", "--state", &state]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.starts_with(&format!("millpond: --state: {state}: ")), "{}", refused.err);
    assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    let several = ["serve", "--bind", "127.0.0.1", "--port", "0", "--workers", "2", "--state", &state];
    let refused = millpond(&several);
    assert!(refused.err.contains("--state: knows observers of a single worker"), "{}", refused.err);
    assert!(Path::new(&state).exists());
}
