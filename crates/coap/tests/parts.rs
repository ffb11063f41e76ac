//! What a build says when it is asked for a part that it was made without: this runs with all parts, and with few
//! (`make test-parts`).

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use millpond_coap::{
    Config, ConfigError, Endpoint, Event, IdGenerator, Ignored, Outgoing, Output, Refused,
    block::{BlockSize, robust::BurstParameters},
    message::{Code, number},
    transfer::{self, ClientRequest, CoapStack},
};
use millpond_control::{ChanceSeed, Instant, Preset, Span};

const NOW: Instant = Instant::ORIGIN;
const SERVER: u8 = 1;

fn endpoint() -> Endpoint<u8> {
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
    Endpoint::new(Config::SMALL, controller, chance, 0, IdGenerator::counted()).unwrap()
}

fn stack() -> CoapStack<Endpoint<u8>> {
    CoapStack::new(endpoint(), transfer::Config::SMALL, ChanceSeed::new(1)).unwrap()
}

/// The part that an endpoint says it was made without.
fn left_out<T>(result: Result<T, Refused>) -> Option<&'static str> {
    match result.err() {
        Some(Refused::LeftOut { feature }) => Some(feature),
        _ => None,
    }
}

/// The same of a stack.
fn left_out_of_stack<T>(result: Result<T, transfer::Refused>) -> Option<&'static str> {
    match result.err() {
        Some(transfer::Refused::Endpoint(Refused::LeftOut { feature })) => Some(feature),
        _ => None,
    }
}

