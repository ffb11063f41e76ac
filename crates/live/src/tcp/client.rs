//! What a client's connection is.

use std::sync::{Arc, atomic::AtomicBool};

use millpond_coap::{
    stream::{Connection, Options},
    transfer::{CoapStack, Config, Limits},
};
use tokio::sync::mpsc;

use super::{
    asking::{Asking, Whom},
    connection_task::{CommandSource, ConnectionTask},
    link::{Link, Stream},
};
use crate::{client::Command, clock::Clock, security::Other};

/// The longest message that is taken, told to the server: a body within it needs no blocks.
const LONGEST_MESSAGE: u32 = 1 << 20;
/// Requests that may be under way on a connection.
const MOST_REQUESTS: u32 = 65_536;

/// What a client is: whether the other side has to begin with its settings, and how long its tokens are.
pub(crate) fn options(needs_settings: bool, token_length: u16) -> Options {
    Options {
        max_message_size: LONGEST_MESSAGE,
        needs_settings,
        token_length,
        serves: false,
        requests: MOST_REQUESTS,
        ..Options::default()
    }
}

/// The task of a connection in which a client asks.
pub(super) fn task<S: Stream>(
    stream: S,
    whom: Whom,
    connection: Connection,
    orders: mpsc::UnboundedReceiver<Command>,
    is_released: Arc<AtomicBool>,
) -> ConnectionTask<S> {
    // The limits on bodies are those of each request.
    let limits = Limits { client_requests: MOST_REQUESTS, bytes: usize::MAX, ..Config::STREAM.limits };
    let stack = CoapStack::over_stream(connection, Config { limits, ..Config::STREAM });
    let clock = Clock::start();
    let asking = Asking::new(whom, clock, MOST_REQUESTS as usize, is_released);
    let link = Link::new(stream, stack, Other::Server);
    ConnectionTask::new(clock, link, asking, CommandSource::Begun(orders), None)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::oneshot,
    };

    use super::{super::asking::PATIENCE, *};
    use crate::{
        Error, Transport,
        client::{Outcome, Reply, RequestSpec, request_for_test},
    };

    /// A request over a stream whose other end does as `peer` says, in paused time: how it ends, and after how long.
    async fn ends(peer: impl AsyncFnOnce(tokio::io::DuplexStream)) -> (Result<Outcome, Error>, Duration) {
        let (near, far) = tokio::io::duplex(65_536);
        let (commands, orders) = mpsc::unbounded_channel();
        let (reply, answer) = oneshot::channel();
        let to = "192.0.2.1:5683".parse().unwrap();
        commands.send(Command::Request(Box::new(request_for_test(to, Reply::Once(reply))))).unwrap();
        let started = tokio::time::Instant::now();
        let outcome = async {
            let outcome = answer.await.unwrap();
            (outcome, started.elapsed())
        };
        let task = async {
            let whom = Whom { peer: to, transport: Transport::Tcp, identity: None };
            task(near, whom, Connection::new(options(true, 4)), orders, Arc::default()).run(Vec::new()).await;
            // Its end is told by the outcome.
            std::future::pending().await
        };
        tokio::select! {
            () = task => panic!("it waits for ever"),
            () = peer(far) => panic!("the peer goes on"),
            outcome = outcome => outcome,
        }
    }

    /// Reads, and answers pings if it is alive.
    async fn silent(mut stream: tokio::io::DuplexStream, is_alive: bool) {
        stream.write_all(&[0, 0xe1]).await.unwrap();
        let mut room = [0; 4_096];
        loop {
            let count = stream.read(&mut room).await.unwrap();
            // A ping has a token of four bytes here: its answer has the same.
            if let Some(at) = room[..count].iter().position(|byte| *byte == 0xe2).filter(|_| is_alive) {
                let length = usize::from(room[at - 1] & 15);
                let mut pong = room[at - 1..=at + length].to_vec();
                pong[1] = 0xe3;
                stream.write_all(&pong).await.unwrap();
            }
        }
    }

    /// A server that sends no settings, and keeps the connection open.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_no_settings_is_told_so_and_soon() {
        let (outcome, after) = ends(async |mut stream| {
            while stream.read_u8().await.is_ok() {}
            std::future::pending().await
        })
        .await;
        assert!(matches!(outcome, Err(Error::NoSettings { .. })), "{outcome:?}");
        assert_eq!(after, super::super::asking::SETTINGS_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_half_open_is_noticed() {
        let (outcome, after) = ends(async |stream| silent(stream, false).await).await;
        assert!(
            matches!(&outcome, Err(Error::ConnectionLost { reason, .. }) if reason.contains("ping")),
            "{outcome:?}"
        );
        assert_eq!(after.as_secs(), 40);
    }

    /// What is asked over a connection whose server has released it, and wants no other one for so many seconds.
    async fn after_a_release(hold_off: u8) -> (Error, Duration) {
        let (near, mut far) = tokio::io::duplex(65_536);
        let (commands, orders) = mpsc::unbounded_channel();
        let is_released = Arc::<AtomicBool>::default();
        let to = "192.0.2.1:5683".parse().unwrap();
        let whom = Whom { peer: to, transport: Transport::Tcp, identity: None };
        let connection = Connection::new(options(true, 4));
        let task = task(near, whom, connection, orders, Arc::clone(&is_released)).run(Vec::new());
        let outcome = async {
            // It is answered by nobody, and keeps the connection open.
            let (first, _waits) = oneshot::channel();
            let first = RequestSpec { number: 2, ..request_for_test(to, Reply::Once(first)) };
            commands.send(Command::Request(Box::new(first))).unwrap();
            while far.read_u8().await.unwrap() != u8::from(millpond_coap::message::Code::GET) {}
            far.write_all(&[0, 0xe1, 0x20, 0xe4, 0x41, hold_off]).await.unwrap();
            while !is_released.load(std::sync::atomic::Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            let (reply, answer) = oneshot::channel();
            commands.send(Command::Request(Box::new(request_for_test(to, Reply::Once(reply))))).unwrap();
            answer.await.unwrap().unwrap_err()
        };
        tokio::select! {
            _ = task => panic!("it ends with a request under way"),
            error = outcome => {
                let hold_off = error.unsent().expect("nothing of it was sent").hold_off;
                (error, hold_off)
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_after_a_release_is_known_not_to_have_left_and_when_it_may() {
        let (error, hold_off) = after_a_release(0).await;
        assert!(error.to_string().contains("it was released; ask again") && hold_off.is_zero(), "{error}");
        let (error, hold_off) = after_a_release(30).await;
        assert!(error.to_string().contains("wants no other one for 30 s") && hold_off.as_secs() == 30, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_there_and_never_answers_is_given_up() {
        let (outcome, after) = ends(async |stream| silent(stream, true).await).await;
        assert!(matches!(outcome, Err(Error::NoResponse { .. })), "{outcome:?}");
        assert_eq!(after.as_secs(), PATIENCE.as_secs());
    }
}
