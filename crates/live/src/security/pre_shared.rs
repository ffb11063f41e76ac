//! Keys that both sides were given beforehand (RFC 4279).

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use zeroize::Zeroizing;

use super::pem::Source;
use crate::{Error, Why};

/// The longest identity and the longest key, bytes: what a handshake can carry (RFC 4279 §2).
const LONGEST: usize = u16::MAX as usize;

/// A key and the name under which the other side knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct PreSharedKey {
    identity: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl PreSharedKey {
    /// An identity, which is sent in the clear, and the key, which is not.
    ///
    /// # Errors
    /// One of them is empty or longer than a handshake can carry.
    pub fn new(identity: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let (identity, key) = (identity.into(), Zeroizing::new(key.into()));
        checked(identity, key).map_err(|reason| Error::credential("the pre-shared key", reason))
    }

    /// From text: `IDENTITY:KEY`. Either is the text itself, or hexadecimal digits behind `0x`; the identity ends at the
    /// first colon.
    ///
    /// # Errors
    /// There is no colon, one of them is empty, odd digits behind `0x`. The key is not in the error.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        parsed(text).map_err(|reason| Error::credential("the pre-shared key", reason))
    }

    /// From a file with one line of `IDENTITY:KEY`, as [`from_text`](Self::from_text) takes it. Empty lines and those
    /// that begin with `#` do not count.
    ///
    /// # Errors
    /// No such file, a line that cannot be used, none or several keys in it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let source = Source::of_file(path.as_ref())?;
        let mut keys = lines(&source)?;
        match (keys.pop(), keys.len()) {
            (Some(key), 0) => Ok(key),
            (Some(_), more) => Err(source.error(format!("holds {} keys; a client speaks with one", more + 1))),
            (None, _) => Err(source.error("holds no key; write one as IDENTITY:KEY")),
        }
    }

    /// The name of the key.
    #[must_use]
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// The key.
    pub(crate) fn key(&self) -> &Zeroizing<Vec<u8>> {
        &self.key
    }
}

/// The key is not shown.
impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = String::from_utf8_lossy(&self.identity);
        f.debug_struct("PreSharedKey").field("identity", &identity).finish_non_exhaustive()
    }
}

type Lookup = dyn Fn(&[u8]) -> Option<Zeroizing<Vec<u8>>> + Send + Sync;

/// The pre-shared keys that a server knows, by identity.
#[derive(Clone)]
pub struct PreSharedKeys {
    known: Known,
}

#[derive(Clone)]
enum Known {
    Table(BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>),
    Lookup(Arc<Lookup>),
}

impl PreSharedKeys {
    /// These keys.
    ///
    /// # Errors
    /// There are none, or two with one identity.
    pub fn new(keys: impl IntoIterator<Item = PreSharedKey>) -> Result<Self, Error> {
        table(keys).map_err(|reason| Error::credential("the pre-shared keys", reason))
    }

    /// From a file with a line of `IDENTITY:KEY` for each, as [`PreSharedKey::from_text`] takes them. Empty lines and
    /// those that begin with `#` do not count.
    ///
    /// # Errors
    /// No such file, a line that cannot be used, no key in it, two with one identity.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let source = Source::of_file(path.as_ref())?;
        table(lines(&source)?).map_err(|reason| source.error(reason))
    }

    /// Whatever this function has for an identity. It is called in the task that receives: do little there. An empty key
    /// counts as none.
    #[must_use]
    pub fn from_fn(key_of: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let lookup = move |identity: &[u8]| key_of(identity).map(Zeroizing::new);
        Self { known: Known::Lookup(Arc::new(lookup)) }
    }

    /// The key of an identity.
    pub(crate) fn key_of(&self, identity: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        match &self.known {
            Known::Table(keys) => keys.get(identity).cloned(),
            Known::Lookup(key_of) => {
                // It is the application's: if it panics, this identity has no key, and nobody else is harmed.
                let found = catch_unwind(AssertUnwindSafe(|| key_of(identity)));
                let found = found.unwrap_or_else(|_| {
                    tracing::error!(target: "millpond_live", "the function that looks up pre-shared keys panicked");
                    None
                });
                found.filter(|key| !key.is_empty())
            }
        }
    }
}

/// No key is shown.
impl fmt::Debug for PreSharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.known {
            Known::Table(keys) => write!(f, "PreSharedKeys({} of them)", keys.len()),
            Known::Lookup(_) => f.write_str("PreSharedKeys(by a function)"),
        }
    }
}

fn table(keys: impl IntoIterator<Item = PreSharedKey>) -> Result<PreSharedKeys, String> {
    let mut known = BTreeMap::new();
    for PreSharedKey { identity, key } in keys {
        if known.contains_key(&identity) {
            return Err(format!("there are two keys for {:?}; keep one", String::from_utf8_lossy(&identity)));
        }
        known.insert(identity, key);
    }
    if known.is_empty() {
        return Err("there is no key; write each as IDENTITY:KEY".into());
    }
    Ok(PreSharedKeys { known: Known::Table(known) })
}

