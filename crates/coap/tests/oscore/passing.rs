//! Stacks that have contexts and let pass what is for none of them, as a proxy does.

use std::collections::VecDeque;

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::oscore::{Context, OscoreOption, Parameters, Protector, Which};
use millpond_coap::transfer::{Answer, ClientRequest, Event, ObserverId};
use millpond_coap::{Endpoint, IdGenerator, Output, Transmission};
use millpond_control::{ChanceSeed, Instant, Preset};
use proptest::prelude::*;

use super::messages::{CLIENT, get, pair, parsed, protected_request, registration, written};
use super::stacks::{Contexts, One, stack, stored};

const NOW: Instant = Instant::ORIGIN;
const CLIENT_AT: u8 = 1;
const SERVER_AT: u8 = 2;

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"level")];
/// Of somebody else, with an ID that is not known here, and with one that is.
const OTHER: Parameters<'static> = Parameters { sender_id: &[9], ..CLIENT };
const COLLIDING: Parameters<'static> =
    Parameters { sender_id: CLIENT.sender_id, ..Parameters::of(b"another secret..") };

#[derive(Clone)]
struct Passing(Contexts);

impl Protector for Passing {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        // It asks nobody under its contexts by itself.
        if !matches!(which, Which::Sends) {
            self.0.with_context(which, act);
        }
    }

    fn passes_others(&self) -> bool {
        true
    }

    fn is_for(&self, request: &Message<'_>) -> bool {
        let option = request.option(number::OSCORE).map(OscoreOption::decode);
        option.is_some_and(|option| option.is_ok_and(|option| option.kid == Some(CLIENT.sender_id)))
    }
}

fn endpoint(node: u32) -> Endpoint<u8> {
    let transmission = Transmission { probing_rate: 1_000_000, ..Transmission::default() };
    let config = millpond_coap::Config { transmission, ..Default::default() };
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
    Endpoint::new(config, controller, chance, node, IdGenerator::counted()).unwrap()
}

/// What an application saw.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    code: Code,
    is_protected: bool,
    observes: bool,
    length: usize,
    context: Option<Vec<u8>>,
}

fn seen(message: &Message<'_>, body: &[u8], observes: bool, context: Option<&[u8]>) -> Seen {
    let (is_protected, context) = (message.option(number::OSCORE).is_some(), context.map(<[u8]>::to_vec));
    Seen { code: message.code, is_protected, observes, length: body.len(), context }
}

fn get_of(context: Option<&[u8]>, observes: bool) -> Seen {
    Seen { code: Code::GET, is_protected: false, observes, length: 0, context: context.map(<[u8]>::to_vec) }
}

/// Somebody asks a stack whose application answers with 3,000 bytes, or with a few to who observes.
struct World {
    client: One,
    server: One,
    /// Under way, and to whom.
    network: VecDeque<(u8, Vec<u8>)>,
    /// All that was.
    left: Vec<(u8, Vec<u8>)>,
    asked: Vec<Seen>,
    bodies: Vec<Vec<u8>>,
    answered: Vec<Seen>,
    observers: Vec<ObserverId>,
    gone: usize,
}

impl World {
    fn new(client: Endpoint<u8>) -> Self {
        let server = endpoint(1).protected_by(Passing(stored(&CLIENT.mirrored(), 0)));
        Self {
            client: stack(client),
            server: stack(server),
            network: VecDeque::new(),
            left: Vec::new(),
            asked: Vec::new(),
            bodies: Vec::new(),
            answered: Vec::new(),
            observers: Vec::new(),
            gone: 0,
        }
    }

    fn ask(&mut self, ask: &ClientRequest<'_>) {
        self.client.request(NOW, SERVER_AT, ask).unwrap();
        self.run();
    }

