//! Sparse evolutionary training: the weakest connections are replaced by new ones (SET; section 2 of
//! schultheis2023uniform).
//!
//! In the uniform form a label's connections are replaced within the label, whose fan-in stays the same;
//! in the unstructured form the new ones may go to any label.

use super::matrix::{Connections, FanIn, IndexWidth, InputIds};
use crate::with_indices;
use rayon::prelude::*;
use xc_buffer::FloatBuffer;

/// How the connections have changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewired {
    /// Positions that hold new connections, ascending; all others are unchanged.
    InPlace(Vec<u32>),
    /// The previous position of each connection; `u32::MAX` for a new one.
    Moved(Vec<u32>),
}

/// Labels of a task.
const BLOCK: usize = 4096;

impl Connections {
    /// Replaces the `fraction` of all connections whose weights are smallest in magnitude (among equal
    /// ones the earlier) by new ones of weight 0, whose inputs are drawn uniformly from those that the
    /// label is not connected with. Connections for which a label has no free input are kept.
    ///
    /// `random(label)` gives the random numbers of a label, the same for any number of threads; with
    /// `FanIn::Varying` that of label `n_labels()` decides which labels get the new connections.
    ///
    /// *Cost*: four passes over the weights.
    ///
    /// # Panics
    /// If `fraction` is not in [0, 1], or there are 2^32 - 1 connections or more.
    pub fn rewire<R: FnMut() -> u64>(&mut self, fraction: f64, random: impl Fn(usize) -> R + Sync) -> Rewired {
        assert!((0.0..=1.0).contains(&fraction), "fraction {fraction}, expected 0 to 1");
        assert!(self.len() < u32::MAX as usize, "{} connections", self.len());
        let lost = self.weakest((self.len() as f64 * fraction) as usize);
        match self.fan_in() {
            FanIn::Uniform(_) => Rewired::InPlace(self.replace_in_place(&lost, random)),
            FanIn::Varying(_) => Rewired::Moved(self.replace_anywhere(&lost, random)),
        }
    }

