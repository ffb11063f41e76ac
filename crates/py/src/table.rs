//! One result table: an Arrow record batch that other libraries read in place.

use std::iter;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A result table. Give it to anything that reads Arrow (`pyarrow.table(t)`, `polars.DataFrame(t)`, DuckDB; pandas
/// through `pyarrow.table(t).to_pandas(types_mapper=pandas.ArrowDtype)`): the columns are shared, not copied.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Table {
    rows: RecordBatch,
}

impl Table {
    pub(crate) const fn of(rows: RecordBatch) -> Self {
        Self { rows }
    }
}

#[pymethods]
impl Table {
    /// The rows of this table, and behind them those of others of the same columns, copied into one piece: a reader takes over
    /// each column of each piece by itself, which costs more than short pieces are long.
    fn followed_by(&self, py: Python<'_>, others: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let schema = self.rows.schema();
        if others.iter().any(|other| other.rows.schema_ref() != &schema) {
            return Err(PyValueError::new_err("tables of different columns: join those of one name"));
        }
        let pieces: Vec<RecordBatch> =
            iter::once(self).chain(others.iter().map(|other| &**other)).map(|table| table.rows.clone()).collect();
        py.detach(|| concat_batches(&schema, &pieces)).map(Self::of).map_err(refused)
    }

    /// Rows of the table.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.num_rows(), self.column_names().join(", "))
    }

    /// Arrow PyCapsule interface: the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.rows.schema_ref().as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Arrow PyCapsule interface: the rows, as a stream of one batch. A wish for another schema is not met, which
    /// the interface allows; the reader then casts.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.rows.clone())], self.rows.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
