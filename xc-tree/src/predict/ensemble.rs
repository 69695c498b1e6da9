//! The answer of several trees: the mean of what each says.
//!
//! A label's score is the mean of its scores in all trees, 0 for a tree whose beam does not reach it.
//! It does not depend on how many labels are asked for: every tree scores all leaves that its beam
//! reaches, and those labels are ranked by their means that can be among the best.
//!
//! ```text
//!   each tree   beam ─▶ leaves ─▶ (label, score) of each
//!   all trees   labels that one tree scores high enough ─▶ sums by label ─▶ means ─▶ the best k
//! ```

use super::scores::{Reached, offer_leaves};
use crate::model::{PostProcessor, TreeModel};
use xc_buffer::{Loop, vectorised_loop};
use xc_sparse::rank::{Scored, TopK};

impl TreeModel {
    /// A ranking score on the post-processor's own scale.
    pub(crate) fn finished(&self, item: Scored) -> Scored {
        Scored { label: item.label, score: self.info.post.finish(item.score) }
    }

    /// How the scores of the trees are combined.
    pub(crate) fn ensemble(&self) -> Ensemble {
        Ensemble { post: self.info.post, n_trees: self.trees.len() }
    }
}

/// How the scores of several trees are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ensemble {
    pub(crate) post: PostProcessor,
    pub(crate) n_trees: usize,
}

impl Ensemble {
    /// Selects the labels of the best means of what the trees reached.
    ///
    /// Scores of a label are added in the order of the trees, so that every search rounds them alike.
    pub(crate) fn best_means(&self, reached: &Reached, top_k: usize, means: &mut Means, select: &mut TopK) {
        let n_trees = self.n_trees as f32;
        let least = self.least(reached, top_k, n_trees, select);
        vectorised_loop(Chosen { means, reached, least });
        self.post.finish_all(&mut means.scores);
        means.add();
        select.reset(top_k);
        for &Scored { label, score } in &means.sums {
            select.push(Scored { label, score: score / n_trees });
        }
    }

    /// The ranking score that a label of one of the best means has in some tree, at least.
    fn least(&self, reached: &Reached, top_k: usize, n_trees: f32, select: &mut TopK) -> f32 {
        // Where no score is below 0, the best labels of one tree alone have means of at least the last one's score
        // over the number of trees; and no mean is above the label's best score.
        if !self.post.is_exponential() {
            return f32::NEG_INFINITY;
        }
        select.reset(top_k);
        let (labels, scores) = reached.of_first();
        offer_leaves(labels, scores, select);
        match select.kth() {
            Some(kth) if kth.score - n_trees.ln() > LEAST => kth.score - n_trees.ln() - ROUNDED,
            _ => f32::NEG_INFINITY,
        }
    }
}

/// Above this ranking scores differ where their exponentials do: below they come close to the least number.
const LEAST: f32 = -80.0;

/// More than exponentials, sums and quotients are rounded by, on the ranking scale.
const ROUNDED: f32 = 1e-3;

/// Sums of the scores of labels that can be among the best.
#[derive(Clone, Debug, Default)]
pub(crate) struct Means {
    // Bits of the hashes of labels that a tree scores high enough: most other labels are told by them.
    sieve: Sieve,
    // What all trees say of labels that pass the sieve.
    labels: Vec<u32>,
    scores: Vec<f32>,
    // By the hash of a label: the place of its sum, or NONE.
    places: Vec<u32>,
    sums: Vec<Scored>,
}

const NONE: u32 = u32::MAX;

/// Multiplied by 2^32 over the golden ratio: labels that lie together go to places far apart.
#[inline(always)]
fn hash(label: u32) -> u32 {
    label.wrapping_mul(0x9E37_79B9) >> 8
}

/// A set of labels, and others that share their bits.
#[derive(Clone, Copy, Debug)]
struct Sieve([u32; 512]);

impl Default for Sieve {
    fn default() -> Self {
        Self([0; 512])
    }
}

impl Sieve {
    #[inline(always)]
    fn add(&mut self, label: u32) {
        self.0[hash(label) as usize / 32 % 512] |= 1 << (hash(label) % 32);
    }

    #[inline(always)]
    fn has(&self, label: u32) -> bool {
        self.0[hash(label) as usize / 32 % 512] >> (hash(label) % 32) & 1 == 1
    }
}

/// Leaves that are looked at together.
const TOGETHER: usize = 16;

/// Calls `then` with the place of each value for which `is` holds. Those of a vector are found first, without branches.
#[inline(always)]
fn each<T: Copy>(values: &[T], is: impl Fn(T) -> bool, mut then: impl FnMut(usize)) {
    let (whole, rest) = values.as_chunks::<TOGETHER>();
    for (from, values) in (0..).step_by(TOGETHER).zip(whole) {
        let mut bits = [0u32; TOGETHER];
        for (at, (bit, &value)) in bits.iter_mut().zip(values).enumerate() {
            *bit = u32::from(is(value)) << at;
        }
        let mut found = bits.iter().fold(0, |found, bit| found | bit);
        while found != 0 {
            then(from + found.trailing_zeros() as usize);
            found &= found - 1;
        }
    }
    for (at, &value) in (TOGETHER * whole.len()..).zip(rest) {
        if is(value) {
            then(at);
        }
    }
}

/// A choice of labels.
struct Chosen<'a> {
    means: &'a mut Means,
    reached: &'a Reached,
    least: f32,
}

impl Loop for Chosen<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.means.choose(self.reached, self.least);
    }
}

impl Means {
    /// Copies what all trees say of the labels that one of them scores with `least` or more, and of a few others.
    #[inline(always)]
    fn choose(&mut self, reached: &Reached, least: f32) {
        let Self { sieve, labels, scores, .. } = self;
        let (all, all_scores) = (&reached.labels[..], &reached.scores[..]);
        *sieve = Sieve::default();
        each(all_scores, |score| score >= least, |at| sieve.add(all[at]));
        labels.clear();
        scores.clear();
        each(
            all,
            |label| sieve.has(label),
            |at| {
                labels.push(all[at]);
                scores.push(all_scores[at]);
            },
        );
    }

    /// Adds up the scores of each label, in their order.
    fn add(&mut self) {
        let Self { labels, scores, places, sums, .. } = self;
        places.clear();
        places.resize((2 * labels.len()).next_power_of_two(), NONE);
        sums.clear();
        let mask = places.len() - 1;
        'items: for (&label, &score) in labels.iter().zip(&*scores) {
            for at in hash(label) as usize.. {
                let place = &mut places[at & mask];
                match sums.get_mut(*place as usize) {
                    Some(sum) if sum.label == label => {
                        sum.score += score;
                        continue 'items;
                    }
                    Some(_) => {}
                    None => {
                        *place = sums.len() as u32;
                        // Without a sign where it is 0.
                        sums.push(Scored { label, score: 0.0 + score });
                        continue 'items;
                    }
                }
            }
        }
    }
}
