//! Exact answers against a comparison of all rows in f64, and reported recall against what is truly found: three
//! metrics, twelve kinds of rows, few rows and many.
//!
//! `cargo test -p xc-ann --release --test exact -- --ignored --nocapture` does so with up to 100,000 rows and 200
//! queries, and prints a table (`bench/results/ann.md`).
#![allow(clippy::print_stdout)] // the table

use std::sync::atomic::{AtomicUsize, Ordering};
use xc_ann::{BuildParams, Index, Metric, SearchParams, SearchScratch, Silent, exact};
use xc_buffer::Cancel;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_sparse::rank::{RankedBatch, Scored};

const K: usize = 10;

/// Kinds of rows.
const KINDS: [&str; 12] = [
    "normal",
    "uniform, positive",
    "10,000 from the origin",
    "one column at 20,000",
    "metres of a map",
    "nearly parallel",
    "clusters 1e6 apart",
    "lengths of 8 decades",
    "lengths of 1e-23",
    "subnormal",
    "integers",
    "few distinct",
];

fn normal(stream: &mut Stream) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - stream.unit()).ln()).sqrt(), std::f64::consts::TAU * stream.unit());
    radius * angle.cos()
}

/// Rows and queries of a kind; the first half of the queries are rows.
fn made(kind: &str, n: usize, n_queries: usize, seed: u64) -> (Vec<f32>, Vec<f32>, usize) {
    let mut stream = Stream::new(seed);
    let width = if kind == "metres of a map" { 2 } else { 16 };
    let mut centres = vec![0.0; 12 * width];
    centres.iter_mut().for_each(|v| *v = 1e6 * normal(&mut stream));
    let row = |stream: &mut Stream| -> Vec<f32> {
        let (pick, decade) = (stream.below(12) as usize, 8.0 * stream.unit() - 4.0);
        let value = |column: usize| {
            let x = normal(stream);
            match kind {
                "uniform, positive" => stream.unit(),
                "10,000 from the origin" => 1e4 + x,
                "one column at 20,000" => x + if column == 0 { 2e4 } else { 0.0 },
                "metres of a map" => [4.5e5, 5.4e6][column] + 5e3 * stream.unit(),
                "nearly parallel" => 3e5 + x,
                "clusters 1e6 apart" => centres[pick * width + column] + x,
                "lengths of 8 decades" => x * 10f64.powf(decade),
                "lengths of 1e-23" => x * 1e-23,
                "subnormal" => x * 1e-41,
                "integers" => (2.0 * x).round(),
                "few distinct" => ((pick * 7 + column * 3) % 11) as f64 - 4.0,
                _ => x,
            }
        };
        (0..width).map(value).map(|v| v as f32).collect()
    };
    let rows: Vec<f32> = (0..n).flat_map(|_| row(&mut stream)).collect();
    let queries = (0..n_queries).flat_map(|query| {
        let fresh = row(&mut stream);
        if query < n_queries / 2 { rows[query % n * width..][..width].to_vec() } else { fresh }
    });
    let queries = queries.collect();
    (rows, queries, width)
}

/// A score in f64, and by how much rounding of sums may have moved it.
fn score(metric: Metric, a: &[f32], b: &[f32]) -> (f64, f64) {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    match metric {
        Metric::L2 => {
            let distance = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>();
            (-distance, 1e-14 * distance)
        }
        Metric::InnerProduct => (product(a, b), 1e-14 * lengths),
        Metric::Cosine => (product(a, b) / lengths, 1.5e-15),
    }
}

/// All rows that may be answers, best first.
fn by_hand(metric: Metric, rows: DenseRows<'_>, query: &[f32]) -> Vec<(f64, f64, u32)> {
    let has_direction = |row: &[f32]| metric != Metric::Cosine || row.iter().any(|v| *v != 0.0);
    if !has_direction(query) {
        return Vec::new();
    }
    let rows = (0u32..).zip(rows.iter()).filter(|(_, row)| has_direction(row));
    let mut all: Vec<(f64, f64, u32)> = rows
        .map(|(label, row)| {
            let (score, error) = score(metric, query, row);
            (score, error, label)
        })
        .collect();
    let best = all.len().min(3 * K);
    if best < all.len() {
        all.select_nth_unstable_by(best, |a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
        all.truncate(best);
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    all
}

/// Answers that are not those of a comparison by hand, but for ties.
fn wrong(
    metric: Metric,
    rows: DenseRows<'_>,
    query: &[f32],
    found: &[Scored],
    all: &[(f64, f64, u32)],
    n: usize,
) -> usize {
    let wanted = &all[..all.len().min(K)];
    assert_eq!(found.len(), wanted.len(), "answers of {n} rows");
    let mut labels: Vec<u32> = found.iter().map(|s| s.label).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), found.len(), "an answer stands twice");
    let differs = |(found, &(best, error, label)): (&Scored, &(f64, f64, u32))| {
        let (score, of_score) = score(metric, query, rows.row(found.label as usize));
        // Equal scores are answered in the order of rows.
        let is_tie = score == best && error == 0.0 && of_score == 0.0;
        let rounded = (score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 - found.score).abs();
        assert!(f64::from(rounded) <= of_score + 1e-7 * score.abs(), "{metric}: {} for {score}", found.score);
        (score - best).abs() > error + of_score || is_tie && found.label != label
    };
    found.iter().zip(wanted).filter(|pair| differs(*pair)).count()
}

