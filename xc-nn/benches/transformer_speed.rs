//! Time of a transformer's forward pass and of a whole step of AdamW, by shape, precision and lengths.
//!
//! ```text
//!   transformer_speed THREADS [SHAPE,... [PRECISION,... [full|ragged|products [STEPS]]]]
//!
//!   SHAPE: mini (MiniLM-L6, 32 x 32 tokens), distil (DistilBERT, 32 x 64)
//! ```
//!
//! Weights are random. With `products` the linear layers' products of a step alone are timed, three for each, and their
//! operations a second. Ragged lengths go from 8 tokens to the longest. One JSON object a line: milliseconds of the fastest
//! forward pass of prediction, and of the fastest and the median step.

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::time::Instant;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_nn::encoder::transformer::{Architecture, Transformer, TransformerParams};
use xc_nn::state::State;
use xc_nn::{Activations, Batch, Encoder, Examples, Mode, Optimizer, Rows, Step, Update, UpdateRule};
use xc_sparse::LabelRows;
use xc_sparse::rows::TokenRows;

const INSTANCES: usize = 32;
const VOCABULARY: usize = 30_522;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().filter(|word| word != "--bench").collect();
    let threads = args.get(1).map_or(Ok(1), |t| t.parse())?;
    let shapes = args.get(2).map_or("mini,distil", |list| list);
    let precisions = args.get(3).map_or("f32,bf16", |list| list);
    let is_ragged = args.get(4).is_some_and(|word| word == "ragged");
    let is_products = args.get(4).is_some_and(|word| word == "products");
    let steps = args.get(5).map_or(Ok(3), |n| n.parse())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    for shape in shapes.split(',') {
        for precision in precisions.split(',') {
            match is_products {
                true => pool.install(|| products(threads, shape, precision, steps)),
                false => pool.install(|| measure(threads, shape, precision, is_ragged, steps))?,
            }
        }
    }
    Ok(())
}

const LAYERS: usize = 6;

/// Width and tokens of an instance.
fn sizes(shape: &str) -> (usize, usize) {
    if shape == "mini" { (384, 32) } else { (768, 64) }
}

fn precision_of(name: &str) -> MatmulPrecision {
    if name == "bf16" { MatmulPrecision::Bf16 } else { MatmulPrecision::F32 }
}

/// The products of a step's linear layers: sums, gradient of the input, gradient of the weights.
fn products(threads: usize, shape: &str, precision: &str, steps: u64) {
    let (width, longest) = sizes(shape);
    let (n, precision_name, precision) = (INSTANCES * longest, precision, precision_of(precision));
    let values = |rows: usize, columns: usize| -> Vec<f32> {
        (0..rows * columns).map(|i| (i * 7919 % 1013) as f32 / 1013.0 - 0.5).collect()
    };
    let (mut best, mut operations) = (f64::INFINITY, 0.0);
    let mut scratch = xc_dense::MatmulScratch::default();
    for _ in 0..steps {
        let (mut seconds, mut all) = (0.0, 0.0);
        for (inputs, outputs) in [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)] {
            let (x, weights, sums) = (values(n, inputs), values(outputs, inputs), values(n, outputs));
            let (x, weights) = (MatRef::new(&x, n, inputs), MatRef::new(&weights, outputs, inputs));
            let (mut forward, mut input) = (sums.clone(), vec![0.0; n * inputs]);
            let (sums, mut gradient) = (MatRef::new(&sums, n, outputs), vec![0.0; outputs * inputs]);
            let start = Instant::now();
            for _ in 0..LAYERS {
                let mut one = |c: MatMut<'_>, a, b| product(c, a, b, Start::Zero, precision, &mut scratch);
                one(MatMut::new(&mut forward, n, outputs), x, weights.t());
                one(MatMut::new(&mut input, n, inputs), sums, weights);
                one(MatMut::new(&mut gradient, outputs, inputs), sums.t(), x);
            }
            seconds += start.elapsed().as_secs_f64();
            all += 6.0 * (LAYERS * n * inputs * outputs) as f64;
        }
        (best, operations) = (seconds.min(best), all);
    }
    println!(
        "{{\"threads\":{threads},\"shape\":\"{shape}\",\"precision\":\"{precision_name}\",\"products_ms\":{:.1},\"giga_operations\":{:.1},\"a_second\":{:.1}}}",
        1e3 * best,
        1e-9 * operations,
        1e-9 * operations / best,
    );
}

fn measure(
    threads: usize,
    shape: &str,
    precision: &str,
    is_ragged: bool,
    steps: u64,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (width, longest) = sizes(shape);
    let params = TransformerParams {
        family: Architecture::Bert,
        vocabulary: VOCABULARY,
        positions: 512,
        first_position: 0,
        types: 2,
        width,
        heads: 12,
        units: 4 * width,
        layers: LAYERS,
        epsilon: 1e-12,
        distances: None,
        dense: Vec::new(),
        pooling: Default::default(),
    };
    let mut transformer = Transformer::new(params, Default::default(), 1)?.with_products(precision_of(precision));
    let optimizer = Optimizer::adam().with_weight_decay(0.01);
    let mut rows = TokenRows::new(VOCABULARY);
    let mut next = 0u64;
    for i in 0..INSTANCES {
        let len = if is_ragged { 8 + (i * 37) % (longest - 7) } else { longest };
        let one = |_| {
            next += 1;
            ((next * 7919 + next * next % 1009) % 30_000) as u32 + 100
        };
        rows.push(&(0..len).map(one).collect::<Vec<_>>())?;
    }
    let targets = LabelRows::from_lists((0..INSTANCES).map(|_| [0u32]), 1)?;
    let mut batch = Batch::default();
    let numbers: Vec<u32> = (0..INSTANCES as u32).collect();
    batch.fill(&Examples::try_new(Rows::Tokens(rows.view()), &targets)?, &numbers);
    let (mut vectors, mut gradient, mut scratch) = (Activations::default(), Activations::default(), Default::default());
    let (mut forward, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let start = Instant::now();
        transformer.forward(&batch, Mode::Predict, &mut vectors, &mut scratch)?;
        forward.push(1e3 * start.elapsed().as_secs_f64());
    }
    transformer.prepare(optimizer.moments());
    for number in 0..steps {
        let at = Step { number, epoch: 0, seed: 1 };
        let start = Instant::now();
        transformer.forward(&batch, Mode::Train(at), &mut vectors, &mut scratch)?;
        gradient.reshape(vectors.len(), vectors.width());
        gradient.values_mut().iter_mut().enumerate().for_each(|(i, g)| *g = ((i * 31 % 17) as f32 - 8.0) / 8.0);
        let update = Update::new(at, UpdateRule { optimizer, rate: 1e-5 }, 1.0);
        transformer.update(&batch, &gradient, &mut scratch, &update)?;
        whole.push(1e3 * start.elapsed().as_secs_f64());
    }
    forward.sort_by(f64::total_cmp);
    whole.sort_by(f64::total_cmp);
    let n_tokens = rows.view().ids().len();
    println!(
        "{{\"threads\":{threads},\"shape\":\"{shape}\",\"precision\":\"{precision}\",\"tokens\":{n_tokens},\"forward_ms\":{:.1},\"step_ms\":{:.1},\"median_step_ms\":{:.1}}}",
        forward[0],
        whole[0],
        whole[whole.len() / 2],
    );
    Ok(())
}
