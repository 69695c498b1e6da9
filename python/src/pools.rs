//! Threads that answer batches.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The pools of one process, by number of threads.
struct Pools {
    process: u32,
    by_size: Mutex<HashMap<usize, Arc<ThreadPool>>>,
}

/// Those of this process, or of the one that it was forked from: threads do not survive a fork, and a lock that was held
/// by one stays so. A forked process therefore never looks into what it inherited, and begins a list of its own.
static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

#[allow(unsafe_code, reason = "a list that is swapped without a lock")]
fn pools() -> &'static Pools {
    let process = std::process::id();
    loop {
        let found = POOLS.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below and is never freed; `process` in it is never written again.
        if let Some(pools) = unsafe { found.as_ref() }
            && pools.process == process
        {
            return pools;
        }
        let new = Box::into_raw(Box::new(Pools { process, by_size: Mutex::default() }));
        if POOLS.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: nobody else has seen the box.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// Threads that the process may use.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The pool of so many threads, which is made when it is first asked for.
///
/// # Errors
/// No thread, more than 4096, or more than the system starts.
pub(crate) fn pool(threads: usize) -> Result<Arc<ThreadPool>, String> {
    if !(1..=4096).contains(&threads) {
        return Err(format!("{threads} threads; between 1 and 4096 are expected"));
    }
    let mut by_size = pools().by_size.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = by_size.get(&threads) {
        return Ok(pool.clone());
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("xc-{i}")).build();
    let made = Arc::new(made.map_err(|e| format!("cannot start {threads} threads: {e}"))?);
    by_size.insert(threads, made.clone());
    Ok(made)
}
