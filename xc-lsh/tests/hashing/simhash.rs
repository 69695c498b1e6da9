//! SimHash against its probability; sparse and dense rows.

use crate::draws::{agreeing, assert_share, cosine, count_agreeing, covariance, keys_of, keys_of_sparse, pair, params};
use proptest::prelude::*;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::{Family, FamilyKind, KeyScratch, Keys, Projection, SimHash, theory};
use xc_sparse::SparseRow;

const ALL: [Projection; 3] = [Projection::Gaussian, Projection::Sparse, Projection::Hadamard];

#[test]
fn bits_agree_by_the_angle() {
    let mut stream = Stream::new(1);
    for projection in ALL {
        for correlation in [-0.8, 0.0, 0.3, 0.9] {
            // Few bits a family: those of one block of transforms are not independent.
            let (x, y) = pair(&mut stream, 64, correlation);
            let params = params(FamilyKind::SimHash { projection }, 64, 2, 5, 0);
            let (hits, n) = count_agreeing(params, 0..10_000, |f| [keys_of(f, &x), keys_of(f, &y)]);
            let p = theory::simhash(cosine(&x, &y));
            assert_share(hits, n, p, &format!("{projection:?}, {correlation}"));
        }
    }
}

#[test]
fn normal_projections_go_by_the_angle_in_the_plane() {
    // Two coordinates: nothing is averaged.
    let (x, y) = ([1.0, 0.0], [0.6, 0.8]);
    let params = params(FamilyKind::SimHash { projection: Projection::Gaussian }, 2, 20, 50, 0);
    let (hits, n) = count_agreeing(params, 0..100, |f| [keys_of(f, &x), keys_of(f, &y)]);
    assert_share(hits, n, theory::simhash(0.6), "in the plane");
}

#[test]
fn tables_find_a_pair_as_often_as_independent_bits_would() {
    for projection in ALL {
        let (x, y) = pair(&mut Stream::new(3), 128, 0.3);
        let (n_codes, n_tables, n) = (6, 10, 4000);
        let params = params(FamilyKind::SimHash { projection }, 128, n_codes, n_tables, 0);
        let mut hits = 0;
        for seed in 0..n {
            let family = SimHash::new(xc_lsh::FamilyParams { seed, ..params }).unwrap();
            hits += usize::from(keys_of(&family, &x).iter().zip(keys_of(&family, &y)).any(|(a, b)| *a == b));
        }
        let p = theory::inclusion(theory::simhash(cosine(&x, &y)), n_codes, n_tables);
        assert_share(hits, n as usize, p, &format!("{projection:?}"));
    }
}

#[test]
fn two_bits_hardly_depend_on_each_other() {
    for projection in ALL {
        let (x, y) = pair(&mut Stream::new(5), 128, 0.3);
        let pairs = (0..20_000).map(|seed| {
            let family = SimHash::new(params(FamilyKind::SimHash { projection }, 128, 2, 1, seed)).unwrap();
            let (x, y) = (keys_of(&family, &x), keys_of(&family, &y));
            let mut bits = agreeing(&family, &x, &y);
            (bits.next().unwrap(), bits.next().unwrap())
        });
        let (covariance, spread) = covariance(pairs);
        assert!(covariance.abs() < 5.0 * spread, "{projection:?}: {covariance}, spread {spread}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rows_have_the_same_keys_sparse_dense_alone_and_together(
        rows in 0usize..9,
        width in prop_oneof![Just(1usize), Just(5), Just(127), Just(128), Just(129), Just(200)],
        n_codes in 1u32..12,
        n_tables in 1u32..40,
        seed: u64,
    ) {
        let mut stream = Stream::new(seed);
        let mut values = vec![0.0; rows * width];
        stream.fill_uniform(1.0, &mut values);
        for value in &mut values {
            match stream.below(4) {
                0 => *value = 0.0,
                1 => *value = -0.0,
                2 => *value *= 1e-40,
                _ => {}
            }
        }
        for projection in ALL {
            let family = SimHash::new(params(FamilyKind::SimHash { projection }, width, n_codes, n_tables, seed)).unwrap();
            let mut keys = Keys::new(n_tables as usize);
            let dense = DenseRows::new(&values, width);
            family.keys_dense(dense, &mut keys, &mut KeyScratch::default()).unwrap();
            prop_assert_eq!(keys.len(), rows);
            for (i, row) in dense.iter().enumerate() {
                prop_assert_eq!(keys.row(i), keys_of(&family, row), "{:?}, row {} alone", projection, i);
                let indices: Vec<u32> = (0..width as u32).filter(|&j| row[j as usize] != 0.0).collect();
                let values: Vec<f32> = indices.iter().map(|&j| row[j as usize]).collect();
                let sparse = keys_of_sparse(&family, SparseRow::from_checked(&indices, &values));
                prop_assert_eq!(keys.row(i), sparse, "{:?}, row {} sparse", projection, i);
            }
        }
    }
}

#[test]
fn projections_at_the_ends_of_the_numbers_have_keys() {
    for projection in ALL {
        let family = SimHash::new(params(FamilyKind::SimHash { projection }, 16, 8, 10, 1)).unwrap();
        assert_eq!(keys_of(&family, &[0.0; 16]), [0; 10], "{projection:?}");
        assert_eq!(keys_of(&family, &[-0.0; 16]), [0; 10], "{projection:?}");
        // The largest values overflow; whatever they give is given again.
        assert_eq!(keys_of(&family, &[f32::MAX; 16]), keys_of(&family, &[f32::MAX; 16]));
        // Sums of values below the normal ones have signs too.
        assert!(keys_of(&family, &[1e-42; 16]).iter().any(|&k| k != 0), "{projection:?}");
    }
}
