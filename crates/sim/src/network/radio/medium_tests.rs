//! The medium, worked out by hand.

use super::*;
use crate::network::radio::neighbours::{Place, Reach};

/// Nodes in a row at these metres, with the ranges of the source.
fn row(metres: &[i64], delivery: Delivery) -> Medium {
    let places: Vec<Place> = metres.iter().map(|&x| Place { x: x * 1_000, y: 0 }).collect();
    let reach = Reach { transmission: 10_000, interference: 20_000, carrier: 7_900 };
    Medium::new(places.len(), Neighbours::new(&places, reach), delivery, ChanceSeed::new(1))
}

fn perfect(metres: &[i64]) -> Medium {
    row(metres, Delivery::perfect())
}

fn end(air: &mut Medium, from: Node) -> (Fate, Vec<Node>) {
    let mut heard = Vec::new();
    (air.end(from, &mut heard), heard)
}

#[test]
fn an_undisturbed_frame_is_received_by_all_within_ten_metres() {
    let mut air = perfect(&[0, 10, 5, 11]);
    air.begin(0, 1);
    assert!(air.is_receiving(1) && air.is_receiving(2) && !air.is_receiving(3));
    // Only the one at 5 m senses the carrier.
    assert_eq!((air.is_busy(1), air.is_busy(2)), (false, true));
    assert_eq!(end(&mut air, 0), (Fate::Received, vec![1, 2]));
    assert!(!air.is_receiving(1) && !air.is_busy(2));
}

#[test]
fn two_hidden_senders_destroy_both_frames_at_the_node_between_them() {
    let mut air = perfect(&[0, 10, 20]);
    air.begin(0, 1);
    assert!(!air.is_busy(2) && !air.is_receiving(2), "they do not know of each other");
    air.begin(2, 1);
    assert_eq!(end(&mut air, 0), (Fate::Collided, vec![]));
    assert_eq!(end(&mut air, 2), (Fate::Collided, vec![]));
    // Nothing is left of it.
    air.begin(0, 1);
    assert_eq!(end(&mut air, 0), (Fate::Received, vec![1]));
}

#[test]
fn a_second_frame_destroys_the_first_even_if_it_ends_before_it() {
    let mut air = perfect(&[0, 10, 20]);
    air.begin(0, 1);
    air.begin(2, 1);
    assert_eq!(end(&mut air, 2).0, Fate::Collided);
    assert_eq!(end(&mut air, 0).0, Fate::Collided);
}

#[test]
fn whoever_is_beyond_ten_metres_disturbs_and_at_twenty_does_not() {
    for (metres, expected) in [(29, Fate::Collided), (30, Fate::Received)] {
        let mut air = perfect(&[0, 10, metres, metres + 10]);
        air.begin(0, 1);
        air.begin(2, 3);
        assert_eq!(end(&mut air, 0).0, expected, "a disturber at {} m", metres - 10);
        assert_eq!(end(&mut air, 2).0, Fate::Received);
    }
}

#[test]
fn a_disturbed_radio_cannot_lock_on_before_the_disturbance_ends() {
    let mut air = perfect(&[0, 10, 25, 35]);
    air.begin(2, 3);
    air.begin(0, 1);
    assert!(!air.is_receiving(1));
    assert_eq!(end(&mut air, 2).0, Fate::Received);
    // The rest of a frame whose begin was missed is of no use.
    assert!(!air.is_receiving(1));
    assert_eq!(end(&mut air, 0).0, Fate::Collided);
}

#[test]
fn a_radio_that_sends_is_deaf_and_loses_what_it_was_receiving() {
    let mut air = perfect(&[0, 10, 20]);
    air.begin(0, 1);
    air.begin(1, 2);
    assert_eq!(end(&mut air, 0).0, Fate::Deaf);
    air.begin(0, 1);
    assert_eq!(end(&mut air, 0).0, Fate::Deaf);
    assert_eq!(end(&mut air, 1).0, Fate::Received);
}

#[test]
fn a_radio_stays_disturbed_by_what_began_while_it_was_sending() {
    let mut air = perfect(&[0, 10, 20]);
    air.begin(1, 0);
    air.begin(2, 1);
    assert_eq!(end(&mut air, 1).0, Fate::Received);
    air.begin(0, 1);
    assert_eq!(end(&mut air, 0).0, Fate::Collided, "the frame of the third is still in the air");
    assert_eq!(end(&mut air, 2).0, Fate::Deaf);
}

