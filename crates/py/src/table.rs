//! One result table: Arrow record batches that other libraries read in place.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A result table. Give it to anything that reads Arrow (`pyarrow.table(t)`, `polars.DataFrame(t)`, DuckDB; pandas
/// through `pyarrow.table(t).to_pandas(types_mapper=pandas.ArrowDtype)`): the columns are shared, not copied.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    /// A batch for each run.
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn of(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

#[pymethods]
impl Table {
    /// The rows of this table, and behind them those of others of the same columns. Whoever reads them all at once is told the
    /// columns once, and not for each run.
    fn followed_by(&self, others: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let mut batches = self.batches.clone();
        for other in &others {
            if other.schema != self.schema {
                return Err(PyValueError::new_err("tables of different columns: join those of one name"));
            }
            batches.extend(other.batches.iter().cloned());
        }
        Ok(Self { schema: Arc::clone(&self.schema), batches })
    }

    /// Rows of the table.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.num_rows(), self.column_names().join(", "))
    }

    /// Arrow PyCapsule interface: the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Arrow PyCapsule interface: the rows, as a stream with a batch for each run. A wish for another schema is not met, which
    /// the interface allows; the reader then casts.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new(self.batches.clone().into_iter().map(Ok), Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
