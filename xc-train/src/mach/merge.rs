//! Repetitions that were trained apart become one model.

use super::MachContainer;
use crate::classifier::LearningParams;
use crate::model::{MergeError, Merged};
use std::path::Path;
use xc_sparse::store::{Container, ContainerWriter, WriteError};

/// Repetitions of several folders.
pub(crate) struct MergedMach {
    parts: Vec<MachContainer>,
    numbers: Vec<u32>,
    /// The part that each repetition lies in.
    places: Vec<usize>,
}

impl MergedMach {
    /// Of parts with the same parameters.
    ///
    /// # Errors
    /// A folder that is no model; a repetition that two folders have.
    pub(crate) fn boxed(parts: Vec<Container>) -> Result<Box<dyn Merged>, MergeError> {
        let parts: Vec<_> =
            parts.into_iter().map(MachContainer::of).collect::<Result<_, _>>().map_err(MergeError::model)?;
        let mut places: Vec<(u32, usize)> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            for &number in part.numbers() {
                if let Some(&(_, other)) = places.iter().find(|&&(n, _)| n == number) {
                    let folder = |at: usize| parts[at].container().folder().to_owned();
                    return Err(MergeError::Repeated { path: folder(at), number, other: folder(other) });
                }
                places.push((number, at));
            }
        }
        places.sort_unstable();
        let (numbers, places) = places.into_iter().unzip();
        Ok(Box::new(Self { parts, numbers, places }))
    }
}

impl Merged for MergedMach {
    fn first(&self) -> &Container {
        self.parts[0].container()
    }

    fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    fn n_labels(&self) -> usize {
        self.parts[0].n_labels()
    }

    fn check_labels(&self, n_labels: usize) -> Result<(), MergeError> {
        let assignment = self.parts[0].params().assignment(self.n_labels(), &self.numbers);
        assignment.map_err(MergeError::model)?.grown_to(n_labels).map_err(MergeError::model)?;
        Ok(())
    }

    fn create(&self, folder: &Path, n_labels: usize) -> Result<ContainerWriter, WriteError> {
        let first = &self.parts[0];
        let mut writer = first.params().create(folder, first.n_features(), n_labels, &self.numbers)?;
        // Of a folder that was opened, what it says.
        let learning = first.container().parameters().get(LearningParams::NAME).cloned();
        writer.set_parameter(LearningParams::NAME, learning.unwrap_or_default());
        Ok(writer)
    }

    fn write(&self, position: usize, writer: &mut ContainerWriter) -> Result<(), MergeError> {
        let repetition = self.parts[self.places[position]].repetition(self.numbers[position]);
        Ok(repetition.map_err(MergeError::model)?.write(writer)?)
    }
}
