//! How much memory a command may take: foreseen before the work, and watched while it is done.

use crate::allocator::give_back_small_arrays;
use crate::bytes::{format_bytes, whole_bytes};
use crate::error::CliError;
use crate::measure::{available_bytes, peak_resident_bytes, resident_bytes, total_bytes};
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

/// How often resident memory is looked at, where that is often enough: in this time some MiB can be
/// touched.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// Bytes that a program touches in a microsecond, at most: a limit is looked at before what it leaves
/// beyond itself is used up.
const TOUCHED_PER_US: u64 = 4096;
/// The same where no limit is given.
const LOOK_SELDOM: Duration = Duration::from_millis(50);
/// The least limit that is watched: the program itself takes up to half of it. Smaller ones
/// bound only what is foreseen.
const WATCHED: u64 = 24 << 20;
/// What the process has resident before its work differs by so much from run to run: what is advised
/// leaves room for it.
const ROOM: u64 = 1 << 20;
/// How much of the limit ends the program: what is touched meanwhile comes on top.
const BEYOND: f64 = 1.04;

/// What the process has resident at a moment between two works, and had before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    resident: u64,
    peak: u64,
}

impl Standing {
    /// Now, with `data` bytes of data that are in memory or in mapped files that will be touched.
    pub(crate) fn now(data: u64) -> Self {
        give_back_small_arrays();
        let resident = resident_bytes().unwrap_or(0).max(data);
        Self { resident, peak: peak_resident_bytes().unwrap_or(0).max(resident) }
    }

    /// Bytes that are resident.
    pub(crate) fn resident(self) -> u64 {
        self.resident
    }

    /// The most that will have been resident when the work takes so much more.
    pub(crate) fn peak_with(self, more: u64) -> u64 {
        self.peak.max(self.resident.saturating_add(more))
    }
}

/// What a command may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// What `--max-memory` says.
    Given(u64),
    /// What is free when the command begins, and what it has already.
    Free(u64),
    /// The system does not tell.
    Unknown,
}

impl Budget {
    pub(crate) fn new(given: Option<u64>) -> Self {
        match (given, available_bytes()) {
            (Some(limit), _) => Self::Given(limit),
            (None, Some(free)) => Self::Free(free.saturating_add(resident_bytes().unwrap_or(0))),
            (None, None) => Self::Unknown,
        }
    }

    /// Bytes, at most.
    pub(crate) fn limit(self) -> Option<u64> {
        match self {
            Self::Given(limit) | Self::Free(limit) => Some(limit),
            Self::Unknown => None,
        }
    }

    /// Refuses (exit code 3) work that needs more. `what` names the work, `advice` says what would
    /// make it fit into so many bytes.
    pub(crate) fn check(
        self,
        what: &str,
        needed: u64,
        advice: impl FnOnce(u64) -> Option<String>,
    ) -> Result<(), CliError> {
        let Some(limit) = self.limit().filter(|&limit| needed > limit) else { return Ok(()) };
        let than = match self {
            Self::Given(_) => format!("--max-memory {}", format_bytes(limit)),
            _ => {
                format!(
                    "the {} that are free (--max-memory {} overrides this)",
                    format_bytes(limit),
                    whole_bytes(needed)
                )
            }
        };
        let advice = advice(limit.saturating_sub(ROOM)).map_or_else(String::new, |advice| format!(": {advice}"));
        Err(CliError::missing(format_args!("{what} needs about {}, more than {than}{advice}", format_bytes(needed))))
    }

    /// Watches from a thread of its own, as long as the program runs: it ends, with the exit code
    /// for a lack of memory, when it has more than the limit, or, where none is given, before the
    /// system ends some program because there is no memory left.
    pub(crate) fn watch(self) {
        let watch = move || match self {
            Self::Given(limit) => loop {
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
            Self::Free(_) => {
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
            Self::Unknown => {}
        };
        // Without the thread the command works, unwatched.
        let _ = std::thread::Builder::new().name("xc-limit".into()).spawn(watch);
    }
}

/// A hundredth of the limit may be touched between two looks.
fn look_every(limit: u64) -> Duration {
    Duration::from_micros(limit / 100 / TOUCHED_PER_US).clamp(Duration::from_micros(200), LOOK_EVERY)
}

#[expect(clippy::exit, reason = "no safe point of the work may come soon enough")]
fn end(why: std::fmt::Arguments<'_>) -> ! {
    xc_sparse::atomic::remove_partial();
    let further = if crate::interrupt::has_parts() { "; go on with --resume and more memory" } else { "" };
    let _ = writeln!(std::io::stderr(), "xc: error: {why}{further}");
    std::process::exit(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_limit_and_what_lifts_it() {
        let line = |budget: Budget, needed| {
            let refused = budget.check("the work", needed, |limit| Some(format!("half of {limit} would do")));
            refused.map_err(|e| (e.exit_code(), e.line().unwrap_or_default().to_owned()))
        };
        assert_eq!(line(Budget::Given(1 << 20), 1 << 20), Ok(()));
        let (code, text) = line(Budget::Given(2 << 20), 3 << 20).unwrap_err();
        let said = "the work needs about 3.0 MiB, more than --max-memory 2.0 MiB: half of 1048576 would do";
        assert_eq!((code, &*text), (3, said));
        let (_, text) = line(Budget::Free(1 << 30), u64::MAX).unwrap_err();
        assert!(
            text.contains("more than the 1.0 GiB that are free (--max-memory 17179869184GiB overrides this)"),
            "{text}"
        );
        assert_eq!(line(Budget::Unknown, u64::MAX), Ok(()));
    }
}
