//! From a direction as the scenario says it to a link as it is built.

use millpond_control::ChanceSeed;
use millpond_link::{
    Config, ConfigError, Counted, Jitter, Limit, Link, Loss, LossAt, LossOf, Order, Probability, Rate,
};

use crate::{Direction, QueueLimit};

impl Direction {
    /// An empty link that is as this direction describes, and follows its trace if it has one. `number` names it.
    ///
    /// # Errors
    /// What a link cannot be made of: of a direction that was made by hand.
    pub fn link<P>(&self, seed: ChanceSeed, number: u32) -> Result<Link<P>, ConfigError> {
        let link = Link::new(&self.config(), seed, number)?;
        let built = self.trace.as_ref().and_then(|trace| Some((trace.built()?, trace.ahead(seed))));
        Ok(match built {
            Some((trace, ahead)) => link.follow(trace, ahead),
            None => link,
        })
    }

    /// The link that this direction describes. Probabilities were checked when the path was read; one that lies outside
    /// 0 to 1 all the same (a path made by hand) counts as never.
    #[must_use]
    pub fn config(&self) -> Config {
        let queue = match self.queue {
            QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
            QueueLimit::Packets(packets) => Limit::Packets(packets),
        };
        Config {
            queue_counts: match self.queue_counts {
                crate::QueueCounts::Waiting => Counted::Waiting,
                crate::QueueCounts::All => Counted::All,
            },
            jitter: self.jitter.as_ref().map_or(Jitter::None, |jitter| Jitter::Uniform {
                from: jitter.from.span(),
                to: jitter.to.span(),
                order: match jitter.order {
                    crate::Order::Preserved => Order::Preserved,
                    crate::Order::Free => Order::Free,
                },
            }),
            aqm: self.aqm.model(self.mtu),
            ecn: self.aqm.marks(),
            overhead: i32::try_from(self.overhead.0).unwrap_or(i32::MAX),
            loss: self.loss.model(),
            loss_of: match self.loss_of {
                crate::LossOf::Link => LossOf::Link,
                crate::LossOf::EachClient => LossOf::Radio,
            },
            loss_at: match self.loss_at {
                crate::LossAt::AfterRate => LossAt::AfterRate,
                crate::LossAt::BeforeRate => LossAt::BeforeRate,
            },
            ..Config::plain(Rate::BitsPerSecond(self.rate.0), self.delay.span(), queue)
        }
    }
}

impl crate::Loss {
    fn model(&self) -> Loss {
        let chance = |fraction: f64| Probability::from_f64(fraction).unwrap_or(Probability::ZERO);
        match *self {
            Self::None => Loss::None,
            Self::Bernoulli { rate } => Loss::Bernoulli { rate: chance(rate) },
            Self::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => Loss::Markov {
                good_loss: chance(good_loss),
                bad_loss: chance(bad_loss),
                good_dwell: good_dwell.span().max(Loss::SHORTEST_DWELL),
                bad_dwell: bad_dwell.span().max(Loss::SHORTEST_DWELL),
            },
            Self::GilbertElliott { p, r, one_minus_h, one_minus_k } => Loss::GilbertElliott {
                p: chance(p),
                r: chance(r),
                one_minus_h: chance(one_minus_h),
                one_minus_k: chance(one_minus_k),
            },
        }
    }
}
