//! Nodes on the way that hand packets on.

use serde::{Deserialize, Serialize};

use super::{Direction, Scenario, ScenarioError, network::check_name, unknown};

/// A node that hands packets on over one link, whose queue is its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// What tables call it.
    pub name: String,
    /// The link that it sends over.
    pub before: String,
    /// What becomes of a copy of a message that still waits in its queue.
    #[serde(default)]
    pub copies: Copies,
}

/// What a relay does with a copy of a message that still waits in its queue, the packet in service included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// It queues it like everything else.
    #[default]
    Passed,
    /// It drops it: the one that waits will do.
    Withheld,
}

impl Scenario {
    pub(super) fn check_relays(&self, origin: &str) -> Result<(), ScenarioError> {
        let links: Vec<&str> = self.links().into_iter().map(|(name, _)| name).collect();
        for (index, relay) in self.relays.iter().enumerate() {
            let refuse = |key: &str, problem: String| {
                Err(ScenarioError::at_key(origin, &format!("relays[{index}].{key}"), problem))
            };
            if self.mesh.is_some() {
                let problem = "in a [mesh] every node hands packets on: leave [[relays]] out".to_owned();
                return Err(ScenarioError::at_key(origin, "relays", problem));
            }
            if let Some(problem) = check_name(&relay.name) {
                return refuse("name", problem);
            }
            let others = &self.relays[..index];
            if others.iter().any(|other| other.name == relay.name) {
                return refuse("name", format!("another relay is called `{}` already", relay.name));
            }
            if !links.contains(&relay.before.as_str()) {
                return refuse("before", unknown("link", &relay.before, &links));
            }
            if let Some(other) = others.iter().find(|other| other.before == relay.before) {
                let (name, link) = (&other.name, &relay.before);
                return refuse("before", format!("`{name}` has the queue of `{link}` already: a link has one"));
            }
            let reorders = |(name, link): &(&str, &Direction)| *name == relay.before && link.aqm.reorders();
            if relay.copies == Copies::Withheld && self.links().iter().any(reorders) {
                let problem = format!("`{}` serves flows in turns, and only a line has an oldest packet", relay.before);
                return refuse("copies", format!("{problem}: write \"passed\", or aqm = \"codel\" there"));
            }
            if self.shared().contains(&relay.before) {
                let link = &relay.before;
                return refuse(
                    "before",
                    format!("sites share `{link}`, so that its queue is at no site: name another link"),
                );
            }
        }
        Ok(())
    }
}
