//! What comes from the network is anything.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use millpond_gateway::directory::{Directory, DirectorySettings, Parameters, Query, Registry, routes};
use millpond_live::{AddressRule, Client, Code, Link, Server, links, number};
use proptest::{collection::vec, prelude::*};
use tokio::net::UdpSocket;

use super::{ANY, Bench, location, registry::at};

/// Nobody who has not proved its address registers, changes anything, or makes the directory send more than a challenge.
#[tokio::test]
async fn forged_addresses_register_nothing_and_are_sent_next_to_nothing() {
    let directory = Directory::start(DirectorySettings::default()).await;
    let builder = Server::builder().bind(ANY).verify_addresses(AddressRule::LargeAnswersEverywhere);
    let server = routes(builder, &directory).start().await.unwrap();
    directory.ask_by(&server);
    let honest = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap://{}{path}", server.local_addr());
    let place = location(&honest.post(uri("/rd?ep=honest")).payload("</a>").await.unwrap());
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    let number = place.trim_start_matches("/rd/");
    let id = u8::try_from(number.len()).unwrap();
    let paths: [Vec<u8>; 4] = [
        b"\xb2rd\x44ep=x\xff</a>".to_vec(),
        b"\xbb.well-known\x02rd\x44ep=x".to_vec(),
        [&b"\xb2rd"[..], &[id], number.as_bytes()].concat(),
        [&b"\xb2rd"[..], &[id], number.as_bytes()].concat(),
    ];
    for (message, (method, options)) in [2, 2, 2, 4].into_iter().zip(paths).enumerate() {
        let header = [0x40, method, 0, u8::try_from(message).unwrap()];
        socket.send(&[&header[..], &options].concat()).await.unwrap();
        let mut answer = [0; 1_500];
        let length = socket.recv(&mut answer).await.unwrap();
        assert_eq!(answer[1], 0x81, "4.01 with Echo");
        assert!(length < 40, "{length} bytes");
    }
    assert!(directory.endpoint("honest").is_some() && directory.len() == 1);
}

#[tokio::test]
async fn a_network_that_floods_leaves_room_for_others() {
    let directory = Directory::start(DirectorySettings { memory: 256 << 10, ..DirectorySettings::default() }).await;
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let server = routes(Server::builder().bind(everywhere), &directory).start().await.unwrap();
    let rd = format!("coap://127.0.0.1:{}/rd", server.local_addr().port());
    let from = async |ip: [u8; 4]| Client::builder().bind((ip, 0)).build().await.unwrap();
    let links = format!("</{}>", "x".repeat(10_000));
    let flooder = from([127, 0, 9, 1]).await;
    let mut refused = None;
    for number in 0..30 {
        let answer = flooder.post(format!("{rd}?ep=flood{number}")).payload(links.clone()).await.unwrap();
        if answer.code() != Code::CREATED {
            refused = Some(answer);
        }
    }
    let refused = refused.unwrap();
    assert_eq!((refused.code(), refused.options().uint(number::MAX_AGE)), (Code::TOO_MANY_REQUESTS, Some(600)));
    let other = from([127, 0, 8, 1]).await;
    let answer = other.post(format!("{rd}?ep=other")).payload(links.clone()).await.unwrap();
    assert_eq!(answer.code(), Code::CREATED);
    assert!(directory.memory() <= 256 << 10);
}

#[tokio::test]
async fn names_are_as_the_rfc_allows_them() {
    let bench = Bench::start().await;
    let longest = "é".repeat(31) + "x";
    location(&bench.register(&format!("ep={}", percent(&longest)), "").await);
    assert!(bench.directory.endpoint(&longest).is_some());
    let told = bench.look_up(&format!("ep?ep={}", percent(&longest))).await;
    assert!(told.contains(&format!(";ep=\"{longest}\";")), "{told}");
    for wrong in ["%00", "a%0Ab", "%7F", "%C2%85", &"x".repeat(64)] {
        assert_eq!(bench.register(&format!("ep={wrong}"), "").await.code(), Code::BAD_REQUEST, "{wrong}");
    }
    // What may stand in a name but not in a link is written so that it stands there.
    for odd in ["a\"b", "a\\", "<x>,</y>", "a;b=c", "*", " "] {
        location(&bench.register(&format!("ep={}&et={}", percent(odd), percent(odd)), "").await);
    }
    let told = bench.look_up("ep").await;
    let read: Vec<_> = links(&told).map(|link| Link::parse(link).unwrap()).collect();
    assert_eq!(read.len(), 7);
    let values = |name: &str| -> Vec<String> {
        let all = read.iter().flat_map(Link::attributes).filter(|it| it.name == name);
        all.map(|it| it.value.unwrap().into_owned()).collect()
    };
    assert_eq!(values("ep")[1..], ["a\"b", "a\\", "<x>,</y>", "a;b=c", "*", " "]);
    assert_eq!(values("et"), values("ep")[1..]);
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02X}");
        all
    })
}

