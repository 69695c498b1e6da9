//! Answers `{"mode": "online" | "batch", "threads": N, "passes": P}` lines with the times of
//! omikuji's predictions on one test set, milliseconds per query.
//!
//! usage: omikuji-driver MODEL TEST.txt BEAM TOP_K MAX_SPARSE_DENSITY
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use omikuji::Model;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde_json::{Value, json};

type Row = Vec<(u32, f32)>;

fn parse(line: &str) -> Row {
    let pairs = line.split_ascii_whitespace().filter_map(|word| word.split_once(':'));
    pairs.filter_map(|(f, v)| Some((f.parse().ok()?, v.parse().ok()?))).collect()
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    field.and_then(|v| v.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

struct Bench {
    model: Model,
    rows: Vec<Row>,
    beam: usize,
    top: usize,
}

impl Bench {
    fn answer(&self, row: &Row) -> usize {
        let mut labels = self.model.predict(row, self.beam);
        labels.truncate(self.top);
        black_box(labels.len())
    }

    /// Milliseconds of each query, one after the other on this thread.
    fn online(&self) -> Vec<f64> {
        let timed = self.rows.iter().map(|row| {
            let start = Instant::now();
            self.answer(row);
            start.elapsed().as_secs_f64() * 1e3
        });
        timed.collect()
    }

    /// Mean milliseconds per query of all rows at once.
    fn batch(&self, pool: &rayon::ThreadPool) -> f64 {
        let start = Instant::now();
        pool.install(|| self.rows.par_iter().map(|row| self.answer(row)).sum::<usize>());
        start.elapsed().as_secs_f64() * 1e3 / self.rows.len() as f64
    }

    fn ask(&self, what: &Value) -> Result<Value, Box<dyn Error>> {
        let passes = what["passes"].as_u64().unwrap_or(1).max(1);
        if what["mode"] == "batch" {
            let threads = what["threads"].as_u64().unwrap_or(1) as usize;
            let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
            self.batch(&pool);
            let fastest = (0..passes).map(|_| self.batch(&pool)).fold(f64::INFINITY, f64::min);
            return Ok(json!({ "mean_ms": fastest }));
        }
        self.online();
        let mut ms: Vec<f64> = (0..passes).flat_map(|_| self.online()).collect();
        ms.sort_by(f64::total_cmp);
        let at = |q: f64| ms[((ms.len() - 1) as f64 * q).round() as usize];
        let mean = ms.iter().sum::<f64>() / ms.len() as f64;
        Ok(json!({ "mean_ms": mean, "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99) }))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, test, beam, top, density] = args.as_slice() else {
        return Err("usage: omikuji-driver MODEL TEST.txt BEAM TOP_K MAX_SPARSE_DENSITY".into());
    };
    let text = fs::read_to_string(test)?;
    let rows: Vec<Row> = text.lines().skip(1).map(parse).collect();
    let before = resident_bytes();
    let start = Instant::now();
    let mut model = Model::load(model)?;
    model.densify_weights(density.parse()?);
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let hello = json!({ "load_ms": load_ms, "model_rss_bytes": resident_bytes().saturating_sub(before) });
    println!("{hello}");
    let bench = Bench { model, rows, beam: beam.parse()?, top: top.parse()? };
    for line in stdin().lock().lines() {
        let reply = bench.ask(&serde_json::from_str(&line?)?)?;
        println!("{reply}");
        stdout().flush()?;
    }
    Ok(())
}
