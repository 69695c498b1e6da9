//! Device memory: allocations with gaps between them.

mod area;
mod cell;
mod order;

use crate::fault::{Fault, Kind};
pub(crate) use area::Area;
pub(crate) use cell::Use;
pub(crate) use order::Now;
pub use order::Order;

/// Where allocations begin, and what lies between two of them at least.
const FIRST: u64 = 0x7f00_0000_0000;
const GAP: u64 = 4096;
/// Bytes that are given room when the first of them is accessed: allocations may be larger than the machine.
const AREA: usize = 1 << 16;

/// Global memory of a device.
#[derive(Default)]
pub struct Memory {
    regions: Vec<Region>,
    next: u64,
    /// The region of the last access, where the next one probably is.
    last: usize,
    /// Which accesses are ordered.
    pub order: Order,
}

struct Region {
    base: u64,
    len: usize,
    areas: Vec<Option<Box<Area>>>,
}

impl Region {
    fn area(&mut self, number: usize) -> &mut Area {
        let len = (self.len - number * AREA).min(AREA);
        self.areas[number].get_or_insert_with(|| Box::new(Area::new(len)))
    }
}

impl Memory {
    /// Room for some bytes, which nobody has written yet. The address is a multiple of 512.
    pub fn alloc(&mut self, len: usize) -> u64 {
        let base = self.next.max(FIRST);
        self.next = (base + len as u64 + GAP).next_multiple_of(512);
        let areas = (0..len.div_ceil(AREA)).map(|_| None).collect();
        self.regions.push(Region { base, len, areas });
        base
    }

    /// Forgets all allocations and operations. Addresses given so far are not given again.
    pub fn reset(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }

    /// Bytes of the allocation that begins at an address.
    pub fn len_at(&self, address: u64) -> Option<usize> {
        self.regions.binary_search_by_key(&address, |r| r.base).ok().map(|at| self.regions[at].len)
    }

    /// Forgets an allocation, as an operation.
    ///
    /// # Errors
    ///
    /// No allocation begins there, or somebody uses it without order.
    pub fn free(&mut self, address: u64) -> Result<(), Fault> {
        let Ok(at) = self.regions.binary_search_by_key(&address, |r| r.base) else {
            return Err(Fault::new(Kind::Bounds, format!("{address:#x} is freed, where no allocation begins")));
        };
        let region = &mut self.regions[at];
        for area in region.areas.iter_mut().flatten() {
            let len = area.bytes.len();
            area.note_copy(0, len, Use::Write, &mut self.order).map_err(|f| f.at("a free"))?;
        }
        self.regions.remove(at);
        Ok(())
    }

    /// Makes the region of some bytes the last one, and says where in it they begin.
    #[inline(always)]
    fn locate(&mut self, address: u64, len: usize) -> Result<usize, Fault> {
        let holds = |r: &Region| address >= r.base && address - r.base + len as u64 <= r.len as u64;
        if !self.regions.get(self.last).is_some_and(holds) {
            self.last = self.regions.partition_point(|r| r.base <= address).saturating_sub(1);
            if !self.regions.get(self.last).is_some_and(holds) {
                return Err(self.outside(address, len));
            }
        }
        Ok((address - self.regions[self.last].base) as usize)
    }

    fn outside(&self, address: u64, len: usize) -> Fault {
        let near = self.regions.get(self.last).filter(|r| r.base <= address);
        let near = near.map_or(String::new(), |r| format!(": at byte {} of one of {}", address - r.base, r.len));
        Fault::new(Kind::Bounds, format!("{len} bytes at {address:#x} are in no allocation{near}"))
    }

    /// The area of an aligned access of at most 16 bytes, where in it the access is, and the order of accesses.
    #[inline(always)]
    pub(crate) fn area(&mut self, address: u64, len: usize) -> Result<(&mut Area, usize, &mut Order), Fault> {
        let at = self.locate(address, len)?;
        Ok((self.regions[self.last].area(at / AREA), at % AREA, &mut self.order))
    }

    /// Whether all the bytes are in one allocation.
    pub fn holds(&mut self, address: u64, len: usize) -> bool {
        len == 0 || self.locate(address, len).is_ok()
    }

    /// Copies in, as the current operation.
    ///
    /// # Errors
    ///
    /// Bytes outside of an allocation, or accessed by an operation that is not ordered with this one.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.pieces(address, from.len(), Use::Write, |area, range, at| {
            area[range.clone()].copy_from_slice(&from[at..at + range.len()]);
        })
    }

    /// Writes a pattern so many times, as the current operation.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn fill(&mut self, address: u64, pattern: &[u8], times: usize) -> Result<(), Fault> {
        self.pieces(address, pattern.len() * times, Use::Write, |area, range, at| {
            if pattern.iter().all(|&b| b == pattern[0]) {
                return area[range].fill(pattern[0]);
            }
            for (byte, i) in area[range].iter_mut().zip(at..) {
                *byte = pattern[i % pattern.len()];
            }
        })
    }

    /// Copies out, as the current operation. Bytes that nobody wrote are zeros.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn read(&mut self, address: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let mut out = vec![0; len];
        self.pieces(address, len, Use::CopyOut, |area, range, at| {
            out[at..at + range.len()].copy_from_slice(&area[range]);
        })?;
        Ok(out)
    }

    fn pieces(
        &mut self,
        address: u64,
        len: usize,
        kind: Use,
        mut each: impl FnMut(&mut [u8], std::ops::Range<usize>, usize),
    ) -> Result<(), Fault> {
        if len == 0 {
            return Ok(());
        }
        let begin = self.locate(address, len)?;
        let region = &mut self.regions[self.last];
        let mut from = begin;
        while from < begin + len {
            let n = (AREA - from % AREA).min(begin + len - from);
            let area = region.area(from / AREA);
            area.note_copy(from % AREA, n, kind, &mut self.order)?;
            each(&mut area.bytes, from % AREA..from % AREA + n, from - begin);
            from += n;
        }
        Ok(())
    }
}
