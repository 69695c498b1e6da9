//! What a block of instances has to say about a tile of outputs.

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

/// Gradients of a tile that are not 0, for one block: for each output the lanes, and their values one after the other.
#[derive(Debug, Default)]
pub(super) struct Active {
    lanes: Vec<u32>,
    /// Where the values of an output begin, if it has lanes.
    starts: Vec<usize>,
    values: Vec<f32>,
}

impl Active {
    /// No gradients for so many outputs.
    pub(super) fn begin(&mut self, n_outputs: usize) {
        self.lanes.clear();
        self.lanes.resize(n_outputs, 0);
        self.starts.resize(n_outputs, 0);
        self.values.clear();
    }

    /// Sets the gradients of the output at a place of the tile.
    pub(super) fn set(&mut self, at: usize, lanes: u32, gradient: &Sums) {
        self.lanes[at] = lanes;
        self.starts[at] = self.values.len();
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            self.values.push(gradient[lane / 16][lane % 16]);
            left &= left - 1;
        }
    }

    /// Lanes of the output at a place of the tile.
    #[inline(always)]
    pub(super) fn lanes(&self, at: usize) -> u32 {
        self.lanes[at]
    }

    /// Gradients of the output at a place of the tile, zeros included.
    #[inline(always)]
    pub(super) fn gradient(&self, at: usize) -> Sums {
        let mut out = Sums::default();
        let mut left = self.lanes[at];
        let mut from = self.starts[at];
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            out[lane / 16][lane % 16] = self.values[from];
            from += 1;
            left &= left - 1;
        }
        out
    }
}

/// Places of a tile whose output has a gradient in any block.
pub(super) fn touched(active: &[Active], n_outputs: usize) -> Vec<u32> {
    let mut any = vec![0u32; n_outputs];
    for block in active {
        any.iter_mut().zip(&block.lanes).for_each(|(any, lanes)| *any |= lanes);
    }
    (0..n_outputs as u32).filter(|&at| any[at as usize] != 0).collect()
}
