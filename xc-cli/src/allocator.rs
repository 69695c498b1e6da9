//! The allocator: what it keeps of memory that was freed, and what happens when there is no more.

#![allow(unsafe_code, reason = "a global allocator, and settings of the C library")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes from which an array has pages of its own, which go back to the system when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_PAGES: i32 = 1 << 20;
/// Where so much could not be had, there is enough for what cleaning up needs.
const LARGE: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: OrEnd = OrEnd;

/// The system's allocator; where it has no memory the program ends with its exit code for that, and
/// one line.
struct OrEnd;

// SAFETY: every call is passed on to the system's allocator, which keeps the contract; a null pointer
// is never given back.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promised.
        or_end(unsafe { System.realloc(at, layout, size) }, size)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[inline]
fn or_end(memory: *mut u8, n_bytes: usize) -> *mut u8 {
    if memory.is_null() {
        no_memory(n_bytes);
    }
    memory
}

#[cold]
#[inline(never)]
#[expect(clippy::exit, reason = "there is no memory for another way")]
fn no_memory(n_bytes: usize) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if !ENDING.swap(true, Ordering::Relaxed) {
        // Neither the line nor its numbers are allocated.
        let mib = n_bytes as f64 / 1048576.0;
        let _ = writeln!(std::io::stderr(), "xc: error: out of memory: {mib:.1} MiB more could not be had");
        if n_bytes >= LARGE {
            xc_store::atomic::remove_partial();
        }
    }
    std::process::exit(3)
}

/// Lets large arrays go back to the system when they are freed. To be called before there are
/// threads.
///
/// By default glibc raises the size from which arrays have pages of their own with every large one
/// that is freed, up to 32 MiB, and keeps what is smaller: half as much again as a tree's training
/// uses. Figures: `bench/decisions/resident-memory.md`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_large_arrays() {
    // SAFETY: mallopt only sets a number, and no other thread allocates yet.
    // It fails for values out of range alone: then the default stays.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES) };
}

/// Gives back what the allocator keeps of small arrays that were freed: after work that made very
/// many of them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_small_arrays() {
    // SAFETY: no memory in use is touched.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_large_arrays() {}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_small_arrays() {}
