//! The store alone: times and addresses are what the test says. Tests are named after sections of RFC 9176.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use millpond_gateway::directory::{Parameters, Query, Refusal, Registrant, Registry};
use millpond_live::{PeerIdentity, Transport};

const T: fn(u64) -> Duration = |seconds| Duration::from_secs(1_700_000_000 + seconds);

pub(super) fn at(peer: &str) -> Registrant {
    Registrant { transport: Transport::Udp, peer: peer.parse().unwrap(), identity: None }
}

fn known_as(identity: &'static str, peer: &str) -> Registrant {
    let identity = Some(PeerIdentity::PreSharedKey(Bytes::from(identity)));
    Registrant { transport: Transport::Dtls, identity, ..at(peer) }
}

pub(super) fn parameters(query: &str) -> Parameters {
    Parameters::read(query.split('&').filter(|part| !part.is_empty())).unwrap()
}

fn query(query: &str) -> Query {
    Query::read(query.split('&').filter(|part| !part.is_empty())).unwrap()
}

fn registry() -> Registry {
    Registry::new(1 << 20, 64 << 10)
}

const NODE: &str = "[2001:db8:3::123]:61616";
/// The payload of RFC 9176 §5.
const PAYLOAD: &str = "</sensors/temp>;rt=temperature-c;if=sensor,\n<http://www.example.com/sensors/temp>;\n  \
                       anchor=\"/sensors/temp\";rel=describedby";

#[test]
fn section_5_a_registration_keeps_its_place() {
    let mut registry = registry();
    let id = registry.register(T(0), &at(NODE), parameters("ep=node1"), PAYLOAD).unwrap();
    assert_eq!(
        registry.resources(T(1), &query("")).unwrap(),
        "<coap://[2001:db8:3::123]:61616/sensors/temp>;rt=temperature-c;if=sensor,\
         <http://www.example.com/sensors/temp>;anchor=\"coap://[2001:db8:3::123]:61616/sensors/temp\";rel=describedby"
    );
    // Registered again it is replaced, attributes and all.
    let replaced = parameters("ep=node1&et=a");
    assert_eq!(registry.register(T(5), &at(NODE), replaced, "</new>"), Ok(id));
    let sector = registry.register(T(5), &at(NODE), parameters("ep=node1&d=s"), "</other>").unwrap();
    assert_ne!(sector, id, "another sector is another endpoint");
    assert_eq!(registry.register(T(6), &at(NODE), parameters("ep=node1"), "</new>"), Ok(id));
    assert_eq!(
        registry.endpoints(T(6), &query("")).unwrap(),
        format!(
            "</rd/{id}>;ep=\"node1\";base=\"coap://[2001:db8:3::123]:61616\";rt=\"core.rd-ep\",\
             </rd/{sector}>;ep=\"node1\";d=\"s\";base=\"coap://[2001:db8:3::123]:61616\";rt=\"core.rd-ep\""
        )
    );
}

#[test]
fn section_5_the_usual_port_is_left_out_and_an_address_of_ipv4_is_one() {
    for (peer, transport, base) in [
        ("192.0.2.1:5683", Transport::Udp, "coap://192.0.2.1"),
        ("192.0.2.1:5684", Transport::Udp, "coap://192.0.2.1:5684"),
        ("192.0.2.1:5684", Transport::Dtls, "coaps://192.0.2.1"),
        ("[2001:db8::1]:5683", Transport::Tcp, "coap+tcp://[2001:db8::1]"),
        ("[::ffff:192.0.2.1]:7", Transport::Tls, "coaps+tcp://192.0.2.1:7"),
    ] {
        let mut registry = registry();
        let by = Registrant { transport, ..at(peer) };
        registry.register(T(0), &by, parameters("ep=a"), "").unwrap();
        let endpoint = registry.endpoint(T(0), None, "a").unwrap();
        assert_eq!((endpoint.base.as_str(), endpoint.registrant), (base, Some(by)));
    }
}

