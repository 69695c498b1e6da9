//! Walking equal steps modulo a prime: which bucket each falls into, and what stands there.
//!
//! The scalar file defines every operation; the others are tested against it bit for bit. A label
//! keeps its lane through all repetitions and nothing is fused, so sums are the same on every path.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "kernels written by hand for an instruction set"))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod dense;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod scalar;

use xc_buffer::Isa;

/// Equal steps modulo a prime, of which each element is reduced to a bucket: element t is `start +
/// t * step`.
///
/// # Invariants
/// `start` and `step` are below `prime`, which is below 2^32 and at least `n_buckets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Residues {
    pub(crate) start: u64,
    pub(crate) step: u64,
    pub(crate) prime: u64,
    pub(crate) n_buckets: u32,
}

/// What becomes of the value found in an element's bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fold {
    /// It replaces what was there.
    Set,
    /// It is added.
    Add,
    /// The smaller of the two stays; of equal ones the one that was there.
    Min,
    /// 1 is added where it is at least this.
    CountFrom(f32),
}

/// Buckets of the first elements, one an entry of `out`.
pub(crate) fn buckets(residues: &Residues, out: &mut [u32]) {
    buckets_with(Isa::current(), residues, out);
}

/// Folds what `table` holds for the bucket of each element into `out`.
///
/// # Panics
/// If `table` has not one entry a bucket.
pub(crate) fn fold(residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    fold_with(Isa::current(), residues, table, fold, out);
}

/// For each of some walks, adds 1 to the entries of `out` whose bucket has its bit: bucket b in word b / 32 as bit b % 32.
///
/// # Panics
/// If there is not one bit a bucket, up to a whole word.
pub(crate) fn count(walks: &[(Residues, &[u32])], out: &mut [f32]) {
    count_with(Isa::current(), walks, out);
}

