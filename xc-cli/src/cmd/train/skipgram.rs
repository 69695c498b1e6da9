//! `xc train skipgram`: vectors of the words of a text.

use super::candidate_args::CandidateArgs;
use super::corpus::{WordArgs, WordText};
use super::explain::{Origin, Plan};
use super::inputs::PlaceArgs;
use super::instances::{Instances, Source};
use super::network::{self, Learned, Session, Shape, System, Trained};
use super::network_args::{NetworkArgs, show_default};
use super::network_explain::resolve_candidates;
use crate::context::Context;
use crate::error::CliError;
use crate::model::{self, Extras, beside};
use crate::output;
use crate::settings::names;
use std::path::PathBuf;
use xc_hash::text::Featurizer;
use xc_sparse::atomic::write_file;
use xc_sparse::store::to_parameter;
use xc_train::classifier::{ClassifierParams, LearningParams, Preset, preset};
use xc_train::model::HoldOut;
use xc_train::skipgram::SkipgramModel;

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
#[command(mut_arg("min_chars", |arg| arg.default_value("1")))]
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
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    head: CandidateArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    words: WordArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, args, &args.network, context)
}

impl Args {
    fn vectors(&self) -> PathBuf {
        self.vectors.clone().unwrap_or_else(|| beside(&self.place.model, "vectors.txt"))
    }
}

impl Source for Args {
    fn place(&self) -> &PlaceArgs {
        &self.place
    }

    fn check(&self) -> Result<(), CliError> {
        let vectors = self.vectors();
        if vectors.is_dir() {
            return Err(CliError::usage(format_args!("{}: a folder; a file is expected there", vectors.display())));
        }
        output::check(&vectors)?;
        self.words.check()
    }

    fn read(&self, _: Option<HoldOut>, context: &Context) -> Result<Instances, CliError> {
        self.words.read(&self.place.train, context).map(Instances::Words)
    }
}

impl System for Args {
    fn preset(&self) -> Preset {
        self.head.preset().as_deref().and_then(preset::skipgram_of).unwrap_or_else(preset::skipgram)
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = self.network.apply(&self.preset(), shape.input, seed)?;
        if self.network.has_init() {
            return Err(CliError::usage("--network.init: vectors of words begin at random"));
        }
        if self.network.has_activation() {
            return Err(CliError::usage("--network.activation: vectors of words stay as they are"));
        }
        if let [_, _, ..] = params.encoder.widths() {
            return Err(CliError::usage("--network.widths: one width is expected, that of the vectors"));
        }
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        match &self.head.preset() {
            Some(name) if ["batch", "optimizer.rate"].contains(&option) => Origin::Preset(name.clone()),
            _ => Origin::Default,
        }
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        resolve_candidates(&self.head, session, &mut plan.resolved);
        plan.resolved.set("vectors", self.vectors().display(), Origin::Follows("model"));
        plan.resolved.set_some("vocabulary", None::<usize>, "all", Origin::Default);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        self.head.announce(session);
        Ok(())
    }

    fn train<'t>(&'t self, session: &'t Session<'t>) -> Result<Trained<'t>, CliError> {
        let Instances::Words(WordText { words, .. }) = &session.instances else {
            unreachable!("words were read");
        };
        let Learned { classifier, what, figures } = session.learn(preset::LNS)?;
        let found = SkipgramModel::of_classifier(&classifier, words);
        Ok(Trained {
            save: Box::new(move |extras| {
                let maker = Featurizer::Text(words.pipeline().clone());
                let extras = Extras { maker: Some(&maker), names: Some(words.names()), ..extras };
                model::save_with(&self.place.model, SkipgramModel::KIND, extras, |writer| {
                    writer.set_parameter("skipgram", self.words.settings());
                    writer.set_parameter("classifier", to_parameter(&session.params));
                    writer.set_parameter(LearningParams::NAME, to_parameter(&session.params.learning));
                    found.write(writer)
                })?;
                write_file(&self.vectors(), |out| found.write_text(words.names(), out))
                    .map_err(|e| CliError::unwritable(&e))
            }),
            answer: None,
            what,
            figures,
        })
    }
}
