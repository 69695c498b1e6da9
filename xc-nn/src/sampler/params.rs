//! Samplers as data: a name, and parameters from a file or options.

use super::{
    AllLabels, Ann, AnnParams, Drawn, DrawnError, InBatch, Lists, Lsh, LshBy, LshParams, Midx, MidxParams, Mixture,
    Sampler, ScheduleParams, Scheduled, TopLogits, Weighting,
};
use crate::Loss;
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;
use xc_lsh::{FamilyParamsError, TableSizingError};

/// Where labels come from; see the table of [samplers](super).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SamplerParams {
    /// [`AllLabels`].
    All,
    /// [`Drawn::uniform`].
    Uniform {
        /// Labels of a list.
        per_list: usize,
    },
    /// [`Drawn::log_uniform`].
    LogUniform {
        /// Draws of a list.
        per_list: usize,
    },
    /// [`Drawn::frequency`].
    Frequency {
        /// Draws of a list.
        per_list: usize,
        /// A label's probability is proportional to this power of its frequency.
        power: f64,
    },
    /// [`InBatch`].
    InBatch,
    /// [`TopLogits`].
    TopK {
        /// Labels of an instance.
        per_instance: usize,
    },
    /// [`Ann`].
    Ann(AnnParams),
    /// [`Ann::by_texts`].
    LabelText(AnnParams),
    /// [`Scheduled`].
    Schedule(ScheduleParams),
    /// [`Lsh`] by the instance's vector.
    LshEmbedding(LshParams),
    /// [`Lsh`] by the true labels.
    LshLabel(LshParams),
    /// [`Midx`].
    Midx(MidxParams),
}

/// Which labels a step scores in addition to the true ones: where they come from, for which
/// instances, and how they are weighted.
///
/// ```
/// use xc_nn::Loss;
/// use xc_nn::sampler::{Lists, NegativeParams, SamplerData, SamplerParams, Weighting};
///
/// // Ten hard labels per instance and 500 uniform ones, in one list for the batch.
/// let json = r#"{ "sampler": { "name": "top-k", "per_instance": 10 }, "uniform": 500,
///                 "weighting": { "name": "inverse", "cap": 4.0 } }"#;
/// let params: NegativeParams = serde_json::from_str(json)?;
/// assert_eq!(params.sampler, SamplerParams::TopK { per_instance: 10 });
/// assert_eq!((params.lists, params.weighting), (Lists::Shared, Weighting::CAPPED));
/// assert_eq!(params, NegativeParams::new(params.sampler, 500, Loss::Bce));
/// let data = SamplerData::new(&[3, 1, 0, 7], 8, 16, 1);
/// let sampler = params.build(&data)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NegativeParams {
    /// Where labels come from.
    pub sampler: SamplerParams,
    /// One list per batch, or one per instance.
    #[serde(default)]
    pub lists: Lists,
    /// Uniform labels of a list in addition to those of the sampler ([`Mixture`]); 0: none.
    #[serde(default)]
    pub uniform: usize,
    /// How a label of a list is weighted; in a mixture, a uniform label.
    pub weighting: Weighting,
    /// First epoch (from 0) in which the sampler is used ([`Mixture::with_hard_from`]); before it,
    /// all labels are uniform ones.
    #[serde(default)]
    pub from_epoch: u32,
}

/// Maximum number of labels wanted for a list or an instance.
const MAX_WANTED: usize = 1 << 24;

impl NegativeParams {
    /// Labels of a list by default, if they are drawn whatever its instances are: by the sampler, or
    /// uniform ones in addition to those of a sampler.
    pub const USUAL_DRAWN: usize = 2000;

    /// The power of the frequency that a label is drawn by, by default: that of word embeddings.
    pub const USUAL_POWER: f64 = 0.75;

    /// Labels that a sampler chooses for an instance by default: 10 for a shared list, 500 for one of
    /// its own. Both are guesses.
    pub const fn usual_chosen(lists: Lists) -> usize {
        match lists {
            Lists::Shared => 10,
            Lists::Own => 500,
        }
    }

