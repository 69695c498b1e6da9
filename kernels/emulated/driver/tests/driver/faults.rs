//! Faults of kernels, and what every call answers afterwards.

use super::*;

#[test]
fn a_fault_stays() {
    let d = Driver::new();
    for (what, body, code) in [
        ("wild", "mov.u64 %x0, 16; st.global.u32 [%x0], %r0;", 700),
        ("past the end", "st.global.u32 [%x0+256], %r0;", 700),
        ("far", "add.s64 %x0, %x0, 1099511627776; st.global.u32 [%x0], %r0;", 700),
        ("misaligned", "st.global.u32 [%x0+2], %r0;", 716),
        ("shared", ".shared .align 4 .b8 some[1024]; mov.u32 %r1, some; st.shared.u32 [%r1+1024], %r0;", 700),
        ("trap", "trap;", 719),
        ("a race", "st.global.u32 [%x0], %r0;", 719),
        ("nobody has written", "ld.global.u32 %r0, [%x0];", 719),
    ] {
        d.again(3);
        let function = d.function(&text(body));
        let (at, other, stream, event) = (d.alloc(256), d.alloc(256), d.stream(), d.event());
        assert_eq!(d.warp(function, 0, at), 0, "{what}");
        assert_eq!(call!(cuCtxSynchronize()), code, "{what}");
        assert!(read(xc_emulated_fault).starts_with("a launch: k: block [0, 0, 0]: line 8"), "{what}");
        let (mut x, mut free, mut total, mut n, mut host) = (0u64, 0, 0, 0, [0u8; 16]);
        let good = CString::new(text(NUMBERS)).unwrap();
        let mut module = 0;
        let to = host.as_mut_ptr().cast::<c_void>();
        for (call, answer) in [
            ("wait", call!(cuCtxSynchronize())),
            ("launch", d.warp(function, 0, at)),
            ("alloc", call!(cuMemAlloc_v2(&mut x, 4096))),
            ("info", call!(cuMemGetInfo_v2(&mut free, &mut total))),
            ("copy out", call!(cuMemcpyDtoH_v2(to, other, 16))),
            ("copy in", call!(cuMemcpyHtoDAsync_v2(other, to, 16, 0))),
            ("load", call!(cuModuleLoadData(&mut module, good.as_ptr().cast()))),
            ("query", call!(cuEventQuery(event))),
            ("record", call!(cuEventRecord(event, stream))),
            ("free", call!(cuMemFree_v2(other))),
            ("destroy", call!(cuStreamDestroy_v2(stream))),
            ("another context", call!(cuDevicePrimaryCtxRetain(&mut module, 0))),
        ] {
            assert_eq!(answer, code, "{call} after {what}");
        }
        assert_eq!((call!(cuDeviceGetCount(&mut n)), n), (0, 1));
        assert_eq!(call!(cuDeviceGetName(host.as_mut_ptr().cast(), 16, 0)), 0);
        assert_eq!(call!(cuDevicePrimaryCtxRelease_v2(0)), 0);
    }
    d.again(1);
    assert_eq!(read(xc_emulated_fault), "");
    d.alloc(1);
}

#[test]
fn what_a_reset_forgets_is_not_given_again() {
    let d = Driver::new();
    let (at, stream, pinned) = (d.alloc(256), d.stream(), d.pinned(16));
    d.again(1);
    assert_ne!(d.alloc(256), at);
    assert_ne!(d.stream(), stream);
    assert_eq!(call!(cuMemFree_v2(at)), 1);
    assert_eq!(call!(cuStreamSynchronize(stream)), 400);
    assert_eq!(call!(cuMemFreeHost(pinned.cast())), 0);
}
