//! The verb that serves: files, and resources to try clients with.

mod directory;
mod files;
pub(crate) mod requests;
mod rights;
mod tags;
mod trials;
mod unasked;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_live::{Code, Duplicates, Interface, Policy, Request, Rule, Server, ServerBuilder, Transport, Who};

pub use directory::{Directory, Stored};
pub use tags::FileBody;

use crate::arguments::{Place, Serve};
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signalled, no_signals};
use crate::log::{self, Log};
use crate::systemd::{self, State};
use crate::{oscore, request, trace};
use files::Files;

/// How long a server that ends waits for its log to be read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Serves until Ctrl-C or a request to terminate.
///
/// # Errors
/// A directory that cannot be opened, an address that cannot be bound.
pub async fn serve(flags: Serve, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let changing = trials::Changing::default();
    let log = Log::to_stderr();
    let mut termination = Signalled::to_terminate().map_err(no_signals)?;
    let mut builder = Server::builder().workers(flags.workers).longest_body(request::LONGEST_BODY);
    // Without anything to read again a hang-up ends the program, as that of a terminal should.
    let mut hang_up = match flags.credentials.is_given() || flags.credentials.rights.is_some() {
        true => Some(Signalled::to_reload().map_err(no_signals)?),
        false => None,
    };
    check_plain(&flags)?;
    let places = places(&flags);
    let credentials = &flags.credentials;
    let plain = match credentials.serves_plain() {
        true => addresses(&places, flags.port(), |place| place.port),
        false => Vec::new(),
    };
    for address in plain.iter().copied() {
        builder = builder.bind(address);
        if flags.tcp && !is_taken_by_ipv6(address, &plain) {
            builder = builder.bind_tcp(address);
        }
    }
    builder = builder.policy(policy(&flags)?);
    if credentials.is_given() {
        let security = credentials.read()?;
        let secure = addresses(&places, credentials.secure_port, |_| None);
        for address in secure.iter().copied() {
            if security.serves_dtls() {
                builder = builder.bind_dtls(address);
            }
            if credentials.cert.is_some() && !is_taken_by_ipv6(address, &secure) {
                builder = builder.bind_tls(address);
            }
        }
        builder = builder.security(security);
    }
    if !flags.oscore.is_empty() {
        builder = builder.oscore(oscore::of_server(&flags.oscore)?);
    }
    if let Some(file) = &flags.state {
        builder = builder.state_file(file);
    }
    let (datagrams, listeners) = systemd::passed()?;
    builder = datagrams.into_iter().fold(builder, ServerBuilder::bound_udp);
    builder = listeners.into_iter().fold(builder, ServerBuilder::bound_tcp);
    if let Some(controller) = &flags.controller {
        builder = builder.controller(controller.clone());
    }
    if flags.calm {
        builder = builder.duplicates(Duplicates::Calm);
    }
    builder = flags.trust.iter().fold(builder, |builder, network| builder.trust(*network));
    builder = in_groups(builder.q_block(flags.q_block), &flags);
    if let Some(bytes) = flags.max_datagram {
        builder = builder.longest_datagram(bytes);
    }
    if let Some(bytes) = flags.longest_token {
        builder = builder.longest_token(bytes);
    }
    if let Some(address) = flags.metrics {
        builder = builder.metrics(address).metrics_peers(flags.metrics_peers);
    }
    if flags.trace {
        let log = log.clone();
        builder = builder.trace(move |event| log.line(&trace::styled(event, true)));
    }
    if !flags.only_files {
        builder = trials::routes(builder, &changing);
    }
    let files = flags.directory.as_deref().map(|path| files_of(path, flags.write)).transpose()?;
    builder = match files {
        files if flags.unasked => unasked::taken(builder, files),
        Some(files) => builder.conditional_fallback(move |request: Request| Arc::clone(&files).answer(request)),
        None => builder,
    };
    if !flags.quiet {
        let (log, format) = (log.clone(), flags.log);
        builder = builder.access_log(move |access| log.line(&requests::line(log::time_of_day(), access, format)));
    }
    let mut server = builder.start().await?;
    announce(&server, &flags)?;
    systemd::tell(State::Ready);
    let steps = tokio::spawn(trials::step(changing));
    let ended = loop {
        tokio::select! {
            // Both are the ordinary end of a server.
            () = interrupt.heard() => break Ok(()),
            () = termination.heard() => break Ok(()),
            Some(()) = heard(&mut hang_up) => reload(&server, &flags, &log).await?,
            // It cannot go on.
            ended = server.wait() => break ended,
        }
    };
    systemd::tell(State::Stopping);
    steps.abort();
    // What was asked is answered still, unless told again.
    tokio::select! {
        () = server.shutdown() => {}
        () = interrupt.heard() => {}
    }
    log.finish(LAST_LINES);
    Ok(ended?)
}

