//! Loads, stores, atomics and asynchronous copies.

use super::copies::Copy;
use super::warp::Warp;
use super::{Machine, SHARED_WINDOW};
use crate::code::{Access, Address, Atomic, Load, Space};
use crate::fault::{Fault, Kind};
use crate::memory::{Area, Order, Use};
use crate::ops::{Int, lanes};

/// Whether an access goes to shared memory, and its address there or in global memory.
fn place(space: Space, address: u64) -> (bool, u64) {
    match space {
        Space::Shared => (true, address),
        Space::Generic if (SHARED_WINDOW..2 * SHARED_WINDOW).contains(&address) => (true, address - SHARED_WINDOW),
        Space::Global | Space::Generic => (false, address),
    }
}

impl Machine<'_> {
    /// The area of an access of some bytes, checked for alignment and bounds, and where in it they are.
    #[inline(always)]
    pub(super) fn area(
        &mut self,
        is_shared: bool,
        address: u64,
        len: usize,
    ) -> Result<(&mut Area, usize, &mut Order), Fault> {
        if address & (len as u64 - 1) != 0 {
            let text = format!("{len} bytes at {address:#x}, which is no multiple of {len}");
            return Err(Fault::new(Kind::Misaligned, text));
        }
        if !is_shared {
            return self.memory.area(address, len);
        }
        let room = self.shared.bytes.len();
        if address > (room - len.min(room)) as u64 || len > room {
            return Err(Fault::new(Kind::Bounds, format!("{len} bytes at {address} of {room} bytes of shared memory")));
        }
        Ok((&mut self.shared, address as usize, &mut self.memory.order))
    }
}

impl Warp {
    /// The moment of accesses from now on.
    pub(super) fn current_moment(&mut self, machine: &mut Machine) -> u32 {
        if self.moment == 0 {
            self.moment = machine.memory.order.epoch(self.number, machine.bars, self.stamp);
        }
        self.moment
    }

    pub(super) fn access(
        &mut self,
        machine: &mut Machine,
        access: &Access,
        space: Space,
        at: Address,
        active: u32,
    ) -> Result<(), Fault> {
        let base = self.rows[usize::from(at.base)];
        let moment = self.current_moment(machine);
        let n = access.bytes();
        let is_atomic = matches!(access, Access::Atomic { .. });
        // Atomics of a warp happen in any order.
        let first = if is_atomic { machine.random.below(32) as u32 } else { 0 };
        let (mut is_any_global, mut is_any_shared) = (false, false);
        for l in lanes(active.rotate_right(first)) {
            let lane = (l + first as usize) % 32;
            let address = base[lane].wrapping_add(at.offset as u64);
            let (is_shared, address) = place(space, address);
            let one = self.one(machine, access, is_shared, address, n, moment, lane);
            one.map_err(|fault| fault.at(&format!("thread {}", 32 * self.number + lane as u32)))?;
            is_any_shared |= is_shared;
            is_any_global |= !is_shared;
        }
        let counts = &mut machine.counts;
        counts.shared_requests += u64::from(is_any_shared);
        if is_any_global {
            let requests = match access {
                Access::Load { .. } => &mut counts.loads,
                Access::Store { .. } => &mut counts.stores,
                Access::Atomic { .. } => &mut counts.atomics,
            };
            *requests += 1;
            let n = machine.take_sectors();
            let counts = &mut machine.counts;
            let sectors = match access {
                Access::Load { .. } => &mut counts.sectors_read,
                Access::Store { .. } => &mut counts.sectors_written,
                Access::Atomic { .. } => &mut counts.sectors_atomic,
            };
            *sectors += n;
        }
        Ok(())
    }

    /// The access of one lane.
    #[inline(always)]
    fn one(
        &mut self,
        machine: &mut Machine,
        access: &Access,
        is_shared: bool,
        address: u64,
        n: usize,
        moment: u32,
        lane: usize,
    ) -> Result<(), Fault> {
        let bars = machine.bars;
        if !is_shared && machine.sectors.last() != Some(&(address / 32)) {
            machine.sectors.push(address / 32);
        }
        let (area, at, order) = machine.area(is_shared, address, n)?;
        let now = Warp::now(&self.seen, moment, self.number, bars, lane);
        let watched = |fault: Fault| fault.at(&format!("{n} bytes at {address:#x}"));
        match access {
            Access::Load { load, constant } => {
                if *constant && area.is_written_by_operation(at, n, order) {
                    let text = "a load for constants (.nc) of what this kernel writes";
                    return Err(watched(Fault::new(Kind::Race, text)));
                }
                area.note(at, n, Use::Read, order, &now).map_err(watched)?;
                let bytes = &area.bytes[at..at + n];
                let each = load.int.bits as usize / 8;
                for (&(to, width), part) in load.to.iter().zip(bytes.chunks_exact(each)) {
                    self.rows[usize::from(to)][lane] = load.int.widened(number(part), width);
                }
            }
            Access::Store { bytes: each, from } => {
                area.note(at, n, Use::Write, order, &now).map_err(watched)?;
                for (&from, part) in from.iter().zip(area.bytes[at..at + n].chunks_exact_mut(*each)) {
                    part.copy_from_slice(&self.rows[usize::from(from)][lane].to_le_bytes()[..*each]);
                }
            }
            Access::Atomic { op, int, sources, to } => {
                area.note(at, n, Use::Atomic, order, &now).map_err(watched)?;
                let bytes = &mut area.bytes[at..at + n];
                let old = number(bytes);
                let [a, b] = sources.map(|s| int.cut(self.rows[usize::from(s)][lane]));
                bytes.copy_from_slice(&atomic(*op, *int, old, a, b).to_le_bytes()[..n]);
                if let Some(to) = to {
                    self.rows[usize::from(*to)][lane] = old;
                }
            }
        }
        if !is_shared {
            let operation = order.first_of_operation();
            machine.counts.footprint += 32 * u64::from(area.touch(at, n, operation));
        }
        Ok(())
    }

