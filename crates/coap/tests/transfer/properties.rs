//! Sessions of all sorts.

use proptest::{collection::vec, prelude::*};

proptest! {
    #[test]
    fn every_session_keeps_every_promise(bytes in vec(any::<u8>(), 0..1500)) {
        super::session::check(&bytes);
    }

    /// Mostly asks, deliveries and answers, and no damage, so that bodies become whole.
    #[test]
    fn friendly_sessions_keep_every_promise(
        shape in any::<[u8; 2]>(),
        steps in vec((prop_oneof![2 => Just(0_u8), 16 => Just(3), 1 => Just(7), 1 => Just(8), 5 => Just(11),
            1 => Just(12), 1 => Just(14), 3 => Just(15)], any::<bool>(), any::<[u8; 2]>()), 0..600),
    ) {
        let mut bytes = shape.to_vec();
        for (operation, who, more) in steps {
            bytes.push(operation | u8::from(who) << 7);
            let length = match operation {
                0 if more[0] & 3 != 0 => 2,
                14 => 0,
                _ => 1,
            };
            bytes.extend_from_slice(&more[..length]);
        }
        super::session::check(&bytes);
    }
}
