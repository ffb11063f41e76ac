//! The example runs, and what it prints is a result.

use std::process::Command;

#[test]
fn every_controller_has_a_row() {
    let ran = Command::new(env!("CARGO_BIN_EXE_own-controller")).output().expect("the example starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).expect("the example prints text");
    let rows: Vec<_> = printed.lines().skip(1).collect();
    let names = ["rfc7252 (max-wait 60 s)", "cocoa-03", "example:patient", "example:patient (times 2)"];
    assert_eq!(rows.len(), names.len(), "{printed}");
    for (row, name) in rows.iter().zip(names) {
        let copies: f64 = row.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok()).expect("a number");
        assert!(row.starts_with(&format!("{name} ")), "{row}");
        assert!(copies >= 50.0, "{row}");
    }
}
