//! What records of DTLS say: the messages of a run, each in a record with a number of its own, of which nothing but the header
//! can be read. The truth is the diagnosis of the messages themselves.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use millpond_diagnose::{DiagnoseError, Diagnosis, Fitting, Grade, Options, Side, Verdict, diagnose};

use crate::laboratory::{Sight, file, is_request, sights};

const PLAIN: [u8; 2] = 5683_u16.to_be_bytes();
const SECURED: [u8; 2] = 5684_u16.to_be_bytes();

/// A record of DTLS 1.2 with what AES-CCM with a tag of 8 bytes adds.
fn record(kind: u8, epoch: u16, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 0xfe, 0xfd];
    record.extend_from_slice(&epoch.to_be_bytes());
    record.extend_from_slice(&number.to_be_bytes()[2..]);
    record.extend_from_slice(&(payload.len() as u16 + 16).to_be_bytes());
    record.extend_from_slice(&[0; 8]);
    // Encrypted: it says nothing.
    record.extend(payload.iter().map(|byte| byte ^ 0xa5));
    record.extend_from_slice(&[0; 8]);
    record
}

/// The same packets with their messages in records, numbered by their senders.
/// A packet that comes is the latest of its copies that left so many microseconds before; without losses they come in order.
fn secured(plain: &[Sight], delay: Option<i64>) -> Vec<Sight> {
    let mut numbers: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut under_way: BTreeMap<Vec<u8>, VecDeque<(i64, u64)>> = BTreeMap::new();
    plain
        .iter()
        .map(|sight| {
            let (message, from) = (&sight.bytes[28..], sight.bytes[12..16].to_vec());
            let to = sight.bytes[16..20].to_vec();
            let leaves = sight.at_server != is_request(&sight.bytes);
            let known = under_way.entry(sight.bytes.clone()).or_default();
            let number = if leaves {
                let next = numbers.entry([from, to].concat()).or_default();
                *next += 1;
                known.push_back((sight.time, *next));
                *next
            } else {
                let can_be = |left: &(i64, u64)| delay.is_some_and(|delay| left.0 <= sight.time - delay);
                let at = known.iter().rposition(can_be).unwrap_or_default();
                known.drain(..=at).next_back().unwrap().1
            };
            let record = record(23, 1, number, message);
            let mut bytes = sight.bytes[..28].to_vec();
            bytes[2..4].copy_from_slice(&(28 + record.len() as u16).to_be_bytes());
            bytes[24..26].copy_from_slice(&(8 + record.len() as u16).to_be_bytes());
            for port in [20, 22] {
                if bytes[port..port + 2] == PLAIN {
                    bytes[port..port + 2].copy_from_slice(&SECURED);
                }
            }
            bytes.extend_from_slice(&record);
            Sight { bytes, ..sight.clone() }
        })
        .collect()
}

/// Of each transmission, by its device and time: whether it was sent again, and the verdict.
type Told = BTreeMap<(IpAddr, i64), Label>;
type Label = (bool, Verdict);

fn told(sights: &[Sight], at_server: bool) -> (Diagnosis, Told) {
    let side = Some(if at_server { Side::Server } else { Side::Devices });
    let mut told = Told::new();
    let found = diagnose([&file(sights, at_server)[..]], &Options { side, ..Options::default() }, &mut |row| {
        told.insert((row.client.ip(), row.time), (row.number > 1, row.judged.verdict));
    });
    (found.unwrap(), told)
}

fn scenario(asking: &str, rate: &str, delay: &str, loss: &str) -> String {
    let link = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"1000 kB\"\nloss = {loss}\n");
    let clients = "[[clients]]\ncount = 60\ncontroller = \"rfc7252\"\ntoken_length = 2\n";
    format!("{clients}{asking}\n[path.uplink]\n{link}[path.downlink]\n{link}[run]\nuntil = \"3 h\"\n")
}

const LOSS: &str = "{ kind = \"bernoulli\", rate = 0.1 }";

