//! What must hold for any text that is given as a URI.

use millpond_live::{Uri, number};

/// One that is taken is the same when it is written and read again, and its options are legal (RFC 7252 §5.10 table 4); one
/// that is not is refused in one line.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Uri>() {
        Ok(uri) => {
            let written = uri.to_string();
            assert_eq!(written.parse::<Uri>().as_ref(), Ok(&uri), "{text:?} is written as {written:?}");
            assert!(uri.port() > 0);
            for (number, value) in uri.uri_options() {
                let least = usize::from(number == number::URI_HOST);
                let known = [number::URI_HOST, number::URI_PORT, number::URI_PATH, number::URI_QUERY];
                assert!(known.contains(&number) && (least..=255).contains(&value.len()), "{text:?}: {number}");
            }
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains(['\n', '\r']), "{text:?}: {line}");
        }
    }
}
