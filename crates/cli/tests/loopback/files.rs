//! Files, read and written.

use std::fs;

use crate::program::{Said, Server, command, fresh_directory, millpond};

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

/// Starts so many of the same command at once, and tells what each said.
fn at_once(count: usize, arguments: impl Fn(usize) -> Vec<String>) -> Vec<Said> {
    let start = |number| {
        let arguments = arguments(number);
        command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).spawn().expect("the program is built")
    };
    let children: Vec<_> = (0..count).map(start).collect();
    children.into_iter().map(|child| child.wait_with_output().expect("it ends").into()).collect()
}

#[test]
fn every_one_of_many_posts_at_once_keeps_its_file() {
    let root = fresh_directory("posts");
    let server = Server::start(&["--write", "--quiet", root.to_str().expect("plain")]);
    let said = at_once(20, |number| vec!["post".into(), server.at("/"), format!("body {number}")]);
    assert!(said.iter().all(|said| said.code == Some(0)));
    let read = |number| fs::read_to_string(root.join(format!("{number}.bin"))).expect("it is there");
    let mut bodies: Vec<String> = (1..=20).map(read).collect();
    bodies.sort();
    let mut sent: Vec<String> = (0..20).map(|number| format!("body {number}")).collect();
    sent.sort();
    assert_eq!(bodies, sent);
}

#[test]
fn of_many_conditional_puts_at_once_one_succeeds() {
    let root = fresh_directory("puts");
    let server = Server::start(&["--write", "--quiet", root.to_str().expect("plain")]);
    let put = |condition: &str, body: &str| {
        let said = at_once(40, |number| {
            let words = ["put", "--option", condition, &server.at("/one.txt"), &format!("{body} {number}")];
            words.map(str::to_owned).to_vec()
        });
        let done = said.iter().filter(|said| said.code == Some(0)).count();
        let refused = said.iter().filter(|said| said.err.contains("4.12 Precondition Failed")).count();
        (done, refused)
    };
    assert_eq!(put("If-None-Match", "first"), (1, 39));
    let said = millpond(&["get", "--json", &server.at("/one.txt")]).json();
    let tag = said["options"].as_array().expect("options").iter().find(|option| option["name"] == "ETag");
    let tag = tag.expect("an ETag")["value"].as_str().expect("text").to_owned();
    // A body like the one that is there would have its tag, and leave the condition true.
    assert_eq!(put(&format!("If-Match={tag}"), "second"), (1, 39));
}