/// Lossy loops, loops whose round trip is longer than the first timer, and pauses: precision and recall of what is told to be sent
/// again, at the server and at the devices.
#[test]
fn retransmissions_of_records_are_guessed_by_size_and_time() {
    let loops = "exchanges = 30\nstart_spread = \"20 s\"";
    let pauses =
        "exchanges = 20\nworkload = { kind = \"continuous\", think = { kind = \"exponential\", mean = \"20 s\" } }";
    for (asking, rate, delay, loss, at_server, at_devices) in [
        (loops, "60 kbit/s", "100 ms", LOSS, (0.98, 0.8), (0.99, 0.99)),
        (loops, "20 kbit/s", "700 ms", "\"none\"", (0.9, 0.95), (0.99, 0.99)),
        (pauses, "60 kbit/s", "100 ms", LOSS, (0.6, 0.75), (0.98, 0.99)),
    ] {
        let plain = sights(&scenario(asking, rate, delay, loss), 1);
        let coded = secured(&plain, (loss == LOSS).then_some(100_000));
        for (is_server, (precision, recall)) in [(true, at_server), (false, at_devices)] {
            let ((clear, truth), (found, guessed)) = (told(&plain, is_server), told(&coded, is_server));
            assert_eq!((truth.len(), clear.transmissions), (guessed.len(), found.transmissions));
            let count = |of: &dyn Fn(&Label, &Label) -> bool| {
                truth.iter().filter(|&(key, is)| of(is, &guessed[key])).count() as f64
            };
            let (resent, seen) = (count(&|is, _| is.0), count(&|_, told| told.0));
            let right = count(&|is, told| is.0 && told.0);
            let known = count(&|is, told| is.0 && told.0 && [is.1, told.1].iter().all(|of| *of != Verdict::Unknown));
            let alike = count(&|is, told| is.0 && told.0 && told.1 == is.1 && is.1 != Verdict::Unknown);
            assert!(
                resent > 100.0 && right >= precision * seen && right >= recall * resent,
                "{right} of {resent}, {seen}"
            );
            assert!(alike >= 0.99 * known && known > 50.0, "{alike} of {known}");
        }
    }
}

#[test]
fn what_is_guessed_is_told_and_never_exact() {
    let plain = sights(&scenario("exchanges = 30\nstart_spread = \"20 s\"", "60 kbit/s", "100 ms", LOSS), 1);
    let coded = secured(&plain, Some(100_000));
    let sent =
        coded.iter().filter(|sight| !sight.at_server && sight.bytes[16..20] == [10, 255, 255, 254]).count() as f64;
    let came =
        coded.iter().filter(|sight| sight.at_server && sight.bytes[16..20] == [10, 255, 255, 254]).count() as f64;
    let (found, _) = told(&coded, true);
    let path = &found.path;
    for figure in [&path.uplink.rate_bps, &path.downlink.rate_bps, &path.uplink.loss, &path.base_rtt_s] {
        assert_ne!(figure.grade, Grade::Exact, "{figure:?}");
    }
    // Numbers of records show what was lost before the server.
    let lost = path.uplink.loss.value.unwrap();
    assert!(
        (lost - (1.0 - came / sent)).abs() < 0.003 && path.uplink.loss.because.contains("numbers"),
        "{lost} {came} of {sent}"
    );
    assert_eq!((found.timers.ack_timeout_s.grade, found.presets.verdict), (Grade::Unknown, Fitting::Unknown));
    assert!(found.doubts.iter().any(|doubt| doubt.contains("are DTLS: exchanges are guessed")), "{:?}", found.doubts);
    let mut most = 0.0_f64;
    let options = Options { side: Some(Side::Server), ..Options::default() };
    diagnose([&file(&coded, true)[..]], &options, &mut |row| {
        if row.number > 1 {
            most = most.max(row.judged.confidence);
        }
    })
    .unwrap();
    assert!(most > 0.0 && most <= 0.6, "{most}");
}

#[test]
fn handshakes_alone_are_no_messages() {
    let plain = sights(&scenario("exchanges = 2", "60 kbit/s", "100 ms", "\"none\""), 1);
    let mut coded = secured(&plain, None);
    for sight in &mut coded {
        sight.bytes[28] = 22;
    }
    let refused = diagnose([&file(&coded, true)[..]], &Options::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(&refused, DiagnoseError::NoCoap(seen) if seen.contains("DTLS")), "{refused}");
}
