//! Allocations, copies and fills.

use super::*;

#[test]
fn allocations_answer_with_a_cards_codes() {
    let d = Driver::new();
    let mut at = 0;
    assert_eq!(call!(cuMemAlloc_v2(&mut at, 0)), 1);
    assert_eq!(call!(cuMemAlloc_v2(&mut at, 1 << 50)), 2);
    assert_eq!(call!(cuMemAlloc_v2(&mut at, 4096)), 0);
    assert_eq!(at % 512, 0);
    assert_eq!(call!(cuMemFree_v2(0)), 0);
    assert_eq!(call!(cuMemFree_v2(0x1234_5600)), 1);
    assert_eq!(call!(cuMemFree_v2(at + 256)), 1);
    assert_eq!(call!(cuMemFree_v2(at)), 0);
    assert_eq!(call!(cuMemFree_v2(at)), 1);
    assert_eq!(d.words(d.alloc(4), 1), [0]);
}

#[test]
fn copies_stay_within_allocations() {
    let d = Driver::new();
    let (at, host) = (d.alloc(4096), [0u8; 8192]);
    let from = host.as_ptr().cast::<c_void>();
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(0x1234_5600, from, 16, 0)), 1);
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, from, 8192, 0)), 1);
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, from, 0, 0)), 0);
    assert_eq!(call!(cuMemcpyDtoDAsync_v2(at + 4000, at, 100, 0)), 1);
    assert_eq!(call!(cuMemsetD32Async(at + 2, 0, 4, 0)), 1);
    assert_eq!(call!(cuMemsetD8Async(at + 4000, 0, 100, 0)), 1);
    assert_eq!(call!(cuCtxSynchronize()), 0);
}

#[test]
fn copies_of_all_sizes_arrive() {
    let d = Driver::new();
    for n in [1usize, 3, 4, 255, 256, 257, 65_535, 65_536, 65_537, 200_001] {
        let bytes: Vec<u8> = (0..n).map(|i| (i * 7 + i / 251) as u8).collect();
        let (a, b) = (d.alloc(n + 13), d.alloc(n));
        assert_eq!(call!(cuMemcpyHtoD_v2(a + 13, bytes.as_ptr().cast(), n)), 0);
        assert_eq!(call!(cuMemcpyDtoDAsync_v2(b, a + 13, n, 0)), 0);
        let mut back = vec![0u8; n];
        assert_eq!(call!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), b, n)), 0);
        assert_eq!(back, bytes, "{n}");
    }
    let at = d.alloc(40);
    assert_eq!(call!(cuMemsetD32Async(at, 0x0102_0304, 10, 0)), 0);
    assert_eq!(call!(cuMemsetD8Async(at + 4, 9, 3, 0)), 0);
    assert_eq!(d.words(at, 3), [0x0102_0304, 0x0109_0909, 0x0102_0304]);
}

#[test]
fn a_copy_from_ordinary_memory_takes_it_at_once() {
    let d = Driver::new();
    let (at, mut host) = (d.alloc(4), 7u32);
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, (&raw const host).cast(), 4, 0)), 0);
    host += 1;
    assert_eq!((d.words(at, 1), host), (vec![7], 8));
}
