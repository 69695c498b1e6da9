//! Blocks one after another, threads by turns.

use crate::memory::{Kind, Memory, Region, Touch};
use crate::parse::{DYNAMIC, Ins, Kernel, Op, Round, SPECIALS, Space, Src, Sub, Ty};
use crate::{Fault, fault};
use std::collections::HashMap;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Of the order of threads.
    pub seed: u64,
    /// Instructions that a thread runs at most before another has its turn; 0: until it has to wait.
    pub quantum: u32,
    /// Whether to count what warps ask of memory, which takes time.
    pub count: bool,
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Instructions of warps, if each is issued once for all lanes that run it together.
    pub issued: u64,
    /// Loads of warps from global memory, the 32-byte sectors that they read, and the same of stores and atomics.
    pub loads: u64,
    pub sectors_read: u64,
    pub stores: u64,
    pub sectors_written: u64,
    pub atomics: u64,
    /// Different sectors of global memory that are touched at all.
    pub footprint: u64,
    pub barriers: u64,
    /// Of `issued`: how many of each line of the text.
    pub by_line: std::collections::BTreeMap<u32, u64>,
}

const SHARED_MOST: usize = 227 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Run,
    Bar,
    Warp,
    Done,
}

struct Thread {
    pc: usize,
    regs: Vec<u64>,
    at: At,
    bars: u32,
    open: Vec<[u64; 3]>,
    groups: Vec<Vec<[u64; 3]>>,
}

struct Block<'a> {
    kernel: &'a Kernel,
    memory: &'a mut Memory,
    params: &'a [u8],
    shared: Region,
    shared_len: usize,
    dynamic_at: u64,
    threads: Vec<Thread>,
    syncs: Vec<u32>,
    number: u32,
    counts: &'a mut Counts,
    seen: Option<HashMap<(u32, u32, u32), Seen>>,
    /// How often each thread ran each instruction, where that is counted.
    times: Vec<u32>,
    footprint: &'a mut std::collections::HashSet<u64>,
}

#[derive(Default)]
struct Seen {
    read: Vec<u64>,
    written: Vec<u64>,
}

