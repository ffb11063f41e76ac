//! TD_COAP_CORE: requests and responses of RFC 7252.

use std::{collections::HashSet, time::Duration};

use millpond_coap::message::Kind;
use millpond_live::{Code, ContentFormat, Token, number};

use crate::{
    Bed,
    relay::{Passed, Way},
    resources::{TEXT, XML},
};

/// One request in whichever mode; returns request and response as they passed.
async fn transaction(method: Code, confirmable: bool) -> (Passed, Passed) {
    let bed = Bed::new().await;
    let mut request = bed.client.request(method, bed.uri("/test"));
    if !confirmable {
        request = request.non_confirmable();
    }
    if matches!(method, Code::PUT | Code::POST) {
        request = request.content_format(TEXT).payload("anything");
    }
    let response = request.send().await.unwrap();
    assert!(response.is_success());
    let passed = bed.relay.passed();
    assert_eq!(passed.len(), 2, "one datagram each way");
    (passed[0].clone(), passed[1].clone())
}

/// Confirmable: the response is piggybacked. Non-confirmable: it has an ID of its own and no acknowledgement passes.
async fn check(method: Code, confirmable: bool, expected: Code) {
    let (request, response) = transaction(method, confirmable).await;
    let (request, response) = (request.message(), response.message());
    let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
    assert_eq!((request.kind, request.code), (kind, method));
    assert_eq!(response.code, expected);
    assert_eq!(response.token, request.token);
    if confirmable {
        assert_eq!((response.kind, response.id), (Kind::Acknowledgement, request.id));
    } else {
        assert_eq!(response.kind, Kind::NonConfirmable);
    }
    if matches!(method, Code::PUT | Code::POST) {
        assert_eq!((request.content_format(), request.payload()), (Some(TEXT.number()), &b"anything"[..]));
    }
    if !response.payload().is_empty() {
        assert_eq!(response.content_format(), Some(TEXT.number()));
    }
}

#[tokio::test]
async fn td_coap_core_01_get_confirmable() {
    check(Code::GET, true, Code::CONTENT).await;
}

#[tokio::test]
async fn td_coap_core_02_delete_confirmable() {
    check(Code::DELETE, true, Code::DELETED).await;
}

#[tokio::test]
async fn td_coap_core_03_put_confirmable() {
    check(Code::PUT, true, Code::CHANGED).await;
}

#[tokio::test]
async fn td_coap_core_04_post_confirmable() {
    check(Code::POST, true, Code::CREATED).await;
}

#[tokio::test]
async fn td_coap_core_05_get_non_confirmable() {
    check(Code::GET, false, Code::CONTENT).await;
}

#[tokio::test]
async fn td_coap_core_06_delete_non_confirmable() {
    check(Code::DELETE, false, Code::DELETED).await;
}

#[tokio::test]
async fn td_coap_core_07_put_non_confirmable() {
    check(Code::PUT, false, Code::CHANGED).await;
}

#[tokio::test]
async fn td_coap_core_08_post_non_confirmable() {
    check(Code::POST, false, Code::CREATED).await;
}

/// Request, empty acknowledgement, confirmable response, empty acknowledgement.
async fn separate(token: Token) {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/separate")).token(token).send().await.unwrap();
    assert_eq!(response.text().unwrap(), "separate");
    // The client's acknowledgement is on its way when the application has the response.
    let (sent, got) = loop {
        let (sent, got) = (bed.relay.of(Way::Up), bed.relay.of(Way::Down));
        if sent.len() >= 2 {
            break (sent, got);
        }
        tokio::task::yield_now().await;
    };
    let (request, receipt) = (sent[0].message(), sent[1].message());
    assert_eq!((got[0].kind(), got[0].code(), got[0].len()), (Kind::Acknowledgement, Code::EMPTY, 4));
    assert_eq!(got[0].message().id, request.id);
    let answer = got[1].message();
    assert_eq!((answer.kind, answer.code, answer.token), (Kind::Confirmable, Code::CONTENT, token));
    assert_eq!((receipt.kind, receipt.code, receipt.id), (Kind::Acknowledgement, Code::EMPTY, answer.id));
}

#[tokio::test]
async fn td_coap_core_09_get_with_separate_response() {
    separate(Token::EMPTY).await;
}

