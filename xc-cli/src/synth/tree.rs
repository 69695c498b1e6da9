//! An untrained tree of a given shape, written while it is made: what a model of a hundred million
//! labels weighs and how fast it answers can be measured without training one.
//!
//! Every chunk is drawn from its own random stream. A row's feature comes from the topic of one of
//! the cluster's ancestors or from a background that falls as a power law; a query for a label
//! draws its features in the same way from the label's ancestors, so that it meets rows on its own
//! path more often than elsewhere. The number of children that share a row, the number of rows, the
//! query's length and the shares of the two sources are parameters.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_hash::stream::mix;
use xc_sparse::chunked::{ChunkRows, LevelStreams, PackError, Packer, SlotMap};
use xc_store::{ContainerWriter, WriteError};
use xc_tree::PostProcessor;

/// Shape of an untrained tree and of its queries.
#[derive(Clone, Debug)]
pub(crate) struct UntrainedParams {
    /// Number of labels.
    pub(crate) n_labels: u32,
    /// Number of features.
    pub(crate) n_features: u32,
    /// Children of a cluster; the last of a level may have fewer.
    pub(crate) branching: u32,
    /// Weights of every label and cluster, at least.
    pub(crate) weights_per_column: u32,
    /// Share of the rows that 1, 2, 3, ... children have in common; the last entry stands for
    /// itself and more.
    pub(crate) overlap: Vec<f64>,
    /// Features of a query.
    pub(crate) query_nnz: u32,
    /// Share of a row's or query's features that come from a topic rather than from the background.
    pub(crate) topical: f64,
    /// Features of one topic.
    pub(crate) topic_size: u32,
    /// Exponent of the background's power law.
    pub(crate) zipf: f64,
    /// How weights are stored.
    pub(crate) precision: DType,
    /// Seed of everything.
    pub(crate) seed: u64,
}

/// Why an untrained tree cannot be made.
#[derive(Debug, Error)]
pub(crate) enum UntrainedError {
    /// A parameter out of range.
    #[error("{name}: got {got}, expected {expected}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The value found.
        got: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The system refused to write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A level is too large for its format.
    #[error("level {level}")]
    Pack {
        /// The level.
        level: usize,
        /// What is wrong.
        source: PackError,
    },
    /// The caller asked to stop.
    #[error("stopped before the model was complete")]
    Cancelled,
}

/// Parents packed between two writes.
const GROUP: u32 = 16_384;

/// A tree that exists as a rule.
pub(crate) struct Untrained {
    params: UntrainedParams,
    /// Number of nodes of each level.
    widths: Vec<u32>,
    overlap_sums: Vec<f64>,
}

impl Untrained {
    /// Checks the parameters and lays out the levels.
    pub(crate) fn new(params: UntrainedParams) -> Result<Self, UntrainedError> {
        let fail = |name, got: String, expected| Err(UntrainedError::Parameter { name, got, expected });
        if params.n_labels == 0 {
            return fail("labels", "0".into(), "at least 1");
        }
        if params.n_features < 2 {
            return fail("features", params.n_features.to_string(), "at least 2");
        }
        if !(2..=128).contains(&params.branching) {
            return fail("branching", params.branching.to_string(), "2 to 128");
        }
        let total: f64 = params.overlap.iter().sum();
        if !(total > 0.0 && params.overlap.iter().all(|&s| s.is_finite() && s >= 0.0)) {
            return fail("overlap", format!("{:?}", params.overlap), "shares of at least 0 with a positive sum");
        }
        if !(0.0..=1.0).contains(&params.topical) {
            return fail("topical", params.topical.to_string(), "0 to 1");
        }
        if params.topic_size == 0 {
            return fail("topic size", "0".into(), "at least 1");
        }
        if !(params.zipf.is_finite() && (0.0..=4.0).contains(&params.zipf)) {
            return fail("zipf", params.zipf.to_string(), "0 to 4");
        }
        let mut widths = vec![params.n_labels];
        while widths[0] > params.branching {
            widths.insert(0, widths[0].div_ceil(params.branching));
        }
        let mut sum = 0.0;
        let overlap_sums = params
            .overlap
            .iter()
            .map(|share| {
                sum += share / total;
                sum
            })
            .collect();
        Ok(Self { params, widths, overlap_sums })
    }

    /// Number of levels.
    pub(crate) fn depth(&self) -> usize {
        self.widths.len()
    }

