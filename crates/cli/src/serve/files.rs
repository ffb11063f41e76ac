//! Requests for files.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use millpond_live::{Code, FairPermit, FairSemaphore, Request, Response, number, percent_encoded};
use tokio::task::spawn_blocking;

use super::directory::{Directory, Draft, Found, SHORT};
use super::tags::{FileBody, Tag};
use crate::content_format::{self, LINKS};
use crate::request::LONGEST_BODY;

/// Files made by POST in one directory until a free name is found.
const MOST_NAMES: u32 = 10_000;

/// Bytes that are read at a time for messages that take more than a short file; networks that want more take turns.
const ROOM: usize = 64 << 20;

/// The same of short files and of blocks, which wait for nothing long.
const ROOM_OF_SHORT: usize = 8 << 20;

/// What a long message takes of the room at the least, so that not too many are at the disk at a time.
const LEAST: usize = 4 << 20;

/// A directory that is served.
#[derive(Debug)]
pub(super) struct Files {
    directory: Directory,
    write: bool,
    long: FairSemaphore,
    short: FairSemaphore,
    /// Changes are made one at a time, each with its condition.
    change: FairSemaphore,
}

/// What a request comes to as far as nothing is changed.
enum Begun {
    Answered(Response),
    /// Nothing yet: so many bytes are to be read.
    NeedsRoom(usize),
    /// PUT, to be made if its condition holds.
    Put(Draft),
    /// POST, to be made under the first of these names that is free.
    Post(Draft, Vec<String>),
    Delete,
}

impl Files {
    /// Of this directory; if `write`, PUT, POST and DELETE change it.
    pub(super) fn of(directory: Directory, write: bool) -> Self {
        let semaphore = |bytes: usize| FairSemaphore::new(bytes >> 10);
        let (long, short, change) = (semaphore(ROOM), semaphore(ROOM_OF_SHORT), FairSemaphore::new(1));
        Self { directory, write, long, short, change }
    }

    /// Answers from the directory. Conditions are those of RFC 7252 §5.10.8, entity tags those of §5.10.6.
    pub(super) async fn answer(self: Arc<Self>, request: Request) -> Response {
        let broken = || Response::new(Code::INTERNAL_SERVER_ERROR);
        let mut length = request.payload().len();
        let begun = loop {
            let (room, most) = self.room(&request, length).await;
            let (files, asked) = (Arc::clone(&self), request.clone());
            // Files may be slow; other requests are answered meanwhile.
            let begun = spawn_blocking(move || {
                let begun = files.begin(&asked, most);
                drop(room);
                begun
            });
            match begun.await {
                Ok(Ok(Begun::Answered(response))) => return response,
                Ok(Ok(Begun::NeedsRoom(more))) => length = more,
                Ok(Ok(begun)) => break begun,
                Ok(Err(error)) => return failed(&error),
                Err(_) => return broken(),
            }
        };
        let turn = self.change.acquire(request.peer(), 1).await;
        let changed = spawn_blocking(move || {
            let changed = self.change(&request, &begun);
            drop(turn);
            changed.unwrap_or_else(|error| failed(&error))
        });
        changed.await.unwrap_or_else(|_| broken())
    }

    /// Room for so many bytes, when it is the turn of this client's network, and how many that are at the least.
    async fn room(&self, request: &Request, length: usize) -> (FairPermit, usize) {
        let (room, length) = match length <= SHORT {
            true => (&self.short, SHORT),
            false => (&self.long, length.clamp(LEAST, LONGEST_BODY)),
        };
        (room.acquire(request.peer(), length >> 10).await, length)
    }

    /// Everything that can be done while others change something, with so many bytes that may be read.
    fn begin(&self, request: &Request, most: usize) -> io::Result<Begun> {
        let is_change = matches!(request.method(), Code::PUT | Code::POST | Code::DELETE);
        if is_change && !self.write {
            let why = "this server only reads; start it with --write";
            return Ok(Begun::Answered(refused(Code::METHOD_NOT_ALLOWED, why)));
        }
        if !is_change && request.method() != Code::GET {
            return Ok(Begun::Answered(Response::new(Code::METHOD_NOT_ALLOWED)));
        }
        let path = path_of(request);
        let mut found = self.directory.find(&path)?;
        let (all, needed) = match &found {
            Some(Found::File(file)) => {
                let wanted = file.wanted(|total| request.part_of(total));
                (file.length(), if is_change { 0 } else { wanted.end - wanted.start })
            }
            Some(Found::Directory(path)) => {
                let links = self.directory.length_of_links(path, SHORT as u64)?;
                (links, links)
            }
            None => (0, 0),
        };
        if all > SHORT as u64 && !request.is_address_proved() {
            return Ok(Begun::Answered(Response::prove_address()));
        }
        let needed = usize::try_from(needed).unwrap_or(LONGEST_BODY).min(LONGEST_BODY);
        if needed > most {
            return Ok(Begun::NeedsRoom(needed));
        }
        // What stands there is named before it is anybody's turn.
        if request.method() != Code::POST && !holds(request, found.as_mut())? {
            return Ok(Begun::Answered(Response::new(Code::PRECONDITION_FAILED)));
        }
        Ok(match request.method() {
            Code::GET => Begun::Answered(self.get(found, &path, request)?),
            Code::PUT => Begun::Put(self.directory.draft(&path, request.payload())?),
            Code::POST => self.post(found, path, request)?,
            _ => Begun::Delete,
        })
    }

