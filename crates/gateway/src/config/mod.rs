//! The file that says what a gateway does.

mod written;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use millpond_live::{ClientSecurity, Code, ControllerChoice, IpNet, OscoreContexts, ServerSecurity, Who};
use millpond_path::{InputError, Size};

use crate::{
    directory::DirectorySettings,
    template::{Goal, Pattern},
};
use written::{QUEUE, Written, bytes, controller_of};

/// What a gateway does: where it listens, whom it asks for what, and how.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) listen: Listen,
    pub(crate) http: Web,
    pub(crate) security: Option<ServerSecurity>,
    pub(crate) client_security: ClientSecurity,
    /// Of those who ask, and of those who are asked; the file has none.
    pub(crate) contexts: Option<OscoreContexts>,
    pub(crate) upstream: Upstream,
    pub(crate) cache: Cache,
    pub(crate) paths: Vec<PathOf>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) forward: Vec<Forward>,
    pub(crate) directory: Option<DirectorySettings>,
    /// Where the file names those of the gateway, and when they expire, since 1970.
    certificates: Vec<(String, Duration)>,
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
    /// Whose addresses are not forged: they need not be validated.
    pub(crate) trust: Vec<IpNet>,
    /// Who observes, over restarts.
    pub(crate) state: Option<PathBuf>,
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
    /// Where it stands in the file.
    pub(crate) place: String,
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
    /// In logs and metrics.
    pub(crate) name: Arc<str>,
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

/// Turns a complaint about a place in the text into one line that names it.
struct At<'t> {
    origin: &'t str,
    text: &'t str,
}

impl At<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn place(&self, at: usize) -> String {
        format!("{}:{}", self.origin, self.line(at))
    }

    fn wrong(&self, at: usize, problem: impl Into<String>) -> InputError {
        InputError::new(self.place(at), problem)
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
        let config = Self::from_toml(&text, &origin, path.parent().unwrap_or(Path::new("")))?;
        #[expect(clippy::disallowed_methods, reason = "certificates expire by the time of day")]
        config.check_certificates(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())?;
        Ok(config)
    }

    /// Whether the gateway's own certificates are good at this time since 1970.
    fn check_certificates(&self, now: Duration) -> Result<(), InputError> {
        let Some((place, expired)) = self.certificates.iter().find(|(_, expires)| *expires < now) else {
            return Ok(());
        };
        let days = (now - *expired).as_secs() / 86_400;
        let problem = format!("the certificate expired {days} days ago; renew it, or check the clock of this machine");
        Err(InputError::new(&**place, problem))
    }

    /// The same from a text, which is called `origin` in errors; files that it names lie in `folder`.
    ///
    /// # Errors
    /// One line that names the place and the fix.
    pub fn from_toml(text: &str, origin: &str, folder: &Path) -> Result<Self, InputError> {
        let at = At { origin, text };
        let written: Written = toml::from_str(text).map_err(|error| InputError::from_toml(origin, text, &error))?;
        let (mut certificates, mut security, mut client_security) = (Vec::new(), None, ClientSecurity::new());
        let mut has_certificate = false;
        if let Some(them) = &written.credentials {
            let wrong = |problem| at.wrong(them.span().start, format!("credentials: {problem}"));
            let (read, expires) = them.get_ref().read(folder).map_err(wrong)?;
            security = Some(read);
            certificates.extend(expires.map(|expires| (at.place(them.span().start), expires)));
            has_certificate = them.get_ref().certificate.is_some();
        }
        if let Some(them) = &written.upstream {
            let wrong = |problem| at.wrong(them.span().start, format!("upstream: {problem}"));
            let (read, expires) = them.get_ref().security(folder).map_err(wrong)?;
            client_security = read;
            certificates.extend(expires.map(|expires| (at.place(them.span().start), expires)));
        }
        let upstream = written.upstream.map(toml::Spanned::into_inner).unwrap_or_default();
        let mut paths: Vec<PathOf> = Vec::new();
        for path in written.path {
            let read = path.get_ref().read(&paths).map_err(|problem| at.wrong(path.span().start, problem))?;
            paths.push(read);
        }
        let mut rules: Vec<(usize, Rule)> = Vec::new();
        for rule in written.rule {
            let line = at.line(rule.span().start);
            let wrong = |problem| at.wrong(rule.span().start, problem);
            let read = rule.get_ref().read(&paths, at.place(rule.span().start)).map_err(wrong)?;
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
        let mut listen = written.listen.unwrap_or_default().read(&at, security.is_some(), has_certificate)?;
        listen.state = listen.state.map(|file| folder.join(file));
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
            contexts: None,
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
            certificates,
        })
    }
}

impl Rule {
    fn shadows(&self, later: &Self) -> bool {
        (self.host.is_none() || self.host == later.host) && self.path.covers(&later.path)
    }
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
        let manual = include_str!("../../../../docs/gateway.md");
        let examples: Vec<&str> =
            manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(examples.len() >= 3);
        let packaged = include_str!("../../../../packaging/debian/gateway.toml");
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

    /// Its own, with which it is asked and with which it asks.
    #[test]
    fn a_certificate_that_has_expired_is_told_with_its_place() {
        let folder = std::env::temp_dir().join(format!("millpond-gateway-expired-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut of = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
        of.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let both = of.self_signed(&key).unwrap().pem() + &key.serialize_pem();
        std::fs::write(folder.join("both.pem"), both).unwrap();
        for table in ["credentials", "upstream"] {
            let text = format!("{RULE}[{table}]\ncertificate = \"both.pem\"\n");
            let config = Config::from_toml(&text, "g.toml", &folder).unwrap();
            let on = |days: u64| config.check_certificates(Duration::from_secs(days * 86_400));
            assert!(on(18_000).is_ok());
            let told = on(18_262 + 3).unwrap_err().to_string();
            assert!(told.starts_with("g.toml:4: the certificate expired 3 days ago"), "{told}");
            std::fs::write(folder.join("g.toml"), text).unwrap();
            assert!(Config::from_file(&folder.join("g.toml")).is_err());
        }
        let _ = std::fs::remove_dir_all(folder);
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
                "[[rule]]\npath = \"/a\"\nto = \"coap://h\"\n[listen]\ntrust = [\"10.0.0.0/40\"]",
                "g.toml:5: \"10.0.0.0/40\" is no network; write 10.77.1.0/24",
            ),
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
            ("\n[credentials]\npsk-file = \"keys\"\n", "g.toml:2: credentials: "),
            ("[credentials]\nkey = \"k\"\n", "belong to a certificate"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(line) && !told.contains('\n'), "{text}: {told}");
        }
    }
}
