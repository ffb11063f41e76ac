//! What congestion control sees of protected messages: their copies, what answers say of these, and which a server withholds.

use millpond_coap::message::{Code, Message, number};
use millpond_coap::oscore::ResponseFault;
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config as StackConfig, Event, RequestFailure};
use millpond_coap::{CalmGate, Config, Duplicates, Endpoint, Event as Told, IdGenerator, Output};
use millpond_control::{ChanceSeed, Instant, Named, Preset, Sample, Span};

use super::messages::CLIENT;
use super::stacks::{One, stored};

const SECOND: u32 = 1_000_000;

fn made(preset: Preset, duplicates: Duplicates, node: u32) -> Endpoint<u8> {
    let config = Config { duplicates, ..Config::default() };
    Endpoint::new(config, preset.build(), ChanceSeed::new(1), node, IdGenerator::counted()).unwrap()
}

fn stack(endpoint: Endpoint<u8>) -> One {
    CoapStack::new(endpoint, StackConfig::default(), ChanceSeed::new(2)).unwrap()
}

/// A client and a server with a path between them on which everything takes its time.
struct Path {
    now: Instant,
    stacks: [One; 2],
    one_way: u32,
    /// Of datagrams that left so far, these are lost.
    lost: Vec<usize>,
    flying: Vec<(Instant, usize, Vec<u8>)>,
    /// From the client, and from the server.
    left: [Vec<Vec<u8>>; 2],
    samples: Vec<Sample>,
    answers: Vec<Result<Code, RequestFailure>>,
    carried_out: u32,
}

impl Path {
    fn new(stacks: [Endpoint<u8>; 2], one_way: u32) -> Self {
        Self {
            now: Instant::ORIGIN,
            stacks: stacks.map(stack),
            one_way,
            lost: Vec::new(),
            flying: Vec::new(),
            left: [Vec::new(), Vec::new()],
            samples: Vec::new(),
            answers: Vec::new(),
            carried_out: 0,
        }
    }

    fn protected(preset: Preset, duplicates: Duplicates, one_way: u32) -> Self {
        let client = made(preset, Duplicates::Stored, 0).protected_by(stored(&CLIENT, 0));
        Self::new([client, made(preset, duplicates, 1).protected_by(stored(&CLIENT.mirrored(), 0))], one_way)
    }

    fn in_the_clear(preset: Preset, duplicates: Duplicates, one_way: u32) -> Self {
        Self::new([made(preset, Duplicates::Stored, 0), made(preset, duplicates, 1)], one_way)
    }

    /// What a stack says until it was drained, and when it wants to be asked again.
    fn drain(&mut self, side: usize) -> Instant {
        let mut asked = None;
        loop {
            match self.stacks[side].poll(self.now) {
                Output::Transmit(transmit) => {
                    let count = self.left[0].len() + self.left[1].len();
                    let datagram = transmit.bytes.to_vec();
                    self.left[side].push(datagram.clone());
                    if !self.lost.contains(&count) {
                        self.flying.push((self.now.after(Span::from_micros(self.one_way)), 1 - side, datagram));
                    }
                }
                Output::Event(Event::Request { id, .. }) => asked = Some(id),
                Output::Event(Event::Answer { message, .. }) => self.answers.push(Ok(message.code)),
                Output::Event(Event::Failed { why, .. }) => self.answers.push(Err(why)),
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(Told::Response { sample, .. }) => self.samples.extend(sample),
                Output::Trace(_) => {}
                Output::Sleep(until, _) if asked.is_none() => return until,
                Output::Idle if asked.is_none() => return Instant::NEVER,
                Output::Sleep(..) | Output::Idle => {
                    self.carried_out += 1;
                    let answer = Answer::new(Code::CHANGED, &[]);
                    self.stacks[side].answer(self.now, asked.take().unwrap(), &answer).unwrap();
                }
            }
        }
    }

