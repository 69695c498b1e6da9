//! What a launch may ask for.

use super::*;

const MAX_DYNAMIC_SHARED: u32 = 8;

#[test]
fn launches_beyond_the_limits_are_refused_and_nothing_stays() {
    let d = Driver::new();
    let (function, at) = (d.function(&text(NUMBERS)), d.alloc(4096));
    let wide = |n| [n, 1, 1];
    for (what, grid, block, shared) in [
        ("no block", [0, 1, 1], wide(32), 0),
        ("no thread", wide(1), [0, 1, 1], 0),
        ("1,025 threads", wide(1), wide(1025), 0),
        ("1,056 threads in two dimensions", wide(1), [33, 32, 1], 0),
        ("block z of 65", wide(1), [1, 1, 65], 0),
        ("grid y of 65,536", [1, 65536, 1], wide(32), 0),
        ("grid z of 65,536", [1, 1, 65536], wide(32), 0),
        ("grid x of 2^31", wide(1 << 31), wide(32), 0),
        ("shared memory that was not asked for", wide(1), wide(32), (48 << 10) + 1),
    ] {
        assert_eq!(d.launch(function, grid, block, shared, 0, at), 1, "{what}");
        assert_eq!(call!(cuCtxSynchronize()), 0, "{what}");
    }
    assert_eq!(d.launch(function, wide(1), wide(32), 48 << 10, 0, at), 0);
    assert_eq!(call!(cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, (227 << 10) + 1)), 1);
    assert_eq!(call!(cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, 227 << 10)), 0);
    assert_eq!(d.launch(function, wide(1), wide(32), 227 << 10, 0, at), 0);
    assert_eq!(d.words(at, 32), (0..32).collect::<Vec<u32>>());
}

#[test]
fn a_kernel_may_limit_its_threads() {
    let d = Driver::new();
    let limited = text(NUMBERS).replace(")\n{", ")\n.maxntid 64, 1, 1\n.minnctapersm 2\n{");
    let (function, at) = (d.function(&limited), d.alloc(4096));
    assert_eq!(d.launch(function, [1; 3], [96, 1, 1], 0, 0, at), 1);
    assert_eq!(d.launch(function, [1; 3], [64, 1, 1], 0, 0, at), 0);
}

#[test]
fn declared_shared_memory_counts() {
    let d = Driver::new();
    let declared = text(".shared .align 4 .b8 some[4096]; mov.u32 %r0, some; st.shared.u32 [%r0], %r0;");
    let function = d.function(&declared);
    assert_eq!(d.launch(function, [1; 3], [1; 3], 45 << 10, 0, 0), 1);
    assert_eq!(d.launch(function, [1; 3], [1; 3], 44 << 10, 0, 0), 0);
    assert_eq!(call!(cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, 224 << 10)), 1);
    assert_eq!(call!(cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, 223 << 10)), 0);
}

/// Threads of blocks of 256 write words of their number.
const FAR: &str = "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mul.wide.u32 %x1, %r0, 1024; mul.wide.u32 %x2, %r1, 4; \
                   add.s64 %x0, %x0, %x1; add.s64 %x0, %x0, %x2; st.global.u32 [%x0], %r0;";

#[test]
fn of_memory_larger_than_the_machine_the_last_words_are_written_by_the_last_block() {
    const N: usize = (1 << 36) + 256;
    let d = Driver::new();
    xc_emulated_set_device(9, 0, 1 << 40, 1, 13000);
    let (function, at) = (d.function(&text(FAR)), d.alloc(4 * N));
    let blocks = (N / 256) as u32;
    xc_emulated_set_blocks(u64::from(blocks) - 1, u64::MAX);
    assert_eq!(d.launch(function, [blocks, 1, 1], [256, 1, 1], 0, 0, at), 0);
    assert_eq!(d.words(at + 4 * (N as u64 - 256), 256), [blocks - 1; 256]);
    // Of no other block.
    assert_eq!(d.words(at, 256), [0; 256]);
    assert_eq!(d.words(at + 4 * (N as u64 - 512), 256), [0; 256]);
}

#[test]
fn launches_are_counted() {
    let d = Driver::new();
    let (function, at) = (d.function(&text(NUMBERS)), d.alloc(4096));
    xc_emulated_clear_counts();
    assert_eq!(d.launch(function, [2, 1, 1], [64, 1, 1], 0, 0, at), 0);
    assert_eq!(call!(cuCtxSynchronize()), 719, "both blocks write the same words");
    d.again(1);
    let (function, at) = (d.function(&text(NUMBERS)), d.alloc(4096));
    assert_eq!(d.launch(function, [1; 3], [64, 1, 1], 0, 0, at), 0);
    assert_eq!(d.launch(function, [1; 3], [1; 3], 0, 0, at), 0);
    assert_eq!(call!(cuCtxSynchronize()), 0);
    let counts = read(xc_emulated_counts);
    let lines: Vec<&str> = counts.lines().collect();
    assert_eq!(lines.len(), 2, "{counts}");
    for part in [
        "\"kernel\": \"k\"",
        "\"grid\": [1, 1, 1]",
        "\"block\": [64, 1, 1]",
        "\"warp_instructions\": 12",
        "\"thread_instructions\": 384",
        "\"stores\": 2",
        "\"sectors\": 8",
        "\"footprint\": 256",
    ] {
        assert!(lines[0].contains(part), "{part} is not in {}", lines[0]);
    }
    xc_emulated_clear_counts();
    assert_eq!(read(xc_emulated_counts), "");
}
