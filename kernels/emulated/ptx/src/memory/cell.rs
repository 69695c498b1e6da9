//! What is known of a few bytes.

use super::order::{Now, Order};
use crate::fault::{Fault, Kind};

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    /// By the host, which may copy what nobody has written.
    CopyOut,
    Write,
    Atomic,
}

/// Accesses of one kind, since the last write: those that no later one of them comes after.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    /// Of the last access; 0: there was none.
    moment: u32,
    /// Lanes of that moment's warp.
    lanes: u32,
    /// A list of operations that are not ordered with the last one.
    others: u16,
    /// In the same launch there were other blocks; between the same barriers of the block, other warps.
    blocks: bool,
    warps: bool,
}

impl Set {
    fn of(now: &Now) -> Self {
        Self { moment: now.moment, lanes: 1 << now.lane, ..Self::default() }
    }

    /// Whether all of them come before an access.
    #[inline(always)]
    fn is_before(&self, floor: u32, order: &Order, now: &Now) -> bool {
        self.moment < floor || self.is_before_slowly(order, now)
    }

    fn is_before_slowly(&self, order: &Order, now: &Now) -> bool {
        if !order.have_passed(self.others) {
            return false;
        }
        if self.moment < order.of_operation {
            return order.has_passed(self.moment);
        }
        if self.blocks || self.moment < order.of_block {
            // Of the current operation as a whole, when the host copies: it is one access.
            return self.moment == now.moment && !self.blocks;
        }
        if self.moment == now.moment {
            return !self.warps && self.lanes & !(1 << now.lane) == 0;
        }
        let epoch = order.epoch_of(self.moment);
        if epoch.bars < now.bars {
            return true;
        }
        let mut others = self.lanes & !(1 << now.lane);
        if self.warps || epoch.warp != now.warp {
            return false;
        }
        while others != 0 {
            if now.seen[others.trailing_zeros() as usize] < epoch.stamp {
                return false;
            }
            others &= others - 1;
        }
        true
    }

    #[inline(always)]
    fn add(&mut self, floor: u32, order: &mut Order, now: &Now) {
        if self.moment == now.moment {
            self.lanes |= 1 << now.lane;
        } else if self.moment < floor {
            *self = Self::of(now);
        } else {
            self.add_slowly(order, now);
        }
    }

    fn add_slowly(&mut self, order: &mut Order, now: &Now) {
        if self.is_before_slowly(order, now) {
            *self = Self::of(now);
            return;
        }
        let mut new = Self { others: self.others, ..Self::of(now) };
        if self.moment < order.of_operation {
            new.others = order.listed(self.others, self.moment);
        } else if self.blocks || self.moment < order.of_block {
            new.blocks = true;
        } else {
            let epoch = order.epoch_of(self.moment);
            if epoch.bars == now.bars {
                new.warps = self.warps || epoch.warp != now.warp;
                if epoch.warp == now.warp {
                    let unseen = |l: &u32| now.seen[*l as usize] < epoch.stamp;
                    let lanes = (0..32).filter(|l| self.lanes >> l & 1 == 1).filter(unseen);
                    new.lanes |= lanes.fold(0, |mask, l| mask | 1 << l);
                }
            }
        }
        *self = new;
    }
}

impl Set {
    /// A fault of an access that these do not come before.
    #[cold]
    fn race(&self, kind: Use, what: &str, order: &Order) -> Fault {
        let access = match kind {
            Use::Read | Use::CopyOut => "a read",
            Use::Write => "a write",
            Use::Atomic => "an atomic",
        };
        let by = if self.moment < order.of_operation {
            "an operation of another stream".into()
        } else if self.blocks || self.moment < order.of_block {
            "another block".into()
        } else if self.warps {
            "several warps".into()
        } else {
            let warp = order.epoch_of(self.moment).warp;
            let lanes: Vec<u32> = (0..32).filter(|l| self.lanes >> l & 1 == 1).collect();
            format!("warp {warp}, lanes {lanes:?}")
        };
        Fault::new(Kind::Race, format!("a race: {access} without order after {what} by {by}"))
    }
}

/// What is known of the bytes of a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    written: bool,
    write: Set,
    read: Set,
    atomic: Set,
}

impl Cell {
    /// Whether somebody has written here, not before a moment.
    fn is_written(&self, since: u32) -> bool {
        self.written && self.write.moment.max(self.atomic.moment) >= since
    }

    /// Checks an access and notes it. What was before `since` is forgotten.
    #[inline(always)]
    pub(super) fn note(&mut self, kind: Use, since: u32, order: &mut Order, now: &Now) -> Result<(), Fault> {
        let floor = order.fence.max(since);
        if matches!(kind, Use::Read | Use::Atomic) && !self.is_written(since) {
            return Err(Fault::new(Kind::Unwritten, "nobody has written what is read"));
        }
        if !self.write.is_before(floor, order, now) {
            return Err(self.write.race(kind, "a write", order));
        }
        if kind != Use::Atomic && !self.atomic.is_before(floor, order, now) {
            return Err(self.atomic.race(kind, "an atomic", order));
        }
        if matches!(kind, Use::Read | Use::CopyOut) {
            self.read.add(floor, order, now);
            return Ok(());
        }
        if !self.read.is_before(floor, order, now) {
            return Err(self.read.race(kind, "a read", order));
        }
        if kind == Use::Atomic {
            self.atomic.add(floor, order, now);
        } else {
            *self = Self { written: true, write: Set::of(now), ..Self::default() };
        }
        Ok(())
    }

    /// Whether the current operation has written here.
    pub(super) fn is_of_operation(&self, order: &Order) -> bool {
        self.write.moment.max(self.atomic.moment) >= order.of_operation
    }

    /// What was written is not known any more.
    pub(super) fn forget(&mut self) {
        self.written = false;
    }
}
