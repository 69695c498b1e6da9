//! The settings of a head whose steps score some labels, which kinds of networks share.

use super::network::params_error;
use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, USUAL, Values, serialised};
use crate::tune::Scale;
use Values::{F32, Forms, Names, Size};
use serde_json::Value;
use xc_buffer::dtype::DType;
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{FamilyKind, Projection};
use xc_model::classifier::{CandidateHeadParams, ClassifierParamsError, HeadParams};
use xc_model::message::{chain, label_of};
use xc_nn::Loss;
use xc_nn::sampler::{
    AnnParams, Lists, LshParams, MidxParams, NegativeParams, SamplerParams, SamplerParamsError, Weighting,
};
use xc_train::network::NetworkParams;
use xc_train::preset;

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

const fn candidates(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Network(at)).heading(CANDIDATES)
}

const fn tables(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit)
        .at(SettingPlace::Network(at))
        .heading(TABLES)
        .belongs_to("sampler", &["lsh-embedding", "lsh-label"])
        .of_preset()
}

/// What other values are chosen by.
const BY_NAME: At<NetworkParams> = At::Form { name: "preset", get: |_| None, put: |_, _| Ok(()) };

fn negatives(p: &mut NetworkParams) -> &mut NegativeParams {
    &mut p.classifier.learning.negatives
}

fn tables_of(p: &mut NetworkParams) -> Option<&mut LshParams> {
    negatives(p).sampler.tables_mut()
}

