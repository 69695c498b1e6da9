//! Launches that are checked before they reach the driver.

use crate::error::asked;
use crate::{Error, Kernel};
use cudarc::driver::sys::CUfunction_attribute as Asked;
use cudarc::driver::{CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};
use std::sync::Arc;

/// How many threads run a kernel, and what each block of them shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [usize; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: usize,
}

/// A kernel with its arguments so far.
#[derive(Debug)]
#[must_use = "nothing runs before `launch`"]
pub struct Call<'a> {
    kernel: &'a Kernel,
    arguments: LaunchArgs<'a>,
    n: usize,
}

/// Bytes of shared memory that a kernel need not ask for.
const SHARED_FOR_ALL: u32 = 48 << 10;

impl<'a> Call<'a> {
    pub(crate) fn new(kernel: &'a Kernel, stream: &'a Arc<CudaStream>) -> Self {
        Self { kernel, arguments: stream.launch_builder(&kernel.function), n: 0 }
    }

    /// The next argument: a number or struct by reference, or memory of the card.
    pub fn arg<T>(mut self, argument: T) -> Self
    where
        LaunchArgs<'a>: PushKernelArg<T>,
    {
        self.arguments.arg(argument);
        self.n += 1;
        self
    }

    /// Runs the kernel on the stream; an empty grid runs nothing.
    ///
    /// # Errors
    /// Too many blocks or threads, too much shared memory, another number of arguments than the kernel has; what the
    /// driver answers. Errors of the running kernel come with a later call.
    ///
    /// # Safety
    /// The arguments have the types and order of the kernel's text, memory has the lengths that it asks for, and what
    /// it writes was given as `&mut`.
    pub unsafe fn launch(mut self, shape: Shape) -> Result<(), Error> {
        let kernel = self.kernel;
        if self.n != kernel.n_parameters {
            return Err(Error::Arguments { kernel: kernel.name, got: self.n, expected: kernel.n_parameters });
        }
        check(kernel, &shape)?;
        if shape.grid.contains(&0) {
            return Ok(());
        }
        let [x, y, z] = shape.grid.map(|n| n as u32);
        let shared_mem_bytes = shape.shared as u32;
        if kernel.static_shared + shared_mem_bytes > SHARED_FOR_ALL {
            let most = Asked::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            kernel.function.set_attribute(most, shape.shared as i32).map_err(asked("shared memory of a kernel"))?;
        }
        let how = LaunchConfig { grid_dim: (x, y, z), block_dim: (shape.threads, 1, 1), shared_mem_bytes };
        #[cfg(feature = "emulated")]
        if crate::watch::is_on() {
            self.arguments.record_kernel_launch(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        }
        // SAFETY: the caller's promise; the shape was checked.
        let _events = unsafe { self.arguments.launch(how) }.map_err(asked("launching a kernel"))?;
        #[cfg(feature = "emulated")]
        if let Some(events) = _events {
            crate::watch::add((kernel.name, events));
        }
        Ok(())
    }
}

/// Whether the kernel and the card allow `shape`.
fn check(kernel: &Kernel, shape: &Shape) -> Result<(), Error> {
    let limits = kernel.limits;
    let shared = (limits.shared - kernel.static_shared.min(limits.shared)).into();
    let refused = [
        ("blocks along x", shape.grid[0] as u64, limits.grid[0].into()),
        ("blocks along y", shape.grid[1] as u64, limits.grid[1].into()),
        ("blocks along z", shape.grid[2] as u64, limits.grid[2].into()),
        ("threads in a block", shape.threads.into(), kernel.most_threads.min(limits.threads).into()),
        ("bytes of shared memory in a block", shape.shared as u64, shared),
    ];
    match refused.into_iter().find(|&(_, got, most)| got > most) {
        Some((what, got, most)) => Err(Error::Launch { kernel: kernel.name, what, got, most }),
        None if shape.threads == 0 => {
            Err(Error::Launch { kernel: kernel.name, what: "blocks without threads", got: 1, most: 0 })
        }
        None => Ok(()),
    }
}
