//! `xc train skipgram`: vectors of the words of a text.

use super::candidate_args::OfCandidates;
use super::inputs::PlaceArgs;
use super::network_args::{OfNetwork, show_default};
use super::{finish, joined};
use crate::context::Context;
use crate::data::OfTokens;
use crate::error::CliError;
use crate::settings::{Chosen, OfTable, names};
use crate::stdin;
use std::path::PathBuf;
use xc_options::Training;
use xc_options::data::Files;
use xc_options::settings::{Setting, Table, words};
use xc_train::fit::Place;
use xc_train::preset;
use xc_train::skipgram::WordsParams;

/// Train word vectors on a text
///
/// The text is a file of lines, or JSONL. Each word is an instance: its vector, unchanged,
/// predicts the words near it (skip-gram). A step scores the true words of its batch and
/// those that a sampler chooses, as in xc train lns, whose options apply.
///
/// The answers of the model are words: for each line, xc predict gives the words nearest to
/// those of the line by cosine, and leaves out the line's own. The vectors are also written
/// to MODEL.vectors.txt in word2vec's text format.
///
/// Progress is logged to MODEL.log. --resume continues an interrupted run, which ends with
/// the same bytes as without the interruption.
///
/// Examples:
///   xc train skipgram --train text.txt --model words.model
///   xc train skipgram --train text8 --preset text8 --model words.model
///   xc train skipgram --train text.txt --window 5 --subsample 1e-3 --sampler frequency
///     --loss nce --model words.model
///   echo "king" | xc predict --model words.model --input - --names --top-k 10
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&preset::skipgram(), arg)))]
#[command(mut_arg("train", |arg| arg.help("The text, one passage per line, or JSONL (field \"text\") by its file name")))]
#[command(mut_arg("text.min-chars", |arg| arg.help("Shortest word, in characters [default: 1]")))]
#[command(mut_arg("preset", |arg| arg
    .value_parser(names(["text8"]))
    .help("Settings that a paper used for a text: batch, rate, tables; other options override them")
))]
#[command(mut_arg("network.widths", |arg| arg.help("Width of a vector [default: 200]")))]
#[command(mut_arg("network.init", |arg| arg.hide(true)))]
#[command(mut_arg("network.activation", |arg| arg.hide(true)))]
#[command(mut_arg("network.embedding-rate", |arg| arg.help(
    "Learning rate of the vectors, as a share of the learning rate; 0: they stay fixed [default: 1]"
)))]
#[command(mut_arg("network.dropout", |arg| arg.hide(true)))]
#[command(mut_arg("network.input-dropout", |arg| arg.help("Dropout probability of the values of a vector [default: 0]")))]
#[command(mut_arg("loss", |arg| arg
    .help("softmax, bce or squared-hinge (each word is near it or not), nce (true words against drawn ones; with \
           --sampler uniform, log-uniform, frequency or midx) [default: softmax]")
))]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// File for the vectors in word2vec's text format [default: MODEL.vectors.txt]
    // Another id than the vectors that are read.
    #[arg(id = "written_vectors", long = "vectors", value_name = "FILE")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    head: Chosen<OfCandidates>,
    #[command(flatten)]
    network: Chosen<OfNetwork>,
    #[command(flatten)]
    words: Chosen<OfWords>,
    #[command(flatten)]
    tokens: Chosen<OfTokens>,
}

/// Which words have vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfWords;

impl OfTable for OfWords {
    const TABLE: Table = words::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        row.shown_in(&WordsParams::default())
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let train = stdin::as_file(args.place.train.clone(), &args.place.model)?;
    let files = Files { train, ..Files::default() };
    let mut training = Training::new("skipgram", files, &args.place.model)?;
    training.place = Place { vectors: args.vectors.clone(), ..args.place.place() };
    let chosen = [&args.head.choices, &args.network.choices, &args.words.choices, &args.tokens.choices];
    training.choices = joined(chosen);
    finish(&training, args.place.explain, context)
}
