//! Hard labels retrieved by a schedule: algorithm 1 of `[mehta2024astra]`.
//!
//! ```text
//!   epoch u - 2    the vectors of all instances are stored as the encoder computes them
//!   epoch u - 1    a separate thread builds an index of the weights and searches it for every instance
//!   epoch u ...    the labels found are the hard labels, until the next retrieval replaces them
//! ```
//!
//! u is the first epoch with hard labels, and every `every_epochs`-th epoch after it. The thread is
//! joined after the first step of epoch u, whatever its speed, so that the result of training does
//! not depend on it. Training waits only if the thread needs more than an epoch.

use super::AnnParams;
use super::index::build_params;
use crate::label_rows::BiasCoordinate;
use crate::sampler::error::rows;
use crate::sampler::lists::exact_lists;
use crate::sampler::{Candidates, LabelWeights, Lists, Queries, SampleError, Sampler, SamplerData, SamplerParamsError};
use crate::state::{self, Array, Arrays, Role, State, StateError, Visitor};
use crate::{Step, StepError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xc_ann::{BuildParams, Graph, SearchParams, Silent};
use xc_buffer::Buffer;
use xc_dense::{DenseMatrix, DenseRows};
use xc_store::MmapVec;

/// Labels of an instance that are retrieved in addition: the true ones among them are left out on
/// use.
const SPARE: usize = 16;
/// Stands for no label in rows with fewer labels.
const NONE: u32 = u32::MAX;
/// Number of instances that the index is fitted to and has edges for.
const FITTED_TO: usize = 2000;

/// How many hard labels an instance has, and how often they are retrieved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleParams {
    /// Hard labels of an instance, k_h.
    pub per_instance: usize,
    /// Epochs from one retrieval to the next, tau_r.
    pub every_epochs: u32,
    /// First epoch with hard labels (from 0), tau_s. At least 2: vectors are stored in one epoch
    /// and searched with in the next.
    pub first_epoch: u32,
    /// Share of the hardest labels that a search should find.
    pub recall: f64,
}

impl Default for ScheduleParams {
    /// Ten hard labels from epoch 2 on, retrieved every 5 epochs.
    fn default() -> Self {
        let AnnParams { per_instance, recall, .. } = AnnParams::default();
        Self { per_instance, every_epochs: 5, first_epoch: 2, recall }
    }
}

impl ScheduleParams {
    pub(in super::super) fn check(&self) -> Result<(), SamplerParamsError> {
        AnnParams { per_instance: self.per_instance, recall: self.recall, ..AnnParams::default() }.check()?;
        let number = crate::sampler::params::number;
        match self {
            Self { every_epochs: 0, .. } => number("every_epochs", 0.0, "at least 1"),
            Self { first_epoch: ..2, .. } => number("first_epoch", f64::from(self.first_epoch), "at least 2, from 0"),
            _ => Ok(()),
        }
    }

    /// Whether the result of a retrieval is first used in this epoch.
    fn is_first(&self, epoch: u32) -> bool {
        epoch >= self.first_epoch && (epoch - self.first_epoch).is_multiple_of(self.every_epochs)
    }

    /// Bytes of the tables of `n_instances` instances, and of the index.
    #[cfg(feature = "train")]
    pub fn bytes(&self, n_instances: usize, n_labels: usize, width: usize) -> u64 {
        let params = build_params(self.per_instance, self.recall, 0);
        let (n, ids) = (n_instances as u64, (self.per_instance + SPARE) as u64);
        // Two tables of vectors and of labels may exist at once: one in use, one being filled.
        2 * 4 * n * (width as u64 + ids)
            + 4 * n_labels as u64 * (width as u64 + 1)
            + Graph::bytes(n_labels, width, &params) as u64
    }
}

type Found = Result<Buffer<u32>, SampleError>;

