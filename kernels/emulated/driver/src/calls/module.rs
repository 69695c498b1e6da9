//! Modules and functions.

use super::{calls, put};
use crate::codes::*;
use crate::knobs::give;
use crate::state::{Answer, Driver, Function};
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use xc_emulated_ptx::{Module, Options};

/// Numbers of `CUfunction_attribute`.
const MAX_THREADS: c_uint = 0;
const STATIC_SHARED: c_uint = 1;
const PTX_VERSION: c_uint = 5;
const BINARY_VERSION: c_uint = 6;
const MAX_DYNAMIC_SHARED: c_uint = 8;

/// Numbers of `CUjit_option`.
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;

/// Bytes of shared memory of a block: without asking, and at most.
pub(super) const SHARED: u32 = 48 << 10;
pub(super) const SHARED_MOST: u32 = 227 << 10;

fn load(d: &mut Driver, image: *const c_void) -> Answer<usize> {
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller promises a text that ends with a 0.
    let given = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    let text = replaced(d, &given).map_or(given, Cow::Owned);
    // Drivers 11.0 to 11.8 know PTX 7.0 to 7.8, 12.0 knows 8.0, and so on.
    let newest = (d.knobs.version / 1000 - 4, d.knobs.version % 1000 / 10);
    let options = Options { capability: d.knobs.capability, newest, approximate: d.knobs.approximate };
    match Module::parse(&text, options) {
        Ok(module) => {
            let handle = d.handle();
            d.modules.insert(handle, Arc::new(module));
            Ok(handle)
        }
        Err(refusal) => {
            d.refusal = refusal.to_string();
            Err(of_refusal(&refusal))
        }
    }
}

/// What stands in for a text, if there is something.
fn replaced(d: &Driver, text: &str) -> Option<String> {
    let (_, source) = text.lines().next()?.split_once(" from cu/")?;
    let (name, _) = source.split_once(".cu ")?;
    std::fs::read_to_string(d.texts.as_ref()?.join(format!("{name}.ptx"))).ok()
}

impl Driver {
    pub(super) fn function(&mut self, handle: usize) -> Answer<&mut Function> {
        self.functions.get_mut(&handle).ok_or(INVALID_HANDLE)
    }
}

calls! {
    Context fn cuModuleLoadData(out: *mut usize, image: *const c_void) |d| { put(out, load(d, image)?) }

    Context fn cuModuleLoadDataEx(
        out: *mut usize,
        image: *const c_void,
        n: c_uint,
        options: *const c_uint,
        values: *const *mut c_void,
    ) |d| {
        let loaded = load(d, image);
        if loaded.is_err() {
            let value = |which| (0..n as usize).find(|&i| *options.add(i) == which).map(|i| *values.add(i));
            if let (Some(log), Some(bytes)) = (value(ERROR_LOG), value(ERROR_LOG_BYTES)) {
                give(&d.refusal, log.cast(), bytes as usize);
            }
        }
        put(out, loaded?)
    }

    Context fn cuModuleUnload(module: usize) |d| {
        d.modules.remove(&module).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    Context fn cuModuleGetFunction(out: *mut usize, module: usize, name: *const c_char) |d| {
        let name = CStr::from_ptr(name).to_string_lossy();
        let module = d.modules.get(&module).cloned().ok_or(INVALID_HANDLE)?;
        let kernel = module.kernels.iter().position(|k| k.name == name).ok_or(NOT_FOUND)?;
        let handle = d.handle();
        d.functions.insert(handle, Function { module, kernel, most_shared: None });
        put(out, handle)
    }

    Context fn cuFuncGetAttribute(out: *mut c_int, which: c_uint, function: usize) |d| {
        let (major, minor) = d.knobs.capability;
        let function = d.function(function)?;
        let kernel = &function.module.kernels[function.kernel];
        put(out, match which {
            MAX_THREADS => kernel.max_threads.unwrap_or(1024) as c_int,
            STATIC_SHARED => kernel.static_shared as c_int,
            PTX_VERSION => 80,
            BINARY_VERSION => (10 * major + minor) as c_int,
            MAX_DYNAMIC_SHARED => function.most_shared.unwrap_or(SHARED.saturating_sub(kernel.static_shared as u32)) as c_int,
            // Registers and local memory are decided by a compiler that is not here.
            _ => 0,
        })
    }

    Context fn cuFuncSetAttribute(function: usize, which: c_uint, value: c_int) |d| {
        let function = d.function(function)?;
        if which == MAX_DYNAMIC_SHARED {
            let static_shared = function.module.kernels[function.kernel].static_shared as u32;
            let value = u32::try_from(value).map_err(|_| INVALID_VALUE)?;
            if value > SHARED_MOST.saturating_sub(static_shared) {
                return Err(INVALID_VALUE);
            }
            function.most_shared = Some(value);
        }
        Ok(())
    }

    Context fn cuFuncSetCacheConfig(function: usize, _which: c_uint) |d| { d.function(function).map(|_| ()) }

    Context fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out: *mut c_int,
        function: usize,
        block: c_int,
        shared: usize,
    ) |d| {
        let function = d.function(function)?;
        let kernel = &function.module.kernels[function.kernel];
        // Registers are not known here: by threads, blocks and shared memory, of which each block costs a kB more.
        let by_threads = 2048 / block.max(1);
        let by_shared = (228 << 10) / (kernel.static_shared + shared + 1024);
        put(out, by_threads.min(32).min(by_shared as c_int))
    }
}
