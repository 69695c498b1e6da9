//! MACH: repetitions one after the other, each kept when it is finished, then put together.

use super::choices::NetworkChoices;
use super::dense::suited_to;
use super::session::{Followed, Keep, Learner, Session, Trained, Watched};
use super::{System, TrainingShape, params_error};
use crate::fit::FitError;
use crate::fit::plan::Plan;
use crate::learn::{end_training, initialise, n_values};
use crate::network::NetworkParams;
use crate::preset::{self, Preset};
use crate::settings::mach::{TABLE, layout};
use crate::settings::{Choices, SettingError};
use serde_json::{Value, json};
use std::path::Path;
use xc_buffer::Part;
use xc_mach::Sizing;
use xc_model::classifier::ClassifierParams;
use xc_model::mach::{
    Asking, CHECKPOINT, KIND, MachContainer, MachLayout, MachParams, Repetition, bucket_rows, repetition_seed,
};
use xc_model::message::{chain, counted};
use xc_store::{CheckpointLayout, ContainerWriter, OpenMode, to_parameter};

pub(in crate::fit) struct Mach {
    network: NetworkChoices,
    choices: Choices,
    /// The part of the repetitions that is trained, where it is not all of them.
    part: Option<Part>,
}

impl Mach {
    pub(super) fn new(choices: &Choices, part: Option<Part>) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone(), part }
    }

    /// The repetitions to train, for so many labels.
    fn layout(&self, n_labels: usize) -> MachLayout {
        // What cannot be is refused by `params`, which comes first.
        let all = layout(n_labels, &self.choices).unwrap_or_else(|_| MachLayout::usual(n_labels));
        let numbers = match self.part {
            Some(part) => {
                let range = part.range(all.numbers.len() as u64);
                all.numbers.start + range.start as u32..all.numbers.start + range.end as u32
            }
            None => all.numbers,
        };
        MachLayout { numbers, ..all }
    }

    /// Numbers of these repetitions.
    fn numbers(&self, n_labels: usize) -> Vec<u32> {
        self.layout(n_labels).numbers.collect()
    }

    /// Buckets of a repetition.
    fn buckets(&self, n_labels: usize) -> u32 {
        self.layout(n_labels).n_buckets
    }

    /// The model over so many labels whose repetitions are such classifiers.
    fn mach_params(&self, n_labels: usize, classifier: &ClassifierParams) -> MachParams {
        self.layout(n_labels).params(classifier.clone())
    }
}

impl System for Mach {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::mach()
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        suited_to(shape, self.preset())
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let all = layout(shape.n_labels, &self.choices)?;
        if let Some(part) = self.part {
            let n = all.numbers.len();
            if self.choices.get("repetitions-range").is_some() {
                let why = "--part is itself a range of repetitions; one of the two is expected";
                return Err(SettingError::of("repetitions-range", why).into());
            }
            if n < part.of() as usize {
                return Err(FitError::usage(format_args!(
                    "--part {part}: there are {}; so many parts or fewer are expected",
                    counted(n, "repetition")
                )));
            }
        }
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        network
            .classifier
            .check(shape.n_features, self.buckets(shape.n_labels) as usize)
            .map_err(|e| params_error(&e))?;
        Ok(network)
    }

    fn learner(&self, shape: &TrainingShape) -> Result<Box<dyn Learner>, FitError> {
        Ok(Box::new(Buckets(self.layout(shape.n_labels))))
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let n_labels = session.shape.n_labels;
        let params = self.mach_params(n_labels, &session.network.classifier);
        let numbers = self.numbers(n_labels);
        if let Ok(sizing) = params.sizing(n_labels, numbers.len()) {
            plan.lines.push((
                "sizes",
                format!(
                    "{} of {} buckets: {:.1} labels share a bucket; {:.3} times the output weights of one output per \
                     label",
                    counted(numbers.len(), "repetition"),
                    params.n_buckets,
                    sizing.labels_per_bucket(),
                    1.0 / sizing.reduction()
                ),
            ));
        }
        plan.resolved.add_placed(&TABLE, &self.layout(n_labels), &self.choices, |_, _| None);
        plan.parameters["mach"] = to_parameter(&params);
    }

    /// What a user should know before the long work.
    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        let (context, n_labels) = (session.context, session.shape.n_labels);
        let sizing = sizing(&self.layout(n_labels), session)?;
        context.note(format_args!(
            "{} of {} buckets; {} output weights, {:.3} times those of one output per label; {:.1} labels share a bucket",
            counted(self.numbers(n_labels).len(), "repetition"),
            self.buckets(n_labels),
            sizing.output_parameters(),
            1.0 / sizing.reduction(),
            sizing.labels_per_bucket()
        ));
        // Some of a range are not all: whether labels are told apart shows when they are merged.
        let risk = sizing.indistinguishable_probability();
        let is_range = self.choices.get("repetitions-range").is_some() || self.part.is_some();
        if !is_range && risk > 0.5 {
            context.warn(format_args!(
                "so few repetitions of so few buckets leave labels that share all their buckets; {} repetitions would \
                 tell all labels apart with probability 0.99",
                xc_mach::repetitions_needed(n_labels, self.buckets(n_labels) as usize, 0.01).unwrap_or(0)
            ));
        }
        let unseen = session.n_unseen();
        if unseen > 0 {
            context.warn(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they score by the buckets that they share \
                 with others"
            ));
        }
        Ok(())
    }
}

