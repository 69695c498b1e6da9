//! Answers of the driver, compared with those of an H100 and an H200 (driver 580.159.04, CUDA 13.0), and mistakes of
//! host code that have to be found whatever the seed.

mod capture;
mod devices;
mod faults;
mod launches;
mod loads;
mod memory;
mod streams;

use cuda::knobs::*;
use cuda::*;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A driver as it is at first, held by one test at a time.
struct Driver {
    _alone: MutexGuard<'static, ()>,
}

/// Calls the driver. What all of these calls are given points to room for what they ask for.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: see above.
        unsafe { $name($($arg),*) }
    };
}
use call;

/// Each thread of a block of 32 writes its number where the parameter points to.
const NUMBERS: &str = "mov.u32 %r0, %tid.x; mul.wide.u32 %x1, %r0, 4; add.s64 %x0, %x0, %x1; st.global.u32 [%x0], %r0;";

/// A kernel `k` that has an address in %x0.
fn text(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_a)\n{{\n.reg .pred %p<4>; .reg \
         .b32 %r<8>; .reg .b64 %x<8>;\nld.param.u64 %x0, [k_a];\n{body}\nret;\n}}\n"
    )
}

impl Driver {
    /// Fresh, with a card of 1 GiB whose context is current.
    fn new() -> Self {
        let driver = Self::bare((9, 0), 1 << 30, 1, 13000);
        assert_eq!(call!(cuInit(0)), 0);
        driver.open();
        driver
    }

    /// Fresh, with a card of some kind, before `cuInit`.
    fn bare((major, minor): (u32, u32), memory: u64, n_cards: u32, version: u32) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        xc_emulated_set_device(major, minor, memory, n_cards, version);
        xc_emulated_set_seed(1);
        xc_emulated_set_turn(0);
        xc_emulated_set_blocks(0, u64::MAX);
        xc_emulated_reset();
        Self { _alone: alone }
    }

    fn open(&self) {
        let mut context = 0;
        assert_eq!(call!(cuDevicePrimaryCtxRetain(&mut context, 0)), 0);
        assert_eq!(call!(cuCtxSetCurrent(context)), 0);
    }

    /// Forgets everything and opens the card again, with another seed.
    fn again(&self, seed: u64) {
        xc_emulated_reset();
        xc_emulated_set_seed(seed);
        assert_eq!(call!(cuInit(0)), 0);
        self.open();
    }

    fn load(&self, text: &str) -> (Code, usize) {
        let (text, mut module) = (CString::new(text).unwrap(), 0);
        (call!(cuModuleLoadData(&mut module, text.as_ptr().cast())), module)
    }

    fn function(&self, text: &str) -> usize {
        let (code, module) = self.load(text);
        assert_eq!(code, 0, "{}", read(xc_emulated_refusal));
        let mut function = 0;
        assert_eq!(call!(cuModuleGetFunction(&mut function, module, c"k".as_ptr())), 0);
        function
    }

    fn alloc(&self, len: usize) -> u64 {
        let mut at = 0;
        assert_eq!(call!(cuMemAlloc_v2(&mut at, len)), 0);
        at
    }

    fn pinned(&self, len: usize) -> *mut u8 {
        let mut at = null_mut();
        assert_eq!(call!(cuMemHostAlloc(&mut at, len, 0)), 0);
        at.cast()
    }

    fn stream(&self) -> usize {
        let mut stream = 0;
        assert_eq!(call!(cuStreamCreate(&mut stream, 1)), 0);
        stream
    }

    fn event(&self) -> usize {
        let mut event = 0;
        assert_eq!(call!(cuEventCreate(&mut event, 0)), 0);
        event
    }

    /// Launches a kernel with an address.
    fn launch(&self, function: usize, grid: [u32; 3], block: [u32; 3], shared: u32, stream: usize, at: u64) -> Code {
        let params = [(&raw const at).cast::<c_void>()];
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        call!(cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params.as_ptr(), null()))
    }

    /// One warp.
    fn warp(&self, function: usize, stream: usize, at: u64) -> Code {
        self.launch(function, [1; 3], [32, 1, 1], 0, stream, at)
    }

    fn words(&self, at: u64, n: usize) -> Vec<u32> {
        let mut out = vec![0u32; n];
        assert_eq!(call!(cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), at, 4 * n)), 0);
        out
    }
}

/// A text that the driver writes.
fn read(from: unsafe extern "C" fn(*mut std::ffi::c_char, usize) -> usize) -> String {
    let needed = call!(from(null_mut(), 0));
    let mut bytes = vec![0u8; needed];
    call!(from(bytes.as_mut_ptr().cast(), needed));
    String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned()
}
