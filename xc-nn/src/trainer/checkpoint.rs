//! The whole state of a training run as one part of a checkpoint, always whole.
//!
//! ```text
//!   CHECKPOINT/PART/      a container of kind "checkpoint", exchanged in one step at each save
//!     position            where training stands (in config.json)
//!     NAME, NAME.m0, ...  each array of the network; best.NAME the values of the best state so far
//!     hard_labels         what was collected so far, if anything is
//! ```

use super::{CheckpointAt, TrainError, exact};
use crate::state::{Arrays, Role, Slice, Snapshot, StateError};
use crate::{Encoder, HardLabels, Head, Network};
use serde::{Deserialize, Serialize};
use xc_store::{ArrayRef, CHECKPOINT_KIND, CheckpointError, Container};

/// Before the names of the best state's arrays.
const BEST: &str = "best.";
/// The table of [`HardLabels`] as it is stored.
const HARD: &str = "hard_labels";

/// The position of a training run: everything that the coming steps depend on, apart from the parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Position {
    pub(super) epoch: u32,
    /// Batches of the epoch that are done.
    pub(super) batch: u64,
    pub(super) step: u64,
    /// Sum of the losses of this epoch.
    #[serde(with = "exact")]
    pub(super) loss_sum: f64,
    /// Values of the monitor since the best one, those that patience counts.
    pub(super) waited: u32,
    pub(super) stopped: bool,
    /// Whether the last step is done and its validation was cancelled: that comes first then.
    pub(super) unvalidated: bool,
    pub(super) best: Option<Best>,
    #[serde(with = "exact::list")]
    pub(super) schedule: Vec<f64>,
}

/// The best value of the monitor so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Best {
    /// Steps done then.
    pub(super) step: u64,
    /// Finite: nothing else is better than what was before.
    pub(super) value: f64,
}

impl Position {
    /// Whether training can stand there: steps, epochs and batches agree, and nothing is counted
    /// that was not yet done.
    fn is_possible(&self, n_batches: u64) -> bool {
        let steps = u64::from(self.epoch).checked_mul(n_batches).and_then(|done| done.checked_add(self.batch));
        self.batch < n_batches.max(1)
            && (self.step > 0 || !self.unvalidated)
            && steps == Some(self.step)
            && u64::from(self.waited) <= self.step
            && self.best.is_none_or(|best| best.step <= self.step)
    }
}

/// An error with its cause, in one line.
fn said(error: &StateError) -> String {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

/// Arrays of a container under names behind a prefix; with one, answers alone.
struct Stored<'a> {
    container: &'a Container,
    prefix: &'a str,
}

impl Arrays for Stored<'_> {
    fn read(&self, of: &Slice<'_>, into: &mut [u8]) -> Result<(), StateError> {
        if of.role == Role::Training && !self.prefix.is_empty() {
            return Ok(());
        }
        let name = format!("{}{}", self.prefix, of.name);
        let bytes = self.container.bytes(&name, of.dtype, &of.shape()).map_err(|e| StateError::new(name, e))?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

impl CheckpointAt<'_> {
    /// Overwrites the network and the hard labels by the saved state, if there is one; gives the position and the
    /// values of the best state. Epochs have `n_batches` batches.
    pub(super) fn load<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        network: &mut Network<E, H>,
        n_batches: u64,
        hard: Option<&mut HardLabels>,
    ) -> Result<Option<(Position, Option<Snapshot>)>, TrainError> {
        let Some(container) = self.checkpoint.part(&self.part)? else { return Ok(None) };
        let damaged = |what: String| CheckpointError::Damaged { path: container.folder().to_owned(), what };
        let position: Position = container.parameter("position").map_err(CheckpointError::from)?;
        if !position.is_possible(n_batches) {
            return Err(damaged(format!("{position:?} is no position of epochs of {n_batches} batches")).into());
        }
        // The best state goes through the network, so that it is looked at as closely as the last
        // one.
        let has_best = container.arrays().any(|(name, _)| name.starts_with(BEST));
        let mut best = has_best.then(Snapshot::default);
        if let Some(best) = &mut best {
            read(&container, BEST, network)?;
            best.take(&network.parts(), &[Role::Answer]).map_err(|e| damaged(said(&e)))?;
        }
        read(&container, "", network)?;
        if let Some(hard) = hard {
            let array = container.array_shaped::<u32>(HARD, &hard.shape());
            let array = array.map_err(|e| damaged(said(&StateError::new(HARD, e))))?;
            let n_labels = network.head().labels().end;
            if let Some(label) = hard.restore(&array, n_labels).map_err(TrainError::HardLabels)? {
                return Err(damaged(format!("array {HARD}: label {label}, expected one below {n_labels}")).into());
            }
        }
        Ok(Some((position, best)))
    }

    /// Replaces the state in one step.
    pub(super) fn save<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        network: &Network<E, H>,
        position: &Position,
        best: Option<&Snapshot>,
        hard: Option<&HardLabels>,
    ) -> Result<(), TrainError> {
        match hard {
            None => self.write(network, position, best, None)?,
            Some(hard) => {
                let write =
                    |table: &[u32]| self.write(network, position, best, Some(ArrayRef::new(table, &hard.shape())));
                hard.read(write).map_err(TrainError::HardLabels)??;
            }
        }
        Ok(())
    }

    fn write<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        network: &Network<E, H>,
        position: &Position,
        best: Option<&Snapshot>,
        hard: Option<ArrayRef<'_>>,
    ) -> Result<(), CheckpointError> {
        let position = serde_json::to_value(position).unwrap_or_else(|e| panic!("a position is plain numbers: {e}"));
        self.checkpoint.save(&self.part, CHECKPOINT_KIND, |writer| {
            writer.set_parameter("position", position);
            let mut refused = None;
            let visited = network.visit(&mut |array| {
                let stop = |e| {
                    refused = Some(e);
                    StateError::new(array.of.name, "not written")
                };
                array.write(|bytes| writer.add(array.of.name, bytes)).map_err(stop)
            });
            if let Some(e) = refused {
                return Err(CheckpointError::from(e));
            }
            let damaged = |e| CheckpointError::Damaged { path: self.checkpoint.path().to_owned(), what: said(&e) };
            visited.map_err(damaged)?;
            for (name, _, array) in best.iter().flat_map(|best| best.arrays()) {
                writer.add(&format!("{BEST}{name}"), array)?;
            }
            if let Some(hard) = hard {
                writer.add(HARD, hard)?;
            }
            Ok(())
        })
    }
}

/// Overwrites the network's arrays by those that have their names behind `prefix`; moments only
/// where there is none.
fn read<E: Encoder, H: Head<Input = E::Output>>(
    container: &Container,
    prefix: &str,
    network: &mut Network<E, H>,
) -> Result<(), CheckpointError> {
    let damaged = |e: StateError| CheckpointError::Damaged { path: container.folder().to_owned(), what: said(&e) };
    network.load(&Stored { container, prefix }).map_err(damaged)?;
    network.check_finite().map_err(|e| match e {
        StateError::NotFinite { name, at } => damaged(StateError::NotFinite { name: format!("{prefix}{name}"), at }),
        other => damaged(other),
    })
}
