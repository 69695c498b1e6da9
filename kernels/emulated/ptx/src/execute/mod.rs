//! A launch: blocks one after another, warps by turns.

mod access;
mod copies;
mod together;
mod warp;

use crate::code::Barrier;
use crate::counts::Counts;
use crate::fault::{Fault, Kind};
use crate::memory::{Area, Memory};
use crate::parse::Kernel;
use warp::Warp;

/// Where shared memory is in the generic address space.
pub(crate) const SHARED_WINDOW: u64 = 1 << 40;

/// Most bytes of shared memory of a block.
const SHARED_MOST: usize = 227 * 1024;

/// So many blocks may run in any order.
const FEW_BLOCKS: u64 = 1 << 16;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Number of the first block that runs, and of the first behind it that does not: x counts first, then y.
    pub blocks: [u64; 2],
    /// Shuffles blocks, warps, and the lanes of atomics.
    pub seed: u64,
    /// Most instructions of a turn; 0: a warp goes on until it has to wait.
    pub turn: u32,
}

/// Numbers by a seed.
pub(crate) struct Random(u64);

impl Random {
    /// Below n, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) as u128 * n as u128) >> 64) as usize
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}

/// What the warps of a block share.
pub(crate) struct Machine<'a> {
    kernel: &'a Kernel,
    memory: &'a mut Memory,
    params: &'a [u8],
    shared: Area,
    counts: Counts,
    random: Random,
    turn: u32,
    /// Barriers that the block has passed.
    bars: u32,
    /// Warp instructions, and requests to global memory, when it passed the last of them.
    passed: (u64, u64),
    /// Sectors of the request that is being counted.
    sectors: Vec<u64>,
}

/// Runs a kernel as the current operation of a memory (see [`Order::begin`](crate::Order::begin)). `params` holds the
/// parameters at their offsets.
///
/// # Errors
///
/// What is watched has happened: see the crate's page. Memory is then as the kernel left it.
pub fn launch(memory: &mut Memory, kernel: &Kernel, launch: &Launch, params: &[u8]) -> Result<Counts, Fault> {
    run(memory, kernel, launch, params).map_err(|fault| fault.at(&kernel.name))
}

fn run(memory: &mut Memory, kernel: &Kernel, launch: &Launch, params: &[u8]) -> Result<Counts, Fault> {
    let refuse = |text: String| Err(Fault::new(Kind::Launch, text));
    let n_threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
    let most = kernel.max_threads.unwrap_or(1024).min(1024);
    if n_threads == 0 || n_threads > most.into() {
        return refuse(format!("{n_threads} threads a block, expected 1 to {most}"));
    }
    if launch.grid.contains(&0) {
        return refuse(format!("a grid of {:?} blocks", launch.grid));
    }
    let expected = kernel.params.last().map_or(0, |(at, len)| at + len);
    if params.len() != expected {
        return refuse(format!("{} bytes of parameters, expected {expected}", params.len()));
    }
    let dynamic = kernel.static_shared.next_multiple_of(16);
    let shared = dynamic + launch.shared as usize;
    if shared > SHARED_MOST {
        return refuse(format!("{shared} bytes of shared memory, expected at most {SHARED_MOST}"));
    }
    let mut random = Random(launch.seed);
    let [gx, gy, gz] = launch.grid.map(u64::from);
    // All orders of a few blocks; many begin anywhere.
    let [begin, end] = launch.blocks.map(|n| n.min(gx * gy * gz));
    let n_blocks = end.saturating_sub(begin);
    let first = random.below(n_blocks as usize) as u64;
    let mut few: Vec<u64> = (0..if n_blocks <= FEW_BLOCKS { n_blocks } else { 0 }).collect();
    random.shuffle(&mut few);
    let turn = launch.turn;
    let (shared, sectors) = (Area::new(shared), Vec::new());
    let mut machine = Machine {
        kernel,
        memory,
        params,
        shared,
        counts: Counts::default(),
        random,
        turn,
        bars: 0,
        passed: (0, 0),
        sectors,
    };
    let n_warps = (n_threads as u32).div_ceil(32);
    let mut warps: Vec<Warp> =
        (0..n_warps).map(|w| Warp::new(kernel, w, launch, n_threads as u32, dynamic as u64)).collect();
    for i in 0..n_blocks {
        let number = begin + few.get(i as usize).copied().unwrap_or((first + i) % n_blocks);
        let place = [number % gx, number / gx % gy, number / gx / gy].map(|n| n as u32);
        machine.memory.order.begin_block();
        machine.shared.begin(machine.memory.order.first_of_block());
        warps.iter_mut().for_each(|w| w.begin(place));
        machine.block(&mut warps).map_err(|fault| fault.at(&format!("block {place:?}")))?;
    }
    Ok(machine.counts)
}

