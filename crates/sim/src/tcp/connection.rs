//! One end of a connection: handshake, both halves, timers.

use std::collections::VecDeque;

use millpond_control::{Instant, Span};

use super::{Config, Micros, Progress, Totals, receiver::Receiver, sender::Sender};

/// What travels between the two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The longest payload that its sender takes, if the segment opens the connection.
    pub mss: Option<u32>,
    /// Its sender understands what is told of bytes beyond a gap, if the segment opens the connection.
    pub permits_sack: bool,
    /// Number of the first byte of the payload, counted from the first byte of the stream.
    pub seq: u64,
    /// All bytes before this one have arrived; none in the very first segment of all.
    pub ack: Option<u64>,
    /// What has arrived beyond `ack`, from and up to which byte: the latest first, at most four (RFC 2018).
    pub sacks: Vec<(u64, u64)>,
    /// Data.
    pub payload: Vec<u8>,
    /// It was sent before.
    pub copy: bool,
}

impl Segment {
    /// Whether it opens the connection.
    #[must_use]
    pub const fn opens(&self) -> bool {
        self.mss.is_some()
    }

    /// Its length on the wire in bytes of IP.
    #[must_use]
    pub fn length(&self, config: &Config) -> u32 {
        let header = if self.opens() { config.syn_header } else { config.header };
        header + self.sack_bytes() + self.payload.len() as u32
    }

    /// Bytes of the option that says what has arrived beyond, padded (RFC 2018 section 3).
    #[must_use]
    pub const fn sack_bytes(&self) -> u32 {
        if self.sacks.is_empty() { 0 } else { 4 + 8 * self.sacks.len() as u32 }
    }
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The opening segment of the other end is awaited.
    Listening,
    /// Ours was sent.
    Opening,
    /// The other end's came, and ours in return was sent.
    Answering,
    /// Data may flow.
    Open,
    /// Nobody answered.
    Failed,
}

/// What a connection wants of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// Send this segment now.
    Send(Segment),
    /// Nothing until then, unless something comes in.
    Sleep(Instant),
    /// Nothing, unless something comes in.
    Idle,
}

/// One end of a connection. See the [module](super).
#[derive(Debug)]
pub struct Connection {
    config: Config,
    phase: Phase,
    sender: Sender,
    receiver: Receiver,
    /// Bytes of the stream from the first one not acknowledged on.
    stream: VecDeque<u8>,
    stream_from: u64,
    /// When the opening segment left last, and how often it left.
    syn_at: Micros,
    syn_copies: u8,
    syn_due: Option<Micros>,
}

impl Connection {
    /// The end that opens the connection.
    #[must_use]
    pub fn connect(config: Config) -> Self {
        let mut connection = Self::new(config, Phase::Opening);
        connection.syn_due = Some(0);
        connection
    }

    /// The end that waits to be called.
    #[must_use]
    pub fn listen(config: Config) -> Self {
        Self::new(config, Phase::Listening)
    }

    fn new(config: Config, phase: Phase) -> Self {
        Self {
            phase,
            sender: Sender::new(&config),
            receiver: Receiver::new(config.acks, config.mss, config.sack),
            stream: VecDeque::new(),
            stream_from: 0,
            syn_at: 0,
            syn_copies: 0,
            syn_due: None,
            config,
        }
    }

    /// How far the handshake is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Data to be sent; it may be written before the connection is open. Every write starts a segment of its own.
    pub fn write(&mut self, data: &[u8]) {
        self.stream.extend(data);
        self.sender.write(data.len() as u64);
    }

    /// Data that came in, in order, since the last call.
    pub fn read(&mut self) -> Vec<u8> {
        self.receiver.take()
    }

