//! Counts of launches.

use crate::{run_by, text};

/// Counts of a body, less those of a kernel without one; two warps in a block.
fn counts(body: &str) -> impl Fn(fn(&xc_emulated_ptx::Counts) -> u64) -> u64 {
    let operands = vec![1u64; 256];
    let of = |body: &str| run_by(&text("sm_80", "8.0", 2, body), &operands, 2, 64, 1, 0).unwrap().1;
    let (with, without) = (of(body), of(""));
    move |field| field(&with) - field(&without)
}

#[test]
fn instructions_count_once_a_group_of_lanes() {
    let n = counts("add.u32 %r4, %r0, %r1; mul.lo.u32 %r4, %r4, %r4;");
    assert_eq!((n(|c| c.warp_instructions), n(|c| c.thread_instructions)), (4, 128));
    // Half of the lanes jump over one instruction: the others execute it, then all go on together.
    let n = counts(
        "and.b32 %r4, %r12, 1; setp.eq.u32 %p0, %r4, 0; @%p0 bra OVER; add.u32 %r4, %r0, %r1; OVER: add.u32 %r5, %r0, 1;",
    );
    assert_eq!((n(|c| c.warp_instructions), n(|c| c.thread_instructions)), (10, 4 * 64 + 32));
    // Lane i goes round i + 1 times.
    let n = counts("and.b32 %r4, %r12, 31; AGAIN: add.s32 %r4, %r4, -1; setp.ge.s32 %p0, %r4, 0; @%p0 bra AGAIN;");
    assert_eq!(n(|c| c.warp_instructions), 2 * (1 + 3 * 32));
    assert_eq!(n(|c| c.thread_instructions), 2 * (32 + 3 * (32 * 33 / 2)));
}

#[test]
fn sectors_are_the_different_ones_of_a_request() {
    // 64 threads, 16 bytes apart, write 8 bytes each: two lanes share a sector.
    let n = counts("st.global.u64 [%x14], %x0;");
    assert_eq!((n(|c| c.stores), n(|c| c.sectors_written), n(|c| c.footprint)), (2, 32, 32 * 32));
    // 16 bytes each: the same sectors, touched for the first time once.
    let n = counts("st.global.v2.u64 [%x14], {%x0, %x1}; st.global.u64 [%x14], %x0;");
    assert_eq!((n(|c| c.stores), n(|c| c.sectors_written), n(|c| c.footprint)), (4, 64, 32 * 32));
    // Lanes far apart, and all at one place.
    let n = counts(
        "and.b32 %r4, %r12, 7; mul.wide.u32 %x5, %r4, 32; sub.u64 %x6, %x10, %x15; add.u64 %x5, %x6, %x5; ld.global.u32 %r5, [%x5];",
    );
    assert_eq!((n(|c| c.loads), n(|c| c.sectors_read), n(|c| c.footprint)), (2, 16, 0));
    let n = counts("sub.u64 %x6, %x10, %x15; ld.global.u32 %r5, [%x6]; bar.sync 0; atom.global.add.u32 %r5, [%x6], 0;");
    assert_eq!((n(|c| c.loads), n(|c| c.sectors_read), n(|c| c.atomics), n(|c| c.sectors_atomic)), (2, 2, 2, 2));
    let n = counts("mov.u32 %r4, some; shl.b32 %r5, %r12, 2; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], 1;");
    assert_eq!((n(|c| c.shared_requests), n(|c| c.stores), n(|c| c.footprint)), (2, 0, 0));
}

#[test]
fn flops_count_active_lanes() {
    let n = counts(
        "add.rn.f32 %f0, %f1, %f2; fma.rn.f32 %f0, %f1, %f2, %f3; add.rn.f64 %fd0, %fd1, %fd2; add.f16x2 %r4, %r0, %r1;
        setp.eq.u32 %p0, %r12, 0; @%p0 mul.rn.f32 %f0, %f1, %f2; max.f32 %f0, %f1, %f2;",
    );
    assert_eq!(n(|c| c.flops), 64 + 128 + 64 + 128 + 1);
}

#[test]
fn stretches_between_barriers_without_global_memory_are_local() {
    // Before the body a kernel loads its operands.
    let n = counts(
        "add.u32 %r4, %r0, 1; bar.sync 0; add.u32 %r4, %r4, 1; add.u32 %r4, %r4, 1; bar.sync 0; add.u32 %r4, %r4, 1;
        st.global.u64 [%x14], %x0; bar.sync 0; add.u32 %r4, %r4, 1; bar.sync 0; ld.global.u64 %x5, [%x14];",
    );
    // Two additions and a barrier; one and a barrier.
    assert_eq!(n(|c| c.local_instructions), 2 * 3 + 2 * 2);
}

#[test]
fn barriers_and_warp_operations_are_counted() {
    let n = counts(
        "bar.sync 0; bar.warp.sync -1; vote.sync.ballot.b32 %r4, %p0, -1; shfl.sync.idx.b32 %r4, %r0, 0, 31, -1;",
    );
    assert_eq!((n(|c| c.barriers), n(|c| c.together)), (1, 6));
}
