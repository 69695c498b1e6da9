//! Tables against maps from key to items, their fairness, and the probability that they find
//! something.

use crate::draws::{self, assert_share, cosine, normals, pair, params};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::{BatchFound, By, Query, QueryLimits, QueryScratch, Tables, TablesState, TablesStateError};
use xc_lsh::{Family, FamilyKind, KeyScratch, Keys, Minima, Projection, TableSizing, theory};
use xc_sparse::CsrMatrix;

const SIM_HASH: FamilyKind = FamilyKind::SimHash { projection: Projection::Gaussian };

fn in_pool<R: Send>(threads: usize, body: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(body)
}

/// Items of each table by key, from keys that were computed row by row.
fn maps(family: &dyn Family, vectors: &[f32]) -> Vec<BTreeMap<u32, BTreeSet<u32>>> {
    let mut maps = vec![BTreeMap::new(); family.params().n_tables as usize];
    for (item, vector) in vectors.chunks_exact(family.params().width).enumerate() {
        for (map, key) in maps.iter_mut().zip(draws::keys_of(family, vector)) {
            map.entry(key).or_insert_with(BTreeSet::new).insert(item as u32);
        }
    }
    maps
}

fn union(maps: &[BTreeMap<u32, BTreeSet<u32>>], keys: &[u32]) -> BTreeSet<u32> {
    maps.iter().zip(keys).flat_map(|(map, key)| map.get(key).into_iter().flatten().copied()).collect()
}

fn found(tables: &Tables, keys: &[u32], turn: u64, limits: QueryLimits, excluded: &[u32]) -> Vec<u32> {
    answer(tables, Query { by: By::Keys(keys), turn, excluded }, limits)
}

