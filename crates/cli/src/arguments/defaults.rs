//! What holds where nothing is chosen, as help and manual name it: read from the library, so that neither can name another.

use millpond_live::{DEFAULT_CONTROLLER, DEFAULT_LEAST_WAIT};

/// The defaults of clients, servers and this program by name: `controller` and `least-wait`.
#[must_use]
pub fn defaults() -> [(&'static str, String); 2] {
    [("controller", DEFAULT_CONTROLLER.name().to_owned()), ("least-wait", least_wait())]
}

fn least_wait() -> String {
    format!("{} ms", DEFAULT_LEAST_WAIT.as_micros() / 1_000)
}

/// What the help of the program says of it.
pub(super) fn told() -> String {
    let (controller, least) = (DEFAULT_CONTROLLER.name(), least_wait());
    format!("Congestion control is {controller}, no wait below {least}, unless --controller names another.")
}

/// The help of `--controller`: of `what`, if it is not of all that is sent.
pub(super) fn controller_help(what: &str) -> String {
    format!(
        "Congestion control{what}, any preset: rfc7252, cocoa-03, fasor, … [default: {}]",
        DEFAULT_CONTROLLER.name()
    )
}
