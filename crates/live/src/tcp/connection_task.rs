//! The task that owns a connection: one in which a client asks, or in which a server is asked and may ask by itself.

use std::{future::pending, pin::pin};

use millpond_coap::Event as Trace;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

#[cfg(feature = "server")]
use super::accepted::Registration;
use super::{
    asking::{Asking, refuse_rest},
    link::{Link, LinkEvent, Stream},
    serving::Serving,
};
use crate::{Error, client::Command, clock::Clock};

/// What is asked in a connection.
#[derive(Debug)]
pub(super) enum CommandSource {
    /// Of one that a peer began, by who found it.
    #[cfg(feature = "server")]
    Accepted(Registration, Option<mpsc::UnboundedReceiver<Command>>),
    /// Of one that was begun here, by who wanted it.
    Begun(mpsc::UnboundedReceiver<Command>),
}

impl CommandSource {
    /// The next one; none if nobody can ask any more.
    async fn recv(&mut self) -> Option<Command> {
        match self {
            Self::Begun(orders) => orders.recv().await,
            #[cfg(feature = "server")]
            Self::Accepted(registration, orders) => loop {
                if let Some(orders) = orders {
                    return orders.recv().await;
                }
                *orders = registration.requested().await;
            },
        }
    }

    /// Ends those that were not taken, and the place of the connection.
    pub(super) async fn refuse(self, why: &Error) {
        let orders = match self {
            Self::Begun(orders) => Some(orders),
            #[cfg(feature = "server")]
            Self::Accepted(registration, orders) => orders.or_else(|| registration.take()),
        };
        if let Some(orders) = orders {
            refuse_rest(orders, why).await;
        }
    }

    /// Whether this side began the connection.
    pub(super) const fn is_ours(&self) -> bool {
        matches!(self, Self::Begun(_))
    }
}

/// Owns a connection, from its settings to its end.
pub(super) struct ConnectionTask<S> {
    clock: Clock,
    link: Link<S>,
    asking: Asking,
    orders: CommandSource,
    /// Who answers what is asked in it.
    serving: Option<Box<Serving>>,
    /// This side ends it, whether the peer reads why or not.
    is_over: bool,
    /// Why this side ends it.
    ended_for: Option<&'static str>,
    /// Nobody asks in it any more; told to who waits for that, once it has ended.
    last: Option<Option<oneshot::Sender<()>>>,
}

/// How a connection is to end.
#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "a server says so"))]
pub(super) enum Ending {
    /// What was asked is answered still.
    Release,
    /// At once, and why.
    Abort(&'static str),
}

/// What is left of a connection.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// It was lost while somebody could still ask in it.
    pub(super) is_lost: bool,
    /// Why its secure session did not come about, or broke.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "a server tells it"))]
    pub(super) insecure: Option<String>,
    /// Handlers that go on.
    pub(super) unheard: JoinSet<()>,
}

impl Ended {
    /// Its secure session never came about.
    #[cfg(feature = "server")]
    pub(super) fn insecure(why: String) -> Self {
        Self { insecure: Some(why), ..Self::default() }
    }
}

impl<S: Stream> ConnectionTask<S> {
    pub(super) const fn new(
        clock: Clock,
        link: Link<S>,
        asking: Asking,
        orders: CommandSource,
        serving: Option<Box<Serving>>,
    ) -> Self {
        Self { clock, link, asking, orders, serving, is_over: false, ended_for: None, last: None }
    }

    /// Carries out what was ordered while the connection was made, and then what comes, until it ends or nobody wants it.
    pub(super) async fn run(mut self, early: Vec<Command>) -> Ended {
        let clock = self.clock;
        // Made once: to register a timer for each message would cost more than the message.
        let mut sleep = pin!(tokio::time::sleep_until(Instant::now()));
        self.drain();
        for order in early {
            self.command(Some(order));
            self.drain();
        }
        while self.link.closing.is_none() && !self.is_over {
            let next = self.link.next.map(|next| clock.at(next));
            let due = self.serving.as_ref().and_then(|serving| serving.due());
            let at = [next, due, self.asking.due(&self.link)].into_iter().flatten().min();
            // One that ends too soon does no harm, and the next one is right.
            if let Some(at) = at.filter(|at| sleep.is_elapsed() || *at < sleep.deadline()) {
                sleep.as_mut().reset(at);
            }
            let served = async {
                match &mut self.serving {
                    Some(serving) => serving.next(clock).await,
                    None => pending().await,
                }
            };
            let heard_before = self.link.heard;
            tokio::select! {
                () = self.link.turn(|| clock.now()) => {}
                order = self.orders.recv(), if self.last.is_none() => self.command(order),
                () = &mut sleep, if at.is_some() => self.asking.doubt(&mut self.link),
                ending = served => self.end_as(ending),
            }
            self.check_up(self.link.heard != heard_before);
            self.drain();
            if self.link.write_at_once().await {
                // What waited for that.
                self.drain();
            }
        }
        self.close().await
    }

