//! Security contexts of OSCORE (RFC 8613) in files: what both sides were given, and which sequence numbers were used.
//!
//! A context is a TOML file that nobody but its owner may read. Beside it lies a file of its name and `.sent`, to which a line is added
//! before further sequence numbers are used: the bound below which they are, by which number the file system knows the file, and the
//! second when it was written, which is also when the file says that it was modified last. A line that is not whole does not count, so
//! whenever a write is cut short, what counts is what was there before. A process that uses a context holds the lock of that file.
//!
//! A file of which the file system does not say what its last line does is a copy, was restored or written over, and may be older than
//! what was used since. Its sequence numbers then continue behind all that can have been used. One that was written over in place with its
//! time kept says the same, and is not told from itself.
//!
//! Where keys are derived anew whenever a side begins (Appendix B.2), no sequence numbers are stored.
//!
//! Instead of a context a file may have credentials, by which one is agreed upon (EDHOC, RFC 9528). Its keys end with the process.
//!
//! Either may name the server that a client asks under it, which chooses among several files by that.

mod choosing;

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millpond_coap::oscore::{Algorithm, Context, Hash, Parameters, PartialIv, Start};
use millpond_live::{Authority, ClientBuilder, EdhocCredentials, OscoreContexts, Uri, UriError};
use millpond_path::{InputError, unknown};
use serde::{Deserialize, de::IgnoredAny};
use toml::Spanned;
use zeroize::Zeroizing;

use crate::arguments::NewContexts;
use crate::failure::Failure;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    server: Option<Spanned<String>>,
    secret: Zeroizing<String>,
    salt: Option<Zeroizing<String>>,
    id_context: Option<String>,
    sender_id: String,
    recipient_id: String,
    algorithm: Option<String>,
    hash: Option<String>,
    #[serde(default)]
    derive_anew: bool,
}

/// A file with credentials.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCredentials {
    server: Option<Spanned<String>>,
    private_key: Zeroizing<String>,
    credential: String,
    peers: Vec<String>,
}

/// What tells the two kinds of files apart.
#[derive(Deserialize)]
struct Kind {
    private_key: Option<IgnoredAny>,
}

/// A file that can be used, of which nothing is locked yet.
struct Looked {
    path: PathBuf,
    holds: Holds,
    /// For whom it is, if it says so, and in which line.
    server: Option<(Authority, usize)>,
}

enum Holds {
    Context(Written),
    Credentials(EdhocCredentials),
}

/// What a file has.
enum Given {
    Context(Context, Sent),
    Credentials(EdhocCredentials),
}

/// Hashes by the names of the file.
const HASHES: [(&str, Hash); 2] = [("SHA-256", Hash::Sha256), ("SHA-512", Hash::Sha512)];

/// Sequence numbers that are left out where the file may be older than what was used, and how many more for each millisecond since its
/// last line: more than a context uses in that time, also if one copy is restored again and again. Of the 2^40 that there are that is
/// four years' worth.
const SKIPPED: u64 = 1 << 24;
const SKIPPED_A_MILLISECOND: u64 = 8;

/// The file of the sequence numbers of one context, locked as long as this lives.
#[derive(Debug)]
pub struct Sent {
    file: File,
}

/// A line of it.
#[derive(Clone, Copy)]
struct Line {
    bound: u64,
    /// The file that it was written to, and when; nothing if somebody wrote it by hand.
    written: Option<(u64, Duration)>,
}

