//! Time of a head's step, by labels and by what it scores.
//!
//! ```text
//!   step_cost THREADS [LABELS,... [WHAT,... [WIDTH]]]      WHAT: all, shared-N, own-N, each with -bf16 (products), -rows (rows in bf16), -row (Adagrad by rows), -sgd, -softmax,
//!                                                          -hard (collects 20 labels of each instance)
//! ```
//!
//! Batch 256, width 128, one true label an instance, binary cross-entropy, Adagrad. One JSON object
//! a line: milliseconds of the fastest and the median step, and the stages of the fastest.

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::time::Instant;
use xc_buffer::DType;
use xc_dense::MatmulPrecision;
use xc_nn::head::{Sampled, SampledParams, SampledScratch};
use xc_nn::sampler::{Drawn, Lists, Sampler};
use xc_nn::state::State;
use xc_nn::{Activations, Head, Loss, Optimizer, Step, StepError, Targets, Update, UpdateRule};

const BATCH: usize = 256;
const WIDTH: usize = 128;
/// Labels that are collected of each instance.
const HARD: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().filter(|word| word != "--bench").collect();
    let threads = args.get(1).map_or(Ok(1), |t| t.parse())?;
    let labels = args.get(2).map_or("10000,70000,300000,1000000", |list| list);
    let what = args.get(3).map_or("shared-1000,shared-4000,shared-4000-bf16,own-150,own-500,all,all-bf16", |list| list);
    let width = args.get(4).map_or(Ok(WIDTH), |width| width.parse())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    for n_labels in labels.split(',') {
        let n_labels = n_labels.parse()?;
        for what in what.split(',') {
            pool.install(|| measure(threads, n_labels, width, what))?;
        }
    }
    Ok(())
}

fn measure(threads: usize, n_labels: usize, width: usize, what: &str) -> Result<(), StepError> {
    let has = |part: &str| what.split('-').any(|other| other == part);
    let number = what.split('-').find_map(|part| part.parse::<usize>().ok());
    let lists = if has("own") { Lists::Own } else { Lists::Shared };
    let params = SampledParams {
        rows: if has("rows") { DType::Bf16 } else { DType::F32 },
        precision: if has("bf16") { MatmulPrecision::Bf16 } else { MatmulPrecision::F32 },
        lists,
    };
    // A shared list has the true labels of the batch too.
    let drawn = number.map(|n| if has("own") { n } else { n.saturating_sub(BATCH).max(1) });
    let sampler = drawn.map(|n| Box::new(Drawn::uniform(n).with_lists(lists)) as Box<dyn Sampler>);
    let mut head = Sampled::new(n_labels, width, params, 1).with_sampler(sampler);
    let optimizer = match () {
        () if has("row") => Optimizer::row_adagrad(),
        () if has("sgd") => Optimizer::sgd(),
        () => Optimizer::adagrad(),
    };
    head.prepare(optimizer.moments());
    let mut input = Activations::default();
    input.reshape(BATCH, width);
    let value = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) as f32 / 2f32.powi(31) - 1.0;
    input.values_mut().iter_mut().enumerate().for_each(|(i, to)| *to = value(i));
    let instances: Vec<u32> = (0..BATCH as u32).collect();
    let ptr: Vec<u32> = (0..=BATCH as u32).collect();
    let (mut scratch, mut gradient) = (SampledScratch::default(), Activations::default());
    if has("hard") {
        head.collect(HARD, &mut scratch);
    }
    let loss = if has("softmax") { Loss::Softmax } else { Loss::Bce };
    let mut times = Vec::new();
    let mut best = None;
    let began = Instant::now();
    while times.len() < 4 || (times.len() < 200 && began.elapsed().as_secs() < 4) {
        let number = times.len() as u64;
        let labels = instances
            .iter()
            .map(|&i| (i.wrapping_mul(2_654_435_761).wrapping_add(97 * number as u32)) % n_labels as u32);
        let labels: Vec<u32> = labels.collect();
        let rule = UpdateRule { optimizer, rate: 0.01 };
        let update = Update::new(Step { number, epoch: 0, seed: 1 }, rule, 1.0);
        let targets = Targets::new(&instances, &ptr, &labels);
        let start = Instant::now();
        head.step(&input, targets, loss, &update, Some(&mut gradient), &mut scratch)?;
        let time = 1e3 * start.elapsed().as_secs_f64();
        if times.iter().all(|&other| time < other) {
            best = Some(head.cost(&scratch));
        }
        times.push(time);
    }
    times.sort_by(f64::total_cmp);
    let cost = best.unwrap_or_default();
    let ms = |time: std::time::Duration| format!("{:.2}", 1e3 * time.as_secs_f64());
    println!(
        "{{\"threads\":{threads},\"labels\":{n_labels},\"what\":\"{what}\",\"ms\":{:.2},\"median_ms\":{:.2},\"query\":{},\"score\":{},\"backward\":{},\"rows\":{},\"pairs\":{}}}",
        times[0],
        times[times.len() / 2],
        ms(cost.sampling.query),
        ms(cost.score),
        ms(cost.backward),
        cost.n_read,
        cost.n_scored,
    );
    Ok(())
}
