//! The settings of a head whose steps score some labels, which kinds of networks share.

use super::network::params_error;
use super::{Choices, Setting, SettingError, Table, USUAL, Values, serialised};
use crate::classifier::{CandidateHeadParams, ClassifierParams, ClassifierParamsError, HeadParams, preset};
use crate::message::{chain, label_of};
use crate::tune::Scale;
use Values::{F32, Forms, Names, Size};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{Kind, Projection};
use xc_nn::Loss;
use xc_nn::sampler::{
    AnnParams, Lists, LshParams, MidxParams, NegativeParams, SamplerParams, SamplerParamsError, Weighting,
};

const CANDIDATES: &str = "Candidate options";
/// Whether instances of a batch share a list.
pub(super) const SHARED: [(&str, &str); 2] = [("true", "\"shared\""), ("false", "\"own\"")];
/// Tables of labels.
pub const TABLES: &str = "Options of tables (--sampler lsh-embedding, lsh-label)";

const SAMPLERS: [&str; 10] =
    ["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"];
/// Those that choose labels.
const CHOOSING: [&str; 9] =
    ["uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"];
/// Those that choose as many as they are told.
const COUNTING: [&str; 8] =
    ["uniform", "log-uniform", "frequency", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"];
/// The sampler unless one is asked for.
const DEFAULT: &str = "lsh-embedding";

const fn candidates(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading(CANDIDATES)
}

const fn tables(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit)
        .heading(TABLES)
        .belongs_to("sampler", &["lsh-embedding", "lsh-label"])
        .of_preset()
}

/// Fields are those of [`CandidateSettings`].
pub const TABLE: Table = Table {
    rows: &[
        candidates("preset", "preset", Names(&["amazon-670k", "wikilshtc-325k", "text8"]), "NAME").help(
            "Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options \
             override them",
        ),
        candidates("sampler", "sampler", Names(&SAMPLERS), "SAMPLER")
            .of_preset()
            .of_data()
            .help(
                "Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by \
             rank of frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest \
             logits (top-k), or approximately those by an index (ann); those that hash tables find by the \
             instance's vector (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted \
             multi-index (midx) [default: lsh-embedding; all where labels are few]",
            )
            .searched(
                &[USUAL, "midx", "log-uniform", "frequency", "in-batch", "all"],
                0,
                Scale::Named,
                "which labels a step scores",
            ),
        candidates("negatives.shared", "lists", Forms(&SHARED), "BOOL")
            .of_preset()
            .help("One list of negatives per batch, or, if false, one per instance [default: true]")
            .belongs_to("sampler", &CHOOSING),
        candidates("negatives.sampled", "candidates", Size, "N")
            .of_preset()
            .help(
                "Sampled labels: per list for samplers that do not look at the instances [default: 2000], else \
                 per instance [default: 10 for a shared list, 500 for separate lists]",
            )
            .belongs_to("sampler", &COUNTING),
        candidates("negatives.uniform", "uniform", Size, "N")
            .of_preset()
            .help(
                "Uniform labels per list in addition to those of the sampler, weighted to represent all \
                 remaining labels [default: 2000 in a shared list of a sampler that looks at the instances, else \
                 0]",
            )
            .belongs_to("sampler", &CHOOSING)
            .searched(&[USUAL, "500", "2000", "8000"], 0, Scale::Named, "they stand for all other labels"),
        candidates("weighting", "weighting", Names(&["none", "log-q", "inverse"]), "WHAT")
            .follows("sampler")
            .help(
                "Importance weight of sampled negatives. none: 1. log-q: the log of its probability is \
                 subtracted from its logit (softmax, nce). inverse: 1 / its probability, at most --weight-cap \
                 [default: inverse with uniform labels; else none with tables and top-k, log-q with softmax and \
                 nce, inverse with other losses]",
            )
            .belongs_to("sampler", &CHOOSING),
        candidates("weight-cap", "weight_cap", F32, "X")
            .follows("weighting")
            .help("Largest weight (--weighting inverse); 0: no limit [default: 4]")
            .belongs_to("weighting", &["inverse"]),
        candidates("head.precision", "rows", Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]), "TYPE")
            .help("Type of the rows of label weights, in training and in the model"),
        tables("tables", "tables", Size, "N")
            .follows("codes")
            .help("Number of tables, L; without --codes, the largest number [default: 50]"),
        tables("codes", "codes", Size, "N")
            .of_data()
            .help("Codes per key, K [default: chosen so that few unrelated labels collide]"),
        tables("tables.family", "family", Names(&["wta", "sim-hash"]), "NAME").help(
            "Hash functions: winner-take-all over 8 coordinates, or signs of projections, for which the \
             chance that a label is found is known (--weighting log-q, inverse) [default: wta]",
        ),
        tables("upkeep", "upkeep", Names(&["drift", "rebuild", "immediate"]), "WHEN").help(
            "Rehash policy: as labels drift (drift), all at intervals (rebuild), or in every step that \
             changes them (immediate) [default: drift]",
        ),
        tables("upkeep.every", "every", Size, "STEPS")
            .help(
                "Steps until the first rebuild; each further interval is a tenth longer (--upkeep rebuild) \
                 [default: 50]",
            )
            .follows("upkeep")
            .belongs_to("upkeep", &["rebuild"]),
        tables("upkeep.share", "share", F32, "X")
            .help(
                "How far a label's row may move before it is rehashed, as a share of its length (--upkeep drift) \
                 [default: 0.05]",
            )
            .follows("upkeep")
            .belongs_to("upkeep", &["drift"]),
    ],
    starts: &[],
};

