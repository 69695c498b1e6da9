//! What samplers cost: one JSON line for each sampler and number of labels. Times are CPU times of
//! one thread for batches of 256 instances with vectors of 128 values.
//!
//! `cargo bench -p xc-nn --bench sampler_speed [LABELS...]`
//!
//! Lists of their own want 500 labels an instance; a shared one wants 10 of each instance where
//! instances are looked at, and 2,000 where labels are drawn for the batch.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;
use xc_buffer::FloatSlice;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::{FamilyKind, Projection};
use xc_nn::sampler::*;
use xc_nn::{Step, Targets};
use xc_sparse::LabelRows;

type Failed = Box<dyn Error + Send + Sync>;

const WIDTH: usize = 128;
const BATCH: usize = 256;
/// Steps of a series of upkeep, at most: codewords are learned twice in it.
const UPKEEP: f64 = 600.0;
/// Length of a series of calls.
const SERIES_S: f64 = 0.4;

fn main() -> Result<(), Failed> {
    let given: Vec<usize> =
        std::env::args().skip(1).filter(|word| word != "--bench").map(|n| n.parse()).collect::<Result<_, _>>()?;
    let sizes = if given.is_empty() { vec![10_000, 100_000, 1_000_000] } else { given };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| sizes.into_iter().try_for_each(|n| measure(&Made::new(n)?)))
}

/// CPU time of this thread, in microseconds: other programs take no part in it.
fn cpu_us() -> Result<f64, Failed> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(stat.split(' ').next().unwrap_or_default().parse::<f64>()? / 1000.0)
}

/// Labels of synthetic weights, whose frequencies fall as rank^-0.6, and a batch with two true ones
/// each.
struct Made {
    counts: Vec<u32>,
    rows: Vec<f32>,
    biases: Vec<f32>,
    vectors: Vec<f32>,
    instances: Vec<u32>,
    ptr: Vec<u32>,
    labels: Vec<u32>,
}

impl Made {
    fn new(n: usize) -> Result<Self, Failed> {
        let mut random = Stream::new(1);
        let mut fill = |len: usize, bound: f32| {
            let mut values = vec![0.0; len];
            random.fill_uniform(bound, &mut values);
            values
        };
        let (rows, biases, vectors) = (fill(n * WIDTH, 0.1), fill(n, 0.1), fill(BATCH * WIDTH, 1.0));
        let counts = (1..=n).map(|rank| (1e5 * (rank as f64).powf(-0.6)).ceil() as u32).collect();
        let draw = |random: &mut Stream| (random.unit().powf(2.5) * n as f64) as u32;
        let pairs: Vec<Vec<u32>> = (0..BATCH)
            .map(|_| [draw(&mut random), draw(&mut random)])
            .map(|[a, b]| if a == b { vec![a] } else { vec![a.min(b), a.max(b)] })
            .collect();
        let lists = LabelRows::from_lists(pairs, n)?;
        let (mut ptr, mut labels) = (vec![0], Vec::new());
        for i in 0..BATCH {
            labels.extend_from_slice(lists.row(i));
            ptr.push(labels.len() as u32);
        }
        Ok(Self { counts, rows, biases, vectors, instances: (0..BATCH as u32).collect(), ptr, labels })
    }

    fn queries(&self) -> Queries<'_> {
        let targets = Targets::new(&self.instances, &self.ptr, &self.labels);
        Queries { instances: &self.instances, vectors: DenseRows::new(&self.vectors, WIDTH), targets }
    }

    fn weights(&self) -> LabelWeights<'_> {
        LabelWeights::new(FloatSlice::F32(&self.rows), WIDTH, &self.biases)
    }
}

