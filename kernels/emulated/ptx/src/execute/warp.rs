//! A warp: registers, and which lanes stand where.

use super::copies::Copies;
use super::{Launch, Machine};
use crate::code::{Action, Predicate};
use crate::fault::{Fault, Kind};
use crate::memory::Now;
use crate::ops::{ALL, Row, lanes};
use crate::parse::{ALWAYS, Constant, Kernel, NEVER};

/// Instructions of a long turn: then other lanes may go on, should these wait for them in a loop.
const LONG: u32 = 1 << 20;
/// Instructions of a warp after which it is taken for one that does not end.
const MOST: u64 = 1 << 32;

/// What is in registers and predicates that no instruction has set.
const UNSET: u64 = 0xf7f7;
const UNSET_LANES: u32 = 0x5555_5555;

pub(crate) struct Warp {
    pub(super) number: u32,
    pub(super) rows: Vec<Row>,
    predicates: Vec<u32>,
    pub(super) pc: [u32; 32],
    /// Lanes that exist, that have not returned, that wait at a barrier, that wait for lanes of their warp.
    pub(super) exist: u32,
    pub(super) live: u32,
    at_barrier: u32,
    pub(super) gathered: u32,
    /// Warp barriers so far, and up to which of them each lane comes after each other one.
    pub(super) stamp: u32,
    pub(super) seen: [[u32; 32]; 32],
    /// Of accesses between two barriers; 0: none so far.
    pub(super) moment: u32,
    pub(super) copies: Copies,
    n_executed: u64,
    /// The last turn ended because it was long.
    restless: bool,
}

/// Lanes that go on together.
struct Group {
    lanes: u32,
    pc: u32,
    /// The next instruction at which other lanes wait to go on.
    next: u32,
}

impl Warp {
    pub(super) fn new(kernel: &Kernel, number: u32, launch: &Launch, n_threads: u32, dynamic: u64) -> Self {
        let mut rows = vec![[UNSET; 32]; kernel.n_rows];
        let [bx, by, _] = launch.block;
        for lane in 0..32 {
            let t = 32 * number + lane;
            let bit = 1u32 << lane;
            let tid = [t % bx, t / bx % by, t / bx / by];
            let masks = [bit, bit | (bit - 1), bit - 1, !(bit - 1), !(bit | (bit - 1))];
            let specials = [tid, launch.block, [0; 3], launch.grid, [lane, number, masks[0]]].concat();
            for (row, value) in specials.into_iter().chain(masks[1..].iter().copied()).enumerate() {
                rows[row][lane as usize] = value.into();
            }
        }
        for &(row, constant) in &kernel.constants {
            rows[usize::from(row)] = match constant {
                Constant::Number(v) => [v; 32],
                Constant::Dynamic => [dynamic; 32],
            };
        }
        let n_lanes = (n_threads - 32 * number).min(32);
        let mut predicates = vec![UNSET_LANES; kernel.n_predicates];
        predicates[usize::from(NEVER)] = 0;
        predicates[usize::from(ALWAYS)] = ALL;
        Self {
            number,
            rows,
            predicates,
            pc: [0; 32],
            exist: ALL >> (32 - n_lanes),
            live: 0,
            at_barrier: 0,
            gathered: 0,
            stamp: 0,
            seen: [[0; 32]; 32],
            moment: 0,
            copies: Copies::default(),
            n_executed: 0,
            restless: false,
        }
    }

    /// Begins a block. Registers keep what the last block left in them.
    pub(super) fn begin(&mut self, ctaid: [u32; 3]) {
        for (row, value) in self.rows[6..9].iter_mut().zip(ctaid) {
            *row = [value.into(); 32];
        }
        (self.pc, self.live, self.at_barrier, self.gathered) = ([0; 32], self.exist, 0, 0);
        (self.stamp, self.seen, self.moment, self.n_executed) = (1, [[0; 32]; 32], 0, 0);
        self.copies = Copies::default();
    }

    pub(super) fn is_done(&self) -> bool {
        self.live == 0
    }

    pub(super) fn is_at_barrier(&self) -> bool {
        self.at_barrier == self.exist
    }

    pub(super) fn n_threads(&self) -> u32 {
        self.exist.count_ones()
    }

    pub(super) fn places(&self) -> impl Iterator<Item = u32> {
        lanes(self.exist).map(|l| self.pc[l])
    }

    /// Lanes at a barrier, at a warp operation, and done.
    pub(super) fn waiting(&self) -> (u32, u32, u32) {
        (self.at_barrier.count_ones(), self.gathered.count_ones(), (self.exist & !self.live).count_ones())
    }

    /// Lines at which lanes wait.
    pub(super) fn lines(&self, kernel: &Kernel) -> Vec<u32> {
        lanes(self.live).map(|l| kernel.code[self.pc[l] as usize].line).collect()
    }

