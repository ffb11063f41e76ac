use millpond_coap::{Memory, MemoryError};
use millpond_control::Span;

/// Whatever these bytes are: what is taken is written again as it was and keeps its bounds, what is refused is refused in one line
/// that names a place within the bytes, or their end.
pub(crate) fn check(bytes: &[u8]) {
    let mut memory = match Memory::from_bytes(bytes) {
        Ok(memory) => memory,
        Err(error @ MemoryError { at, .. }) => {
            assert!(at <= bytes.len(), "{error}");
            assert!(!error.to_string().contains('\n'));
            return;
        }
    };
    assert_eq!(memory.to_bytes(), bytes);
    assert!(memory.len() <= Memory::MOST_PATHS && bytes.len() <= Memory::MOST_BYTES);
    // Whatever it holds, it goes on.
    let now = bytes.iter().fold(0_u64, |now, byte| now.rotate_left(7) ^ u64::from(*byte));
    for (_, backoff) in memory.backoffs(now) {
        assert!(backoff.left(now) <= backoff.pause && backoff.pause <= Memory::LONGEST_PAUSE);
    }
    for path in 0..3_u8 {
        assert!(memory.learn(&[path], Span::from_micros(1), now));
        assert_eq!(memory.base_rtt(&[path], now), Some(Span::from_micros(1)));
    }
    assert!((3..=Memory::MOST_PATHS).contains(&memory.len()));
    assert_eq!(Memory::from_bytes(&memory.to_bytes()), Ok(memory));
}