/// Repetitions over the buckets of labels.
pub(in crate::fit) struct Buckets(pub(in crate::fit) MachLayout);

impl Buckets {
    /// The model whose repetitions are such classifiers.
    fn params(&self, classifier: &ClassifierParams) -> MachParams {
        self.0.params(classifier.clone())
    }

    fn numbers(&self) -> Vec<u32> {
        self.0.numbers.clone().collect()
    }
}

impl Learner for Buckets {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn n_outputs(&self, _: &TrainingShape) -> usize {
        self.0.n_buckets as usize
    }

    fn targets(&self, session: &Session<'_>) -> u64 {
        let sets = std::iter::once(session.labels()).chain(session.judged());
        sets.map(|labels| 8 * (labels.len() as u64 + 1) + 4 * labels.nnz() as u64).sum()
    }

    fn answering(&self, shape: &TrainingShape, params: &ClassifierParams) -> u64 {
        let values = n_values(params, shape.n_features, self.n_outputs(shape));
        values.saturating_mul(4).saturating_mul(self.numbers().len() as u64)
    }

    fn checkpoint(&self) -> CheckpointLayout {
        CHECKPOINT
    }

    fn describe(&self, session: &Session<'_>) -> Value {
        json!([self.params(&session.network.classifier), session.network.classifier.learning])
    }

    fn train<'t>(&'t self, session: &'t Session<'t>) -> Result<Trained<'t>, FitError> {
        let TrainingShape { n_features, n_labels, .. } = session.shape;
        let repetitions = Repetitions { session, params: self.params(&session.network.classifier) };
        let (numbers, sizing) = (self.numbers(), sizing(&self.0, session)?);
        let (mut steps, mut kept) = (0, Vec::new());
        for &number in &numbers {
            let (n, repetition) = repetitions.train(number)?;
            steps += n;
            kept.extend(repetition);
        }
        let n_values =
            numbers.len() as u64 * n_values(&session.network.classifier, n_features, self.n_outputs(&session.shape));
        let figures = [
            ("repetitions", json!(numbers)),
            ("buckets", json!(repetitions.params.n_buckets)),
            ("parameters", json!(n_values)),
            ("output_parameters", json!(sizing.output_parameters())),
            ("dense_output_parameters", json!(sizing.dense_parameters())),
            ("steps", json!(steps)),
        ];
        let what = format!("{}, {n_values} parameters", counted(numbers.len(), "repetition"));
        Ok(Trained {
            save: Box::new(move |extras| {
                session.target.save(KIND, extras, |writer| {
                    repetitions.params.begin(writer, n_features, n_labels, &numbers);
                    if !kept.is_empty() {
                        return kept.iter().try_for_each(|repetition| Ok(repetition.write(writer)?));
                    }
                    for &number in &numbers {
                        let finished = repetitions.open_finished(number)?;
                        let repetition = finished.repetition(number).map_err(|e| FitError::usage(chain(&e)))?;
                        repetition.write(writer)?;
                    }
                    Ok(())
                })
            }),
            answer: Some(Box::new(move |features, container| {
                let opened = match container {
                    Some(container) => container.again().map_err(Into::into).and_then(MachContainer::of),
                    None => MachContainer::open(session.target.folder().unwrap_or(Path::new("")), OpenMode::Map),
                };
                let (mach, _) = opened.and_then(|c| c.model(None)).map_err(|e| FitError::failed(chain(&e)))?;
                let answers = mach.predict_batch(features, &Asking::top(5));
                answers.map(|a| a.ranked).map_err(|e| FitError::failed(format_args!("validation: {}", chain(&e))))
            })),
            what,
            figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        })
    }
}

