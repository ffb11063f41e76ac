//! Firmware for the LM3S6965 (Cortex-M3, 256 kB of flash, 64 kB of RAM), as QEMU has it: reports to a server every three
//! seconds, goes on when that is gone for a while, and starts itself again once with what it has measured.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod console;
mod ethernet;
mod kept;

use core::{
    alloc::{GlobalAlloc, Layout},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicUsize, Ordering},
};

use cortex_m_rt::{entry, exception};
use embassy_executor::{Spawner, raw::Executor};
use embassy_net::{
    Ipv4Cidr, Runner, StackResources, StaticConfigV4,
    udp::{PacketMetadata, UdpSocket},
};
use embassy_time::{Duration, Instant, Timer};
use embedded_alloc::LlffHeap;
use millpond_embedded::{EmbassyClock, EmbassyUdp, Node, Request, Setup, control::Span};
use static_cell::StaticCell;

#[global_allocator]
static HEAP: Heap = Heap { inner: LlffHeap::empty(), most: AtomicUsize::new(0) };

/// A heap that knows how much of it was in use at most.
struct Heap {
    inner: LlffHeap,
    most: AtomicUsize,
}

// SAFETY: the calls are handed on as they are.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let place = unsafe { self.inner.alloc(layout) };
        let used = self.inner.used();
        if used > self.most.load(Ordering::Relaxed) {
            self.most.store(used, Ordering::Relaxed);
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { self.inner.dealloc(place, layout) }
    }
}

/// Bytes of the heap.
const HEAP_BYTES: usize = 4 * 1_024;
/// Reports until it starts itself again, and until it is done.
const REPORTS: u32 = 8;
/// The emulator's host, in its own network.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

#[panic_handler]
fn panic(why: &core::panic::PanicInfo<'_>) -> ! {
    say!("panic: {why}");
    loop {
        cortex_m::asm::wfi();
    }
}

#[exception]
fn SysTick() {
    clock::tick();
    ethernet::tick();
}

/// Tasks that are woken are polled once the interrupt that woke them is over.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {}

#[entry]
fn main() -> ! {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    static mut MEMORY: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    // SAFETY: once, before anything is allocated.
    unsafe { HEAP.inner.init(MEMORY.as_mut_ptr() as usize, HEAP_BYTES) }
    let Some(peripherals) = cortex_m::Peripherals::take() else { cortex_m::peripheral::SCB::sys_reset() };
    clock::start(peripherals.SYST);
    let executor: &'static Executor = EXECUTOR.init(Executor::new(core::ptr::null_mut()));
    if let Ok(task) = work(executor.spawner()) {
        executor.spawner().spawn(task);
    }
    loop {
        // SAFETY: from here alone, and never within itself.
        unsafe { executor.poll() }
        // At the latest until the clock's next tick.
        cortex_m::asm::wfi();
    }
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, ethernet::Ethernet>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn work(spawner: Spawner) {
    static RESOURCES: StaticCell<StackResources<1>> = StaticCell::new();
    let before = kept::read();
    let resets = before.map_or(0, |(resets, _)| resets);
    let address =
        StaticConfigV4 { address: Ipv4Cidr::new(OURS, 24), gateway: Some(HOST), dns_servers: Default::default() };
    let ethernet = ethernet::Ethernet::start([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    let config = embassy_net::Config::ipv4_static(address);
    let (stack, runner) =
        embassy_net::new(ethernet, config, RESOURCES.init(StackResources::new()), 7 + u64::from(resets));
    if let Ok(task) = network(runner) {
        spawner.spawn(task);
    }

    let (mut metas, mut receive) = ([PacketMetadata::EMPTY; 4], [0; 1_024]);
    let (mut sent_metas, mut send) = ([PacketMetadata::EMPTY; 4], [0; 1_024]);
    let mut socket = UdpSocket::new(stack, &mut metas, &mut receive, &mut sent_metas, &mut send);
    if socket.bind(5_683).is_err() {
        return;
    }
    // SAFETY: beyond what the linker gives away; the emulator writes the port there at each reset.
    let port = unsafe { core::ptr::read_volatile(0x2000_fff0 as *const u32) } as u16;
    let (server, local) = (SocketAddr::new(HOST.into(), port), SocketAddr::new(IpAddr::V4(OURS), 5_683));

    // A device has a source of randomness; this board has none.
    let mut key = *b"not secret at al";
    key[15] = resets as u8;
    #[cfg(feature = "calm")]
    let setup = Setup::calm(7 + u64::from(resets), key);
    #[cfg(not(feature = "calm"))]
    let setup = Setup::rfc7252(7 + u64::from(resets), key);
    let (mut buffer, mut body) = ([0; 300], [0; 64]);
    let Ok(mut node) = Node::new(EmbassyUdp(socket), local, EmbassyClock, setup, &mut buffer) else { return };
    match before {
        Some((resets, base_rtt)) => {
            let _ = node.recall(server, base_rtt);
            say!("started again ({resets}); base round trip recalled: {} ms", base_rtt.as_micros() / 1_000);
        }
        None => say!("started"),
    }

    let (mut made, mut failed, mut copies) = (0_u32, 0_u32, 0_u32);
    while made < REPORTS {
        let mut text = [0; 8];
        let began = Instant::now();
        match node.request(server, &Request::put("reports", number(made, &mut text)), &mut body).await {
            Ok(response) => {
                made += 1;
                copies += u32::from(response.copies);
                let took = began.elapsed().as_millis();
                say!(
                    "report {made}: {} after {took} ms, {}, at most {} B of heap",
                    response.code,
                    Counted(response.copies.into(), "copy", "copies"),
                    HEAP.most.load(Ordering::Relaxed)
                );
            }
            Err(error) => {
                failed += 1;
                say!("no answer: {error:?}");
            }
        }
        Timer::after(Duration::from_secs(3)).await;
    }
    say!(
        "done: {} in {}, {failed} without an answer, at most {} B of heap",
        Counted(made, "report", "reports"),
        Counted(copies, "copy", "copies"),
        HEAP.most.load(Ordering::Relaxed)
    );
    if resets == 0 {
        kept::write(1, node.base_rtt(server).unwrap_or(Span::ZERO));
        cortex_m::peripheral::SCB::sys_reset();
    }
    say!("end");
}

/// How many, in words.
struct Counted(u32, &'static str, &'static str);

impl core::fmt::Display for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(count, one, several) = *self;
        write!(f, "{count} {}", if count == 1 { one } else { several })
    }
}

/// A number as text.
fn number(mut value: u32, text: &mut [u8; 8]) -> &[u8] {
    let mut place = text.len();
    loop {
        place -= 1;
        text[place] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 || place == 0 {
            return &text[place..];
        }
    }
}
