//! `xc convert`: between the forms of data, between models of other systems and ours, and from a
//! model to a changed one.

mod change;

use crate::context::Context;
use crate::data::{Dataset, InputArgs, Making, NamesArgs, TextArgs, of_tables, read_labelled};
use crate::error::{CliError, causes, chain};
use crate::model::{self, OpenArgs};
use crate::output::{self, Output};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use xc_buffer::dtype::DType;
use xc_data::{
    FileForm, Format, IndexBase, LabelNames, LabelSeparator, ReadOptions, SvmlightBases, UnknownLabels, holds_text,
    read_text, write_csv, write_fasttext, write_jsonl_features, write_jsonl_text, write_npz, write_svmlight, write_xc,
};
use xc_hash::text::{Featurizer, TermWeighting};
use xc_model::Extras;
use xc_model::{ConvertError, FOREIGN_FORMATS, ImportOptions, dictionary, import, read_pipeline, write_pipeline};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::atomic::{OutputFolder, is_misnamed};
use xc_store::{ContainerWriter, WriteError};
use xc_train::fit::save_with;

/// The kind of a folder that `--save-pipeline` writes.
pub(crate) const PIPELINE_KIND: &str = "pipeline";

/// Convert data or models to another form
///
/// Data kinds: xc-text, svmlight, fasttext, jsonl, csv, tsv, npz (and npy as a source).
/// Labels in csv and tsv are in one field, separated by semicolons (or --label-separator).
/// Model kinds: xc, pecos, omikuji as a source, and huggingface as a destination: the
/// transformer below a trained network, with its tokenizer.
///
/// From text to features, the pipeline of the --text options is fitted to SRC.
/// --save-pipeline stores it, with the ids of the labels, and --pipeline applies
/// it to another file, so that train and test agree. --pipeline also takes a model
/// folder.
///
/// From xc to xc, a trained model is changed: trees can get another precision, fewer
/// weights, trees or labels, or another post-processor; networks with a sparse or
/// sampled output layer another precision; every kind label names. The rest is
/// copied. SRC is not modified.
///
/// Examples:
///   xc convert --from jsonl train.jsonl --to xc-text train.txt --save-pipeline features
///   xc convert --from jsonl test.jsonl  --to xc-text test.txt  --pipeline features
///   xc convert --from xc-text counts.txt --to npz x.npz --output-labels y.npz --tfidf
///   xc convert --from csv train.csv --to jsonl train.jsonl --text-fields title,body
///     --label-separator ";"
///   xc convert --from npz x.npz --input-labels y.npz --to svmlight data.svm --output-base 1
///   xc convert --from pecos pecos-model --to xc my.model
///   xc convert --from xc my.model --to pecos pecos-model
///   xc convert --from xc my.model --to huggingface encoder
///   xc convert --from omikuji omikuji-model --to xc my.model --labels 3993
///   xc convert --from xc my.model --to xc small.model --precision bf16 --prune-below 0.2 --trees 1
///   xc convert --from xc my.model --to xc named.model --label-names labels.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("format", |arg| arg.hide(true)))]
#[command(mut_arg("id-field", |arg| arg.hide(true)))]
pub(crate) struct Args {
    /// What SRC is
    #[arg(long, value_name = "KIND")]
    from: Kind,
    /// File or folder to read
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// What DST becomes
    #[arg(long, value_name = "KIND")]
    to: Kind,
    /// File or folder to write
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Labels of SRC, if it does not contain them
    #[arg(long, value_name = "FILE")]
    input_labels: Option<PathBuf>,
    /// File for the labels if DST is npz, which holds only features
    #[arg(long, value_name = "FILE")]
    output_labels: Option<PathBuf>,
    /// Number of the first feature of a svmlight DST
    #[arg(long, value_name = "0|1", value_parser = ["0", "1"])]
    output_base: Option<String>,
    #[command(flatten)]
    names: NamesArgs,
    /// Weight features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1), rows of length 1
    #[arg(long)]
    tfidf: bool,
    /// Store how the features were made in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "pipeline")]
    save_pipeline: Option<PathBuf>,
    /// Make features as stored in this folder (of --save-pipeline, or a model)
    #[arg(long, value_name = "DIR", conflicts_with = "tfidf")]
    pipeline: Option<PathBuf>,
    /// Number of labels of an imported model, if larger than its largest label implies
    #[arg(long, value_name = "L")]
    labels: Option<usize>,
    /// Tree of an ensemble to write as a pecos model, from 0
    #[arg(long, value_name = "N")]
    tree: Option<usize>,
    #[command(flatten)]
    change: change::ChangeArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    text: TextArgs,
}

