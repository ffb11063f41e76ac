//! A bar on standard error while a long body is on its way.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millpond_live::{Progress, RequestBuilder};

/// Bytes of a body that is worth a bar: more than a few blocks.
pub(crate) const LONG: usize = 8 << 10;

/// A bar; none where standard error is no terminal, and none while a trace is printed there.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    sending: usize,
}

impl Bar {
    /// For a request with a body of this many bytes.
    #[must_use]
    pub fn new(sending: usize, is_hidden: bool) -> Self {
        // The target draws nothing where there is no terminal.
        let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style(false));
        Self { bar, sending }
    }

    /// The request, whose progress the bar shows.
    pub fn over(&self, request: RequestBuilder) -> RequestBuilder {
        if self.bar.is_hidden() {
            return request;
        }
        let (bar, sending) = (self.bar.clone(), self.sending);
        request.progress(move |progress| {
            if let Some((what, done, whole)) = shown(progress, sending) {
                if bar.length() != whole {
                    bar.set_style(style(whole.is_some()));
                    whole.map_or_else(|| bar.unset_length(), |whole| bar.set_length(whole));
                }
                bar.set_position(done);
                bar.set_message(what);
            }
        })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// With a bar where it is known how much is to come.
fn style(is_length_known: bool) -> ProgressStyle {
    let template = match is_length_known {
        true => "{msg} [{bar:40}] {bytes} of {total_bytes}, {bytes_per_sec}",
        false => "{msg} {bytes}, {bytes_per_sec}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// What is on its way, how much of it has arrived, and how long it is if that is known; nothing of what is short.
fn shown(progress: &Progress, sending: usize) -> Option<(&'static str, u64, Option<u64>)> {
    let Progress { sent, received, total, .. } = *progress;
    match (sending, total.unwrap_or(received)) {
        (LONG.., _) if sent < sending => Some(("sent", sent as u64, Some(sending as u64))),
        (_, LONG..) => Some(("received", received as u64, total.map(|total| total as u64))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_for_long_bodies_first_up_and_then_down() {
        let at = |sent, received, total| {
            let mut progress = Progress::default();
            (progress.sent, progress.received, progress.total) = (sent, received, total);
            progress
        };
        assert_eq!(shown(&at(0, 1_024, Some(2_000)), 0), None);
        assert_eq!(shown(&at(0, 1_024, Some(20_000)), 0), Some(("received", 1_024, Some(20_000))));
        assert_eq!(shown(&at(0, 9_000, None), 0), Some(("received", 9_000, None)), "of an unknown length");
        assert_eq!(shown(&at(512, 0, None), 10_000), Some(("sent", 512, Some(10_000))));
        assert_eq!(shown(&at(10_000, 0, None), 10_000), None);
        assert_eq!(shown(&at(100, 0, None), 100), None);
    }
}
