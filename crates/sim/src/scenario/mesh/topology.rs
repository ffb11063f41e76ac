//! Where the nodes of a mesh stand.

use std::{collections::BTreeMap, fmt::Display};

use millpond_control::{ChanceSeed, Purpose};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Choose, Sink};
use crate::{
    network::radio::Place,
    scenario::{Length, unknown, word_or_table},
};

/// The nodes of a mesh: a grid, a chain, a dumbbell, places that are drawn, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Topology {
    /// Rows and columns. A node is called by its column and row, `2,0`.
    Grid {
        /// How many columns.
        columns: u32,
        /// How many rows.
        rows: u32,
        /// From one node to the next.
        spacing: Length,
    },
    /// Nodes in a row, called by their numbers from 0 on.
    Chain {
        /// How many.
        nodes: u32,
        /// From one to the next.
        spacing: Length,
    },
    /// Two square blocks, and a bar of single nodes between their middle rows. Called as in a grid.
    Dumbbell {
        /// Nodes on a side of a block.
        block: u32,
        /// Nodes of the bar.
        bar: u32,
        /// From one node to the next.
        spacing: Length,
    },
    /// Places drawn evenly over a square, called by their numbers.
    Random {
        /// How many.
        nodes: u32,
        /// The side of the square.
        side: Length,
        /// What they are drawn from: other than the seed of a run, so that all runs have the same mesh.
        seed: u64,
    },
    /// One line a node: name, metres to the right, metres up, and the role if it has one.
    List {
        /// The file that the lines are from.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The lines.
        nodes: String,
    },
}

/// The same as a table.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Written {
    Grid {
        columns: u32,
        rows: u32,
        #[serde(default = "ten_metres")]
        spacing: Length,
    },
    Chain {
        nodes: u32,
        #[serde(default = "ten_metres")]
        spacing: Length,
    },
    Dumbbell {
        block: u32,
        bar: u32,
        #[serde(default = "ten_metres")]
        spacing: Length,
    },
    Random {
        nodes: u32,
        side: Length,
        #[serde(default = "first")]
        seed: u64,
    },
    List {
        #[serde(default)]
        file: Option<String>,
        #[serde(default)]
        nodes: String,
    },
}

pub(super) fn ten_metres() -> Length {
    Length(10_000)
}

fn first() -> u64 {
    1
}

/// A topology of nodes so far apart.
type Make = fn(Length) -> Written;

/// The topologies that have a name.
const NAMED: [(&str, Make); 4] = [
    ("chain-17", |spacing| Written::Chain { nodes: 17, spacing }),
    ("dumbbell-21", |spacing| Written::Dumbbell { block: 3, bar: 3, spacing }),
    ("grid-6x6", |spacing| Written::Grid { columns: 6, rows: 6, spacing }),
    ("grid-7x7", |spacing| Written::Grid { columns: 7, rows: 7, spacing }),
];

impl<'de> Deserialize<'de> for Topology {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |text: &str| match NAMED.iter().find(|(name, _)| *name == text) {
            Some((_, make)) => Ok(make(ten_metres())),
            None => Err(unknown("topology", text, &NAMED.map(|(name, _)| name))),
        };
        let written = word_or_table(deserializer, "a topology's name, or a table with the key `kind`", word)?;
        Ok(match written {
            Written::Grid { columns, rows, spacing } => Self::Grid { columns, rows, spacing },
            Written::Chain { nodes, spacing } => Self::Chain { nodes, spacing },
            Written::Dumbbell { block, bar, spacing } => Self::Dumbbell { block, bar, spacing },
            Written::Random { nodes, side, seed } => Self::Random { nodes, side, seed },
            Written::List { file, nodes } => Self::List { file, nodes },
        })
    }
}

/// A role in a list that is not the name of a group of sinks.
const BORDER_ROUTER: &str = "border-router";

/// Most nodes of a mesh.
const MOST_NODES: u64 = 20_000;
/// Furthest from the origin, so that squares of distances are exact.
const FURTHEST: i64 = 1_000_000_000;