fn answer(tables: &Tables, query: Query<'_>, limits: QueryLimits) -> Vec<u32> {
    let mut found = Vec::new();
    let counts = tables.query(query, limits, &mut QueryScratch::default(), &mut found);
    assert_eq!((counts.queries, counts.candidates), (1, found.len()));
    assert_eq!((counts.empty == 1, counts.capped == 1), (found.is_empty(), found.len() >= limits.candidates));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_query_finds_what_shares_a_key_with_it(
        n in 0usize..300, n_tables in 1u32..80, n_codes in 1u32..6, seed in any::<u64>(), turn in any::<u64>()
    ) {
        let mut stream = Stream::new(seed);
        let vectors = normals(&mut stream, n * 8);
        let family = params(SIM_HASH, 8, n_codes, n_tables, seed).build().unwrap();
        let maps = maps(&*family, &vectors);
        let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 8), &mut KeyScratch::default()).unwrap();
        prop_assert_eq!((tables.n_items(), tables.n_tables()), (n, n_tables as usize));
        let query = normals(&mut stream, 8);
        let keys = draws::keys_of(&*family, &query);
        let expected = union(&maps, &keys);
        let all = found(&tables, &keys, turn, QueryLimits::NONE, &[]);
        prop_assert_eq!(all.len(), expected.len());
        prop_assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), expected.clone());
        // Excluded items are missing, and nothing else.
        let excluded: Vec<u32> = (0..n as u32).step_by(3).collect();
        let rest: BTreeSet<u32> = found(&tables, &keys, turn, QueryLimits::NONE, &excluded).into_iter().collect();
        prop_assert_eq!(rest, expected.iter().copied().filter(|item| item % 3 != 0).collect::<BTreeSet<_>>());
        // Limits cut, and give nothing that is not there.
        for candidates in [0, 1, 7] {
            let some = found(&tables, &keys, turn, QueryLimits { candidates, per_bucket: 2 }, &[]);
            prop_assert!(some.len() <= candidates && some.iter().all(|item| expected.contains(item)));
            let some = found(&tables, &keys, turn, QueryLimits { candidates, per_bucket: usize::MAX }, &[]);
            prop_assert_eq!(some.len(), candidates.min(expected.len()));
        }
    }

    #[test]
    fn an_item_that_moved_is_found_under_both_keys_until_its_table_is_sorted(
        n in 1usize..200, n_tables in 1u32..10, seed in any::<u64>(), moves in prop::collection::btree_set(0usize..200, 0..60)
    ) {
        let mut stream = Stream::new(seed);
        let mut vectors = normals(&mut stream, n * 6);
        let family = params(SIM_HASH, 6, 4, n_tables, seed).build().unwrap();
        let before = maps(&*family, &vectors);
        let mut tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 6), &mut KeyScratch::default()).unwrap();
        let items: Vec<u32> = moves.into_iter().filter(|&item| item < n).map(|item| item as u32).collect();
        let fresh = normals(&mut stream, items.len() * 6);
        for (&item, vector) in items.iter().zip(fresh.chunks_exact(6)) {
            vectors[item as usize * 6..][..6].copy_from_slice(vector);
        }
        let mut keys = Keys::new(n_tables as usize);
        family.keys_dense(DenseRows::new(&fresh, 6), &mut keys, &mut KeyScratch::default()).unwrap();
        let after = maps(&*family, &vectors);
        let n_changed = tables.update(&items, &keys);
        prop_assert_eq!(tables.stats().n_overflow, n_changed);
        prop_assert_eq!(tables.update(&items, &keys), 0);
        let query = draws::keys_of(&*family, &normals(&mut stream, 6));
        let of_both: BTreeSet<u32> = union(&before, &query).union(&union(&after, &query)).copied().collect();
        let got: BTreeSet<u32> = found(&tables, &query, 3, QueryLimits::NONE, &[]).into_iter().collect();
        prop_assert_eq!(got, of_both);
        let half = n_tables as usize / 2;
        tables.sort(0..half);
        tables.sort(half..n_tables as usize);
        let built = Tables::of_dense(&*family, DenseRows::new(&vectors, 6), &mut KeyScratch::default()).unwrap();
        prop_assert_eq!(tables.stats(), built.stats());
        for item in 0..n as u32 {
            let own = tables.keys_of(item);
            prop_assert_eq!(own, built.keys_of(item));
            prop_assert_eq!(found(&tables, own, 5, QueryLimits::NONE, &[]), found(&built, own, 5, QueryLimits::NONE, &[]));
        }
    }

    #[test]
    fn restored_tables_answer_as_before_and_go_on_alike(
        n in 1usize..120, n_tables in 1u32..7, seed in any::<u64>(), steps in prop::collection::vec((any::<u64>(), 0usize..7), 0..5)
    ) {
        let mut stream = Stream::new(seed);
        let family = params(SIM_HASH, 6, 4, n_tables, seed).build().unwrap();
        let vectors = normals(&mut stream, n * 6);
        let mut tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 6), &mut KeyScratch::default()).unwrap();
        let step = |tables: &mut Tables, (step, sorted): (u64, usize)| {
            let items: Vec<u32> = (0..n as u32).filter(|&item| step >> (item % 64) & 1 == 1).collect();
            let fresh = normals(&mut Stream::new(step), items.len() * 6);
            let mut keys = Keys::new(n_tables as usize);
            family.keys_dense(DenseRows::new(&fresh, 6), &mut keys, &mut KeyScratch::default()).unwrap();
            tables.update(&items, &keys);
            if sorted < tables.n_tables() {
                tables.sort(sorted..sorted + 1);
            }
        };
        steps.iter().for_each(|&s| step(&mut tables, s));
        let mut restored = Tables::restore(n_tables as usize, tables.key_bits(), tables.state()).unwrap();
        for more in 0..2 {
            prop_assert_eq!(restored.state(), tables.state());
            prop_assert_eq!(restored.stats(), tables.stats());
            for turn in 0..20 {
                let keys = draws::keys_of(&*family, &normals(&mut stream, 6));
                let limits = QueryLimits { candidates: 20, per_bucket: 3 };
                prop_assert_eq!(found(&restored, &keys, turn, limits, &[]), found(&tables, &keys, turn, limits, &[]));
            }
            step(&mut tables, (seed ^ more, 0));
            step(&mut restored, (seed ^ more, 0));
        }
    }

    #[test]
    fn many_queries_are_single_ones_at_any_number_of_threads(n in 0usize..40, threads in 1usize..4, seed in any::<u64>()) {
        let mut stream = Stream::new(seed);
        let family = params(SIM_HASH, 6, 3, 9, seed).build().unwrap();
        let vectors = normals(&mut stream, 60 * 6);
        let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 6), &mut KeyScratch::default()).unwrap();
        let labels: Vec<Vec<u32>> = (0..n).map(|i| (0..i as u32 % 4).map(|_| stream.below(60)).collect()).collect();
        let limits = QueryLimits { candidates: 30, per_bucket: 6 };
        let query = |i: usize| Query { by: By::Items(&labels[i]), turn: i as u64, excluded: &labels[i] };
        let mut many = BatchFound::default();
        for _ in 0..2 {
            let counts = in_pool(threads, || tables.query_many(n, limits, &mut many, query));
            prop_assert_eq!(many.len(), n);
            let (mut sum, mut scratch, mut one) = (xc_lsh::tables::QueryCounts::default(), QueryScratch::default(), Vec::new());
            for i in 0..n {
                sum += tables.query(query(i), limits, &mut scratch, &mut one);
                prop_assert_eq!(many.list(i), &one);
            }
            prop_assert_eq!(counts, sum);
        }
    }

    #[test]
    fn a_query_by_items_finds_what_shares_a_key_with_one_of_them(n in 1usize..200, seed in any::<u64>(), turn in any::<u64>()) {
        let mut stream = Stream::new(seed);
        let vectors = normals(&mut stream, n * 6);
        let family = params(SIM_HASH, 6, 5, 7, seed).build().unwrap();
        let maps = maps(&*family, &vectors);
        let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 6), &mut KeyScratch::default()).unwrap();
        let items: Vec<u32> = (0..3).map(|_| stream.below(n as u32)).collect();
        let expected: BTreeSet<u32> = items.iter().flat_map(|&item| union(&maps, tables.keys_of(item))).collect();
        let got = answer(&tables, Query { by: By::Items(&items), turn, excluded: &[] }, QueryLimits::NONE);
        prop_assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn threads_change_neither_tables_nor_answers() {
    let vectors = normals(&mut Stream::new(1), 20_000 * 4);
    let family = params(SIM_HASH, 4, 6, 7, 1).build().unwrap();
    let run = |threads| {
        in_pool(threads, || {
            let mut tables =
                Tables::of_dense(&*family, DenseRows::new(&vectors, 4), &mut KeyScratch::default()).unwrap();
            let items: Vec<u32> = (0..20_000).step_by(7).collect();
            let moved: Vec<f32> =
                items.iter().flat_map(|&i| vectors[4 * i as usize..][..4].iter().map(|v| -v)).collect();
            let mut keys = Keys::new(7);
            family.keys_dense(DenseRows::new(&moved, 4), &mut keys, &mut KeyScratch::default()).unwrap();
            tables.update(&items, &keys);
            tables.sort(2..4);
            let limits = QueryLimits { candidates: 300, per_bucket: 100 };
            (0..50).map(|i| found(&tables, keys.row(i), i as u64, limits, &[])).collect::<Vec<_>>()
        })
    };
    let one = run(1);
    assert!(one.iter().all(|found| found.len() == 300));
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn over_many_turns_each_table_comes_first_and_each_item_of_a_bucket_is_taken_equally_often() {
    // All items share one bucket: a single limit decides who is taken.
    let vectors = [1.0f32, 2.0].repeat(40);
    let family = params(SIM_HASH, 2, 3, 5, 1).build().unwrap();
    let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 2), &mut KeyScratch::default()).unwrap();
    let keys = draws::keys_of(&*family, &[1.0, 2.0]);
    let n = 20_000;
    let mut taken = [0usize; 40];
    for turn in 0..n {
        for item in found(&tables, &keys, turn, QueryLimits { candidates: 8, per_bucket: 8 }, &[]) {
            taken[item as usize] += 1;
        }
    }
    taken.iter().enumerate().for_each(|(item, &count)| assert_share(count, n as usize, 0.2, &format!("item {item}")));
    // Five vectors that differ: the first one found tells which table came first.
    let mut stream = Stream::new(5);
    let vectors = normals(&mut stream, 5 * 16);
    let family = params(SIM_HASH, 16, 12, 5, 2).build().unwrap();
    let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 16), &mut KeyScratch::default()).unwrap();
    let own: Vec<Vec<u32>> = vectors.chunks_exact(16).map(|vector| draws::keys_of(&*family, vector)).collect();
    // Table t gets the key of item t.
    let keys: Vec<u32> = (0..5).map(|t| own[t][t]).collect();
    let maps = maps(&*family, &vectors);
    assert!((0..5).all(|t| maps[t][&keys[t]].len() == 1), "every bucket holds one item");
    let mut first = [0usize; 5];
    (0..n).for_each(|turn| {
        first[found(&tables, &keys, turn, QueryLimits { candidates: 1, per_bucket: 9 }, &[])[0] as usize] += 1
    });
    first.iter().enumerate().for_each(|(t, &count)| assert_share(count, n as usize, 0.2, &format!("table {t}")));
}

