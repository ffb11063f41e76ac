//! Requests for files.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use millpond_live::{Code, Request, Response, number};

use super::directory::{Directory, Stored, entity_tag};
use crate::content_format::{self, LINKS};
use crate::request::LONGEST_BODY;

/// Files made by POST in one directory until a free name is found.
const MOST_NAMES: u32 = 10_000;

/// Answers from a directory: GET reads, and if `write`, PUT, POST and DELETE change. Conditions are those of RFC 7252
/// §5.10.8, entity tags those of §5.10.6.
pub(super) async fn answer(directory: Arc<Directory>, write: bool, request: Request) -> Response {
    // Files may be slow; other requests are answered meanwhile.
    let work = tokio::task::spawn_blocking(move || answered(&directory, write, &request));
    work.await.unwrap_or_else(|_| Response::new(Code::INTERNAL_SERVER_ERROR))
}

fn answered(directory: &Directory, write: bool, request: &Request) -> Response {
    let path: Vec<String> = request.path().map(str::to_owned).collect();
    let answer = match request.method() {
        Code::GET => get(directory, &path, request),
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
        ErrorKind::FileTooLarge => refused(Code::INTERNAL_SERVER_ERROR, "the file is too large to be served"),
        ErrorKind::StorageFull => refused(Code::INTERNAL_SERVER_ERROR, "the disk is full"),
        _ => refused(Code::INTERNAL_SERVER_ERROR, "the file cannot be read or written"),
    })
}

fn get(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    let (bytes, format) = match directory.read(path, LONGEST_BODY)? {
        None => return Ok(Response::not_found()),
        Some(Stored::File(bytes)) => (bytes, content_format::of_file(path.last().map_or("", String::as_str))),
        Some(Stored::Directory(names)) => (links(path, &names).into_bytes(), LINKS),
    };
    if request.accept().is_some_and(|wanted| wanted != format) {
        let offered = format!("this is {}", content_format::name(format));
        return Ok(refused(Code::NOT_ACCEPTABLE, &offered));
    }
    let tag = entity_tag(&bytes);
    if request.options().all(number::ETAG).any(|known| known.as_ref() == tag) {
        return Ok(Response::new(Code::VALID).with_etag(tag.to_vec()));
    }
    Ok(Response::content(bytes).with_content_format(format).with_etag(tag.to_vec()))
}

fn put(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    if !condition_holds(directory, path, request)? {
        return Ok(Response::new(Code::PRECONDITION_FAILED));
    }
    let made = directory.write(path, request.payload())?;
    let response = if made { Response::created() } else { Response::changed() };
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
    let ending = request.content_format().map_or("bin", content_format::ending);
    let is_free = |name: &String| names.binary_search(name).is_err();
    let Some(name) = (1..=MOST_NAMES).map(|number| format!("{number}.{ending}")).find(is_free) else {
        return Ok(refused(Code::CONFLICT, "the directory is full"));
    };
    let mut made: Vec<String> = path.iter().filter(|segment| !segment.is_empty()).cloned().collect();
    made.push(name);
    directory.write(&made, request.payload())?;
    let located = |response: Response, segment: &String| {
        response.with_option(number::LOCATION_PATH, segment.clone().into_bytes())
    };
    Ok(made.iter().fold(Response::created(), located))
}

fn delete(directory: &Directory, path: &[String], request: &Request) -> io::Result<Response> {
    if !condition_holds(directory, path, request)? {
        return Ok(Response::new(Code::PRECONDITION_FAILED));
    }
    // What is not there is deleted (RFC 7252 §5.8.4).
    directory.remove(path).map(|_| Response::deleted())
}

/// If-Match and If-None-Match (RFC 7252 §5.10.8).
fn condition_holds(directory: &Directory, path: &[String], request: &Request) -> io::Result<bool> {
    let options = request.options();
    let (wants_match, wants_none) =
        (options.get(number::IF_MATCH).is_some(), options.get(number::IF_NONE_MATCH).is_some());
    if !wants_match && !wants_none {
        return Ok(true);
    }
    let tag = match directory.read(path, LONGEST_BODY)? {
        Some(Stored::File(bytes)) => Some(entity_tag(&bytes)),
        Some(Stored::Directory(_)) => return Ok(!wants_none),
        None => None,
    };
    let matches = || {
        let mut wanted = options.all(number::IF_MATCH);
        tag.is_some_and(|tag| wanted.any(|wanted| wanted.is_empty() || wanted.as_ref() == tag))
    };
    Ok((!wants_match || matches()) && (!wants_none || tag.is_none()))
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

/// A segment as a URI has it (RFC 3986 §3.3).
fn encoded(segment: &str) -> String {
    segment.bytes().fold(String::new(), |text, byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain { format!("{text}{}", char::from(byte)) } else { format!("{text}%{byte:02X}") }
    })
}

fn refused(code: Code, why: &str) -> Response {
    Response::new(code).with_payload(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_told_as_links() {
        let names = ["a b.json".to_owned(), "sub/".to_owned()];
        assert_eq!(links(&["x".to_owned(), String::new()], &names), "</x/a%20b.json>;ct=50,</x/sub/>;ct=40");
        assert_eq!(links(&[], &names), "</a%20b.json>;ct=50,</sub/>;ct=40");
    }
}
