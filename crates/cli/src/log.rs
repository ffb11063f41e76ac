//! Lines on standard error that nobody has to wait for.
//!
//! A pipe that nobody reads is full after 64 KiB, and who writes to it then stands still. A server must not: what it has to tell
//! goes through a queue of bounded length to a thread of its own, and what does not fit is dropped and counted.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time of day, as lines of a log begin with it: RFC 3339, in UTC, with milliseconds.
#[expect(clippy::disallowed_methods, reason = "lines of a log are looked up by the time of day")]
#[must_use]
pub fn time_of_day() -> String {
    humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string()
}

/// Bytes of lines that wait to be written.
const ROOM: usize = 1 << 20;

/// Writes lines to standard error, in their order, as fast as they are read there. Clones write to the same queue.
#[derive(Clone, Debug)]
pub struct Log {
    shared: Arc<Shared>,
    /// The writer ends with the last of these.
    wake: SyncSender<()>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// The writer has written what it had taken.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: String,
    /// Lines that found no room since the last time that this was told.
    dropped: u64,
    is_writing: bool,
    /// Nothing can be written any more: standard error is closed.
    is_closed: bool,
}

impl Log {
    /// One that writes to standard error, without colours where that is no terminal.
    #[must_use]
    pub fn to_stderr() -> Self {
        Self::to(anstream::stderr)
    }

    /// The writer is made by its thread: some are not to be sent to another.
    fn to<W: Write>(open: impl FnOnce() -> W + Send + 'static) -> Self {
        let (wake, woken) = sync_channel(1);
        let shared = Arc::<Shared>::default();
        let log = Self { shared: Arc::clone(&shared), wake };
        std::thread::spawn(move || shared.write(&woken, open()));
        log
    }

    /// Writes a line, given without its end, after those before it; drops it if too much waits already.
    pub fn line(&self, line: &str) {
        let mut queue = self.shared.queue();
        if queue.is_closed {
            return;
        }
        // There is one gap at a time, and all that waits is from before it: the count stands where the lines are missing.
        if queue.dropped > 0 || queue.waiting.len().saturating_add(line.len()) >= ROOM {
            queue.dropped = queue.dropped.saturating_add(1);
        } else {
            queue.waiting.push_str(line);
            queue.waiting.push('\n');
        }
        drop(queue);
        // If it is awake already it looks again before it sleeps.
        let _ = self.wake.try_send(());
    }

    /// Waits until everything is written, though no longer than this: perhaps nobody reads it.
    pub fn finish(&self, at_most: Duration) {
        let is_busy = |queue: &mut Queue| !queue.is_closed && (queue.is_writing || queue.has_more());
        drop(self.shared.written.wait_timeout_while(self.shared.queue(), at_most, is_busy));
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is waiting each time that it is woken, until nobody can wake it or nothing can be written.
    fn write(&self, woken: &Receiver<()>, mut out: impl Write) {
        let mut written = Ok(());
        while written.is_ok() && woken.recv().is_ok() {
            while let Some(text) = self.take() {
                written = write(&mut out, &text);
                if written.is_err() {
                    break;
                }
            }
            let mut queue = self.queue();
            (queue.is_writing, queue.is_closed) = (false, written.is_err());
            drop(queue);
            self.written.notify_all();
        }
    }

    /// What is to be written next.
    fn take(&self) -> Option<String> {
        let mut queue = self.queue();
        queue.is_writing = queue.has_more();
        if !queue.waiting.is_empty() {
            return Some(std::mem::take(&mut queue.waiting));
        }
        let dropped = std::mem::take(&mut queue.dropped);
        let lines = if dropped == 1 { "line is" } else { "lines are" };
        (dropped > 0).then(|| format!("{dropped} {lines} missing here: standard error was not read in time\n"))
    }
}

impl Queue {
    fn has_more(&self) -> bool {
        !self.waiting.is_empty() || self.dropped > 0
    }
}

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// Nobody reads what the server tells, as where its log goes through a pipe to a program that hangs: it goes on, holds a bounded
    /// part of it, and reports how much is missing.
    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up_and_tells_how_many_lines_are_missing() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let log = Log::to(move || writer);
        let line = "x".repeat(999);
        (0..5_000).for_each(|_| log.line(&line));
        let held = log.shared.queue().waiting.len();
        assert!(held <= ROOM, "{held}");
        log.finish(Duration::ZERO);

        let mut lines = BufReader::new(reader).lines().map(|line| line.expect("a line"));
        let mut whole = 0;
        let told = loop {
            let next = lines.next().expect("a line");
            if next != line {
                break next;
            }
            whole += 1;
        };
        let missing: u64 = told.split(' ').next().and_then(|count| count.parse().ok()).expect("a number");
        assert_eq!(told, format!("{missing} lines are missing here: standard error was not read in time"));
        assert_eq!(whole + missing, 5_000);
        assert!(whole >= 1_000, "{whole}");
        // It is read again: what is told from now on is there.
        log.line("later");
        assert_eq!(lines.next().as_deref(), Some("later"));
        drop(log);
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_log_that_is_closed_keeps_nothing() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let log = Log::to(move || writer);
        log.line("once");
        log.finish(Duration::MAX);
        assert!(log.shared.queue().is_closed);
        log.line("again");
        assert!(!log.shared.queue().has_more());
    }
}
