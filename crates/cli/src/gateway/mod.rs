//! The verb that stands between clients and devices.

mod requests;

use std::io::Write;
use std::time::Duration;

use millpond_gateway::{Builder, Config, Gateway};

use crate::arguments;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signalled, no_signals};
use crate::log::{self, Log};
use crate::{oscore, systemd};

/// How long a gateway that ends waits for its log to be read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Stands there until Ctrl-C or a request to terminate.
///
/// # Errors
/// A file that cannot be used, an address that cannot be bound.
pub async fn gateway(flags: arguments::Gateway, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let config = read(&flags)?;
    if flags.check {
        oscore::check(&flags.oscore)?;
        Gateway::builder(config).check().await?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}: can be used", flags.file.display())?;
        return Ok(out.flush()?);
    }
    let log = Log::to_stderr();
    let mut termination = Signalled::to_terminate().map_err(no_signals)?;
    let mut hang_up = Signalled::to_reload().map_err(no_signals)?;
    let (datagrams, listeners) = systemd::passed()?;
    let builder = datagrams.into_iter().fold(Gateway::builder(config), Builder::bound_udp);
    let mut builder = listeners.into_iter().fold(builder, Builder::bound_tcp);
    if !flags.oscore.is_empty() {
        builder = builder.oscore(oscore::of_gateway(&flags.oscore)?);
    }
    if !flags.quiet {
        let (log, format) = (log.clone(), flags.log);
        builder = builder.on_access(move |access| log.line(&requests::line(log::time_of_day(), access, format)));
    }
    let mut gateway = builder.start().await?;
    announce(&gateway)?;
    systemd::tell(systemd::State::Ready);
    let ended = loop {
        tokio::select! {
            // Both are the ordinary end.
            () = interrupt.heard() => break Ok(()),
            () = termination.heard() => break Ok(()),
            () = hang_up.heard() => reload(&gateway, &flags, &log).await?,
            // It cannot go on.
            ended = gateway.wait() => break ended,
        }
    };
    systemd::tell(systemd::State::Stopping);
    // What was asked is answered still, unless told again.
    tokio::select! {
        () = gateway.shutdown() => {}
        () = interrupt.heard() => {}
    }
    log.finish(LAST_LINES);
    Ok(ended?)
}

fn read(flags: &arguments::Gateway) -> Result<Config, Failure> {
    Config::from_file(&flags.file).map_err(|error| Failure::Usage(error.to_string()))
}

/// Reads the file again. What cannot be used is told, and what there was stays.
async fn reload(gateway: &Gateway, flags: &arguments::Gateway, log: &Log) -> Result<(), Failure> {
    systemd::tell(systemd::State::Reloading);
    let read = match read(flags) {
        Ok(config) => gateway.reload(&config).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    systemd::tell(systemd::State::Ready);
    let mut out = std::io::stdout().lock();
    match read {
        Ok(()) => writeln!(out, "{} was read again", flags.file.display())?,
        Err(failure) => log.line(&format!("everything stays as it was: {}", failure.line().unwrap_or_default())),
    }
    Ok(out.flush()?)
}

fn announce(gateway: &Gateway) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for (transport, address) in gateway.local_addrs() {
        writeln!(out, "listening on {transport}://{address}")?;
    }
    for (scheme, address) in gateway.http_addrs() {
        writeln!(out, "listening on {scheme}://{address}")?;
    }
    if let Some(address) = gateway.metrics_addr() {
        writeln!(out, "metrics at http://{address}/metrics")?;
    }
    Ok(out.flush()?)
}
