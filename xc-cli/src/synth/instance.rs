//! Instances from their number.

use super::hash::{Stream, key};
use super::names::{capitalise, push_proper_name, push_word};
use super::shape::Shape;
use xc_hash::stream::{Order, unit};

// Streams by name.
const INSTANCE: u64 = 1;
const THEME: u64 = 2;
const POPULARITY: u64 = 3;
const TURNS: u64 = 4;
const LABEL_IDS: u64 = 5;
const FEATURE_IDS: u64 = 6;

/// Words that a node of the hidden tree owns: inner nodes and leaves.
const INNER_WORDS: u64 = 60;
const LEAF_WORDS: u64 = 14;
/// Exponent of the word frequencies of the background.
const BACKGROUND_EXPONENT: f64 = 1.05;
/// Share of the further labels that stand near the first in the hidden tree.
const NEAR: f64 = 0.6;
/// Spread of the length of instances (of its logarithm).
const LENGTH_SPREAD: f64 = 0.3;

/// Makes instances of one data set.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    shape: Shape,
    seed: u64,
    depth: u32,
    popularity: Order,
    turns: Order,
    label_ids: Order,
    feature_ids: Order,
    /// Summed shares of the tree's levels among the words, root first; what is left is background.
    level_shares: Vec<f64>,
}

/// One instance. The vectors are reused from one instance to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instance {
    /// Label ids, ascending and unique.
    pub(crate) labels: Vec<u32>,
    /// Frequency ranks of its words, in the order of the text.
    pub(crate) words: Vec<u64>,
    /// (feature id, count), ascending by id.
    pub(crate) counts: Vec<(u32, u32)>,
    leaves: Vec<u64>,
    breaks: Vec<u8>,
}

