//! Help, and the one line and the exit code that every mistake gets.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn millpond(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(arguments)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("the program is built")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// The line that a mistake gets, and the exit code.
fn refused(arguments: &[&str]) -> (String, Option<i32>) {
    let output = millpond(arguments);
    let told = text(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{arguments:?} said\n{told}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed {}", text(&output.stdout));
    let line = told.trim_end().strip_prefix("millpond: ").unwrap_or_else(|| panic!("{arguments:?}: {told}"));
    (line.to_owned(), output.status.code())
}

/// `MILLPOND_HELP=write cargo test -p millpond-cli --test usage` writes the files anew.
#[test]
fn help_is_as_it_was_read_over() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let mut verbs: Vec<String> = millpond_cli::verbs().into_iter().map(|(name, _)| name).collect();
    verbs.insert(0, String::new());
    for verb in verbs {
        let output = if verb.is_empty() { millpond(&["--help"]) } else { millpond(&[&verb, "--help"]) };
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        let file = directory.join(if verb.is_empty() { "millpond.txt".to_owned() } else { format!("{verb}.txt") });
        if std::env::var_os("MILLPOND_HELP").is_some_and(|how| how == "write") {
            std::fs::write(&file, help).expect("written");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(kept, help, "{} is not what the program says", file.display());
        assert!(help.contains("Usage:") && (verb.is_empty() || help.contains("Examples:")), "{verb}:\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{verb}:\n{help}");
    }
}

#[test]
fn every_verb_stands_in_one_group_of_the_help() {
    let grouped: Vec<_> = millpond_cli::GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
    let verbs: Vec<_> = millpond_cli::verbs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(grouped, verbs);
}

#[test]
fn a_word_that_is_no_verb_gets_the_nearest_or_the_place_where_it_is() {
    for (verb, part) in [
        ("gte", "unknown verb \"gte\": did you mean \"get\"? known: get, put, post"),
        ("reproduec", "did you mean \"reproduce\"?"),
        ("xyzzy", "unknown verb \"xyzzy\": known: get"),
        ("run", "run: the laboratory's verbs (run, sweep, "),
        ("run", "come with the Python package"),
        ("sweeep", "did you mean \"sweep\"?"),
        ("reproduce", ".venv/bin/millpond, which has every verb"),
    ] {
        let (line, code) = refused(&[verb, "x"]);
        assert!(line.contains(part), "{verb}: {line}");
        assert_eq!(code, Some(2), "{verb}");
    }
}

#[test]
fn every_verb_of_the_laboratory_in_the_manual_is_told_where_it_is() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let manual = std::fs::read_to_string(manual).expect("the manual");
    let manual: Vec<_> = manual.split_whitespace().collect();
    let manual = manual.join(" ");
    let (_, listed) = manual.split_once("The verbs of the laboratory (").expect("their list");
    let (listed, _) = listed.split_once(')').expect("its end");
    let verbs: Vec<_> = listed.split('`').skip(1).step_by(2).collect();
    assert!(verbs.contains(&"sweep") && verbs.contains(&"arena"), "{verbs:?}");
    for verb in verbs {
        let (line, code) = refused(&[verb]);
        assert!(line.contains("come with the Python package") && line.contains(verb), "{line}");
        assert_eq!(code, Some(2), "{verb}");
    }
}

