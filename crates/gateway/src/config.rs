//! The file that says what a gateway does.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use millpond_live::{
    ClientSecurity, Code, ControllerChoice, DEFAULT_PORT, DEFAULT_SECURE_PORT, IpNet, KeyedCertificate, PreSharedKey,
    PreSharedKeys, ServerSecurity, TrustAnchors, Who,
};
use millpond_path::{Duration as Time, InputError, Size, unknown};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    directory::DirectorySettings,
    template::{Goal, Pattern},
};

/// What a gateway does: where it listens, whom it asks for what, and how.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) listen: Listen,
    pub(crate) http: Web,
    pub(crate) security: Option<ServerSecurity>,
    pub(crate) client_security: ClientSecurity,
    pub(crate) upstream: Upstream,
    pub(crate) cache: Cache,
    pub(crate) paths: Vec<PathOf>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) forward: Vec<Forward>,
    pub(crate) directory: Option<DirectorySettings>,
}

/// Addresses to listen at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listen {
    pub(crate) coap: Vec<SocketAddr>,
    pub(crate) coap_tcp: Vec<SocketAddr>,
    pub(crate) coaps: Vec<SocketAddr>,
    pub(crate) coaps_tcp: Vec<SocketAddr>,
    pub(crate) http: Vec<SocketAddr>,
    pub(crate) https: Vec<SocketAddr>,
    pub(crate) metrics: Option<SocketAddr>,
}

/// How it is asked by HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    /// Whose pages may ask, beside those of the gateway itself.
    pub(crate) origins: Vec<String>,
    /// Bytes of a body, at most.
    pub(crate) body: usize,
    /// At a time.
    pub(crate) connections: usize,
}

/// How those are asked that stand in no `[[path]]`.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) nstart: u16,
    pub(crate) queue: usize,
    pub(crate) controller: ControllerChoice,
}

/// What is kept of answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cache {
    pub(crate) bytes: usize,
    pub(crate) stale_if_error: Duration,
}

/// Devices behind one link.
#[derive(Clone, Debug)]
pub(crate) struct PathOf {
    pub(crate) name: String,
    pub(crate) devices: Vec<IpNet>,
    pub(crate) nstart: u16,
    pub(crate) queue: usize,
    pub(crate) controller: ControllerChoice,
}

/// Requests for a path are answered by somebody else.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) host: Option<String>,
    pub(crate) path: Pattern,
    pub(crate) goal: Goal,
    /// A request waits until its endpoint has registered and is in its session, as long as it may take.
    pub(crate) waits: bool,
    pub(crate) rights: Rights,
    pub(crate) timeout: Duration,
}

/// Who may ask, and with which methods; without any, everybody and all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    pub(crate) who: Vec<Who>,
    pub(crate) methods: Vec<Code>,
}

/// Whom clients may name themselves.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    pub(crate) to: Vec<Destination>,
    /// By which schemes.
    pub(crate) schemes: Vec<&'static str>,
    pub(crate) rights: Rights,
    pub(crate) timeout: Duration,
}

