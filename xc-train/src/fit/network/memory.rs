//! What training a network will take, and which option makes it fit.

use crate::fit::Context;
use crate::fit::FitError;
use crate::fit::memory::Standing;
use crate::learn::{self, Memory, Workload};
use xc_buffer::dtype::DType;
use xc_model::classifier::{ClassifierParams, HeadParams, SparseHeadParams};
use xc_model::message::format_bytes;
use xc_nn::sampler::LshParams;
use xc_sparse::LabelRows;

/// Threads, files and the log of a training run.
const PROGRAM: u64 = 13 << 20;

/// Units to which a layer is narrowed, at least.
const LEAST_WIDTH: usize = 16;

/// A training run whose memory is foreseen.
#[derive(Clone)]
pub(super) struct Forecast {
    pub(super) params: ClassifierParams,
    pub(super) work: Workload,
    /// The process once the instances are read.
    pub(super) standing: Standing,
    /// Bytes of a finished model that answers the validation instances out of its files.
    pub(super) answering: u64,
    /// Bytes of the outputs that are true of each instance, where they are not its labels.
    pub(super) targets: u64,
    /// Bytes of a model that stays in memory, while it becomes one.
    pub(super) stays: u64,
    /// What to say of ids of labels that are far more than labels, where they are.
    pub(super) sparse_ids: Option<String>,
    /// Units of the intermediate layer, where an option sets them apart from the other widths.
    pub(super) intermediate: Option<usize>,
}

/// What would help where ids of labels go far beyond the number of labels that occur.
pub(in crate::fit) fn sparse_ids(labels: &LabelRows) -> Option<String> {
    let (n, most) = (labels.n_labels(), labels.nnz());
    (n / 2 > most).then(|| {
        format!(
            "label ids go up to {}, and at most {most} labels occur: ids without gaps, or names (jsonl, csv), would help",
            n - 1
        )
    })
}

/// An option as it would be typed, and what it does.
type Change = (String, Box<dyn Fn(&mut Forecast)>);

impl Forecast {
    /// The training, without the data.
    pub(super) fn memory(&self) -> Memory {
        learn::memory(&self.params, &self.work)
    }

    /// All of it.
    pub(super) fn total(&self) -> u64 {
        let work = self.memory().total().saturating_add(self.targets);
        self.standing.peak_with(work.max(self.answering).saturating_add(self.stays).saturating_add(PROGRAM))
    }

    /// All of it by part.
    pub(super) fn parts(&self) -> String {
        let memory = self.memory();
        let named = [
            ("parameters", memory.parameters),
            ("moments", memory.moments),
            ("copy of the best parameters", memory.best),
            ("buffers", memory.buffers),
            ("wide term", memory.wide),
            ("targets", self.targets),
            ("data", self.standing.resident()),
        ];
        let said = named.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {}", format_bytes(*n)));
        said.collect::<Vec<_>>().join(", ")
    }

    /// Refuses what does not fit: says what needs it and what would help.
    pub(super) fn check(&self, what: &str, context: &Context<'_>) -> Result<(), FitError> {
        context.budget.check(what, self.total(), |limit| Some(format!("{}; {}", self.parts(), self.advice(limit))))
    }

    /// The first option that makes it fit, else as many of them as it takes.
    fn advice(&self, limit: u64) -> String {
        let changes = self.changes(limit);
        let with = |change: &Change, forecast: &Self| {
            let mut forecast = forecast.clone();
            change.1(&mut forecast);
            forecast
        };
        for change in &changes {
            let needed = with(change, self).total();
            if needed <= limit {
                return format!("with {} it would need {}", change.0, format_bytes(needed));
            }
        }
        let (mut together, mut names) = (self.clone(), Vec::<&str>::new());
        for change in &changes {
            let next = with(change, &together);
            if next.total() < together.total() {
                together = next;
                let option = |name: &str| name.split(' ').next().map(str::to_owned);
                // A second value of an option takes the place of the first.
                names.retain(|name| option(name) != option(&change.0));
                names.push(&*change.0);
            }
            if together.total() <= limit {
                break;
            }
        }
        if names.is_empty() {
            return self.sparse_ids.clone().unwrap_or_else(|| "fewer labels or narrower layers would help".to_owned());
        }
        let needed = together.total();
        if let Some(hint) = self.sparse_ids.as_ref().filter(|_| needed > limit) {
            return hint.clone();
        }
        let even = if needed <= limit { "" } else { "even " };
        format!("{even}with {} it would need {}", names.join(" "), format_bytes(needed))
    }

