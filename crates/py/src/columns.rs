//! From the columns of a run's tables to Arrow arrays.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema};
use millpond_sim::tables::{Column, Sink};

/// Tables of one run by name, in the order of the results directory.
pub(crate) type Tables = Vec<(&'static str, RecordBatch)>;

/// Tables in the making.
#[derive(Default)]
pub(crate) struct Columns {
    tables: Vec<(&'static str, Vec<Field>, Vec<ArrayRef>)>,
}

impl Columns {
    pub(crate) fn finish(self) -> Result<Tables, ArrowError> {
        let table = |(name, fields, arrays)| Ok((name, RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?));
        self.tables.into_iter().map(table).collect()
    }
}

impl Sink for Columns {
    fn table(&mut self, name: &'static str) {
        self.tables.push((name, Vec::new(), Vec::new()));
    }

    fn column(&mut self, name: &'static str, cells: Column<'_>) {
        let Some((_, fields, arrays)) = self.tables.last_mut() else { return };
        let (array, nullable) = array(cells);
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    }
}

/// The same cells for Arrow, and whether some may be missing.
fn array(cells: Column<'_>) -> (ArrayRef, bool) {
    match cells {
        Column::Bool(cells) => (Arc::new(BooleanArray::from(cells)), false),
        Column::U32(cells) => (Arc::new(UInt32Array::from(cells)), false),
        Column::MaybeU32(cells) => (Arc::new(UInt32Array::from(cells)), true),
        Column::U64(cells) => (Arc::new(UInt64Array::from(cells)), false),
        Column::MaybeU64(cells) => (Arc::new(UInt64Array::from(cells)), true),
        Column::I64(cells) => (Arc::new(Int64Array::from(cells)), false),
        Column::MaybeI64(cells) => (Arc::new(Int64Array::from(cells)), true),
        Column::F64(cells) => (Arc::new(Float64Array::from(cells)), false),
        Column::MaybeF64(cells) => (Arc::new(Float64Array::from(cells)), true),
        Column::Word(cells) => (words(cells.into_iter().map(Some)), false),
        Column::MaybeWord(cells) => (words(cells.into_iter()), true),
    }
}

/// Words of a small vocabulary, stored once each (Arrow's dictionary encoding).
fn words<'w>(cells: impl Iterator<Item = Option<&'w str>>) -> ArrayRef {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.extend(cells);
    Arc::new(words.finish())
}
