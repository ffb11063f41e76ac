//! What the timeline does to links.

use std::collections::VecDeque;

use millpond_control::Instant;
use millpond_link::{InFlight, Loss, Rate};

use crate::scenario::{Event, Scenario};

/// What happens to one link.
pub(super) enum Change {
    Rate(Rate),
    Loss(Loss),
    /// It stands still until it was told as often to go on.
    Pause(InFlight),
    Resume,
}

/// When it happens to which link, told by its place.
pub(super) struct Moment {
    pub(super) at: Instant,
    pub(super) place: usize,
    pub(super) change: Change,
}

/// All changes of a scenario's links in the order of time.
pub(super) fn of(scenario: &Scenario) -> VecDeque<Moment> {
    let mut moments = Vec::new();
    for event in &scenario.timeline {
        let at = Instant::from_micros(event.at().0);
        for (place, (name, direction)) in scenario.links().into_iter().enumerate() {
            if event.link().is_some_and(|link| link != name) {
                continue;
            }
            let config = event.applied_to(direction).map(|changed| changed.config());
            match (event, config) {
                (Event::Rate { .. }, Some(config)) => {
                    moments.push(Moment { at, place, change: Change::Rate(config.rate) });
                }
                (Event::Loss { .. }, Some(config)) => {
                    moments.push(Moment { at, place, change: Change::Loss(config.loss) });
                }
                (Event::Outage { lasts, in_flight, .. }, _) => {
                    let over = Instant::from_micros(event.at().0.saturating_add(lasts.0));
                    moments.push(Moment { at, place, change: Change::Pause(in_flight.model()) });
                    moments.push(Moment { at: over, place, change: Change::Resume });
                }
                _ => {}
            }
        }
    }
    moments.sort_by_key(|moment| moment.at);
    moments.into()
}
