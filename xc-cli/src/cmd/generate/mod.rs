//! `xc generate`: synthetic data of a given shape.

mod folder;
mod untrained;

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::error::CliError;
use crate::output;
use crate::progress::Task;
use crate::synth::{Generator, Instance, PRESETS, Shape};
use clap::ValueEnum;
use folder::Folder;
use rayon::prelude::*;
use serde_json::json;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Instances that are made before they are written.
const BATCH: u64 = 4096;
/// What the files of instances are called.
const PARTS: [&str; 2] = ["train", "test"];
const NAMES: &str = "labels.txt";
/// Labels whose names are made before they are written.
const NAME_BATCH: u64 = 1 << 16;

/// Generate synthetic data: text, features and labels with the shape of real
/// collections
///
/// Labels are the leaves of a hidden tree and share words with their siblings;
/// word and label frequencies follow power laws; the words are invented but
/// readable. Instances are streamed, so memory does not grow with their number, and
/// the same seed gives the same files on any machine at any number of threads.
///
/// Writes into DIR:
///   train.txt, test.txt       features and labels in XC text format, with header
///   train.jsonl, test.jsonl   the same instances as text: {"text": "...", "labels": [3, 17]}
///   labels.txt                the name of each label, one per line
///   generated.json            hashes of these files: files of their names that are not listed are not replaced
///
/// Examples:
///   xc generate --output data                                          a small set to try things with
///   xc generate --preset amazon-670k --instances 10000 --output data
///   xc generate --preset 100m --model large.model --output queries      a model to measure, not to use
///   xc generate --instances 1000 --features 5000 --labels 300 --seed 7 --output data
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Folder to write to; created if missing. Files of these names that were generated there are replaced, others are
    /// refused
    #[arg(long, value_name = "DIR", required_unless_present = "untrained")]
    output: Option<PathBuf>,
    /// Named shape: demo, eurlex-4k, wiki10-31k, syn30k, syn500k, wikipedia-500k, amazon-670k, amazon-3m, 100m
    #[arg(long, value_name = "NAME", default_value = "demo")]
    preset: String,
    /// Training instances
    #[arg(long, value_name = "N")]
    instances: Option<u64>,
    /// Test instances [default: the preset's, or a tenth of --instances if that is given]
    #[arg(long, value_name = "N")]
    test_instances: Option<u64>,
    /// Size of the vocabulary
    #[arg(long, value_name = "D")]
    features: Option<u64>,
    /// Number of labels
    #[arg(long, value_name = "L")]
    labels: Option<u64>,
    /// Mean number of words per instance
    #[arg(long, value_name = "W")]
    words: Option<f64>,
    /// Mean number of labels per instance
    #[arg(long, value_name = "Y")]
    labels_per_instance: Option<f64>,
    /// Share of words that are unrelated to the labels: 0 is easy, 0.95 is hard
    #[arg(long, value_name = "SHARE")]
    background: Option<f64>,
    /// Values of the feature files
    ///
    /// tfidf: (1 + ln count) * (ln((1 + N) / (1 + df)) + 1) with df from the training instances,
    /// rows of length 1. counts: how often each word occurs.
    #[arg(long, value_enum, default_value_t = Values::Tfidf)]
    values: Values,
    /// Do not write the text files (train.jsonl, test.jsonl)
    #[arg(long)]
    no_text: bool,
    /// Do not write labels.txt
    #[arg(long)]
    no_names: bool,
    #[command(flatten)]
    untrained: untrained::ModelArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Values {
    Tfidf,
    Counts,
}

