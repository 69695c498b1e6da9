//! Vectors of the words of a text.

use super::candidates::CandidateChoices;
use super::choices::NetworkChoices;
use super::corpus::{WordText, read_words};
use super::instances::Instances;
use super::{Learned, Session, Shape, System, Trained};
use crate::classifier::{ClassifierParams, LearningParams, Preset, preset};
use crate::fit::place::{Place, check_file};
use crate::fit::plan::{Origin, Plan};
use crate::fit::save::{self, Extras, beside};
use crate::fit::{Context, FitError, Training};
use crate::settings::text::{TOKENS, TokenSettings};
use crate::settings::words::{self, WordSettings};
use crate::settings::{Choices, SettingError};
use crate::skipgram::SkipgramModel;
use std::path::PathBuf;
use xc_data::HoldOut;
use xc_hash::text::Featurizer;
use xc_store::atomic::write_file;
use xc_store::to_parameter;

pub(in crate::fit) struct Skipgram {
    network: NetworkChoices,
    head: CandidateChoices,
    choices: Choices,
    vectors: PathBuf,
}

impl Skipgram {
    pub(super) fn new(choices: &Choices, place: &Place) -> Self {
        let vectors = place.vectors.clone().unwrap_or_else(|| beside(&place.model, "vectors.txt"));
        let head = CandidateChoices::new(choices);
        Self { network: NetworkChoices::new(choices), head, choices: choices.clone(), vectors }
    }

    fn words(&self) -> Result<WordSettings, FitError> {
        Ok(WordSettings::new(&self.choices)?)
    }

    /// Words have one character or more.
    fn tokens(&self) -> Result<TokenSettings, FitError> {
        let usual = TokenSettings { min_chars: 1, ..TokenSettings::default() };
        Ok(TokenSettings::new(&usual, &self.choices)?)
    }
}

impl System for Skipgram {
    fn network(&self) -> &NetworkChoices {
        &self.network
    }

    fn check(&self, _: &Training) -> Result<(), FitError> {
        if self.vectors.is_dir() {
            let vectors = self.vectors.display();
            return Err(FitError::usage(format_args!("{vectors}: a folder; a file is expected there")));
        }
        check_file(&self.vectors)?;
        // The table is that of `lns`, which has other presets.
        if let Some(name) = self.head.preset().filter(|name| preset::skipgram_of(name).is_none()) {
            return Err(SettingError::of_value("preset", name, "text8 is expected").into());
        }
        self.words().map(drop)
    }

    fn read(&self, of: &Training, _: Option<HoldOut>, context: &Context<'_>) -> Result<Instances, FitError> {
        read_words(&self.words()?, &self.tokens()?, &of.source, context).map(Instances::Words)
    }

    fn preset(&self) -> Preset {
        self.head.preset().as_deref().and_then(preset::skipgram_of).unwrap_or_else(preset::skipgram)
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, FitError> {
        let mut params = self.network.apply(&self.preset(), shape.input, seed)?;
        if self.network.has_init() {
            return Err(FitError::usage("--network.init: vectors of words begin at random"));
        }
        if self.network.has_activation() {
            return Err(FitError::usage("--network.activation: vectors of words stay as they are"));
        }
        if let [_, _, ..] = params.encoder.widths() {
            return Err(FitError::usage("--network.widths: one width is expected, that of the vectors"));
        }
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn named_preset(&self) -> Option<String> {
        self.head.preset()
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        self.head.resolve(session, &mut plan.resolved);
        plan.resolved.set("vectors", self.vectors.display(), Origin::Follows("model"));
        plan.resolved.add(&words::TABLE, &self.words().unwrap_or_default(), &self.choices, |_, _| None);
        plan.resolved.add(&TOKENS, &self.tokens().unwrap_or_default(), &self.choices, |_, _| None);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        self.head.announce(session);
        Ok(())
    }

    fn train<'t>(&'t self, session: &'t Session<'t>) -> Result<Trained<'t>, FitError> {
        let Instances::Words(WordText { words, .. }) = &session.instances else {
            unreachable!("words were read");
        };
        let Learned { classifier, what, figures } = session.learn(preset::LNS)?;
        let settings = self.words()?;
        let found = SkipgramModel::of_classifier(&classifier, words);
        Ok(Trained {
            save: Box::new(move |extras| {
                let maker = Featurizer::Text(words.pipeline().clone());
                let extras = Extras { maker: Some(&maker), names: Some(words.names()), ..extras };
                save::save_with(&session.of.place.model, SkipgramModel::KIND, extras, |writer| {
                    writer.set_parameter("skipgram", to_parameter(&settings));
                    writer.set_parameter("classifier", to_parameter(&session.params));
                    writer.set_parameter(LearningParams::NAME, to_parameter(&session.params.learning));
                    found.write(writer)
                })?;
                write_file(&self.vectors, |out| found.write_text(words.names(), out))
                    .map_err(|e| FitError::unwritable(&e))
            }),
            answer: None,
            what,
            figures,
        })
    }
}
