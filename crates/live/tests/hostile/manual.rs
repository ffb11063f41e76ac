//! The manual names tests for attacks: they are there.

use std::{fs, path::Path};

/// All code of the workspace that may hold tests.
fn code(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_attack_in_the_manual_has_its_tests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = String::new();
    for member in ["cli", "coap", "live"] {
        code(&crates.join(member).join("src"), &mut all);
        code(&crates.join(member).join("tests"), &mut all);
    }
    let manual = fs::read_to_string(crates.join("../docs/security.md")).unwrap();
    let table = manual.split_once("| attack | tests |").unwrap().1;
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() >= 20, "{} rows", rows.len());
    for row in rows {
        let mut names = row.split('`').skip(1).step_by(2).peekable();
        assert!(names.peek().is_some(), "no test: {row}");
        for name in names {
            assert!(all.contains(&format!("fn {name}()")), "no test is called {name}");
        }
    }
}