async fn with_token(token: Token) {
    let bed = Bed::new().await;
    bed.client.get(bed.uri("/test")).token(token).send().await.unwrap();
    for passed in bed.relay.passed() {
        assert_eq!(passed.message().token, token);
    }
}

#[tokio::test]
async fn td_coap_core_10_get_with_a_token() {
    for length in 1..=8 {
        with_token(Token::new(&[7; 8][..length]).unwrap()).await;
    }
}

#[tokio::test]
async fn td_coap_core_11_get_with_a_token_and_separate_response() {
    separate(Token::new(b"12345678").unwrap()).await;
}

#[tokio::test]
async fn td_coap_core_12_get_with_an_empty_token() {
    with_token(Token::EMPTY).await;
}

#[tokio::test]
async fn td_coap_core_13_get_with_several_path_options() {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/seg1/seg2/seg3")).send().await.unwrap();
    assert_eq!(response.text().unwrap(), "segments");
    let request = &bed.relay.of(Way::Up)[0];
    let segments: Vec<_> = request.message().uri_path().map(<[u8]>::to_vec).collect();
    assert_eq!(segments, [b"seg1", b"seg2", b"seg3"].map(|segment| segment.to_vec()));
}

#[tokio::test]
async fn td_coap_core_14_get_with_several_query_options() {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/query?first=1&second=2&third=3")).send().await.unwrap();
    assert_eq!(response.text().unwrap(), "first=1;second=2;third=3");
    let request = &bed.relay.of(Way::Up)[0];
    let arguments: Vec<_> = request.message().values(number::URI_QUERY).map(<[u8]>::to_vec).collect();
    assert_eq!(arguments, [&b"first=1"[..], b"second=2", b"third=3"].map(<[u8]>::to_vec));
}

#[tokio::test]
async fn td_coap_core_15_get_in_a_lossy_context() {
    for lost in [Way::Up, Way::Down] {
        let bed = Bed::losing(move |way, number| way == lost && number == 0).await;
        bed.client.get(bed.uri("/test")).send().await.unwrap();
        let mut sent = bed.relay.with_copies();
        sent.retain(|passed| passed.way == Way::Up);
        assert!(sent.len() >= 2, "{lost:?}: a retransmission");
        assert!(sent.iter().all(|copy| copy.message().id == sent[0].message().id));
    }
}

#[tokio::test]
async fn td_coap_core_16_get_with_separate_response_in_a_lossy_context() {
    // The request, its acknowledgement, the response, the acknowledgement of the response.
    for (lost, number) in [(Way::Up, 0), (Way::Down, 0), (Way::Down, 1), (Way::Up, 1)] {
        let bed = Bed::losing(move |way, at| way == lost && at == number).await;
        let mut request = bed.client.get(bed.uri("/separate"));
        let is_receipt_lost = (lost, number) == (Way::Down, 0);
        if is_receipt_lost {
            request = request.ack_timeout(Duration::from_secs(20));
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.text().unwrap(), "separate", "{lost:?} {number}");
        if is_receipt_lost {
            // The response stops retransmission, although its acknowledgement was lost.
            let copies = bed.relay.with_copies().iter().filter(|passed| passed.code() == Code::GET).count();
            assert_eq!(copies, 1);
        }
    }
}

#[tokio::test]
async fn td_coap_core_17_get_with_separate_response_non_confirmable() {
    let bed = Bed::new().await;
    bed.client.get(bed.uri("/separate")).non_confirmable().send().await.unwrap();
    let passed = bed.relay.passed();
    assert!(passed.iter().all(|passed| passed.kind() == Kind::NonConfirmable));
    assert_eq!(passed.len(), 2);
}

#[tokio::test]
async fn td_coap_core_18_post_answered_with_location_path() {
    let bed = Bed::new().await;
    let response = bed.client.post(bed.uri("/test")).content_format(TEXT).payload("anything").send().await.unwrap();
    assert_eq!(response.code(), Code::CREATED);
    let location: Vec<_> = response.options().all(number::LOCATION_PATH).map(|value| value.to_vec()).collect();
    assert_eq!(location, [b"location1", b"location2", b"location3"].map(|segment| segment.to_vec()));
}

