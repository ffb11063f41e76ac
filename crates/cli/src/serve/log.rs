//! A line for each request.

use std::io::Write;

use millpond_live::{Request, Response};
use tokio::time::Instant;

use crate::answer;

/// Tells requests and how they were answered, on standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    quiet: bool,
}

impl Log {
    pub(super) const fn quiet() -> Self {
        Self { quiet: true }
    }

    pub(super) const fn to_standard_error() -> Self {
        Self { quiet: false }
    }

    /// The answer, told once it is there.
    pub(super) async fn told(self, request: &Request, answer: impl Future<Output = Response>) -> Response {
        let start = Instant::now();
        let answer = answer.await;
        if !self.quiet {
            let method = request.method().name().unwrap_or("?").to_uppercase();
            let path: String = request.path_text().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let _ = writeln!(
                anstream::stderr().lock(),
                "{}  {method} {path}  {}, {} bytes, {:.1} ms",
                request.peer(),
                answer::titled(answer.code()),
                answer.payload().len(),
                start.elapsed().as_secs_f64() * 1e3
            );
        }
        answer
    }
}
