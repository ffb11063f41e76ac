//! The verb that loads a server.

mod json;
mod pace;
mod report;
mod run;
mod scale;
mod tally;

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use millpond_live::{Client, ClientSecurity, Code, ControllerChoice, Host, OscoreContexts, Uri, number};

use crate::arguments::{Load, Repeating};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::oscore;

pub use pace::Pace;
use scale::scale;
pub use tally::{Capped, Quantile, Tally, Told};

/// How long a load lasts if nothing is said.
const USUAL_DURATION: Duration = Duration::from_secs(10);

/// What is asked, by how many, how fast and how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is asked for, its name resolved already.
    pub uri: Uri,
    /// The name that was resolved, for Uri-Host.
    pub name: Option<String>,
    /// The method.
    pub method: Code,
    /// What each request carries.
    pub payload: Vec<u8>,
    /// Non-confirmable.
    pub non: bool,
    /// A deadline for each request.
    pub timeout: Option<Duration>,
    /// Clients.
    pub clients: usize,
    /// Requests of one client under way at a time.
    pub nstart: u16,
    /// Copies and their timer.
    pub repeating: Repeating,
    /// When requests start.
    pub pace: Pace,
    /// No request starts after this; `None`: only the count ends it.
    pub duration: Option<Duration>,
    /// No more requests than this, all clients together.
    pub count: Option<u64>,
    /// No more requests of one client than this.
    pub count_each: Option<u64>,
    /// Transmissions are told as they happen.
    pub trace: bool,
    /// What secure sessions are made with.
    pub security: ClientSecurity,
    /// What protects all messages of the one client. Loads in turn share its sequence numbers.
    pub contexts: Option<OscoreContexts>,
    /// Congestion control.
    pub controller: ControllerChoice,
}

/// Runs one load, or one for each controller that is compared, and prints what came of it.
///
/// # Errors
/// Whatever kept it from being done; being stopped, after what was measured until then is printed.
pub async fn load(flags: Load, arguments: &[OsString], interrupt: &mut Interrupt) -> Result<(), Failure> {
    #[allow(clippy::disallowed_methods, reason = "figures are told with their date, and nothing else depends on it")]
    let begun = SystemTime::now();
    let plans = plans(&flags).await?;
    let mut tallies = Vec::new();
    let mut stopped = false;
    // In turn, so that what changes on the machine meanwhile meets all of them.
    for plan in (0..flags.runs).flat_map(|_| plans.clone()) {
        let (tally, interrupted) = run::run(plan, flags.json || flags.trace, interrupt).await?;
        tallies.push(tally);
        if interrupted {
            stopped = true;
            break;
        }
    }
    report::print(&flags, begun, arguments, &tallies)?;
    match &tallies[..] {
        _ if stopped => Err(Failure::Stopped),
        tallies if tallies.iter().all(|tally| tally.answered() == 0) => {
            let why = tallies.iter().find_map(|tally| tally.first_error.clone());
            Err(Failure::Failed(why.unwrap_or_else(|| "no request was answered".to_owned())))
        }
        _ => Ok(()),
    }
}

async fn plans(flags: &Load) -> Result<Vec<Plan>, Failure> {
    let security = flags.credentials.read()?;
    let contexts = contexts(flags, &security).await?;
    let (uri, name) = resolved(&flags.uri).await?;
    let controllers = match (&flags.controller, &flags.compare[..]) {
        (_, [_, ..]) => flags.compare.clone(),
        (Some(controller), _) => vec![controller.clone()],
        (None, _) => vec![ControllerChoice::default()],
    };
    let plan = |controller| Plan {
        uri: uri.clone(),
        name: name.clone(),
        method: flags.method.code(),
        payload: vec![b'x'; flags.payload_size],
        non: flags.non,
        timeout: flags.timeout,
        clients: flags.clients,
        nstart: flags.nstart,
        repeating: flags.repeating.clone(),
        pace: flags.rate.map_or(Pace::Closed, |rate| Pace::Open { rate, ramp: flags.ramp.unwrap_or_default() }),
        duration: flags.duration.or((flags.count.or(flags.count_each).is_none()).then_some(USUAL_DURATION)),
        count: flags.count,
        count_each: flags.count_each,
        trace: flags.trace,
        security: security.clone(),
        contexts: contexts.clone(),
        controller,
    };
    Ok(controllers.into_iter().map(plan).collect())
}

/// What protects the load, if anything does.
async fn contexts(flags: &Load, security: &ClientSecurity) -> Result<Option<OscoreContexts>, Failure> {
    match flags {
        Load { oscore, .. } if oscore.is_empty() => Ok(None),
        Load { clients: 1, oscore, uri, .. } => {
            let plain = Client::builder().security(security.clone());
            Ok(Some(oscore::of_client(oscore, plain, uri).await?))
        }
        Load { clients, .. } => Err(Failure::Usage(format!(
            "--oscore with --clients {clients}: a context is for one client, and a server refuses what 64 later requests under it overtake; \
             leave --clients out"
        ))),
    }
}

/// The same URI with an address instead of a name, so that the name is looked up once and not for each request; but the
/// certificate of a secure server must have the name.
async fn resolved(uri: &Uri) -> Result<(Uri, Option<String>), Failure> {
    let Host::Name(name) = uri.host() else { return Ok((uri.clone(), None)) };
    if uri.transport().is_secure() {
        return Ok((uri.clone(), None));
    }
    let unknown = |reason: String| {
        Failure::from(millpond_live::Error::NameNotResolved { host: name.clone(), reason, source: None })
    };
    let mut found =
        tokio::net::lookup_host((name.as_str(), uri.port())).await.map_err(|error| unknown(error.to_string()))?;
    let address = found.next().ok_or_else(|| unknown("it has no address".to_owned()))?;
    let text = uri.to_string();
    let authority = text.find("://").map_or(0, |at| at + 3);
    let rest = text.get(authority..).and_then(|rest| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or("/");
    let with_address = format!("{}://{address}{rest}", uri.transport()).parse().map_err(millpond_live::Error::from)?;
    Ok((with_address, Some(name.clone())))
}

impl Plan {
    /// How many requests there are in the end; `None`: time ends them.
    fn whole(&self) -> Option<u64> {
        self.count.or(self.count_each.map(|each| each.saturating_mul(self.clients as u64)))
    }

    /// Uri-Host, if a name was resolved.
    fn host_option(&self) -> Option<(u16, Vec<u8>)> {
        self.name.as_ref().map(|name| (number::URI_HOST, name.clone().into_bytes()))
    }
}