    /// Bytes of the arrays, about: what the model will take on disk, and in memory when all of it
    /// is used.
    pub(crate) fn estimate_bytes(&self) -> u64 {
        let mean: f64 = (1..)
            .zip(&self.overlap_sums)
            .map(|(i, _)| f64::from(i))
            .zip(&self.params.overlap)
            .map(|(i, s)| i * s)
            .sum::<f64>()
            / self.params.overlap.iter().sum::<f64>();
        let columns: f64 = self.widths.iter().map(|&w| f64::from(w)).sum();
        let weights = columns * f64::from(self.params.weights_per_column);
        let masks = f64::from(self.params.branching.div_ceil(32).max(1));
        let row = 8.0 + 4.0 * masks + 2.0;
        (weights / mean.max(1.0) * row + weights * self.params.precision.n_bytes() as f64 + columns * 6.0) as u64
    }

    fn stream(&self, name: u64, level: u64, at: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(mix(mix(mix(self.params.seed, name), level), at))
    }

    /// A feature of the background: rank by a power law (inverse of its continuous distribution
    /// function), and the rank is the id.
    fn background(&self, rng: &mut impl Rng) -> u32 {
        let (u, d): (f64, f64) = (rng.random(), f64::from(self.params.n_features));
        let rank = if (self.params.zipf - 1.0).abs() < 1e-9 {
            (u * (d + 1.0).ln()).exp() - 1.0
        } else {
            let e = 1.0 - self.params.zipf;
            ((u * ((d + 1.0).powf(e) - 1.0)) + 1.0).powf(1.0 / e) - 1.0
        };
        (rank as u32).min(self.params.n_features - 1)
    }

    /// A feature of the topic of node `node` of level `level`.
    fn topic(&self, level: usize, node: u32, rng: &mut impl Rng) -> u32 {
        // Words of a topic are more and less common, too.
        let u: f64 = rng.random();
        let word = (u * u * f64::from(self.params.topic_size)) as u64;
        let mut own = self.stream(2, level as u64, u64::from(node) << 20 | word);
        own.random_range(0..self.params.n_features)
    }

    /// A feature for the children of `parent` (a node of `level - 1`, or the root for level 0).
    fn feature(&self, level: usize, parent: u32, rng: &mut impl Rng) -> u32 {
        if rng.random::<f64>() >= self.params.topical {
            return self.background(rng);
        }
        // The topics of the children themselves, of the parent, and of all above.
        let up = rng.random_range(0..=level);
        if up == 0 {
            let first = parent * self.params.branching;
            let last = (first + self.params.branching).min(self.widths[level]);
            return self.topic(level, rng.random_range(first..last), rng);
        }
        let node = parent / self.params.branching.pow(up as u32 - 1);
        self.topic(level - up, node, rng)
    }

    /// Weights of the children of `parent` at `level`.
    pub(crate) fn chunk(&self, level: usize, parent: u32) -> ChunkRows {
        let mut rng = self.stream(1, level as u64, u64::from(parent));
        let first = parent * self.params.branching;
        let width = self.params.branching.min(self.widths[level] - first);
        let least = u64::from(width) * u64::from(self.params.weights_per_column);
        let mut features = Vec::new();
        let mut shared = Vec::new();
        let mut total = 0u64;
        while total < least {
            let u: f64 = rng.random();
            let n = (self.overlap_sums.partition_point(|&s| s < u) as u32 + 1).min(width);
            shared.push(n);
            total += u64::from(n);
            features.push(self.feature(level, parent, &mut rng));
        }
        features.sort_unstable();
        features.dedup();
        // Features that were drawn twice are replaced: a chunk keeps its number of rows.
        while features.len() < shared.len() && features.len() < self.params.n_features as usize {
            let more = rng.random_range(0..self.params.n_features);
            if let Err(at) = features.binary_search(&more) {
                features.insert(at, more);
            }
        }
        shared.truncate(features.len());
        let mut rows = ChunkRows { n_columns: width as usize, row_ptr: vec![0], features, ..ChunkRows::default() };
        // Children take turns in a shuffled order, so that each gets as many weights as the others.
        let mut order: Vec<u32> = (0..width).collect();
        let mut turn = width as usize;
        let mut taken = Vec::new();
        for &n in &shared {
            taken.clear();
            while taken.len() < n as usize {
                if turn == order.len() {
                    for i in (1..order.len()).rev() {
                        order.swap(i, rng.random_range(0..=i));
                    }
                    turn = 0;
                }
                let child = order[turn];
                turn += 1;
                if !taken.contains(&child) {
                    taken.push(child);
                }
            }
            taken.sort_unstable();
            rows.columns.extend_from_slice(&taken);
            rows.values.extend(taken.iter().map(|_| rng.random_range(-0.5f32..1.0)));
            rows.row_ptr.push(rows.columns.len() as u32);
        }
        rows.bias = (0..width).map(|_| rng.random_range(-1.0f32..0.0)).collect();
        rows
    }