    /// The rest.
    fn change(&self, request: &Request, begun: &Begun) -> io::Result<Response> {
        let path = path_of(request);
        let holds = || Ok(!is_conditional(request) || holds(request, self.directory.find(&path)?.as_mut())?);
        Ok(match begun {
            Begun::Answered(response) => response.clone(),
            Begun::NeedsRoom(_) => Response::new(Code::SERVICE_UNAVAILABLE),
            Begun::Put(draft) => match self.directory.put_if(draft, holds)? {
                None => Response::new(Code::PRECONDITION_FAILED),
                Some((true, tag)) => Response::created().with_etag(tag.to_vec()),
                Some((false, tag)) => Response::changed().with_etag(tag.to_vec()),
            },
            Begun::Post(draft, names) => self.put_at_free_name(&path, draft, names)?,
            // What is not there is deleted (RFC 7252 §5.8.4).
            Begun::Delete => match self.directory.remove_if(&path, holds)? {
                None => Response::new(Code::PRECONDITION_FAILED),
                Some(_) => Response::deleted(),
            },
        })
    }

    fn get(&self, found: Option<Found>, path: &[String], request: &Request) -> io::Result<Response> {
        let format = match &found {
            None => return Ok(Response::not_found()),
            Some(Found::File(_)) => content_format::of_file(path.last().map_or("", String::as_str)),
            Some(Found::Directory(_)) => LINKS,
        };
        if request.accept().is_some_and(|wanted| wanted.number() != format) {
            let offered = format!("this is {}", content_format::name(format));
            return Ok(refused(Code::NOT_ACCEPTABLE, &offered));
        }
        let body = match found {
            Some(Found::File(mut file)) => {
                let tag = file.tag()?;
                if is_valid(request, tag) {
                    return Ok(Response::new(Code::VALID).with_etag(tag.to_vec()));
                }
                file.read(LONGEST_BODY, |total| request.part_of(total))?
            }
            Some(Found::Directory(it)) => FileBody::of(links(path, &self.directory.entries(&it)?).into_bytes()),
            None => return Ok(Response::not_found()),
        };
        let response = Response::content(body.bytes).with_content_format(format).with_etag(body.tag.to_vec());
        Ok(response.with_part(body.start, body.total))
    }

    /// A POST to a directory makes a file there whose name is a free number, and says where.
    fn post(&self, found: Option<Found>, path: Vec<String>, request: &Request) -> io::Result<Begun> {
        let mut names = match found {
            None => return Ok(Begun::Answered(Response::not_found())),
            Some(Found::File(_)) => {
                let told = "POST is for directories, PUT for files";
                return Ok(Begun::Answered(refused(Code::METHOD_NOT_ALLOWED, told)));
            }
            Some(Found::Directory(it)) => self.directory.entries(&it)?,
        };
        names.sort();
        let ending = request.content_format().map_or("bin", |format| content_format::ending(format.number()));
        let is_free = |name: &String| names.binary_search(name).is_err();
        let free: Vec<_> = (1..=MOST_NAMES).map(|number| format!("{number}.{ending}")).filter(is_free).collect();
        let draft = self.directory.draft(&within(&path, "draft"), request.payload())?;
        Ok(Begun::Post(draft, free))
    }

    fn put_at_free_name(&self, path: &[String], draft: &Draft, names: &[String]) -> io::Result<Response> {
        // Others make files, too: a name that they took meanwhile is free no longer.
        for name in names {
            let made = within(path, name);
            match self.directory.put_at(draft, &made) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => {
                    done?;
                    let located = |response: Response, segment: &String| {
                        response.with_option(number::LOCATION_PATH, segment.clone().into_bytes())
                    };
                    return Ok(made.iter().fold(Response::created(), located));
                }
            }
        }
        Ok(refused(Code::CONFLICT, "the directory is full"))
    }
}

fn path_of(request: &Request) -> Vec<String> {
    request.path().map(str::to_owned).collect()
}

