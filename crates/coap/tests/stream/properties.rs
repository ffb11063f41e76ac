//! What must hold for any frames and any way of cutting the stream.

use millpond_coap::message::{Code, Token};
use millpond_coap::stream::{Connection, Frame, FrameReader, Options, write_frame};
use millpond_control::Instant;
use proptest::prelude::*;

use crate::side::drain;

prop_compose! {
    fn frames()(
        contents in prop::collection::vec((
            prop::sample::select(vec![Code::GET, Code::POST, Code::CONTENT, Code::NOT_FOUND]),
            prop::collection::vec(any::<u8>(), 0..=8),
            prop::collection::vec((0_u16..4_000, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
            prop_oneof![prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 250..320)],
        ), 1..8)
    ) -> Vec<(Vec<u8>, Code, Vec<u8>)> {
        contents
            .into_iter()
            .map(|(code, token, mut options, payload)| {
                options.sort();
                let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
                let mut bytes = Vec::new();
                write_frame(&mut bytes, code, Token::new(&token).unwrap(), &options, &payload, u32::MAX).unwrap();
                (bytes, code, payload)
            })
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However a stream is cut, the same frames come out.
    #[test]
    fn a_stream_is_read_alike_however_it_is_cut(frames in frames(), cuts in prop::collection::vec(1_usize..50, 1..60)) {
        let stream: Vec<u8> = frames.iter().flat_map(|(bytes, ..)| bytes.iter().copied()).collect();
        let mut reader = FrameReader::new(65_536);
        let (mut rest, mut seen) = (&stream[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            rest = left;
            reader.push(piece);
            while let Some(frame) = reader.next_frame().unwrap() {
                seen.push((frame.code, frame.payload().to_vec()));
            }
            if rest.is_empty() {
                break;
            }
        }
        let expected: Vec<_> = frames.into_iter().map(|(_, code, payload)| (code, payload)).collect();
        prop_assert_eq!(seen, expected);
    }

    /// What parses is written back as the same bytes, but for lengths in a longer form than needed.
    #[test]
    fn what_is_written_is_read_back(frames in frames()) {
        for (bytes, ..) in frames {
            let frame = Frame::parse(&bytes).unwrap();
            let options: Vec<(u16, &[u8])> = frame.options().map(|option| (option.number, option.value)).collect();
            let mut again = Vec::new();
            write_frame(&mut again, frame.code, frame.token, &options, frame.payload(), u32::MAX).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }

    /// Any bytes end in output, never in a panic, and a connection holds bounded memory.
    #[test]
    fn any_bytes_are_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..30)) {
        let mut connection = Connection::new(Options { max_message_size: 2_048, ..Options::default() });
        connection.receive(Instant::ORIGIN, &[0x00, 0xe1]);
        for piece in pieces {
            connection.receive(Instant::ORIGIN, &piece);
            drain(&mut connection, Instant::ORIGIN);
            prop_assert!(connection.memory() <= 64 * 1_024);
        }
    }
}