fn sizing(layout: &MachLayout, session: &Session<'_>) -> Result<Sizing, FitError> {
    let n_labels = session.shape.n_labels;
    let params = layout.params(session.network.classifier.clone());
    let numbers: Vec<u32> = layout.numbers.clone().collect();
    params
        .sizing(n_labels, numbers.len())
        .and_then(|sizing| params.assignment(n_labels, &numbers).map(|_| sizing))
        .map_err(|e| FitError::usage(format_args!("{}: {}", session.source.display(), chain(&e))))
}

/// Trains repetitions and keeps what is finished.
struct Repetitions<'a> {
    session: &'a Session<'a>,
    params: MachParams,
}

impl Repetitions<'_> {
    fn finished(number: u32) -> String {
        format!("finished-{number:04}")
    }

    /// A finished repetition, if the checkpoint has it; its hashes hold.
    fn find_finished(&self, number: u32) -> Result<Option<MachContainer>, FitError> {
        let Some(checkpoint) = self.session.checkpoint() else { return Ok(None) };
        let part = checkpoint.part(&Self::finished(number))?;
        part.map(MachContainer::of).transpose().map_err(|e| FitError::usage(chain(&e)))
    }

    fn open_finished(&self, number: u32) -> Result<MachContainer, FitError> {
        let gone = || FitError::failed(format_args!("repetition {number} is gone from the checkpoint"));
        self.find_finished(number)?.ok_or_else(gone)
    }

    /// Trains one repetition, unless the checkpoint has it; gives the steps of this run, and the repetition where no
    /// checkpoint keeps it.
    fn train(&self, number: u32) -> Result<(u64, Option<Repetition>), FitError> {
        let Self { session, params } = self;
        let TrainingShape { n_features, n_labels, .. } = session.shape;
        if self.find_finished(number)?.is_some() {
            session.context.note(format_args!("repetition {number}: from the checkpoint"));
            return Ok((0, None));
        }
        let assignment = params.assignment(n_labels, &[number]).map_err(|e| FitError::usage(chain(&e)))?;
        let targets = bucket_rows(&assignment, 0, session.labels());
        let judged = session.judged().map(|labels| bucket_rows(&assignment, 0, labels));
        let mut repetition = Repetition::new(params, n_features, number).map_err(|e| FitError::usage(chain(&e)))?;
        let part = format!("running-{number:04}");
        let log = session.target.log().map(|log| log.join(format!("repetition-{number:04}")));
        let keep = Some(Keep { part: part.clone(), log });
        let what = format!("repetition {number}: ");
        let watched = Watched { what: &what, outputs: "buckets" };
        let seed = repetition_seed(params.seed, number);
        let summary = session.with_trainer(
            seed,
            (&targets).into(),
            judged.as_ref(),
            Followed { watched, keep, counting: None, hard: None },
            |trainer, train, others| {
                initialise(repetition.classifier_mut(), None, train, trainer.observer)
                    .map_err(|e| session.error(&e))?;
                let network = repetition.classifier_mut().network_mut();
                trainer.train(network, train, others).map_err(|e| session.error(&e))
            },
        )?;
        let write = |writer: &mut ContainerWriter| {
            params.describe(writer, n_features, n_labels, &[number]);
            repetition.write(writer)
        };
        let Some(checkpoint) = session.checkpoint() else {
            end_training(repetition.classifier_mut());
            return Ok((summary.steps, Some(repetition)));
        };
        checkpoint.save(&Self::finished(number), KIND, write)?;
        checkpoint.remove(&part)?;
        Ok((summary.steps, None))
    }
}
