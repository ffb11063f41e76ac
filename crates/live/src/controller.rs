//! Which congestion controller a peer gets.

use std::{fmt, str::FromStr, time::Duration};

use millpond_control::{
    PeerController, Preset, Setting, SettingValue, Span,
    least_wait::{LEAST_WAIT, not_below},
};

use crate::{Error, clock::span};

/// The preset of the controller that every peer gets unless another is chosen, [`ControllerChoice::default`]. docs/live.md
/// says why this one.
pub const DEFAULT_CONTROLLER: Preset = Preset::CALM;

/// A congestion controller: a preset, or a custom controller.
///
/// ```
/// use millpond_live::{ControllerChoice, Preset};
///
/// let by_name: ControllerChoice = "cocoa-03".parse()?;
/// assert_eq!(by_name.name(), Preset::COCOA_03.name());
/// let error = "cocoa-3".parse::<ControllerChoice>().unwrap_err();
/// assert!(error.to_string().contains("cocoa-03"));
/// # Ok::<(), millpond_live::UnknownController>(())
/// ```
#[derive(Clone)]
pub struct ControllerChoice {
    name: &'static str,
    controller: PeerController,
}

impl ControllerChoice {
    /// The preset's name, or `own`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The same with this parameter of its preset changed.
    ///
    /// ```
    /// use millpond_live::{ControllerChoice, Preset, control::{Setting, SettingValue}};
    ///
    /// let cautious = ControllerChoice::from(Preset::FASOR_TOKEN).with(Setting::Echo, SettingValue::Word("exact-only"))?;
    /// assert!(ControllerChoice::from(Preset::RFC7252).with(Setting::Echo, SettingValue::Word("exact-only")).is_err());
    /// # Ok::<(), millpond_live::Error>(())
    /// ```
    ///
    /// # Errors
    /// A parameter that the preset has not, or a value out of its range; a custom controller, which is set where it is
    /// made.
    pub fn with(mut self, setting: Setting, value: SettingValue<'_>) -> Result<Self, Error> {
        let name = self.name;
        let refused = |reason| Error::Setting { name: setting.name(), reason };
        let PeerController::Built(controller) = &mut self.controller else {
            return Err(refused("the controller is an object of its own; set it where it is made".into()));
        };
        controller.put(setting, value).map_err(|error| refused(format!("{error} in {name}")))?;
        controller.check().map_err(|error| refused(format!("{error} in {name}")))?;
        Ok(self)
    }

    /// The same with this first wait before anything is known of the path (ACK_TIMEOUT, RFC 7252 §4.8). A controller that
    /// learns nothing, as `rfc7252`, begins every request with it. ACK_RANDOM_FACTOR is the preset's.
    ///
    /// # Errors
    /// Less than a second, which no sender may begin with that does not know the path (RFC 7252 §4.8.1, RFC 8085
    /// §3.1.1); more than the controller ever waits; a custom controller, which has its own timers; `tfrc-non`, which
    /// governs messages that wait for no acknowledgement.
    pub fn with_ack_timeout(mut self, wait: Duration) -> Result<Self, Error> {
        /// RFC 7252 §4.8.1: less would violate RFC 5405, which RFC 8085 has replaced.
        const LEAST: Duration = Duration::from_secs(1);
        let refused = |reason| Error::Setting { name: "ack_timeout", reason };
        if wait < LEAST {
            let reason = format!("{wait:?} is less than 1s, too fast for a path that is not known (RFC 8085 §3.1.1)");
            return Err(refused(reason));
        }
        let PeerController::Built(controller) = &mut self.controller else {
            return Err(refused("the controller is an object of its own; set its first wait where it is made".into()));
        };
        let set = controller.put(Setting::AckTimeout, SettingValue::Time(span(wait)));
        set.map_err(|error| refused(error.to_string()))?;
        controller.check().map_err(|error| refused(format!("{error} in {}", self.name)))?;
        Ok(self)
    }

    /// One as a peer gets it about which nothing is known, with the [least wait](crate::ClientBuilder::least_wait) that
    /// clients and servers have by default. For simulations and tests of what runs here.
    #[must_use]
    pub fn controller(&self) -> PeerController {
        self.build(None)
    }

    /// The same with a least wait that was chosen. Custom controllers do as they please.
    pub(crate) fn build(&self, least: Option<Span>) -> PeerController {
        match (&self.controller, least) {
            (PeerController::Built(controller), None) if controller.get(Setting::LeastWait).is_some() => {
                (*controller).into()
            }
            (PeerController::Built(controller), _) => not_below(*controller, least.unwrap_or(LEAST_WAIT)),
            (own @ PeerController::Own(_), _) => own.clone(),
        }
    }
}