    fn ask(&mut self, count: usize) {
        const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"reading")];
        for _ in 0..count {
            let (answered, begun) = (self.answers.len(), self.now);
            self.stacks[0].request(self.now, 2, &ClientRequest::new(Code::PUT, &PATH).with_body(b"21.5")).unwrap();
            // And until the last copy has come through.
            while self.answers.len() == answered || !self.flying.is_empty() {
                let woken = self.drain(0).min(self.drain(1));
                let Some(first) = self.flying.iter().map(|(at, ..)| *at).min() else {
                    self.now = woken;
                    continue;
                };
                self.now = first.min(woken).max(self.now);
                if first <= woken {
                    let place = self.flying.iter().position(|(at, ..)| *at == first).unwrap();
                    let (_, side, datagram) = self.flying.remove(place);
                    self.stacks[side].receive(self.now, 2 - side as u8, &datagram);
                    self.drain(side);
                }
            }
            assert!(self.now > begun);
        }
    }

    fn named(&self) -> Vec<Named> {
        self.samples.iter().map(Sample::named).collect()
    }
}

fn outside(datagram: &[u8]) -> (Vec<u16>, Vec<u8>, Vec<u8>) {
    let message = Message::parse(datagram).unwrap();
    let protected = message.option(number::OSCORE).unwrap().to_vec();
    (message.options().map(|option| option.number).collect(), protected, message.payload().to_vec())
}

/// docs/appendix/oscore-congestion.md, "Naming transmissions": the token costs one byte, in later copies.
#[test]
fn copies_named_by_their_tokens_are_the_same_protected_bytes_and_an_answer_says_which_it_answers() {
    let mut path = Path::protected(Preset::CALM, Duplicates::Stored, SECOND / 10);
    path.lost = vec![0];
    path.ask(1);
    assert_eq!((&path.answers[..], path.carried_out), (&[Ok(Code::CHANGED)][..], 1));
    assert_eq!(path.named(), [Named::Copy(1)]);
    let [first, second] = &path.left[0][..] else { panic!("two copies") };
    assert_eq!(second.len(), first.len() + 1);
    assert_eq!(outside(first), outside(second));
    let [one, other] = [first, second].map(|copy| Message::parse(copy).unwrap());
    assert_eq!((one.id, [one.token.as_bytes(), &[1]].concat()), (other.id, other.token.as_bytes().to_vec()));
}

#[test]
fn options_that_name_copies_stand_outside_and_neither_application_sees_them() {
    for preset in [Preset::FASOR_COUNT, Preset::COCOA_FLAG, Preset::COCOA_ECHO] {
        let mut path = Path::protected(preset, Duplicates::Stored, SECOND / 10);
        path.ask(1);
        path.lost = vec![path.left[0].len() + path.left[1].len()];
        path.ask(1);
        assert_eq!((path.answers.len(), path.carried_out), (2, 2));
        assert_ne!(path.named()[1], Named::Nothing, "{preset:?}");
        let [_, first, second] = &path.left[0][..] else { panic!("three copies") };
        let ((options, of_first, sealed), (_, of_second, again)) = (outside(first), outside(second));
        assert_eq!((of_first, sealed), (of_second, again));
        assert_eq!((options[0], options.len()), (number::OSCORE, 2), "{preset:?}");
    }
}

/// docs/appendix/oscore-congestion.md, "A calm server": ten requests of a fixed timer over a round trip of ten seconds.
#[test]
fn a_calm_server_withholds_as_many_answers_to_protected_copies_as_to_others() {
    let count = |mut path: Path| {
        path.ask(10);
        assert!(path.answers.iter().all(Result::is_ok));
        // Without pings and their rejections.
        let of_side = |side: usize| path.left[side].iter().filter(|datagram| datagram.len() > 4).count();
        (of_side(0), of_side(1), path.carried_out)
    };
    let both = |duplicates| {
        let of = [Path::in_the_clear, Path::protected];
        of.map(|make| count(make(Preset::RFC7252, duplicates, 5 * SECOND)))
    };
    let [plain, protected] = both(Duplicates::Stored);
    let [plain_calm, protected_calm] = both(Duplicates::Calm);
    assert_eq!((plain, plain_calm), (protected, protected_calm));
    assert_eq!([protected, protected_calm], [(30, 30, 10), (30, 14, 10)]);
}

