//! The whole state of a training in a folder, always whole.
//!
//! ```text
//!   CHECKPOINT/state/     a model folder of kind "checkpoint", exchanged in one step at each save
//!     key                 xxh3 of data, settings and first parameters, 16 hexadecimal digits (in config.json)
//!     position            where training stands, as u64 (numbers are kept bit for bit)
//!     NAME, NAME.m0, ...  each array of the network; best.NAME the values of the best state so far
//! ```

use super::evaluate::Validation;
use crate::state::{Arrays, Role, Slice, Snapshot, StateError};
use crate::{Encoder, Head, Network};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::store::{Container, ContainerWriter, OpenError, OpenMode, WriteError};

const KIND: &str = "checkpoint";
/// Before the names of the best state's arrays.
const BEST: &str = "best.";

/// Why a checkpoint is of no use or cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The folder belongs to a training with other data or settings.
    #[error(
        "checkpoint {} belongs to other data or settings (key {met}, wanted {wanted}); remove it or choose another folder",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Key found there.
        met: String,
        /// Key of this training.
        wanted: String,
    },
    /// The content is not what was written.
    #[error("checkpoint {} is damaged: {what}; remove it to begin anew", path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file system refused.
    #[error("checkpoint {}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Where a training stands. Everything that the coming steps depend on beside the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Position {
    pub(super) epoch: u32,
    /// Batches of the epoch that are done.
    pub(super) batch: u64,
    pub(super) step: u64,
    pub(super) log_bytes: u64,
    /// Losses since the last line of the log: sum and number.
    pub(super) running: (f64, u64),
    /// Evaluations since the best one.
    pub(super) waited: u32,
    pub(super) stopped: bool,
    pub(super) best: Option<(u64, Validation)>,
    pub(super) schedule: Vec<f64>,
}

impl Position {
    fn to_numbers(&self) -> Vec<u64> {
        let (best_step, best) = self.best.unwrap_or((u64::MAX, Validation { loss: 0.0, precision: [0.0; 3] }));
        let mut out = vec![u64::from(self.epoch), self.batch, self.step, self.log_bytes, self.running.0.to_bits()];
        out.extend([self.running.1, u64::from(self.waited), u64::from(self.stopped), best_step, best.loss.to_bits()]);
        out.extend(best.precision.iter().chain(&self.schedule).map(|v| v.to_bits()));
        out
    }

    fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (&[epoch, batch, step, log_bytes, running, n, waited, stopped, best_step, loss, p1, p3, p5], schedule) =
            numbers.split_first_chunk()?;
        let precision = [p1, p3, p5].map(f64::from_bits);
        Some(Self {
            epoch: epoch.try_into().ok()?,
            batch,
            step,
            log_bytes,
            running: (f64::from_bits(running), n),
            waited: waited.try_into().ok()?,
            stopped: stopped != 0,
            best: (best_step != u64::MAX).then_some((best_step, Validation { loss: f64::from_bits(loss), precision })),
            schedule: schedule.iter().map(|&v| f64::from_bits(v)).collect(),
        })
    }
}

