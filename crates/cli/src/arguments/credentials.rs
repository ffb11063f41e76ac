//! Flags with what secure sessions are made with.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use millpond_live::{ClientSecurity, KeyedCertificate, PreSharedKey, PreSharedKeys, ServerSecurity, TrustAnchors};

use crate::failure::Failure;

/// What a client holds.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Security (coaps, coaps+tcp)")]
pub struct ClientCredentials {
    /// Trust servers by the certificates in this PEM file [those of the system].
    #[arg(long, value_name = "FILE", visible_alias = "cacert")]
    pub ca: Option<PathBuf>,
    /// The certificate that a server may demand, PEM, with those that signed it behind it.
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key, PEM [in the file of --cert].
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The pre-shared key for coaps; text, or hexadecimal digits behind 0x. Everybody on this machine can see it in the
    /// list of processes: --psk-file hides it.
    #[arg(long, value_name = "IDENTITY:KEY", conflicts_with = "psk_file")]
    pub psk: Option<Hidden>,
    /// The pre-shared key for coaps is in this file, a line IDENTITY:KEY.
    #[arg(long, value_name = "FILE")]
    pub psk_file: Option<PathBuf>,
    /// Accept any certificate of a server. Anybody on the path can read and change everything: for trials alone.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
}

/// What a server holds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security (coaps, coaps+tcp)")]
#[command(group = ArgGroup::new("secured").args(["cert", "psk_file"]).multiple(true))]
pub struct ServerCredentials {
    /// Listen for coaps and coaps+tcp, with this certificate, PEM, and those that signed it behind it.
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key, PEM [in the file of --cert].
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Of clients with certificates serve those that show one of these authorities, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub client_ca: Option<PathBuf>,
    /// Listen for coaps, with the pre-shared keys in this file, a line IDENTITY:KEY for each.
    #[arg(long, value_name = "FILE")]
    pub psk_file: Option<PathBuf>,
    /// The port for security; 0 takes a free one.
    #[arg(long, default_value_t = millpond_live::DEFAULT_SECURE_PORT, value_name = "PORT", requires = "secured")]
    pub secure_port: u16,
    /// Listen in the clear, too: --port, --tcp and groups. With keys or a certificate nothing is served in the clear
    /// otherwise.
    #[arg(long, requires = "secured")]
    pub also_plain: bool,
    /// Serve nothing in the clear: the default as soon as there are keys or a certificate.
    #[arg(long, requires = "secured", conflicts_with = "also_plain")]
    pub secure_only: bool,
    /// Who may do what, and how often: a TOML file, read again with the keys. Without it everybody may read, and change
    /// what --write lets be changed; where clients prove an identity (--psk-file, --client-ca), only those that did.
    #[arg(long, value_name = "FILE")]
    pub rights: Option<PathBuf>,
}

impl ClientCredentials {
    /// Everything read and checked.
    ///
    /// # Errors
    /// A file that cannot be used, or a key.
    pub fn read(&self) -> Result<ClientSecurity, Failure> {
        let mut security = ClientSecurity::new();
        if let Some(path) = &self.ca {
            security = security.trust(TrustAnchors::from_file(path)?);
        }
        if let Some(path) = &self.cert {
            security = security.certificate(KeyedCertificate::from_files(path, self.key.as_ref().unwrap_or(path))?);
        }
        if let Some(Hidden(text)) = &self.psk {
            let key = PreSharedKey::from_text(text).map_err(|error| Failure::Usage(format!("--psk: {error}")))?;
            security = security.pre_shared_key(key);
        }
        if let Some(path) = &self.psk_file {
            security = security.pre_shared_key(PreSharedKey::from_file(path)?);
        }
        if self.insecure {
            security = security.dangerously_accept_any_certificate();
        }
        Ok(security)
    }
}

impl ServerCredentials {
    /// Whether there is anything to make secure sessions with.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.cert.is_some() || self.psk_file.is_some()
    }

    /// Whether to serve in the clear.
    #[must_use]
    pub const fn serves_plain(&self) -> bool {
        self.also_plain || !self.is_given()
    }

    /// Whether clients can prove who they are.
    #[must_use]
    pub const fn tells_clients_apart(&self) -> bool {
        self.psk_file.is_some() || self.client_ca.is_some()
    }

    /// Everything read and checked.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn read(&self) -> Result<ServerSecurity, Failure> {
        let mut security = ServerSecurity::new();
        if let Some(path) = &self.cert {
            security = security.certificate(KeyedCertificate::from_files(path, self.key.as_ref().unwrap_or(path))?);
        }
        if let Some(path) = &self.client_ca {
            security = security.demand_client_certificates(TrustAnchors::from_file(path)?);
        }
        if let Some(path) = &self.psk_file {
            security = security.pre_shared_keys(PreSharedKeys::from_file(path)?);
        }
        Ok(security)
    }
}

/// A text that no output shows.
#[derive(Clone, Default)]
pub struct Hidden(String);

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_given_as_a_flag_is_shown_nowhere() {
        let flags = ClientCredentials { psk: Some(Hidden("me:secret".into())), ..ClientCredentials::default() };
        let read = flags.read().unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(!format!("{flags:?} {read:?}").contains("secret"));
        let flags = ClientCredentials { psk: Some(Hidden("secret".into())), ..ClientCredentials::default() };
        let Err(Failure::Usage(line)) = flags.read() else { panic!("there is no identity") };
        assert!(line.starts_with("--psk: ") && !line.contains("secret"), "{line}");
    }
}
