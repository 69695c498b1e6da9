//! From settings to how a source is read.

use super::idle;
use super::plan::{Origin, Resolved};
use crate::data::{Reading, Source, TextReader, is_vectors};
use crate::settings::text::{self, TextSettings};
use crate::settings::{Choices, Setting, SettingError, data, input, transformer};
use std::path::PathBuf;
use xc_model::OwnedRows;
use xc_model::classifier::InputKind;
use xc_sparse::rows::Rows;
use xc_train::fit::{FeatureParams, FitError, Given};
use xc_train::network::EncoderName;
use xc_train::preset::Preset;

/// A source with the settings that say how it is read.
pub(super) struct NamedReading<'a> {
    choices: &'a Choices,
    /// What they say, but how rows are weighted: that takes a look at the files.
    reading: Reading<'a>,
}

impl<'a> NamedReading<'a> {
    /// # Errors
    /// Settings that cannot be.
    pub(super) fn new(source: &'a Source, choices: &'a Choices) -> Result<Self, SettingError> {
        choices.refuse_conflicts()?;
        if choices.get("tfidf").is_some() && source.input() == InputKind::Dense {
            return Err(SettingError::of("tfidf", "vectors are used as they are"));
        }
        let scales = choices.value("normalise") == Some(true);
        let weighted_by = if choices.get("tfidf").is_some() { Some("tfidf") } else { scales.then_some("normalise") };
        let reading = Reading {
            source,
            given: None,
            form: input::file_form(choices),
            features: FeatureParams { text: text::params(choices)?, weighting: None },
            weighted_by,
            vectors_as_rows: false,
            transformer: None,
        };
        Ok(Self { choices, reading })
    }

    /// With training instances that are not copied.
    pub(super) fn with_given(self, given: Option<&'a Given>) -> Self {
        Self { reading: Reading { given, ..self.reading }, ..self }
    }

    /// With vectors as rows of features, without those that are 0.
    pub(super) fn with_vectors_as_rows(self) -> Self {
        Self { reading: Reading { vectors_as_rows: true, ..self.reading }, ..self }
    }

    /// With the tokens that a transformer reads, or the vectors that it makes, where one was chosen; `preset` is what the
    /// kind begins with.
    ///
    /// # Errors
    /// What is wrong with its folder, or a setting about features.
    pub(super) fn with_transformer(self, preset: &Preset) -> Result<Self, FitError> {
        let Some(settings) = transformer::encoder(&self.choices.of(&transformer::TABLE))? else { return Ok(self) };
        // A wide term reads features of all words beside the tokens.
        let words = self.choices.value::<String>("wide").is_some_and(|wide| wide == "on");
        let words = words && settings.encoder != EncoderName::Frozen;
        let of_features = |name: &str| name.starts_with("text.") && name != "text-fields" && !words;
        let is_idle = |name: &str| of_features(name) || ["tfidf", "normalise"].contains(&name);
        self.choices.refuse_if(is_idle, "a transformer reads tokens of texts, not features")?;
        let precision = self.choices.value("network.precision").unwrap_or(preset.params.precision);
        let (maker, notes) = settings.featurizer("transformer.", precision)?;
        let chosen = self.choices.value::<String>("encoder").unwrap_or_default();
        let reader = TextReader { maker, words, option: format!("encoder {chosen}"), notes };
        Ok(Self { reading: Reading { transformer: Some(reader), ..self.reading }, ..self })
    }

    /// How the source is read.
    pub(super) fn ready(self) -> Reading<'a> {
        let Reading { source, form, features, .. } = &self.reading;
        let weighting = data::weighting(self.choices, source.is_vectors(form));
        Reading { features: FeatureParams { weighting, ..features.clone() }, ..self.reading }
    }

    /// Refuses settings about forms of files that none of them has.
    pub(super) fn refuse_idle(&self) -> Result<(), FitError> {
        let choices = self.choices;
        match self.reading.source {
            Source::Files(files) => {
                let further = files.label_features.as_deref();
                let labels = [&files.train_labels, &files.validation, &files.validation_labels];
                let all = std::iter::once(&*files.train);
                let all = all.chain(labels.into_iter().flatten().map(PathBuf::as_path)).chain(further);
                idle::refuse_idle_form(choices, &self.reading.form, all)?;
                let is_dense = files.features.is_some() || is_vectors(&files.train, self.reading.form.format);
                idle::refuse_idle_of_text(&self.reading.form, &files.train, is_dense, further, choices)?;
                if files.features.is_some() {
                    choices.refuse_if(|name| name == "normalise", "vectors are used as they are")?;
                }
            }
            Source::Memory(arrays) => {
                refuse_idle_of_rows(choices, arrays.train.rows(), arrays.label_features.as_ref().map(OwnedRows::view))?;
            }
        }
        Ok(())
    }

    /// Whether rows are scaled to length 1.
    pub(super) fn normalises(&self) -> bool {
        data::normalises(self.choices, self.reading.source.is_vectors(&self.reading.form))
    }

    /// The values of the settings that say this.
    pub(super) fn resolve(&self, out: &mut Resolved) -> Result<(), SettingError> {
        resolve(self.choices, self.normalises(), out)
    }
}

/// Refuses settings of files, of texts and of sparse rows where there are none.
pub(super) fn refuse_idle_of_rows(
    choices: &Choices,
    rows: Rows<'_>,
    label_features: Option<Rows<'_>>,
) -> Result<(), SettingError> {
    if let Some((row, _)) = choices.of(&input::TABLE).iter().next() {
        return Err(SettingError::idle(row.name, "a file"));
    }
    if ![Some(rows), label_features].into_iter().flatten().any(|rows| rows.kind() == InputKind::Text) {
        choices.refuse_if(|name| name.starts_with("text."), "it is for texts, and there is none")?;
    }
    if rows.kind() != InputKind::Sparse {
        let is_weighting = |name: &str| data::TABLE.row(name).is_some();
        choices.refuse_if(is_weighting, "it is for sparse rows, and there are none")?;
    }
    Ok(())
}

/// The values of the settings of files, and of texts and rows of features; `normalises`: whether rows are scaled to length 1.
pub(super) fn resolve(choices: &Choices, normalises: bool, out: &mut Resolved) -> Result<(), SettingError> {
    let preset = |_: &Setting, _: Option<&str>| choices.value("text.preset").map(Origin::Preset);
    out.add_placed(&text::TABLE, &TextSettings::new(choices)?, choices, preset);
    out.add_placed(&text::TOKENS, &text::params(choices)?, choices, preset);
    out.add_chosen(&data::TABLE, choices, |row| (row.name == data::NORMALISE).then(|| normalises.to_string()));
    out.add_chosen(&input::TABLE, choices, |_| None);
    Ok(())
}