/// The share of the ten best that are found; rows as good as the last of them count.
fn truly_found(
    metric: Metric,
    rows: DenseRows<'_>,
    queries: DenseRows<'_>,
    found: &RankedBatch,
    truth: &[Vec<(f64, f64, u32)>],
) -> f64 {
    let (mut hits, mut wanted) = (0, 0);
    for ((query, found), all) in queries.iter().zip(found.iter()).zip(truth) {
        let best = &all[..all.len().min(K)];
        let Some(&(last, error, _)) = best.last() else { continue };
        let is_hit = |s: &&Scored| {
            let (score, of_score) = score(metric, query, rows.row(s.label as usize));
            score >= last - error - of_score
        };
        hits += found.iter().take(best.len()).filter(is_hit).count();
        wanted += best.len();
    }
    if wanted == 0 { 1.0 } else { f64::from(hits as u32) / f64::from(wanted as u32) }
}

/// What was found of a kind of rows.
struct Cell {
    wrong: usize,
    promised: f64,
    reported: f64,
    truly: f64,
}

fn cell(metric: Metric, kind: &str, n: usize, n_queries: usize) -> Cell {
    let (rows, queries, width) = made(kind, n, n_queries, n as u64 + 7);
    let queries = DenseRows::new(&queries, width);
    let index = Index::build(rows, width, &BuildParams::new(metric), &Silent).expect("rows that an index may have");
    let rows = index.rows();
    let truth: Vec<Vec<(f64, f64, u32)>> = queries.iter().map(|query| by_hand(metric, rows, query)).collect();
    let best = exact(rows, queries, metric, K);
    let wrong_ones = queries
        .iter()
        .zip(best.iter())
        .zip(&truth)
        .map(|((query, found), all)| wrong(metric, rows, query, found, all, n));
    let wrong = wrong_ones.sum();
    let (found, _) = index.search_batch(queries, SearchParams::top(K), None).expect("queries");
    // What both find has the same score.
    for (found, best) in found.iter().zip(best.iter()) {
        for found in found {
            let same = best.iter().find(|best| best.label == found.label);
            assert!(same.is_none_or(|best| best.score.to_bits() == found.score.to_bits()), "{metric}, {kind}");
        }
    }
    Cell {
        wrong,
        promised: index.graph().fitted().map_or(1.0, |fitted| fitted.recall),
        reported: index.recall(queries, &found, &best),
        truly: truly_found(metric, rows, queries, &found, &truth),
    }
}

#[test]
fn exact_answers_and_reported_recall_are_those_of_f64() {
    for metric in Metric::ALL {
        for kind in KINDS {
            // Where there are many, products alone do not tell them apart.
            let is_far = ["10,000 from the origin", "one column at 20,000", "nearly parallel"].contains(&kind);
            for n in [1, 2, 31, 200, 2300].into_iter().filter(|&n| n < 1000 || is_far) {
                let Cell { wrong, reported, truly, .. } = cell(metric, kind, n, 60);
                assert_eq!(wrong, 0, "{metric}, {kind}, {n} rows");
                assert!((reported - truly).abs() < 0.01, "{metric}, {kind}, {n} rows: {reported} of {truly}");
            }
        }
    }
}

#[test]
#[ignore = "minutes, with a release build"]
fn exact_answers_and_reported_recall_of_up_to_100_000_rows() {
    println!("| rows | kind | l2 | cosine | ip |\n|---|---|---|---|---|");
    for n in [1, 2, 31, 200, 3000, 100_000] {
        for kind in KINDS {
            let cells = Metric::ALL.map(|metric| {
                let Cell { wrong, promised, reported, truly } = cell(metric, kind, n, 200);
                assert_eq!(wrong, 0, "{metric}, {kind}, {n} rows");
                assert!((reported - truly).abs() < 0.01, "{metric}, {kind}, {n} rows: {reported} of {truly}");
                format!("{wrong}; {promised:.3}, {reported:.3}, {truly:.3}")
            });
            println!("| {n} | {kind} | {} |", cells.join(" | "));
        }
    }
}

