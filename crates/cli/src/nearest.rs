//! Which known word was probably meant.

/// Below this likeness (Jaro-Winkler, 0 to 1) a word was probably not meant.
const LIKE_ENOUGH: f64 = 0.8;

/// The known word most like `word`, capitals or not; `None` if none is near enough to be meant.
#[must_use]
pub fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|name| (likeness(&word, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Two letters exchanged, or one too many, weigh little in a short word too.
fn likeness(word: &str, name: &str) -> f64 {
    let slip = word.len() > 2 && strsim::osa_distance(word, name) == 1;
    // It says more than a beginning that several words share.
    strsim::jaro_winkler(word, name).max(if slip { 0.9 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let known = ["rfc7252", "cocoa-03", "fasor"];
        assert_eq!(nearest("faser", known), Some("fasor"));
        assert_eq!(nearest("cocoa03", known), Some("cocoa-03"));
        assert_eq!(nearest("gte", ["put", "get", "gateway"]), Some("get"));
        assert_eq!(nearest("bbr", known), None);
    }
}
