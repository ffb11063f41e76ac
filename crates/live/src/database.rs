//! A database of redb in a file: how it is opened and used off the runtime's threads, and what is said of one that cannot be.

use std::{fmt, path::PathBuf, sync::Arc};

pub use redb;
use redb::{Builder, Database, DatabaseError, Error};

/// Bytes of pages that are kept in memory. All that is read is in memory anyway.
const CACHE: usize = 1 << 20;

/// Opens a database, or begins a new one.
pub type Open = Arc<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// A database in a file.
pub struct Store {
    path: PathBuf,
    open: Open,
    /// None before it is used, and after it failed: redb wants to be opened again then.
    database: Option<Database>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// That in this file.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        let file = path.clone();
        Self::by(path, Arc::new(move || Builder::new().set_cache_size(CACHE).create(&file)))
    }

    /// The same by another way to open it.
    #[must_use]
    pub fn by(path: PathBuf, open: Open) -> Self {
        Self { path, open, database: None }
    }

    /// Its file, as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Does something with the database, and gives itself back. What goes wrong is told in one line, with what to do.
    pub async fn with<T: Send + 'static>(
        mut self,
        work: impl FnOnce(&Database) -> Result<T, Error> + Send + 'static,
    ) -> (Self, Result<T, String>) {
        let (open, database) = (Arc::clone(&self.open), self.database.take());
        let done = tokio::task::spawn_blocking(move || {
            let database = database.map_or_else(&*open, Ok)?;
            let done = work(&database)?;
            Ok((database, done))
        });
        let why = match done.await {
            Ok(Ok((database, done))) => {
                self.database = Some(database);
                return (self, Ok(done));
            }
            Ok(Err(error)) => told(&error),
            // What is damaged may make the library panic.
            Err(_) => "the database is damaged; restore it, or move it away".to_owned(),
        };
        let why = format!("{}: {why}", self.path.display());
        (self, Err(why))
    }
}

/// What went wrong and what to do, in one line.
fn told(error: &Error) -> String {
    let fix = match error {
        Error::DatabaseAlreadyOpen => "another program has it open; give each a file of its own",
        Error::Corrupted(_) | Error::RepairAborted => "restore it, or move it away",
        Error::UpgradeRequired(_) => "it is of another version; move it away",
        Error::Io(error) => match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "make room on the disk",
            std::io::ErrorKind::NotFound => "make the folder that it is to be in",
            std::io::ErrorKind::PermissionDenied => "let this program read and write it, and its folder",
            std::io::ErrorKind::InvalidData => "this is no database; restore it, or move it away",
            _ => "look at the disk",
        },
        _ => "restore it, or move it away",
    };
    format!("{error}; {fix}")
}
