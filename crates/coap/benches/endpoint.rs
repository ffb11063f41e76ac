//! What an exchange costs between two endpoints with no path between them.
//!
//! The messages are those of study `anrw18`: a confirmable GET of 10 bytes (38 with IP and UDP) and a response of 66
//! (94). Each round is the whole of it: ask, drain, receive, drain, respond, drain, receive, drain.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a benchmark may fail loudly"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millpond_coap::message::{Code, Kind, number};
use millpond_coap::{Config, Duplicates, Endpoint, Event, IdGenerator, Outgoing, Output, RequestId};
use millpond_control::{ChanceSeed, Instant, Preset, Span};

const REQUEST: Outgoing<'static> = Outgoing::confirmable(Code::GET, &[(number::URI_PATH, b"hello")]);
const RESPONSE: Outgoing<'static> =
    Outgoing::confirmable(Code::CONTENT, &[(number::CONTENT_FORMAT, b"")]).with_payload(&[b'.'; 60]);

struct Loop {
    clients: Vec<Endpoint<u32>>,
    server: Endpoint<u32>,
    now: Instant,
    wire: Vec<u8>,
}

impl Loop {
    fn new(clients: u32, preset: Preset, id_generator: IdGenerator, change: impl Fn(&mut Config)) -> Self {
        let mut config = Config { token_length: 0, ..Config::default() };
        change(&mut config);
        let server = Endpoint::new(config, preset.build(), ChanceSeed::new(1), clients, id_generator).unwrap();
        let clients = (0..clients).map(|node| server.sibling(node)).collect();
        Self { clients, server, now: Instant::ORIGIN, wire: Vec::new() }
    }

    fn round(&mut self, client: usize, request: &Outgoing<'_>) {
        // Slow enough for 65 536 message IDs in the EXCHANGE_LIFETIME of the slowest controller.
        self.now = self.now.after(Span::from_millis(10));
        let Self { clients, server, now, wire } = self;
        let from = client as u32;
        let client = &mut clients[client];
        client.request(*now, u32::MAX, request).unwrap();
        drain(client, *now, wire);
        server.receive(*now, from, wire);
        let id = drain(server, *now, wire).unwrap();
        server.respond(*now, id, &Outgoing { kind: request.kind, ..RESPONSE }).unwrap();
        drain(server, *now, wire);
        client.receive(*now, u32::MAX, wire);
        drain(client, *now, wire);
    }
}

/// The last datagram sent goes onto the wire; the request handed over.
fn drain(endpoint: &mut Endpoint<u32>, now: Instant, wire: &mut Vec<u8>) -> Option<RequestId> {
    let mut asked = None;
    loop {
        match endpoint.poll(now) {
            Output::Transmit(transmit) => {
                wire.clear();
                wire.extend_from_slice(transmit.bytes);
            }
            Output::Event(Event::Request { id, .. }) => asked = Some(id),
            Output::Event(event) => {
                black_box(event);
            }
            Output::Sleep(..) | Output::Idle => return asked,
        }
    }
}

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("exchange");
    group.throughput(Throughput::Elements(1));
    let counted = IdGenerator::counted();
    let afresh = |config: &mut Config| config.duplicates = Duplicates::Afresh;
    let budget = |config: &mut Config| config.limits.duplicate_bytes = 1 << 20;
    let mut case = |name: &str, mut round: Loop, request: Outgoing<'_>| {
        group.bench_function(name, |b| b.iter(|| round.round(0, &request)));
    };
    case("afresh", Loop::new(1, Preset::RFC7252, counted, afresh), REQUEST);
    case("stored", Loop::new(1, Preset::RFC7252, counted, budget), REQUEST);
    case("stored, cocoa-03", Loop::new(1, Preset::COCOA_03, counted, budget), REQUEST);
    let secret = |config: &mut Config| {
        budget(config);
        config.token_length = 4;
    };
    case("stored, secret identifiers", Loop::new(1, Preset::RFC7252, IdGenerator::secret([7; 16]), secret), REQUEST);
    case("stored, fasor", Loop::new(1, Preset::FASOR, counted, budget), REQUEST);
    case("stored, fasor-token", Loop::new(1, Preset::FASOR_TOKEN, counted, budget), REQUEST);
    case("stored, fasor-count", Loop::new(1, Preset::FASOR_COUNT, counted, budget), REQUEST);
    case(
        "non-confirmable",
        Loop::new(1, Preset::RFC7252, counted, budget),
        Outgoing { kind: Kind::NonConfirmable, ..REQUEST },
    );
    group.finish();
}

/// The same work spread over more and more clients.
fn clients(c: &mut Criterion) {
    let mut group = c.benchmark_group("clients");
    group.throughput(Throughput::Elements(1));
    for clients in [1, 400, 10_000] {
        let mut round = Loop::new(clients, Preset::RFC7252, IdGenerator::counted(), |config| {
            config.limits.duplicate_bytes = 4 << 20;
        });
        let mut next = 0;
        group.bench_function(clients.to_string(), |b| {
            b.iter(|| {
                next = (next + 1) % clients as usize;
                round.round(next, &REQUEST);
            });
        });
    }
    group.finish();
}

/// A request that nobody answers: every copy, and giving up.
fn unanswered(c: &mut Criterion) {
    let mut group = c.benchmark_group("unanswered");
    // Five copies.
    group.throughput(Throughput::Elements(5));
    for (name, preset) in [
        ("copies", Preset::RFC7252),
        ("copies, fasor", Preset::FASOR),
        ("copies, fasor-token", Preset::FASOR_TOKEN),
        ("copies, fasor-count", Preset::FASOR_COUNT),
    ] {
        let mut client = Loop::new(1, preset, IdGenerator::counted(), |_| {}).clients.remove(0);
        let mut now = Instant::ORIGIN;
        group.bench_function(name, |b| {
            b.iter(|| {
                client.request(now, 1, &REQUEST).unwrap();
                loop {
                    match client.poll(now) {
                        Output::Sleep(until, _) => now = until,
                        Output::Idle => break,
                        output => {
                            black_box(output);
                        }
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange, clients, unanswered);
criterion_main!(benches);
