use std::time::Duration;

use millpond_live::{Code, Resource, Response, number};

use super::{all_to, ask, client, counting, device, echo, gateway, get};

#[tokio::test]
async fn methods_and_bodies_come_as_they_were_asked() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let json = [("Content-Type", "application/json; charset=utf-8")];
    for (method, code, body) in [
        ("GET", "0.01", ""),
        ("POST", "0.02", "{}"),
        ("PUT", "0.03", "{}"),
        ("DELETE", "0.04", ""),
        ("QUERY", "0.05", "{}"),
        ("PATCH", "0.06", "{}"),
    ] {
        let headers = if body.is_empty() { &[][..] } else { &json[..] };
        let answer = ask(at, &format!("{method} /a/b%2Fc?k=v&x"), headers, body).await;
        let format = if body.is_empty() { "" } else { "12=50," };
        let expected = format!("{code} 11=a,11=b/c,{format}15=k=v,15=x,16=15 {}", body.len());
        assert_eq!((answer.status.as_u16(), answer.text()), (200, &*expected), "{method}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    }
    let head = ask(at, "HEAD /a", &[], "").await;
    assert_eq!((head.status.as_u16(), head.body.len(), head.header("content-length")), (200, 0, Some("17")));
    let long = ask(at, "PUT /a", &[("Content-Type", "application/octet-stream")], vec![7; 50_000]).await;
    assert!(long.text().ends_with(" 50000"), "{}", long.text());
    for method in ["TRACE", "OPTIONS", "BREW"] {
        assert_eq!(ask(at, &format!("{method} /a"), &[], "").await.status.as_u16(), 501);
    }
}

#[tokio::test]
async fn preconditions_and_what_is_taken_are_told_to_the_device() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    for (method, header, value, option) in [
        ("PUT", "If-Match", "\"6162\", \"63\"", "1=ab,1=c,"),
        ("PUT", "If-Match", "*", "1=,"),
        ("PUT", "If-None-Match", "*", "5=,"),
        ("GET", "Accept", "application/cbor", "17=60,"),
        ("GET", "Accept", "text/html, */*;q=0.1", ""),
    ] {
        let answer = ask(at, &format!("{method} /a"), &[(header, value)], "").await;
        let code = if method == "GET" { "0.01" } else { "0.03" };
        // The device answers with text whatever was taken.
        if value == "application/cbor" {
            assert_eq!(answer.status.as_u16(), 406);
            continue;
        }
        let (before, behind) = if header == "Accept" { ("", option) } else { (option, "") };
        assert_eq!(answer.text(), format!("{code} {before}11=a,16=15{behind} 0"), "{header}: {value}");
    }
    for (method, header, value, status) in [
        ("PUT", "If-Match", "\"xyz\"", 412),
        ("PUT", "If-Match", "W/\"6162\"", 412),
        ("PUT", "If-None-Match", "\"6162\"", 501),
        ("GET", "Accept", "text/html", 406),
        ("PUT", "Content-Type", "text/html", 415),
        ("PUT", "Content-Type", "text/plain; charset=utf-16", 415),
        ("PUT", "Content-Encoding", "gzip", 415),
        ("PUT", "Content-Range", "bytes 0-1/5", 400),
        ("QUERY", "X", "y", 400),
    ] {
        let answer = ask(at, &format!("{method} /a"), &[(header, value)], "xx").await;
        let answer = if method == "GET" { ask(at, "GET /a", &[(header, value)], "").await } else { answer };
        assert_eq!(answer.status.as_u16(), status, "{header}: {value}: {}", answer.text());
    }
    let range = ask(at, "GET /a", &[("Range", "bytes=0-1")], "").await;
    assert_eq!((range.status.as_u16(), range.header("accept-ranges")), (200, Some("none")));
}

/// One after the other, where a device has not what the client likes best.
#[tokio::test]
async fn what_a_client_takes_is_found() {
    let picky = |request: millpond_live::Request| async move {
        match request.options().uint(number::ACCEPT) {
            Some(60) => Response::content(vec![0x01]).with_content_format(60).with_max_age(0),
            _ => Response::new(Code::NOT_ACCEPTABLE),
        }
    };
    let device = device(|server| server.route("/x", Resource::new().get(picky))).await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let answer = ask(at, "GET /x", &[("Accept", "application/json, application/cbor;q=0.2")], "").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some("application/cbor")));
}

