//! k-means over one half of the labels' rows.

use xc_hash::stream::Stream;
use xc_sparse::dense::{self, MatRef, MatmulPrecision, Start, product};

/// Codewords of one half.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Codebook {
    pub(super) width: usize,
    /// One row a codeword.
    pub(super) words: Vec<f32>,
}

/// Buffers of an assignment.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    products: Vec<f32>,
    dense: dense::Scratch,
}

impl Codebook {
    pub(super) fn zeros(n: usize, width: usize) -> Self {
        Self { width, words: vec![0.0; n * width] }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// Products of rows with all codewords, one row each.
    pub(super) fn products(&self, rows: &[f32], start: Start<'_>, out: &mut Vec<f32>, scratch: &mut dense::Scratch) {
        let n = rows.len() / self.width;
        out.resize(n * self.len(), 0.0);
        let words = MatRef::new(&self.words, self.len(), self.width).t();
        product(out, MatRef::new(rows, n, self.width), words, start, MatmulPrecision::F32, scratch);
    }

    /// The nearest codeword of each row; of equally near ones the first.
    pub(super) fn nearest(&self, rows: &[f32], scratch: &mut Scratch, mut found: impl FnMut(usize, usize)) {
        let half = |word: &[f32]| -0.5 * word.iter().map(|v| v * v).sum::<f32>();
        let bias: Vec<f32> = self.words.chunks_exact(self.width).map(half).collect();
        let Scratch { products, dense } = scratch;
        self.products(rows, Start::Bias(&bias), products, dense);
        for (at, products) in products.chunks_exact(self.len()).enumerate() {
            let mut best = 0;
            for (word, value) in products.iter().enumerate() {
                best = if *value > products[best] { word } else { best };
            }
            found(at, best);
        }
    }

    /// Begins at rows drawn from a sample, each once.
    pub(super) fn begin(&mut self, sample: &[f32], random: &mut Stream) {
        let n = sample.len() / self.width;
        let mut chosen: Vec<usize> = (0..n).collect();
        random.shuffle(&mut chosen);
        for (word, row) in self.words.chunks_exact_mut(self.width).zip(chosen) {
            word.copy_from_slice(&sample[row * self.width..][..self.width]);
        }
    }

    /// Moves every codeword to the mean of the rows that are nearest to it, so many times. One that
    /// has none begins anew at a row of the sample.
    pub(super) fn learn(&mut self, sample: &[f32], iterations: u32, random: &mut Stream, scratch: &mut Scratch) {
        let (width, n) = (self.width, sample.len() / self.width);
        for _ in 0..iterations {
            // In the order of the rows: the same bits at any number of threads.
            let (mut sums, mut counts) = (vec![0.0f64; self.words.len()], vec![0u32; self.len()]);
            self.nearest(sample, scratch, |at, word| {
                counts[word] += 1;
                let sum = sums[word * width..][..width].iter_mut();
                sum.zip(&sample[at * width..]).for_each(|(sum, &v)| *sum += f64::from(v));
            });
            for ((word, sum), &count) in self.words.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(&counts) {
                if count == 0 {
                    let row = random.below_u64(n as u64) as usize;
                    word.copy_from_slice(&sample[row * width..][..width]);
                } else {
                    word.iter_mut().zip(sum).for_each(|(v, sum)| *v = (sum / f64::from(count)) as f32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codewords_find_the_clusters() {
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
        book.learn(&rows, 10, &mut random, &mut Scratch::default());
        let mut words = vec![usize::MAX; 300];
        book.nearest(&rows, &mut Scratch::default(), |at, word| words[at] = word);
        for (at, &word) in words.iter().enumerate() {
            let distance: f32 = (0..2).map(|c| (book.words[word * 2 + c] - centres[at % 3][c]).powi(2)).sum();
            assert!(distance < 1.0, "row {at} is {distance} from its word");
        }
    }

    #[test]
    fn equal_rows_share_the_first_word() {
        let rows = [1.0f32; 20];
        let mut book = Codebook::zeros(4, 2);
        book.begin(&rows, &mut Stream::new(1));
        book.learn(&rows, 3, &mut Stream::new(2), &mut Scratch::default());
        book.nearest(&rows, &mut Scratch::default(), |_, word| assert_eq!(word, 0));
        assert_eq!(book.words, [1.0; 8]);
    }
}
