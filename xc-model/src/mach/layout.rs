//! Repetitions, buckets and hash functions of a model, whatever its classifiers are.

use super::MachParams;
use crate::classifier::ClassifierParams;
use std::ops::Range;
use xc_hash::universal::UniversalFamily;
use xc_mach::{Decoder, UsualSize};

/// How labels are laid out over the buckets of some repetitions.
///
/// ```
/// use xc_mach::Decoder;
/// use xc_model::mach::MachLayout;
///
/// let mut layout = MachLayout::usual(30_000);
/// assert_eq!((layout.numbers.clone(), layout.n_buckets, layout.decoder), (0..8, 1875, Decoder::Median));
/// // The decoder follows.
/// layout.hash_into(8);
/// assert_eq!(layout.decoder, Decoder::Min);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachLayout {
    /// Numbers of the repetitions.
    pub numbers: Range<u32>,
    /// As [`MachParams::n_buckets`].
    pub n_buckets: u32,
    /// As [`MachParams::family`].
    pub family: UniversalFamily,
    /// As [`MachParams::decoder`].
    pub decoder: Decoder,
}

impl MachLayout {
    /// The usual one over so many labels: [`UsualSize`], [`Decoder::usual`].
    pub fn usual(n_labels: usize) -> Self {
        let UsualSize { n_repetitions, n_buckets, family } = UsualSize::of(n_labels);
        Self { numbers: 0..n_repetitions, n_buckets, family, decoder: Decoder::usual(n_buckets) }
    }

    /// Another number of buckets, with the decoder that is usual for them.
    pub fn hash_into(&mut self, n_buckets: u32) {
        (self.n_buckets, self.decoder) = (n_buckets, Decoder::usual(n_buckets));
    }

    /// The model whose repetitions are such classifiers.
    pub fn params(&self, classifier: ClassifierParams) -> MachParams {
        let Self { n_buckets, family, decoder, .. } = *self;
        MachParams { n_buckets, family, decoder, seed: classifier.learning.seed, classifier }
    }
}
