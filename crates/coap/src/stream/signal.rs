use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::message::{Code, Token, Uint, WriteError};

use super::{Frame, write_frame};

/// A message about the connection itself (RFC 8323 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal<'a> {
    /// 7.01: what the sender can do. Settings not named stay as they were.
    Csm {
        /// The longest frame that the sender takes, in bytes (§5.3.1).
        max_message_size: Option<u32>,
        /// The sender understands block-wise transfer (§5.3.2).
        block_wise: bool,
        /// The longest token that the sender takes with a request, in bytes (RFC 8974 §2.2.1).
        longest_token: Option<u32>,
    },
    /// 7.02: to be answered by a Pong with the same token.
    Ping {
        /// The Pong is to wait until all that came before was processed.
        custody: bool,
    },
    /// 7.03.
    Pong {
        /// All that came before the Ping was processed.
        custody: bool,
    },
    /// 7.04: the sender wants an orderly end.
    Release {
        /// Where to connect instead, first choice only.
        alternative: Option<&'a [u8]>,
        /// Seconds during which not to connect again.
        hold_off: Option<u32>,
    },
    /// 7.05: the connection ends at once.
    Abort {
        /// The option of a CSM that caused it.
        bad_csm_option: Option<u16>,
        /// For people.
        diagnostic: &'a [u8],
    },
    /// Another code of class 7, to be ignored.
    Unknown,
}

/// An option of a signal that its receiver must understand and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("option {number} of signal {code} is not understood")]
pub struct BadSignal {
    /// The signal.
    pub code: Code,
    /// Its option.
    pub number: u16,
}

const CSM: u8 = 0xe1;
const PING: u8 = 0xe2;
const PONG: u8 = 0xe3;
const RELEASE: u8 = 0xe4;
const ABORT: u8 = 0xe5;

impl<'a> Signal<'a> {
    /// Whether a code is a signal.
    #[must_use]
    pub const fn is(code: Code) -> bool {
        code.class() == 7
    }

    /// Reads a signal. The numbers of its options have meanings of their own for each code; odd ones must be understood. All
    /// that are known are even: one whose value is too short or too long counts as absent (RFC 7252 §5.4.3).
    ///
    /// # Errors
    /// An option that must be understood and is not.
    pub fn read(frame: &Frame<'a>) -> Result<Self, BadSignal> {
        let code = frame.code;
        if !matches!(code.to_byte(), CSM..=ABORT) {
            return Ok(Self::Unknown);
        }
        if let Some(option) = frame.options().find(|option| option.is_critical()) {
            return Err(BadSignal { code, number: option.number });
        }
        let value = |number, lengths: RangeInclusive<usize>| {
            frame.option(number).filter(|value| lengths.contains(&value.len()))
        };
        let number = |number, most| value(number, 0..=most).and_then(Uint::read);
        Ok(match code.to_byte() {
            CSM => Self::Csm {
                max_message_size: number(2, 4),
                block_wise: value(4, 0..=0).is_some(),
                longest_token: number(6, 3),
            },
            PING => Self::Ping { custody: value(2, 0..=0).is_some() },
            PONG => Self::Pong { custody: value(2, 0..=0).is_some() },
            RELEASE => Self::Release { alternative: value(2, 1..=255), hold_off: number(4, 3) },
            _ => Self::Abort { bad_csm_option: number(2, 2).map(|number| number as u16), diagnostic: frame.payload() },
        })
    }

    /// Appends the signal as a frame.
    ///
    /// # Errors
    /// An alternative address or a diagnostic that does not fit `limit` bytes.
    pub fn write(&self, buffer: &mut Vec<u8>, token: Token, limit: u32) -> Result<usize, WriteError> {
        let mut put = |code, options: [Option<(u16, &[u8])>; 3], payload: &[u8]| {
            let (mut given, mut count) = ([(0, &[][..]); 3], 0_usize);
            for (place, option) in given.iter_mut().zip(options.into_iter().flatten()) {
                *place = option;
                count = count.saturating_add(1);
            }
            let options = given.get(..count).unwrap_or_default();
            write_frame(buffer, Code::from_byte(code), token, options, payload, limit)
        };
        match *self {
            Self::Csm { max_message_size, block_wise, longest_token } => {
                let (size, token) = (max_message_size.map(Uint::new), longest_token.map(Uint::new));
                let size = size.as_ref().map(|size| (2, size.as_bytes()));
                let token = token.as_ref().map(|token| (6, token.as_bytes()));
                put(CSM, [size, block_wise.then_some((4, &[])), token], &[])
            }
            Self::Ping { custody } => put(PING, [custody.then_some((2, &[])), None, None], &[]),
            Self::Pong { custody } => put(PONG, [custody.then_some((2, &[])), None, None], &[]),
            Self::Release { alternative, hold_off } => {
                let hold_off = hold_off.map(Uint::new);
                let hold_off = hold_off.as_ref().map(|seconds| (4, seconds.as_bytes()));
                put(RELEASE, [alternative.map(|address| (2, address)), hold_off, None], &[])
            }
            Self::Abort { bad_csm_option, diagnostic } => {
                let option = bad_csm_option.map(|number| Uint::new(number.into()));
                put(ABORT, [option.as_ref().map(|number| (2, number.as_bytes())), None, None], diagnostic)
            }
            Self::Unknown => Ok(0),
        }
    }
}