/// Reads certificate, keys and rights again. What cannot be used is told, and what there was stays.
async fn reload(server: &Server, flags: &Serve, log: &Log) -> Result<(), Failure> {
    systemd::tell(State::Reloading);
    let read = async {
        let policy = policy(flags)?;
        if flags.credentials.is_given() {
            server.set_security(flags.credentials.read()?).await?;
        }
        server.set_policy(policy);
        Ok::<_, Failure>(())
    };
    let what = match (flags.credentials.is_given(), flags.credentials.rights.is_some()) {
        (true, true) => "certificate, keys and rights",
        (true, false) => "certificate and keys",
        (false, _) => "rights",
    };
    let read = read.await;
    systemd::tell(State::Ready);
    let mut out = std::io::stdout().lock();
    match read {
        Ok(()) => writeln!(out, "{what} were read again; they hold for new sessions and requests")?,
        Err(failure) => {
            let why = failure.line().unwrap_or_default();
            log.line(&format!("{what} stay as they were: {why}"));
        }
    }
    Ok(out.flush()?)
}

/// Who may do what. Where clients can prove who they are, those alone change anything that did, unless a file says more.
fn policy(flags: &Serve) -> Result<Policy, Failure> {
    if let Some(path) = &flags.credentials.rights {
        return rights::read(path);
    }
    if !flags.credentials.tells_clients_apart() {
        return Ok(Policy::new());
    }
    let everything = Rule::of(Who::identified()).allow("/**", [])?;
    ["0.0.0.0/0", "::/0"].into_iter().try_fold(Policy::new().rule(everything), |policy, network| {
        Ok(policy.rule(Rule::of(Who::network(network)?).allow("/**", [Code::GET, Code::FETCH])?))
    })
}

/// What is asked for in the clear is not dropped without a word.
fn check_plain(flags: &Serve) -> Result<(), Failure> {
    if flags.credentials.serves_plain() {
        return Ok(());
    }
    let what = if flags.tcp {
        "--tcp listens"
    } else if flags.is_in_groups() {
        "groups are asked"
    } else if flags.port.is_some() || flags.bind.iter().any(|place| place.port.is_some()) {
        "the port (--port, or behind an address of --bind) is one"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "{what} in the clear, and with a certificate or keys nothing is served so; add --also-plain, or leave it out \
         (--secure-port names the port for security)"
    )))
}

/// A signal that is listened to; else `None` at once.
async fn heard(signal: &mut Option<Signalled>) -> Option<()> {
    signal.as_mut()?.heard().await;
    Some(())
}

fn files_of(path: &Path, write: bool) -> Result<Arc<Files>, Failure> {
    let directory = Directory::open(path).map_err(|error| Failure::of_file(path.display(), &error))?;
    Ok(Arc::new(Files::of(directory, write)))
}

/// Member of the groups asked for.
fn in_groups(builder: ServerBuilder, flags: &Serve) -> ServerBuilder {
    let usual = flags.interface.as_deref().map(Interface::from);
    let mut builder = builder.leisure(flags.leisure);
    if flags.multicast {
        builder = builder.join_all_coap_nodes(usual.clone());
    }
    for group in &flags.join {
        builder = builder.join(group.address, group.interface.clone().or_else(|| usual.clone()));
    }
    builder
}

/// Where to listen: what was asked for, else this machine alone, else, to be reached by groups, everywhere.
fn places(flags: &Serve) -> Vec<Place> {
    let port = if flags.credentials.serves_plain() { flags.port() } else { flags.credentials.secure_port };
    let [ipv4, ipv6]: [IpAddr; 2] = match (flags.bind.is_empty(), flags.is_in_groups()) {
        (false, _) => return with_ipv4(&flags.bind, port),
        (true, false) => [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        (true, true) => [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
    };
    let mut places = vec![Place::at(ipv4)];
    let has_ipv6 = std::net::UdpSocket::bind(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0)).is_ok();
    // Port 0 would give each family another port.
    if has_ipv6 && port != 0 {
        places.insert(0, Place::at(ipv6));
    }
    places
}

/// All addresses of IPv6 are all addresses: those of IPv4 have a socket of their own. With port 0 that would have another port.
fn with_ipv4(bind: &[Place], usual: u16) -> Vec<Place> {
    let mut places = bind.to_vec();
    for place in bind.iter().filter(|place| place.address == Ipv6Addr::UNSPECIFIED) {
        let ipv4 = Place { address: Ipv4Addr::UNSPECIFIED.into(), ..*place };
        if place.port.unwrap_or(usual) != 0 && !places.contains(&ipv4) {
            places.push(ipv4);
        }
    }
    places
}

/// Whether a listener of TCP at all addresses of IPv6 takes the connections of this one, too: unlike sockets of UDP, from which
/// answers have to leave by the address that was asked, one is for both.
fn is_taken_by_ipv6(address: SocketAddr, all: &[SocketAddr]) -> bool {
    address.ip() == Ipv4Addr::UNSPECIFIED
        && all.contains(&SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port()))
}