/// A form of data or of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data(Format),
    Xc,
    /// A model of another system.
    Foreign(&'static str),
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "xc" {
            return Ok(Self::Xc);
        }
        if let Some(format) = FOREIGN_FORMATS.into_iter().find(|format| *format == name) {
            return Ok(Self::Foreign(format));
        }
        let foreign = || FOREIGN_FORMATS.join(", ");
        name.parse().map(Self::Data).map_err(|_| {
            format!(
                "unknown kind {name:?}; expected xc-text, svmlight, fasttext, jsonl, csv, tsv, npz, npy, xc, {}",
                foreign()
            )
        })
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if let Some(option) = args.change.given().filter(|_| (args.from, args.to) != (Kind::Xc, Kind::Xc)) {
        return Err(CliError::usage(format_args!(
            "convert: --{option} changes a model: --from xc --to xc is expected"
        )));
    }
    args.refuse_idle(context)?;
    match (args.from, args.to) {
        (Kind::Xc, Kind::Xc) => change::run(args, context),
        (Kind::Data(from), Kind::Data(to)) => convert_data(args, from, to, context),
        (Kind::Foreign(format), Kind::Xc) => import_model(args, format, context),
        (Kind::Xc, Kind::Foreign(format)) => export_model(args, format, context),
        (Kind::Data(_), _) | (_, Kind::Data(_)) => Err(CliError::usage(
            "convert: data and models do not become each other; xc is a model, data in XC text is xc-text",
        )),
        (from, _) if from == args.to => Err(CliError::usage("convert: --from and --to are the same kind of model")),
        _ => Err(CliError::usage("convert: models of other systems become xc models, or xc models theirs")),
    }
}

/// Options about models, and the directions that read them.
const OF_MODELS: [&str; 3] = ["precision", "labels", "tree"];
/// Options about data, beside those of what a file holds.
const OF_DATA: [&str; 6] = ["input-labels", "output-labels", "output-base", "tfidf", "save-pipeline", "pipeline"];

impl Args {
    /// Refuses options that nothing reads in this direction.
    fn refuse_idle(&self, context: &Context) -> Result<(), CliError> {
        let options = &context.options;
        let (from, to) = match (self.from, self.to) {
            (Kind::Data(from), Kind::Data(to)) => (from, to),
            (from, to) => {
                let is_of_data = |option: &str| {
                    OF_DATA.contains(&option) || InputArgs::NAMES.contains(&option) || option.starts_with("text.")
                };
                options.refuse_if(is_of_data, "it is for data, and models are converted here")?;
                if matches!(to, Kind::Foreign(_)) {
                    let idle = ["precision", "labels", "label-names"];
                    options.refuse_idle(&idle, "--to xc", "")?;
                    return match to {
                        Kind::Foreign("pecos") => Ok(()),
                        _ => options.refuse_idle(&["tree"], "--to pecos", ""),
                    };
                }
                options.refuse_idle(&["tree"], "--to pecos", "")?;
                return match from {
                    Kind::Xc => options.refuse_idle(&["labels"], "a model of another system", ""),
                    _ => Ok(()),
                };
            }
        };
        options.refuse_idle(&OF_MODELS, "a model", "data are converted here")?;
        if to != Format::Svmlight {
            options.refuse_idle(&["output-base"], "--to svmlight", "")?;
        }
        if to != Format::Npz {
            options.refuse_idle(&["output-labels"], "--to npz", "other formats hold the labels too")?;
        }
        if self.pipeline.is_some() {
            let fits = |option: &str| option.starts_with("text.");
            options.refuse_if(fits, "--pipeline says how features are made; expected without it")?;
        }
        options.refuse(&["id-field"], "ids are not converted")?;
        if let Some(labels) = &self.input_labels {
            let mut input = self.input.settings();
            input.format = Some(from);
            // A separator and a base are of the output too.
            return match to {
                Format::Csv | Format::Tsv | Format::Svmlight => Ok(()),
                _ => Ok(self.input.refuse_idle(&input, [&*self.source, &**labels])?),
            };
        }
        if !matches!(from, Format::Csv | Format::Tsv) {
            options.refuse_idle(&of_tables(), "--from csv or tsv", "")?;
        }
        if !matches!(from, Format::Jsonl | Format::Csv | Format::Tsv) {
            options.refuse_idle(&["text-fields", "label-field", "label-fields"], "--from jsonl, csv or tsv", "")?;
            if !matches!(to, Format::Csv | Format::Tsv) {
                options.refuse_idle(&["label-separator"], "a jsonl, csv or tsv file", "")?;
            }
        }
        if from != Format::Svmlight {
            options.refuse_idle(&["svmlight-base"], "--from svmlight", "")?;
            if to != Format::Svmlight {
                options.refuse_idle(&["svmlight-label-base"], "an svmlight file", "")?;
            }
        }
        Ok(())
    }
}