    /// A thread with a copy that nobody has waited for.
    pub(super) fn forgotten_copy(&self) -> Option<u32> {
        self.copies.any_lane().map(|lane| 32 * self.number + lane)
    }

    /// Lanes in which a predicate holds.
    pub(super) fn says(&self, of: Predicate) -> u32 {
        self.predicate(of) & self.exist
    }

    #[inline(always)]
    pub(super) fn predicate(&self, of: Predicate) -> u32 {
        let value = self.predicates[usize::from(of.register)];
        if of.negated { !value } else { value }
    }

    #[inline(always)]
    pub(super) fn set_predicate(&mut self, to: u16, value: u32, mask: u32) {
        let old = &mut self.predicates[usize::from(to)];
        *old = *old & !mask | value & mask;
    }

    #[inline(always)]
    pub(super) fn set_row(&mut self, to: u16, value: &Row, mask: u32) {
        let row = &mut self.rows[usize::from(to)];
        if mask == ALL {
            *row = *value;
        } else {
            lanes(mask).for_each(|l| row[l] = value[l]);
        }
    }

    pub(super) fn pass_barrier(&mut self) {
        (self.at_barrier, self.moment) = (0, 0);
        self.pc.iter_mut().for_each(|pc| *pc += 1);
    }

    pub(super) fn pass_with_number(&mut self, to: u16, n: u32) {
        self.set_row(to, &[n.into(); 32], self.exist);
        self.pass_barrier();
    }

    pub(super) fn pass_with_answer(&mut self, to: u16, is: bool) {
        self.set_predicate(to, if is { ALL } else { 0 }, self.exist);
        self.pass_barrier();
    }

