//! Bytes, and what is known of them.

use super::cell::{Cell, Use};
use super::order::{Now, Order};
use crate::fault::Fault;

/// Bytes whose knowledge is kept together.
const PAGE: usize = 256;
/// A sector is what a card moves between its caches.
const SECTOR: usize = 32;

/// Some bytes side by side.
pub(crate) struct Area {
    pub(crate) bytes: Vec<u8>,
    pages: Vec<Page>,
    /// What was written before this moment counts as unwritten.
    since: u32,
}

#[derive(Clone, Default)]
struct Page {
    /// Of all bytes, as long as they have been accessed together.
    whole: Cell,
    /// Of 1, 2 or 4 bytes each.
    cells: Box<[Cell]>,
    shift: u8,
    /// Sectors that an operation, named by its moment, has touched.
    sectors: u8,
    touched_by: u32,
}

impl Page {
    /// The cells of some bytes, each small enough for an access of its own.
    #[inline(always)]
    fn cells(&mut self, at: usize, len: usize) -> &mut [Cell] {
        let needed = (at | len).trailing_zeros().min(2) as u8;
        if self.cells.is_empty() || self.shift > needed {
            self.split(needed);
        }
        &mut self.cells[at >> self.shift..(at + len) >> self.shift]
    }

    #[cold]
    fn split(&mut self, shift: u8) {
        self.cells = (0..PAGE >> shift)
            .map(|i| match self.cells.is_empty() {
                true => self.whole,
                false => self.cells[i << shift >> self.shift],
            })
            .collect();
        self.shift = shift;
    }
}

impl Area {
    pub(crate) fn new(len: usize) -> Self {
        Self { bytes: vec![0; len], pages: vec![Page::default(); len.div_ceil(PAGE)], since: 0 }
    }

    /// Nothing that was written so far counts.
    pub(crate) fn begin(&mut self, since: u32) {
        self.since = since;
    }

    /// Checks an access within a page and notes it.
    #[inline(always)]
    pub(crate) fn note(&mut self, at: usize, len: usize, kind: Use, order: &mut Order, now: &Now) -> Result<(), Fault> {
        for cell in self.pages[at / PAGE].cells(at % PAGE, len) {
            cell.note(kind, self.since, order, now)?;
        }
        Ok(())
    }

    /// The same for any bytes that the host copies.
    pub(super) fn note_copy(&mut self, at: usize, len: usize, kind: Use, order: &mut Order) -> Result<(), Fault> {
        let now = Now::of_host(order);
        let mut from = at;
        while from < at + len {
            let n = (PAGE - from % PAGE).min(at + len - from);
            let page = &mut self.pages[from / PAGE];
            let is_whole = n == PAGE || (from.is_multiple_of(PAGE) && from + n == self.bytes.len());
            let cells = if is_whole && page.cells.is_empty() {
                std::slice::from_mut(&mut page.whole)
            } else if is_whole && kind == Use::Write {
                // One check a cell, then the page is one again.
                for cell in &mut page.cells {
                    cell.note(kind, 0, order, &now)?;
                }
                page.whole = page.cells[0];
                page.cells = Box::default();
                from += n;
                continue;
            } else {
                page.cells(from % PAGE, n)
            };
            for cell in cells {
                cell.note(kind, 0, order, &now)?;
            }
            from += n;
        }
        Ok(())
    }

    /// Whether the current operation wrote some of the bytes, which lie within a page.
    pub(crate) fn is_written_by_operation(&mut self, at: usize, len: usize, order: &Order) -> bool {
        self.pages[at / PAGE].cells(at % PAGE, len).iter().any(|c| c.is_of_operation(order))
    }

    /// The bytes count as unwritten.
    pub(crate) fn forget(&mut self, at: usize, len: usize) {
        self.pages[at / PAGE].cells(at % PAGE, len).iter_mut().for_each(Cell::forget);
    }

    /// How many sectors an access within a page is the first of its operation to touch.
    #[inline(always)]
    pub(crate) fn touch(&mut self, at: usize, len: usize, operation: u32) -> u32 {
        let page = &mut self.pages[at / PAGE];
        if page.touched_by != operation {
            (page.touched_by, page.sectors) = (operation, 0);
        }
        let (first, last) = (at % PAGE / SECTOR, (at % PAGE + len - 1) / SECTOR);
        let touched = (0xff_u8 << first) & (0xff_u8 >> (7 - last));
        let new = touched & !page.sectors;
        page.sectors |= touched;
        new.count_ones()
    }
}
