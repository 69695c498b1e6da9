//! The driver, devices and contexts.

use super::{calls, put};
use crate::codes::*;
use crate::knobs::give;
use crate::state::{CONTEXT, Driver};
use std::ffi::{c_char, c_int, c_uint};

/// The context of a device.
fn context_of(device: c_int) -> usize {
    0x100 + device as usize
}

/// Attributes of an H100 by their numbers, apart from its capability and multiprocessors.
const ATTRIBUTES: [(c_uint, c_int); 20] = [
    (1, 1024),       // threads of a block
    (2, 1024),       // by dimension
    (3, 1024),       //
    (4, 64),         //
    (5, i32::MAX),   // blocks of a grid, by dimension
    (6, 65535),      //
    (7, 65535),      //
    (8, 48 << 10),   // shared memory of a block
    (9, 64 << 10),   // constant memory
    (10, 32),        // lanes of a warp
    (12, 65536),     // registers of a block
    (13, 1_980_000), // clock, kHz
    (36, 2_619_000), // memory clock, kHz
    (37, 5120),      // bits of the memory bus
    (38, 50 << 20),  // L2
    (39, 2048),      // threads of a multiprocessor
    (81, 228 << 10), // shared memory of a multiprocessor
    (82, 65536),     // registers of a multiprocessor
    (97, 227 << 10), // shared memory that a block may ask for
    (106, 32),       // blocks of a multiprocessor
];

fn device(d: &Driver, device: c_int) -> Result<(), Code> {
    if u32::try_from(device).is_ok_and(|n| n < d.knobs.n_cards) { Ok(()) } else { Err(INVALID_DEVICE) }
}

calls! {
    Nothing fn cuInit(_flags: c_uint) |d| {
        if d.knobs.n_cards == 0 {
            return Err(NO_DEVICE);
        }
        d.initialised = true;
        Ok(())
    }

    Nothing fn cuDriverGetVersion(out: *mut c_int) |d| { put(out, d.knobs.version as c_int) }

    Nothing fn cuDeviceGetCount(out: *mut c_int) |d| {
        if !d.initialised {
            return Err(NOT_INITIALIZED);
        }
        put(out, d.knobs.n_cards as c_int)
    }

    Init fn cuDeviceGet(out: *mut c_int, ordinal: c_int) |d| {
        device(d, ordinal)?;
        put(out, ordinal)
    }

    Nothing fn cuDeviceGetName(out: *mut c_char, len: c_int, of: c_int) |d| {
        device(d, of)?;
        give("emulated", out, usize::try_from(len).map_err(|_| INVALID_VALUE)?);
        Ok(())
    }

    Init fn cuDeviceTotalMem_v2(out: *mut usize, of: c_int) |d| {
        device(d, of)?;
        put(out, d.knobs.memory as usize)
    }

    Init fn cuDeviceGetUuid_v2(out: *mut [u8; 16], of: c_int) |d| {
        device(d, of)?;
        put(out, [of as u8; 16])
    }

    Init fn cuDeviceGetAttribute(out: *mut c_int, which: c_uint, of: c_int) |d| {
        device(d, of)?;
        let (major, minor) = d.knobs.capability;
        put(out, match which {
            16 => d.knobs.processors as c_int,
            75 => major as c_int,
            76 => minor as c_int,
            _ => ATTRIBUTES.iter().find(|a| a.0 == which).map_or(0, |a| a.1),
        })
    }

    Init fn cuDevicePrimaryCtxRetain(out: *mut usize, of: c_int) |d| {
        device(d, of)?;
        put(out, context_of(of))
    }

    Nothing fn cuDevicePrimaryCtxRelease_v2(of: c_int) |d| { device(d, of) }

    Nothing fn cuDevicePrimaryCtxReset_v2(of: c_int) |d| { device(d, of) }

    Nothing fn cuCtxSetCurrent(context: usize) |d| {
        if d.sticky != OK && context != 0 {
            return Err(d.sticky);
        }
        CONTEXT.set(context);
        Ok(())
    }

    Init fn cuCtxGetCurrent(out: *mut usize) |_| { put(out, CONTEXT.get()) }

    Context fn cuCtxGetDevice(out: *mut c_int) |_| { put(out, (CONTEXT.get() - 0x100) as c_int) }

    Context fn cuCtxSynchronize() |d| {
        d.uncapturable(false)?;
        d.wait_for_all()
    }

    Nothing fn cuGetErrorName(code: Code, out: *mut *const c_char) |_| {
        let (name, _) = named(code).ok_or(INVALID_VALUE)?;
        put(out, name.as_ptr())
    }

    Nothing fn cuGetErrorString(code: Code, out: *mut *const c_char) |_| {
        let (_, text) = named(code).ok_or(INVALID_VALUE)?;
        put(out, text.as_ptr())
    }
}
