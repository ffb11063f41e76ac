use core::ops::BitOr;

use super::{Code, number};

/// Classes of responses that who asks does not want to hear: the value of the option No-Response (RFC 7967 §2.1), a bit for each
/// class. Several are put together by `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NoResponse(u8);

impl NoResponse {
    /// Every class is wanted: as without the option.
    pub const NONE: Self = Self(0);
    /// No 2.xx.
    pub const SUCCESS: Self = Self(2);
    /// No 4.xx.
    pub const CLIENT_ERROR: Self = Self(8);
    /// No 5.xx.
    pub const SERVER_ERROR: Self = Self(16);
    /// None at all.
    pub const ALL: Self = Self(2 | 8 | 16);

    /// What a value says; one of more than a byte is as if it were not there (RFC 7252 §5.4.3).
    #[must_use]
    pub const fn read(value: &[u8]) -> Self {
        match value {
            [classes] => Self(*classes),
            _ => Self::NONE,
        }
    }

    /// What the options of a request say, in ascending order of their numbers.
    #[must_use]
    pub fn of(options: &[(u16, &[u8])]) -> Self {
        // Its number is high: of most requests the last option says that it is not there.
        let mut high = options.iter().rev().take_while(|(number, _)| *number >= number::NO_RESPONSE);
        let option = high.find(|(number, _)| *number == number::NO_RESPONSE);
        option.map_or(Self::NONE, |(_, value)| Self::read(value))
    }

    /// The option's value.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Whether a response with this code is unwanted.
    #[must_use]
    pub const fn covers(self, code: Code) -> bool {
        self.0 >> code.class().saturating_sub(1) & 1 == 1
    }

    /// Whether no response is wanted, whatever it says.
    #[must_use]
    pub const fn is_all(self) -> bool {
        self.0 & Self::ALL.0 == Self::ALL.0
    }
}

impl BitOr for NoResponse {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_the_bit_of_the_registry() {
        let both = NoResponse::SUCCESS | NoResponse::SERVER_ERROR;
        assert_eq!((both.value(), both.is_all(), NoResponse::ALL.value()), (18, false, 26));
        for (code, is_covered) in [(Code::CHANGED, true), (Code::NOT_FOUND, false), (Code::SERVICE_UNAVAILABLE, true)] {
            assert_eq!(both.covers(code), is_covered, "{code}");
            assert!(NoResponse::ALL.covers(code) && !NoResponse::NONE.covers(code));
        }
        assert!((both | NoResponse::CLIENT_ERROR).is_all());
        assert_eq!(NoResponse::read(&[26]), NoResponse::ALL);
        for value in [&[][..], &[0], &[0, 26]] {
            assert_eq!(NoResponse::read(value), NoResponse::NONE);
        }
        let [path, tag, all] =
            [(number::URI_PATH, &b"x"[..]), (number::REQUEST_TAG, b""), (number::NO_RESPONSE, &[26])];
        for (options, read) in [
            (&[][..], NoResponse::NONE),
            (&[path], NoResponse::NONE),
            (&[path, tag], NoResponse::NONE),
            (&[path, all], NoResponse::ALL),
            (&[all, tag], NoResponse::ALL),
        ] {
            assert_eq!(NoResponse::of(options), read, "{options:?}");
        }
    }
}