/// Looks for vectors by similar ones in tables drawn anew for each hundred pairs, at ever larger
/// similarity; `p` is the probability that a code agrees.
fn assert_found_as_often_as_theory_says(
    kind: FamilyKind,
    n_codes: u32,
    n_tables: u32,
    pair: impl Fn(&mut Stream, f32) -> (Vec<f32>, Vec<f32>),
    p: impl Fn(&dyn Family, &[f32], &[f32]) -> f64,
) {
    let mut last = 0.0;
    for similarity in [0.0, 0.5, 0.8, 0.95] {
        let (mut hits, mut n, mut expected, mut variance) = (0.0, 0.0, 0.0, 0.0);
        for seed in 0..60 {
            let mut stream = Stream::new(1000 * seed + u64::from(n_codes));
            let pairs: Vec<_> = (0..100).map(|_| pair(&mut stream, similarity)).collect();
            let items: Vec<f32> = pairs.iter().flat_map(|(x, _)| x.iter().copied()).collect();
            let width = pairs[0].0.len();
            let family = params(kind, width, n_codes, n_tables, seed).build().unwrap();
            let tables = Tables::of_dense(&*family, DenseRows::new(&items, width), &mut KeyScratch::default()).unwrap();
            for (item, (x, y)) in pairs.iter().enumerate() {
                let keys = draws::keys_of(&*family, y);
                let is_found = found(&tables, &keys, 0, QueryLimits::NONE, &[]).contains(&(item as u32));
                let p = theory::inclusion(p(&*family, x, y), n_codes, n_tables);
                hits += f64::from(is_found);
                n += 1.0;
                expected += p;
                variance += p * (1.0 - p);
            }
        }
        // Pairs of one draw of functions are not quite independent: twice the spread of independent
        // ones, and five of those.
        let spread = variance.sqrt();
        let far = (hits - expected).abs() > 10.0 * spread.max(1.0);
        assert!(!far, "{kind:?}, {similarity}: {hits} of {n}, expected {expected}");
        assert!(hits >= last, "{kind:?}, {similarity}: {hits} after {last}");
        last = hits;
    }
}

