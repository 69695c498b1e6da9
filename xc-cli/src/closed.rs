//! Whether stdout was closed when the program began.
//!
//! Rust opens /dev/null in the place of a closed descriptor before `main` runs, so that answers would vanish without
//! an error. So one is looked for earlier: among the functions that the system's loader calls first.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nobody had given the program a stdout.
pub(crate) fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[allow(unsafe_code, reason = "a function that runs before main")]
mod before_main {
    use super::{Ordering, WAS_CLOSED};

    extern "C" fn look() {
        // SAFETY: asks for the flags of a descriptor, which may be closed; no memory is passed.
        if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
            WAS_CLOSED.store(true, Ordering::Relaxed);
        }
    }

    // SAFETY: the loader calls what stands in this section, before main and on one thread. `look` calls nothing of
    // Rust's runtime, which has not begun, and does not panic.
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;
}
