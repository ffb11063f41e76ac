//! The program over TLS, and what is said of keys and certificates that will not do.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ED25519};

use crate::program::{Server, fresh_directory, millpond};

/// Files of PEM: an authority, a certificate with its key, and a key of none.
pub(crate) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let files = Self { directory: fresh_directory(name) };
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        files.write("ca.pem", &params.self_signed(&key).expect("signed").pem());
        let authority = Issuer::new(params, key);
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let (params, key) = (CertificateParams::new(names).expect("names"), KeyPair::generate().expect("a key"));
        let certificate = params.signed_by(&key, &authority).expect("signed").pem();
        files.write("cert.pem", &certificate);
        files.write("cert.key", &key.serialize_pem());
        files.write("both.pem", &format!("{certificate}{}", key.serialize_pem()));
        files.write("other.key", &KeyPair::generate().expect("a key").serialize_pem());
        files
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).expect("written");
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().expect("UTF-8").to_owned()
    }
}

/// A server with these flags beside its certificate, and its URI over TLS.
pub(crate) fn secure(files: &Files, more: &[&str]) -> (Server, String) {
    let (certificate, key) = (files.path("cert.pem"), files.path("cert.key"));
    let mut flags = vec!["--cert", &certificate, "--key", &key, "--secure-port", "0"];
    flags.extend(more);
    let mut server = Server::start(&flags);
    let base = server.listening("coaps+tcp");
    (server, base)
}

#[test]
fn a_pre_shared_key_opens_coaps() {
    let files = Files::new("secure_psk");
    files.write("server.psk", "# ours\nme:0x6b6579\n");
    files.write("client.psk", "me:key\n");
    let mut server = Server::start(&["--psk-file", &files.path("server.psk"), "--secure-port", "0"]);
    let base = server.listening("coaps");
    let uri = format!("{base}/hello");
    let said = millpond(&["get", "--psk-file", &files.path("client.psk"), &uri]);
    assert_eq!(said.well(), "Hello from Millpond.\n");
    let said = millpond(&["observe", "--psk", "me:key", "--count", "2", &format!("{base}/count")]);
    assert_eq!(said.well().lines().count(), 2);
    let said = millpond(&["discover", "--psk", "me:key", &base]);
    assert!(said.well().contains("</hello>"), "{}", said.well());
}

#[test]
fn a_key_that_dtls_cannot_use_still_serves_tls() {
    let files = Files::new("secure_ed25519");
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
    files.write("cert.pem", &params.self_signed(&key).expect("signed").pem());
    files.write("cert.key", &key.serialize_pem());
    let (mut server, base) = secure(&files, &[]);
    let said = millpond(&["get", "--insecure", &format!("{base}/hello")]);
    assert_eq!(said.well(), "Hello from Millpond.\n");
    let line = server.line();
    assert!(line.starts_with("no coaps: "), "{line}");
}

#[test]
fn all_verbs_go_over_tls() {
    let files = Files::new("secure_verbs");
    let (_server, base) = secure(&files, &[]);
    let ca = files.path("ca.pem");
    let said = millpond(&["get", "--ca", &ca, &format!("{base}/hello")]);
    assert_eq!(said.well(), "Hello from Millpond.\n");
    let said = millpond(&["post", "--cacert", &ca, &format!("{base}/echo"), "there"]);
    assert_eq!(said.well(), "there");
    let said = millpond(&["observe", "--ca", &ca, "--count", "2", &format!("{base}/count")]);
    assert_eq!(said.well().lines().count(), 2);
    let said = millpond(&["ping", "--ca", &ca, &base]);
    assert!(said.well().contains("answered in"));
    let localhost = base.replace("127.0.0.1", "localhost");
    let said = millpond(&["load", "--json", "--count", "20", "--ca", &ca, &format!("{localhost}/hello")]);
    said.well();
    let said = millpond(&["get", "--insecure", &format!("{base}/hello")]);
    assert_eq!(said.well(), "Hello from Millpond.\n");
}

#[test]
fn a_server_that_is_not_trusted_is_one_line_and_exit_code_8() {
    let (files, others) = (Files::new("secure_ours"), Files::new("secure_others"));
    let (_server, base) = secure(&files, &[]);
    let uri = format!("{base}/hello");
    let peer = base.replace("coaps+tcp://", "");
    let other = others.path("ca.pem");
    for verb in ["get", "observe", "load", "ping"] {
        let said = millpond(&[verb, "--ca", &other, &uri]);
        // A load reports its first failure, whatever that was.
        assert_eq!(said.code, Some(if verb == "load" { 1 } else { 8 }), "{verb}: {}", said.err);
        let line = format!("millpond: no secure session with {peer}: the server's certificate has an issuer");
        assert!(said.err.contains(&line), "{verb}: {}", said.err);
    }
}