/// What was chosen; what was not follows from the rest, the labels and the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateSettings {
    /// Settings that a paper used.
    pub preset: Option<String>,
    /// Where labels come from.
    pub sampler: Option<String>,
    /// For whom.
    pub lists: Option<Lists>,
    /// Labels of a list, or of an instance.
    pub candidates: Option<usize>,
    /// Uniform labels in addition.
    pub uniform: Option<usize>,
    /// How they are weighted.
    pub weighting: Option<String>,
    /// Largest weight; 0: no limit.
    pub weight_cap: Option<f32>,
    /// Type of the labels' rows.
    pub rows: DType,
    /// Number of tables.
    pub tables: Option<u32>,
    /// Codes per key.
    pub codes: Option<u32>,
    /// Hash functions.
    pub family: Option<String>,
    /// Rehash policy.
    pub upkeep: Option<String>,
    /// Steps until the first rebuild.
    pub every: Option<u64>,
    /// How far a row may move.
    pub share: Option<f32>,
}

impl Default for CandidateSettings {
    /// Nothing chosen.
    fn default() -> Self {
        Self {
            preset: None,
            sampler: None,
            lists: None,
            candidates: None,
            uniform: None,
            weighting: None,
            weight_cap: None,
            rows: DType::F32,
            tables: None,
            codes: None,
            family: None,
            upkeep: None,
            every: None,
            share: None,
        }
    }
}

