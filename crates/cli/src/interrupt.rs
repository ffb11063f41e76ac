//! Signals, heard from the beginning.

use std::io;

use crate::failure::Failure;

/// Hears Ctrl-C from when it is made: one that comes while nobody waits for it is not lost.
#[derive(Debug)]
pub struct Interrupt {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signals: tokio::signal::windows::CtrlC,
}

impl Interrupt {
    /// Begins to listen. From now on Ctrl-C does not end the program by itself.
    ///
    /// # Errors
    /// The operating system does not let it.
    pub fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signals = tokio::signal::windows::ctrl_c()?;
        Ok(Self { signals })
    }

    /// Waits for Ctrl-C.
    pub async fn heard(&mut self) {
        self.signals.recv().await;
    }
}

/// What is said if the operating system does not let the program listen.
pub(crate) fn no_signals(error: io::Error) -> Failure {
    Failure::Failed(format!("signals cannot be received: {error}"))
}

/// Hears one signal of Unix, from when it is made; nothing where there is no such signal.
#[derive(Debug)]
pub struct Signalled {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
}

impl Signalled {
    /// Begins to listen whether the operating system wants the program to end (SIGTERM).
    ///
    /// # Errors
    /// The operating system does not let it.
    pub fn to_terminate() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Begins to listen whether somebody wants the program to read its files again (SIGHUP).
    ///
    /// # Errors
    /// The operating system does not let it.
    pub fn to_reload() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Waits for it.
    pub async fn heard(&mut self) {
        #[cfg(unix)]
        self.signals.recv().await;
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}