impl Sent {
    /// Opens the file beside that of a context. With the bound that was stored last.
    fn open(context: &Path) -> Result<(Self, u64), Failure> {
        let path = beside(context);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage(format!(
                "{}: no such file, and it says which sequence numbers were used; make a new pair of contexts, or if its keys were \
                 never used, write 0 into it",
                path.display()
            )),
            _ => Failure::of_file(path.display(), &error),
        };
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::Usage(format!(
                "{}: in use by another process; a context is for one at a time",
                context.display()
            )),
            TryLockError::Error(error) => failed(error),
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        is_private(&path.display().to_string(), &metadata)?;
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let lines: Option<Vec<_>> = lines.map(Line::read).collect();
        let last = lines.and_then(|lines| lines.into_iter().max_by_key(|line| line.bound)).ok_or_else(|| {
            Failure::Usage(format!("{}: not a whole number in each line; make a new pair of contexts", path.display()))
        })?;
        let bound = match last.written {
            Some(written) if written != (number_of(&metadata), since_1970(metadata.modified().map_err(failed)?)) => {
                let since = now().saturating_sub(written.1);
                let skipped =
                    SKIPPED_A_MILLISECOND.saturating_mul(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
                last.bound.saturating_add(SKIPPED).saturating_add(skipped).min(PartialIv::LIMIT)
            }
            _ => last.bound,
        };
        if !text.ends_with('\n') {
            // What was cut short does not become part of the next line.
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok((Self { file }, bound))
    }

    /// Stores a bound so that it is there after a power cut.
    ///
    /// # Errors
    /// It is not stored.
    pub fn store(&mut self, bound: u64) -> io::Result<()> {
        // An even second is what every file system can keep.
        let at = Duration::from_secs(now().as_secs() & !1);
        let line = format!("{bound} {} {}\n", number_of(&self.file.metadata()?), at.as_secs());
        self.file.write_all(line.as_bytes())?;
        self.file.set_modified(UNIX_EPOCH + at)?;
        self.file.sync_all()
    }
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').map(|field| field.parse::<u64>().ok());
        let bound = fields.next()??;
        let written = match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => None,
            (Some(number), Some(at), None) => Some((number?, Duration::from_secs(at?))),
            _ => return None,
        };
        Some(Self { bound, written })
    }
}

