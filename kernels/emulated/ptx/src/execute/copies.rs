//! Asynchronous copies from global to shared memory.

use super::Machine;
use super::warp::{Warp, lanes};
use crate::code::Address;
use crate::fault::{Fault, Kind};
use crate::memory::Use;

/// Copies of a warp that are on their way.
#[derive(Default)]
pub(crate) struct Copies {
    list: Vec<Copy>,
    /// Groups that each lane has committed.
    committed: [u32; 32],
}

struct Copy {
    lane: usize,
    /// The group, once it is committed.
    group: Option<u32>,
    to: u64,
    from: u64,
    bytes: usize,
    /// Bytes that are read; the others become zeros.
    given: usize,
}

impl Copies {
    pub(super) fn commit(&mut self, active: u32) {
        for copy in self.list.iter_mut().filter(|c| c.group.is_none() && active >> c.lane & 1 == 1) {
            copy.group = Some(self.committed[copy.lane]);
        }
        lanes(active).for_each(|l| self.committed[l] += 1);
    }

    pub(super) fn any_lane(&self) -> Option<u32> {
        self.list.first().map(|c| c.lane as u32)
    }

    /// Takes out what is done once at most `open` groups are.
    fn take(&mut self, open: Option<usize>, active: u32) -> Vec<Copy> {
        let committed = self.committed;
        let is_done = |c: &Copy| {
            active >> c.lane & 1 == 1
                && match (open, c.group) {
                    (None, _) => true,
                    (Some(open), Some(group)) => group as usize + open < committed[c.lane] as usize,
                    (Some(_), None) => false,
                }
        };
        let (done, left) = std::mem::take(&mut self.list).into_iter().partition(is_done);
        self.list = left;
        done
    }
}

impl Warp {
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
            self.copies.list.push(Copy { lane, group: None, to, from, bytes, given });
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
