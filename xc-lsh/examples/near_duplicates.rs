//! Near-duplicate texts by MinHash: candidates from tables, then the exact Jaccard similarity of
//! their sets of three-word shingles; beside them all pairs, counted exactly.
//!
//! `cargo run --release -p xc-lsh --example near_duplicates [TEXTS.jsonl]` (objects with a field
//! `text`)

#![allow(clippy::print_stdout)]

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::time::Instant;
use xc_hash::murmur3_32;
use xc_lsh::tables::{BatchFound, By, Query, QueryLimits, Tables};
use xc_lsh::{Family, FamilyKind, FamilyParams, KeyScratch, Keys, MinHash, Minima};

/// Pairs of at least this similarity are near-duplicates.
const THRESHOLD: f64 = 0.7;

/// What runs without a file.
const TEXTS: [&str; 8] = [
    "plays chess against the computer with an adjustable strength and a book of openings for beginners",
    "plays chess against the computer with an adjustable strength and a book of openings for experts",
    "draws maps from survey points and prints them at any scale on paper or to a file",
    "development headers of the library that draws maps from survey points and prints them at any scale",
    "a small server that keeps the clocks of a local network within a millisecond of each other",
    "a small server that keeps the clocks of a local network within a millisecond of each other",
    "reads weather stations over a serial line and stores what they say in a table for each day",
    "checks the spelling of comments in source code in eleven languages and knows common abbreviations",
];

/// What was found.
pub struct Report {
    /// Pairs that share a key in some table.
    pub candidates: usize,
    /// Of these, pairs that are near-duplicates.
    pub found: usize,
    /// All pairs that are.
    pub exact: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(path) => {
            let file = std::fs::read_to_string(path)?;
            let text = |line: &str| -> Result<String, Box<dyn Error>> {
                let value: serde_json::Value = serde_json::from_str(line)?;
                Ok(value["text"].as_str().ok_or("a line without a field text")?.to_owned())
            };
            run(&file.lines().map(text).collect::<Result<Vec<_>, _>>()?)
        }
        None => run(&TEXTS),
    }
    .map(|_| ())
}

/// Looks for the near-duplicates of the texts that are built in.
///
/// # Errors
/// There are no such functions.
pub fn of_built_in_texts() -> Result<Report, Box<dyn Error>> {
    run(&TEXTS)
}

fn run(texts: &[impl AsRef<str>]) -> Result<Report, Box<dyn Error>> {
    let sets: Vec<Vec<u64>> = texts.iter().map(|text| shingles(text.as_ref())).collect();
    // Found by 1 - (1 - s^4)^30: 99.97 % at the threshold, 5 % at a similarity of 0.2.
    let kind = FamilyKind::MinHash { minima: Minima::Classic, code_bits: 8 };
    let params = FamilyParams { kind, width: 1, n_codes: 4, n_tables: 30, key_bits: 20, seed: 1 };
    let (begin, family) = (Instant::now(), MinHash::new(params)?);
    let (mut keys, mut scratch) = (vec![0; sets.len() * 30], KeyScratch::default());
    for (set, keys) in sets.iter().zip(keys.chunks_exact_mut(30)) {
        family.hash_set(set, keys, &mut scratch);
    }
    let tables = Tables::of_keys(family.key_bits(), Keys::from_rows(30, keys));
    let mut found = BatchFound::default();
    let items: Vec<u32> = (0..sets.len() as u32).collect();
    tables.query_many(items.len(), QueryLimits::NONE, &mut found, |i| Query {
        by: By::Items(&items[i..=i]),
        turn: 0,
        excluded: &items[i..=i],
    });
    let mut pairs = 0;
    let mut near = BTreeSet::new();
    for &a in &items {
        for &b in found.list(a as usize).iter().filter(|&&b| a < b) {
            pairs += 1;
            if jaccard(&sets[a as usize], &sets[b as usize]) >= THRESHOLD {
                near.insert((a, b));
            }
        }
    }
    let by_tables = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let exact = all_pairs(&sets);
    let by_counting = begin.elapsed().as_secs_f64();
    let report = Report { candidates: pairs, found: near.intersection(&exact).count(), exact: exact.len() };
    println!(
        r#"{{"texts": {}, "threshold": {THRESHOLD}, "candidates": {pairs}, "near_duplicates": {}, "exact": {}, "precision_of_candidates": {:.4}, "recall": {:.4}, "tables_s": {by_tables:.2}, "all_pairs_s": {by_counting:.2}}}"#,
        sets.len(),
        report.found,
        report.exact,
        report.found as f64 / report.candidates.max(1) as f64,
        report.found as f64 / report.exact.max(1) as f64,
    );
    Ok(report)
}

/// Hashed runs of three words, ascending and each once.
fn shingles(text: &str) -> Vec<u64> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let hash = |run: &[&str]| {
        let run = run.join(" ");
        u64::from(murmur3_32(run.as_bytes(), 1)) << 32 | u64::from(murmur3_32(run.as_bytes(), 2))
    };
    words.windows(3).map(hash).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The common share of two ascending sets.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let common = a.iter().filter(|element| b.binary_search(element).is_ok()).count();
    common as f64 / (a.len() + b.len() - common).max(1) as f64
}

/// Near-duplicates among all pairs that share a shingle.
fn all_pairs(sets: &[Vec<u64>]) -> BTreeSet<(u32, u32)> {
    let mut of_shingle: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut near = BTreeSet::new();
    let mut common = vec![0usize; sets.len()];
    for (b, set) in sets.iter().enumerate() {
        let mut touched = Vec::new();
        for element in set {
            let before = of_shingle.entry(*element).or_default();
            for &a in &*before {
                if common[a as usize] == 0 {
                    touched.push(a);
                }
                common[a as usize] += 1;
            }
            before.push(b as u32);
        }
        for a in touched {
            let shared = std::mem::take(&mut common[a as usize]);
            let all = sets[a as usize].len() + set.len() - shared;
            if shared as f64 >= THRESHOLD * all as f64 {
                near.insert((a, b as u32));
            }
        }
    }
    near
}