/// Runs a kernel. `params` holds the parameters at their offsets.
///
/// # Errors
/// What is watched happened: see the crate's page. Memory is then as far as the kernel came.
pub fn launch(memory: &mut Memory, kernel: &Kernel, how: How, params: &[u8]) -> Result<Counts, Fault> {
    let n_threads = how.block.iter().product::<u32>();
    let most = kernel.max_threads.unwrap_or(1024).min(1024);
    if n_threads == 0 || n_threads > most {
        return fault(format!("{}: {n_threads} threads, at most {most}", kernel.name));
    }
    if how.grid.contains(&0) || how.grid[0] > i32::MAX as u32 || how.grid[1] > 65535 || how.grid[2] > 65535 {
        return fault(format!("{}: a grid of {:?}", kernel.name, how.grid));
    }
    let expected = kernel.params.last().map_or(0, |(at, len)| at + len);
    if params.len() != expected {
        return fault(format!("{}: {} bytes of parameters, expected {expected}", kernel.name, params.len()));
    }
    let dynamic_at = kernel.static_shared.next_multiple_of(16);
    let shared_len = dynamic_at + how.shared as usize;
    if shared_len > SHARED_MOST {
        return fault(format!("{}: {shared_len} bytes of shared memory", kernel.name));
    }
    memory.launches += 1;
    let mut counts = Counts::default();
    let mut footprint = std::collections::HashSet::new();
    let mut random = how.seed;
    let [gx, gy, gz] = how.grid;
    for number in 0..u64::from(gx) * u64::from(gy) * u64::from(gz) {
        let ctaid = [
            (number % u64::from(gx)) as u32,
            (number / u64::from(gx) % u64::from(gy)) as u32,
            (number / u64::from(gx) / u64::from(gy)) as u32,
        ];
        let threads = (0..n_threads).map(|t| {
            let [bx, by, _] = how.block;
            let tid = [t % bx, t / bx % by, t / bx / by];
            let mut regs = vec![0u64; kernel.n_regs];
            let special: Vec<u32> =
                tid.into_iter().chain(how.block).chain(ctaid).chain(how.grid).chain([t % 32]).collect();
            for (reg, value) in regs.iter_mut().zip(special) {
                *reg = value.into();
            }
            Thread { pc: 0, regs, at: At::Run, bars: 0, open: Vec::new(), groups: Vec::new() }
        });
        let mut block = Block {
            kernel,
            params,
            memory: &mut *memory,
            shared: Region::new(0, shared_len),
            shared_len,
            dynamic_at: dynamic_at as u64,
            threads: threads.collect(),
            syncs: vec![0; n_threads.div_ceil(32) as usize],
            number: number as u32,
            counts: &mut counts,
            seen: how.count.then(HashMap::new),
            times: vec![0; if how.count { n_threads as usize * kernel.code.len() } else { 0 }],
            footprint: &mut footprint,
        };
        block.run(how.quantum, &mut random).map_err(|e| Fault(format!("{}, block {ctaid:?}: {}", kernel.name, e.0)))?;
    }
    counts.footprint = footprint.len() as u64;
    Ok(counts)
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *random;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Block<'_> {
    fn run(&mut self, quantum: u32, random: &mut u64) -> Result<(), Fault> {
        let n = self.threads.len();
        let mut order: Vec<usize> = (0..n).collect();
        loop {
            if *random != 0 {
                for i in (1..n).rev() {
                    order.swap(i, next(random) as usize % (i + 1));
                }
            }
            let mut moved = false;
            for &t in &order {
                if self.threads[t].at == At::Run {
                    moved = true;
                    let limit = if quantum == 0 { u32::MAX } else { 1 + next(random) as u32 % quantum };
                    self.turn(t, limit).map_err(|e| {
                        let line = self.kernel.code.get(self.threads[t].pc).map_or(0, |ins| ins.line);
                        Fault(format!("thread {t}, line {line}: {}", e.0))
                    })?;
                }
            }
            for warp in 0..n.div_ceil(32) {
                moved |= self.warp(warp)?;
            }
            if self.threads.iter().all(|t| t.at == At::Done) {
                break;
            }
            if self.threads.iter().all(|t| t.at == At::Bar) {
                self.barrier()?;
                moved = true;
            }
            if !moved {
                let count = |at: At| self.threads.iter().filter(|t| t.at == at).count();
                return fault(format!(
                    "nothing goes on: {} threads at a barrier, {} at a warp operation, {} done",
                    count(At::Bar),
                    count(At::Warp),
                    count(At::Done)
                ));
            }
        }
        if self.threads.iter().any(|t| !t.open.is_empty() || !t.groups.is_empty()) {
            return fault("a copy that nobody waited for");
        }
        if let Some(seen) = self.seen.take() {
            for Seen { read, written } in seen.into_values() {
                let mut both = [(read, true), (written, false)];
                for (sectors, is_read) in &mut both {
                    if sectors.is_empty() {
                        continue;
                    }
                    sectors.sort_unstable();
                    sectors.dedup();
                    self.footprint.extend(sectors.iter());
                    let (n, of) = if *is_read {
                        (&mut self.counts.loads, &mut self.counts.sectors_read)
                    } else {
                        (&mut self.counts.stores, &mut self.counts.sectors_written)
                    };
                    *n += 1;
                    *of += sectors.len() as u64;
                }
            }
        }
        // A warp issues an instruction as often as the lane that runs it most often.
        if !self.times.is_empty() {
            let n = self.kernel.code.len();
            for warp in self.times.chunks(32 * n) {
                for (pc, ins) in self.kernel.code.iter().enumerate() {
                    let issued = warp.iter().skip(pc).step_by(n).copied().max().map_or(0, u64::from);
                    self.counts.issued += issued;
                    if issued > 0 {
                        *self.counts.by_line.entry(ins.line).or_default() += issued;
                    }
                }
            }
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), Fault> {
        let places: Vec<usize> = self.threads.iter().map(|t| t.pc).collect();
        if places.iter().any(|&pc| pc != places[0]) {
            let line = |pc: usize| self.kernel.code[pc].line;
            return fault(format!(
                "barriers of lines {} and {}",
                places.iter().map(|&p| line(p)).min().unwrap_or(0),
                places.iter().map(|&p| line(p)).max().unwrap_or(0)
            ));
        }
        self.counts.barriers += 1;
        for t in &mut self.threads {
            t.bars += 1;
            t.pc += 1;
            t.at = At::Run;
        }
        Ok(())
    }

    /// Does a warp operation whose lanes have all come.
    fn warp(&mut self, warp: usize) -> Result<bool, Fault> {
        let lanes = warp * 32..self.threads.len().min(warp * 32 + 32);
        let mut moved = false;
        for first in lanes.clone() {
            if self.threads[first].at != At::Warp {
                continue;
            }
            let pc = self.threads[first].pc;
            let kernel = self.kernel;
            let ins = &kernel.code[pc];
            let mask = |t: &Thread| {
                if ins.op == Op::Mma { u32::MAX } else { ins.src.last().map_or(u32::MAX, |s| value(t, *s) as u32) }
            };
            let wanted = mask(&self.threads[first]);
            if wanted >> (first % 32) & 1 == 0 {
                return fault(format!("line {}: lane {} is not in the mask {wanted:#x}", ins.line, first % 32));
            }
            let together: Vec<usize> = (0..32).filter(|l| wanted >> l & 1 == 1).map(|l| warp * 32 + l).collect();
            for &t in &together {
                let Some(thread) = self.threads.get(t) else {
                    return fault(format!("line {}: the mask {wanted:#x} names lanes that do not exist", ins.line));
                };
                if thread.at == At::Done {
                    return fault(format!("line {}: waits for thread {t}, which is done", ins.line));
                }
            }
            let here = |t: &Thread| {
                t.at == At::Warp && (t.pc == pc || (ins.op == Op::WarpBar && kernel.code[t.pc].op == Op::WarpBar))
            };
            if !together.iter().all(|&t| here(&self.threads[t])) {
                continue;
            }
            if together.iter().any(|&t| mask(&self.threads[t]) != wanted) {
                return fault(format!("line {}: lanes name different masks", ins.line));
            }
            match ins.op {
                Op::WarpBar => self.syncs[warp] += 1,
                Op::Vote => {
                    let bits = together.iter().fold(0u32, |b, &t| {
                        b | u32::from((value(&self.threads[t], ins.src[0]) & 1 == 1) ^ (ins.src.len() > 2)) << (t % 32)
                    });
                    let out = match ins.sub {
                        Sub::Ballot => u64::from(bits),
                        Sub::All => u64::from(bits == wanted),
                        _ => u64::from(bits != 0),
                    };
                    for &t in &together {
                        self.threads[t].regs[ins.dst[0] as usize] = out;
                    }
                }
                Op::Shfl => {
                    let values: Vec<(u64, bool)> = together
                        .iter()
                        .map(|&t| {
                            let thread = &self.threads[t];
                            let (lane, b, c) =
                                ((t % 32) as u32, value(thread, ins.src[1]) as u32, value(thread, ins.src[2]) as u32);
                            let (segment, clamp) = (c >> 8 & 31, c & 31);
                            let (most, least) = ((lane & segment) | (clamp & !segment), lane & segment);
                            let (from, inside) = match ins.sub {
                                Sub::Idx => {
                                    let j = least | (b & !segment & 31);
                                    (j, j <= most)
                                }
                                Sub::Bfly => {
                                    let j = lane ^ (b & 31);
                                    (j, j <= most)
                                }
                                Sub::Up => {
                                    let j = lane as i32 - (b & 31) as i32;
                                    (j as u32, j >= most as i32)
                                }
                                _ => {
                                    let j = lane + (b & 31);
                                    (j, j <= most)
                                }
                            };
                            let from = if inside { from } else { lane };
                            (u64::from(from), inside)
                        })
                        .collect();
                    let read: Result<Vec<u64>, Fault> = values
                        .iter()
                        .map(|&(from, _)| {
                            if wanted >> from & 1 == 0 {
                                return fault(format!(
                                    "line {}: reads lane {from}, which is not in the mask",
                                    ins.line
                                ));
                            }
                            Ok(value(&self.threads[warp * 32 + from as usize], ins.src[0]) & 0xffff_ffff)
                        })
                        .collect();
                    for ((&t, value), (_, inside)) in together.iter().zip(read?).zip(values) {
                        let regs = &mut self.threads[t].regs;
                        regs[ins.dst[0] as usize] = value;
                        if let Some(&p) = ins.dst.get(1) {
                            regs[p as usize] = inside.into();
                        }
                    }
                }
                _ => self.mma(warp, ins),
            }
            for &t in &together {
                self.threads[t].pc += 1;
                self.threads[t].at = At::Run;
            }
            moved = true;
        }
        Ok(moved)
    }

    /// m16n8k16, row by column, bf16 to f32; sums k ascending, which a card need not do.
    fn mma(&mut self, warp: usize, ins: &Ins) {
        let lane = |l: usize| warp * 32 + l;
        let half = |w: u64, high: usize| f32::from_bits(((w >> (16 * high)) as u32 & 0xffff) << 16);
        let operand = |t: usize, i: usize| value(&self.threads[t], ins.src[i]);
        let mut out = vec![[0.0f32; 4]; 32];
        for (l, four) in out.iter_mut().enumerate() {
            for (i, to) in four.iter_mut().enumerate() {
                let (row, column) = (l / 4 + i / 2 * 8, l % 4 * 2 + i % 2);
                let mut sum = f32::from_bits(operand(lane(l), 6 + i) as u32);
                for k in 0..16 {
                    let of_a = half(operand(lane(row % 8 * 4 + k % 8 / 2), row / 8 + k / 8 * 2), k % 2);
                    let of_b = half(operand(lane(column * 4 + k % 8 / 2), 4 + k / 8), k % 2);
                    sum += of_a * of_b;
                }
                *to = sum;
            }
        }
        for (l, four) in out.into_iter().enumerate() {
            for (d, v) in ins.dst.iter().zip(four) {
                self.threads[lane(l)].regs[*d as usize] = v.to_bits().into();
            }
        }
    }

    fn turn(&mut self, t: usize, limit: u32) -> Result<(), Fault> {
        let kernel = self.kernel;
        for _ in 0..limit {
            let Some(ins) = kernel.code.get(self.threads[t].pc) else { return fault("the end without a return") };
            self.counts.instructions += 1;
            if self.seen.is_some() {
                self.times[t * kernel.code.len() + self.threads[t].pc] += 1;
            }
            if let Some((p, wanted)) = ins.guard
                && (self.threads[t].regs[p as usize] != 0) != wanted
            {
                self.threads[t].pc += 1;
                continue;
            }
            match ins.op {
                Op::Bra => {
                    self.threads[t].pc = ins.at as usize;
                    continue;
                }
                Op::Ret => {
                    self.threads[t].at = At::Done;
                    if self.threads[t].open.is_empty() && self.threads[t].groups.iter().all(Vec::is_empty) {
                        self.threads[t].groups.clear();
                    }
                    return Ok(());
                }
                Op::Trap => return fault("trap"),
                Op::Bar => {
                    self.threads[t].at = At::Bar;
                    return Ok(());
                }
                Op::Shfl | Op::Vote | Op::WarpBar | Op::Mma => {
                    self.threads[t].at = At::Warp;
                    return Ok(());
                }
                Op::Ld | Op::St | Op::Atom => self.access(t, ins)?,
                Op::CpAsync => {
                    let (to, from, n) = (
                        value(&self.threads[t], ins.src[0]).wrapping_add(ins.at as u64),
                        value(&self.threads[t], ins.src[1]).wrapping_add(value(&self.threads[t], ins.src[2])),
                        value(&self.threads[t], ins.src[3]),
                    );
                    if to % n != 0 || from % n != 0 {
                        return fault("a copy that is not aligned");
                    }
                    let at = self.shared_at(to, n as usize)?;
                    let who = self.who(t);
                    self.shared.note(at, n as usize, Kind::Write, who).map_err(|e| Fault(e.into()))?;
                    self.shared.forget(at, n as usize);
                    self.threads[t].open.push([to, from, n]);
                }
                Op::CpCommit => {
                    let open = std::mem::take(&mut self.threads[t].open);
                    self.threads[t].groups.push(open);
                }
                Op::CpWait => {
                    let keep = value(&self.threads[t], ins.src[0]) as usize;
                    let n = self.threads[t].groups.len().saturating_sub(keep);
                    let done: Vec<_> = self.threads[t].groups.drain(..n).flatten().collect();
                    for [to, from, n] in done {
                        let who = self.who(t);
                        let (region, at) = self.memory.find(from, n as usize)?;
                        region.note(at, n as usize, Kind::Read, who).map_err(|e| Fault(e.into()))?;
                        let bytes = region.bytes[at..at + n as usize].to_vec();
                        self.touched(t, from, n as usize, true);
                        let at = self.shared_at(to, n as usize)?;
                        self.shared.note(at, n as usize, Kind::Write, who).map_err(|e| Fault(e.into()))?;
                        self.shared.bytes[at..at + n as usize].copy_from_slice(&bytes);
                    }
                }
                Op::Nop => {}
                _ => compute(ins, &mut self.threads[t].regs, self.dynamic_at)?,
            }
            self.threads[t].pc += 1;
        }
        Ok(())
    }

    fn who(&self, t: usize) -> Touch {
        Touch {
            launch: self.memory.launches,
            block: self.number,
            thread: t as u16,
            bars: self.threads[t].bars,
            syncs: self.syncs[t / 32],
            ..Touch::default()
        }
    }

    fn shared_at(&self, address: u64, n: usize) -> Result<usize, Fault> {
        let at = if address >= DYNAMIC { address - DYNAMIC + self.dynamic_at } else { address };
        if at + n as u64 > self.shared_len as u64 {
            return fault(format!("{n} bytes at {at} of {} bytes of shared memory", self.shared_len));
        }
        Ok(at as usize)
    }

    fn touched(&mut self, t: usize, address: u64, n: usize, read: bool) {
        let Some(seen) = &mut self.seen else { return };
        let pc = self.threads[t].pc as u32;
        let turn = self.times[t * self.kernel.code.len() + pc as usize];
        let one = seen.entry((t as u32 / 32, pc, turn)).or_default();
        let list = if read { &mut one.read } else { &mut one.written };
        for sector in address / 32..=(address + n as u64 - 1) / 32 {
            list.push(sector);
        }
    }

    fn access(&mut self, t: usize, ins: &Ins) -> Result<(), Fault> {
        let each = ins.ty.bytes();
        let n = each
            * if ins.op == Op::Ld {
                ins.dst.len()
            } else if ins.op == Op::St {
                ins.src.len() - 1
            } else {
                1
            };
        let address = match ins.src[0] {
            Src::I(a) => a,
            Src::R(r) => self.threads[t].regs[r as usize],
        }
        .wrapping_add(ins.at as u64);
        if ins.space == Space::Param {
            let at = address as usize;
            for (i, d) in ins.dst.iter().enumerate() {
                self.threads[t].regs[*d as usize] = take(&self.params[at + i * each..][..each], ins.ty);
            }
            return Ok(());
        }
        if address % n as u64 != 0 {
            return fault(format!("{n} bytes at {address:#x} are not aligned"));
        }
        let kind = match ins.op {
            Op::Ld => Kind::Read,
            Op::St => Kind::Write,
            _ => Kind::Atomic,
        };
        let who = self.who(t);
        let is_shared = ins.space == Space::Shared;
        let from_register: Vec<u64> = ins.src[1..].iter().map(|s| value(&self.threads[t], *s)).collect();
        if !is_shared {
            self.touched(t, address, n, kind == Kind::Read);
            self.counts.atomics += u64::from(kind == Kind::Atomic);
        }
        let (region, at) = if is_shared {
            let at = self.shared_at(address, n)?;
            (&mut self.shared, at)
        } else {
            self.memory.find(address, n)?
        };
        region.note(at, n, kind, who).map_err(|e| Fault(format!("{e}, at {address:#x}")))?;
        let bytes = &mut region.bytes[at..at + n];
        match ins.op {
            Op::Ld => {
                for (d, part) in ins.dst.iter().zip(bytes.chunks(each)) {
                    self.threads[t].regs[*d as usize] = take(part, ins.ty);
                }
            }
            Op::St => {
                for (v, part) in from_register.iter().zip(bytes.chunks_mut(each)) {
                    part.copy_from_slice(&v.to_le_bytes()[..each]);
                }
            }
            _ => {
                let old = take(bytes, ins.ty);
                let v = from_register[0];
                let new = match ins.sub {
                    Sub::Exch => v,
                    Sub::Cas => {
                        if old == v {
                            from_register[1]
                        } else {
                            old
                        }
                    }
                    Sub::And => old & v,
                    Sub::Or => old | v,
                    Sub::Xor => old ^ v,
                    Sub::Add if ins.ty == Ty::F32 => {
                        return fault("a sum of floats by atomics: its bits depend on the order");
                    }
                    Sub::Add => old.wrapping_add(v),
                    Sub::Min | Sub::Max => {
                        let less = if ins.ty.signed() { sign(old, ins.ty) < sign(v, ins.ty) } else { old < v };
                        if less == (ins.sub == Sub::Min) { old } else { v }
                    }
                    _ => return fault("an atomic operation that is not known here"),
                };
                bytes.copy_from_slice(&new.to_le_bytes()[..each]);
                if let Some(&d) = ins.dst.first() {
                    self.threads[t].regs[d as usize] = old;
                }
            }
        }
        Ok(())
    }
}

#[inline(always)]
fn value(thread: &Thread, of: Src) -> u64 {
    match of {
        Src::R(r) => thread.regs[r as usize],
        Src::I(v) => v,
    }
}

/// Bytes to a register; signed types are extended to 32 bits at least, as the registers that take them are.
fn take(bytes: &[u8], ty: Ty) -> u64 {
    let mut all = [0u8; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let v = u64::from_le_bytes(all);
    if ty.signed() { sign(v, ty) as u64 & if ty.bytes() == 8 { u64::MAX } else { 0xffff_ffff } } else { v }
}

#[inline(always)]
fn sign(v: u64, ty: Ty) -> i64 {
    let s = 64 - 8 * ty.bytes() as u32;
    ((v << s) as i64) >> s
}

#[inline(always)]
fn cut(v: u64, ty: Ty) -> u64 {
    match ty.bytes() {
        8 => v,
        n => v & ((1 << (8 * n)) - 1),
    }
}

/// The f32 next to an exact sum `high + low` in a direction.
fn directed(high: f64, low: f64, round: Round) -> f32 {
    let near = high as f32;
    let over = f64::from(near) - high - low; // how far the nearest is above; its sign is exact
    match round {
        Round::Nearest => near,
        Round::Down if over > 0.0 => near.next_down(),
        Round::Up if over < 0.0 => near.next_up(),
        Round::Zero if over > 0.0 && near > 0.0 => near.next_down(),
        Round::Zero if over < 0.0 && near < 0.0 => near.next_up(),
        _ => near,
    }
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let v = s - a;
    (s, (a - (s - v)) + (b - v))
}

fn compute(ins: &Ins, regs: &mut [u64], dynamic_at: u64) -> Result<(), Fault> {
    let get = |i: usize| match ins.src[i] {
        Src::R(r) => regs[r as usize],
        Src::I(v) if v >= DYNAMIC && v < DYNAMIC + (1 << 32) => v - DYNAMIC + dynamic_at,
        Src::I(v) => v,
    };
    let ty = ins.ty;
    let f = |v: u64| f32::from_bits(v as u32);
    let d = f64::from_bits;
    let out: u64 = match (ins.op, ty) {
        (Op::Mov, _) => cut(get(0), ty),
        (Op::Unpack, _) => {
            let (v, n) = (get(0), ty.bytes() * 8 / ins.dst.len());
            for (i, &to) in ins.dst.iter().enumerate() {
                regs[to as usize] = v >> (n * i) & ((1u64 << n) - 1);
            }
            return Ok(());
        }
        (Op::Pack, _) => {
            let n = ty.bytes() * 8 / ins.src.len();
            (0..ins.src.len()).fold(0, |v, i| v | (get(i) & ((1u64 << n) - 1)) << (n * i))
        }
        (Op::Add, Ty::F32) => {
            if ins.round == Round::Nearest {
                (f(get(0)) + f(get(1))).to_bits().into()
            } else {
                let (s, e) = two_sum(f(get(0)).into(), f(get(1)).into());
                directed(s, e, ins.round).to_bits().into()
            }
        }
        (Op::Sub, Ty::F32) => (f(get(0)) - f(get(1))).to_bits().into(),
        (Op::MulLo, Ty::F32) => (f(get(0)) * f(get(1))).to_bits().into(),
        (Op::Div, Ty::F32) => (f(get(0)) / f(get(1))).to_bits().into(),
        (Op::Fma, Ty::F32) => {
            let (a, b, c) = (f(get(0)), f(get(1)), f(get(2)));
            if ins.round == Round::Nearest {
                a.mul_add(b, c).to_bits().into()
            } else {
                let (s, e) = two_sum(f64::from(a) * f64::from(b), c.into());
                directed(s, e, ins.round).to_bits().into()
            }
        }
        (Op::Min | Op::Max, Ty::F32) => {
            let (a, b) = (f(get(0)), f(get(1)));
            (if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else if (a < b || (a == b && a.is_sign_negative())) == (ins.op == Op::Min) {
                a
            } else {
                b
            })
            .to_bits()
            .into()
        }
        (Op::Neg, Ty::F32) => u64::from(get(0) as u32 ^ 0x8000_0000),
        (Op::Abs, Ty::F32) => u64::from(get(0) as u32 & 0x7fff_ffff),
        (Op::Sqrt, Ty::F32) => f(get(0)).sqrt().to_bits().into(),
        (Op::Rcp, Ty::F32) => (1.0 / f(get(0))).to_bits().into(),
        (Op::Ex2, Ty::F32) => f(get(0)).exp2().to_bits().into(),
        (Op::Lg2, Ty::F32) => f(get(0)).log2().to_bits().into(),
        (Op::Add, Ty::F64) => (d(get(0)) + d(get(1))).to_bits(),
        (Op::Sub, Ty::F64) => (d(get(0)) - d(get(1))).to_bits(),
        (Op::MulLo, Ty::F64) => (d(get(0)) * d(get(1))).to_bits(),
        (Op::Div, Ty::F64) => (d(get(0)) / d(get(1))).to_bits(),
        (Op::Fma, Ty::F64) => d(get(0)).mul_add(d(get(1)), d(get(2))).to_bits(),
        (Op::Neg, Ty::F64) => get(0) ^ (1 << 63),
        (Op::Add, _) => cut(get(0).wrapping_add(get(1)), ty),
        (Op::Sub, _) => cut(get(0).wrapping_sub(get(1)), ty),
        (Op::MulLo, _) => cut(get(0).wrapping_mul(get(1)), ty),
        (Op::MadLo, _) => cut(get(0).wrapping_mul(get(1)).wrapping_add(get(2)), ty),
        (Op::MulWide | Op::MadWide, _) => {
            let product = if ty.signed() {
                (sign(get(0), ty).wrapping_mul(sign(get(1), ty))) as u64
            } else {
                cut(get(0), ty).wrapping_mul(cut(get(1), ty))
            };
            let sum = if ins.op == Op::MadWide { product.wrapping_add(get(2)) } else { product };
            if ty.bytes() == 2 { sum & 0xffff_ffff } else { sum }
        }
        (Op::MulHi, _) => {
            let bits = 8 * ty.bytes() as u32;
            if ty.signed() {
                cut(((i128::from(sign(get(0), ty)) * i128::from(sign(get(1), ty))) >> bits) as u64, ty)
            } else {
                ((u128::from(cut(get(0), ty)) * u128::from(cut(get(1), ty))) >> bits) as u64
            }
        }
        (Op::Div | Op::Rem, _) => {
            if cut(get(1), ty) == 0 {
                return fault("a division by 0");
            }
            let is_div = ins.op == Op::Div;
            if ty.signed() {
                let (a, b) = (sign(get(0), ty), sign(get(1), ty));
                cut(if is_div { a.wrapping_div(b) } else { a.wrapping_rem(b) } as u64, ty)
            } else {
                let (a, b) = (cut(get(0), ty), cut(get(1), ty));
                if is_div { a / b } else { a % b }
            }
        }
        (Op::Min | Op::Max, _) => {
            let less =
                if ty.signed() { sign(get(0), ty) < sign(get(1), ty) } else { cut(get(0), ty) < cut(get(1), ty) };
            if less == (ins.op == Op::Min) { get(0) } else { get(1) }
        }
        (Op::Neg, _) => cut(get(0).wrapping_neg(), ty),
        (Op::Abs, _) => cut(sign(get(0), ty).unsigned_abs(), ty),
        (Op::Not, Ty::Pred) => get(0) ^ 1,
        (Op::Not, _) => cut(!get(0), ty),
        (Op::And, _) => get(0) & get(1),
        (Op::Or, _) => get(0) | get(1),
        (Op::Xor, _) => get(0) ^ get(1),
        (Op::Shl, _) => {
            let n = get(1) as u32;
            if n >= 8 * ty.bytes() as u32 { 0 } else { cut(get(0) << n, ty) }
        }
        (Op::Shr, _) => {
            let (n, w) = (get(1) as u32, 8 * ty.bytes() as u32);
            if ty.signed() {
                cut((sign(get(0), ty) >> n.min(w - 1)) as u64, ty)
            } else if n >= w {
                0
            } else {
                cut(get(0), ty) >> n
            }
        }
        (Op::Popc, _) => u64::from(cut(get(0), ty).count_ones()),
        (Op::Brev, _) => cut(get(0), ty).reverse_bits() >> (64 - 8 * ty.bytes()),
        (Op::Clz, _) => u64::from(cut(get(0), ty).leading_zeros()) - (64 - 8 * ty.bytes() as u64),
        (Op::Bfind, _) => {
            let v = cut(get(0), ty);
            if v == 0 {
                0xffff_ffff
            } else {
                let top = 63 - v.leading_zeros();
                u64::from(if ins.flag { 8 * ty.bytes() as u32 - 1 - top } else { top })
            }
        }
        (Op::Bfe, Ty::U32 | Ty::U64) => {
            let (p, n) = (get(1) & 255, get(2) & 255);
            let v = if p >= 64 { 0 } else { cut(get(0), ty) >> p };
            if n >= 64 { v } else { v & ((1 << n) - 1) }
        }
        (Op::Bfi, _) => {
            let (p, n) = (get(2) & 255, get(3) & 255);
            let mask = if p >= 64 { 0 } else { (if n >= 64 { u64::MAX } else { (1u64 << n) - 1 }) << p };
            cut((get(1) & !mask) | (get(0).checked_shl(p as u32).unwrap_or(0) & mask), ty)
        }
        (Op::Selp, _) => {
            if get(2) != 0 {
                cut(get(0), ty)
            } else {
                cut(get(1), ty)
            }
        }
        (Op::Setp, _) => {
            use std::cmp::Ordering::{Equal, Greater, Less};
            let order = match ty {
                Ty::F32 => f(get(0)).partial_cmp(&f(get(1))),
                Ty::F64 => d(get(0)).partial_cmp(&d(get(1))),
                _ if ty.signed() => Some(sign(get(0), ty).cmp(&sign(get(1), ty))),
                _ => Some(cut(get(0), ty).cmp(&cut(get(1), ty))),
            };
            let is = match (ins.sub, order) {
                (Sub::Num, o) => o.is_some(),
                (Sub::Nan, o) => o.is_none(),
                (_, None) => ins.flag,
                (Sub::Eq, Some(o)) => o == Equal,
                (Sub::Ne, Some(o)) => o != Equal,
                (Sub::Lt, Some(o)) => o == Less,
                (Sub::Le, Some(o)) => o != Greater,
                (Sub::Gt, Some(o)) => o == Greater,
                (_, Some(o)) => o != Less,
            };
            let with = |v: bool| match ins.join {
                Some(j) => {
                    let c = (get(2) != 0) ^ (ins.src.len() > 3);
                    match j {
                        Sub::And => v & c,
                        Sub::Or => v | c,
                        _ => v ^ c,
                    }
                }
                None => v,
            };
            let (yes, no) = (with(is), with(!is));
            if let Some(&q) = ins.dst.get(1) {
                regs[q as usize] = no.into();
            }
            yes.into()
        }
        (Op::Cvt, _) => convert(ins, get(0))?,
        (op, ty) => return fault(format!("{op:?} of {ty:?} is not known here")),
    };
    regs[ins.dst[0] as usize] = out;
    Ok(())
}

fn convert(ins: &Ins, v: u64) -> Result<u64, Fault> {
    let (to, from) = (ins.ty, ins.from);
    let whole = |x: f64| match ins.round {
        Round::Nearest => x.round_ties_even(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
    };
    Ok(match (to.float(), from.float()) {
        (false, false) => {
            let wide = if from.signed() { sign(v, from) as u64 } else { cut(v, from) };
            cut(wide, to)
        }
        (false, true) => {
            let x = whole(if from == Ty::F32 { f32::from_bits(v as u32).into() } else { f64::from_bits(v) });
            match to {
                Ty::S32 => x as i32 as u32 as u64,
                Ty::S64 => x as i64 as u64,
                Ty::U32 => u64::from(x as u32),
                Ty::U64 => x as u64,
                _ => return fault("a conversion that is not known here"),
            }
        }
        (true, false) => {
            if ins.round != Round::Nearest {
                return fault("a directed conversion");
            }
            match (to, from.signed()) {
                (Ty::F32, true) => (sign(v, from) as f32).to_bits().into(),
                (Ty::F32, false) => (cut(v, from) as f32).to_bits().into(),
                (_, true) => (sign(v, from) as f64).to_bits(),
                (_, false) => (cut(v, from) as f64).to_bits(),
            }
        }
        (true, true) => match (to, from) {
            (Ty::F32, Ty::F32) => {
                let x = f32::from_bits(v as u32);
                (if ins.flag { if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) } } else { x }).to_bits().into()
            }
            (Ty::F64, Ty::F32) => f64::from(f32::from_bits(v as u32)).to_bits(),
            (Ty::F32, _) => directed(f64::from_bits(v), 0.0, ins.round).to_bits().into(),
            _ => v,
        },
    })
}

const _: () = assert!(SPECIALS.len() == 13);
