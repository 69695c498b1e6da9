//! What a command used: time of the clock, of the processors, and memory at its peak.

use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xc_train::fit::memory::peak_resident_bytes;

/// Clock ticks a second in `/proc/self/stat`; the kernel's interface fixes it at 100 whatever its
/// own timer does.
const TICKS: f64 = 100.0;
/// How often anonymous memory is looked at: the kernel keeps no peak of it.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// Measures from its making on.
pub(crate) struct Meter {
    start: Instant,
    start_cpu_s: f64,
    peak_anon: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sampler: Option<JoinHandle<()>>,
}

/// What was used; numbers that the system does not tell are `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: Option<f64>,
    /// Largest resident set of the process so far, mapped files included.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Largest resident memory that no file backs.
    pub(crate) peak_anon_bytes: Option<u64>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        let peak_anon = Arc::new(AtomicU64::new(anon_bytes().unwrap_or(0)));
        let stop = Arc::new(AtomicBool::new(false));
        let (peak, stopped) = (peak_anon.clone(), stop.clone());
        let sampler = std::thread::Builder::new().name("xc-memory".into()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                peak.fetch_max(anon_bytes().unwrap_or(0), Ordering::Relaxed);
                std::thread::park_timeout(SAMPLE_EVERY);
            }
        });
        Self { start: Instant::now(), start_cpu_s: cpu_s().unwrap_or(0.0), peak_anon, stop, sampler: sampler.ok() }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.peak_anon.fetch_max(anon_bytes().unwrap_or(0), Ordering::Relaxed);
        let anon = self.peak_anon.load(Ordering::Relaxed);
        Usage {
            wall_s: self.start.elapsed().as_secs_f64(),
            cpu_s: cpu_s().map(|s| s - self.start_cpu_s),
            peak_rss_bytes: peak_resident_bytes(),
            peak_anon_bytes: (anon > 0).then_some(anon),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            sampler.thread().unpark();
            let _ = sampler.join();
        }
    }
}

fn anon_bytes() -> Option<u64> {
    xc_train::fit::memory::status_bytes("RssAnon:")
}

pub(crate) fn cpu_s() -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold blanks; user and system time are the 12th and 13th field
    // after it.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_meter_sees_memory_and_processor_time() {
        let meter = Meter::start();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let mut sum = 0u64;
        while meter.start.elapsed() < Duration::from_millis(60) {
            sum += u64::from(block[sum as usize % block.len()]);
        }
        let usage = meter.usage();
        assert!(usage.peak_anon_bytes.unwrap() >= 64 << 20, "{usage:?} {sum}");
        assert!(usage.peak_rss_bytes.unwrap() >= usage.peak_anon_bytes.unwrap() / 2, "{usage:?}");
        assert!(
            usage.wall_s >= 0.06 && usage.cpu_s.is_some() && xc_train::fit::memory::available_bytes().is_some(),
            "{usage:?}"
        );
    }
}
