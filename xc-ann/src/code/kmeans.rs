//! k-means: a few words that represent many rows.

use rayon::prelude::*;
use xc_buffer::Cancel;
use xc_buffer::Silent;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_hash::stream::Stream;

/// Rows of a task of [`Codebook::assign`].
const TOGETHER: usize = 256;

/// Words of k-means, one row each.
///
/// ```
/// use xc_ann::kmeans::Codebook;
/// use xc_hash::stream::Stream;
///
/// let rows = [0.0, 0.1, 5.0, 5.1];
/// let (mut book, mut random) = (Codebook::zeros(2, 1), Stream::new(1));
/// book.begin(&rows, &mut random);
/// book.learn(&rows, 5, &mut random);
/// let words = book.assign(&rows);
/// assert!(words[0] == words[1] && words[1] != words[2] && words[2] == words[3]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Codebook {
    width: usize,
    words: Vec<f32>,
}

/// Buffers of products.
#[derive(Debug, Default)]
pub struct CodebookScratch {
    products: Vec<f32>,
    dense: xc_dense::MatmulScratch,
}

impl Codebook {
    /// `n` words of `width` values, all 0.
    pub fn zeros(n: usize, width: usize) -> Self {
        Self { width, words: vec![0.0; n * width] }
    }

    /// Words that were learned before, one row each.
    ///
    /// # Panics
    /// If they are not a whole number of rows.
    pub fn of(words: Vec<f32>, width: usize) -> Self {
        assert!(width > 0 && words.len().is_multiple_of(width), "{} values in rows of {width}", words.len());
        Self { width, words }
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Values of a word.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All words, row by row.
    pub fn words(&self) -> &[f32] {
        &self.words
    }

    /// All words, which may be changed.
    pub fn words_mut(&mut self) -> &mut [f32] {
        &mut self.words
    }

    /// Products of rows with all words, one row each.
    pub fn products(&self, rows: &[f32], start: Start<'_>, out: &mut Vec<f32>, scratch: &mut xc_dense::MatmulScratch) {
        let n = rows.len() / self.width;
        out.resize(n * self.len(), 0.0);
        let words = MatRef::new(&self.words, self.len(), self.width).t();
        let out = MatMut::new(out, n, self.len());
        product(out, MatRef::new(rows, n, self.width), words, start, MatmulPrecision::F32, scratch);
    }

    /// The nearest word of each row; of equally near words the first.
    pub fn nearest(&self, rows: &[f32], scratch: &mut CodebookScratch, mut found: impl FnMut(usize, usize)) {
        let half = |word: &[f32]| -0.5 * word.iter().map(|v| v * v).sum::<f32>();
        let bias: Vec<f32> = self.words.chunks_exact(self.width).map(half).collect();
        let CodebookScratch { products, dense } = scratch;
        self.products(rows, Start::Bias(&bias), products, dense);
        for (at, products) in products.chunks_exact(self.len()).enumerate() {
            let mut best = 0;
            for (word, value) in products.iter().enumerate() {
                best = if *value > products[best] { word } else { best };
            }
            found(at, best);
        }
    }

    /// [`Codebook::nearest`] of all rows, divided among the ambient threads.
    pub fn assign(&self, rows: &[f32]) -> Vec<u32> {
        done(self.assign_unless(rows, &Silent))
    }

    /// The same; nothing where `cancel` asked to stop.
    pub(crate) fn assign_unless(&self, rows: &[f32], cancel: &dyn Cancel) -> Option<Vec<u32>> {
        let some = |scratch: &mut CodebookScratch, rows: &[f32]| {
            if cancel.cancelled() {
                return None;
            }
            let mut words = vec![0; rows.len() / self.width];
            self.nearest(rows, scratch, |at, word| words[at] = word as u32);
            Some(words)
        };
        let parts = rows.par_chunks(TOGETHER * self.width).map_init(CodebookScratch::default, some);
        parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
    }

    /// Begins at rows drawn from a sample, each once.
    pub fn begin(&mut self, sample: &[f32], random: &mut Stream) {
        let n = sample.len() / self.width;
        let mut chosen: Vec<usize> = (0..n).collect();
        random.shuffle(&mut chosen);
        for (word, row) in self.words.chunks_exact_mut(self.width).zip(chosen) {
            word.copy_from_slice(&sample[row * self.width..][..self.width]);
        }
    }

    /// Moves every word to the mean of the rows nearest to it, `iterations` times. A word without rows
    /// restarts at a row of the sample. The result is the same at any number of threads.
    pub fn learn(&mut self, sample: &[f32], iterations: u32, random: &mut Stream) {
        done(self.learn_unless(sample, iterations, random, &Silent));
    }

    /// The same; nothing, and words that are of no use, where `cancel` asked to stop.
    pub(crate) fn learn_unless(
        &mut self,
        sample: &[f32],
        iterations: u32,
        random: &mut Stream,
        cancel: &dyn Cancel,
    ) -> Option<()> {
        let (width, n) = (self.width, sample.len() / self.width);
        for _ in 0..iterations {
            // In the order of the rows: the same bits at any number of threads.
            let (mut sums, mut counts) = (vec![0.0f64; self.words.len()], vec![0u32; self.len()]);
            for (row, word) in sample.chunks_exact(width).zip(self.assign_unless(sample, cancel)?) {
                counts[word as usize] += 1;
                let sum = sums[word as usize * width..][..width].iter_mut();
                sum.zip(row).for_each(|(sum, &v)| *sum += f64::from(v));
            }
            for ((word, sum), &count) in self.words.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(&counts) {
                if count == 0 {
                    let row = random.below_u64(n as u64) as usize;
                    word.copy_from_slice(&sample[row * width..][..width]);
                } else {
                    word.iter_mut().zip(sum).for_each(|(v, sum)| *v = (sum / f64::from(count)) as f32);
                }
            }
        }
        Some(())
    }
}

/// What work gives that nobody asks to stop.
fn done<T>(outcome: Option<T>) -> T {
    outcome.unwrap_or_else(|| unreachable!("nobody asks to stop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_the_clusters() {
        let centres = [[5.0, 0.0], [0.0, 5.0], [-5.0, -5.0]];
        let mut random = Stream::new(1);
        let rows: Vec<f32> = (0..300)
            .flat_map(|i| {
                let mut noise = [0.0; 2];
                random.fill_uniform(0.5, &mut noise);
                [centres[i % 3][0] + noise[0], centres[i % 3][1] + noise[1]]
            })
            .collect();
        // More words than clusters: every cluster has one of its own, whatever they begin at.
        let mut book = Codebook::zeros(6, 2);
        book.begin(&rows, &mut random);
        book.learn(&rows, 10, &mut random);
        for (at, &word) in book.assign(&rows).iter().enumerate() {
            let distance: f32 = (0..2).map(|c| (book.words[word as usize * 2 + c] - centres[at % 3][c]).powi(2)).sum();
            assert!(distance < 1.0, "row {at} is {distance} from its word");
        }
    }

    #[test]
    fn equal_rows_share_the_first_word() {
        let rows = [1.0f32; 20];
        let mut book = Codebook::zeros(4, 2);
        book.begin(&rows, &mut Stream::new(1));
        book.learn(&rows, 3, &mut Stream::new(2));
        assert_eq!(book.assign(&rows), [0; 10]);
        assert_eq!(book.words, [1.0; 8]);
    }

    #[test]
    fn words_are_the_same_at_any_number_of_threads() {
        let rows: Vec<f32> = (0..3000).map(|i| ((i * 7919) % 1009) as f32).collect();
        let learn = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (mut book, mut random) = (Codebook::zeros(7, 3), Stream::new(1));
                book.begin(&rows, &mut random);
                book.learn(&rows, 4, &mut random);
                (book.assign(&rows), book)
            })
        };
        assert_eq!(learn(1), learn(3));
    }
}
