//! What holds where nothing is chosen, as help and manual name it: read from the library, so that neither can name another.

use millpond_live::{DEFAULT_CONTROLLER, DEFAULT_LEAST_WAIT, DEFAULT_SETTINGS};

/// The defaults of clients, servers and this program by name: `controller`, its settings, and `least-wait`.
#[must_use]
pub fn defaults() -> Vec<(&'static str, String)> {
    let mut found = vec![("controller", DEFAULT_CONTROLLER.name().to_owned())];
    found.extend(DEFAULT_SETTINGS.map(|(setting, value)| (setting.name(), value.to_string())));
    found.push(("least-wait", format!("{} ms", DEFAULT_LEAST_WAIT.as_micros() / 1_000)));
    found
}

/// The default controller in words: `calm (patience 4 s)`.
fn controller() -> String {
    let settings = DEFAULT_SETTINGS.map(|(setting, value)| format!("{} {value}", setting.name()));
    format!("{} ({})", DEFAULT_CONTROLLER.name(), settings.join(", "))
}

/// What the help of the program says of it.
pub(super) fn told() -> String {
    let least = DEFAULT_LEAST_WAIT.as_micros() / 1_000;
    format!("Congestion control is {}, no wait below {least} ms, unless --controller names another.", controller())
}

/// The help of `--controller`: of `what`, if it is not of all that is sent.
pub(super) fn controller_help(what: &str) -> String {
    format!("Congestion control{what}, any preset: rfc7252, cocoa-03, fasor, … [default: {}]", controller())
}
