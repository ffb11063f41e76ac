//! Servers that are started again and go on with whom they knew.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use millpond_coap::message::{Kind, Message, Writer};
use millpond_live::{
    AddressRule, Client, Code, Error, MessageId, Observable, Observation, Observed, Policy, Preset, Resource, Response,
    Rule, Server, ServerBuilder, Token, Who, number,
};
use tokio::{net::UdpSocket, time::Instant};

use crate::ANY;

/// A file that is not there yet, in a directory of its own.
fn file(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("millpond-state-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("state")
}

/// A server with an observable number.
fn serving(at: SocketAddr, file: &Path, number: u64) -> (ServerBuilder, Observable, Arc<AtomicU64>) {
    let (changed, number) = (Observable::confirmable(), Arc::new(AtomicU64::new(number)));
    let told = Arc::clone(&number);
    let resource = Resource::new().observable(&changed).get(move || {
        let text = told.load(Ordering::Relaxed).to_string();
        async move { Response::content(text).with_max_age(100_000) }
    });
    (Server::builder().bind(at).route("/n", resource).state_file(file), changed, number)
}

/// The power goes: nothing more is sent or written.
async fn cut(server: Server) {
    // What has changed is written within a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(server);
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// What comes next, which is a state and no interruption.
async fn next(observation: &mut Observation) -> String {
    match observation.event().await.unwrap().unwrap() {
        Observed::State(state) => state.text().unwrap().to_owned(),
        Observed::Interrupted(why) => panic!("{why:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn whoever_observed_before_a_power_cut_or_an_orderly_end_is_told_what_comes_after_it() {
    let file = file("goes-on");
    let (builder, _changed, _) = serving(ANY, &file, 1);
    let mut server = builder.start().await.unwrap();
    let at = server.local_addr();
    let client = Client::new().await.unwrap();
    let mut observation = client.get(format!("coap://{at}/n")).observe().await.unwrap();
    assert_eq!(next(&mut observation).await, "1");
    tokio::time::pause();
    for run in 1..6_u64 {
        if run % 2 == 0 {
            server.shutdown().await;
        } else {
            cut(server).await;
        }
        let (builder, changed, number) = serving(at, &file, run * 10);
        server = builder.start().await.unwrap();
        assert_eq!(server.stats().await.observers, 1, "before anybody asked");
        // It may have changed while nobody was there.
        assert_eq!(next(&mut observation).await, (run * 10).to_string());
        number.store(run * 10 + 1, Ordering::Relaxed);
        changed.notify();
        assert_eq!(next(&mut observation).await, (run * 10 + 1).to_string());
        assert_eq!(server.stats().await.requests, 0);
    }
    drop(observation);
    tokio::time::sleep(Duration::from_secs(3)).await;
    drop(server);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (builder, ..) = serving(at, &file, 0);
    assert_eq!(builder.start().await.unwrap().stats().await.observers, 0, "it has deregistered");
}

#[tokio::test]
async fn who_may_not_observe_any_more_does_not_after_a_restart() {
    let file = file("rights");
    let (builder, ..) = serving(ANY, &file, 1);
    let server = builder.start().await.unwrap();
    let at = server.local_addr();
    let client = Client::new().await.unwrap();
    let mut observation = client.get(format!("coap://{at}/n")).observe().await.unwrap();
    assert_eq!(next(&mut observation).await, "1");
    tokio::time::pause();
    cut(server).await;
    let nobody = Policy::new().rule(Rule::of(Who::network("192.0.2.0/24").unwrap()).allow("/**", [Code::GET]).unwrap());
    let server = serving(at, &file, 2).0.policy(nobody).start().await.unwrap();
    assert_eq!(server.stats().await.observers, 0);
    cut(server).await;
    // Nor where nothing can be observed.
    let plain = Resource::new().get(|| async { "2" });
    let server = Server::builder().bind(at).route("/n", plain).state_file(&file).start().await.unwrap();
    assert_eq!(server.stats().await.observers, 0);
}

/// When something came, how, and its number.
type Came = (Instant, Kind, Option<u32>);

/// An observer by hand, who acknowledges after so long, in invented time; when what came.
struct Observer {
    socket: Arc<UdpSocket>,
    came: Arc<Mutex<Vec<Came>>>,
    delay: Arc<Mutex<Option<Duration>>>,
}

impl Observer {
    async fn of(server: SocketAddr, delay: Duration) -> Self {
        let socket = Arc::new(UdpSocket::bind(ANY).await.unwrap());
        let mut registration = Vec::new();
        let token = Token::new(b"observer").unwrap();
        let mut writer = Writer::start(&mut registration, Kind::Confirmable, Code::GET, MessageId(1), token);
        writer.option(number::OBSERVE, b"").unwrap();
        writer.option(number::URI_PATH, b"n").unwrap();
        writer.finish().unwrap();
        socket.send_to(&registration, server).await.unwrap();
        let mut room = [0; 1_500];
        let (length, _) = socket.recv_from(&mut room).await.unwrap();
        assert_eq!(Message::parse(&room[..length]).unwrap().code, Code::CONTENT);
        let observer = Self { socket, came: Arc::default(), delay: Arc::new(Mutex::new(Some(delay))) };
        let (socket, came, delay) = (observer.socket.clone(), observer.came.clone(), observer.delay.clone());
        tokio::spawn(async move {
            while let Ok((length, from)) = socket.recv_from(&mut room).await {
                let message = Message::parse(&room[..length]).unwrap();
                let observe = message.option(number::OBSERVE).and_then(millpond_coap::message::Uint::read);
                came.lock().unwrap().push((Instant::now(), message.kind, observe));
                let ack = [0x60, 0, room[2], room[3]];
                let (socket, delay) = (socket.clone(), *delay.lock().unwrap());
                if let Some(delay) = delay {
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        let _ = socket.send_to(&ack, from).await;
                    });
                }
            }
        });
        observer
    }

    async fn came(&self, count: usize) -> Vec<Came> {
        loop {
            let came = self.came.lock().unwrap().clone();
            if came.len() >= count {
                return came;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// As of a client: a path of a quarter of a second, and then one of 10 s, which is no long way to who remembers.
#[tokio::test(start_paused = true)]
async fn the_first_notifications_after_a_restart_are_paced_by_what_was_measured_before() {
    let file = file("round-trips");
    let held = async |file: &Path, is_known: bool| {
        let calm =
            || millpond_live::ControllerChoice::from(Preset::CALM).with_ack_timeout(Duration::from_secs(20)).unwrap();
        let (builder, changed, _) = serving(ANY, file, 1);
        let server = builder.controller(calm()).start().await.unwrap();
        let at = server.local_addr();
        let observer = Observer::of(at, Duration::from_millis(250)).await;
        let mut count = 0;
        if is_known {
            changed.notify();
            count = observer.came(1).await.len();
        }
        tokio::time::sleep(Duration::from_secs(700)).await;
        cut(server).await;
        *observer.delay.lock().unwrap() = Some(Duration::from_secs(10));
        let (builder, changed, _) = serving(at, file, 2);
        let _server = builder.controller(calm()).start().await.unwrap();
        let first = observer.came(count + 1).await[count].0;
        changed.notify();
        let came = observer.came(count + 2).await;
        assert!(came.is_sorted_by_key(|(.., observe)| observe.unwrap()), "{came:?}");
        assert!(came.iter().all(|(_, kind, _)| *kind == Kind::Confirmable), "{came:?}");
        came[count + 1].0 - first - Duration::from_secs(10)
    };
    let unknown = held(&file, false).await;
    std::fs::remove_file(&file).unwrap();
    let known = held(&file, true).await;
    assert!(unknown < Duration::from_millis(100), "{unknown:?}");
    // A round trip, drawn from half to one and a half of it.
    assert!((4_900..=15_200).contains(&known.as_millis()), "{known:?}");
}

/// One that never acknowledges anything, at an address that may be forged, is notified once for its request.
#[tokio::test(start_paused = true)]
async fn restarts_multiply_nothing_for_who_asks_with_a_forged_address() {
    let file = file("forged");
    let start = async |at, number| {
        let (builder, changed, _) = serving(at, &file, number);
        (builder.verify_addresses(AddressRule::LargeAnswersEverywhere).start().await.unwrap(), changed)
    };
    let (server, changed) = start(ANY, 1).await;
    let at = server.local_addr();
    let observer = Observer::of(at, Duration::ZERO).await;
    *observer.delay.lock().unwrap() = None;
    changed.notify();
    let copies = observer.came(1).await.len();
    cut(server).await;
    for restart in 2..6 {
        let (server, _) = start(at, restart).await;
        assert_eq!(server.stats().await.observers, 0);
        cut(server).await;
    }
    assert_eq!(observer.came(copies).await.len(), copies);
    // Before that it is known.
    let (server, _) = start(at, 1).await;
    let other = Observer::of(at, Duration::ZERO).await;
    cut(server).await;
    let (server, _) = start(at, 2).await;
    assert_eq!(other.came(1).await.len(), 1);
    // And afterwards, as it acknowledges.
    cut(server).await;
    let (_server, _) = start(at, 3).await;
    assert_eq!(other.came(2).await.len(), 2);
}

async fn refused(builder: ServerBuilder) -> String {
    match builder.start().await.unwrap_err() {
        Error::Setting { name: "state_file", reason } => reason,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_refused_in_one_line_and_stays() {
    let file = file("malformed");
    let (builder, ..) = serving(ANY, &file, 1);
    let server = builder.start().await.unwrap();
    let client = Client::new().await.unwrap();
    let _observation = client.get(format!("coap://{}/n", server.local_addr())).observe().await.unwrap();
    let other = refused(serving(ANY, &file, 1).0).await;
    assert!(other.ends_with("another program has it open; give each a file of its own"), "{other}");
    server.shutdown().await;
    let several = refused(serving(ANY, &file, 1).0.workers(2)).await;
    assert_eq!(several, "knows observers of a single worker; use workers 1, or leave it out");

    let whole = std::fs::read(&file).unwrap();
    let damaged = file.with_extension("damaged");
    let mut all: Vec<Vec<u8>> = vec![b"{}".to_vec(), b"\x01\0\0".to_vec(), vec![7; 100_000]];
    all.extend((0..=64).map(|cut| whole[..whole.len() * cut / 64].to_vec()));
    all.extend((0..64).map(|place| {
        let mut bytes = whole.clone();
        let from = whole.len() * place / 64;
        bytes[from..(from + 100).min(whole.len())].fill(0xa5);
        bytes
    }));
    let (mut refusals, all_of_them) = (0, all.len());
    for bytes in all {
        std::fs::write(&damaged, &bytes).unwrap();
        match serving(ANY, &damaged, 1).0.start().await {
            // Nothing is there, or what is damaged is not looked at.
            Ok(server) => server.shutdown().await,
            Err(Error::Setting { name: "state_file", reason }) => {
                let begins = format!("{}: ", damaged.display());
                assert!(reason.starts_with(&begins) && !reason.contains('\n'), "{reason}");
                refusals += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refusals > all_of_them / 4, "{refusals}");
    let missing = refused(serving(ANY, Path::new("/no/such/folder/state"), 1).0).await;
    assert!(missing.ends_with("make the folder that it is to be in"), "{missing}");
}

#[cfg(feature = "oscore")]
mod protected {
    use millpond_coap::oscore::{Context, Parameters, Start};
    use millpond_live::OscoreContexts;

    use super::*;

    const CLIENT: Parameters<'static> =
        Parameters { sender_id: b"c", recipient_id: b"s", ..Parameters::of(b"0123456789abcdef") };

    fn stored(parameters: &Parameters<'_>, bound: &Arc<AtomicU64>) -> OscoreContexts {
        let contexts = OscoreContexts::new();
        let context = Context::derive(parameters, Start::Stored(bound.load(Ordering::Relaxed))).unwrap();
        let bound = Arc::clone(bound);
        let store = move |stored| {
            bound.store(stored, Ordering::Relaxed);
            Ok(())
        };
        contexts.add(context, store).unwrap();
        contexts
    }

    #[tokio::test]
    async fn under_a_context_that_goes_on_so_do_its_observers() {
        let (file, bounds) = (file("protected"), [Arc::default(), Arc::default()]);
        let start = async |at, number| {
            let (builder, changed, _) = serving(at, &file, number);
            (builder.oscore(stored(&CLIENT.mirrored(), &bounds[1])).start().await.unwrap(), changed)
        };
        let (mut server, _) = start(ANY, 1).await;
        let at = server.local_addr();
        let client = Client::builder().oscore(stored(&CLIENT, &bounds[0])).build().await.unwrap();
        let mut observation = client.get(format!("coap://{at}/n")).observe().await.unwrap();
        assert_eq!(next(&mut observation).await, "1");
        tokio::time::pause();
        for number in 2..5 {
            cut(server).await;
            let changed;
            (server, changed) = start(at, number).await;
            assert_eq!(next(&mut observation).await, number.to_string());
            changed.notify();
            assert_eq!(next(&mut observation).await, number.to_string());
            assert_eq!(server.stats().await.requests, 0);
        }
        // In the clear nothing of that goes on.
        cut(server).await;
        let server = serving(at, &file, 5).0.start().await.unwrap();
        assert_eq!(server.stats().await.observers, 0);
    }

    /// The keys are agreed upon by one Echo, and the address is shown by another.
    #[tokio::test]
    async fn keys_are_derived_anew_and_then_an_address_is_shown() {
        let contexts = |parameters: &Parameters<'_>, seed| {
            let contexts = OscoreContexts::new();
            contexts.add(Context::derive_anew(parameters, [seed; 32]).unwrap(), |_| Ok(())).unwrap();
            contexts
        };
        let costly = Resource::new().after_proof().get(|| async { "costly" });
        let server = Server::builder()
            .bind(ANY)
            .verify_addresses(AddressRule::LargeAnswersEverywhere)
            .oscore(contexts(&CLIENT.mirrored(), 1))
            .route("/costly", costly)
            .start()
            .await
            .unwrap();
        let client = Client::builder().oscore(contexts(&CLIENT, 2)).build().await.unwrap();
        let answer = client.get(format!("coap://{}/costly", server.local_addr())).await.unwrap();
        assert_eq!((answer.code(), answer.text()), (Code::CONTENT, Ok("costly")));
    }

    /// Who has a context, and who has none, where both may ask; and by rights that only the context gives.
    #[tokio::test]
    async fn who_observes_under_a_context_goes_on_with_its_rights() {
        let file = file("rights-of-contexts");
        let bounds = [Arc::default(), Arc::default()];
        let rights = |id| Policy::new().rule(Rule::of(Who::oscore(id).unwrap()).allow("/n", [Code::GET]).unwrap());
        let (builder, ..) = serving(ANY, &file, 1);
        let server = builder.oscore(stored(&CLIENT.mirrored(), &bounds[1]).pass_others()).start().await.unwrap();
        let uri = format!("coap://{}/n", server.local_addr());
        let plain = Client::new().await.unwrap();
        let protected = Client::builder().oscore(stored(&CLIENT, &bounds[0])).build().await.unwrap();
        let mut observations =
            [plain.get(&*uri).observe().await.unwrap(), protected.get(&*uri).observe().await.unwrap()];
        for observation in &mut observations {
            assert_eq!(next(observation).await, "1");
        }
        tokio::time::pause();
        let at = server.local_addr();
        let mut running = server;
        for (run, policy, observers) in [(1, Policy::new(), 2), (2, rights("6*"), 1), (3, rights("64"), 0)] {
            cut(running).await;
            let (builder, ..) = serving(at, &file, run);
            let builder = builder.policy(policy).oscore(stored(&CLIENT.mirrored(), &bounds[1]).pass_others());
            running = builder.start().await.unwrap();
            assert_eq!(running.stats().await.observers, observers, "{run}");
            if run == 1 {
                for observation in &mut observations {
                    assert_eq!(next(observation).await, "1");
                }
            }
        }
    }
}
