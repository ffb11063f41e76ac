//! The groups that a server is to join, and by which of its sockets.

use std::net::{IpAddr, SocketAddr};

use crate::{
    Error,
    udp::{BoundSocket, Interface},
};

/// A group that is to be joined.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) group: IpAddr,
    pub(crate) interface: Option<Interface>,
    /// It was asked for by name: without it the server does not start.
    pub(crate) must_be: bool,
}

/// What became of the groups that were to be joined.
#[derive(Default)]
pub(crate) struct Joined {
    /// Where those can be asked that were.
    pub(crate) at: Vec<SocketAddr>,
    /// Those that could not be, with why.
    pub(crate) missed: Vec<(IpAddr, Error)>,
}

/// Joins groups, each by one socket, however many share its port: every one that had joined would get a copy of each
/// datagram.
///
/// # Errors
/// A group that was asked for by name and cannot be joined.
pub(crate) fn join_all(groups: &[Membership], sockets: &[&BoundSocket]) -> Result<Joined, Error> {
    for socket in sockets {
        socket.take_own_groups_only();
    }
    let Joined { at: mut joined, mut missed } = Joined::default();
    for Membership { group, interface, must_be } in groups {
        match join(*group, interface.as_ref(), sockets) {
            Ok(at) if joined.contains(&at) => {}
            Ok(at) => joined.push(at),
            Err(error) if *must_be => return Err(error),
            Err(error) => missed.push((*group, error)),
        }
    }
    Ok(Joined { at: joined, missed })
}

fn join(group: IpAddr, interface: Option<&Interface>, sockets: &[&BoundSocket]) -> Result<SocketAddr, Error> {
    let refused = |reason: String| Err(Error::Setting { name: "join", reason });
    if !group.is_multicast() {
        return refused(format!("{group} is no group; one begins with 224 to 239, or with ff"));
    }
    let takes =
        |socket: &&&BoundSocket| socket.local().is_ipv4() == group.is_ipv4() && socket.local().ip().is_unspecified();
    let Some(socket) = sockets.iter().find(takes) else {
        let all = if group.is_ipv4() { "0.0.0.0" } else { "::" };
        return refused(format!("{group} reaches only who listens on all addresses; listen on {all}"));
    };
    socket.join(group, interface)?;
    Ok(SocketAddr::new(group, socket.local().port()))
}