    /// The server hears this from a client that is not here.
    fn hears(&mut self, datagram: &[u8]) -> Message<'_> {
        self.network.push_back((SERVER_AT, datagram.to_vec()));
        self.run();
        Message::parse(&self.left.last().unwrap().1).unwrap()
    }

    fn run(&mut self) {
        self.hear_client();
        self.hear_server();
        while let Some((to, datagram)) = self.network.pop_front() {
            self.left.push((to, datagram.clone()));
            if to == SERVER_AT {
                self.server.receive(NOW, CLIENT_AT, &datagram);
                self.hear_server();
            } else {
                self.client.receive(NOW, SERVER_AT, &datagram);
                self.hear_client();
            }
        }
    }

    fn hear_client(&mut self) {
        loop {
            match self.client.poll(NOW) {
                Output::Transmit(transmit) => self.network.push_back((SERVER_AT, transmit.bytes.to_vec())),
                Output::Event(Event::Answer { message, body, goes_on, .. }) => {
                    self.answered.push(seen(&message, &body, goes_on, None));
                }
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                Output::Sleep(..) | Output::Idle => return,
            }
        }
    }

    fn hear_server(&mut self) {
        loop {
            let mut asks = None;
            match self.server.poll(NOW) {
                Output::Transmit(transmit) => self.network.push_back((CLIENT_AT, transmit.bytes.to_vec())),
                Output::Event(Event::Request { id, message, body, wants_to_observe, context, .. }) => {
                    self.asked.push(seen(&message, &body, wants_to_observe, context));
                    asks = Some((id, wants_to_observe));
                    self.bodies.push(body.into_owned());
                }
                Output::Event(Event::ObserverGone { .. }) => self.gone += 1,
                Output::Event(Event::Refused { .. }) => {}
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                Output::Sleep(..) | Output::Idle => return,
            }
            match asks {
                Some((id, true)) => {
                    let answer = Answer::new(Code::CONTENT, &[]).with_body(b"level");
                    self.observers.extend(self.server.accept_observer(NOW, id, &answer).unwrap());
                }
                Some((id, false)) => {
                    let large = [7; 3_000];
                    self.server.answer(NOW, id, &Answer::new(Code::CONTENT, &[]).with_body(&large)).unwrap();
                }
                None => {}
            }
        }
    }
}

#[test]
fn who_has_a_context_and_who_has_none_are_both_served() {
    for (client, context) in
        [(endpoint(0), None), (endpoint(0).protected_by(stored(&CLIENT, 0)), Some(CLIENT.sender_id))]
    {
        let mut world = World::new(client);
        world.ask(&ClientRequest::new(Code::GET, &PATH));
        assert_eq!(world.asked, [get_of(context, false)]);
        assert_eq!((world.answered[0].code, world.answered[0].length), (Code::CONTENT, 3_000));
        let body = [1; 2_000];
        world.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&body));
        assert_eq!((world.asked[1].code, world.asked[1].length), (Code::PUT, 2_000));
        assert_eq!(world.asked[1].context.as_deref(), context);
        world.ask(&ClientRequest::new(Code::GET, &PATH).observing());
        assert_eq!(world.asked[2], get_of(context, true));
        assert!(world.answered[2].observes);
        let state = Answer::new(Code::CONTENT, &[]).with_body(b"changed");
        world.server.notify(NOW, world.observers[0], &state).unwrap();
        world.run();
        assert_eq!((world.answered[3].length, world.answered.len()), (7, 4));
        let is_protected = |bytes: &[u8]| parsed(bytes).option(number::OSCORE).is_some();
        let with_code = |(_, datagram): &&(u8, Vec<u8>)| parsed(datagram).code != Code::EMPTY;
        assert!(world.left.iter().filter(with_code).all(|(_, bytes)| is_protected(bytes) == context.is_some()));
    }
}

/// Its sender and somebody behind the application have a context that is not known here, even if it has the ID of one that is.
#[test]
fn what_is_protected_for_others_is_handed_up_as_it_is_and_answered_so() {
    for parameters in [OTHER, COLLIDING] {
        let (mut client, _) = pair(&parameters);
        let (_, protected) = protected_request(&mut client, &get("level"));
        let mut world = World::new(endpoint(0));
        assert!(world.hears(&protected).option(number::OSCORE).is_none());
        let code = parsed(&protected).code;
        let length = parsed(&protected).payload().len();
        assert_eq!(world.asked, [Seen { code, is_protected: true, observes: false, length, context: None }]);
    }
}

/// Also if a proxy has cut it: that is for who can read it.
#[test]
fn blocks_of_what_is_protected_for_others_are_put_together_as_any_are() {
    let (mut client, _) = pair(&OTHER);
    let put = written(Kind::Confirmable, Code::PUT, &PATH, &[5; 100]);
    let (_, protected) = protected_request(&mut client, &put);
    let message = parsed(&protected);
    let option = message.option(number::OSCORE).unwrap();
    let options = [(number::OSCORE, option)];
    let ask = ClientRequest::new(Code::POST, &options).with_body(message.payload());
    let mut world = World::new(endpoint(0));
    world.ask(&ClientRequest { upload: BlockSize::B32, early: Some(BlockSize::B32), ..ask });
    assert!(world.left.len() > 4, "it was cut");
    let length = message.payload().len();
    assert_eq!(world.asked.last().map(|asked| (asked.is_protected, asked.length)), Some((true, length)));
    assert_eq!(world.answered.last().map(|answered| answered.length), Some(3_000));
}

