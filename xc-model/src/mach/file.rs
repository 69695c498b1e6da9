//! The folder of a MACH model: every repetition in a file of its own, so that one that is lost does
//! not take the others along.
//!
//! ```text
//!   config.json                            parameters: mach, n_features, n_labels, repetitions
//!   model-repetition-0007.safetensors      r7.bag.table, r7.bag.bias, r7.head.weights, ...
//! ```

use super::{MachModel, MachParams, MachParamsError, Repetition};
use crate::classifier::{Classifier, DENSE, LearningParams, OpenClassifierError};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_mach::Assignment;
use xc_store::{CheckpointLayout, Container, ContainerWriter, OpenError, OpenMode, WriteError, to_parameter};

/// The kind that `config.json` names.
pub const KIND: &str = "mach";

/// The checkpoints of a training run: finished repetitions, each a model of its own, and the states of
/// unfinished ones.
pub const CHECKPOINT: CheckpointLayout = CheckpointLayout { system: KIND, parts: &["finished-#", "running-#"] };

/// Why a folder does not open as a MACH model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenMachError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The parameters make no model.
    #[error("{}", path.display())]
    Params {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: MachParamsError,
    },
    /// A repetition that the folder does not have was asked for.
    #[error("{}: no repetition {number}; it has {}", path.display(), ranges(present))]
    Absent {
        /// The folder.
        path: PathBuf,
        /// Number of the repetition.
        number: u32,
        /// Numbers that are there.
        present: Vec<u32>,
    },
    /// No repetition is whole.
    #[error("{}: none of the {expected} repetitions can be read; the first: {first}", path.display())]
    NothingLeft {
        /// The folder.
        path: PathBuf,
        /// How many there should be.
        expected: usize,
        /// What is wrong with the first.
        first: Box<OpenClassifierError>,
    },
}

/// A repetition that cannot answer, and why.
#[derive(Debug, Error)]
#[error("repetition {number} is left out")]
pub struct LostRepetition {
    /// Its number.
    pub number: u32,
    /// What is wrong with it.
    pub source: OpenClassifierError,
}

/// What the names of a repetition's arrays begin with.
pub fn array_prefix(number: u32) -> String {
    format!("r{number}.")
}

/// Numbers as a person writes them: `0-3, 7`.
fn ranges(numbers: &[u32]) -> String {
    let runs: Vec<String> = numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    runs.join(", ")
}

/// A MACH folder that is open: what its repetitions share, and each of them to be had alone.
#[derive(Debug)]
pub struct MachContainer {
    container: Container,
    params: MachParams,
    n_features: usize,
    n_labels: usize,
    assignment: Assignment,
}

impl MachContainer {
    /// Opens a folder of kind [`KIND`]. Array files that are missing or malformed show only when
    /// their repetition is read.
    ///
    /// # Errors
    /// A configuration that is malformed, of another kind, or makes no model.
    pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenMachError> {
        let folder = folder.as_ref();
        Self::of(Container::open_parts(folder, mode)?)
    }

    /// The same of a container that is open.
    ///
    /// # Errors
    /// As [`MachContainer::open`].
    pub fn of(container: Container) -> Result<Self, OpenMachError> {
        container.expect_kind(KIND)?;
        let params: MachParams = container.parameter("mach")?;
        let (n_features, n_labels) = (container.parameter("n_features")?, container.parameter("n_labels")?);
        let numbers: Vec<u32> = container.parameter("repetitions")?;
        let assignment = params
            .assignment(n_labels, &numbers)
            .map_err(|source| OpenMachError::Params { path: container.folder().to_owned(), source })?;
        Ok(Self { container, params, n_features, n_labels, assignment })
    }

    /// The folder's configuration and arrays.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The folder's configuration and arrays alone.
    pub fn into_container(self) -> Container {
        self.container
    }

    /// What the repetitions share.
    pub fn params(&self) -> &MachParams {
        &self.params
    }

    /// Number of features of a query.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Numbers of the repetitions that the folder should have.
    pub fn numbers(&self) -> &[u32] {
        self.assignment.numbers()
    }

