//! Pinned host memory, and copies that the host has not waited for.

use crate::clock::Clock;
use std::collections::BTreeMap;
use xc_emulated_ptx::{Fault, Kind};

/// What is in pinned memory while a copy to it is on its way.
const PATTERN: u8 = 0xf7;

/// Pinned memory and what happens to it.
#[derive(Default)]
pub(crate) struct Host {
    /// Addresses and lengths of allocations.
    pinned: BTreeMap<usize, Box<[u8]>>,
    pending: Vec<Pending>,
}

/// A copy that the host has not waited for.
struct Pending {
    at: usize,
    stream: u32,
    number: u32,
    what: What,
}

enum What {
    /// What was there when the copy was asked for.
    In { bytes: Vec<u8> },
    /// What the copy brought; `shared` with another copy that is on its way, so that the pattern may be gone.
    Out { len: usize, bytes: Option<Vec<u8>>, shared: bool },
}

impl Pending {
    fn len(&self) -> usize {
        match &self.what {
            What::In { bytes } => bytes.len(),
            What::Out { len, .. } => *len,
        }
    }
}

impl Host {
    /// Forgets copies.
    pub(crate) fn reset(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn alloc(&mut self, len: usize) -> usize {
        let mut bytes = vec![0u8; len.max(1)].into_boxed_slice();
        let at = bytes.as_mut_ptr() as usize;
        self.pinned.insert(at, bytes);
        at
    }

    /// Whether an allocation began there.
    pub(crate) fn free(&mut self, at: usize) -> bool {
        self.pinned.remove(&at).is_some()
    }

    pub(crate) fn is_pinned(&self, at: usize, len: usize) -> bool {
        self.pinned.range(..=at).next_back().is_some_and(|(&base, bytes)| at + len <= base + bytes.len())
    }

    fn overlaps(&self, at: usize, len: usize, is: impl Fn(&What) -> bool) -> bool {
        self.pending.iter().any(|p| p.at < at + len && at < p.at + p.len() && is(&p.what))
    }

    /// A copy from pinned memory is asked for.
    pub(crate) fn ask_in(&mut self, at: usize, len: usize, stream: u32, number: u32) -> Result<(), Fault> {
        if self.overlaps(at, len, |w| matches!(w, What::Out { .. })) {
            return Err(fault("copied from", at, "a copy to it is on its way"));
        }
        let bytes = now(at, len);
        self.pending.push(Pending { at, stream, number, what: What::In { bytes } });
        Ok(())
    }

    /// The bytes that a copy from pinned memory takes now.
    pub(crate) fn take_in(&self, at: usize, len: usize, stream: u32, number: u32) -> Result<Vec<u8>, Fault> {
        for pending in self.pending.iter().filter(|p| (p.stream, p.number) == (stream, number)) {
            unchanged(pending)?;
        }
        Ok(now(at, len))
    }

    /// A copy to pinned memory is asked for.
    pub(crate) fn ask_out(&mut self, at: usize, len: usize, stream: u32, number: u32) -> Result<(), Fault> {
        if self.overlaps(at, len, |w| matches!(w, What::In { .. })) {
            let is_ordered = |p: &Pending| p.stream == stream;
            if !self.pending.iter().filter(|p| p.at < at + len && at < p.at + p.len()).all(is_ordered) {
                return Err(fault("copied to", at, "a copy from it is on its way"));
            }
            // Within the stream the copy from it comes first: what it takes is known already.
            self.pending.retain(|p| !(p.at < at + len && at < p.at + p.len() && matches!(p.what, What::In { .. })));
        }
        let shared = self.overlaps(at, len, |w| matches!(w, What::Out { .. }));
        fill(at, &vec![PATTERN; len]);
        self.pending.push(Pending { at, stream, number, what: What::Out { len, bytes: None, shared } });
        Ok(())
    }

    /// A copy to pinned memory has been done on the device.
    pub(crate) fn give_out(&mut self, of_stream: u32, of_number: u32, brought: Vec<u8>) {
        for pending in self.pending.iter_mut().filter(|p| (p.stream, p.number) == (of_stream, of_number)) {
            if let What::Out { bytes, .. } = &mut pending.what {
                *bytes = Some(brought);
                return;
            }
        }
    }

    /// The host has waited for what a clock says.
    pub(crate) fn waited(&mut self, clock: &Clock) -> Result<(), Fault> {
        let is_done = |p: &Pending| clock.of(p.stream) >= p.number;
        let (done, left) = std::mem::take(&mut self.pending).into_iter().partition(is_done);
        self.pending = left;
        let done: Vec<Pending> = done;
        for pending in &done {
            unchanged(pending)?;
        }
        for pending in done {
            if let What::Out { bytes: Some(bytes), .. } = pending.what {
                fill(pending.at, &bytes);
            }
        }
        Ok(())
    }
}

/// Whether nobody has written to the memory of a copy while it was on its way.
fn unchanged(pending: &Pending) -> Result<(), Fault> {
    match &pending.what {
        What::In { bytes } if now(pending.at, bytes.len()) != *bytes => {
            Err(fault("written", pending.at, "a copy from it is on its way"))
        }
        What::Out { len, shared: false, .. } if now(pending.at, *len).iter().any(|&b| b != PATTERN) => {
            Err(fault("written", pending.at, "a copy to it is on its way"))
        }
        _ => Ok(()),
    }
}

fn fault(what: &str, at: usize, why: &str) -> Fault {
    Fault::new(Kind::Copy, format!("pinned memory at {at:#x} is {what} while {why}"))
}

fn now(at: usize, len: usize) -> Vec<u8> {
    // SAFETY: callers pass ranges that `is_pinned` has found in an allocation of `Host`, which keeps it until it is
    // freed; freeing waits for all copies first.
    unsafe { std::slice::from_raw_parts(at as *const u8, len) }.to_vec()
}

fn fill(at: usize, bytes: &[u8]) {
    // SAFETY: as in `now`; the source is a vector of our own.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}
