//! The driver's interface, one function a call. Their contract is that of the CUDA driver: pointers point to room for
//! what is asked for.
#![allow(missing_docs, reason = "the CUDA driver's interface documents its calls")]

mod context;
mod launch;
mod memory;
mod module;
mod stream;

pub use context::*;
pub use launch::*;
pub use memory::*;
pub use module::*;
pub use stream::*;

use crate::codes::{Code, INVALID_CONTEXT, INVALID_VALUE, NOT_INITIALIZED, OK};
use crate::state::{Answer, CONTEXT, Driver, driver};

/// Who may call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Everybody, even after a fault.
    Nothing,
    /// After `cuInit`, as long as there was no fault.
    Init,
    /// A thread with a context.
    Context,
}

fn answer(needs: Needs, call: impl FnOnce(&mut Driver) -> Answer) -> Code {
    let mut d = driver();
    if needs == Needs::Context && d.initialised && CONTEXT.get() == 0 {
        return INVALID_CONTEXT;
    }
    if needs != Needs::Nothing {
        if d.sticky != OK {
            return d.sticky;
        }
        if !d.initialised {
            return NOT_INITIALIZED;
        }
    }
    call(&mut d).err().unwrap_or(OK)
}

/// Writes an answer where the caller wants it.
///
/// # Safety
///
/// `to` is null or points to room for a value.
unsafe fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Defines calls: `needs fn name(arguments) |driver| { body }`.
macro_rules! calls {
    ($($(#[$about:meta])* $needs:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) |$driver:pat_param| $body:block)*) => {
        $($(#[$about])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::codes::Code {
            $crate::calls::answer($crate::calls::Needs::$needs, |$driver| {
                // SAFETY: pointers are the caller's promise, as the driver's interface has it.
                #[allow(unused_unsafe, reason = "some calls get no pointers")]
                unsafe { $body }
            })
        })*
    };
}
use calls;
