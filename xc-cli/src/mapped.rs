//! Mapped files that end while they are read.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

/// What is said when the content of a mapped file is gone.
#[cfg(unix)]
const LINE: &[u8] = b"xc: error: a mapped file was truncated by another program while it was read, or its disk \
failed; files of an open model must not be written into (--in-memory reads them beforehand)\n";

/// Exit code: a file is at fault.
#[cfg(unix)]
const CODE: i32 = 2;

/// Whether a thread has begun to say it: several may meet a missing page at once.
#[cfg(unix)]
static SAID: AtomicBool = AtomicBool::new(false);

/// Has the program end with a line and an exit code, not by a signal, when a page of a mapped file
/// cannot be had. Where that fails the operating system's own behaviour remains.
#[cfg(unix)]
#[allow(unsafe_code, reason = "what is done in a signal handler")]
pub(crate) fn end_with_a_line() {
    let end = || {
        // SAFETY: all three may be called in a signal handler; the line is a constant.
        unsafe {
            while SAID.swap(true, Ordering::Relaxed) {
                // The first thread ends the program.
                libc::pause();
            }
            libc::write(libc::STDERR_FILENO, LINE.as_ptr().cast(), LINE.len());
            libc::_exit(CODE)
        }
    };
    // SAFETY: the action calls what may be called in a signal handler, takes no lock, allocates
    // nothing and does not panic.
    let _ = unsafe { signal_hook::low_level::register(libc::SIGBUS, end) };
}

/// Other systems are left as they are.
#[cfg(not(unix))]
pub(crate) fn end_with_a_line() {}
