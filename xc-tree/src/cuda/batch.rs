//! One batch of queries: packed here, searched on the device, and its answers taken apart.

use super::memory::{TreeArgument, TreeMemory};
use crate::model::{ModelInfo, PostProcessor};
use crate::predict::{Ensemble, Means, Reached, Sought, scaled};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use xc_kernels::cudarc::driver::CudaStream;
use xc_kernels::{Device, Done, Error, Kernel, Pipeline, Plan, Shape, Staged, address, arguments};
use xc_sparse::CsrView;
use xc_sparse::rank::{RankedBatch, Scored, TopK, from_rank_key};

arguments! {
    /// `XcTreeSearch` of `tree.cuh`.
    pub(super) struct SearchArgument {
        beam: u32,
        top_k: u32,
        keys_room: u32,
        a_round: u32,
        longest: u32,
        post: u32,
        power: u32,
        all_leaves: u32,
        out_stride: u64,
    }

    /// `XcTreeQueries`.
    pub(super) struct QueriesArgument {
        row_ptr: u64,
        features: u64,
        values: u64,
        out: u64,
        n_out: u64,
    }
}

/// Warps of a block in a small batch, as many as a usual beam has chunks, and in a large one, where fewer answer more
/// queries a second (times: `bench/gpu/results`). A multiprocessor has registers for thirty warps.
const WARPS: [usize; 2] = [10, 5];
/// Queries of a small batch for each multiprocessor, at most: three turns of three blocks.
const FEW_A_PROCESSOR: usize = 9;
/// Warps of a block for long queries.
const WARPS_LONG: usize = 8;
/// Children that are ranked together, at most, and chunks: what is kept of them lets later ones be left out.
const NEW_KEYS: usize = 1024;
const CHUNKS_A_ROUND: usize = 16;
/// `XC_ROWS_BYTES`.
const ROWS_BYTES: usize = 1536;
/// Shared memory that a kernel has of its own, at most.
const STATIC_BYTES: usize = 64;
// The rows are `XC_SPARE` keys of spare room, too.
const _: () = assert!(ROWS_BYTES * WARPS[1] >= 8 * 512 && ROWS_BYTES * WARPS_LONG >= 8 * 512);
/// Bytes of `XcParent` and of `XcFeature`.
const PARENT_BYTES: usize = 12;
const FEATURE_BYTES: usize = 12;
/// Features of a query that stands in shared memory: with more, a processor holds fewer blocks.
const LONGEST_SHARED: usize = 1024;

/// Queries whose answers are taken apart by one task.
const ROWS_A_TASK: usize = 256;

/// What all batches of a call have in common.
pub(super) struct BatchShape {
    beam: usize,
    top_k: usize,
    post: PostProcessor,
    n_trees: usize,
    /// Answers that a tree gives for a query, at most.
    pub(super) stride: usize,
}

impl BatchShape {
    pub(super) fn new(info: &ModelInfo, trees: &[TreeMemory], sought: &Sought) -> Self {
        let most = |of: fn(&TreeMemory) -> usize| trees.iter().map(of).max().unwrap_or(0);
        let beam = sought.beam.min(most(|tree| tree.most_nodes));
        let is_one = trees.len() == 1;
        // The root is the one parent of a tree of one level, whatever the beam is.
        let reached = |tree: &TreeMemory| {
            let parents = if tree.argument.is_flat() { 1 } else { beam };
            tree.families.iter().take(parents).map(|&n| n as usize).sum()
        };
        let top_k = sought.top_k.min(most(|tree| tree.n_leaves));
        let stride = if is_one { top_k } else { trees.iter().map(reached).max().unwrap_or(0) };
        // The means of trees are of all leaves that they reach, and `top_k` counts afterwards.
        let top_k = if is_one { top_k } else { sought.top_k };
        Self { beam, top_k, post: info.post, n_trees: trees.len(), stride }
    }

    fn keeps_all(&self) -> bool {
        self.n_trees > 1
    }

    fn is_sigmoid(&self) -> bool {
        matches!(self.post, PostProcessor::Sigmoid | PostProcessor::LogSigmoid)
    }

    /// What is searched for in a tree by queries of at most `longest` features.
    fn search(&self, tree: &TreeMemory, longest: usize) -> SearchArgument {
        let (post, power) = match self.post {
            PostProcessor::Hinge { p } | PostProcessor::LogHinge { p } => (0, p.into()),
            PostProcessor::Sigmoid | PostProcessor::LogSigmoid => (1, 0),
            PostProcessor::Noop => (2, 0),
        };
        let kept = if self.keeps_all() { self.beam } else { self.beam.max(self.top_k) };
        let a_round = (NEW_KEYS / tree.widest).clamp(1, CHUNKS_A_ROUND);
        SearchArgument {
            beam: self.beam as u32,
            top_k: if self.keeps_all() { 0 } else { self.top_k as u32 },
            keys_room: (kept + a_round * tree.widest).next_power_of_two() as u32,
            a_round: a_round as u32,
            longest: longest as u32,
            post,
            power,
            all_leaves: self.keeps_all().into(),
            out_stride: self.stride as u64,
        }
    }
}

