//! How long each kernel runs, between events around its launch.

use crate::Error;
use crate::error::asked;
use cudarc::driver::CudaEvent;
use std::sync::{Mutex, PoisonError};

/// A kernel, and the events around a launch of it.
pub(crate) type Watched = (&'static str, (CudaEvent, CudaEvent));

static LAUNCHES: Mutex<Option<Vec<Watched>>> = Mutex::new(None);

/// From now on every launch of this process is timed, until [`launches`] ends that.
pub fn begin() {
    *LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// The launches since [`begin`], in their order: the kernel, and its milliseconds on the device. Waits for them.
///
/// # Errors
/// The device failed.
pub fn launches() -> Result<Vec<(&'static str, f32)>, Error> {
    let launches = LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner).take();
    let time = |(name, (from, to)): Watched| Ok((name, from.elapsed_ms(&to).map_err(asked("the time of a kernel"))?));
    launches.into_iter().flatten().map(time).collect()
}

pub(crate) fn is_on() -> bool {
    LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

pub(crate) fn add(watched: Watched) {
    if let Some(launches) = &mut *LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner) {
        launches.push(watched);
    }
}
