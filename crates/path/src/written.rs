//! Values that are one word where the defaults will do, and a table where not.

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, de};

/// Reads a word by `word`, or a table as a `T`.
///
/// # Errors
/// What `word` says of a word, or serde of a table; that it is neither, by `expecting`.
pub fn word_or_table<'de, D, T>(
    deserializer: D,
    expecting: &'static str,
    word: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Either<W, T> {
        expecting: &'static str,
        word: W,
        table: PhantomData<T>,
    }
    impl<'de, W, T> de::Visitor<'de> for Either<W, T>
    where
        W: FnOnce(&str) -> Result<T, String>,
        T: Deserialize<'de>,
    {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expecting)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.word)(text).map_err(E::custom)
        }
        fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
            T::deserialize(de::value::MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Either { expecting, word, table: PhantomData })
}
