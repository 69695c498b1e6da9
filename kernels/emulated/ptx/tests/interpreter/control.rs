//! Branches, tables, barriers with an answer, address spaces.

use crate::{ALL, run_by, text};
use xc_emulated_ptx::{Launch, Memory, Module, Options, launch};

/// The words that 64 threads of a block write, at some seeds and lengths of turns.
#[track_caller]
fn assert_words(body: &str, expected: impl Fn(u64) -> u64) {
    let operands: Vec<u64> = (0..256).map(|i| i % 64).collect();
    for (seed, turn) in [(0, 0), (1, 0), (2, 1), (3, 5)] {
        let body = format!("{body} cvt.u64.u32 %x9, %r9; st.global.u64 [%x14], %x9;");
        let (out, _) = run_by(&text("sm_80", "8.0", 1, &body), &operands, 1, 64, seed, turn).unwrap();
        assert_eq!(out, (0..64).map(&expected).collect::<Vec<u64>>(), "seed {seed}, turn {turn}");
    }
}

#[test]
fn lanes_part_and_come_together() {
    assert_words(
        "and.b32 %r4, %r0, 3; setp.eq.u32 %p0, %r4, 0; @%p0 bra ZERO; setp.eq.u32 %p1, %r4, 1; @!%p1 bra OTHER;
        mov.u32 %r9, 100; bra.uni END; OTHER: mul.lo.u32 %r9, %r0, 2; bra END; ZERO: mov.u32 %r9, 7; END: add.u32 %r9, %r9, 1;
        vote.sync.ballot.b32 %r5, %p0, -1; add.u32 %r9, %r9, %r5;",
        |i| match i % 4 {
            0 => 8 + 0x1111_1111,
            1 => 101 + 0x1111_1111,
            _ => 2 * i + 1 + 0x1111_1111,
        },
    );
}

#[test]
fn lanes_leave_a_loop_one_by_one() {
    assert_words(
        "mov.u32 %r9, 0; mov.u32 %r4, 0; AGAIN: setp.ge.u32 %p0, %r4, %r0; @%p0 bra DONE; add.u32 %r9, %r9, %r4;
        add.u32 %r4, %r4, 1; bra AGAIN; DONE: bar.sync 0;",
        |i| i * i.saturating_sub(1) / 2,
    );
}

#[test]
fn a_table_of_targets() {
    assert_words(
        "and.b32 %r4, %r0, 3; WHERE: .branchtargets A, B, A, C; brx.idx %r4, WHERE; A: mov.u32 %r9, 1; bra END;
        B: mov.u32 %r9, 2; bra END; C: mov.u32 %r9, 3; END:",
        |i| [1, 2, 1, 3][i as usize % 4],
    );
}

#[test]
fn barriers_that_answer() {
    let third = "rem.u32 %r4, %r0, 3; setp.eq.u32 %p0, %r4, 0;";
    assert_words(&format!("{third} bar.red.popc.u32 %r9, 0, %p0;"), |_| 22);
    assert_words(&format!("{third} barrier.sync.aligned 0; bar.red.popc.u32 %r9, 0, !%p0;"), |_| 42);
    assert_words(&format!("{third} bar.red.and.pred %p1, 0, %p0; selp.u32 %r9, 1, 0, %p1;"), |_| 0);
    assert_words(&format!("{third} bar.red.or.pred %p1, 0, %p0; selp.u32 %r9, 1, 0, %p1;"), |_| 1);
    assert_words("setp.lt.u32 %p0, %r0, 64; bar.red.and.pred %p1, 0, %p0; selp.u32 %r9, 1, 0, %p1;", |_| 1);
}

#[test]
fn special_registers() {
    assert_words("mad.lo.u32 %r9, %tid.x, 1000, %laneid;", |i| 1000 * i + i % 32);
    assert_words("mad.lo.u32 %r9, %warpid, 1000, %ntid.x;", |i| 1000 * (i / 32) + 64);
    assert_words("and.b32 %r4, %laneid, 3; add.u32 %r9, %lanemask_lt, %nctaid.x;", |i| 1 << (i % 32));
    assert_words("not.b32 %r9, %lanemask_le;", |i| (0xffff_fffe << (i % 32)) & 0xffff_ffff);
    assert_words("xor.b32 %r9, %lanemask_ge, %lanemask_gt;", |i| 1 << (i % 32));
    assert_words("mov.u32 %r9, %lanemask_eq;", |i| 1 << (i % 32));
}

#[test]
fn shared_memory_has_generic_addresses() {
    assert_words(
        "mov.u32 %r4, some; shl.b32 %r5, %r0, 2; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], %r0;
        cvt.u64.u32 %x5, %r4; cvta.shared.u64 %x6, %x5; ld.u32 %r6, [%x6]; cvta.to.shared.u64 %x7, %x6;
        cvt.u32.u64 %r7, %x7; ld.shared.u32 %r8, [%r7]; add.u32 %r9, %r6, %r8; red.add.u32 [%x6], 1; ld.volatile.shared.u32 %r6, [%r4];
        add.u32 %r9, %r9, %r6;",
        |i| 3 * i + 1,
    );
}

