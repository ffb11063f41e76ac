//! What stands around handlers.

use std::{future::Future, sync::Arc};

use super::{
    IntoResponse, Request,
    handler::{Answering, AnyHandler},
};
use crate::Response;

/// Something around handlers: it sees each request before them, and each response after them.
pub(crate) type Layer = Arc<dyn Fn(Request, Next) -> Answering + Send + Sync>;

/// As [`Layer`], from what it was written as.
pub(crate) fn layer<F, R>(around: F) -> Layer
where
    F: Fn(Request, Next) -> R + Send + Sync + 'static,
    R: Future<Output: IntoResponse> + Send + 'static,
{
    Arc::new(move |request, next| {
        let answering = around(request, next);
        Box::pin(async move { answering.await.into_response() })
    })
}

/// What a layer stands around: the next layer, or the handler.
pub struct Next(pub(super) Arc<dyn AnyHandler>);

impl Next {
    /// What it answers.
    pub async fn run(self, request: Request) -> Response {
        self.0.ask(request).await
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Next")
    }
}
