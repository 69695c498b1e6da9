//! Asynchronous copies from global to shared memory: which are on their way.

use crate::ops::lanes;

/// Copies of a warp that are on their way.
#[derive(Default)]
pub(crate) struct Copies {
    list: Vec<Copy>,
    /// Groups that each lane has committed.
    committed: [u32; 32],
}

pub(super) struct Copy {
    pub(super) lane: usize,
    /// The group, once it is committed.
    group: Option<u32>,
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) bytes: usize,
    /// Bytes that are read; the others become zeros.
    pub(super) given: usize,
}

impl Copies {
    pub(super) fn begin(&mut self, lane: usize, to: u64, from: u64, bytes: usize, given: usize) {
        self.list.push(Copy { lane, group: None, to, from, bytes, given });
    }

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
    pub(super) fn take(&mut self, open: Option<usize>, active: u32) -> Vec<Copy> {
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
