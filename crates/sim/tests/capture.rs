//! Captures of runs, read back block by block and, where it is installed, by tshark.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::process::Command;

/// The blocks of the file: type and content.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let length = word(bytes, 4) as usize;
        assert_eq!((length % 4, word(bytes, length - 4) as usize), (0, length), "the length stands at both ends");
        blocks.push((word(bytes, 0), &bytes[8..length - 4]));
        bytes = &bytes[length..];
    }
    blocks
}

/// A run over both transports with losses of both kinds.
fn run_with_losses() -> millpond_sim::Outcome {
    let text = r#"
        [path.uplink]
        rate = "60 kbit/s"
        delay = "215 ms"
        queue = "2500 B"
        loss = { kind = "bernoulli", rate = 0.05 }
        [path.downlink]
        rate = "30 kbit/s"
        delay = "415 ms"
        queue = "1200 B"
        loss = { kind = "bernoulli", rate = 0.05 }
        [server]
        payload = "5000 B"
        [[clients]]
        count = 1
        exchanges = 2
        workload = "random"
        batch = { from = 1, to = 1 }
        transport = "tcp"
        [[clients]]
        count = 1
        exchanges = 1
        controller = "rfc7252"
        max_retransmit = 20
        transfer = { kind = "blocks", size = "256 B" }
    "#;
    let scenario = millpond_sim::Scenario::from_toml(text, "test").unwrap();
    let options = millpond_sim::Options { capture: true, ..millpond_sim::Options::default() };
    millpond_sim::run(&scenario, 3, &options, || false).unwrap()
}

#[test]
fn a_run_shows_every_packet_at_both_ends() {
    let outcome = run_with_losses();
    let file = outcome.capture.unwrap();
    let packets: Vec<_> =
        blocks(&file).into_iter().filter(|(kind, _)| *kind == 6).map(|(_, content)| content).collect();
    let sum = |count: fn(&millpond_sim::LinkRow) -> u64| outcome.links.iter().map(count).sum::<u64>() as usize;
    assert_eq!(packets.len(), sum(|row| row.offered_packets) + sum(|row| row.delivered_packets));
    let told = |why: &str| packets.iter().filter(|p| p.windows(why.len()).any(|w| w == why.as_bytes())).count();
    assert_eq!(told("lost: queue full"), sum(|row| row.dropped_queue_packets));
    assert_eq!(told("lost: radio"), sum(|row| row.dropped_radio_packets));
    assert!(told("lost: queue full") > 0 && told("lost: radio") > 0);
    let word = |packet: &[u8], at: usize| u64::from(u32::from_le_bytes(packet[at..at + 4].try_into().unwrap()));
    let time = |packet: &[u8]| (word(packet, 4) << 32) | word(packet, 8);
    // Each packet is as long in the file as it was on the path.
    let captured: u64 = packets.iter().map(|packet| word(packet, 12)).sum();
    let carried: u64 = outcome.links.iter().map(|row| row.offered_bytes + row.delivered_bytes).sum();
    assert_eq!(captured, carried);
    assert!(packets.windows(2).all(|pair| time(pair[0]) <= time(pair[1])), "packets stand in the order of time");
}

/// Wireshark follows the streams of bytes as the clients saw them: it recognises what was sent again, and nothing is malformed
/// but the options of settings, which its dissector does not know.
#[test]
fn wireshark_reads_a_run() {
    let file = |name| std::env::temp_dir().join(format!("millpond-{name}-{}.pcapng", std::process::id()));
    let (all, clients) = (file("run"), file("clients"));
    std::fs::write(&all, run_with_losses().capture.unwrap()).unwrap();
    let one_end = ["-Y", "frame.interface_id == 0", "-w"];
    let cut = Command::new("tshark").arg("-r").arg(&all).args(one_end).arg(&clients).output();
    std::fs::remove_file(&all).unwrap();
    if cut.is_err() {
        println!("left out: tshark is not installed");
        return;
    }
    let count = |filter: &str| {
        let shown = Command::new("tshark").arg("-r").arg(&clients).args(["-Y", filter]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).lines().count()
    };
    let counts = [
        "coap",
        "tcp.analysis.retransmission",
        "tcp.flags.syn == 1",
        "tcp.options.mss_val == 256 && tcp.options.wscale.shift == 0 && ip.len == 48",
        "_ws.malformed && coap.code != 225",
    ]
    .map(count);
    std::fs::remove_file(&clients).unwrap();
    let [coap, repeated, opening, with_options, malformed] = counts;
    assert!(coap > 40 && repeated > 0 && opening >= 4, "{coap} {repeated} {opening}");
    assert_eq!((with_options, malformed), (opening, 0));
}
