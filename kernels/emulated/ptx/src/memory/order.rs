//! Which access comes before which.

use std::collections::HashMap;

/// What orders accesses, for races.
///
/// Accesses of different **operations** (launches, copies, fills, frees) are ordered when the stream of one has waited
/// for the other: each operation has a number in its stream and a clock, which says up to which number of each stream
/// it comes after. Within a launch nothing orders different blocks. Within a block `bar.sync` orders all threads, and
/// `bar.warp.sync` the lanes of its mask, what these lanes have been ordered after before included.
///
/// A *moment* is a number for "this operation, this block, this warp, between these two barriers". Moments grow, so one
/// comparison tells most accesses of earlier operations, and one those of other blocks.
#[derive(Debug)]
pub struct Order {
    operations: Vec<Operation>,
    clock: Vec<u32>,
    next: u32,
    /// All moments before these are ordered before now; belong to earlier operations; belong to other blocks.
    pub(super) fence: u32,
    pub(super) of_operation: u32,
    pub(super) of_block: u32,
    settled: u32,
    block: Vec<Epoch>,
    /// Operations whose accesses of a place are not ordered, by moments; number 0 is the empty list.
    lists: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, u16>,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    first: u32,
    stream: u32,
    number: u32,
}

/// Between two barriers of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) warp: u32,
    /// Barriers that the block has passed, and warp barriers that the warp has.
    pub(super) bars: u32,
    pub(super) stamp: u32,
}

/// An access that is checked: who, and when.
#[derive(Clone, Copy)]
pub(crate) struct Now<'a> {
    pub(crate) moment: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) bars: u32,
    /// Up to which stamp this lane comes after each lane of its warp.
    pub(crate) seen: &'a [u32; 32],
}

impl Now<'_> {
    /// Of an operation of the host.
    pub(super) fn of_host(order: &Order) -> Now<'static> {
        Now { moment: order.of_operation, warp: 0, lane: 0, bars: 0, seen: &[0; 32] }
    }
}

impl Default for Order {
    /// In the midst of an operation that nothing comes before. Moment 0 stands for none.
    fn default() -> Self {
        let mut order = Self {
            operations: Vec::new(),
            clock: Vec::new(),
            next: 1,
            fence: 1,
            of_operation: 1,
            of_block: 1,
            settled: 1,
            block: Vec::new(),
            lists: Vec::new(),
            numbers: HashMap::new(),
        };
        order.begin(0, 1, Vec::new());
        order
    }
}

impl Order {
    /// Begins operation `number` (from 1) of a stream, which comes after those that `clock` names by stream.
    pub fn begin(&mut self, stream: u32, number: u32, clock: Vec<u32>) {
        self.clock = clock;
        self.fence = self.settled;
        for i in 0..self.operations.len() {
            if !self.is_before(self.operations[i]) {
                break;
            }
            self.fence = self.operations.get(i + 1).map_or(self.next, |o| o.first);
        }
        self.operations.push(Operation { first: self.next, stream, number });
        self.of_operation = self.moment();
        self.begin_block();
    }

    /// Begins an operation that comes after all before it.
    pub fn begin_after_all(&mut self) {
        let last = self.operations.last().map_or(0, |o| o.number);
        self.settle();
        self.begin(0, last + 1, Vec::new());
    }

    /// Says that all operations so far come before all that begin from now on.
    pub fn settle(&mut self) {
        self.settled = self.next;
        self.operations.clear();
        self.lists.clear();
        self.numbers.clear();
    }

    fn moment(&mut self) -> u32 {
        self.next = self.next.checked_add(1).expect("fewer than 2^32 moments in a process");
        self.next - 1
    }

    pub(crate) fn begin_block(&mut self) {
        self.of_block = self.next;
        self.block.clear();
    }

    /// A new moment of the current block.
    pub(crate) fn epoch(&mut self, warp: u32, bars: u32, stamp: u32) -> u32 {
        self.block.push(Epoch { warp, bars, stamp });
        self.moment()
    }

    /// The moment from which on accesses belong to the current block.
    /// The moment from which on accesses belong to the current operation.
    pub(crate) fn first_of_operation(&self) -> u32 {
        self.of_operation
    }

    pub(crate) fn first_of_block(&self) -> u32 {
        self.of_block
    }

    pub(super) fn epoch_of(&self, moment: u32) -> Epoch {
        self.block[(moment - self.of_block) as usize]
    }

    fn is_before(&self, operation: Operation) -> bool {
        self.clock.get(operation.stream as usize).is_some_and(|&n| n >= operation.number)
    }

    /// Whether the operation of a moment, another than the current one, comes before it.
    pub(super) fn has_passed(&self, moment: u32) -> bool {
        moment < self.fence || {
            let at = self.operations.partition_point(|o| o.first <= moment) - 1;
            self.is_before(self.operations[at])
        }
    }

    #[inline(always)]
    pub(super) fn have_passed(&self, list: u16) -> bool {
        list == 0 || self.lists[usize::from(list) - 1].iter().all(|&m| self.has_passed(m))
    }

    /// A list and one moment more, less those that the current operation comes after. Lists are numbered; should there
    /// be no number left before the host has waited for everything, the moment is forgotten.
    pub(super) fn listed(&mut self, list: u16, moment: u32) -> u16 {
        let mut moments = if list == 0 { Vec::new() } else { self.lists[usize::from(list) - 1].clone() };
        moments.retain(|&m| !self.has_passed(m));
        moments.push(moment);
        if let Some(&number) = self.numbers.get(&moments) {
            return number;
        }
        let Ok(number) = u16::try_from(self.lists.len() + 1) else { return list };
        self.numbers.insert(moments.clone(), number);
        self.lists.push(moments);
        number
    }
}
