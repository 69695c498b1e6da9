//! Training by names: of every kind of model, from files or from memory, to a model folder.
//!
//! ```
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_train::fit::Silent;
//!
//! let folder = tempfile::tempdir()?;
//! let texts = ["audio library", "sound library", "mail reader", "mail client"].map(str::to_owned).to_vec();
//! let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
//! let settings = [("epochs", "5"), ("text.min-df", "1")];
//! let report = xc_options::fit("lns", (texts, labels), &settings, folder.path().join("my.model"), &Silent)?;
//! assert_eq!(report.kind, "lns");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Training`] says what is learned from ([`Source`]), with which settings ([`Choices`]; the rows of
//! [`rows`](crate::rows)), and where the model goes ([`Place`]). What is done is what `xc train` does: values that nobody gave
//! follow from the data, instances can be held out, work that does not fit into memory is refused before it begins,
//! and a run that was interrupted goes on from its checkpoint. A [`Watch`] is told what happens, and cancels.
//!
//! Work is done in the rayon pool that the caller is in, else in one that the call makes. Nothing is printed.

#[cfg(test)]
mod defaults;
#[cfg(test)]
mod effects;
mod hold_out;
mod idle;
mod network;
pub mod plan;
mod reading;
mod refit;
mod tree;
mod usual;
mod value;

pub use idle::{refuse_idle_form, refuse_idle_of_instances, refuse_idle_of_labels};
pub use refit::Refit;
pub use usual::{usual_value_of, usual_values, usual_values_of};
pub use value::fit_of;

use crate::data::Source;
use crate::settings::kinds::{self, KINDS};
use crate::settings::{Choices, SettingError};
use network::{Judges, System};
use plan::{Origin, Resolved, TrainingPlan};
use reading::NamedReading;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_data::HoldOut;
use xc_model::skipgram::SkipgramModel;
use xc_store::Container;

use xc_train::fit::{Context, FitError, Fitted, Given, Judging, Place, Report, SharedTexts, Target, Watch};

/// Trains a model of a kind and saves it in the folder `model`, with settings by their names and values as they are
/// typed. One call for what [`Training`] says in parts.
///
/// # Errors
/// A kind or setting that is not known, a value that it cannot have, data that nothing can be learned from, too
/// little memory, or an observer that cancels.
pub fn fit(
    kind: &str,
    source: impl Into<Source>,
    settings: &[(&str, &str)],
    model: impl AsRef<Path>,
    observer: &dyn Watch,
) -> Result<Report, FitError> {
    let mut training = Training::new(kind, source, model)?;
    for (name, value) in settings {
        training.set(name, value)?;
    }
    training.run(&Context::new(observer))
}

/// A training run.
#[derive(Clone, Debug)]
pub struct Training {
    kind: String,
    /// What is learned from.
    pub source: Source,
    /// With which settings.
    pub choices: Choices,
    /// Where the model goes.
    pub place: Place,
    /// Folder for a second model, of all instances, where some are held out.
    pub refit: Option<PathBuf>,
    /// Training instances that are not copied, in place of those of `source`.
    given: Option<Given>,
    /// Whether the model stays in memory.
    in_memory: bool,
}

impl From<SettingError> for FitError {
    fn from(error: SettingError) -> Self {
        Self::usage(error)
    }
}

/// What a run came to.
#[derive(Debug)]
enum Outcome {
    /// It was only to be explained.
    Planned(TrainingPlan),
    /// A model was saved, or stayed in memory.
    Trained(Box<Report>, Option<Container>),
}

impl Training {
    /// A run with the usual settings, whose model goes into the folder `model`.
    ///
    /// # Errors
    /// A kind that is not known.
    pub fn new(kind: &str, source: impl Into<Source>, model: impl AsRef<Path>) -> Result<Self, FitError> {
        if !KINDS.contains(&kind) {
            let kinds = KINDS.join(", ");
            return Err(FitError::usage(format_args!("no kind of model is called {kind:?}; expected one of {kinds}")));
        }
        let (kind, source, place) = (kind.to_owned(), source.into(), Place::new(model));
        Ok(Self { kind, source, choices: Choices::default(), place, refit: None, given: None, in_memory: false })
    }