    /// Who accesses memory now.
    #[inline(always)]
    pub(super) fn now<'a>(seen: &'a [[u32; 32]; 32], moment: u32, warp: u32, bars: u32, lane: usize) -> Now<'a> {
        Now { moment, warp, lane: lane as u32, bars, seen: &seen[lane] }
    }

    fn runnable(&self) -> u32 {
        self.live & !self.at_barrier & !self.gathered
    }

    /// The lanes that stand at the lowest instruction; at random, where turns are short.
    fn group(&mut self, machine: &mut Machine) -> Option<Group> {
        let runnable = self.runnable();
        if runnable == 0 {
            return None;
        }
        let at = |pc: u32| lanes(runnable).filter(|&l| self.pc[l] == pc).fold(0u32, |mask, l| mask | 1 << l);
        if machine.turn > 0 || std::mem::take(&mut self.restless) {
            let n = machine.random.below(runnable.count_ones() as usize);
            let lane = lanes(runnable).nth(n)?;
            let alone = machine.random.below(2) == 0;
            let group = if alone { 1 << lane } else { at(self.pc[lane]) };
            return Some(Group { lanes: group, pc: self.pc[lane], next: u32::MAX });
        }
        let pc = lanes(runnable).map(|l| self.pc[l]).min()?;
        let group = at(pc);
        let next = lanes(runnable & !group).map(|l| self.pc[l]).min().unwrap_or(u32::MAX);
        Some(Group { lanes: group, pc, next })
    }

    fn leave(&mut self, group: &Group) {
        lanes(group.lanes).for_each(|l| self.pc[l] = group.pc);
    }

    /// Goes on until all lanes wait or the turn is over; whether any lane moved.
    pub(super) fn turn(&mut self, machine: &mut Machine) -> Result<bool, Fault> {
        let mut budget = match machine.turn {
            0 => LONG,
            turn => 1 + machine.random.below(turn as usize) as u32,
        };
        let mut moved = false;
        while let Some(mut group) = self.group(machine) {
            moved = true;
            let begun = budget;
            while group.lanes != 0 && group.pc < group.next && budget > 0 {
                budget -= 1;
                self.step(&mut group, machine)?;
            }
            self.leave(&group);
            self.n_executed += u64::from(begun - budget);
            if self.n_executed > MOST {
                return Err(Fault::new(Kind::Convergence, "a kernel that does not end"));
            }
            if budget == 0 {
                self.restless = true;
                break;
            }
        }
        Ok(moved)
    }

    /// One instruction of a group.
    #[inline(always)]
    fn step(&mut self, group: &mut Group, machine: &mut Machine) -> Result<(), Fault> {
        let kernel = machine.kernel;
        let Some(instruction) = kernel.code.get(group.pc as usize) else {
            return Err(Fault::new(Kind::Convergence, "the end of the code without a return"));
        };
        machine.counts.warp_instructions += 1;
        machine.counts.thread_instructions += u64::from(group.lanes.count_ones());
        let active = match instruction.guard {
            None => group.lanes,
            Some((register, wanted)) => {
                let holds = self.predicates[usize::from(register)];
                group.lanes & if wanted { holds } else { !holds }
            }
        };
        if active == 0 {
            group.pc += 1;
            return Ok(());
        }
        match &instruction.action {
            Action::Compute { compute, sources, to } => {
                let mut out = [0; 32];
                let rows = sources.map(|s| &self.rows[usize::from(s)]);
                (compute.run)(&rows, active, &mut out);
                self.set_row(*to, &out, active);
                machine.counts.flops += u64::from(compute.flops) * u64::from(active.count_ones());
            }
            Action::Compare { compare, sources, joined, to, other } => {
                let rows = sources.map(|s| &self.rows[usize::from(s)]);
                let is = (compare.run)(&rows, active);
                let (yes, no) = match (compare.join, joined) {
                    (Some(join), Some(third)) => {
                        let third = self.predicate(*third);
                        (join.join(is, third), join.join(!is, third))
                    }
                    _ => (is, !is),
                };
                self.set_predicate(*to, yes, active);
                if let Some(other) = other {
                    self.set_predicate(*other, no, active);
                }
            }
            Action::Select { sources, by, bits, to } => {
                let by = self.predicate(*by);
                let [a, b] = sources.map(|s| &self.rows[usize::from(s)]);
                let cut = u64::MAX >> (64 - bits);
                let out = std::array::from_fn(|l| cut & if by >> l & 1 == 1 { a[l] } else { b[l] });
                self.set_row(*to, &out, active);
            }
            Action::Logic { logic, sources, to } => {
                let [a, b] = sources.map(|s| self.predicate(s));
                self.set_predicate(*to, logic.join(a, b), active);
            }
            Action::Branch(to) => {
                let to = *to as u32;
                if active == group.lanes {
                    group.pc = to;
                } else {
                    // Those that jump leave the group; what comes first goes on.
                    lanes(active).for_each(|l| self.pc[l] = to);
                    group.lanes &= !active;
                    group.pc += 1;
                    group.next = if to < group.pc { group.pc } else { group.next.min(to) };
                }
                return Ok(());
            }
            Action::Nothing => {}
            Action::Trap => {
                let thread = 32 * self.number + active.trailing_zeros();
                return Err(Fault::new(Kind::Trap, format!("line {}: thread {thread}: trap", instruction.line)));
            }
            Action::Return => {
                self.live &= !active;
                group.lanes &= !active;
            }
            Action::Barrier(_) => {
                lanes(active).for_each(|l| self.pc[l] = group.pc);
                self.at_barrier |= active;
                group.lanes &= !active;
            }
            Action::Together(together) => {
                let line = instruction.line;
                let done = self.together(machine, together, group.pc, active);
                match done.map_err(|fault| fault.at(&format!("line {line}")))? {
                    true => {}
                    false => group.lanes &= !active,
                }
            }
            action => {
                let slow = self.slow(machine, action, active, group);
                slow.map_err(|fault| fault.at(&format!("line {}", instruction.line)))?;
                if matches!(action, Action::Table { .. }) {
                    return Ok(());
                }
            }
        }
        group.pc += 1;
        Ok(())
    }

    fn slow(&mut self, machine: &mut Machine, action: &Action, active: u32, group: &mut Group) -> Result<(), Fault> {
        match action {
            Action::Access { access, space, at } => self.access(machine, access, *space, *at, active),
            Action::Parameter { at, load } => self.parameter(machine, *at, load, active),
            Action::Pack { parts, bits, to } => {
                let cut = (1u64 << bits) - 1;
                let of_lane = |l: usize| {
                    let parts = parts.iter().rev();
                    parts.fold(0u64, |out, &p| out.checked_shl(*bits).unwrap_or(0) | self.rows[usize::from(p)][l] & cut)
                };
                let out = std::array::from_fn(of_lane);
                self.set_row(*to, &out, active);
                Ok(())
            }
            Action::Unpack { from, bits, to } => {
                let from = self.rows[usize::from(*from)];
                for (i, to) in to.iter().enumerate() {
                    if let Some(to) = to {
                        let part = from.map(|v| v >> (*bits as usize * i) & ((1 << bits) - 1));
                        self.set_row(*to, &part, active);
                    }
                }
                Ok(())
            }
            Action::CopyAsync { to, from, bytes, given } => {
                self.begin_copy(machine, *to, *from, *bytes, *given, active)
            }
            Action::Commit => {
                self.copies.commit(active);
                Ok(())
            }
            Action::WaitGroups(open) => self.wait_copies(machine, *open, active),
            Action::Table { index, targets } => {
                for l in lanes(group.lanes) {
                    let index = self.rows[usize::from(*index)][l] as usize;
                    let to = targets.get(index).filter(|_| active >> l & 1 == 1);
                    self.pc[l] = match (to, active >> l & 1) {
                        (Some(&to), _) => to as u32,
                        (None, 0) => group.pc + 1,
                        _ => return Err(Fault::new(Kind::Bounds, format!("jump {index} of {}", targets.len()))),
                    };
                }
                group.lanes = 0;
                Ok(())
            }
            _ => unreachable!("all other actions are done where they are met"),
        }
    }
}
