//! In builds without a server nobody answers in a connection.

use std::convert::Infallible;

use millpond_coap::{stream::Connection, transfer::CoapStack};
use tokio::task::JoinSet;

use super::{
    connection_task::Ending,
    link::{Link, LinkEvent},
};
use crate::clock::Clock;

/// There is none.
pub(super) enum Serving {}

macro_rules! never {
    ($($name:ident$(<$stream:ident>)?($($argument:ty),*) -> $result:ty;)*) => {
        impl Serving {
            $(pub(super) const fn $name$(<$stream>)?(&self, $(_: $argument),*) -> $result {
                match *self {}
            })*
        }
    };
}

never! {
    due() -> Option<tokio::time::Instant>;
    next(Clock) -> std::future::Ready<Option<Ending>>;
    asks() -> ();
    is_closing() -> bool;
    release() -> ();
    is_out_of_patience() -> bool;
    check_up<S>(millpond_control::Instant, bool, bool, &mut Link<S>) -> Option<&'static str>;
    act(millpond_control::Instant, &mut CoapStack<Connection>) -> ();
    awaits_pong() -> bool;
    hear(LinkEvent<'_>) -> Option<Infallible>;
    dispatch(millpond_control::Instant, Infallible, &CoapStack<Connection>) -> ();
    count(u64) -> ();
    knows_the_end() -> bool;
    close<S>(Link<S>) -> std::future::Ready<JoinSet<()>>;
}