#[test]
fn tables_find_a_vector_with_the_probability_of_theory() {
    for (n_codes, n_tables) in [(4, 5), (9, 12)] {
        let of_angle = |family: &dyn Family, x: &[f32], y: &[f32]| family.probability(cosine(x, y));
        assert_found_as_often_as_theory_says(SIM_HASH, n_codes, n_tables, |s, c| pair(s, 24, c), of_angle);
    }
    let of_order = |_: &dyn Family, x: &[f32], y: &[f32]| theory::winner_of(x, y, 8);
    assert_found_as_often_as_theory_says(FamilyKind::Wta { bin: 8 }, 3, 20, |s, c| pair(s, 24, c), of_order);
}

#[test]
fn tables_find_a_set_with_the_probability_of_theory() {
    // Forty elements of 400; a share of them in both sets.
    let sets = |stream: &mut Stream, share: f32| {
        let mut elements: Vec<usize> = (0..400).collect();
        stream.shuffle(&mut elements);
        let mut rows = (vec![0.0; 400], vec![0.0; 400]);
        for at in 0..40 {
            rows.0[elements[at]] = 1.0;
            rows.1[elements[if at as f32 <= 40.0 * share { at } else { 40 + at }]] = 1.0;
        }
        rows
    };
    let of_share = |family: &dyn Family, x: &[f32], y: &[f32]| {
        let both = x.iter().zip(y).filter(|(a, b)| **a * **b > 0.0).count() as f64;
        family.probability(both / (80.0 - both))
    };
    for minima in [Minima::Classic, Minima::OnePermutation] {
        let kind = FamilyKind::MinHash { minima, code_bits: 4 };
        assert_found_as_often_as_theory_says(kind, 3, 10, sets, of_share);
    }
}

