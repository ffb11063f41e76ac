//! Files, read and written.

use std::fs;

use millpond_live::{Client, Code, RequestBuilder, number};

use crate::program::{Server, fresh_directory, millpond};

#[test]
fn files_are_served_with_format_and_tag_and_directories_as_links() {
    let root = fresh_directory("served");
    fs::create_dir(root.join("sub")).expect("made");
    fs::write(root.join("sub/a.json"), "{\"a\":1}").expect("written");
    let server = Server::start(&[root.to_str().expect("plain")]);
    let said = millpond(&["get", "--json", &server.at("/sub/a.json")]).json();
    assert_eq!((&said["content_format"], &said["payload"]["a"]), (&"application/json".into(), &1.into()), "{said}");
    let tag = said["options"].as_array().expect("options").iter().find(|option| option["name"] == "ETag");
    let tag = tag.expect("an ETag")["value"].as_str().expect("text").to_owned();
    let again = millpond(&["get", "--json", "--option", &format!("ETag={tag}"), &server.at("/sub/a.json")]).json();
    assert_eq!(again["code"], "2.03", "{again}");
    assert_eq!(millpond(&["get", &server.at("/sub/")]).well(), "</sub/a.json>;ct=50");
    assert_eq!(millpond(&["get", &server.at("/")]).well(), "</sub/>;ct=40");
    let said = millpond(&["get", "--accept", "cbor", &server.at("/sub/a.json")]);
    assert_eq!(said.code, Some(4));
    assert!(said.err.contains("4.06 Not Acceptable: this is application/json"), "{}", said.err);
}

#[test]
fn nothing_is_written_unless_the_server_was_told_to() {
    let root = fresh_directory("read-only");
    fs::write(root.join("a"), "a").expect("written");
    let server = Server::start(&[root.to_str().expect("plain")]);
    for (verb, path) in [("put", "/b"), ("post", "/"), ("delete", "/a"), ("put", "/a")] {
        let said = millpond(&[verb, &server.at(path)]);
        assert_eq!(said.code, Some(4), "{verb}: {}", said.err);
        assert!(
            said.err.contains("4.05 Method Not Allowed: this server only reads; start it with --write"),
            "{}",
            said.err
        );
    }
    assert_eq!(fs::read_dir(&root).expect("it is there").count(), 1);
}

#[test]
fn files_are_put_posted_and_deleted() {
    let root = fresh_directory("written");
    let server = Server::start(&["--write", root.to_str().expect("plain")]);
    let at = |path: &str| server.at(path);
    let code = |said: serde_json::Value| said["code"].as_str().expect("a code").to_owned();
    assert_eq!(code(millpond(&["put", "--json", &at("/a.txt"), "one"]).json()), "2.01");
    assert_eq!(code(millpond(&["put", "--json", &at("/a.txt"), "two"]).json()), "2.04");
    assert_eq!(fs::read_to_string(root.join("a.txt")).expect("it is there"), "two");
    let refused = millpond(&["put", "--option", "If-None-Match", &at("/a.txt"), "three"]);
    assert!(refused.err.contains("4.12 Precondition Failed"), "{}", refused.err);
    let posted = millpond(&["post", "--json", "-t", "json", &at("/"), "{}"]).json();
    assert_eq!(code(posted.clone()), "2.01");
    let place: Vec<_> = posted["options"].as_array().expect("options").iter().map(|option| &option["value"]).collect();
    assert_eq!(place, ["1.json"]);
    assert_eq!(fs::read_to_string(root.join("1.json")).expect("it is there"), "{}");
    assert_eq!(code(millpond(&["delete", "--json", &at("/1.json")]).json()), "2.02");
    assert!(!root.join("1.json").exists());
    let large = "0123456789abcdef".repeat(2_000);
    fs::write(root.join("large.txt"), &large).expect("written");
    let path = format!("@{}", root.join("large.txt").display());
    millpond(&["put", &at("/copy.txt"), &path]).well();
    assert!(fs::read_to_string(root.join("copy.txt")).expect("it is there") == large);
}

#[test]
fn only_files_leaves_out_the_resources_to_try_with() {
    let root = fresh_directory("only");
    fs::write(root.join("hello"), "my own").expect("written");
    let server = Server::start(&["--only-files", root.to_str().expect("plain")]);
    assert_eq!(millpond(&["get", &server.at("/hello")]).well(), "my own");
    assert_eq!(millpond(&["get", &server.at("/time")]).code, Some(4));
}

/// The codes of the answers to so many requests of one client, which are under way together.
fn at_once(count: usize, request: impl Fn(&Client, usize) -> RequestBuilder) -> Vec<Code> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::builder().nstart(64).build().await.expect("a client");
        let asked: Vec<_> = (0..count).map(|number| tokio::spawn(request(&client, number).send())).collect();
        let mut codes = Vec::new();
        for asked in asked {
            codes.push(asked.await.expect("no panic").expect("an answer").code());
        }
        codes
    })
}