#[test]
fn parts_of_words() {
    assert_words(
        "cvt.u32.u64 %r4, %x10; mov.b32 {%h0, _}, %r4; mov.b32 {_, %h1}, %r4; mov.b32 %r5, {%h0, %h1}; sub.u32 %r9, %r5, %r4;",
        |_| 0,
    );
    assert_words("mov.b64 %x5, {%r0, %r4}; mov.b64 {%h0, %h1, %h2, %h3}, %x0; cvt.u32.u16 %r9, %h0;", |i| i);
    assert_words("st.global.v2.u32 [%x14], {%r0, 5}; ld.global.v2.u32 {_, %r9}, [%x14];", |_| 5);
    assert_words("st.global.u16 [%x14], %r0; st.global.s8 [%x14+2], -2; ld.global.s8 %r9, [%x14+2];", |_| 0xffff_fffe);
    assert_words("st.global.v4.u16 [%x14], {1, 2, 3, 4}; ld.global.u32 %r9, [%x14+4];", |_| 3 | 4 << 16);
}

#[test]
fn parameters_and_dynamic_shared_memory() {
    let text = "
        .version 7.0\n.target sm_80\n.address_size 64
        .extern .shared .align 16 .b8 room[];
        .visible .entry k(.param .u8 k_a, .param .align 8 .b8 k_b[24], .param .u64 .ptr .global .align 4 k_c, .param .f32 k_d)
        .reqntid 32, 1, 1 .minnctapersm 1
        {
        .shared .align 4 .b8 first[20]; .shared .align 16 .b16 second[3];
        .reg .b32 %r<10>; .reg .b64 %x<9>; .reg .f32 %f<3>;
        mov.u32 %r0, second; mov.u32 %r1, room;
        ld.param.u8 %r2, [k_a]; ld.param.v2.u32 {%r3, %r4}, [k_b+8]; ld.param.u64 %x0, [k_c]; ld.param.f32 %f0, [k_d];
        mov.b64 %x1, k_b; ld.param.s16 %r5, [%x1+16];
        mov.b32 %r6, %f0; mov.u32 %r7, %tid.x; shl.b32 %r8, %r7, 2; add.u32 %r8, %r8, %r1; st.shared.u32 [%r8], %r7; ld.shared.u32 %r9, [%r8];
        mul.wide.u32 %x2, %r7, 32; add.u64 %x0, %x0, %x2;
        st.global.v4.u32 [%x0], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%x0+16], {%r4, %r5, %r6, %r9};
        exit;
        }";
    let module = Module::parse(text, Options::default()).unwrap();
    let kernel = module.kernel("k").unwrap();
    assert_eq!(kernel.params, [(0, 1), (8, 24), (32, 8), (40, 4)]);
    assert_eq!((kernel.static_shared, kernel.max_threads), (38, Some(32)));
    let mut memory = Memory::default();
    memory.order.begin_after_all();
    let at = memory.alloc(32 * 32);
    let mut params = vec![0u8; 44];
    params[0] = 200;
    params[16..24].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
    params[24..26].copy_from_slice(&(-5i16).to_le_bytes());
    params[32..40].copy_from_slice(&at.to_le_bytes());
    params[40..].copy_from_slice(&1.5f32.to_le_bytes());
    let how = Launch { grid: [1; 3], block: [32, 1, 1], shared: 128, blocks: ALL, seed: 0, turn: 0 };
    launch(&mut memory, kernel, &how, &params).unwrap();
    memory.order.begin_after_all();
    let bytes = memory.read(at + 31 * 32, 32).unwrap();
    let words: Vec<u32> = bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(words, [32, 48, 200, 1, 2, -5i32 as u32, 1.5f32.to_bits(), 31]);
    for (how, part) in [
        (Launch { block: [33, 1, 1], ..how }, "33 threads a block"),
        (Launch { grid: [0, 1, 1], ..how }, "a grid of"),
        (Launch { shared: 227 << 10, ..how }, "bytes of shared memory"),
    ] {
        let fault = launch(&mut memory, kernel, &how, &params).unwrap_err();
        assert!(fault.to_string().contains(part), "{fault}");
    }
    assert!(launch(&mut memory, kernel, &how, &params[1..]).is_err());
}

#[test]
fn every_block_that_is_chosen_runs_once_however_many_there_are() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64
        .visible .entry k(.param .u64 k_a) { .reg .b32 %r<9>; .reg .b64 %x<3>;
        ld.param.u64 %x0, [k_a]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x;
        mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %x1, %r3, 4; add.u64 %x0, %x0, %x1; red.global.add.u32 [%x0], 1; ret; }";
    let module = Module::parse(text, Options::default()).unwrap();
    for (grid, blocks) in [
        ([1, 1, 1], ALL),
        ([7, 3, 1], ALL),
        ([70_000, 1, 1], ALL),
        ([70_000, 1, 1], [3, 69_998]),
        ([7, 3, 1], [13, 16]),
        ([7, 3, 1], [20, 99]),
        ([7, 3, 1], [4, 4]),
        ([7, 3, 1], [21, 30]),
    ] {
        let n = grid[0] as usize * grid[1] as usize;
        let mut memory = Memory::default();
        let at = memory.alloc(4 * n);
        memory.fill(at, &[0], 4 * n).unwrap();
        memory.order.begin_after_all();
        let how = Launch { grid, block: [1; 3], shared: 0, blocks, seed: 5, turn: 0 };
        launch(&mut memory, &module.kernels[0], &how, &at.to_le_bytes()).unwrap();
        memory.order.begin_after_all();
        let runs = memory.read(at, 4 * n).unwrap();
        for (block, runs) in (0..).zip(runs.chunks(4)) {
            let is_chosen = (blocks[0]..blocks[1]).contains(&block);
            assert_eq!(runs, [u8::from(is_chosen), 0, 0, 0], "block {block} of {grid:?}, {blocks:?} run");
        }
    }
}
