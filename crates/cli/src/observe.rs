//! The verb that follows a resource.

use std::io::Write;

use millpond_live::{Code, Error, Observed};
use tokio::time::{Duration, Instant, sleep_until};

use crate::arguments::Observe;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{answer, request};

/// Long enough to be for ever.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Prints each representation until the count, the time from the first one on, or Ctrl-C ends it, and tells of each gap. Then the server is
/// told.
///
/// # Errors
/// Whatever kept it from being done; a resource that cannot be observed; what interrupted it, once it is given up.
pub async fn follow(ask: Observe, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let (flags, form) = (&ask.request, answer::Form::wanted(&ask.request));
    let client = request::client(flags, &ask.uri).await?;
    let asking = request::prepared(&client, Code::GET, &ask.uri, (None, 0), None, flags);
    let asking = asking.give_up_after(ask.give_up_after);
    let observation = tokio::select! {
        observation = asking.observe() => observation,
        () = interrupt.heard() => return Err(Failure::Stopped),
    };
    let mut observation = match observation {
        Err(Error::NotObserved { answer }) => {
            if flags.verbose {
                let _ = writeln!(anstream::stderr(), "{}", answer::headers(&answer, answer.payload().len()));
            }
            answer::print(&answer, form, true)?;
            return Err(Failure::Failed(format!("{} cannot be observed: this was its only representation", ask.uri)));
        }
        observation => observation?,
    };
    // From when it stands.
    let end = Instant::now() + ask.period.unwrap_or(FOR_EVER);
    let (mut shown, mut has_begun) = (0_u64, false);
    loop {
        let next = tokio::select! {
            biased;
            () = interrupt.heard() => break,
            // However short the time, what it begins with is shown.
            () = sleep_until(end), if has_begun => break,
            next = observation.event() => next,
        };
        has_begun = true;
        let answer = match next.transpose()? {
            Some(Observed::State(answer)) => answer,
            Some(Observed::Interrupted(why)) => {
                tell(&why.to_string());
                continue;
            }
            Some(_) => continue,
            None => return Err(Failure::Failed(format!("{}: the server ended the observation", ask.uri))),
        };
        if flags.verbose {
            let _ = writeln!(anstream::stderr(), "{}", answer::headers(&answer, answer.payload().len()));
        }
        answer::print(&answer, form, true)?;
        shown += 1;
        if ask.count.is_some_and(|count| shown >= count) {
            break;
        }
    }
    drop(observation);
    client.shutdown().await;
    Ok(())
}

/// A gap, in one line on standard error that steers no terminal.
fn tell(why: &str) {
    let line = Failure::Failed(format!("interrupted: {why}")).line().unwrap_or_default();
    // Its reader has gone; what is printed goes on.
    let _ = writeln!(anstream::stderr(), "millpond: {line}");
}
