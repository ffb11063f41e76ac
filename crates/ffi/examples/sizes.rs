//! What the library costs: bytes of code for each algorithm alone and for all of them, on a small processor and on
//! this machine, and whether a panic could be left in it. `make sizes` runs this; its tables stand in
//! `docs/reports/sizes.md`. With `--bounds`, as `make lint-c` runs it, only what is promised there is looked at.
//!
//! Each row is an image of its own: the library built with one set of features, linked without the rest of a program,
//! every call a root, unused sections dropped. Counted is every section that is loaded (code, constants, unwind
//! tables). Nothing but a plain Rust toolchain is needed.

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, elf::SHF_ALLOC};
use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// A processor with neither operating system nor division.
const SMALLEST: &str = "thumbv6m-none-eabi";

const ALGORITHMS: [&str; 10] = [
    "rfc7252",
    "cocoa",
    "fasor",
    "linux-rto",
    "peak-hopper",
    "basic-rto",
    "coap-plus-rate",
    "bbr-con",
    "tfrc-non",
    "calm",
];

/// What every message layer calls.
const CALLS: [&str; 8] = [
    "millpond_peer_init",
    "millpond_admit",
    "millpond_on_start",
    "millpond_on_timeout",
    "millpond_on_reply",
    "millpond_on_end",
    "millpond_on_plain_send",
    "millpond_wishes",
];

/// What a program calls besides that changes settings and shows what a controller knows.
const SETTINGS: [&str; 2] = ["millpond_peer_set", "millpond_view"];

/// What a client calls besides that keeps its base round trips over a restart.
const MEMORY: [&str; 2] = ["millpond_peer_base_rtt", "millpond_peer_recall"];

