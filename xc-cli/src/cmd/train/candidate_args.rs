//! Options of a head whose steps score some labels, which kinds of networks share.

use super::network::{Session, Shape, params_error};
use super::network_args::refuse_idle;
use crate::error::{CliError, chain};
use crate::named::{named, number_type};
use clap::builder::PossibleValuesParser;
use xc_lsh::upkeep::Schedule;
use xc_lsh::{Kind, Projection};
use xc_nn::Loss;
use xc_nn::sampler::{
    AnnParams, Lists, LshParams, MidxParams, NegativeParams, SamplerParams, SamplerParamsError, Weighting,
};
use xc_sparse::dtype::DType;
use xc_train::classifier::{CandidateHeadParams, ClassifierParams, ClassifierParamsError, HeadParams, preset};

/// Which labels a step scores.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Candidate options")]
pub(crate) struct CandidateArgs {
    /// Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options override them
    #[arg(long, value_name = "NAME", value_parser = ["amazon-670k", "wikilshtc-325k", "text8"])]
    pub(super) preset: Option<String>,
    /// Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by rank of frequency,
    /// frequency); true labels of the batch (in-batch); those with the largest logits (top-k), or approximately those
    /// by an index (ann); those that hash tables find by the instance's vector (lsh-embedding) or by the true labels
    /// (lsh-label); drawn from an inverted multi-index (midx) [default: lsh-embedding; all where labels are few]
    #[arg(long, value_name = "SAMPLER", value_parser = PossibleValuesParser::new(SAMPLERS))]
    sampler: Option<String>,
    /// One list of candidates per batch, or one per instance [default: shared]
    #[arg(long, value_name = "WHOSE", value_parser = named::<Lists, _>(["shared", "own"]))]
    lists: Option<Lists>,
    /// Sampled labels: per list for samplers that do not look at the instances [default: 2000], else per instance
    /// [default: 10 for a shared list, 500 for separate lists]
    #[arg(long, value_name = "N")]
    candidates: Option<usize>,
    /// Uniform labels per list in addition to those of the sampler, weighted to represent all remaining labels [default:
    /// 2000 in a shared list of a sampler that looks at the instances, else 0]
    #[arg(long, value_name = "N")]
    uniform: Option<usize>,
    /// Importance weight of sampled negatives. none: 1. log-q: the log of its probability is subtracted from its logit (softmax,
    /// nce). inverse: 1 / its probability, at most --weight-cap [default: inverse with uniform labels; else none with
    /// tables and top-k, log-q with softmax and nce, inverse with other losses]
    #[arg(long, value_name = "WHAT", value_parser = ["none", "log-q", "inverse"])]
    weighting: Option<String>,
    /// Largest weight (--weighting inverse); 0: no limit [default: 4]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    weight_cap: Option<f32>,
    /// The chance of a label is proportional to this power of its frequency (--sampler frequency)
    /// [default: 0.75]
    #[arg(long = "sampler.power", value_name = "X")]
    power: Option<f64>,
    /// Type of the rows of label weights, in training and in the model
    #[arg(long = "head.precision", value_name = "TYPE", value_parser = number_type([DType::F32, DType::Bf16]), default_value = "f32")]
    rows: DType,
    #[command(flatten)]
    tables: TableArgs,
}

