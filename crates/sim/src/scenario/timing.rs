//! Whether what a scenario says of times fits the run.

use super::{ArrivalProcess, Event, FlowGroup, Run, Scenario, ScenarioError, Workload};

/// Events have numbers of 16 bits, of which the last means none.
const MOST_EVENTS: u64 = 65_000;

impl Scenario {
    /// Whether everything that happens over time has its place in the run.
    pub(super) fn check_time(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: String| Err(ScenarioError::at_key(origin, key, problem));
        let end = self.run.end();
        if end.0 == 0 {
            return refuse("run.for", "0 s leaves no time for anything: write at least `1 s`".to_owned());
        }
        let until = self.run.until;
        // Scenarios written in full have the limit that nobody wrote: beside a longer run it says nothing.
        if until < end && until != Run::default().until {
            return refuse(
                "run.until",
                format!(
                    "{until} is before the end that `for` names ({end}), and the run lasts exactly that long: leave it out, \
                     or write at least \"{end}\""
                ),
            );
        }
        if self.run.warm_up >= end {
            let warm_up = self.run.warm_up;
            return refuse("run.warm_up", format!("{warm_up} is not before the end of the run ({end})"));
        }
        for (index, group) in self.clients.iter().enumerate() {
            if let Some(name) = &group.name
                && self.clients[..index].iter().any(|other| other.name.as_ref() == Some(name))
            {
                return refuse(&format!("clients[{index}].name"), format!("another group is called `{name}` already"));
            }
        }
        for (index, group) in self.clients.iter().enumerate() {
            if group.start_spread > end {
                let spread = group.start_spread;
                return refuse(
                    &format!("clients[{index}].start_spread"),
                    format!(
                        "{spread} is longer than the run ({end}), and who is to begin after it never does: write at most \
                         \"{end}\", or a longer run"
                    ),
                );
            }
        }
        for group in self.flow_groups() {
            if self.run.lasts.is_none() && group.clients.workload.all().iter().any(Workload::is_endless) {
                let problem =
                    "a workload without end in a run without end: write `for` in [run], or `requests` or `for` here";
                return refuse(&format!("{}.workload", group.key()), problem.to_owned());
            }
            self.check_phases(&group, origin)?;
        }
        let times = |event: &Event| event.occurrences(end);
        let events = self.timeline.iter().map(times).fold(0, u64::saturating_add);
        if events > MOST_EVENTS {
            return refuse(
                "timeline",
                format!("{events} events, counting those that come again; at most {MOST_EVENTS}"),
            );
        }
        for (index, event) in self.timeline.iter().enumerate() {
            let key = format!("timeline[{index}]");
            event.check(self, &key, origin)?;
            if index > 0 && event.at() < self.timeline[index - 1].at() {
                return refuse(
                    &format!("{key}.at"),
                    format!("{} is before the event above it: write them in order", event.at()),
                );
            }
        }
        Ok(())
    }

    /// Whether every rhythm has its first beat before it ends. Clients begin at the start or later, so one that has not
    /// for the first of them has it for none.
    fn check_phases(&self, group: &FlowGroup<'_>, origin: &str) -> Result<(), ScenarioError> {
        let workloads = group.clients.workload.all();
        for (index, workload) in workloads.iter().enumerate() {
            let ArrivalProcess::Periodic { phase: Some(phase), aligned, .. } = workload.arrivals else { continue };
            // A rhythm of the clock may have a beat sooner after a start than its phase is long.
            let own = workload.lasts.filter(|lasts| !aligned && *lasts <= self.run.end());
            let of_run = (self.run.end(), "the run", "a longer run");
            let (end, whose, fix) = own.map_or(of_run, |lasts| (lasts, "the workload's own `for`", "a longer `for`"));
            if phase >= end {
                let place = if workloads.len() == 1 { String::new() } else { format!("[{index}]") };
                return Err(ScenarioError::at_key(
                    origin,
                    &format!("{}.workload{place}.phase", group.key()),
                    format!(
                        "{phase} is not before the end of {whose} ({end}), so that no request arrives: write less than \
                         \"{end}\", or {fix}"
                    ),
                ));
            }
        }
        Ok(())
    }
}