    /// Options that take less, those first that change answers least.
    fn changes(&self, limit: u64) -> Vec<Change> {
        let mut out: Vec<Change> = Vec::new();
        let mut push = |name: String, change: Box<dyn Fn(&mut Self)>| out.push((name, change));
        let head = match &self.params.head {
            HeadParams::Sparse(head) => Some(head),
            HeadParams::Dense | HeadParams::Candidates(_) => None,
        };
        if head.is_some() && self.params.learning.connections.moments == DType::F32 {
            let coarse = |f: &mut Self| f.params.learning.connections.moments = DType::Bf16;
            push("--head.moments bf16".to_owned(), Box::new(coarse));
        }
        if self.work.keeps_best {
            push("--keep last".to_owned(), Box::new(|f| f.work.keeps_best = false));
        }
        if let Some((option, change)) = self.fewer_tables(limit) {
            push(option, change);
        }
        if self.work.batch_size > 32 {
            push("--batch 32".to_owned(), Box::new(|f| f.work.batch_size = 32));
        }
        if head.is_some_and(|head| head.weights.n_bytes() > 2) {
            push("--head.precision bf16".to_owned(), sparse(|head| head.weights = DType::Bf16));
        }
        if matches!(&self.params.head, HeadParams::Candidates(head) if head.rows == DType::F32) {
            let narrow = |f: &mut Self| {
                if let HeadParams::Candidates(head) = &mut f.params.head {
                    head.rows = DType::Bf16;
                }
            };
            push("--head.precision bf16".to_owned(), Box::new(narrow));
        }
        if self.params.learning.wide.is_some() {
            push("--wide off".to_owned(), Box::new(|f| f.params.learning.wide = None));
        }
        let least = head.map_or(1, |head| head.fan_in.max(1));
        let halves = std::iter::successors(self.intermediate.map(|units| units / 2), |units| Some(units / 2));
        for half in halves.take(4).take_while(|&half| half >= least) {
            let change = move |f: &mut Self| {
                f.params.encoder.widths_mut().pop();
                f.params.encoder.widths_mut().push(half);
            };
            push(format!("--network.intermediate {half}"), Box::new(change));
        }
        self.narrower().for_each(|(name, change)| push(name, change));
        if self.params.uses_lsa() {
            let random = |f: &mut Self| f.params.learning.init = xc_model::classifier::EmbeddingInit::Random;
            push("--network.init random".to_owned(), Box::new(random));
        }
        if head.is_none() && self.intermediate.is_some() {
            let uniform = |f: &mut Self| f.params.head = HeadParams::Sparse(SparseHeadParams::default());
            push("--head.wiring uniform".to_owned(), Box::new(uniform));
        }
        out
    }

    /// Halves of the widths that `--network.widths` sets, again and again.
    fn narrower(&self) -> impl Iterator<Item = Change> {
        let widths = self.params.encoder.widths();
        let set = widths[..widths.len() - usize::from(self.intermediate.is_some()).min(widths.len())].to_vec();
        let halves = move |n: u32| set.iter().map(|width| width >> n).collect::<Vec<_>>();
        (1..).map(halves).take_while(|widths| widths.iter().min().is_some_and(|&least| least >= LEAST_WIDTH)).map(
            |widths| {
                let name = widths.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
                let change = move |f: &mut Self| f.params.encoder.widths_mut()[..widths.len()].copy_from_slice(&widths);
                (format!("--network.widths {name}"), Box::new(change) as Box<dyn Fn(&mut Self)>)
            },
        )
    }

    /// As many tables of labels as fit, or one; nothing where there are none.
    fn fewer_tables(&self, limit: u64) -> Option<Change> {
        let with = |n_tables: u32| {
            move |forecast: &mut Self| {
                if let Some(tables) = forecast.tables() {
                    tables.n_tables = n_tables;
                }
            }
        };
        let fits = |n_tables: u32| {
            let mut forecast = self.clone();
            with(n_tables)(&mut forecast);
            forecast.total() <= limit
        };
        let (mut least, mut most) = (1, self.clone().tables()?.n_tables);
        if most < 2 {
            return None;
        }
        while least + 1 < most {
            let middle = least + (most - least) / 2;
            *(if fits(middle) { &mut least } else { &mut most }) = middle;
        }
        Some((format!("--tables {least}"), Box::new(with(least))))
    }

    /// Tables of labels, where a sampler has any.
    fn tables(&mut self) -> Option<&mut LshParams> {
        if !matches!(self.params.head, HeadParams::Candidates(_)) {
            return None;
        }
        self.params.learning.negatives.sampler.tables_mut()
    }
}

/// A change of a sparse output layer.
fn sparse(change: fn(&mut SparseHeadParams)) -> Box<dyn Fn(&mut Forecast)> {
    Box::new(move |forecast| {
        if let HeadParams::Sparse(head) = &mut forecast.params.head {
            change(head);
        }
    })
}