/// [`count`] with a given instruction set, which this machine has.
fn count_with(isa: Isa, walks: &[(Residues, &[u32])], out: &mut [f32]) {
    for (walk, bits) in walks {
        assert_eq!(bits.len(), walk.n_buckets.div_ceil(32) as usize, "words of a bit a bucket");
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if walks.iter().all(|(walk, _)| lanes::fits(walk)) => {
            let (fours, rest) = walks.as_chunks::<4>();
            let (twos, one) = rest.as_chunks::<2>();
            // SAFETY: an instruction set is only named here where it is available; the bits were
            // measured above.
            unsafe {
                fours.iter().for_each(|of| avx512::count(of.each_ref().map(|w| &w.0), of.map(|w| w.1), out));
                twos.iter().for_each(|of| avx512::count(of.each_ref().map(|w| &w.0), of.map(|w| w.1), out));
                one.iter().for_each(|(walk, bits)| avx512::count([walk], [bits], out));
            }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 if walks.iter().all(|(walk, _)| lanes::fits(walk)) => {
            let (twos, one) = walks.as_chunks::<2>();
            // SAFETY: as above.
            unsafe {
                twos.iter().for_each(|of| avx2::count(of.each_ref().map(|w| &w.0), of.map(|w| w.1), out));
                one.iter().for_each(|(walk, bits)| avx2::count([walk], [bits], out));
            }
        }
        _ => walks.iter().for_each(|(walk, bits)| scalar::count(walk, bits, out)),
    }
}

/// [`buckets`] with a given instruction set, which this machine has.
fn buckets_with(isa: Isa, residues: &Residues, out: &mut [u32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available.
        Isa::Avx512 if lanes::fits(residues) => unsafe { avx512::buckets(residues, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 if lanes::fits(residues) => unsafe { avx2::buckets(residues, out) },
        _ => scalar::buckets(residues, out),
    }
}

/// [`fold`] with a given instruction set, which this machine has.
fn fold_with(isa: Isa, residues: &Residues, table: &[f32], fold: Fold, out: &mut [f32]) {
    assert_eq!(table.len(), residues.n_buckets as usize, "entries of the table, and buckets");
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an instruction set is only named here where it is available; the table was
        // measured above.
        Isa::Avx512 if lanes::fits(residues) => unsafe { avx512::fold(residues, table, fold, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 if lanes::fits(residues) => unsafe { avx2::fold(residues, table, fold, out) },
        _ => match fold {
            Fold::Set => scalar::fold(residues, table, out, |_, v| v),
            Fold::Add => scalar::fold(residues, table, out, |a, v| a + v),
            Fold::Min => scalar::fold(residues, table, out, |a, v| if v < a { v } else { a }),
            Fold::CountFrom(bar) => scalar::fold(residues, table, out, |a, v| if v >= bar { a + 1.0 } else { a }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_hash::universal::smallest_prime_from;

    fn walks() -> impl Strategy<Value = Residues> {
        let size = prop_oneof![2u64..100, 100u64..100_000, 100_000u64..2_147_483_000, Just(2_147_483_647)];
        (size, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(size, start, step, n_buckets)| {
            let prime = smallest_prime_from(size);
            let n_buckets = 1 + (n_buckets % prime.min(5000)) as u32;
            Residues { start: start % prime, step: step % prime, prime, n_buckets }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_instruction_set_walks_alike(walk in walks(), n in 0usize..80) {
            let by_definition: Vec<u32> = (0..n as u64)
                .map(|t| ((walk.start + walk.step * t) % walk.prime % u64::from(walk.n_buckets)) as u32)
                .collect();
            let table: Vec<f32> = (0..walk.n_buckets).map(|b| (b.wrapping_mul(2_654_435_761) >> 8) as f32 - 1e7).collect();
            let before: Vec<f32> = (0..n).map(|t| t as f32 * 1.1 - 30.0).collect();
            for isa in Isa::available() {
                let mut out = vec![7; n];
                buckets_with(isa, &walk, &mut out);
                prop_assert_eq!(&out, &by_definition, "{}", isa);
                // Of the table's numbers some are the bar itself.
                for fold in [Fold::Set, Fold::Add, Fold::Min, Fold::CountFrom(table[0])] {
                    let mut got = before.clone();
                    fold_with(isa, &walk, &table, fold, &mut got);
                    for t in 0..n {
                        let (a, v) = (before[t], table[by_definition[t] as usize]);
                        let expected = match fold {
                            Fold::Set => v,
                            Fold::Add => a + v,
                            Fold::Min => a.min(v),
                            Fold::CountFrom(bar) => a + f32::from(u8::from(v >= bar)),
                        };
                        prop_assert_eq!(got[t].to_bits(), expected.to_bits(), "{} {:?} {}", isa, fold, t);
                    }
                }
                let mut bits = Vec::new();
                dense::bits_from(&table, table[0], &mut bits);
                // So many walks at once, each of other elements.
                let ahead = |by: u64| Residues { start: (walk.start + walk.step * by) % walk.prime, ..walk };
                let walks: Vec<(Residues, &[u32])> = (0..n as u64 % 9).map(|by| (ahead(by), &bits[..])).collect();
                let (mut got, mut counted) = (before.clone(), before.clone());
                count_with(isa, &walks, &mut got);
                for (walk, _) in &walks {
                    fold_with(isa, walk, &table, Fold::CountFrom(table[0]), &mut counted);
                }
                prop_assert_eq!(got, counted, "{}", isa);
            }
        }
    }

    #[test]
    fn primes_above_the_lanes_are_walked_all_the_same() {
        let walk = Residues { start: 5, step: 4_000_000_000, prime: 4_294_967_291, n_buckets: 1000 };
        for isa in Isa::available() {
            let mut out = [0; 40];
            buckets_with(isa, &walk, &mut out);
            for (t, &bucket) in out.iter().enumerate() {
                let residue = (5 + 4_000_000_000 * t as u64) % 4_294_967_291;
                assert_eq!(u64::from(bucket), residue % 1000);
            }
            let (bits, mut counts) = ([0x5555_5555; 32], [0.5; 40]);
            count_with(isa, &[(walk, &bits), (walk, &bits)], &mut counts);
            assert!(counts.iter().zip(out).all(|(&count, bucket)| count == if bucket % 2 == 0 { 2.5 } else { 0.5 }));
        }
    }
}