    /// Uniform labels that a list has by default in addition to those of a sampler: none where it draws
    /// them itself, and none in a list of one instance.
    pub fn usual_uniform(sampler: &SamplerParams, lists: Lists) -> usize {
        let is_alone = sampler.is_drawn() || *sampler == SamplerParams::All || lists == Lists::Own;
        if is_alone { 0 } else { Self::USUAL_DRAWN }
    }

    /// One list per batch, with the recommended weighting for a loss: weight 1 for labels that are searched
    /// for; where probabilities are known, the log of them in a softmax, and their inverse, at most 4, in
    /// sums over labels; the same weight for uniform labels in addition to others, whatever the loss is.
    pub fn new(sampler: SamplerParams, uniform: usize, loss: Loss) -> Self {
        let weighting = match sampler {
            _ if uniform > 0 => Weighting::CAPPED,
            // No label is left out.
            SamplerParams::All => Weighting::LogQ,
            SamplerParams::TopK { .. } | SamplerParams::Ann(_) => Weighting::None,
            SamplerParams::LabelText(_) | SamplerParams::Schedule(_) => Weighting::None,
            SamplerParams::LshEmbedding(_) | SamplerParams::LshLabel(_) => Weighting::None,
            _ if matches!(loss, Loss::Softmax | Loss::Nce) => Weighting::LogQ,
            _ => Weighting::CAPPED,
        };
        Self { sampler, lists: Lists::Shared, uniform, weighting, from_epoch: 0 }
    }
}

impl From<SamplerParams> for NegativeParams {
    /// Without additional uniform labels, for a loss that is a sum over labels.
    fn from(sampler: SamplerParams) -> Self {
        Self::new(sampler, 0, Loss::Bce)
    }
}

/// What samplers are built from in addition to their parameters.
#[derive(Clone, Copy, Debug)]
pub struct SamplerData<'a> {
    /// Number of training instances of which each label is true.
    pub counts: &'a [u32],
    /// Number of training instances.
    pub n_instances: usize,
    /// One more than the largest number of an instance. Numbers of held-out instances are missing,
    /// so it may exceed `n_instances`.
    pub n_numbers: usize,
    /// Number of values of a vector.
    pub width: usize,
    /// Seed of the random functions of a sampler.
    pub seed: u64,
    /// The training instance that is the text of label 0, if there are texts of labels; those of
    /// the other labels follow it.
    pub label_texts: Option<u32>,
    /// Folder for tables of all instances, in unnamed files; `None`: in memory.
    pub folder: Option<&'a Path>,
}

impl<'a> SamplerData<'a> {
    /// For instances numbered from 0, without texts of labels, with everything in memory.
    pub fn new(counts: &'a [u32], n_instances: usize, width: usize, seed: u64) -> Self {
        Self { counts, n_instances, n_numbers: n_instances, width, seed, label_texts: None, folder: None }
    }
}

