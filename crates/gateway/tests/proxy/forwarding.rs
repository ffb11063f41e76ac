use millpond_live::{Bytes, Client, Code, Request, Resource, Response, number};

use super::{Upstream, all_to, client, echo, gateway};

#[tokio::test]
async fn a_request_comes_as_it_was_but_for_what_is_between_neighbours() {
    let upstream = Upstream::start(|server| server.route("/{*rest}", Resource::new().any(echo).conditional())).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let request = client().await.put(format!("{at}/a/b%2Fc?k=v")).payload(vec![7; 5_000]);
    let request = request.content_format(millpond_live::ContentFormat::OCTET_STREAM).if_match("tag").hop_limit(9);
    // 0xfdfc is elective, safe to forward and of no meaning here.
    let echoed = request.option(0xfdfc, "x").block_size(64).await.unwrap();
    // Hop-Limit is one less.
    let options = ["1=tag", "11=a", "11=b/c", "12=*", "15=k=v", "16=\u{8}", "65020=x"].join(",");
    assert_eq!(echoed.text().unwrap(), format!("0.03 {options} 5000"));
}

#[tokio::test]
async fn long_bodies_go_both_ways_in_blocks_of_their_own() {
    let twice = |request: Request| async move {
        Response::content([request.payload().clone(), request.payload().clone()].concat())
    };
    let upstream = Upstream::start(|server| server.block_size(128).route("/twice", Resource::new().post(twice))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let body: Vec<u8> = (0..20_000_u32).map(|number| (number % 251) as u8).collect();
    let answer = client().await.post(format!("{at}/twice")).payload(body.clone()).block_size(512).await.unwrap();
    assert_eq!(answer.payload(), &Bytes::from([body.clone(), body].concat()));
}

#[tokio::test]
async fn locations_lead_there_through_the_gateway() {
    let created = || async {
        Response::created().with_option(number::LOCATION_PATH, "jobs").with_option(number::LOCATION_PATH, "3")
    };
    let upstream = Upstream::start(|server| server.route("/jobs", Resource::new().post(created))).await;
    let rule = format!("[[rule]]\npath = \"/dev/7/{{*rest}}\"\nto = \"coap://{}/{{*rest}}\"\n", upstream.at());
    let (_gateway, at) = gateway(&rule).await;
    let answer = client().await.post(format!("{at}/dev/7/jobs")).await.unwrap();
    let location: Vec<_> = answer.options().all(number::LOCATION_PATH).cloned().collect();
    assert_eq!(location, ["dev", "7", "jobs", "3"].map(Bytes::from));
}

/// RFC 7252 §5.7.1: what is not known is forwarded where that is safe, and refused where it is not.
#[tokio::test]
async fn options_that_are_not_known_are_forwarded_if_that_is_safe() {
    let upstream = Upstream::start(|server| server.route("/a", Resource::new().get(echo))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let ask = |number: u16| {
        let uri = format!("{at}/a");
        async move { client().await.get(uri).option(number, "x").await.unwrap() }
    };
    // Critical and safe: the server is who does not know it.
    let critical = ask(0xfdfd).await;
    assert_eq!((critical.code(), upstream.asked()), (Code::BAD_OPTION, 0));
    assert!(!critical.text().unwrap().contains("forward"), "{:?}", critical.text());
    // Unsafe, elective or critical.
    let unsafe_one = ask(0xfdfe).await;
    assert_eq!(unsafe_one.code(), Code::BAD_OPTION);
    assert!(unsafe_one.text().unwrap().contains("not safe to forward"));
    assert_eq!(ask(0xfdff).await.code(), Code::BAD_OPTION);
    assert_eq!(ask(0xfdfc).await.code(), Code::CONTENT);
}

#[tokio::test]
async fn clients_name_whom_they_ask_where_a_rule_allows_it() {
    let upstream = Upstream::start(|server| server.route("/a/{*rest}", Resource::new().get(echo))).await;
    let (_gateway, at) = gateway("[[forward]]\nto = [\"127.0.0.1\"]\n").await;
    let named = format!("coap://{}/a/b?q", upstream.at());
    let by_uri = client().await.get(&at).option(number::PROXY_URI, named.into_bytes()).await.unwrap();
    assert_eq!(by_uri.text(), Ok("0.01 11=a,11=b,15=q,16=\u{f} 0"));
    let by_scheme = client().await.get(format!("{at}/a/b?q"));
    let by_scheme = by_scheme.option(number::PROXY_SCHEME, "coap").option(number::URI_HOST, "127.0.0.1");
    let by_scheme = by_scheme.uint_option(number::URI_PORT, upstream.at().port().into()).await.unwrap();
    assert_eq!(by_scheme.text(), by_uri.text());
    assert_eq!(upstream.asked(), 2, "its answers are not to be kept");
}

/// Over each transport to a gateway, and over each from there.
#[tokio::test]
async fn each_transport_leads_to_each() {
    use millpond_live::{
        ClientSecurity, KeyedCertificate, PreSharedKey, PreSharedKeys, Server, ServerSecurity, TrustAnchors,
    };

    let key = || PreSharedKey::from_text("meter:0x0102030405060708").unwrap();
    let folder = std::env::temp_dir().join(format!("millpond-gateway-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, private) = (made.cert.pem(), made.signing_key.serialize_pem());
    for (name, text) in
        [("cert.pem", &certificate), ("key.pem", &private), ("keys", &"meter:0x0102030405060708\n".to_owned())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let security = || {
        let certificate = KeyedCertificate::from_pem(certificate.as_bytes(), private.as_bytes()).unwrap();
        ServerSecurity::new().certificate(certificate).pre_shared_keys(PreSharedKeys::new([key()]).unwrap())
    };
    let trusting = || {
        let trust = TrustAnchors::from_pem(certificate.as_bytes()).unwrap();
        Client::builder().security(ClientSecurity::new().trust(trust))
    };
    let upstream = Server::builder()
        .bind(super::any())
        .bind_tcp(super::any())
        .bind_dtls(super::any())
        .bind_tls(super::any())
        .security(security())
        .route("/a", Resource::new().get(|| async { Response::content("a").with_max_age(0) }))
        .start()
        .await
        .unwrap();
    let ways = |all: &[(millpond_live::Transport, std::net::SocketAddr)], host: &str| -> Vec<String> {
        all.iter().map(|(transport, address)| format!("{transport}://{host}:{}", address.port())).collect()
    };
    let mut lines = String::from(
        "coap-tcp = [\"127.0.0.1:0\"]\ncoaps = [\"127.0.0.1:0\"]\ncoaps-tcp = [\"127.0.0.1:0\"]\n\
         [credentials]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\npsk-file = \"keys\"\n[upstream]\nca = \"cert.pem\"\n",
    );
    let upstreams = ways(upstream.local_addrs(), "localhost");
    for (place, upstream) in upstreams.iter().enumerate() {
        lines += &format!("[[rule]]\npath = \"/{place}/{{*rest}}\"\nto = \"{upstream}/{{*rest}}\"\n");
    }
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n{lines}");
    let config = millpond_gateway::Config::from_toml(&text, "gateway.toml", &folder).unwrap();
    let gateway = millpond_gateway::Gateway::builder(config).start().await.unwrap();
    let gateways = ways(gateway.local_addrs(), "localhost");
    assert_eq!((gateways.len(), upstreams.len()), (4, 4));
    let client = trusting().build().await.unwrap();
    for at in &gateways {
        for (place, upstream) in upstreams.iter().enumerate() {
            let answer = client.get(format!("{at}/{place}/a")).await;
            assert_eq!(answer.unwrap().text(), Ok("a"), "{at} to {upstream}");
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// A request that is handed round ends.
#[tokio::test]
async fn two_gateways_that_lead_to_each_other_say_so() {
    let free = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap();
    let (_first, at) = gateway(&all_to(port)).await;
    drop(free);
    let first: std::net::SocketAddr = at.trim_start_matches("coap://").parse().unwrap();
    let text = format!("[listen]\ncoap = [\"{port}\"]\n{}", all_to(first));
    let config = millpond_gateway::Config::from_toml(&text, "second.toml", "".as_ref()).unwrap();
    let _second = millpond_gateway::Gateway::builder(config).start().await.unwrap();
    let answer = client().await.get(format!("{at}/a")).hop_limit(5).await.unwrap();
    assert_eq!(answer.code(), Code::HOP_LIMIT_REACHED);
    // Each that it passed has put its name before (RFC 8768 §4).
    assert_eq!(answer.text().unwrap().split(' ').count(), 5);
    let one = client().await.get(format!("{at}/a")).hop_limit(1).await.unwrap();
    assert_eq!((one.code(), one.text()), (Code::HOP_LIMIT_REACHED, Ok("millpond")));
}

#[tokio::test]
async fn a_rule_that_leads_to_the_gateway_is_refused_at_the_start() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for listens in [free.to_string(), format!("0.0.0.0:{}", free.port())] {
        let text = format!("[listen]\ncoap = [\"{listens}\"]\n{}", all_to(free));
        let config = millpond_gateway::Config::from_toml(&text, "loop.toml", "".as_ref()).unwrap();
        let refused = millpond_gateway::Gateway::builder(config).start().await.unwrap_err();
        let line = refused.to_string();
        assert!(line.contains("loop.toml:3: ") && line.ends_with("where the gateway itself listens"), "{line}");
    }
    let text = format!("[listen]\ncoap = [\"{free}\"]\n");
    let read = |lines: &str| millpond_gateway::Config::from_toml(lines, "loop.toml", "".as_ref()).unwrap();
    let loops = read(&format!("{text}{}", all_to(free)));
    assert!(millpond_gateway::Gateway::builder(loops.clone()).check().await.is_err());
    // Nor is it read again so.
    let upstream = Upstream::start(|server| server).await;
    let gateway = millpond_gateway::Gateway::builder(read(&format!("{text}{}", all_to(upstream.at()))));
    let gateway = gateway.start().await.unwrap();
    assert!(gateway.reload(&loops).await.is_err());
    let answer = client().await.get(format!("coap://{free}/count")).await.unwrap();
    assert_eq!(answer.code(), Code::CONTENT, "it goes on as it was");
}
