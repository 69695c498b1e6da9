//! Times the full scan, the exact walk and walks with a budget, one query after another on one
//! thread, in milliseconds of processor time.
//!
//! ```sh
//! cargo bench -p xc-mach --bench decode_bench -- --labels 50000000 --buckets 20000 --repetitions 32
//! cargo bench -p xc-mach --bench decode_bench -- --labels 50000000 --seed 7 --scores probabilities.npy
//! ```
//!
//! Without `--scores FILE.npy` (f32, shape queries x repetitions x buckets, as the classifiers of
//! the seed's first repetitions gave them) distributions are made up: the softmax of normal noise,
//! where the buckets of a few true labels are lifted in every repetition. `--set
//! peaked|middling|weak|flat` and `--decoder mean|min|median` choose; `--queries` says how many,
//! `--k` one of 1, 10 and 100.
//! The first exact answers are compared with the scan's.
#![allow(clippy::print_stdout)]

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_mach::{Assignment, BucketScores, Certificate, DecodeScratch, Decoder, Effort};
use xc_sparse::rank::Scored;

type Failure = Box<dyn std::error::Error>;

/// Options of the form `--name value`.
struct Options(BTreeMap<String, String>);

impl Options {
    fn parse() -> Result<Self, Failure> {
        let (mut map, mut words) = (BTreeMap::new(), std::env::args().skip(1).filter(|word| word != "--bench"));
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("{word}: expected --name"))?;
            map.insert(name.to_owned(), words.next().ok_or_else(|| format!("--{name}: no value"))?);
        }
        Ok(Self(map))
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, Failure> {
        let given = self.0.get(name).map(|v| v.parse().map_err(|e| format!("--{name} {v}: {e}")));
        Ok(given.transpose()?.unwrap_or(default))
    }
}

/// Queries of one kind: R x B numbers each.
struct Queries {
    name: String,
    rows: Vec<Vec<f32>>,
}

/// Reads a version 1 `.npy` file of little-endian f32 with three dimensions.
fn read_npy(path: &str, limit: usize) -> Result<(Queries, usize, usize), Failure> {
    use std::io::Read;
    let mut file = std::fs::File::open(path)?;
    let mut start = [0u8; 10];
    file.read_exact(&mut start)?;
    let mut header = vec![0u8; usize::from(u16::from_le_bytes([start[8], start[9]]))];
    file.read_exact(&mut header)?;
    let header = String::from_utf8(header)?;
    let inside = header.split_once("'shape': (").and_then(|(_, s)| s.split_once(')')).ok_or("no shape")?.0;
    let shape: Vec<usize> = inside.split(',').map(|s| s.trim().parse()).collect::<Result<_, _>>()?;
    let &[n_queries, n_repetitions, n_buckets] = &shape[..] else { return Err("expected three dimensions".into()) };
    if !header.contains("'<f4'") || header.contains("'fortran_order': True") {
        return Err("expected little-endian f32 in C order".into());
    }
    let mut rows = Vec::new();
    let mut bytes = vec![0u8; 4 * n_repetitions * n_buckets];
    for _ in 0..n_queries.min(limit) {
        file.read_exact(&mut bytes)?;
        rows.push(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect());
    }
    Ok((Queries { name: path.to_owned(), rows }, n_repetitions, n_buckets))
}

/// A standard normal number, from two uniform ones.
fn normal(rng: &mut Xoshiro256PlusPlus) -> f32 {
    let unit = |rng: &mut Xoshiro256PlusPlus| ((rng.next_u64() >> 40) as f32 + 0.5) / (1u64 << 24) as f32;
    let (a, b) = (unit(rng), unit(rng));
    (-2.0 * a.ln()).sqrt() * (std::f32::consts::TAU * b).cos()
}

/// Made-up distributions. The logits are noise; the buckets of `lifts.len()` labels are lifted by
/// so much and noise again.
fn made_up(assignment: &Assignment, name: &str, spread: f32, lifts: &[f32], n_queries: usize, seed: u64) -> Queries {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let n_buckets = assignment.n_buckets();
    let mut rows = Vec::new();
    for _ in 0..n_queries {
        let mut row: Vec<f32> =
            (0..assignment.n_repetitions() * n_buckets).map(|_| spread * normal(&mut rng)).collect();
        for &lift in lifts {
            let label = (rng.next_u64() % assignment.n_labels() as u64) as u32;
            for position in 0..assignment.n_repetitions() {
                let at = position * n_buckets + assignment.bucket(position, label) as usize;
                row[at] = row[at].max(lift + 0.7 * normal(&mut rng));
            }
        }
        for logits in row.chunks_mut(n_buckets) {
            let largest = logits.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
            logits.iter_mut().for_each(|z| *z = (*z - largest).exp());
            let sum: f32 = logits.iter().sum();
            logits.iter_mut().for_each(|p| *p /= sum);
        }
        rows.push(row);
    }
    Queries { name: name.to_owned(), rows }
}

/// Processor time of this process in ms.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// Anonymous memory of this process in MB.
fn anonymous_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

