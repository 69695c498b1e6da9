//! What a block of instances has to say about some outputs.

use crate::Targets;
use xc_sparse::uniform::{LANES, Sums};

/// True outputs of a block: ascending, each with the lanes where it is true.
#[derive(Debug, Default)]
pub(super) struct Positives {
    outputs: Vec<u32>,
    lanes: Vec<u32>,
    pairs: Vec<(u32, u8)>,
}

impl Positives {
    pub(super) fn fill(&mut self, targets: Targets<'_>, block: usize) {
        self.outputs.clear();
        self.lanes.clear();
        self.pairs.clear();
        for (lane, i) in (block * LANES..targets.len().min((block + 1) * LANES)).enumerate() {
            self.pairs.extend(targets.row(i).iter().map(|&output| (output, lane as u8)));
        }
        self.pairs.sort_unstable();
        for of_one in self.pairs.chunk_by(|a, b| a.0 == b.0) {
            self.outputs.push(of_one[0].0);
            self.lanes.push(of_one.iter().fold(0, |mask, &(_, lane)| mask | 1 << lane));
        }
    }

    /// A place from which outputs from `first` on can be asked for in ascending order.
    pub(super) fn from(&self, first: usize) -> Cursor<'_> {
        let at = self.outputs.partition_point(|&output| (output as usize) < first);
        Cursor { outputs: &self.outputs[at..], lanes: &self.lanes[at..] }
    }
}

pub(super) struct Cursor<'a> {
    outputs: &'a [u32],
    lanes: &'a [u32],
}

impl Cursor<'_> {
    /// The first true output that was not passed: where outputs before it are asked for, nothing is
    /// true.
    #[inline(always)]
    pub(super) fn next(&self) -> usize {
        self.outputs.first().map_or(usize::MAX, |&output| output as usize)
    }

    /// Lanes where `output` is true; outputs must ascend from call to call.
    #[inline(always)]
    pub(super) fn lanes(&mut self, output: usize) -> u32 {
        while let Some(&first) = self.outputs.first()
            && (first as usize) < output
        {
            (self.outputs, self.lanes) = (&self.outputs[1..], &self.lanes[1..]);
        }
        if self.outputs.first().is_some_and(|&first| first as usize == output) { self.lanes[0] } else { 0 }
    }
}

/// Up to so many instances of a block with a gradient for an output are taken one by one.
const FEW: u32 = 8;

/// An output that has a gradient for instances of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) output: u32,
    /// The instances.
    pub(super) lanes: u32,
    /// Where their gradients begin.
    values: usize,
    /// Where the gradients of the output's weights begin, if instances are taken one by one.
    weights: usize,
}

impl Entry {
    /// Whether its instances are taken one by one: what is read and written at random is then one
    /// instance's inputs and their gradient, which stay in the second-level cache from output to
    /// output. Otherwise all instances of the block are taken at once.
    #[inline(always)]
    pub(super) fn is_few(&self) -> bool {
        self.lanes.count_ones() <= FEW
    }

    /// Where its sums of weights begin.
    #[inline(always)]
    pub(super) fn first_weight(&self) -> usize {
        self.weights
    }
}

/// Gradients of a block that are not 0: outputs ascending.
#[derive(Debug, Default)]
pub(super) struct Active {
    entries: Vec<Entry>,
    values: Vec<f32>,
    of_weights: Vec<f32>,
    /// Whether any entry of the step had many instances.
    has_many: bool,
    /// Entries with few instances and their gradients, by lane; they are made for
    /// [`Active::take_few`] alone.
    by_lane: Vec<Vec<(u32, f32)>>,
}

impl Active {
    /// For a new step.
    pub(super) fn begin(&mut self) {
        self.clear();
        self.has_many = false;
    }

    /// Whether any entry of the step had many instances, those that are gone included.
    pub(super) fn has_many(&self) -> bool {
        self.has_many
    }

