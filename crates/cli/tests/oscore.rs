//! Security contexts in files.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond_cli::failure::Failure;
use millpond_cli::oscore::read;
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer};
use millpond_coap::oscore::Context;

/// An empty folder for one test, and the guard that keeps others waiting: a program that one of them starts has a copy of every open file
/// of this process until it runs, and with it the lock of a context that was dropped here in the meantime.
fn folder(name: &str) -> (PathBuf, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oscore").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for tests");
    (folder, alone)
}

fn new(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["oscore", "new"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the program is built")
}

fn line(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8").trim_end()
}

fn made(folder: &Path, arguments: &[&str]) {
    let output = new(folder, arguments);
    assert!(output.status.success(), "{}", line(&output.stderr));
}

/// The line that is told of a file, without its name.
fn refused(path: &Path) -> String {
    let Err(Failure::Usage(told)) = read(path) else { panic!("{} was taken", path.display()) };
    assert_eq!(told.lines().count(), 1);
    told.replace(path.to_str().expect("UTF-8"), "FILE")
}

fn request(client: &mut Context) -> Vec<u8> {
    let (mut plain, mut protected) = (Vec::new(), Vec::new());
    Writer::start(&mut plain, Kind::Confirmable, Code::GET, MessageId(1), Token::EMPTY).finish().expect("a message");
    client.protect_request(&Message::parse(&plain).expect("a message"), &mut protected).expect("it can be protected");
    protected
}

/// A context whose next thousand numbers are stored, with the lock of its file.
fn opened(path: &Path) -> (Context, millpond_cli::oscore::Sent) {
    let (mut context, mut sent) = read(path).unwrap_or_else(|failure| panic!("{failure:?}"));
    let bound = context.bound_to_store(1_000).expect("none is stored for this run");
    sent.store(bound).expect("it can be written");
    context.bound_is_stored(bound);
    (context, sent)
}

/// The number that the next request would have, as its option.
fn next_number(path: &Path) -> (Vec<u8>, millpond_cli::oscore::Sent) {
    let (mut context, sent) = opened(path);
    let request = request(&mut context);
    let option = Message::parse(&request).expect("a message").option(9).expect("it is protected").to_vec();
    (option, sent)
}

#[test]
fn a_new_pair_understands_each_other_and_is_for_its_owner_alone() {
    let (folder, _alone) = folder("pair");
    for arguments in [
        &[][..],
        &["--algorithm", "chacha20/poly1305", "--client-id", "07", "--server-id", "0a0b", "device", "gateway"],
        &["--algorithm", "AES-CCM-64-64-128", "short", "shorter"],
    ] {
        made(&folder, arguments);
        let names = match arguments {
            [] => ["client.oscore", "server.oscore"],
            [.., client, server] => [*client, *server],
            [_] => unreachable!("pairs"),
        };
        let [(mut client, mut sent), (mut server, mut received)] =
            names.map(|name| read(&folder.join(name)).unwrap_or_else(|failure| panic!("{failure:?}")));
        for (context, file) in [(&mut client, &mut sent), (&mut server, &mut received)] {
            let bound = context.bound_to_store(10).expect("nothing is stored");
            file.store(bound).expect("it can be written");
            context.bound_is_stored(bound);
        }
        assert_eq!(client.sender_id(), server.recipient_id());
        let protected = request(&mut client);
        let mut plain = Vec::new();
        assert!(server.unprotect_request(&Message::parse(&protected).expect("a message"), &mut plain).is_ok());
        #[cfg(unix)]
        for name in names {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.join(name)).expect("it was written").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let (folder, _alone) = folder("twice");
    made(&folder, &[]);
    let before = fs::read(folder.join("client.oscore")).expect("it was written");
    let output = new(&folder, &[]);
    assert_eq!(output.status.code(), Some(2));
    let told = "millpond: client.oscore: there already; name another file, or remove this one";
    assert_eq!((line(&output.stdout), line(&output.stderr)), ("", told));
    assert_eq!(fs::read(folder.join("client.oscore")).expect("it is there"), before);
    let output = new(&folder, &["--client-id", "01", "--server-id", "01", "a", "b"]);
    assert_eq!(line(&output.stderr), "millpond: sender ID and recipient ID are equal: give each side its own");
    assert!(!folder.join("a").exists());
}

#[test]
fn a_context_that_cannot_be_used_is_told_in_one_line_that_repeats_nothing_of_the_secret() {
    let (folder, _alone) = folder("written");
    made(&folder, &[]);
    let path = folder.join("client.oscore");
    let secret = "00112233445566778899aabbccddeeff";
    let ids = "sender_id = \"01\"\nrecipient_id = \"02\"\n";
    for (text, told) in [
        (format!("secret = \"{}\"\n{ids}", &secret[..30]), "FILE: a secret of 15 bytes: give at least 16, random ones"),
        (format!("secret = \"{secret}0\"\n{ids}"), "FILE: secret: give hexadecimal digits, two for each byte"),
        (format!("secret = \"{secret}zz\"\n{ids}"), "FILE: secret: give hexadecimal digits, two for each byte"),
        (
            format!("secret = \"{secret}\"\nsender_id = \"01\"\nrecipient_id = \"01\"\n"),
            "FILE: sender ID and recipient ID are equal: give each side its own",
        ),
        (
            format!("secret = \"{secret}\"\n{ids}algorithm = \"AES-CCM-16-64\"\n"),
            "FILE: algorithm: unknown algorithm `AES-CCM-16-64`: did you mean `AES-CCM-16-64-128`?",
        ),
        (format!("secret = \"{secret}\"\n{ids}hash = \"SHA-1\"\n"), "FILE: hash: unknown hash `SHA-1`"),
        (
            format!("secret = \"{secret}\"\n{ids}id_context = \"01\"\nderive_anew = true\n"),
            "FILE: id_context: is drawn anew where derive_anew is true; leave one of the two out",
        ),
        (format!("secrets = \"{secret}\"\n{ids}"), "FILE:1: unknown key `secrets`: did you mean `secret`?"),
        (format!("secret = \"{secret}\"\nsender_id = \"01\"\n"), "FILE:1: missing key `recipient_id`"),
        (format!("secret = {secret}\n{ids}"), "FILE:1: "),
        (format!("secret = \"{secret}\"\n{ids}server = 7\n"), "FILE:4: 7 does not belong here: write text in quotes"),
        (
            format!("secret = \"{secret}\"\n{ids}\nserver = \"coap://meter-7.example\"\n"),
            "FILE:5: server: give HOST or HOST:PORT without a scheme: it is for every transport",
        ),
        (format!("server = \"\"\"a\nb\"\"\"\nsecret = \"{secret}\"\n{ids}"), "FILE:1: server: "),
        (
            format!("secret = \"{secret}\"\n{ids}server = \"::1\"\n"),
            "FILE:4: server: ::1 is no host; an IPv6 address stands in brackets: [::1]",
        ),
    ] {
        fs::write(&path, text).expect("it can be written");
        let line = refused(&path);
        assert!(line.starts_with(told), "{line}");
        assert!(!line.contains(&secret[..8]), "{line}");
    }
}

#[test]
fn the_file_of_the_client_names_the_server_that_it_was_made_for() {
    let (folder, _alone) = folder("named");
    for (kind, flags) in [("context", &[][..]), ("derived", &["--derive-anew"]), ("edhoc", &["--edhoc"])] {
        let names = ["client", "server"].map(|side| format!("{side}.{kind}"));
        made(&folder, &[flags, &["--server", "Meter-7.example:61616", &names[0], &names[1]]].concat());
        let [client, server] = names.map(|name| fs::read_to_string(folder.join(name)).expect("it was written"));
        assert_eq!(client.lines().last(), Some("server = \"meter-7.example:61616\""), "{kind}");
        assert!(!server.contains("server ="), "{kind}");
    }
    assert!(read(&folder.join("client.context")).is_ok());
    let output = new(&folder, &["--server", "coap://meter-7.example", "a", "b"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(line(&output.stderr).contains("give HOST or HOST:PORT without a scheme"), "{}", line(&output.stderr));
    assert!(!folder.join("a").exists());
}

#[cfg(unix)]
#[test]
fn a_context_that_others_may_use_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _alone) = folder("rights");
    made(&folder, &[]);
    let path = folder.join("client.oscore");
    for mode in [0o640, 0o604, 0o620, 0o610, 0o644] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        let told = format!("FILE: others than its owner may use it (mode {mode:o}); chmod 600 FILE");
        assert_eq!(refused(&path), told);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("it is ours");
    assert!(read(&path).is_ok());
}

#[test]
fn a_context_is_for_one_at_a_time() {
    let (folder, _alone) = folder("lock");
    made(&folder, &[]);
    let path = folder.join("client.oscore");
    let held = read(&path).unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(refused(&path), "FILE: in use by another process; a context is for one at a time");
    drop(held);
    assert!(read(&path).is_ok());
}

#[test]
fn no_number_below_what_was_stored_is_used_again_wherever_a_write_was_cut_short() {
    let (folder, _alone) = folder("sent");
    made(&folder, &["--client-id", "01"]);
    let path = folder.join("client.oscore");
    let numbers = folder.join("client.oscore.sent");
    let put = |text: &str| fs::write(&numbers, text).expect("it can be written");
    for (text, option) in [
        ("0\n", &b"\x09\x00\x01"[..]),
        ("0\n1000\n", b"\x0a\x03\xe8\x01"),
        // The line that is cut short was not relied upon.
        ("0\n1000\n20", b"\x0a\x03\xe8\x01"),
        ("0\n1000\n\n", b""),
    ] {
        put(text);
        if option.is_empty() {
            let told = "FILE.sent: not a whole number in each line; make a new pair of contexts";
            assert_eq!(refused(&path), told, "{text:?}");
        } else {
            assert_eq!(next_number(&path).0, option, "{text:?}");
        }
    }
    // What was stored in the run before is where the next begins.
    put("0\n1000\n20");
    drop(next_number(&path));
    assert_eq!(next_number(&path).0, b"\x0a\x07\xd0\x01");
    for text in ["", "12", "x\n", "-1\n", "1 2\n", "1 2 3 4\n", "1 2 x\n", "1 \n"] {
        put(text);
        assert_eq!(refused(&path), "FILE.sent: not a whole number in each line; make a new pair of contexts");
    }
    fs::remove_file(&numbers).expect("it is there");
    let told = "FILE.sent: no such file, and it says which sequence numbers were used; make a new pair of contexts, or if its keys \
                were never used, write 0 into it";
    assert_eq!(refused(&path), told);
    fs::write(&numbers, "0\n").expect("it can be written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&numbers, fs::Permissions::from_mode(0o620)).expect("it is ours");
        assert_eq!(refused(&path), "FILE.sent: others than its owner may use it (mode 620); chmod 600 FILE.sent");
    }
}

/// The number in an option that has neither ID context nor flags but this of the ID.
fn number(option: &[u8]) -> u64 {
    let digits = &option[1..=usize::from(option[0] & 7)];
    digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit))
}

