//! Order between streams and the host.

use super::*;

/// The code of a wait for everything after some work, and the fault's text, for ten seeds.
#[track_caller]
fn at_every_seed(is_found: Option<&str>, work: impl Fn(&Driver) -> Code) {
    let d = Driver::new();
    for seed in 0..10 {
        d.again(seed);
        let first = work(&d);
        let code = if first == 0 { call!(cuCtxSynchronize()) } else { first };
        let fault = read(xc_emulated_fault);
        match is_found {
            None => assert_eq!((code, fault.as_str()), (0, ""), "seed {seed}"),
            Some(part) => {
                assert_eq!(code, 719, "seed {seed}");
                assert!(fault.contains(part), "seed {seed}: {fault}");
            }
        }
    }
}

/// Adds 1 to 32 words.
const ADD: &str = "mov.u32 %r0, %tid.x; mul.wide.u32 %x1, %r0, 4; add.s64 %x0, %x0, %x1; ld.global.u32 %r1, [%x0];
    add.u32 %r1, %r1, 1; st.global.u32 [%x0], %r1;";

/// A copy on one stream, a kernel on another, between them what `order` does.
fn copy_then_kernel(d: &Driver, order: impl Fn(usize, usize)) -> Code {
    let (a, b, at, function) = (d.stream(), d.stream(), d.alloc(128), d.function(&text(ADD)));
    let host = [5u32; 32];
    assert_eq!(call!(cuMemcpyHtoD_v2(at, host.as_ptr().cast(), 128)), 0);
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, host.as_ptr().cast(), 128, a)), 0);
    order(a, b);
    let code = d.warp(function, b, at);
    if code != 0 { code } else { call!(cuStreamSynchronize(b)) }
}

#[test]
fn a_forgotten_event_is_found() {
    at_every_seed(None, |d| {
        copy_then_kernel(d, |a, b| {
            let event = d.event();
            assert_eq!(call!(cuEventRecord(event, a)), 0);
            assert_eq!(call!(cuStreamWaitEvent(b, event, 0)), 0);
            assert_eq!(call!(cuEventDestroy_v2(event)), 0);
        })
    });
    at_every_seed(None, |d| copy_then_kernel(d, |a, _| assert_eq!(call!(cuStreamSynchronize(a)), 0)));
    at_every_seed(Some("a race"), |d| copy_then_kernel(d, |_, _| {}));
    // An event that was recorded before the copy orders nothing.
    at_every_seed(Some("a race"), |d| {
        let (event, early) = (d.event(), d.stream());
        assert_eq!(call!(cuEventRecord(event, early)), 0);
        copy_then_kernel(d, |_, b| assert_eq!(call!(cuStreamWaitEvent(b, event, 0)), 0))
    });
}

#[test]
fn order_goes_through_a_third_stream() {
    let through = |d: &Driver, last: bool| {
        copy_then_kernel(d, |a, b| {
            let (c, first, second) = (d.stream(), d.event(), d.event());
            assert_eq!(call!(cuEventRecord(first, a)), 0);
            assert_eq!(call!(cuStreamWaitEvent(c, first, 0)), 0);
            assert_eq!(call!(cuEventRecord(second, c)), 0);
            if last {
                assert_eq!(call!(cuStreamWaitEvent(b, second, 0)), 0);
            }
        })
    };
    at_every_seed(None, |d| through(d, true));
    at_every_seed(Some("a race"), |d| through(d, false));
}

#[test]
fn a_kernel_and_a_copy_out_on_another_stream_need_an_order() {
    let out = |d: &Driver, waits: bool| {
        let (a, b, at, function) = (d.stream(), d.stream(), d.alloc(128), d.function(&text(NUMBERS)));
        let mut host = [0u32; 32];
        assert_eq!(d.warp(function, a, at), 0);
        if waits {
            assert_eq!(call!(cuStreamSynchronize(a)), 0);
        }
        let code = call!(cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), at, 128, b));
        assert!(!waits || host[31] == 31);
        code
    };
    at_every_seed(None, |d| out(d, true));
    at_every_seed(Some("a race"), |d| out(d, false));
}

#[test]
fn two_streams_may_read_the_same() {
    let reads = |d: &Driver, waits: bool| {
        let (a, b, c) = (d.stream(), d.stream(), d.stream());
        let (at, to, host) = (d.alloc(128), [d.alloc(128), d.alloc(128)], [1u32; 32]);
        assert_eq!(call!(cuMemcpyHtoD_v2(at, host.as_ptr().cast(), 128)), 0);
        assert_eq!(call!(cuMemcpyDtoDAsync_v2(to[0], at, 128, a)), 0);
        assert_eq!(call!(cuMemcpyDtoDAsync_v2(to[1], at, 128, b)), 0);
        // What writes again has to come after both.
        for stream in if waits { vec![a, b] } else { vec![b] } {
            let event = d.event();
            assert_eq!(call!(cuEventRecord(event, stream)), 0);
            assert_eq!(call!(cuStreamWaitEvent(c, event, 0)), 0);
        }
        call!(cuMemsetD8Async(at, 0, 128, c))
    };
    at_every_seed(None, |d| reads(d, true));
    at_every_seed(Some("a race"), |d| reads(d, false));
}

#[test]
fn the_legacy_stream_waits_for_blocking_streams_alone() {
    let legacy = |d: &Driver, flags: u32| {
        let (mut a, at, function) = (0, d.alloc(128), d.function(&text(ADD)));
        assert_eq!(call!(cuStreamCreate(&mut a, flags)), 0);
        assert_eq!(call!(cuMemcpyHtoD_v2(at, [0u32; 32].as_ptr().cast(), 128)), 0);
        assert_eq!(call!(cuMemsetD8Async(at, 0, 128, a)), 0);
        assert_eq!(d.warp(function, 0, at), 0);
        d.warp(function, a, at)
    };
    at_every_seed(None, |d| legacy(d, 0));
    at_every_seed(Some("a race"), |d| legacy(d, 1));
}

