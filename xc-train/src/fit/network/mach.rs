//! MACH: repetitions one after the other, each kept when it is finished, then put together.

use super::session::{Followed, Keep, Learner, NetworkSession, Trained, Watched};
use super::shape::TrainingShape;
use crate::fit::FitError;
use crate::learn::{end_training, initialise, n_values};
use serde_json::{Value, json};
use std::path::Path;
use xc_mach::Sizing;
use xc_model::classifier::ClassifierParams;
use xc_model::mach::{
    Asking, CHECKPOINT, KIND, MachContainer, MachLayout, MachParams, Repetition, bucket_rows, repetition_seed,
};
use xc_model::message::{chain, counted};
use xc_store::{CheckpointLayout, ContainerWriter, OpenMode};

/// Repetitions over the buckets of labels.
pub(super) struct Buckets(pub(super) MachLayout);

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

    fn targets(&self, session: &NetworkSession<'_>) -> u64 {
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

    fn describe(&self, session: &NetworkSession<'_>) -> Value {
        json!([self.params(&session.network.classifier), session.network.classifier.learning])
    }

    fn train<'t>(&'t self, session: &'t NetworkSession<'t>) -> Result<Trained<'t>, FitError> {
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

fn sizing(layout: &MachLayout, session: &NetworkSession<'_>) -> Result<Sizing, FitError> {
    let n_labels = session.shape.n_labels;
    let params = layout.params(session.network.classifier.clone());
    let numbers: Vec<u32> = layout.numbers.clone().collect();
    params
        .sizing(n_labels, numbers.len())
        .and_then(|sizing| params.assignment(n_labels, &numbers).map(|_| sizing))
        .map_err(|e| FitError::usage(format_args!("{}: {}", session.source().display(), chain(&e))))
}

/// Trains repetitions and keeps what is finished.
struct Repetitions<'a> {
    session: &'a NetworkSession<'a>,
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