#[tokio::test]
async fn td_coap_core_19_post_answered_with_location_query() {
    let bed = Bed::new().await;
    let response = bed.client.post(bed.uri("/location-query")).content_format(TEXT).payload("a").send().await.unwrap();
    assert_eq!(response.code(), Code::CREATED);
    let location: Vec<_> = response.options().all(number::LOCATION_QUERY).map(|value| value.to_vec()).collect();
    assert_eq!(location, [&b"first=1"[..], b"second=2"].map(<[u8]>::to_vec));
}

#[tokio::test]
async fn td_coap_core_20_get_with_accept() {
    let bed = Bed::new().await;
    for (format, payload) in [(TEXT, "text"), (XML, "<xml/>")] {
        let response = bed.client.get(bed.uri("/multi-format")).accept(format).send().await.unwrap();
        assert_eq!((response.code(), response.content_format()), (Code::CONTENT, Some(format)));
        assert_eq!(response.text().unwrap(), payload);
    }
    let response = bed.client.get(bed.uri("/multi-format")).accept(ContentFormat::JSON).send().await.unwrap();
    assert_eq!(response.code(), Code::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn td_coap_core_21_get_with_etag() {
    let bed = Bed::new().await;
    let first = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    let etag = first.options().get(number::ETAG).unwrap().clone();
    let again = bed.client.get(bed.uri("/validate")).option(number::ETAG, etag.clone()).send().await.unwrap();
    assert_eq!((again.code(), again.payload().len()), (Code::VALID, 0));
    assert_eq!(again.options().get(number::ETAG), Some(&etag));
    bed.client.put(bed.uri("/validate")).payload("second").send().await.unwrap();
    let changed = bed.client.get(bed.uri("/validate")).option(number::ETAG, etag.clone()).send().await.unwrap();
    assert_eq!((changed.code(), changed.text().unwrap()), (Code::CONTENT, "second"));
    assert_ne!(changed.options().get(number::ETAG), Some(&etag));
}

#[tokio::test]
async fn td_coap_core_22_put_with_if_match() {
    let bed = Bed::new().await;
    let first = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    let etag = first.options().get(number::ETAG).unwrap().clone();
    let put = |payload: &'static str| bed.client.put(bed.uri("/validate")).payload(payload);
    assert_eq!(put("second").option(number::IF_MATCH, etag).send().await.unwrap().code(), Code::CHANGED);
    let second = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    assert_eq!(second.text().unwrap(), "second");
    let etag = second.options().get(number::ETAG).unwrap().clone();
    assert_eq!(put("third").send().await.unwrap().code(), Code::CHANGED);
    let late = put("fourth").option(number::IF_MATCH, etag).send().await.unwrap();
    assert_eq!(late.code(), Code::PRECONDITION_FAILED);
    assert_eq!(bed.client.get(bed.uri("/validate")).send().await.unwrap().text().unwrap(), "third");
}

#[tokio::test]
async fn td_coap_core_23_put_with_if_none_match() {
    let bed = Bed::new().await;
    let mut codes = Vec::new();
    for payload in ["one", "other"] {
        let put = bed.client.put(bed.uri("/create1")).payload(payload).option(number::IF_NONE_MATCH, "");
        codes.push(put.send().await.unwrap().code());
    }
    assert_eq!(codes, [Code::CREATED, Code::PRECONDITION_FAILED]);
}

#[tokio::test]
async fn td_coap_core_31_ping() {
    let bed = Bed::new().await;
    bed.client.ping(bed.address()).await.unwrap();
    let passed = bed.relay.passed();
    let (ping, pong) = (&passed[0], &passed[1]);
    assert_eq!((ping.kind(), ping.code(), ping.len()), (Kind::Confirmable, Code::EMPTY, 4));
    assert_eq!((pong.kind(), pong.code(), pong.len()), (Kind::Reset, Code::EMPTY, 4));
    assert_eq!(pong.message().id, ping.message().id);
}

#[tokio::test]
async fn every_request_has_a_message_id_of_its_own() {
    let bed = Bed::new().await;
    for _ in 0..20 {
        bed.client.get(bed.uri("/test")).send().await.unwrap();
    }
    let ids: HashSet<_> = bed.relay.of(Way::Up).iter().map(|passed| passed.message().id.0).collect();
    assert_eq!(ids.len(), 20);
}