/// Since 1970.
#[expect(clippy::disallowed_methods, reason = "what a file system knows of a file is the time of day")]
fn now() -> Duration {
    since_1970(SystemTime::now())
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// By which the file system knows a file, and no copy of it.
#[cfg(unix)]
fn number_of(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// Nothing that can be asked for here.
#[cfg(not(unix))]
fn number_of(_: &fs::Metadata) -> u64 {
    0
}

/// Where the sequence numbers of a context are.
fn beside(context: &Path) -> PathBuf {
    let mut name = context.as_os_str().to_owned();
    name.push(".sent");
    name.into()
}

/// Reads a context, and locks it.
///
/// # Errors
/// A file that cannot be read, that others may read, or that is in use; one line that names what in it cannot be used, and what can.
pub fn read(path: &Path) -> Result<(Context, Sent), Failure> {
    match Looked::at(path)?.open()? {
        Given::Context(context, sent) => Ok((context, sent)),
        Given::Credentials(_) => Err(Failure::Usage(format!("{}: has credentials and no context", path.display()))),
    }
}

impl Looked {
    /// Reads a file. Whatever is wrong with it is told before the file of the sequence numbers is looked for.
    fn at(path: &Path) -> Result<Self, Failure> {
        let origin = path.display().to_string();
        let failed = |error: io::Error| Failure::of_file(&origin, &error);
        let mut file = File::open(path).map_err(failed)?;
        is_private(&origin, &file.metadata().map_err(failed)?)?;
        let mut text = Zeroizing::new(String::new());
        file.read_to_string(&mut text).map_err(failed)?;
        let (holds, server) = understood(&origin, &text).map_err(usage)?;
        Ok(Self { path: path.to_owned(), holds, server })
    }

    /// Takes what it has, and locks it.
    fn open(self) -> Result<Given, Failure> {
        match self.holds {
            Holds::Credentials(ours) => Ok(Given::Credentials(ours)),
            Holds::Context(written) => {
                let (sent, bound) = Sent::open(&self.path)?;
                let context = derive(&self.path.display().to_string(), &written, Start::Stored(bound));
                Ok(Given::Context(context.map_err(usage)?, sent))
            }
        }
    }

    fn server(&self) -> Option<&Authority> {
        self.server.as_ref().map(|(server, _)| server)
    }

    /// Where it says for whom it is, or would.
    fn place(&self) -> String {
        let path = self.path.display();
        self.server.as_ref().map_or_else(|| path.to_string(), |(_, line)| format!("{path}:{line}"))
    }
}

fn usage(error: InputError) -> Failure {
    Failure::Usage(error.to_string())
}

fn understood(origin: &str, text: &str) -> Result<(Holds, Option<(Authority, usize)>), InputError> {
    let malformed = |error: toml::de::Error| InputError::from_toml(origin, text, &error);
    let (holds, server) = if toml::from_str::<Kind>(text).is_ok_and(|kind| kind.private_key.is_some()) {
        let mut written: WrittenCredentials = toml::from_str(text).map_err(malformed)?;
        let server = written.server.take();
        (Holds::Credentials(credentials(origin, &written)?), server)
    } else {
        let mut written: Written = toml::from_str(text).map_err(malformed)?;
        let server = written.server.take();
        derive(origin, &written, Start::Fresh)?;
        (Holds::Context(written), server)
    };
    let server = server.map(|server| {
        let line = text.get(..server.span().start).unwrap_or(text).matches('\n').count() + 1;
        let at = |problem: String| InputError::at_key(&format!("{origin}:{line}"), "server", problem);
        Ok((server.get_ref().parse().map_err(|error| at(why(error)))?, line))
    });
    Ok((holds, server.transpose()?))
}

/// Why a server is none, where what was written is told already.
fn why(error: UriError) -> String {
    match error {
        UriError::Malformed { why, .. } => why,
        other => other.to_string(),
    }
}

fn credentials(origin: &str, written: &WrittenCredentials) -> Result<EdhocCredentials, InputError> {
    let key = bytes(origin, "private_key", &written.private_key)?;
    let own = bytes(origin, "credential", &written.credential)?;
    let peers = written.peers.iter().map(|peer| bytes(origin, "peers", peer)).collect::<Result<Vec<_>, _>>()?;
    if peers.is_empty() {
        return Err(InputError::at_key(origin, "peers", "names nobody; give the credential of each that is taken"));
    }
    EdhocCredentials::new(&key, &own, peers.iter().map(|peer| peer.as_slice()))
        .map_err(|error| InputError::new(origin, error.to_string()))
}

fn bytes(origin: &str, key: &str, digits: &str) -> Result<Zeroizing<Vec<u8>>, InputError> {
    let problem = "give hexadecimal digits, two for each byte";
    crate::values::hex(digits).map(Zeroizing::new).map_err(|_| InputError::at_key(origin, key, problem))
}

/// The contexts of a server, locked as long as what is returned is used. Whom they name matters to clients alone.
///
/// # Errors
/// As [`read`], two contexts that cannot be told apart, and more than one file of credentials.
pub fn of_server(paths: &[PathBuf]) -> Result<OscoreContexts, Failure> {
    served(paths, |_| None)
}

/// The contexts of a gateway, locked as long as what is returned is used: those that name a server are for what it asks there, the others for
/// those who ask it.
///
/// # Errors
/// As [`of_server`]; credentials that name a server.
pub fn of_gateway(paths: &[PathBuf]) -> Result<OscoreContexts, Failure> {
    served(paths, |looked| looked.server().cloned())
}

/// Whether these files can be used. Nothing is locked.
///
/// # Errors
/// A file that cannot be read, that others may read, or in which something cannot be used.
pub fn check(paths: &[PathBuf]) -> Result<(), Failure> {
    paths.iter().try_for_each(|path| Looked::at(path).map(drop))
}

fn served(paths: &[PathBuf], asked: impl Fn(&Looked) -> Option<Authority>) -> Result<OscoreContexts, Failure> {
    let contexts = OscoreContexts::new();
    let mut accepts = false;
    for path in paths {
        let looked = Looked::at(path)?;
        let (asked, place) = (asked(&looked), looked.place());
        match (looked.open()?, asked) {
            (Given::Context(context, mut sent), None) => contexts.add(context, move |bound| sent.store(bound))?,
            (Given::Context(context, mut sent), Some(server)) => {
                contexts.add_for(server, context, move |bound| sent.store(bound))?;
            }
            (Given::Credentials(_), Some(_)) => {
                let told = "credentials for a server; a gateway agrees upon contexts with those who ask it, and asks under contexts";
                return Err(Failure::Usage(format!("{place}: {told}")));
            }
            (Given::Credentials(_), None) if accepts => {
                let told = "a second file with credentials; write all that are taken into the peers of one";
                return Err(Failure::Usage(format!("{}: {told}", path.display())));
            }
            (Given::Credentials(ours), None) => {
                accepts = true;
                contexts.accept(ours)?;
            }
        }
    }
    Ok(contexts)
}

/// The context of a client for the server of this URI: of these files that which is for it. It is locked as long as what is returned is used,
/// or agreed upon with that server by a client like this.
///
/// # Errors
/// As [`read`], of any of the files; two that are for one server, or none that is for this one; a server that agrees upon nothing.
pub async fn of_client(paths: &[PathBuf], client: ClientBuilder, server: &Uri) -> Result<OscoreContexts, Failure> {
    let looked = paths.iter().map(|path| Looked::at(path)).collect::<Result<Vec<_>, _>>()?;
    let contexts = OscoreContexts::new();
    match choosing::choose(looked, server)?.open()? {
        Given::Context(context, mut sent) => contexts.add(context, move |bound| sent.store(bound))?,
        Given::Credentials(ours) => {
            let client = client.build().await?;
            contexts.establish(&client, server, &ours).await?;
            client.shutdown().await;
        }
    }
    Ok(contexts)
}

/// Nobody but its owner may read it.
#[cfg(unix)]
fn is_private(origin: &str, metadata: &fs::Metadata) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(Failure::Usage(format!("{origin}: others than its owner may use it (mode {mode:o}); chmod 600 {origin}")))
}

/// Who may read it is nothing that is asked here.
#[cfg(not(unix))]
fn is_private(_: &str, _: &fs::Metadata) -> Result<(), Failure> {
    Ok(())
}

fn derive(origin: &str, written: &Written, start: Start) -> Result<Context, InputError> {
    let bytes = |key: &str, digits: &str| bytes(origin, key, digits);
    let secret = bytes("secret", &written.secret)?;
    let salt = bytes("salt", written.salt.as_ref().map_or("", |salt| salt.as_str()))?;
    let id_context = written.id_context.as_deref().map(|digits| bytes("id_context", digits)).transpose()?;
    let (sender_id, recipient_id) =
        (bytes("sender_id", &written.sender_id)?, bytes("recipient_id", &written.recipient_id)?);
    let algorithm = written.algorithm.as_deref().map(algorithm).transpose();
    let hash = written.hash.as_deref().map(hash).transpose();
    let parameters = Parameters {
        secret: &secret,
        salt: &salt,
        id_context: id_context.as_ref().map(|bytes| bytes.as_slice()),
        sender_id: &sender_id,
        recipient_id: &recipient_id,
        algorithm: algorithm.map_err(|problem| InputError::at_key(origin, "algorithm", problem))?.unwrap_or_default(),
        hash: hash.map_err(|problem| InputError::at_key(origin, "hash", problem))?.unwrap_or_default(),
    };
    let context = if written.derive_anew {
        if id_context.is_some() {
            let problem = "is drawn anew where derive_anew is true; leave one of the two out";
            return Err(InputError::at_key(origin, "id_context", problem));
        }
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed)
            .map_err(|error| InputError::new(origin, format!("the operating system gives no random bytes: {error}")))?;
        Context::derive_anew(&parameters, *seed)
    } else {
        Context::derive(&parameters, start)
    };
    context.map_err(|error| InputError::new(origin, error.to_string()))
}

