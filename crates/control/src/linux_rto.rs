//! The retransmission timer of Linux TCP, without its floor, in the frame of Eclipse Californium.
//!
//! P. Sarolahti, A. Kuznetsov: "Congestion Control in Linux TCP", USENIX 2002, and `tcp_rtt_estimator` of the Linux
//! kernel. A fall of the round-trip time hardly raises the variation, and the variation in use falls only at the end
//! of a window. CoAP has no windows: every sample closes one.

use crate::{
    estimator::{GRANULARITY, Share},
    evidence::{ExactRtt, Sample},
    frame::{Frame, Framed, Timer},
    layout::laid_out,
    preset::presets,
    setting::{Place, Setting, SettingConflict, choices},
    time::{Span, thousandth},
};

/// One peer under the timer of Linux.
pub type LinuxRto = Framed<Linux>;

/// Which of two published orders of steps is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The kernel's: the deviation is measured from the average before the sample.
    Kernel,
    /// Californium's: from the average after it, in whole milliseconds, every product rounded by itself.
    Californium,
}

laid_out!(Order = Kernel | Californium);

choices! { Order: Order::Kernel, Order::Californium; }

/// What a sample left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Averages {
    srtt: Span,
    /// The smoothed deviation.
    mdev: Span,
    /// The largest of these in the window.
    mdev_max: Span,
    /// The variation in use.
    rttvar: Span,
}

laid_out!(Averages { srtt, mdev, mdev_max, rttvar });

/// The timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linux {
    /// No window counts for less variation than this.
    pub least_variation: Span,
    /// In which order the steps are taken.
    pub order: Order,
    averages: Averages,
    /// Whether there was a sample yet.
    known: bool,
}

laid_out!(Linux { least_variation, order, averages, known });

impl Linux {
    /// As in the kernel, where 50 ms is a quarter of the shortest timeout (TCP_RTO_MIN, 200 ms).
    pub const KERNEL: Self = Self {
        least_variation: Span::from_millis(50),
        order: Order::Kernel,
        averages: Averages::NOTHING,
        known: false,
    };
}

presets! { LinuxRto {
    LINUX_RTO = 64, (Frame::CALIFORNIUM_1, Linux::KERNEL), {
        name: "linux-rto",
        label: "Linux RTO",
        source: "Congestion Control in Linux TCP (USENIX 2002) and the Linux kernel, in the frame of Eclipse Californium",
        readings: &["D2", "D3", "D5", "D9", "E11", "E14"],
        summary: "the timer of Linux TCP: slow to believe in less variation, doubled waits kept until a clean answer",
    };
} }

impl Timer for Linux {
    fn timeout(&self) -> Option<Span> {
        self.known().map(|averages| averages.srtt.plus(averages.rttvar.times(4).max(GRANULARITY)))
    }

    /// A sample is an exchange without retransmissions.
    fn learn(&mut self, sample: Sample) {
        if let (Some(rtt), 0) = (sample.exact(), sample.retransmissions()) {
            (self.averages, self.known) = (self.after(rtt), true);
        }
    }

    fn averages(&self) -> Option<(Span, Span)> {
        self.known().map(|averages| (averages.srtt, averages.rttvar))
    }
}

impl Linux {
    fn known(&self) -> Option<Averages> {
        self.known.then_some(self.averages)
    }

    fn after(&self, rtt: ExactRtt) -> Averages {
        match self.order {
            Order::Kernel => self.by_kernel(rtt.span()),
            Order::Californium => self.by_californium(rtt.span()),
        }
    }

    fn by_kernel(&self, rtt: Span) -> Averages {
        let Some(Averages { srtt, mdev, mdev_max, rttvar }) = self.known() else {
            return first(rtt, self.least_variation);
        };
        let gain = if rtt.plus(mdev) < srtt { Share::THIRTY_SECOND } else { Share::QUARTER };
        let mdev = gain.blend(mdev, srtt.distance(rtt));
        let (mdev_max, rttvar) = (mdev_max.max(mdev), rttvar.max(mdev));
        Averages {
            srtt: Share::EIGHTH.blend(srtt, rtt),
            mdev,
            mdev_max: self.least_variation,
            rttvar: if mdev_max < rttvar { Share::QUARTER.blend(rttvar, mdev_max) } else { rttvar },
        }
    }

    fn by_californium(&self, rtt: Span) -> Averages {
        let (rtt, least) = (whole_millis(rtt), whole_millis(self.least_variation));
        let Some(averages) = self.known().map(|averages| averages.map(whole_millis)) else {
            return first(rtt, least).map(millis);
        };
        let Averages { srtt, mdev, mdev_max, rttvar } = averages;
        let srtt = Share::EIGHTH.blend(srtt, rtt);
        let gain = if rtt.plus(mdev) < srtt { Share::THIRTY_SECOND } else { Share::QUARTER };
        let mdev = gain.blend(mdev, Span::ZERO).plus(gain.blend(Span::ZERO, srtt.distance(rtt)));
        let (mdev_max, mut rttvar) = (mdev_max.max(mdev), rttvar.max(mdev));
        if mdev_max < rttvar {
            let gain = Share::QUARTER;
            rttvar = gain.blend(rttvar, Span::ZERO).plus(gain.blend(Span::ZERO, mdev_max));
        }
        Averages { srtt, mdev, mdev_max: least, rttvar }.map(millis)
    }
}

impl Averages {
    const NOTHING: Self = Self { srtt: Span::ZERO, mdev: Span::ZERO, mdev_max: Span::ZERO, rttvar: Span::ZERO };

    fn map(self, change: impl Fn(Span) -> Span) -> Self {
        let Self { srtt, mdev, mdev_max, rttvar } = self;
        Self { srtt: change(srtt), mdev: change(mdev), mdev_max: change(mdev_max), rttvar: change(rttvar) }
    }
}

fn first(rtt: Span, least: Span) -> Averages {
    let mdev = Share::HALF.blend(Span::ZERO, rtt);
    let rttvar = mdev.max(least);
    Averages { srtt: rtt, mdev, mdev_max: rttvar, rttvar }
}

/// As many units as the length has milliseconds, rounded.
fn whole_millis(span: Span) -> Span {
    Span::from_micros(thousandth(span.as_micros().saturating_add(500)))
}

/// As many milliseconds as the length has units.
fn millis(count: Span) -> Span {
    count.times(1_000)
}

impl LinuxRto {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = {
        let [a, b, c, d, e, f, g] = Frame::SETTINGS;
        &[a, b, c, d, e, f, g, Setting::LeastVariation, Setting::LinuxOrder]
    };

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::LeastVariation => Place::Time(&mut self.timer.least_variation),
            Setting::LinuxOrder => Place::Choice(&mut self.timer.order),
            _ => return self.frame_mut().place(setting),
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        self.frame().check()
    }
}
