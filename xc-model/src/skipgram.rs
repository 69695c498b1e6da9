//! Vectors of words (skip-gram, `[mikolov2013distributed]`), their folder, and the words nearest to others by cosine.

use rayon::prelude::*;
use std::io::{self, Write};
use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::Buffer;
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK};
use xc_sparse::{CsrView, SparseRow};
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};

/// Cosines that are computed at once.
const COSINES: usize = 1 << 23;
/// Most queries of a product.
const BATCH: usize = 64;

/// Vectors of words. A query counts words by feature, in byte order of the words; an answer names
/// them by number, most frequent first.
#[derive(Debug)]
pub struct SkipgramModel {
    vectors: Buffer<f32>,
    /// Number of the word that each feature counts.
    of_feature: Buffer<u32>,
    /// One over the length of each vector; NaN, which is never an answer, for one of length 0.
    inverse: Vec<f32>,
    width: usize,
}

/// Why a folder does not open as vectors of words.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenSkipgramError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// A value is not a finite number.
    #[error("{}: array vectors: value {at} is not finite", path.display())]
    NotFinite {
        /// The folder.
        path: PathBuf,
        /// Its place.
        at: usize,
    },
    /// A feature counts a word that there is not.
    #[error("{}: array words: feature {feature} counts word {word}, expected one below {n_words}", path.display())]
    Word {
        /// The folder.
        path: PathBuf,
        /// The feature.
        feature: usize,
        /// Its word.
        word: u32,
        /// Number of words.
        n_words: usize,
    },
}

/// Buffers of answering; they grow to the largest batch and stay.
#[derive(Default)]
pub struct NearestScratch {
    queries: Vec<f32>,
    sum: Vec<f64>,
    cosines: Vec<f32>,
    product: MatmulScratch,
    top: TopK,
}

impl SkipgramModel {
    /// The kind that a folder states.
    pub const KIND: &str = "skipgram";

    /// From vectors, one row of `width` values a word, and the number of the word that each feature
    /// of a query counts.
    ///
    /// # Panics
    /// If the lengths do not go together, or a number is no word.
    pub fn new(vectors: Vec<f32>, width: usize, of_feature: Vec<u32>) -> Self {
        let n = of_feature.len();
        assert!(Some(vectors.len()) == n.checked_mul(width), "{} values for {n} words of {width}", vectors.len());
        assert!(of_feature.iter().all(|&word| (word as usize) < n), "a word is not below {n}");
        Self::of_parts(vectors.into(), width, of_feature.into())
    }

    /// The vectors that a classifier has learned of words: the embeddings of its features; and the number of the word that
    /// each feature counts.
    ///
    /// # Panics
    /// If the classifier has no embeddings, or not as many as there are words.
    pub fn of_classifier(classifier: &crate::classifier::Classifier, of_feature: Vec<u32>) -> Self {
        let parts = classifier.network().parameters();
        let table = parts.iter().find(|named| named.name == "bag.table");
        let table = table.unwrap_or_else(|| panic!("a classifier of vectors has no embeddings"));
        Self::new(table.parameter.values().to_vec(), table.parameter.width(), of_feature)
    }

