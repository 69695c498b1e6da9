//! Time to keep the k best of a stream of scores, for k from 1 to 1,000.
//!
//! Run: `cargo bench -p xc-sparse --no-default-features --bench rank_speed`
//!
//! Prints nanoseconds a stream: of 300, 1,000 and 10,000 scores in random order, and of 1,000 scores
//! in clusters of 100, as a search of a label tree finds them; `best` in no order, `sorted` in order.

#![allow(clippy::print_stdout)] // an example talks

use std::hint::black_box;
use std::time::Instant;
use xc_sparse::rank::{Scored, TopK};

const KS: [usize; 20] = [1, 2, 3, 5, 8, 10, 15, 16, 17, 20, 25, 30, 32, 33, 50, 64, 100, 200, 500, 1000];

fn main() {
    let mut state = 1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    for (shape, n) in [("random", 300), ("random", 1000), ("random", 10_000), ("clusters", 1000)] {
        let streams = 2_000_000 / n;
        let scores: Vec<Vec<f32>> = (0..streams.min(2000))
            .map(|_| {
                let mut cluster = 0.0;
                let score = |i: usize| {
                    if shape == "clusters" && i.is_multiple_of(100) {
                        cluster = -10.0 * random();
                    }
                    cluster - 3.0 * random()
                };
                (0..n).map(score).collect()
            })
            .collect();
        println!("{n} scores, {shape}:\n{:>6} {:>9} {:>9}", "k", "best", "sorted");
        for k in KS.into_iter().filter(|&k| k <= n) {
            let mut top = TopK::default();
            let mut time = |sorted: bool| {
                let mut fastest = f64::INFINITY;
                for _ in 0..5 {
                    let start = Instant::now();
                    for scores in &scores {
                        keep(&mut top, k, scores);
                        black_box(if sorted { top.sorted() } else { top.best() });
                    }
                    fastest = fastest.min(start.elapsed().as_secs_f64());
                }
                fastest * 1e9 / scores.len() as f64
            };
            let (best, sorted) = (time(false), time(true));
            println!("{k:>6} {best:>9.0} {sorted:>9.0}");
        }
    }
}

/// Offers scores as a search does: a few at a time, most of which cannot be kept.
#[inline(never)]
fn keep(top: &mut TopK, k: usize, scores: &[f32]) {
    top.reset(k);
    for (first, scores) in (0..).step_by(8).zip(scores.chunks(8)) {
        if top.may_keep(scores) {
            (first..).zip(scores).for_each(|(label, &score)| top.push(Scored { label, score }));
        }
    }
}