/// The state of a retrieval.
#[derive(Debug, Default)]
enum Job {
    #[default]
    None,
    Running(JoinHandle<Found>),
    Done(Found),
}

impl Job {
    /// Waits for the thread; `None` if there is no retrieval.
    fn join(&mut self) -> Option<&Found> {
        if let Self::Running(_) = self
            && let Self::Running(handle) = std::mem::take(self)
        {
            let found = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            *self = Self::Done(found);
        }
        match self {
            Self::Done(found) => Some(found),
            _ => None,
        }
    }
}

/// Hard labels retrieved by a schedule; see the [samplers](super::super) and [`ScheduleParams`].
///
/// Checkpoints contain the retrieved labels and the stored vectors, after a running retrieval has
/// ended. *Memory*: 4 bytes per value of the vectors of all instances while they are stored, and 4
/// per retrieved label. With a folder, both are in unnamed files that are mapped when they are
/// read.
#[derive(Debug)]
pub struct Scheduled {
    params: ScheduleParams,
    lists: Lists,
    n_labels: usize,
    n_instances: usize,
    width: usize,
    seed: u64,
    /// Epoch of the last step.
    epoch: Option<u32>,
    hard: Option<Buffer<u32>>,
    vectors: Option<MmapVec<f32>>,
    folder: Option<PathBuf>,
    job: Mutex<Job>,
    waited: Duration,
}

impl Clone for Scheduled {
    fn clone(&self) -> Self {
        let job = match self.lock().join() {
            Some(found) => Job::Done(found.clone()),
            None => Job::None,
        };
        let in_memory = |vectors: &MmapVec<f32>| {
            let copy = vectors.read(|all| MmapVec::of(all.to_vec(), None)).flatten();
            copy.expect("a file that is open is mapped")
        };
        let (hard, vectors) = (self.hard.clone(), self.vectors.as_ref().map(in_memory));
        Self { hard, vectors, folder: self.folder.clone(), job: Mutex::new(job), ..*self }
    }
}

impl Scheduled {
    /// A sampler of the labels that `data` counts, for instances with numbers below
    /// `data.n_numbers`.
    pub fn new(params: ScheduleParams, data: &SamplerData<'_>) -> Self {
        Self {
            params,
            lists: Lists::Shared,
            n_labels: data.counts.len(),
            n_instances: data.n_numbers,
            width: data.width,
            seed: data.seed,
            epoch: None,
            hard: None,
            vectors: None,
            folder: data.folder.map(Path::to_path_buf),
            job: Mutex::default(),
            waited: Duration::ZERO,
        }
    }

    /// One list per batch, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn per_row(&self) -> usize {
        self.params.per_instance + SPARE
    }

    /// Appends the hard labels of an instance, best first.
    fn of(&self, queries: Queries<'_>, place: usize, to: &mut Vec<u32>) {
        let Some(hard) = &self.hard else { return };
        let own = queries.targets.row(place);
        let row = queries.instances[place] as usize * self.per_row();
        let found = hard[row..row + self.per_row()].iter().filter(|label| own.binary_search(label).is_err());
        to.extend(found.copied().take_while(|&label| label != NONE).take(self.params.per_instance));
    }

    /// Ends and starts what is due in an epoch, after its first step.
    fn begin_epoch(&mut self, epoch: u32, weights: LabelWeights<'_>) -> Result<(), SampleError> {
        let began = Instant::now();
        let mut job = std::mem::take(&mut *self.lock());
        if let Some(found) = job.join() {
            self.waited += began.elapsed();
            self.hard = Some(found.clone()?);
        }
        let asks = self.params.is_first(epoch + 1);
        if let Some(vectors) = self.vectors.take().filter(|_| asks) {
            let (width, k) = (self.width, self.per_row());
            let bias = BiasCoordinate::balanced(weights, None);
            let labels = bias.labels(weights);
            let params = build_params(k, self.params.recall, self.seed);
            let folder = self.folder.clone();
            let job = move || {
                let vectors = vectors.finish().map_err(|e| file(folder.as_deref(), &e))?;
                let found = retrieve(bias, &labels, &DenseRows::new(&vectors, width), k, &params, folder.as_deref())?;
                found.finish().map_err(|e| file(folder.as_deref(), &e))
            };
            *self.lock() = Job::Running(std::thread::spawn(job));
        }
        if self.params.is_first(epoch + 2) {
            let vectors = MmapVec::zeros(self.n_instances * self.width, self.folder.as_deref());
            self.vectors = Some(vectors.map_err(|e| file(self.folder.as_deref(), &e))?);
        }
        self.epoch = Some(epoch);
        Ok(())
    }
}

