//! A server that asks others in the place of its clients.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use millpond_live::{Client, Code, Interest, Observable, Request, Resource, Response, Server, number};

fn any() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test]
async fn a_proxy_gets_what_is_for_others_and_what_no_route_matches() {
    let told = |request: Request| async move {
        let numbers: Vec<u16> = request.options().iter().map(|(number, _)| number).collect();
        Response::content(format!("{} {numbers:?}", request.path_text()))
    };
    let own = Resource::new().get(|| async { "own" });
    let server = Server::builder().bind(any()).route("/own", own).proxy(Resource::new().any(told));
    let server = server.start().await.unwrap();
    let (client, at) = (Client::new().await.unwrap(), format!("coap://{}", server.local_addr()));
    let ask = |path: &str, options: &[(u16, &'static str)]| {
        let request = client.get(format!("{at}{path}"));
        let request = options.iter().fold(request, |request, (number, value)| request.option(*number, *value));
        async move {
            let answer = request.await.unwrap();
            (answer.code(), answer.text().unwrap().to_owned())
        }
    };
    assert_eq!(ask("/own", &[]).await.1, "own");
    assert_eq!(ask("/other/path?q", &[]).await.1, "/other/path [11, 11, 15]");
    assert_eq!(ask("/own", &[(number::PROXY_SCHEME, "coap")]).await.1, "/own [11, 39]");
    assert_eq!(ask("/", &[(number::PROXY_URI, "coap://h/x")]).await.1, "/ [35]");
    assert_eq!(ask("/x", &[(number::IF_MATCH, "t")]).await.1, "/x [1, 11]");
    // Critical: safe to forward, and not.
    assert_eq!(ask("/x", &[(0xfdfd, "")]).await.1, "/x [11, 65021]");
    assert_eq!(ask("/x", &[(0xfdff, "")]).await.0, Code::BAD_OPTION);
    assert_eq!(ask("/own", &[(0xfdfd, "")]).await.0, Code::BAD_OPTION, "it is asked itself");
    let links = ask("/.well-known/core", &[]).await.1;
    assert_eq!(links, "</own>", "the proxy has no path");
    let posted = client.post(format!("{at}/x")).await.unwrap();
    assert_eq!(posted.code(), Code::CONTENT, "each method");
}

/// What is told of who observes, and that those alone are notified who are meant.
#[tokio::test]
async fn interest_begins_and_ends_and_is_notified_by_itself() {
    struct Ends(Arc<AtomicUsize>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (interests, open, asked) = (
        Arc::<Mutex<Vec<(String, Interest)>>>::default(),
        Arc::<AtomicUsize>::default(),
        Arc::<AtomicUsize>::default(),
    );
    let observable = Observable::on_interest({
        let (interests, open) = (Arc::clone(&interests), Arc::clone(&open));
        move |request, interest| {
            open.fetch_add(1, Ordering::SeqCst);
            interests.lock().unwrap().push((request.path_text(), interest));
            Ends(Arc::clone(&open))
        }
    });
    let count = {
        let asked = Arc::clone(&asked);
        move || {
            let count = asked.fetch_add(1, Ordering::SeqCst);
            async move { count.to_string() }
        }
    };
    let server = Server::builder().bind(any()).route("/{id}", Resource::new().observable(&observable).get(count));
    let server = server.start().await.unwrap();
    let at = format!("coap://{}", server.local_addr());
    let mut all = Vec::new();
    for path in ["a", "a", "b"] {
        let client = Client::new().await.unwrap();
        let mut observation = client.get(format!("{at}/{path}")).observe().await.unwrap();
        observation.next().await.unwrap().unwrap();
        all.push(observation);
    }
    let begun: Vec<String> = interests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!((begun, open.load(Ordering::SeqCst)), (vec!["/a".into(), "/b".into()], 2), "those alike are one");
    let of_a = interests.lock().unwrap()[0].1.clone();
    of_a.notify();
    for observation in &mut all[..2] {
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("3"), "asked once for both");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 4, "nobody is asked for /b");
    all.truncate(1);
    while open.load(Ordering::SeqCst) > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // Nobody observes that any more: nothing happens.
    let of_b = interests.lock().unwrap()[1].1.clone();
    of_b.notify();
    of_a.notify();
    all[0].next().await.unwrap().unwrap();
    drop(all);
    while open.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
