//! What the allocator keeps of memory that was freed.

/// Bytes from which an array has pages of its own, which go back to the system when it is freed.
const OWN_PAGES: i32 = 1 << 20;

/// Lets large arrays go back to the system when they are freed. To be called before there are
/// threads.
///
/// By default glibc raises the size from which arrays have pages of their own with every large one
/// that is freed, up to 32 MiB, and keeps what is smaller: half as much again as a tree's training
/// uses. Figures: `docs/decisions/resident-memory.md`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "a setting of the C library")]
pub(crate) fn give_back_large_arrays() {
    // SAFETY: mallopt only sets a number, and no other thread allocates yet.
    // It fails for values out of range alone: then the default stays.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES) };
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_large_arrays() {}
