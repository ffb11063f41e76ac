//! Marks in place of drops (ECN, RFC 3168): who marks, and who reacts.

use millpond_control::Controller;

use super::{Clients, ControllerChoice, Scenario, ScenarioError};

/// What to do about a controller that would let its answers be marked and send on as before.
pub(crate) const REACTS_NOT: &str = "does not react to marks, as RFC 3168 §6.1.2 asks of a sender: name one that does, such as \
                                     `calm`, or leave this key out";

impl Clients {
    /// Why nobody would be told of a mark, or why it would change nothing.
    fn marks_problem(&self) -> Option<String> {
        Some(match &self.controller {
            _ if !self.transport.is_udp() => "TCP here does not react to marks: leave this key out".to_owned(),
            _ if !self.transfer.is_whole() => {
                "a transfer in blocks or bursts is told of no marks: leave this key out".to_owned()
            }
            _ if !self.confirmable => {
                "marks are told with answers to confirmable requests: leave this key out, or `confirmable`".to_owned()
            }
            _ if self.via.is_some() => {
                "a proxy asks the server, and is told of no marks: leave this key out".to_owned()
            }
            Some(ControllerChoice::Built(choice)) if !choice.build().wishes().ecn => {
                format!("`{}` {REACTS_NOT}", choice.preset().name())
            }
            _ => return None,
        })
    }
}

impl Scenario {
    /// Whether somebody reacts to every mark.
    pub(super) fn check_marks(&self, origin: &str) -> Result<(), ScenarioError> {
        for (index, group) in self.clients.iter().enumerate().filter(|(_, group)| group.ecn) {
            let refuse = |problem| Err(ScenarioError::at_key(origin, &format!("clients[{index}].ecn"), problem));
            if self.mesh.is_some() {
                return refuse("no queue of a [mesh] marks: leave this key out".to_owned());
            }
            if let Some(problem) = group.marks_problem() {
                return refuse(problem);
            }
        }
        for (place, (name, _)) in self.links().iter().enumerate().filter(|(_, (_, link))| link.aqm.marks()) {
            let answers_cross = |&group: &usize| self.clients[group].ecn && self.route(group)[1].contains(&place);
            let parts = if self.path.is_some() { "path" } else { "network.links" };
            let refuse = |problem: &str| {
                Err(ScenarioError::at_key(origin, &format!("{parts}.{name}.aqm.ecn"), problem.to_owned()))
            };
            if !(0..self.clients.len()).any(|group| answers_cross(&group)) {
                return refuse(
                    "nobody whose answers wait there reacts to marks (RFC 7252 says nothing of them): write ecn = true in \
                     [[clients]], or leave it out",
                );
            }
            if self.relays.iter().any(|relay| relay.before == *name) {
                return refuse("a relay has this queue, and marks nothing: leave it out");
            }
        }
        Ok(())
    }
}