impl TreeArgument {
    /// Whether leaves are the root's children.
    fn is_flat(&self) -> bool {
        self.n_levels == 1
    }
}

/// The memory of a batch, and what is under way on it.
#[derive(Default)]
pub(super) struct Batch {
    row_ptr: Staged<u64>,
    features: Staged<u32>,
    values: Staged<f32>,
    answers: Staged<u64>,
    n_answers: Staged<u32>,
    /// The query at each place: the longest first, since they take the longest.
    order: Vec<u32>,
    /// Features at each place.
    lengths: Vec<usize>,
    under_way: Option<Done>,
}

impl Batch {
    /// Packs rows of `queries`, which starts with the row `rows.start`.
    pub(super) fn fill(
        &mut self,
        device: &Device,
        info: &ModelInfo,
        shape: &BatchShape,
        queries: CsrView<'_>,
        rows: Range<usize>,
    ) -> Result<(), Error> {
        let n = rows.len();
        // Features that the model does not have can only be at a row's end.
        let length = |place: u32| {
            let features = queries.row(rows.start + place as usize).indices();
            features.partition_point(|&feature| (feature as usize) < info.n_features)
        };
        let mut order: Vec<(usize, u32)> = (0..n as u32).map(|place| (length(place), place)).collect();
        order.sort_by_key(|&(length, _)| std::cmp::Reverse(length));
        self.order = order.iter().map(|&(_, place)| place).collect();
        self.lengths = order.iter().map(|&(length, _)| length).collect();
        let nnz: usize = self.lengths.iter().sum();
        self.reserve(device, shape, nnz)?;

        let mut end = 0;
        for (row_end, length) in self.row_ptr.host()?.iter_mut().zip(std::iter::once(&0).chain(&self.lengths)) {
            end += *length as u64;
            *row_end = end;
        }
        let (mut features, mut values) = (&mut self.features.host()?[..nnz], &mut self.values.host()?[..nnz]);
        let mut places = Vec::with_capacity(n);
        for (&row, &length) in self.order.iter().zip(&self.lengths) {
            let (of_features, of_values);
            (of_features, features) = features.split_at_mut(length);
            (of_values, values) = values.split_at_mut(length);
            places.push((rows.start + row as usize, of_features, of_values));
        }
        places.into_par_iter().for_each_init(Vec::new, |room, (row, features, values)| {
            let row = scaled(queries.row(row), info, room);
            if let Err(error) = row.check() {
                panic!("{error}");
            }
            features.copy_from_slice(&row.indices()[..features.len()]);
            values.copy_from_slice(&row.values()[..values.len()]);
        });
        Ok(())
    }

    fn reserve(&mut self, device: &Device, shape: &BatchShape, nnz: usize) -> Result<(), Error> {
        let n = self.order.len();
        let n_answers = n * shape.n_trees;
        let grows = |room: usize, n: usize| if room < n { n.next_power_of_two() } else { 0 };
        Plan::new()
            .of::<u64>("queries", grows(self.row_ptr.len(), n + 1))
            .of::<u32>("queries", grows(self.features.len(), nnz))
            .of::<f32>("queries", grows(self.values.len(), nnz))
            .of::<u64>("answers", grows(self.answers.len(), n_answers * shape.stride))
            .of::<u32>("answers", grows(self.n_answers.len(), n_answers))
            .fits_on(device)?;
        self.row_ptr.reserve(device, n + 1)?;
        self.features.reserve(device, nnz)?;
        self.values.reserve(device, nnz)?;
        self.answers.reserve(device, n_answers * shape.stride)?;
        self.n_answers.reserve(device, n_answers)
    }

    /// Starts the search of what was filled.
    pub(super) fn start(
        &mut self,
        device: &Device,
        pipeline: &Pipeline,
        trees: &[TreeMemory],
        shape: &BatchShape,
    ) -> Result<(), Error> {
        let (n, nnz) = (self.order.len(), self.lengths.iter().sum());
        let done = pipeline.start(
            self,
            |batch, stream| {
                batch.row_ptr.send(n + 1, stream)?;
                batch.features.send(nnz, stream)?;
                batch.values.send(nnz, stream)
            },
            |batch, stream| {
                trees
                    .iter()
                    .enumerate()
                    .try_for_each(|(number, tree)| batch.search(device, stream, number, tree, shape))
            },
            |batch, stream| {
                batch.answers.fetch(n * shape.n_trees * shape.stride, stream)?;
                batch.n_answers.fetch(n * shape.n_trees, stream)
            },
        )?;
        self.under_way = Some(done);
        Ok(())
    }

