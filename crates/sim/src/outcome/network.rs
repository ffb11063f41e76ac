//! Rows of links and of nodes: what became of packets.

use crate::network::LinkName;

/// What became of packets: the rows of links, of relays and of nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    pub(crate) links: Vec<LinkRow>,
    pub(crate) relays: Vec<RelayRow>,
    pub(crate) access: Vec<AccessRow>,
    pub(crate) cross_traffic: Vec<CrossRow>,
    pub(crate) wifi: Vec<WifiRow>,
    pub(crate) nodes: Vec<NodeRow>,
}

impl Books {
    /// What was counted since they were as they were `before`; all of it, if they are empty.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        self.links.iter_mut().zip(&before.links).for_each(|(row, before)| row.since(before));
        self.relays.iter_mut().zip(&before.relays).for_each(|(row, before)| row.since(before));
        self.access.iter_mut().zip(&before.access).for_each(|(row, before)| row.since(before));
        self.cross_traffic.iter_mut().zip(&before.cross_traffic).for_each(|(row, before)| row.since(before));
        self.wifi.iter_mut().zip(&before.wifi).for_each(|(row, before)| row.since(before));
        self.nodes.iter_mut().zip(&before.nodes).for_each(|(row, before)| row.since(before));
        self
    }
}

/// One link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// The link.
    pub link: LinkName,
    /// Packets that came to the queue.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that the queue dropped: it was full, or kept itself short.
    pub dropped_queue_packets: u64,
    /// Their bytes.
    pub dropped_queue_bytes: u64,
    /// Those of them that a queue dropped which keeps itself short.
    pub dropped_aqm_packets: u64,
    /// Packets that it marked in place of dropping them.
    pub marked_packets: u64,
    /// Packets lost by the radio.
    pub dropped_radio_packets: u64,
    /// Their bytes.
    pub dropped_radio_bytes: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Bytes of the copies that completed an exchange.
    pub useful_bytes: u64,
    /// Time the link was busy.
    pub busy_us: u64,
    /// Time-weighted mean of the queue.
    pub queue_mean_bytes: f64,
    /// The queue was at most this long for 95 % of the time.
    pub queue_p95_bytes: u64,
    /// The longest queue.
    pub queue_max_bytes: u64,
    /// Time-weighted mean of the queue in packets.
    pub queue_mean_packets: f64,
    /// The longest queue in packets.
    pub queue_max_packets: u64,
}

/// Takes from these counts those of the same row at an earlier time.
macro_rules! subtract {
    ($row:ident, $before:ident, $($count:ident)+) => { $( $row.$count = $row.$count.saturating_sub($before.$count); )+ };
}

impl LinkRow {
    /// What was counted since the row was as it was `before`. Of the queue it says what it said.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, offered_packets offered_bytes dropped_queue_packets dropped_queue_bytes
            dropped_aqm_packets marked_packets dropped_radio_packets dropped_radio_bytes delivered_packets delivered_bytes useful_bytes
            busy_us);
    }
}

/// One relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayRow {
    /// Its name.
    pub relay: LinkName,
    /// The link that it sends over.
    pub link: LinkName,
    /// Packets that it queued.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Packets that it kept back, as copies of such as still waited.
    pub withheld_packets: u64,
    /// Their bytes.
    pub withheld_bytes: u64,
}

impl RelayRow {
    /// What was counted since the row was as it was `before`.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, passed_packets passed_bytes withheld_packets withheld_bytes);
    }
}

/// Access to the cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRow {
    /// Packets that went on to a link.
    pub passed_packets: u64,
    /// Packets that were dropped, because their device gave up connecting or had no room for more.
    pub dropped_packets: u64,
    /// Packets that waited when the run ended.
    pub held_packets: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Those that another device sent at the same opportunity.
    pub preambles_collided: u64,
    /// Those that nobody else sent and that were not answered.
    pub preambles_unanswered: u64,
    /// Connections made.
    pub connections: u64,
    /// How often a device gave up connecting.
    pub given_up: u64,
}

impl AccessRow {
    /// What was counted since the row was as it was `before`. What waits is what it is.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, passed_packets dropped_packets preambles preambles_collided preambles_unanswered
            connections given_up);
    }
}

/// The Wi-Fi hop of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WifiRow {
    /// Packets that got over it, either way.
    pub passed_packets: u64,
    /// Packets that found the queue of their station full.
    pub refused_packets: u64,
    /// Packets of which every frame collided.
    pub given_up_packets: u64,
    /// Packets that waited when the run ended.
    pub held_packets: u64,
    /// Frames sent, copies included.
    pub frames: u64,
    /// Those of them that collided.
    pub frames_collided: u64,
    /// Time with frames or acknowledgements on the air.
    pub busy_us: u64,
}

impl WifiRow {
    /// What was counted since the row was as it was `before`. What waits is what it is.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, passed_packets refused_packets given_up_packets frames frames_collided busy_us);
    }
}

/// What others sent, of one kind. No row of a link counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossRow {
    /// Its name.
    pub name: LinkName,
    /// Packets that left.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that a queue dropped.
    pub dropped_queue_packets: u64,
    /// Packets lost by a radio.
    pub dropped_radio_packets: u64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// From when they left until they arrived, in sum.
    pub delay_us: u64,
}

impl CrossRow {
    /// What was counted since the row was as it was `before`.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, sent_packets sent_bytes dropped_queue_packets dropped_radio_packets arrived_packets
            arrived_bytes delay_us);
    }
}