/// The keys in a file.
fn lines(source: &Source) -> Result<Vec<PreSharedKey>, Error> {
    let text = std::str::from_utf8(source.bytes()).map_err(|error| {
        source.error(Why::of("is not UTF-8; write other bytes as hexadecimal digits behind 0x", error))
    })?;
    let counts = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let numbered = text.lines().map(str::trim).enumerate().filter(|(_, line)| counts(line));
    numbered
        .map(|(place, line)| parsed(line).map_err(|reason| source.error(format!("line {}: {reason}", place + 1))))
        .collect()
}

fn parsed(text: &str) -> Result<PreSharedKey, String> {
    let (identity, key) = text.split_once(':').ok_or("there is no colon; write IDENTITY:KEY")?;
    let identity = bytes(identity).ok_or("behind 0x of the identity belong pairs of hexadecimal digits")?;
    let key = bytes(key).ok_or("behind 0x of the key belong pairs of hexadecimal digits")?;
    checked(identity.to_vec(), key)
}

fn checked(identity: Vec<u8>, key: Zeroizing<Vec<u8>>) -> Result<PreSharedKey, String> {
    if identity.is_empty() {
        return Err("the identity is empty; the other side finds the key by it".into());
    }
    if key.is_empty() {
        return Err("the key is empty; give at least one byte, better 16 random ones".into());
    }
    if identity.len() > LONGEST || key.len() > LONGEST {
        return Err(format!("identity and key have at most {LONGEST} bytes"));
    }
    Ok(PreSharedKey { identity, key })
}

/// A text, or the bytes that digits behind `0x` stand for.
fn bytes(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let Some(digits) = text.strip_prefix("0x") else {
        return Some(Zeroizing::new(text.as_bytes().to_vec()));
    };
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect::<Option<Vec<u8>>>().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does not compile for what is kept in any other way.
    #[test]
    fn keys_are_wiped_when_they_are_dropped() {
        fn wiped<K: zeroize::ZeroizeOnDrop>(_: &K) -> bool {
            std::mem::needs_drop::<K>()
        }
        let key = PreSharedKey::new("sensor", "secret").unwrap();
        assert!(wiped(key.key()));
        let keys = PreSharedKeys::new([key]).unwrap();
        assert!(wiped(&keys.key_of(b"sensor").unwrap()));
    }

    #[test]
    fn a_key_is_text_or_digits_and_never_shown() {
        let plain = PreSharedKey::from_text("sensor:se:cret").unwrap();
        assert_eq!((plain.identity(), &plain.key()[..]), (&b"sensor"[..], &b"se:cret"[..]));
        let digits = PreSharedKey::from_text("0x3a00:0x00fF10").unwrap();
        assert_eq!((digits.identity(), &digits.key()[..]), (&[0x3a, 0][..], &[0, 0xff, 0x10][..]));
        let keys = PreSharedKeys::new([plain.clone(), digits]).unwrap();
        for shown in [format!("{plain:?}"), format!("{keys:?}")] {
            assert!(!shown.contains("cret") && !shown.contains("255"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_key_is_one_line_without_the_key() {
        for (text, part) in [
            ("secret", "no colon"),
            (":secret", "the identity is empty"),
            ("me:", "the key is empty"),
            ("me:0x", "the key is empty"),
            ("me:0xsecret", "pairs of hexadecimal digits"),
            ("me:0x123", "pairs of hexadecimal digits"),
            ("0xg:1", "of the identity"),
        ] {
            let error = PreSharedKey::from_text(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret") && !error.contains('\n'), "{text}: {error}");
        }
        assert!(PreSharedKey::new("", "x").is_err() && PreSharedKey::new("x", "").is_err());
    }

    #[test]
    fn a_server_finds_keys_by_table_or_by_function() {
        let keys = PreSharedKeys::new([PreSharedKey::new("a", "1").unwrap(), PreSharedKey::new("b", "2").unwrap()]);
        let keys = keys.unwrap();
        assert_eq!(keys.key_of(b"b").as_deref(), Some(&b"2".to_vec()));
        assert!(keys.key_of(b"c").is_none());
        let twice = [PreSharedKey::new("a", "1").unwrap(), PreSharedKey::new("a", "2").unwrap()];
        assert!(PreSharedKeys::new(twice).unwrap_err().to_string().contains("two keys for \"a\""));
        assert!(PreSharedKeys::new([]).is_err());
        let keys = PreSharedKeys::from_fn(|identity| (identity == b"x").then(|| b"y".to_vec()));
        assert_eq!(keys.key_of(b"x").as_deref(), Some(&b"y".to_vec()));
        assert!(keys.key_of(b"y").is_none() && PreSharedKeys::from_fn(|_| Some(Vec::new())).key_of(b"x").is_none());
    }

    #[test]
    fn a_file_has_a_key_on_each_line() {
        let source = Source::of_bytes("keys", b"# ours\n\n a:1 \nb:0x32\r\n");
        let keys = table(lines(&source).unwrap()).unwrap();
        assert_eq!(keys.key_of(b"a").as_deref(), Some(&b"1".to_vec()));
        assert_eq!(keys.key_of(b"b").as_deref(), Some(&b"2".to_vec()));
        let error = lines(&Source::of_bytes("keys", b"a:1\nsecret\n")).unwrap_err().to_string();
        assert_eq!(error, "keys: line 2: there is no colon; write IDENTITY:KEY");
    }
}
