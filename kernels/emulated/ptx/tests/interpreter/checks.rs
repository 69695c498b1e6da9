//! Mistakes of kernels that have to be found whatever the seed, and their correct twins that must pass.

use crate::ALL;
use xc_emulated_ptx::{Counts, Fault, Kind, Launch, Memory, Module, Options, launch};

/// A kernel with an address in %x0, the thread in %r0, the block in %r1, and `BODY`.
fn kernel(body: &str) -> Module {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_a) {{
        .shared .align 16 .b8 some[1024];
        .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %x<10>;
        ld.param.u64 %x0, [k_a]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, some;
        shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3; cvt.u64.u32 %x1, %r3; add.u64 %x2, %x0, %x1;
        {body}
        ret; }}"
    );
    Module::parse(&text, Options::default()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Runs 4 blocks of 64 threads, with 4,096 bytes of global memory of which the first 2,048 are zeros.
fn run(body: &str, seed: u64, turn: u32) -> Result<(Counts, Vec<u8>), Fault> {
    run_blocks(body, 4, seed, turn)
}

fn run_blocks(body: &str, n_blocks: u32, seed: u64, turn: u32) -> Result<(Counts, Vec<u8>), Fault> {
    let module = kernel(body);
    let mut memory = Memory::default();
    memory.order.begin_after_all();
    let at = memory.alloc(4096);
    memory.write(at, &[0; 2048]).unwrap();
    memory.order.begin_after_all();
    let how = Launch { grid: [n_blocks, 1, 1], block: [64, 1, 1], shared: 0, blocks: ALL, seed, turn };
    let counts = launch(&mut memory, &module.kernels[0], &how, &at.to_le_bytes())?;
    memory.order.begin_after_all();
    let bytes = memory.read(at, 4096).unwrap();
    Ok((counts, bytes))
}

#[track_caller]
fn assert_found(kind: Kind, body: &str) {
    for seed in 0..10 {
        for turn in [0, 1, 7] {
            match run(body, seed, turn) {
                Err(fault) => assert_eq!(fault.kind, kind, "seed {seed}, turn {turn}: {fault}"),
                Ok(_) => panic!("seed {seed}, turn {turn}: nothing was found"),
            }
        }
    }
}

#[track_caller]
fn assert_passes(body: &str) {
    for seed in 0..10 {
        for turn in [0, 1, 7] {
            if let Err(fault) = run(body, seed, turn) {
                panic!("seed {seed}, turn {turn}: {fault}");
            }
        }
    }
}

/// Each thread writes its word and reads that of thread `t ^ with`.
fn exchange(with: u32, between: &str) -> String {
    format!(
        "st.shared.u32 [%r4], %r0; {between} xor.b32 %r5, %r0, {with}; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r2;
        ld.shared.u32 %r6, [%r5];"
    )
}

#[test]
fn words_that_cross_warps_need_a_block_barrier() {
    assert_passes(&exchange(32, "bar.sync 0;"));
    assert_found(Kind::Race, &format!("st.shared.u32 [%r4], %r1; bar.sync 0; {}", exchange(32, "")));
    assert_found(
        Kind::Race,
        &exchange(32, "bar.warp.sync -1;").replacen("st.", "st.shared.u32 [%r4], %r1; bar.sync 0; st.", 1),
    );
}

#[test]
fn words_that_cross_lanes_need_a_warp_barrier() {
    assert_passes(&exchange(1, "bar.warp.sync -1;"));
    assert_passes(&exchange(1, "bar.sync 0;"));
    assert_found(Kind::Race, &format!("st.shared.u32 [%r4], %r1; bar.sync 0; {}", exchange(1, "")));
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask_alone() {
    let halves = "and.b32 %r7, %r0, 16; setp.ne.u32 %p1, %r7, 0; selp.b32 %r8, 0xffff0000, 0x0000ffff, %p1;
        bar.warp.sync %r8;";
    assert_passes(&exchange(1, halves));
    assert_passes(&exchange(16, &format!("{halves} bar.warp.sync -1;")));
    let first = "st.shared.u32 [%r4], %r1; bar.sync 0;";
    assert_found(Kind::Race, &format!("{first} {}", exchange(16, halves)));
}

#[test]
fn order_goes_through_a_third_lane() {
    // Lanes 0 and 1 meet, then 1 and 2: what 0 wrote is ordered before what 2 reads.
    let chain = |second: &str| {
        format!(
            "setp.gt.u32 %p0, %r0, 2; @%p0 bra OUT; setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r0, 2;
            @%p1 st.shared.u32 [%r2], 7; @%p2 bra LAST; bar.warp.sync 3; @%p1 bra OUT;
            LAST: {second} @!%p2 bra OUT; ld.shared.u32 %r6, [%r2]; OUT: bar.sync 0;"
        )
    };
    assert_passes(&chain("bar.warp.sync 6;"));
    let unordered = "bar.sync 0; ".to_owned() + &chain("");
    for seed in 0..10 {
        let fault = run(&format!("st.shared.u32 [%r4], %r0; {unordered}"), seed, 0).unwrap_err();
        assert_eq!(fault.kind, Kind::Race, "{fault}");
    }
}

#[test]
fn a_barrier_between_reads_and_the_next_write_is_needed() {
    let round = |end: &str| format!("{} {end} st.shared.u32 [%r4], %r6;", exchange(32, "bar.sync 0;"));
    assert_passes(&round("bar.sync 0;"));
    assert_found(Kind::Race, &round(""));
}

#[test]
fn all_readers_of_a_word_count() {
    // Lanes 1 to 63 read word 0, the last of them lane 0 itself or not; then lane 0 writes it.
    let read = "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r6, [%r2];";
    assert_found(Kind::Race, &format!("{read} @%p0 st.shared.u32 [%r2], 2;"));
    assert_passes(&format!("{read} bar.sync 0; @%p0 st.shared.u32 [%r2], 2;"));
}

#[test]
fn nothing_orders_blocks() {
    let mine = "setp.eq.u32 %p0, %r0, 0; @!%p0 bra OUT; mul.wide.u32 %x3, %r1, 4; add.u64 %x3, %x0, %x3;";
    assert_passes(&format!("{mine} st.global.u32 [%x3], %r1; ld.global.u32 %r5, [%x3]; OUT:"));
    assert_found(Kind::Race, &format!("{mine} st.global.u32 [%x0], %r1; OUT:"));
    assert_found(Kind::Race, &format!("{mine} st.global.u32 [%x3], %r1; ld.global.u32 %r5, [%x0]; OUT:"));
    // Reads by three blocks, then a write by one of them: whichever ran last.
    assert_found(
        Kind::Race,
        &format!("{mine} ld.global.u32 %r5, [%x0]; setp.eq.u32 %p1, %r1, 1; @%p1 st.global.u32 [%x0], 1; OUT:"),
    );
}

#[test]
fn atomics_do_not_race_with_each_other_but_with_all_else() {
    assert_passes("atom.global.add.u32 %r5, [%x0], 1; red.global.max.u32 [%x0+4], %r0;");
    assert_found(Kind::Race, "atom.global.add.u32 %r5, [%x0], 1; ld.global.u32 %r6, [%x0];");
    let begin = "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r2], 7; bar.sync 0;";
    assert_found(Kind::Race, &format!("{begin} @%p0 st.shared.u32 [%r2], 0; atom.shared.add.u32 %r5, [%r2], 1;"));
    assert_passes(
        "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r2], 0; bar.sync 0; atom.shared.add.u32 %r5, [%r2], 1;",
    );
}

#[test]
fn a_sum_by_atomics_is_whole() {
    for seed in 0..10 {
        let (counts, bytes) = run("red.global.add.u32 [%x0], 3;", seed, 1).unwrap();
        assert_eq!(bytes[..4], (3u32 * 256).to_le_bytes());
        assert!(counts.atomics >= 8, "{counts:?}");
    }
}

#[test]
fn unwritten_bytes_are_not_read() {
    assert_found(Kind::Unwritten, "ld.global.u32 %r5, [%x0+2048];");
    assert_found(Kind::Unwritten, "ld.shared.u32 %r5, [%r4];");
    assert_found(Kind::Unwritten, "atom.global.add.u32 %r5, [%x0+4000], 1;");
    assert_found(Kind::Unwritten, "st.shared.u16 [%r4], 1; ld.shared.u32 %r5, [%r4];");
    assert_passes(
        "st.shared.u16 [%r4], 1; st.shared.u8 [%r4+2], 1; st.shared.u8 [%r4+3], 1; ld.shared.u32 %r5, [%r4];",
    );
}

#[test]
fn shared_memory_of_the_block_before_counts_as_unwritten() {
    let body = "setp.ne.u32 %p0, %r1, 2; @%p0 st.shared.u32 [%r4], 1; ld.shared.u32 %r5, [%r4];";
    assert_found(Kind::Unwritten, body);
}

#[test]
fn bounds_hold() {
    assert_found(Kind::Bounds, "ld.global.u32 %r5, [%x0+4096];");
    assert_found(Kind::Bounds, "st.global.u32 [%x0+-4], %r5;");
    assert_found(Kind::Bounds, "st.global.v4.u32 [%x0+4096], {%r0, %r0, %r0, %r0};");
    assert_found(Kind::Bounds, "st.shared.u32 [%r2+1024], %r0;");
    assert_found(Kind::Bounds, "mov.u64 %x5, 16; st.global.u32 [%x5], %r0;");
    assert_found(Kind::Bounds, "mov.u64 %x5, 16; st.u32 [%x5], %r0;");
}

#[test]
fn accesses_are_aligned() {
    assert_found(Kind::Misaligned, "ld.global.u32 %r5, [%x0+2];");
    assert_found(Kind::Misaligned, "ld.global.v2.u32 {%r5, %r6}, [%x0+4];");
    assert_found(Kind::Misaligned, "st.shared.u64 [%r2+4], %x0;");
    assert_found(Kind::Misaligned, "atom.global.add.u64 %x5, [%x0+4], %x1;");
}

#[test]
fn threads_meet_at_one_barrier() {
    let part = "setp.lt.u32 %p0, %r0, 32;";
    assert_found(Kind::Convergence, &format!("{part} @%p0 bra A; bar.sync 0; bra B; A: bar.sync 0; B:"));
    assert_found(Kind::Convergence, &format!("{part} @%p0 bra OUT; bar.sync 0; OUT:"));
    assert_found(Kind::Convergence, &format!("{part} @%p0 bar.sync 0;"));
    assert_passes("bar.sync 0; bar.sync 0;");
}

#[test]
fn lanes_of_a_mask_come() {
    let part = "setp.lt.u32 %p0, %r0, 16;";
    assert_found(Kind::Convergence, &format!("{part} @%p0 bra OUT; bar.warp.sync -1; OUT:"));
    assert_found(Kind::Convergence, &format!("{part} @%p0 shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;"));
    assert_found(Kind::Convergence, "shfl.sync.idx.b32 %r5, %r0, 0, 31, 1;");
    assert_found(Kind::Convergence, &format!("{part} @%p0 bra OUT; shfl.sync.idx.b32 %r5, %r0, 20, 31, 0xffff; OUT:"));
    assert_found(Kind::Convergence, &format!("{part} selp.b32 %r6, -1, 0x7fffffff, %p0; bar.warp.sync %r6;"));
    assert_passes(
        &format!("setp.lt.u32 %p1, %r0, 32; {part} @!%p0 bra OUT; shfl.sync.idx.b32 %r5, %r0, 3, 31, 0xffff; OUT:")
            .replace("setp.lt.u32 %p0, %r0, 16;", "and.b32 %r7, %r0, 31; setp.lt.u32 %p0, %r7, 16;"),
    );
}

#[test]
fn asynchronous_copies_are_waited_for() {
    let copy =
        "and.b32 %r5, %r0, 15; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r2; cvt.u64.u32 %x3, %r0; shl.b64 %x3, %x3, 4;
        add.u64 %x3, %x0, %x3; setp.lt.u32 %p0, %r0, 16;
        @%p0 cp.async.cg.shared.global [%r5], [%x3], 16;";
    assert_passes(&format!("{copy} cp.async.commit_group; cp.async.wait_group 0; @%p0 ld.shared.u32 %r6, [%r5];"));
    assert_passes(&format!("{copy} cp.async.wait_all; bar.sync 0; ld.shared.u32 %r6, [%r5];"));
    assert_found(
        Kind::Unwritten,
        &format!("{copy} cp.async.commit_group; @%p0 ld.shared.u32 %r6, [%r5]; cp.async.wait_group 0;"),
    );
    assert_found(
        Kind::Unwritten,
        &format!("{copy} cp.async.commit_group; cp.async.wait_group 1; @%p0 ld.shared.u32 %r6, [%r5];"),
    );
    assert_found(Kind::Copy, &format!("{copy} cp.async.commit_group;"));
    let unordered = format!("{copy} cp.async.wait_all; ld.shared.u32 %r6, [%r5];");
    for seed in 0..10 {
        let fault = run(&unordered, seed, 1).unwrap_err();
        assert!(matches!(fault.kind, Kind::Race | Kind::Unwritten), "{fault}");
    }
}

#[test]
fn loads_for_constants_read_nothing_that_the_kernel_writes() {
    let body = "setp.ne.u32 %p0, %r1, 0; @%p0 bra OUT; st.global.u32 [%x2], 5; ld.global.nc.u32 %r5, [%x2]; OUT:";
    assert_found(Kind::Race, body);
    assert_passes("ld.global.nc.u32 %r5, [%x2];");
}

#[test]
fn a_trap_stops_the_kernel() {
    assert_found(Kind::Trap, "setp.eq.u32 %p0, %r0, 5; @%p0 trap;");
}

#[test]
fn a_fault_names_kernel_block_thread_and_line() {
    let fault = run_blocks("\n\nsetp.eq.u32 %p0, %r0, 37;\n@%p0 ld.global.u32 %r5, [%x0+4096];", 1, 1, 0).unwrap_err();
    let text = fault.to_string();
    for part in ["k: block [0, 0, 0]", "line 12", "thread 37", "4 bytes at", "at byte 4096 of one of 4096"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn a_race_names_the_other_side() {
    let text = |body: &str| run_blocks(body, 2, 1, 0).unwrap_err().to_string();
    let lone = "setp.eq.u32 %p0, %r0, 3; @%p0 st.shared.u32 [%r2], 1;";
    assert!(
        text(&format!(
            "{lone} bar.warp.sync -1; setp.eq.u32 %p1, %r0, 5; @%p1 bra OUT; @!%p0 st.shared.u32 [%r2], 1; OUT:"
        ))
        .contains("a race: a write without order after a write by")
    );
    let read =
        format!("{lone} bar.sync 0; ld.shared.u32 %r5, [%r2]; setp.eq.u32 %p1, %r0, 9; @%p1 st.shared.u32 [%r2], 1;");
    let fault = text(&read);
    assert!(fault.contains("thread 9") && fault.contains("a write without order after a read by"), "{fault}");
    assert!(
        text("red.global.add.u32 [%x0], 1; ld.global.u32 %r5, [%x0];")
            .contains("a read without order after an atomic by")
    );
    let blocks = text("setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%x0], 1;");
    assert!(blocks.contains("a write without order after a write by another block"), "{blocks}");
}

#[test]
fn lanes_that_wait_for_another_in_a_loop_get_what_they_wait_for() {
    // Lane 1 waits for a word that lane 0 writes at a higher line.
    let body = "and.b32 %r7, %r0, 31; setp.gt.u32 %p0, %r7, 1; @%p0 bra OUT; cvt.u64.u32 %x3, %r1; shl.b64 %x3, %x3, 8;
        and.b32 %r8, %r0, 32; cvt.u64.u32 %x4, %r8; add.u64 %x3, %x3, %x4; add.u64 %x3, %x0, %x3;
        setp.eq.u32 %p1, %r7, 0; @%p1 bra WRITE; AGAIN: atom.global.or.b32 %r5, [%x3], 0; setp.eq.u32 %p2, %r5, 0;
        @%p2 bra AGAIN; bra OUT; WRITE: atom.global.exch.b32 %r5, [%x3], 1; OUT:";
    for (seed, turn) in [(1, 0), (2, 3)] {
        let (_, bytes) = run(body, seed, turn).unwrap();
        for (block, warp) in [(0, 0), (1, 1), (3, 0), (3, 1)] {
            assert_eq!(bytes[256 * block + 32 * warp..][..4], 1u32.to_le_bytes(), "block {block}, warp {warp}");
        }
    }
}
