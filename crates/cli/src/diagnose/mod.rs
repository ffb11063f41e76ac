//! From a capture to the cause: what `millpond diagnose` prints and writes.

mod rows;
mod told;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use millpond_diagnose::{DiagnoseError, Diagnosis, Options, anonymise, diagnose as judge};
use tokio::sync::oneshot;

use crate::arguments::Diagnose;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use rows::Rows;

pub use told::in_short;

/// Reads captures and reports what they say.
///
/// # Errors
/// A file cannot be read or written, or has no CoAP.
pub async fn diagnose(flags: Diagnose, interrupt: &mut Interrupt) -> Result<(), Failure> {
    // What writes into a pipe hears Ctrl-C, too, and ends: what came until then is judged.
    let mut may_be_the_pipes = flags.files.iter().any(|file| file.as_os_str() == "-");
    let (done, mut result) = oneshot::channel();
    // A thread of its own, that the end of the program does not wait for.
    std::thread::spawn(move || done.send(whole(&flags)));
    loop {
        tokio::select! {
            told = &mut result => {
                let without = || Failure::Failed("the diagnosis ended without a result".to_owned());
                return told.unwrap_or_else(|_| Err(without()));
            }
            () = interrupt.heard() => {
                if !std::mem::take(&mut may_be_the_pipes) {
                    return Err(Failure::Stopped);
                }
            }
        }
    }
}

fn whole(flags: &Diagnose) -> Result<(), Failure> {
    let names: Vec<String> = flags.files.iter().map(|file| file.display().to_string()).collect();
    let named = names.join(", ");
    let sources = flags.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?;
    let options = Options { side: flags.side.map(Into::into), ports: flags.port.clone() };
    if let Some(path) = &flags.anonymise {
        if flags.files.iter().any(|file| is_same(file, path)) {
            let path = path.display();
            return Err(Failure::Usage(format!("--anonymise: {path} is what is read: name another file")));
        }
        return give_away(path, sources, &options, &named);
    }
    let mut rows = flags.exchanges.as_deref().map(Rows::create).transpose()?;
    let mut failed = None;
    let found = judge(sources, &options, &mut |row| {
        if let Some(rows) = &mut rows
            && failed.is_none()
        {
            failed = rows.write(row).err();
        }
    });
    let found = found.map_err(|error| refused(&named, &error))?;
    if let Some(rows) = rows {
        failed.map_or_else(|| rows.finish(), Err)?;
    }
    print(flags, &found)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn give_away(path: &Path, sources: Vec<Source>, options: &Options, named: &str) -> Result<(), Failure> {
    let file = File::create(path).map_err(|error| Failure::of_file(path.display(), &error))?;
    let done = anonymise(sources, options, &mut BufWriter::new(file)).map_err(|error| refused(named, &error))?;
    let (written, left_out) = (done.written, done.left_out);
    let path = path.display();
    writeln!(anstream::stdout(), "anonymised: {path}   messages of CoAP: {written}   left out: {left_out}")?;
    Ok(())
}

type Source = Box<dyn Read + Send>;

fn open(file: &Path) -> Result<Source, Failure> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(file) {
        Ok(opened) => Ok(Box::new(opened)),
        Err(error) => Err(Failure::of_file(file.display(), &error)),
    }
}

fn refused(named: &str, error: &DiagnoseError) -> Failure {
    Failure::Failed(format!("{named}: {error}"))
}

fn print(flags: &Diagnose, found: &Diagnosis) -> Result<(), Failure> {
    let mut out = BufWriter::new(anstream::stdout());
    if flags.json {
        serde_json::to_writer_pretty(&mut out, found).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(told::in_short(found).as_bytes())?;
        if flags.times {
            out.write_all(told::over_time(found).as_bytes())?;
        }
        if flags.devices {
            out.write_all(told::by_device(found).as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
