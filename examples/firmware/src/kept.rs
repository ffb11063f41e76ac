//! What outlives a reset: a few words of RAM that nothing initialises.

use core::mem::MaybeUninit;

use millpond_embedded::control::Span;

const MARK: u32 = 0x4d50_4b31;

#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    mark: u32,
    resets: u32,
    base_rtt: u32,
    check: u32,
}

#[unsafe(link_section = ".uninit.KEPT")]
static mut KEPT: MaybeUninit<Record> = MaybeUninit::uninit();

/// How often this was started again, and the base round trip that was measured before. Nothing after power came.
pub fn read() -> Option<(u32, Span)> {
    // SAFETY: any bits are a record, and one task alone looks at it.
    let record = unsafe { (&raw const KEPT).read_volatile().assume_init() };
    let is_whole = record.mark == MARK && record.check == record.mark ^ record.resets ^ record.base_rtt;
    is_whole.then_some((record.resets, Span::from_micros(record.base_rtt)))
}

pub fn write(resets: u32, base_rtt: Span) {
    let base_rtt = base_rtt.as_micros();
    let record = Record { mark: MARK, resets, base_rtt, check: MARK ^ resets ^ base_rtt };
    // SAFETY: as above.
    unsafe { (&raw mut KEPT).write_volatile(MaybeUninit::new(record)) }
}