/// What an earlier conversion or training fixed.
struct Fixed {
    maker: Option<Featurizer>,
    names: Option<LabelNames>,
    n_features: usize,
    n_labels: usize,
}

fn open_pipeline(folder: &Path) -> Result<Fixed, CliError> {
    let container = model::open_container(folder)?;
    let wrong = |e: xc_store::OpenError| CliError::usage(chain(&e));
    let maker = read_pipeline(&container).map_err(|e| CliError::usage(chain(&e)))?;
    let of_transformer = match &maker {
        Some(Featurizer::Tokens(_)) => Some("tokens"),
        Some(Featurizer::Vectors(_)) => Some("vectors"),
        _ => None,
    };
    if let Some(made) = of_transformer {
        let what = format_args!("{}: its transformer makes {made} of texts; features are expected", folder.display());
        return Err(CliError::usage(what));
    }
    Ok(Fixed {
        maker,
        names: dictionary(&container)?,
        n_features: container.parameter("n_features").map_err(wrong)?,
        n_labels: container.parameter("n_labels").map_err(wrong)?,
    })
}

/// Whether the folder serves as --pipeline.
pub(crate) fn check_pipeline(folder: &Path) -> Result<(), CliError> {
    open_pipeline(folder).map(drop)
}

fn convert_data(args: &Args, from: Format, to: Format, context: &Context) -> Result<(), CliError> {
    if to == Format::Npy {
        return Err(CliError::usage("convert: npy is dense and only a source; npz is expected"));
    }
    if args.input.settings().format.is_some() {
        return Err(CliError::usage("convert: --from says the format; --format is not expected"));
    }
    if to == Format::Svmlight && args.output_base.is_none() {
        return Err(CliError::usage("convert: svmlight files begin at feature 0 or 1; --output-base is expected"));
    }
    if let Some(folder) = &args.save_pipeline {
        ContainerWriter::check(folder)?;
    }
    let fixed = args.pipeline.as_deref().map(open_pipeline).transpose()?;
    let given = args.names.read()?;
    let names = given.or_else(|| fixed.as_ref().and_then(|f| f.names.clone()));
    let mut input = args.input.settings();
    input.format = Some(from);
    if to == Format::Npz {
        Output::refuse_terminal(&args.destination, "npz")?;
    }
    let out = Output::create(&args.destination)?;
    args.output_labels.as_deref().map_or(Ok(()), output::check)?;
    let is_text = holds_text(&args.source, from, &ReadOptions::from(input.clone()))?;
    if is_text && to.may_hold_text() && fixed.is_none() {
        if args.save_pipeline.is_some() {
            return Err(CliError::usage("convert: text stays text here; there is no pipeline to save"));
        }
        let is_idle = |option: &str| option == "tfidf" || option.starts_with("text.");
        context.options.refuse_if(is_idle, "text stays text here; no features are made")?;
        return convert_text(args, &input, names, to, out);
    }
    if is_text {
        context.options.refuse_idle(&["tfidf"], "features", "text is weighted already")?;
    } else {
        let name = args.source.display();
        if from != Format::Jsonl && to != Format::Jsonl && args.save_pipeline.is_none() {
            context.options.refuse_idle(&["label-names"], "--to jsonl or --save-pipeline", "other formats hold ids")?;
        }
        let of_text = |option: &str| option.starts_with("text.");
        context.options.refuse_if(of_text, format_args!("it is for texts, and {name} holds features"))?;
    }
    if to.may_hold_text() && to != Format::Jsonl {
        return Err(CliError::usage(format_args!(
            "{}: holds features, or they are made of it; {to} holds text alone",
            args.source.display()
        )));
    }

    let text = args.text.params()?;
    let making = match &fixed {
        Some(f) => Making::Apply { maker: f.maker.as_ref(), n_features: f.n_features },
        None => {
            let weighting = args.tfidf.then(TermWeighting::default);
            Making::Fit { text: &text, weighting, hold_out: None, tokens: None }
        }
    };
    let has_labels = fixed.as_ref().is_some_and(|fixed| fixed.n_labels > 0);
    let unknown = if has_labels { UnknownLabels::Append } else { UnknownLabels::Refuse };
    let labels = args.input_labels.as_deref();
    let mut data = read_labelled(&args.source, labels.into(), names.as_ref(), unknown, &input, making, &context.fit())?;
    if let Some(fixed) = &fixed {
        let unknown = data.labels.n_labels().saturating_sub(fixed.n_labels);
        if unknown > 0 {
            context.warn(format_args!(
                "{}: {unknown} labels more than the {} that the pipeline knows; they are numbered after them",
                args.source.display(),
                fixed.n_labels
            ));
        } else {
            data.labels = data.labels.with_n_labels(fixed.n_labels);
        }
    }
    write_data(args, &data, to, out)?;
    if let Some(folder) = &args.save_pipeline {
        save_pipeline(folder, &data)?;
    }
    context.note(format_args!(
        "convert: {}: {} instances, {} features, {} labels",
        args.destination.display(),
        data.len(),
        data.width(),
        data.labels.n_labels()
    ));
    Ok(())
}

