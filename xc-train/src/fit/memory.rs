//! How much memory work may take: foreseen before it begins.

use super::FitError;
use std::fs::read_to_string;
use xc_model::message::{format_bytes, whole_bytes};

/// What the process has resident before its work differs by so much from run to run: what is advised
/// leaves room for it.
const ROOM: u64 = 1 << 20;

/// What the process has resident at a moment between two works, and had before.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    resident: u64,
    peak: u64,
}

impl Standing {
    /// Now, with `data` bytes of data that are in memory or in mapped files that will be touched.
    pub fn now(data: u64) -> Self {
        let resident = resident_bytes().unwrap_or(0).max(data);
        Self { resident, peak: peak_resident_bytes().unwrap_or(0).max(resident) }
    }

    /// Bytes that are resident.
    pub fn resident(self) -> u64 {
        self.resident
    }

    /// The most that will have been resident when the work takes so much more.
    pub fn peak_with(self, more: u64) -> u64 {
        self.peak.max(self.resident.saturating_add(more))
    }
}

/// What work may take.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// A limit that was given.
    Given(u64),
    /// What is free when the work begins, and what it has already.
    Free(u64),
    /// The system does not tell.
    Unknown,
}

impl Budget {
    /// A limit that was given, else what is free.
    pub fn new(given: Option<u64>) -> Self {
        match (given, available_bytes()) {
            (Some(limit), _) => Self::Given(limit),
            (None, Some(free)) => Self::Free(free.saturating_add(resident_bytes().unwrap_or(0))),
            (None, None) => Self::Unknown,
        }
    }

    /// Bytes, at most.
    pub fn limit(self) -> Option<u64> {
        match self {
            Self::Given(limit) | Self::Free(limit) => Some(limit),
            Self::Unknown => None,
        }
    }

    /// Refuses work that needs more. `what` names the work, `advice` says what would make it fit into so many bytes.
    ///
    /// # Errors
    /// Of kind [`Memory`](super::FitErrorKind::Memory): what it needs, the limit, and the advice.
    pub fn check(self, what: &str, needed: u64, advice: impl FnOnce(u64) -> Option<String>) -> Result<(), FitError> {
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
        Err(FitError::missing(format_args!("{what} needs about {}, more than {than}{advice}", format_bytes(needed))))
    }
}

/// Resident memory of the process now, mapped files included.
pub fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// The most that was resident so far.
pub fn peak_resident_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// A number of `/proc/self/status`, in bytes.
pub fn status_bytes(field: &str) -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Memory that the machine could give to a new program: what is free, or what the limit of the
/// control group leaves.
pub fn available_bytes() -> Option<u64> {
    let free = meminfo_bytes("MemAvailable:")?;
    Some(group_bytes().map_or(free, |group| free.min(group)))
}

/// Memory of the machine.
pub fn total_bytes() -> Option<u64> {
    meminfo_bytes("MemTotal:")
}

fn meminfo_bytes(field: &str) -> Option<u64> {
    let info = read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|l| l.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// What the limit of the control group at the root of what is seen here leaves: that of a container.
fn group_bytes() -> Option<u64> {
    let number = |name: &str| read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
    let cache = read_to_string("/sys/fs/cgroup/memory.stat").ok()?;
    let cache = cache.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok());
    Some((number("memory.max")?.saturating_sub(number("memory.current")?)).saturating_add(cache.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_limit_and_what_lifts_it() {
        let line = |budget: Budget, needed| {
            let refused = budget.check("the work", needed, |limit| Some(format!("half of {limit} would do")));
            refused.map_err(|e| (e.kind(), e.to_string()))
        };
        assert_eq!(line(Budget::Given(1 << 20), 1 << 20), Ok(()));
        let (kind, text) = line(Budget::Given(2 << 20), 3 << 20).unwrap_err();
        let said = "the work needs about 3.0 MiB, more than --max-memory 2.0 MiB: half of 1048576 would do";
        assert_eq!((kind, &*text), (super::super::FitErrorKind::Memory, said));
        let (_, text) = line(Budget::Free(1 << 30), u64::MAX).unwrap_err();
        assert!(
            text.contains("more than the 1.0 GiB that are free (--max-memory 17179869184GiB overrides this)"),
            "{text}"
        );
        assert_eq!(line(Budget::Unknown, u64::MAX), Ok(()));
    }
}
