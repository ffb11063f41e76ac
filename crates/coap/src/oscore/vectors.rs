//! RFC 8613 Appendix C, by the names of its sections.

use alloc::vec::Vec;

use super::{Context, Parameters, PartialIv, ReceivedRequest, SentRequest, Start};
use crate::message::Message;

const SECRET: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const SALT: [u8; 8] = [0x9e, 0x7c, 0xa9, 0x22, 0x23, 0x78, 0x63, 0x40];
const ID_CONTEXT: [u8; 8] = [0x37, 0xcb, 0xf3, 0x21, 0x00, 0x17, 0xa2, 0xd3];

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> std::string::String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The client's parameters of C.1, C.2 and C.3.
fn c_1() -> Parameters<'static> {
    Parameters { salt: &SALT, recipient_id: &[1], ..Parameters::of(&SECRET) }
}

fn c_2() -> Parameters<'static> {
    Parameters { sender_id: &[0], recipient_id: &[1], ..Parameters::of(&SECRET) }
}

fn c_3() -> Parameters<'static> {
    Parameters { id_context: Some(&ID_CONTEXT), ..c_1() }
}

/// Keys, IV, and the nonces of Partial IV 0.
#[derive(Debug, PartialEq, Eq)]
struct Derived {
    sender_key: &'static str,
    recipient_key: &'static str,
    common_iv: &'static str,
    sender_nonce: &'static str,
    recipient_nonce: &'static str,
}

impl Derived {
    fn assert_of(&self, parameters: &Parameters<'_>) {
        let context = Context::derive(parameters, Start::Fresh).unwrap();
        let zero = PartialIv::new(0).unwrap();
        assert_eq!(hex(&context.sender.key[..16]), self.sender_key);
        assert_eq!(hex(&context.recipient.key[..16]), self.recipient_key);
        assert_eq!(hex(&context.common_iv), self.common_iv);
        assert_eq!(hex(&context.nonce(&context.sender.id, zero)), self.sender_nonce);
        assert_eq!(hex(&context.nonce(&context.recipient.id, zero)), self.recipient_nonce);
    }

    fn mirrored(&self) -> Self {
        Self {
            sender_key: self.recipient_key,
            recipient_key: self.sender_key,
            common_iv: self.common_iv,
            sender_nonce: self.recipient_nonce,
            recipient_nonce: self.sender_nonce,
        }
    }
}

const C_1_1: Derived = Derived {
    sender_key: "f0910ed7295e6ad4b54fc793154302ff",
    recipient_key: "ffb14e093c94c9cac9471648b4f98710",
    common_iv: "4622d4dd6d944168eefb54987c",
    sender_nonce: "4622d4dd6d944168eefb54987c",
    recipient_nonce: "4722d4dd6d944169eefb54987c",
};

const C_2_1: Derived = Derived {
    sender_key: "321b26943253c7ffb6003b0b64d74041",
    recipient_key: "e57b5635815177cd679ab4bcec9d7dda",
    common_iv: "be35ae297d2dace910c52e99f9",
    sender_nonce: "bf35ae297d2dace910c52e99f9",
    recipient_nonce: "bf35ae297d2dace810c52e99f9",
};

const C_3_1: Derived = Derived {
    sender_key: "af2a1300a5e95788b356336eeecd2b92",
    recipient_key: "e39a0c7c77b43f03b4b39ab9a268699f",
    common_iv: "2ca58fb85ff1b81c0b7181b85e",
    sender_nonce: "2ca58fb85ff1b81c0b7181b85e",
    recipient_nonce: "2da58fb85ff1b81d0b7181b85e",
};

#[test]
fn c_1_1_key_derivation_with_master_salt_client() {
    C_1_1.assert_of(&c_1());
}

#[test]
fn c_1_2_key_derivation_with_master_salt_server() {
    C_1_1.mirrored().assert_of(&c_1().mirrored());
}

#[test]
fn c_2_1_key_derivation_without_master_salt_client() {
    C_2_1.assert_of(&c_2());
}

#[test]
fn c_2_2_key_derivation_without_master_salt_server() {
    C_2_1.mirrored().assert_of(&c_2().mirrored());
}

#[test]
fn c_3_1_key_derivation_with_id_context_client() {
    C_3_1.assert_of(&c_3());
}

#[test]
fn c_3_2_key_derivation_with_id_context_server() {
    C_3_1.mirrored().assert_of(&c_3().mirrored());
}

/// The client's context at sequence number 20.
fn at_20(parameters: &Parameters<'_>) -> Context {
    let mut context = Context::derive(parameters, Start::Stored(20)).unwrap();
    context.bound_is_stored(21);
    context
}

/// A request as it is and as it is protected, and what is authenticated beside it. The server reads it.
fn assert_request(parameters: &Parameters<'_>, plain: &str, aad: &str, protected: &str) {
    let (plain, mut written, mut read) = (bytes(plain), Vec::new(), Vec::new());
    let mut client = at_20(parameters);
    let sent = client.protect_request(&Message::parse(&plain).unwrap(), &mut written).unwrap();
    assert_eq!(hex(&written), protected);
    assert_eq!(hex(&client.aad(&client.sender.id, sent.partial_iv)), aad);
    let mut server = Context::derive(&parameters.mirrored(), Start::Fresh).unwrap();
    let received = server.unprotect_request(&Message::parse(&written).unwrap(), &mut read).unwrap();
    assert_eq!(read, plain);
    assert_eq!(received.partial_iv.number(), 20);
}

#[test]
fn c_4_request_client() {
    assert_request(
        &c_1(),
        "44015d1f00003974396c6f63616c686f737483747631",
        "8368456e63727970743040488501810a40411440",
        "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e",
    );
}

#[test]
fn c_5_request_client() {
    assert_request(
        &c_2(),
        "440171c30000b932396c6f63616c686f737483747631",
        "8368456e63727970743040498501810a4100411440",
        "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
    );
}

#[test]
fn c_6_request_client() {
    assert_request(
        &c_3(),
        "44012f8eef9bbf7a396c6f63616c686f737483747631",
        "8368456e63727970743040488501810a40411440",
        "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3ff72cd7273fd331ac45cffbe55c3",
    );
}

/// The response to C.4 as it is, and as it is protected with the nonce of the request or without. The client reads it.
fn assert_response(nonce_is_free: bool, protected: &str) {
    let (plain, mut written, mut read) = (bytes("64455d1f00003974ff48656c6c6f20576f726c6421"), Vec::new(), Vec::new());
    let of_request = PartialIv::new(20).unwrap();
    let mut server = Context::derive(&c_1().mirrored(), Start::Fresh).unwrap();
    let mut received =
        ReceivedRequest { kid: server.recipient.id, partial_iv: of_request, nonce_is_free, generation: 0, first: None };
    server.protect_response(&mut received, &Message::parse(&plain).unwrap(), &mut written).unwrap();
    assert_eq!(hex(&written), protected);
    let mut sent = SentRequest {
        partial_iv: of_request,
        observes: false,
        taken: 0,
        newest: None,
        generation: 0,
        under: None,
        by: 0,
    };
    let mut client = at_20(&c_1());
    client.unprotect_response(&mut sent, &Message::parse(&written).unwrap(), &mut read).unwrap();
    assert_eq!(read, plain);
}

#[test]
fn c_7_response_server() {
    assert_response(true, "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106");
}

#[test]
fn c_8_response_with_partial_iv_server() {
    assert_response(false, "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e");
}
