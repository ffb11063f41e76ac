//! Observers over a restart of their server (RFC 7641 §3.4, §4.4).

use millpond_coap::IdGenerator;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{
    AddressValidation, ClientRequest, ECHO_LENGTH, Gone, KeptObserver, Limit, ObserverId, Validation,
};
use millpond_control::Instant;

use crate::pair::{CLIENT, Pair, SECOND, SERVER, Told, body, get, known_by, stack};

/// One that nobody has told where he is.
#[derive(Debug)]
struct Nobody;

impl Validation<u8> for Nobody {
    fn address_validation(&mut self, _: Instant, _: u8, _: Option<&[u8]>, request: usize) -> AddressValidation {
        AddressValidation::Unvalidated(Limit::of(request, 62))
    }

    fn echo(&mut self, _: Instant, _: u8) -> Option<[u8; ECHO_LENGTH]> {
        None
    }
}

fn observed(ask: &ClientRequest<'_>, change: impl FnOnce(&mut Pair)) -> (Pair, Vec<u8>) {
    let mut pair = Pair::new(|_, _, _| {});
    change(&mut pair);
    pair.application.body = body(10);
    pair.ask(ask);
    let registration = pair.datagrams[0].2.clone();
    pair.run_for(SECOND);
    assert_eq!(pair.answers().len(), 1);
    (pair, registration)
}

fn kept(pair: &mut Pair) -> Option<KeptObserver> {
    let observer = *pair.application.observers.first()?;
    let (peer, kept) = pair.stacks[1].kept_observer(observer)?;
    assert_eq!(peer, CLIENT);
    let bytes = kept.to_bytes();
    assert!(bytes.len() < 64);
    KeptObserver::from_bytes(&bytes)
}

/// Another server at the same address, which knows what was kept.
fn restart(pair: &mut Pair, kept: &KeptObserver, registration: &[u8]) -> Option<ObserverId> {
    let now = pair.now();
    // Its message IDs begin somewhere else.
    let id_generator = IdGenerator::secret([(pair.now / SECOND) as u8; 16]);
    pair.stacks[1] = known_by(9, millpond_coap::Config::default(), Default::default(), id_generator);
    let observer = pair.stacks[1].observes_again(now, CLIENT, kept, &Message::parse(registration).unwrap());
    pair.application.observers = observer.into_iter().collect();
    observer
}

fn states(pair: &mut Pair) -> Vec<Vec<u8>> {
    pair.answers().into_iter().map(|(body, _)| body).collect()
}

#[test]
fn a_restarted_server_goes_on_with_newer_numbers_and_a_confirmable_notification() {
    let (mut pair, registration) = observed(&get().observing(), |_| {});
    let mut kept = kept(&mut pair).unwrap();
    for restarts in 0..20_u8 {
        let from = pair.datagrams.len();
        // The power goes before anything more is written.
        for state in 0..3 {
            pair.notify(&[restarts, state]);
            pair.run_for(10 * SECOND);
        }
        let told = states(&mut pair);
        assert_eq!(told, [[restarts, 0], [restarts, 1], [restarts, 2]], "restart {restarts}");
        let first = Message::parse(&pair.datagrams[from].2).unwrap();
        assert_eq!(first.kind, Kind::Confirmable);
        // What is to be written before that does not change with each of them.
        assert_eq!(self::kept(&mut pair).unwrap(), if restarts == 0 { kept.clone() } else { kept.clone().again() });
        kept = if restarts == 0 { kept } else { kept.again() };
        restart(&mut pair, &kept, &registration).unwrap();
    }
}

#[test]
fn a_body_of_several_blocks_is_cut_as_was_asked_for() {
    let ask = ClientRequest { early: Some(millpond_coap::block::BlockSize::B32), ..get().observing() };
    let (mut pair, registration) = observed(&ask, |_| {});
    let kept = kept(&mut pair).unwrap();
    restart(&mut pair, &kept, &registration).unwrap();
    pair.notify(&body(100));
    pair.run_for(10 * SECOND);
    assert_eq!(states(&mut pair), [body(100)]);
    let notification = pair.datagrams.iter().rev().find(|(_, _, bytes)| {
        let message = Message::parse(bytes).unwrap();
        message.option(number::OBSERVE).is_some() && message.code == Code::CONTENT
    });
    assert_eq!(crate::pair::block_of(&notification.unwrap().2, number::BLOCK2), Some((0, true, 32)));
}

#[test]
fn a_client_that_has_forgotten_rejects_it_and_is_no_observer_any_more() {
    let (mut pair, registration) = observed(&get().observing(), |_| {});
    let kept = kept(&mut pair).unwrap();
    let observer = restart(&mut pair, &kept, &registration).unwrap();
    // Both have restarted.
    pair.stacks[0] = stack(8, millpond_coap::Config::default(), Default::default());
    pair.notify(b"new");
    pair.run_for(10 * SECOND);
    assert_eq!(pair.take_told(SERVER).pop(), Some(Told::Gone { observer, why: Gone::Rejected }));
    assert_eq!(pair.stacks[1].observers(), 0);
}

#[test]
fn who_registers_again_meanwhile_observes_once() {
    let (mut pair, registration) = observed(&get().observing(), |_| {});
    let kept = kept(&mut pair).unwrap();
    restart(&mut pair, &kept, &registration).unwrap();
    assert_eq!(restart_twice(&mut pair, &kept, &registration), None, "it is there");
    pair.inject(SERVER, &registration);
    pair.run_for(SECOND);
    assert_eq!(pair.stacks[1].observers(), 1);
}

fn restart_twice(pair: &mut Pair, kept: &KeptObserver, registration: &[u8]) -> Option<ObserverId> {
    let now = pair.now();
    pair.stacks[1].observes_again(now, CLIENT, kept, &Message::parse(registration).unwrap())
}

/// One notification goes to an address that has never answered one, however often the server restarts.
#[test]
fn an_unvalidated_address_is_kept_until_it_was_notified_once_and_again_when_it_has_acknowledged_that() {
    let (mut pair, registration) = observed(&get().observing(), |pair| pair.stacks[1].validate_by(Nobody));
    let before = kept(&mut pair).unwrap();
    assert!(!before.is_validated());
    let observer = restart(&mut pair, &before, &registration).unwrap();
    assert_eq!(kept(&mut pair).unwrap(), before.again(), "nothing was sent to it");
    let limits: Vec<usize> = (0..2)
        .map(|_| {
            let from = pair.datagrams.len();
            // Longer than may go there.
            pair.notify(&body(1_000));
            let went = pair.datagrams[from..].iter().map(|(_, _, bytes)| bytes.len()).max().unwrap();
            if from == 2 {
                assert_eq!(pair.stacks[1].kept_observer(observer), None);
            }
            pair.run_for(SECOND);
            assert!(!kept(&mut pair).unwrap().is_validated());
            went
        })
        .collect();
    assert!(limits.iter().all(|went| *went <= 136), "{limits:?}");
}

#[test]
fn there_are_no_more_observers_after_a_restart_than_before() {
    let (mut pair, registration) = observed(&get().observing(), |_| {});
    let kept = kept(&mut pair).unwrap();
    let config = millpond_coap::transfer::Config {
        limits: millpond_coap::transfer::Limits { observers: 2, ..Default::default() },
        ..Default::default()
    };
    let mut server = stack(9, millpond_coap::Config::default(), config);
    let message = Message::parse(&registration).unwrap();
    let again = (0..5).map(|peer| server.observes_again(pair.now(), peer, &kept, &message)).collect::<Vec<_>>();
    assert_eq!(again.iter().flatten().count(), 2);
}