#[test]
fn sparse_rows_and_rows_without_values() {
    let matrix = CsrMatrix::from_checked(
        (4, 9),
        vec![0, 2, 2, 4, 6],
        vec![0, 3, 0, 3, 5, 8],
        vec![1.0, 2.0, 1.0, 2.0, 3.0, 1.0],
    );
    let family = params(FamilyKind::dwta_for(4, 3, 6, 2), 9, 3, 6, 1).build().unwrap();
    let tables = Tables::of_sparse(&*family, matrix.view(), &mut KeyScratch::default()).unwrap();
    assert_eq!(tables.stats().n_zero, 1);
    let found = found(&tables, tables.keys_of(0), 0, QueryLimits::NONE, &[]);
    assert!(found.contains(&0) && found.contains(&2) && !found.contains(&1), "{found:?}");
    let none = Tables::of_dense(&*family, DenseRows::new(&[], 9), &mut KeyScratch::default()).unwrap();
    assert_eq!((none.n_items(), none.stats().n_filled), (0, 0));
    let bad =
        Tables::of_dense(&*family, DenseRows::new(&[[0.0; 9], [f32::NAN; 9]].concat(), 9), &mut KeyScratch::default());
    assert_eq!(bad.unwrap_err().to_string(), "row 1, column 0: NaN, expected a finite number");
}

#[test]
fn a_scratch_survives_a_query_that_panics() {
    let family = params(SIM_HASH, 2, 3, 4, 1).build().unwrap();
    let tables =
        Tables::of_dense(&*family, DenseRows::new(&[1.0, 2.0].repeat(9), 2), &mut KeyScratch::default()).unwrap();
    let keys = draws::keys_of(&*family, &[1.0, 2.0]);
    let (mut scratch, mut found) = (QueryScratch::default(), Vec::new());
    for (keys, excluded) in [(&[9, 9, 9, 9][..], &[][..]), (&keys, &[0, 9]), (&keys[..3], &[])] {
        let query = Query { by: By::Keys(keys), turn: 0, excluded };
        let mut ask = || tables.query(query, QueryLimits::NONE, &mut scratch, &mut found);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut ask)).is_err());
    }
    let query = Query { by: By::Keys(&keys), turn: 0, excluded: &[] };
    tables.query(query, QueryLimits::NONE, &mut scratch, &mut found);
    assert_eq!(found.len(), 9);
}

#[test]
fn over_many_turns_each_item_of_a_query_comes_first_equally_often() {
    // Two items in buckets of their own, and one candidate allowed.
    let tables = Tables::of_keys(2, Keys::from_rows(3, vec![0, 0, 0, 1, 1, 1, 2, 2, 2]));
    let limits = QueryLimits { candidates: 1, per_bucket: 9 };
    let mut first = [0usize; 3];
    for turn in 0..20_000 {
        first[answer(&tables, Query { by: By::Items(&[0, 2]), turn, excluded: &[] }, limits)[0] as usize] += 1;
    }
    assert_eq!(first[1], 0);
    assert_share(first[0], 20_000, 0.5, "the first item comes first");
}