/// Tables of labels.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of tables (--sampler lsh-embedding, lsh-label)")]
struct TableArgs {
    /// Number of tables, L; without --codes, the largest number [default: 50]
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// Codes per key, K [default: chosen so that few unrelated labels collide]
    #[arg(long, value_name = "N")]
    codes: Option<u32>,
    /// Hash functions: winner-take-all over 8 coordinates, or signs of projections, for which the chance that a label
    /// is found is known (--weighting log-q, inverse) [default: wta]
    #[arg(long = "tables.family", value_name = "NAME", value_parser = ["wta", "sim-hash"])]
    family: Option<String>,
    /// Probes per table, above 1 multi-probe [default: 1]
    #[arg(long = "tables.probes", value_name = "N")]
    probes: Option<u32>,
    /// Maximum number of labels per bucket [default: 128]
    #[arg(long = "tables.per-bucket", value_name = "N")]
    per_bucket: Option<usize>,
    /// Rehash policy: as labels drift (drift), all at intervals (rebuild), or in every step that changes them
    /// (immediate) [default: drift]
    #[arg(long, value_name = "WHEN", value_parser = ["drift", "rebuild", "immediate"])]
    upkeep: Option<String>,
    /// Steps until the first rebuild; each further interval is a tenth longer (--upkeep rebuild)
    /// [default: 50]
    #[arg(long = "upkeep.every", value_name = "STEPS")]
    every: Option<u64>,
    /// How far a label's row may move before it is rehashed, as a share of its length (--upkeep drift)
    /// [default: 0.05]
    #[arg(long = "upkeep.share", value_name = "X")]
    share: Option<f32>,
    /// Maximum number of labels rehashed per step (--upkeep drift) [default: 512]
    #[arg(long = "upkeep.per-step", value_name = "N")]
    per_step: Option<usize>,
    /// Steps between the sorting of one table and the next (--upkeep drift, immediate)
    /// [default: 20]
    #[arg(long = "upkeep.sort-every", value_name = "STEPS")]
    sort_every: Option<u64>,
}

const SAMPLERS: [&str; 10] =
    ["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"];
/// The sampler unless one is asked for.
const DEFAULT: &str = "lsh-embedding";

impl CandidateArgs {
    /// Gives the classifier this head, and refuses one that is impossible for instances of a shape.
    pub(super) fn apply(&self, shape: &Shape, params: &mut ClassifierParams) -> Result<(), CliError> {
        let negatives = self.negatives(shape.n_labels, params.loss)?;
        params.head = HeadParams::Candidates(CandidateHeadParams { rows: self.rows });
        params.learning.negatives = negatives;
        params.check(shape.n_features, shape.n_labels).map_err(|e| self.error(&e))
    }

