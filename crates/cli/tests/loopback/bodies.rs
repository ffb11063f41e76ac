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

#[test]
fn a_dash_is_standard_output_for_bodies_too() {
    let server = Server::start(&[]);
    let directory = fresh_directory("bodies_dash");
    let mut program = command(&["get", "--output", "-", &server.at("/hello")]);
    let said = Said::from(program.current_dir(&directory).output().expect("the program is built"));
    assert_eq!(said.well(), "Hello from Millpond.\n");
    assert!(!directory.join("-").exists());
}
