//! Programs that systemd starts: told of what they do, and a gateway with sockets that are bound already.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::{fresh_directory, signal};

/// A file with these addresses for CoAP and for HTTP.
fn file(folder: &Path, coap: &UdpSocket, http: &TcpListener) -> PathBuf {
    let (coap, http) = (coap.local_addr().expect("it is bound"), http.local_addr().expect("it is bound"));
    let file = folder.join("gateway.toml");
    let text = format!("[listen]\ncoap = [\"{coap}\"]\nhttp = [\"{http}\"]\n[directory]\n");
    std::fs::write(&file, text).expect("it can be written");
    file
}

/// A gateway that gets these sockets as systemd passes them, and what it tells.
fn started(folder: &Path, file: &Path, coap: &UdpSocket, http: &TcpListener) -> (Child, UnixDatagram) {
    let told = UnixDatagram::bind(folder.join("notify")).expect("a name");
    told.set_nonblocking(true).expect("a socket");
    let passed: [OwnedFd; 2] = [coap.try_clone().expect("a socket").into(), http.try_clone().expect("a socket").into()];
    let [coap, http] = passed.map(Stdio::from);
    let child = Command::new("sh")
        .args(["-c", "exec 3<&0 4<&1 </dev/null >/dev/null; LISTEN_PID=$$ exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_millpond"), "gateway", "--quiet"])
        .arg(file)
        .env("LISTEN_FDS", "2")
        .env("NOTIFY_SOCKET", folder.join("notify"))
        .stdin(coap)
        .stdout(http)
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    (child, told)
}

/// What it tells next.
fn heard(gateway: &mut Child, told: &UnixDatagram) -> String {
    let mut words = [0; 200];
    loop {
        let has_ended = gateway.try_wait().expect("a child").is_some();
        match told.recv(&mut words) {
            Ok(length) => return String::from_utf8_lossy(&words[..length]).into_owned(),
            Err(_) => assert!(!has_ended, "it has ended"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_gateway_answers_what_came_before_it_and_tells_what_it_does() {
    let folder = fresh_directory("supervised");
    let coap = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let http = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
    client.connect(coap.local_addr().expect("it is bound")).expect("an address");
    // A ping waits in the socket until somebody reads it.
    client.send(&[0x40, 0, 0, 7]).expect("it is sent");
    let file = file(&folder, &coap, &http);
    let (mut gateway, told) = started(&folder, &file, &coap, &http);
    assert_eq!(heard(&mut gateway, &told), "READY=1");
    let mut answer = [0; 16];
    let length = client.recv(&mut answer).expect("it is answered");
    assert_eq!(answer[..length], [0x70, 0, 0, 7]);
    let mut page = TcpStream::connect(http.local_addr().expect("it is bound")).expect("it listens");
    page.write_all(b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    page.read_to_string(&mut answer).expect("UTF-8");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    reads_again_and_ends(gateway, &told);
}

/// Whether it tells that it reads its files again, and that it ends.
fn reads_again_and_ends(mut program: Child, told: &UnixDatagram) {
    signal(&program, "HUP");
    let line = heard(&mut program, told);
    let time = line.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
    assert!(time.is_some_and(|time| time.parse::<u64>().is_ok()), "{line}");
    assert_eq!(heard(&mut program, told), "READY=1");
    signal(&program, "TERM");
    assert_eq!(heard(&mut program, told), "STOPPING=1");
    assert!(program.wait().expect("it ends").success());
}

#[test]
fn a_server_tells_what_it_does() {
    let folder = fresh_directory("supervised-server");
    let (rights, name) = (folder.join("rights.toml"), folder.join("notify"));
    let readers = "[[rule]]\nnetwork = \"127.0.0.0/8\"\npaths = { \"/**\" = [\"GET\"] }\n";
    std::fs::write(&rights, readers).expect("it can be written");
    let told = UnixDatagram::bind(&name).expect("a name");
    told.set_nonblocking(true).expect("a socket");
    let mut server = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["serve", "--quiet", "--bind", "127.0.0.1", "--port", "0", "--rights"])
        .arg(rights)
        .env("NOTIFY_SOCKET", &name)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program is built");
    assert_eq!(heard(&mut server, &told), "READY=1");
    reads_again_and_ends(server, &told);
}

#[test]
fn a_socket_at_which_nothing_listens_is_refused() {
    let folder = fresh_directory("passed-in-excess");
    let coap = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let http = TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = file(&folder, &UdpSocket::bind("127.0.0.1:0").expect("a port"), &http);
    let (gateway, _told) = started(&folder, &file, &coap, &http);
    let ended = gateway.wait_with_output().expect("it ends");
    let line = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && line.contains("was passed, and nothing listens there"), "{line}");
    assert!(line.contains(&coap.local_addr().expect("it is bound").to_string()), "{line}");
}
