//! `xc embed`: vectors of texts by a transformer as it comes.

use crate::context::Context;
use crate::data::InputArgs;
use crate::data::of_labels;
use crate::error::CliError;
use crate::measure::Meter;
use crate::output;
use crate::settings::{Chosen, OfTable};
use serde_json::json;
use std::path::{Path, PathBuf};
use xc_options::settings::{Table, embed};
use xc_train::fit::Embed;

/// Write the vectors that a transformer makes of texts
///
/// Nothing is trained: the pooled states of a HuggingFace folder, a row for each text, as an .npy
/// file. `xc train --features`, `xc index build --vectors` and others read it; networks learn faster
/// from vectors that are not scaled to length 1. A text's vector has the same bits alone and among
/// others, at any number of threads.
///
/// Examples:
///   xc embed --from DIR --input texts.jsonl --output texts.npy
///   xc index build --vectors texts.npy --metric cosine --output texts.index
///   xc embed --from DIR --input texts.jsonl --normalise false --output train.npy
///   xc train mach --features train.npy --train texts.jsonl --model frozen.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(hide = crate::described::is_left_out(cfg!(feature = "transformer")))]
pub(crate) struct Args {
    /// Folder with config.json, tokenizer.json and model.safetensors, or the name of a repository that `hf download` has
    /// fetched; nothing is downloaded
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// File of texts; labels are ignored
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// File of the vectors, .npy
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    settings: Chosen<OfVectors>,
    #[command(flatten)]
    format: InputArgs,
}

/// Which vectors texts are to have.
#[derive(Clone, Copy, Debug)]
struct OfVectors;

impl OfTable for OfVectors {
    const TABLE: Table = embed::TABLE;
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    output::check_in_folder(&args.output)?;
    if args.output.extension().is_none_or(|end| end != "npy") {
        let shown = args.output.display();
        return Err(CliError::usage(format_args!("--output {shown}: a name that ends in .npy is expected")));
    }
    if args.input == Path::new("-") {
        return Err(CliError::usage("--input -: a file is expected"));
    }
    let input = args.format.settings();
    context.options.refuse(&of_labels(), "labels of the input are ignored")?;
    context.options.refuse(&["id-field"], "ids of texts are not read")?;
    args.format.refuse_idle_of_instances(&input, [&*args.input])?;
    args.format.refuse_idle(&input, [&*args.input])?;
    let embed = embed::params(Embed::new(&args.from), &args.settings.choices)?;
    let done = xc_options::data::embed(&embed, &args.input, &input, &args.output, &context.fit())?;
    if context.json {
        let (rows, width, tokens) = (done.rows, done.width, done.tokens);
        let usage = meter.usage();
        let said =
            json!({ "rows": rows, "width": width, "tokens": tokens, "wall_s": usage.wall_s, "cpu_s": usage.cpu_s });
        return output::print(&said.to_string());
    }
    context.note(format_args!(
        "embed: wrote {}: {} vectors of {} values, {:.1} tokens a text, in {:.1} s",
        args.output.display(),
        done.rows,
        done.width,
        done.tokens as f64 / done.rows.max(1) as f64,
        meter.usage().wall_s
    ));
    Ok(())
}
