//! What must hold for any bytes that are given as a capture.

use millpond_diagnose::{DiagnoseError, Options, Side, Verdict, anonymise, diagnose};

/// It is judged, or refused in one line; what is counted agrees with what is told of each transmission; and what is given
/// away has the same messages.
pub(crate) fn check(bytes: &[u8]) {
    // The bytes choose from where they are looked at.
    let sum: usize = bytes.iter().map(|&byte| usize::from(byte)).sum();
    let side = [None, Some(Side::Server), Some(Side::Devices)][sum % 3];
    let options = Options { side, ports: vec![61_616] };
    let (mut rows, mut judged) = (0_u64, [0_u64; 3]);
    let told = diagnose([bytes], &options, &mut |row| {
        assert!(row.number > 0 && (0.0..=1.0).contains(&row.judged.confidence), "{row:?}");
        rows += 1;
        match row.judged.verdict {
            Verdict::First => {}
            Verdict::Spurious => judged[0] += 1,
            Verdict::Needed => judged[1] += 1,
            Verdict::Unknown => judged[2] += 1,
        }
    });
    let lines = match told {
        Ok(found) => {
            let of = found.retransmissions;
            assert_eq!((found.transmissions, [of.spurious, of.needed, of.unknown]), (rows, judged));
            assert!(found.goodput_ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio)), "{found:?}");
            found.doubts
        }
        Err(error) => vec![error.to_string()],
    };
    assert!(lines.iter().all(|line| !line.contains(['\n', '\r'])), "{lines:?}");
    let mut away = Vec::new();
    match anonymise([bytes], &Options::default(), &mut away) {
        Ok(done) => {
            let again = anonymise([&away[..]], &Options::default(), &mut Vec::new());
            assert!(again.is_ok_and(|again| again.written == done.written && again.left_out == 0));
        }
        Err(DiagnoseError::Write(error)) => panic!("{error}"),
        Err(error) => assert!(!error.to_string().contains(['\n', '\r']), "{error}"),
    }
}