#[tokio::test]
async fn what_is_kept_says_its_age_and_is_kept_for_coap_too() {
    let (resource, _) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let (_gateway, at, coap) = gateway(&all_to(&device)).await;
    let first = get(at, "/count").await;
    assert_eq!((first.text(), first.header("cache-control"), first.header("age")), ("1", Some("max-age=30"), None));
    assert_eq!((first.header("etag"), first.header("cache-status")), (Some("\"ab07\""), Some("millpond; fwd=miss")));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let second = get(at, "/count").await;
    assert_eq!(second.text(), "1");
    let age: u32 = second.header("age").unwrap().parse().unwrap();
    let fresh: u32 = second.header("cache-control").unwrap().strip_prefix("max-age=").unwrap().parse().unwrap();
    assert!(age >= 1 && (29..=30).contains(&fresh), "{second:?}");
    assert!(second.header("cache-status").unwrap().starts_with("millpond; hit; ttl="));
    assert_eq!(client().await.get(format!("{coap}/count")).await.unwrap().text(), Ok("1"));
    for (tags, status) in [("\"00\", W/\"ab07\"", 304), ("\"ab07\"", 304), ("\"ab08\"", 200), ("\"nothex\"", 200)] {
        let answer = ask(at, "GET /count", &[("If-None-Match", tags)], "").await;
        assert_eq!(answer.status.as_u16(), status, "{tags}");
        assert_eq!((answer.body.is_empty(), answer.header("etag")), (status == 304, Some("\"ab07\"")));
    }
    // What may have changed something ends it.
    ask(at, "DELETE /count", &[], "").await;
    assert_eq!(get(at, "/count").await.text(), "2");
}

