//! How long responses are: of the server, of a resource, for a group, to a request.

use std::collections::BTreeMap;

use super::{Clients, MOST_BODY, Scenario, ScenarioError, Size, Step};

/// The segments of a path.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Whether two paths name the same resource.
fn is_same(one: &str, other: &str) -> bool {
    segments(one).eq(segments(other))
}

impl Clients {
    /// The path of a step of a script.
    fn path_of<'s>(&'s self, step: &'s Step) -> &'s str {
        step.path.as_deref().unwrap_or(&self.uri_path)
    }

    /// The paths that they ask for.
    fn asked(&self) -> impl Iterator<Item = &str> {
        let plain = self.workload.asks_plainly().then_some(&self.uri_path[..]);
        let requests = self.workload.steps().filter(|step| step.flights.is_none());
        plain.into_iter().chain(requests.map(|step| self.path_of(step)))
    }
}

impl Scenario {
    /// What clients of a group get for an answer where nothing else is said.
    pub(crate) fn usual_body(&self, group: &Clients) -> Size {
        group.response_payload.unwrap_or(self.server.payload)
    }

    /// What a resource answers them: what a request says, or their group, or the resource, or the server.
    fn body_of(&self, group: &Clients, path: &str) -> Size {
        let mut said = group.workload.steps().filter(|step| is_same(group.path_of(step), path));
        let of_request = said.find_map(|step| step.response_payload);
        let of_resource =
            || self.server.resources.iter().find(|(known, _)| is_same(known, path)).map(|(_, size)| *size);
        of_request.or(group.response_payload).or_else(of_resource).unwrap_or(self.server.payload)
    }

    /// The longest that clients of a group get for an answer.
    #[must_use]
    pub fn body(&self, group: &Clients) -> Size {
        let usual = self.usual_body(group);
        group.asked().map(|path| self.body_of(group, path)).max().unwrap_or(usual)
    }

    /// The resources that answer a group otherwise than as usual: the segments of each, and what it answers.
    pub(crate) fn own_bodies(&self, group: &Clients) -> Vec<(Vec<String>, Size)> {
        let mut own = BTreeMap::new();
        for path in group.asked() {
            let size = self.body_of(group, path);
            if size != self.usual_body(group) {
                own.insert(segments(path).map(str::to_owned).collect::<Vec<_>>(), size);
            }
        }
        own.into_iter().collect()
    }

    pub(super) fn check_responses(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: String, problem: String| Err(ScenarioError::at_key(origin, &key, problem));
        let large = |size: Size| format!("{size} is too large a body (at most {MOST_BODY})");
        if self.server.payload > MOST_BODY {
            return refuse("server.payload".to_owned(), large(self.server.payload));
        }
        for (path, &size) in &self.server.resources {
            let key = || format!("server.resources.{path}");
            if size > MOST_BODY {
                return refuse(key(), large(size));
            }
            if self.mesh.is_some() || !self.proxies.is_empty() {
                let problem = "in a [mesh] and behind [[proxies]] all resources answer alike: write `server.payload`";
                return refuse(key(), problem.to_owned());
            }
            if !self.clients.iter().any(|group| group.asked().any(|asked| is_same(asked, path))) {
                return refuse(key(), "nobody asks for it: leave it out, or name it as `uri_path`".to_owned());
            }
        }
        for (index, group) in self.clients.iter().enumerate() {
            let only = "only a group that asks the server over a [path] or a [network] has one: leave it out";
            let is_other = group.via.is_some() || self.mesh.is_some() || group.workload.all().is_empty();
            if let Some(body) = group.response_payload {
                let key = format!("clients[{index}].response_payload");
                if body > MOST_BODY {
                    return refuse(key, large(body));
                }
                if is_other {
                    return refuse(key, only.to_owned());
                }
            }
            let mut before: Vec<(&str, Size)> = Vec::new();
            for step in group.workload.steps() {
                let (path, Some(size)) = (group.path_of(step), step.response_payload) else { continue };
                let key = || format!("clients[{index}].workload.script.response_payload");
                if size > MOST_BODY {
                    return refuse(key(), large(size));
                }
                if is_other {
                    return refuse(key(), only.to_owned());
                }
                if let Some((_, other)) = before.iter().find(|(known, other)| is_same(known, path) && *other != size) {
                    let problem = format!("`{path}` answers {other} and {size}: write one size, or another path");
                    return refuse(key(), problem);
                }
                before.push((path, size));
            }
        }
        Ok(())
    }
}