    /// Whether [`read`](Self::read) would give anything.
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.receiver.has_ready()
    }

    /// Segments with data that came although every byte of them was here.
    #[must_use]
    pub fn repeats(&self) -> u64 {
        self.receiver.repeats()
    }

    /// Bytes that were written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.stream_from + self.stream.len() as u64
    }

    /// Bytes of ours that the other end has.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Counts of what was sent.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.sender.totals()
    }

    /// How the sending half stands.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.sender.progress()
    }

    /// A segment came in.
    pub fn receive(&mut self, now: Instant, segment: Segment) {
        let now = now.as_micros();
        match (self.phase, segment.opens()) {
            (Phase::Listening, true) => {
                self.phase = Phase::Answering;
                self.syn_due = Some(now);
                return;
            }
            (Phase::Answering, true) => {
                // The other end has not got our answer: it leaves again at once.
                self.syn_due = Some(now);
                return;
            }
            (Phase::Opening, true) => {
                self.open(now);
                self.receiver.acknowledge_at_once();
                return;
            }
            (Phase::Answering, false) => self.open(now),
            (Phase::Open, true) => {
                self.receiver.acknowledge_at_once();
                return;
            }
            (Phase::Open, false) => {}
            _ => return,
        }
        if let Some(ack) = segment.ack {
            self.sender.acknowledge(now, ack, segment.payload.is_empty(), &segment.sacks);
            self.forget_acknowledged();
        }
        if !segment.payload.is_empty() {
            self.receiver.receive(now, segment.seq, segment.payload);
        }
    }

    /// The next thing to do at `now`. Call until it says to sleep or that it is idle.
    pub fn poll(&mut self, now: Instant) -> Polled {
        let at = now.as_micros();
        if self.syn_due.is_some_and(|due| due <= at) {
            if self.syn_copies > self.config.syn_retries {
                (self.phase, self.syn_due) = (Phase::Failed, None);
            } else {
                return Polled::Send(self.opening_segment(at));
            }
        }
        let mut due = self.syn_due;
        if self.phase == Phase::Open {
            if let Some(leaving) = self.sender.poll(at) {
                let from = (leaving.seq - self.stream_from) as usize;
                let payload = self.stream.range(from..from + leaving.len as usize).copied().collect();
                self.receiver.acknowledged();
                let (ack, sacks) = (Some(self.receiver.next()), self.receiver.sacks());
                let (seq, copy) = (leaving.seq, leaving.copy);
                return Polled::Send(Segment { mss: None, permits_sack: false, seq, ack, sacks, payload, copy });
            }
            if self.receiver.owes(at) {
                self.receiver.acknowledged();
                let (ack, sacks) = (Some(self.receiver.next()), self.receiver.sacks());
                let payload = Vec::new();
                return Polled::Send(Segment {
                    mss: None,
                    permits_sack: false,
                    seq: 0,
                    ack,
                    sacks,
                    payload,
                    copy: false,
                });
            }
            due = self.sender.due().into_iter().chain(self.receiver.due()).min();
        }
        due.map_or(Polled::Idle, |due| Polled::Sleep(Instant::from_micros(due.max(at + 1))))
    }

    fn opening_segment(&mut self, now: Micros) -> Segment {
        let copy = self.syn_copies > 0;
        if copy {
            self.sender.timeout.back_off();
        }
        self.syn_copies += 1;
        self.syn_at = now;
        self.syn_due = Some(Instant::from_micros(now).after(span(self.sender.timeout.in_force())).as_micros());
        let ack = (self.phase == Phase::Answering).then_some(0);
        let (mss, permits_sack) = (Some(self.config.mss), self.config.sack);
        Segment { mss, permits_sack, seq: 0, ack, sacks: Vec::new(), payload: Vec::new(), copy }
    }

    fn open(&mut self, now: Micros) {
        let retried = self.syn_copies > 1;
        let rtt = (!retried).then(|| now - self.syn_at);
        match rtt {
            Some(rtt) => self.sender.timeout.sample(rtt, 0, 0),
            None => self.sender.timeout.after_lost_syn(),
        }
        self.sender.control.on_open(now, rtt, retried);
        (self.phase, self.syn_due) = (Phase::Open, None);
    }

    /// Drops bytes of the stream that will never be sent again.
    fn forget_acknowledged(&mut self) {
        let gone = (self.sender.acknowledged() - self.stream_from) as usize;
        self.stream.drain(..gone.min(self.stream.len()));
        self.stream_from = self.sender.acknowledged();
    }
}

fn span(micros: Micros) -> Span {
    Span::from_micros(u32::try_from(micros).unwrap_or(u32::MAX))
}
