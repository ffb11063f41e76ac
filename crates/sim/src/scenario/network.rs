//! The links of a scenario, and who crosses which of them.

use super::{Direction, Scenario, Size};

impl Scenario {
    /// Bytes of IP and UDP header in front of every CoAP message.
    pub(crate) fn header(&self) -> Size {
        self.path.header
    }

    /// Its links by name.
    pub(crate) fn links(&self) -> Vec<(&str, &Direction)> {
        vec![("uplink", &self.path.uplink), ("downlink", &self.path.downlink)]
    }

    /// Which of its links, told by their places, packets of a group cross: those to the server, and those back.
    pub(crate) fn route(&self, _group: usize) -> [Vec<usize>; 2] {
        [vec![0], vec![1]]
    }
}
