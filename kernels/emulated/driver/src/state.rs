//! All that a driver knows.

use crate::clock::Clock;
use crate::codes::*;
use crate::host::Host;
use crate::operation::{Item, Operation};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use xc_emulated_ptx::{Fault, Memory, Module};

/// What tests choose.
#[derive(Clone, Copy)]
pub(crate) struct Knobs {
    pub(crate) seed: u64,
    pub(crate) turn: u32,
    pub(crate) blocks: [u64; 2],
    pub(crate) capability: (u32, u32),
    pub(crate) memory: u64,
    pub(crate) n_cards: u32,
    pub(crate) processors: u32,
    pub(crate) version: u32,
    pub(crate) approximate: bool,
}

impl Default for Knobs {
    fn default() -> Self {
        let (capability, memory) = ((9, 0), 80 << 30);
        let blocks = [0, u64::MAX];
        Self {
            seed: 1,
            turn: 0,
            blocks,
            capability,
            memory,
            n_cards: 1,
            processors: 132,
            version: 13000,
            approximate: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct Driver {
    pub(crate) knobs: Knobs,
    pub(crate) initialised: bool,
    pub(crate) memory: Memory,
    pub(crate) used: u64,
    pub(crate) host: Host,
    pub(crate) modules: HashMap<usize, Arc<Module>>,
    pub(crate) functions: HashMap<usize, Function>,
    pub(crate) streams: BTreeMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) graphs: HashMap<usize, Vec<Operation>>,
    pub(crate) n_streams: u32,
    pub(crate) n_handles: usize,
    pub(crate) random: u64,
    /// What the host has waited for.
    pub(crate) clock: Clock,
    /// Operations done so far, which is what time is made of.
    pub(crate) time: u64,
    /// The answer to all calls, once there was a fault.
    pub(crate) sticky: Code,
    pub(crate) fault: String,
    pub(crate) refusal: String,
    /// Where texts are that stand in for those that are given.
    pub(crate) texts: Option<PathBuf>,
    pub(crate) counts: String,
}

#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) module: Arc<Module>,
    pub(crate) kernel: usize,
    /// Most bytes of dynamic shared memory, where more than usual has been asked for.
    pub(crate) most_shared: Option<u32>,
}

/// A queue of operations.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) number: u32,
    pub(crate) n_asked: u32,
    pub(crate) n_done: u32,
    pub(crate) queue: VecDeque<Item>,
    /// What comes before its next operation.
    pub(crate) clock: Clock,
    /// Whether it and the legacy stream wait for each other.
    pub(crate) blocking: bool,
    pub(crate) capture: Option<Capture>,
}

/// Operations that become a graph.
pub(crate) struct Capture {
    pub(crate) operations: Vec<Operation>,
    pub(crate) relaxed: bool,
    pub(crate) invalid: bool,
}

#[derive(Default)]
pub(crate) struct Event {
    pub(crate) timed: bool,
    /// Streams may still wait for it.
    pub(crate) destroyed: bool,
    pub(crate) n_asked: usize,
    /// Clock and time of each record that has been done.
    pub(crate) done: Vec<(Clock, u64)>,
}

thread_local! {
    /// The context that is current; 0: none.
    pub(crate) static CONTEXT: Cell<usize> = const { Cell::new(0) };
}

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(Mutex::default);

pub(crate) fn driver() -> MutexGuard<'static, Driver> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) type Answer<T = ()> = Result<T, Code>;

/// The legacy stream, which is always there.
pub(crate) const LEGACY: usize = 0;

impl Driver {
    /// Forgets all but the knobs. Handles and addresses given so far are not given again, and pinned memory stays, since
    /// objects of before may still be alive.
    pub(crate) fn reset(&mut self) {
        let mut before = std::mem::take(self);
        before.memory.reset();
        before.host.reset();
        let Self { knobs, n_handles, memory, host, texts, .. } = before;
        *self = Self { knobs, n_handles, memory, host, texts, random: knobs.seed, ..Self::default() };
    }

    pub(crate) fn handle(&mut self) -> usize {
        self.n_handles += 1;
        0x1000 + 16 * self.n_handles
    }

    /// A fault: the answer to all calls from now on.
    pub(crate) fn fail(&mut self, fault: &Fault) -> Code {
        if self.sticky == OK {
            self.sticky = of_fault(fault.kind);
            self.fault = fault.to_string();
        }
        self.sticky
    }

    pub(crate) fn stream(&mut self, handle: usize) -> Answer<&mut Stream> {
        // 1 and 2 name the legacy stream and that of the thread, which is the same here.
        let handle = if handle <= 2 { LEGACY } else { handle };
        if handle == LEGACY && !self.streams.contains_key(&LEGACY) {
            self.add_stream(LEGACY, true);
        }
        self.streams.get_mut(&handle).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn add_stream(&mut self, handle: usize, blocking: bool) {
        let number = self.n_streams;
        self.n_streams += 1;
        self.streams.insert(handle, Stream { number, blocking, ..Stream::default() });
    }

    pub(crate) fn event(&mut self, handle: usize) -> Answer<&mut Event> {
        self.events.get_mut(&handle).filter(|e| !e.destroyed).ok_or(INVALID_HANDLE)
    }

    /// What no capture allows, or only a relaxed one does: ends captures and answers so.
    pub(crate) fn uncapturable(&mut self, relaxed_allows: bool) -> Answer {
        let mut any = false;
        for capture in self.streams.values_mut().filter_map(|s| s.capture.as_mut()) {
            if !(relaxed_allows && capture.relaxed) {
                (capture.invalid, any) = (true, true);
            }
        }
        if any { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }
}
