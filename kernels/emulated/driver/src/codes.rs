//! Answers of the driver.

use std::ffi::CStr;
use xc_emulated_ptx::{Kind, Refusal};

/// A `CUresult`.
pub type Code = u32;

macro_rules! codes {
    ($($name:ident = $code:literal, $cuda:literal, $meaning:literal;)*) => {
        $(pub(crate) const $name: Code = $code;)*

        /// Name and meaning of a code.
        pub(crate) fn named(code: Code) -> Option<(&'static CStr, &'static CStr)> {
            match code {
                $($name => Some(($cuda, $meaning)),)*
                _ => None,
            }
        }
    };
}

codes! {
    OK = 0, c"CUDA_SUCCESS", c"no error";
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed";
    UNSUPPORTED_PTX_VERSION = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain.";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    MISALIGNED_ADDRESS = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure";
    CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing";
    CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"operation failed due to a previous error during capture";
    CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"dependency created on uncaptured work in another stream";
}

/// The code of a fault. What a card does not notice (races, unwritten bytes, lanes that do not come) is a failed launch.
pub(crate) fn of_fault(kind: Kind) -> Code {
    match kind {
        Kind::Bounds => ILLEGAL_ADDRESS,
        Kind::Misaligned => MISALIGNED_ADDRESS,
        _ => LAUNCH_FAILED,
    }
}

pub(crate) fn of_refusal(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::NotPtx => INVALID_IMAGE,
        Refusal::Version { .. } => UNSUPPORTED_PTX_VERSION,
        Refusal::Line { .. } => INVALID_PTX,
    }
}