/// Why a sampler cannot be built.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SamplerParamsError {
    /// A number outside its range.
    #[error("{name} is {got}, expected {expected}")]
    Number {
        /// Its name.
        name: &'static str,
        /// Its value.
        got: f64,
        /// The expected range.
        expected: &'static str,
    },
    /// The distribution cannot be built.
    #[error(transparent)]
    Drawn(#[from] DrawnError),
    /// A family that does not hash vectors.
    #[error("family {got}, expected sim-hash or wta: rows of labels are vectors")]
    Kind {
        /// Its name.
        got: &'static str,
    },
    /// Weights by the probability that tables return a label, which is not known for this family.
    #[error("the chance that {got} tables find a label is not known, expected sim-hash, or weights of 1")]
    Chances {
        /// Its name.
        got: &'static str,
    },
    /// Labels are compared by their texts, and there are none.
    #[error("labels are compared by their texts, and no texts of labels are given")]
    LabelTexts,
    /// The tables cannot be built.
    #[error("tables of labels")]
    Sizing(#[from] TableSizingError),
    /// The hash functions cannot be built.
    #[error("functions of tables of labels")]
    Family(#[from] FamilyParamsError),
}

impl SamplerParams {
    /// Whether labels are drawn for a list by themselves, whatever the instances are.
    pub fn is_drawn(&self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::LogUniform { .. } | Self::Frequency { .. })
    }

    /// Whether it reads the rows of the labels.
    pub fn needs_rows(self) -> bool {
        matches!(self, Self::TopK { .. } | Self::Ann(_) | Self::LabelText(_) | Self::Schedule(_))
            || matches!(self, Self::LshEmbedding(_) | Self::LshLabel(_) | Self::Midx(_))
    }

    /// Labels of a list if they are drawn for it, else of an instance; 0 where no number says how many.
    pub fn n_chosen(mut self) -> usize {
        self.n_chosen_mut().map_or(0, |n| *n)
    }

    /// The same, to be changed; nothing where no number says how many.
    pub fn n_chosen_mut(&mut self) -> Option<&mut usize> {
        Some(match self {
            Self::All | Self::InBatch => return None,
            Self::Uniform { per_list } | Self::LogUniform { per_list } | Self::Frequency { per_list, .. } => per_list,
            Self::TopK { per_instance } => per_instance,
            Self::Ann(AnnParams { per_instance, .. }) | Self::LabelText(AnnParams { per_instance, .. }) => per_instance,
            Self::Schedule(ScheduleParams { per_instance, .. }) | Self::Midx(MidxParams { per_instance, .. }) => {
                per_instance
            }
            Self::LshEmbedding(LshParams { candidates, .. }) | Self::LshLabel(LshParams { candidates, .. }) => {
                candidates
            }
        })
    }

    /// The tables that labels are found by, to be changed, where there are some.
    pub fn tables_mut(&mut self) -> Option<&mut LshParams> {
        match self {
            Self::LshEmbedding(tables) | Self::LshLabel(tables) => Some(tables),
            _ => None,
        }
    }

    /// The latter alone.
    fn per_instance(self) -> usize {
        if self.is_drawn() { 0 } else { self.n_chosen() }
    }

    /// Whether the probability of every label is known, drawn or not: [`Sampler::knows_log_q`].
    pub fn knows_log_q(self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::LogUniform { .. } | Self::Frequency { .. } | Self::Midx(_))
    }

    /// Checks for numbers that are invalid for any data.
    ///
    /// # Errors
    /// The first invalid number.
    pub fn check(self) -> Result<(), SamplerParamsError> {
        let (name, wanted) = match self {
            Self::All | Self::InBatch => return Ok(()),
            Self::Uniform { per_list } | Self::LogUniform { per_list } => ("per_list", per_list),
            Self::Frequency { per_list, power } => {
                if !(power.is_finite() && power >= 0.0) {
                    return number("power", power, "a finite number from 0 on");
                }
                ("per_list", per_list)
            }
            Self::TopK { per_instance } => ("per_instance", per_instance),
            Self::Ann(params) | Self::LabelText(params) => return params.check(),
            Self::Schedule(params) => return params.check(),
            Self::LshEmbedding(params) | Self::LshLabel(params) => return params.check(),
            Self::Midx(MidxParams { codewords, .. }) if !(1..=255).contains(&codewords) => {
                return number("codewords", f64::from(codewords), "1 to 255");
            }
            Self::Midx(MidxParams { per_instance, .. }) => ("per_instance", per_instance),
        };
        match wanted {
            0 => number(name, 0.0, "at least 1"),
            1..=MAX_WANTED => Ok(()),
            _ => number(name, wanted as f64, "at most 16777216"),
        }
    }
}