    fn of_parts(vectors: Buffer<f32>, width: usize, of_feature: Buffer<u32>) -> Self {
        let inverse = |word: usize| {
            let length = vectors[word * width..][..width].iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            Some((1.0 / length) as f32).filter(|inverse| inverse.is_finite()).unwrap_or(f32::NAN)
        };
        let inverse = (0..of_feature.len()).into_par_iter().map(inverse).collect();
        Self { vectors, of_feature, inverse, width }
    }

    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.of_feature.len()
    }

    /// Values of a vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The vector of a word, by its number.
    ///
    /// # Panics
    /// If there is none.
    pub fn vector(&self, word: u32) -> &[f32] {
        &self.vectors[word as usize * self.width..][..self.width]
    }

    /// The `k` words nearest by cosine to the sum of the vectors of a query's words, best first,
    /// those words left out; of the words `only`, where there are some. Nothing where the query has
    /// no word, or its vectors add up to nothing.
    ///
    /// *Cost*: 2 n width operations, shared by the threads of the pool that the caller is in.
    ///
    /// *Determinism*: the bits of [`SkipgramModel::nearest_of_batch`].
    ///
    /// # Panics
    /// If a feature or a word of `only` is none.
    pub fn nearest(
        &self,
        query: SparseRow<'_>,
        k: usize,
        only: Option<&[LabelId]>,
        scratch: &mut NearestScratch,
        out: &mut Vec<Scored>,
    ) {
        out.clear();
        self.cosines(1, |_| query, scratch);
        let NearestScratch { cosines, top, .. } = scratch;
        out.extend_from_slice(self.rank(query, k, only, cosines, top));
    }

    /// As [`SkipgramModel::nearest`] for many queries; `only` gives the words to choose from for
    /// each.
    ///
    /// # Panics
    /// As there.
    pub fn nearest_of_batch<'o>(
        &self,
        queries: CsrView<'_>,
        k: usize,
        only: impl Fn(usize) -> Option<&'o [LabelId]> + Sync,
        scratch: &mut NearestScratch,
    ) -> RankedBatch {
        let (n, mut out) = (self.n_words(), RankedBatch::new());
        if n == 0 {
            (0..queries.rows()).for_each(|_| out.push_row(&[]));
            return out;
        }
        let size = (COSINES / n).clamp(1, BATCH);
        for first in (0..queries.rows()).step_by(size) {
            let len = size.min(queries.rows() - first);
            self.cosines(len, |i| queries.row(first + i), scratch);
            let rows = scratch.cosines.par_chunks_exact_mut(n).enumerate();
            let ranked: Vec<Vec<Scored>> = rows
                .map_init(TopK::default, |top, (i, cosines)| {
                    self.rank(queries.row(first + i), k, only(first + i), cosines, top).to_vec()
                })
                .collect();
            ranked.iter().for_each(|row| out.push_row(row));
        }
        out
    }

    /// Products of each query's unit vector with the vectors of all words; NaN for a query without
    /// direction.
    fn cosines<'q>(&self, len: usize, query: impl Fn(usize) -> SparseRow<'q>, scratch: &mut NearestScratch) {
        let (n, width) = (self.n_words(), self.width);
        let NearestScratch { queries, sum, cosines, product: room, .. } = scratch;
        queries.clear();
        for i in 0..len {
            let row = query(i);
            sum.clear();
            sum.resize(width, 0.0);
            for (&feature, &times) in row.indices().iter().zip(row.values()) {
                let vector = self.vector(self.of_feature[feature as usize]);
                sum.iter_mut().zip(vector).for_each(|(sum, &v)| *sum += f64::from(times) * f64::from(v));
            }
            let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
            let scale = if length > 0.0 { 1.0 / length } else { f64::NAN };
            queries.extend(sum.iter().map(|v| (v * scale) as f32));
        }
        cosines.clear();
        cosines.resize(len * n, 0.0);
        let (queries, words) = (MatRef::new(queries, len, width), MatRef::new(&self.vectors, n, width));
        product(MatMut::new(cosines, len, n), queries, words.t(), Start::Zero, MatmulPrecision::F32, room);
    }

    fn rank<'t>(
        &self,
        query: SparseRow<'_>,
        k: usize,
        only: Option<&[LabelId]>,
        cosines: &mut [f32],
        top: &'t mut TopK,
    ) -> &'t [Scored] {
        query.indices().iter().for_each(|&feature| cosines[self.of_feature[feature as usize] as usize] = f32::NAN);
        top.reset(k);
        let scored = |label: LabelId| {
            let at = label as usize;
            Scored { label, score: cosines[at] * self.inverse[at] }
        };
        match only {
            Some(only) => only.iter().for_each(|&label| top.push(scored(label))),
            None => (0..self.n_words() as u32).for_each(|label| top.push(scored(label))),
        }
        top.sorted()
    }

    /// Adds parameters and arrays to a container of this kind.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("n_words", self.n_words() as u64);
        writer.set_parameter("width", self.width as u64);
        writer.add("vectors", ArrayRef::new(&self.vectors, &[self.n_words(), self.width]))?;
        writer.add_slice("words", &self.of_feature)
    }

    /// Opens a container; the vectors stay where it has them.
    ///
    /// *Cost*: two passes over the vectors.
    ///
    /// # Errors
    /// See [`OpenSkipgramError`].
    pub fn of(container: &Container) -> Result<Self, OpenSkipgramError> {
        container.expect_kind(Self::KIND)?;
        let (n, width): (usize, usize) = (container.parameter("n_words")?, container.parameter("width")?);
        let path = || container.folder().to_owned();
        let vectors: Buffer<f32> = container.array_shaped("vectors", &[n, width])?;
        let of_feature: Buffer<u32> = container.array_shaped("words", &[n])?;
        if let Some(at) = vectors.iter().position(|v| !v.is_finite()) {
            return Err(OpenSkipgramError::NotFinite { path: path(), at });
        }
        if let Some(feature) = of_feature.iter().position(|&word| word as usize >= n) {
            let word = of_feature[feature];
            return Err(OpenSkipgramError::Word { path: path(), feature, word, n_words: n });
        }
        Ok(Self::of_parts(vectors, width, of_feature))
    }

    /// Writes the vectors in word2vec's text form: a line with the number of words and the width,
    /// then a line for each word, `names` in order of their numbers. Values read back are the same
    /// bits.
    ///
    /// # Errors
    /// The writer's.
    ///
    /// # Panics
    /// If there is not a name for each word.
    pub fn write_text(&self, names: &[String], out: &mut impl Write) -> io::Result<()> {
        assert!(names.len() == self.n_words(), "{} names for {} words", names.len(), self.n_words());
        writeln!(out, "{} {}", names.len(), self.width)?;
        for (name, word) in names.iter().zip(0u32..) {
            out.write_all(name.as_bytes())?;
            self.vector(word).iter().try_for_each(|value| write!(out, " {value}"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_sparse::CsrMatrix;

    /// Five words in two dimensions; features count them in reverse.
    fn model() -> SkipgramModel {
        let vectors = vec![1.0, 0.0, 0.5, 0.5, 0.0, 2.0, 0.0, 0.0, -3.0, 0.0];
        SkipgramModel::new(vectors, 2, vec![4, 3, 2, 1, 0])
    }

    fn nearest(model: &SkipgramModel, features: &[u32], k: usize, only: Option<&[u32]>) -> Vec<(u32, f32)> {
        let (ones, mut out) = (vec![1.0; features.len()], Vec::new());
        let query = SparseRow::from_checked(features, &ones);
        model.nearest(query, k, only, &mut NearestScratch::default(), &mut out);
        out.iter().map(|s| (s.label, s.score)).collect()
    }

    #[test]
    fn the_nearest_words_stand_by_cosine_without_the_word_itself() {
        let half = 0.5f32.sqrt();
        assert_eq!(nearest(&model(), &[4], 9, None), [(1, half), (2, 0.0), (4, -1.0)]);
        assert_eq!(nearest(&model(), &[4], 1, None), [(1, half)]);
        assert_eq!(nearest(&model(), &[4], 9, Some(&[0, 2, 3])), [(2, 0.0)]);
        // Two words: the direction of their sum, (1, 2).
        let both = nearest(&model(), &[2, 4], 1, None);
        assert!(both.len() == 1 && both[0].0 == 1 && (both[0].1 - 1.5 / 2.5f32.sqrt()).abs() < 1e-6, "{both:?}");
    }

    #[test]
    fn nothing_is_near_a_query_without_direction() {
        assert_eq!(nearest(&model(), &[], 3, None), []);
        // Word 3 is all zeros.
        assert_eq!(nearest(&model(), &[1], 3, None), []);
        assert_eq!(nearest(&SkipgramModel::new(vec![], 0, vec![1, 0]), &[1], 3, None), []);
        // So short that one over its length is no number.
        let short = SkipgramModel::new(vec![1e-45, 0.0, 1.0, 0.0], 2, vec![0, 1]);
        assert_eq!(nearest(&short, &[1], 3, None), []);
    }

    #[test]
    fn text_form_has_a_header_and_reads_back_bit_for_bit() {
        let values = [0.1f32, -1.5e-9, f32::MIN_POSITIVE, 16_777_217.0, 1.0 / 3.0, -0.0];
        let model = SkipgramModel::new(values.to_vec(), 3, vec![0, 1]);
        let mut text = Vec::new();
        model.write_text(&["the".into(), "été".into()], &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("2 3"));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
        assert_eq!([rows[0][0], rows[1][0]], ["the", "été"]);
        let read = rows.iter().flat_map(|row| row[1..].iter().map(|v| v.parse::<f32>().unwrap().to_bits()));
        assert_eq!(read.collect::<Vec<_>>(), values.map(f32::to_bits));
    }

    proptest! {
        #[test]
        fn a_batch_gives_the_bits_of_single_queries_and_cosines_of_f64(
            values in prop::collection::vec(-2.0f32..2.0, 37 * 11),
            queries in prop::collection::vec(0u32..37, 1..90),
        ) {
            let model = SkipgramModel::new(values, 11, (0..37).rev().collect());
            let n = queries.len();
            let x = CsrMatrix::from_checked((n, 37), (0..=n).collect(), queries.clone(), vec![1.0; n]);
            let batch = model.nearest_of_batch(x.view(), 5, |_| None, &mut NearestScratch::default());
            for (i, &feature) in queries.iter().enumerate() {
                let one = nearest(&model, &[feature], 5, None);
                let got: Vec<_> = batch.row(i).iter().map(|s| (s.label, s.score)).collect();
                prop_assert_eq!(&got, &one);
                let word = 36 - feature;
                for &(other, score) in &got {
                    let (a, b) = (model.vector(word), model.vector(other));
                    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
                    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
                    prop_assert!(other != word && (f64::from(score) - cosine).abs() < 1e-5);
                }
            }
        }
    }
}