    /// Somebody asks in it, or nobody will any more.
    fn command(&mut self, order: Option<Command>) {
        match order {
            // Its peer began it, and may have something to ask.
            Some(Command::Shutdown(_)) if !self.orders.is_ours() => self.asking.cancel_all(&mut self.link),
            Some(Command::Shutdown(_)) | None => {
                self.asking.cancel_all(&mut self.link);
                self.last = Some(if let Some(Command::Shutdown(reply)) = order { Some(reply) } else { None });
                self.release();
            }
            Some(order) => {
                if let Some(serving) = &mut self.serving
                    && matches!(order, Command::Request(_))
                {
                    serving.asks();
                }
                self.asking.command(&mut self.link, order);
            }
        }
    }

    /// Who answers wants the connection to end, or not.
    fn end_as(&mut self, ending: Option<Ending>) {
        match ending {
            Some(Ending::Release) => self.release(),
            Some(Ending::Abort(reason)) => self.end(reason),
            None => {}
        }
    }

    /// Its end is wanted. Where requests are answered, what was asked is answered still.
    fn release(&mut self) {
        let now = self.clock.now();
        match &mut self.serving {
            Some(serving) if serving.is_closing() => return,
            Some(serving) => {
                self.asking.close();
                serving.release();
                self.drain();
            }
            None => self.is_over = true,
        }
        // A connection that is ending anyway needs no release.
        let _ = self.link.stack.release(now, None, None);
        if self.serving.is_some() {
            // Not everybody closes then (RFC 8323 §5.5). What was asked before the release was read has come when the
            // ping behind it is answered.
            let _ = self.link.stack.ping(now, false);
        }
    }

    /// This side ends it, and why.
    fn end(&mut self, reason: &'static str) {
        self.link.stack.abort(reason);
        (self.is_over, self.ended_for) = (true, Some(reason));
    }

    /// Ends what has been waited for too long, and the connection itself if it is silent for too long, or holds too much.
    fn check_up(&mut self, has_come: bool) {
        let Self { clock, link, asking, serving: Some(serving), .. } = self else { return };
        if serving.is_out_of_patience() {
            asking.cancel_all(link);
        }
        if let Some(reason) = serving.check_up(clock.now(), has_come, !asking.is_idle(), link) {
            self.end(reason);
        }
    }

    /// Drains the stack, and gives it what waits for that, until both have nothing to say or the stream is full.
    fn drain(&mut self) {
        let now = self.clock.now();
        let Self { link, asking, serving, .. } = self;
        let mut is_silent = false;
        loop {
            if let Some(serving) = serving {
                serving.act(now, &mut link.stack);
            }
            let heard_at = link.heard;
            let incoming = link.drain(now, |event| {
                let event = asking.heard(event, heard_at)?;
                if matches!(event, LinkEvent::Trace(Trace::PongMissing)) {
                    is_silent |= asking.is_gone || serving.as_ref().is_some_and(|serving| serving.awaits_pong());
                }
                serving.as_mut()?.hear(event)
            });
            asking.settle(link);
            match (incoming, serving.as_mut()) {
                (Some(incoming), Some(serving)) => serving.dispatch(now, incoming, &link.stack),
                _ if std::mem::take(&mut is_silent) => {
                    link.stack.abort("no pong came");
                    (self.is_over, self.ended_for) = (true, Some("nothing came any more, not even to a ping"));
                }
                _ if asking.launch(link) => {}
                _ => break,
            }
        }
        if let Some(serving) = serving {
            serving.count(asking.stats.sent);
            self.is_over |= serving.knows_the_end() && link.stack.is_quiet() && link.is_written();
        }
    }

    /// Writes what waits, and closes. Nobody waits for its handlers; those of requests that want no response are given back.
    async fn close(self) -> Ended {
        let Self { mut link, mut asking, orders, serving, ended_for, last, .. } = self;
        let insecure = link.broken.as_ref().map(|why| why.reason.clone());
        let is_wanted = last.is_none() && !serving.as_ref().is_some_and(|serving| serving.is_closing());
        let lost = match ended_for {
            Some(reason) => Error::connection_lost(asking.peer(), reason),
            None if is_wanted => asking.lost(&mut link),
            None => Error::Closed,
        };
        asking.end(&link, &lost);
        orders.refuse(&asking.unsent(&lost)).await;
        let unheard = match serving {
            Some(serving) => serving.close(link).await,
            None => {
                link.close().await;
                JoinSet::new()
            }
        };
        // Who waited for the last request to end learns it now.
        drop(last);
        Ended { is_lost: is_wanted, insecure, unheard }
    }
}