fn named(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const SAMPLER: At<NetworkParams> = At::Form {
    name: "classifier.learning.negatives.sampler",
    get: |p| Some(label_of(&p.classifier.learning.negatives.sampler).into()),
    put: |p, value| {
        let of = negatives(p);
        if label_of(&of.sampler) != named(value) {
            of.sampler = sampler(named(value), of.lists);
        }
        Ok(())
    },
};

const WEIGHTING: At<NetworkParams> = At::Form {
    name: "classifier.learning.negatives.weighting",
    get: |p| Some(label_of(&p.classifier.learning.negatives.weighting).into()),
    put: |p, value| {
        negatives(p).weighting = match named(value) {
            "none" => Weighting::None,
            "log-q" => Weighting::LogQ,
            _ => Weighting::CAPPED,
        };
        Ok(())
    },
};

const WEIGHT_CAP: At<NetworkParams> = At::Form {
    name: "classifier.learning.negatives.weighting.cap",
    get: |p| match p.classifier.learning.negatives.weighting {
        Weighting::Inverse { cap } => Some(cap.unwrap_or(0.0).get()),
        _ => None,
    },
    put: |p, value| {
        if let Weighting::Inverse { cap } = &mut negatives(p).weighting {
            cap.put(value)?;
            *cap = cap.filter(|&cap| cap != 0.0);
        }
        Ok(())
    },
};

/// Of heads that have rows of labels.
pub(super) const ROWS: At<NetworkParams> = At::Field("classifier.head.rows", |p| match &mut p.classifier.head {
    HeadParams::Candidates(head) => Some(&mut head.rows),
    _ => None,
});

const FAMILY: At<NetworkParams> = At::Form {
    name: "classifier.learning.negatives.sampler.kind",
    get: |p| Some(serialised(&tables_of(&mut p.clone())?.kind)["family"].clone()),
    put: |p, value| {
        let kind = match named(value) {
            "sim-hash" => FamilyKind::SimHash { projection: Projection::Sparse },
            _ => FamilyKind::Wta { bin: 8 },
        };
        tables_of(p).into_iter().for_each(|tables| tables.kind = kind);
        Ok(())
    },
};

const UPKEEP: At<NetworkParams> = At::Form {
    name: "classifier.learning.negatives.sampler.schedule",
    get: |p| Some(serialised(&tables_of(&mut p.clone())?.schedule)["upkeep"].clone()),
    put: |p, value| {
        let schedule = match named(value) {
            "rebuild" => RebuildSchedule::Rebuild { every: 50, growth: 1.1 },
            "immediate" => RebuildSchedule::Immediate { sort_every: 20 },
            _ => RebuildSchedule::Drift { share: 0.05, per_step: 512, sort_every: 20 },
        };
        tables_of(p).into_iter().for_each(|tables| tables.schedule = schedule);
        Ok(())
    },
};

const EVERY: At<NetworkParams> =
    At::Field("classifier.learning.negatives.sampler.schedule.every", |p| match &mut tables_of(p)?.schedule {
        RebuildSchedule::Rebuild { every, .. } => Some(every),
        _ => None,
    });

const SHARE: At<NetworkParams> =
    At::Field("classifier.learning.negatives.sampler.schedule.share", |p| match &mut tables_of(p)?.schedule {
        RebuildSchedule::Drift { share, .. } => Some(share),
        _ => None,
    });

/// What a paper used.
pub(super) const PRESET: Setting =
    candidates("preset", BY_NAME, Names(&["amazon-670k", "wikilshtc-325k", "text8"]), "NAME").help(
        "Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options override them",
    );

/// Places are those of [`NegativeParams`] in a network, and of its head.
pub const TABLE: Table = Table {
    rows: &[
        PRESET,
        candidates("sampler", SAMPLER, Names(&SAMPLERS), "SAMPLER")
            .of_preset()
            .of_data()
            .help(
                "Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by \
             rank of frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest \
             logits (top-k), or approximately those by an index (ann); those that hash tables find by the \
             instance's vector (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted \
             multi-index (midx)",
            )
            .searched(
                &[USUAL, "midx", "log-uniform", "frequency", "in-batch", "all"],
                0,
                Scale::Named,
                "which labels a step scores",
            ),
        candidates("negatives.shared", At::Field("classifier.learning.negatives.lists", |p| Some(&mut negatives(p).lists)), Forms(&SHARED), "BOOL")
            .of_preset()
            .help("One list of negatives per batch, or, if false, one per instance")
            .belongs_to("sampler", &CHOOSING),
        candidates("negatives.sampled", At::Field("classifier.learning.negatives.sampler.chosen", |p| Some(negatives(p).sampler.n_chosen_mut()?)), Size, "N")
            .of_preset()
            .help(
                "Sampled labels: per list for samplers that do not look at the instances, else per instance",
            )
            .belongs_to("sampler", &COUNTING)
            .said_at(&[&[("negatives.shared", "false")]]),
        candidates("negatives.uniform", At::Field("classifier.learning.negatives.uniform", |p| Some(&mut negatives(p).uniform)), Size, "N")
            .of_preset()
            .help(
                "Uniform labels per list in addition to those of the sampler, weighted to represent all \
                 remaining labels",
            )
            .belongs_to("sampler", &CHOOSING)
            .said_at(&[&[("negatives.shared", "false")]])
            .searched(&[USUAL, "500", "2000", "8000"], 0, Scale::Named, "they stand for all other labels"),
        candidates("weighting", WEIGHTING, Names(&["none", "log-q", "inverse"]), "WHAT")
            .follows("sampler")
            .rare().help(
                "Importance weight of sampled negatives. none: 1. log-q: the log of its probability is \
                 subtracted from its logit (softmax, nce). inverse: 1 / its probability, at most --weight-cap",
            )
            .belongs_to("sampler", &CHOOSING)
            .said_at(&[&[("negatives.shared", "false")], &[("sampler", "frequency"), ("loss", "softmax")]]),
        candidates("weight-cap", WEIGHT_CAP, F32, "X")
            .follows("weighting")
            .rare().help("Largest weight (--weighting inverse); 0: no limit")
            .belongs_to("weighting", &["inverse"]),
        candidates("head.precision", ROWS, Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]), "TYPE")
            .rare().help("Type of the rows of label weights, in training and in the model"),
        tables("tables", At::Field("classifier.learning.negatives.sampler.n_tables", |p| Some(&mut tables_of(p)?.n_tables)), Size, "N")
            .follows("codes")
            .usual("as many as find the labels that are wanted, at most 50")
            .help("Number of tables, L; without --codes, the largest number"),
        tables("codes", At::Field("classifier.learning.negatives.sampler.n_codes", |p| Some(&mut tables_of(p)?.n_codes)), Size, "N")
            .of_data()
            .usual("chosen so that few unrelated labels collide")
            .help("Codes per key, K"),
        tables("tables.family", FAMILY, Names(&["wta", "sim-hash"]), "NAME").help(
            "Hash functions: winner-take-all over 8 coordinates, or signs of projections, for which the \
             chance that a label is found is known (--weighting log-q, inverse)",
        ),
        tables("upkeep", UPKEEP, Names(&["drift", "rebuild", "immediate"]), "WHEN").help(
            "Rehash policy: as labels drift (drift), all at intervals (rebuild), or in every step that \
             changes them (immediate)",
        ),
        tables("upkeep.every", EVERY, Size, "STEPS")
            .help(
                "Steps until the first rebuild; each further interval is a tenth longer (--upkeep rebuild)",
            )
            .follows("upkeep")
            .belongs_to("upkeep", &["rebuild"]),
        tables("upkeep.share", SHARE, F32, "X")
            .help(
                "How far a label's row may move before it is rehashed, as a share of its length (--upkeep drift)",
            )
            .follows("upkeep")
            .belongs_to("upkeep", &["drift"]),
    ],
    starts: &[],
};

