//! Datagrams that are none.

use super::*;

#[test]
fn no_bytes_break_a_session_or_its_table() {
    let ours = Authority::new();
    let security = serving(&[("a", "b")]).certificate(ours.certificate("here.example", GOOD));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chance = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for client in [shared("a", "b"), ClientSecurity::new().trust(ours.anchors())] {
        for round in 0..10 {
            let mut trial = Trial::new(&client, &security);
            trial.connect("here.example");
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for _ in 0..40 {
                trial.run(60_000);
                seen.extend(trial.path.iter().map(|(.., datagram)| datagram.clone()));
                let mut datagram = match (seen.len(), chance(4)) {
                    (0, _) | (_, 0) => (0..chance(90)).map(|_| u8::try_from(chance(256)).unwrap()).collect(),
                    (len, _) => seen[chance(len)].clone(),
                };
                for _ in 0..chance(4) {
                    let len = datagram.len();
                    if len > 0 {
                        datagram[chance(len)] = u8::try_from(chance(256)).unwrap();
                    }
                }
                datagram.truncate(if chance(3) == 0 { chance(datagram.len() + 1) } else { datagram.len() });
                trial.path.push((trial.now + 1, chance(2) == 0, datagram));
            }
            trial.path.clear();
            if round % 2 == 0 && matches!(trial.link("here.example"), Link::Established(_)) {
                assert!(trial.talks("here.example"), "what stood stands");
            }
        }
    }
}