    /// The kind of model.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Chooses a setting by its name and the text of its value.
    ///
    /// # Errors
    /// The kind has no such setting, or the setting no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), FitError> {
        let row = kinds::row(&self.kind, name);
        let what = format_args!("models of kind {} have no such setting", self.kind);
        let row = row.ok_or_else(|| SettingError::of(name, what))?;
        Ok(self.choices.set(row, value)?)
    }

    /// Trains, saves and judges; where a second model was asked for, that one too: its report is given then.
    ///
    /// # Errors
    /// As [`fit`].
    pub fn run(&self, context: &Context<'_>) -> Result<Report, FitError> {
        let Some(refit) = self.second(context)? else { return self.train(context) };
        if !refit.is_under_way {
            self.train(context)?;
        }
        refit.training(self)?.train(context)
    }

    /// The same, with training instances in memory given up as they are read: what is learned from takes their place, and no
    /// copy of them stays. They stay where a second run reads them again, where somebody else has them too, and for words.
    ///
    /// # Errors
    /// As [`fit`].
    pub fn run_once(mut self, context: &Context<'_>) -> Result<Report, FitError> {
        if self.given.is_none() && self.refit.is_none() && self.kind != SkipgramModel::KIND {
            self.given = self.source.take_rows();
        }
        self.run(context)
    }

    /// Over texts that are read where they lie: `source` has no texts, and the labels of these. Words are learned from texts
    /// of `source` alone.
    #[must_use]
    pub fn over_texts(self, texts: Arc<dyn SharedTexts>) -> Self {
        Self { given: Some(Given::Shared(texts)), ..self }
    }

    /// The second run, on all instances, where one was asked for.
    ///
    /// # Errors
    /// It cannot be: no instance is held out, or its folder cannot be written.
    pub fn second(&self, context: &Context<'_>) -> Result<Option<Refit>, FitError> {
        if self.place.part.is_some() && self.refit.is_some() {
            return Err(SettingError::of("refit", "a model is expected with it, and --part is of one").into());
        }
        let hold_out = self.choices.hold_out(context.seed)?;
        let is_judged = self.source.has_validation() || hold_out.is_some();
        if !is_judged && self.kind != xc_tree::KIND {
            let why = "held-out instances are expected with it (--validation or --validation-fraction)";
            self.choices.refuse_if(|name| name == "keep", why)?;
        }
        self.refit.as_ref().map(|folder| Refit::plan(folder, &self.place, hold_out)).transpose()
    }

    /// The first run alone.
    ///
    /// # Errors
    /// As [`fit`].
    pub fn train(&self, context: &Context<'_>) -> Result<Report, FitError> {
        self.trained(self.choices.hold_out(context.seed)?, &Judging::default(), true, context)
    }

    /// The same with instances that are held out as it is said, and judged so; `choose_epoch`: whether they choose the
    /// epoch whose parameters a network keeps, or judge the finished network alone.
    ///
    /// # Errors
    /// As [`fit`].
    pub fn trained(
        &self,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        choose_epoch: bool,
        context: &Context<'_>,
    ) -> Result<Report, FitError> {
        match self.go(false, hold_out, judging, choose_epoch, context)? {
            Outcome::Trained(report, _) => Ok(*report),
            Outcome::Planned(_) => unreachable!("a run that is to train"),
        }
    }

    /// Trains a model that stays in memory: no file is written, and none is read but those of the source, those of a
    /// transformer, and the system's figures of memory. There is no checkpoint and no log, and nothing is in the way of what
    /// [`Training::place`] names.
    ///
    /// ```
    /// use xc_sparse::LabelRows;
    /// use xc_options::Training;
    /// use xc_train::fit::{Context, Silent};
    /// use xc_model::{Answer, QueryOptions, Row, Scratch};
    ///
    /// let texts = ["audio library", "sound library", "mail reader", "mail client"].map(str::to_owned).to_vec();
    /// let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
    /// let mut training = Training::new("tree", (texts, labels), "")?;
    /// training.set("text.min-df", "1")?;
    /// let fitted = training.fit(&Context::new(&Silent))?;
    /// let (mut scratch, mut best) = (Scratch::default(), Answer::default());
    /// fitted.model.predict(&Row::Text("a mail"), &QueryOptions::top(1), &mut scratch, &mut best)?;
    /// assert_eq!(best.labels[0].label, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// *Memory*: all weights, and once more while they become the model.
    ///
    /// # Errors
    /// As [`fit`]; a part or a second model, which have folders.
    pub fn fit(&self, context: &Context<'_>) -> Result<Fitted, FitError> {
        let of_folders = [("part", self.place.part.is_some()), ("refit", self.refit.is_some())];
        if let Some((name, _)) = of_folders.into_iter().find(|(_, is_there)| *is_there) {
            return Err(SettingError::of(name, "a folder is expected with it, and the model stays in memory").into());
        }
        self.second(context)?;
        self.choices.refuse_if(|name| name == "checkpoint-every", "the model stays in memory, without a checkpoint")?;
        let run = Self { in_memory: true, place: Place::default(), ..self.clone() };
        let hold_out = self.choices.hold_out(context.seed)?;
        match run.go(false, hold_out, &Judging::default(), true, context)? {
            Outcome::Trained(report, Some(container)) => context.on_threads(|| Fitted::new(*report, container)),
            _ => unreachable!("a run whose model stays in memory"),
        }
    }

    /// Where the model goes.
    fn target(&self) -> Target<'_> {
        if self.in_memory { Target::Memory } else { Target::Folder(&self.place.model) }
    }

    /// Reads the data and says what would be done.
    ///
    /// # Errors
    /// As [`fit`], but for memory and the folder.
    pub fn explain(&self, context: &Context<'_>) -> Result<TrainingPlan, FitError> {
        match self.go(true, self.choices.hold_out(context.seed)?, &Judging::default(), true, context)? {
            Outcome::Planned(plan) => Ok(plan),
            Outcome::Trained(..) => unreachable!("a run that is only explained"),
        }
    }

    /// Refuses settings that cannot be or do not go together, before any data are read.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self, seed: u64) -> Result<(), FitError> {
        match self.system() {
            Some(system) => network::check(&*system, self, false, seed),
            None => tree::check(self, seed),
        }
    }

    fn go(
        &self,
        explain: bool,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        choose_epoch: bool,
        context: &Context<'_>,
    ) -> Result<Outcome, FitError> {
        if let Some(part) = self.place.part
            && !["tree", "mach"].contains(&&*self.kind)
        {
            let kind = &self.kind;
            return Err(FitError::usage(format_args!(
                "--part {part}: models of kind {kind} are trained by one process; tree or mach is expected"
            )));
        }
        context.on_threads(|| match self.system() {
            Some(system) => {
                network::train(&*system, self, explain, &Judges { hold_out, judging, choose_epoch }, context)
            }
            None => tree::train(self, explain, hold_out, judging, context),
        })
    }

    fn system(&self) -> Option<Box<dyn System>> {
        network::system(&self.kind, &self.choices, &self.place)
    }

    /// The values of what all kinds have in common.
    fn resolved(&self) -> Result<Resolved, SettingError> {
        let mut out = Resolved::default();
        self.reading()?.resolve(&mut out)?;
        out.set("checkpoint", self.place.checkpoint().display(), Origin::Follows("model"));
        Ok(out)
    }

    fn reading(&self) -> Result<NamedReading<'_>, SettingError> {
        Ok(NamedReading::new(&self.source, &self.choices)?.with_given(self.given.as_ref()))
    }
}
