//! The C programs beside this file, and the worked example: compiled, linked with the library both ways, and run.
//!
//! Wants a C and a C++ compiler: `cc` and `c++`, or what `CC` and `CXX` name. Rust's own linker is one of them.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// How the library comes into the program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Static,
    Shared,
}

#[test]
fn every_call_keeps_what_the_header_says() {
    runs("tests/c/calls.c", &[]);
}

#[test]
fn no_mistake_of_the_caller_does_harm() {
    runs("tests/c/hostile.c", &[]);
}

#[test]
fn a_calm_server_answers_copies_that_are_due() {
    runs("tests/c/calm.c", &[]);
}

#[test]
fn an_old_header_is_refused() {
    runs("tests/c/old_header.c", &[]);
}

#[test]
fn the_call_lists_of_the_oracle_come_out_in_c() {
    let folder = crate_folder().ancestors().nth(2).expect("the crate lies two folders down").join("vectors");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no vectors", folder.display());
    let files: Vec<_> = files.iter().map(|file| file.as_os_str().to_owned()).collect();
    for printed in runs("tests/c/vectors.c", &files) {
        // The count, for those who run this with --nocapture.
        println!("{}", printed.trim_end());
        // Of calm.json all cases but those that leave a rule out; of rfc7252.json those of the RFC, without factors of their own.
        assert!(printed.contains("; 70 cases in calm.c"), "{printed}");
    }
}

#[test]
fn random_call_lists_come_out_alike_in_calm_as_one_file() {
    let lists = env::var_os("MILLPOND_CALM_LISTS").unwrap_or_else(|| "20000".into());
    println!("{}", run("tests/c/calm_random.c", Link::Static, &[lists]).trim_end());
}

#[test]
fn the_worked_example_runs() {
    for printed in runs("examples/adopt.c", &[]) {
        assert!(printed.contains("with millpond"), "{printed}");
    }
}

#[test]
fn the_header_is_clean_in_every_dialect() {
    for (compiler, language, dialects) in
        [(c(), "c", ["c99", "c11", "c17"]), (cxx(), "c++", ["c++98", "c++11", "c++17"])]
    {
        for dialect in dialects {
            let mut command = Command::new(&compiler);
            command.args(STRICT).arg(format!("-std={dialect}")).args(["-fsyntax-only", "-x", language]);
            command.arg(include_folder()).arg(crate_folder().join("include/millpond.h"));
            // A header compiled by itself may define what it does not use; nothing else may be odd about it.
            done(&mut command, &format!("the header as {dialect}"));
        }
    }
}

#[test]
fn the_package_description_names_what_a_program_needs() {
    let prefix = scratch("package");
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    for folder in [&lib, &include] {
        fs::create_dir_all(folder).expect("a scratch folder");
    }
    fs::copy(library(Link::Static), lib.join("libmillpond.a")).expect("the static library");
    for header in ["millpond.h", "millpond_constants.h"] {
        fs::copy(crate_folder().join("include").join(header), include.join(header)).expect("a header");
    }
    let description = fs::read_to_string(crate_folder().join("millpond.pc.in")).expect("the package description");
    let description =
        description.replace("@PREFIX@", &prefix.display().to_string()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    assert!(!description.contains('@'), "something is not filled in: {description}");
    let mut command = Command::new(c());
    command.arg(crate_folder().join("examples/adopt.c")).arg("-o").arg(prefix.join("adopt"));
    for field in ["Cflags", "Libs"] {
        command.args(flags(&description, field));
    }
    command.args(NATIVE);
    done(&mut command, "the example with the flags of the package description");
    done(&mut Command::new(prefix.join("adopt")), "the example");
}

/// What a C compiler may complain about, and that complaints are errors.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic"];

/// Calm as one file, which needs no library and is held to what this one answers.
const CALM_FILE: &str = "../../c/calm.c";

/// Compiles a program, links it both ways, runs it, and hands back what it printed.
fn runs(source: &str, arguments: &[OsString]) -> Vec<String> {
    [Link::Static, Link::Shared].map(|link| run(source, link, arguments)).into()
}

fn run(source: &str, link: Link, arguments: &[OsString]) -> String {
    let name = Path::new(source).file_stem().expect("a file name").to_string_lossy();
    let program = scratch(&format!("{name}-{link:?}")).join("program");
    let library = library(link);
    let mut command = Command::new(c());
    command.args(STRICT).args(["-std=c99", "-O1", "-g"]).arg(include_folder());
    command.arg(crate_folder().join(source)).arg(crate_folder().join(CALM_FILE)).arg("-o").arg(&program).arg(&library);
    match link {
        Link::Static => command.args(NATIVE),
        Link::Shared => {
            let folder = library.parent().expect("the library lies in a folder");
            command.arg(format!("-Wl,-rpath,{}", folder.display()))
        }
    };
    done(&mut command, &format!("{source}, {link:?} library"));
    let run = done(Command::new(&program).args(arguments), &format!("{name} with the {link:?} library"));
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// What the library wants of the system when it is built for tests, with Rust's standard library in it.
const NATIVE: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

fn done(command: &mut Command, what: &str) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        panic!(
            "{what}: {program} does not start ({error}); a C and a C++ compiler are needed, name them with CC and CXX"
        )
    });
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The words of a field of a package description, with its variables put in.
fn flags(description: &str, field: &str) -> Vec<String> {
    let value_of = |name: &str, separator: char| {
        description.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(separator))
    };
    let mut text = value_of(field, ':').unwrap_or_else(|| panic!("no {field} in the package description")).to_owned();
    while let Some((before, rest)) = text.split_once("${") {
        let (variable, after) = rest.split_once('}').expect("a closed variable");
        let value = value_of(variable, '=').unwrap_or_else(|| panic!("{variable} stands for nothing"));
        text = format!("{before}{value}{after}");
    }
    text.split_whitespace().map(str::to_owned).collect()
}

/// The library that was built for this test: it lies beside the test program.
fn library(link: Link) -> PathBuf {
    let suffix = match link {
        Link::Static => "a",
        Link::Shared if cfg!(target_os = "macos") => "dylib",
        Link::Shared => "so",
    };
    let here = env::current_exe().expect("this program has a path");
    let path = here.parent().expect("it lies in a folder").join(format!("libmillpond.{suffix}"));
    assert!(path.exists(), "{} was not built with this test", path.display());
    path
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c").join(name);
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn include_folder() -> OsString {
    let mut flag = OsString::from("-I");
    flag.push(crate_folder().join("include"));
    flag
}

fn c() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

fn cxx() -> OsString {
    env::var_os("CXX").unwrap_or_else(|| "c++".into())
}
