//! `xc explain`: what labels' scores consist of.

use crate::answer::query_error;
use crate::context::Context;
use crate::data::of_labels;
use crate::data::{InputArgs, Queries, label_of};
use crate::error::{CliError, escaped};
use crate::model::OpenArgs;
use crate::output::Output;
use crate::similar::nearest;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use xc_model::Model;
use xc_model::classifier::WideParts;
use xc_model::explain::{ExplainOptions, Explanation, Feature};
use xc_model::{BatchError, largest_parts};

/// Explain why a label has its score: what becomes of it without each feature
///
/// The effect of a feature is the score of the label less its score for the same row without the
/// feature: without a term of a text, or with 0 in place of a coordinate of a vector. The label is
/// scored whether or not a search would find it. Effects need not add up to the score. Of a network
/// the effect on its logit is shown as well, and of its wide term the parts of the logit of both; of
/// trees, the margins of the nodes on the way to the label, which are the sums of their parts. A
/// blend ranks the candidates of the whole row.
///
/// The 200 features with the largest values are taken out one by one, all others together.
/// Features are shown by their terms where the model knows these, else by their numbers.
///
/// Examples:
///   xc explain --model my.model --input test.txt --label 17
///   xc explain --model text.model --input test.jsonl --label "red fox" --label dog --top 5
///   xc explain --model text.model --text "a red fox" --label "red fox" --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("of").required(true).args(["input", "text"]))]
pub(crate) struct Args {
    /// The model folder
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// File of instances, each of which is explained
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Explain this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// The label, by name or id; may be given several times
    #[arg(long, value_name = "LABEL", required = true)]
    label: Vec<String>,
    /// Features to show of each score and margin: the strongest ones
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Explain the raw scores of a calibrated model instead of probabilities
    #[arg(long)]
    raw_scores: bool,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    format: InputArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if args.input.as_deref() == Some(Path::new("-")) {
        return Err(CliError::usage("--input -: a file is expected"));
    }
    // A label is scored whatever an index finds.
    let model = args.open.open_whole(&args.model, context)?;
    args.refuse_idle(&model, context)?;
    let n_labels = model.describe().n_labels;
    let names = model.dictionary()?;
    let label = |word: &String| match label_of(word, n_labels, names.as_ref()) {
        Ok(Some(label)) => Ok(label),
        Ok(None) => {
            let what = if names.is_some() { "a label name or an id" } else { "a label id" };
            let error = CliError::usage(format_args!("--label {word}: {what} below {n_labels} is expected"));
            let few = names.as_ref().map(|names| names.names()).filter(|names| names.len() <= COMPARED);
            let near = few.and_then(|names| nearest(word, names.iter().map(|name| &**name)));
            Err(match near {
                Some(near) => error.and(format_args!("a similar name is {near:?}")),
                None => error,
            })
        }
        Err(why) => Err(CliError::usage(format_args!("--label {word}: {why}"))),
    };
    let labels: Vec<u32> = args.label.iter().map(label).collect::<Result<_, _>>()?;
    let mut queries = match &args.input {
        Some(path) => Queries::open(path, &args.format.settings(), &model)?,
        None => Queries::given(args.text.clone(), "--text", &model)?,
    };
    let input = queries.name().to_owned();
    let mut out = Output::create(Path::new("-"))?;
    let options = ExplainOptions { raw: args.raw_scores, ..ExplainOptions::default() };
    let mut number = 0;
    while let Some(batch) = queries.next_batch(BATCH)? {
        for at in 0..batch.len() {
            for &label in &labels {
                context.check_interrupt()?;
                let explain = || model.explain(&batch.view().row(at), label, &options);
                let failed = |source| query_error(&BatchError { query: 0, source }, number, &input);
                let explanation = context.on_threads(explain).map_err(failed)?;
                let name = names.as_ref().map(|names| &*names.names()[label as usize]);
                let shown =
                    Shown { model: &model, top: args.top as usize, number, id: queries.id(at), name, explanation };
                out.put(if context.json { shown.json() } else { shown.text() }.as_bytes())?;
            }
            number += 1;
        }
    }
    queries.report_unseen(&context.fit());
    out.commit()
}

/// Label names that are compared with one that no label has, at most: some tenths of a second.
const COMPARED: usize = 1 << 18;

/// Instances that are read together.
const BATCH: usize = 256;

