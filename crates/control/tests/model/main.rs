//! What holds for every controller, whatever it is asked.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

mod convergence;
mod corpus;
mod play;

use millpond_control::{ChanceSeed, Preset, Purpose};

const LISTS: u64 = 60;
const LENGTH: u32 = 4_000;

/// The bytes of one list, the same every time.
fn list(preset: Preset, seed: u64, settings: bool) -> Vec<u8> {
    let [low, high] = preset.id().to_le_bytes();
    let changes = if settings { None } else { Some(0) };
    let random = (0..LENGTH).map(|at| {
        let word = ChanceSeed::new(seed).part(u64::from(preset.id())).at(Purpose::Workload, [at, 0, 0, 0]);
        word.word().to_le_bytes()[3]
    });
    [low, high].into_iter().chain(changes).chain(random).collect()
}

#[test]
fn any_list_of_calls_keeps_the_contract() {
    for preset in Preset::all() {
        for seed in 0..LISTS {
            let answers = play::check(&list(preset, seed, seed % 3 > 0));
            assert!(answers.len() > 100, "{preset:?}: the list must not be empty talk");
        }
    }
}

#[test]
fn the_same_calls_give_the_same_answers() {
    for preset in Preset::all() {
        let play = |seed| play::check(&list(preset, seed, true));
        assert!(play(3) == play(3), "{preset:?}");
        assert!(play(3) != play(4), "{preset:?}");
    }
}