    /// A load of parameters.
    pub(super) fn parameter(
        &mut self,
        machine: &mut Machine,
        at: Address,
        load: &Load,
        active: u32,
    ) -> Result<(), Fault> {
        let each = load.int.bits as usize / 8;
        let base = self.rows[usize::from(at.base)];
        for lane in lanes(active) {
            let from = base[lane].wrapping_add(at.offset as u64) as usize;
            let end = from.saturating_add(each * load.to.len());
            let Some(bytes) = machine.params.get(from..end) else {
                let text = format!("parameters from byte {from} of {}", machine.params.len());
                return Err(Fault::new(Kind::Bounds, text));
            };
            for (&(to, width), part) in load.to.iter().zip(bytes.chunks_exact(each)) {
                self.rows[usize::from(to)][lane] = load.int.widened(number(part), width);
            }
        }
        Ok(())
    }

    /// From here on nobody may read what the copy will write.
    pub(super) fn begin_copy(
        &mut self,
        machine: &mut Machine,
        to: Address,
        from: Address,
        bytes: usize,
        given: Option<u16>,
        active: u32,
    ) -> Result<(), Fault> {
        let moment = self.current_moment(machine);
        let bars = machine.bars;
        for lane in lanes(active) {
            let address = |at: Address| self.rows[usize::from(at.base)][lane].wrapping_add(at.offset as u64);
            let (to, from) = (address(to), address(from));
            let given = given.map_or(bytes, |g| (self.rows[usize::from(g)][lane] as usize).min(bytes));
            if from % bytes as u64 != 0 {
                return Err(Fault::new(Kind::Misaligned, format!("a copy of {bytes} bytes from {from:#x}")));
            }
            let now = Warp::now(&self.seen, moment, self.number, bars, lane);
            let (area, at, order) = machine.area(true, to, bytes)?;
            area.note(at, bytes, Use::Write, order, &now)?;
            area.forget(at, bytes);
            self.copies.begin(lane, to, from, bytes, given);
        }
        machine.counts.loads += 1;
        Ok(())
    }

    /// Copies happen when they are waited for, as late as they may.
    pub(super) fn wait_copies(&mut self, machine: &mut Machine, open: Option<usize>, active: u32) -> Result<(), Fault> {
        let moment = self.current_moment(machine);
        let bars = machine.bars;
        for Copy { lane, to, from, bytes, given, .. } in self.copies.take(open, active) {
            let now = Warp::now(&self.seen, moment, self.number, bars, lane);
            let mut values = [0; 16];
            if given > 0 {
                let (area, at, order) = machine.area(false, from, bytes)?;
                if given == bytes {
                    area.note(at, bytes, Use::Read, order, &now)?;
                } else {
                    for i in 0..given {
                        area.note(at + i, 1, Use::Read, order, &now)?;
                    }
                }
                values[..given].copy_from_slice(&area.bytes[at..at + given]);
                let touched = area.touch(at, given, order.first_of_operation());
                machine.counts.footprint += 32 * u64::from(touched);
                machine.sectors.push(from / 32);
            }
            let (area, at, order) = machine.area(true, to, bytes)?;
            area.note(at, bytes, Use::Write, order, &now)?;
            area.bytes[at..at + bytes].copy_from_slice(&values[..bytes]);
        }
        machine.counts.sectors_read += machine.take_sectors();
        Ok(())
    }
}

#[inline(always)]
fn number(bytes: &[u8]) -> u64 {
    match bytes.len() {
        4 => u32::from_le_bytes(bytes.try_into().unwrap_or_default()).into(),
        8 => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        _ => bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)),
    }
}

/// What an atomic leaves in memory.
fn atomic(op: Atomic, int: Int, old: u64, a: u64, b: u64) -> u64 {
    match op {
        Atomic::Add => int.cut(old.wrapping_add(a)),
        Atomic::Min => {
            if int.value(a) < int.value(old) {
                a
            } else {
                old
            }
        }
        Atomic::Max => {
            if int.value(a) > int.value(old) {
                a
            } else {
                old
            }
        }
        Atomic::And => old & a,
        Atomic::Or => old | a,
        Atomic::Xor => old ^ a,
        Atomic::Exchange => a,
        Atomic::CompareAndSwap => {
            if old == a {
                b
            } else {
                old
            }
        }
        Atomic::Increment => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        Atomic::Decrement => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
    }
}
