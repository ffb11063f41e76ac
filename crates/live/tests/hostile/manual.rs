//! The manual names tests for attacks: they are there. What it tells to depend on is enough for its programs.

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
    for member in ["cli", "coap", "emulate", "gateway", "live"] {
        code(&crates.join(member).join("src"), &mut all);
        code(&crates.join(member).join("tests"), &mut all);
    }
    let manual = fs::read_to_string(crates.join("../docs/appendix/attacks.md")).unwrap();
    let rows: Vec<&str> =
        manual.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack |")).collect();
    assert!(rows.len() >= 20, "{} rows", rows.len());
    for row in rows {
        let mut names = row.split('`').skip(1).step_by(2).peekable();
        assert!(names.peek().is_some(), "no test: {row}");
        for name in names {
            assert!(all.contains(&format!("fn {name}()")), "no test is called {name}");
        }
    }
}

/// Its programs are compiled as tests, where this crate's own features of tokio are there as well.
#[test]
fn programs_in_the_manual_need_no_feature_of_tokio_that_it_does_not_name() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let manual = ["live.md", "security.md"].map(|page| fs::read_to_string(docs.join(page)).unwrap()).concat();
    let depends = manual.lines().find(|line| line.starts_with("tokio = {")).unwrap();
    for (used, feature) in [("#[tokio::main", "macros"), ("#[tokio::main]", "rt-multi-thread")] {
        assert!(!manual.contains(used) || depends.contains(&format!("\"{feature}\"")), "{feature}: {depends}");
    }
}
