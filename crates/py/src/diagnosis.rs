//! Captures in, what they say out.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use millpond_cli::diagnose::in_short;
use millpond_diagnose::{Options, Row, Side, Verdict, diagnose as judge};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::table::Table;

/// A capture: what it holds, or where it lies.
#[derive(FromPyObject)]
pub(crate) enum Source {
    /// Its bytes.
    Held(PyBackedBytes),
    /// Its file.
    File(PathBuf),
}

impl Source {
    fn open(self) -> PyResult<Box<dyn Read + Send>> {
        match self {
            Self::Held(bytes) => Ok(Box::new(Cursor::new(bytes))),
            Self::File(path) => match File::open(&path) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(PyOSError::new_err((error.raw_os_error(), error.to_string(), path))),
            },
        }
    }
}

/// What captures say, read one after the other as parts of one: figures as JSON, the first screen of the program, and a row
/// for each transmission. Raises `OSError` for a file that cannot be read, and `ValueError` with one line for what is no
/// capture of CoAP.
#[pyfunction]
#[pyo3(signature = (sources, side = None, ports = Vec::new()))]
pub(crate) fn diagnose(
    py: Python<'_>,
    sources: Vec<Source>,
    side: Option<&str>,
    ports: Vec<u16>,
) -> PyResult<(String, String, Table)> {
    let side = match side {
        None => None,
        Some("server") => Some(Side::Server),
        Some("devices") => Some(Side::Devices),
        Some("both") => Some(Side::Both),
        Some(other) => return Err(PyValueError::new_err(format!("side: {other:?}: one of server, devices, both"))),
    };
    let sources = sources.into_iter().map(Source::open).collect::<PyResult<Vec<_>>>()?;
    py.detach(|| {
        let mut rows = Rows::default();
        let found = judge(sources, &Options { side, ports }, &mut |row| rows.take(row))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let failed = |error: &dyn std::fmt::Display| PyRuntimeError::new_err(error.to_string());
        let figures = serde_json::to_string(&found).map_err(|error| failed(&error))?;
        Ok((figures, in_short(&found), Table::of(rows.finish().map_err(|error| failed(&error))?)))
    })
}

/// The columns of the transmissions in the making.
#[derive(Default)]
struct Rows {
    peer: StringBuilder,
    server: StringBuilder,
    message_id: Int64Builder,
    token: StringBuilder,
    transmission: Int64Builder,
    t_us: Int64Builder,
    verdict: StringBuilder,
    confidence: Float64Builder,
    bytes: Int64Builder,
    payload: Int64Builder,
    answered_us: Int64Builder,
    answer_bytes: Int64Builder,
    answer_payload: Int64Builder,
}

impl Rows {
    fn take(&mut self, row: &Row) {
        self.peer.append_value(row.client.to_string());
        self.server.append_value(row.server.to_string());
        self.message_id.append_value(i64::from(row.id.0));
        self.token.append_value(row.token.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        self.transmission.append_value(row.number as i64);
        self.t_us.append_value(row.time);
        self.verdict.append_value(match row.judged.verdict {
            Verdict::First => "first",
            Verdict::Spurious => "spurious",
            Verdict::Needed => "needed",
            Verdict::Unknown => "unknown",
        });
        self.confidence.append_value(row.judged.confidence);
        self.bytes.append_value(i64::from(row.request_bytes));
        self.payload.append_value(i64::from(row.request_payload));
        self.answered_us.append_option(row.answered);
        self.answer_bytes.append_option(row.answered.map(|_| i64::from(row.answer_bytes)));
        self.answer_payload.append_option(row.answered.map(|_| i64::from(row.answer_payload)));
    }

    fn finish(mut self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let columns: [(&str, ArrayRef); 13] = [
            ("peer", Arc::new(self.peer.finish())),
            ("server", Arc::new(self.server.finish())),
            ("message_id", Arc::new(self.message_id.finish())),
            ("token", Arc::new(self.token.finish())),
            ("transmission", Arc::new(self.transmission.finish())),
            ("t_us", Arc::new(self.t_us.finish())),
            ("verdict", Arc::new(self.verdict.finish())),
            ("confidence", Arc::new(self.confidence.finish())),
            ("bytes", Arc::new(self.bytes.finish())),
            ("payload", Arc::new(self.payload.finish())),
            ("answered_us", Arc::new(self.answered_us.finish())),
            ("answer_bytes", Arc::new(self.answer_bytes.finish())),
            ("answer_payload", Arc::new(self.answer_payload.finish())),
        ];
        RecordBatch::try_from_iter(columns)
    }
}