#[test]
fn counts_say_what_was_read_and_where_limits_cut() {
    // Items 0 to 3 share a bucket in both tables, item 4 is alone.
    let tables = Tables::of_keys(1, Keys::from_rows(2, vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 1]));
    let mut scratch = QueryScratch::default();
    let mut count = |by, excluded, candidates, per_bucket| {
        let query = Query { by, turn: 0, excluded };
        let c = tables.query(query, QueryLimits { candidates, per_bucket }, &mut scratch, &mut Vec::new());
        (c.buckets, c.entries, c.candidates, c.cut_buckets, c.capped, c.empty)
    };
    assert_eq!(count(By::Keys(&[0, 0]), &[], 9, 9), (2, 8, 4, 0, 0, 0));
    let cut = count(By::Keys(&[0, 0]), &[], 9, 3);
    assert!((cut.0, cut.1, cut.3) == (2, 6, 2) && (3..=4).contains(&cut.2), "{cut:?}");
    assert_eq!(count(By::Keys(&[0, 0]), &[], 2, 9).4, 1);
    assert_eq!(count(By::Items(&[4]), &[4], 9, 9), (2, 2, 0, 0, 0, 1));
    assert_eq!(count(By::Items(&[]), &[], 9, 9), (0, 0, 0, 0, 0, 1));
}

#[test]
fn arrays_that_make_no_tables_are_errors() {
    let tables = Tables::of_keys(2, Keys::from_rows(2, vec![0, 1, 2, 3]));
    let good = tables.state();
    let restore = |state: TablesState<'_>| Tables::restore(2, 2, state).map(|_| ()).unwrap_err();
    let key = restore(TablesState { keys: vec![0, 1, 4, 3].into(), ..good.clone() });
    assert_eq!(key, TablesStateError::Key { item: 1, key: 4, key_bits: 2 });
    let ends = |ends: [u64; 2], changes: &[u32]| {
        restore(TablesState { ends: ends.to_vec(), changes: changes.to_vec(), ..good.clone() })
    };
    let divide = TablesStateError::Ends { n_changes: 1, n_tables: 2 };
    assert_eq!((ends([1, 0], &[0, 2, 1]), ends([1, 2], &[0, 2, 1])), (divide, divide));
    // Item 1 has key 2 in table 0: a change to another key, of an item that is not there, from no
    // key.
    for (change, item, key) in [([0, 3, 1], 1, 3), ([0, 2, 2], 2, 2), ([4, 2, 1], 1, 2)] {
        assert_eq!(ends([1, 1], &change), TablesStateError::Change { table: 0, at: 0, item, key });
    }
}

#[test]
fn tables_of_any_size_find_as_many_unrelated_items_as_were_wanted() {
    for (kind, n, width) in
        [(FamilyKind::Wta { bin: 8 }, 10_000, 128), (SIM_HASH, 10_000, 64), (FamilyKind::Wta { bin: 8 }, 100_000, 64)]
    {
        let sizing = TableSizing::try_new(n as u64, 50, 300.0, kind, width).unwrap();
        let family = sizing.params(3).build().unwrap();
        let mut stream = Stream::new(n as u64);
        let vectors = normals(&mut stream, n * width);
        let tables = Tables::of_dense(&*family, DenseRows::new(&vectors, width), &mut KeyScratch::default()).unwrap();
        let (mut scratch, mut found, mut sum) = (QueryScratch::default(), Vec::new(), 0);
        for _ in 0..400 {
            let keys = draws::keys_of(&*family, &normals(&mut stream, width));
            let query = Query { by: By::Keys(&keys), turn: 0, excluded: &[] };
            sum += tables.query(query, QueryLimits::NONE, &mut scratch, &mut found).candidates;
        }
        let (union, expected) = (sum as f64 / 400.0, sizing.expected_candidates());
        assert!((union / 300.0 - 1.0).abs() < 0.1, "{kind:?} of {n} labels: {union}, expected {expected}: {sizing:?}");
    }
}