/// The algorithm of this name.
///
/// # Errors
/// The nearest that there is.
pub fn algorithm(name: &str) -> Result<Algorithm, String> {
    let known: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let found = Algorithm::ALL.iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| unknown("algorithm", name, &known))
}

fn hash(name: &str) -> Result<Hash, String> {
    let found = HASHES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, hash)| *hash).ok_or_else(|| unknown("hash", name, &HASHES.map(|(known, _)| known)))
}

/// Makes the contexts of a client and of its server, with a new secret.
///
/// # Errors
/// A file that is there already, or cannot be written; an ID that does not fit.
pub fn new(flags: &NewContexts) -> Result<(), Failure> {
    let NewContexts { client, server, asked, edhoc, derive_anew, algorithm, client_id, server_id } = flags;
    if *edhoc {
        return new_credentials(client, server, asked.as_ref());
    }
    let mut random = Zeroizing::new([0; 26]);
    getrandom::fill(random.as_mut_slice())
        .map_err(|error| Failure::Failed(format!("the operating system gives no random bytes: {error}")))?;
    let (secret, rest) = random.split_at(16);
    let (salt, own) = rest.split_at(8);
    let client_id = client_id.as_deref().unwrap_or(own.get(..algorithm.longest_id()).unwrap_or(own));
    let parameters = Parameters {
        salt,
        sender_id: client_id,
        recipient_id: server_id,
        algorithm: *algorithm,
        ..Parameters::of(secret)
    };
    Context::derive(&parameters, Start::Fresh).map_err(|error| Failure::Usage(error.to_string()))?;
    write(client, &parameters, *derive_anew, asked.as_ref())?;
    write(server, &parameters.mirrored(), *derive_anew, None)?;
    writeln!(
        anstream::stdout(),
        "{} for the client, {} for the server, each with its file .sent: move them there, and keep no copies",
        client.display(),
        server.display()
    )?;
    Ok(())
}