#[cfg(unix)]
#[test]
fn no_number_is_used_again_whichever_file_of_numbers_is_set_back_and_however_often() {
    let (folder, _alone) = folder("restored");
    made(&folder, &["--client-id", "01"]);
    let path = folder.join("client.oscore");
    let numbers = folder.join("client.oscore.sent");
    let [first, later, restored] = ["first", "later", "restored"].map(|name| folder.join(name));
    let copied = |from: &Path, to: &Path| assert!(fs::copy(from, to).expect("it can be copied") > 0);
    copied(&numbers, &first);
    let next = || number(&next_number(&path).0);
    let mut highest = next();
    assert_eq!(highest, 0);
    copied(&numbers, &later);
    // Each is used for a thousand numbers before the next is set back: by another file, and in place.
    for copy in [&first, &later, &first, &first, &later] {
        for in_place in [false, true] {
            // Eight thousand numbers a second are left out, of which a beginning takes a thousand.
            std::thread::sleep(std::time::Duration::from_millis(300));
            if in_place {
                copied(copy, &numbers);
            } else {
                copied(copy, &restored);
                fs::rename(&restored, &numbers).expect("it can be restored");
            }
            let number = next();
            assert!(number >= highest + 1_000 && number >= 1 << 24, "{number} after {highest}");
            highest = number;
        }
    }
    // Once; and one that was moved is what it was.
    assert_eq!(next(), highest + 1_000);
    fs::rename(&numbers, &restored).expect("it can be moved");
    fs::rename(&restored, &numbers).expect("it can be moved");
    assert_eq!(next(), highest + 2_000);
}

