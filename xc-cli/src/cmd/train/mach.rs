//! `xc train mach`: repetitions one after the other, each kept when it is finished, then put together.

use super::explain::seen_labels;
use super::inputs::{DataArgs, Instances};
use super::neural::{NeuralWatch, Setup, training_error, within};
use super::neural_args::NeuralArgs;
use super::report::{Report, score};
use crate::context::Context;
use crate::error::{CliError, chain};
use crate::measure::Meter;
use crate::model::{self, DecoderName, Extras, FamilyName, beside};
use serde_json::{Map, json};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;
use xc_sparse::LabelRows;
use xc_sparse::store::OpenMode;
use xc_train::mach::{MachContainer, MachParams, Repetition, bucket_rows, repetition_seed};
use xc_train::trainer::remove_checkpoint;

/// Train MACH: networks over hashed labels
///
/// Labels are hashed into --buckets buckets, --repetitions times independently, and
/// each repetition is a network with one output a bucket: weights and time of training
/// depend on the buckets, not on the number of labels. A label is found by what all
/// repetitions say of its buckets.
///
/// Repetitions know nothing of each other. --repetitions-range trains some of them, on
/// this machine or another, and `xc merge` puts them together: the result is the same
/// as that of one run, to the byte.
///
/// A finished repetition is kept in MODEL.checkpoint until the model is complete, and
/// an unfinished one goes on where it was with --resume. Progress is logged to
/// MODEL.log.
///
/// Examples:
///   xc train mach --train train.txt --tfidf --repetitions 8 --buckets 2000 --model my.model
///   xc train mach --train train.txt --buckets 2000 --repetitions-range 4..8 --model part2.model
///   xc merge part1.model part2.model --output my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,
    /// Repetitions: more tell labels apart better, and cost as much more
    #[arg(
        long,
        value_name = "R",
        default_value_t = 32,
        conflicts_with = "repetitions_range",
        help_heading = "MACH options"
    )]
    repetitions: u32,
    /// Train only the repetitions of these numbers, FROM..TO without TO, to be merged with others
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range, help_heading = "MACH options")]
    repetitions_range: Option<Range<u32>>,
    /// Buckets of a repetition, fewer than labels
    #[arg(long, value_name = "B", default_value_t = 10_000, help_heading = "MACH options")]
    buckets: u32,
    /// Family of the hash functions; prime needs no memory for labels
    #[arg(long = "hash.family", value_name = "FAMILY", value_enum, default_value_t = FamilyName::Prime, help_heading = "MACH options")]
    family: FamilyName,
    /// What ranks labels, unless a query asks for something else: the median found them best on every set measured, the mean
    /// decodes several times faster where labels are millions
    #[arg(long, value_name = "NAME", value_enum, default_value_t = DecoderName::Median, help_heading = "MACH options")]
    decoder: DecoderName,
    #[command(flatten)]
    neural: NeuralArgs,
}

fn parse_range(text: &str) -> Result<Range<u32>, String> {
    let wrong = || format!("met {text:?}, wanted FROM..TO such as 4..8, with at least one repetition");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.trim().parse().map_err(|_| wrong())?..to.trim().parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// True for the parts of a checkpoint folder.
fn is_part(name: &str) -> bool {
    name.starts_with("finished-") || name.starts_with("running-")
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let numbers: Vec<u32> = args.repetitions_range.clone().unwrap_or(0..args.repetitions).collect();
    if numbers.is_empty() {
        return Err(CliError::usage("--repetitions 0: at least 1 is wanted"));
    }
    let setup = Setup::read(&args.data, &args.neural, context)?;
    let instances = &setup.instances;
    let data = &instances.train;
    let (n_features, n_labels) = (data.features.cols(), data.labels.n_labels());
    let (family, decoder) = (args.family.family(), args.decoder.decoder());
    let params = MachParams { n_buckets: args.buckets, family, decoder, network: setup.network.clone() };
    let sizing = params
        .sizing(n_labels, numbers.len())
        .and_then(|sizing| params.assignment(n_labels, &numbers).map(|_| sizing))
        .map_err(|e| CliError::usage(format_args!("{}: {}", args.data.train.display(), chain(&e))))?;
    let n_buckets = args.buckets as usize;
    let what = format!("{} repetitions of {} buckets", numbers.len(), args.buckets);
    setup.announce("mach", &what, n_buckets)?;
    say_what_hashing_means(args, instances, &sizing, context);
    args.data.prepare_checkpoint(is_part, context)?;

    let start = Instant::now();
    let trainer = Repetitions { args, setup: &setup, params: &params, n_features, n_labels };
    let mut steps = 0;
    for &number in &numbers {
        steps += trainer.train(number)?;
    }
    let train_s = start.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let start = Instant::now();
    let extras = Extras { maker: data.maker.as_ref(), names: data.names.as_deref(), training: Some(setup.kept()) };
    model::save_created(
        &args.data.model,
        || params.create(&args.data.model, n_features, n_labels, &numbers),
        extras,
        |writer| {
            for &number in &numbers {
                let finished = trainer.open_finished(number)?;
                let repetition = finished.repetition(number).map_err(|e| CliError::usage(chain(&e)))?;
                repetition.write(writer).map_err(|e| model::write_error(&e))?;
            }
            Ok(())
        },
    )?;
    let save_s = start.elapsed().as_secs_f64();
    args.data.drop_checkpoint(context);

    let metrics = match &instances.validation {
        Some(validation) => {
            let container = MachContainer::open(&args.data.model, OpenMode::Map);
            let (mach, _) = container.and_then(|c| c.model(None)).map_err(|e| CliError::failed(chain(&e)))?;
            let answers = mach
                .predict_batch(validation.features.view(), &mach.asking(5))
                .map_err(|e| CliError::failed(format_args!("validation: {}", chain(&e))))?;
            score(instances, &answers.ranked)?
        }
        None => None,
    };
    let n_values = numbers.len() as u64 * setup.network.n_values(n_features, n_buckets);
    let report = Report {
        kind: "mach",
        usage: meter.usage(),
        read_s: setup.read_s,
        train_s,
        save_s,
        metrics,
        what: format!("{} repetitions, {n_values} parameters", numbers.len()),
        further: Map::from_iter([
            ("repetitions".to_owned(), json!(numbers)),
            ("buckets".to_owned(), json!(args.buckets)),
            ("parameters".to_owned(), json!(n_values)),
            ("output_parameters".to_owned(), json!(sizing.output_parameters())),
            ("dense_output_parameters".to_owned(), json!(sizing.dense_parameters())),
            ("steps".to_owned(), json!(steps)),
        ]),
        logged: Map::from_iter([("training".to_owned(), setup.kept())]),
    };
    report.finish(&args.data, context)
}

/// What a user should know before the long work.
fn say_what_hashing_means(args: &Args, instances: &Instances, sizing: &xc_mach::Sizing, context: &Context) {
    let n_labels = instances.train.labels.n_labels();
    context.note(format_args!(
        "output weights are {:.1} times fewer than one output a label would have; {:.1} labels share a bucket",
        sizing.reduction(),
        sizing.labels_per_bucket()
    ));
    // Some of a range are not all: whether labels are told apart shows when they are merged.
    let risk = sizing.indistinguishable_probability();
    if args.repetitions_range.is_none() && risk > 0.5 {
        context.warn(format_args!(
            "so few repetitions of so few buckets leave labels that share all their buckets; {} repetitions would tell \
             all labels apart with probability 0.99",
            xc_mach::repetitions_needed(n_labels, args.buckets as usize, 0.01).unwrap_or(0)
        ));
    }
    let unseen = n_labels - seen_labels(&instances.train.labels);
    if unseen > 0 {
        context.warn(format_args!(
            "{unseen} of {n_labels} labels have no training instance: they score by the buckets that they share with others"
        ));
    }
}

/// Trains repetitions and keeps what is finished.
struct Repetitions<'a> {
    args: &'a Args,
    setup: &'a Setup<'a>,
    params: &'a MachParams,
    n_features: usize,
    n_labels: usize,
}

