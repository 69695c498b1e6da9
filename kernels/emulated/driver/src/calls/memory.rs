//! Allocations, copies and fills.

use super::{calls, put};
use crate::codes::*;
use crate::operation::Operation;
use crate::state::{Answer, Driver, LEGACY};
use std::ffi::{c_uint, c_void};

fn bytes_at(from: *const c_void, len: usize) -> Vec<u8> {
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: `from` and `len` are arguments of a copy: the caller promises that so many bytes are there.
    unsafe { std::slice::from_raw_parts(from.cast::<u8>(), len) }.to_vec()
}

fn store(to: *mut c_void, bytes: &[u8]) {
    // SAFETY: `to` is an argument of a copy of so many bytes: the caller promises room for them.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
}

fn on_device(d: &mut Driver, at: u64, len: usize) -> Answer {
    if d.memory.holds(at, len) { Ok(()) } else { Err(INVALID_VALUE) }
}

fn alloc(d: &mut Driver, len: usize) -> Answer<u64> {
    if len == 0 {
        return Err(INVALID_VALUE);
    }
    if len as u64 > d.knobs.memory.saturating_sub(d.used) {
        return Err(OUT_OF_MEMORY);
    }
    d.used += len as u64;
    Ok(d.memory.alloc(len))
}

/// A copy out to memory that is not pinned: the call comes back when it is done.
fn copy_out(d: &mut Driver, to: *mut c_void, from: u64, len: usize, stream: usize) -> Answer {
    on_device(d, from, len)?;
    if len == 0 {
        return Ok(());
    }
    // It goes through a pinned buffer, as a driver does it.
    let room = d.host.alloc(len);
    d.ask(stream, Operation::OutPinned { to: room, from, len })?;
    d.wait_for_stream(stream)?;
    store(to, &bytes_at(room as *const c_void, len));
    d.host.free(room);
    Ok(())
}

calls! {
    Context fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) |d| {
        put(total, d.knobs.memory as usize)?;
        put(free, d.knobs.memory.saturating_sub(d.used) as usize)
    }

    Context fn cuMemAlloc_v2(out: *mut u64, len: usize) |d| {
        d.uncapturable(true)?;
        put(out, alloc(d, len)?)
    }

    Context fn cuMemAllocAsync(out: *mut u64, len: usize, _stream: usize) |d| { put(out, alloc(d, len)?) }

    Context fn cuMemFree_v2(at: u64) |d| {
        if at == 0 {
            return Ok(());
        }
        d.uncapturable(true)?;
        d.wait_for_all()?;
        d.memory.len_at(at).ok_or(INVALID_VALUE)?;
        d.ask(LEGACY, Operation::Free { at })?;
        d.wait_for_all()
    }

    Context fn cuMemFreeAsync(at: u64, stream: usize) |d| {
        d.memory.len_at(at).ok_or(INVALID_VALUE)?;
        d.ask(stream, Operation::Free { at })
    }

    Context fn cuMemHostAlloc(out: *mut *mut c_void, len: usize, _flags: c_uint) |d| {
        put(out, d.host.alloc(len) as *mut c_void)
    }

    Context fn cuMemFreeHost(at: *mut c_void) |d| {
        d.wait_for_all()?;
        if d.host.free(at as usize) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    Context fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, len: usize) |d| {
        on_device(d, to, len)?;
        d.ask(LEGACY, Operation::In { to, bytes: bytes_at(from, len) })?;
        d.wait_for_stream(LEGACY)
    }

    Context fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, len: usize, stream: usize) |d| {
        on_device(d, to, len)?;
        if len == 0 {
            return Ok(());
        }
        let at = from as usize;
        let operation = match d.host.is_pinned(at, len) {
            true => Operation::InPinned { to, from: at, len },
            false => Operation::In { to, bytes: bytes_at(from, len) },
        };
        d.ask(stream, operation)
    }

    Context fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, len: usize) |d| { copy_out(d, to, from, len, LEGACY) }

    Context fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, len: usize, stream: usize) |d| {
        on_device(d, from, len)?;
        if d.host.is_pinned(to as usize, len) {
            return d.ask(stream, Operation::OutPinned { to: to as usize, from, len });
        }
        match &mut d.stream(stream)?.capture {
            None => copy_out(d, to, from, len, stream),
            Some(capture) if capture.relaxed && !capture.invalid => Ok(()),
            Some(capture) => {
                capture.invalid = true;
                Err(CAPTURE_INVALIDATED)
            }
        }
    }

    Context fn cuMemcpyDtoD_v2(to: u64, from: u64, len: usize) |d| {
        on_device(d, to, len)?;
        on_device(d, from, len)?;
        d.ask(LEGACY, Operation::Across { to, from, len })
    }

    Context fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, len: usize, stream: usize) |d| {
        on_device(d, to, len)?;
        on_device(d, from, len)?;
        d.ask(stream, Operation::Across { to, from, len })
    }

    Context fn cuMemsetD8_v2(at: u64, value: u8, n: usize) |d| {
        on_device(d, at, n)?;
        d.ask(LEGACY, Operation::Fill { at, pattern: vec![value], times: n })
    }

    Context fn cuMemsetD8Async(at: u64, value: u8, n: usize, stream: usize) |d| {
        on_device(d, at, n)?;
        d.ask(stream, Operation::Fill { at, pattern: vec![value], times: n })
    }

    Context fn cuMemsetD32Async(at: u64, value: c_uint, n: usize, stream: usize) |d| {
        if !at.is_multiple_of(4) {
            return Err(INVALID_VALUE);
        }
        on_device(d, at, 4 * n)?;
        d.ask(stream, Operation::Fill { at, pattern: value.to_le_bytes().to_vec(), times: n })
    }
}