impl Position {
    /// Whether training can stand there: steps, epochs and batches agree, and nothing is counted that was not yet done.
    fn is_possible(&self, n_batches: u64) -> bool {
        let steps = u64::from(self.epoch).checked_mul(n_batches).and_then(|done| done.checked_add(self.batch));
        self.batch < n_batches.max(1)
            && steps == Some(self.step)
            && self.running.1 <= self.step
            && u64::from(self.waited) <= self.step
            && self.best.is_none_or(|(step, _)| step <= self.step)
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

/// A checkpoint folder for the training with one key.
pub(super) struct Checkpoint {
    folder: PathBuf,
    state: PathBuf,
    key: String,
}

impl Checkpoint {
    /// Makes the folder and removes what killed programs left half written.
    pub(super) fn open(folder: &Path, key: u64) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".state.") && name.ends_with(".partial") {
                std::fs::remove_dir_all(entry.path()).map_err(io)?;
            }
        }
        Ok(Self { folder: folder.to_owned(), state: folder.join("state"), key: format!("{key:016x}") })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the network, and gives the position and the best values, of the last save; nothing if there is none.
    /// An epoch has `n_batches`.
    pub(super) fn load<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        network: &mut Network<E, H>,
        n_batches: u64,
    ) -> Result<Option<(Position, Option<Snapshot>)>, CheckpointError> {
        if !self.state.join("config.json").exists() {
            return Ok(None);
        }
        let damaged = |what: String| CheckpointError::Damaged { path: self.state.clone(), what };
        let container = Container::open(&self.state, OpenMode::Map)?;
        container.expect_kind(KIND)?;
        let met: String = container.parameter("key")?;
        if met != self.key {
            return Err(CheckpointError::Foreign { path: self.folder.clone(), met, wanted: self.key.clone() });
        }
        if let Some(mismatch) = container.verify()?.first() {
            return Err(damaged(mismatch.to_string()));
        }
        let numbers = container.array::<u64>("position")?;
        let position = Position::from_numbers(&numbers).ok_or_else(|| damaged("no position".to_owned()))?;
        if !position.is_possible(n_batches) {
            return Err(damaged(format!("{position:?} is no position of epochs of {n_batches} batches")));
        }
        // The best state goes through the network, so that it is looked at as closely as the last one.
        let has_best = container.arrays().any(|(name, _)| name.starts_with(BEST));
        let mut best = has_best.then(Snapshot::default);
        if let Some(best) = &mut best {
            self.read(&container, BEST, network)?;
            best.take(&network.parts(), &[Role::Answer]).map_err(|e| damaged(said(&e)))?;
        }
        self.read(&container, "", network)?;
        Ok(Some((position, best)))
    }

    /// Overwrites the network's arrays by those that have their names behind `prefix`; moments only where there is none.
    fn read<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        container: &Container,
        prefix: &str,
        network: &mut Network<E, H>,
    ) -> Result<(), CheckpointError> {
        let damaged = |e: StateError| CheckpointError::Damaged { path: self.state.clone(), what: said(&e) };
        network.load(&Stored { container, prefix }).map_err(damaged)?;
        network.check_finite().map_err(|e| match e {
            StateError::NotFinite { name, at } => {
                damaged(StateError::NotFinite { name: format!("{prefix}{name}"), at })
            }
            other => damaged(other),
        })
    }

    /// Replaces the state in one step.
    pub(super) fn save<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        network: &Network<E, H>,
        position: &Position,
        best: Option<&Snapshot>,
    ) -> Result<(), CheckpointError> {
        let mut writer = ContainerWriter::create(&self.state, KIND)?;
        writer.set_parameter("key", self.key.as_str());
        writer.set_parameter("step", position.step);
        writer.set_parameter("epoch", u64::from(position.epoch));
        writer.add_slice("position", &position.to_numbers())?;
        let mut refused = None;
        let visited = network.visit(&mut |array| {
            let stop = |e| {
                refused = Some(e);
                StateError::new(array.of.name, "not written")
            };
            array.write(|bytes| writer.add(array.of.name, bytes)).map_err(stop)
        });
        if let Some(e) = refused {
            return Err(e.into());
        }
        visited.map_err(|e| CheckpointError::Damaged { path: self.state.clone(), what: said(&e) })?;
        for (name, _, array) in best.iter().flat_map(|best| best.arrays()) {
            writer.add(&format!("{BEST}{name}"), array)?;
        }
        Ok(writer.finish()?)
    }
}

/// Removes a checkpoint that has served, with its folder if nothing else is in it.
///
/// # Errors
/// The file system refuses. A folder that is not there is no error.
pub fn remove_checkpoint(folder: &Path) -> Result<(), CheckpointError> {
    match std::fs::remove_dir_all(folder.join("state")) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(CheckpointError::Io { path: folder.join("state"), source })
        }
        _ => {
            // It may hold what is not ours.
            let _ = std::fs::remove_dir(folder);
            Ok(())
        }
    }
}