/// Why options of files have no effect on a text that is typed.
pub(super) const TEXT_AS_IT_STANDS: &str = "--text is a text as it stands";

impl Args {
    fn refuse_idle(&self, model: &Model, context: &Context) -> Result<(), CliError> {
        if model.calibration().is_none() {
            let why = "the model is not calibrated: its scores are those without it";
            context.options.refuse(&["raw-scores"], why)?;
        }
        if self.input.is_none() {
            let of_files = ["format", "text-fields", "id-field", "svmlight-base"];
            context.options.refuse_idle(&of_files, "--input FILE", TEXT_AS_IT_STANDS)?;
        }
        let input = self.format.or(model.input());
        let why = "labels of the input are ignored";
        context.options.refuse(&of_labels(), why)?;
        self.format.refuse_idle_of_instances(&input, self.input.as_deref())?;
        self.format.refuse_idle(&input, self.input.as_deref())
    }
}

/// An explanation and what it is shown with.
struct Shown<'a> {
    model: &'a Model,
    top: usize,
    /// Of the instance.
    number: usize,
    id: Option<&'a str>,
    name: Option<&'a str>,
    explanation: Explanation,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let Explanation { label, score, logit, wide, effects, others, paths } = &self.explanation;
        let id = self.id.map(|id| format!(" ({id})")).unwrap_or_default();
        let name = self.name.map(|name| format!(" {name:?}")).unwrap_or_default();
        let of_logit = logit.map(|logit| format!(", logit {logit:.6}")).unwrap_or_default();
        let mut out = format!("instance {}{id}: label {label}{name} has score {score:.6}{of_logit}\n", self.number);
        // Text always fits into memory.
        let mut line = |effect: f32, logit: Option<f32>, value: Option<f32>, what: &str| {
            let logit = logit.map(|logit| format!("{logit:>+13.6}")).unwrap_or_default();
            let value = value.map_or(String::new(), |value| format!("{value:.6}"));
            _ = writeln!(out, "{effect:>+12.6}{logit}{value:>13}  {what}");
        };
        for effect in effects.iter().take(self.top) {
            line(effect.score, effect.logit, Some(effect.feature.value), &of_feature(&effect.feature));
        }
        if let Some(others) = others {
            line(others.score, others.logit, None, &format!("{} other features together", others.n));
        }
        if effects.len() > self.top {
            _ = writeln!(out, "  weaker effects of {} features are left out", effects.len() - self.top);
        }
        if let Some(of) = wide {
            let WideParts { network, bias, parts } = of;
            let said = self.said(parts);
            _ = writeln!(
                out,
                "  with the wide term: logit {:.6}: network {network:+.6}, bias {bias:+.6}{said}",
                of.logit()
            );
        }
        for (tree, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            _ = writeln!(out, "  tree {tree}");
            for (level, node) in path.iter().enumerate() {
                let said = self.said(&node.parts);
                _ = writeln!(
                    out,
                    "    level {level}, node {}: margin {:.6}, score {:.6}: bias {:+.6}{said}",
                    node.node, node.margin, node.score, node.bias,
                );
            }
        }
        out
    }

    fn json(&self) -> String {
        let mut out = self.explanation.json(self.model, self.top);
        out["instance"] = json!(self.number);
        let id = self.id.and_then(|id| serde_json::from_str::<Value>(id).ok());
        id.into_iter().for_each(|id| out["id"] = id);
        self.name.into_iter().for_each(|name| out["name"] = json!(name));
        format!("{out}\n")
    }

    /// The largest parts of a margin in a line.
    fn said(&self, parts: &[(u32, f32)]) -> String {
        let (parts, rest) = largest_parts(parts, self.top);
        let parts = parts.iter().map(|&(feature, part)| format!(", {} {part:+.6}", self.feature(feature)));
        let rest = rest.map(|(n, sum)| format!(", {n} others {sum:+.6}"));
        parts.chain(rest).collect()
    }

    fn feature(&self, feature: u32) -> String {
        self.model.term(feature).map_or_else(|| feature.to_string(), escaped)
    }
}

/// A feature as a person reads it.
fn of_feature(feature: &Feature) -> String {
    match (&feature.term, feature.number) {
        (Some(term), _) => escaped(term),
        (None, Some(number)) if feature.hashed => format!("{number} (hashed, of no known term)"),
        (None, number) => number.map(|number| number.to_string()).unwrap_or_default(),
    }
}
