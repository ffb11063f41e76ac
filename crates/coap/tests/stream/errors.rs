//! What a peer may send instead: each ends as RFC 8323 asks.

use millpond_coap::message::Code;
use millpond_coap::stream::{Closing, Connection, Frame, FrameFault, FrameReader, Options, Signal};
use millpond_control::Instant;

use crate::frames::hex;
use crate::side::{Told, drain};

const NOW: Instant = Instant::ORIGIN;

/// A connection that has the other side's settings.
fn settled() -> Connection {
    let mut connection = Connection::new(Options { max_message_size: 1_152, ..Options::default() });
    connection.receive(NOW, &hex("00 E1"));
    drain(&mut connection, NOW);
    connection
}

/// Hands bytes over; gives the reason of closing and the Abort that was sent.
fn closing(mut connection: Connection, bytes: &str) -> (Closing, Option<(Option<u16>, String)>) {
    drain(&mut connection, NOW);
    connection.receive(NOW, &hex(bytes));
    let (sent, told) = drain(&mut connection, NOW);
    let [.., Told::Close(why)] = told[..] else { panic!("{bytes}: {told:?}") };
    let mut reader = FrameReader::new(1_152);
    reader.push(&sent);
    let abort = reader.next_frame().unwrap().map(|frame| match Signal::read(&frame).unwrap() {
        Signal::Abort { bad_csm_option, diagnostic } => {
            (bad_csm_option, String::from_utf8(diagnostic.to_vec()).unwrap())
        }
        other => panic!("{other:?}"),
    });
    connection.receive(NOW, &hex("01 01 42"));
    assert!(drain(&mut connection, NOW).1.is_empty(), "nothing is taken after the end");
    assert!(connection.memory() < 4_096);
    (why, abort)
}

#[test]
fn bytes_that_are_no_frame_abort_the_connection() {
    for (bytes, diagnostic) in [
        ("09 45", "token length 9 is reserved (byte 0 of the frame)"),
        ("10 45 F1", "option delta 15 is reserved (byte 2 of the frame)"),
        ("10 45 1F", "option length 15 is reserved (byte 2 of the frame)"),
        ("10 45 FF", "a payload marker without payload (byte 2 of the frame)"),
        ("E0 03 80 45", "a frame of 1169 bytes, but at most 1152 were agreed to (byte 0 of the frame)"),
        ("00 20", "code class 1 is reserved (byte 1 of the frame)"),
    ] {
        let (why, abort) = closing(settled(), bytes);
        assert!(matches!(why, Closing::BadFrame(_)), "{bytes}: {why:?}");
        assert_eq!(abort, Some((None, diagnostic.to_owned())), "{bytes}");
    }
}

#[test]
fn settings_come_first() {
    for bytes in ["01 01 42", "01 E2 42", "00 00", "00 E4"] {
        let (why, abort) = closing(Connection::new(Options::default()), bytes);
        assert_eq!(why, Closing::NoSettings, "{bytes}");
        assert!(abort.is_some());
    }
}

#[test]
fn a_critical_option_of_a_signal_must_be_known() {
    let (why, abort) = closing(settled(), "10 E1 70");
    assert!(matches!(why, Closing::BadSignal(bad) if bad.number == 7));
    assert_eq!(abort, Some((Some(7), "option 7 of signal 7.01 is not understood".to_owned())));
    let (why, abort) = closing(settled(), "11 E2 42 10");
    assert!(matches!(why, Closing::BadSignal(bad) if bad.number == 1));
    assert_eq!(abort, Some((None, "option 1 of signal 7.02 is not understood".to_owned())));
}

/// Those that are known are elective without exception.
#[test]
fn an_option_of_a_signal_that_is_too_long_counts_as_absent() {
    for (bytes, signal) in [
        // Max-Message-Size of five bytes, Block-Wise-Transfer and Custody with a value, Hold-Off of four bytes, Bad-CSM-Option
        // of three, an empty Alternative-Address.
        ("60 E1 25 01 00 00 00 00", Signal::Csm { max_message_size: None, block_wise: false, longest_token: None }),
        ("20 E1 41 00", Signal::Csm { max_message_size: None, block_wise: false, longest_token: None }),
        ("20 E2 21 00", Signal::Ping { custody: false }),
        ("60 E4 20 24 00 00 00 3C", Signal::Release { alternative: None, hold_off: None }),
        ("40 E5 23 00 00 07", Signal::Abort { bad_csm_option: None, diagnostic: b"" }),
    ] {
        assert_eq!(Signal::read(&Frame::parse(&hex(bytes)).unwrap()), Ok(signal), "{bytes}");
    }
    for bytes in ["60 E1 25 01 00 00 00 00", "50 E4 44 00 00 00 3C"] {
        let mut connection = settled();
        connection.receive(NOW, &hex(bytes));
        let (sent, told) = drain(&mut connection, NOW);
        assert!(sent.is_empty(), "{bytes}: {sent:x?}");
        let is_abrupt = |told: &Told| matches!(told, Told::Close(why) if *why != Closing::Released);
        assert!(!told.iter().any(is_abrupt), "{bytes}: {told:?}");
    }
}

#[test]
fn what_is_elective_or_unknown_is_ignored() {
    for bytes in ["10 E1 60", "00 E0", "00 FF", "00 00", "30 00 F0 F1 F2"] {
        let mut connection = settled();
        connection.receive(NOW, &hex(bytes));
        let (sent, told) = drain(&mut connection, NOW);
        assert!(sent.is_empty(), "{bytes}");
        assert!(!told.iter().any(|told| matches!(told, Told::Close(_))), "{bytes}: {told:?}");
    }
}

#[test]
fn a_response_to_nothing_is_told_and_ignored() {
    let mut connection = settled();
    connection.receive(NOW, &hex("01 45 42"));
    assert_eq!(drain(&mut connection, NOW).1, [Told::Unasked(Code::CONTENT)]);
}

#[test]
fn an_abort_of_the_peer_is_not_answered() {
    assert_eq!(closing(settled(), "60 E5 21 07 FF 62 61 64"), (Closing::AbortedByPeer, None));
}

/// A peer that stops in the middle of a message holds no more than one message's memory, and none after the end.
#[test]
fn a_peer_that_stops_mid_message_costs_bounded_memory() {
    let mut connection = settled();
    connection.receive(NOW, &hex("E0 03 00 45 FF"));
    for _ in 0..64 {
        connection.receive(NOW, &[0; 16]);
        assert!(drain(&mut connection, NOW).1.is_empty());
        assert!(connection.memory() <= 4_096, "{}", connection.memory());
    }
    connection.stream_ended();
    assert_eq!(drain(&mut connection, NOW).1, [Told::Close(Closing::StreamEnded)]);
    assert!(connection.memory() < 1_024);
}

#[test]
fn the_announced_length_counts_the_whole_frame() {
    // 1152 bytes in all are taken, one more is not: 3 bytes of length, a code, the rest.
    let mut frame = hex("E0 03 6F 45 FF");
    frame.resize(1_152, 1);
    let mut reader = FrameReader::new(1_152);
    reader.push(&frame);
    assert_eq!(reader.next_frame().unwrap().unwrap().payload().len(), 1_147);
    let mut reader = FrameReader::new(1_151);
    reader.push(&frame);
    assert!(matches!(reader.next_frame().unwrap_err().fault, FrameFault::OverLimit { announced: 1_152, .. }));
}