/// A server whose file says that it has never been used would take again whatever was sent before.
#[cfg(unix)]
#[test]
fn a_server_whose_file_is_set_back_takes_nothing_from_before() {
    let (folder, _alone) = folder("replayed");
    made(&folder, &[]);
    let numbers = folder.join("server.oscore.sent");
    let copy = fs::read(&numbers).expect("it was written");
    let captured = request(&mut opened(&folder.join("client.oscore")).0);
    let taken = || {
        let (mut server, _sent) = opened(&folder.join("server.oscore"));
        server.unprotect_request(&Message::parse(&captured).expect("a message"), &mut Vec::new()).is_ok()
    };
    assert!(taken());
    assert!(!taken(), "after a restart its sender is asked for Echo");
    fs::write(&numbers, &copy).expect("it can be written");
    assert!(!taken(), "nor if the file is as it was made");
}

/// What a gateway is given is told before it listens, and looking at it locks nothing.
#[test]
fn contexts_of_a_gateway_are_checked() {
    let (folder, _alone) = folder("gateway");
    made(&folder, &["--server", "meter-7.example", "device.oscore", "there.oscore"]);
    made(&folder, &["client.oscore", "here.oscore"]);
    made(&folder, &["--edhoc", "--server", "meter-8.example", "device.edhoc", "there.edhoc"]);
    let rule =
        "[listen]\ncoap = [\"127.0.0.1:0\"]\n[[rule]]\npath = \"/{*rest}\"\nto = \"coap://meter-7.example/{*rest}\"\n";
    fs::write(folder.join("gateway.toml"), rule).expect("it can be written");
    let gateway = |arguments: &[&str]| {
        let all = ["gateway", "gateway.toml"].iter().chain(arguments);
        let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(all).current_dir(&folder).output();
        let output = output.expect("the program is built");
        (output.status.success(), line(&output.stdout).to_owned() + line(&output.stderr))
    };
    let _held = read(&folder.join("here.oscore")).expect("it can be used");
    let both = ["--oscore", "device.oscore", "--oscore", "here.oscore"];
    assert_eq!(gateway(&[&both[..], &["--check"]].concat()), (true, "gateway.toml: can be used".to_owned()));
    for (arguments, told) in [
        (&both[..], "here.oscore: in use by another process; a context is for one at a time"),
        (&["--check", "--oscore", "none.oscore"], "none.oscore: No such file or directory"),
        (
            &["--oscore", "device.edhoc"],
            "device.edhoc:6: credentials for a server; a gateway agrees upon contexts with those who ask",
        ),
        (&["--oscore", "there.edhoc", "--oscore", "there.edhoc"], "there.edhoc: a second file with credentials"),
    ] {
        let (is_taken, said) = gateway(arguments);
        assert!(!is_taken && said.contains(told) && said.lines().count() == 1, "{said}");
    }
}
