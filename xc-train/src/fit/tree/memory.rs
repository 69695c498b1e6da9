//! What training trees will take, and which option makes it fit.

use crate::fit::Context;
use crate::fit::FitError;
use crate::fit::memory::Standing;
use crate::fit::network::sparse_ids;
use xc_model::message::format_bytes;
use xc_tree::{TrainInput, TreeMemory, TreeParams};

/// Buffers of the files that a level goes to, and what is saved beside the trees.
const SAVING: u64 = 10 << 20;

/// A training of trees whose memory is foreseen.
pub(super) struct Forecast<'a> {
    pub(super) input: TrainInput<'a>,
    pub(super) params: &'a TreeParams,
    pub(super) threads: usize,
    /// Whether the features are made of text, so that options make fewer.
    pub(super) of_text: bool,
    /// The process once the data are read.
    pub(super) standing: Standing,
    /// Whether the trees, and then the model, stay in memory.
    pub(super) stays: bool,
}

impl Forecast<'_> {
    fn memory(&self, params: &TreeParams, threads: usize) -> TreeMemory {
        let of = if self.stays { TreeMemory::in_memory } else { TreeMemory::kept };
        of(&self.input, params, threads)
    }

    fn total(&self, memory: &TreeMemory) -> u64 {
        self.standing.peak_with(memory.peak().saturating_add(SAVING))
    }

    /// Bytes that will be resident at most, the data included.
    pub(super) fn needed(&self) -> u64 {
        self.total(&self.memory(self.params, self.threads))
    }

    /// Refuses what does not fit: says what needs it and what would help. Gives the bytes that are [`needed`](Self::needed).
    pub(super) fn check(&self, context: &Context<'_>) -> Result<u64, FitError> {
        let memory = self.memory(self.params, self.threads);
        let needed = self.total(&memory);
        context.budget.check("xc train tree", needed, |limit| {
            let named = [
                ("data", self.standing.resident()),
                ("label vectors", memory.clustering),
                ("rankers", memory.rankers),
                ("packing", memory.packing),
            ];
            let parts = named.map(|(name, n)| format!("{name} {}", format_bytes(n))).join(", ");
            Some(format!("{parts} (the last three one after the other); {}", self.advice(limit)))
        })?;
        Ok(needed)
    }

    /// Options that make it fit, those first that change answers least.
    fn advice(&self, limit: u64) -> String {
        let with = |threads: usize, nnz: Option<usize>| {
            let params = TreeParams { max_label_nnz: nnz.or(self.params.max_label_nnz), ..self.params.clone() };
            self.total(&self.memory(&params, threads))
        };
        let typed = |threads: usize, nnz: Option<usize>| {
            let threads = (threads < self.threads).then(|| format!("--threads {threads}"));
            let nnz = nnz.map(|nnz| format!("--cluster.max-label-nnz {nnz}"));
            threads.into_iter().chain(nnz).collect::<Vec<_>>().join(" ")
        };
        let most = self.params.max_label_nnz.unwrap_or(1 << 14);
        let sizes = std::iter::successors(Some(most / 2), |n| Some(n / 2)).take_while(|&n| n >= 16);
        let tries = [(1, None)].into_iter().chain(sizes.clone().map(|n| (self.threads, Some(n))));
        let tries = tries.chain(sizes.map(|n| (1, Some(n)))).filter(|&(threads, nnz)| !typed(threads, nnz).is_empty());
        let mut best: Option<((usize, Option<usize>), u64)> = None;
        for (threads, nnz) in tries {
            let needed = with(threads, nnz);
            if needed <= limit {
                return format!("with {} it would need {}", typed(threads, nnz), format_bytes(needed));
            }
            if best.is_none_or(|(_, least)| needed < least) {
                best = Some(((threads, nnz), needed));
            }
        }
        match best {
            Some(((threads, nnz), needed)) if needed < with(self.threads, None) => {
                format!("even with {} it would need {}", typed(threads, nnz), format_bytes(needed))
            }
            _ if sparse_ids(self.input.labels).is_some() => sparse_ids(self.input.labels).unwrap_or_default(),
            _ if self.of_text => {
                "fewer features (--text.min-df 5, --text.max-features N) or instances would help".to_owned()
            }
            _ => "fewer instances or features would help".to_owned(),
        }
    }
}
