//! What the rate control of CoAP+ is made of, and what its paper leaves open.

use crate::{
    backoff::Exponential,
    dither::Dither,
    layout::laid_out,
    rate::Rate,
    setting::{Place, Setting, choices},
    time::Span,
};

/// A choice between ways to read the paper. The first one is taken where nothing is said.
macro_rules! reading {
    ($(#[$doc:meta])* $name:ident { $($(#[$one_doc:meta])* $one:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$one_doc])* $one,)+
        }

        laid_out!($name = $($one)|+);
        choices! { $name: $($name::$one),+; }
    };
}

reading! {
    /// What marks a loss.
    LossSignal {
        /// A message that was given up: 62 to 93 s after it left.
        Exhausted,
        /// The first timeout of a message.
        FirstTimeout,
    }
}

reading! {
    /// How fast the start-up is.
    StartRate {
        /// Four messages in the first round-trip time.
        FourPerRtt,
        /// One message in the first round-trip time.
        OnePerRtt,
        /// One message a second.
        OnePerSecond,
    }
}

reading! {
    /// Where the first round-trip time comes from.
    FirstRtt {
        /// From a message that goes ahead alone.
        Probe,
        /// It is taken to be ACK_TIMEOUT, and the start-up begins at once.
        Default,
    }
}

reading! {
    /// Which round-trip time counts.
    Smoothing {
        /// SRTT, with a gain of 1/8.
        Eighth,
        /// That of the last sample.
        Last,
    }
}

reading! {
    /// What becomes of a message of the start-up that is not answered within it.
    Leftover {
        /// It is retransmitted after its end, as any other.
        Retransmitted,
        /// It is lost.
        Dropped,
    }
}

reading! {
    /// What bounds the messages under way beside NSTART.
    Window {
        /// Nothing.
        None,
        /// α·T·λ, equation (19) of the paper, and at least one.
        AlphaTLambda,
    }
}

reading! {
    /// Over how long the answers of the start-up are counted.
    StartCount {
        /// Over all of it, two round-trip times.
        TwoRtts,
        /// As if they had all come within one.
        OneRtt,
    }
}

reading! {
    /// When the rate grows by one message per round-trip time.
    Increase {
        /// Once in a round-trip time without a loss.
        PerRtt,
        /// With every answer, which doubles what is under way in every round-trip time.
        PerAck,
    }
}

reading! {
    /// The lowest rate.
    Slowest {
        /// One message in 64 s.
        Fixed,
        /// One message in each timeout.
        PerTimeout,
    }
}

reading! {
    /// Whether messages leave for the first time before a loss is answered.
    InBackoff {
        /// None does.
        Held,
        /// They leave at the lowered rate.
        Paced,
    }
}

reading! {
    /// What the first wait of a message is drawn from.
    Timer {
        /// ACK_TIMEOUT.
        Fixed,
        /// The timeout of RFC 6298, from 1 s to 60 s.
        Rfc6298,
    }
}

reading! {
    /// Which answer ends the backoff.
    EndsBackoff {
        /// Any.
        AnyAnswer,
        /// One to a message that was sent once.
        CleanAnswer,
    }
}

/// What the controller is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// ACK_TIMEOUT: the first wait before dithering.
    pub ack_timeout: Span,
    /// How the first wait is spread.
    pub dither: Dither,
    /// A loss leaves α/(1+α) of the rate; α in thousandths.
    pub alpha: u16,
    /// A backoff that lasts longer begins anew.
    pub restart_after: Span,
    /// What marks a loss.
    pub loss_signal: LossSignal,
    /// How fast the start-up is.
    pub start_rate: StartRate,
    /// Where the first round-trip time comes from.
    pub first_rtt: FirstRtt,
    /// Which round-trip time counts.
    pub smoothing: Smoothing,
    /// What becomes of what the start-up leaves over.
    pub leftover: Leftover,
    /// What bounds the messages under way.
    pub window: Window,
    /// Over how long the answers of the start-up are counted.
    pub start_count: StartCount,
    /// When the rate grows.
    pub increase: Increase,
    /// The lowest rate.
    pub slowest: Slowest,
    /// Whether messages leave in the backoff.
    pub in_backoff: InBackoff,
    /// What first waits are drawn from.
    pub timer: Timer,
    /// What ends the backoff.
    pub ends_backoff: EndsBackoff,
}

laid_out!(Parts {
    ack_timeout,
    dither,
    alpha,
    restart_after,
    loss_signal,
    start_rate,
    first_rtt,
    smoothing,
    leftover,
    window,
    start_count,
    increase,
    slowest,
    in_backoff,
    timer,
    ends_backoff
});

