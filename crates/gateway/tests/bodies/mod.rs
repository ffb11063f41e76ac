//! Long bodies, who gives them and who takes them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{Code, Request, Response, number};

pub(crate) fn byte_at(place: u64) -> u8 {
    (place % 251) as u8
}

pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(byte_at).collect()
}

/// A long representation, of which it counts the blocks that are asked for. Behind so many of them it is another one.
pub(crate) fn changing(length: u64, asked: Arc<AtomicUsize>, behind: usize) -> impl Fn(&Request) -> Response {
    move |request| {
        let part = request.part_of(length);
        let body: Vec<u8> = part.clone().map(byte_at).collect();
        let tag = if asked.fetch_add(1, Ordering::Relaxed) < behind { "one" } else { "other" };
        Response::content(body).with_part(part.start, length).with_etag(tag)
    }
}

/// How far something has got when it goes no further.
pub(crate) async fn at_rest(count: &AtomicUsize) -> usize {
    loop {
        let before = count.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if before == count.load(Ordering::Relaxed) {
            return before;
        }
    }
}

/// What a device gets of a body, and what it says behind so many bytes.
#[derive(Clone, Default)]
pub(crate) struct Got {
    pub(crate) bytes: Arc<AtomicUsize>,
    pub(crate) whole: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(crate) size: Arc<AtomicUsize>,
    pub(crate) says: Option<(usize, Code)>,
}

impl Got {
    pub(crate) async fn put(self, request: Request) -> Response {
        if let Some(size) = request.options().uint(number::SIZE1) {
            self.size.store(size as usize, Ordering::Relaxed);
        }
        let (mut body, mut all) = (request.body(), Vec::new());
        loop {
            match body.chunk().await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) => return Response::new(Code::REQUEST_ENTITY_INCOMPLETE),
            }
            self.bytes.store(all.len(), Ordering::Relaxed);
            if let Some((behind, code)) = self.says
                && all.len() > behind
            {
                return Response::new(code);
            }
        }
        self.whole.lock().unwrap().push(all);
        Response::changed()
    }

    pub(crate) async fn begins(&self) {
        while self.bytes.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How far it has got when nothing more comes.
    pub(crate) async fn at_rest(&self) -> usize {
        at_rest(&self.bytes).await
    }
}
