use crate::message::number;

/// How OSCORE treats an option (RFC 8613 §4.1).
///
/// Class E is inner, class U is outer, and some options can be both. Class I, outer and authenticated, has no members
/// (§4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// The option's number.
    pub number: u16,
    /// Encrypted and authenticated, for the other endpoint (class E).
    pub is_inner: bool,
    /// In the open, for proxies (class U).
    pub is_outer: bool,
}

const fn inner(number: u16) -> Protection {
    Protection { number, is_inner: true, is_outer: false }
}

const fn outer(number: u16) -> Protection {
    Protection { number, is_inner: false, is_outer: true }
}

const fn both(number: u16) -> Protection {
    Protection { number, is_inner: true, is_outer: true }
}

/// RFC 8613 figure 5, and what later RFCs say of their options, by number.
const TABLE: [Protection; 26] = [
    inner(number::IF_MATCH),
    outer(number::URI_HOST),
    inner(number::ETAG),
    inner(number::IF_NONE_MATCH),
    both(number::OBSERVE),
    outer(number::URI_PORT),
    inner(number::LOCATION_PATH),
    outer(number::OSCORE),
    inner(number::URI_PATH),
    inner(number::CONTENT_FORMAT),
    both(number::MAX_AGE),
    inner(number::URI_QUERY),
    inner(number::ACCEPT),
    // RFC 9177 §4.1.
    both(number::Q_BLOCK1),
    inner(number::LOCATION_QUERY),
    // RFC 9668 §3.1.
    outer(number::EDHOC),
    both(number::BLOCK2),
    both(number::BLOCK1),
    both(number::SIZE2),
    both(number::Q_BLOCK2),
    outer(number::PROXY_URI),
    outer(number::PROXY_SCHEME),
    both(number::SIZE1),
    // RFC 9175 §2.2.1, §3.2.1.
    both(number::ECHO),
    both(number::NO_RESPONSE),
    both(number::REQUEST_TAG),
];

/// How an option is treated. One of which nothing is said is inner (RFC 8613 §4.1).
#[must_use]
pub fn protection(number: u16) -> Protection {
    let place = TABLE.binary_search_by_key(&number, |protection| protection.number).ok();
    place.and_then(|place| TABLE.get(place)).copied().unwrap_or(inner(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_treated_as_figure_5_has_it() {
        assert!(TABLE.is_sorted_by_key(|protection| protection.number));
        let of = |is_inner: bool, is_outer: bool| {
            let in_figure = |number: &u16| *number <= 60 && ![19, 21, 31].contains(number) || *number == 258;
            let all = TABLE.iter().filter(move |row| (row.is_inner, row.is_outer) == (is_inner, is_outer));
            all.map(|row| row.number).filter(in_figure).collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(of(true, false), [1, 4, 5, 8, 11, 12, 15, 17, 20]);
        assert_eq!(of(false, true), [3, 7, 9, 35, 39]);
        assert_eq!(of(true, true), [6, 14, 23, 27, 28, 60, 258]);
        assert_eq!(protection(65_000), inner(65_000));
    }
}
