//! Which of several contexts a client takes: that of the server that is asked, or else one that names none.

use std::fmt::Write as _;

use millpond_live::{Authority, Uri};

use super::Looked;
use crate::failure::Failure;

/// Files that are told, where none is for who is asked.
const TOLD: usize = 3;

/// The context for who this URI asks: that which names its port, else that which names its host alone, else that which names nobody.
///
/// # Errors
/// Two are for one server, or none is for this one.
pub(super) fn choose(mut among: Vec<Looked>, uri: &Uri) -> Result<Looked, Failure> {
    for (number, one) in among.iter().enumerate() {
        let same = among.iter().take(number).find(|earlier| earlier.server() == one.server());
        if let Some(earlier) = same {
            let (place, other) = (one.place(), earlier.place());
            return Err(Failure::Usage(match one.server() {
                Some(server) => format!("{place}: for {server}, as {other} is; leave one of the two out"),
                None => {
                    format!("{place}: for any server, as {other} is; name one's (`server = \"HOST\"`), or leave it out")
                }
            }));
        }
    }
    let rank = |one: &Looked| match one.server() {
        None => Some(0),
        Some(server) if server.is_of(uri) => Some(1 + u8::from(server.port().is_some())),
        Some(_) => None,
    };
    let fitting = among.iter().enumerate().filter_map(|(place, one)| Some((rank(one)?, place)));
    match fitting.max() {
        Some((_, place)) => Ok(among.swap_remove(place)),
        None => Err(Failure::Usage(none_fits(&among, uri))),
    }
}

fn none_fits(among: &[Looked], uri: &Uri) -> String {
    let asked = Authority::of(uri);
    let mut told = format!("no context for {asked}: ");
    for (number, one) in among.iter().take(TOLD).enumerate() {
        let between = if number == 0 { "" } else { ", " };
        if let Some(server) = one.server() {
            // A string takes whatever is written.
            let _ = write!(told, "{between}{} is for {server}", one.place());
        }
    }
    if among.len() > TOLD {
        let _ = write!(told, ", and {} more are for others", among.len() - TOLD);
    }
    told + &format!("; give --oscore a file with `server = \"{asked}\"`, or without `server`")
}
