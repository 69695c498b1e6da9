//! What every family promises: the same keys on every instruction set and at any number of threads,
//! errors that name the place, settings as data, probes.

use crate::draws::{keys_of, params};
use std::process::Command;
use xc_buffer::simd::Isa;
use xc_dense::DenseRows;
use xc_hash::stream::{Stream, mix};
use xc_lsh::{FamilyKind, FamilyParams, HashError, KeyScratch, Keys, Minima, Probes, Projection};
use xc_sparse::CsrMatrix;

const KINDS: [FamilyKind; 7] = [
    FamilyKind::SimHash { projection: Projection::Gaussian },
    FamilyKind::SimHash { projection: Projection::Sparse },
    FamilyKind::SimHash { projection: Projection::Hadamard },
    FamilyKind::Wta { bin: 8 },
    FamilyKind::Dwta { bin: 8, permutations: 5 },
    FamilyKind::MinHash { minima: Minima::Classic, code_bits: 3 },
    FamilyKind::MinHash { minima: Minima::OnePermutation, code_bits: 3 },
];

/// Rows with ties, both zeros, values below the normal ones, and rows that are all equal.
fn hard_rows(n: usize, width: usize) -> Vec<f32> {
    let mut stream = Stream::new(width as u64);
    let mut values = vec![0.0; n * width];
    stream.fill_uniform(2.0, &mut values);
    for (at, value) in values.iter_mut().enumerate() {
        match stream.below(8) {
            0 => *value = 0.0,
            1 => *value = -0.0,
            2 => *value *= 1e-41,
            3 => *value = 1.0,
            _ => {}
        }
        match at / width {
            3 => *value = 0.0,
            4 => *value = -0.0,
            5 => *value = 7.0,
            _ => {}
        }
    }
    values
}

fn csr(values: &[f32], width: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(width) {
        for (feature, &value) in (0..).zip(row).filter(|e| e.1.to_bits() != 0) {
            indices.push(feature);
            stored.push(value);
        }
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((indptr.len() - 1, width), indptr, indices, stored)
}

/// A number that changes with any key of any family.
fn digest() -> u64 {
    let mut digest = 0;
    for kind in KINDS {
        for (width, n_codes, n_tables, key_bits) in
            [(8, 1, 7, 32), (127, 3, 33, 32), (128, 6, 70, 15), (300, 10, 65, 32)]
        {
            let family = FamilyParams { key_bits, ..params(kind, width, n_codes, n_tables, 5) }.build().unwrap();
            let values = hard_rows(9, width);
            let mut keys = Keys::new(n_tables as usize);
            family.keys_dense(DenseRows::new(&values, width), &mut keys, &mut KeyScratch::default()).unwrap();
            digest = keys.as_slice().iter().fold(digest, |digest, &key| mix(digest, u64::from(key)));
        }
    }
    digest
}

#[test]
fn keys_are_the_same_on_every_instruction_set() {
    const EXPECTED: &str = "XC_LSH_TEST_DIGEST";
    let digest = format!("{:x}", digest());
    if let Ok(expected) = std::env::var(EXPECTED) {
        assert_eq!(digest, expected, "keys of {}", Isa::current());
        return;
    }
    for isa in Isa::available() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "contract::keys_are_the_same_on_every_instruction_set"])
            .env("XC_SIMD", isa.name())
            .env(EXPECTED, &digest)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{isa}: {said}");
    }
}

#[test]
fn keys_are_the_same_at_any_number_of_threads() {
    let (n, width) = (700, 40);
    let values = hard_rows(n, width);
    let matrix = csr(&values, width);
    for kind in KINDS {
        let family = params(kind, width, 5, 20, 3).build().unwrap();
        let run = || {
            let (mut dense, mut sparse) = (Keys::new(20), Keys::new(20));
            let mut scratch = KeyScratch::default();
            family.keys_dense(DenseRows::new(&values, width), &mut dense, &mut scratch).unwrap();
            family.keys_sparse(matrix.view(), &mut sparse, &mut scratch).unwrap();
            (dense, sparse)
        };
        let (dense, sparse) = run();
        assert_eq!(dense, sparse, "{kind:?}");
        assert_eq!((dense.len(), dense.n_zero()), (n, 2), "{kind:?}");
        assert_eq!(dense.row(3), dense.row(4), "zeros of either sign");
        for i in [0, 5, 255, 256, 699] {
            assert_eq!(dense.row(i), keys_of(&*family, &values[i * width..][..width]), "{kind:?}, row {i} alone");
        }
        for threads in 1..=3 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(run) == (dense.clone(), sparse.clone()), "{kind:?}, {threads} threads");
        }
    }
}

#[test]
fn what_is_no_number_is_refused_with_its_place() {
    let (n, width) = (600, 20);
    for kind in KINDS {
        let family = params(kind, width, 3, 4, 3).build().unwrap();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = hard_rows(n, width);
            // Two places: the first one is named.
            values[599 * width] = bad;
            values[300 * width + 17] = bad;
            let mut keys = Keys::new(4);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let check = |error: HashError| {
                let HashError::NotFinite { row, column, value } = error else { panic!("{error}") };
                assert_eq!((row, column, value.to_bits()), (300, 17, bad.to_bits()), "{kind:?}");
            };
            let rows = DenseRows::new(&values, width);
            check(family.keys_dense(rows, &mut keys, &mut KeyScratch::default()).unwrap_err());
            check(pool.install(|| family.keys_dense(rows, &mut keys, &mut KeyScratch::default())).unwrap_err());
            let matrix = csr(&values, width);
            check(family.keys_sparse(matrix.view(), &mut keys, &mut KeyScratch::default()).unwrap_err());
            assert!(keys.is_empty());
            if kind.has_alternatives() {
                let alone = &values[300 * width..301 * width];
                let error = Probes::default().find(&*family, alone, 2, &mut KeyScratch::default()).unwrap_err();
                assert!(matches!(error, HashError::NotFinite { row: 0, column: 17, .. }));
            }
        }
    }
}

