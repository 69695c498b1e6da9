//! Speed of dense products and of whole training steps; `bench/neural.py` runs it beside numpy and
//! PyTorch.
//!
//! ```text
//!   neural_speed THREADS products|bags|steps
//! ```
//!
//! One JSON object a line. Times are the fastest of several runs (products) and the median of
//! several steps.

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::time::Instant;
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product};
use xc_nn::encoder::{Bag, Stack};
use xc_nn::head::Dense;
use xc_nn::{
    Activation, Activations, Batch, Encoder, Examples, Loss, Mode, Network, Optimizer, Rows, Scratch, Step, StepParams,
    Update, UpdateRule,
};
use xc_sparse::{CsrMatrix, LabelRows};

fn main() {
    let args: Vec<String> = std::env::args().filter(|word| word != "--bench").collect();
    let threads = args.get(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(threads).build() else { return };
    pool.install(|| match args.get(2).map(String::as_str) {
        Some("products") => products(threads),
        Some("bags") => bags(threads),
        _ => steps(threads),
    });
}

fn values(n: usize, salt: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| (i.wrapping_add(salt).wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 23) as f32 - 1.0)
        .collect()
}

fn products(threads: usize) {
    [MatmulPrecision::F32, MatmulPrecision::Bf16].into_iter().for_each(|products| products_of(threads, products));
}

fn products_of(threads: usize, products: MatmulPrecision) {
    for (n, w, h) in [
        (256, 128, 10_000),
        (512, 128, 20_000),
        (512, 512, 10_000),
        (1024, 512, 10_000),
        (512, 2000, 2000),
        (512, 2000, 20_000),
        (512, 512, 32_768),
    ] {
        let (x, weights, g) = (values(n * w, 1), values(h * w, 2), values(n * h, 3));
        let (x, weights, g) = (MatRef::new(&x, n, w), MatRef::new(&weights, h, w), MatRef::new(&g, n, h));
        let mut scratch = MatmulScratch::default();
        let mut speed = |m: usize, k: usize, a: MatRef<'_>, b: MatRef<'_>| {
            let mut c = vec![0.0; m * k];
            let mut best = f64::MAX;
            for _ in 0..6 {
                let began = Instant::now();
                product(MatMut::new(&mut c, m, k), a, b, Start::Zero, products, &mut scratch);
                best = best.min(began.elapsed().as_secs_f64());
            }
            2e-9 * (n * w * h) as f64 / best
        };
        let (forward, input, weight) = (speed(n, h, x, weights.t()), speed(n, w, g, weights), speed(h, w, g.t(), x));
        println!(
            r#"{{"what":"product","products":"{}","threads":{threads},"batch":{n},"width":{w},"outputs":{h},"forward":{forward:.1},"input_gradient":{input:.1},"weight_gradient":{weight:.1}}}"#,
            products.name()
        );
    }
}

/// Rows of `nnz` features drawn with a long tail, as words are, scaled to length 1.
fn instances(n: usize, n_features: usize, nnz: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let mut row: Vec<u32> = values(nnz, (i * nnz) as u32)
            .iter()
            .map(|u| ((f64::from(*u) + 1.0) / 2.0).powi(3) * n_features as f64)
            .map(|f| (f as u32).min(n_features as u32 - 1))
            .collect();
        row.sort_unstable();
        row.dedup();
        data.resize(data.len() + row.len(), 1.0 / (row.len() as f32).sqrt());
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((n, n_features), indptr, indices, data)
}

