//! The program on this machine, with a heap that is counted: before a server of a few lines, behind a path that loses one datagram
//! of five.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use millpond_control::Instant;

use crate::{DATAGRAM, Device, Task};

/// Exchanges until it is over.
const EXCHANGES: u32 = 1_000;
/// There and back, microseconds.
const ROUND_TRIP: u64 = 50_000;

#[global_allocator]
static HEAP: Counted = Counted { used: AtomicUsize::new(0), most: AtomicUsize::new(0) };

/// The system's, and how much of it was in use at most.
struct Counted {
    used: AtomicUsize,
    most: AtomicUsize,
}

// SAFETY: the calls are handed on as they are.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = self.used.fetch_add(layout.size(), Relaxed) + layout.size();
        self.most.fetch_max(used, Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.used.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Prints the most bytes of heap that the program had at a time.
pub(crate) fn main() {
    println!("{}", heap());
}

/// The same for who runs it where pointers are as long as a micro-controller's.
#[unsafe(no_mangle)]
extern "C" fn heap() -> usize {
    let mut world = World::new();
    let before = HEAP.used.load(Relaxed);
    HEAP.most.store(before, Relaxed);
    crate::run(&mut world);
    // Without a message layer nothing is sent again.
    assert!(world.done > EXCHANGES * 7 / 10, "{} of {EXCHANGES} exchanges went well", world.done);
    HEAP.most.load(Relaxed) - before
}

/// A path and who is behind it. Its memory is all there before the program begins.
struct World {
    now: u64,
    random: u64,
    /// What is on its way to the program, and when it is there.
    coming: VecDeque<(u64, usize, [u8; 64])>,
    asked: u32,
    waits: bool,
    done: u32,
    #[cfg(feature = "client-oscore")]
    server: millpond_coap::oscore::Context,
    /// The last answer, for copies of its request.
    #[cfg(feature = "client-oscore")]
    answer: Vec<u8>,
}

impl World {
    fn new() -> Self {
        Self {
            now: 0,
            random: 1,
            coming: VecDeque::with_capacity(64),
            asked: 0,
            waits: false,
            done: 0,
            #[cfg(feature = "client-oscore")]
            server: {
                use millpond_coap::oscore::{Context, Start};
                Context::derive(&crate::client::GIVEN.mirrored(), Start::Fresh).expect("keys")
            },
            #[cfg(feature = "client-oscore")]
            answer: Vec::with_capacity(64),
        }
    }

    /// Protects the answer to a protected request, and gives copies of that the same. What it takes of the heap is not the program's.
    #[cfg(feature = "client-oscore")]
    fn protect(&mut self, request: &[u8], answer: &mut [u8]) {
        use millpond_coap::message::Message;
        if self.answer.get(2..4) == request.get(2..4) {
            return;
        }
        let most = HEAP.most.load(Relaxed);
        let mut plain = Vec::new();
        let request = Message::parse(request).expect("a request");
        let mut received = self.server.unprotect_request(&request, &mut plain).expect("it is protected");
        answer[1] = if plain[1] == 1 { 0x45 } else { 0x44 };
        let answer = Message::parse(answer).expect("an answer");
        self.answer.clear();
        self.server.protect_response(&mut received, &answer, &mut self.answer).expect("it can be protected");
        HEAP.most.store(most, Relaxed);
    }

    fn is_lost(&mut self) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % 5 == 0
    }

    fn comes(&mut self, datagram: &[u8]) {
        if !self.is_lost() && self.coming.len() < self.coming.capacity() {
            let mut bytes = [0; 64];
            bytes[..datagram.len()].copy_from_slice(datagram);
            self.coming.push_back((self.now + ROUND_TRIP, datagram.len(), bytes));
        }
    }

    /// Somebody asks the program for its reading.
    fn somebody_asks(&mut self) {
        let [high, low] = (self.asked as u16).to_be_bytes();
        self.comes(&[0x41, 1, high, low, 7, 0xb7, b'r', b'e', b'a', b'd', b'i', b'n', b'g']);
    }
}

impl Device for World {
    fn now(&mut self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn secret(&mut self) -> [u8; 16] {
        [7; 16]
    }

    fn receive(&mut self, datagram: &mut [u8]) -> Option<usize> {
        self.coming.front().filter(|(at, ..)| *at <= self.now)?;
        let (_, length, bytes) = self.coming.pop_front()?;
        datagram[..length].copy_from_slice(&bytes[..length]);
        Some(length)
    }

    /// Confirmable requests are answered at once; the program's answers are counted.
    fn send(&mut self, datagram: &[u8]) {
        assert!(datagram.len() <= DATAGRAM);
        let [first, code, high, low, rest @ ..] = datagram else { return };
        let token = usize::from(first & 15);
        if *code == 0x45 && cfg!(not(feature = "client")) {
            self.done += 1;
            self.waits = false;
        }
        if first >> 4 == 4 && (1..32).contains(code) && !self.is_lost() {
            let answer = if *code == 1 { 0x45 } else { 0x44 };
            let mut bytes = [0; 24];
            bytes[..4].copy_from_slice(&[0x60 | first & 15, answer, *high, *low]);
            bytes[4..4 + token].copy_from_slice(&rest[..token]);
            bytes[4 + token..8 + token].copy_from_slice(&[0xff, b'2', b'1', b'C']);
            #[cfg(feature = "client-oscore")]
            {
                self.protect(datagram, &mut bytes[..8 + token]);
                let answer = std::mem::take(&mut self.answer);
                self.comes(&answer);
                self.answer = answer;
            }
            #[cfg(not(feature = "client-oscore"))]
            self.comes(&bytes[..8 + token]);
        }
    }

    fn task(&mut self) -> Option<Task> {
        if self.waits || cfg!(not(feature = "client")) {
            return None;
        }
        (self.waits, self.asked) = (true, self.asked + 1);
        if cfg!(feature = "client-server") {
            self.somebody_asks();
        }
        Some(if self.asked % 4 == 0 { Task::Put } else { Task::Get })
    }

    fn reading(&mut self) -> [u8; 4] {
        [20; 4]
    }

    fn answered(&mut self, payload: Option<&[u8]>) {
        self.waits = false;
        self.done += u32::from(payload.is_some());
    }

    fn sleep(&mut self, until: Instant) -> bool {
        if cfg!(not(feature = "client")) {
            self.asked += 1;
            self.somebody_asks();
        }
        if !self.waits && self.asked >= EXCHANGES {
            return false;
        }
        if self.waits || cfg!(not(feature = "client")) {
            let next = self.coming.front().map_or(u64::MAX, |(at, ..)| *at).min(until.as_micros());
            self.now = if next == u64::MAX { self.now + ROUND_TRIP } else { self.now.max(next) };
        }
        true
    }
}

/// It was never switched on before.
#[cfg(feature = "client-oscore")]
pub(crate) fn stored_bound() -> u64 {
    0
}

#[cfg(feature = "client-oscore")]
pub(crate) fn store_bound(_: u64) -> bool {
    true
}
