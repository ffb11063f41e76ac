//! The verb that serves: files, and resources to try clients with.

mod directory;
mod files;
mod log;
mod trials;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use millpond_live::{Duplicates, Interface, Server, ServerBuilder, Transport};

pub use directory::{Directory, Stored};

use crate::arguments::Serve;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Termination, no_signals};
use crate::{request, trace};
use log::Log;

/// Serves until Ctrl-C or a request to terminate.
///
/// # Errors
/// A directory that cannot be opened, an address that cannot be bound.
pub async fn serve(flags: Serve, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let log = if flags.quiet { Log::quiet() } else { Log::to_standard_error() };
    let changing = trials::Changing::default();
    let mut termination = Termination::listen().map_err(no_signals)?;
    let mut builder = Server::builder().workers(flags.workers).longest_body(request::LONGEST_BODY);
    for address in addresses(&flags.bind, flags.port) {
        builder = builder.bind(address);
        if flags.tcp {
            builder = builder.bind_tcp(address);
        }
    }
    let credentials = &flags.credentials;
    if credentials.cert.is_some() || credentials.psk_file.is_some() {
        let security = credentials.read()?;
        for address in addresses(&flags.bind, credentials.secure_port) {
            if security.serves_dtls() {
                builder = builder.bind_dtls(address);
            }
            if credentials.cert.is_some() {
                builder = builder.bind_tls(address);
            }
        }
        builder = builder.security(security);
    }
    if let Some(controller) = &flags.controller {
        builder = builder.controller(controller.clone());
    }
    if flags.calm {
        builder = builder.duplicates(Duplicates::Calm);
    }
    builder = in_groups(builder, &flags);
    if let Some(address) = flags.metrics {
        builder = builder.metrics(address);
    }
    if flags.trace {
        builder = builder.trace(|event| trace::print(event, true));
    }
    if !flags.only_files {
        builder = trials::routes(builder, log, &changing);
    }
    if let Some(path) = &flags.directory {
        builder = with_files(builder, path, flags.write, &log)?;
    }
    let server = builder.start().await?;
    announce(&server, &flags)?;
    let steps = tokio::spawn(trials::step(changing));
    // Both are the ordinary end of a server.
    tokio::select! {
        () = interrupt.heard() => {}
        () = termination.heard() => {}
    }
    steps.abort();
    // What was asked is answered still, unless told again.
    tokio::select! {
        () = server.shutdown() => {}
        () = interrupt.heard() => {}
    }
    Ok(())
}

fn with_files(builder: ServerBuilder, path: &Path, write: bool, log: &Log) -> Result<ServerBuilder, Failure> {
    let directory = Directory::open(path).map_err(|error| Failure::of_file(path.display(), &error))?;
    let (directory, log) = (Arc::new(directory), *log);
    Ok(builder.fallback(move |request| {
        let (directory, log) = (Arc::clone(&directory), log);
        async move { log.told(&request, files::answer(directory, write, request.clone())).await }
    }))
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

/// Every address asked for, or all of IPv6 and of IPv4 where the machine has IPv6.
fn addresses(asked: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    if !asked.is_empty() {
        return asked.iter().map(|address| SocketAddr::new(*address, port)).collect();
    }
    let everywhere = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let has_ipv6 = std::net::UdpSocket::bind(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0)).is_ok();
    let mut all = vec![SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)];
    // Port 0 would give each family another port.
    if has_ipv6 && port != 0 {
        all.insert(0, everywhere);
    }
    all
}

fn announce(server: &Server, flags: &Serve) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for (transport, address) in server.local_addrs() {
        writeln!(out, "listening on {transport}://{address}")?;
    }
    for group in server.groups() {
        writeln!(out, "in the group coap://{group}")?;
    }
    let serves = |wanted: Transport| server.local_addrs().iter().any(|(transport, _)| *transport == wanted);
    if serves(Transport::Tls) && !serves(Transport::Dtls) {
        writeln!(out, "no coaps: the certificate's key serves coaps+tcp alone; one of ECDSA serves both")?;
    }
    if let Some(address) = server.metrics_addr() {
        writeln!(out, "metrics at http://{address}/metrics")?;
    }
    if let Some(path) = &flags.directory {
        let how = if flags.write { "clients may change files" } else { "to be read" };
        writeln!(out, "files of {}, {how}", path.display())?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_asked_for_or_all() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(addresses(&[loopback], 7), [SocketAddr::new(loopback, 7)]);
        assert_eq!(addresses(&[], 0), [SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)]);
        assert!(addresses(&[], 5683).contains(&SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 5683)));
    }
}