/// What a client sends that is protected already leaves as it is, and so does its answer come back.
#[test]
fn a_protected_message_of_somebody_else_is_sent_on_as_it_is() {
    let (mut client, _) = pair(&OTHER);
    let (_, protected) = protected_request(&mut client, &get("level"));
    let message = parsed(&protected);
    let options = [(number::OSCORE, message.option(number::OSCORE).unwrap())];
    let mut world = World::new(endpoint(0).protected_by(Passing(stored(&CLIENT, 0))));
    world.ask(&ClientRequest::new(Code::POST, &options).with_body(message.payload()));
    assert_eq!(parsed(&world.left[0].1).payload(), message.payload());
    assert_eq!(world.answered.len(), 1);
    world.ask(&ClientRequest::new(Code::GET, &PATH));
    assert_eq!(world.asked[1], get_of(None, false));
}

/// Neither does who forges its address and registers in the clear, or under a context of others.
#[test]
fn nobody_else_ends_an_observation_under_a_context_or_takes_it_over() {
    let (mut client, _) = pair(&CLIENT);
    let (mut sent, protected) = protected_request(&mut client, &registration());
    let mut world = World::new(endpoint(0));
    world.hears(&protected);
    assert_eq!(world.asked, [get_of(Some(CLIENT.sender_id), true)]);
    let other = {
        let (mut other, _) = pair(&OTHER);
        protected_request(&mut other, &registration()).1
    };
    for (number, mut forged) in [registration(), other].into_iter().enumerate() {
        // Another message.
        forged[3] ^= 1 + number as u8;
        world.hears(&forged);
        assert!(!world.asked.last().unwrap().observes);
        assert_eq!((world.gone, world.observers.len()), (0, 1));
    }
    let state = Answer::new(Code::CONTENT, &[]).with_body(b"changed");
    world.server.notify(NOW, world.observers[0], &state).unwrap();
    let before = world.left.len();
    world.run();
    let (mut plain, notified) = (Vec::new(), world.left[before].1.clone());
    client.unprotect_response(&mut sent, &parsed(&notified), &mut plain).unwrap();
    assert_eq!(parsed(&plain).payload(), b"changed");
}

fn with_id(mut message: Vec<u8>, id: u8) -> Vec<u8> {
    message[3] ^= id;
    message
}

/// An address may have several senders: a proxy in between, or who forges it.
#[test]
fn nobody_else_gets_later_blocks_of_an_answer() {
    let (mut client, _) = pair(&CLIENT);
    let (_, protected) = protected_request(&mut client, &get("level"));
    let mut world = World::new(endpoint(0));
    world.hears(&protected);
    let later = [(number::URI_PATH, &b"level"[..]), (number::BLOCK2, &[0x16])];
    let plain = with_id(written(Kind::Confirmable, Code::GET, &later, b""), 9);
    world.hears(&plain);
    assert_eq!(world.asked, [get_of(Some(CLIENT.sender_id), false), get_of(None, false)]);
}

#[test]
fn nobody_else_has_a_part_in_a_body() {
    let (mut client, _) = pair(&CLIENT);
    let put = |number: u8, more: bool, byte: u8, id: u8| {
        let block = [number << 4 | if more { 8 } else { 0 } | 2];
        let options = [(number::URI_PATH, &b"level"[..]), (number::BLOCK1, &block)];
        with_id(written(Kind::Confirmable, Code::PUT, &options, &[byte; 64]), id)
    };
    let mut world = World::new(endpoint(0));
    world.hears(&protected_request(&mut client, &put(0, true, b'C', 1)).1);
    assert_eq!(world.hears(&put(0, true, b'E', 2)).code, Code::CONTINUE);
    world.hears(&protected_request(&mut client, &put(1, false, b'C', 3)).1);
    assert_eq!(world.bodies, [[b'C'; 128]]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Cut or whole, with tokens of whatever length, and whatever stands where protection would.
    #[test]
    fn what_nobody_has_protected_came_by_no_context(
        messages in prop::collection::vec(
            (1_u8..8, prop::option::of(prop::collection::vec(any::<u8>(), 0..6)), prop::option::of(any::<u8>()),
             prop::collection::vec(any::<u8>(), 0..40)),
            1..12,
        )
    ) {
        let mut world = World::new(endpoint(0));
        for (id, (code, option, block, payload)) in messages.iter().enumerate() {
            // Often the ID of the context that is there.
            let option = option.as_ref().map(|rest| [&[0x09, id as u8][..], &CLIENT.sender_id[..id % 2], rest].concat());
            let option = option.iter().map(|value| (number::OSCORE, &value[..]));
            let block = block.map(|block| [block]);
            let block = block.iter().map(|value| (number::BLOCK1, &value[..]));
            let options: Vec<_> = option.chain([PATH[0]]).chain(block).collect();
            let message = written(Kind::Confirmable, Code::from_byte(*code), &options, payload);
            world.hears(&with_id(message, id as u8));
        }
        prop_assert!(world.asked.iter().all(|asked| asked.context.is_none()));
    }
}