/// The table alone: summing the vectors of a batch, and changing them by a gradient (SGD).
fn bags(threads: usize) {
    for (n_features, width, n, nnz) in [(80_000, 512, 512, 60), (120_000, 128, 512, 40), (80_000, 2000, 512, 60)] {
        let x = instances(n, n_features, nnz);
        let Ok(y) = LabelRows::from_lists((0..n).map(|_| [0]), 1) else { return };
        let Ok(examples) = Examples::try_new(Rows::Sparse(x.view()), &y) else { return };
        let mut bag = Bag::new(n_features, width, Activation::Identity, 0.0, 1);
        let (mut batch, optimizer) = (Batch::default(), Optimizer::sgd());
        batch.fill(&examples, &(0..n as u32).collect::<Vec<_>>());
        let (mut output, mut gradient) = (Activations::default(), Activations::default());
        let mode = Mode::Train(Step { number: 0, epoch: 0, seed: 1 });
        let (mut forward, mut update) = (f64::MAX, f64::MAX);
        for number in 0..12 {
            let began = Instant::now();
            bag.forward(&batch, mode, &mut output, &mut ()).expect("it computes in memory");
            forward = forward.min(began.elapsed().as_secs_f64() * 1e3);
            gradient.reshape(n, width);
            gradient.values_mut().fill(1e-3);
            let began = Instant::now();
            bag.backward(&batch, mode, &output, &mut gradient, &mut ()).expect("it computes in memory");
            let at = Step { number, epoch: 0, seed: 1 };
            let step = Update::new(at, UpdateRule { optimizer, rate: 1e-3 }, 1.0);
            bag.update(&batch, &gradient, &mut (), &step).expect("it computes in memory");
            update = update.min(began.elapsed().as_secs_f64() * 1e3);
        }
        let nnz = x.nnz();
        println!(
            r#"{{"what":"bag","threads":{threads},"features":{n_features},"width":{width},"batch":{n},"nnz":{nnz},"forward_ms":{forward:.3},"update_ms":{update:.3}}}"#
        );
    }
}

fn steps(threads: usize) {
    for (n_features, width, hidden, outputs, batch, nnz) in
        [(80_000, 512, 0, 10_000, 512, 60), (120_000, 128, 0, 20_000, 512, 40), (80_000, 512, 512, 10_000, 512, 60)]
    {
        let n = batch * 4;
        let x = instances(n, n_features, nnz);
        let y = LabelRows::from_lists((0..n).map(|i| [(i * 7919 % outputs) as u32]), outputs);
        let Ok(y) = y else { return };
        let Ok(examples) = Examples::try_new(Rows::Sparse(x.view()), &y) else { return };
        for optimizer in [Optimizer::sgd(), Optimizer::adam()] {
            let bag = Bag::new(n_features, width, Activation::Relu, 0.0, 1);
            let shape = (n_features, width, hidden, outputs, batch);
            if hidden == 0 {
                time(threads, bag, shape, &examples, optimizer);
            } else {
                time(threads, Stack::new(bag).push(hidden, Activation::Relu, 0.0, 1), shape, &examples, optimizer);
            }
        }
    }
}

fn time<E: Encoder<Output = Activations>>(
    threads: usize,
    encoder: E,
    (n_features, width, hidden, outputs, batch): (usize, usize, usize, usize, usize),
    examples: &Examples<'_>,
    optimizer: Optimizer,
) {
    let head = Dense::new(outputs, encoder.width(), 1);
    let mut network = Network::new(encoder, head);
    network.prepare(optimizer, optimizer);
    let (mut workspace, mut gathered) = (Scratch::default(), Batch::default());
    let mut times = Vec::new();
    let mut loss = 0.0;
    for number in 0..14u64 {
        let first = (number as usize * batch) % examples.len();
        let rows: Vec<u32> = (first as u32..(first + batch) as u32).collect();
        let began = Instant::now();
        gathered.fill(examples, &rows);
        let step = StepParams::new(Step { number, epoch: 0, seed: 1 }, UpdateRule { optimizer, rate: 1e-3 });
        loss = network.step(&gathered, Loss::Softmax, &step, &mut workspace).expect("it computes in memory");
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.drain(..4);
    times.sort_by(f64::total_cmp);
    println!(
        r#"{{"what":"step","threads":{threads},"features":{n_features},"width":{width},"hidden":{hidden},"outputs":{outputs},"batch":{batch},"optimizer":"{}","ms":{:.2},"loss":{loss:.4}}}"#,
        optimizer.name(),
        times[times.len() / 2]
    );
}
