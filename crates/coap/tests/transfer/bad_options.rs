//! Requests with critical options that may not stand there are answered with 4.02 (RFC 7252 §5.4.1, §5.4.3, §5.4.5).

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Message, number};
use millpond_coap::transfer::RequestFailure;
use millpond_coap::{Failure, Outgoing};

use crate::pair::{CLIENT, Pair, SERVER, Told, get};

/// The answer to a request with these options, and whether the application was asked.
fn answer(options: &[(u16, &[u8])], is_confirmable: bool) -> (Code, bool) {
    let mut pair = Pair::serving(10, BlockSize::B256);
    let mut bytes = Vec::new();
    let request = Outgoing::confirmable(Code::GET, options);
    let kind = if is_confirmable { request.kind } else { millpond_coap::message::Kind::NonConfirmable };
    let (id, token) = (millpond_coap::message::MessageId(7), millpond_coap::message::Token::EMPTY);
    let mut writer = millpond_coap::message::Writer::start(&mut bytes, kind, request.code, id, token);
    for (number, value) in request.options {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    pair.inject(SERVER, &bytes);
    let code = Message::parse(&pair.datagrams.last().unwrap().2).unwrap().code;
    (code, !pair.take_told(SERVER).is_empty())
}

#[test]
fn a_critical_option_that_is_too_long_too_short_or_repeated_is_a_bad_option() {
    let cases: [&[(u16, &[u8])]; 9] = [
        &[(number::ACCEPT, &[0; 3])],
        &[(number::ACCEPT, &[0]), (number::ACCEPT, &[50])],
        &[(number::URI_HOST, b"")],
        &[(number::IF_MATCH, &[1; 9])],
        &[(number::IF_NONE_MATCH, &[1])],
        &[(number::URI_PORT, &[1; 3])],
        &[(number::BLOCK2, &[0; 4])],
        &[(number::BLOCK1, &[0; 4])],
        &[(number::BLOCK2, &[6]), (number::BLOCK2, &[6])],
    ];
    for options in cases {
        for is_confirmable in [true, false] {
            assert_eq!(answer(options, is_confirmable), (Code::BAD_OPTION, false), "{options:?}");
        }
    }
}

#[test]
fn a_reserved_block_size_is_a_bad_request() {
    assert_eq!(answer(&[(number::BLOCK2, &[7])], true), (Code::BAD_REQUEST, false));
}

#[test]
fn what_is_elective_is_ignored_where_it_may_not_stand() {
    let cases: [&[(u16, &[u8])]; 3] =
        [&[(number::OBSERVE, &[0; 4])], &[(number::CONTENT_FORMAT, &[0; 3])], &[(number::SIZE2, &[0; 5])]];
    for options in cases {
        assert_eq!(answer(options, true), (Code::CONTENT, true), "{options:?}");
    }
}

/// RFC 9177 §3: who does not know Q-Block1 and Q-Block2 says so, so that a client goes on block by block.
#[test]
fn a_stack_without_bursts_answers_those_who_try_with_bad_option() {
    for number in [number::Q_BLOCK1, number::Q_BLOCK2] {
        for is_confirmable in [true, false] {
            assert_eq!(answer(&[(number, &[0x08])], is_confirmable), (Code::BAD_OPTION, false));
        }
    }
}

#[test]
fn a_response_with_an_unknown_critical_option_fails_its_ask_and_says_why() {
    let mut pair = Pair::serving(10, BlockSize::B256);
    pair.application.options = vec![(65_001, vec![1])];
    let ask = pair.ask(&get());
    pair.run();
    let why = RequestFailure::Exchange(Failure::BadOption);
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
}
