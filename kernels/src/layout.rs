//! Structs that kernels take by value, laid out alike on both sides.

use crate::{Device, Error, Shape};

/// Name, size and fields of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Name of the struct.
    pub name: &'static str,
    /// Its bytes.
    pub size: usize,
    /// Name and offset of each field, in their order.
    pub fields: &'static [(&'static str, usize)],
}

/// A struct of plain numbers that a kernel takes by value, declared by [`arguments!`](crate::arguments).
pub trait Argument: Copy {
    /// How it is laid out here.
    const LAYOUT: Layout;
}

/// A number that a kernel knows under the same layout.
pub trait Plain: Copy {}
impl Plain for u32 {}
impl Plain for i32 {}
impl Plain for u64 {}
impl Plain for f32 {}
impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Declares structs that kernels take by value. Addresses of the card are `u64` (see [`address`](crate::address)).
///
/// ```
/// xc_kernels::arguments! {
///     /// What is searched for.
///     pub(crate) struct Wanted {
///         keys: u64,
///         k: u32,
///         room: u32,
///     }
/// }
/// # use xc_kernels::layout::Argument;
/// assert_eq!(Wanted::LAYOUT.size, 16);
/// assert_eq!(Wanted::LAYOUT.fields[2], ("room", 12));
/// ```
#[macro_export]
macro_rules! arguments {
    ($($(#[$doc:meta])* $see:vis struct $name:ident { $($(#[$about:meta])* $field:ident: $type:ty),* $(,)? })*) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        $see struct $name { $($(#[$about])* $see $field: $type),* }

        impl $crate::layout::Argument for $name {
            const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                name: stringify!($name),
                size: size_of::<$name>(),
                fields: &[$((stringify!($field), ::core::mem::offset_of!($name, $field))),*],
            };
        }

        const _: () = {
            const fn plain<T: $crate::layout::Plain>() {}
            $(plain::<$type>();)*
        };

        // SAFETY: `repr(C)` over plain numbers, which `plain` proves; `layout::check` compares it with the kernel's.
        unsafe impl $crate::cudarc::driver::DeviceRepr for $name {}
        // SAFETY: as above; zeros are numbers.
        unsafe impl $crate::cudarc::driver::ValidAsZeroBits for $name {}
    )* };
}

/// Compares structs with what `kernel` says of them: it writes, struct after struct, the size and each field's offset
/// (`xc_write_layout` of `xc.cuh`).
pub fn check(device: &Device, kernel: &str, expected: &[Layout]) -> Result<(), Error> {
    let kernel = device.kernel(kernel)?;
    let n: usize = expected.iter().map(|layout| 1 + layout.fields.len()).sum();
    // One more, which has to stay 0.
    let room = n as u32 + 1;
    let mut out = device.zeros::<u32>(n + 1)?;
    let call = kernel.call(device.stream()).arg(&mut out).arg(&room);
    // SAFETY: the kernel writes at most `room` numbers.
    unsafe { call.launch(Shape { grid: [1, 1, 1], threads: 1, shared: 0 }) }?;
    let got = device.download(&out)?;
    let mut at = got.iter().copied();
    for layout in expected {
        let whole = [("the size", layout.size)];
        for &(what, expected) in whole.iter().chain(layout.fields) {
            let (got, expected) = (at.next().unwrap_or(0), expected as u32);
            if got != expected {
                return Err(Error::Layout { name: layout.name, what: what.to_owned(), got, expected });
            }
        }
    }
    match at.next() {
        Some(0) | None => Ok(()),
        Some(got) => Err(Error::Layout { name: "after the last", what: "a number".to_owned(), got, expected: 0 }),
    }
}