/// Gives a network over so many features and labels (0: not known yet) this head, as it was chosen; what was not follows
/// from the rest, the labels and the loss.
///
/// # Errors
/// One that is impossible, or a choice that changes nothing, by the name of the setting.
pub fn add(
    network: NetworkParams,
    n_features: usize,
    n_labels: usize,
    choices: &Choices,
) -> Result<NetworkParams, SettingError> {
    let made = put(network, n_labels, choices)?;
    made.classifier.check(n_features, n_labels).map_err(|e| error(&e))?;
    Ok(made)
}

fn put(mut network: NetworkParams, n_labels: usize, choices: &Choices) -> Result<NetworkParams, SettingError> {
    let asked = Asked::new(choices);
    let classifier = &mut network.classifier;
    classifier.head = HeadParams::Candidates(CandidateHeadParams { rows: DType::F32 });
    if !scores_all(n_labels, choices) {
        classifier.learning.negatives = asked.usual(classifier.loss);
        let made = TABLE.place(network, choices)?;
        asked.check(n_labels)?;
        return Ok(made);
    }
    classifier.learning.negatives = SamplerParams::All.into();
    TABLE.refuse_idle(choices, |other| (other.name == "sampler").then(|| "all".to_owned())).map_err(|e| {
        let why = format_args!(
            "has no effect: {n_labels} labels are no more than the {} that a step would choose, so it scores all of \
             them; --negatives.sampled and --negatives.uniform choose fewer",
            asked.wanted()
        );
        SettingError::plain(&e.setting, why)
    })?;
    TABLE.place(network, choices)
}

/// Whether labels are so few that what a list is to hold by default would be all of them.
pub fn scores_all(n_labels: usize, choices: &Choices) -> bool {
    let asks = ["negatives.sampled", "negatives.uniform", "sampler", "preset"];
    let is_default = asks.iter().all(|name| choices.get(name).is_none());
    is_default && (1..=Asked::new(choices).wanted()).contains(&n_labels)
}

/// A network as it is shown: tables with the sizes that they have for so many features and labels.
pub fn shown(mut network: NetworkParams, n_features: usize, n_labels: usize) -> NetworkParams {
    let width = network.classifier.encoder.top_width(n_features);
    if let Some(tables) = tables_of(&mut network)
        && let Ok(sizing) = tables.sizing(n_labels as u64, width)
    {
        (tables.n_tables, tables.n_codes) = (sizing.n_tables(), Some(sizing.n_codes()));
    }
    network
}

/// A sampler by its name, with the numbers that it usually has for lists of a kind.
fn sampler(name: &str, lists: Lists) -> SamplerParams {
    let (n, drawn) = (NegativeParams::usual_chosen(lists), NegativeParams::USUAL_DRAWN);
    let tables = LshParams { candidates: n, ..LshParams::default() };
    match name {
        "all" => SamplerParams::All,
        "uniform" => SamplerParams::Uniform { per_list: drawn },
        "log-uniform" => SamplerParams::LogUniform { per_list: drawn },
        "frequency" => SamplerParams::Frequency { per_list: drawn, power: NegativeParams::USUAL_POWER },
        "in-batch" => SamplerParams::InBatch,
        "top-k" => SamplerParams::TopK { per_instance: n },
        "ann" => SamplerParams::Ann(AnnParams { per_instance: n, ..AnnParams::default() }),
        "midx" => SamplerParams::Midx(MidxParams { per_instance: n, ..MidxParams::default() }),
        "lsh-label" => SamplerParams::LshLabel(tables),
        _ => SamplerParams::LshEmbedding(tables),
    }
}