impl Machine<'_> {
    fn block(&mut self, warps: &mut [Warp]) -> Result<(), Fault> {
        let mut order: Vec<usize> = (0..warps.len()).collect();
        loop {
            self.random.shuffle(&mut order);
            let mut moved = false;
            for &w in &order {
                moved |= warps[w].turn(self)?;
            }
            if warps.iter().all(Warp::is_done) {
                break;
            }
            if warps.iter().all(Warp::is_at_barrier) {
                self.barrier(warps)?;
                moved = true;
            }
            if !moved {
                return Err(self.stuck(warps));
            }
        }
        self.count_local();
        match warps.iter().find_map(Warp::forgotten_copy) {
            Some(thread) => {
                Err(Fault::new(Kind::Copy, format!("thread {thread}: an asynchronous copy that nobody waited for")))
            }
            None => Ok(()),
        }
    }

    fn barrier(&mut self, warps: &mut [Warp]) -> Result<(), Fault> {
        let places = || warps.iter().flat_map(Warp::places);
        let (first, last) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
        if first != last {
            let line = |pc: u32| self.kernel.code[pc as usize].line;
            let text = format!("threads wait at barriers of lines {} and {}", line(first), line(last));
            return Err(Fault::new(Kind::Convergence, text));
        }
        let crate::code::Action::Barrier(barrier) = &self.kernel.code[first as usize].action else {
            unreachable!("threads wait at barriers alone")
        };
        let count = |of| warps.iter().map(|w| w.says(of).count_ones()).sum::<u32>();
        let n_threads: u32 = warps.iter().map(Warp::n_threads).sum();
        match *barrier {
            Barrier::Wait => warps.iter_mut().for_each(Warp::pass_barrier),
            Barrier::Count { of, to } => {
                let n = count(of);
                warps.iter_mut().for_each(|w| w.pass_with_number(to, n));
            }
            Barrier::All { of, to } => {
                let all = count(of) == n_threads;
                warps.iter_mut().for_each(|w| w.pass_with_answer(to, all));
            }
            Barrier::Any { of, to } => {
                let any = count(of) > 0;
                warps.iter_mut().for_each(|w| w.pass_with_answer(to, any));
            }
        }
        self.bars += 1;
        self.counts.barriers += 1;
        self.count_local();
        Ok(())
    }

    /// Ends a stretch between barriers.
    fn count_local(&mut self) {
        let Counts { warp_instructions, loads, stores, atomics, .. } = self.counts;
        let requests = loads + stores + atomics;
        if requests == self.passed.1 {
            self.counts.local_instructions += warp_instructions - self.passed.0;
        }
        self.passed = (warp_instructions, requests);
    }

    fn stuck(&self, warps: &[Warp]) -> Fault {
        let mut waiting = Vec::new();
        let (mut at_barrier, mut gathered, mut done) = (0, 0, 0);
        for warp in warps {
            let (b, g, d) = warp.waiting();
            (at_barrier, gathered, done) = (at_barrier + b, gathered + g, done + d);
            waiting.extend(warp.lines(self.kernel));
        }
        waiting.sort_unstable();
        waiting.dedup();
        let text = format!(
            "threads that wait for each other for ever: {at_barrier} at a barrier, {gathered} at a warp operation, {done} \
             done; lines {waiting:?}"
        );
        Fault::new(Kind::Convergence, text)
    }

    /// Adds the sectors of a request to a count and empties the list.
    fn take_sectors(&mut self) -> u64 {
        if !self.sectors.is_sorted() {
            self.sectors.sort_unstable();
        }
        self.sectors.dedup();
        let n = self.sectors.len() as u64;
        self.sectors.clear();
        n
    }
}
