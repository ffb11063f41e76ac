//! What makes a diagnosis less sure, each with what it makes unsure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::exchanges::{Chapter, Oddities};
use crate::figure::{Figure, Grade};
use crate::ordered::{quantile, sorted};
use crate::reading::{Census, Ending};
use crate::words::counted;

/// A doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub text: String,
    /// No figure of the path is exact.
    pub is_grave: bool,
}

impl Doubt {
    pub(crate) fn grave(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_grave: true }
    }

    pub(crate) fn light(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_grave: false }
    }
}

/// What chapters make unsure, each doubt once; so many that a long capture has no more than can be read.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    of: Vec<Doubt>,
    left_out: u64,
}

impl Doubts {
    const MOST: usize = 64;

    pub(crate) fn extend(&mut self, doubts: impl IntoIterator<Item = Doubt>) {
        for doubt in doubts {
            if self.of.contains(&doubt) {
                continue;
            }
            if self.of.len() < Self::MOST {
                self.of.push(doubt);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// All of them, and what was left out of a long capture: figures of so many chapters, and doubts.
    pub(crate) fn all(mut self, chapters_left_out: u64) -> Vec<Doubt> {
        if chapters_left_out > 0 {
            let later = counted(chapters_left_out, "part", "parts");
            self.of.push(Doubt::grave(format!("its figures are of the first parts: {later} came later")));
        }
        if self.left_out > 0 {
            let more = counted(self.left_out, "more doubt", "more doubts");
            self.of.push(Doubt::light(format!("{more} about later parts, not told here")));
        }
        self.of
    }
}

/// An exact figure of a capture with grave doubts is an estimate.
pub(crate) fn demote(figure: &mut Figure) {
    if figure.grade == Grade::Exact {
        figure.grade = Grade::Estimate;
        figure.because.push_str("; not exact for the doubts below");
    }
}

/// Doubts about the files themselves.
pub(crate) fn of_reading(oddities: &Oddities, census: &Census, endings: &[Ending]) -> Vec<Doubt> {
    let late = oddities.orphans - oddities.early_orphans;
    let begins_within = oddities.early_orphans > 2 && late < 2 * oddities.early_orphans;
    let all = [
        endings
            .contains(&Ending::Cut)
            .then(|| Doubt::light("the file is cut in the middle of a packet: it was read up to there")),
        endings
            .contains(&Ending::Broken)
            .then(|| Doubt::light("the file has bytes that are no packet: it was read up to there")),
        (oddities.steps_back > 0).then(|| {
            Doubt::grave(format!(
                "times run backwards {}, by {:.3} s at most: they were put right by that, and buffers, loops and losses \
                 around them are unsure",
                counted(oddities.steps_back, "time", "times"),
                oddities.longest_step_back
            ))
        }),
        (oddities.doubled > 0).then(|| {
            Doubt::light(format!(
                "{} captured twice within a millisecond, and counted once",
                counted(oddities.doubled, "packet was", "packets were")
            ))
        }),
        begins_within.then(|| {
            Doubt::grave(format!(
                "the capture begins within exchanges: {} before it",
                counted(oddities.early_orphans, "answer belongs to a request", "answers belong to requests")
            ))
        }),
        (late > 2 && late * 200 > census.coap).then(|| {
            Doubt::grave(format!(
                "{} no request in the capture: packets were lost while capturing, which reads as loss of the path, or \
                 requests take another way",
                counted(late, "answer has", "answers have")
            ))
        }),
        (oddities.beyond_peers > 0).then(|| {
            Doubt::grave(format!(
                "{} not judged",
                counted(
                    oddities.beyond_peers,
                    "packet of an endpoint beyond the first 262,144 is",
                    "packets of endpoints beyond the first 262,144 are",
                )
            ))
        }),
        (census.malformed > 0).then(|| {
            Doubt::light(counted(
                census.malformed,
                "datagram on a port of CoAP is no message of CoAP",
                "datagrams on a port of CoAP are no messages of CoAP",
            ))
        }),
        dtls(census),
        (census.coap_over_tcp > 0).then(|| {
            Doubt::light(counted(
                census.coap_over_tcp,
                "segment is CoAP over TCP, which is not judged",
                "segments are CoAP over TCP, which is not judged",
            ))
        }),
    ];
    all.into_iter().flatten().collect()
}

/// Of a few records among messages figures are as sure as without them.
fn dtls(census: &Census) -> Option<Doubt> {
    let (all, judged) = (census.dtls, census.dtls_judged);
    if judged == 0 {
        let handshakes =
            || counted(all, "packet is DTLS, and carries no message", "packets are DTLS, and carry no message");
        return (all > 0).then(|| Doubt::light(handshakes()));
    }
    let text = format!(
        "{}: exchanges are guessed by sizes and times alone, as of devices that have one request open and the timers of RFC \
         7252; what is no retransmission, what is asked and other timers are not seen",
        counted(all, "packet is DTLS", "packets are DTLS")
    );
    Some(Doubt { text, is_grave: judged * 100 > census.coap })
}

/// Doubts about what a chapter holds, whatever its side.
pub(crate) fn of_chapter(chapter: &Chapter, is_first: bool) -> Vec<Doubt> {
    let all = [silence(chapter), several_open(chapter), if is_first { synchronous_start(chapter) } else { None }];
    all.into_iter().flatten().collect()
}

/// A clock that steps forward, or an outage: nothing for far longer than ever else in a busy time.
fn silence(chapter: &Chapter) -> Option<Doubt> {
    const AROUND: f64 = 10.0;
    const BUSY: usize = 40;
    let packets = &chapter.packets;
    let mut silences = packets.windows(2).enumerate().filter_map(|(at, pair)| {
        let gap = pair[1].at - pair[0].at;
        if gap < 1.0 {
            return None;
        }
        let from = packets.partition_point(|packet| packet.at < pair[0].at - AROUND);
        let to = packets.partition_point(|packet| packet.at <= pair[1].at + AROUND);
        if at - from < BUSY || to - at - 1 < BUSY {
            return None;
        }
        let longest =
            |part: &[crate::exchanges::Passed]| part.windows(2).map(|pair| pair[1].at - pair[0].at).fold(0.0, f64::max);
        let usual = longest(&packets[from..=at]).max(longest(&packets[at + 1..to]));
        (gap > 8.0 * usual).then_some((pair[0].at, gap))
    });
    let (at, gap) = silences.next()?;
    // Devices that report together are silent again and again.
    silences.next().is_none().then(|| {
        Doubt::grave(format!(
            "a silence of {gap:.1} s after {at:.1} s in a busy time: the clock stepped forward, or all was lost; buffers \
             and loops around it are unsure"
        ))
    })
}

fn several_open(chapter: &Chapter) -> Option<Doubt> {
    chapter.several_open().map(|exchanges| {
        Doubt::grave(format!(
            "{} another: NSTART above 1, or several devices behind one port; loops and message IDs say less",
            counted(
                exchanges as u64,
                "exchange goes on after its endpoint began",
                "exchanges go on after their endpoint began",
            )
        ))
    })
}

fn synchronous_start(chapter: &Chapter) -> Option<Doubt> {
    let began = sorted(chapter.peers().filter_map(|mut exchanges| exchanges.next().map(|first| first.began())));
    let spread = quantile(&began, 0.95)? - began.first()?;
    (began.len() >= 20 && spread < 2.0).then(|| {
        Doubt::light(format!(
            "{} devices began within {spread:.1} s: such a start ends well or badly by chance, and one capture shows one \
             case",
            began.len()
        ))
    })
}

/// Addresses whose ports follow one another: a NAT that forgets, so that devices are counted more than once.
pub(crate) fn of_ports(used: impl Iterator<Item = (SocketAddr, f64, f64)>) -> Option<Doubt> {
    let mut by_address: BTreeMap<IpAddr, Vec<(f64, f64)>> = BTreeMap::new();
    for (device, from, to) in used {
        by_address.entry(device.ip()).or_default().push((from, to));
    }
    for ports in by_address.values_mut() {
        ports.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let one_after_the_other =
        by_address.values().filter(|ports| ports.len() > 1 && ports.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    let count = one_after_the_other.count();
    (count > 0).then(|| {
        Doubt::light(format!(
            "{} several ports one after the other: devices may be counted too often",
            counted(count as u64, "address has", "addresses have")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_are_told_once_and_no_more_than_can_be_read() {
        let mut doubts = Doubts::default();
        for _ in 0..2 {
            doubts.extend((0..Doubts::MOST).map(|number| Doubt::light(number.to_string())));
        }
        assert_eq!(doubts.of.len(), Doubts::MOST);
        doubts.extend((0..3).map(|number| Doubt::light(format!("another {number}"))));
        let all = doubts.all(2);
        assert_eq!(all.len(), Doubts::MOST + 2);
        assert_eq!(all[Doubts::MOST].text, "its figures are of the first parts: 2 parts came later");
        assert_eq!(all[Doubts::MOST + 1].text, "3 more doubts about later parts, not told here");
    }
}
