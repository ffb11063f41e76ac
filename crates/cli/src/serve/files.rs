//! Requests for files.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use millpond_live::{Bytes, Code, Request, Response, number, percent_encoded};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::directory::{Directory, Stored, entity_tag};
use crate::content_format::{self, LINKS};
use crate::request::LONGEST_BODY;

/// Files made by POST in one directory until a free name is found.
const MOST_NAMES: u32 = 10_000;

/// Bytes of files in memory at a time; whoever asks for more waits.
const ROOM: usize = 64 << 20;

/// What each request takes of that at the least, so that not too many are at the disk at a time.
const LEAST: usize = 4 << 20;

/// Bytes of a file, or of a directory's links, that are read before the address of whoever asks is proved.
const UNPROVED: u64 = 64 << 10;

/// A directory that is served.
#[derive(Debug)]
pub(super) struct Files {
    directory: Directory,
    write: bool,
    room: Arc<Semaphore>,
}

/// A file's bytes, and the room that they take.
struct Held(Vec<u8>, #[expect(dead_code, reason = "it is given back with the bytes")] OwnedSemaphorePermit);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Files {
    /// Of this directory; if `write`, PUT, POST and DELETE change it.
    pub(super) fn of(directory: Directory, write: bool) -> Self {
        Self { directory, write, room: Arc::new(Semaphore::new(ROOM >> 10)) }
    }

    /// Answers from the directory. Conditions are those of RFC 7252 §5.10.8, entity tags those of §5.10.6.
    pub(super) async fn answer(self: Arc<Self>, request: Request) -> Response {
        let broken = || Response::new(Code::INTERNAL_SERVER_ERROR);
        let mut length = 0;
        // To say what may be done with it, what is there may have to be read as well.
        if request.method() == Code::GET || self.write {
            // Files may be slow; other requests are answered meanwhile.
            let (files, asked) = (Arc::clone(&self), request.clone());
            let looked = spawn_blocking(move || files.directory.length(&path_of(&asked), UNPROVED)).await;
            length = looked.ok().and_then(Result::ok).flatten().unwrap_or(0);
            if length > UNPROVED && !request.is_address_proved() {
                return Response::prove_address();
            }
        }
        let length = usize::try_from(length).unwrap_or(LONGEST_BODY).clamp(LEAST, LONGEST_BODY.max(LEAST));
        let permits = u32::try_from(length >> 10).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(permits).await else { return broken() };
        let work = spawn_blocking(move || answered(&self.directory, self.write, &request, permit));
        work.await.unwrap_or_else(|_| broken())
    }
}

fn path_of(request: &Request) -> Vec<String> {
    request.path().map(str::to_owned).collect()
}

fn answered(directory: &Directory, write: bool, request: &Request, permit: OwnedSemaphorePermit) -> Response {
    let path = path_of(request);
    let answer = match request.method() {
        Code::GET => get(directory, &path, request, permit),
        Code::PUT | Code::POST | Code::DELETE if !write => {
            Ok(refused(Code::METHOD_NOT_ALLOWED, "this server only reads; start it with --write"))
        }
        Code::PUT => put(directory, &path, request),
        Code::POST => post(directory, &path, request),
        Code::DELETE => delete(directory, &path, request),
        _ => Ok(Response::new(Code::METHOD_NOT_ALLOWED)),
    };
    answer.unwrap_or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => refused(Code::FORBIDDEN, "this name cannot be used"),
        ErrorKind::IsADirectory => refused(Code::METHOD_NOT_ALLOWED, "this is a directory"),
        ErrorKind::NotFound | ErrorKind::NotADirectory => refused(Code::CONFLICT, "its directory is not there"),
        ErrorKind::FileTooLarge => refused(Code::INTERNAL_SERVER_ERROR, "it is too large to be served"),
        ErrorKind::StorageFull => refused(Code::INTERNAL_SERVER_ERROR, "the disk is full"),
        _ => refused(Code::INTERNAL_SERVER_ERROR, "the file cannot be read or written"),
    })
}

