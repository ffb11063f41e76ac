//! TD_COAP_OBS: observation (RFC 7641).

use std::time::Duration;

use millpond_coap::{
    block::{Block, BlockSize},
    message::Kind,
};
use millpond_live::{Code, number};

use crate::{
    Bed,
    relay::{Passed, Way},
    resources::{TEXT, XML, large},
};

fn observe(passed: &Passed) -> Option<u32> {
    let value = passed.message().option(number::OBSERVE)?;
    Some(value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Notifications that passed: responses with Observe after the first.
fn notifications(bed: &Bed) -> Vec<Passed> {
    bed.relay.of(Way::Down).into_iter().filter(|passed| observe(passed).is_some()).skip(1).collect()
}

/// Sequence numbers go up, within 24 bits (RFC 7641 §3.4), and token and format stay.
fn check_notifications(bed: &Bed, kind: Kind) {
    let registration = bed.relay.of(Way::Up)[0].clone();
    let told: Vec<_> = bed.relay.of(Way::Down).into_iter().filter(|passed| observe(passed).is_some()).collect();
    for pair in told.windows(2) {
        let ahead = observe(&pair[1]).unwrap().wrapping_sub(observe(&pair[0]).unwrap()) & 0xff_ffff;
        // A copy of the same notification carries the same number.
        assert!(ahead < 1 << 23);
    }
    for passed in &told {
        assert_eq!(passed.message().token, registration.message().token);
        assert_eq!((passed.code(), passed.message().content_format()), (Code::CONTENT, Some(TEXT.number())));
    }
    // The first one is confirmable in any case: nobody is to be flooded for whom another one has registered.
    let first = if kind == Kind::NonConfirmable { 2 } else { 1 };
    assert!(told.iter().skip(first).all(|passed| passed.kind() == kind), "notifications are {kind:?}");
}

#[tokio::test]
async fn td_coap_obs_01_confirmable_notifications() {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs")).observe().await.unwrap();
    for _ in 0..3 {
        observation.next().await.unwrap().unwrap();
    }
    let registration = bed.relay.of(Way::Up)[0].clone();
    assert_eq!((registration.kind(), observe(&registration)), (Kind::Confirmable, Some(0)));
    check_notifications(&bed, Kind::Confirmable);
    let receipts = bed.relay.of(Way::Up).iter().filter(|sent| sent.kind() == Kind::Acknowledgement).count();
    assert!(receipts >= 1);
}

#[tokio::test]
async fn td_coap_obs_02_non_confirmable_notifications() {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs-non")).non_confirmable().observe().await.unwrap();
    for _ in 0..3 {
        observation.next().await.unwrap().unwrap();
    }
    assert_eq!(bed.relay.of(Way::Up)[0].kind(), Kind::NonConfirmable);
    check_notifications(&bed, Kind::NonConfirmable);
}

#[tokio::test]
async fn td_coap_obs_06_a_reset_ends_an_observation() {
    let bed = Bed::new().await;
    {
        // A client that is gone without deregistering: its relay's port stays, and nobody knows the token.
        let mut observation = bed.client.get(bed.uri("/obs")).observe().await.unwrap();
        observation.next().await.unwrap().unwrap();
        observation.forget();
    }
    let reset = loop {
        let reset = bed.relay.of(Way::Up).into_iter().find(|sent| sent.kind() == Kind::Reset);
        if let Some(reset) = reset {
            break reset;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let told = notifications(&bed);
    assert_eq!(reset.message().id, told.last().unwrap().message().id);
    // Longer than the resource takes to change.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notifications(&bed).len(), told.len());
}

/// A request that makes the server end the observation with `code`, without Observe.
async fn ends(delete: bool, code: Code) {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs")).give_up_after(Duration::ZERO).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    if delete {
        bed.client.delete(bed.uri("/obs")).send().await.unwrap();
    } else {
        bed.client.put(bed.uri("/obs")).content_format(XML).payload("<xml/>").send().await.unwrap();
    }
    let mut last = None;
    while let Some(next) = observation.next().await {
        last = Some(next.unwrap());
    }
    assert_eq!(last.unwrap().code(), code);
    let told = bed.relay.of(Way::Down).into_iter().find(|passed| passed.code() == code).unwrap();
    assert_eq!((told.kind(), observe(&told)), (Kind::Confirmable, None));
    assert_eq!(told.message().token, bed.relay.of(Way::Up)[0].message().token);
    let before = notifications(&bed).len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notifications(&bed).len(), before);
}

#[tokio::test]
async fn td_coap_obs_07_delete_ends_an_observation() {
    ends(true, Code::NOT_FOUND).await;
}

#[tokio::test]
async fn td_coap_obs_08_another_format_ends_an_observation() {
    ends(false, Code::NOT_ACCEPTABLE).await;
}

#[tokio::test]
async fn td_coap_obs_09_an_update_is_notified() {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs-non")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    bed.client.put(bed.uri("/obs-non")).content_format(TEXT).payload("put").send().await.unwrap();
    loop {
        let seen = observation.next().await.unwrap().unwrap();
        if seen.text().unwrap() == "put" {
            break;
        }
    }
    check_notifications(&bed, Kind::NonConfirmable);
}

#[tokio::test]
async fn td_coap_obs_10_a_get_does_not_end_an_observation() {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    let plain = bed.client.get(bed.uri("/obs")).send().await.unwrap();
    assert_eq!((plain.code(), plain.options().get(number::OBSERVE)), (Code::CONTENT, None));
    for _ in 0..2 {
        observation.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn td_coap_obs_11_one_notification_at_a_time_in_a_lossy_context() {
    // Every third acknowledgement and every third notification is lost.
    let bed = Bed::losing(|way, number| number % 3 == if way == Way::Up { 1 } else { 2 }).await;
    let mut observation = bed.client.get(bed.uri("/obs")).observe().await.unwrap();
    for _ in 0..4 {
        observation.next().await.unwrap().unwrap();
    }
    // A notification with another ID comes only after the one before was acknowledged, as far as the server can know.
    let mut open = None;
    for passed in bed.relay.with_copies() {
        match (passed.way, passed.kind()) {
            (Way::Down, Kind::Confirmable) => {
                let id = passed.message().id;
                assert!(open.is_none() || open == Some(id), "two notifications are under way");
                open = Some(id);
            }
            (Way::Up, Kind::Acknowledgement) if !passed.lost && open == Some(passed.message().id) => open = None,
            _ => {}
        }
    }
}

#[tokio::test]
async fn td_coap_obs_12_get_with_observe_1_ends_an_observation() {
    let bed = Bed::new().await;
    let mut observation = bed.client.get(bed.uri("/obs")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    drop(observation);
    let cancel = loop {
        let asked = bed.relay.of(Way::Up).into_iter().find(|sent| observe(sent) == Some(1));
        if let Some(asked) = asked {
            break asked;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(cancel.message().token, bed.relay.of(Way::Up)[0].message().token);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = notifications(&bed).len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notifications(&bed).len(), before);
}

/// Whole representations: block 0 comes with the notification, the rest is asked for without Observe and with another
/// token.
async fn whole_representations(early: Option<u16>) {
    let bed = Bed::new().await;
    let mut request = bed.client.get(bed.uri("/obs-large"));
    if let Some(size) = early {
        request = request.block_size(size);
    }
    let mut observation = request.observe().await.unwrap();
    for _ in 0..3 {
        let seen = observation.next().await.unwrap().unwrap();
        assert!(seen.payload().ends_with(&large()), "a representation is not whole");
    }
    let sent = bed.relay.of(Way::Up);
    let token = sent[0].message().token;
    let rest: Vec<_> = sent.iter().skip(1).filter(|sent| sent.code() == Code::GET).collect();
    assert!(!rest.is_empty());
    for sent in rest {
        assert_eq!(observe(sent), None);
        assert_ne!(sent.message().token, token);
        let block = Block::read(sent.message().option(number::BLOCK2).unwrap(), false).unwrap();
        assert!(block.number > 0);
        assert_eq!(block.size, early.map_or(BlockSize::B1024, |size| BlockSize::at_most(size.into())));
    }
    assert!(notifications(&bed).iter().all(|told| {
        let block = Block::read(told.message().option(number::BLOCK2).unwrap(), false).unwrap();
        block.number == 0 && block.more
    }));
}

#[tokio::test]
async fn td_coap_obs_13_observation_of_a_large_resource_with_late_negotiation() {
    whole_representations(None).await;
}

#[tokio::test]
async fn td_coap_obs_14_observation_of_a_large_resource_with_early_negotiation() {
    whole_representations(Some(256)).await;
}
