//! Who may do what at a server, and how often.

use crate::program::{Server, fresh_directory, millpond};
use crate::secure::{Files, secure};

/// Two keys of clients, and what they are called.
fn keys(name: &str) -> Files {
    let files = Files::new(name);
    files.write("server.psk", "sensor-7:one\noperator:two\n");
    files
}

fn status(arguments: &[&str]) -> (Option<i32>, String) {
    let said = millpond(arguments);
    (said.code, said.err.trim_end().to_owned())
}

/// With exit code 4, and this in its line.
#[track_caller]
fn refused(arguments: &[&str], code: &str) {
    let (exit, line) = status(arguments);
    assert!(exit == Some(4) && line.contains(code), "{arguments:?}: {exit:?} {line}");
}

#[test]
fn with_keys_nothing_is_served_in_the_clear_unless_that_is_asked_for() {
    let files = keys("rights_secure_only");
    let psk = files.path("server.psk");
    let mut server = Server::start(&["--psk-file", &psk, "--secure-port", "0"]);
    let secure = server.listening("coaps");
    assert!(server.line().starts_with("nothing in the clear"));
    // At no port of UDP in the clear: the one for security takes no messages that are not.
    let plain = secure.replace("coaps://", "coap://");
    let said = millpond(&["get", "--timeout", "300ms", &format!("{plain}/hello")]);
    assert_eq!(said.code, Some(6), "{}", said.err);
    drop(server);
    let mut server = Server::start(&["--psk-file", &psk, "--secure-port", "0", "--also-plain", "--port", "0"]);
    let plain = server.listening("coap");
    assert_eq!(millpond(&["get", &format!("{plain}/hello")]).well(), "Hello from Millpond.\n");
    for flag in ["--tcp", "--multicast", "--port=0"] {
        let (code, line) = status(&["serve", "--psk-file", &psk, flag]);
        assert_eq!(code, Some(2), "{flag}: {line}");
        assert!(line.contains("in the clear") && line.contains("--also-plain"), "{flag}: {line}");
    }
}

#[test]
fn nobody_changes_anything_in_the_clear_where_clients_can_prove_who_they_are() {
    let files = Files::new("rights_anonymous");
    let (directory, ca) = (fresh_directory("rights_anonymous_files"), files.path("ca.pem"));
    let directory = directory.to_str().expect("UTF-8");
    let flags = ["--client-ca", &ca, "--write", "--also-plain", "--port", "0", directory];
    let (server, secure) = secure(&files, &flags);
    let plain = server.at("");
    assert!(plain.starts_with("coap://"), "{plain}");
    refused(&["put", &format!("{plain}/x"), "forged"], "4.01");
    refused(&["delete", &format!("{plain}/x")], "4.01");
    let both = files.path("both.pem");
    millpond(&["put", "--ca", &ca, "--cert", &both, &format!("{secure}/x"), "ours"]).well();
    assert_eq!(millpond(&["get", &format!("{plain}/x")]).well(), "ours");
}

#[test]
fn a_file_says_who_may_do_what_and_how_often() {
    let files = keys("rights_file");
    files.write(
        "rights.toml",
        "[[rule]]\npsk = \"sensor-*\"\nrate = \"3/h\"\nburst = 3\npaths = { \"/echo\" = [\"PUT\"] }\n\
         [[rule]]\npsk = \"operator\"\npaths = { \"/**\" = [\"*\"] }\n\
         [[rule]]\nnetwork = \"127.0.0.0/8\"\npaths = { \"/hel*\" = [\"GET\"] }\n",
    );
    let (psk, rights) = (files.path("server.psk"), files.path("rights.toml"));
    let flags = ["--psk-file", &psk, "--rights", &rights, "--secure-port", "0", "--also-plain", "--port", "0"];
    let mut server = Server::start(&flags);
    let (plain, secure) = (server.listening("coap"), server.listening("coaps"));
    let (sensor, operator) = ("sensor-7:one", "operator:two");
    let (echo, hello) = (format!("{secure}/echo"), format!("{secure}/hello"));
    millpond(&["put", "--psk", sensor, &echo, "21.5"]).well();
    refused(&["get", "--psk", sensor, &echo], "4.03");
    // A network may as well.
    millpond(&["get", "--psk", sensor, &hello]).well();
    refused(&["put", &format!("{plain}/echo"), "x"], "4.01");
    refused(&["get", &format!("{plain}/.well-known/core")], "4.01");
    millpond(&["get", &format!("{plain}/hello")]).well();
    // What is refused does not count; of three this is the third.
    millpond(&["put", "--psk", sensor, &echo, "21.6"]).well();
    let said = millpond(&["put", "-v", "--psk", sensor, &echo, "21.7"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(said.err.contains("4.29") && said.err.contains("Max-Age: 1"), "{}", said.err);
    for _ in 0..9 {
        millpond(&["post", "--psk", operator, &echo, "x"]).well();
    }
    files.write("rights.toml", "[[rule]]\npsk = \"sensor-7\"\npaths = { \"/hello\" = [\"GET\"] }\n");
    server.signal("HUP");
    while !server.line().contains("rights were read again") {}
    refused(&["post", "--psk", operator, &echo, "x"], "4.03");
    millpond(&["get", "--psk", sensor, &hello]).well();
}

#[test]
fn certificates_have_the_rights_of_their_names() {
    let files = Files::new("rights_certificate");
    files.write("rights.toml", "[[rule]]\ncertificate = \"localhost\"\npaths = { \"/echo\" = [\"GET\", \"POST\"] }\n");
    let (ca, both, rights) = (files.path("ca.pem"), files.path("both.pem"), files.path("rights.toml"));
    let (mut server, tls) = secure(&files, &["--client-ca", &ca, "--rights", &rights]);
    for base in [tls, server.listening("coaps")] {
        let ask =
            |path| ["get".into(), "--ca".into(), ca.clone(), "--cert".into(), both.clone(), format!("{base}{path}")];
        let words: [String; 6] = ask("/echo");
        millpond(&words.each_ref().map(String::as_str)).well();
        let words: [String; 6] = ask("/hello");
        refused(&words.each_ref().map(String::as_str), "4.03");
    }
}

#[test]
fn a_file_of_rights_that_cannot_be_used_is_named_with_the_place() {
    let files = Files::new("rights_wrong");
    files.write("rights.toml", "[[rule]]\nnetwrk = \"::/0\"\n");
    let rights = files.path("rights.toml");
    let (code, line) = status(&["serve", "--port", "0", "--rights", &rights]);
    assert_eq!((code, line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains(&format!("{rights}:2: unknown key `netwrk`: did you mean `network`?")), "{line}");
}