#[tokio::test]
async fn answers_are_told_as_http_has_them() {
    let made = || async {
        let made = Response::created().with_option(number::LOCATION_PATH, "jobs");
        made.with_option(number::LOCATION_PATH, "a b/\r\nSet-Cookie: x").with_option(number::LOCATION_QUERY, "q=\u{e9}")
    };
    let full = || async { Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(7).with_payload("later") };
    let odd = || async { Response::content("<html>").with_content_format(65_000) };
    let device = device(|server| {
        let server = server.route("/jobs", Resource::new().post(made)).route("/full", Resource::new().get(full));
        let server = server.route("/odd", Resource::new().get(odd));
        server
            .route("/gone", Resource::new().delete(|| async { Response::deleted() }))
            .route("/bare", Resource::new().get(|| async { Response::content("<script>") }))
            .route("/deflated", Resource::new().get(|| async { Response::content("x").with_content_format(11_050) }))
    })
    .await;
    let lines = format!(
        "{}[[forward]]\nto = [\"127.0.0.1\"]\n",
        all_to(&device).replace("/{*rest}\"\nto", "/dev/{*rest}\"\nto")
    );
    let (_gateway, at, _) = gateway(&lines).await;
    let created = ask(at, "POST /dev/jobs", &[], "").await;
    let location = "/dev/jobs/a%20b%2F%0D%0ASet-Cookie%3A%20x?q=%C3%A9";
    assert_eq!((created.status.as_u16(), created.header("location")), (201, Some(location)));
    let mapped = ask(at, &format!("POST /hc/coap://{}/jobs", device.local_addr()), &[], "").await;
    assert!(mapped.header("location").unwrap().starts_with(&format!("/hc/coap://{}/jobs/", device.local_addr())));
    let full = get(at, "/dev/full").await;
    assert_eq!((full.status.as_u16(), full.header("retry-after"), full.text()), (503, Some("7"), "later"));
    assert_eq!(full.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(ask(at, "DELETE /dev/gone", &[], "").await.status.as_u16(), 204);
    assert_eq!(get(at, "/dev/nowhere").await.status.as_u16(), 404);
    assert_eq!(get(at, "/nowhere").await.text(), "no rule of the gateway is for this path");
    assert_eq!(get(at, "/dev/bare").await.header("content-type"), Some("application/octet-stream"));
    let odd = get(at, "/dev/odd").await;
    assert_eq!(odd.header("content-type"), Some("application/coap-payload;cf=65000"));
    assert_eq!(odd.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(odd.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    let deflated = get(at, "/dev/deflated").await;
    assert_eq!(
        (deflated.header("content-type"), deflated.header("content-encoding")),
        (Some("application/json"), Some("deflate"))
    );
}

#[tokio::test]
async fn who_does_not_answer_is_named() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent_at = silent.local_addr().unwrap();
    let lines = format!(
        "[[rule]]\npath = \"/silent\"\nto = \"coap://{silent_at}/x\"\ntimeout = \"200 ms\"\n\
         [[rule]]\npath = \"/closed\"\nto = \"coap://{closed}/x\"\n"
    );
    let (_gateway, at, _) = gateway(&lines).await;
    for (path, status, named) in [("/silent", 504, silent_at), ("/closed", 502, closed)] {
        let answer = get(at, path).await;
        assert_eq!((answer.status.as_u16(), answer.text().contains(&named.to_string())), (status, true), "{answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

/// RFC 8075 §5.3 and RFC 7252 §10.2: only where a rule allows it.
#[tokio::test]
async fn clients_name_whom_they_ask() {
    let device = echo().await;
    let (at_device, port) = (device.local_addr(), device.local_addr().port());
    let (_gateway, at, _) = gateway("[[forward]]\nto = [\"127.0.0.1\"]\n").await;
    let mapped = get(at, &format!("/hc/coap://{at_device}/a/b?q=1&r")).await;
    assert_eq!(mapped.text(), "0.01 11=a,11=b,15=q=1,15=r,16=15 0");
    assert_eq!(get(at, &format!("/hc/coap://{at_device}?q=1&r")).await.text(), "0.01 15=q=1,15=r,16=15 0");
    let absolute = super::raw(
        at,
        format!("GET coap://{at_device}/a HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").as_bytes(),
    )
    .await;
    assert!(absolute.ends_with("\r\n\r\n0.01 11=a,16=15 0"), "{absolute}");
    for (target, status) in [
        (format!("/hc/coap://127.0.0.2:{port}/a"), 403),
        (format!("/hc/coap://%5B::1%5D:{port}/a"), 403),
        (format!("/hc/coap://[::1]:{port}/a"), 403),
        ("/hc/coap://a@127.0.0.1/a".into(), 400),
        ("/hc/coap://".into(), 400),
        (format!("/hc/coapx://{at_device}/a"), 400),
        (format!("/hc/http://{at_device}/a"), 404),
        (format!("/hc/coap:/{at_device}/a"), 404),
    ] {
        let answer = get(at, &target).await;
        assert_eq!(answer.status.as_u16(), status, "{target}: {}", answer.text());
    }
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    assert_eq!(get(at, &format!("/hc/coap://{at_device}/a")).await.status.as_u16(), 502, "no rule allows any");
}

#[tokio::test]
async fn rights_are_of_networks_and_methods() {
    let device = echo().await;
    let rule = |path: &str, rights: &str| {
        format!("[[rule]]\npath = \"/{path}\"\nto = \"coap://{}/a\"\n{rights}\n", device.local_addr())
    };
    let lines = [
        rule("here", "who = [\"127.0.0.0/8\"]\nmethods = [\"GET\", \"FETCH\"]"),
        rule("there", "who = [\"192.0.2.0/24\"]"),
        rule("known", "who = [\"identified\"]"),
        rule("host", "host = \"gate.example\""),
    ]
    .concat();
    let (_gateway, at, _) = gateway(&lines).await;
    let here = get(at, "/here").await;
    assert_eq!((here.status.as_u16(), here.header("cache-control")), (200, Some("private, max-age=0")));
    let deleted = ask(at, "DELETE /here", &[], "").await;
    assert_eq!((deleted.status.as_u16(), deleted.header("allow")), (405, Some("GET, QUERY, HEAD")));
    assert_eq!(get(at, "/there").await.status.as_u16(), 403);
    assert_eq!(get(at, "/known").await.status.as_u16(), 403);
    assert_eq!(get(at, "/host").await.status.as_u16(), 404);
    assert_eq!(ask(at, "GET /host", &[("Host", "GATE.example:80")], "").await.status.as_u16(), 200);
}
