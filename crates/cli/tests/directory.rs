//! What clients can reach in a directory, and what they cannot.

#![forbid(unsafe_code)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_cli::serve::{Directory, FileBody, Stored};

fn segments(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
}

/// A directory `root` with a file beside it that no client may see. What an earlier run left is taken away.
fn fresh(name: &str) -> (PathBuf, Directory) {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(base.join("root/sub")).expect("a temporary directory");
    fs::write(base.join("secret"), "not for clients").expect("written");
    fs::write(base.join("root/a.txt"), "hello").expect("written");
    fs::write(base.join("root/sub/b.json"), "{}").expect("written");
    fs::write(base.join("root/.hidden"), "not shown").expect("written");
    let directory = Directory::open(&base.join("root")).expect("it was made");
    (base, directory)
}

fn read(directory: &Directory, path: &[String]) -> Option<Stored> {
    directory.read(path, 1_000).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

#[test]
fn files_and_directories_are_read() {
    let (_, directory) = fresh("read");
    assert_eq!(read(&directory, &segments("a.txt")), Some(Stored::File(FileBody::of(b"hello".to_vec()))));
    assert_eq!(read(&directory, &segments("sub/b.json")), Some(Stored::File(FileBody::of(b"{}".to_vec()))));
    for path in [vec![], segments("")] {
        let names = vec!["a.txt".to_owned(), "sub/".to_owned()];
        assert_eq!(read(&directory, &path), Some(Stored::Directory(names)), "{path:?}");
    }
    for path in ["sub", "sub/"] {
        assert_eq!(read(&directory, &segments(path)), Some(Stored::Directory(vec!["b.json".to_owned()])), "{path}");
    }
    assert_eq!(read(&directory, &segments("nothing")), None);
    assert_eq!(read(&directory, &segments("a.txt/x")), None);
    // So many names as are enough are counted.
    assert_eq!(directory.read(&segments("a.txt"), 4).map_err(|error| error.kind()), Err(ErrorKind::FileTooLarge));
}

#[test]
fn no_path_leads_out_of_the_directory() {
    let (base, directory) = fresh("out");
    let secret = base.join("secret").to_str().expect("plain").to_owned();
    let mut paths = vec![vec![secret.clone()], vec!["..".to_owned(), "secret".to_owned()]];
    paths.extend(
        ["../secret", "sub/../../secret", "./a.txt", "sub//b.json", ".hidden", "..\\secret", "a.txt\0", "C:\\x"]
            .map(segments),
    );
    paths.push(vec!["../secret".to_owned()]);
    paths.push(vec!["sub/b.json".to_owned()]);
    for path in &paths {
        assert_eq!(read(&directory, path), None, "{path:?}");
        assert!(directory.write(path, b"mine").is_err(), "{path:?}");
        assert!(!directory.remove(path).unwrap_or(false), "{path:?}");
    }
    assert_eq!(fs::read_to_string(secret).expect("it is there"), "not for clients");
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_directory() {
    let (base, directory) = fresh("links");
    let root = base.join("root");
    for (name, target) in [("up", ".."), ("away", "/"), ("file", "../secret"), ("inside", "a.txt")] {
        std::os::unix::fs::symlink(target, root.join(name)).expect("linked");
    }
    for path in ["up/secret", "away/etc/passwd", "file", "up", "away"] {
        assert_eq!(read(&directory, &segments(path)), None, "{path}");
    }
    assert!(directory.write(&segments("up/secret"), b"mine").is_err());
    assert_eq!(read(&directory, &segments("inside")), Some(Stored::File(FileBody::of(b"hello".to_vec()))));
    // A link is replaced by the file, not followed.
    assert!(directory.write(&segments("file"), b"mine").is_ok());
    assert_eq!(fs::read_to_string(base.join("secret")).expect("it is there"), "not for clients");
}

/// A pipe is not seen, and so neither replaced nor taken away.
#[cfg(unix)]
#[test]
fn what_is_no_file_stays_as_it_is() {
    use std::os::unix::fs::FileTypeExt;

    let (base, directory) = fresh("pipe");
    let pipe = base.join("root/sub/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("POSIX has mkfifo");
    assert!(made.success());
    let path = segments("sub/pipe");
    assert_eq!(read(&directory, &path), None);
    assert_eq!(read(&directory, &segments("sub")), Some(Stored::Directory(vec!["b.json".to_owned()])));
    assert_eq!(directory.write(&path, b"mine").map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
    assert_eq!(directory.remove(&path).map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
    assert!(directory.create(&path, b"mine").is_err());
    assert!(fs::symlink_metadata(&pipe).expect("it is there").file_type().is_fifo());
}

/// A file that is a pipe by the time that it is opened kept its reader for ever.
#[cfg(unix)]
#[test]
fn what_is_swapped_for_a_pipe_keeps_no_reader() {
    let (base, directory) = fresh("swapped");
    let (at, file, pipe) = (base.join("root/at"), base.join("root/sub/file"), base.join("root/sub/pipe"));
    fs::write(&file, "plain").expect("written");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("POSIX has mkfifo").success());
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                for from in [&file, &pipe] {
                    let beside = base.join("root/beside");
                    fs::hard_link(from, &beside).expect("linked");
                    fs::rename(&beside, &at).expect("renamed");
                }
            }
        });
        for _ in 0..3_000 {
            let seen = read(&directory, &segments("at"));
            assert!(seen.is_none() || seen == Some(Stored::File(FileBody::of(b"plain".to_vec()))), "{seen:?}");
        }
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        swapping.join().expect("no panic");
    });
}