impl CandidateSettings {
    /// What was chosen.
    ///
    /// # Errors
    /// A value that is none.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        TABLE.put(&Self::default(), choices)
    }

    /// Gives a classifier of so many features and labels (0: not known yet) this head.
    ///
    /// # Errors
    /// One that is impossible, or a choice that changes nothing, by the name of the setting.
    pub fn put(&self, n_features: usize, n_labels: usize, params: &mut ClassifierParams) -> Result<(), SettingError> {
        let negatives = self.negatives(n_labels, params.loss)?;
        params.head = HeadParams::Candidates(CandidateHeadParams { rows: self.rows });
        params.learning.negatives = negatives;
        params.check(n_features, n_labels).map_err(|e| error(&e))
    }

    /// Everything that they came to in a classifier of so many features and labels.
    pub fn of(params: &ClassifierParams, n_features: usize, n_labels: usize) -> Self {
        let NegativeParams { sampler, lists, uniform, weighting, .. } = params.learning.negatives;
        let tables = match sampler {
            SamplerParams::LshEmbedding(tables) | SamplerParams::LshLabel(tables) => Some(tables),
            _ => None,
        };
        let sizing = tables.and_then(|of| of.sizing(n_labels as u64, params.encoder.top_width(n_features)).ok());
        let schedule = tables.map(|of| of.schedule);
        let (every, share) = match schedule {
            Some(RebuildSchedule::Rebuild { every, .. }) => (Some(every), None),
            Some(RebuildSchedule::Drift { share, .. }) => (None, Some(share)),
            _ => (None, None),
        };
        Self {
            preset: None,
            sampler: Some(label_of(&sampler)),
            lists: Some(lists),
            candidates: Some(sampler.n_chosen()).filter(|&n| n > 0),
            uniform: Some(uniform),
            weighting: Some(label_of(&weighting)),
            weight_cap: match weighting {
                Weighting::Inverse { cap } => Some(cap.unwrap_or(0.0)),
                _ => None,
            },
            rows: match params.head {
                HeadParams::Candidates(head) => head.rows,
                _ => DType::F32,
            },
            tables: sizing.as_ref().map(|sizing| sizing.n_tables()),
            codes: sizing.as_ref().map(|sizing| sizing.n_codes()),
            family: tables.and_then(|of| serialised(&of.kind)["family"].as_str().map(str::to_owned)),
            upkeep: schedule.and_then(upkeep_name),
            every,
            share,
        }
    }

    /// What the preset says, if one was asked for.
    fn of_preset(&self) -> Option<NegativeParams> {
        self.preset.as_deref().and_then(preset::lns_of).map(|preset| preset.params.learning.negatives)
    }

    fn sampler(&self) -> &str {
        self.sampler.as_deref().unwrap_or(DEFAULT)
    }

    /// Whether labels are drawn for a list by themselves, whatever the instances are.
    fn is_drawn(&self) -> bool {
        matches!(self.sampler(), "uniform" | "log-uniform" | "frequency")
    }

    fn lists(&self) -> Lists {
        self.lists.or(self.of_preset().map(|of| of.lists)).unwrap_or_default()
    }

    /// Uniform labels of a list.
    fn uniform(&self) -> usize {
        let usual = || NegativeParams::usual_uniform(&self.named(self.sampler()), self.lists());
        self.uniform.unwrap_or_else(|| if self.preset.is_some() { 0 } else { usual() })
    }

    /// Labels of a list, or of an instance.
    fn candidates(&self) -> usize {
        let chosen = NegativeParams::usual_chosen(self.lists());
        self.candidates.unwrap_or(if self.is_drawn() { NegativeParams::USUAL_DRAWN } else { chosen })
    }

    /// Labels that a list is to hold at least.
    fn wanted(&self) -> usize {
        let chosen = if matches!(self.sampler(), "all" | "in-batch") { 0 } else { self.candidates() };
        chosen.saturating_add(self.uniform())
    }

    /// Whether labels are so few that what a list is to hold by default would be all of them.
    pub fn scores_all(&self, n_labels: usize) -> bool {
        let asked = [self.candidates, self.uniform].iter().any(Option::is_some);
        let is_default = !asked && self.sampler.is_none() && self.preset.is_none();
        is_default && (1..=self.wanted()).contains(&n_labels)
    }

    /// Which labels a step scores where there are `n_labels` (0: not known yet).
    fn negatives(&self, n_labels: usize, loss: Loss) -> Result<NegativeParams, SettingError> {
        let refused = |option: &str, why: &str| Err(SettingError::of(option, why));
        let (name, wanted) = (self.sampler(), self.wanted());
        if self.scores_all(n_labels) {
            TABLE.refuse_idle(self, &[("sampler", Some("all")), ("weighting", None), ("upkeep", None)]).map_err(|e| {
                let why = format_args!(
                    "changes nothing here: {n_labels} labels are no more than the {wanted} that a step would choose, so \
                     it scores all of them; --negatives.sampled and --negatives.uniform choose fewer"
                );
                SettingError::of(&e.setting, why)
            })?;
            return Ok(SamplerParams::All.into());
        }
        let sampler = match (self.of_preset(), &self.sampler) {
            (Some(preset), None) => match preset.sampler {
                SamplerParams::LshEmbedding(tables) => SamplerParams::LshEmbedding(self.with_tables(tables)),
                other => other,
            },
            _ => self.named(name),
        };
        let usual = NegativeParams::new(sampler, self.uniform(), loss);
        let weighting = self.weighting(usual.weighting);
        let upkeep = match sampler {
            SamplerParams::LshEmbedding(tables) | SamplerParams::LshLabel(tables) => upkeep_name(tables.schedule),
            _ => None,
        };
        let counts = (sampler != SamplerParams::All).then(|| label_of(&weighting));
        let made = [("sampler", Some(name)), ("weighting", counts.as_deref()), ("upkeep", upkeep.as_deref())];
        TABLE.refuse_idle(self, &made)?;
        if self.candidates == Some(0) {
            return refused("negatives.sampled", "0 labels, expected at least 1");
        }
        if n_labels > 0 && wanted >= n_labels && self.candidates.is_none() && self.uniform.is_none() {
            let fewer = match name {
                _ if self.is_drawn() => "--negatives.sampled",
                "in-batch" => "--negatives.uniform",
                _ => "--negatives.sampled and --negatives.uniform",
            };
            let why =
                format!("{name} takes {wanted} labels unless told otherwise, of {n_labels} here; {fewer} for fewer");
            return refused("sampler", &format!("{why}, or --sampler all"));
        }
        if n_labels > 0 && wanted >= n_labels {
            let option =
                if self.candidates.is_some_and(|n| n >= n_labels) { "negatives.sampled" } else { "negatives.uniform" };
            let option = if self.uniform() == 0 { "negatives.sampled" } else { option };
            return refused(option, &format!("{wanted} of {n_labels} labels; fewer are expected, or --sampler all"));
        }
        Ok(NegativeParams { lists: self.lists(), weighting, ..usual })
    }

    fn named(&self, name: &str) -> SamplerParams {
        let n = self.candidates();
        let tables = || self.with_tables(LshParams { candidates: n, ..LshParams::default() });
        match name {
            "all" => SamplerParams::All,
            "uniform" => SamplerParams::Uniform { per_list: n },
            "log-uniform" => SamplerParams::LogUniform { per_list: n },
            "frequency" => SamplerParams::Frequency { per_list: n, power: NegativeParams::USUAL_POWER },
            "in-batch" => SamplerParams::InBatch,
            "top-k" => SamplerParams::TopK { per_instance: n },
            "ann" => SamplerParams::Ann(AnnParams { per_instance: n, ..AnnParams::default() }),
            "midx" => SamplerParams::Midx(MidxParams { per_instance: n, ..MidxParams::default() }),
            "lsh-label" => SamplerParams::LshLabel(tables()),
            _ => SamplerParams::LshEmbedding(tables()),
        }
    }

    /// Tables with what was asked for.
    fn with_tables(&self, of: LshParams) -> LshParams {
        let Self { tables, codes, every, share, .. } = *self;
        LshParams {
            kind: match self.family.as_deref() {
                Some("sim-hash") => Kind::SimHash { projection: Projection::Sparse },
                Some(_) => Kind::Wta { bin: 8 },
                None => of.kind,
            },
            n_tables: tables.unwrap_or(of.n_tables),
            n_codes: codes.or(of.n_codes),
            candidates: self.candidates.unwrap_or(of.candidates),
            schedule: match self.upkeep(of.schedule) {
                RebuildSchedule::Rebuild { every: of, growth } => {
                    RebuildSchedule::Rebuild { every: every.unwrap_or(of), growth }
                }
                RebuildSchedule::Drift { share: of, per_step, sort_every } => {
                    RebuildSchedule::Drift { share: share.unwrap_or(of), per_step, sort_every }
                }
                other => other,
            },
            ..of
        }
    }

    /// The upkeep that was asked for, with the values that it usually has, or else this one.
    fn upkeep(&self, of: RebuildSchedule) -> RebuildSchedule {
        match self.upkeep.as_deref() {
            Some("rebuild") => RebuildSchedule::Rebuild { every: 50, growth: 1.1 },
            Some("immediate") => RebuildSchedule::Immediate { sort_every: 20 },
            Some(_) => RebuildSchedule::Drift { share: 0.05, per_step: 512, sort_every: 20 },
            None => of,
        }
    }

    /// The weighting that was asked for, in the place of the usual.
    fn weighting(&self, usual: Weighting) -> Weighting {
        let cap = self.weight_cap.unwrap_or(4.0);
        let inverse = Weighting::Inverse { cap: (cap != 0.0).then_some(cap) };
        match self.weighting.as_deref() {
            Some("none") => Weighting::None,
            Some("log-q") => Weighting::LogQ,
            Some(_) => inverse,
            None if matches!(usual, Weighting::Inverse { .. }) => inverse,
            None => usual,
        }
    }
}

