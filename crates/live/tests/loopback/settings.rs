//! Transmission parameters of a client, and of single requests (RFC 7252 §4.8).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_live::{Client, ControllerChoice, Error, Happened, PathKey, Preset, RequestBuilder, Server};
use tokio::net::UdpSocket;

use crate::ANY;

/// Waits that a client arms for a request that nobody answers, and how it ends, in invented time.
async fn unanswered(
    controller: impl Into<ControllerChoice>,
    change: impl FnOnce(RequestBuilder) -> RequestBuilder,
) -> (Vec<Duration>, Error) {
    let silent = UdpSocket::bind(ANY).await.unwrap();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waits);
    let client = Client::builder()
        .controller(controller)
        .trace(move |event| {
            if let Happened::Sent { timer: Some(wait), .. } = event.what {
                seen.lock().unwrap().push(wait);
            }
        })
        .build()
        .await
        .unwrap();
    let error = change(client.get(format!("coap://{}/", silent.local_addr().unwrap()))).await.unwrap_err();
    let waits = waits.lock().unwrap().clone();
    (waits, error)
}

#[tokio::test(start_paused = true)]
async fn a_request_has_as_many_copies_as_it_asks_for() {
    for count in [0, 1, 6] {
        let (waits, error) = unanswered(Preset::FASOR_TOKEN, |request| request.max_retransmit(count)).await;
        assert_eq!(waits.len(), usize::from(count) + 1);
        assert!(matches!(error, Error::GaveUp { copies, .. } if copies == count + 1), "{error}");
    }
    let (_, error) = unanswered(Preset::FASOR_TOKEN, |request| request.max_retransmit(0)).await;
    assert!(error.to_string().contains("did not answer 1 copy in "), "{error}");
    let (_, error) = unanswered(Preset::FASOR_TOKEN, |request| request.max_retransmit(251)).await;
    assert!(error.to_string().ends_with("max_retransmit is 251; use at most 250"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_request_may_wait_longer_and_not_shorter_than_its_controller() {
    let seconds = |waits: Vec<Duration>| waits.iter().map(Duration::as_secs).collect::<Vec<_>>();
    let (waits, _) = unanswered(Preset::RFC7252, |request| request.ack_timeout(Duration::from_secs(7))).await;
    assert_eq!(seconds(waits), [7, 14, 28, 56, 112]);
    let (waits, _) = unanswered(Preset::RFC7252, |request| request.ack_timeout(Duration::from_millis(10))).await;
    assert!((2..=3).contains(&seconds(waits)[0]));
}

#[tokio::test(start_paused = true)]
async fn the_first_wait_of_a_preset_can_be_chosen() {
    let controller = ControllerChoice::from(Preset::RFC7252).with_ack_timeout(Duration::from_secs(10)).unwrap();
    let (waits, _) = unanswered(controller, |request| request).await;
    let first = waits[0].as_secs_f64();
    assert!((10.0..=15.0).contains(&first), "{waits:?}");
    assert!((waits[1].as_secs_f64() - 2.0 * first).abs() < 0.001, "{waits:?}");
}

#[test]
fn every_preset_takes_another_first_wait_and_no_unsafe_one() {
    for preset in Preset::all() {
        let chosen = |wait| ControllerChoice::from(preset).with_ack_timeout(wait);
        if preset == Preset::TFRC_NON {
            // What it governs is sent once.
            let error = chosen(Duration::from_secs(5)).unwrap_err().to_string();
            assert!(error.contains("no such setting here"), "{error}");
            continue;
        }
        assert_eq!(chosen(Duration::from_secs(5)).unwrap().name(), preset.name());
        for wait in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(3_600)] {
            let error = chosen(wait).unwrap_err().to_string();
            assert!(error.starts_with("ack_timeout: "), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn peers_have_the_controllers_that_a_function_gives_them() {
    let (slow, usual) = (UdpSocket::bind(ANY).await.unwrap(), UdpSocket::bind(ANY).await.unwrap());
    let address = slow.local_addr().unwrap();
    let patient = ControllerChoice::from(Preset::RFC7252).with_ack_timeout(Duration::from_secs(7)).unwrap();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waits);
    let client = Client::builder()
        .controllers(move |peer| (peer == address).then(|| patient.clone()))
        .max_retransmit(0)
        .trace(move |event| {
            if let Happened::Sent { timer: Some(wait), .. } = event.what {
                seen.lock().unwrap().push(wait.as_secs());
            }
        })
        .build()
        .await
        .unwrap();
    for silent in [&slow, &usual] {
        let error = client.get(format!("coap://{}/", silent.local_addr().unwrap())).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }
    let waits = waits.lock().unwrap();
    assert!((7..=10).contains(&waits[0]) && waits[1] <= 3, "{waits:?}");
}

/// Whom the copies of two requests went to, in their order, where nobody answers.
async fn order_of_copies(shared: Option<PathKey>) -> Vec<bool> {
    let (one, other) = (UdpSocket::bind(ANY).await.unwrap(), UdpSocket::bind(ANY).await.unwrap());
    let (one, other) = (one.local_addr().unwrap(), other.local_addr().unwrap());
    let copies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&copies);
    let mut builder = Client::builder().controller(Preset::RFC7252).max_retransmit(2).trace(move |event| {
        if let Happened::Sent { .. } = event.what {
            seen.lock().unwrap().push(event.peer == one);
        }
    });
    if let Some(key) = shared {
        builder = builder.share_paths(key);
    }
    let client = builder.build().await.unwrap();
    let ask = |peer| client.get(format!("coap://{peer}/")).send();
    let (first, second) = tokio::join!(ask(one), ask(other));
    assert!(first.is_err() && second.is_err());
    copies.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn peers_that_share_a_path_share_its_nstart_and_wait_for_one_another() {
    let after_one_another = |order: &[bool]| order.chunks(3).all(|copies| copies.iter().all(|copy| *copy == copies[0]));
    for key in [PathKey::prefix(24, 64), PathKey::by(|_| 7)] {
        let order = order_of_copies(Some(key)).await;
        assert!(order.len() == 6 && after_one_another(&order), "{order:?}");
    }
    for key in [None, Some(PathKey::by(|peer| u64::from(peer.port())))] {
        let order = order_of_copies(key).await;
        assert!(order.len() == 6 && !after_one_another(&order), "{order:?}");
    }
}

#[tokio::test]
async fn a_prefix_that_is_none_is_refused_at_both_ends() {
    let error = Client::builder().share_paths(PathKey::prefix(33, 0)).build().await.unwrap_err().to_string();
    assert!(error.contains("share_paths") && error.contains("0 to 32"), "{error}");
    let error = Server::builder().bind(ANY).share_paths(PathKey::prefix(0, 65)).start().await.unwrap_err().to_string();
    assert!(error.contains("share_paths") && error.contains("0 to 64"), "{error}");
}
