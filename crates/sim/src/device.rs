//! A client over UDP: a real endpoint and the application that drives it.

use millpond_coap::{
    Endpoint, ExchangeId,
    block::{Block, Download, Next as NextBlock, Part},
    message::{Message, Uint, number},
};
use millpond_control::Instant;

use crate::{
    application::Application,
    ledger::{Tag, mean},
    outcome::FlowRow,
    scenario::{Blocks, Clients, Negotiation, Transfer},
};

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) application: Application,
    /// The exchange that is open, and its number within the client.
    open: Option<(ExchangeId, u32)>,
    /// The body that comes in blocks.
    fetch: Option<Box<Fetch>>,
    pub(crate) group: u32,
    /// Exchanges begun.
    exchanges: u32,
    completed: u32,
    failed: u32,
    pub(crate) late: u32,
    rtt_true_sum: u64,
}

/// A body that comes in blocks.
pub(crate) struct Fetch {
    download: Download,
    /// The block to ask for.
    next: Option<Block>,
}

/// How an answered exchange leaves its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// The body is here.
    Whole,
    /// Another block is to be asked for.
    More,
    /// It will never be whole.
    Broken,
}

impl Device {
    pub(crate) fn new(endpoint: Endpoint<u32>, group: u32) -> Self {
        Self {
            endpoint,
            application: Application::new(),
            open: None,
            fetch: None,
            group,
            exchanges: 0,
            completed: 0,
            failed: 0,
            late: 0,
            rtt_true_sum: 0,
        }
    }

    /// A request of the application begins, for a body of at most `longest` bytes.
    pub(crate) fn begin_request(&mut self, clients: &Clients, longest: usize) {
        self.application.begin();
        if let Transfer::Blocks(Blocks { negotiation, .. }) = &clients.transfer {
            let early = clients.transfer.block_size().filter(|_| *negotiation == Negotiation::Early);
            let download = Download::new(early, longest);
            let next = download.first();
            self.fetch = Some(Box::new(Fetch { download, next }));
        }
    }

    /// The block that the next exchange asks for, if it names one.
    pub(crate) fn asks_for(&self) -> Option<Block> {
        self.fetch.as_ref().and_then(|fetch| fetch.next)
    }

    /// An exchange begins.
    pub(crate) fn begin(&mut self, id: ExchangeId, now: Instant) {
        self.application.leaves(now);
        self.open = Some((id, self.exchanges));
        self.exchanges += 1;
    }

    /// The open exchange and its number within this client.
    pub(crate) fn open(&self) -> Option<(ExchangeId, u32)> {
        self.open
    }

    /// A response came: whether its body is whole with it.
    #[inline]
    pub(crate) fn take(fetch: &mut Option<Box<Fetch>>, message: &Message<'_>) -> Body {
        let Some(under_way) = fetch else { return Body::Whole };
        let block = match message.option(number::BLOCK2).map(|value| Block::read(value, false)) {
            None => None,
            Some(Ok(block)) => Some(block),
            Some(Err(_)) => return Body::Broken,
        };
        let (etag, total) = (message.option(number::ETAG), message.option(number::SIZE2).and_then(Uint::read));
        match under_way.download.take(&Part { block, etag, total, payload: message.payload() }) {
            Ok(NextBlock::Ask(block)) => {
                under_way.next = Some(block);
                Body::More
            }
            Ok(NextBlock::Done) => {
                *fetch = None;
                Body::Whole
            }
            Err(_) => Body::Broken,
        }
    }

    /// The endpoint and the body under way, apart from each other.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Endpoint<u32>, &mut Option<Box<Fetch>>) {
        (&mut self.endpoint, &mut self.fetch)
    }

    /// The open exchange was answered, with so many bytes of a body.
    pub(crate) fn answered(&mut self, tag: &Tag, now: Instant, bytes: usize, body: Body) {
        self.open = None;
        self.completed += 1;
        self.rtt_true_sum += now.as_micros() - tag.sent.as_micros();
        self.application.got(bytes);
        match body {
            Body::More => {}
            Body::Whole => self.application.end(Some(now)),
            Body::Broken => self.give_up(),
        }
    }

    /// The open exchange ended without an answer, and with it its request.
    pub(crate) fn abandoned(&mut self) {
        self.open = None;
        self.failed += 1;
        self.give_up();
    }

    fn give_up(&mut self) {
        self.fetch = None;
        self.application.end(None);
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, clients: &Clients) -> FlowRow {
        FlowRow {
            completed: self.completed,
            failed: self.failed,
            late_replies: self.late,
            rtt_true_mean_us: mean(self.rtt_true_sum, self.completed),
            ..self.application.row(flow, self.group, clients)
        }
    }
}