    /// Query number `number`, made for a label of its own: features (ascending, unique) and values
    /// (length 1).
    pub(crate) fn query(&self, number: u64) -> (u32, Vec<u32>, Vec<f32>) {
        let mut rng = self.stream(3, 0, number);
        let label = rng.random_range(0..self.params.n_labels);
        let last = self.depth() - 1;
        let mut indices = Vec::new();
        while indices.len() < (self.params.query_nnz as usize).min(self.params.n_features as usize) {
            let feature = if rng.random::<f64>() < self.params.topical {
                let up = rng.random_range(0..=last);
                self.topic(last - up, label / self.params.branching.pow(up as u32), &mut rng)
            } else {
                self.background(&mut rng)
            };
            if let Err(at) = indices.binary_search(&feature) {
                indices.insert(at, feature);
            }
        }
        let mut values: Vec<f32> = indices.iter().map(|_| rng.random_range(0.2f32..1.0)).collect();
        let length = values.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        values.iter_mut().for_each(|v| *v /= length);
        (label, indices, values)
    }

    /// How often each feature stands in a chunk, estimated from a sample of the leaves' parents.
    fn slot_map(&self) -> SlotMap {
        let last = self.depth() - 1;
        let n_parents = self.widths[last].div_ceil(self.params.branching);
        let sample = n_parents.min(4096);
        let mut counts = vec![0u64; self.params.n_features as usize];
        for i in 0..sample {
            let parent = (u64::from(i) * u64::from(n_parents) / u64::from(sample)) as u32;
            for feature in self.chunk(last, parent).features {
                counts[feature as usize] += 1;
            }
        }
        SlotMap::new(&counts)
    }

    /// Writes the model. `progress(labels and clusters done, of all)` is called between groups of
    /// chunks and stops the work by returning false.
    ///
    /// *Cost*: one pass; memory of a few thousand chunks and one number a feature.
    pub(crate) fn write(
        &self,
        writer: &mut ContainerWriter,
        post: PostProcessor,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), UntrainedError> {
        writer.set_parameter("n_features", u64::from(self.params.n_features));
        writer.set_parameter("n_labels", u64::from(self.params.n_labels));
        writer.set_parameter("post_processor", post.to_string());
        writer.set_parameter("normalise_rows", false);
        writer.set_parameter("row_length", 1.0);
        writer.set_parameter("beam", 10u64);
        writer.set_parameter("depths", vec![self.depth() as u64]);
        let slot_map = self.slot_map();
        slot_map.write("tree0.slot_map", writer)?;
        let all: u64 = self.widths.iter().map(|&w| u64::from(w)).sum();
        let mut done = 0;
        for level in 0..self.depth() {
            let mut streams = LevelStreams::begin(&format!("tree0.level{level}"), self.params.precision, writer)?;
            let pack = |source| UntrainedError::Pack { level, source };
            let mut packer = Packer::new(&slot_map, self.params.precision).map_err(pack)?;
            let n_parents = if level == 0 { 1 } else { self.widths[level - 1] };
            let mut first = 0;
            while first < n_parents {
                let last = (first + GROUP).min(n_parents);
                let chunks: Vec<ChunkRows> =
                    (first..last).into_par_iter().map(|parent| self.chunk(level, parent)).collect();
                packer.extend(&chunks).map_err(pack)?;
                streams.extend(&packer.take())?;
                done += chunks.iter().map(|c| c.n_columns as u64).sum::<u64>();
                if !progress(done, all) {
                    return Err(UntrainedError::Cancelled);
                }
                first = last;
            }
            packer.close();
            streams.extend(&packer.take())?;
            streams.finish()?;
        }
        let mut labels = writer.stream("tree0.labels", DType::U32)?;
        let mut first = 0u32;
        while first < self.params.n_labels {
            let last = first.saturating_add(1 << 20).min(self.params.n_labels);
            labels.extend(&(first..last).collect::<Vec<u32>>())?;
            first = last;
        }
        labels.finish()?;
        Ok(())
    }
}
