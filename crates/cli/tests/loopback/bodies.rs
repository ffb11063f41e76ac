//! Bodies that take many blocks.

use crate::program::{Server, fed, millpond};

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
