//! What makes a diagnosis less sure, each with what it makes unsure.

use crate::exchanges::Oddities;
use crate::reading::{Census, Ending};

/// Doubts about the files themselves.
pub(crate) fn of_reading(oddities: &Oddities, census: &Census, endings: &[Ending]) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut doubt = |applies: bool, text: String| {
        if applies {
            doubts.push(text);
        }
    };
    doubt(
        endings.contains(&Ending::Cut),
        "the file is cut in the middle of a packet: it was read up to there".to_owned(),
    );
    doubt(
        endings.contains(&Ending::Broken),
        "the file has bytes that are no packet: it was read up to there".to_owned(),
    );
    doubt(
        oddities.steps_back > 0,
        format!(
            "times run backwards {} times, by {:.3} s at most: they were put right by that, and buffers, loops and losses \
             around them are unsure",
            oddities.steps_back, oddities.longest_step_back
        ),
    );
    doubt(
        oddities.doubled > 0,
        format!("{} packets were captured twice within a millisecond, and counted once", oddities.doubled),
    );
    doubt(
        oddities.early_orphans > 2,
        format!(
            "the capture begins within exchanges: {} answers belong to requests before it; first transmissions may be \
             missing there",
            oddities.early_orphans
        ),
    );
    let late = oddities.orphans - oddities.early_orphans;
    doubt(
        late > 2 && late * 200 > census.coap,
        format!(
            "{late} answers have no request in the capture: packets were lost while capturing, or requests take another way"
        ),
    );
    doubt(
        oddities.beyond_peers > 0,
        format!("{} packets of endpoints beyond the first 262,144 are not judged", oddities.beyond_peers),
    );
    doubt(census.malformed > 0, format!("{} datagrams on a port of CoAP are no messages of CoAP", census.malformed));
    doubt(census.dtls > 0, format!("{} packets are DTLS, which is not judged", census.dtls));
    doubt(
        census.coap_over_tcp > 0,
        format!("{} segments are CoAP over TCP, which is not judged", census.coap_over_tcp),
    );
    doubts
}