#[test]
fn every_one_of_many_posts_at_once_keeps_its_file() {
    let root = fresh_directory("posts");
    // It takes so long to see what is there that many see it before the first of them makes its file.
    (0..3_000).for_each(|number| fs::write(root.join(format!("other-{number}")), "").expect("written"));
    let server = Server::start(&["--write", "--quiet", root.to_str().expect("plain")]);
    let post = |client: &Client, number| client.post(server.at("/")).payload(format!("body {number}"));
    assert_eq!(at_once(60, post), [Code::CREATED; 60]);
    let read = |number| fs::read_to_string(root.join(format!("{number}.bin"))).expect("it is there");
    let mut bodies: Vec<String> = (1..=60).map(read).collect();
    bodies.sort();
    let mut sent: Vec<String> = (0..60).map(|number| format!("body {number}")).collect();
    sent.sort();
    assert_eq!(bodies, sent);
}

#[test]
fn of_many_conditional_puts_at_once_one_succeeds() {
    let root = fresh_directory("puts");
    let server = Server::start(&["--write", "--quiet", root.to_str().expect("plain")]);
    let put = |number: u16, value: &[u8], body: &str| {
        let codes = at_once(60, |client, count| {
            client.put(server.at("/one.txt")).option(number, value.to_vec()).payload(format!("{body} {count}"))
        });
        let done = codes.iter().filter(|code| [Code::CREATED, Code::CHANGED].contains(code)).count();
        let refused = codes.iter().filter(|code| **code == Code::PRECONDITION_FAILED).count();
        (done, refused)
    };
    assert_eq!(put(number::IF_NONE_MATCH, b"", "first"), (1, 59));
    // Likewise with the tag of a long file.
    let long = "0123456789abcdef".repeat(6_000);
    for _ in 0..20 {
        fs::write(root.join("one.txt"), &long).expect("written");
        let said = millpond(&["get", "--json", &server.at("/one.txt")]).json();
        let tag = said["options"].as_array().expect("options").iter().find(|option| option["name"] == "ETag");
        let tag = tag.expect("an ETag")["value"].as_str().expect("text").trim_start_matches("0x").to_owned();
        let tag = u64::from_str_radix(&tag, 16).expect("hexadecimal digits").to_be_bytes();
        assert_eq!(put(number::IF_MATCH, &tag, "later"), (1, 59));
    }
}

/// The whole file was read for its entity tag whenever nobody was being given it.
#[cfg(target_os = "linux")]
#[test]
fn of_a_long_file_no_more_is_read_than_is_asked_for() {
    const BLOCK: usize = 1_024;
    let root = fresh_directory("asked-for");
    let long: Vec<u8> = (0..1_u32 << 20).map(|place| (place / 7) as u8).collect();
    fs::write(root.join("long"), &long).expect("written");
    let server = Server::start(&["--write", "--quiet", root.to_str().expect("plain")]);
    let address = server.at("").trim_start_matches("coap://").to_owned();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(address).expect("an address");
    let mut message_id = 0_u8;
    let mut ask = |method: Code, options: &[u8]| {
        message_id += 1;
        let before = server.bytes_read();
        socket.send(&[&[0x40, method.to_byte(), 0, message_id], options].concat()).expect("sent");
        let mut answer = vec![0; 2_048];
        loop {
            let length = socket.recv(&mut answer).expect("an answer");
            // What follows an empty acknowledgement is acknowledged, or comes again.
            if answer[1] == 0 {
                continue;
            }
            if answer[0] & 0x30 == 0 {
                socket.send(&[0x60, 0, answer[2], answer[3]]).expect("sent");
            }
            answer.truncate(length);
            break;
        }
        let read = usize::try_from(server.bytes_read() - before).expect("a few");
        assert!(read <= BLOCK + 512, "{read} bytes were read for {BLOCK}");
        answer
    };
    let first = ask(Code::GET, b"\xb4long");
    assert_eq!(first[4], 0x48, "an ETag of eight bytes");
    let tag = &first[5..13];
    assert!(first.ends_with(&long[..BLOCK]));
    // The last of it, one in between, and one behind the end.
    assert!(ask(Code::GET, b"\xb4long\xc2\x3f\xf6").ends_with(&long[1_023 * BLOCK..]));
    assert!(ask(Code::GET, b"\xb4long\xc2\x20\x06").ends_with(&long[512 * BLOCK..513 * BLOCK]));
    assert_eq!(ask(Code::GET, b"\xb4long\xc2\x40\x06")[1], Code::BAD_REQUEST.to_byte());
    // Who has it already, and who knows its tag.
    assert_eq!(ask(Code::GET, &[b"\x48", tag, b"\x74long"].concat())[1], Code::VALID.to_byte());
    assert_eq!(ask(Code::PUT, b"\x11x\xa4long")[1], Code::PRECONDITION_FAILED.to_byte());
    assert_eq!(ask(Code::DELETE, &[b"\x18", tag, b"\xa4long"].concat())[1], Code::DELETED.to_byte());
}
