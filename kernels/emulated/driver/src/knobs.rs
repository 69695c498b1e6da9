//! What a test chooses, and what it asks afterwards.

use crate::state::{Knobs, driver};
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

/// The seed of all orders: of streams, blocks, warps and atomics.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_seed(seed: u64) {
    let mut d = driver();
    (d.knobs.seed, d.random) = (seed, seed);
}

/// Most instructions of a turn of a warp; 0: until it has to wait.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_turn(turn: u32) {
    driver().knobs.turn = turn;
}

/// Of launches from now on only blocks `first` to before `end` run, by number: x counts first, then y. Memory that no
/// operation touches takes none, so that tests see one part of shapes larger than any machine.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_blocks(first: u64, end: u64) {
    driver().knobs.blocks = [first, end];
}

/// Compute capability, bytes of memory, number of cards, and version of the driver (13000 is 13.0).
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_device(major: u32, minor: u32, memory_bytes: u64, n_cards: u32, driver_version: u32) {
    let mut d = driver();
    d.knobs = Knobs { capability: (major, minor), memory: memory_bytes, n_cards, version: driver_version, ..d.knobs };
}

/// Multiprocessors of a card.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_processors(n: u32) {
    driver().knobs.processors = n;
}

/// Whether texts with `.approx` load (1). Their last bits are then not a card's.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_approximate(allowed: u32) {
    driver().knobs.approximate = allowed != 0;
}

/// Texts are taken from a folder from now on: `NAME.ptx`, where there is one, instead of a text whose first line says that
/// it was written from `cu/NAME.cu`. Null: texts are taken as they are given.
///
/// # Safety
///
/// `folder` is null or ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_replace_texts(folder: *const c_char) {
    // SAFETY: the caller's promise.
    let folder = (!folder.is_null()).then(|| unsafe { CStr::from_ptr(folder) });
    driver().texts = folder.map(|folder| PathBuf::from(folder.to_string_lossy().into_owned()));
}

/// Forgets contexts, memory, modules, streams and the fault; knobs stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_reset() {
    driver().reset();
}

/// What launches did since the last clear: a line of JSON each.
///
/// Writes the text with a 0 behind it, cut to fit. Answers the bytes that all of it needs, the 0 included; 0 for nothing.
///
/// # Safety
///
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_counts(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { give(&driver().counts, buffer, capacity) }
}

/// Forgets what launches did.
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_clear_counts() {
    driver().counts.clear();
}

/// The first fault; nothing if there was none.
///
/// # Safety
///
/// As of [`xc_emulated_counts`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_fault(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { give(&driver().fault, buffer, capacity) }
}

/// Why the last module was refused that was; nothing if none was.
///
/// # Safety
///
/// As of [`xc_emulated_counts`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_refusal(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { give(&driver().refusal, buffer, capacity) }
}

/// Writes a text with a 0 behind it, cut to fit. Answers the bytes that all of it needs, the 0 included; 0 for nothing.
///
/// # Safety
///
/// `buffer` has room for `capacity` bytes.
pub(crate) unsafe fn give(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if capacity > 0 {
        let n = text.len().min(capacity - 1);
        // SAFETY: n + 1 bytes are at most `capacity`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, n);
            *buffer.add(n) = 0;
        }
    }
    if text.is_empty() { 0 } else { text.len() + 1 }
}
