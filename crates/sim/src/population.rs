//! The clients of all groups: their endpoints, what they ask for, and the order of their numbers.

use millpond_coap::{
    Config, Endpoint, IdGenerator, Limits, Outgoing, Transmission,
    message::{Code, Kind, number},
};
use millpond_control::{ChanceSeed, Controller, PeerController, Preset, Purpose};

use crate::{
    RunError,
    naming::Renamed,
    scenario::{
        self, Clients, Controllers, Flights, FlowGroup, Method, Notifications, Protection, Scenario, Sizes, Step,
        Transfer,
    },
};

/// What clients ask for.
pub(crate) struct Ask<'s> {
    kind: Kind,
    code: Code,
    options: Vec<(u16, &'s [u8])>,
    /// The longest payload, with what protection adds.
    payload: Vec<u8>,
    protection: Protection,
    /// What leaves in its place, if it is no request.
    pub(crate) flights: Option<Flights>,
}

impl<'s> Ask<'s> {
    /// The request of a group: a GET, or with a payload a PUT, which is idempotent too (RFC 7252 §5.1): a server may answer
    /// its copies afresh (§4.5).
    pub(crate) fn of(clients: &'s Clients, sizes: Sizes) -> Self {
        Self::with(clients, if sizes.most().0 == 0 { Code::GET } else { Code::PUT }, &clients.uri_path, sizes)
    }

    /// One request of a script.
    pub(crate) fn step(clients: &'s Clients, step: &'s Step) -> Self {
        let code = match step.method {
            Method::Get => Code::GET,
            Method::Post => Code::POST,
            Method::Put => Code::PUT,
            Method::Delete => Code::DELETE,
        };
        let path = step.path.as_deref().unwrap_or(&clients.uri_path);
        Self { flights: step.flights, ..Self::with(clients, code, path, step.payload) }
    }

    /// The request of a client that wants to observe (RFC 7641 §3.1): an Observe option of 0, which has no bytes.
    pub(crate) fn registration(notifications: &'s Notifications) -> Self {
        let options = [(number::OBSERVE, &[][..])].into_iter().chain(uri_path(&notifications.uri_path)).collect();
        let (payload, protection) = (Vec::new(), Protection::default());
        Self { kind: Kind::Confirmable, code: Code::GET, options, payload, protection, flights: None }
    }

    fn with(clients: &Clients, code: Code, path: &'s str, sizes: Sizes) -> Self {
        Self {
            kind: if clients.confirmable { Kind::Confirmable } else { Kind::NonConfirmable },
            code,
            options: uri_path(path).collect(),
            payload: vec![b'.'; clients.protection.padded_request(sizes.most().0) as usize],
            protection: clients.protection,
            flights: None,
        }
    }

    /// The request with a payload of so many bytes, beside what protection adds.
    pub(crate) fn request(&self, bytes: usize) -> Outgoing<'_> {
        let bytes = self.protection.padded_request(bytes as u64) as usize;
        let payload = self.payload.get(..bytes).unwrap_or(&self.payload);
        Outgoing { kind: self.kind, ..Outgoing::confirmable(self.code, &self.options) }.with_payload(payload)
    }

    /// The options that name the resource.
    pub(crate) fn options(&self) -> &[(u16, &'s [u8])] {
        &self.options
    }

    /// The segments of the path asked for.
    pub(crate) fn path(&self) -> impl Iterator<Item = &'s [u8]> {
        let is_of_path = |(option, _): &&(u16, &'s [u8])| *option == number::URI_PATH;
        self.options.iter().filter(is_of_path).map(|&(_, segment)| segment)
    }
}

/// A path as options.
fn uri_path(path: &str) -> impl Iterator<Item = (u16, &[u8])> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(|segment| (number::URI_PATH, segment.as_bytes()))
}

/// The controller of each group, for a peer about which nothing is known.
pub(crate) fn controllers(groups: &[FlowGroup<'_>], own: &dyn Controllers) -> Result<Vec<PeerController>, RunError> {
    let build = |flows: &FlowGroup<'_>| {
        let group = &flows.clients;
        // Over TCP nobody asks it.
        let Some(choice) = &group.controller else { return Ok(Preset::RFC7252.build().into()) };
        let built = choice.build(own);
        let key = if flows.is_of_server() { "server".to_owned() } else { flows.key() };
        let built = built.map_err(|error| RunError::Controller(format!("{key}.controller: {error}")))?;
        if group.ecn && !flows.is_of_server() && !built.wishes().ecn {
            return Err(RunError::Controller(format!("{key}.ecn: `{choice}` {}", scenario::REACTS_NOT)));
        }
        Ok(match group.naming {
            None => built,
            Some(naming) => PeerController::own(Renamed::new(built, naming)),
        })
    };
    groups.iter().map(build).collect()
}