/// Each listing is made for the client, and takes memory and time of its own.
#[test]
fn a_listing_is_bounded() {
    let (base, directory) = fresh("many");
    let name = "n".repeat(240);
    for number in 0..4_400 {
        fs::write(base.join(format!("root/sub/{name}{number}")), "").expect("written");
    }
    let listed = directory.read(&segments("sub"), usize::MAX).map_err(|error| error.kind());
    assert_eq!(listed, Err(ErrorKind::FileTooLarge));
}

#[test]
fn files_are_written_whole_and_taken_away() {
    let (base, directory) = fresh("write");
    assert!(directory.write(&segments("sub/c.bin"), b"one").expect("written"));
    assert!(!directory.write(&segments("sub/c.bin"), b"two").expect("written over"));
    assert_eq!(read(&directory, &segments("sub/c.bin")), Some(Stored::File(FileBody::of(b"two".to_vec()))));
    let kept: Vec<_> =
        fs::read_dir(base.join("root/sub")).expect("it is there").map(|entry| entry.map(|e| e.file_name())).collect();
    assert_eq!(kept.len(), 2, "no draft is left: {kept:?}");
    assert!(directory.remove(&segments("sub/c.bin")).expect("it was there"));
    assert!(!directory.remove(&segments("sub/c.bin")).expect("it is gone"));
    for (path, kind) in
        [("sub", ErrorKind::IsADirectory), ("none/x", ErrorKind::NotFound), ("a.txt/x", ErrorKind::NotADirectory)]
    {
        let error = directory.write(&segments(path), b"x").expect_err(path);
        assert_eq!(error.kind(), kind, "{path}: {error}");
    }
    assert_eq!(directory.remove(&segments("sub")).map_err(|error| error.kind()), Err(ErrorKind::IsADirectory));
    assert!(directory.write(&[], b"x").is_err());
}

#[test]
fn of_many_that_create_a_file_at_one_path_one_does() {
    let (base, directory) = fresh("race");
    let created = std::thread::scope(|scope| {
        let create = |number: usize| directory.create(&segments("sub/1.bin"), &vec![b'0' + number as u8; 100_000]);
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || create(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let winners: Vec<usize> = created.iter().enumerate().filter(|(_, done)| done.is_ok()).map(|(n, _)| n).collect();
    assert_eq!(winners.len(), 1, "{created:?}");
    let lost = |done: &std::io::Result<()>| done.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
    assert_eq!(created.iter().filter(|done| lost(done)).count(), 7, "{created:?}");
    assert!(fs::read(base.join("root/sub/1.bin")).expect("it is there") == vec![b'0' + winners[0] as u8; 100_000]);
    assert_eq!(fs::read_dir(base.join("root/sub")).expect("it is there").count(), 2, "no draft is left");
}

#[test]
fn nothing_changes_between_a_condition_and_what_it_is_for() {
    let (_, directory) = fresh("condition");
    let path = segments("counted");
    directory.write(&path, b"0").expect("written");
    // Each thread writes over what it has read, if that is what is there.
    let done: usize = std::thread::scope(|scope| {
        let write = |number: u8| {
            let is_first = || {
                let is_first = read(&directory, &path) == Some(Stored::File(FileBody::of(b"0".to_vec())));
                // Long enough for the others to look as well, if they may.
                std::thread::sleep(Duration::from_millis(20));
                Ok(is_first)
            };
            directory.write_if(&path, &[b'a' + number], is_first).expect("written, or not").is_some()
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || write(number))).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().expect("no panic"))).sum()
    });
    assert_eq!(done, 1);
    assert_eq!(directory.remove_if(&path, || Ok(false)).expect("refused"), None);
}

#[test]
fn only_directories_are_opened() {
    let (base, _) = fresh("open");
    assert!(Directory::open(&base.join("secret")).is_err());
    assert!(Directory::open(&base.join("nothing")).is_err());
}

/// Of a server that was killed, and whose number its successor has, as in a container.
#[test]
fn drafts_that_somebody_left_are_in_nobodys_way() {
    let (base, directory) = fresh("left");
    for number in 0..2 {
        fs::write(base.join(format!("root/.millpond-{}-{number}", std::process::id())), "half of it").expect("written");
    }
    assert!(directory.write(&segments("new.txt"), b"whole").expect("written beside them"), "it is made");
    assert_eq!(read(&directory, &segments("new.txt")), Some(Stored::File(FileBody::of(b"whole".to_vec()))));
}
