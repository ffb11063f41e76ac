//! What the controller that ships does where its preset would go wrong.

use millpond_control::PeerController;
use millpond_live::ControllerChoice;
use millpond_sim::{
    Options, Scenario, run_with,
    scenario::{Controllers, OwnChoice},
};

/// Gives `own:shipped`: the very controller that clients and servers have by default.
struct Shipped;

impl Controllers for Shipped {
    fn own(&self, _choice: &OwnChoice) -> Result<PeerController, String> {
        Ok(ControllerChoice::default().controller())
    }
}

/// One client that makes 100 exchanges over the path of the study `anrw18` with 10 % loss each way, asking a server that
/// repeats stored replies (RFC 7252 §4.5): how many seconds each of twenty runs takes, the fastest first.
fn seconds(controller: &str) -> Vec<u64> {
    let scenario = format!(
        r#"
        [path]
        profile = "nbiot-anrw18"
        [path.uplink]
        loss = {{ kind = "bernoulli", rate = "10 %" }}
        [path.downlink]
        loss = {{ kind = "bernoulli", rate = "10 %" }}
        [[clients]]
        count = 1
        controller = "{controller}"
        exchanges = 100
        max_retransmit = 20
        [server]
        duplicates = "stored"
        "#
    );
    let scenario = Scenario::from_toml(&scenario, "one client").unwrap();
    let mut took: Vec<u64> = (1..=20)
        .map(|seed| {
            let outcome = run_with(&scenario, seed, &Options::default(), &Shipped, || false).unwrap();
            outcome.flows[0].fct_us.expect("all exchanges end") / 1_000_000
        })
        .collect();
    took.sort_unstable();
    took
}

#[test]
fn random_loss_and_stored_replies_do_not_make_the_default_run_away() {
    let (shipped, fixed, believing) = (seconds("own:shipped"), seconds("rfc7252"), seconds("fasor-token"));
    assert!(shipped[19] < 2 * fixed[19], "the slowest of twenty: {} s against {} s", shipped[19], fixed[19]);
    // What the default is kept from.
    assert!(believing[19] > 10 * shipped[19], "{} s against {} s", believing[19], shipped[19]);
}
