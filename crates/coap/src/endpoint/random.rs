use millpond_control::{ChanceSeed, Cx, Instant, Purpose};

/// Where the words of chance come from that controllers are given.
///
/// Words are addressed by node, peer (in the order of first contact), message to that peer, and what the call is about,
/// so that two controllers in the same experiment meet the same random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    pub(super) seed: ChanceSeed,
    pub(super) node: u32,
}

/// What a call to a controller is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum About {
    /// Copy number so and so, 0 being the first.
    Copy(u8),
    Reply,
    End,
    Admission,
    Feedback,
    LastWait,
}

impl Random {
    /// What a controller may know in a call about message `number` to peer `whose`, while so many messages wait on its path.
    /// `open` includes that message.
    #[inline]
    pub(super) fn cx(self, (whose, waiting): (u32, u32), now: Instant, open: u16, number: u32, about: About) -> Cx {
        let word = match about {
            About::Copy(copy) => u32::from(copy),
            About::Reply => 0x100,
            About::End => 0x101,
            About::Admission => 0x102,
            About::Feedback => 0x103,
            About::LastWait => 0x104,
        };
        let chance = self.seed.at(Purpose::Dither, [self.node, whose, number, word]);
        Cx { now, chance, open, waiting: u16::try_from(waiting).unwrap_or(u16::MAX) }
    }
}