/// What a server calls that follows the rules of `docs/calm-server.md`, and nothing else.
const SERVER: [&str; 8] = [
    "millpond_calm_path_init",
    "millpond_calm_peer_init",
    "millpond_calm_asked",
    "millpond_calm_answered",
    "millpond_calm_asked_again",
    "millpond_calm_asked_late",
    "millpond_calm_pings",
    "millpond_calm_rejected",
];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One image, and the bytes that it may have at one level.
struct Row {
    name: &'static str,
    features: String,
    calls: Vec<&'static str>,
    /// Whether it is linked once more with [`SETTINGS`].
    settings: bool,
    promised: Option<(&'static str, u64)>,
}

/// The images of a table.
fn rows() -> Vec<Row> {
    let row = |name, algorithms: &[&str], more: &[&'static str], promised| {
        let calls = [&CALLS[..], more].concat();
        Row { name, features: algorithms.join(","), calls, settings: true, promised }
    };
    let [timers @ .., _, _, _, calm] = &ALGORITHMS;
    let mut rows: Vec<_> = ALGORITHMS.iter().map(|algorithm| row(*algorithm, &[*algorithm], &[], None)).collect();
    rows.push(row("calm that remembers", &[*calm], &MEMORY, Some(("s", 4_096))));
    rows.push(row("the first six", timers, &[], None));
    rows.push(row("these and calm", &[timers, &[*calm][..]].concat(), &[], Some(("z", 9_216))));
    rows.push(row("all", &ALGORITHMS, &[], None));
    // The calls of a server need no algorithm, but a library has one.
    let (features, calls, promised) = ("rfc7252".to_owned(), SERVER.to_vec(), Some(("s", 2_816)));
    rows.push(Row { name: "calm server", features, calls, settings: false, promised });
    rows
}

/// What one image holds.
struct Image {
    bytes: u64,
    /// Part of them: division, copying and the like, which the compiler brings along.
    run_time: u64,
    /// Memory that is there all the time.
    data: u64,
    panics: Vec<String>,
}

fn main() -> ExitCode {
    match tables() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sizes: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints everything; false if there is a panic or a static variable somewhere, or more than was promised.
fn tables() -> Outcome<bool> {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let host = run(Command::new(&rustc).arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?.to_owned();
    let only_bounds = env::args().any(|argument| argument == "--bounds");
    let sysroot = run(Command::new(&rustc).args(["--print", "sysroot"]))?;
    let installed = Path::new(sysroot.trim()).join("lib/rustlib");
    let linker = installed.join(&host).join("bin/rust-lld");

    if !only_bounds {
        records();
    }
    let mut clean = true;
    let targets = [SMALLEST, &host];
    for target in targets.into_iter().take(if only_bounds { 1 } else { 2 }) {
        if !installed.join(target).exists() {
            println!("left out: {target} (rustup target add {target})\n");
            continue;
        }
        if cfg!(not(target_os = "linux")) && target == host {
            println!("left out: {target} (the images are read as ELF files)\n");
            continue;
        }
        for level in ["s", "z"] {
            let mut rows = rows();
            rows.retain(|row| !only_bounds || row.promised.is_some_and(|(promised, _)| promised == level));
            clean &= table(target, level, &linker, &rows)?;
        }
        if !only_bounds && target == SMALLEST {
            added(target, &linker)?;
        }
    }
    Ok(clean)
}

/// Memory per peer and exchange.
fn records() {
    println!("| record | bytes |\n|---|---|");
    println!("| `millpond_peer` | {} |", size_of::<millpond::millpond_peer>());
    println!("| `millpond_exchange` | {} |", size_of::<millpond::millpond_exchange>());
    println!("| `millpond_calm_peer` | {} |", size_of::<millpond::millpond_calm_peer>());
    println!("| `millpond_calm_path` | {} |\n", size_of::<millpond::millpond_calm_path>());
}

/// One table; false if there is a panic or a static variable in one of its images, or more than was promised.
fn table(target: &str, level: &str, linker: &Path, rows: &[Row]) -> Outcome<bool> {
    println!("{target}, opt-level {level}:\n");
    println!(
        "| algorithms | calls | run-time in that | with settings and numbers | run-time in that | panic symbols |"
    );
    println!("|---|---|---|---|---|---|");
    let mut clean = true;
    for Row { name, features, calls, settings, promised } in rows {
        let library = build(target, level, features)?;
        let mut images = vec![link(&library, linker, calls)?];
        if *settings {
            images.push(link(&library, linker, &[calls, &SETTINGS[..]].concat())?);
        }
        let bytes = |place: usize| {
            images.get(place).map_or_else(|| "- | -".into(), |image| format!("{} | {}", image.bytes, image.run_time))
        };
        let panics: Vec<_> = images.iter().flat_map(|image| &image.panics).collect();
        let told = if panics.is_empty() { "none".to_owned() } else { panics.len().to_string() };
        println!("| {name} | {} | {} | {told} |", bytes(0), bytes(1));
        let data: u64 = images.iter().map(|image| image.data).sum();
        let most = promised.filter(|(at, _)| target == SMALLEST && *at == level).map_or(u64::MAX, |(_, most)| most);
        let is_large = images[0].bytes > most;
        for (is_wrong, complaint) in [
            (!panics.is_empty(), format!("can panic: {panics:?}")),
            (data > 0, format!("has {data} bytes of static memory")),
            (is_large, format!("takes {} bytes and may take {most}", images[0].bytes)),
        ] {
            if is_wrong {
                eprintln!("sizes: {name} {complaint}");
                clean = false;
            }
        }
    }
    println!();
    Ok(clean)
}

/// What each algorithm adds to all others, and what several share: at the level that is the smaller one then.
fn added(target: &str, linker: &Path) -> Outcome<()> {
    println!("{target}, opt-level z, in a library of all algorithms:\n");
    println!("| algorithm | adds |\n|---|---|");
    let bytes = |algorithms: &[&str]| -> Outcome<i64> {
        Ok(link(&build(target, "z", &algorithms.join(","))?, linker, &CALLS)?.bytes.cast_signed())
    };
    let all = bytes(&ALGORITHMS)?;
    let mut shared = all;
    for algorithm in ALGORITHMS {
        let others: Vec<_> = ALGORITHMS.into_iter().filter(|other| *other != algorithm).collect();
        // Less than nothing where the compiler chooses better with it than without.
        let adds = all - bytes(&others)?;
        shared -= adds;
        println!("| {algorithm} | {adds} |");
    }
    println!("| shared by two or more | {shared} |\n");
    Ok(())
}

/// Builds the static library with these features and nothing else.
fn build(target: &str, level: &str, features: &str) -> Outcome<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let folder = target_folder();
    run(Command::new(cargo)
        .args(["rustc", "--quiet", "--locked", "--package", "millpond-ffi", "--lib", "--crate-type", "staticlib"])
        .args(["--profile", "small", "--no-default-features", "--features", features, "--target", target])
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_PROFILE_SMALL_OPT_LEVEL", level))?;
    Ok(folder.join(target).join("small/libmillpond.a"))
}

/// Apart from other builds, so that neither waits for the other or undoes it.
fn target_folder() -> PathBuf {
    // This program is in <target>/<profile>/examples.
    let here = env::current_exe().ok();
    let target = here.as_deref().and_then(|path| path.ancestors().nth(3)).unwrap_or(Path::new("target"));
    target.join("sizes")
}

/// Links the calls out of the library and looks at the image.
fn link(library: &Path, linker: &Path, roots: &[&str]) -> Outcome<Image> {
    let image = library.with_extension("image");
    let mut command = Command::new(linker);
    command.args(["-flavor", "gnu", "--gc-sections", "--entry", "millpond_version"]);
    // What a C program has anyway may stay open; padding to whole pages is not ours.
    command.args(["-z", "norelro"]).arg("--unresolved-symbols=ignore-all").arg("-o").arg(&image);
    for root in roots {
        command.args(["--undefined", root]);
    }
    run(command.arg(library))?;
    let bytes = fs::read(&image)?;
    let file = object::File::parse(&*bytes)?;
    let mut found = Image { bytes: 0, run_time: 0, data: 0, panics: Vec::new() };
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        if sh_flags & u64::from(SHF_ALLOC) == 0 {
            continue;
        }
        // Where code may lie anywhere, constants with addresses in them are filled in when it is loaded.
        let constant =
            [".data.rel.ro", ".got"].iter().any(|name| section.name().is_ok_and(|own| own.starts_with(name)));
        match section.kind() {
            SectionKind::UninitializedData | SectionKind::Data if !constant => found.data += section.size(),
            _ => found.bytes += section.size(),
        }
    }
    for symbol in file.symbols() {
        let name = symbol.name()?;
        if ["panic", "unwind_resume", "eh_personality"].iter().any(|word| name.contains(word)) {
            found.panics.push(name.to_owned());
        }
        let of_compiler =
            ["compiler_builtins", "__aeabi_", "__udivmod", "__divmod"].iter().any(|word| name.contains(word));
        if symbol.is_definition() && (of_compiler || ["memcpy", "memset", "memmove", "memcmp"].contains(&name)) {
            found.run_time += symbol.size();
        }
    }
    Ok(found)
}

/// What a command prints; its complaints if it fails.
fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
