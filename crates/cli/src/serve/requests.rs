//! A line for each request.

use millpond_live::{Next, Request, Response};
use tokio::time::Instant;

use crate::log::Log;
use crate::{answer, render::steers};

/// Tells a request and how it was answered.
pub(super) async fn told(log: Log, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let answer = next.run(request.clone()).await;
    let method = request.method().name().unwrap_or("?").to_uppercase();
    let path: String = request.path_text().chars().map(|c| if steers(c) { '?' } else { c }).collect();
    log.line(&format!(
        "{}  {method} {path}  {}, {} bytes, {:.1} ms",
        request.peer(),
        answer::titled(answer.code()),
        answer.payload().len(),
        start.elapsed().as_secs_f64() * 1e3
    ));
    answer
}
