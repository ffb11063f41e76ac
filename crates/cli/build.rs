//! Which commit is built, for `--version` and for manifests of results: from whichever of the places below knows it. Without any, as in
//! a plain copy of the sources, there is none, and nothing fails. Nor is there one in debug builds, which would be made anew with every commit.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-env-changed=MILLPOND_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let found = env::var("MILLPOND_COMMIT").ok().or_else(|| {
        is_release.then(|| checkout(&package).or_else(|| archive(&package)).or_else(|| packed(&package))).flatten()
    });
    if let Some(commit) =
        found.filter(|commit| commit.len() >= 40 && commit.starts_with(|c: char| c.is_ascii_hexdigit()))
    {
        println!("cargo:rustc-env=MILLPOND_BUILT_FROM={commit}");
    }
}

/// From git, where the package lies in a checkout of its own repository; a `+` behind it stands for sources that differ.
fn checkout(package: &str) -> Option<String> {
    let root = fs::canonicalize(Path::new(package).join("../..")).ok()?;
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // a copy of the sources may lie within the checkout of something else
    if fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()? != root {
        return None;
    }
    let sources = ["crates", "python/millpond", "Cargo.toml", "Cargo.lock"];
    let head = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    // each by name: among them lie the module that this build makes, and bytecode, whose change is none of the sources
    let tracked = git(&[&["ls-files", "--"], &sources[..]].concat())?;
    for changes in tracked.lines().chain([head.as_str()]) {
        println!("cargo:rerun-if-changed={}", root.join(changes).display());
    }
    let changed = git(&[&["status", "--porcelain", "--"], &sources[..]].concat())?;
    Some(git(&["rev-parse", "HEAD"])? + if changed.is_empty() { "" } else { "+" })
}

/// From what `git archive`, and a forge's archive of a tag, writes into `commit.txt`.
fn archive(package: &str) -> Option<String> {
    Some(fs::read_to_string(Path::new(package).join("commit.txt")).ok()?.trim().to_owned())
}

/// From what `cargo package` puts beside the sources.
fn packed(package: &str) -> Option<String> {
    let told = fs::read_to_string(Path::new(package).join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = told.split_once("\"sha1\": \"")?;
    Some(rest.split('"').next()?.to_owned())
}