#[test]
fn section_5_3_1_an_update_refreshes_and_changes_what_it_names() {
    let mut registry = registry();
    let by = at(NODE);
    let base = "ep=endpoint1&lt=500&base=coap://local-proxy-old.example.com&et=a&et=b&b=U";
    let id = registry.register(T(0), &by, parameters(base), PAYLOAD).unwrap();
    registry.update(T(400), id, &by, parameters("")).unwrap();
    assert!(registry.endpoint(T(899), None, "endpoint1").is_some(), "the lifetime stays, and begins anew");
    registry.update(T(899), id, &by, parameters("base=coaps://new.example.com&et=c&lt=10")).unwrap();
    assert_eq!(
        registry.resources(T(900), &query("ep=endpoint1")).unwrap(),
        "<coaps://new.example.com/sensors/temp>;rt=temperature-c;if=sensor,\
         <http://www.example.com/sensors/temp>;anchor=\"coaps://new.example.com/sensors/temp\";rel=describedby"
    );
    assert_eq!(
        registry.endpoints(T(900), &query("")).unwrap(),
        format!("</rd/{id}>;ep=\"endpoint1\";base=\"coaps://new.example.com\";rt=\"core.rd-ep\";b=\"U\";et=\"c\"")
    );
    let endpoint = registry.endpoint(T(900), None, "endpoint1").unwrap();
    assert_eq!((endpoint.registrant, endpoint.expires_in), (None, Duration::from_secs(9)));
    assert!(registry.endpoint(T(909), None, "endpoint1").is_none());
    assert_eq!(registry.update(T(900), id + 1, &by, parameters("")), Err(Refusal::NotFound));
    let other = registry.update(T(900), id, &by, parameters("ep=other"));
    assert!(matches!(other, Err(Refusal::Malformed(_))), "{other:?}");
}

#[test]
fn section_5_3_1_without_a_base_it_follows_the_address() {
    let mut registry = registry();
    let id = registry.register(T(0), &at("192.0.2.1:1000"), parameters("ep=a"), "</x>").unwrap();
    registry.update(T(1), id, &at("192.0.2.1:2000"), parameters("")).unwrap();
    assert_eq!(registry.resources(T(1), &query("")).unwrap(), "<coap://192.0.2.1:2000/x>");
}

#[test]
fn section_5_3_2_a_registration_that_is_removed_is_gone() {
    let mut registry = registry();
    let id = registry.register(T(0), &at(NODE), parameters("ep=a"), "</x>").unwrap();
    registry.remove(T(1), id, &at(NODE)).unwrap();
    assert_eq!(registry.remove(T(1), id, &at(NODE)), Err(Refusal::NotFound));
    assert_eq!((registry.len(), registry.memory(), registry.next_end()), (0, 0, None));
    let next = registry.register(T(2), &at(NODE), parameters("ep=a"), "</x>").unwrap();
    assert_ne!(next, id, "no number comes twice");
}

#[test]
fn section_5_3_what_has_expired_is_told_to_nobody_and_can_be_refreshed_for_a_while() {
    let mut registry = registry();
    let id = registry.register(T(0), &at(NODE), parameters("ep=a&lt=60"), "</x>").unwrap();
    assert_eq!(registry.next_end(), Some(T(60)));
    let revision = registry.revision();
    registry.expire(T(59));
    assert_eq!(registry.revision(), revision);
    registry.expire(T(60));
    assert_ne!(registry.revision(), revision, "look-ups tell something else now");
    assert_eq!(registry.resources(T(60), &query("")).unwrap(), "");
    registry.update(T(600), id, &at(NODE), parameters("")).unwrap();
    assert_eq!(registry.endpoint(T(600), None, "a").unwrap().expires_in, Duration::from_secs(60));
    registry.expire(T(700));
    assert_eq!((registry.len(), registry.next_end()), (1, Some(T(1_260))));
    let revision = registry.revision();
    registry.expire(T(1_260));
    assert_eq!((registry.len(), registry.next_end(), registry.revision()), (0, None, revision));
    assert_eq!(registry.update(T(1_261), id, &at(NODE), parameters("")), Err(Refusal::NotFound));
}