/// The samplers for lists of a kind, with what labels count.
fn samplers(lists: Lists) -> Vec<NegativeParams> {
    let (drawn, hard) = match lists {
        Lists::Shared => (2000, 10),
        Lists::Own => (500, 500),
    };
    let lsh = LshParams { candidates: hard, n_codes: None, ..LshParams::default() };
    // Chances are known of SimHash.
    let kind = FamilyKind::SimHash { projection: Projection::Hadamard };
    let midx = SamplerParams::Midx(MidxParams { per_instance: hard, ..MidxParams::default() });
    let (by_q, capped) = (Weighting::LogQ, Weighting::CAPPED);
    // Its index is built at the first step.
    let ann = SamplerParams::Ann(AnnParams { first: 1, ..AnnParams::default() });
    let kinds = [
        (SamplerParams::Uniform { per_list: drawn }, by_q, 0),
        (SamplerParams::LogUniform { per_list: drawn }, by_q, 0),
        (SamplerParams::Frequency { per_list: drawn, power: 0.75 }, by_q, 0),
        (SamplerParams::InBatch, by_q, 0),
        (SamplerParams::InBatch, capped, drawn),
        (SamplerParams::TopK { per_instance: hard }, Weighting::None, 0),
        (ann, Weighting::None, 0),
        (ann, capped, drawn),
        (midx, by_q, 0),
        (SamplerParams::LshEmbedding(lsh), Weighting::None, 0),
        (SamplerParams::LshEmbedding(LshParams { kind, ..lsh }), capped, 0),
        (SamplerParams::LshEmbedding(lsh), capped, drawn),
        (SamplerParams::LshLabel(lsh), Weighting::None, 0),
    ];
    kinds
        .map(|(sampler, weighting, uniform)| NegativeParams {
            lists,
            uniform,
            weighting,
            ..NegativeParams::from(sampler)
        })
        .to_vec()
}

/// CPU time of a call, for each instance of a batch: the least mean of three series, each long
/// beside the grain of the clock, of at most so many calls.
fn least_us(most: f64, mut call: impl FnMut(u64) -> Result<(), Failed>) -> Result<f64, Failed> {
    let begin = Instant::now();
    call(0)?;
    let calls = (SERIES_S / begin.elapsed().as_secs_f64()).clamp(1.0, most) as u64;
    let mut least = f64::INFINITY;
    for series in 0..3 {
        let begin = cpu_us()?;
        (0..calls).try_for_each(|at| call(1 + series * calls + at))?;
        least = least.min((cpu_us()? - begin) / calls as f64);
    }
    Ok((100.0 * least / BATCH as f64).round() / 100.0)
}

fn measure(made: &Made) -> Result<(), Failed> {
    let n = made.counts.len();
    let data = SamplerData::new(&made.counts, 1_000_000, WIDTH, 1);
    let touched: Vec<u32> = (0..n as u32).step_by((n / 3000).max(1)).collect();
    let moved = vec![0.02; touched.len()];
    for lists in [Lists::Shared, Lists::Own] {
        for params in samplers(lists) {
            let mut sampler = params.build(&data)?;
            let (mut out, mut number) = (Candidates::default(), 0);
            let mut step = |sampler: &dyn Sampler| -> Result<f64, Failed> {
                out.clear();
                let at = Step { number, epoch: number as u32, seed: 1 };
                sampler.sample(at, made.queries(), Some(made.weights()), 0..n as u32, &mut out)?;
                number += 1;
                Ok(out.n_labels() as f64 / out.len() as f64)
            };
            let begin = Instant::now();
            if let SamplerParams::Ann(_) = params.sampler {
                let at = Step { number: 0, epoch: 0, seed: 1 };
                sampler.changed(at, made.queries(), &[], &[], Some(made.weights()))?;
            }
            let list = step(&*sampler)?;
            let first_step_ms = begin.elapsed().as_millis();
            let draws = least_us(2e4, |_| step(&*sampler).map(drop))?;
            let upkeep = least_us(UPKEEP, |number| {
                let at = Step { number, epoch: 0, seed: 1 };
                Ok(sampler.changed(at, made.queries(), &touched, &moved, Some(made.weights()))?)
            })?;
            let line = serde_json::json!({
                "labels": n, "sampler": params.sampler, "lists": lists, "uniform": params.uniform,
                "weighting": params.weighting, "us_per_instance": draws, "upkeep_us_per_instance": upkeep,
                "first_step_ms": first_step_ms, "list": list.round(),
            });
            println!("{line}");
        }
    }
    Ok(())
}
