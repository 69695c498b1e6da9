//! Cards that are not what a program needs.

use super::*;

fn attribute(which: u32) -> i32 {
    let mut value = 0;
    assert_eq!(call!(cuDeviceGetAttribute(&mut value, which, 0)), 0);
    value
}

#[test]
fn without_a_card_the_driver_says_so() {
    let _d = Driver::bare((9, 0), 1 << 30, 0, 13000);
    let mut n = 7;
    assert_eq!(call!(cuDeviceGetCount(&mut n)), 3);
    assert_eq!(call!(cuInit(0)), 100);
}

#[test]
fn before_it_is_initialised_it_answers_its_version_alone() {
    let d = Driver::bare((9, 0), 1 << 30, 2, 11080);
    let (mut version, mut device) = (0, 0);
    assert_eq!((call!(cuDriverGetVersion(&mut version)), version), (0, 11080));
    assert_eq!(call!(cuDeviceGet(&mut device, 0)), 3);
    assert_eq!(call!(cuInit(0)), 0);
    assert_eq!((call!(cuDeviceGet(&mut device, 1)), device), (0, 1));
    assert_eq!(call!(cuDeviceGet(&mut device, 2)), 101);
    d.open();
    // This driver knows PTX 7.8.
    assert_eq!(d.load(&text(NUMBERS).replace("7.0", "8.0")).0, 222);
    assert_eq!(d.load(&text(NUMBERS)).0, 0);
}

#[test]
fn an_old_card_takes_no_newer_target() {
    let d = Driver::bare((7, 5), 1 << 30, 1, 13000);
    assert_eq!(call!(cuInit(0)), 0);
    d.open();
    assert_eq!((attribute(75), attribute(76)), (7, 5));
    assert_eq!(d.load(&text(NUMBERS)).0, 218);
    assert_eq!(d.load(&text(NUMBERS).replace("sm_80", "sm_75")).0, 0);
}

#[test]
fn memory_is_what_the_card_has() {
    let d = Driver::bare((9, 0), 10_000, 1, 13000);
    assert_eq!(call!(cuInit(0)), 0);
    d.open();
    let (mut free, mut total, mut at) = (0, 0, 0);
    let first = d.alloc(6000);
    assert_eq!(call!(cuMemGetInfo_v2(&mut free, &mut total)), 0);
    assert_eq!((free, total), (4000, 10_000));
    assert_eq!(call!(cuMemAlloc_v2(&mut at, 4001)), 2);
    assert_eq!(call!(cuMemFree_v2(first)), 0);
    assert_eq!(call!(cuMemAlloc_v2(&mut at, 10_000)), 0);
}

#[test]
fn memory_larger_than_this_machine_costs_what_is_touched() {
    let d = Driver::bare((9, 0), 1 << 40, 1, 13000);
    assert_eq!(call!(cuInit(0)), 0);
    d.open();
    let at = d.alloc(1 << 39);
    let function = d.function(&text(NUMBERS));
    assert_eq!(d.warp(function, 0, at + (1 << 38)), 0);
    assert_eq!(d.words(at + (1 << 38), 32), (0..32).collect::<Vec<u32>>());
}

#[test]
fn a_thread_needs_a_context() {
    let _d = Driver::new();
    let code = std::thread::spawn(|| {
        let mut at = 0;
        call!(cuMemAlloc_v2(&mut at, 4096))
    });
    assert_eq!(code.join().unwrap(), 201);
}

#[test]
fn codes_have_names() {
    let _d = Driver::new();
    let mut name = null();
    assert_eq!(call!(cuGetErrorName(700, &mut name)), 0);
    // SAFETY: the driver has set it to a text of its own.
    assert_eq!(unsafe { std::ffi::CStr::from_ptr(name) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(call!(cuGetErrorName(12345, &mut name)), 1);
}