#[test]
fn section_6_2_criteria_fit_links_or_their_endpoint() {
    let mut registry = registry();
    let payload = "</sensors>;ct=40;title=\"Sensor Index\",</sensors/temp>;rt=\"temperature-c x\";if=sensor;obs,\
                   <http://www.example.com/t123>;anchor=\"/sensors/temp\";rel=describedby";
    let one = registry.register(T(0), &at("[2001:db8::1]:5683"), parameters("ep=sensor1&d=a&et=p"), payload).unwrap();
    let two = registry.register(T(0), &at("[2001:db8::2]:5683"), parameters("ep=sensor2&et=p&et=q"), "</t>").unwrap();
    let targets = |text: &str| -> Vec<String> {
        millpond_live::links(text)
            .map(|link| link.split(['<', '>']).nth(1).unwrap().replace("coap://[2001:db8::1]", ""))
            .collect()
    };
    let all = ["/sensors", "/sensors/temp", "http://www.example.com/t123"];
    let of_two = "coap://[2001:db8::2]/t";
    for (asked, found) in [
        ("rt=temperature-c", &[all[1]][..]),
        ("rt=x", &[all[1]]),
        ("rt=temp*", &[all[1]]),
        ("rt=temperature-c x", &[]),
        ("if=sensor&rt=x", &[all[1]]),
        ("obs=*", &[all[1]]),
        ("title=Sensor Index", &[all[0]]),
        ("ct=40", &[all[0]]),
        ("anchor=coap://[2001:db8::1]/sensors/temp", &[all[2]]),
        ("href=coap://[2001:db8::1]/sensors*", &all[..2]),
        ("href=/sensors", &[]),
        ("ep=sensor1", &all),
        ("ep=sensor*&ct=40", &[all[0]]),
        ("d=a", &all),
        ("d=*", &all),
        ("et=q", &[of_two]),
        ("et=p", &[all[0], all[1], all[2], of_two]),
        ("base=coap://[2001:db8::2]", &[of_two]),
        ("lt=90000", &[]),
        ("foo=*", &[]),
    ] {
        assert_eq!(targets(&registry.resources(T(1), &query(asked)).unwrap()), found, "{asked}");
    }
    let (one, two) = (format!("/rd/{one}"), format!("/rd/{two}"));
    assert_eq!(targets(&registry.resources(T(1), &query(&format!("href={one}"))).unwrap()), all);
    let (one, two) = (one.as_str(), two.as_str());
    for (asked, found) in [
        ("", &[one, two][..]),
        ("ep=sensor2", &[two]),
        ("rt=core.rd-ep", &[one, two]),
        ("rt=x", &[one]),
        // Each criterion fits one of its links, if not the same.
        ("ct=40&rt=x", &[one]),
        ("href=coap://[2001:db8::2]/t", &[two]),
        ("href=/rd/*", &[one, two]),
        ("d=a&et=q", &[]),
    ] {
        assert_eq!(targets(&registry.endpoints(T(1), &query(asked)).unwrap()), found, "{asked}");
    }
}