    /// Says where few labels change what a step does.
    pub(super) fn announce(&self, session: &Session<'_>) {
        let n_labels = session.shape.n_labels;
        if self.scores_all(n_labels) {
            session
                .context
                .note(format_args!("{n_labels} labels are no more than a step would choose: it scores all of them"));
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
    pub(super) fn scores_all(&self, n_labels: usize) -> bool {
        let asked = [self.candidates, self.uniform].iter().any(Option::is_some);
        let is_default = !asked && self.sampler.is_none() && self.preset.is_none();
        is_default && (1..=self.wanted()).contains(&n_labels)
    }

    /// Which labels a step scores where there are `n_labels` (0: not known yet).
    fn negatives(&self, n_labels: usize, loss: Loss) -> Result<NegativeParams, CliError> {
        let refused = |option: &str, why: &str| Err(CliError::usage(format_args!("--{option}: {why}")));
        let (name, wanted) = (self.sampler(), self.wanted());
        if matches!(name, "all" | "in-batch") && self.candidates.is_some() {
            return refused("candidates", &format!("--sampler {name} takes no number of them"));
        }
        if self.candidates == Some(0) {
            return refused("candidates", "0 labels, expected at least 1");
        }
        if name == "all" && self.uniform.is_some() {
            return refused("uniform", "--sampler all scores every label");
        }
        if let (Some(option), false) = (self.tables.given(), name.starts_with("lsh")) {
            return refused(option, &format!("--sampler {name} has no tables"));
        }
        if self.scores_all(n_labels) {
            if let Some(option) = self.of_lists() {
                let wanted = self.wanted();
                return refused(
                    option,
                    &format!(
                        "changes nothing here: {n_labels} labels are no more than the {wanted} that a step would choose, so \
                         it scores all of them; --candidates and --uniform choose fewer"
                    ),
                );
            }
            return Ok(SamplerParams::All.into());
        }
        if n_labels > 0 && wanted >= n_labels && self.candidates.is_none() && self.uniform.is_none() {
            let fewer = match name {
                _ if self.is_drawn() => "--candidates",
                "in-batch" => "--uniform",
                _ => "--candidates and --uniform",
            };
            let why =
                format!("{name} takes {wanted} labels unless told otherwise, of {n_labels} here; {fewer} for fewer");
            return refused("sampler", &format!("{why}, or --sampler all"));
        }
        if n_labels > 0 && wanted >= n_labels {
            let option = if self.candidates.is_some_and(|n| n >= n_labels) { "candidates" } else { "uniform" };
            let option = if self.uniform() == 0 { "candidates" } else { option };
            return refused(option, &format!("{wanted} of {n_labels} labels; fewer are expected, or --sampler all"));
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
        self.refuse_idle(&sampler, weighting)?;
        Ok(NegativeParams { lists: self.lists(), weighting, ..usual })
    }

    /// Refuses options that were given and belong to a choice that is not made.
    fn refuse_idle(&self, sampler: &SamplerParams, weighting: Weighting) -> Result<(), CliError> {
        let is_all = *sampler == SamplerParams::All;
        let is_frequency = matches!(sampler, SamplerParams::Frequency { .. });
        let is_inverse = matches!(weighting, Weighting::Inverse { .. });
        let (is_rebuild, is_drift) = match sampler {
            SamplerParams::LshEmbedding(tables) | SamplerParams::LshLabel(tables) => {
                (matches!(tables.schedule, Schedule::Rebuild { .. }), matches!(tables.schedule, Schedule::Drift { .. }))
            }
            _ => (false, false),
        };
        let TableArgs { every, share, per_step, sort_every, .. } = &self.tables;
        refuse_idle(&[
            ("lists", self.lists.is_some() && is_all, "a --sampler that chooses labels"),
            ("weighting", self.weighting.is_some() && is_all, "a --sampler that chooses labels"),
            ("weight-cap", self.weight_cap.is_some() && (is_all || !is_inverse), "--weighting inverse"),
            ("sampler.power", self.power.is_some() && !is_frequency, "--sampler frequency"),
            ("upkeep.every", every.is_some() && !is_rebuild, "--upkeep rebuild"),
            ("upkeep.share", share.is_some() && !is_drift, "--upkeep drift"),
            ("upkeep.per-step", per_step.is_some() && !is_drift, "--upkeep drift"),
            ("upkeep.sort-every", sort_every.is_some() && is_rebuild, "--upkeep drift or immediate"),
        ])
    }

    /// An option that was given and says how labels of lists are chosen.
    fn of_lists(&self) -> Option<&'static str> {
        let given = [
            ("lists", self.lists.is_some()),
            ("weighting", self.weighting.is_some()),
            ("weight-cap", self.weight_cap.is_some()),
            ("sampler.power", self.power.is_some()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
        given.or_else(|| self.tables.given())
    }

    fn named(&self, name: &str) -> SamplerParams {
        let (n, power) = (self.candidates(), self.power.unwrap_or(0.75));
        let tables = || self.with_tables(LshParams { candidates: n, ..LshParams::default() });
        match name {
            "all" => SamplerParams::All,
            "uniform" => SamplerParams::Uniform { per_list: n },
            "log-uniform" => SamplerParams::LogUniform { per_list: n },
            "frequency" => SamplerParams::Frequency { per_list: n, power },
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
        let TableArgs { tables, codes, probes, per_bucket, every, share, per_step, sort_every, .. } = self.tables;
        LshParams {
            kind: match self.tables.family.as_deref() {
                Some("sim-hash") => Kind::SimHash { projection: Projection::Sparse },
                Some(_) => Kind::Wta { bin: 8 },
                None => of.kind,
            },
            n_tables: tables.unwrap_or(of.n_tables),
            n_codes: codes.or(of.n_codes),
            probes: probes.unwrap_or(of.probes),
            candidates: self.candidates.unwrap_or(of.candidates),
            per_bucket: per_bucket.unwrap_or(of.per_bucket),
            schedule: match self.upkeep(of.schedule) {
                Schedule::Rebuild { every: of, growth } => Schedule::Rebuild { every: every.unwrap_or(of), growth },
                Schedule::Immediate { sort_every: of } => Schedule::Immediate { sort_every: sort_every.unwrap_or(of) },
                Schedule::Drift { share: of_share, per_step: of_step, sort_every: of } => Schedule::Drift {
                    share: share.unwrap_or(of_share),
                    per_step: per_step.unwrap_or(of_step),
                    sort_every: sort_every.unwrap_or(of),
                },
            },
        }
    }

    /// The upkeep that was asked for, with the values that it usually has, or else this one.
    fn upkeep(&self, of: Schedule) -> Schedule {
        match self.tables.upkeep.as_deref() {
            Some("rebuild") => Schedule::Rebuild { every: 50, growth: 1.1 },
            Some("immediate") => Schedule::Immediate { sort_every: 20 },
            Some(_) => Schedule::Drift { share: 0.05, per_step: 512, sort_every: 20 },
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

    /// What is impossible, by the option that says it.
    fn error(&self, error: &ClassifierParamsError) -> CliError {
        use SamplerParamsError as E;
        let ClassifierParamsError::Sampler(cause) = error else { return params_error(error) };
        let option = match cause {
            E::Number { name: "power", .. } => "sampler.power",
            E::Number { name: "cap", .. } => "weight-cap",
            E::Number { name: "probes", .. } => "tables.probes",
            E::Number { name: "per_bucket", .. } => "tables.per-bucket",
            E::Number { name: "every", .. } => "upkeep.every",
            E::Number { name: "share", .. } => "upkeep.share",
            E::Number { name: "per_step", .. } => "upkeep.per-step",
            E::Chances { .. } => "weighting",
            E::Sizing(_) | E::Family(_) => "tables",
            _ => "candidates",
        };
        CliError::usage(format_args!("--{option}: {}", chain(error)))
    }
}

impl TableArgs {
    /// An option of tables that was given.
    fn given(&self) -> Option<&'static str> {
        let Self { tables, codes, family, probes, per_bucket, upkeep, every, share, per_step, sort_every } = self;
        let given = [
            ("tables", tables.is_some()),
            ("codes", codes.is_some()),
            ("tables.family", family.is_some()),
            ("tables.probes", probes.is_some()),
            ("tables.per-bucket", per_bucket.is_some()),
            ("upkeep", upkeep.is_some()),
            ("upkeep.every", every.is_some()),
            ("upkeep.share", share.is_some()),
            ("upkeep.per-step", per_step.is_some()),
            ("upkeep.sort-every", sort_every.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

#[cfg(test)]
pub(super) use tests::same_as_the_library;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        head: CandidateArgs,
    }

    fn negatives(line: &str, n_labels: usize, loss: Loss) -> Result<NegativeParams, CliError> {
        let line = std::iter::once("xc").chain(line.split_whitespace());
        Line::try_parse_from(line).unwrap().head.negatives(n_labels, loss)
    }

    /// What options say where nothing but the sampler, the lists and the loss is given, beside the library.
    pub(crate) fn same_as_the_library(usual: &NegativeParams, loss: Loss) {
        assert_eq!(negatives("", 1 << 20, loss).ok().as_ref(), Some(usual));
        let (drawn, chosen) = (NegativeParams::USUAL_DRAWN, NegativeParams::usual_chosen);
        for lists in [Lists::Shared, Lists::Own] {
            let n = chosen(lists);
            let tables = LshParams { candidates: n, ..LshParams::default() };
            for (name, sampler) in [
                ("all", SamplerParams::All),
                ("uniform", SamplerParams::Uniform { per_list: drawn }),
                ("log-uniform", SamplerParams::LogUniform { per_list: drawn }),
                ("frequency", SamplerParams::Frequency { per_list: drawn, power: 0.75 }),
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
                    _ => (format!("--sampler {name} --lists {}", crate::named::name_of(&lists)), lists),
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
        assert_eq!(sampler("--sampler uniform --candidates 300", 301), uniform);
        assert_eq!(sampler("--sampler uniform --candidates 300", 300), None);
        assert_eq!(sampler("--sampler all", 10), Some(SamplerParams::All));
    }

    #[test]
    fn what_a_false_candidate_counts_follows_from_sampler_and_loss() {
        let weighting = |line, loss| negatives(line, 1 << 20, loss).unwrap().weighting;
        assert_eq!(weighting("", Loss::Softmax), Weighting::CAPPED);
        assert_eq!(weighting("--lists own", Loss::Softmax), Weighting::None);
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
        assert!(matches!(paper.schedule, Schedule::Rebuild { every: 50, .. }));
        assert_eq!(tables("--preset amazon-670k --tables 50"), LshParams { n_tables: 50, ..paper });
        assert_eq!(tables("--preset text8 --candidates 7").candidates, 7);
    }
}