#[test]
fn a_frame_that_the_link_loses_disturbs_as_any_other() {
    let mut air = row(&[0, 10, 20], Delivery::new(vec![0], false));
    air.begin(0, 1);
    assert!(!air.is_receiving(1));
    air.delivery = Delivery::perfect();
    air.begin(2, 1);
    assert_eq!(end(&mut air, 0).0, Fate::Faded);
    assert_eq!(end(&mut air, 2).0, Fate::Collided);
}

/// Who received the frame for everyone that a radio sent, and who did not and why.
fn end_broadcast(air: &mut Medium, from: Node) -> (Vec<Node>, Vec<(Node, Fate)>) {
    let (heard, mut missed) = (end(air, from).1, Vec::new());
    air.missed(from, &mut missed);
    (heard, missed)
}

#[test]
fn a_frame_for_everyone_is_received_or_missed_by_each_as_if_it_were_for_them() {
    // At 0 m the sender, in its reach those at -10, 5 and 10 m; one at 15 m is only disturbed.
    let places = [0, -10, 5, 10, 15, 25];
    let mut air = perfect(&places);
    air.begin_broadcast(0);
    assert_eq!(end_broadcast(&mut air, 0), (vec![1, 2, 3], vec![]));
    // One sends already, and disturbs those behind it, up to 20 m; then the one at 10 m, which was receiving, begins to send.
    let mut air = perfect(&places);
    air.begin(1, 0);
    air.begin_broadcast(0);
    assert_eq!(end(&mut air, 1).0, Fate::Deaf);
    assert_eq!(end_broadcast(&mut air, 0), (vec![3], vec![(1, Fate::Deaf), (2, Fate::Collided)]));
    air.begin_broadcast(0);
    air.begin(3, 4);
    assert_eq!(end_broadcast(&mut air, 0), (vec![1], vec![(3, Fate::Deaf), (2, Fate::Collided)]));
    end(&mut air, 3);
    // Two at once, the second from the other side.
    air.begin_broadcast(0);
    air.begin_broadcast(4);
    let (heard, missed) = end_broadcast(&mut air, 0);
    assert_eq!((heard, missed), (vec![1], vec![(2, Fate::Collided), (3, Fate::Collided)]));
    assert_eq!(end_broadcast(&mut air, 4), (vec![5], vec![(2, Fate::Collided), (3, Fate::Collided)]));
    assert!(air.missed.is_empty());
    // Links lose it as well.
    let mut air = row(&[0, 10], Delivery::new(vec![0], false));
    air.begin_broadcast(0);
    assert_eq!(end_broadcast(&mut air, 0), (vec![], vec![(1, Fate::Faded)]));
}

#[test]
fn ratios_drawn_for_each_frame_lose_as_their_mean() {
    let mut air = row(&[0, 10], Delivery::new(vec![WHOLE * 3 / 4, WHOLE], false));
    let n = 40_000;
    let mut received = 0;
    for _ in 0..n {
        air.begin(0, 1);
        received += u32::from(end(&mut air, 0).0 == Fate::Received);
    }
    let share = f64::from(received) / f64::from(n);
    assert!((share - 0.875).abs() < 4.0 * (0.875_f64 * 0.125 / f64::from(n)).sqrt(), "{share}");
}

#[test]
fn a_link_that_changes_leaves_the_others_as_they_are() {
    for of_links in [false, true] {
        let mut delivery = Delivery::new(vec![WHOLE / 2, WHOLE], of_links);
        let chance = ChanceSeed::new(7);
        let before = [(0, 1), (1, 0), (1, 2)].map(|(a, b)| delivery.ratio(chance, a, b));
        delivery.set([1, 0], WHOLE / 8);
        let after = [(0, 1), (1, 0), (1, 2)].map(|(a, b)| delivery.ratio(chance, a, b));
        assert_eq!(after, [WHOLE / 8, WHOLE / 8, before[2]]);
    }
}

#[test]
fn ratios_of_links_hold_both_ways_and_have_the_mean_of_their_quantiles() {
    let quantiles = vec![WHOLE / 2, WHOLE * 3 / 4, WHOLE];
    let links = Delivery::new(quantiles, true);
    let chance = ChanceSeed::new(7);
    let n = 20_000;
    let mut sum = 0.0;
    for node in 0..n {
        let ratio = links.ratio(chance, node, node + 1);
        assert_eq!(ratio, links.ratio(chance, node + 1, node));
        assert!((WHOLE / 2..=WHOLE).contains(&ratio));
        sum += ratio as f64 / WHOLE as f64;
    }
    let mean = sum / f64::from(n);
    assert!((mean - 0.75).abs() < 4.0 * 0.1444 / f64::from(n).sqrt(), "{mean}");
    assert_eq!(links.mean, WHOLE * 3 / 4);
}
