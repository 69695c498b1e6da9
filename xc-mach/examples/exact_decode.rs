//! The best labels of a query without scoring all of them, and the proof that none was missed.
//!
//! `cargo run --release -p xc-mach --example exact_decode`

#![allow(clippy::print_stdout)]

use xc_hash::stream::Stream;
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_mach::{Assignment, BucketScores, DecodeScratch, Decoder, Effort, repetitions_needed};
use xc_sparse::rank::Scored;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1. How many repetitions? So many that two labels hardly ever share all their buckets.
    let (n_labels, n_buckets) = (200_000, 1_000);
    let n_repetitions = repetitions_needed(n_labels, n_buckets, 1e-6)?;
    println!("{n_labels} labels need {n_repetitions} repetitions of {n_buckets} buckets");

    // 2. Which bucket each label falls into. Nothing is stored for a label.
    let params = UniversalParams {
        family: UniversalFamily::Prime,
        n_keys: n_labels as u64,
        n_buckets: n_buckets as u32,
        seed: 7,
    };
    let assignment = Assignment::first(params, n_repetitions as u32)?;

    // 3. What the classifiers say of one query: a little noise, and the buckets of three labels
    //    stand out.
    let mut stream = Stream::new(3);
    let mut values: Vec<f32> = (0..n_repetitions * n_buckets).map(|_| stream.unit() as f32 * 1e-3).collect();
    for (label, probability) in [(11, 0.6), (123_456, 0.3), (199_999, 0.1)] {
        for (position, row) in values.chunks_mut(n_buckets).enumerate() {
            row[assignment.bucket(position, label) as usize] += probability;
        }
    }
    let scores = BucketScores::try_new(&values, n_repetitions, n_buckets)?;

    // 4. The three best. Buckets are walked in the order of their promise, until no label unseen
    //    can be among the best.
    let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
    let certificate = assignment.decode(&scores, Decoder::Mean, 3, Effort::Exact, &mut scratch, &mut best)?;
    for Scored { label, score } in &best {
        println!("label {label:6}   score {score:.4}");
    }
    assert!(certificate.exact);
    assert_eq!(best.iter().map(|s| s.label).collect::<Vec<_>>(), [11, 123_456, 199_999]);

    // 5. Scoring every label gives the same, for many times the work.
    let mut all = Vec::new();
    assignment.scan(&scores, Decoder::Mean, 3, &mut scratch, &mut all);
    assert_eq!(best, all);
    println!("{} of {n_labels} labels were looked at", certificate.labels_touched);
    Ok(())
}