fn get(
    directory: &Directory,
    path: &[String],
    request: &Request,
    permit: OwnedSemaphorePermit,
) -> io::Result<Response> {
    let stored = directory.read(path, LONGEST_BODY)?;
    if !holds(request, stored.as_ref()) {
        return Ok(Response::new(Code::PRECONDITION_FAILED));
    }
    let (bytes, format) = match stored {
        None => return Ok(Response::not_found()),
        Some(Stored::File(bytes)) => (bytes, content_format::of_file(path.last().map_or("", String::as_str))),
        Some(Stored::Directory(names)) => (links(path, &names).into_bytes(), LINKS),
    };
    if request.accept().is_some_and(|wanted| wanted.number() != format) {
        let offered = format!("this is {}", content_format::name(format));
        return Ok(refused(Code::NOT_ACCEPTABLE, &offered));
    }
    let tag = entity_tag(&bytes);
    if request.options().all(number::ETAG).any(|known| known.as_ref() == tag) {
        return Ok(Response::new(Code::VALID).with_etag(tag.to_vec()));
    }
    let bytes = Bytes::from_owner(Held(bytes, permit));
    Ok(Response::content(bytes).with_content_format(format).with_etag(tag.to_vec()))
}

fn put(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    let response = match directory.write_if(path, request.payload(), || condition_holds(directory, path, request))? {
        None => return Ok(Response::new(Code::PRECONDITION_FAILED)),
        Some(true) => Response::created(),
        Some(false) => Response::changed(),
    };
    Ok(response.with_etag(entity_tag(request.payload()).to_vec()))
}

/// A POST to a directory makes a file there whose name is a free number, and says where.
fn post(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    let mut names = match directory.read(path, LONGEST_BODY)? {
        None => return Ok(Response::not_found()),
        Some(Stored::File(_)) => {
            return Ok(refused(Code::METHOD_NOT_ALLOWED, "POST is for directories, PUT for files"));
        }
        Some(Stored::Directory(names)) => names,
    };
    names.sort();
    let ending = request.content_format().map_or("bin", |format| content_format::ending(format.number()));
    let is_free = |name: &String| names.binary_search(name).is_err();
    let mut free = (1..=MOST_NAMES).map(|number| format!("{number}.{ending}")).filter(is_free);
    let directories = path.iter().filter(|segment| !segment.is_empty()).cloned();
    let mut made: Vec<String> = directories.chain([String::new()]).collect();
    // Others make files, too: a name that they took meanwhile is free no longer.
    loop {
        let Some(name) = free.next() else { return Ok(refused(Code::CONFLICT, "the directory is full")) };
        if let Some(last) = made.last_mut() {
            *last = name;
        }
        match directory.create(&made, request.payload()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => break done?,
        }
    }
    let located = |response: Response, segment: &String| {
        response.with_option(number::LOCATION_PATH, segment.clone().into_bytes())
    };
    Ok(made.iter().fold(Response::created(), located))
}

fn delete(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    // What is not there is deleted (RFC 7252 §5.8.4).
    let gone = directory.remove_if(path, || condition_holds(directory, path, request))?;
    Ok(gone.map_or_else(|| Response::new(Code::PRECONDITION_FAILED), |_| Response::deleted()))
}

/// If-Match and If-None-Match (RFC 7252 §5.10.8), of what is there now.
fn condition_holds(directory: &Directory, path: &[String], request: &Request) -> io::Result<bool> {
    let options = request.options();
    let is_conditional = options.get(number::IF_MATCH).or_else(|| options.get(number::IF_NONE_MATCH)).is_some();
    Ok(!is_conditional || holds(request, directory.read(path, LONGEST_BODY)?.as_ref()))
}