    /// Says that there is an entry with many instances; true the first time in a step.
    pub(super) fn note_many(&mut self) -> bool {
        !std::mem::replace(&mut self.has_many, true)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.values.clear();
        self.of_weights.clear();
    }

    /// Adds an output, larger than all before, with gradients for some lanes.
    pub(super) fn push(&mut self, output: usize, lanes: u32, gradient: &Sums) {
        let entry = Entry { output: output as u32, lanes, values: self.values.len(), weights: 0 };
        self.entries.push(entry);
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            self.values.push(gradient[lane / 16][lane % 16]);
            left &= left - 1;
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Gradients of an entry, zeros included.
    #[inline(always)]
    pub(super) fn gradient(&self, entry: &Entry) -> Sums {
        let mut out = Sums::default();
        let (mut left, mut from) = (entry.lanes, entry.values);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            out[lane / 16][lane % 16] = self.values[from];
            from += 1;
            left &= left - 1;
        }
        out
    }

    /// Gradient of the weights of an entry with few instances, once they were taken.
    #[inline(always)]
    pub(super) fn of_weights(&self, entry: &Entry, n_weights: usize) -> &[f32] {
        &self.of_weights[entry.weights..][..n_weights]
    }

    /// Works out the gradients of entries with few instances, instance after instance. `n_weights`
    /// gives the connections of an output; `of_lane` gets a lane, its entries with their gradients,
    /// ascending, all entries, and the sums of the weights, where an entry's begin at
    /// [`Entry::first_weight`].
    pub(super) fn take_few(
        &mut self,
        n_weights: impl Fn(usize) -> usize,
        mut of_lane: impl FnMut(usize, &[(u32, f32)], &[Entry], &mut [f32]),
    ) {
        self.by_lane.resize_with(LANES, Vec::new);
        self.by_lane.iter_mut().for_each(Vec::clear);
        let mut n = 0;
        for (at, entry) in self.entries.iter_mut().enumerate().filter(|(_, entry)| entry.is_few()) {
            entry.weights = n;
            n += n_weights(entry.output as usize);
            let (mut left, mut from) = (entry.lanes, entry.values);
            while left != 0 {
                self.by_lane[left.trailing_zeros() as usize].push((at as u32, self.values[from]));
                from += 1;
                left &= left - 1;
            }
        }
        self.of_weights.clear();
        self.of_weights.resize(n, 0.0);
        for (lane, list) in self.by_lane.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            of_lane(lane, list, &self.entries, &mut self.of_weights);
        }
    }
}

/// Outputs with a gradient in any block, ascending, each with its entries.
#[derive(Debug)]
pub(super) struct Touched {
    /// Output, block, number of the entry in its block.
    entries: Vec<(u32, u32, u32)>,
    starts: Vec<u32>,
}

impl Touched {
    pub(super) fn new(active: &[Active]) -> Self {
        let mut entries: Vec<(u32, u32, u32)> = Vec::with_capacity(active.iter().map(|a| a.entries.len()).sum());
        for (block, active) in (0..).zip(active) {
            entries.extend(active.entries.iter().zip(0..).map(|(entry, at)| (entry.output, block, at)));
        }
        // Blocks are sorted: the sort merges runs.
        entries.sort();
        let begins = |at: usize| at == 0 || entries[at - 1].0 != entries[at].0;
        let mut starts: Vec<u32> = (0..entries.len()).filter(|&at| begins(at)).map(|at| at as u32).collect();
        starts.push(entries.len() as u32);
        Self { entries, starts }
    }

    /// Number of outputs.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The output at a place.
    pub(super) fn output(&self, at: usize) -> usize {
        self.entries[self.starts[at] as usize].0 as usize
    }

    /// Its entries with their blocks, ascending.
    pub(super) fn of<'a>(
        &'a self,
        at: usize,
        active: &'a [Active],
    ) -> impl Iterator<Item = (usize, &'a Entry)> + Clone {
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        self.entries[range].iter().map(|&(_, block, at)| (block as usize, &active[block as usize].entries[at as usize]))
    }
}
