//! Batches and weights that are made up, and the checks that many tests share.

use xc_buffer::FloatSlice;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_nn::sampler::{Candidates, LabelWeights, Queries, Sampler};
use xc_nn::{Step, Targets};
use xc_sparse::LabelRows;

/// Some instances with vectors and true labels, and labels with weights.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) instances: Vec<u32>,
    pub(crate) width: usize,
    pub(crate) vectors: Vec<f32>,
    pub(crate) ptr: Vec<u32>,
    pub(crate) labels: Vec<u32>,
    pub(crate) rows: Vec<f32>,
    pub(crate) biases: Vec<f32>,
}

impl Given {
    /// `n` instances of up to three labels each; values uniform in [-1, 1).
    pub(crate) fn new(n: usize, n_labels: usize, width: usize, seed: u64) -> Self {
        let mut random = Stream::new(seed);
        let mut fill = |len: usize| {
            let mut values = vec![0.0; len];
            random.fill_uniform(1.0, &mut values);
            values
        };
        let (vectors, rows, biases) = (fill(n * width), fill(n_labels * width), fill(n_labels));
        let drawn = |i: usize| (0..i % 4).map(|_| random.below(n_labels as u32)).collect::<Vec<_>>();
        let mut lists: Vec<Vec<u32>> = (0..n).map(drawn).collect();
        lists.iter_mut().for_each(|list| {
            list.sort_unstable();
            list.dedup();
        });
        let (ptr, labels) = flat(&lists);
        Self { instances: (0..n as u32).map(|i| 3 * i + 1).collect(), width, vectors, ptr, labels, rows, biases }
    }

    pub(crate) fn n_labels(&self) -> u32 {
        self.biases.len() as u32
    }

    pub(crate) fn queries(&self) -> Queries<'_> {
        let targets = Targets::new(&self.instances, &self.ptr, &self.labels);
        Queries { instances: &self.instances, vectors: DenseRows::new(&self.vectors, self.width), targets }
    }

    pub(crate) fn weights(&self) -> LabelWeights<'_> {
        LabelWeights::new(FloatSlice::F32(&self.rows), self.width, &self.biases)
    }

    pub(crate) fn sample(&self, sampler: &dyn Sampler, at: Step) -> Candidates {
        let mut out = Candidates::default();
        let result = sampler.sample(at, self.queries(), Some(self.weights()), 0..self.n_labels(), &mut out);
        result.unwrap_or_else(|e| panic!("{sampler:?}: {e}: {}", e.source));
        out
    }

    pub(crate) fn logit(&self, place: usize, label: u32) -> f64 {
        let (vectors, rows) = (DenseRows::new(&self.vectors, self.width), DenseRows::new(&self.rows, self.width));
        let products = vectors.row(place).iter().zip(rows.row(label as usize)).map(|(a, b)| f64::from(a * b));
        products.sum::<f64>() + f64::from(self.biases[label as usize])
    }

    /// The same instances in another order.
    pub(crate) fn reordered(&self, order: &[usize]) -> Self {
        let targets = self.queries().targets;
        let (ptr, labels) = flat(&order.iter().map(|&i| targets.row(i).to_vec()).collect::<Vec<_>>());
        let vectors = order.iter().flat_map(|&i| self.queries().vectors.row(i)).copied().collect();
        let instances = order.iter().map(|&i| self.instances[i]).collect();
        Self { instances, vectors, ptr, labels, ..self.clone() }
    }

    /// How many instances each label is true of.
    pub(crate) fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.biases.len()];
        self.labels.iter().for_each(|&label| counts[label as usize] += 1);
        counts
    }
}

fn flat(lists: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
    let n_labels = lists.iter().flatten().max().map_or(1, |&label| label as usize + 1);
    let rows = LabelRows::from_lists(lists.iter().cloned(), n_labels).unwrap();
    let mut ptr = vec![0];
    ptr.extend(lists.iter().scan(0, |end, list| {
        *end += list.len() as u32;
        Some(*end)
    }));
    (ptr, (0..lists.len()).flat_map(|i| rows.row(i)).copied().collect())
}

pub(crate) fn step(number: u64) -> Step {
    Step { number, epoch: number as u32, seed: 3 }
}

/// Chi-square of counts against chances stays within five standard deviations of its mean; chances
/// of 0 were never drawn.
pub(crate) fn assert_distributed(counts: &[u64], chances: &[f64], what: &str) {
    let n = counts.iter().sum::<u64>() as f64;
    assert!(
        counts.iter().zip(chances).all(|(&count, &q)| q > 0.0 || count == 0),
        "{what}: a label without a chance came"
    );
    // Where fewer than five are expected the statistic is no chi-square: such labels go together.
    let (mut sum, mut free, mut few) = (0.0f64, -1.0f64, (0.0f64, 0.0f64));
    for (&count, &q) in counts.iter().zip(chances) {
        let expected = n * q;
        if expected < 5.0 {
            few = (few.0 + count as f64, few.1 + expected);
        } else {
            (sum, free) = (sum + (count as f64 - expected).powi(2) / expected, free + 1.0);
        }
    }
    if few.1 > 0.0 {
        (sum, free) = (sum + (few.0 - few.1).powi(2) / few.1.max(1e-9), free + 1.0);
    }
    let most = free + 5.0 * f64::sqrt(2.0 * free.max(1.0));
    assert!(sum < most, "{what}: chi-square {sum} of {n} draws, expected below {most}");
}
