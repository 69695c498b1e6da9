//! Progress: a bar on a terminal, a log line now and then elsewhere, or JSON lines; nothing with `--quiet`.

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How progress is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A bar on a terminal, lines elsewhere
    Auto,
    /// A line every ten seconds
    Lines,
    /// One JSON object per second, each on its own line
    Json,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Bars,
    Lines,
    Json,
    Quiet,
}

impl Progress {
    pub(crate) fn choose(form: Form, quiet: bool) -> Self {
        match form {
            _ if quiet => Self::Quiet,
            Form::Json => Self::Json,
            Form::Auto if std::io::stderr().is_terminal() => Self::Bars,
            Form::Auto | Form::Lines => Self::Lines,
        }
    }

    /// Between two lines of one task.
    fn every(self) -> Duration {
        Duration::from_secs(if self == Self::Json { 1 } else { 10 })
    }

    /// Starts a task of `total` steps called `what` ("rows written").
    pub(crate) fn task(self, what: &str, total: u64) -> Task {
        let bar = ProgressBar::new(total);
        bar.set_draw_target(match self {
            Self::Bars => ProgressDrawTarget::stderr_with_hz(10),
            _ => ProgressDrawTarget::hidden(),
        });
        bar.set_style(style("{msg:>24} {bar:32} {human_pos}/{human_len} {speed:>9} {eta:>5} left"));
        bar.set_message(what.to_owned());
        Task { bar, shown: self, what: Mutex::new(what.to_owned()), last: Mutex::new(Instant::now()) }
    }

    /// Starts a task whose end is not known.
    pub(crate) fn count(self, what: &str) -> Task {
        let task = self.task(what, 0);
        task.bar.set_style(style("{msg:>24} {human_pos} {speed:>9}"));
        task.bar.unset_length();
        task
    }
}

/// A bar's looks. The library's own speed has as many digits as a float has.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("speed", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let speed = state.per_sec();
        let digits = if speed < 10.0 { 1 } else { 0 };
        // Nothing to be done about a bar that cannot be written.
        let _ = write!(out, "{speed:.digits$}/s");
    })
}

/// One task under way. Dropping it removes the bar.
pub(crate) struct Task {
    bar: ProgressBar,
    shown: Progress,
    what: Mutex<String>,
    last: Mutex<Instant>,
}

impl Task {
    /// `steps` more are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.set(self.bar.position() + steps);
    }

    /// All steps are done, those included that nobody counted.
    pub(crate) fn finish(self) {
        self.bar.set_position(self.bar.length().unwrap_or_else(|| self.bar.position()));
    }

    /// From here on the task is called so.
    pub(crate) fn say(&self, what: String) {
        self.bar.set_message(what.clone());
        if let Ok(mut shown) = self.what.lock() {
            *shown = what;
        }
    }

    /// Lets `write` put a line on stderr without the bar in it.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// `position` steps are done in all.
    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
        if matches!(self.shown, Progress::Lines | Progress::Json)
            && let Ok(mut last) = self.last.try_lock()
            && last.elapsed() >= self.shown.every()
        {
            *last = Instant::now();
            self.write_line(position);
        }
    }

    fn write_line(&self, done: u64) {
        let what = self.what.lock().map_or_else(|e| e.into_inner().clone(), |what| what.clone());
        let total = self.bar.length().filter(|&total| total > 0);
        let line = if self.shown == Progress::Json {
            let seconds = (self.bar.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
            let line = json!({"event": "progress", "task": what, "done": done, "total": total, "elapsed_s": seconds});
            line.to_string()
        } else {
            let share = total.map(|total| format!(" of {total} ({:.0}%)", 100.0 * done as f64 / total as f64));
            format!("xc: {what}: {done}{}", share.unwrap_or_default())
        };
        // Nothing to be done about a line that cannot be written.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.shown == Progress::Json {
            self.write_line(self.bar.position());
        }
        self.bar.finish_and_clear();
    }
}