fn file(folder: Option<&Path>, error: &io::Error) -> SampleError {
    SampleError::File { folder: folder.map(Path::to_path_buf).unwrap_or_default(), why: error.to_string() }
}

/// The best labels of each instance, in consecutive rows of `k`; runs on one thread.
fn retrieve(
    bias: BiasCoordinate,
    labels: &DenseMatrix,
    vectors: &DenseRows<'_>,
    k: usize,
    params: &BuildParams,
    folder: Option<&Path>,
) -> Result<MmapVec<u32>, SampleError> {
    let find = || {
        let columns = labels.columns;
        let instances = |range: Range<usize>| {
            let mut asked = Vec::with_capacity(range.len() * columns);
            bias.push_instances(
                DenseRows::new(&vectors.values()[range.start * (columns - 1)..range.end * (columns - 1)], columns - 1),
                &mut asked,
            );
            asked
        };
        let some = instances(0..vectors.len().min(FITTED_TO));
        let graph = Graph::build_for(labels.view(), Some(DenseRows::new(&some, columns)), params, &Silent);
        let graph = graph.map_err(SampleError::Index)?;
        let width = graph.fitted().map_or(super::index::WIDEST, |fitted| fitted.width.min(super::index::WIDEST));
        let mut out = MmapVec::zeros(vectors.len() * k, folder).map_err(|e| file(folder, &e))?;
        let mut labels_of = Vec::with_capacity(FITTED_TO * k);
        for first in (0..vectors.len()).step_by(FITTED_TO) {
            let asked = instances(first..vectors.len().min(first + FITTED_TO));
            let found = graph.search_batch(
                labels.view(),
                DenseRows::new(&asked, columns),
                SearchParams::top(k).with_width(width),
                None,
            );
            let (found, _) = found.map_err(|error| SampleError::Index(error.into()))?;
            labels_of.clear();
            for row in found.iter() {
                let end = labels_of.len() + k;
                labels_of.extend(row.iter().map(|found| found.label));
                labels_of.resize(end, NONE);
            }
            out.write(first * k, &labels_of).map_err(|e| file(folder, &e))?;
        }
        Ok(out)
    };
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(find),
        Err(_) => find(),
    }
}