    /// Puts the search of tree `number` on `stream`: long queries by one kernel, the others by another.
    fn search(
        &mut self,
        device: &Device,
        stream: &Arc<CudaStream>,
        number: usize,
        tree: &TreeMemory,
        shape: &BatchShape,
    ) -> Result<(), Error> {
        let n = self.order.len();
        let n_long =
            if shape.is_sigmoid() { n } else { self.lengths.partition_point(|&length| length > LONGEST_SHARED) };
        let longest = self.lengths.get(n_long).copied().unwrap_or(0);
        let rows = |kernel: &Kernel, range: Range<usize>, n_warps: usize, longest: usize| {
            let search = shape.search(tree, longest);
            let place = number * n + range.start;
            let queries = QueriesArgument {
                row_ptr: address(self.row_ptr.on_card()) + 8 * range.start as u64,
                features: address(self.features.on_card()),
                values: address(self.values.on_card()),
                out: address(self.answers.on_card()) + 8 * (place * shape.stride) as u64,
                n_out: address(self.n_answers.on_card()) + 4 * place as u64,
            };
            let keys = 8 * search.keys_room as usize + PARENT_BYTES * shape.beam.max(1);
            let shared = |n_warps: usize| ROWS_BYTES * n_warps + keys + FEATURE_BYTES * longest;
            // Whether a search fits does not depend on how many queries there are.
            let fits = |n_warps: usize| shared(n_warps) + STATIC_BYTES <= device.limits().shared as usize;
            let n_warps = if fits(n_warps) { n_warps } else { WARPS[1] };
            let shared = shared(n_warps);
            launch(
                stream,
                kernel,
                &tree.argument,
                &search,
                &queries,
                Shape { grid: [range.len(), 1, 1], threads: 32 * n_warps as u32, shared },
            )
        };
        let mut rows = rows;
        rows(&tree.long, 0..n_long, WARPS_LONG, 0)?;
        rows(&tree.beam, n_long..n, warps(n - n_long, device.limits().processors as usize), longest)
    }

    /// Waits for what is under way and appends its answers.
    pub(super) fn finish(&mut self, shape: &BatchShape, out: &mut RankedBatch) -> Result<(), Error> {
        let Some(done) = self.under_way.take() else { return Ok(()) };
        done.wait()?;
        let n = self.order.len();
        let (answers, n_answers) = (&*self.answers.host()?, &*self.n_answers.host()?);
        let mut place_of = vec![0u32; n];
        self.order.iter().zip(0..).for_each(|(&row, place)| place_of[row as usize] = place);
        let ensemble = Ensemble { post: shape.post, n_trees: shape.n_trees };
        let of_tree = |tree: usize, place: u32| {
            let at = tree * n + place as usize;
            &answers[at * shape.stride..][..n_answers[at] as usize]
        };
        let tasks = place_of.par_chunks(ROWS_A_TASK).map_init(<(Reached, Means, TopK)>::default, |room, places| {
            let (reached, means, select) = room;
            let mut of_task = RankedBatch::new();
            for &place in places {
                if !shape.keeps_all() {
                    let finished = of_tree(0, place).iter().map(|&key| {
                        let Scored { label, score } = from_rank_key(key);
                        Scored { label, score: shape.post.finish(score) }
                    });
                    of_task.push_items(finished);
                    continue;
                }
                reached.clear();
                for tree in 0..shape.n_trees {
                    let items = of_tree(tree, place).iter().map(|&key| from_rank_key(key));
                    reached.extend_scored(items.map(|Scored { label, score }| (label, score)));
                    reached.end_tree();
                }
                ensemble.best_means(reached, shape.top_k, means, select);
                of_task.push_items(select.sorted().iter().copied());
            }
            of_task
        });
        tasks.collect::<Vec<_>>().iter().for_each(|task| out.append(task));
        Ok(())
    }

    /// Waits for what is under way, and forgets it.
    pub(super) fn abandon(&mut self) -> Result<(), Error> {
        self.under_way.take().map_or(Ok(()), |done| done.wait())
    }
}

/// Warps of a block for `n` queries at once.
fn warps(n: usize, processors: usize) -> usize {
    WARPS[usize::from(n > FEW_A_PROCESSOR * processors)]
}

#[allow(unsafe_code, reason = "kernels are launched by address")]
fn launch(
    stream: &Arc<CudaStream>,
    kernel: &Kernel,
    tree: &TreeArgument,
    search: &SearchArgument,
    queries: &QueriesArgument,
    shape: Shape,
) -> Result<(), Error> {
    let call = kernel.call(stream).arg(tree).arg(search).arg(queries);
    // SAFETY: types and order are those of the text (a test compares their layouts); the addresses are of memory that a
    // `TreeMemory` and a `Batch` keep until the batch is done, as long as the shapes in `search` and the grid say.
    unsafe { call.launch(shape) }
}