impl fmt::Debug for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Default for ControllerChoice {
    /// [`DEFAULT_CONTROLLER`].
    fn default() -> Self {
        DEFAULT_CONTROLLER.into()
    }
}

impl From<Preset> for ControllerChoice {
    fn from(preset: Preset) -> Self {
        Self { name: preset.name(), controller: preset.build().into() }
    }
}

impl From<PeerController> for ControllerChoice {
    fn from(controller: PeerController) -> Self {
        Self { name: "own", controller }
    }
}

impl FromStr for ControllerChoice {
    type Err = UnknownController;

    fn from_str(name: &str) -> Result<Self, UnknownController> {
        let unknown = || {
            let nearest = Preset::all().map(Preset::name).min_by_key(|known| distance(name, known));
            UnknownController { name: name.into(), nearest: nearest.unwrap_or_default() }
        };
        Preset::from_name(name).map(Self::from).ok_or_else(unknown)
    }
}

/// No controller has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no controller is called `{name}`; the nearest is `{nearest}`, and there are {}", all())]
pub struct UnknownController {
    name: String,
    nearest: &'static str,
}

fn all() -> String {
    Preset::all().map(Preset::name).collect::<Vec<_>>().join(", ")
}

/// How many letters must be put in, taken out or changed to make one word of the other (V. Levenshtein, 1966).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (before, letter) in one.chars().enumerate() {
        let mut diagonal = before;
        let mut left = before + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, there) in row.iter_mut().skip(1).zip(&other) {
            let changed = diagonal + usize::from(letter != *there);
            diagonal = *cell;
            left = changed.min(*cell + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use millpond_coap::{Config, Endpoint, Event, IdGenerator, Outgoing, Output, message::Code};
    use millpond_control::{ChanceSeed, Controller, Instant};

    use super::*;

    #[test]
    fn distances_are_the_published_ones() {
        for (one, other, apart) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)] {
            assert_eq!(distance(one, other), apart);
        }
    }

    #[test]
    fn a_parameter_is_refused_by_name() {
        let unknown = ControllerChoice::from(Preset::FASOR_TOKEN).with(Setting::Echo, SettingValue::Word("some"));
        assert!(unknown.unwrap_err().to_string().contains("echo"));
    }

    /// The one that was chosen for the client, else that of the preset, else 200 ms.
    #[test]
    fn no_wait_is_shorter_than_the_least() {
        let (chosen, own) = (Span::from_millis(30), Span::from_millis(50));
        let set = ControllerChoice::from(Preset::CALM).with(Setting::LeastWait, SettingValue::Time(own)).unwrap();
        for (choice, least, expected) in [
            (ControllerChoice::default(), None, LEAST_WAIT),
            (ControllerChoice::default(), Some(chosen), chosen),
            (set.clone(), None, own),
            (set, Some(chosen), chosen),
            (Preset::FASOR.into(), None, LEAST_WAIT),
            (Preset::FASOR.into(), Some(chosen), chosen),
        ] {
            assert_eq!(choice.build(least).shortest_wait(), expected, "{choice:?} {least:?}");
        }
        // Each peer has it in place, not behind a pointer.
        assert!(matches!(ControllerChoice::default().controller(), PeerController::Built(_)));
    }

    /// The timer of RFC 7252 takes 62 to 93 s (MAX_TRANSMIT_WAIT, §4.8.2). Here the second wait may be longer by a quarter, and with it
    /// the two after it, and the last one is 32 to 48 s by itself.
    #[test]
    fn a_host_that_is_gone_is_noticed_about_as_soon_as_with_the_timer_of_the_standard() {
        let (mut least, mut most) = (u64::MAX, 0);
        for seed in 0..4_096 {
            let (controller, chance) = (ControllerChoice::default().controller, ChanceSeed::new(seed));
            let mut client = Endpoint::new(Config::default(), controller, chance, 0, IdGenerator::counted()).unwrap();
            let mut now = Instant::ORIGIN;
            client.request(now, 0_u8, &Outgoing::confirmable(Code::GET, &[])).unwrap();
            loop {
                match client.poll(now) {
                    Output::Sleep(until, _) => now = until,
                    Output::Event(Event::Failed { .. }) => break,
                    Output::Transmit(_) | Output::Event(_) | Output::Idle => {}
                }
            }
            (least, most) = (least.min(now.as_micros()), most.max(now.as_micros()));
        }
        assert!(least >= 62_000_000 && most <= 103_500_000, "{least} to {most} µs");
    }

    #[test]
    fn a_mistyped_name_is_told_the_nearest() {
        let error = "fasr".parse::<ControllerChoice>().unwrap_err();
        assert_eq!(error.nearest, "fasor");
        assert!(error.to_string().contains("rfc7252"), "{error}");
    }
}
