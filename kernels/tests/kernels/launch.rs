//! Launches that are refused before the driver sees them.

use xc_kernels::{Device, Emulated, Error, Kernel, Plan, Shape};

const SMALL: Shape = Shape { grid: [1, 1, 1], threads: 256, shared: 8 };

/// A launch of the kernel with `n` arguments, which reads and writes nothing: no row has keys.
fn launched(device: &Device, kernel: &Kernel, n: usize, shape: Shape) -> Result<(), Error> {
    let (keys, lengths) = (device.zeros::<u64>(1)?, device.zeros::<u32>(1)?);
    let (mut out, mut n_out) = (device.zeros::<u64>(1)?, device.zeros::<u32>(1)?);
    let (stride, k, room) = (0u64, 1u32, 1u32);
    let mut call = kernel.call(device.stream()).arg(&keys).arg(&lengths).arg(&stride).arg(&k).arg(&room);
    if n == 7 {
        call = call.arg(&mut out).arg(&mut n_out);
    }
    // SAFETY: one row without keys, or a shape that is refused.
    unsafe { call.launch(shape) }?;
    device.download(&lengths).map(|_| ())
}

#[test]
fn what_a_kernel_or_the_card_cannot_do_is_an_error() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let kernel = device.kernel("xc_select_k").unwrap();
    let of = |shape| launched(&device, &kernel, 7, shape);
    assert_eq!(of(SMALL), Ok(()));
    assert_eq!(of(Shape { grid: [0, 1, 1], ..SMALL }), Ok(()));
    let refused = [
        (
            Shape { grid: [1 << 31, 1, 1], ..SMALL },
            "xc_select_k: 2147483648 blocks along x, at most 2147483647 expected",
        ),
        (Shape { grid: [1, 65536, 1], ..SMALL }, "xc_select_k: 65536 blocks along y, at most 65535 expected"),
        (Shape { grid: [1, 1, 65536], ..SMALL }, "xc_select_k: 65536 blocks along z, at most 65535 expected"),
        (Shape { threads: 257, ..SMALL }, "xc_select_k: 257 threads in a block, at most 256 expected"),
        (Shape { threads: 0, ..SMALL }, "xc_select_k: 1 blocks without threads, at most 0 expected"),
    ];
    for (shape, expected) in refused {
        assert_eq!(of(shape).unwrap_err().to_string(), expected);
    }
    let most = device.limits().shared as usize;
    let error = of(Shape { shared: most, ..SMALL }).unwrap_err().to_string();
    assert!(error.contains("bytes of shared memory in a block, at most"), "{error}");
    assert_eq!(of(Shape { shared: 100 << 10, ..SMALL }), Ok(()));
    let expected = Error::Arguments { kernel: "xc_select_k", got: 5, expected: 7 };
    assert_eq!(launched(&device, &kernel, 5, SMALL), Err(expected));
}

#[test]
fn a_kernel_that_no_text_has_is_an_error() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    for name in ["", "xc_select", "xc_select_k2", "xc_nothing\0"] {
        assert_eq!(device.kernel(name).unwrap_err(), Error::NoKernel { name: name.to_owned() });
    }
}

#[test]
fn a_plan_larger_than_the_card_is_refused_with_its_numbers() {
    let emulated = Emulated::hold();
    emulated.set_device((8, 0), 1 << 20, 1, 13000);
    let device = Device::open(0).unwrap();
    let free = device.free_memory().unwrap();
    let plan = Plan::new().of::<f32>("weights", free as usize / 4).of::<u32>("labels", 25);
    let error = plan.fits_on(&device).unwrap_err();
    let expected = format!(
        "the device has {free} bytes free, {} expected, of these {} for weights",
        free / 4 * 4 + 100,
        free / 4 * 4
    );
    if emulated.is_emulated() {
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(Plan::new().of::<u8>("answers", 1).fits_on(&device), Ok(()));
    let whole = Plan::new().of::<u64>("weights", usize::MAX).of::<u64>("weights", usize::MAX);
    assert_eq!(whole.bytes(), u64::MAX);
}