impl Args {
    fn shape(&self) -> Result<Shape, CliError> {
        let named = PRESETS.iter().find(|(name, _)| *name == self.preset);
        let Some(&(_, mut shape)) = named else {
            let names: Vec<_> = PRESETS.iter().map(|p| p.0).collect();
            let expected = names.join(", ");
            return Err(CliError::usage(format_args!("--preset {}: unknown; expected one of {expected}", self.preset)));
        };
        if let Some(n) = self.instances {
            shape.instances = n;
            shape.test_instances = (n / 10).max(1);
        }
        shape.test_instances = self.test_instances.unwrap_or(shape.test_instances);
        shape.features = self.features.unwrap_or(shape.features);
        shape.labels = self.labels.unwrap_or(shape.labels);
        shape.words = self.words.unwrap_or(shape.words);
        shape.labels_per_instance = self.labels_per_instance.unwrap_or(shape.labels_per_instance);
        shape.background = self.background.unwrap_or(shape.background);
        let refuse = |option: &str, got: &dyn std::fmt::Display, expected: &str| {
            Err(CliError::usage(format_args!("--{option} {got}: {expected} expected")))
        };
        let id_max = u64::from(u32::MAX);
        match shape {
            s if s.instances == 0 || s.instances > id_max => refuse("instances", &s.instances, "1 to 4294967295 are"),
            s if s.test_instances > id_max => refuse("test-instances", &s.test_instances, "0 to 4294967295 are"),
            s if s.features == 0 || s.features > id_max => refuse("features", &s.features, "1 to 4294967295 are"),
            s if s.labels == 0 || s.labels > id_max => refuse("labels", &s.labels, "1 to 4294967295 are"),
            s if !(s.words >= 1.0 && s.words <= 1e6) => refuse("words", &s.words, "1 to 1000000 are"),
            s if !(s.labels_per_instance >= 1.0 && s.labels_per_instance <= 1e4) => {
                refuse("labels-per-instance", &s.labels_per_instance, "1 to 10000 are")
            }
            s if !(0.0..=1.0).contains(&s.background) => refuse("background", &s.background, "a share from 0 to 1 is"),
            _ => Ok(shape),
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let shape = args.shape()?;
    match (&args.untrained.model, &args.output) {
        (Some(model), output) => {
            let of_data = ["instances", "words", "labels-per-instance", "values", "no-text", "no-names"];
            context.options.refuse(&of_data, "--model makes no training data; expected without --model")?;
            if output.is_none() {
                let of_queries = ["test-instances", "query-features"];
                context.options.refuse_idle(&of_queries, "--output", "the folder gets queries for --model")?;
            }
            untrained::run(args, model, shape, context)
        }
        (None, Some(output)) => generate_data(args, output, shape, context),
        // clap asks for one of the two.
        (None, None) => Err(CliError::usage("generate: --output is expected")),
    }
}

fn generate_data(args: &Args, folder: &Path, shape: Shape, context: &Context) -> Result<(), CliError> {
    // Counts of documents, and the instances and lines of one batch.
    let line_bytes = (shape.words * 24.0) as u64 + 200;
    // The weights are made of the counts.
    let what = format!("generate --features {}", shape.features);
    context.foresee_memory(&what, 8 * shape.features + BATCH * line_bytes + (16 << 20))?;
    let texts = PARTS.iter().filter(|_| !args.no_text).map(|part| format!("{part}.jsonl"));
    let names = texts.chain(PARTS.map(|part| format!("{part}.txt"))).chain((!args.no_names).then(|| NAMES.to_owned()));
    let mut files = Folder::create(folder, &names.collect::<Vec<_>>())?;
    let generator = Generator::new(shape, context.seed);
    let instances = shape.instances + shape.test_instances;
    context.note(format_args!(
        "generate: {} + {} instances, {} features, {} labels; about {} of files",
        shape.instances,
        shape.test_instances,
        shape.features,
        shape.labels,
        format_bytes(
            (instances as f64 * shape.words * if args.no_text { 13.0 } else { 20.0 }) as u64
                + if args.no_names { 0 } else { 23 * shape.labels }
        ),
    ));

    let idf = match args.values {
        Values::Tfidf => Some(inverse_document_frequencies(&generator, shape, context)?),
        Values::Counts => None,
    };
    let task = context.task("instances written", instances);
    let mut totals = Totals::default();
    let parts = [0..shape.instances, shape.instances..instances];
    for (part, range) in PARTS.into_iter().zip(parts) {
        let header = format!("{} {} {}\n", range.end - range.start, shape.features, shape.labels);
        files.put(&format!("{part}.txt"), header.as_bytes())?;
        totals.add(write_part(&generator, range, idf.as_deref(), &mut files, part, context, &task)?);
    }
    drop(task);
    if files.has(NAMES) {
        write_names(&generator, shape.labels, &mut files, context)?;
    }
    // All files take their places together, at the end.
    files.commit()?;
    report(folder, context, shape, totals)
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    features: u64,
    labels: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.features += other.features;
        self.labels += other.labels;
    }
}

/// The weight of each feature; the text itself is made twice rather than kept.
fn inverse_document_frequencies(generator: &Generator, shape: Shape, context: &Context) -> Result<Vec<f32>, CliError> {
    let counts: Vec<AtomicU32> = (0..shape.features).map(|_| AtomicU32::new(0)).collect();
    let task = context.task("instances counted", shape.instances);
    for range in batches(0..shape.instances, BATCH * 16) {
        context.check_interrupt()?;
        let steps = range.end - range.start;
        range.into_par_iter().for_each_init(Instance::default, |instance, number| {
            generator.instance(number, instance);
            for &(feature, _) in &instance.counts {
                counts[feature as usize].fetch_add(1, Ordering::Relaxed);
            }
        });
        task.advance(steps);
    }
    let n = shape.instances as f64;
    let weight = |df: AtomicU32| ((1.0 + n) / (1.0 + f64::from(df.into_inner()))).ln() as f32 + 1.0;
    Ok(counts.into_iter().map(weight).collect())
}

fn batches(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    range.clone().step_by(size as usize).map(move |start| start..(start + size).min(range.end))
}

fn write_part(
    generator: &Generator,
    range: Range<u64>,
    idf: Option<&[f32]>,
    files: &mut Folder,
    part: &str,
    context: &Context,
    task: &Task,
) -> Result<Totals, CliError> {
    let mut totals = Totals::default();
    let (features, text) = (format!("{part}.txt"), format!("{part}.jsonl"));
    let with_text = files.has(&text);
    for batch in batches(range, BATCH) {
        context.check_interrupt()?;
        let steps = batch.end - batch.start;
        let lines: Vec<(String, String, Totals)> = batch
            .into_par_iter()
            .map_init(Instance::default, |instance, number| {
                generator.instance(number, instance);
                let (mut line, mut json_line) = (String::new(), String::new());
                push_xc_line(instance, idf, &mut line);
                if with_text {
                    push_json_line(generator, instance, &mut json_line);
                }
                let counted = Totals { features: instance.counts.len() as u64, labels: instance.labels.len() as u64 };
                (line, json_line, counted)
            })
            .collect();
        for (line, json_line, counted) in lines {
            files.put(&features, line.as_bytes())?;
            if with_text {
                files.put(&text, json_line.as_bytes())?;
            }
            totals.add(counted);
        }
        task.advance(steps);
    }
    Ok(totals)
}

// Writing to a String cannot fail, so its results are dropped below.

fn push_xc_line(instance: &Instance, idf: Option<&[f32]>, line: &mut String) {
    push_joined(&instance.labels, line);
    let weight = |feature: u32, count: u32| match idf {
        Some(idf) => (1.0 + (count as f32).ln()) * idf[feature as usize],
        None => count as f32,
    };
    let length = match idf {
        Some(_) => instance.counts.iter().map(|&(f, c)| f64::from(weight(f, c)).powi(2)).sum::<f64>().sqrt() as f32,
        None => 1.0,
    };
    for &(feature, count) in &instance.counts {
        let _ = match idf {
            Some(_) => write!(line, " {feature}:{:.5}", weight(feature, count) / length),
            None => write!(line, " {feature}:{count}"),
        };
    }
    line.push('\n');
}

fn push_json_line(generator: &Generator, instance: &Instance, line: &mut String) {
    line.push_str("{\"text\": \"");
    generator.push_text(instance, line); // letters, blanks, commas and stops: nothing to escape
    line.push_str("\", \"labels\": [");
    push_joined(&instance.labels, line);
    line.push_str("]}\n");
}

fn push_joined(labels: &[u32], line: &mut String) {
    for (i, label) in labels.iter().enumerate() {
        let _ = write!(line, "{}{label}", if i == 0 { "" } else { "," });
    }
}

fn write_names(generator: &Generator, labels: u64, files: &mut Folder, context: &Context) -> Result<(), CliError> {
    let task = context.task("label names written", labels);
    for batch in batches(0..labels, NAME_BATCH * 16) {
        context.check_interrupt()?;
        let steps = batch.end - batch.start;
        let pieces: Vec<Range<u64>> = batches(batch, NAME_BATCH).collect();
        let texts: Vec<String> = pieces
            .into_par_iter()
            .map(|piece| {
                let mut text = String::new();
                for label in piece {
                    generator.push_label_name(label as u32, &mut text);
                    text.push('\n');
                }
                text
            })
            .collect();
        for text in texts {
            files.put(NAMES, text.as_bytes())?;
        }
        task.advance(steps);
    }
    Ok(())
}

fn report(folder: &Path, context: &Context, shape: Shape, totals: Totals) -> Result<(), CliError> {
    let instances = (shape.instances + shape.test_instances) as f64;
    let (features, labels) = (totals.features as f64 / instances, totals.labels as f64 / instances);
    if context.json {
        return output::print(
            &json!({
                "output": folder.display().to_string(),
                "instances": shape.instances,
                "test_instances": shape.test_instances,
                "features": shape.features,
                "labels": shape.labels,
                "features_per_instance": features,
                "labels_per_instance": labels,
                "seed": context.seed,
            })
            .to_string(),
        );
    }
    context.note(format_args!(
        "generate: wrote {}: {features:.1} features and {labels:.2} labels an instance",
        folder.display()
    ));
    Ok(())
}
