//! Speed of the products of a sparse output layer: `sparse_forward [INPUTS] [CONNECTIONS] [LABELS]
//! [BLOCKS] [THREADS]`.

#![allow(clippy::print_stdout)] // an example talks

use std::hint::black_box;
use std::time::Instant;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_sparse::uniform::*;

fn main() {
    let arguments: Vec<usize> =
        std::env::args().skip(1).filter(|word| word != "--bench").filter_map(|a| a.parse().ok()).collect();
    let get = |at: usize, default: usize| arguments.get(at).copied().unwrap_or(default);
    let (n_inputs, per_label, n_labels, n_blocks, threads) =
        (get(0, 32768), get(1, 32), get(2, 65536), get(3, 8), get(4, 1));
    let mut state = 1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let connections = Connections::uniform(n_labels, n_inputs, per_label, DType::F32, |_, row| {
        *row = distinct(per_label, n_inputs, Vec::new().into_iter(), &mut random);
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let mut lines = Lines::default();
    let n = n_blocks * threads * LANES;
    lines.fill(&vec![0.5; n * n_inputs], n, n_inputs);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap_or_else(|e| panic!("{e}"));
    let rate = |began: Instant| (n_labels * per_label * n / threads) as f64 / began.elapsed().as_secs_f64() / 1e9;
    let (biases, gradient) = (vec![0.0; n_labels], vec![0.1; n * n_labels]);
    let mut scores = vec![0.0; n * n_labels];
    let (mut of_weights, mut of_inputs) = (vec![0.0; connections.len()], vec![0.0; n * n_inputs]);
    for _ in 0..3 {
        let began = Instant::now();
        pool.install(|| connections.forward(&lines, &biases, &mut scores));
        println!("forward: {:.1} G multiplications a second and core", rate(began));
        let began = Instant::now();
        pool.install(|| connections.backward(&lines, &gradient, &mut of_weights, &mut of_inputs));
        println!("backward: {:.1} G connections a second and core", rate(began));
    }
    let InputIds::U16(indices) = connections.indices() else { panic!("at most 65,536 inputs") };
    let FloatBuffer::F32(weights) = connections.weights() else { panic!("weights are f32") };
    // The same in bytes, 64 instances a line and two lines at a time; nothing is above the bar.
    let (mut bytes, mut rows) = (ByteLines::default(), ScreenRows::default());
    let n = n_blocks.next_multiple_of(4) * threads * LANES;
    bytes.fill(&vec![0.5; n * n_inputs], n, n_inputs);
    rows.fill(&connections, &vec![0.0; n_labels], 1e9, n_labels, |label| label);
    for _ in 0..3 {
        let began = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (bytes, rows) = (&bytes, &rows);
                let own = bytes.n_blocks() / threads;
                scope.spawn(move || {
                    for block in (thread * own..(thread + 1) * own).step_by(2) {
                        let blocks = [bytes.block(block), bytes.block(block + 1)];
                        for label in 0..n_labels {
                            let row = label * per_label..(label + 1) * per_label;
                            let ahead =
                                indices.get(row.start + 2 * per_label..row.end + 2 * per_label).unwrap_or_default();
                            black_box(UniformKernels::current().screen(blocks, &indices[row], rows.row(label), ahead));
                        }
                    }
                });
            }
        });
        let products = (n_labels * per_label * n / threads) as f64;
        println!(
            "screening: {:.1} G multiplications a second and core",
            products / began.elapsed().as_secs_f64() / 1e9
        );
    }
    // One instance by itself, and in a block that it has to itself.
    let alone: Vec<f32> = vec![0.5; n_inputs];
    let mut sums = vec![0.0f32; n_labels];
    for _ in 0..3 {
        let began = Instant::now();
        UniformKernels::current().forward_one(&alone, indices, weights, per_label, &mut sums);
        let by_itself = began.elapsed();
        let began = Instant::now();
        for label in 0..n_labels {
            let row = label * per_label..(label + 1) * per_label;
            let ahead = indices.get(row.start + 2 * per_label..row.end + 2 * per_label).unwrap_or_default();
            black_box(UniformKernels::current().forward(lines.block(0), &indices[row.clone()], &weights[row], ahead));
        }
        println!("one instance on one thread: {by_itself:.1?} by itself, {:.1?} in a block", began.elapsed());
    }
}