impl NegativeParams {
    /// Labels that a step of `batch` instances scores at most, where they are not all.
    pub fn listed(&self, batch: usize) -> Option<usize> {
        let of_instances = |one: usize| match self.lists {
            Lists::Shared => one.saturating_mul(batch),
            Lists::Own => one,
        };
        let one = match self.sampler {
            SamplerParams::All => return None,
            sampler if sampler.is_drawn() => sampler.n_chosen(),
            sampler => of_instances(sampler.per_instance()),
        };
        let list = one.saturating_add(self.uniform);
        // True labels of the batch: eight an instance is a guess.
        let lists = if self.lists == Lists::Own { batch } else { 1 };
        Some(list.saturating_mul(lists).saturating_add(batch.saturating_mul(8)))
    }

    /// Checks for numbers that are invalid for any data.
    ///
    /// # Errors
    /// The first invalid number.
    pub fn check(&self) -> Result<(), SamplerParamsError> {
        if let Weighting::Inverse { cap: Some(cap) } = self.weighting
            && !(cap.is_finite() && cap > 0.0)
        {
            return number("cap", f64::from(cap), "a finite number above 0");
        }
        if self.uniform > MAX_WANTED {
            return number("uniform", self.uniform as f64, "at most 16777216");
        }
        match self.sampler {
            SamplerParams::LshEmbedding(tables) | SamplerParams::LshLabel(tables) if self.uniform == 0 => {
                tables.check_weighting(self.weighting)?;
            }
            _ => {}
        }
        self.sampler.check()
    }

    /// The sampler for some training data.
    ///
    /// # Errors
    /// Invalid numbers, or a distribution that does not exist for these labels.
    pub fn build(&self, data: &SamplerData<'_>) -> Result<Box<dyn Sampler>, SamplerParamsError> {
        self.check()?;
        let Self { sampler, lists, uniform, from_epoch, .. } = *self;
        let is_mixed = (uniform > 0 || from_epoch > 0) && sampler != SamplerParams::All;
        let weighting = if is_mixed { Weighting::None } else { self.weighting };
        let drawn = |drawn: Drawn| Box::new(drawn.with_lists(lists).with_weighting(weighting));
        let lsh = |by, params| {
            let tables = Lsh::new(by, params, data)?.with_lists(lists).with_weighting(weighting)?;
            Ok::<Box<dyn Sampler>, SamplerParamsError>(Box::new(tables))
        };
        let built: Box<dyn Sampler> = match sampler {
            SamplerParams::All => Box::new(AllLabels),
            SamplerParams::Uniform { per_list } => drawn(Drawn::uniform(per_list)),
            SamplerParams::LogUniform { per_list } => drawn(Drawn::log_uniform(data.counts, per_list)),
            SamplerParams::Frequency { per_list, power } => drawn(Drawn::frequency(data.counts, power, per_list)?),
            SamplerParams::InBatch => {
                let in_batch = InBatch::new(data.counts, data.n_instances);
                Box::new(in_batch.with_lists(lists).with_weighting(weighting))
            }
            SamplerParams::TopK { per_instance } => Box::new(TopLogits::new(per_instance).with_lists(lists)),
            SamplerParams::Ann(params) => {
                Box::new(Ann::new(params, data).with_lists(lists).with_index_from(from_epoch))
            }
            SamplerParams::Schedule(params) => Box::new(Scheduled::new(params, data).with_lists(lists)),
            SamplerParams::LabelText(params) => {
                Box::new(Ann::by_texts(params, data)?.with_lists(lists).with_index_from(from_epoch))
            }
            SamplerParams::LshEmbedding(params) => lsh(LshBy::Embedding, params)?,
            SamplerParams::LshLabel(params) => lsh(LshBy::Label, params)?,
            SamplerParams::Midx(params) => {
                Box::new(Midx::new(params, data).with_lists(lists).with_weighting(weighting))
            }
        };
        Ok(match is_mixed {
            true => {
                let mixture = Mixture::new(built, uniform).with_lists(lists).with_weighting(self.weighting);
                Box::new(mixture.with_hard_from(from_epoch, sampler.per_instance()))
            }
            false => built,
        })
    }
}

pub(super) fn number<T>(name: &'static str, got: f64, expected: &'static str) -> Result<T, SamplerParamsError> {
    Err(SamplerParamsError::Number { name, got, expected })
}
