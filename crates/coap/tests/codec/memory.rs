use millpond_coap::{PathCache, PathCacheError};
use millpond_control::Span;

/// Whatever these bytes are: what is taken is written again as it was and keeps its bounds, what is refused is refused in one line
/// that names a place within the bytes, or their end.
pub(crate) fn check(bytes: &[u8]) {
    let mut memory = match PathCache::from_bytes(bytes) {
        Ok(memory) => memory,
        Err(error @ PathCacheError { at, .. }) => {
            assert!(at <= bytes.len(), "{error}");
            assert!(!error.to_string().contains('\n'));
            return;
        }
    };
    assert_eq!(memory.to_bytes(), bytes);
    assert!(memory.len() <= PathCache::MOST_PATHS && bytes.len() <= PathCache::MOST_BYTES);
    // Whatever it holds, it goes on.
    let now = bytes.iter().fold(0_u64, |now, byte| now.rotate_left(7) ^ u64::from(*byte));
    for (_, backoff) in memory.backoffs(now) {
        assert!(backoff.left(now) <= backoff.pause && backoff.pause <= PathCache::LONGEST_PAUSE);
    }
    for path in 0..3_u8 {
        assert!(memory.learn(&[path], Span::from_micros(1), now));
        assert_eq!(memory.base_rtt(&[path], now), Some(Span::from_micros(1)));
    }
    assert!((3..=PathCache::MOST_PATHS).contains(&memory.len()));
    assert_eq!(PathCache::from_bytes(&memory.to_bytes()), Ok(memory));
}
