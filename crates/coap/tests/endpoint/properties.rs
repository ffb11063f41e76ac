//! Random sessions.

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_session_keeps_every_promise(bytes in vec(any::<u8>(), 0..1500)) {
        super::session::check(&bytes);
    }

    /// Mostly requests, deliveries and answers, so that exchanges get far.
    #[test]
    fn friendly_sessions_keep_every_promise(
        shape in any::<[u8; 2]>(),
        steps in vec((prop_oneof![Just(0_u8), Just(2), Just(3), Just(4), Just(5), Just(7), Just(10), Just(11), Just(15)],
            any::<bool>(), any::<[u8; 2]>()), 0..400),
    ) {
        let mut bytes = shape.to_vec();
        for (operation, who, more) in steps {
            bytes.push(operation | u8::from(who) << 7);
            let length = if matches!(operation, 10 | 11) { 2 } else { 1 };
            bytes.extend_from_slice(&more[..length]);
        }
        super::session::check(&bytes);
    }

    /// The controllers of both sides, or of one, wish something; else as above.
    #[test]
    fn sessions_with_wishes_keep_every_promise(
        shape in any::<[u8; 2]>(),
        wishes in any::<[u8; 2]>(),
        steps in vec((prop_oneof![4 => Just(0_u8), 2 => Just(2), 6 => 3_u8..9, 3 => Just(10), 3 => Just(11),
            1 => 13_u8..15, 6 => Just(15)], any::<bool>(), any::<[u8; 3]>()), 0..300),
    ) {
        let mut bytes = shape.to_vec();
        bytes.extend([14, 0, 0, wishes[0] | 1, 0x8e, 0, 0, wishes[1] | 1]);
        for (operation, who, more) in steps {
            bytes.push(operation | u8::from(who) << 7);
            let length = match operation { 8 | 10 | 11 => 2, 14 => 3, 12 => 0, _ => 1 };
            bytes.extend_from_slice(&more[..length]);
        }
        super::session::check(&bytes);
    }

    /// Subscriptions, claims, pings and further responses among the rest.
    #[test]
    fn sessions_with_further_responses_keep_every_promise(
        shape in any::<[u8; 2]>(),
        steps in vec((prop_oneof![1 => Just(0_u8), 4 => 3_u8..6, 1 => Just(7), 1 => Just(10),
            8 => 0x70_u8..0x80, 2 => Just(15)],
            any::<bool>(), any::<[u8; 2]>()), 0..400),
    ) {
        let mut bytes = shape.to_vec();
        for (operation, who, more) in steps {
            bytes.push(operation | u8::from(who) << 7);
            let length = if operation == 10 { 2 } else { 1 };
            bytes.extend_from_slice(&more[..length]);
        }
        super::session::check(&bytes);
    }

    /// Datagrams of all sorts to an endpoint that has something under way.
    #[test]
    fn no_datagram_does_harm(datagrams in vec(vec(any::<u8>(), 0..40), 0..60)) {
        let mut bytes = vec![0, 0x64, 0, 0];
        for datagram in datagrams {
            bytes.extend([9, datagram.len() as u8]);
            bytes.extend(datagram);
            bytes.push(0);
        }
        super::session::check(&bytes);
    }
}
