//! Ctrl-C: commands stop at the next safe point; if none comes soon, temporary files are removed and the program ends.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static AT_ONCE: AtomicBool = AtomicBool::new(false);
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How long a command may take to reach a safe point.
const GRACE: Duration = Duration::from_secs(3);

/// Starts to listen. Without a handler (no signal support) the operating system's own behaviour remains.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) || AT_ONCE.load(Ordering::SeqCst) {
            leave();
        }
        // The main thread ends the program when it meets a safe point; otherwise this thread does.
        std::thread::spawn(|| {
            let start = Instant::now();
            while start.elapsed() < GRACE {
                std::thread::sleep(Duration::from_millis(20));
            }
            leave();
        });
    });
}

/// True after Ctrl-C.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on Ctrl-C ends the program at once: the command waits for input that may never come.
pub(crate) fn leave_at_once() {
    AT_ONCE.store(true, Ordering::SeqCst);
}

/// Names a temporary file or folder that must not outlive the program.
pub(crate) fn remember(path: &Path) {
    TEMPORARY.lock().unwrap_or_else(|e| e.into_inner()).push(path.to_owned());
}

/// The temporary file has been renamed or removed.
pub(crate) fn forget(path: &Path) {
    TEMPORARY.lock().unwrap_or_else(|e| e.into_inner()).retain(|p| p != path);
}

#[expect(clippy::exit, reason = "Ctrl-C ends the program from the signal thread")]
fn leave() -> ! {
    for path in TEMPORARY.lock().unwrap_or_else(|e| e.into_inner()).drain(..) {
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "xc: error: interrupted");
    std::process::exit(130)
}
