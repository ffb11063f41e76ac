//! What stands in the file, and what it means.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use millpond_live::{
    ClientSecurity, Code, ControllerChoice, DEFAULT_PORT, DEFAULT_SECURE_PORT, IpNet, KeyedCertificate, METHODS,
    PreSharedKey, PreSharedKeys, ServerSecurity, TrustAnchors, Who,
};
use millpond_path::{Duration as Time, InputError, Size, unknown};
use serde::Deserialize;
use toml::Spanned;

use super::{At, Destination, Forward, Listen, PathOf, Rights, Rule, Web};
use crate::template::{Goal, Pattern};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    pub(super) listen: Option<WrittenListen>,
    pub(super) http: Option<Spanned<WrittenHttp>>,
    pub(super) credentials: Option<Spanned<Credentials>>,
    pub(super) upstream: Option<Spanned<WrittenUpstream>>,
    pub(super) cache: Option<WrittenCache>,
    pub(super) directory: Option<WrittenDirectory>,
    #[serde(default)]
    pub(super) path: Vec<Spanned<WrittenPath>>,
    #[serde(default)]
    pub(super) rule: Vec<Spanned<WrittenRule>>,
    #[serde(default)]
    pub(super) forward: Vec<Spanned<WrittenForward>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenListen {
    pub(super) coap: Option<Spanned<Vec<String>>>,
    pub(super) coap_tcp: Option<Spanned<Vec<String>>>,
    pub(super) coaps: Option<Spanned<Vec<String>>>,
    pub(super) coaps_tcp: Option<Spanned<Vec<String>>>,
    pub(super) http: Option<Spanned<Vec<String>>>,
    pub(super) https: Option<Spanned<Vec<String>>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) trust: Option<Spanned<Vec<String>>>,
    pub(super) state: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenHttp {
    #[serde(default)]
    pub(super) origins: Vec<String>,
    pub(super) body: Option<Size>,
    pub(super) connections: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Credentials {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) psk_file: Option<PathBuf>,
    pub(super) client_ca: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenUpstream {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) psk_file: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
    pub(super) nstart: Option<u16>,
    pub(super) queue: Option<usize>,
    pub(super) controller: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenCache {
    pub(super) size: Option<Size>,
    pub(super) stale_if_error: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenDirectory {
    pub(super) file: Option<PathBuf>,
    pub(super) size: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenPath {
    pub(super) name: String,
    pub(super) devices: Vec<String>,
    pub(super) nstart: Option<u16>,
    pub(super) queue: Option<usize>,
    pub(super) controller: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenRule {
    pub(super) host: Option<String>,
    pub(super) path: String,
    pub(super) to: String,
    #[serde(default)]
    pub(super) wait: bool,
    #[serde(default)]
    pub(super) who: Vec<String>,
    #[serde(default)]
    pub(super) methods: Vec<String>,
    pub(super) timeout: Option<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrittenForward {
    pub(super) to: Vec<String>,
    pub(super) schemes: Option<Vec<String>>,
    #[serde(default)]
    pub(super) who: Vec<String>,
    #[serde(default)]
    pub(super) methods: Vec<String>,
    pub(super) timeout: Option<Time>,
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
pub(super) const QUEUE: usize = 200;

impl WrittenListen {
    pub(super) fn read(self, at: &At<'_>, is_secured: bool, has_certificate: bool) -> Result<Listen, InputError> {
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
        let trust = self.trust.map_or(Ok(Vec::new()), |trust| {
            let networks = trust.get_ref().iter().map(|text| network(text)).collect::<Result<_, _>>();
            networks.map_err(|problem| at.wrong(trust.span().start, problem))
        });
        let listen = Listen {
            coap: all(self.coap, DEFAULT_PORT)?,
            coap_tcp: all(self.coap_tcp, DEFAULT_PORT)?,
            coaps: all(self.coaps, DEFAULT_SECURE_PORT)?,
            coaps_tcp: all(self.coaps_tcp, DEFAULT_SECURE_PORT)?,
            http: all(self.http, 80)?,
            https: all(self.https, 443)?,
            metrics: metrics.transpose()?,
            trust: trust?,
            state: self.state,
        };
        Ok(match [&listen.coap, &listen.coap_tcp, &listen.coaps, &listen.coaps_tcp].iter().all(|all| all.is_empty()) {
            // This machine alone, unless it is told otherwise.
            true => Listen { coap: vec![(Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()], ..listen },
            false => listen,
        })
    }
}

impl WrittenHttp {
    pub(super) fn read(self) -> Result<Web, String> {
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
    /// Them, and when the certificate expires.
    pub(super) fn read(&self, folder: &Path) -> Result<(ServerSecurity, Option<Duration>), String> {
        let told = |error: millpond_live::Error| error.to_string();
        let (mut security, mut expires) = (ServerSecurity::new(), None);
        if let Some(certificate) = &self.certificate {
            let own = own(folder, certificate, self.key.as_ref())?;
            expires = own.expires_at().map(Duration::from_secs);
            security = security.certificate(own);
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
            true => Ok((security, expires)),
            false => Err("has neither certificate nor psk-file".into()),
        }
    }
}

impl WrittenUpstream {
    /// With what devices are asked, and when the certificate expires.
    pub(super) fn security(&self, folder: &Path) -> Result<(ClientSecurity, Option<Duration>), String> {
        let told = |error: millpond_live::Error| error.to_string();
        let (mut security, mut expires) = (ClientSecurity::new(), None);
        if let Some(certificate) = &self.certificate {
            let own = own(folder, certificate, self.key.as_ref())?;
            expires = own.expires_at().map(Duration::from_secs);
            security = security.certificate(own);
        }
        if let Some(authority) = &self.ca {
            security = security.trust(TrustAnchors::from_file(folder.join(authority)).map_err(told)?);
        }
        if let Some(key) = &self.psk_file {
            security = security.pre_shared_key(PreSharedKey::from_file(folder.join(key)).map_err(told)?);
        }
        Ok((security, expires))
    }
}

impl WrittenPath {
    pub(super) fn read(&self, others: &[PathOf]) -> Result<PathOf, String> {
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
    pub(super) fn read(&self, paths: &[PathOf], place: String) -> Result<Rule, String> {
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
            place,
        })
    }
}

impl WrittenForward {
    pub(super) fn read(&self) -> Result<Forward, String> {
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
        Ok(Forward {
            name: "forward".into(),
            to,
            schemes,
            rights: rights(&self.who, &self.methods)?,
            timeout: timeout(self.timeout)?,
        })
    }
}

fn own(folder: &Path, certificate: &Path, key: Option<&PathBuf>) -> Result<KeyedCertificate, String> {
    let key = folder.join(key.map_or(certificate, PathBuf::as_path));
    KeyedCertificate::from_files(folder.join(certificate), key).map_err(|error| error.to_string())
}

pub(super) fn bytes(size: Size) -> usize {
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
        Some(("oscore", id)) => Who::oscore(id).map_err(|error| format!("who: {}", error.unnamed())),
        _ if text == "identified" => Ok(Who::identified()),
        _ => Who::network(text).map_err(|_| {
            format!(
                "who: {text:?} is no network (10.0.0.0/8, 2001:db8::/32), nor psk:IDENTITY, cert:NAME, oscore:ID or identified"
            )
        }),
    }
}

fn method(text: &str) -> Result<Code, String> {
    let found = METHODS.iter().find(|(known, _)| *known == text);
    found.map(|(_, code)| *code).ok_or_else(|| unknown("method", text, &METHODS.map(|(name, _)| name)))
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

pub(super) fn controller_of(text: &str) -> Result<ControllerChoice, String> {
    text.parse().map_err(|error: millpond_live::UnknownController| error.to_string())
}

/// ADDRESS or ADDRESS:PORT.
fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let ip = || bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port));
    let wrong = || format!("{text:?} is no address; write 0.0.0.0, [::]:{port} or 192.0.2.1:{port}");
    text.parse().ok().or_else(ip).ok_or_else(wrong)
}