#[test]
fn section_6_2_pages_are_counted_from_zero() {
    let mut registry = registry();
    let first: Vec<String> = (0..7).map(|number| format!("</res/{number}>")).collect();
    registry.register(T(0), &at("192.0.2.1:5683"), parameters("ep=a"), &first.join(",")).unwrap();
    registry.register(T(0), &at("192.0.2.1:5683"), parameters("ep=b&base=coap://h"), "</res/7>,</other>").unwrap();
    let numbers = |asked: &str| -> Vec<String> {
        let text = registry.resources(T(0), &query(asked)).unwrap();
        millpond_live::links(&text)
            .map(|link| link.trim_end_matches('>').rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(numbers("page=0&count=5"), ["0", "1", "2", "3", "4"]);
    assert_eq!(numbers("page=1&count=5"), ["5", "6", "7", "other"]);
    assert_eq!(numbers("count=2"), ["0", "1"]);
    for empty in ["page=2&count=5", "count=0", "page=7&count=0", "page=99999999999999999999&count=99999999999999999999"]
    {
        assert_eq!(numbers(empty).len(), 0, "{empty}");
    }
    assert_eq!(registry.endpoints(T(0), &query("page=1&count=1")).unwrap().split(';').nth(1), Some("ep=\"b\""));
    for wrong in ["page=1", "count=", "count=-1", "count=x&page=1", "rt"] {
        assert!(matches!(Query::read(wrong.split('&')), Err(Refusal::Malformed(_))), "{wrong}");
    }
    let many = ["a=b"; 17];
    assert!(matches!(Query::read(many.into_iter()), Err(Refusal::Malformed(_))));
}

#[test]
fn section_6_what_is_on_a_link_is_told_to_nobody_elsewhere() {
    let mut registry = registry();
    registry.register(T(0), &at("[fe80::1%3]:5683"), parameters("ep=a"), "</x>").unwrap();
    registry.register(T(0), &at("[2001:db8::1]:5683"), parameters("ep=b&base=coap://[fe80::7]"), "</y>").unwrap();
    registry.register(T(0), &at("169.254.0.1:5683"), parameters("ep=c"), "</z>").unwrap();
    for answer in [registry.resources(T(0), &query("")), registry.endpoints(T(0), &query(""))] {
        assert_eq!(answer.unwrap(), "");
    }
    let endpoint = registry.endpoint(T(0), None, "a").unwrap();
    assert_eq!(endpoint.base, "coap://[fe80::1]", "no zone is told");
    assert_eq!(endpoint.registrant.unwrap().uri(), "coap://[fe80::1%3]");
}

#[test]
fn section_7_5_a_registration_is_whose_registered_first() {
    let foreign = |result: Result<u64, Refusal>| assert!(matches!(result, Err(Refusal::Foreign(_))), "{result:?}");
    let mut registry = registry();
    let key = || known_as("key", "192.0.2.1:1000");
    let id = registry.register(T(0), &key(), parameters("ep=a&lt=100"), "</x>").unwrap();
    for other in [at("192.0.2.1:1000"), known_as("other", "192.0.2.1:1000")] {
        foreign(registry.register(T(1), &other, parameters("ep=a"), "</y>"));
        foreign(registry.update(T(1), id, &other, parameters("")).map(|()| 0));
        foreign(registry.remove(T(1), id, &other).map(|()| 0));
    }
    // The identity, from wherever.
    assert_eq!(registry.register(T(1), &known_as("key", "198.51.100.7:5"), parameters("ep=a&lt=100"), "</x>"), Ok(id));
    // Once it has ended, the name is free, and the old place nobody's.
    let next = registry.register(T(101), &at("192.0.2.9:1"), parameters("ep=a"), "</y>").unwrap();
    assert_ne!(next, id);
    assert_eq!(registry.update(T(102), id, &key(), parameters("")), Err(Refusal::NotFound));

    for (owner, same, other) in [
        ("192.0.2.1:1000", "192.0.2.1:2000", "192.0.2.2:1000"),
        ("[::ffff:192.0.2.1]:1", "192.0.2.1:1", "[2001:db8::1]:1"),
        ("[2001:db8::1]:1000", "[2001:db8::ffff:1]:9", "[2001:db8:0:1::1]:1000"),
        ("[fe80::1%1]:1", "[fe80::2%1]:1", "[fe80::1%2]:1"),
    ] {
        let mut registry = self::registry();
        let id = registry.register(T(0), &at(owner), parameters("ep=a"), "").unwrap();
        foreign(registry.update(T(1), id, &at(other), parameters("")).map(|()| 0));
        assert_eq!(registry.update(T(1), id, &at(same), parameters("")), Ok(()));
        // Who has proved more owns it from then on.
        foreign(registry.update(T(1), id, &known_as("key", other), parameters("")).map(|()| 0));
        assert_eq!(registry.update(T(1), id, &known_as("key", same), parameters("")), Ok(()));
        foreign(registry.update(T(1), id, &at(same), parameters("")).map(|()| 0));
    }
}

#[test]
fn appendix_c_other_references_are_refused_with_their_place() {
    let mut registry = registry();
    for (links, why) in [
        ("</a>,<b>", "link 2: \"b\" is neither a URI nor begins with one slash"),
        ("<//h/a>", "link 1: \"//h/a\" is neither"),
        ("<>", "link 1: \"\" is neither"),
        ("</a>;anchor=\"b\"", "link 1: \"b\" is neither"),
        ("</a>;anchor", "link 1: \"\" is neither"),
        ("</a>,</b", "link 2: \"</b\" has no >"),
        ("{\"a\":1}", "link 1: "),
    ] {
        match registry.register(T(0), &at(NODE), parameters("ep=a"), links) {
            Err(Refusal::Malformed(told)) => assert!(told.starts_with(why), "{links}: {told}"),
            other => panic!("{links}: {other:?}"),
        }
    }
    let none: Result<u64, Refusal> = registry.register(T(0), &at(NODE), parameters("et=a"), "</a>");
    assert_eq!(none, Err(Refusal::Malformed("ep is missing, the name of the endpoint".into())));
    assert!(registry.is_empty());
}

#[test]
fn what_says_the_same_again_changes_no_look_up() {
    let mut registry = registry();
    let id = registry.register(T(0), &at(NODE), parameters("ep=a&et=x"), "</x>;rt=a").unwrap();
    let revision = registry.revision();
    registry.update(T(1), id, &at(NODE), parameters("")).unwrap();
    registry.update(T(1), id, &at(NODE), parameters("lt=500&et=x")).unwrap();
    registry.register(T(2), &at(NODE), parameters("ep=a&et=x"), " </x> ; rt=a").unwrap();
    assert_eq!(registry.revision(), revision);
    registry.update(T(3), id, &at("[2001:db8:3::123]:7"), parameters("")).unwrap();
    assert_ne!(registry.revision(), revision, "the base is another");
}

#[test]
fn updates_add_no_more_attributes_than_a_registration_may_have() {
    let mut registry = registry();
    let id = registry.register(T(0), &at(NODE), parameters("ep=a&x0=0"), "").unwrap();
    let mut update = |of: std::ops::Range<usize>, value: &str| {
        let query = of.map(|number| format!("x{number}={value}")).collect::<Vec<_>>().join("&");
        registry.update(T(1), id, &at(NODE), parameters(&query))
    };
    assert_eq!(update(0..64, "1"), Ok(()));
    assert_eq!(update(0..64, "2"), Ok(()), "they replace those of the same name");
    assert!(matches!(update(64..65, "3"), Err(Refusal::Malformed(_))));
    assert_eq!(registry.endpoints(T(1), &query("")).unwrap().matches("=\"2\"").count(), 64);
}

/// A registration of some 11,000 bytes from this network.
fn large(network: u8, host: u32, identity: Option<&'static str>) -> (Registrant, Parameters, String) {
    let peer = SocketAddr::from(([192, 0, network, (host % 250) as u8], (host / 250) as u16 + 1));
    let identity = identity.map(|identity| PeerIdentity::PreSharedKey(Bytes::from(identity)));
    let parameters = parameters(&format!("ep={network}-{host}&lt=1000"));
    (Registrant { transport: Transport::Udp, peer, identity }, parameters, format!("</{}>", "x".repeat(10_000)))
}

#[test]
fn one_network_leaves_room_for_others_and_those_without_identity_for_those_with_one() {
    let mut registry = registry();
    let mut register = |network, host, identity, now| {
        let (by, parameters, links) = large(network, host, identity);
        registry.register(T(now), &by, parameters, &links)
    };
    let retry_after = Duration::from_secs;
    let mut count = |network, identity| (0..150).filter(|host| register(network, *host, identity, 0).is_ok()).count();
    let counts = [count(1, None), count(2, None), count(3, Some("key")), count(4, Some("key"))];
    // Half, another quarter, and the last one, of about a hundred.
    assert!(counts[0].abs_diff(48) < 3 && counts[1].abs_diff(24) < 3 && counts[2].abs_diff(24) < 3, "{counts:?}");
    assert_eq!(counts[3], 0);
    assert_eq!(register(1, 2_000, None, 400), Err(Refusal::NetworkFull { retry_after: retry_after(600) }));
    assert_eq!(register(5, 2_000, None, 400), Err(Refusal::Full { retry_after: retry_after(600) }));
    assert_eq!(register(5, 2_000, Some("key"), 500), Err(Refusal::Full { retry_after: retry_after(500) }));
    assert_eq!(register(1, 2_000, None, 990), Err(Refusal::NetworkFull { retry_after: retry_after(30) }));
    // Who is registered stays so, and can register again.
    assert!(register(1, 0, None, 990).is_ok());
    // What has expired gives way.
    assert!(register(5, 0, None, 1_000).is_ok());
    assert!(registry.memory() <= 1 << 20);

    let mut registry = self::registry();
    let mut register = |network, host| {
        let (by, parameters, links) = large(network, host, Some("key"));
        registry.register(T(0), &by, parameters, &links)
    };
    let of_one = (0..150).filter(|host| register(1, *host).is_ok()).count();
    assert!(of_one.abs_diff(75) < 3, "three quarters: {of_one}");
    assert_eq!(register(1, 2_000), Err(Refusal::NetworkFull { retry_after: retry_after(600) }));
    assert!(register(2, 0).is_ok());
}