impl Repetitions<'_> {
    fn finished(&self, number: u32) -> PathBuf {
        self.args.data.checkpoint().join(format!("finished-{number:04}"))
    }

    fn open_finished(&self, number: u32) -> Result<MachContainer, CliError> {
        MachContainer::open(&self.finished(number), OpenMode::Map).map_err(|e| CliError::usage(chain(&e)))
    }

    /// Trains one repetition, unless the checkpoint has it; gives the steps of this run.
    fn train(&self, number: u32) -> Result<u64, CliError> {
        let Self { args, setup, params, .. } = self;
        let context = setup.context;
        let buckets = |labels: &LabelRows| -> Result<LabelRows, CliError> {
            let assignment = params.assignment(self.n_labels, &[number]).map_err(|e| CliError::usage(chain(&e)))?;
            Ok(bucket_rows(&assignment, 0, labels))
        };
        let targets = buckets(&setup.instances.train.labels)?;
        let judged = match &setup.instances.validation {
            Some(validation) => Some(buckets(&within(&validation.labels, self.n_labels))?),
            None => None,
        };
        let mut repetition =
            Repetition::new(params, self.n_features, number).map_err(|e| CliError::usage(chain(&e)))?;
        let running = args.data.checkpoint().join(format!("running-{number:04}"));
        let log = beside(&args.data.model, "log").join(format!("repetition-{number:04}"));
        let watch = NeuralWatch::new(context, format!("repetition {number}: "), "buckets");
        let seed = repetition_seed(params.network.seed, number);
        setup.with_trainer(
            seed,
            &targets,
            judged.as_ref(),
            running.clone(),
            log,
            &watch,
            |trainer, train, validation| {
                repetition.begin(params, train);
                let key = format!("{:016x}", trainer.key(repetition.network(), train, validation));
                let finished = self.finished(number);
                if finished.exists() {
                    let met: Option<String> = self
                        .open_finished(number)?
                        .container()
                        .parameter("key")
                        .map_err(|e| CliError::usage(chain(&e)))?;
                    if met.as_deref() != Some(&key) {
                        return Err(CliError::usage(format_args!(
                            "{}: belongs to other data or settings; remove it or choose another --checkpoint",
                            finished.display()
                        )));
                    }
                    context.note(format_args!("repetition {number}: from the checkpoint"));
                    return Ok(0);
                }
                let summary =
                    repetition.train(trainer, train, validation).map_err(|e| training_error(&args.data.train, &e))?;
                let write = || {
                    let mut writer = params.create(&finished, self.n_features, self.n_labels, &[number])?;
                    writer.set_parameter("key", key.as_str());
                    repetition.write(&mut writer)?;
                    writer.finish()
                };
                write().map_err(|e| model::write_error(&e))?;
                remove_checkpoint(&running).map_err(|e| CliError::failed(chain(&e)))?;
                Ok(summary.steps)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn ranges_have_at_least_one_number() {
        assert_eq!(parse_range("4..8"), Ok(4..8));
        for text in ["4", "4..4", "8..4", "a..b", "-1..3", "..3"] {
            assert!(parse_range(text).unwrap_err().contains("wanted FROM..TO"), "{text}");
        }
    }
}
