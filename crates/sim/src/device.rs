//! A client over UDP: a real endpoint and the application that drives it.

use millpond_coap::{
    Endpoint,
    block::{Block, Download, Next as NextBlock, Part},
    message::{Message, Uint, number},
};
use millpond_control::Instant;

use crate::{
    application::Application,
    outcome::FlowRow,
    scenario::{Blocks, Clients, Negotiation, Transfer},
    workload::{Conduct, Due},
};

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) application: Application,
    /// The body that comes in blocks.
    fetch: Option<Box<Fetch>>,
    pub(crate) group: u32,
    /// Exchanges begun.
    exchanges: u32,
    pub(crate) late: u32,
}

/// A body that comes in blocks.
pub(crate) struct Fetch {
    /// The request that it is for.
    due: Due,
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
    pub(crate) fn new(endpoint: Endpoint<u32>, application: Application, group: u32) -> Self {
        Self { endpoint, application, fetch: None, group, exchanges: 0, late: 0 }
    }

    /// A request of the application begins, for a body of at most `longest` bytes.
    pub(crate) fn begin_request(&mut self, due: Due, clients: &Clients, longest: usize) {
        if let Transfer::Blocks(Blocks { negotiation, .. }) = &clients.transfer {
            let early = clients.transfer.block_size().filter(|_| *negotiation == Negotiation::Early);
            let download = Download::new(early, longest);
            let next = download.first();
            self.fetch = Some(Box::new(Fetch { due, download, next }));
        }
    }

    /// The block that the next exchange asks for, if it names one.
    pub(crate) fn asks_for(&self) -> Option<Block> {
        self.fetch.as_ref().and_then(|fetch| fetch.next)
    }

    /// The request of which a body is under way.
    pub(crate) fn fetching(&self) -> Option<Due> {
        self.fetch.as_ref().map(|fetch| fetch.due)
    }

    /// An exchange begins: its number within the client.
    pub(crate) fn begin(&mut self, now: Instant) -> u32 {
        self.application.leaves(now);
        self.exchanges += 1;
        self.exchanges - 1
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

    /// The endpoint, the body under way and the count of late replies, apart from each other.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Endpoint<u32>, &mut Option<Box<Fetch>>, &mut u32) {
        (&mut self.endpoint, &mut self.fetch, &mut self.late)
    }

    /// The request under way will not be answered.
    pub(crate) fn give_up(&mut self) {
        self.fetch = None;
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, conduct: &Conduct<'_>) -> FlowRow {
        FlowRow { late_replies: self.late, ..self.application.row(flow, self.group, conduct) }
    }
}