    /// Places of the `n` smallest weights, ascending.
    fn weakest(&self, n: usize) -> Vec<u32> {
        if n == 0 {
            return Vec::new();
        }
        let size = |at: usize| self.weights().get(at).abs().to_bits();
        // Bits of magnitudes order as they do: the upper half of the n-th smallest first, then its
        // lower half.
        let count = |key: &(dyn Fn(u32) -> Option<u16> + Sync)| -> Vec<u64> {
            let blocks = (0..self.len()).into_par_iter().step_by(1 << 16).map(|first| {
                let mut counts = vec![0u32; 1 << 16];
                for at in first..self.len().min(first + (1 << 16)) {
                    if let Some(key) = key(size(at)) {
                        counts[usize::from(key)] += 1;
                    }
                }
                counts
            });
            blocks
                .fold(
                    || vec![0u64; 1 << 16],
                    |mut sums, counts| {
                        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += u64::from(n));
                        sums
                    },
                )
                .reduce(
                    || vec![0u64; 1 << 16],
                    |mut a, b| {
                        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                        a
                    },
                )
        };
        // The key that holds number `n` (from 1), and how many of it are among the first `n`.
        let find = |counts: &[u64], mut n: u64| {
            for (key, &count) in counts.iter().enumerate() {
                if n <= count {
                    return (key as u32, n);
                }
                n -= count;
            }
            unreachable!("fewer than n");
        };
        let (upper, left) = find(&count(&|bits| Some((bits >> 16) as u16)), n as u64);
        let (lower, mut equal) = find(&count(&|bits| (bits >> 16 == upper).then_some(bits as u16)), left);
        let bound = upper << 16 | lower;
        let mut out = Vec::with_capacity(n);
        for at in 0..self.len() {
            let bits = size(at);
            if bits < bound {
                out.push(at as u32);
            } else if bits == bound && equal > 0 {
                equal -= 1;
                out.push(at as u32);
            }
        }
        out
    }

    fn replace_in_place<R: FnMut() -> u64>(&mut self, lost: &[u32], random: impl Fn(usize) -> R + Sync) -> Vec<u32> {
        let (n_inputs, n_labels) = (self.n_inputs(), self.n_labels());
        let FanIn::Uniform(fan_in) = *self.fan_in() else { return Vec::new() };
        let free = n_inputs - fan_in;
        let (_, indices, weights) = self.parts_mut();
        // Lists of what each block of labels replaced; a label's new inputs depend on nothing else.
        let replaced: Vec<Vec<u32>> = with_indices!(indices, values => {
            let blocks = values.to_mut().par_chunks_mut(BLOCK * fan_in).enumerate();
            blocks.map(|(block, values)| {
                let first = block * BLOCK;
                let last = (first + BLOCK).min(n_labels);
                let begin = lost.partition_point(|&at| (at as usize) < first * fan_in);
                let end = lost.partition_point(|&at| (at as usize) < last * fan_in);
                let mut done = Vec::new();
                for of_label in lost[begin..end].chunk_by(|&a, &b| a as usize / fan_in == b as usize / fan_in) {
                    let label = of_label[0] as usize / fan_in;
                    let row = &mut values[(label - first) * fan_in..][..fan_in];
                    let mut random = random(label);
                    let n = of_label.len().min(free);
                    let fresh = distinct(n, n_inputs, row.iter().map(|i| i.at()), &mut random);
                    for (&at, input) in of_label.iter().zip(fresh) {
                        row[at as usize % fan_in] = IndexWidth::of(input);
                        done.push(at);
                    }
                }
                done
            }).collect()
        });
        let replaced = replaced.concat();
        let mut weights = weights.to_mut();
        replaced.iter().for_each(|&at| weights.clear(at as usize));
        replaced
    }

    fn replace_anywhere<R: FnMut() -> u64>(&mut self, lost: &[u32], random: impl Fn(usize) -> R + Sync) -> Vec<u32> {
        let (n_inputs, n_labels) = (self.n_inputs(), self.n_labels());
        let mut is_lost = vec![false; self.len()];
        lost.iter().for_each(|&at| is_lost[at as usize] = true);
        // How many new ones each label gets: evenly drawn labels, in so far as they have room.
        let mut more = vec![0u32; n_labels];
        let room = |label: usize, more: u32| self.range(label).len() + (more as usize) < n_inputs;
        let mut choose = random(n_labels);
        let mut left = lost.len();
        while left > 0 {
            let label = below(&mut choose, n_labels);
            // Old connections leave later: a label never gets one of its own back.
            if room(label, more[label]) {
                more[label] += 1;
                left -= 1;
            } else if (0..n_labels).all(|label| !room(label, more[label])) {
                break;
            }
        }
        let (mut starts, mut inputs, mut source) = (vec![0u64], Vec::with_capacity(self.len()), Vec::new());
        // What could not be placed stays.
        let mut stay = left;
        for label in 0..n_labels {
            let range = self.range(label);
            for at in range.clone() {
                let stays = !is_lost[at] || stay > 0;
                if is_lost[at] && stay > 0 {
                    stay -= 1;
                }
                if stays {
                    inputs.push(self.indices().get(at));
                    source.push(at as u32);
                }
            }
            let mut random = random(label);
            for input in distinct(more[label] as usize, n_inputs, range.map(|at| self.indices().get(at)), &mut random) {
                inputs.push(input);
                source.push(u32::MAX);
            }
            starts.push(inputs.len() as u64);
        }
        let of = self.weights().dtype();
        let old = self.weights();
        let weights = source.iter().map(|&at| if at == u32::MAX { 0.0 } else { old.get(at as usize) });
        let weights = FloatBuffer::nearest(of, weights);
        let indices = InputIds::new(n_inputs, inputs.into_iter());
        self.replace(FanIn::Varying(starts.into()), indices, weights);
        source
    }
}

/// A number below `n`; the bias is below n / 2^64.
fn below(random: &mut impl FnMut() -> u64, n: usize) -> usize {
    ((u128::from(random()) * n as u128) >> 64) as usize
}

/// `n` distinct numbers below `bound` that are not among `taken` (distinct too), in the order in
/// which they are drawn.
///
/// # Panics
/// If there are fewer.
pub fn distinct(
    n: usize,
    bound: usize,
    taken: impl ExactSizeIterator<Item = usize>,
    random: &mut impl FnMut() -> u64,
) -> Vec<usize> {
    let free = bound - taken.len();
    assert!(n <= free, "{n} numbers to draw, {free} are free");
    let mut all: Vec<usize> = taken.collect();
    all.sort_unstable();
    let mut out = Vec::with_capacity(n);
    for i in 0..n {
        // The r-th of those still free.
        let mut number = below(random, free - i);
        for &other in &all {
            if other > number {
                break;
            }
            number += 1;
        }
        all.insert(all.partition_point(|&other| other < number), number);
        out.push(number);
    }
    out
}
