//! Numbers and words as Python hands them in, refused in one line where they make no sense.

use std::fmt::Display;

use millpond_control::Span;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// A whole number in the range of its type.
pub(super) fn whole<T: TryFrom<u64> + Bounded>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    if value.is_instance_of::<PyBool>() || !(value.is_instance_of::<PyInt>() || value.hasattr("__index__")?) {
        return Err(PyTypeError::new_err(format!("{name}: {} is not a whole number", shown(value))));
    }
    let number = value.extract::<u64>().ok().and_then(|number| T::try_from(number).ok());
    number
        .ok_or_else(|| PyValueError::new_err(format!("{name}: {} is out of range: 0 to {}", shown(value), T::HIGHEST)))
}

/// The highest number of a type.
pub(super) trait Bounded {
    const HIGHEST: u64;
}

macro_rules! bounded {
    ($($number:ty),+) => {$(impl Bounded for $number {
        const HIGHEST: u64 = <$number>::MAX as u64;
    })+};
}

bounded!(u8, u16, u32, u64);

/// Why something is no length of time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoLength {
    NotANumber,
    NotFinite,
    Negative,
    TooLong,
}

impl Display for NoLength {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber => f.write_str("not a number of microseconds"),
            Self::NotFinite => f.write_str("not a finite number of microseconds"),
            Self::Negative => f.write_str("below zero"),
            Self::TooLong => write!(f, "longer than can be told, {} µs (71 minutes)", u32::MAX),
        }
    }
}

/// A length of time from a whole or other number of microseconds; the latter is rounded to the nearest.
pub(super) fn length(value: &Bound<'_, PyAny>) -> Result<Span, NoLength> {
    if value.is_instance_of::<PyBool>() {
        return Err(NoLength::NotANumber);
    }
    if let Ok(micros) = value.extract::<u32>() {
        return Ok(Span::from_micros(micros));
    }
    // Whole numbers that do not fit come here too; as floats they keep sign and size.
    let micros = match value.extract::<f64>() {
        Ok(micros) => micros.round(),
        Err(_) if value.is_instance_of::<PyInt>() => return Err(too_large(value)),
        Err(_) => return Err(NoLength::NotANumber),
    };
    if !micros.is_finite() {
        Err(NoLength::NotFinite)
    } else if micros < 0.0 {
        Err(NoLength::Negative)
    } else if micros > f64::from(u32::MAX) {
        Err(NoLength::TooLong)
    } else {
        Ok(Span::from_micros(micros as u32))
    }
}

/// A whole number beyond all floats: only its sign is left to tell.
fn too_large(value: &Bound<'_, PyAny>) -> NoLength {
    if value.lt(0).unwrap_or(false) { NoLength::Negative } else { NoLength::TooLong }
}

/// The same, refused as an argument of this name.
pub(super) fn length_named(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Span> {
    length(value).map_err(|why| PyValueError::new_err(format!("{name}: {} is {why}", shown(value))))
}

/// The same, or none.
pub(super) fn optional_length(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Span>> {
    value.map(|value| length_named(name, value)).transpose()
}

/// What a word stands for among those that are legal.
pub(super) fn word<T: Copy>(name: &str, value: &str, legal: &[(&str, T)]) -> PyResult<T> {
    legal.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<_> = legal.iter().map(|(word, _)| *word).collect();
        PyValueError::new_err(millpond_sim::scenario::unknown(name, value, &words))
    })
}

/// The word that stands for something.
pub(super) fn word_for<T: Copy + PartialEq>(meaning: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| *known == meaning).map_or("other", |(word, _)| word)
}

/// A value as Python shows it, in one line that is not too long.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 80;
    let told = value.repr().map(|repr| repr.to_string_lossy().into_owned());
    let told = told.unwrap_or_else(|_| format!("<{}>", value.get_type()));
    let line = told.lines().next().unwrap_or_default();
    if line.chars().count() <= MOST {
        line.to_owned()
    } else {
        format!("{}…", line.chars().take(MOST).collect::<String>())
    }
}
