//! The interpreter: instructions against a card's answers and against their definitions, and what it watches.

mod checks;
mod control;
mod counts;
mod forms;
mod golden;
mod order;
mod refused;

use xc_emulated_ptx::{Counts, Fault, Launch, Memory, Module, Options, launch};

/// All blocks of a launch run.
const ALL: [u64; 2] = [0, u64::MAX];

/// A thread i has a[i], b[i], c[i] and d[i] in %x0 to %x3, their low halves in %r0 to %r3, and writes words at %x14.
const KERNEL: &str = "
.address_size 64
.visible .entry k(.param .u64 k_a, .param .u64 k_b, .param .u64 k_c, .param .u64 k_d, .param .u64 k_o) {
.shared .align 16 .b8 some[1024];
.reg .pred %p<8>; .reg .b16 %h<12>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .f64 %fd<12>; .reg .b64 %x<40>;
ld.param.u64 %x10, [k_a]; ld.param.u64 %x11, [k_b]; ld.param.u64 %x12, [k_c]; ld.param.u64 %x13, [k_d];
ld.param.u64 %x14, [k_o];
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x; mad.lo.s32 %r13, %r10, %r11, %r12;
mul.wide.u32 %x15, %r13, 8; mul.wide.u32 %x16, %r13, BYTES;
add.s64 %x10, %x10, %x15; add.s64 %x11, %x11, %x15; add.s64 %x12, %x12, %x15; add.s64 %x13, %x13, %x15;
add.s64 %x14, %x14, %x16;
ld.global.u64 %x0, [%x10]; ld.global.u64 %x1, [%x11]; ld.global.u64 %x2, [%x12]; ld.global.u64 %x3, [%x13];
cvt.u32.u64 %r0, %x0; cvt.u32.u64 %r1, %x1; cvt.u32.u64 %r2, %x2; cvt.u32.u64 %r3, %x3;
BODY
ret; }";

/// The text of a kernel with a body that writes so many words a thread.
fn text(target: &str, version: &str, words: usize, body: &str) -> String {
    let kernel = KERNEL.replace("BYTES", &(8 * words).to_string()).replace("BODY", body);
    format!(".version {version}\n.target {target}\n{kernel}")
}

/// Runs such a kernel for all operands, 32 threads a block: a, then b, c and d.
fn run(text: &str, operands: &[u64], words: usize) -> Result<Vec<u64>, Fault> {
    run_by(text, operands, words, 32, 1, 0).map(|(out, _)| out)
}

fn run_by(
    text: &str,
    operands: &[u64],
    words: usize,
    threads: usize,
    seed: u64,
    turn: u32,
) -> Result<(Vec<u64>, Counts), Fault> {
    let module = Module::parse(text, Options::default()).unwrap_or_else(|refusal| panic!("{refusal}"));
    let n = operands.len() / 4;
    let mut memory = Memory::default();
    memory.order.begin_after_all();
    let mut params = Vec::new();
    for operand in operands.chunks(n) {
        let at = memory.alloc(8 * n);
        memory.write(at, &operand.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
        params.extend(at.to_le_bytes());
    }
    let out = memory.alloc(8 * n * words);
    params.extend(out.to_le_bytes());
    memory.order.begin_after_all();
    let how = Launch {
        grid: [(n / threads) as u32, 1, 1],
        block: [threads as u32, 1, 1],
        shared: 0,
        blocks: ALL,
        seed,
        turn,
    };
    let counts = launch(&mut memory, &module.kernels[0], &how, &params)?;
    memory.order.begin_after_all();
    let bytes = memory.read(out, 8 * n * words).unwrap();
    let words = bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
    Ok((words, counts))
}

/// Numbers by a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Edges of all widths, small numbers, and any bits.
    fn edge(&mut self) -> u64 {
        const EDGES: [u64; 16] =
            [0, 1, 2, 31, 32, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, 1 << 63, u64::MAX];
        match self.next() % 4 {
            0 => EDGES[self.next() as usize % 16],
            1 => !EDGES[self.next() as usize % 16],
            2 => self.next() >> (self.next() % 64),
            _ => self.next(),
        }
    }
}