#[test]
fn every_bad_flag_is_one_line_that_says_what_would_do() {
    let table: [(&[&str], &str); 39] = [
        (&["get"], "the following required arguments were not provided: <URI>"),
        (&["get", "localhost:x/y"], "invalid value 'localhost:x/y' for '<URI>'"),
        (&["get", "coap://h/", "--output", "f", "--json"], "cannot be used with"),
        (&["get", "http://h/"], "unknown scheme \"http\": known: coap, coap+tcp, coaps, coaps+tcp"),
        (
            &["get", "coap://h/", "--timeot", "1s"],
            "unexpected argument '--timeot' found; a similar argument exists: '--timeout'",
        ),
        (&["get", "coap://h/", "--timeout", "soon"], "invalid value 'soon' for '--timeout <TIME>'"),
        (&["get", "coap://h/", "--timeout", "0"], "must be longer than 0"),
        (&["get", "coap://h/", "--accept", "jsn"], "did you mean \"json\"?"),
        (&["get", "coap://h/", "--controller", "cocoa-3"], "cocoa-03"),
        (&["get", "coap://h/", "--block-size", "100"], "16, 32, 64, 128, 256, 512 or 1024"),
        (&["get", "coap://h/", "--token", "xyz"], "hexadecimal"),
        (&["get", "coap://h/", "--option", "Etga=1"], "did you mean \"ETag\"?"),
        (&["get", "coap://h/", "--option", "observe=0"], "set by the verb observe"),
        (&["get", "coap://h/", "--raw", "--json"], "cannot be used with"),
        (&["get", "coap://h/", "payload"], "unexpected argument 'payload' found"),
        (&["put", "coap://h/", "--content-format", "70000", "x"], "above 65535"),
        (&["observe", "coap://h/", "--count", "0"], "0 is not in 1.."),
        (&["ping", "::1"], "an IPv6 address stands in brackets: [::1]"),
        (&["serve", "--workers", "0"], "between 1 and 256"),
        (&["serve", "--write"], "required arguments were not provided: <DIR>"),
        (
            &["serve", "--bind", "localhost"],
            "invalid value 'localhost' for '--bind <ADDRESS>': neither address nor port",
        ),
        (&["serve", "--metrics", "bare"], "no address with a port; write 127.0.0.1:9100"),
        (&["relay", "none", "--listen", "bare", "--to", "127.0.0.1"], "no address with a port; write 127.0.0.1:9100"),
        (
            &["discover", "--interface", "nope"],
            "--interface: groups cannot be asked by nope: there is no interface nope",
        ),
        (&["get", "coap://127.0.0.1/", "--ack-timeout", "2h"], "--ack-timeout"),
        (&["load", "coap://h/", "--rate", "-1"], "--rate"),
        (&["load", "coap://h/", "--ramp", "1s"], "--rate <R/s>"),
        (&["load", "coap://h/", "--clients", "0"], "between 1 and 20000"),
        (&["load", "coap://h/", "--compare", "fasor,bbr"], "bbr"),
        (&["completions", "tcsh"], "invalid value 'tcsh'"),
        (&["load", "coap://h/", "--method", "gett"], "a similar value exists: 'get'"),
        (&["get", "coaps+tcp://h/", "--key", "k"], "required arguments were not provided: --cert <FILE>"),
        (&["get", "coaps+tcp://h/", "--psk", "me"], "--psk: the pre-shared key: there is no colon; write IDENTITY:KEY"),
        (&["get", "coaps+tcp://h/", "--psk", "me:"], "--psk: the pre-shared key: the key is empty"),
        (&["load", "coaps+tcp://h/", "--psk", "me:0x1"], "behind 0x of the key belong pairs of hexadecimal digits"),
        (&["get", "coaps+tcp://127.0.0.1/", "--psk", "me:key"], "there is only a pre-shared key, which is for coaps"),
        (&["ping", "coaps+tcp://h/", "--insecure", "--ca", "f"], "cannot be used with"),
        (&["serve", "--client-ca", "f"], "required arguments were not provided: --cert <FILE>"),
        (&["serve", "--secure-port", "1"], "required arguments were not provided: <--cert <FILE>|--psk-file <FILE>>"),
    ];
    for (arguments, part) in table {
        let (line, code) = refused(arguments);
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert_eq!(code, Some(2), "{arguments:?}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    for (arguments, part) in [
        (&["put", "coap://127.0.0.1:9/", "@no/such/file"][..], "no/such/file: No such file or directory"),
        (&["serve", "no/such/directory"], "no/such/directory: No such file or directory"),
        (&["serve", "Cargo.toml"], "Cargo.toml: Not a directory"),
        (&["manual", "Cargo.toml/x"], "Cargo.toml/x: Not a directory"),
        (&["get", "--ca", "no/such/ca.pem", "coaps+tcp://h/"], "no/such/ca.pem: there is no such file"),
        (&["observe", "--ca", "Cargo.toml", "coaps+tcp://h/"], "Cargo.toml: is not PEM"),
        (&["ping", "--cert", "Cargo.toml", "coaps+tcp://h/"], "Cargo.toml: is not PEM"),
        (&["load", "--psk-file", "Cargo.toml", "coaps+tcp://h/"], "Cargo.toml: line 1: there is no colon"),
        (&["serve", "--cert", "src"], "src: is a directory"),
    ] {
        let (line, code) = refused(arguments);
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert_eq!(code, Some(1), "{arguments:?}");
    }
}

#[test]
fn without_a_verb_the_help_is_printed_and_the_usage_is_wrong() {
    let output = millpond(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: millpond <COMMAND>"), "{}", text(&output.stderr));
}

#[test]
fn the_version_is_that_of_the_package() {
    let output = millpond(&["--version"]);
    assert_eq!(text(&output.stdout), format!("millpond {}\n", millpond_cli::version()));
    let commit = millpond_cli::commit().map_or_else(String::new, |(commit, _)| format!(" (commit {}", &commit[..12]));
    assert!(millpond_cli::version().starts_with(&format!("{}{commit}", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn every_shell_gets_completions_with_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = millpond(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        for (verb, _) in millpond_cli::verbs() {
            assert!(text(&output.stdout).contains(&verb), "{shell} does not know {verb}");
        }
    }
}

#[test]
fn every_verb_gets_a_page_for_man() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = std::fs::remove_dir_all(&directory);
    let output = millpond(&["manual", directory.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for (verb, _) in millpond_cli::verbs() {
        let page = std::fs::read_to_string(directory.join(format!("millpond-{verb}.1"))).expect(&verb);
        assert!(page.contains(".TH") && page.contains("EXAMPLES") | page.contains("Examples"), "{verb}");
    }
}

#[test]
fn output_that_nobody_reads_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
}

#[test]
fn the_library_is_the_program() {
    assert_eq!(millpond_cli::main_from(["millpond", "get"]), 2);
    assert_eq!(millpond_cli::main_from(["millpond", "--version"]), 0);
    assert!(millpond_cli::verbs().iter().any(|(name, about)| name == "get" && about == "Ask for a resource"));
}
