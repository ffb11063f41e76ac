//! Bursts under controllers that hold non-confirmable messages back, and make some of them confirmable.

use alloc::{boxed::Box, vec::Vec};

use crate::block::BlockSize;
use crate::block::robust::BurstOptions;
use crate::message::{Code, number};
use millpond_control::Preset;

use super::world::{BurstAsk, CLIENT, SERVER, World, at, body, lost_in_turn};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

/// Both ways, under every controller there is: the body arrives, whichever of its messages become confirmable.
#[test]
fn bodies_arrive_under_every_controller() {
    for preset in Preset::all() {
        for upload in [false, true] {
            let mut world = World::under(BurstOptions::RFC9177, preset).serving(body(45 * 16));
            let bytes = body(45 * 16);
            if upload {
                world.application = Box::new(|_, bytes| (Code::CHANGED, Vec::new(), bytes.to_vec()));
                world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B16 });
            } else {
                world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
            }
            world.run(at(1_000_000));
            assert_eq!(world.answer().2, bytes, "{preset:?}, upload {upload}");
        }
    }
}

/// CoCoA sends no more than one such message in each RTO, and every eighth as a confirmable one. Any one of all these
/// messages may be lost.
#[test]
fn any_one_message_may_be_lost_under_a_pacing_controller() {
    let preset = Preset::all().find(|preset| preset.name() == "cocoa-03").unwrap();
    for upload in [false, true] {
        lost_in_turn(|| {
            let mut world = World::under(BurstOptions::RFC9177, preset).serving(body(23 * 16));
            let bytes = body(23 * 16);
            if upload {
                world.application = Box::new(|_, _| (Code::CHANGED, Vec::new(), Vec::new()));
                world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B16 });
            } else {
                world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
            }
            world
        });
    }
    let mut world = World::under(BurstOptions::RFC9177, preset).serving(body(23 * 16));
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
    world.run(at(1_000_000));
    assert!(world.said(SERVER).iter().any(|said| said.starts_with("CON 2.05")), "{:?}", world.said(SERVER));
    assert!(world.said(CLIENT).iter().any(|said| said.starts_with("ACK")));
}