/// What the rehash policy is called.
fn upkeep_name(schedule: RebuildSchedule) -> Option<String> {
    serialised(&schedule)["upkeep"].as_str().map(str::to_owned)
}

/// What is impossible, by the setting that says it.
fn error(error: &ClassifierParamsError) -> SettingError {
    use SamplerParamsError as E;
    let ClassifierParamsError::Sampler(cause) = error else { return params_error(error) };
    let setting = match cause {
        E::Number { name: "cap", .. } => "weight-cap",
        E::Number { name: "every", .. } => "upkeep.every",
        E::Number { name: "share", .. } => "upkeep.share",
        E::Chances { .. } => "weighting",
        E::Sizing(_) | E::Family(_) => "tables",
        _ => "negatives.sampled",
    };
    SettingError::of(setting, chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negatives(line: &str, n_labels: usize, loss: Loss) -> Result<NegativeParams, SettingError> {
        let mut choices = Choices::default();
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            choices.set(TABLE.row(pair[0].trim_start_matches('-')).unwrap(), pair[1])?;
        }
        CandidateSettings::new(&choices)?.negatives(n_labels, loss)
    }

    fn whose(lists: Lists) -> &'static str {
        if lists == Lists::Own { "false" } else { "true" }
    }

    #[test]
    fn nothing_chosen_but_sampler_and_lists_is_what_the_parameters_have_by_default() {
        let (usual, loss) = (preset::lns().params.learning.negatives, Loss::Bce);
        assert_eq!(negatives("", 1 << 20, loss).ok(), Some(usual));
        let (drawn, chosen) = (NegativeParams::USUAL_DRAWN, NegativeParams::usual_chosen);
        for lists in [Lists::Shared, Lists::Own] {
            let n = chosen(lists);
            let tables = LshParams { candidates: n, ..LshParams::default() };
            for (name, sampler) in [
                ("all", SamplerParams::All),
                ("uniform", SamplerParams::Uniform { per_list: drawn }),
                ("log-uniform", SamplerParams::LogUniform { per_list: drawn }),
                ("frequency", SamplerParams::Frequency { per_list: drawn, power: NegativeParams::USUAL_POWER }),
                ("in-batch", SamplerParams::InBatch),
                ("top-k", SamplerParams::TopK { per_instance: n }),
                ("ann", SamplerParams::Ann(AnnParams { per_instance: n, ..AnnParams::default() })),
                ("midx", SamplerParams::Midx(MidxParams { per_instance: n, ..MidxParams::default() })),
                ("lsh-embedding", SamplerParams::LshEmbedding(tables)),
                ("lsh-label", SamplerParams::LshLabel(tables)),
            ] {
                // All labels stand in no lists.
                let (line, lists) = match sampler {
                    SamplerParams::All => ("--sampler all".to_owned(), Lists::default()),
                    _ => (format!("--sampler {name} --negatives.shared {}", whose(lists)), lists),
                };
                for loss in [Loss::Bce, Loss::SquaredHinge, Loss::Softmax, Loss::Nce] {
                    let uniform = NegativeParams::usual_uniform(&sampler, lists);
                    let expected = NegativeParams { lists, ..NegativeParams::new(sampler, uniform, loss) };
                    assert_eq!(negatives(&line, 1 << 20, loss).ok(), Some(expected), "{line}, {loss:?}");
                }
            }
        }
        // The numbers of the library's samplers are those for a list of a batch.
        assert_eq!(LshParams::default().candidates, chosen(Lists::Shared));
        assert_eq!(MidxParams::default().per_instance, chosen(Lists::Shared));
        assert_eq!(AnnParams::default().per_instance, chosen(Lists::Shared));
    }

    #[test]
    fn few_labels_are_all_scored_unless_a_number_was_asked_for() {
        let sampler = |line, n_labels| negatives(line, n_labels, Loss::Bce).map(|params| params.sampler).ok();
        assert_eq!(sampler("", 2010), Some(SamplerParams::All));
        assert!(matches!(sampler("", 2011), Some(SamplerParams::LshEmbedding(LshParams { candidates: 10, .. }))));
        let uniform = Some(SamplerParams::Uniform { per_list: 300 });
        assert_eq!(sampler("--sampler uniform --negatives.sampled 300", 301), uniform);
        assert_eq!(sampler("--sampler uniform --negatives.sampled 300", 300), None);
        assert_eq!(sampler("--sampler all", 10), Some(SamplerParams::All));
    }

    #[test]
    fn what_a_false_candidate_counts_follows_from_sampler_and_loss() {
        let weighting = |line, loss| negatives(line, 1 << 20, loss).unwrap().weighting;
        assert_eq!(weighting("", Loss::Softmax), Weighting::CAPPED);
        assert_eq!(weighting("--negatives.shared false", Loss::Softmax), Weighting::None);
        assert_eq!(weighting("--sampler uniform", Loss::Softmax), Weighting::LogQ);
        assert_eq!(weighting("--sampler uniform", Loss::Bce), Weighting::CAPPED);
        assert_eq!(weighting("--sampler uniform --weight-cap 0", Loss::Bce), Weighting::Inverse { cap: None });
        assert_eq!(weighting("--weighting log-q", Loss::Bce), Weighting::LogQ);
    }

    #[test]
    fn a_paper_s_settings_may_be_changed_one_by_one() {
        let tables = |line| match negatives(line, 1 << 20, Loss::Softmax).unwrap() {
            NegativeParams { sampler: SamplerParams::LshEmbedding(tables), lists: Lists::Own, uniform: 0, .. } => {
                tables
            }
            other => panic!("{other:?}"),
        };
        let paper = tables("--preset amazon-670k");
        assert_eq!((paper.n_codes, paper.n_tables), (Some(6), 400));
        assert!(matches!(paper.schedule, RebuildSchedule::Rebuild { every: 50, .. }));
        assert_eq!(tables("--preset amazon-670k --tables 50"), LshParams { n_tables: 50, ..paper });
        assert_eq!(tables("--preset text8 --negatives.sampled 7").candidates, 7);
    }
}