/// Nodes, and the roles that the topology gives them.
#[derive(Default)]
pub(super) struct Laid {
    pub(super) names: Vec<String>,
    pub(super) places: Vec<Place>,
    pub(super) border_router: Option<String>,
    pub(super) sinks: BTreeMap<String, Sink>,
}

impl Laid {
    fn add(&mut self, name: impl Display, x: i64, y: i64) {
        self.names.push(name.to_string());
        self.places.push(Place { x, y });
    }

    fn roles(mut self, border_router: impl Display, primary: &[String], secondary: &[String]) -> Self {
        let sink = |nodes: &[String], choose| Sink { nodes: nodes.to_vec(), choose };
        self.border_router = Some(border_router.to_string());
        self.sinks.insert("primary".to_owned(), sink(primary, Choose::Farthest));
        self.sinks.insert("secondary".to_owned(), sink(secondary, Choose::Nearest));
        self
    }
}

fn spot(column: u32, row: u32) -> String {
    format!("{column},{row}")
}

impl Topology {
    /// The nodes in their order.
    ///
    /// # Errors
    /// The key below the topology, and what is wrong with it.
    pub(super) fn lay(&self) -> Result<Laid, (&'static str, String)> {
        let mut laid = Laid::default();
        let few = |count: u64, key| match count {
            0 => Err((key, "0 nodes are no mesh: write at least 2".to_owned())),
            count if count > MOST_NODES => Err((key, format!("{count} nodes; at most {MOST_NODES}"))),
            _ => Ok(()),
        };
        let along = |number: u32, spacing: Length| i64::from(number).saturating_mul(spacing.0 as i64);
        let wide = |length: Length, times: u32, key| {
            let far = length.0.saturating_mul(u64::from(times.max(1)));
            if far > FURTHEST as u64 {
                Err((key, format!("{length} makes the mesh wider than 1000 km")))
            } else {
                Ok(())
            }
        };
        match *self {
            Self::Grid { columns, rows, spacing } => {
                few(u64::from(columns) * u64::from(rows), "columns")?;
                wide(spacing, columns.max(rows), "spacing")?;
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    laid.add(spot(column, row), along(column, spacing), along(row, spacing));
                }
                let router = spot((columns - 1) / 2, (rows - 1) / 2);
                Ok(laid.roles(router, &[spot(columns - 1, rows - 1)], &[spot(0, 0)]))
            }
            Self::Chain { nodes, spacing } => {
                few(u64::from(nodes), "nodes")?;
                wide(spacing, nodes, "spacing")?;
                for node in 0..nodes {
                    laid.add(node, along(node, spacing), 0);
                }
                Ok(laid.roles((nodes - 1) / 2, &["0".to_owned()], &[(nodes - 1).to_string()]))
            }
            Self::Dumbbell { block, bar, spacing } => {
                few(2 * u64::from(block) * u64::from(block) + u64::from(bar), "block")?;
                if block == 0 || bar == 0 {
                    let key = if block == 0 { "block" } else { "bar" };
                    return Err((key, "a dumbbell has two blocks and a bar: write at least 1".to_owned()));
                }
                let last = 2 * block + bar - 1;
                wide(spacing, last, "spacing")?;
                let middle = (block - 1) / 2;
                for row in 0..block {
                    for column in 0..=last {
                        let in_bar = (block..block + bar).contains(&column);
                        if !in_bar || row == middle {
                            laid.add(spot(column, row), along(column, spacing), along(row, spacing));
                        }
                    }
                }
                let router = spot(block + (bar - 1) / 2, middle);
                // Each block has a sink at its far end, and one beside it where there is room.
                let beside = u32::from(block > 1);
                let primary = [spot(0, middle), spot(last, middle)];
                Ok(laid.roles(router, &primary, &[spot(beside, middle), spot(last - beside, middle)]))
            }
            Self::Random { nodes, side, seed } => {
                few(u64::from(nodes), "nodes")?;
                wide(side, 1, "side")?;
                let seed = ChanceSeed::new(seed);
                for node in 0..nodes {
                    let draw = |axis| {
                        let word = seed.wide(Purpose::Start, [node, axis, 0, 0]);
                        ((u128::from(word) * (u128::from(side.0) + 1)) >> 64) as i64
                    };
                    laid.add(node, draw(0), draw(1));
                }
                Ok(laid)
            }
            Self::List { ref file, ref nodes } => {
                if nodes.trim().is_empty() {
                    let problem = match file {
                        Some(file) => format!("`{file}` names no node: write a line such as `a 0 10` for each"),
                        None => "no nodes: write a line such as `a 0 10` for each, or `file`".to_owned(),
                    };
                    return Err(("nodes", problem));
                }
                let place = file.as_deref().unwrap_or("the list");
                let has_commas = place.rsplit_once('.').is_some_and(|(_, kind)| kind.eq_ignore_ascii_case("csv"));
                for (number, line) in nodes.trim_start_matches('\u{feff}').lines().enumerate() {
                    let told = |problem| ("nodes", format!("{place}, line {}: {problem}", number + 1));
                    laid.read(line, has_commas).map_err(told)?;
                }
                few(laid.names.len() as u64, "nodes")?;
                Ok(laid)
            }
        }
    }
}

