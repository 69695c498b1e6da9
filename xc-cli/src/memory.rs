//! How much memory a command may take: foreseen before the work, and watched while it is done.

use crate::bytes::format_bytes;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;
pub(crate) use xc_train::fit::memory::{Budget, available_bytes, resident_bytes, total_bytes};

/// How often resident memory is looked at, where that is often enough: in this time some MiB can be
/// touched.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// Bytes that a program touches in a microsecond, at most: a limit is looked at before what it leaves
/// beyond itself is used up.
const TOUCHED_PER_US: u64 = 4096;
/// The same where no limit is given.
const LOOK_SELDOM: Duration = Duration::from_millis(50);
/// The least limit that is watched: the program itself takes up to half of it. Smaller ones
/// bound only what is foreseen. A program that is not optimised is twice as large.
const WATCHED: u64 = if cfg!(debug_assertions) { 48 << 20 } else { 24 << 20 };
/// How much of the limit ends the program: what is touched meanwhile comes on top.
const BEYOND: f64 = 1.04;

/// Watches from a thread of its own, as long as the program runs: it ends, with the exit code
/// for a lack of memory, when it has more than the limit, or, where none is given, before the
/// system ends some program because there is no memory left.
pub(crate) fn watch(budget: Budget) {
    let watch = move || match budget {
        Budget::Given(limit) => loop {
            let resident = resident_bytes().unwrap_or(0);
            if resident as f64 > limit.max(WATCHED) as f64 * BEYOND {
                end(format_args!(
                    "{} are resident, more than --max-memory {}",
                    format_bytes(resident),
                    format_bytes(limit)
                ));
            }
            sleep(look_every(limit));
        },
        Budget::Free(_) => {
            let total = total_bytes().unwrap_or(u64::MAX);
            loop {
                let resident = resident_bytes().unwrap_or(0);
                // Whoever has little is not to blame.
                if resident > total / 4
                    && let Some(free) = available_bytes()
                    && free < total / 100
                {
                    end(format_args!(
                        "out of memory: {} are resident, {} are free",
                        format_bytes(resident),
                        format_bytes(free)
                    ));
                }
                sleep(LOOK_SELDOM);
            }
        }
        Budget::Unknown => {}
    };
    // Without the thread the command works, unwatched.
    let _ = std::thread::Builder::new().name("xc-limit".into()).spawn(watch);
}

/// A hundredth of the limit may be touched between two looks.
fn look_every(limit: u64) -> Duration {
    Duration::from_micros(limit / 100 / TOUCHED_PER_US).clamp(Duration::from_micros(200), LOOK_EVERY)
}

#[expect(clippy::exit, reason = "no safe point of the work may come soon enough")]
fn end(why: std::fmt::Arguments<'_>) -> ! {
    xc_store::atomic::remove_partial();
    let further = if crate::interrupt::has_parts() { "; go on with --resume and more memory" } else { "" };
    let _ = writeln!(std::io::stderr(), "xc: error: {why}{further}");
    std::process::exit(3)
}