/// Whom a client may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Network(IpNet),
    /// A name, or with `*.` before it all below it.
    Name(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    listen: Option<WrittenListen>,
    http: Option<Spanned<WrittenHttp>>,
    credentials: Option<Credentials>,
    upstream: Option<WrittenUpstream>,
    cache: Option<WrittenCache>,
    directory: Option<WrittenDirectory>,
    #[serde(default)]
    path: Vec<Spanned<WrittenPath>>,
    #[serde(default)]
    rule: Vec<Spanned<WrittenRule>>,
    #[serde(default)]
    forward: Vec<Spanned<WrittenForward>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenListen {
    coap: Option<Spanned<Vec<String>>>,
    coap_tcp: Option<Spanned<Vec<String>>>,
    coaps: Option<Spanned<Vec<String>>>,
    coaps_tcp: Option<Spanned<Vec<String>>>,
    http: Option<Spanned<Vec<String>>>,
    https: Option<Spanned<Vec<String>>>,
    metrics: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenHttp {
    #[serde(default)]
    origins: Vec<String>,
    body: Option<Size>,
    connections: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Credentials {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    psk_file: Option<PathBuf>,
    client_ca: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenUpstream {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    psk_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    nstart: Option<u16>,
    queue: Option<usize>,
    controller: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenCache {
    size: Option<Size>,
    stale_if_error: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenDirectory {
    file: Option<PathBuf>,
    size: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenPath {
    name: String,
    devices: Vec<String>,
    nstart: Option<u16>,
    queue: Option<usize>,
    controller: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenRule {
    host: Option<String>,
    path: String,
    to: String,
    #[serde(default)]
    wait: bool,
    #[serde(default)]
    who: Vec<String>,
    #[serde(default)]
    methods: Vec<String>,
    timeout: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenForward {
    to: Vec<String>,
    schemes: Option<Vec<String>>,
    #[serde(default)]
    who: Vec<String>,
    #[serde(default)]
    methods: Vec<String>,
    timeout: Option<Time>,
}

/// How long a client is kept waiting. EXCHANGE_LIFETIME of RFC 7252 §4.8.2 is 247 s, after which nobody waits.
const TIMEOUT: Duration = Duration::from_secs(120);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(240);
/// By which clients may have others asked, unless a rule says otherwise.
const OF_COAP: [&str; 4] = ["coap", "coap+tcp", "coaps", "coaps+tcp"];
const SCHEMES: [&str; 6] = ["coap", "coap+tcp", "coaps", "coaps+tcp", "http", "https"];
/// Bytes of a body of HTTP: more is a long transfer to a device.
const LONGEST_BODY: usize = 1 << 20;
const MOST_OF_A_BODY: usize = 16 << 20;
/// Connections of HTTP at a time, each of which is one that asks.
const CONNECTIONS: usize = 1_024;
/// Requests that wait for their turn before one path. A judgement: more than that many devices rarely report at once.
const QUEUE: usize = 200;

/// Turns a complaint about a place in the text into one line that names it.
struct At<'t> {
    origin: &'t str,
    text: &'t str,
}

impl At<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn wrong(&self, at: usize, problem: impl Into<String>) -> InputError {
        InputError::new(format!("{}:{}", self.origin, self.line(at)), problem)
    }
}

impl Config {
    /// Reads the file at this path; files that it names lie beside it.
    ///
    /// # Errors
    /// One line that names the place and the fix.
    pub fn from_file(path: &Path) -> Result<Self, InputError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| InputError::new(&*origin, error.to_string()))?;
        Self::from_toml(&text, &origin, path.parent().unwrap_or(Path::new("")))
    }

    /// The same from a text, which is called `origin` in errors; files that it names lie in `folder`.
    ///
    /// # Errors
    /// One line that names the place and the fix.
    pub fn from_toml(text: &str, origin: &str, folder: &Path) -> Result<Self, InputError> {
        let at = At { origin, text };
        let written: Written = toml::from_str(text).map_err(|error| InputError::from_toml(origin, text, &error))?;
        let upstream = written.upstream.unwrap_or_default();
        let has_certificate = written.credentials.as_ref().is_some_and(|them| them.certificate.is_some());
        let security = written.credentials.map(|them| them.read(folder)).transpose();
        let security = security.map_err(|problem| InputError::at_key(origin, "credentials", problem))?;
        let client_security = upstream.security(folder);
        let client_security = client_security.map_err(|problem| InputError::at_key(origin, "upstream", problem))?;
        let mut paths: Vec<PathOf> = Vec::new();
        for path in written.path {
            let read = path.get_ref().read(&paths).map_err(|problem| at.wrong(path.span().start, problem))?;
            paths.push(read);
        }
        let mut rules: Vec<(usize, Rule)> = Vec::new();
        for rule in written.rule {
            let line = at.line(rule.span().start);
            let wrong = |problem| at.wrong(rule.span().start, problem);
            let read = rule.get_ref().read(&paths).map_err(wrong)?;
            if read.goal.is_endpoint() && written.directory.is_none() {
                return Err(wrong("asks endpoints of a directory, and there is none; write [directory]".into()));
            }
            if let Some((before, _)) = rules.iter().find(|(_, before)| before.shadows(&read)) {
                let problem = format!("the rule for {} is never used: the one in line {before} comes first", read.path);
                return Err(wrong(problem));
            }
            rules.push((line, read));
        }
        let forward = written
            .forward
            .iter()
            .map(|forward| forward.get_ref().read().map_err(|problem| at.wrong(forward.span().start, problem)));
        let forward: Vec<Forward> = forward.collect::<Result<_, _>>()?;
        if rules.is_empty() && forward.is_empty() && written.directory.is_none() {
            let problem = "has neither [[rule]] nor [[forward]] nor [directory]; write [[rule]] with path and to";
            return Err(InputError::new(origin, problem));
        }
        let listen = written.listen.unwrap_or_default().read(&at, security.is_some(), has_certificate)?;
        let (place, http) = written.http.map_or_else(Default::default, |http| (http.span().start, http.into_inner()));
        let http = http.read().map_err(|problem| at.wrong(place, problem))?;
        let controller = upstream.controller.as_ref();
        let controller =
            controller.map(|text| controller_of(text.get_ref()).map_err(|it| at.wrong(text.span().start, it)));
        let cache = written.cache.unwrap_or_default();
        Ok(Self {
            listen,
            http,
            security,
            client_security,
            upstream: Upstream {
                nstart: upstream.nstart.unwrap_or(1).max(1),
                queue: upstream.queue.unwrap_or(QUEUE),
                controller: controller.transpose()?.unwrap_or_default(),
            },
            cache: Cache {
                bytes: bytes(cache.size.unwrap_or(Size(16 << 20))),
                stale_if_error: cache.stale_if_error.map_or(Duration::ZERO, |time| Duration::from_micros(time.0)),
            },
            paths,
            rules: rules.into_iter().map(|(_, rule)| rule).collect(),
            directory: written.directory.map(|directory| DirectorySettings {
                file: directory.file.map(|file| folder.join(file)),
                memory: directory.size.map_or(DirectorySettings::default().memory, bytes),
            }),
            forward,
        })
    }
}

impl WrittenListen {
    fn read(self, at: &At<'_>, is_secured: bool, has_certificate: bool) -> Result<Listen, InputError> {
        let all = |written: Option<Spanned<Vec<String>>>, port: u16| -> Result<Vec<SocketAddr>, InputError> {
            let Some(written) = written else { return Ok(Vec::new()) };
            let read = |text: &String| address(text, port).map_err(|problem| at.wrong(written.span().start, problem));
            written.get_ref().iter().map(read).collect()
        };
        if let Some(secure) = self.coaps.as_ref().or(self.coaps_tcp.as_ref()).filter(|_| !is_secured) {
            let problem = "wants [credentials] with certificate and key, or for coaps with psk-file";
            return Err(at.wrong(secure.span().start, problem));
        }
        if let Some(https) = self.https.as_ref().filter(|_| !has_certificate) {
            return Err(at.wrong(https.span().start, "wants [credentials] with certificate and key"));
        }
        let metrics = self
            .metrics
            .map(|text| address(text.get_ref(), 9_100).map_err(|problem| at.wrong(text.span().start, problem)));
        let listen = Listen {
            coap: all(self.coap, DEFAULT_PORT)?,
            coap_tcp: all(self.coap_tcp, DEFAULT_PORT)?,
            coaps: all(self.coaps, DEFAULT_SECURE_PORT)?,
            coaps_tcp: all(self.coaps_tcp, DEFAULT_SECURE_PORT)?,
            http: all(self.http, 80)?,
            https: all(self.https, 443)?,
            metrics: metrics.transpose()?,
        };
        Ok(match [&listen.coap, &listen.coap_tcp, &listen.coaps, &listen.coaps_tcp].iter().all(|all| all.is_empty()) {
            // This machine alone, unless it is told otherwise.
            true => Listen { coap: vec![(Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()], ..listen },
            false => listen,
        })
    }
}

impl WrittenHttp {
    fn read(self) -> Result<Web, String> {
        for origin in &self.origins {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
            if host.is_empty() || host.contains(['/', '?', '#', '@', '*']) || host.contains(char::is_uppercase) {
                return Err(format!(
                    "origins: {origin:?} is no origin; write scheme and host as browsers do: https://panel.example"
                ));
            }
        }
        let body = self.body.map_or(LONGEST_BODY, bytes);
        if body == 0 || body > MOST_OF_A_BODY {
            return Err(format!("body is to be above 0 and at most {} MiB", MOST_OF_A_BODY >> 20));
        }
        let connections = self.connections.unwrap_or(CONNECTIONS);
        if connections == 0 {
            return Err("connections is 0; use 1 or more".into());
        }
        Ok(Web { origins: self.origins, body, connections })
    }
}

impl Credentials {
    fn read(&self, folder: &Path) -> Result<ServerSecurity, String> {
        let told = |error: millpond_live::Error| error.to_string();
        let mut security = ServerSecurity::new();
        if let Some(certificate) = &self.certificate {
            let key = folder.join(self.key.as_ref().unwrap_or(certificate));
            security = security.certificate(KeyedCertificate::from_files(folder.join(certificate), key).map_err(told)?);
        } else if self.key.is_some() || self.client_ca.is_some() {
            return Err("key and client-ca belong to a certificate; write certificate = \"FILE\"".into());
        }
        if let Some(keys) = &self.psk_file {
            security = security.pre_shared_keys(PreSharedKeys::from_file(folder.join(keys)).map_err(told)?);
        }
        if let Some(authority) = &self.client_ca {
            let of = TrustAnchors::from_file(folder.join(authority)).map_err(told)?;
            security = security.demand_client_certificates(of);
        }
        match self.certificate.is_some() || self.psk_file.is_some() {
            true => Ok(security),
            false => Err("has neither certificate nor psk-file".into()),
        }
    }
}

impl WrittenUpstream {
    fn security(&self, folder: &Path) -> Result<ClientSecurity, String> {
        let told = |error: millpond_live::Error| error.to_string();
        let mut security = ClientSecurity::new();
        if let Some(certificate) = &self.certificate {
            let key = folder.join(self.key.as_ref().unwrap_or(certificate));
            security = security.certificate(KeyedCertificate::from_files(folder.join(certificate), key).map_err(told)?);
        }
        if let Some(authority) = &self.ca {
            security = security.trust(TrustAnchors::from_file(folder.join(authority)).map_err(told)?);
        }
        if let Some(key) = &self.psk_file {
            security = security.pre_shared_key(PreSharedKey::from_file(folder.join(key)).map_err(told)?);
        }
        Ok(security)
    }
}

impl WrittenPath {
    fn read(&self, others: &[PathOf]) -> Result<PathOf, String> {
        if let Some(other) = others.iter().find(|other| other.name == self.name) {
            return Err(format!("two paths are called {:?}", other.name));
        }
        if self.devices.is_empty() {
            return Err(format!("path {:?} has no devices; write devices = [\"10.77.1.0/24\"]", self.name));
        }
        let devices: Vec<IpNet> = self.devices.iter().map(|text| network(text)).collect::<Result<_, _>>()?;
        for other in others {
            let shared = |one: &IpNet| other.devices.iter().any(|it| it.contains(one) || one.contains(it));
            if let Some(shared) = devices.iter().find(|one| shared(one)) {
                return Err(format!("{shared} is of the path {:?}, too; a device is behind one", other.name));
            }
        }
        Ok(PathOf {
            name: self.name.clone(),
            devices,
            nstart: self.nstart.unwrap_or(1).max(1),
            queue: self.queue.unwrap_or(QUEUE),
            controller: self.controller.as_deref().map(controller_of).transpose()?.unwrap_or_default(),
        })
    }
}

impl WrittenRule {
    fn read(&self, paths: &[PathOf]) -> Result<Rule, String> {
        let path = Pattern::read(&self.path).map_err(|problem| format!("path {:?} {problem}", self.path))?;
        let goal = Goal::read(&self.to, &path).map_err(|problem| format!("to {:?} {problem}", self.to))?;
        if goal.has_open_host() && !goal.is_endpoint() && paths.is_empty() {
            return Err(format!(
                "to {:?} lets clients say who is asked; a [[path]] must name the devices among which that may be",
                self.to
            ));
        }
        if self.wait && !goal.is_endpoint() {
            return Err("wait is for devices that register; write to = \"endpoint://...\"".into());
        }
        Ok(Rule {
            waits: self.wait,
            host: self.host.as_ref().map(|host| host.to_ascii_lowercase()),
            path,
            goal,
            rights: rights(&self.who, &self.methods)?,
            timeout: timeout(self.timeout)?,
        })
    }
}

impl Rule {
    fn shadows(&self, later: &Self) -> bool {
        (self.host.is_none() || self.host == later.host) && self.path.covers(&later.path)
    }
}

impl WrittenForward {
    fn read(&self) -> Result<Forward, String> {
        if self.to.is_empty() {
            return Err("forwards to nobody; write to = [\"10.77.1.0/24\", \"*.example.org\"]".into());
        }
        let to = self.to.iter().map(|text| destination(text)).collect::<Result<_, _>>()?;
        let scheme = |text: &String| {
            SCHEMES.into_iter().find(|known| known == text).ok_or_else(|| unknown("scheme", text, &SCHEMES))
        };
        let schemes = match &self.schemes {
            Some(schemes) => schemes.iter().map(scheme).collect::<Result<_, _>>()?,
            None => OF_COAP.to_vec(),
        };
        Ok(Forward { to, schemes, rights: rights(&self.who, &self.methods)?, timeout: timeout(self.timeout)? })
    }
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

fn timeout(written: Option<Time>) -> Result<Duration, String> {
    let timeout = written.map_or(TIMEOUT, |time| Duration::from_micros(time.0));
    if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
        return Err(format!(
            "timeout is to be above 0 and at most {} s, after which no client waits",
            LONGEST_TIMEOUT.as_secs()
        ));
    }
    Ok(timeout)
}

fn rights(who: &[String], methods: &[String]) -> Result<Rights, String> {
    Ok(Rights {
        who: who.iter().map(|text| whom(text)).collect::<Result<_, _>>()?,
        methods: methods.iter().map(|text| method(text)).collect::<Result<_, _>>()?,
    })
}

fn whom(text: &str) -> Result<Who, String> {
    match text.split_once(':') {
        Some(("psk", identity)) => Ok(Who::pre_shared_key(identity)),
        Some(("cert", name)) => Ok(Who::certificate(name)),
        _ if text == "identified" => Ok(Who::identified()),
        _ => Who::network(text).map_err(|_| {
            format!(
                "who: {text:?} is no network (10.0.0.0/8, 2001:db8::/32), nor psk:IDENTITY, cert:NAME or identified"
            )
        }),
    }
}

fn method(text: &str) -> Result<Code, String> {
    let known = BTreeMap::from([
        ("GET", Code::GET),
        ("POST", Code::POST),
        ("PUT", Code::PUT),
        ("DELETE", Code::DELETE),
        ("FETCH", Code::FETCH),
        ("PATCH", Code::PATCH),
        ("iPATCH", Code::IPATCH),
    ]);
    let names: Vec<&str> = known.keys().copied().collect();
    known.get(text).copied().ok_or_else(|| unknown("method", text, &names))
}

fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let wrong = || format!("{text:?} is no network; write 10.77.1.0/24, 2001:db8::/64, or an address");
    text.parse().ok().or_else(address).ok_or_else(wrong)
}

fn destination(text: &str) -> Result<Destination, String> {
    if text.contains("://") {
        return Err(format!("to {text:?}: write a network or a name, without a scheme"));
    }
    if let Ok(network) = network(text) {
        return Ok(Destination::Network(network));
    }
    let name = text.to_ascii_lowercase();
    let bare = name.strip_prefix("*.").unwrap_or(&name);
    let is_name =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match bare.split('.').all(is_name) {
        true => Ok(Destination::Name(name)),
        false => Err(format!(
            "to {text:?} is neither a network nor a name; write 10.77.1.0/24, device.example or *.example.org"
        )),
    }
}

fn controller_of(text: &str) -> Result<ControllerChoice, String> {
    text.parse().map_err(|error: millpond_live::UnknownController| error.to_string())
}

/// ADDRESS or ADDRESS:PORT.
fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let ip = || bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port));
    let wrong = || format!("{text:?} is no address; write 0.0.0.0, [::]:{port} or 192.0.2.1:{port}");
    text.parse().ok().or_else(ip).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        Config::from_toml(text, "g.toml", Path::new("/nowhere")).map_err(|error| error.to_string())
    }

    /// What the manual shows can be used.
    #[test]
    fn the_examples_of_the_manual_are_read() {
        let manual = include_str!("../../../docs/gateway.md");
        let examples: Vec<&str> =
            manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(examples.len() >= 3);
        let packaged = include_str!("../../../packaging/debian/gateway.toml");
        for example in examples.into_iter().chain([packaged]) {
            read(example).unwrap_or_else(|problem| panic!("{problem}\n{example}"));
        }
    }

    const RULE: &str = "[[rule]]\npath = \"/a\"\nto = \"coap://h/a\"\n";

    #[test]
    fn a_rule_is_enough() {
        let config = read(RULE).unwrap();
        assert_eq!(config.listen.coap, ["127.0.0.1:5683".parse().unwrap()]);
        assert_eq!((config.rules.len(), config.cache.bytes, config.upstream.nstart), (1, 16 << 20, 1));
        let config =
            read(&format!("{RULE}[listen]\ncoap = [\"::\", \"[::1]:7\", \"0.0.0.0\"]\nmetrics = \"127.0.0.1\""))
                .unwrap();
        let listens: Vec<String> = config.listen.coap.iter().map(ToString::to_string).collect();
        assert_eq!(listens, ["[::]:5683", "[::1]:7", "0.0.0.0:5683"]);
    }

    #[test]
    fn whatever_cannot_be_used_is_one_line_that_names_the_place_and_what_can() {
        for (text, line) in [
            ("", "g.toml: has neither [[rule]] nor [[forward]] nor [directory]"),
            ("[[rul]]\n", "g.toml:1: unknown key `rul`: did you mean `rule`?"),
            (
                "[[rule]]\npath = \"/a\"\nto = \"coap://h\"\nmethod = []",
                "g.toml:4: unknown key `method`: did you mean `methods`?",
            ),
            (
                "[[rule]]\npath = \"/a\"\nto = \"coap://h\"\nmethods = [\"GTE\"]",
                "g.toml:1: unknown method `GTE`: did you mean `GET`?",
            ),
            ("[[rule]]\npath = \"a\"\nto = \"coap://h\"", "g.toml:1: path \"a\" does not begin with a slash"),
            ("[[rule]]\npath = \"/a\"\nto = \"ftp://h\"", "unknown scheme"),
            (
                "\n[[rule]]\npath = \"/{id}\"\nto = \"coap://10.0.0.{id}/\"",
                "g.toml:2: to \"coap://10.0.0.{id}/\" lets clients say",
            ),
            (
                "[[rule]]\npath = \"/{*all}\"\nto = \"coap://h/\"\n[[rule]]\npath = \"/a\"\nto = \"coap://g/\"",
                "g.toml:4: the rule for /a is never used: the one in line 1 comes first",
            ),
            ("[[rule]]\npath = \"/a\"\nto = \"coap://h\"\ntimeout = \"5 min\"", "at most 240 s"),
            (
                "[[rule]]\npath = \"/a\"\nto = \"coap://h\"\nwho = [\"10.0.0.0/40\"]",
                "who: \"10.0.0.0/40\" is no network",
            ),
            ("[[path]]\nname = \"cell\"\ndevices = []", "path \"cell\" has no devices"),
            (
                "[[path]]\nname = \"a\"\ndevices = [\"10.0.0.0/8\"]\n[[path]]\nname = \"b\"\ndevices = [\"10.1.0.0/16\"]",
                "g.toml:4: 10.1.0.0/16 is of the path \"a\", too",
            ),
            ("[[path]]\nname = \"a\"\ndevices = [\"10.0.0.0/8\"]\ncontroller = \"calmer\"", "calmer"),
            ("[[forward]]\nto = []", "forwards to nobody"),
            ("[[forward]]\nto = [\"coap://h\"]", "without a scheme"),
            ("[[forward]]\nto = [\"h\"]\nschemes = [\"htp\"]", "g.toml:1: unknown scheme `htp`: did you mean `http`?"),
            ("[[forward]]\nto = [\"a b\"]", "neither a network nor a name"),
            ("[[rule]]\npath = \"/a\"\nto = \"coap://h\"\n[listen]\ncoaps = [\"::\"]", "g.toml:5: wants [credentials]"),
            (
                "[[rule]]\npath = \"/a\"\nto = \"coap://h\"\n[listen]\ncoap = [\"here\"]",
                "g.toml:5: \"here\" is no address",
            ),
            (
                "[[rule]]\npath = \"/{n}\"\nto = \"endpoint://{n}/\"",
                "g.toml:1: asks endpoints of a directory, and there is none",
            ),
            ("[[rule]]\npath = \"/a\"\nto = \"coap://h\"\nwait = true", "g.toml:1: wait is for devices that register"),
            ("[listen]\nhttps = [\"::\"]\n[directory]\n", "g.toml:2: wants [credentials] with certificate and key"),
            (
                "[http]\norigins = [\"panel.example\"]\n[directory]\n",
                "is no origin; write scheme and host as browsers do",
            ),
            ("\n[http]\nbody = \"17 MiB\"\n[directory]\n", "g.toml:2: body is to be above 0 and at most 16 MiB"),
            ("[http]\norigin = []\n", "g.toml:2: unknown key `origin`: did you mean `origins`?"),
            ("[credentials]\npsk-file = \"keys\"\n", "g.toml: credentials: "),
            ("[credentials]\nkey = \"k\"\n", "belong to a certificate"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(line) && !told.contains('\n'), "{text}: {told}");
        }
    }
}