/// What usual values follow from.
struct Asked {
    /// Of the preset, if one was asked for.
    preset: Option<NegativeParams>,
    sampler: Option<String>,
    lists: Lists,
    candidates: Option<usize>,
    uniform: Option<usize>,
}

impl Asked {
    fn new(choices: &Choices) -> Self {
        let preset = choices.value::<String>("preset").and_then(|name| preset::lns_of(&name));
        let preset = preset.map(|preset| preset.params.learning.negatives);
        let lists = choices.value("negatives.shared").or(preset.map(|of| of.lists)).unwrap_or_default();
        let number = |name: &str| choices.value(name);
        let (candidates, uniform) = (number("negatives.sampled"), number("negatives.uniform"));
        Self { preset, sampler: choices.value("sampler"), lists, candidates, uniform }
    }

    fn name(&self) -> &str {
        self.sampler.as_deref().unwrap_or(DEFAULT)
    }

    /// The sampler with its usual numbers.
    fn sampler(&self) -> SamplerParams {
        match (&self.sampler, self.preset) {
            (None, Some(preset)) => preset.sampler,
            _ => sampler(self.name(), self.lists),
        }
    }

    /// Uniform labels of a list.
    fn uniform(&self) -> usize {
        let usual = || match self.preset {
            Some(_) => 0,
            None => NegativeParams::usual_uniform(&sampler(self.name(), self.lists), self.lists),
        };
        self.uniform.unwrap_or_else(usual)
    }

    /// Labels that a list is to hold at least.
    fn wanted(&self) -> usize {
        let usual = sampler(self.name(), self.lists).n_chosen();
        let chosen = if usual == 0 { 0 } else { self.candidates.unwrap_or(usual) };
        chosen.saturating_add(self.uniform())
    }

    /// Which labels a step scores under a loss, where nothing further is said.
    fn usual(&self, loss: Loss) -> NegativeParams {
        NegativeParams { lists: self.lists, ..NegativeParams::new(self.sampler(), self.uniform(), loss) }
    }

    /// Refuses lists of no labels, and of as many as there are.
    fn check(&self, n_labels: usize) -> Result<(), SettingError> {
        let refused = |option: &str, why: &str| Err(SettingError::of(option, why));
        let (name, wanted) = (self.name(), self.wanted());
        if self.candidates == Some(0) {
            return refused("negatives.sampled", "0 labels, expected at least 1");
        }
        if n_labels == 0 || wanted < n_labels {
            return Ok(());
        }
        if self.candidates.is_none() && self.uniform.is_none() {
            let fewer = match name {
                "uniform" | "log-uniform" | "frequency" => "--negatives.sampled",
                "in-batch" => "--negatives.uniform",
                _ => "--negatives.sampled and --negatives.uniform",
            };
            let why =
                format!("{name} takes {wanted} labels unless told otherwise, of {n_labels} here; {fewer} for fewer");
            return refused("sampler", &format!("{why}, or --sampler all"));
        }
        let option =
            if self.candidates.is_some_and(|n| n >= n_labels) { "negatives.sampled" } else { "negatives.uniform" };
        let option = if self.uniform() == 0 { "negatives.sampled" } else { option };
        refused(option, &format!("{wanted} of {n_labels} labels; fewer are expected, or --sampler all"))
    }
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
    use xc_model::classifier::InputKind;

    fn negatives(line: &str, n_labels: usize, loss: Loss) -> Result<NegativeParams, SettingError> {
        let mut choices = Choices::default();
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            choices.set(TABLE.row(pair[0].trim_start_matches('-')).unwrap(), pair[1])?;
        }
        let mut network = NetworkParams::of(&preset::lns(), InputKind::Sparse);
        network.classifier.loss = loss;
        Ok(put(network, n_labels, &choices)?.classifier.learning.negatives)
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
