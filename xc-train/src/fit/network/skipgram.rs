//! Vectors of the words of a text.

use super::choices::NetworkChoices;
use super::corpus::{WordText, read_words};
use super::instances::Instances;
use super::lns::{resolve_candidates, say_if_all};
use super::session::{Learned, Learner, Session, Trained};
use super::{System, TrainingShape};
use crate::fit::place::{Place, check_file};
use crate::fit::plan::{Origin, Plan};
use crate::fit::save::beside;
use crate::fit::{Context, FitError, Training};
use crate::network::NetworkParams;
use crate::preset::{self, Preset};
use crate::settings::text::TOKENS;
use crate::settings::words;
use crate::settings::{Choices, SettingError, candidates};
use crate::skipgram::WordsParams;
use std::path::PathBuf;
use xc_data::HoldOut;
use xc_hash::text::{Featurizer, PipelineParams};
use xc_model::Extras;
use xc_model::classifier::LearningParams;
use xc_model::skipgram::SkipgramModel;
use xc_store::atomic::write_file;
use xc_store::to_parameter;

pub(in crate::fit) struct Skipgram {
    network: NetworkChoices,
    choices: Choices,
    vectors: PathBuf,
}

impl Skipgram {
    pub(super) fn new(choices: &Choices, place: &Place) -> Self {
        let vectors = place.vectors.clone().unwrap_or_else(|| beside(&place.model, "vectors.txt"));
        Self { network: NetworkChoices::new(choices), choices: choices.clone(), vectors }
    }

    fn words(&self) -> Result<WordsParams, FitError> {
        Ok(words::params(&self.choices)?)
    }

    /// Words have one character or more.
    fn tokens(&self) -> Result<PipelineParams, FitError> {
        let usual = PipelineParams { min_token_chars: 1, ..PipelineParams::default() };
        Ok(TOKENS.place(usual, &self.choices)?)
    }
}

impl System for Skipgram {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn check(&self, of: &Training) -> Result<(), FitError> {
        if !of.in_memory {
            if self.vectors.is_dir() {
                let vectors = self.vectors.display();
                return Err(FitError::usage(format_args!("{vectors}: a folder; a file is expected there")));
            }
            check_file(&self.vectors)?;
        }
        // The table is that of `lns`, which has other presets.
        if let Some(name) = self.named_preset().filter(|name| preset::skipgram_of(name).is_none()) {
            return Err(SettingError::of_value("preset", name, "text8 is expected").into());
        }
        self.words().map(drop)
    }

    fn read(&self, of: &Training, _: Option<HoldOut>, context: &Context<'_>) -> Result<Instances, FitError> {
        read_words(&self.words()?, &self.tokens()?, &of.source, context).map(Instances::Words)
    }

    fn preset(&self) -> Preset {
        self.named_preset().as_deref().and_then(preset::skipgram_of).unwrap_or_else(preset::skipgram)
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let network = self.network.network(&self.preset(), shape.input, seed, has_file)?;
        if self.network.has_init() {
            return Err(FitError::usage("--network.init: vectors of words begin at random"));
        }
        if self.network.has_activation() {
            return Err(FitError::usage("--network.activation: vectors of words stay as they are"));
        }
        if let [_, _, ..] = network.classifier.encoder.widths() {
            return Err(FitError::usage("--network.widths: one width is expected, that of the vectors"));
        }
        Ok(candidates::add(network, shape.n_features, shape.n_labels, &self.choices)?)
    }

    fn named_preset(&self) -> Option<String> {
        self.choices.value("preset")
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        resolve_candidates(session, &self.choices, &mut plan.resolved);
        plan.resolved.set("vectors", self.vectors.display(), Origin::Follows("model"));
        plan.resolved.add_placed(&words::TABLE, &self.words().unwrap_or_default(), &self.choices, |_, _| None);
        plan.resolved.add_placed(&TOKENS, &self.tokens().unwrap_or_default(), &self.choices, |_, _| None);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        say_if_all(session, &self.choices);
        Ok(())
    }

    fn learner(&self, _: &TrainingShape) -> Result<Box<dyn Learner>, FitError> {
        Ok(Box::new(Words { params: self.words()?, vectors: self.vectors.clone() }))
    }
}

/// Vectors of words.
struct Words {
    params: WordsParams,
    /// Where they go as text, beside a folder.
    vectors: PathBuf,
}

impl Learner for Words {
    fn kind(&self) -> &'static str {
        SkipgramModel::KIND
    }

    fn train<'t>(&'t self, session: &'t Session<'t>) -> Result<Trained<'t>, FitError> {
        let Instances::Words(WordText { words, .. }) = &session.instances else {
            unreachable!("words were read");
        };
        let Learned { classifier, what, figures } = session.learn(preset::LNS)?;
        let found = SkipgramModel::of_classifier(&classifier, words.of_feature().to_vec());
        Ok(Trained {
            save: Box::new(move |extras| {
                let maker = Featurizer::Text(words.pipeline().clone());
                let extras = Extras { maker: Some(&maker), names: Some(words.names()), ..extras };
                let container = session.target.save(SkipgramModel::KIND, extras, |writer| {
                    writer.set_parameter("skipgram", to_parameter(&self.params));
                    writer.set_parameter("classifier", to_parameter(&session.network.classifier));
                    writer.set_parameter(LearningParams::NAME, to_parameter(&session.network.classifier.learning));
                    Ok(found.write(writer)?)
                })?;
                if container.is_none() {
                    write_file(&self.vectors, |out| found.write_text(words.names(), out))
                        .map_err(|e| FitError::unwritable(&e))?;
                }
                Ok(container)
            }),
            answer: None,
            what,
            figures,
        })
    }
}
