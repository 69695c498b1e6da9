//! Signals: commands stop at the next safe point; if none comes soon, what is half saved is removed
//! and the program ends.
//!
//! Ctrl-C interrupts: a stream of queries ends at once. SIGTERM and SIGHUP stop: a stream answers the
//! lines that it has read, which is success, and a training run ends after its last finished part, as
//! with Ctrl-C. A second signal ends the program where it is. What is being saved has a minute to be
//! whole.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Number of the signal that came first; 0 before.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
/// Whether queries come from stdin.
static STREAM: AtomicBool = AtomicBool::new(false);
/// The checkpoint of the training under way, and that of the search which it is part of.
static CHECKPOINTS: Mutex<[Option<PathBuf>; 2]> = Mutex::new([None, None]);

/// Number of the signal that Ctrl-C sends.
const INTERRUPT: u8 = 2;
/// How long a command may take to reach a safe point.
const GRACE: Duration = Duration::from_secs(5);
/// The same while it writes what it has: a checkpoint on a slow disk, say.
const GRACE_OF_WRITES: Duration = Duration::from_secs(60);
/// How often a wait looks whether a signal came.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Starts to listen. Where that fails the operating system's own behaviour remains.
#[cfg(unix)]
pub(crate) fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // Beyond a limit on the size of files the system would end the program without a word. With a
    // handler, writing fails instead.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    let mut listened = vec![SIGINT, SIGTERM];
    // `nohup` has it ignored, so that programs outlive their terminal.
    if !is_ignored(SIGHUP) {
        listened.push(SIGHUP);
    }
    let Ok(mut signals) = signal_hook::iterator::Signals::new(listened) else { return };
    let listen = move || signals.forever().for_each(|signal| received(signal as u8));
    let _ = std::thread::Builder::new().name("xc-signals".into()).spawn(listen);
}

/// Starts to listen. Without a handler (no signal support) the operating system's own behaviour
/// remains.
#[cfg(not(unix))]
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| received(INTERRUPT));
}

/// Whether the program was started with this signal ignored, as far as the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

fn received(signal: u8) {
    if SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        leave();
    }
    // A stream that answers what it has read takes as long as that takes.
    if stopped() && STREAM.load(Ordering::Relaxed) {
        return;
    }
    // The main thread ends the program when it meets a safe point; otherwise this thread does.
    std::thread::spawn(|| {
        let start = Instant::now();
        while start.elapsed() < grace(xc_store::atomic::is_writing()) {
            std::thread::sleep(LOOK_EVERY);
        }
        leave();
    });
}

fn grace(is_writing: bool) -> Duration {
    if is_writing { GRACE_OF_WRITES } else { GRACE }
}

/// Says that queries come from stdin.
pub(crate) fn answer_a_stream() {
    STREAM.store(true, Ordering::Relaxed);
}

/// True after any signal.
pub(crate) fn interrupted() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// True after a signal that lets a stream answer what it has read.
pub(crate) fn stopped() -> bool {
    !matches!(SIGNAL.load(Ordering::Relaxed), 0 | INTERRUPT)
}

/// The exit code of a program that a signal ended.
pub(crate) fn exit_code() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 128 + INTERRUPT,
        signal => 128 + signal,
    }
}

/// Says where the training under way keeps what it has finished.
pub(crate) fn resumable(checkpoint: PathBuf) {
    CHECKPOINTS.lock().unwrap_or_else(|e| e.into_inner())[0] = Some(checkpoint);
}

/// Says where a search keeps what its training runs came to.
pub(crate) fn resumable_search(checkpoint: PathBuf) {
    CHECKPOINTS.lock().unwrap_or_else(|e| e.into_inner())[1] = Some(checkpoint);
}

/// Whether the training under way has finished something to go on from.
pub(crate) fn has_parts() -> bool {
    let checkpoints = CHECKPOINTS.lock().unwrap_or_else(|e| e.into_inner()).clone();
    // A training run that is part of a search begins anew.
    let last = checkpoints.into_iter().flatten().next_back();
    let entries = last.into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    // Parts are folders; those behind a dot are half written.
    let is_part = |e: std::fs::DirEntry| e.path().is_dir() && !e.file_name().to_string_lossy().starts_with('.');
    entries.into_iter().any(is_part)
}

/// What the program says when a signal ended it.
pub(crate) fn line() -> String {
    let how = if stopped() { "stopped" } else { "interrupted" };
    let further = if has_parts() { "; go on with --resume" } else { "" };
    format!("{how}{further}")
}

#[expect(clippy::exit, reason = "a signal ends the program from the thread that listens")]
fn leave() -> ! {
    use std::io::Write;
    xc_store::atomic::remove_partial();
    let _ = writeln!(io::stderr(), "xc: error: {}", line());
    std::process::exit(exit_code().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_has_a_minute_and_other_work_some_seconds() {
        assert_eq!([false, true].map(|is_writing| grace(is_writing).as_secs()), [5, 60]);
    }
}