fn measure(assignment: &Assignment, queries: &Queries, decoder: Decoder, ks: &[usize]) -> Result<(), Failure> {
    let before = anonymous_mb();
    let mut scratch = DecodeScratch::default();
    let (mut best, mut scanned) = (Vec::new(), Vec::new());
    let shape = (assignment.n_repetitions(), assignment.n_buckets());
    let check = |row| BucketScores::try_new(row, shape.0, shape.1);
    // The scan's time hardly depends on k, and not on the numbers: a few queries are enough.
    let mut scan_ms = Vec::new();
    for row in queries.rows.iter().take(3) {
        let start = cpu_ms();
        assignment.scan(&check(row)?, decoder, 10, &mut scratch, &mut scanned);
        scan_ms.push(cpu_ms() - start);
    }
    let scan_ms = scan_ms.iter().copied().fold(f64::INFINITY, f64::min);
    println!("{} {decoder}: scan {scan_ms:.1} ms/query", queries.name);
    for &k in ks {
        // What the exact decode answered, to count what a budget misses.
        let mut exact: Vec<Vec<u32>> = Vec::new();
        for effort in [Effort::Exact, Effort::Labels(200_000), Effort::Labels(50_000)] {
            let (mut times, mut touched, mut certificates) = (Vec::new(), Vec::new(), Vec::new());
            let mut found = 0usize;
            let mut kept = 0usize;
            for (number, row) in queries.rows.iter().enumerate() {
                let start = cpu_ms();
                let got: Certificate = assignment.decode(&check(row)?, decoder, k, effort, &mut scratch, &mut best)?;
                times.push(cpu_ms() - start);
                touched.push(got.labels_touched);
                certificates.push(got);
                if effort == Effort::Exact {
                    exact.push(best.iter().map(|s| s.label).collect());
                }
                kept += best.iter().filter(|s| exact[number].contains(&s.label)).count();
                if effort == Effort::Exact && number < 3 {
                    assignment.scan(&check(row)?, decoder, k, &mut scratch, &mut scanned);
                    let bits = |r: &[Scored]| r.iter().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>();
                    assert_eq!(bits(&best), bits(&scanned), "the walk and the scan differ");
                    found += 1;
                }
            }
            times.sort_by(f64::total_cmp);
            touched.sort_unstable();
            let n = times.len();
            let mean = times.iter().sum::<f64>() / n as f64;
            let share = |what: &dyn Fn(&Certificate) -> bool| certificates.iter().filter(|c| what(c)).count();
            println!(
                "  k {k:3} {:14} mean {mean:8.2} ms  median {:8.2}  p95 {:8.2}  {:6.0}x  labels median {:9} p95 {:9}  exact {}/{n}  scanned {}  recall {:.4}  compared {found}",
                format!("{effort:?}"),
                times[n / 2],
                times[n * 95 / 100],
                scan_ms / mean,
                touched[n / 2],
                touched[n * 95 / 100],
                share(&|c| c.exact),
                share(&|c| c.scanned),
                kept as f64 / exact.iter().map(Vec::len).sum::<usize>().max(1) as f64,
            );
        }
    }
    println!("  anonymous memory {:.1} MB, {:.1} of it for decoding", anonymous_mb(), anonymous_mb() - before);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let options = Options::parse()?;
    let n_labels = options.number("labels", 50_000_000)?;
    let seed = options.number("seed", 1)?;
    let n_queries = options.number("queries", 20)? as usize;
    let from_file = options.0.get("scores").map(|path| read_npy(path, n_queries)).transpose()?;
    let (n_repetitions, n_buckets) = match &from_file {
        Some((_, n_repetitions, n_buckets)) => (*n_repetitions as u32, *n_buckets as u32),
        None => (options.number("repetitions", 32)? as u32, options.number("buckets", 20_000)? as u32),
    };
    let params = UniversalParams { family: UniversalFamily::Prime, n_keys: n_labels, n_buckets, seed };
    let assignment = Assignment::first(params, n_repetitions)?;
    println!("L {n_labels} B {n_buckets} R {n_repetitions} seed {seed}, SIMD {}", xc_buffer::Isa::current());
    let sets = match from_file {
        Some((queries, _, _)) => vec![queries],
        None => {
            let few: Vec<f32> = vec![14.0, 13.0, 12.5, 12.0, 11.5];
            let many: Vec<f32> = (0..20).map(|i| 11.0 - 0.15 * i as f32).collect();
            let weak: Vec<f32> = (0..20).map(|i| 8.0 - 0.1 * i as f32).collect();
            vec![
                made_up(&assignment, "peaked", 1.5, &few, n_queries, 1),
                made_up(&assignment, "middling", 1.5, &many, n_queries, 2),
                made_up(&assignment, "weak", 1.5, &weak, n_queries, 3),
                made_up(&assignment, "flat", 0.01, &[], 3, 4),
            ]
        }
    };
    let ks = match options.0.get("k") {
        Some(k) => vec![k.parse().map_err(|e| format!("--k {k}: {e}"))?],
        None => vec![1, 10, 100],
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| -> Result<(), String> {
        let is_chosen = |queries: &&Queries| options.0.get("set").is_none_or(|name| *name == queries.name);
        for queries in sets.iter().filter(is_chosen) {
            for decoder in Decoder::ALL {
                if options.0.get("decoder").is_none_or(|name| *name == decoder.to_string()) {
                    measure(&assignment, queries, decoder, &ks).map_err(|e| e.to_string())?;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}
