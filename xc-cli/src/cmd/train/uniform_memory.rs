//! What a uniform model's training will take, and which option makes it fit.

use crate::context::{Context, format_bytes};
use crate::error::CliError;
use xc_sparse::uniform::NumberType;
use xc_train::trainer::Keep;
use xc_train::uniform::{UniformMemory, UniformParams, Wiring};

/// What memory depends on beside the data.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) params: UniformParams,
    pub(super) keep: Keep,
    pub(super) batch_size: usize,
}

/// What memory depends on beside the settings.
pub(super) struct Forecast {
    pub(super) n_features: usize,
    pub(super) n_labels: usize,
    pub(super) n_moments: usize,
    /// Whether instances judge the network, so that the best parameters may be kept.
    pub(super) validates: bool,
    pub(super) clips: bool,
    pub(super) data_bytes: u64,
    /// What grouping the labels takes beside the parameters, before training takes the rest.
    pub(super) grouping_bytes: u64,
}

/// An option as it would be typed, and what it does.
type Change = (String, Box<dyn Fn(&mut Settings)>);

impl Forecast {
    /// The training, without the data.
    pub(super) fn memory(&self, settings: &Settings) -> UniformMemory {
        let Settings { params, keep, batch_size } = settings;
        let keeps_best = self.validates && *keep == Keep::Best;
        params.memory(self.n_features, self.n_labels, *batch_size, self.n_moments, keeps_best, self.clips)
    }

    /// All of it.
    pub(super) fn total(&self, settings: &Settings) -> u64 {
        let memory = self.memory(settings);
        memory.total().max(memory.parameters + self.grouping(settings)).saturating_add(self.data_bytes)
    }

    /// What grouping the labels takes, when the parameters are there and nothing else is.
    fn grouping(&self, settings: &Settings) -> u64 {
        settings.params.groups.map_or(0, |_| self.grouping_bytes)
    }

    /// All of it by part.
    pub(super) fn parts(&self, settings: &Settings) -> String {
        let memory = self.memory(settings);
        if memory.parameters + self.grouping(settings) > memory.total() {
            let [parameters, grouping, data] =
                [memory.parameters, self.grouping_bytes, self.data_bytes].map(format_bytes);
            return format!("parameters {parameters}, grouping the labels {grouping} (training less), data {data}");
        }
        let named = [
            ("parameters", memory.parameters),
            ("moments", memory.moments),
            ("copy of the best parameters", memory.best),
            ("buffers", memory.buffers),
            ("data", self.data_bytes),
        ];
        let said = named.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {}", format_bytes(*n)));
        said.collect::<Vec<_>>().join(", ")
    }

    /// Refuses what is more than `--max-memory`: says what needs it and what would help.
    pub(super) fn check(&self, settings: &Settings, context: &Context) -> Result<(), CliError> {
        let needed = self.total(settings);
        match context.max_memory {
            Some(limit) if needed > limit => Err(CliError::missing(format_args!(
                "xc train uniform needs about {}, more than --max-memory {}: {}; {}",
                format_bytes(needed),
                format_bytes(limit),
                self.parts(settings),
                self.advice(settings, limit)
            ))),
            _ => context.foresee_memory("xc train uniform", needed),
        }
    }

    /// The first option that makes it fit, else as many of them as it takes.
    fn advice(&self, settings: &Settings, limit: u64) -> String {
        let changes = changes(settings);
        let with = |change: &Change, settings: &Settings| {
            let mut settings = settings.clone();
            change.1(&mut settings);
            settings
        };
        for change in &changes {
            let needed = self.total(&with(change, settings));
            if needed <= limit {
                return format!("with {} it would need {}", change.0, format_bytes(needed));
            }
        }
        let (mut together, mut names) = (settings.clone(), Vec::<&str>::new());
        for change in &changes {
            let next = with(change, &together);
            if self.total(&next) < self.total(&together) {
                together = next;
                let option = |name: &str| name.split(' ').next().map(str::to_owned);
                // A second value of an option takes the place of the first.
                names.retain(|name| option(name) != option(&change.0));
                names.push(&*change.0);
            }
            if self.total(&together) <= limit {
                break;
            }
        }
        if names.is_empty() {
            return "fewer labels or narrower layers are wanted".to_owned();
        }
        let needed = self.total(&together);
        let even = if needed <= limit { "" } else { "even " };
        format!("{even}with {} it would need {}", names.join(" "), format_bytes(needed))
    }
}

/// Options that take less, those first that change answers least.
fn changes(settings: &Settings) -> Vec<Change> {
    let mut out: Vec<Change> = Vec::new();
    let mut push = |name: String, change: Box<dyn Fn(&mut Settings)>| out.push((name, change));
    let params = &settings.params;
    let is_sparse = params.wiring != Wiring::Dense;
    if is_sparse && params.moments == NumberType::F32 {
        push("--moments bf16".to_owned(), Box::new(|s| s.params.moments = NumberType::Bf16));
    }
    if params.groups.is_some() {
        push("no --groups".to_owned(), Box::new(|s| s.params.groups = None));
    }
    push("--keep last".to_owned(), Box::new(|s| s.keep = Keep::Last));
    if settings.batch_size > 32 {
        push("--batch-size 32".to_owned(), Box::new(|s| s.batch_size = 32));
    }
    if is_sparse && params.weights.bytes() > 2 {
        push("--precision bf16".to_owned(), Box::new(|s| s.params.weights = NumberType::Bf16));
    }
    let halves = std::iter::successors(params.intermediate.map(|units| units / 2), |units| Some(units / 2));
    for half in halves.take(4).take_while(|&half| half >= params.connections.max(1)) {
        push(format!("--intermediate {half}"), Box::new(move |s| s.params.intermediate = Some(half)));
    }
    if !is_sparse {
        push("--wiring uniform".to_owned(), Box::new(|s| s.params.wiring = Wiring::Uniform));
    }
    out
}