fn holds(request: &Request, stored: Option<&Stored>) -> bool {
    let options = request.options();
    let mut wanted = options.all(number::IF_MATCH).peekable();
    let wants_none = options.get(number::IF_NONE_MATCH).is_some();
    let matches = match stored {
        _ if wanted.peek().is_none() => true,
        Some(Stored::File(bytes)) => {
            let tag = entity_tag(bytes);
            wanted.any(|wanted| wanted.is_empty() || wanted.as_ref() == tag)
        }
        // A directory has no entity tag, but is there.
        Some(Stored::Directory(_)) => wanted.any(|wanted| wanted.is_empty()),
        None => false,
    };
    matches && (!wants_none || stored.is_none())
}

/// What a directory holds, as links (RFC 6690).
fn links(path: &[String], names: &[String]) -> String {
    let base: String =
        path.iter().filter(|segment| !segment.is_empty()).map(|name| format!("/{}", encoded(name))).collect();
    let link = |name: &String| match name.strip_suffix('/') {
        Some(directory) => format!("<{base}/{}/>;ct={LINKS}", encoded(directory)),
        None => format!("<{base}/{}>;ct={}", encoded(name), content_format::of_file(name)),
    };
    names.iter().map(link).collect::<Vec<_>>().join(",")
}

/// A segment as a URI has it (RFC 3986 §3.3): what is unreserved stands for itself.
fn encoded(segment: &str) -> String {
    percent_encoded(segment, b"-._~")
}

fn refused(code: Code, why: &str) -> Response {
    Response::new(code).with_payload(why.to_owned())
}

#[cfg(test)]
mod tests {
    use millpond_live::{AddressRule, Server};
    use tokio::net::UdpSocket;

    use super::*;

    /// Two hundred datagrams of twenty bytes kept everybody from the files for a quarter of a minute.
    #[tokio::test]
    async fn a_directory_of_thousands_of_files_is_read_once_the_address_is_proved() {
        let root = std::env::temp_dir().join(format!("millpond-listed-{}", std::process::id()));
        for (name, count, width) in [("many", 300, 200), ("few", 4, 1)] {
            std::fs::create_dir_all(root.join(name)).expect("made");
            for number in 0..count {
                std::fs::write(root.join(format!("{name}/{number:0>width$}")), "").expect("written");
            }
        }
        std::fs::write(root.join("long"), vec![0; 100_000]).expect("written");
        let files = Arc::new(Files::of(Directory::open(&root).expect("it is there"), true));
        let server = Server::builder()
            .bind(([127, 0, 0, 1], 0).into())
            .verify_addresses(AddressRule::LargeAnswersEverywhere)
            .conditional_fallback(move |request| Arc::clone(&files).answer(request))
            .start()
            .await
            .expect("it starts");
        let ask = async |method: Code, options: &[u8]| {
            // A port each: what one stranger is sent waits for what it was sent before.
            let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
            let request = [&[0x40, method.to_byte(), 0, 1], options].concat();
            socket.send_to(&request, server.local_addr()).await.expect("sent");
            let mut answer = [0; 1_500];
            loop {
                socket.recv(&mut answer).await.expect("an answer");
                // Not an acknowledgement by itself.
                if answer[1] != 0 {
                    return Code::from_byte(answer[1]);
                }
            }
        };
        assert_eq!(ask(Code::GET, b"\xb3few").await, Code::CONTENT);
        assert_eq!(ask(Code::GET, b"\xb4many").await, Code::UNAUTHORIZED);
        // Nothing long would be answered here.
        assert_eq!(ask(Code::POST, b"\xb4many").await, Code::UNAUTHORIZED);
        // If-Match: what stands there has to be hashed.
        assert_eq!(ask(Code::DELETE, b"\x11x\xa4long").await, Code::UNAUTHORIZED);
        assert_eq!(ask(Code::PUT, b"\x11x\xa3few\x010").await, Code::PRECONDITION_FAILED);
        assert!(root.join("long").exists());
        std::fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn a_directory_is_told_as_links() {
        let names = ["a b.json".to_owned(), "sub/".to_owned()];
        assert_eq!(links(&["x".to_owned(), String::new()], &names), "</x/a%20b.json>;ct=50,</x/sub/>;ct=40");
        assert_eq!(links(&[], &names), "</a%20b.json>;ct=50,</sub/>;ct=40");
    }
}
