//! What is said and refused before a network is trained.

use super::memory::{Forecast, sparse_ids};
use super::session::NetworkSession;
use crate::fit::Context;
use crate::fit::FitError;
use crate::fit::memory::Standing;
use crate::fit::save::Target;
use crate::learn::{TokenLengths, Workload, n_values};
use serde_json::{Value, json};
use xc_model::classifier::{CandidateHeadParams, HeadParams, InputKind};
use xc_model::message::counted;
use xc_model::message::format_bytes;
use xc_nn::sampler::{Lists, NegativeParams, SamplerParams};
use xc_nn::trainer;
use xc_nn::{Loss, Rows};
use xc_sparse::rows::typical_length;

impl NetworkSession<'_> {
    /// Refuses what does not fit, and says what is going to happen. Gives the estimate for the
    /// report. `has_intermediate`: whether the last width of the classifier is that of a layer with an option of its own.
    pub fn announce(&self, has_intermediate: bool) -> Result<Value, FitError> {
        let Self { context, instances, shape, network, .. } = self;
        let (params, training) = (&network.classifier, &network.training);
        let (name, learner) = (self.learner.kind(), self.learner);
        let mapped = instances.mapped_bytes();
        context.observer.released();
        let validates = self.has_judges();
        let forecast = Forecast {
            params: params.clone(),
            work: Workload {
                n_instances: instances.targets().len(),
                n_features: shape.n_features,
                n_labels: learner.n_outputs(shape),
                batch_size: training.batch_size,
                n_epochs: training.epochs,
                moments: network.optimizer.rule().moments(),
                keeps_best: validates && training.keep == trainer::Keep::Best,
                clips: training.clip_norm.is_some(),
                tokens: TokenLengths { are_cached: self.caches_states(), ..lengths(instances.features()) },
            },
            sparse_ids: instances.labels().and_then(sparse_ids),
            targets: learner.targets(self),
            answering: if validates || self.is_judged() { learner.answering(shape, params) } else { 0 },
            // Its files grow by twice their size, beside what they are of.
            stays: match self.target {
                Target::Memory => n_values(params, shape.n_features, learner.n_outputs(shape))
                    .saturating_mul(4)
                    .max(learner.answering(shape, params))
                    .saturating_mul(3),
                Target::Folder(_) => 0,
            },
            standing: Standing::now(instances.n_bytes().saturating_add(mapped)),
            intermediate: params.encoder.widths().last().copied().filter(|_| has_intermediate),
        };
        if !context.plans {
            forecast.check(&format!("xc train {name}"), context)?;
        }
        let layers: Vec<String> = std::iter::once(shape.n_features)
            .chain(params.encoder.widths().iter().copied())
            .chain([forecast.work.n_labels])
            .map(|width| width.to_string())
            .collect();
        let head = match &params.head {
            HeadParams::Dense => String::new(),
            HeadParams::Candidates(head) => {
                let negatives = &params.learning.negatives;
                candidates(head, negatives, training.batch_size, forecast.work.n_labels)
            }
            HeadParams::Sparse(head) => {
                format!(", {} connections per label, {}", head.fan_in, head.weights.short_name())
            }
        };
        context.note(format_args!(
            "train {name}: {}, {}, {}; {}{head}; loss {}",
            counted(instances.targets().len(), "instance"),
            counted(shape.n_features, shape.unit()),
            counted(shape.n_labels, "label"),
            layers.join(" -> "),
            params.loss,
        ));
        let more = match mapped {
            0 => String::new(),
            _ => format!("; {} of vectors stay in their files", format_bytes(mapped)),
        };
        let total = forecast.total();
        context.note(format_args!("memory: about {}: {}{more}", format_bytes(total), forecast.parts()));
        // Vectors that a transformer makes of texts have the length that they have.
        let are_vectors_of_texts =
            shape.input == InputKind::Dense && instances.files().is_some_and(|of| of.train.of_texts);
        if !are_vectors_of_texts {
            context.check_interrupt()?;
            say_length(instances.features(), context);
            context.check_interrupt()?;
        }
        if params.loss == Loss::Bce
            && matches!(params.head, HeadParams::Sparse(_))
            && params.learning.negatives.sampler == SamplerParams::All
        {
            context.note("bce has a gradient for every label: an epoch takes longer than with squared-hinge");
        }
        let memory = forecast.memory();
        Ok(json!({
            "total_bytes": total,
            "parameters_bytes": memory.parameters,
            "moments_bytes": memory.moments,
            "best_bytes": memory.best,
            "buffers_bytes": memory.buffers,
            "wide_bytes": memory.wide,
            "data_bytes": instances.n_bytes(),
            "resident_bytes": forecast.standing.resident(),
            "mapped_bytes": mapped,
        }))
    }
}

/// Tokens of instances; none of others.
fn lengths(features: Rows<'_>) -> TokenLengths {
    let Rows::Tokens(rows) = features else { return TokenLengths::default() };
    let longest = (0..rows.len()).map(|i| rows.row(i).len()).max().unwrap_or(0);
    TokenLengths { sum: rows.ids().len(), longest, are_cached: false }
}

/// What is said of a head whose steps score some labels.
fn candidates(head: &CandidateHeadParams, negatives: &NegativeParams, batch: usize, n_labels: usize) -> String {
    let (lists, whose) = match negatives.lists {
        Lists::Shared => (1, ""),
        Lists::Own => (batch.max(1), " for each instance"),
    };
    let listed = match negatives.listed(batch).map(|n| n / lists).filter(|&n| n < n_labels) {
        None => format!("all {}", counted(n_labels, "label")),
        Some(n) => format!("about {}", counted(n, "label")),
    };
    format!(", a step scores {listed}{whose}, {}", head.rows.short_name())
}

/// Rows whose lengths are looked at, spread over all of them: vectors may stay on disk.
const MEASURED: usize = 10_000;

/// Sums of long rows leave the range that initial values and learning rates are made for, and rows that are not
/// about as long as those give another network.
fn say_length(features: Rows<'_>, context: &Context<'_>) {
    let typical = match features {
        Rows::OneHot(_) | Rows::Texts(_) | Rows::Tokens(_) => return,
        Rows::Sparse(rows) => {
            let squares = (0..rows.rows()).map(|i| rows.row(i).values().iter().map(|v| v * v).sum::<f32>());
            let longest = squares.fold(0.0, f32::max);
            if longest > 100.0 * 100.0 {
                return context.warn(format_args!(
                    "the longest row of features has length {:.0}; networks learn best from rows of length 1 (--normalise)",
                    longest.sqrt()
                ));
            }
            typical_length((0..rows.rows()).map(|i| rows.row(i).values()))
        }
        Rows::Dense(rows) => {
            typical_length((0..rows.len()).step_by(rows.len().div_ceil(MEASURED).max(1)).map(|i| rows.row(i)))
        }
    };
    if !(0.5..=2.0).contains(&typical) {
        let (rows, option) = match features {
            Rows::Sparse(_) => ("rows", " (--normalise true)"),
            _ => ("vectors", ""),
        };
        context.note(format_args!(
            "{rows} have a typical length of {typical:.3e}; networks learn best from lengths about 1, and differently at \
             each scale{option}"
        ));
    }
}
