//! Controllers of the user's own, behind a pointer: as many as there are peers, each with what it knows.

use std::sync::Arc;

use millpond_coap::{Config, Endpoint, Event, IdGenerator, Lifetimes, Output, Refused, Transmission};
use millpond_control::{
    AnyController, ChanceSeed, Controller, Cx, Exchange, Instant, PeerController, Preset, Reason, Sample, Span, View,
    Wait, Wishes,
};

use crate::pair::{SECOND, get, steady};
use crate::session::Wishing;

/// Waits 7 s longer with every copy and remembers how often it was answered. What it holds can be counted.
#[derive(Clone, Debug)]
struct Own {
    answers: u32,
    held: Arc<()>,
    /// To be told from small ones by what it takes.
    _ballast: [u64; 32],
}

impl Own {
    fn new() -> Self {
        Self { answers: 0, held: Arc::new(()), _ballast: [0; 32] }
    }
}

impl Controller for Own {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        exchange.begin(cx.now, Span::from_secs(7));
        Wait::then_retransmit(exchange.current(), Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(exchange.current().plus(Span::from_secs(7)));
        Wait::then_retransmit(exchange.current(), Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {
        self.answers += 1;
    }

    fn view(&self) -> View {
        View { rto: Some(Span::from_secs(self.answers)), ..View::default() }
    }

    fn longest_wait(&self, _copy: u8, previous: Span) -> Span {
        previous.plus(Span::from_secs(7))
    }
}

fn client(controller: impl Into<PeerController>, change: impl FnOnce(&mut Config)) -> Endpoint<u8> {
    let mut config = Config::default();
    change(&mut config);
    Endpoint::new(config, controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap()
}

fn drain(client: &mut Endpoint<u8>, now: u64) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    loop {
        match client.poll(Instant::from_micros(now)) {
            Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return sent,
        }
    }
}

/// Asks a peer and gets the answer at once.
fn contact(client: &mut Endpoint<u8>, now: u64, to: u8) -> Result<(), Refused> {
    client.request(Instant::from_micros(now), to, &get())?;
    let mut reply = drain(client, now).remove(0);
    reply.truncate(8);
    (reply[0], reply[1]) = (0x64, 0x45);
    client.receive(Instant::from_micros(now), to, &reply);
    drain(client, now);
    Ok(())
}

fn answers(client: &Endpoint<u8>, peer: u8) -> Option<Span> {
    client.view(peer).unwrap().rto
}

#[test]
fn every_peer_has_a_copy_that_goes_its_own_way() {
    let mut client = client(PeerController::own(Own::new()), |_| {});
    for to in [1, 2, 1, 1] {
        contact(&mut client, 0, to).unwrap();
    }
    assert_eq!([1, 2].map(|peer| answers(&client, peer)), [3, 1].map(|count| Some(Span::from_secs(count))));
    let mut sibling = client.sibling(1);
    contact(&mut sibling, 0, 1).unwrap();
    assert_eq!(answers(&sibling, 1), Some(Span::from_secs(1)), "from the prototype");
    client.forget_controller(Instant::ORIGIN, 1);
    assert_eq!(answers(&client, 1), Some(Span::ZERO));
}

#[test]
fn built_in_ones_and_own_ones_replace_each_other() {
    let mut client = client(Preset::RFC7252.build(), |_| {});
    contact(&mut client, 0, 1).unwrap();
    client.set_controller(Instant::ORIGIN, 1, PeerController::own(Own::new())).unwrap();
    contact(&mut client, 0, 1).unwrap();
    contact(&mut client, 0, 2).unwrap();
    assert_eq!(answers(&client, 1), Some(Span::from_secs(1)));
    client.set_controller(Instant::ORIGIN, 1, steady()).unwrap();
    assert_eq!(client.view(1), Some(steady().view()));
}

/// The waits are its own: 7, 14, 21, 28 and 35 s.
#[test]
fn lifetimes_are_summed_from_its_own_waits() {
    let own = PeerController::own(Own::new());
    let lifetimes = Lifetimes::of(&own, &Transmission::RFC7252);
    let expected = Lifetimes::of_waits([7, 14, 21, 28, 35].map(|seconds| seconds * SECOND), &Transmission::RFC7252);
    assert_eq!(lifetimes, expected);
    assert_eq!((lifetimes.transmit_span, lifetimes.exchange), (70 * SECOND, 272 * SECOND));

    // And the endpoint goes by them: a response is awaited for EXCHANGE_LIFETIME after the acknowledgement.
    let mut client = client(own, |_| {});
    client.request(Instant::ORIGIN, 1, &get()).unwrap();
    drain(&mut client, 0);
    client.receive(Instant::ORIGIN, 1, b"\x60\x00\x00\x00");
    drain(&mut client, 0);
    drain(&mut client, 272 * SECOND - 1);
    assert_eq!(client.exchanges(), 1);
    assert!(matches!(
        client.poll(Instant::from_micros(272 * SECOND)),
        Output::Event(Event::Failed { why: millpond_coap::Failure::NoResponse, .. })
    ));
}

/// A wrapper that passes on what it is asked makes no difference.
#[test]
fn a_wrapped_controller_behaves_like_the_one_inside() {
    let run = |controller: PeerController| {
        let mut client = client(controller, |_| {});
        let mut log = Vec::new();
        for round in 0..20_u64 {
            let now = round * 400 * SECOND;
            client.request(Instant::from_micros(now), 1, &get()).unwrap();
            let mut at = now;
            for _ in 0..round % 5 {
                drain(&mut client, at);
                let Output::Sleep(until, _) = client.poll(Instant::from_micros(at)) else { panic!("idle") };
                at = until.as_micros();
            }
            log.push((at - now, client.view(1)));
            let reply = drain(&mut client, at).pop().map(|sent| [b"\x64\x45", &sent[2..8]].concat());
            if let Some(reply) = reply {
                client.receive(Instant::from_micros(at + 70_000), 1, &reply);
                drain(&mut client, at + 70_000);
            }
        }
        log
    };
    for preset in Preset::all() {
        let built: AnyController = preset.build();
        // What it wishes would show in what is sent and so in its samples.
        let wishes = built.wishes();
        assert_eq!(run(PeerController::own(Wishing { inner: built, wishes })), run(built.into()), "{}", preset.name());
    }
    let silent = Wishing { inner: steady(), wishes: Wishes::NONE };
    assert_eq!(run(PeerController::own(silent)), run(steady().into()));
}

/// What it takes is counted, and a peer that is forgotten takes its controller along.
#[test]
fn what_it_takes_counts_and_goes_with_its_peer() {
    let own = Own::new();
    let held = Arc::clone(&own.held);
    let mut client = client(PeerController::own(own), |config| config.limits.peers = 3);
    // The one outside and the prototype.
    assert_eq!(Arc::strong_count(&held), 2);
    let mut memory = Vec::new();
    for to in 0..3 {
        let before = client.memory();
        contact(&mut client, u64::from(to), to).unwrap();
        memory.push(client.memory() - before);
    }
    assert!(memory.iter().all(|more| *more >= size_of::<Own>()), "{memory:?}");
    assert_eq!(Arc::strong_count(&held), 5);
    let before = client.memory();
    for to in 3..9 {
        contact(&mut client, u64::from(to) * 1_000 * SECOND, to).unwrap();
    }
    assert_eq!((Arc::strong_count(&held), client.memory(), client.peers()), (5, before, 3));
    client.set_controller(Instant::NEVER, 8, steady()).unwrap();
    assert_eq!((Arc::strong_count(&held), client.memory()), (4, before - size_of::<Own>()));
    drop(client);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn the_limit_of_bytes_holds_for_them() {
    let limit = 6 << 10;
    let mut client = client(PeerController::own(Own::new()), |config| {
        config.limits.bytes = limit;
        config.limits.duplicate_bytes = 4_096;
    });
    let refused = (0..50).find_map(|to| contact(&mut client, u64::from(to), to).err());
    assert_eq!(refused, Some(Refused::OutOfBytes { limit }));
    let peers = client.peers() as usize;
    assert!(peers >= 4 && client.memory() <= limit, "{peers} peers, {} bytes", client.memory());
    assert!(client.memory() >= peers * size_of::<Own>());
}
