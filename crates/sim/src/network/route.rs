//! Which links packets cross.

use crate::network::{Address, SERVER};

/// The routes of a graph. Those of the `n`-th are two in a row: to the server with number `2n`, and back with the next.
pub(super) struct Routes {
    links: Vec<Box<[u16]>>,
    /// Which pair each client uses; empty if there is but one.
    of_client: Vec<u16>,
}

impl Routes {
    /// The routes of each group as places of links, up and down, and the group of each client.
    pub(super) fn new(of_groups: Vec<[Vec<u16>; 2]>, groups: &[u32]) -> Self {
        let mut pairs: Vec<[Vec<u16>; 2]> = Vec::new();
        let numbers: Vec<u16> = of_groups
            .into_iter()
            .map(|pair| {
                let known = pairs.iter().position(|known| *known == pair);
                known.unwrap_or_else(|| {
                    pairs.push(pair);
                    pairs.len() - 1
                }) as u16
            })
            .collect();
        let of_client = if pairs.len() > 1 {
            groups.iter().map(|&group| numbers.get(group as usize).copied().unwrap_or(0)).collect()
        } else {
            Vec::new()
        };
        Self { links: pairs.into_iter().flatten().map(Vec::into_boxed_slice).collect(), of_client }
    }

    /// The number of the route between two nodes, one of which is the server.
    #[inline]
    pub(super) fn between(&self, from: Address, to: Address) -> u16 {
        let (client, back) = if to == SERVER { (from, 0) } else { (to, 1) };
        2 * self.of_client.get(client as usize).copied().unwrap_or(0) + back
    }

    /// The place of the link behind so many others.
    #[inline]
    pub(super) fn hop(&self, route: u16, hop: u8) -> Option<usize> {
        self.links.get(usize::from(route))?.get(usize::from(hop)).map(|&place| usize::from(place))
    }

    /// The places of all links of a route.
    pub(super) fn links(&self, route: u16) -> &[u16] {
        self.links.get(usize::from(route)).map_or(&[], |links| links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_the_route_of_their_group() {
        let (near, far) = ([vec![0], vec![1]], [vec![2, 0], vec![1, 2]]);
        let routes = Routes::new(vec![near.clone(), far, near], &[0, 1, 2]);
        assert_eq!(routes.links(routes.between(1, SERVER)), [2, 0]);
        assert_eq!(routes.links(routes.between(SERVER, 1)), [1, 2]);
        for client in [0, 2] {
            assert_eq!(routes.links(routes.between(client, SERVER)), [0]);
            assert_eq!(routes.hop(routes.between(SERVER, client), 0), Some(1));
            assert_eq!(routes.hop(routes.between(SERVER, client), 1), None);
        }
    }

    #[test]
    fn one_route_for_all_takes_no_room_for_each_client() {
        let pair = [vec![0], vec![1]];
        let routes = Routes::new(vec![pair.clone(), pair], &[0, 1, 1]);
        assert!(routes.of_client.is_empty());
        assert_eq!((routes.between(2, SERVER), routes.between(SERVER, 2)), (0, 1));
    }
}
