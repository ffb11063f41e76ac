//! Numbers in sentences.

/// A number and what there are so many of: the first words of one, the others of any other number.
///
/// ```
/// use millpond_diagnose::counted;
///
/// assert_eq!(counted(1, "packet is", "packets are"), "1 packet is");
/// assert_eq!(counted(2, "packet is", "packets are"), "2 packets are");
/// ```
#[must_use]
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
