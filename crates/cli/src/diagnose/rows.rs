//! Each transmission with its verdict, as a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use millpond_diagnose::{Row, Verdict};
use serde_json::json;

use crate::failure::Failure;

/// The file, as it is written.
#[derive(Debug)]
pub(super) struct Rows {
    path: PathBuf,
    sink: BufWriter<File>,
    lines_of_json: bool,
}

const HEADER: &str = "peer,server,message_id,token,transmission,time_s,verdict,confidence";

impl Rows {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let lines_of_json = match ending {
            "csv" => false,
            "jsonl" => true,
            _ => {
                let fix = "the name must end in .csv or .jsonl";
                return Err(Failure::Usage(format!("--exchanges {}: {fix}", path.display())));
            }
        };
        let of = |error: &io::Error| Failure::of_file(path.display(), error);
        let mut sink = BufWriter::new(File::create(path).map_err(|error| of(&error))?);
        if !lines_of_json {
            writeln!(sink, "{HEADER}").map_err(|error| of(&error))?;
        }
        Ok(Self { path: path.to_owned(), sink, lines_of_json })
    }

    pub(super) fn write(&mut self, row: &Row) -> Result<(), Failure> {
        let verdict = match row.judged.verdict {
            Verdict::First => "first",
            Verdict::Spurious => "spurious",
            Verdict::Needed => "needed",
            Verdict::Unknown => "unknown",
        };
        let token: String = row.token.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let time = row.time as f64 / 1e6;
        let confidence = (row.judged.confidence * 1000.0).round() / 1000.0;
        let written = if self.lines_of_json {
            let line = json!({
                "peer": row.client.to_string(), "server": row.server.to_string(), "message_id": row.id.0, "token": token,
                "transmission": row.number, "time_s": time, "verdict": verdict, "confidence": confidence,
            });
            writeln!(self.sink, "{line}")
        } else {
            let (client, server, id, number) = (row.client, row.server, row.id.0, row.number);
            writeln!(self.sink, "{client},{server},{id},{token},{number},{time:.6},{verdict},{confidence}")
        };
        written.map_err(|error| Failure::of_file(self.path.display(), &error))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.sink.flush().map_err(|error| Failure::of_file(self.path.display(), &error))
    }
}
