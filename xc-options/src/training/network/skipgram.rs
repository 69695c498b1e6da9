//! Vectors of the words of a text.

use super::System;
use super::choices::NetworkChoices;
use super::lns::{resolve_candidates, say_if_all, size_tables};
use crate::data::words::read_words;
use crate::settings::text::TOKENS;
use crate::settings::{Choices, SettingError, candidates, words};
use crate::training::Training;
use crate::training::plan::{Origin, Resolved, TrainingPlan};
use std::path::PathBuf;
use xc_data::HoldOut;
use xc_hash::text::PipelineParams;
use xc_train::fit::{Context, FitError, Instances, NetworkSession, Outputs, Place, TrainingShape, beside, check_file};
use xc_train::network::NetworkParams;
use xc_train::preset::{self, Preset};
use xc_train::skipgram::WordsParams;

pub(super) struct Skipgram {
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

    fn resolve(&self, _: &TrainingShape, network: &NetworkParams, out: &mut Resolved) {
        resolve_candidates(network, &self.choices, out);
        out.add_placed(&words::TABLE, &self.words().unwrap_or_default(), &self.choices, |_, _| None);
        out.add_placed(&TOKENS, &self.tokens().unwrap_or_default(), &self.choices, |_, _| None);
    }

    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        size_tables(session, &self.choices, &mut plan.resolved);
        plan.resolved.set("vectors", self.vectors.display(), Origin::Follows("model"));
    }

    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        say_if_all(session, &self.choices);
        Ok(())
    }

    fn outputs(&self, _: &TrainingShape) -> Result<Outputs, FitError> {
        Ok(Outputs::words(self.words()?, self.vectors.clone()))
    }
}
