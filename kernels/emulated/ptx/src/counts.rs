//! What a launch did, for predictions of its time.

use std::fmt::Write;

/// Counts of a launch.
///
/// Loads and sectors of a tree search equal what ncu counts on an H200 (requests and sectors of global loads), but for
/// loads that the text has twice at one address and ptxas once. Warp instructions are those of PTX: 2 to 5% off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions, counted once for each lane that executes them.
    pub thread_instructions: u64,
    /// Instructions, counted once for each group of lanes that executes them together.
    pub warp_instructions: u64,
    /// Those of warp instructions between two barriers of a block (or its begin, or its end) that no lane accesses global
    /// memory between: what a block does with what it has.
    pub local_instructions: u64,
    /// Loads of groups of lanes from global memory.
    pub loads: u64,
    /// Stores to it.
    pub stores: u64,
    /// Atomics on it.
    pub atomics: u64,
    /// Different 32-byte sectors of each load, added up.
    pub sectors_read: u64,
    /// The same of stores.
    pub sectors_written: u64,
    /// The same of atomics.
    pub sectors_atomic: u64,
    /// Bytes of global memory in the sectors that the launch touches at all.
    pub footprint: u64,
    /// Requests to shared memory.
    pub shared_requests: u64,
    /// Sums and products of floats; a fused one counts twice, a tensor core's by its shape.
    pub flops: u64,
    /// Barriers of blocks.
    pub barriers: u64,
    /// What the lanes of a warp do together: barriers, shuffles, votes, products on tensor cores.
    pub together: u64,
}

impl Counts {
    /// One line of JSON without a line end.
    pub fn json(&self, kernel: &str, grid: [u32; 3], block: [u32; 3]) -> String {
        let mut out = format!("{{\"kernel\": \"{kernel}\", \"grid\": {grid:?}, \"block\": {block:?}");
        let sectors = self.sectors_read + self.sectors_written + self.sectors_atomic;
        for (name, value) in [
            ("thread_instructions", self.thread_instructions),
            ("warp_instructions", self.warp_instructions),
            ("local_instructions", self.local_instructions),
            ("loads", self.loads),
            ("stores", self.stores),
            ("atomics", self.atomics),
            ("sectors", sectors),
            ("sectors_read", self.sectors_read),
            ("sectors_written", self.sectors_written),
            ("footprint", self.footprint),
            ("shared_requests", self.shared_requests),
            ("flops", self.flops),
            ("barriers", self.barriers),
            ("together", self.together),
        ] {
            let _ = write!(out, ", \"{name}\": {value}");
        }
        out + "}"
    }
}