/// From text to text.
fn convert_text(
    args: &Args,
    input: &FileForm,
    names: Option<LabelNames>,
    to: Format,
    mut out: Output,
) -> Result<(), CliError> {
    let mut options = ReadOptions::from(input.clone());
    options.labels = args.input_labels.clone();
    options.label_names = names.map(std::sync::Arc::new);
    let data = read_text(&args.source, &options)?;
    let names = data.label_names.as_deref();
    let outcome = match to {
        Format::FastText => write_fasttext(&mut out, &data.texts, &data.labels, names),
        Format::Csv | Format::Tsv => {
            let separator = match &input.label_separator {
                None => &LabelSeparator::Text(";".to_owned()),
                Some(separator) => separator,
            };
            write_csv(&mut out, &data.texts, &data.labels, names, separator, to)
        }
        _ => write_jsonl_text(&mut out, &data.texts, &data.labels, names),
    };
    outcome.map_err(|e| unwritable(&args.source, &out, &e))?;
    out.commit()
}

/// What a format cannot hold is the source's fault, the rest the output's.
fn unwritable(source: &Path, out: &Output, error: &std::io::Error) -> CliError {
    if error.kind() == std::io::ErrorKind::InvalidData {
        return CliError::usage(format_args!("{}: {error}", source.display()));
    }
    CliError::write(out.name(), error)
}

fn write_data(args: &Args, data: &Dataset, to: Format, mut out: Output) -> Result<(), CliError> {
    let features = data.sparse().view();
    let names = data.names.as_deref();
    let mut labels = None;
    if let Some(path) = &args.output_labels {
        if to != Format::Npz {
            return Err(CliError::usage("convert: only npz keeps labels apart; --output-labels is not expected"));
        }
        let mut file = Output::create(path)?;
        write_npz_to(&mut file, &label_matrix(&data.labels))?;
        labels = Some(file);
    } else if to == Format::Npz && data.labels.nnz() > 0 {
        return Err(CliError::usage(
            "convert: npz holds features alone, and SRC has labels; --output-labels is expected",
        ));
    }
    let outcome = match to {
        Format::Xc => write_xc(&mut out, features, &data.labels),
        Format::Svmlight => {
            let base = |one: bool| if one { IndexBase::One } else { IndexBase::Zero };
            let features_base = base(args.output_base.as_deref() == Some("1"));
            let bases = SvmlightBases {
                features: features_base,
                labels: args.input.settings().svmlight_label_base.unwrap_or(IndexBase::Zero),
            };
            write_svmlight(&mut out, features, &data.labels, bases)
        }
        Format::Jsonl => write_jsonl_features(&mut out, features, &data.labels, names),
        _ => {
            write_npz_to(&mut out, data.sparse())?;
            Ok(())
        }
    };
    outcome.map_err(|e| unwritable(&args.source, &out, &e))?;
    // Once both are written: neither stands there without the other.
    out.commit()?;
    labels.map_or(Ok(()), Output::commit)
}

