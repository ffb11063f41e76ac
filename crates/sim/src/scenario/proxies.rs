//! Nodes that take requests from some clients and ask the server for them.

use serde::{Deserialize, Serialize};

use super::{Clients, ControllerChoice, Route, Scenario, ScenarioError, Size, clients, network::check_name, unknown};

/// A reverse proxy (RFC 7252 §5.7.3): to the clients behind it it is the server, to the server it is a client. Copies and
/// acknowledgements end at it, so that each of its sides has a congestion control of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// What clients and tables call it.
    pub name: String,
    /// The links between it and the server.
    pub route: Route,
    /// The congestion controller of what it sends, one state for the server and one for each client.
    pub controller: ControllerChoice,
    /// Copies after the first before it gives up (RFC 7252 §4.8, MAX_RETRANSMIT).
    #[serde(default = "clients::four")]
    pub max_retransmit: u8,
    /// Exchanges that it may have open at once with the server (RFC 7252 §4.7, NSTART).
    #[serde(default = "clients::one")]
    pub nstart: u16,
    /// Bytes of the tokens of what it asks. More than one exchange at once need some.
    #[serde(default = "two")]
    pub token_length: u8,
    /// Requests that it holds, those under way included; one beyond that is refused with 5.03. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_queue: Option<u32>,
    /// Bytes of answers that it keeps, as the gateway does. Left out: it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Size>,
    /// Equal safe requests that are open together are asked once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub coalesce: bool,
    /// Requests that wait before its `nstart`, in the gateway's queue; one beyond that is refused with 5.03 and a Max-Age in which they
    /// will have been answered. Left out: those that `application_queue` allows, in the order in which they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
}

/// Routes have numbers of 16 bits.
const MOST: usize = 1_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_false(value: &bool) -> bool {
    !value
}

fn two() -> u8 {
    2
}

impl Scenario {
    /// The place of the proxy that a group of clients is behind.
    pub(crate) fn proxy_of(&self, group: &Clients) -> Option<usize> {
        let via = group.via.as_ref()?;
        self.proxies.iter().position(|proxy| proxy.name == *via)
    }

    pub(super) fn check_proxies(&self, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: String, problem: String| Err(ScenarioError::at_key(origin, &key, problem));
        for (index, group) in self.clients.iter().enumerate() {
            let Some(via) = &group.via else { continue };
            let known: Vec<&str> = self.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
            if known.is_empty() {
                let problem = format!("there is no proxy: add a table [[proxies]] with name = \"{via}\"");
                return refuse(format!("clients[{index}].via"), problem);
            }
            if !known.contains(&via.as_str()) {
                return refuse(format!("clients[{index}].via"), unknown("proxy", via, &known));
            }
            // What it would have to know of these is not modelled: it forwards one request and one answer.
            let other = [
                ("transport", group.transport.is_udp()),
                ("transfer", group.transfer.is_whole()),
                ("commands", group.commands.is_none()),
                ("notifications", group.notifications.is_none()),
            ];
            if let Some((key, _)) = other.iter().find(|(_, is_handed_on)| !is_handed_on) {
                let problem = "a proxy forwards requests over UDP whose bodies are whole: leave this key or `via` out";
                return refuse(format!("clients[{index}].{key}"), problem.to_owned());
            }
        }
        if self.network.is_none() && !self.proxies.is_empty() {
            let problem = "a proxy has links on both of its sides: write [network] with named links";
            return refuse("proxies".to_owned(), problem.to_owned());
        }
        if self.proxies.len() > MOST {
            return refuse("proxies".to_owned(), format!("{} proxies; at most {MOST}", self.proxies.len()));
        }
        for (index, proxy) in self.proxies.iter().enumerate() {
            self.check_proxy(index, proxy, origin)?;
        }
        Ok(())
    }

    fn check_proxy(&self, index: usize, proxy: &Proxy, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, problem: String| {
            Err(ScenarioError::at_key(origin, &format!("proxies[{index}].{key}"), problem))
        };
        if let Some(problem) = check_name(&proxy.name) {
            return refuse("name", problem);
        }
        if self.proxies[..index].iter().any(|other| other.name == proxy.name) {
            return refuse("name", format!("another proxy is called `{}` already", proxy.name));
        }
        if let Some(problem) = clients::copies_problem(proxy.max_retransmit) {
            return refuse("max_retransmit", problem);
        }
        if let Some(problem) = clients::token_problem(proxy.token_length) {
            return refuse("token_length", problem);
        }
        if let Some(problem) = clients::nstart_problem(proxy.nstart, proxy.token_length) {
            return refuse("nstart", problem);
        }
        if let Some(problem) = clients::queue_problem(proxy.application_queue, proxy.nstart) {
            return refuse("application_queue", problem);
        }
        if proxy.cache.is_some_and(|cache| cache.0 == 0) {
            return refuse("cache", "0 B hold no answer: leave this key out".to_owned());
        }
        if proxy.queue == Some(0) {
            return refuse("queue", "0 requests cannot wait: write at least 1".to_owned());
        }
        if proxy.queue.is_some() && proxy.application_queue.is_some() {
            return refuse("queue", "application_queue bounds the same requests: leave one of both out".to_owned());
        }
        if !self.clients.iter().any(|group| group.via.as_deref() == Some(proxy.name.as_str())) {
            let name = &proxy.name;
            return refuse(
                "name",
                format!("nobody is behind it: write via = \"{name}\" in [[clients]], or leave it out"),
            );
        }
        Ok(())
    }
}