impl Parts {
    /// The paper as printed, with the readings P1 to P16. α = 1, two round-trip times of start-up and the timer of RFC
    /// 7252 are printed; MAX_TRANSMIT_WAIT of 93 s stands for its "maximum transaction time".
    pub const PRINTED: Self = Self {
        ack_timeout: Span::from_secs(2),
        dither: Dither::RFC7252,
        alpha: 1_000,
        restart_after: Span::from_secs(93),
        loss_signal: LossSignal::Exhausted,
        start_rate: StartRate::FourPerRtt,
        first_rtt: FirstRtt::Probe,
        smoothing: Smoothing::Eighth,
        leftover: Leftover::Retransmitted,
        window: Window::None,
        start_count: StartCount::TwoRtts,
        increase: Increase::PerRtt,
        slowest: Slowest::Fixed,
        in_backoff: InBackoff::Held,
        timer: Timer::Fixed,
        ends_backoff: EndsBackoff::AnyAnswer,
    };

    /// The same with a loss marked by the first timeout, without which nothing is slowed down within a minute.
    pub const RESPONSIVE: Self = Self { loss_signal: LossSignal::FirstTimeout, ..Self::PRINTED };

    /// Four retransmissions, each after twice as long (section 3.2 of the paper).
    pub(super) const BACKOFF: Exponential = Exponential::RFC7252;
    /// Round-trip times of the start-up (section 3.2).
    pub(super) const START_RTTS: u32 = 2;
    /// No rate is higher: a bound, not in the paper.
    pub(super) const FASTEST: Rate = Rate::per(1_000, Span::from_secs(1));
    const SLOWEST: Rate = Rate::per(1, Span::from_secs(64));
    /// RFC 6298 §2.4 and §2.5.
    const TIMEOUTS: (Span, Span) = (Span::from_secs(1), Span::from_secs(60));

    /// A rate, held within the bounds.
    pub(super) const fn bounded(&self, rate: Rate) -> Rate {
        let slowest = match self.slowest {
            Slowest::Fixed => Self::SLOWEST,
            Slowest::PerTimeout => Rate::per(1, self.ack_timeout),
        };
        rate.within(slowest, Self::FASTEST)
    }

    /// The rate of the start-up, if a round trip takes so long.
    pub(super) const fn starting(&self, rtt: Span) -> Rate {
        self.bounded(match self.start_rate {
            StartRate::FourPerRtt => Rate::per(4, rtt),
            StartRate::OnePerRtt => Rate::per(1, rtt),
            StartRate::OnePerSecond => Rate::per(1, Span::from_secs(1)),
        })
    }

    /// What a loss leaves of a rate: α/(1+α) of it, equations (25) and (28).
    pub(super) const fn after_loss(&self, rate: Rate) -> Rate {
        self.bounded(rate.scaled(self.alpha as u32, (self.alpha as u32).saturating_add(1_000)))
    }

    /// What first waits are drawn from; `estimate` is the timeout of RFC 6298.
    pub(super) fn base(&self, estimate: Option<Span>) -> Span {
        match (self.timer, estimate) {
            (Timer::Rfc6298, Some(estimate)) => estimate.clamp(Self::TIMEOUTS.0, Self::TIMEOUTS.1),
            _ => self.ack_timeout,
        }
    }

    /// The longest first wait of a message that is not of the start-up.
    pub(super) fn longest_drawn(&self) -> Span {
        let base = match self.timer {
            Timer::Fixed => self.ack_timeout,
            Timer::Rfc6298 => self.ack_timeout.max(Self::TIMEOUTS.1),
        };
        self.dither.longest(base)
    }

    /// The longest that a message of the start-up waits for the start-up to end: twice what others wait at most.
    pub(super) fn longest_start(&self) -> Span {
        self.dither.longest(self.ack_timeout).doubled()
    }

    pub(super) const SETTINGS: &[Setting] = &[
        Setting::AckTimeout,
        Setting::RandomFactor,
        Setting::Alpha,
        Setting::RestartAfter,
        Setting::LossSignal,
        Setting::StartRate,
        Setting::FirstRtt,
        Setting::Smoothing,
        Setting::Leftover,
        Setting::RateWindow,
        Setting::StartCount,
        Setting::Increase,
        Setting::Slowest,
        Setting::InBackoff,
        Setting::RateTimer,
        Setting::EndsBackoff,
    ];

    pub(super) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::AckTimeout => Place::Time(&mut self.ack_timeout),
            Setting::RandomFactor => Place::Factor(&mut self.dither.factor),
            Setting::Alpha => Place::Thousandths(&mut self.alpha),
            Setting::RestartAfter => Place::Time(&mut self.restart_after),
            Setting::LossSignal => Place::Choice(&mut self.loss_signal),
            Setting::StartRate => Place::Choice(&mut self.start_rate),
            Setting::FirstRtt => Place::Choice(&mut self.first_rtt),
            Setting::Smoothing => Place::Choice(&mut self.smoothing),
            Setting::Leftover => Place::Choice(&mut self.leftover),
            Setting::RateWindow => Place::Choice(&mut self.window),
            Setting::StartCount => Place::Choice(&mut self.start_count),
            Setting::Increase => Place::Choice(&mut self.increase),
            Setting::Slowest => Place::Choice(&mut self.slowest),
            Setting::InBackoff => Place::Choice(&mut self.in_backoff),
            Setting::RateTimer => Place::Choice(&mut self.timer),
            Setting::EndsBackoff => Place::Choice(&mut self.ends_backoff),
            _ => return None,
        })
    }
}