/// One proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRow {
    /// Its name.
    pub proxy: LinkName,
    /// Requests that clients handed it.
    pub requests: u64,
    /// Those that the server answered.
    pub answered: u64,
    /// Those that it gave up, told with 5.04.
    pub failed: u64,
    /// Those that it had no room for, told with 5.03.
    pub refused: u64,
    /// Copies of its own requests to the server.
    pub transmissions: u64,
    /// Those that were not the first.
    pub retransmissions: u64,
    /// Copies behind the one whose answer it took.
    pub unnecessary: u64,
    /// The most requests that it held at once.
    pub held_max: u64,
}

impl ProxyRow {
    /// What was counted since the row was as it was `before`. What it held is what it is.
    pub(crate) fn since(&mut self, before: &Self) {
        subtract!(self, before, requests answered failed refused transmissions retransmissions unnecessary);
    }
}

/// One node of a mesh. What became of frames is counted at the node that they were for, what became of packets at the node
/// that held them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub node: LinkName,
    /// Where it stands, in millimetres.
    pub x_mm: i64,
    /// Where it stands, in millimetres.
    pub y_mm: i64,
    /// `border-router`, the name of a group of sinks, or `device`.
    pub role: LinkName,
    /// Its parent in the tree, if it has one.
    pub parent: Option<LinkName>,
    /// Hops to the border router.
    pub depth: u32,
    /// Frames with data that it sent.
    pub data_sent: u64,
    /// Acknowledgements that it sent.
    pub acks_sent: u64,
    /// Frames with data for it that it received.
    pub data_received: u64,
    /// Those of them that it had received before.
    pub data_duplicate: u64,
    /// Frames with data for it that another frame destroyed.
    pub data_collided: u64,
    /// Those that came while it was sending.
    pub data_deaf: u64,
    /// Those that the link lost.
    pub data_faded: u64,
    /// Acknowledgements for it that it received.
    pub acks_received: u64,
    /// Acknowledgements for it that another frame destroyed.
    pub acks_collided: u64,
    /// Those that came while it was sending.
    pub acks_deaf: u64,
    /// Those that the link lost.
    pub acks_faded: u64,
    /// Acknowledgements that were due while its radio was busy sending.
    pub acks_omitted: u64,
    /// Packets that began here.
    pub packets_begun: u64,
    /// Packets that were for it and arrived.
    pub packets_arrived: u64,
    /// Packets that it got to the next node.
    pub packets_passed: u64,
    /// Packets lost for want of a buffer.
    pub lost_buffers: u64,
    /// Packets lost because frames for as many other neighbours as may be were waiting.
    pub lost_neighbours: u64,
    /// Packets lost because no attempt was acknowledged.
    pub lost_no_ack: u64,
    /// Packets lost because the channel was never idle.
    pub lost_no_channel: u64,
    /// Packets lost on the air that nobody had to acknowledge.
    pub lost_air: u64,
    /// Packets of which the next node could not put the parts together.
    pub lost_reassembly: u64,
    /// Microseconds that its radio was sending.
    pub on_air_us: u64,
    /// What RPL did there, of a mesh with RPL only.
    pub rpl: Option<Box<RplRow>>,
}

/// RPL at one node. What became of control frames is counted at each node that they were for: a frame for everyone at all who
/// are within range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RplRow {
    /// Its rank, if it has joined.
    pub rank: Option<u32>,
    /// Its downward routes.
    pub routes: u32,
    /// How often it took another parent.
    pub parent_switches: u64,
    /// DODAG Information Solicitations that it made.
    pub dis: u64,
    /// DODAG Information Objects that it made.
    pub dio: u64,
    /// Destination Advertisement Objects that it made or passed on.
    pub dao: u64,
    /// The same with a lifetime of zero.
    pub dao_no_path: u64,
    /// Control messages for which there was no room.
    pub control_refused: u64,
    /// Control messages that were given up.
    pub control_given_up: u64,
    /// Frames with control messages that it sent.
    pub control_sent: u64,
    /// Such frames for it that it received.
    pub control_received: u64,
    /// Those that another frame destroyed.
    pub control_collided: u64,
    /// Those that came while it was sending.
    pub control_deaf: u64,
    /// Those that the link lost.
    pub control_faded: u64,
    /// Packets lost because the node had not joined, or as the root knew of no way.
    pub lost_no_route: u64,
    /// Packets lost that a downward route of another node brought here, where there was none.
    pub lost_stale_route: u64,
}

impl RplRow {
    /// What was counted since the row was as it was `before`. Rank and routes are what they are.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, parent_switches dis dio dao dao_no_path control_refused control_given_up control_sent
            control_received control_collided control_deaf control_faded lost_no_route lost_stale_route);
    }
}

impl NodeRow {
    /// What was counted since the row was as it was `before`.
    fn since(&mut self, before: &Self) {
        subtract!(self, before, data_sent acks_sent data_received data_duplicate data_collided data_deaf data_faded
            acks_received acks_collided acks_deaf acks_faded acks_omitted packets_begun packets_arrived packets_passed
            lost_buffers lost_neighbours lost_no_ack lost_no_channel lost_air lost_reassembly on_air_us);
        if let (Some(rpl), Some(before)) = (&mut self.rpl, &before.rpl) {
            rpl.since(before);
        }
    }
}
