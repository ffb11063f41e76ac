//! The Ethernet controller of the LM3S6965 (data sheet, chapter 17), looked after at each tick of the clock.

use core::{ptr, task::Context};

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, waitqueue::GenericAtomicWaker};

/// Bytes of the longest frame without its checksum.
const LONGEST: usize = 1_514;

static WAKER: GenericAtomicWaker<CriticalSectionRawMutex> = GenericAtomicWaker::new(CriticalSectionRawMutex::new());

#[derive(Clone, Copy)]
#[repr(usize)]
enum Register {
    ReceiveControl = 0x4004_8008,
    TransmitControl = 0x4004_800c,
    Data = 0x4004_8010,
    AddressLow = 0x4004_8014,
    AddressHigh = 0x4004_8018,
    Packets = 0x4004_8034,
    Transmission = 0x4004_8038,
}

impl Register {
    fn read(self) -> u32 {
        // SAFETY: the address of a register of the controller, which nothing else uses.
        unsafe { ptr::read_volatile(self as usize as *const u32) }
    }

    fn write(self, value: u32) {
        // SAFETY: as above.
        unsafe { ptr::write_volatile(self as usize as *mut u32, value) }
    }
}

/// The controller, and room for one frame.
pub struct Ethernet {
    address: [u8; 6],
    frame: [u8; LONGEST],
}

/// Tells the network's task that something came.
pub fn tick() {
    if Register::Packets.read() & 0x3f != 0 {
        WAKER.wake();
    }
}

impl Ethernet {
    pub fn start(address: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = address;
        Register::AddressLow.write(u32::from_le_bytes([a, b, c, d]));
        Register::AddressHigh.write(u32::from_le_bytes([e, f, 0, 0]));
        // What came before this start is dropped.
        Register::ReceiveControl.write(0x10);
        // Checksums and padding are the controller's, both ways at once.
        Register::TransmitControl.write(0x17);
        Register::ReceiveControl.write(0x1);
        Self { address, frame: [0; LONGEST] }
    }
}

/// A frame that came.
pub struct Received<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

/// Room for a frame that leaves.
pub struct Free;

impl TxToken for Free {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = [0; LONGEST + 2];
        let length = length.min(LONGEST);
        let result = fill(&mut frame[2..2 + length]);
        // The bytes behind the header of 14 come first.
        frame[..2].copy_from_slice(&(length.saturating_sub(14) as u16).to_le_bytes());
        for word in frame[..2 + length].chunks(4) {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            Register::Data.write(u32::from_le_bytes(bytes));
        }
        Register::Transmission.write(1);
        result
    }
}

impl Driver for Ethernet {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Free;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Received<'_>, Free)> {
        WAKER.register(cx.waker());
        loop {
            if Register::Packets.read() & 0x3f == 0 {
                return None;
            }
            // A word begins with the length, two bytes of its own and four of checksum included.
            let first = Register::Data.read();
            let whole = (first & 0xffff) as usize;
            let length = whole.saturating_sub(6);
            let mut place = 0;
            let mut put = |bytes: &[u8]| {
                for byte in bytes {
                    if let Some(there) = self.frame.get_mut(place) {
                        *there = *byte;
                    }
                    place += 1;
                }
            };
            put(&first.to_le_bytes()[2..]);
            for _ in 1..whole.div_ceil(4) {
                put(&Register::Data.read().to_le_bytes());
            }
            if length <= LONGEST {
                return Some((Received(&mut self.frame[..length]), Free));
            }
        }
    }

    fn transmit(&mut self, _cx: &mut Context<'_>) -> Option<Free> {
        (Register::Transmission.read() & 1 == 0).then_some(Free)
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        WAKER.register(cx.waker());
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = LONGEST;
        capabilities.max_burst_size = Some(1);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}
