//! Bodies that take many blocks.

use crate::program::{Said, Server, command, fed, fresh_directory, millpond};

#[test]
fn a_large_body_comes_whole_whatever_the_size_of_its_blocks() {
    let server = Server::start(&[]);
    let expected: String = (0..=20_000 / 16).map(|line| format!("{:015}\n", line * 16)).collect();
    for size in ["64", "256", "1024"] {
        let said = millpond(&["get", "--block-size", size, &server.at("/large?size=20k")]);
        assert!(said.well() == &expected[..20_000], "blocks of {size}: {} bytes", said.out.len());
    }
}

#[test]
fn a_large_body_goes_and_comes_back() {
    let server = Server::start(&[]);
    let body: Vec<u8> = (0..20_000_u32).map(|byte| u8::try_from(byte % 251).expect("below 251")).collect();
    for size in ["128", "1024"] {
        let said = fed(&["put", "--block-size", size, &server.at("/echo"), "-"], &body);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out == body, "blocks of {size}: {} bytes came back", said.out.len());
    }
}

#[test]
fn a_body_is_written_to_a_file_and_coap_need_not_be_said() {
    let server = Server::start(&[]);
    let directory = fresh_directory("bodies_output");
    let file = directory.join("image.bin");
    let file_name = file.to_str().expect("UTF-8");
    let bare = server.at("/large?size=20k").replace("coap://", "");
    let said = millpond(&["get", "--output", file_name, &bare]);
    assert!(said.well().is_empty());
    assert_eq!(std::fs::read(&file).expect("it is there").len(), 20_000);
    // An error is no body: what was there stays.
    let said = millpond(&["get", "-o", file_name, &server.at("/nothing")]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert_eq!(std::fs::read(&file).expect("it is there").len(), 20_000);
    let nowhere = directory.join("no/such/file");
    let said = millpond(&["get", "-o", nowhere.to_str().expect("UTF-8"), &server.at("/hello")]);
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
    assert!(said.err.contains("no/such: No such file or directory"), "{}", said.err);
}

/// Without room for the new body the old one stays, whole, and nothing lies beside it.
#[test]
#[cfg(unix)]
fn a_body_that_finds_no_room_leaves_the_one_before_it() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let server = Server::start(&[]);
    let directory = fresh_directory("bodies_full");
    let file = directory.join("image.bin");
    std::fs::write(&file, "the one before").expect("it is there");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("image.bin", directory.join("link")).expect("a link");
    // No file of this process may be longer than a block or two: as a disk that is full.
    let program = env!("CARGO_BIN_EXE_millpond");
    let line = format!("trap '' XFSZ; ulimit -f 4; exec {program} get -o link {}", server.at("/large?size=20k"));
    let mut shell = std::process::Command::new("sh");
    let said = Said::from(shell.args(["-c", &line]).current_dir(&directory).output().expect("there is a shell"));
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
    assert_eq!(std::fs::read(&file).expect("it is there"), b"the one before");
    assert_eq!(std::fs::read_dir(&directory).expect("ours").count(), 2, "file and link");
    // With room it takes the place of the other, which keeps its rights; a link stays a link.
    let link = directory.join("link");
    millpond(&["get", "-o", link.to_str().expect("UTF-8"), &server.at("/large?size=20k")]).well();
    assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
    let there = std::fs::metadata(&file).expect("it is there");
    assert_eq!((there.len(), there.permissions().mode() & 0o777), (20_000, 0o640));
    millpond(&["get", "-o", "/dev/null", &server.at("/hello")]).well();
}

#[test]
fn a_dash_is_standard_output_for_bodies_too() {
    let server = Server::start(&[]);
    let directory = fresh_directory("bodies_dash");
    let mut program = command(&["get", "--output", "-", &server.at("/hello")]);
    let said = Said::from(program.current_dir(&directory).output().expect("the program is built"));
    assert_eq!(said.well(), "Hello from Millpond.\n");
    assert!(!directory.join("-").exists());
}

/// Over TCP a long file goes and comes as it is read and written.
#[test]
fn over_tcp_a_long_file_is_sent_and_written_bit_by_bit() {
    let mut server = Server::start(&["--tcp"]);
    let tcp = server.line().replace("listening on ", "");
    let at = |path: &str| format!("{tcp}{path}");
    let directory = fresh_directory("bodies_tcp");
    let (there, back) = (directory.join("there.bin"), directory.join("back.bin"));
    let body: Vec<u8> = (0..3_000_000_u32).map(|byte| u8::try_from(byte % 251).expect("below 251")).collect();
    std::fs::write(&there, &body).expect("it is ours");
    let payload = format!("@{}", there.display());
    let said = millpond(&["put", "--verbose", &at("/echo"), &payload]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out == body && said.err.contains("(3000000 bytes)"), "{}", said.err);
    let back_name = back.to_str().expect("UTF-8");
    let said = millpond(&["get", "--verbose", "-o", back_name, &at("/large?size=1M")]);
    assert!(said.well().is_empty() && said.err.contains("(1000000 bytes)"), "{}", said.err);
    assert_eq!(std::fs::read(&back).expect("it is there").len(), 1_000_000);
    // An error is no body: what was there stays, and nothing lies beside it.
    let said = millpond(&["get", "-o", back_name, &at("/nothing")]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert_eq!(std::fs::read(&back).expect("it is there").len(), 1_000_000);
    assert_eq!(std::fs::read_dir(&directory).expect("ours").count(), 2);
}

/// A server could fill the disk of who fetched from it over TCP.
#[test]
fn no_body_is_longer_than_the_size_that_is_allowed_over_any_transport() {
    let mut server = Server::start(&["--tcp"]);
    let tcp = server.line();
    let tcp = tcp.strip_prefix("listening on ").expect("a URI").to_owned();
    let directory = fresh_directory("bodies_bounded");
    let file = directory.join("image.bin");
    let name = file.to_str().expect("UTF-8");
    for base in [server.at(""), tcp] {
        let uri = format!("{base}/large?size=20k");
        let said = millpond(&["get", "-o", name, "--max-size", "19999", &uri]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("longer than 19999 bytes; raise --max-size to take it"), "{}", said.err);
        assert_eq!(std::fs::read_dir(&directory).expect("it is there").count(), 0, "nothing is left of it");
        millpond(&["get", "-o", name, "--max-size", "20k", &uri]).well();
        assert_eq!(std::fs::read(&file).expect("it is there").len(), 20_000);
        std::fs::remove_file(&file).expect("removed");
    }
}
