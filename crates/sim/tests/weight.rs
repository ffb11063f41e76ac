//! What a client of a run weighs at the peak: runs of very many clients must fit into memory.

mod counting;
mod path;

use millpond_control::{Checked, PeerController};
use millpond_sim::{Options, Scenario, run};

/// Debug builds watch each peer's controller, which takes some bytes.
const WATCHED: usize =
    if cfg!(debug_assertions) { size_of::<Checked<PeerController>>() - size_of::<PeerController>() } else { 0 };

fn peak(clients: u32) -> usize {
    let path = path::path("1410000 B");
    let group = format!("count = {clients}\nexchanges = 1\ncontroller = \"cocoa-03\"\nmax_retransmit = 20");
    let server = "[server]\nduplicates = \"afresh\"";
    let text = format!("{path}\n[[clients]]\n{group}\nstart_spread = \"60 min\"\n{server}\n");
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    counting::peak(|| run(&scenario, 1, &Options::default(), || false).unwrap())
}

/// The peak of so many clients that make so many requests each.
fn peak_of_exchanges(count: u32, exchanges: u32) -> usize {
    let path = "[path.uplink]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"1 MB\"\n\
                [path.downlink]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"1 MB\"";
    let group = format!("count = {count}\nexchanges = {exchanges}\ncontroller = \"cocoa-03\"");
    let text = format!("{path}\n[[clients]]\n{group}\n[server]\nduplicates = \"afresh\"\n");
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    counting::peak(|| run(&scenario, 1, &Options::default(), || false).unwrap())
}

/// Endpoint, application, the server's entry, ledger, and result row. The only test of this program, because the heap
/// is that of all of it.
#[test]
fn a_client_weighs_one_kibibyte() {
    let (few, many) = (peak(1_000), peak(6_000));
    let each = (many - few) / 5_000;
    assert!(each <= 1_024 + WATCHED, "{each} bytes, of which {WATCHED} are for watching its controller");
    // What it is at least: the test would notice if the heap were not counted.
    assert!(each > 512, "{each} bytes");
    // Nor does it weigh more the more it does. What grows are the times at which blocks of message IDs were used last, as
    // long as those lie within EXCHANGE_LIFETIME.
    let each = |exchanges| (peak_of_exchanges(3, exchanges) - peak_of_exchanges(1, exchanges)) / 2;
    let (short, long) = (each(50), each(100_000));
    assert!(long < short + 512, "{short} bytes with 50 exchanges, {long} with 100000");
}