    /// One repetition, mapped.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn repetition(&self, number: u32) -> Result<Repetition, OpenClassifierError> {
        let prefix = array_prefix(number);
        let n_outputs = self.params.n_buckets as usize;
        let params = self.params.classifier.clone();
        let (kind, n_features) = (DENSE, self.n_features);
        let classifier = Classifier::open_arrays(&self.container, &prefix, kind, params, n_features, n_outputs, true)?;
        Ok(Repetition::from_classifier(number, classifier))
    }

    /// The model of the repetitions that are whole, of those that `only` names (all when it is
    /// `None`), and what is wrong with the others.
    ///
    /// *Cost*: one pass over the arrays, to find values that are not finite; nothing is copied.
    ///
    /// # Errors
    /// A repetition that was never there is asked for; none is left.
    pub fn model(&self, only: Option<&[u32]>) -> Result<(MachModel, Vec<LostRepetition>), OpenMachError> {
        let path = || self.container.folder().to_owned();
        let numbers = only.unwrap_or(self.numbers());
        let (mut whole, mut lost) = (Vec::new(), Vec::new());
        for &number in numbers {
            if !self.numbers().contains(&number) {
                return Err(OpenMachError::Absent { path: path(), number, present: self.numbers().to_vec() });
            }
            match self.repetition(number) {
                Ok(repetition) => whole.push(repetition),
                Err(source) => lost.push(LostRepetition { number, source }),
            }
        }
        if whole.is_empty() && !lost.is_empty() {
            let (expected, first) = (lost.len(), Box::new(lost.remove(0).source));
            return Err(OpenMachError::NothingLeft { path: path(), expected, first });
        }
        let model = MachModel::new(self.params.clone(), self.n_features, self.n_labels, whole)
            .map_err(|source| OpenMachError::Params { path: path(), source })?;
        Ok((model, lost))
    }
}

impl MachParams {
    /// Begins a container of kind [`KIND`] that will hold the repetitions with these numbers,
    /// ascending.
    ///
    /// # Errors
    /// The container refuses.
    pub fn create(
        &self,
        folder: &Path,
        n_features: usize,
        n_labels: usize,
        numbers: &[u32],
    ) -> Result<ContainerWriter, WriteError> {
        let mut writer = ContainerWriter::create(folder, KIND)?;
        self.begin(&mut writer, n_features, n_labels, numbers);
        Ok(writer)
    }

    /// Begins the model of the repetitions with these numbers in a container of kind [`KIND`].
    pub fn begin(&self, writer: &mut ContainerWriter, n_features: usize, n_labels: usize, numbers: &[u32]) {
        self.describe(writer, n_features, n_labels, numbers);
        writer.set_parameter(LearningParams::NAME, to_parameter(&self.classifier.learning));
    }

    /// Stores what the repetitions with these numbers share, in a container of kind [`KIND`].
    pub fn describe(&self, writer: &mut ContainerWriter, n_features: usize, n_labels: usize, numbers: &[u32]) {
        writer.set_parameter("mach", to_parameter(self));
        writer.set_parameter("n_features", n_features as u64);
        writer.set_parameter("n_labels", n_labels as u64);
        writer.set_parameter("repetitions", numbers);
    }
}

impl MachModel {
    /// Adds parameters and all repetitions to a container of kind [`KIND`].
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let numbers = self.assignment.numbers();
        self.params.begin(writer, self.n_features, self.n_labels(), numbers);
        numbers.iter().zip(&self.classifiers).try_for_each(|(&number, classifier)| write(classifier, number, writer))
    }
}

/// Adds the classifier of the repetition with this number, in a file of its own.
fn write(classifier: &Classifier, number: u32, writer: &mut ContainerWriter) -> Result<(), WriteError> {
    writer.begin_file(&format!("repetition-{number:04}"))?;
    classifier.write_arrays(&array_prefix(number), writer)
}

impl Repetition {
    /// Adds the repetition, in a file of its own.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        write(self.classifier(), self.number(), writer)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_written_in_runs() {
        assert_eq!(super::ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3, 7, 9-10");
        assert_eq!(super::ranges(&[]), "");
    }
}
