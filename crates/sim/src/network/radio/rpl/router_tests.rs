//! RPL at one node, worked out by hand.

use super::{
    super::{Objective, Parameters},
    *,
};

const SETTINGS: Settings = Settings {
    control_traffic: true,
    objective: Objective::Mrhof { threshold: 64 },
    trickle: Parameters { minimum: Span::from_millis(4_096), doublings: 8, redundancy: 10 },
    dis_interval: Span::from_secs(60),
    dao_delay: Span::from_secs(4),
};

const SEED: ChanceSeed = ChanceSeed::new(5);

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// Lets a node be awake until then; what it says when.
fn until(router: &mut Router, seconds: u64) -> Vec<(u64, Node, Message)> {
    let mut said = Vec::new();
    while router.next() <= at(seconds) {
        let (now, mut out) = (router.next(), Vec::new());
        router.wake(now, &SETTINGS, SEED, &mut out);
        said.extend(out.into_iter().map(|(to, message)| (now.as_micros(), to, message)));
    }
    said
}

fn joined() -> Router {
    let mut router = Router::new(at(0), 7, false, &SETTINGS, SEED);
    router.take(at(1), 3, Message::Dio { rank: 256 });
    assert_eq!(router.parent(), None);
    until(&mut router, 1);
    router
}

#[test]
fn a_node_that_hears_nobody_asks_every_minute() {
    for seed in 0..50 {
        let mut router = Router::new(at(0), 7, false, &SETTINGS, ChanceSeed::new(seed));
        let said = until(&mut router, 300);
        // The first after half a minute and five seconds less a random part of a minute, and never within the first second.
        assert!((1_000_000..=35_000_000).contains(&said[0].0), "{said:?}");
        assert!(said.windows(2).all(|pair| pair[1].0 - pair[0].0 == 60_000_000), "{said:?}");
        assert!(said.iter().all(|(_, to, message)| (*to, *message) == (EVERYONE, Message::Dis)));
        assert_eq!((router.rank(), router.parent()), (INFINITE, None));
    }
}

#[test]
fn a_node_joins_by_the_first_dio_then_tells_its_rank_and_that_it_is_there() {
    let mut router = joined();
    // 256 of the root, and a link that nobody has tried.
    assert_eq!((router.parent(), router.rank()), (Some(3), 256 + 640));
    let said = until(&mut router, 9);
    let dio = said.iter().find(|(_, to, message)| (*to, *message) == (EVERYONE, Message::Dio { rank: 896 })).unwrap();
    assert!((3_048_000..5_096_000).contains(&dio.0), "{said:?}");
    let dao = Message::Dao { target: 7, is_path: true };
    let dao = said.iter().find(|(_, to, message)| (*to, *message) == (3, dao)).unwrap();
    assert!((3_000_000..=7_000_000).contains(&dao.0), "{said:?}");
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn every_dio_of_the_parent_asks_for_a_dao_and_those_of_others_do_not() {
    let mut router = joined();
    until(&mut router, 50);
    router.take(at(51), 4, Message::Dio { rank: 256 });
    router.take(at(52), 3, Message::Dio { rank: 256 });
    let daos = until(&mut router, 60).iter().filter(|(_, to, _)| *to == 3).count();
    assert_eq!((daos, router.parent()), (1, Some(3)));
}

#[test]
fn a_parent_whose_link_gets_worse_is_left_and_told_so() {
    let mut router = joined();
    router.take(at(2), 4, Message::Dio { rank: 256 });
    until(&mut router, 30);
    // Both links count 640. After one frame that was given up the first counts 0.9 · 640 + 0.1 · 1280 = 704: as much as the
    // threshold more.
    router.tried(at(30), 3, None);
    let said = until(&mut router, 30);
    assert_eq!((router.parent(), router.rank(), router.switches), (Some(4), 896, 1));
    assert_eq!(said, [(30_000_000, 3, Message::Dao { target: 7, is_path: false })]);
    // The timer has begun anew, so that those below hear of it soon.
    let said = until(&mut router, 35);
    assert!(said.iter().any(|(_, to, message)| *to == EVERYONE && matches!(message, Message::Dio { .. })), "{said:?}");
}

#[test]
fn daos_of_others_make_routes_and_go_on_up() {
    let mut router = joined();
    until(&mut router, 10);
    router.take(at(11), 9, Message::Dao { target: 12, is_path: true });
    let dao = Message::Dao { target: 12, is_path: true };
    assert_eq!(until(&mut router, 11), [(11_000_000, 3, dao)]);
    assert_eq!(router.routes.via(12), Some(9));
    // From above it would be a loop, and of the way to itself a node needs not be told.
    router.take(at(12), 3, Message::Dao { target: 13, is_path: true });
    router.take(at(12), 9, Message::Dao { target: 7, is_path: true });
    until(&mut router, 12);
    assert_eq!((router.routes.via(13), router.routes.via(7)), (None, None));
    // A minute after a No-Path DAO the route is gone, and a node that is above learns of it.
    router.take(at(14), 9, Message::Dao { target: 12, is_path: false });
    let said = until(&mut router, 74);
    let no_path = Message::Dao { target: 12, is_path: false };
    assert!(said.contains(&(74_000_000, 3, no_path)), "{said:?}");
    assert_eq!(router.routes.via(12), None);
}

#[test]
fn a_dis_makes_a_joined_node_speak_soon() {
    let mut router = joined();
    until(&mut router, 200);
    let next = |router: &Router| router.trickle.as_ref().map_or(Instant::NEVER, Trickle::next);
    assert!(next(&router) > at(205));
    router.take(at(200), 4, Message::Dis);
    until(&mut router, 200);
    assert!((at(202)..at(205)).contains(&next(&router)));
}

#[test]
fn the_root_has_no_parent_and_counts_what_it_hears() {
    let mut root = Router::new(at(0), 0, true, &SETTINGS, SEED);
    (0..10).for_each(|node| root.take(at(1), node + 1, Message::Dio { rank: 896 }));
    // Ten are enough for the first interval.
    assert_eq!(until(&mut root, 4), []);
    assert_eq!((root.parent(), root.rank()), (None, 256));
    assert_eq!(until(&mut root, 13).len(), 1);
}