impl Generator {
    /// # Panics
    /// If a size of the shape is zero or does not fit 32 bits (the command checks).
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let fits = |n: u64| n > 0 && n <= u64::from(u32::MAX);
        assert!(fits(shape.features) && fits(shape.labels) && shape.arity >= 2, "impossible shape {shape:?}");
        let mut depth = 1;
        let mut width = shape.arity;
        while width < shape.labels {
            width = width.saturating_mul(shape.arity);
            depth += 1;
        }
        let weight = |level: u32| match level {
            0 => 0.3,
            l if l == depth => 2.6,
            _ => 1.0,
        };
        let total: f64 = (0..=depth).map(weight).sum();
        let mut sum = 0.0;
        let level_shares = (0..=depth)
            .map(|level| {
                sum += weight(level) / total * (1.0 - shape.background);
                sum
            })
            .collect();
        Self {
            shape,
            seed,
            depth,
            popularity: Order::new(shape.labels, key(seed, POPULARITY, 0)),
            turns: Order::new(shape.labels, key(seed, TURNS, 0)),
            label_ids: Order::new(shape.labels, key(seed, LABEL_IDS, 0)),
            feature_ids: Order::new(shape.features, key(seed, FEATURE_IDS, 0)),
            level_shares,
        }
    }

    /// Makes instance `number`; training instances come first, test instances after them.
    pub(crate) fn instance(&self, number: u64, out: &mut Instance) {
        let mut stream = Stream::new(key(self.seed, INSTANCE, number));
        self.draw_leaves(number, &mut stream, &mut out.leaves);
        out.labels.clear();
        out.labels.extend(out.leaves.iter().map(|&leaf| self.label_ids.at(leaf) as u32));
        out.labels.sort_unstable();
        out.labels.dedup();
        self.draw_words(&mut stream, out);
        out.counts.clear();
        out.counts.extend(out.words.iter().map(|&rank| (self.feature_ids.at(rank) as u32, 1)));
        out.counts.sort_unstable();
        out.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        out.breaks.clear();
        out.breaks.extend((0..out.words.len()).map(|_| stream.below(256) as u8));
    }

    /// The hidden leaves of an instance's labels; the first is its main subject.
    fn draw_leaves(&self, number: u64, stream: &mut Stream, leaves: &mut Vec<u64>) {
        let Shape { labels, arity, coverage, zipf, .. } = self.shape;
        leaves.clear();
        let popular = |stream: &mut Stream| self.popularity.at(stream.power_law(labels, zipf));
        let by_turn = stream.unit() < coverage;
        let first = if by_turn { self.turns.at(number % labels) } else { popular(stream) };
        leaves.push(first);
        for _ in 0..stream.poisson(self.shape.labels_per_instance - 1.0) {
            let leaf = if stream.unit() < NEAR {
                let span = if stream.unit() < 0.7 { arity } else { arity * arity };
                (first / span * span + stream.below(span)).min(labels - 1)
            } else {
                popular(stream)
            };
            leaves.push(leaf);
        }
    }

    fn draw_words(&self, stream: &mut Stream, out: &mut Instance) {
        let length = (LENGTH_SPREAD * stream.normal() - LENGTH_SPREAD * LENGTH_SPREAD / 2.0).exp();
        let count = ((self.shape.words * length).round() as u64).max(3);
        out.words.clear();
        for _ in 0..count {
            let level = stream.unit();
            let word = match self.level_shares.iter().position(|&share| level < share) {
                Some(level) => {
                    let leaf = out.leaves[stream.below(out.leaves.len() as u64) as usize];
                    let chosen = stream.unit();
                    self.theme_word(level as u32, leaf, chosen * chosen)
                }
                None => stream.power_law(self.shape.features, BACKGROUND_EXPONENT),
            };
            out.words.push(word);
        }
    }

    /// A word of the node above (or at) `leaf` on `level`; `position` in [0, 1) picks among the
    /// node's words.
    fn theme_word(&self, level: u32, leaf: u64, position: f64) -> u64 {
        let node = leaf / self.shape.arity.pow(self.depth - level);
        let owned = if level == self.depth { LEAF_WORDS } else { INNER_WORDS };
        let index = (position * owned as f64) as u64;
        // Upper nodes own common words, leaves rarer ones.
        let deep = f64::from(level) / f64::from(self.depth);
        let (low, high) = (0.02 + 0.10 * deep, 0.25 + 0.75 * deep);
        let u = low + (high - low) * unit(key(key(self.seed, THEME, u64::from(level)), node, index));
        ((u * u * self.shape.features as f64) as u64).min(self.shape.features - 1)
    }

    /// The name of label `label`: a word of each of its two closest ancestors, then a name of its
    /// own.
    pub(crate) fn push_label_name(&self, label: u32, out: &mut String) {
        let leaf = self.label_ids.position_of(u64::from(label));
        for level in self.depth.saturating_sub(2)..self.depth {
            push_word(self.theme_word(level, leaf, 0.0), out);
            out.push(' ');
        }
        push_proper_name(u64::from(label), out);
    }

    /// The words of an instance as sentences.
    pub(crate) fn push_text(&self, instance: &Instance, out: &mut String) {
        let mut since_stop = 0;
        for (i, (&rank, &chance)) in instance.words.iter().zip(&instance.breaks).enumerate() {
            let start = out.len();
            push_word(rank, out);
            if since_stop == 0 {
                capitalise(out, start);
            }
            since_stop += 1;
            if i + 1 == instance.words.len() {
                out.push('.');
            } else if since_stop >= 6 && chance < 32 {
                out.push_str(". ");
                since_stop = 0;
            } else if since_stop >= 3 && chance >= 232 {
                out.push_str(", ");
            } else {
                out.push(' ');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::PRESETS;

    fn demo() -> Generator {
        Generator::new(PRESETS[0].1, 0)
    }

    #[test]
    fn an_instance_is_a_function_of_seed_and_number() {
        let (mut a, mut b) = (Instance::default(), Instance::default());
        let generator = demo();
        generator.instance(5, &mut a);
        for number in [9, 0, 5] {
            generator.instance(number, &mut b);
        }
        assert_eq!((&a.labels, &a.words, &a.counts), (&b.labels, &b.words, &b.counts));
        Generator::new(PRESETS[0].1, 1).instance(5, &mut b);
        assert_ne!(a.words, b.words);
    }

    #[test]
    fn the_text_says_the_counted_words() {
        let generator = demo();
        let mut instance = Instance::default();
        for number in 0..50 {
            generator.instance(number, &mut instance);
            let mut text = String::new();
            generator.push_text(&instance, &mut text);
            let mut expected: Vec<String> = Vec::new();
            for &rank in &instance.words {
                expected.push(String::new());
                push_word(rank, expected.last_mut().unwrap());
            }
            let got: Vec<String> =
                text.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
            assert_eq!(got, expected);
            assert_eq!(instance.counts.iter().map(|c| c.1 as usize).sum::<usize>(), expected.len());
            assert!(instance.counts.windows(2).all(|w| w[0].0 < w[1].0));
        }
    }

    #[test]
    fn siblings_share_words_and_a_tiny_shape_works() {
        let generator = demo();
        // Leaves 0..8 are siblings: the words of their parent are the same, their own are not.
        let parent = |leaf| generator.theme_word(generator.depth - 1, leaf, 0.3);
        assert_eq!(parent(0), parent(7));
        assert_ne!(generator.theme_word(generator.depth, 0, 0.3), generator.theme_word(generator.depth, 7, 0.3));
        let tiny = Shape { features: 1, labels: 1, words: 1.0, labels_per_instance: 1.0, ..PRESETS[0].1 };
        let mut instance = Instance::default();
        Generator::new(tiny, 3).instance(0, &mut instance);
        assert_eq!((instance.labels.as_slice(), instance.counts.len()), (&[0][..], 1));
    }

    #[test]
    fn a_hundred_million_labels_need_no_table() {
        let generator = Generator::new(PRESETS.last().unwrap().1, 0);
        assert_eq!(generator.shape.labels, 100_000_000);
        let mut name = String::new();
        generator.push_label_name(99_999_999, &mut name);
        assert_eq!(name.split(' ').count(), 3, "{name}");
    }
}
