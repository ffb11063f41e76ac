//! The serial line.

use core::fmt;

/// Writes to it; the emulator takes bytes at any speed.
pub struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the data register of UART0.
            unsafe { core::ptr::write_volatile(0x4000_c000 as *mut u32, byte.into()) }
        }
        Ok(())
    }
}

/// A line on the serial line.
#[macro_export]
macro_rules! say {
    ($($word:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::console::Console, $($word)*);
    }};
}