impl Sampler for Scheduled {
    /// # Panics
    /// If the number of an instance is not below the `n_numbers` of the constructor's data.
    fn sample(
        &self,
        _: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        rows(weights, &labels)?;
        exact_lists(self.lists, queries.instances.len(), out, |place, to| self.of(queries, place, to))?;
        out.cost_mut().wait += self.waited;
        Ok(())
    }

    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        _: &[u32],
        _: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        let weights = rows(weights, &(0..self.n_labels as u32))?;
        self.waited = Duration::ZERO;
        if self.epoch != Some(at.epoch) {
            self.begin_epoch(at.epoch, weights)?;
        }
        if let Some(vectors) = &mut self.vectors {
            for (&instance, vector) in queries.instances.iter().zip(queries.vectors.iter()) {
                if vector.iter().any(|v| !v.is_finite()) {
                    return Err(SampleError::Vector { instance }.into());
                }
                let written = vectors.write(instance as usize * self.width, vector);
                written.map_err(|e| file(self.folder.as_deref(), &e))?;
            }
        }
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

const COUNTERS: &str = "sampler.schedule.counters";
const HARD: &str = "sampler.schedule.hard";
const NEXT: &str = "sampler.schedule.next";
const VECTORS: &str = "sampler.schedule.vectors";

impl State for Scheduled {
    fn settings(&self) -> serde_json::Value {
        json!({ "schedule": self.params, "lists": self.lists, "seed": self.seed })
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        let mut job = self.lock();
        let next = match job.join() {
            Some(Ok(found)) => Some(found),
            Some(Err(error)) => return Err(StateError::new(NEXT, error.clone())),
            None => None,
        };
        let has = |is: bool| u64::from(is);
        let epoch = self.epoch.map_or(0, |epoch| u64::from(epoch) + 1);
        let counters = [epoch, has(self.hard.is_some()), has(next.is_some()), has(self.vectors.is_some())];
        let ids = [self.n_instances, self.per_row()];
        f(Array::new(COUNTERS, Role::Training, [counters.len(), 1], &counters))?;
        if let Some(hard) = &self.hard {
            f(Array::new(HARD, Role::Training, ids, hard))?;
        }
        if let Some(next) = next {
            f(Array::new(NEXT, Role::Training, ids, next))?;
        }
        let Some(vectors) = &self.vectors else { return Ok(()) };
        let visited = vectors.read(|all| f(Array::new(VECTORS, Role::Training, [self.n_instances, self.width], all)));
        visited.map_err(|e| StateError::new(VECTORS, file(self.folder.as_deref(), &e)))?
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        let next = match self.lock().join() {
            Some(Ok(found)) => Some(found.clone()),
            _ => None,
        };
        // If only the arrays for predictions are loaded, everything stays as it is.
        let has = |is: bool| u64::from(is);
        let epoch = self.epoch.map_or(0, |epoch| u64::from(epoch) + 1);
        let mut counters = [epoch, has(self.hard.is_some()), has(next.is_some()), has(self.vectors.is_some())];
        state::read(from, COUNTERS, Role::Training, [counters.len(), 1], &mut counters)?;
        let [epoch, has_hard, has_next, has_vectors] = counters;
        self.epoch = epoch.checked_sub(1).map(|epoch| epoch as u32);
        let (n, k, n_labels) = (self.n_instances, self.per_row(), self.n_labels);
        let folder = self.folder.as_deref();
        let read_ids = |name: &str, before: Option<Buffer<u32>>| {
            let mut ids = before.map_or_else(|| vec![NONE; n * k], |ids| ids.to_vec());
            state::read(from, name, Role::Training, [n, k], &mut ids)?;
            match ids.iter().find(|&&label| label != NONE && label as usize >= n_labels) {
                Some(label) => Err(StateError::new(name, format!("label {label} of {n_labels}"))),
                None => MmapVec::of(ids, folder)
                    .and_then(MmapVec::finish)
                    .map_err(|e| StateError::new(name, file(folder, &e))),
            }
        };
        self.hard = if has_hard == 1 { Some(read_ids(HARD, self.hard.take())?) } else { None };
        let job = if has_next == 1 { Job::Done(Ok(read_ids(NEXT, next)?)) } else { Job::None };
        self.job = Mutex::new(job);
        self.vectors = match has_vectors {
            1 => {
                let before = self.vectors.take().map(|vectors| vectors.read(<[f32]>::to_vec)).transpose();
                let failed = |e| StateError::new(VECTORS, file(folder, &e));
                let mut vectors = before.map_err(failed)?.unwrap_or_else(|| vec![0.0; n * self.width]);
                state::read(from, VECTORS, Role::Training, [n, self.width], &mut vectors)?;
                Some(MmapVec::of(vectors, folder).map_err(failed)?)
            }
            _ => None,
        };
        Ok(())
    }
}
