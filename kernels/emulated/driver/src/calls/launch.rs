//! Launches and graphs.

use super::module::SHARED;
use super::{calls, put};
use crate::codes::*;
use crate::operation::Operation;
use crate::state::{Answer, Capture, Driver};
use std::ffi::{c_uint, c_ulonglong, c_void};
use xc_emulated_ptx::Launch;

/// What a card answers to a launch that it cannot do: code 1, which does not stay.
fn check(d: &mut Driver, function: usize, launch: &Launch) -> Answer {
    let function = d.function(function)?;
    let kernel = &function.module.kernels[function.kernel];
    let [gx, gy, gz] = launch.grid;
    let threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
    let most_threads = u64::from(kernel.max_threads.unwrap_or(1024).min(1024));
    let most_shared = function.most_shared.unwrap_or(0).max(SHARED.saturating_sub(kernel.static_shared as u32));
    let fits = gx > 0
        && gx <= i32::MAX as u32
        && (1..=65535).contains(&gy)
        && (1..=65535).contains(&gz)
        && (1..=most_threads).contains(&threads)
        && launch.block[2] <= 64
        && launch.shared <= most_shared;
    if fits { Ok(()) } else { Err(INVALID_VALUE) }
}

calls! {
    Context fn cuLaunchKernel(
        function: usize,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        shared: c_uint,
        stream: usize,
        params: *const *const c_void,
        extra: *const *const c_void,
    ) |d| {
        let (seed, turn, blocks) = (d.knobs.seed.wrapping_add(d.time), d.knobs.turn, d.knobs.blocks);
        let launch = Launch { grid: [gx, gy, gz], block: [bx, by, bz], shared, blocks, seed, turn };
        check(d, function, &launch)?;
        if !extra.is_null() {
            return Err(INVALID_VALUE);
        }
        let function = d.function(function)?;
        let (module, kernel) = (function.module.clone(), function.kernel);
        let mut bytes = Vec::new();
        for (i, &(at, len)) in module.kernels[kernel].params.iter().enumerate() {
            bytes.resize(at, 0);
            bytes.extend_from_slice(std::slice::from_raw_parts((*params.add(i)).cast::<u8>(), len));
        }
        d.ask(stream, Operation::Launch { module, kernel, launch, params: bytes })
    }

    Context fn cuStreamBeginCapture_v2(stream: usize, mode: c_uint) |d| {
        if stream <= 2 {
            return Err(CAPTURE_UNSUPPORTED);
        }
        let stream = d.stream(stream)?;
        if stream.capture.is_some() {
            return Err(ILLEGAL_STATE);
        }
        stream.capture = Some(Capture { operations: Vec::new(), relaxed: mode == 2, invalid: false });
        Ok(())
    }

    Context fn cuStreamEndCapture(stream: usize, out: *mut usize) |d| {
        let capture = d.stream(stream)?.capture.take().ok_or(ILLEGAL_STATE)?;
        if capture.invalid {
            put(out, 0)?;
            return Err(CAPTURE_INVALIDATED);
        }
        let handle = d.handle();
        d.graphs.insert(handle, capture.operations);
        put(out, handle)
    }

    Context fn cuStreamIsCapturing(stream: usize, out: *mut c_uint) |d| {
        put(out, match &d.stream(stream)?.capture {
            None => 0,
            Some(capture) if capture.invalid => 2,
            Some(_) => 1,
        })
    }

    Context fn cuGraphInstantiateWithFlags(out: *mut usize, graph: usize, _flags: c_ulonglong) |d| {
        let operations = d.graphs.get(&graph).cloned().ok_or(INVALID_HANDLE)?;
        let handle = d.handle();
        d.graphs.insert(handle, operations);
        put(out, handle)
    }

    Context fn cuGraphLaunch(graph: usize, stream: usize) |d| {
        let operations = d.graphs.get(&graph).cloned().ok_or(INVALID_HANDLE)?;
        operations.into_iter().try_for_each(|operation| d.ask(stream, operation))
    }

    Context fn cuGraphUpload(graph: usize, _stream: usize) |d| {
        d.graphs.get(&graph).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    Context fn cuGraphExecDestroy(graph: usize) |d| { d.graphs.remove(&graph).map(|_| ()).ok_or(INVALID_HANDLE) }

    Context fn cuGraphDestroy(graph: usize) |d| { d.graphs.remove(&graph).map(|_| ()).ok_or(INVALID_HANDLE) }
}