fn write_npz_to(out: &mut Output, matrix: &CsrMatrix) -> Result<(), CliError> {
    // The archive is written back and forth, which stdout cannot do.
    let mut bytes = Cursor::new(Vec::new());
    let outcome = write_npz(&mut bytes, matrix.view()).and_then(|()| out.write_all(bytes.get_ref()));
    outcome.map_err(|e| CliError::write(out.name(), &e))
}

/// Labels as a matrix of ones.
fn label_matrix(labels: &LabelRows) -> CsrMatrix {
    let ones = vec![1.0; labels.nnz()];
    CsrMatrix::from_checked((labels.len(), labels.n_labels()), labels.indptr().to_vec(), labels.labels().to_vec(), ones)
}

fn save_pipeline(folder: &Path, data: &Dataset) -> Result<(), CliError> {
    let write = || -> Result<(), WriteError> {
        let mut writer = ContainerWriter::create(folder, PIPELINE_KIND)?;
        writer.set_parameter("n_features", data.width() as u64);
        writer.set_parameter("n_labels", data.labels.n_labels() as u64);
        if let Some(maker) = &data.maker {
            write_pipeline(&mut writer, maker.to_parts())?;
        }
        if let Some(names) = &data.names {
            writer.labels(names)?;
        }
        writer.finish()
    };
    write().map_err(CliError::from)
}

fn import_model(args: &Args, format: &str, context: &Context) -> Result<(), CliError> {
    ContainerWriter::check(&args.destination)?;
    let names = args.names.read()?;
    let n_labels = args.labels.or(names.as_ref().map(LabelNames::len));
    let weights = args.change.params()?.precision.unwrap_or(DType::F32);
    let options = ImportOptions { n_labels, weights };
    let tree = import(format, &args.source, &options).map_err(|e| convert_error(args, &e))?;
    let (info, n_trees) = (tree.info(), tree.trees().len());
    args.names.check(names.as_ref(), info.n_labels)?;
    let extras =
        Extras { maker: None, names: names.as_ref().map(LabelNames::names), input: None, training: None, rows: None };
    save_with(&args.destination, xc_tree::KIND, extras, |writer| tree.write(writer))?;
    let (path, [features, labels]) = (args.destination.display(), [info.n_features, info.n_labels]);
    let weights = tree.nnz();
    context.note(format_args!(
        "convert: {path}: {features} features, {labels} labels, {n_trees} trees, {weights} weights"
    ));
    Ok(())
}

fn export_model(args: &Args, format: &str, context: &Context) -> Result<(), CliError> {
    check_new_folder(&args.destination)?;
    let source = OpenArgs::default().open_whole(&args.source, context)?;
    source.export(format, &args.destination, args.tree).map_err(|e| convert_error(args, &e))?;
    let name = args.source.display();
    if format == "huggingface" {
        let config = source.pipeline().map(|made| made.to_parts().config).unwrap_or_default();
        let tokens = config.get("tokens").unwrap_or(&config);
        if let Some(prefix) = tokens.get("prefix").and_then(serde_json::Value::as_str) {
            context.warn(format_args!(
                "{name}: its texts begin with {prefix:?}, which has to be put before them elsewhere"
            ));
        }
    } else if source.pipeline().is_some() {
        context.warn(format_args!("{name}: what makes its features is not part of a {format} model and is left out"));
    }
    Ok(())
}

/// Refuses a folder that is not new, or cannot be made, before the model is read.
fn check_new_folder(path: &Path) -> Result<(), CliError> {
    match std::fs::read_dir(path).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            let path = path.display();
            return Err(CliError::usage(format_args!("{path}: is not empty; expected a new path or an empty folder")));
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(CliError::unwritable_at(path, error)),
        _ => {}
    }
    OutputFolder::create(path).map(drop).map_err(|e| CliError::unwritable(&e))
}

/// What the user named is to blame, but for a destination that the system does not let us write.
fn convert_error(args: &Args, error: &ConvertError) -> CliError {
    match error {
        ConvertError::Write(_) if !causes(error).filter_map(|cause| cause.downcast_ref()).any(is_misnamed) => {
            CliError::failed(chain(error))
        }
        ConvertError::Tree { n_trees, .. } => CliError::usage(match args.tree {
            Some(tree) => format!("--tree {tree}: {} has {n_trees} trees", args.source.display()),
            None => format!("{}; --tree N chooses", chain(error)),
        }),
        _ => CliError::usage(chain(error)),
    }
}