#[test]
fn a_server_that_demands_a_certificate_gets_one() {
    let files = Files::new("secure_clients");
    let ca = files.path("ca.pem");
    let (_server, base) = secure(&files, &["--client-ca", &ca]);
    let uri = format!("{base}/hello");
    let said = millpond(&["get", "--ca", &ca, &uri]);
    assert_eq!((said.code, said.err.lines().count()), (Some(8), 1), "{}", said.err);
    assert!(said.err.contains("the server demands a certificate; give one and its key"), "{}", said.err);
    let both = files.path("both.pem");
    assert_eq!(millpond(&["get", "--ca", &ca, "--cert", &both, &uri]).well(), "Hello from Millpond.\n");
}

#[test]
fn files_that_hold_something_else_are_named_with_what_is_wrong() {
    let files = Files::new("secure_files");
    files.write("encrypted.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n");
    files.write("two.psk", "a:1\nb:2\n");
    let path = |name: &str| files.path(name);
    let (certificate, key) = (path("cert.pem"), path("cert.key"));
    for (verb, flags, file, part) in [
        ("get", vec!["--ca", &key], "cert.key", "holds a private key and no certificate"),
        ("serve", vec!["--cert", &certificate], "cert.pem", "holds a certificate and no private key"),
        ("serve", vec!["--cert", &key, "--key", &key], "cert.key", "holds a private key and no certificate"),
        (
            "serve",
            vec!["--cert", &certificate, "--key", &path("other.key")],
            "other.key",
            "does not belong to the certificate",
        ),
        ("serve", vec!["--cert", &certificate, "--key", &path("no.key")], "no.key", "there is no such file"),
        ("get", vec!["--cert", &certificate, "--key", &path("encrypted.key")], "encrypted.key", "is encrypted"),
        ("get", vec!["--psk-file", &path("two.psk")], "two.psk", "holds 2 keys; a client speaks with one"),
    ] {
        let mut all = vec![verb];
        all.extend(&flags);
        if verb == "get" {
            all.push("coaps+tcp://127.0.0.1:9/");
        }
        let said = millpond(&all);
        assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{all:?}: {}", said.err);
        assert!(said.err.starts_with(&format!("millpond: {}: ", path(file))), "{all:?}: {}", said.err);
        assert!(said.err.contains(part), "{all:?}: {}", said.err);
    }
}

#[test]
fn what_cannot_be_reached_resolved_or_bound_is_told_as_without_security() {
    let files = Files::new("secure_unreachable");
    let ca = files.path("ca.pem");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let (both, port) = (files.path("both.pem"), address.port().to_string());
    let said = millpond(&["serve", "--bind", "127.0.0.1", "--cert", &both, "--secure-port", &port]);
    assert!(said.err.contains(&format!("cannot listen on {address}: the port is in use")), "{}", said.err);
    drop(taken);
    let said = millpond(&["get", "--ca", &ca, &format!("coaps+tcp://{address}/")]);
    assert!(said.err.contains(&format!("{address} is unreachable")), "{}", said.err);
    let said = millpond(&["get", "--ca", &ca, "coaps+tcp://no-such-host.invalid/"]);
    assert!(said.err.contains("no-such-host.invalid does not resolve"), "{}", said.err);
    assert_eq!((said.code, said.err.lines().count()), (Some(7), 1), "{}", said.err);
}

#[test]
fn a_hang_up_makes_the_server_read_its_certificate_again() {
    let (ours, others) = (Files::new("secure_reload"), Files::new("secure_reloaded"));
    let (mut server, base) = secure(&ours, &[]);
    let uri = format!("{base}/hello");
    let trusting = |files: &Files| millpond(&["get", "--ca", &files.path("ca.pem"), &uri]);
    assert_eq!(trusting(&ours).well(), "Hello from Millpond.\n");
    for name in ["cert.pem", "cert.key"] {
        std::fs::copy(others.path(name), ours.path(name)).expect("a file");
    }
    server.signal("HUP");
    loop {
        let line = server.line();
        assert!(!line.is_empty(), "the server has ended");
        if line.starts_with("certificate and keys were read again") {
            break;
        }
    }
    assert_eq!(trusting(&others).well(), "Hello from Millpond.\n");
    assert_eq!(trusting(&ours).code, Some(8));
}