#[test]
fn fewer_answers_than_were_fitted_for_are_found_as_surely() {
    for n in [1, 3, 10, 31, 200, 450, 2000, 2001, 3000] {
        Metric::ALL.into_iter().for_each(|metric| fewer_are_found(metric, n, 200));
    }
}

#[test]
#[ignore = "minutes, with a release build"]
fn fewer_answers_of_up_to_100_000_rows_are_found_as_surely() {
    for n in (1..2000).step_by(37).chain([5000, 20_000, 100_000]) {
        Metric::ALL.into_iter().for_each(|metric| fewer_are_found(metric, n, 1000));
    }
}

/// What an index promises of its ten best is found of other queries, whether ten are sought or fewer.
fn fewer_are_found(metric: Metric, n: usize, n_queries: usize) {
    let (rows, _, width) = made("normal", n, 2, n as u64);
    let (queries, ..) = made("normal", n_queries, 2, n as u64 + 1_000_000);
    let queries = DenseRows::new(&queries, width);
    let index = Index::build(rows, width, &BuildParams::new(metric), &Silent).expect("rows of an index");
    for k in [1, 2, 3, 5, 10] {
        let (best, mut scratch, mut shares) = (index.exact(queries, k, None), SearchScratch::default(), Vec::new());
        for (query, best) in queries.iter().zip(best.iter()) {
            let found = index.nearest(query, k, &mut scratch).expect("a query");
            assert_eq!(found.len(), k.min(n));
            let n_found = found.iter().filter(|s| best.iter().any(|b| b.label == s.label)).count();
            shares.push(n_found as f64 / best.len() as f64);
        }
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let (error, target) = (squares.sqrt() / shares.len() as f64, index.graph().params().target_recall);
        assert!(mean >= target - 2.0 * error, "{metric}, {n} rows: {mean} of the {k} best, {error} off");
    }
}

#[test]
fn zeros_have_no_answers_and_do_not_stop_others() {
    for metric in Metric::ALL {
        let (mut rows, mut queries, width) = made("normal", 3000, 60, 3);
        rows[5 * width..7 * width].fill(0.0);
        for query in [0, 7, 59] {
            queries[query * width..][..width].fill(0.0);
        }
        queries[7 * width] = -0.0;
        let queries = DenseRows::new(&queries, width);
        let params = BuildParams { cells: Some(50), ..BuildParams::new(metric) };
        let index = Index::build_for(rows, width, Some(queries), &params, &Silent).expect("rows of an index");
        let mut scratch = SearchScratch::default();
        let all = [
            SearchParams::top(4).with_width(0.1),
            SearchParams::top(4).with_width(16.0),
            SearchParams::top(4).with_cells(9),
        ];
        for params in all {
            let (found, effort) = index.search_batch(queries, params, None).expect("queries");
            let (mut alone, mut total) = (Vec::new(), xc_ann::SearchStats::default());
            for (query, vector) in queries.iter().enumerate() {
                total += index.search(vector, params, None, &mut scratch, &mut alone).expect("a query");
                assert_eq!(found.row(query), &alone[..]);
                let is_zero = metric == Metric::Cosine && [0, 7, 59].contains(&query);
                assert_eq!(alone.len(), if is_zero { 0 } else { 4 }, "{metric}, {params:?}, {query}");
            }
            assert_eq!(effort, total);
        }
        let best = index.exact(queries, 4, None);
        assert!(best.iter().filter(|best| best.is_empty()).count() == if metric == Metric::Cosine { 3 } else { 0 });
    }
}

/// Asks to stop after so many questions.
struct After(AtomicUsize);

impl Cancel for After {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn exact_answers_are_whole_or_none() {
    let width = 4;
    let rows: Vec<f32> = (0..3000 * width).map(|i| (i * 37 % 101) as f32).collect();
    let queries = rows[..100 * width].to_vec();
    let queries = DenseRows::new(&queries, width);
    let index = Index::build(rows, width, &BuildParams::new(Metric::L2), &Silent).expect("rows of an index");
    let expected = index.exact(queries, 3, None);
    let (mut whole, mut none) = (0, 0);
    for questions in 0..40 {
        match index.exact_stoppable(queries, 3, None, &After(AtomicUsize::new(questions))) {
            Some(found) => {
                assert_eq!(found.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
                whole += 1;
            }
            None => none += 1,
        }
    }
    assert!(whole > 0 && none > 5, "{whole} whole, {none} none");
}
