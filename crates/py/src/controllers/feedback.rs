//! What became of messages that nobody acknowledges.

use millpond_control::{self as control, Fate, PlainMessage, Span};
use pyo3::prelude::*;

use super::numbers::{whole, word, word_for};

const MESSAGES: &[(&str, PlainMessage)] =
    &[("request", PlainMessage::Request), ("further", PlainMessage::Further), ("block", PlainMessage::Block)];
const FATES: &[(&str, Fate)] = &[("answered", Fate::Answered), ("arrived", Fate::Arrived), ("lost", Fate::Lost)];

/// What became of a message that nobody acknowledges.
#[pyclass(frozen, eq, module = "millpond._engine")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feedback(pub(super) control::Feedback);

#[pymethods]
impl Feedback {
    #[new]
    #[pyo3(signature = (message, fate, since_us, length = None, reply_length = None, number = None))]
    fn new(
        message: &str,
        fate: &str,
        since_us: &Bound<'_, PyAny>,
        length: Option<&Bound<'_, PyAny>>,
        reply_length: Option<&Bound<'_, PyAny>>,
        number: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self(control::Feedback {
            message: word("message", message, MESSAGES)?,
            fate: word("fate", fate, FATES)?,
            since: Span::from_micros(whole("since_us", since_us)?),
            len: length.map_or(Ok(0), |length| whole("length", length))?,
            reply_len: reply_length.map_or(Ok(0), |length| whole("reply_length", length))?,
            number: number.map_or(Ok(0), |number| whole("number", number))?,
        }))
    }

    /// What was sent: `request`, `further` or `block`.
    #[getter]
    fn message(&self) -> &'static str {
        word_for(self.0.message, MESSAGES)
    }

    /// What became of it: `answered`, `arrived` or `lost`.
    #[getter]
    fn fate(&self) -> &'static str {
        word_for(self.0.fate, FATES)
    }

    /// How long ago it left.
    #[getter]
    fn since_us(&self) -> u32 {
        self.0.since.as_micros()
    }

    /// Its length in bytes.
    #[getter]
    fn length(&self) -> u16 {
        self.0.len
    }

    /// The length of the answer in bytes; zero unless it was answered.
    #[getter]
    fn reply_length(&self) -> u16 {
        self.0.reply_len
    }

    /// Of a request: how many left on the path before it.
    #[getter]
    fn number(&self) -> u32 {
        self.0.number
    }

    fn __repr__(&self) -> String {
        let (message, fate, since, number) = (self.message(), self.fate(), self.since_us(), self.number());
        format!("Feedback('{message}', '{fate}', {since}, {}, {}, {number})", self.length(), self.reply_length())
    }
}
