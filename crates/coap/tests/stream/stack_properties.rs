//! What must hold of a stack whatever the other side sends.

use crate::owned::{CoapStack, Event, Output, limited, poll, stack};
use millpond_coap::message::{Code, Token, number};
use millpond_coap::stream::{Options, write_frame};
use millpond_coap::transfer::{Answer, ClientRequest, Limits, ObserverId};
use millpond_control::{Instant, Span};
use proptest::prelude::*;

/// Bytes that a stack may hold: frames, bodies collected and kept, answers fetched.
const MOST_BYTES: usize = 96 * 1_024;

#[derive(Default)]
struct Told {
    open: usize,
    observers: Vec<ObserverId>,
    closed: bool,
}

fn drain(stack: &mut CoapStack, now: Instant, told: &mut Told) {
    for _ in 0..4_096 {
        match poll(stack, now) {
            Output::Idle => return,
            Output::Sleep(until) => return assert!(until > now, "a sleep lies ahead"),
            Output::Close(_) => assert!(!core::mem::replace(&mut told.closed, true), "the end is told once"),
            Output::Transmit(bytes) => assert!(!bytes.is_empty()),
            Output::Event(event) => match event {
                Event::Request { id, body, .. } => {
                    let answer = Answer::new(Code::CONTENT, &[]).with_body(&body);
                    let long = [1; 3_000];
                    let answer = if body.len() % 2 == 0 { answer.with_body(&long) } else { answer };
                    match stack.accept_observer(now, id, &answer) {
                        Ok(observer) => told.observers.extend(observer),
                        // A peer that takes neither.
                        Err(_) => {
                            let _short = stack.answer(now, id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[]));
                        }
                    }
                }
                Event::Answer { goes_on: false, .. } | Event::Failed { .. } => {
                    told.open = told.open.checked_sub(1).expect("what ends was begun");
                }
                Event::ObserverGone { observer, .. } => told.observers.retain(|other| *other != observer),
                _ => {}
            },
        }
    }
    panic!("there is no end to the output");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frames_are_survived(
        steps in prop::collection::vec(
            (0_u8..16, any::<u8>(), prop::collection::vec((0_u8..8, prop::collection::vec(any::<u8>(), 0..4)), 0..4), 0_usize..2_100),
            0..60,
        ),
    ) {
        let config = limited(|limits| {
            *limits = Limits { client_requests: 4, bytes: 32_000, body: 8_000, bodies: 16_000, cached: 8_000, observers: 3, ..*limits };
        });
        let options = Options { max_message_size: 2_500, requests: 8, ..Options::default() };
        let mut stack = stack(options, config);
        let (mut now, mut told) = (Instant::ORIGIN, Told::default());
        // Settings first: 1152 bytes or more, with blocks.
        stack.receive(now, &[0x40, 0xe1, 0x22, 0x08, 0x80, 0x20]);
        drain(&mut stack, now, &mut told);
        for (step, what, options, length) in steps {
            match step {
                0 | 1 => {
                    let path: [(u16, &[u8]); 1] = [(number::URI_PATH, &[what])];
                    let bytes = vec![what; length * usize::from(step) * 3];
                    let ask = ClientRequest { longest: 4_000, observe: what > 127 && step == 0, ..ClientRequest::new(Code::GET, &path).with_body(&bytes) };
                    told.open += usize::from(stack.request(now, (), &ask).is_ok());
                }
                2 => now = now.after(Span::from_secs(u32::from(what))),
                3 => {
                    if let Some(observer) = told.observers.first() {
                        let bytes = vec![what; length];
                        stack.notify(now, *observer, &Answer::new(Code::CONTENT, &[]).with_body(&bytes)).unwrap();
                    }
                }
                _ => {
                    let numbers = [number::OBSERVE, number::URI_PATH, number::BLOCK2, number::BLOCK1, number::SIZE2, number::SIZE1, number::ETAG, number::REQUEST_TAG];
                    let mut options: Vec<(u16, &[u8])> =
                        options.iter().map(|(which, value)| (numbers[usize::from(*which)], &value[..])).collect();
                    options.sort();
                    let code = [Code::GET, Code::PUT, Code::CONTENT, Code::CONTINUE, Code::NOT_FOUND, Code::EMPTY][usize::from(what % 6)];
                    let token = match what >> 6 {
                        0 => Token::new(&[0xff, 0, 0, what % 4]).unwrap(),
                        _ => Token::new(&[what % 16]).unwrap(),
                    };
                    let mut frame = Vec::new();
                    write_frame(&mut frame, code, token, &options, &vec![what; length], u32::MAX).unwrap();
                    stack.receive(now, &frame);
                }
            }
            drain(&mut stack, now, &mut told);
            prop_assert!(stack.memory() <= MOST_BYTES, "{} bytes", stack.memory());
        }
        stack.stream_ended();
        drain(&mut stack, now, &mut told);
        prop_assert!(told.closed);
        prop_assert_eq!((told.open, stack.requests(), stack.observers()), (0, 0, 0));
        prop_assert!(told.observers.is_empty());
        prop_assert!(stack.memory() < 20_000, "{} bytes", stack.memory());
    }
}