#[test]
fn a_relay_that_is_calm_knows_copies_whose_tokens_name_them() {
    let mut path = Path::protected(Preset::CALM, Duplicates::Stored, SECOND / 10);
    path.lost = vec![0];
    path.ask(1);
    let [first, second] = &path.left[0][..] else { panic!("two copies") };
    let mut gate = CalmGate::new(|_: &u8| 0, IdGenerator::counted(), 1 << 20);
    // Three peers show by pings that the queue takes ten seconds.
    let pings = [1, 2, 3].map(|peer| {
        assert!(gate.request(Instant::ORIGIN, peer, &[0x40, 1, 0, 0]));
        gate.answer(Instant::ORIGIN, peer, &[0x60, 0x45, 0, 0]);
        gate.ping().unwrap()
    });
    let now = Instant::from_micros(10 * u64::from(SECOND));
    for (peer, [_, _, high, low]) in pings {
        assert!(!gate.request(now, peer, &[0x70, 0, high, low]));
    }
    // Of another message ID than what was asked before.
    let [first, second] = [first, second].map(|copy| [&copy[..2], &[1], &copy[3..]].concat());
    assert!(gate.request(now, 1, &first));
    gate.answer(now, 1, &[&[0x60, 0x44][..], &first[2..4]].concat());
    assert!(!gate.request(now, 1, &second));
    // One that is protected again is another request.
    path.ask(1);
    assert!(gate.request(now, 1, &path.left[0][2]));
}

/// A copy cannot be taken as a new request: it would be a replay.
#[test]
fn an_endpoint_that_would_take_copies_afresh_stores_its_answers_under_protection() {
    let mut path = Path::protected(Preset::RFC7252, Duplicates::Afresh, SECOND / 10);
    // The first answer.
    path.lost = vec![1];
    path.ask(1);
    assert_eq!((&path.answers[..], path.carried_out), (&[Ok(Code::CHANGED)][..], 1));
    assert_eq!(path.left[1][0], path.left[1][1]);
    // Also if it is told so later on.
    path.stacks[1].endpoint_mut().set_duplicates(Duplicates::Afresh);
    path.lost = vec![path.left.iter().map(Vec::len).sum::<usize>() + 1];
    path.ask(1);
    assert_eq!((&path.answers[1..], path.carried_out), (&[Ok(Code::CHANGED)][..], 2));
    assert_eq!(path.left[1][2], path.left[1][3]);
}

/// Its sender is another peer then, of whom no answer is stored.
#[test]
fn a_copy_that_comes_from_another_address_is_refused_and_not_carried_out_again() {
    let mut path = Path::protected(Preset::RFC7252, Duplicates::Stored, SECOND / 10);
    path.ask(1);
    let copy = path.left[0][0].clone();
    path.stacks[1].receive(path.now, 77, &copy);
    path.drain(1);
    assert_eq!(path.carried_out, 1);
    let answer = Message::parse(path.left[1].last().unwrap()).unwrap();
    assert_eq!((answer.code, answer.payload()), (Code::UNAUTHORIZED, &b"Replay detected"[..]));
}

/// What is below protection is not protected: who sees a token and a message ID can answer.
#[test]
fn a_forged_answer_is_learned_from_and_ends_its_request_but_never_as_an_answer() {
    let mut path = Path::protected(Preset::CALM, Duplicates::Stored, SECOND / 10);
    path.lost = vec![0];
    let reading: [(u16, &[u8]); 1] = [(number::URI_PATH, b"reading")];
    path.stacks[0].request(path.now, 2, &ClientRequest::new(Code::GET, &reading)).unwrap();
    path.drain(0);
    let request = Message::parse(&path.left[0][0]).unwrap();
    let mut forged = vec![0x60 | request.token.len() as u8, Code::CONTENT.to_byte()];
    forged.extend(request.id.0.to_be_bytes());
    forged.extend(request.token.as_bytes());
    path.now = Instant::from_micros(SECOND.into());
    path.stacks[0].receive(path.now, 2, &forged);
    path.drain(0);
    assert_eq!(path.named(), [Named::Copy(0)]);
    assert_eq!(path.answers, [Err(RequestFailure::Protection(ResponseFault::NotProtected(Code::CONTENT)))]);
}