#[tokio::test]
async fn ten_thousand_attributes_take_no_more_than_their_text() {
    let bench = Bench::start().await;
    let attributes: String = (0..10_000).map(|number| format!(";{number:x}")).collect();
    location(&bench.register("ep=a&base=coap://h", &format!("</a>{attributes}")).await);
    assert!(bench.directory.memory() < 2 * attributes.len(), "{}", bench.directory.memory());
    assert_eq!(bench.look_up("res?270f=*").await, format!("<coap://h/a>{attributes}"));
    let many: String = (0..65).map(|number| format!("&a{number}")).collect();
    assert_eq!(bench.register(&format!("ep=b{many}"), "").await.code(), Code::BAD_REQUEST);
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_with_the_way_to_have_it() {
    let bench = Bench::start().await;
    let links = (0..3_000).map(|number| format!("</{number}>")).collect::<Vec<_>>().join(",");
    for number in 0..20 {
        let base = format!("coap://{}", "h".repeat(70));
        location(&bench.register(&format!("ep=a{number}&base={base}"), &links).await);
    }
    let answer = bench.client.get(bench.uri("/rd-lookup/res")).await.unwrap();
    assert_eq!(answer.code(), Code::BAD_REQUEST);
    assert!(answer.text().unwrap().contains("count=100&page=0"), "{:?}", answer.text());
    assert_eq!(bench.look_up("res?count=100&page=599").await.matches("<coap").count(), 100);
    assert_eq!(bench.look_up("res?count=100&page=600").await, "");
}

/// Whatever is told of a link finds it.
fn find_again(registry: &Registry, now: Duration, text: &str) -> Result<(), TestCaseError> {
    let told = registry.resources(now, &Query::default()).unwrap();
    for link in links(&told).map(|piece| Link::parse(piece).unwrap()) {
        let all = link.attributes().map(|it| (it.name, it.value.unwrap_or_default().into_owned()));
        for (name, value) in all.chain([("href", link.target().to_owned())]) {
            let (half, _) = value.split_at(value.char_indices().nth(value.chars().count() / 2).map_or(0, |(at, _)| at));
            for wanted in [value.clone(), format!("{half}*")] {
                // Of several values one is asked for.
                if wanted.contains(' ') && matches!(name, "rt" | "if" | "ct" | "rel" | "rev") {
                    continue;
                }
                let query = Query::read([format!("{name}={wanted}").as_str()].into_iter()).unwrap();
                let found = registry.resources(now, &query).unwrap();
                let is_found =
                    links(&found).any(|piece| Link::parse(piece).is_ok_and(|found| found.target() == link.target()));
                prop_assert!(is_found, "{name}={wanted} of {text:?} in {found:?}");
            }
        }
    }
    Ok(())
}

/// What a directory is asked for.
#[derive(Clone, Debug)]
enum Asked {
    Register(usize, Vec<String>, String),
    Update(usize, u64, Vec<String>),
    Remove(usize, u64),
    LookUp(Vec<String>),
    Wait(u64),
}

fn query() -> impl Strategy<Value = Vec<String>> {
    let known = "(ep|d|lt|base|et|count|page|href|rt)=[a-c0-9*:/\\[\\]é\"<>;,\u{0}]{0,4}";
    vec(prop_oneof![3 => Just("ep=a".to_owned()), 2 => known, 1 => ".{0,8}", 1 => Just("lt=9".to_owned())], 0..4)
}

fn asked() -> impl Strategy<Value = Asked> {
    let text = "(<[/a-c:]{0,4}>(;([a-c]|rt|anchor)(=\"?[a-c,;/\\\\*: ]{0,4}\"?)?){0,2},?){0,3}";
    prop_oneof![
        4 => (0..4_usize, query(), prop_oneof![text, ".{0,20}"]).prop_map(|(by, query, text)| Asked::Register(by, query, text)),
        2 => (0..4_usize, 0..8_u64, query()).prop_map(|(by, id, query)| Asked::Update(by, id, query)),
        1 => (0..4_usize, 0..8_u64).prop_map(|(by, id)| Asked::Remove(by, id)),
        2 => query().prop_map(Asked::LookUp),
        1 => (0..700_u64).prop_map(Asked::Wait),
    ]
}

proptest! {
    /// Whatever is asked is done or refused, in bounded memory, and look-ups tell links.
    #[test]
    fn whatever_is_asked_is_done_or_refused(all in vec(asked(), 0..40)) {
        const BUDGET: usize = 16 << 10;
        let peers = ["192.0.2.1:1", "192.0.2.1:2", "[2001:db8::1]:3", "[fe80::1%1]:4"].map(at);
        let mut registry = Registry::new(BUDGET, 1 << 10);
        let mut now = Duration::from_secs(1_000);
        for asked in all {
            let parameters = |query: &[String]| Parameters::read(query.iter().map(String::as_str));
            match asked {
                Asked::Register(by, query, text) => {
                    if let Ok(parameters) = parameters(&query) {
                        let revision = registry.revision();
                        let before = registry.endpoints(now, &Query::default());
                        let done = registry.register(now, &peers[by], parameters, &text);
                        if registry.endpoints(now, &Query::default()) != before {
                            prop_assert_ne!(registry.revision(), revision, "{:?}", done);
                        }
                        if done.is_ok() {
                            find_again(&registry, now, &text)?;
                        }
                    }
                }
                Asked::Update(by, id, query) => {
                    if let Ok(parameters) = parameters(&query) {
                        let _ = registry.update(now, id, &peers[by], parameters);
                    }
                }
                Asked::Remove(by, id) => drop(registry.remove(now, id, &peers[by])),
                Asked::LookUp(query) => {
                    if let Ok(query) = Query::read(query.iter().map(String::as_str)) {
                        for told in [registry.endpoints(now, &query), registry.resources(now, &query)] {
                            for link in links(&told.unwrap()) {
                                let link = Link::parse(link).map_err(|error| TestCaseError::fail(error.to_string()))?;
                                prop_assert!(link.target().starts_with("/rd/") || link.target().contains(':'));
                            }
                        }
                    }
                }
                Asked::Wait(seconds) => {
                    now += Duration::from_secs(seconds);
                    registry.expire(now);
                    prop_assert!(registry.next_end().is_none_or(|end| end > now));
                }
            }
            prop_assert!(registry.memory() <= BUDGET);
        }
        registry.expire(now + Duration::from_secs(1 << 40));
        prop_assert_eq!((registry.len(), registry.memory(), registry.next_end()), (0, 0, None));
    }
}
