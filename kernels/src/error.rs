//! Why a device cannot be used, each in one line.

use cudarc::driver::DriverError;
use thiserror::Error;

/// Why a device cannot be used, or did not do what it was asked for.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no driver's library.
    #[error("no CUDA driver: the library libcuda is not installed")]
    NoDriver,
    /// The driver's library is not one.
    #[error("the CUDA driver's library has no function {symbol}: it is damaged, or not NVIDIA's")]
    Symbol {
        /// The first function that is missing.
        symbol: &'static str,
    },
    /// The driver is older than what it is called by.
    #[error("the CUDA driver is of version {}.{}, at least {}.{} expected", got / 1000, got % 1000 / 10, least / 1000, least % 1000 / 10)]
    OldDriver {
        /// Its version, 1000 times the major number and 10 times the minor one.
        got: i32,
        /// The oldest that is known to do.
        least: i32,
    },
    /// A driver without a card.
    #[error("there is a CUDA driver, but no card that it can use")]
    NoCard,
    /// No card of this number.
    #[error("no CUDA device {index}; there are {n}, counted from 0")]
    NoSuchCard {
        /// The number asked for.
        index: usize,
        /// Cards that the driver found.
        n: usize,
    },
    /// The card is older than the kernels.
    #[error("CUDA device {name:?} has compute capability {}.{}, at least 8.0 expected", got.0, got.1)]
    OldCard {
        /// Its name.
        name: String,
        /// Major and minor number.
        got: (i32, i32),
    },
    /// A plan needs more memory than the card has free.
    #[error("the device has {free} bytes free, {needed} expected, of these {largest} for {part}")]
    Memory {
        /// Bytes of all parts.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// The largest part.
        part: &'static str,
        /// Its bytes.
        largest: u64,
    },
    /// No text has such a kernel.
    #[error("no kernel is named {name:?}")]
    NoKernel {
        /// The name asked for.
        name: String,
    },
    /// A launch that the kernel or the card does not allow.
    #[error("{kernel}: {got} {what}, at most {most} expected")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much of it.
        got: u64,
        /// How much is allowed.
        most: u64,
    },
    /// A call with too many or too few arguments.
    #[error("{kernel}: {got} arguments, {expected} expected")]
    Arguments {
        /// The kernel.
        kernel: &'static str,
        /// Arguments given.
        got: usize,
        /// Parameters of its text.
        expected: usize,
    },
    /// A struct is laid out otherwise in a kernel.
    #[error("struct {name}: {what} is {got} on the device, {expected} on the host")]
    Layout {
        /// The struct.
        name: &'static str,
        /// Its size, or the offset of a field.
        what: String,
        /// As the kernel's compiler has it.
        got: u32,
        /// As it is here.
        expected: u32,
    },
    /// The driver refused something.
    #[error("{what}: {source}")]
    Driver {
        /// What was asked for.
        what: &'static str,
        /// Its answer.
        source: DriverError,
    },
}

/// An error of the driver together with what it was asked for.
pub(crate) fn asked(what: &'static str) -> impl FnOnce(DriverError) -> Error {
    move |source| Error::Driver { what, source }
}
