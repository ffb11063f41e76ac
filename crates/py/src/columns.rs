//! From rows of plain numbers to Arrow columns, one line a column.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};

/// Columns in the making, all drawn from the same rows.
pub(crate) struct Columns<'r, R> {
    rows: &'r [R],
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<'r, R> Columns<'r, R> {
    pub(crate) fn of(rows: &'r [R]) -> Self {
        Self { rows, fields: Vec::new(), arrays: Vec::new() }
    }

    /// Adds a column: its name, and how a row gives its cell. The cell's type decides the column's type.
    pub(crate) fn column<C: Cell>(mut self, name: &str, cell: impl Fn(&'r R) -> C) -> Self {
        let array = C::gather(self.rows.iter().map(cell));
        self.fields.push(Field::new(name, array.data_type().clone(), C::NULLABLE));
        self.arrays.push(array);
        self
    }

    pub(crate) fn finish(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }
}

/// A value that can stand in a column.
pub(crate) trait Cell: Sized {
    const NULLABLE: bool = false;

    fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef;
}

macro_rules! number_cells {
    ($($number:ty => $arrow:ty),+) => {$(
        impl Cell for $number {
            fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from_iter_values(cells))
            }
        }

        impl Cell for Option<$number> {
            const NULLABLE: bool = true;

            fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from_iter(cells))
            }
        }
    )+};
}

number_cells!(u32 => UInt32Type, u64 => UInt64Type, i64 => Int64Type, f64 => Float64Type);

impl Cell for bool {
    fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef {
        Arc::new(cells.map(Some).collect::<BooleanArray>())
    }
}

/// Words of a small vocabulary, stored once each (Arrow's dictionary encoding).
impl Cell for &str {
    fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef {
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        words.extend(cells.map(Some));
        Arc::new(words.finish())
    }
}

impl Cell for Option<&str> {
    const NULLABLE: bool = true;

    fn gather(cells: impl ExactSizeIterator<Item = Self>) -> ArrayRef {
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        words.extend(cells);
        Arc::new(words.finish())
    }
}

/// Times are signed in tables, so that differences of columns are what they seem.
pub(crate) fn time<T: Micros>(micros: T) -> T::Cell {
    micros.cell()
}

/// Microseconds, maybe of something that never was.
pub(crate) trait Micros {
    type Cell: Cell;

    fn cell(self) -> Self::Cell;
}

impl Micros for u32 {
    type Cell = i64;

    fn cell(self) -> i64 {
        self.into()
    }
}

impl Micros for u64 {
    type Cell = i64;

    fn cell(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

impl<T: Micros<Cell = i64>> Micros for Option<T> {
    type Cell = Option<i64>;

    fn cell(self) -> Option<i64> {
        self.map(Micros::cell)
    }
}