/// An endpoint such as each client of a group has.
pub(crate) fn client_endpoint(
    clients: &Clients,
    controller: PeerController,
    datagram: u16,
    seed: ChanceSeed,
) -> Result<Endpoint<u32>, RunError> {
    endpoint(clients, controller, datagram, seed, IdGenerator::counted())
}

/// The same after a restart at which clients forgot which message IDs they had used: they begin elsewhere, each of them
/// where it has not been before (RFC 7252 §4.4).
pub(crate) fn restarted_endpoint(
    clients: &Clients,
    controller: PeerController,
    datagram: u16,
    seed: ChanceSeed,
    restart: u32,
) -> Result<Endpoint<u32>, RunError> {
    let word = |half| seed.wide(Purpose::Start, [u32::MAX, restart, half, 0]).to_le_bytes();
    let mut key = [0; 16];
    for (place, byte) in key.iter_mut().zip(word(0).into_iter().chain(word(1))) {
        *place = byte;
    }
    endpoint(clients, controller, datagram, seed, IdGenerator::secret(key))
}

fn endpoint(
    clients: &Clients,
    controller: PeerController,
    datagram: u16,
    seed: ChanceSeed,
    id_generator: IdGenerator,
) -> Result<Endpoint<u32>, RunError> {
    let config = Config {
        transmission: transmission(clients),
        token_length: clients.token_length.into(),
        limits: Limits {
            datagram,
            exchanges_per_peer: Limits::default().exchanges_per_peer.max(clients.nstart),
            // What may be open but is paced waits in the endpoint.
            waiting_per_peer: Limits::default().waiting_per_peer.max(clients.nstart),
            ..Limits::default()
        },
        // Where bodies travel whole the endpoint's count is all that is asked for.
        tells_late: clients.transfer != Transfer::Whole,
        ..Config::default()
    };
    Endpoint::new(config, controller, seed, 0, id_generator)
        .map_err(|error| RunError::Endpoint("a client", error.to_string()))
}

pub(crate) fn transmission(clients: &Clients) -> Transmission {
    Transmission { max_retransmit: clients.max_retransmit, nstart: clients.nstart, ..Transmission::default() }
}

/// Bytes of the longest datagram of the scenario, at least what RFC 7252 §4.6 expects of everybody.
pub(crate) fn datagram(scenario: &Scenario) -> u16 {
    let groups = scenario.flow_groups();
    let udp = || groups.iter().filter(|group| group.clients.transport.is_udp());
    let requests = udp().map(|group| group.clients.longest_request());
    let responses = udp().map(|group| {
        let block = group.clients.transfer.block_size();
        let whole = || group.clients.protection.response(scenario.response_payload(group));
        block.map_or_else(whole, |size| u64::from(size.bytes()))
    });
    let longest = requests.chain(responses).max().unwrap_or(0);
    u16::try_from(longest + 64).unwrap_or(u16::MAX).max(Limits::default().datagram)
}

/// The group of each client. Groups are dealt evenly over the numbers, because of clients that start at the same
/// instant the one with the lower number comes first.
pub(crate) fn interleave(groups: &[Clients]) -> Vec<u32> {
    let total: usize = groups.iter().map(|group| group.count as usize).sum();
    let mut dealt = vec![0_u64; groups.len()];
    let mut order = Vec::with_capacity(total);
    for _ in 0..total {
        // The group that lags most: the least (dealt + ½) / count, compared without division.
        let lags = |index: usize| (2 * dealt[index] + 1, u64::from(groups[index].count));
        let mut chosen = None;
        for index in (0..groups.len()).filter(|&index| dealt[index] < u64::from(groups[index].count)) {
            let ahead = |other: usize| {
                let ((a, b), (c, d)) = (lags(index), lags(other));
                u128::from(a) * u128::from(d) < u128::from(c) * u128::from(b)
            };
            if chosen.is_none_or(ahead) {
                chosen = Some(index);
            }
        }
        if let Some(index) = chosen {
            dealt[index] += 1;
            order.push(index as u32);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ControllerChoice;

    #[test]
    fn groups_are_dealt_evenly() {
        let group = |count| Clients { count, ..Clients::of(ControllerChoice::preset(Preset::RFC7252)) };
        assert_eq!(interleave(&[group(2), group(2)]), [0, 1, 0, 1]);
        assert_eq!(interleave(&[group(1), group(3)]), [1, 0, 1, 1]);
        assert_eq!(interleave(&[group(3)]), [0, 0, 0]);
    }
}
