//! One repetition: a classifier of instances into buckets.

use super::{MachParams, MachParamsError};
use crate::shape::{BagNetwork, begin_at_prior};
use crate::trainer::{Sample, Summary, TrainError};
use crate::{Init, Trainer};
use xc_hash::stream::{Purpose, name};
use xc_mach::Assignment;
use xc_sparse::LabelRows;

/// A network over the buckets of one repetition.
#[derive(Clone, Debug)]
pub struct Repetition {
    number: u32,
    network: BagNetwork,
}

/// Seed of everything that is drawn for a repetition: first values, order of the instances, dropout.
pub fn repetition_seed(seed: u64, number: u32) -> u64 {
    name(seed, Purpose::Repetition, &[u64::from(number)])
}

/// The buckets of every instance's labels in the repetition at `position`, ascending, each once: what its network learns.
///
/// # Panics
/// If a label is not below the assignment's number of labels, or there is no such position.
pub fn bucket_rows(assignment: &Assignment, position: usize, labels: &LabelRows) -> LabelRows {
    let (mut indptr, mut buckets) = (Vec::with_capacity(labels.len() + 1), Vec::with_capacity(labels.nnz()));
    indptr.push(0);
    let mut row = Vec::new();
    for labels in labels.iter() {
        assignment.buckets_of(position, labels, &mut row);
        buckets.extend_from_slice(&row);
        indptr.push(buckets.len());
    }
    LabelRows::try_new(indptr, buckets, assignment.n_buckets())
        .unwrap_or_else(|e| panic!("buckets that are no label rows: {e}"))
}

impl Repetition {
    /// A repetition that has learned nothing.
    ///
    /// # Errors
    /// An impossible network.
    pub fn new(params: &MachParams, n_features: usize, number: u32) -> Result<Self, MachParamsError> {
        params.network.check()?;
        let seed = repetition_seed(params.network.seed, number);
        let network = params.network.network(n_features, params.n_buckets as usize, Init::Random { seed });
        Ok(Self { number, network })
    }

    pub(super) fn from_network(number: u32, network: BagNetwork) -> Self {
        Self { number, network }
    }

    /// Puts the biases of the buckets at how often each is true in a sample: part of the first values, so it comes before the
    /// training and before its key.
    pub fn begin(&mut self, params: &MachParams, train: &Sample<'_>) {
        begin_at_prior(&mut self.network, train, params.network.loss);
    }

    /// Trains on instances with their buckets ([`bucket_rows`]). The trainer's loss should be that of the parameters, its seed
    /// [`repetition_seed`].
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(
        &mut self,
        trainer: &mut Trainer<'_>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<Summary, TrainError> {
        trainer.train(&mut self.network, train, validation)
    }

    /// Its number, which with the parameters names its hash function.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its network.
    pub fn network(&self) -> &BagNetwork {
        &self.network
    }

    pub(super) fn into_network(self) -> BagNetwork {
        self.network
    }
}