/// Each place with its own port, if it has one, else with this one.
fn addresses(places: &[Place], port: u16, own: impl Fn(&Place) -> Option<u16>) -> Vec<SocketAddr> {
    places.iter().map(|place| SocketAddr::new(place.address, own(place).unwrap_or(port))).collect()
}

fn announce(server: &Server, flags: &Serve) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for (transport, address) in server.local_addrs() {
        writeln!(out, "listening on {transport}://{address}")?;
    }
    if flags.bind.is_empty() && !flags.is_in_groups() {
        writeln!(out, "for this machine alone; --bind ADDRESS lets others in")?;
    }
    for group in server.groups() {
        writeln!(out, "in the group coap://{group}")?;
    }
    for (group, error) in server.missed_groups() {
        let why = error.unnamed();
        writeln!(anstream::stderr().lock(), "WARNING: not in the group {group}: {why} (--interface, --bind)")?;
    }
    let serves = |wanted: Transport| server.local_addr_of(wanted).is_some();
    if serves(Transport::Tls) && !serves(Transport::Dtls) {
        writeln!(out, "no coaps: the certificate's key serves coaps+tcp alone; one of ECDSA serves both")?;
    }
    if !flags.credentials.serves_plain() {
        writeln!(out, "nothing in the clear; --also-plain serves that, too")?;
    }
    if let Some(address) = server.metrics_addr() {
        writeln!(out, "metrics at http://{address}/metrics")?;
    }
    if let Some(path) = &flags.directory {
        let how = if flags.write { "clients may change files" } else { "to be read" };
        writeln!(out, "files of {}, {how}", path.display())?;
        let is_open = |(_, address): &&(Transport, SocketAddr)| !address.ip().to_canonical().is_loopback();
        let is_guarded = flags.credentials.tells_clients_apart() || flags.credentials.rights.is_some();
        if let Some((_, address)) = server.local_addrs().iter().find(is_open).filter(|_| flags.write && !is_guarded) {
            writeln!(
                anstream::stderr().lock(),
                "WARNING: --write with {address}: anybody who reaches this address may change and delete the files of {}, \
                 without a password; leave out --bind or --write, or say who may (--rights, --psk-file, --client-ca)",
                path.display()
            )?;
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> Serve {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            serve: Serve,
        }
        clap::Parser::try_parse_from([&["serve"], arguments].concat()).map(|Alone { serve }| serve).expect("flags")
    }

    fn listens(arguments: &[&str]) -> Vec<String> {
        let flags = flags(arguments);
        let addresses = addresses(&places(&flags), flags.port(), |place| place.port);
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_server_listens_on_this_machine_alone_unless_it_is_told_otherwise() {
        assert_eq!(listens(&["--port", "0"]), ["127.0.0.1:0"]);
        assert!(listens(&[]).iter().all(|address| ["127.0.0.1:5683", "[::1]:5683"].contains(&address.as_str())));
        assert_eq!(listens(&["--bind", "0.0.0.0", "--bind", "192.0.2.1:7"]), ["0.0.0.0:5683", "192.0.2.1:7"]);
        assert_eq!(
            listens(&["--bind", "[2001:db8::1]:7", "--bind", "::", "--port", "9"]),
            ["[2001:db8::1]:7", "[::]:9", "0.0.0.0:9"]
        );
        assert_eq!(listens(&["--bind", "::", "--bind", "0.0.0.0"]), ["[::]:5683", "0.0.0.0:5683"]);
        assert_eq!(listens(&["--bind", "[::]:7"]), ["[::]:7", "0.0.0.0:7"]);
        assert_eq!(listens(&["--bind", "[::]:0"]), ["[::]:0"], "with port 0 the other family would have another port");
        assert_eq!(listens(&["--bind", "1234"]), ["127.0.0.1:1234"]);
        assert_eq!(
            listens(&["--bind", "::ffff:127.0.0.1", "--bind", "[::ffff:192.0.2.1]:7"]),
            ["127.0.0.1:5683", "192.0.2.1:7"]
        );
        assert_eq!(listens(&["--multicast", "--port", "0"]), ["0.0.0.0:0"], "who is in a group is to be reached");
    }
}