/// What is said where these parts are wanted: the first that is not there.
fn first_missing(wanted: &[(&'static str, bool)]) -> Option<&'static str> {
    wanted.iter().find(|(_, is_there)| !is_there).map(|(name, _)| *name)
}

macro_rules! parts {
    ($($name:literal),*) => { first_missing(&[$(($name, cfg!(feature = $name))),*]) };
}

#[test]
fn an_endpoint_names_the_part_that_it_was_made_without() {
    let options = [(number::NO_RESPONSE, &[26_u8][..])];
    let (get, quiet) = (Outgoing::confirmable(Code::GET, &[]), Outgoing::confirmable(Code::GET, &options));
    let token = millpond_coap::message::Token::EMPTY;
    assert_eq!(left_out(endpoint().request(NOW, SERVER, &get)), parts!("client"));
    assert_eq!(left_out(endpoint().request(NOW, SERVER, &quiet)), parts!("client", "no-response"));
    let plain = endpoint().request(NOW, SERVER, &Outgoing::non_confirmable(Code::GET, &[]));
    assert_eq!(left_out(plain), parts!("client", "non-confirmable"));
    let observes = if cfg!(feature = "client") { parts!("observe") } else { Some("observe") };
    assert_eq!(left_out(endpoint().subscribe(NOW, SERVER, &get)), observes);
    let groups = if cfg!(feature = "client") { parts!("groups") } else { Some("groups") };
    assert_eq!(left_out(endpoint().request_group(NOW, SERVER, &get)), groups);
    assert_eq!(left_out(endpoint().claim(NOW, SERVER)), parts!("q-block"));
    let paths = endpoint().share_path(NOW, SERVER, &0);
    assert_eq!(left_out(paths), parts!("shared-paths"));
    let notifies = cfg!(all(feature = "server", feature = "observe")) || cfg!(feature = "q-block");
    let content = Outgoing::confirmable(Code::CONTENT, &[]);
    let sent = endpoint().send_additional(NOW, SERVER, token, &content);
    assert_eq!(left_out(sent), (!notifies).then_some("observe"));
}

#[test]
fn a_stack_names_the_part_that_it_was_made_without() {
    let options = [(number::NO_RESPONSE, &[26_u8][..])];
    let get = ClientRequest::new(Code::GET, &[]);
    let ask = |ask: &ClientRequest<'_>| left_out_of_stack(stack().request(NOW, SERVER, ask));
    assert_eq!(ask(&get), parts!("client"));
    assert_eq!(ask(&get.observing()), parts!("client", "observe"));
    assert_eq!(ask(&ClientRequest { early: Some(BlockSize::B64), ..get }), parts!("client", "block"));
    assert_eq!(ask(&get.in_bursts()), parts!("client", "q-block"));
    assert_eq!(ask(&ClientRequest::new(Code::GET, &options)), parts!("client", "no-response"));
    let groups = if cfg!(feature = "client") { parts!("groups") } else { Some("groups") };
    assert_eq!(left_out_of_stack(stack().request_group(NOW, SERVER, &get, Span::from_secs(1))), groups);
    let config = transfer::Config { q_block: Some(BurstParameters::PACED), ..transfer::Config::SMALL };
    let made = CoapStack::new(endpoint(), config, ChanceSeed::new(1)).map(drop);
    let refused = parts!("q-block").map(|feature| transfer::ConfigError::LeftOut { feature });
    assert_eq!(made.err(), refused);
    assert_eq!(stack().set_q_block(SERVER, BurstParameters::PACED).err(), refused);
    let words = Refused::LeftOut { feature: "observe" }.to_string();
    assert_eq!(words, "millpond-coap was built without the feature `observe`");
}

#[test]
fn a_configuration_names_the_part_that_it_needs() {
    let made = |change: fn(&mut Config)| {
        let mut config = Config::SMALL;
        change(&mut config);
        let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
        Endpoint::<u8>::new(config, controller, chance, 0, IdGenerator::counted()).err()
    };
    let left_out = |feature| ConfigError::LeftOut { feature };
    let tables = parts!("many-peers").map(left_out);
    assert_eq!(made(|_| {}), None);
    assert_eq!(made(|config| config.limits.peers = 64), None);
    assert_eq!(made(|config| config.limits.peers = 65), tables);
    assert_eq!(made(|config| config.limits.exchanges_per_peer = 17), tables);
    let long = parts!("long-tokens").map(left_out);
    assert_eq!(made(|config| config.token_length = 9), long);
    assert_eq!(made(|config| config.longest_token = 9), long);
}

/// A controller that wishes options on the copies of requests does not go without them unsaid.
#[cfg(feature = "fasor")]
#[test]
fn a_controller_has_the_options_that_it_wishes() {
    let wishes = |preset: Preset| {
        let (controller, chance) = (preset.build(), ChanceSeed::new(1));
        Endpoint::<u8>::new(Config::SMALL, controller, chance, 0, IdGenerator::counted()).err()
    };
    assert_eq!(wishes(Preset::FASOR_TOKEN), None);
    assert_eq!(wishes(Preset::FASOR_COUNT), parts!("copy-options").map(|feature| ConfigError::LeftOut { feature }));
    let set = endpoint().set_controller(NOW, SERVER, Preset::FASOR_COUNT.build());
    assert_eq!(left_out(set), parts!("copy-options"));
}

/// Without a server a request is rejected, and that is told.
#[test]
fn a_request_is_served_or_rejected() {
    let mut endpoint = endpoint();
    endpoint.receive(NOW, SERVER, &[0x40, 1, 0, 7]);
    let (mut sent, mut served, mut ignored) = (Vec::new(), 0, Vec::new());
    loop {
        match endpoint.poll(NOW) {
            Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
            Output::Event(Event::Request { .. }) => served += 1,
            Output::Event(Event::Ignored { why, .. }) => ignored.push(why),
            Output::Event(other) => panic!("{other:?}"),
            Output::Sleep(..) | Output::Idle => break,
        }
    }
    let expected = if cfg!(feature = "server") {
        (vec![], 1, vec![])
    } else {
        (vec![vec![0x70, 0, 0, 7]], 0, vec![Ignored::NotServed])
    };
    assert_eq!((sent, served, ignored), expected);
}

/// A body goes whole where it cannot be cut, and the part of one is none.
#[cfg(feature = "client")]
#[test]
fn the_first_block_of_an_answer_is_not_taken_for_the_whole() {
    let mut stack = stack();
    stack.request(NOW, SERVER, &ClientRequest::new(Code::GET, &[])).unwrap();
    // 2.05 with the token of the request, Block2 0/more/16 and 16 bytes.
    let answer = [&[0x64, 0x45, 0, 0, 0, 0, 0, 0, 0xd1, 0x0a, 0x08, 0xff][..], &[b'.'; 16]].concat();
    let (mut requests, mut failures) = (0, Vec::new());
    for datagram in [None, Some(answer)] {
        if let Some(datagram) = datagram {
            stack.receive(NOW, SERVER, &datagram);
        }
        loop {
            match stack.poll(NOW) {
                Output::Transmit(_) => requests += 1,
                Output::Event(transfer::Event::Failed { why, .. }) => failures.push(why),
                Output::Event(other) => panic!("{other:?}"),
                Output::Sleep(..) | Output::Idle => break,
                _ => {}
            }
        }
    }
    match parts!("block") {
        None => assert_eq!((requests, failures), (2, vec![])),
        Some(feature) => {
            assert_eq!((requests, failures), (1, vec![transfer::RequestFailure::Refused(Refused::LeftOut { feature })]))
        }
    }
}

/// Without blocks their options are critical ones that nobody understands (RFC 7252 §5.4.1).
#[cfg(feature = "server")]
#[test]
fn a_block_of_a_request_is_taken_or_refused() {
    let mut stack = stack();
    // PUT with Block1 0/more/16 and 16 bytes.
    stack.receive(NOW, SERVER, &[&[0x40, 3, 0, 7, 0xd1, 0x0e, 0x08, 0xff][..], &[b'.'; 16]].concat());
    let mut codes = Vec::new();
    loop {
        match stack.poll(NOW) {
            Output::Transmit(transmit) => codes.push(transmit.bytes[1]),
            Output::Sleep(..) | Output::Idle => break,
            _ => {}
        }
    }
    let code = if cfg!(feature = "block") { Code::CONTINUE } else { Code::BAD_OPTION };
    assert_eq!(codes, [code.to_byte()]);
}
