//! The part of a run that travels in bursts (RFC 9177).

use millpond_coap::{
    Cause, Event, Output, Transmit,
    block::robust::{BurstAsk, ClientAct, ClientTold},
    message::Code,
};
use millpond_control::{Instant, Span};

use crate::{
    RunError,
    burst_ends::block_of,
    ledger::Tag,
    network::{Arrival, SERVER},
    world::{Client, World},
};

impl World<'_> {
    /// A client that fetches in bursts wakes.
    #[cold]
    pub(crate) fn wake_burst(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Burst(device) = &self.clients[flow as usize] else { return Ok(()) };
        let wakes = device.application.wakes();
        if device.application.is_away() {
            self.agenda.set(flow, wakes);
            return Ok(());
        }
        if wakes <= now {
            self.burst_goes_on(flow, now)?;
        }
        self.drain_burst(flow, now)
    }

    /// A datagram reaches such a client.
    #[cold]
    pub(crate) fn burst_to_client(&mut self, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let flow = arrival.tag.flow;
        let Client::Burst(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let bytes = self.network.datagram();
        let is_first = block_of(bytes).is_none_or(|number| device.arrived.mark(number));
        device.endpoint.receive(now, SERVER, bytes);
        if is_first {
            self.network.useful(SERVER, flow, arrival.length, &mut self.rec);
        }
        self.drain_burst(flow, now)
    }

    /// The client's application goes on: asks again, or is done.
    fn burst_goes_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(due) = self.next_request(flow, now)? else { return Ok(()) };
        let Client::Burst(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let conduct = &self.conducts[device.group as usize];
        let Some(size) = conduct.clients.transfer.block_size() else { return Ok(()) };
        device.begin(due);
        self.ledger.begin(flow, device.asked - 1, due.request, None, device.application.in_first_batch());
        let options = conduct.options();
        let ask = BurstAsk { code: Code::GET, options, body: &[], size };
        device.bursts.ask(now, SERVER, &ask).map_err(|why| RunError::Refused(flow, why.to_string()))?;
        Ok(())
    }

    /// Drains a client's endpoint and lets its transfer act.
    fn drain_burst(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        loop {
            let Client::Burst(device) = &mut self.clients[flow as usize] else { return Ok(()) };
            let number = device.asked.saturating_sub(1);
            let until = match device.endpoint.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    let request_bytes = self.network.length(bytes);
                    let mut tag = Tag::of(flow, request_bytes, now);
                    device.messages += 1;
                    let (copy, wait) = match cause {
                        Cause::Exchange { copy, wait, .. } => (copy, Some(wait)),
                        _ => (0, None),
                    };
                    // The first message of a transfer stands for it; the others belong to no exchange of their own.
                    if wait.is_some() || device.sent.is_none() {
                        (tag.exchange, tag.copy) = (number, copy);
                        self.ledger.sent(&tag, wait.map_or(Span::ZERO, |wait| wait.span));
                    }
                    self.rec.left(&tag, wait);
                    device.sent.get_or_insert(now);
                    device.application.leaves(now);
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, &tag, &mut self.rec);
                    continue;
                }
                Output::Event(event) => {
                    if !device.bursts.take(now, &event) && matches!(event, Event::Late { .. }) {
                        device.late += 1;
                    }
                    continue;
                }
                Output::Sleep(until, _) => until,
                Output::Idle => Instant::NEVER,
            };
            let answer = match device.bursts.act(now, &mut device.endpoint) {
                ClientAct::Again => continue,
                ClientAct::Told(ClientTold::Done { code, body, .. }) => (code.class() == 2).then_some(body.len()),
                ClientAct::Told(ClientTold::Failed { .. } | ClientTold::Unsupported { .. }) => None,
                ClientAct::Sleep(at) => {
                    self.agenda.set(flow, until.min(at).min(device.application.wakes()));
                    return Ok(());
                }
                ClientAct::Idle => {
                    self.agenda.set(flow, until.min(device.application.wakes()));
                    return Ok(());
                }
            };
            device.application.got(answer.unwrap_or(0));
            let due = device.due.take();
            match (answer, device.sent) {
                (Some(_), Some(sent)) => {
                    let tag = Tag { exchange: number, ..Tag::of(flow, 0, sent) };
                    self.ledger.accepted(&tag, now);
                }
                _ => {
                    self.ledger.abandoned(flow, number);
                }
            }
            if let Some(due) = due {
                self.end(flow, due.request, answer.is_some(), now);
            }
            self.burst_goes_on(flow, now)?;
        }
    }

    /// Whether the server sends this block to its client again. Asked for traces.
    #[cold]
    pub(crate) fn is_repeated(clients: &mut [Client], to: u32, bytes: &[u8]) -> bool {
        let Some(Client::Burst(device)) = clients.get_mut(to as usize) else { return false };
        block_of(bytes).is_some_and(|number| !device.offered.mark(number))
    }
}
