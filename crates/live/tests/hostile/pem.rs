//! What must hold for any bytes that are given as a certificate, as its key, as a trust anchor and as a pre-shared key.

use millpond_live::{KeyedCertificate, PreSharedKey, TrustAnchors};

/// Bytes of a key that no error may repeat.
const SECRET: usize = 16;

/// Each is taken or refused in one line, which repeats nothing of what may be a key.
pub(crate) fn check(bytes: &[u8]) {
    let mut lines = Vec::new();
    lines.extend(KeyedCertificate::from_pem(bytes, bytes).err());
    lines.extend(TrustAnchors::from_pem(bytes).err());
    if let Ok(text) = std::str::from_utf8(bytes) {
        lines.extend(PreSharedKey::from_text(text).err());
    }
    for line in lines.iter().map(ToString::to_string) {
        assert!(!line.contains(['\n', '\r']), "{line}");
        // Base64 of PEM, and what stands behind the identity of a pre-shared key.
        let is_of_key = |part: &&[u8]| part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
        let mut said = line.as_bytes().windows(SECRET).filter(is_of_key);
        assert!(!said.any(|said| bytes.windows(SECRET).any(|part| said == part)), "{line}");
    }
}
