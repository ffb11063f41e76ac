//! A device is asked in the session or connection that it has begun, at whichever of the server's ports that is.

use std::future::Future;

use millpond_live::{Error, RequestBuilder};

/// Sends a request by one port after the other, until one has a session with its peer. Without any port it fails with `nobody`.
pub(crate) async fn by_one<T, F>(
    requests: impl IntoIterator<Item = RequestBuilder>,
    nobody: Error,
    send: impl Fn(RequestBuilder) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut outcome = Err(nobody);
    for request in requests {
        outcome = send(request).await;
        // The session is of another port.
        if !matches!(outcome, Err(Error::Insecure { .. } | Error::Refused { .. })) {
            break;
        }
    }
    outcome
}