#[test]
fn nothing_to_hash_gives_no_keys() {
    for kind in KINDS {
        let family = params(kind, 20, 3, 4, 3).build().unwrap();
        let mut keys = Keys::new(4);
        family.keys_dense(DenseRows::new(&[], 20), &mut keys, &mut KeyScratch::default()).unwrap();
        assert!(keys.is_empty());
        family.keys_sparse(csr(&[], 20).view(), &mut keys, &mut KeyScratch::default()).unwrap();
        assert!(keys.is_empty());
    }
}

#[test]
fn settings_go_through_json_and_seeds_change_the_keys() {
    let vector = &hard_rows(1, 20)[..];
    for kind in KINDS {
        let params = params(kind, 20, 3, 40, 3);
        let json = serde_json::to_string(&params).unwrap();
        assert!(json.contains(kind.name()), "{json}");
        let family = serde_json::from_str::<FamilyParams>(&json).unwrap().build().unwrap();
        assert_eq!(*family.params(), params);
        let own = params.build().unwrap();
        assert_eq!(keys_of(&*family, vector), keys_of(&*own, vector), "{kind:?}");
        let other = FamilyParams { seed: 4, ..params }.build().unwrap();
        assert_ne!(keys_of(&*other, vector), keys_of(&*own, vector), "{kind:?}");
        assert!(own.memory_bytes() > 0);
    }
}

#[test]
fn probabilities_rise_with_the_similarity_from_the_chance_of_unrelated_rows() {
    for kind in KINDS {
        let family = params(kind, 20, 3, 40, 3).build().unwrap();
        let p: Vec<f64> = (0..=20).map(|i| family.probability(f64::from(i) / 20.0)).collect();
        assert!(p.windows(2).all(|w| w[0] < w[1]), "{kind:?}: {p:?}");
        assert!((p[0] - kind.chance()).abs() < 1e-6 && (p[20] - 1.0).abs() < 1e-12, "{kind:?}");
    }
}

#[test]
#[should_panic(expected = "width of the rows, and of the family")]
fn rows_of_another_width_are_a_mistake_of_the_caller() {
    keys_of(&*params(FamilyKind::Wta { bin: 2 }, 20, 3, 4, 3).build().unwrap(), &[0.0; 19]);
}

#[test]
fn keys_stay_within_their_bits() {
    for kind in KINDS {
        for key_bits in [1, 5, 9, 31, 32] {
            let family = FamilyParams { key_bits, ..params(kind, 30, 12, 10, 1) }.build().unwrap();
            assert!(family.key_bits() <= key_bits);
            let keys = keys_of(&*family, &hard_rows(1, 30));
            assert!(keys.iter().all(|&key| u64::from(key) < 1 << family.key_bits()), "{kind:?}, {key_bits} bits");
        }
    }
}

#[test]
fn probes_are_what_a_small_change_of_the_vector_would_hash_to() {
    // One code a key: the second probe is the key of the vector pushed over the nearest border.
    for kind in KINDS.into_iter().filter(|k| k.has_alternatives()) {
        let family = params(kind, 16, 4, 50, 3).build().unwrap();
        let mut stream = Stream::new(1);
        let vector: Vec<f32> = (0..16).map(|_| stream.unit() as f32 - 0.5).collect();
        let (mut probes, mut scratch) = (Probes::default(), KeyScratch::default());
        probes.find(&*family, &vector, 16, &mut scratch).unwrap();
        let own = keys_of(&*family, &vector);
        // How often vectors a little off fall into each probe.
        let (mut hits, n) = ([0usize; 16], 400);
        for _ in 0..n {
            let moved: Vec<f32> = vector.iter().map(|v| v + 0.2 * (stream.unit() as f32 - 0.5)).collect();
            for (table, key) in keys_of(&*family, &moved).iter().enumerate() {
                let at = probes.keys(table).iter().position(|probe| probe == key);
                at.into_iter().for_each(|at| hits[at] += 1);
            }
        }
        for table in 0..50 {
            assert_eq!(probes.keys(table)[0], own[table], "{kind:?}");
            let mut of = probes.keys(table).to_vec();
            of.sort_unstable();
            of.dedup();
            assert_eq!(of.len(), 16, "{kind:?}: a probe twice");
        }
        assert!(hits[0] > hits[1] && hits[1] > 2 * hits[8] && hits[1] > hits[15], "{kind:?}: {hits:?}");
        let found: usize = hits.iter().sum();
        assert!(found > 9 * n * 50 / 10, "{kind:?}: {found} of {}", n * 50);
    }
}

#[test]
fn families_without_a_second_best_code_say_so() {
    let family = params(FamilyKind::Dwta { bin: 8, permutations: 1 }, 16, 4, 5, 3).build().unwrap();
    let error = Probes::default().find(&*family, &[1.0; 16], 2, &mut KeyScratch::default()).unwrap_err();
    assert_eq!(error.to_string(), "the family dwta has no alternative keys; sim-hash and wta have");
}
