//! Several inputs before anything is taken out, and until when there is nothing.

use millpond_coap::transfer::{ClientRequest, Config, Event, RequestFailure};
use millpond_coap::{Output, message::Code};
use millpond_control::{Instant, Span};

use crate::pair::{get, stack};

#[test]
fn what_inputs_lead_to_waits_in_their_order() {
    let (now, mut stack) = (Instant::ORIGIN, stack(0, millpond_coap::Config::default(), Config::default()));
    let first = stack.request(now, 0, &get()).unwrap();
    stack.request(now, 1, &get()).unwrap();
    assert!(stack.cancel(now, first));
    stack.request(now, 2, &get()).unwrap();
    stack.receive(now, 9, b"\x40\x01\0\x01\xff?");
    stack.receive(now, 1, b"\x64\x45\0\0\0\0\0\0\xff!");
    let mut log = Vec::new();
    loop {
        match stack.poll(now) {
            Output::Transmit(transmit) => log.push(format!("to {}", transmit.to)),
            Output::Event(Event::Failed { request, why: RequestFailure::Cancelled, .. }) => {
                assert_eq!(request, first);
                log.push("cancelled".into());
            }
            Output::Event(Event::Request { from, message, .. }) => {
                assert_eq!(message.code, Code::GET);
                log.push(format!("request of {from}"));
            }
            Output::Event(Event::Answer { from, body, .. }) => log.push(format!("{} of {from}", body.len())),
            Output::Event(event) => panic!("{event:?}"),
            Output::Trace(_) => {}
            Output::Sleep(..) | Output::Idle => break,
        }
    }
    assert_eq!(log, ["cancelled", "to 0", "to 1", "to 2", "request of 9", "1 of 1"]);
}

/// Of the endpoint's timers and the stack's own the first counts, and what waits to be told or to leave is never slept over.
#[test]
fn it_is_quiet_as_long_as_a_poll_would_sleep() {
    let (mut now, mut stack) = (Instant::ORIGIN, stack(0, millpond_coap::Config::default(), Config::default()));
    assert_eq!(stack.quiet_until(now), Some(Instant::NEVER));
    stack.receive(now, 9, b"\x40\x01\0\x01\xff?");
    let request = ClientRequest { deadline: Some(now.after(Span::from_secs(7))), ..get() };
    stack.request(now, 0, &request).unwrap();
    let (mut slept, mut said) = (0, 0);
    while slept < 4 {
        let quiet = stack.quiet_until(now);
        match stack.poll(now) {
            Output::Sleep(until, _) => {
                assert_eq!(quiet, Some(until));
                (now, slept) = (until, slept + 1);
            }
            Output::Idle => break,
            _ => {
                assert_eq!(quiet, None);
                said += 1;
            }
        }
    }
    assert!(slept >= 3 && said >= 5, "{slept}, {said}");
}