/// The path of a name in a directory.
fn within(path: &[String], name: &str) -> Vec<String> {
    path.iter().filter(|segment| !segment.is_empty()).cloned().chain([name.to_owned()]).collect()
}

/// The client has what has this tag.
fn is_valid(request: &Request, tag: Tag) -> bool {
    request.options().all(number::ETAG).any(|known| known.as_ref() == tag)
}

fn is_conditional(request: &Request) -> bool {
    let options = request.options();
    options.get(number::IF_MATCH).or_else(|| options.get(number::IF_NONE_MATCH)).is_some()
}

/// If-Match and If-None-Match (RFC 7252 §5.10.8), of what is there now. A directory has no tag.
fn holds(request: &Request, found: Option<&mut Found>) -> io::Result<bool> {
    let options = request.options();
    let mut wanted = options.all(number::IF_MATCH).peekable();
    if options.get(number::IF_NONE_MATCH).is_some() && found.is_some() {
        return Ok(false);
    }
    if wanted.peek().is_none() {
        return Ok(true);
    }
    let tag = match found {
        None => return Ok(false),
        Some(Found::File(file)) => Some(file.tag()?),
        Some(Found::Directory(_)) => None,
    };
    Ok(wanted.any(|wanted| wanted.is_empty() || tag.is_some_and(|tag| wanted.as_ref() == tag)))
}

fn failed(error: &io::Error) -> Response {
    match error.kind() {
        ErrorKind::PermissionDenied => refused(Code::FORBIDDEN, "this name cannot be used"),
        ErrorKind::IsADirectory => refused(Code::METHOD_NOT_ALLOWED, "this is a directory"),
        ErrorKind::NotFound | ErrorKind::NotADirectory => refused(Code::CONFLICT, "its directory is not there"),
        ErrorKind::FileTooLarge => refused(Code::INTERNAL_SERVER_ERROR, "it is too large to be served"),
        ErrorKind::ResourceBusy => Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(1),
        ErrorKind::StorageFull => refused(Code::INTERNAL_SERVER_ERROR, "the disk is full"),
        _ => refused(Code::INTERNAL_SERVER_ERROR, "the file cannot be read or written"),
    }
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
            .bind(([127, 0, 0, 1], 0))
            .verify_addresses(AddressRule::LargeAnswersEverywhere)
            .conditional_fallback(move |request: Request| Arc::clone(&files).answer(request))
            .start()
            .await
            .expect("it starts");
        let ask = async |method: Code, options: &[u8]| {
            // A port each: what one unvalidated peer is sent waits for what it was sent before.
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

    /// 48 ports that asked for long files kept everybody's files of 9 bytes for seconds.
    #[tokio::test]
    async fn short_files_and_blocks_of_long_ones_wait_for_nothing_long() {
        let root = std::env::temp_dir().join(format!("millpond-short-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("made");
        std::fs::write(root.join("short"), "123456789").expect("written");
        std::fs::write(root.join("long"), vec![0; 100_000]).expect("written");
        std::fs::create_dir(root.join("many")).expect("made");
        for number in 0..300 {
            std::fs::write(root.join(format!("many/{number:0>200}")), "").expect("written");
        }
        let files = Arc::new(Files::of(Directory::open(&root).expect("it is there"), true));
        // So much is read that there is room for no more.
        let taken = files.long.acquire(([192, 0, 2, 1], 1).into(), usize::MAX).await;
        let serving = Arc::clone(&files);
        let server = Server::builder()
            .bind(([127, 0, 0, 1], 0))
            .conditional_fallback(move |request: Request| Arc::clone(&serving).answer(request))
            .start()
            .await
            .expect("it starts");
        let client = millpond_live::Client::builder().build().await.expect("a client");
        let at = |path: &str| format!("coap://{}/{path}", server.local_addr());
        let long = tokio::spawn(client.get(at("many")).send());
        // Of a long file a block is read at a time.
        assert_eq!(client.get(at("long")).await.expect("an answer").payload().len(), 100_000);
        assert_eq!(client.get(at("short")).await.expect("an answer").text(), Ok("123456789"));
        let put = client.put(at("short")).payload("other").await.expect("an answer");
        assert_eq!(put.code(), Code::CHANGED);
        assert!(!long.is_finished());
        drop(taken);
        let listed = long.await.expect("no panic").expect("an answer");
        assert_eq!(listed.text().expect("text").split(',').count(), 300);
        std::fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn a_directory_is_told_as_links() {
        let names = ["a b.json".to_owned(), "sub/".to_owned()];
        assert_eq!(links(&["x".to_owned(), String::new()], &names), "</x/a%20b.json>;ct=50,</x/sub/>;ct=40");
        assert_eq!(links(&[], &names), "</a%20b.json>;ct=50,</sub/>;ct=40");
    }
}
