//! Time and memory of training a uniform sparse layer at a given shape, on made values with a real
//! law of label frequencies.
//!
//! `uniform_speed FOLDER INPUTS HIDDEN LABELS CONNECTIONS ROWS BATCH [WEIGHTS [MOMENTS [NEGATIVES
//! [PRODUCTS [SCREENING]]]]]`: one epoch over ROWS instances; a line every tenth of them. SCREENING
//! is `never` where all labels are scored in full. The features are written to FOLDER and mapped
//! from there, as those of a data set would be.

#![allow(clippy::print_stdout)] // an example talks

use std::time::Instant;
use xc_buffer::dtype::DType;
use xc_dense::MatmulPrecision;
use xc_nn::encoder::{Precomputed, Stack};
use xc_nn::head::Sparse;
use xc_nn::head::sparse::{Rewire, Screening, SparseParams};
use xc_nn::sampler::{Drawn, Sampler};
use xc_nn::{
    Activation, Batch, DenseRows, Examples, Init, Loss, Network, Optimizer, Rows, Scratch, Step, StepParams, UpdateRule,
};
use xc_sparse::LabelRows;
use xc_store::{Container, ContainerWriter, OpenMode};

fn number_type(name: Option<&String>) -> DType {
    match name.map(String::as_str) {
        None | Some("f32") => DType::F32,
        Some("bf16") => DType::Bf16,
        Some("f16") => DType::F16,
        Some("e4m3") => DType::E4m3,
        Some("e5m2") => DType::E5m2,
        Some(other) => panic!("type {other}"),
    }
}

/// Anonymous memory now and at most, MiB.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) >> 10, field("VmHWM:").unwrap_or(0) >> 10)
}

/// Writes the features a row at a time and gives the labels. Label frequencies fall as rank^-0.6,
/// five a row: about Amazon-670K's. A label has a direction; a row is the sum of its labels' and
/// noise, of length 1.
fn write_data(folder: &std::path::Path, inputs: usize, labels: usize, rows: usize) -> LabelRows {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut writer = ContainerWriter::create(folder, "features").expect("a folder to write to");
    let mut stream = writer.stream("values", DType::F32).expect("a first array");
    let mut targets = Vec::new();
    for _ in 0..rows {
        let label = |r: f64| ((r.powf(2.5) * labels as f64) as u32).min(labels as u32 - 1);
        let mut row: Vec<u32> = (0..5).map(|_| label(random())).collect();
        row.sort_unstable();
        row.dedup();
        let mut values: Vec<f32> = (0..inputs).map(|_| (random() - 0.5) as f32 * 0.5).collect();
        for &label in &row {
            for k in 0..16u64 {
                let h = (u64::from(label) * 31 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                values[h as usize % inputs] += if h & (1 << 20) == 0 { 1.0 } else { -1.0 };
            }
        }
        let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.iter_mut().for_each(|v| *v /= norm);
        stream.extend(&values).expect("room on the disk");
        targets.push(row);
    }
    stream.finish_shaped(&[rows, inputs]).expect("room on the disk");
    writer.finish().expect("room on the disk");
    LabelRows::from_lists(targets, labels).expect("labels are in range")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let n = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let folder = std::path::Path::new(&arguments[0]);
    let (inputs, hidden, labels, connections, rows, batch_size) = (n(1), n(2), n(3), n(4), n(5), n(6));
    let negatives = arguments.get(9).map(|_| n(9)).filter(|&n| n > 0);
    let products =
        if arguments.get(10).is_some_and(|p| p == "f32") { MatmulPrecision::F32 } else { MatmulPrecision::Bf16 };
    let targets = write_data(folder, inputs, labels, rows);
    let container = Container::open(folder, OpenMode::Map).expect("was just written");
    let values = container.array::<f32>("values").expect("was just written");
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&values, inputs)), &targets).expect("finite");
    let params = SparseParams {
        per_output: connections,
        uniform: true,
        weights: number_type(arguments.get(7)),
        moments: number_type(arguments.get(8)),
        rewire: Some(Rewire { every: (32_000 / batch_size).max(1) as u64, fraction: 0.1 }),
    };
    println!("features in the file {} MiB; {params:?}", values.len() >> 18);
    let screening = match arguments.get(11).map(String::as_str) {
        Some("never") => Screening::Never,
        _ => Screening::WherePays,
    };
    let encoder = Stack::new(Precomputed::new(inputs).with_dropout(0.1))
        .push(hidden, Activation::Relu, 0.0, 1)
        .with_products(products);
    let head = Sparse::new(labels, hidden, params, Init::Random { seed: 1 }).expect("a sound shape");
    let head = head.with_screening(screening);
    let sampler = negatives.map(|per_step| Box::new(Drawn::uniform(per_step)) as Box<dyn Sampler>);
    let head = head.with_sampler(sampler);
    let mut network = Network::new(encoder, head);
    for named in network.parameters_mut().into_iter().filter(|named| named.name == "head.bias") {
        named.parameter.values_mut().fill(-1.1);
    }
    let optimizer = Optimizer::adam();
    network.prepare(optimizer, optimizer);
    let (mut batch, mut room) = (Batch::default(), Scratch::default());
    let order: Vec<u32> = (0..rows as u32).collect();
    let (mut began, mut done, mut loss, mut steps) = (Instant::now(), 0, 0.0, 0.0);
    let (started, mut anonymous_peak) = (Instant::now(), 0);
    for (number, rows_of) in order.chunks(batch_size).enumerate() {
        batch.fill(&examples, rows_of);
        let step =
            StepParams::new(Step { number: number as u64, epoch: 0, seed: 1 }, UpdateRule { optimizer, rate: 1e-3 });
        loss += network.step(&batch, Loss::SquaredHinge, &step, &mut room).expect("it computes in memory");
        done += rows_of.len();
        steps += 1.0;
        if done >= (rows / 10).max(batch_size) || number == 0 {
            let each = began.elapsed().as_secs_f64() / done as f64;
            let (anonymous, peak) = memory();
            anonymous_peak = anonymous_peak.max(anonymous);
            println!(
                "step {number}: {:.1} us an instance, anonymous {anonymous} MiB, peak RSS with the mapped features {peak} MiB, loss {:.3}",
                each * 1e6,
                loss / steps
            );
            (began, done, loss, steps) = (Instant::now(), 0, 0.0, 0.0);
        }
    }
    let took = started.elapsed().as_secs_f64();
    println!(
        "all: {took:.1} s, {:.1} us an instance, at most {} MiB anonymous",
        took / rows as f64 * 1e6,
        anonymous_peak
    );
}
