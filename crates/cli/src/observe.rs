//! The verb that follows a resource.

use std::io::Write;

use millpond_live::{Code, Error};
use tokio::time::{Duration, Instant, sleep_until};

use crate::arguments::Observe;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{answer, request};

/// Long enough to be for ever.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Prints each representation until the count, the time, Ctrl-C or the server ends it. Then the server is told.
///
/// # Errors
/// Whatever kept it from being done; a resource that cannot be observed; an answer of class 4 or 5.
pub async fn follow(ask: Observe, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let (flags, form) = (&ask.request, answer::Form::wanted(&ask.request));
    let end = Instant::now() + ask.period.unwrap_or(FOR_EVER);
    let client = request::client(flags, &ask.uri).await?;
    let asking = request::prepared(&client, Code::GET, &ask.uri, (None, 0), None, flags);
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
    let mut shown = 0_u64;
    loop {
        let next = tokio::select! {
            next = observation.next() => next,
            () = sleep_until(end) => break,
            () = interrupt.heard() => break,
        };
        let Some(answer) = next.transpose()? else {
            return Err(Failure::Failed(format!("{}: the server ended the observation", ask.uri)));
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