impl Laid {
    /// Reads a line of a list: words with space between them, or of a file of comma-separated values.
    fn read(&mut self, line: &str, has_commas: bool) -> Result<(), String> {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> =
            if has_commas { line.split(',').map(str::trim).collect() } else { line.split_whitespace().collect() };
        let (name, x, y, role) = match words[..] {
            _ if line.is_empty() => return Ok(()),
            ["name", "x", "y"] | ["name", "x", "y", "role"] if has_commas && self.names.is_empty() => return Ok(()),
            [name, x, y] | [name, x, y, ""] if !name.is_empty() => (name, x, y, None),
            [name, x, y, role] if !name.is_empty() => (name, x, y, Some(role)),
            _ => {
                let such = if has_commas { "a,0,10,primary" } else { "a 0 10 primary" };
                let parts = "a name, metres to the right, metres up, and a role if it has one";
                return Err(format!("`{line}` is no node: write {parts}: `{such}`"));
            }
        };
        let metres = |text: &str| {
            let millimetres = millimetres(text).filter(|place| place.abs() <= FURTHEST);
            millimetres
                .ok_or_else(|| format!("`{text}` is no place: write metres with at most 3 decimals, up to 1000 km"))
        };
        let (x, y) = (metres(x)?, metres(y)?);
        if let Some(first) = self.names.iter().position(|known| known == name) {
            return Err(format!("there is a node `{name}` already, the {}. of the list", first + 1));
        }
        self.add(name, x, y);
        match role {
            None => {}
            Some(BORDER_ROUTER) => match self.border_router.replace(name.to_owned()) {
                None => {}
                Some(first) => return Err(format!("`{first}` is the border router already, and there is one")),
            },
            Some(sink) => self.sinks.entry(sink.to_owned()).or_default().nodes.push(name.to_owned()),
        }
        Ok(())
    }
}

