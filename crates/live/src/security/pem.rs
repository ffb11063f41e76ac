//! Certificates and keys out of PEM (RFC 7468), and what is wrong with what holds none.

use std::{
    fmt,
    fs::{self, File},
    io::Read as _,
    path::Path,
};

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use zeroize::Zeroizing;

use crate::{Error, Why};

/// The longest file that is read, bytes: all authorities of a system are in less.
const LONGEST: u64 = 16 << 20;

/// PEM and where it came from.
pub(super) struct Source {
    place: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// Where it came from, and nothing of what is in it.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Source {
    /// What was handed over, called `place` in errors.
    pub(super) fn of_bytes(place: &str, bytes: &[u8]) -> Self {
        Self { place: place.to_owned(), bytes: Zeroizing::new(bytes.to_vec()) }
    }

    /// A whole file.
    pub(super) fn of_file(path: &Path) -> Result<Self, Error> {
        let place = path.display().to_string();
        let failed = |why: Why| Error::credential(place.clone(), why);
        let told = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => failed(Why::of("there is no such file; check the path", error)),
            std::io::ErrorKind::PermissionDenied => {
                failed(Why::of("may not be read; check who owns it and its mode", error))
            }
            _ => failed(Why::of(format!("cannot be read: {error}"), error)),
        };
        let about = fs::metadata(path).map_err(told)?;
        if about.is_dir() {
            return Err(failed("is a directory; name the file in it".into()));
        }
        if about.len() > LONGEST {
            return Err(failed(format!("has {} bytes; at most {LONGEST} are read", about.len()).into()));
        }
        // Devices and pipes have no length, and some have no end.
        let mut bytes = Zeroizing::new(Vec::with_capacity(about.len() as usize));
        File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)).map_err(told)?;
        if bytes.len() as u64 > LONGEST {
            return Err(failed(format!("has no end; at most {LONGEST} bytes are read").into()));
        }
        Ok(Self { place, bytes })
    }

    /// One error about it.
    pub(super) fn error(&self, why: impl Into<Why>) -> Error {
        Error::credential(self.place.clone(), why)
    }

    /// What it is called in errors.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// What is in it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All certificates, at least one, in their order.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        self.check_is_pem("x509")?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        let all = all.map_err(|error| self.malformed(error))?;
        if all.is_empty() {
            return Err(self.error(match self.has("PRIVATE KEY-----") {
                true => "holds a private key and no certificate; name the file with BEGIN CERTIFICATE",
                false => "holds no certificate; one begins with -----BEGIN CERTIFICATE-----",
            }));
        }
        Ok(all)
    }

    /// The first private key.
    pub(super) fn private_key(&self) -> Result<Zeroizing<PrivateKeyDer<'static>>, Error> {
        self.check_is_pem("pkey")?;
        if self.has("BEGIN ENCRYPTED PRIVATE KEY") || self.has("Proc-Type: 4,ENCRYPTED") {
            return Err(self.error("the key is encrypted; decrypt it: openssl pkey -in FILE -out DECRYPTED"));
        }
        match PrivateKeyDer::from_pem_slice(&self.bytes) {
            Ok(key) => Ok(Zeroizing::new(key)),
            Err(pem::Error::NoItemsFound) => Err(self.error(match self.has("BEGIN CERTIFICATE") {
                true => "holds a certificate and no private key; name the file with BEGIN PRIVATE KEY",
                false => "holds no private key; one begins with -----BEGIN PRIVATE KEY----- or BEGIN EC PRIVATE KEY",
            })),
            Err(error) => Err(self.malformed(error)),
        }
    }

    fn check_is_pem(&self, command: &str) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Err(self.error("is empty"));
        }
        if self.has("-----BEGIN ") {
            return Ok(());
        }
        let reason = "is not PEM, which has -----BEGIN lines";
        // DER begins with the tag of a sequence.
        Err(match self.bytes.first() {
            Some(0x30) => {
                self.error(format!("{reason}; if it is DER: openssl {command} -inform der -in FILE -out PEM-FILE"))
            }
            _ => self.error(reason),
        })
    }

    fn has(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// What is wrong with the PEM, without its bytes: they may be of a key.
    fn malformed(&self, error: pem::Error) -> Error {
        let reason = match error {
            pem::Error::MissingSectionEnd { .. } => "is cut short: an -----END line is missing",
            pem::Error::IllegalSectionStart { .. } => "is malformed: a -----BEGIN line does not end with -----",
            pem::Error::Base64Decode(_) => "is malformed: what stands between -----BEGIN and -----END is not base64",
            _ => "is malformed PEM",
        };
        match error {
            // They have the whole line that begins it, on which a key may stand.
            pem::Error::IllegalSectionStart { .. } | pem::Error::MissingSectionEnd { .. } => self.error(reason),
            error => self.error(Why::of(reason, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: &[u8]) -> Source {
        Source::of_bytes("x.pem", bytes)
    }

    #[test]
    fn whatever_is_wrong_with_a_file_is_one_line_that_names_it_and_the_fix() {
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cases: [(&[u8], &str); 7] = [
            (b"", "x.pem: is empty"),
            (b"hello", "x.pem: is not PEM"),
            (b"0\x82\x01\x0a", "openssl x509 -inform der"),
            (key, "x.pem: holds a private key and no certificate"),
            (b"-----BEGIN X-----\nAAAA\n-----END X-----\n", "x.pem: holds no certificate"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n", "x.pem: is cut short"),
            (b"-----BEGIN CERTIFICATE-----\n*!*\n-----END CERTIFICATE-----\n", "is not base64"),
        ];
        for (bytes, part) in cases {
            let error = source(bytes).certificates().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
        let cases: [(&[u8], &str); 4] = [
            (b"0\x82", "openssl pkey -inform der"),
            (certificate, "x.pem: holds a certificate and no private key"),
            (b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n", "is encrypted"),
            (b"-----BEGIN PRIVATE KEY-----\nse~cret\n-----END PRIVATE KEY-----\n", "is not base64"),
        ];
        for (bytes, part) in cases {
            let error = source(bytes).private_key().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n') && !error.contains("cret"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_a_directory_is_named() {
        let error = Source::of_file(Path::new("/no/such/file.pem")).unwrap_err().to_string();
        assert_eq!(error, "/no/such/file.pem: there is no such file; check the path");
        let error = Source::of_file(Path::new("/")).unwrap_err().to_string();
        assert_eq!(error, "/: is a directory; name the file in it");
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_told() {
        let error = Source::of_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: has no end; at most 16777216 bytes are read");
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let key = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        let shown = format!("{:?}", source(key));
        assert!(!shown.contains("c2Vj") && !shown.contains("99, 50"), "{shown}");
    }
}
