//! Where empty bins take their codes from.
//!
//! ```text
//!   bins   5 . . 2 . .        h_0(1) = 4: empty     h_1(1) = 3: bin 1 borrows from bin 3
//! ```
//!
//! Each attempt has a function of its own from a 2-universal family, so that two rows whose bins
//! are empty alike look into the same bins in the same order, and bins borrow apart from one
//! another. Only what was filled at first is lent.
//!
//! Implements the densification of `[shrivastava2017optimal]`. *Differs in*: after a fixed number
//! of attempts the next filled bin lends, so that a search ends in all cases.

use crate::family::BORROWED;
use crate::params::FamilyParams;
use xc_hash::universal::{self, BucketHash, MultiplyShift, UniversalHash};

/// Attempts by functions. With a quarter of the bins filled, one bin in ten thousand is still empty
/// afterwards.
const ATTEMPTS: u32 = 32;

/// Functions from bins to bins, one for each attempt.
#[derive(Clone, Debug)]
pub(crate) struct Borrow {
    attempts: Vec<MultiplyShift>,
}

impl Borrow {
    pub(crate) fn new(params: &FamilyParams) -> Self {
        let functions = universal::UniversalParams {
            family: universal::UniversalFamily::MultiplyShift,
            n_keys: u64::from(u32::MAX),
            n_buckets: params.codes() as u32,
            seed: params.stream(&[BORROWED]),
        };
        // One bin or more, 2^24 at most: such functions always exist.
        let draw = |attempt| match functions.hash(attempt) {
            Ok(UniversalHash::MultiplyShift(hash)) => hash,
            other => panic!("{other:?}, expected a multiply-shift function"),
        };
        Self { attempts: (0..ATTEMPTS).map(draw).collect() }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(self.attempts.as_slice())
    }

    /// Gives each empty bin, one that holds 0, the code of a filled one. Where no bin is filled,
    /// all codes become 0.
    pub(crate) fn fill(&self, bins: &[u64], codes: &mut [u8], empty: &mut Vec<u32>) {
        debug_assert_eq!(bins.len(), codes.len(), "bins and codes");
        empty.clear();
        empty.resize(bins.len(), 0);
        // Which bins are empty cannot be foreseen: every step writes, and moves on by 0 or 1.
        let mut left = 0;
        for (bin, &held) in bins.iter().enumerate() {
            empty[left] = bin as u32;
            left += usize::from(held == 0);
        }
        if left == bins.len() {
            codes.fill(0);
            return;
        }
        for hash in &self.attempts {
            let mut still = 0;
            for at in 0..left {
                let bin = empty[at];
                let from = hash.bucket(bin) as usize;
                // Both codes are read, whichever counts.
                let (lends, lent, own) = (bins[from] != 0, codes[from], codes[bin as usize]);
                codes[bin as usize] = std::hint::select_unpredictable(lends, lent, own);
                empty[still] = bin;
                still += usize::from(!lends);
            }
            left = still;
            if left == 0 {
                break;
            }
        }
        empty.truncate(left);
        for &bin in empty.iter() {
            let next = (bin as usize + 1..bins.len()).chain(0..bin as usize).find(|&from| bins[from] != 0);
            codes[bin as usize] = next.map_or(0, |from| codes[from]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FamilyKind;
    use xc_hash::stream::Stream;

    #[test]
    fn every_bin_gets_the_code_of_a_filled_one_however_few_there_are() {
        let kind = FamilyKind::Dwta { bin: 8, permutations: 1 };
        for n_codes in [1u32, 2, 3, 7, 64] {
            let n = n_codes as usize * 37;
            let params = FamilyParams { kind, width: 10, n_codes, n_tables: 37, key_bits: 32, seed: 5 };
            let borrow = Borrow::new(&params);
            let mut stream = Stream::new(u64::from(n_codes));
            for filled in [1, 2, n / 2, n] {
                let (mut bins, mut codes) = (vec![0u64; n], vec![99u8; n]);
                for _ in 0..filled {
                    let at = stream.below(n as u32) as usize;
                    (bins[at], codes[at]) = (1, 1 + stream.below(7) as u8);
                }
                let before = codes.clone();
                borrow.fill(&bins, &mut codes, &mut Vec::new());
                for at in 0..n {
                    let expected = if bins[at] != 0 { before[at] == codes[at] } else { (1..8).contains(&codes[at]) };
                    assert!(expected, "bin {at} of {n}: {}", codes[at]);
                }
            }
            let mut codes = vec![9; n];
            borrow.fill(&vec![0; n], &mut codes, &mut Vec::new());
            assert_eq!(codes, vec![0; n]);
        }
    }
}
