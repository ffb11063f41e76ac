//! The interfaces of RFC 9176 as resources of a server.

use std::{future::Future, net::SocketAddr, time::Duration};

use millpond_live::{ContentFormat, Request, Resource, Response, ServerBuilder, number};

use super::{
    Directory, Parameters, Query, Refusal, Registrant,
    lookup::{Kind, LookUp},
};

/// Puts a directory into a server: registration (`/rd`, §5), operations on registrations (`/rd/{id}`, §5.3), simple registration
/// (`/.well-known/rd`, §5.1) and look-ups (`/rd-lookup/ep`, `/rd-lookup/res`, §6), which can be observed.
///
/// Who changes anything has to prove its address first ([`Resource::after_proof`]).
#[must_use]
pub fn routes(builder: ServerBuilder, directory: &Directory) -> ServerBuilder {
    let links = |rt: &str| Resource::new().resource_type(rt).content_format(ContentFormat::LINK_FORMAT);
    let look_up = |rt: &str, kind| {
        let handler =
            handler(directory, move |directory, request| async move { look_up(&directory, &request, kind).await });
        links(rt).observable(&directory.shared.changed).get(handler)
    };
    let registration = Resource::new()
        .post(handler(directory, |directory, request| async move { update(&directory, &request) }))
        .delete(handler(directory, |directory, request| async move { remove(&directory, &request) }));
    let simple = Resource::new()
        .post(handler(directory, |directory, request| async move { register_simply(&directory, &request).await }));
    builder
        .route("/rd", links("core.rd").post(handler(directory, register)).after_proof())
        .route("/rd/{id}", registration.after_proof())
        .route("/.well-known/rd", simple.hidden().after_proof())
        .route("/rd-lookup/ep", look_up("core.rd-lookup-ep", Kind::Endpoints))
        .route("/rd-lookup/res", look_up("core.rd-lookup-res", Kind::Resources))
}

/// A handler that has the directory.
fn handler<R: Future, F: Fn(Directory, Request) -> R>(
    directory: &Directory,
    handle: F,
) -> impl Fn(Request) -> R + use<R, F> {
    let directory = directory.clone();
    move |request| handle(directory.clone(), request)
}

/// Registration (§5).
async fn register(directory: Directory, request: Request) -> Result<Response, Refusal> {
    if request.content_format().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
        return Err(Refusal::Format);
    }
    let links = std::str::from_utf8(request.payload()).map_err(|_| Refusal::malformed("the links are not UTF-8"))?;
    let parameters = Parameters::read(request.query())?;
    let by = Registrant::from(&request);
    let id = directory.shared.change(|registry, now| registry.register(now, &by, parameters, links))?;
    let created = Response::created().with_option(number::LOCATION_PATH, "rd");
    Ok(created.with_option(number::LOCATION_PATH, id.to_string()))
}

/// Update (§5.3.1).
fn update(directory: &Directory, request: &Request) -> Result<Response, Refusal> {
    if !request.payload().is_empty() {
        return Err(Refusal::malformed("an update has no payload; register again to change links"));
    }
    let (id, parameters) = (id(request)?, Parameters::read(request.query())?);
    let by = Registrant::from(request);
    directory.shared.change(|registry, now| registry.update(now, id, &by, parameters))?;
    Ok(Response::changed())
}

/// Removal (§5.3.2).
fn remove(directory: &Directory, request: &Request) -> Result<Response, Refusal> {
    let (id, by) = (id(request)?, Registrant::from(request));
    directory.shared.change(|registry, now| registry.remove(now, id, &by))?;
    Ok(Response::deleted())
}

/// As it stands in locations, and in no other way.
fn id(request: &Request) -> Result<u64, Refusal> {
    let text = request.parameter("id").unwrap_or_default();
    text.parse().ok().filter(|id: &u64| id.to_string() == text).ok_or(Refusal::NotFound)
}

/// Simple registration (§5.1). It is answered once the links were fetched.
async fn register_simply(directory: &Directory, request: &Request) -> Result<Response, Refusal> {
    let parameters = Parameters::read(request.query())?;
    if parameters.base.is_some() {
        return Err(Refusal::malformed("base is not for simple registration; register at /rd"));
    }
    if parameters.name.is_none() {
        return Err(Refusal::malformed("ep is missing, the name of the endpoint"));
    }
    if !request.payload().is_empty() {
        return Err(Refusal::malformed("simple registration has no payload; links are fetched from /.well-known/core"));
    }
    let (shared, by) = (&directory.shared, Registrant::from(request));
    let known = shared.registry().fresh_links(shared.clock.now(), &by, &parameters);
    let (links, fresh_for) = match known {
        Some(links) => (links, None),
        None => {
            let (links, fresh_for) = shared.fetching.fetch(&by).await?;
            (links, Some(fresh_for))
        }
    };
    shared.change(|registry, now| {
        let until = fresh_for.map(|fresh_for: Duration| now.saturating_add(fresh_for));
        registry.register_simply(now, &by, parameters, &links, until)
    })?;
    Ok(Response::changed())
}

/// Bytes of links that a look-up goes through before others have their turn. A judgement: well below a millisecond.
const STEP: usize = 64 << 10;

/// Look-ups (§6). Those that are not through in one step take turns, by network, one at a time; unvalidated addresses, which may
/// be forged, share a turn.
async fn look_up(directory: &Directory, request: &Request, kind: Kind) -> Result<Response, Refusal> {
    if request.accept().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
        return Err(Refusal::NotAcceptable);
    }
    let shared = &directory.shared;
    let mut look_up = LookUp::new(kind, Query::of(request)?);
    let step = |look_up: &mut LookUp| shared.registry().step(shared.clock.now(), look_up, STEP);
    if !step(&mut look_up)? {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let peer = if request.is_address_proved() { request.peer() } else { nobody };
        let _turn = shared.turns.acquire(peer, 1).await;
        while !step(&mut look_up)? {
            tokio::task::yield_now().await;
        }
    }
    Ok(Response::content(look_up.into_text()).with_content_format(ContentFormat::LINK_FORMAT))
}