/// `"12.5"` metres as millimetres.
fn millimetres(text: &str) -> Option<i64> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    if whole.is_empty() || whole.len() > 12 || decimals.len() > 3 || !plain(whole) || !plain(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<3}").parse::<i64>().ok().map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Laid {
        let topology: Topology = serde_json::from_value(serde_json::json!(name)).unwrap();
        topology.lay().unwrap()
    }

    #[test]
    fn named_topologies_have_the_nodes_and_roles_of_their_source() {
        for (name, nodes, router, primary, secondary) in [
            ("chain-17", 17, "8", &["0"][..], &["16"][..]),
            ("dumbbell-21", 21, "4,1", &["0,1", "8,1"], &["1,1", "7,1"]),
            ("grid-6x6", 36, "2,2", &["5,5"], &["0,0"]),
            ("grid-7x7", 49, "3,3", &["6,6"], &["0,0"]),
        ] {
            let laid = named(name);
            assert_eq!((laid.names.len(), laid.border_router.as_deref()), (nodes, Some(router)), "{name}");
            assert_eq!(laid.sinks["primary"].nodes, primary);
            assert_eq!(laid.sinks["secondary"].nodes, secondary);
        }
        let laid = named("dumbbell-21");
        let at = |name: &str| laid.names.iter().position(|known| known == name).map(|node| laid.places[node]);
        assert_eq!(at("4,1"), Some(Place { x: 40_000, y: 10_000 }));
        assert_eq!(at("4,0"), None);
    }

    #[test]
    fn lines_of_a_list_are_metres_and_roles() {
        let nodes =
            "# left to right\na 0 0 primary\nb 10 -2.5\n\nc 20.125 0 border-router # in the middle\n".to_owned();
        let laid = Topology::List { file: None, nodes }.lay().unwrap();
        assert_eq!(laid.names, ["a", "b", "c"]);
        assert_eq!(laid.places[1..], [Place { x: 10_000, y: -2_500 }, Place { x: 20_125, y: 0 }]);
        assert_eq!(
            (laid.border_router.as_deref(), &laid.sinks["primary"].nodes[..]),
            (Some("c"), &["a".to_owned()][..])
        );
    }

    fn csv(nodes: &str) -> Result<Laid, (&'static str, String)> {
        Topology::List { file: Some("nodes.csv".to_owned()), nodes: nodes.to_owned() }.lay()
    }

    #[test]
    fn a_file_with_commas_has_a_header_and_empty_roles() {
        let laid =
            csv("\u{feff}name,x,y,role\r\na, 0, 0, primary\r\nb c,10,-2.5,\r\n\r\nc,20.125,0,border-router\n").unwrap();
        assert_eq!(laid.names, ["a", "b c", "c"]);
        assert_eq!(laid.places[1..], [Place { x: 10_000, y: -2_500 }, Place { x: 20_125, y: 0 }]);
        assert_eq!(
            (laid.border_router.as_deref(), &laid.sinks["primary"].nodes[..]),
            (Some("c"), &["a".to_owned()][..])
        );
    }

    #[test]
    fn a_bad_line_of_a_file_with_commas_is_named() {
        for (line, told) in [
            ("b;10;0", "nodes.csv, line 3: `b;10;0` is no node"),
            ("b,10", "nodes.csv, line 3: `b,10` is no node: write a name"),
            (",10,0", "nodes.csv, line 3: `,10,0` is no node"),
            ("b,ten,0", "line 3: `ten` is no place"),
            ("name,x,y", "line 3: `x` is no place"),
            ("a,1,1", "line 3: there is a node `a` already"),
            ("b,1,1,border-router", "line 3: `a` is the border router already"),
        ] {
            let (_, problem) = csv(&format!("name,x,y,role\na,0,0,border-router\n{line}")).err().unwrap();
            assert!(problem.contains(told), "{problem}");
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, told) in [
            ("b 10", "nodes.txt, line 2: `b 10` is no node"),
            ("b ten 0", "line 2: `ten` is no place"),
            ("b 1.0005 0", "at most 3 decimals"),
            ("b 1 2 3 4", "is no node"),
            ("a 1 1", "there is a node `a` already"),
        ] {
            let list = Topology::List { file: Some("nodes.txt".to_owned()), nodes: format!("a 0 0\n{line}") };
            let (_, problem) = list.lay().err().unwrap();
            assert!(problem.contains(told), "{problem}");
        }
    }

    #[test]
    fn random_places_lie_in_their_square_and_follow_from_their_seed() {
        let random = |seed| Topology::Random { nodes: 200, side: Length(50_000), seed }.lay().unwrap().places;
        assert_eq!(random(1), random(1));
        assert_ne!(random(1), random(2));
        assert!(random(1).iter().all(|place| (0..=50_000).contains(&place.x) && (0..=50_000).contains(&place.y)));
    }
}