/// Makes credentials of a client and of its server, each of which takes the other.
fn new_credentials(client: &Path, server: &Path, asked: Option<&Authority>) -> Result<(), Failure> {
    let mut kids = [0; 8];
    getrandom::fill(&mut kids)
        .map_err(|error| Failure::Failed(format!("the operating system gives no random bytes: {error}")))?;
    let (of_client, of_server) = kids.split_at(4);
    let (one, other) = (EdhocCredentials::generate(of_client)?, EdhocCredentials::generate(of_server)?);
    for (path, (key, own), (_, peer), asked) in [(client, &one, &other, asked), (server, &other, &one, None)] {
        let text = Zeroizing::new(format!(
            "# Credentials for EDHOC (RFC 9528). Anybody who has the private key is taken for its owner; the others are no secret.\n\
             private_key = \"{}\"\ncredential = \"{}\"\npeers = [\"{}\"]\n{}",
            *hex(&**key),
            *hex(own),
            *hex(peer),
            naming(asked)
        ));
        create(path, text.as_bytes())?;
    }
    writeln!(
        anstream::stdout(),
        "{} for the client, {} for the server: move them there; a server takes each client whose credential is in its peers",
        client.display(),
        server.display()
    )?;
    Ok(())
}

/// Writes a context that was never used into a file that was not there.
fn write(
    path: &Path,
    parameters: &Parameters<'_>,
    derive_anew: bool,
    asked: Option<&Authority>,
) -> Result<(), Failure> {
    let mut text = Zeroizing::new(String::new());
    // A string takes whatever is written.
    let _ = write!(
        text,
        "# A security context of OSCORE (RFC 8613). Anybody who has it can read and forge every message.\n\
         secret = \"{}\"\nsalt = \"{}\"\nsender_id = \"{}\"\nrecipient_id = \"{}\"\nalgorithm = \"{}\"\n",
        *hex(parameters.secret),
        *hex(parameters.salt),
        *hex(parameters.sender_id),
        *hex(parameters.recipient_id),
        parameters.algorithm.name()
    );
    if derive_anew {
        text.push_str(
            "# Both sides derive keys anew whenever one of them begins (Appendix B.2).\nderive_anew = true\n",
        );
    }
    text.push_str(&naming(asked));
    create(path, text.as_bytes())?;
    let sent = beside(path);
    let file = create(&sent, b"")?;
    Sent { file }.store(0).map_err(|error| Failure::of_file(sent.display(), &error))
}

/// Lines for whom it is.
fn naming(asked: Option<&Authority>) -> String {
    asked.map_or_else(String::new, |asked| format!("# A client asks nobody else under it.\nserver = \"{asked}\"\n"))
}

/// Digits of bytes.
fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut digits = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Writes a file that was not there, for its owner alone.
fn create(path: &Path, bytes: &[u8]) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{}: there already; name another file, or remove this one", path.display()))
        }
        _ => Failure::of_file(path.display(), &error),
    };
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(file)
}
