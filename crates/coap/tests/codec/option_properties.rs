//! What is known of options (RFC 7252 §5.4, §5.10), and what follows from it for a message.

use millpond_coap::message::{
    Code, Kind, Message, MessageId, Token, Writer, is_cache_key, is_critical, is_of_transfer, is_unsafe_to_forward,
    number,
};

/// RFC 7252 table 4, RFC 7641 §2, RFC 7959 §2.1, RFC 8613 §2, RFC 8768 §3, RFC 9175 §2.2.1 and §3.2.1, RFC 9177 §3.1,
/// RFC 7967 §2: number, letters of the columns C, U, N and R, shortest and longest value.
const PRINTED: [(u16, &str, usize, usize); 26] = [
    (1, "CR", 0, 8),
    (3, "CU", 1, 255),
    (4, "R", 1, 8),
    (5, "C", 0, 0),
    (6, "U", 0, 3),
    (7, "CU", 0, 2),
    (8, "R", 0, 255),
    (9, "C", 0, 255),
    (11, "CUR", 0, 255),
    (12, "", 0, 2),
    (14, "U", 0, 4),
    (15, "CUR", 0, 255),
    (16, "", 1, 1),
    (17, "C", 0, 2),
    (19, "CU", 0, 3),
    (20, "R", 0, 255),
    (23, "CU", 0, 3),
    (27, "CU", 0, 3),
    (28, "N", 0, 4),
    (31, "CUR", 0, 3),
    (35, "CU", 1, 1_034),
    (39, "CU", 1, 255),
    (60, "N", 0, 4),
    (252, "N", 1, 40),
    (258, "U", 0, 1),
    (292, "R", 0, 8),
];

fn message(options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::GET, MessageId(1), Token::EMPTY);
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// Numbers of the options that may stand where they stand, and the first for which the message is refused.
fn judged(options: &[(u16, &[u8])]) -> (Vec<u16>, Option<u16>) {
    let bytes = message(options);
    let message = Message::parse(&bytes).unwrap();
    (message.options().legal().map(|option| option.number).collect(), message.options().refused(|_| true))
}

#[test]
fn letters_are_those_that_are_printed() {
    for (number, letters, ..) in PRINTED {
        assert_eq!(is_critical(number), letters.contains('C'), "{number}");
        assert_eq!(is_unsafe_to_forward(number), letters.contains('U'), "{number}");
        let twice = judged(&[(number, &[1][..]), (number, &[1])]).0.len();
        if letters.contains('N') {
            assert!(!is_cache_key(number), "{number}");
        }
        if !matches!(number, 5) {
            assert_eq!(twice == 2, letters.contains('R'), "{number}");
        }
    }
}

#[test]
fn lengths_are_those_that_are_printed() {
    for (number, letters, shortest, longest) in PRINTED {
        let is_critical = letters.contains('C');
        for length in 0..=longest + 1 {
            let value = vec![1; length];
            let is_legal = (shortest..=longest).contains(&length);
            let expected = (vec![number; usize::from(is_legal)], (!is_legal && is_critical).then_some(number));
            assert_eq!(judged(&[(number, &value)]), expected, "option {number} of {length} bytes");
        }
    }
}

#[test]
fn a_repeated_option_counts_once_and_refuses_the_message_if_it_is_critical() {
    assert_eq!(judged(&[(12, &[0][..]), (12, &[50]), (14, &[1])]), (vec![12, 14], None));
    assert_eq!(judged(&[(17, &[0][..]), (17, &[50])]), (vec![17], Some(17)));
    assert_eq!(judged(&[(11, &b"a"[..]), (11, b"b"), (11, b"")]), (vec![11; 3], None));
    assert_eq!(judged(&[(65_001, &[0; 300][..]), (65_001, b"")]), (vec![65_001; 2], None), "nothing is known of it");
}

#[test]
fn who_does_not_know_a_critical_option_refuses_the_message() {
    let bytes = message(&[(11, b"path"), (65_000, b""), (65_001, b"")]);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.options().refused(|number| number == 11), Some(65_001));
    assert_eq!(message.options().refused(|number| number != 11), Some(11));
}

/// RFC 7252 §5.4.6, §5.6.
#[test]
fn a_cache_key_has_what_tells_representations_apart() {
    let is_key = [3, 7, 11, 12, 15, 17, 35, 39, 292, 65_000, 65_001].map(is_cache_key);
    assert!(is_key.iter().all(|is_key| *is_key), "{is_key:?}");
    let is_key = [4, 6, 19, 23, 27, 28, 31, 60, 252, 65_020].map(is_cache_key);
    assert!(is_key.iter().all(|is_key| !is_key), "{is_key:?}");
}

#[test]
fn options_of_the_transfer_are_those_that_stacks_set() {
    let all: Vec<u16> = (0..=u16::MAX).filter(|number| is_of_transfer(*number)).collect();
    assert_eq!(all, [6, 19, 23, 27, 28, 31, 60, number::REQUEST_TAG]);
}
