//! Device memory: allocations with gaps between them, and what is known of each byte.

use crate::{Fault, fault};

/// Who touched a byte last.
#[derive(Clone, Copy, Default)]
pub(crate) struct Touch {
    pub(crate) launch: u32,
    pub(crate) block: u32,
    pub(crate) thread: u16,
    pub(crate) many_threads: bool,
    pub(crate) many_warps: bool,
    pub(crate) atomic: bool,
    /// Barriers passed by the block, and by the warp.
    pub(crate) bars: u32,
    pub(crate) syncs: u32,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Shadow {
    written: bool,
    write: Touch,
    read: Touch,
}

/// What an access is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Atomic,
}

/// Bytes whose shadows stand together; a page that only the host has touched has none.
const PAGE: usize = 64;

#[derive(Clone)]
pub(crate) struct Region {
    base: u64,
    pub(crate) bytes: Vec<u8>,
    pages: Vec<Page>,
}

#[derive(Clone)]
enum Page {
    Unknown,
    Written,
    Each(Box<[Shadow; PAGE]>),
}

impl Page {
    fn each(&mut self) -> &mut [Shadow; PAGE] {
        if let Self::Unknown | Self::Written = self {
            let written = matches!(self, Self::Written);
            *self = Self::Each(Box::new([Shadow { written, ..Shadow::default() }; PAGE]));
        }
        match self {
            Self::Each(each) => each,
            _ => unreachable!("it was just made"),
        }
    }
}

impl Region {
    pub(crate) fn new(base: u64, len: usize) -> Self {
        Self { base, bytes: vec![0xf7; len], pages: vec![Page::Unknown; len.div_ceil(PAGE)] }
    }

    pub(crate) fn set(&mut self, at: usize, from: &[u8]) {
        self.bytes[at..at + from.len()].copy_from_slice(from);
        self.mark(at, from.len(), true);
    }

    /// Nothing is known of some bytes any more.
    pub(crate) fn forget(&mut self, at: usize, len: usize) {
        self.bytes[at..at + len].fill(0xf7);
        self.mark(at, len, false);
    }

    fn mark(&mut self, at: usize, len: usize, written: bool) {
        let mut from = at;
        while from < at + len {
            let (page, first) = (from / PAGE, from % PAGE);
            let n = (PAGE - first).min(at + len - from);
            if n == PAGE {
                self.pages[page] = if written { Page::Written } else { Page::Unknown };
            } else {
                self.pages[page].each()[first..first + n].fill(Shadow { written, ..Shadow::default() });
            }
            from += n;
        }
    }

    /// Checks an access by `who`, and notes it.
    pub(crate) fn note(&mut self, at: usize, len: usize, kind: Kind, who: Touch) -> Result<(), &'static str> {
        let warp = |t: &Touch| t.thread / 32;
        let ordered = |before: &Touch| {
            if before.launch != who.launch {
                return true;
            }
            if before.block != who.block {
                return false;
            }
            if before.bars < who.bars {
                return true;
            }
            if before.many_warps || warp(before) != warp(&who) {
                return false;
            }
            (!before.many_threads && before.thread == who.thread) || before.syncs < who.syncs
        };
        for place in at..at + len {
            let shadow = &mut self.pages[place / PAGE].each()[place % PAGE];
            if kind != Kind::Write && !shadow.written {
                return Err("a value that nobody wrote is read");
            }
            let both_atomic = kind == Kind::Atomic && shadow.write.atomic;
            if shadow.write.launch != 0 && !both_atomic && !ordered(&shadow.write) {
                return Err(if kind == Kind::Read {
                    "a race: read after an unordered write"
                } else {
                    "a race: two unordered writes"
                });
            }
            if kind == Kind::Read {
                let old = &shadow.read;
                let same = old.launch == who.launch && old.block == who.block && old.bars == who.bars;
                let mut new = who;
                // A reader that the warp's own barrier orders before this one is as good as this one.
                if same && (warp(old) != warp(&who) || old.many_warps) {
                    (new.many_threads, new.many_warps) = (true, true);
                } else if same && old.syncs == who.syncs {
                    new.many_threads = old.many_threads || old.thread != who.thread;
                }
                // A reader of another block stays known as one that no barrier orders.
                if old.launch == who.launch && old.block != who.block {
                    new.block = u32::MAX;
                }
                shadow.read = new;
            } else {
                if shadow.read.launch != 0 && !ordered(&shadow.read) {
                    return Err("a race: write after an unordered read");
                }
                shadow.written = true;
                shadow.write = Touch { atomic: kind == Kind::Atomic, ..who };
            }
        }
        Ok(())
    }
}

/// Global memory.
#[derive(Default)]
pub struct Memory {
    regions: Vec<Region>,
    next: u64,
    pub(crate) launches: u32,
}

const FIRST: u64 = 0x7f00_0000_0000;
const GAP: u64 = 4096;

impl Memory {
    /// Room for some bytes, which nobody has written yet.
    pub fn alloc(&mut self, len: usize) -> u64 {
        let base = self.next.max(FIRST);
        self.next = (base + len as u64 + GAP).next_multiple_of(256);
        self.regions.push(Region::new(base, len));
        base
    }

    /// Forgets an allocation.
    pub fn free(&mut self, address: u64) -> Result<(), Fault> {
        match self.regions.binary_search_by_key(&address, |r| r.base) {
            Ok(at) => {
                self.regions.remove(at);
                Ok(())
            }
            Err(_) => fault(format!("{address:#x} is freed, where no allocation begins")),
        }
    }

    pub(crate) fn find(&mut self, address: u64, len: usize) -> Result<(&mut Region, usize), Fault> {
        let at = self.regions.partition_point(|r| r.base <= address);
        let inside = |r: &Region| address - r.base + len as u64 <= r.bytes.len() as u64;
        match at.checked_sub(1) {
            Some(at) if inside(&self.regions[at]) => {
                let region = &mut self.regions[at];
                let at = (address - region.base) as usize;
                Ok((region, at))
            }
            Some(at) => {
                let r = &self.regions[at];
                fault(format!(
                    "{len} bytes at {address:#x} are in no allocation: byte {} of one of {}",
                    address - r.base,
                    r.bytes.len()
                ))
            }
            None => fault(format!("{len} bytes at {address:#x} are in no allocation")),
        }
    }

    /// Copies in.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let (region, at) = self.find(address, from.len())?;
        region.set(at, from);
        Ok(())
    }

    /// Copies out.
    pub fn read(&mut self, address: u64, len: usize) -> Result<&[u8], Fault> {
        let (region, at) = self.find(address, len)?;
        Ok(&region.bytes[at..at + len])
    }
}
