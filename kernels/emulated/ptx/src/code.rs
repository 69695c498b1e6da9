//! Instructions as they are executed: registers are numbers of rows, labels are places in the code.

use crate::ops::{Compare, Compute, Int, Logic};

/// An instruction.
pub(crate) struct Instruction {
    pub(crate) action: Action,
    /// Executed by lanes whose predicate has this value.
    pub(crate) guard: Option<(u16, bool)>,
    pub(crate) line: u32,
}

/// A predicate as a source, perhaps negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicate {
    pub(crate) register: u16,
    pub(crate) negated: bool,
}

pub(crate) enum Action {
    Compute {
        compute: Compute,
        sources: [u16; 4],
        to: u16,
    },
    /// `to` gets the outcome, `other` its opposite; both joined with a third predicate.
    Compare {
        compare: Compare,
        sources: [u16; 4],
        joined: Option<Predicate>,
        to: u16,
        other: Option<u16>,
    },
    Select {
        sources: [u16; 2],
        by: Predicate,
        bits: u32,
        to: u16,
    },
    /// A move of a predicate is a join with itself.
    Logic {
        logic: Logic,
        sources: [Predicate; 2],
        to: u16,
    },
    /// Parts of `bits` bits, lowest first, to one register, and back; nothing is kept of a part without a register.
    Pack {
        parts: Vec<u16>,
        bits: u32,
        to: u16,
    },
    Unpack {
        from: u16,
        bits: u32,
        to: Vec<Option<u16>>,
    },
    Parameter {
        at: Address,
        load: Load,
    },
    Access {
        access: Access,
        space: Space,
        at: Address,
    },
    CopyAsync {
        to: Address,
        from: Address,
        bytes: usize,
        given: Option<u16>,
    },
    Commit,
    /// Waits until so many groups are open at most; without a number for all copies, committed or not.
    WaitGroups(Option<usize>),
    Together(Together),
    Barrier(Barrier),
    Branch(usize),
    /// A jump by a table; an index past its end is undefined.
    Table {
        index: u16,
        targets: Vec<usize>,
    },
    Return,
    Trap,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    /// Shared memory lies in a window of it, all else is global.
    Generic,
}

/// A register and an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) base: u16,
    pub(crate) offset: i64,
}

/// Elements that stand side by side, and the registers, with their widths, that take them.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) int: Int,
    pub(crate) to: Vec<(u16, u32)>,
}

pub(crate) enum Access {
    /// `constant`: promised not to change while the kernel runs.
    Load {
        load: Load,
        constant: bool,
    },
    Store {
        bytes: usize,
        from: Vec<u16>,
    },
    /// `to` is missing in `red`.
    Atomic {
        op: Atomic,
        int: Int,
        sources: [u16; 2],
        to: Option<u16>,
    },
}

impl Access {
    /// Bytes of a lane's access.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Load { load, .. } => load.int.bits as usize / 8 * load.to.len(),
            Self::Store { bytes, from } => bytes * from.len(),
            Self::Atomic { int, .. } => int.bits as usize / 8,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

/// What all threads of a block do together. Only barrier 0 of the whole block is known.
pub(crate) enum Barrier {
    Wait,
    /// How many threads say so.
    Count {
        of: Predicate,
        to: u16,
    },
    /// Whether all, or any, of the threads say so.
    All {
        of: Predicate,
        to: u16,
    },
    Any {
        of: Predicate,
        to: u16,
    },
}

/// What the lanes of a mask do together; `mask` is a register.
pub(crate) struct Together {
    pub(crate) what: Collective,
    pub(crate) mask: u16,
}

pub(crate) enum Collective {
    Wait,
    Shuffle {
        how: Shuffle,
        value: u16,
        by: u16,
        clamp: u16,
        to: u16,
        inside: Option<u16>,
    },
    Ballot {
        of: Predicate,
        to: u16,
    },
    Vote {
        how: Vote,
        of: Predicate,
        to: u16,
    },
    MatchAny {
        int: Int,
        value: u16,
        to: u16,
    },
    MatchAll {
        int: Int,
        value: u16,
        to: u16,
        all: Option<u16>,
    },
    Reduce {
        how: Reduce,
        value: u16,
        to: u16,
    },
    /// m16n8k16 of two 16-bit formats to `f32`.
    Multiply {
        half: fn(u64) -> f64,
        a: [u16; 4],
        b: [u16; 2],
        c: [u16; 4],
        to: [u16; 4],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Index,
    Butterfly,
    Up,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Add,
    Min,
    Max,
    MinSigned,
    MaxSigned,
    And,
    Or,
    Xor,
}
