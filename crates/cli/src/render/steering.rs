//! Characters that do something to a terminal rather than stand in it.

/// Whether it steers: a control character, or one of those that turn the direction of what follows (Unicode Standard Annex #9
/// §2.1, §2.2 and §2.4.2), by which a name or a body shows in another order than it has. What marks a direction and turns
/// nothing is part of how some languages are written.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