/// A copy from a pinned slot, what happens then, and the slot written again.
fn slot_in(d: &Driver, between: impl Fn(usize)) -> Code {
    let (stream, at, slot) = (d.stream(), d.alloc(64), d.pinned(64));
    // SAFETY: the slot has so many bytes, and the driver reads them when it is called.
    unsafe { slot.write_bytes(1, 64) };
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, slot.cast(), 64, stream)), 0);
    between(stream);
    // SAFETY: as above.
    unsafe { slot.add(63).write(2) };
    call!(cuStreamSynchronize(stream))
}

#[test]
fn a_pinned_slot_that_is_used_again_too_early_is_found() {
    at_every_seed(None, |d| slot_in(d, |stream| assert_eq!(call!(cuStreamSynchronize(stream)), 0)));
    at_every_seed(Some("is written while a copy from it"), |d| slot_in(d, |_| {}));
    // Even where the copy has run already, since the host does not know.
    at_every_seed(Some("is written while a copy from it"), |d| {
        slot_in(d, |_| {
            for _ in 0..20 {
                let other = d.stream();
                assert_eq!(call!(cuMemsetD8Async(d.alloc(4), 0, 4, other)), 0);
                assert_eq!(call!(cuStreamSynchronize(other)), 0);
            }
        })
    });
}

#[test]
fn pinned_memory_has_no_answers_before_they_are_waited_for() {
    let d = Driver::new();
    for seed in 0..10 {
        d.again(seed);
        let (a, b, at, slot) = (d.stream(), d.stream(), d.alloc(64), d.pinned(64));
        assert_eq!(call!(cuMemsetD8Async(at, 1, 64, a)), 0);
        assert_eq!(call!(cuMemcpyDtoHAsync_v2(slot.cast(), at, 64, a)), 0);
        assert_eq!(call!(cuMemsetD8Async(d.alloc(4), 0, 4, b)), 0);
        assert_eq!(call!(cuStreamSynchronize(b)), 0);
        // SAFETY: the slot has so many bytes, which nobody writes now.
        let now = || unsafe { std::slice::from_raw_parts(slot, 64) }.to_vec();
        assert_eq!(now(), [0xf7; 64], "seed {seed}");
        let event = d.event();
        assert_eq!(call!(cuEventRecord(event, a)), 0);
        assert_eq!(call!(cuEventSynchronize(event)), 0);
        assert_eq!(now(), [1; 64], "seed {seed}");
    }
}

#[test]
fn pinned_memory_that_is_written_under_a_copy_to_it_is_found() {
    at_every_seed(Some("is written while a copy to it"), |d| {
        let (stream, at, slot) = (d.stream(), d.alloc(64), d.pinned(64));
        assert_eq!(call!(cuMemsetD8Async(at, 1, 64, stream)), 0);
        assert_eq!(call!(cuMemcpyDtoHAsync_v2(slot.cast(), at, 64, stream)), 0);
        // SAFETY: the slot has so many bytes.
        unsafe { slot.write(3) };
        call!(cuStreamSynchronize(stream))
    });
}

#[test]
fn a_free_on_a_stream_needs_an_order_too() {
    let free = |d: &Driver, waits: bool| {
        let (a, b, at, function) = (d.stream(), d.stream(), d.alloc(128), d.function(&text(NUMBERS)));
        assert_eq!(d.warp(function, a, at), 0);
        if waits {
            assert_eq!(call!(cuStreamSynchronize(a)), 0);
        }
        assert_eq!(call!(cuMemFreeAsync(at, b)), 0);
        call!(cuStreamSynchronize(a))
    };
    at_every_seed(None, |d| free(d, true));
    let d = Driver::new();
    for seed in 0..10 {
        d.again(seed);
        let first = free(&d, false);
        let code = if first == 0 { call!(cuCtxSynchronize()) } else { first };
        // Either the kernel or the free comes first.
        assert!(matches!(code, 700 | 719), "seed {seed}: {code}");
    }
}

#[test]
fn events_tell_time_and_readiness() {
    let d = Driver::new();
    let (stream, a, b, mut plain) = (d.stream(), d.event(), d.event(), 0);
    let mut ms = 0.0;
    assert_eq!(call!(cuStreamQuery(stream)), 0);
    assert_eq!(call!(cuEventQuery(a)), 0);
    assert_eq!(call!(cuEventSynchronize(a)), 0);
    assert_eq!(call!(cuStreamWaitEvent(stream, a, 0)), 0);
    assert_eq!(call!(cuEventElapsedTime(&mut ms, a, b)), 400);
    assert_eq!(call!(cuEventCreate(&mut plain, 2)), 0);
    assert_eq!(call!(cuEventRecord(plain, stream)), 0);
    assert_eq!(call!(cuEventRecord(a, stream)), 0);
    assert_eq!(call!(cuMemsetD8Async(d.alloc(4), 0, 4, stream)), 0);
    assert_eq!(call!(cuEventRecord(b, stream)), 0);
    assert_eq!(call!(cuEventElapsedTime(&mut ms, a, b)), 600);
    let mut polls = 0;
    while call!(cuEventQuery(b)) == 600 {
        polls += 1;
    }
    assert_eq!(polls, 4);
    assert_eq!((call!(cuEventElapsedTime(&mut ms, a, b)), ms), (0, 2.0));
    assert_eq!(call!(cuEventElapsedTime(&mut ms, plain, b)), 400);
}
