//! How near the labels that tables find come to those that a network itself finds likely, as it
//! learns: figure 3 of `[daghaghi2021tale]`.
//!
//! ```text
//!   sampler_distributions [FILE [STEPS [LIST [RATE [TABLES]]]]]     LIST: lsh, all; TABLES: LshParams as JSON
//!
//!   target    softmax of the logits of all labels
//!   uniform   1 / N
//!   closed    chance that tables find a label over the draw of their functions, normalised (SimHash)
//!   tables    1 / n for each of the n labels that the tables at hand find without limits
//! ```
//!
//! A line of JSON for each of about 20 steps: total variation from the target, and the share of the
//! ten likeliest labels, means over 64 held-out instances; at the first, middle and last step also
//! points (rank and probabilities) of one instance, labels by the target, means of stretches of
//! ranks. `lsh` trains by what its tables find, within limits; `all` by all labels, and the tables
//! are of the weights as they are.

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use xc_hash::stream::Stream;
use xc_lsh::tables::{By, Limits, Query};
use xc_lsh::{Family, Keys, Kind, Projection, Tables};
use xc_sparse::io::{ReadOptions, read_dataset};
use xc_sparse::{CsrMatrix, Dataset, DenseRows, LabelRows, Rows};
use xc_train::encoder::Bag;
use xc_train::head::{Sampled, SampledParams};
use xc_train::sampler::*;
use xc_train::state::State;
use xc_train::*;

const WIDTH: usize = 128;
const SEED: u64 = 1;
const BATCH: usize = 256;
/// Instances that are not trained on.
const HELD_OUT: usize = 64;
/// Labels that count as the likeliest.
const BEST: usize = 10;
const NAMES: [&str; 4] = ["target", "uniform", "closed", "tables"];

/// A training run, and the tables that are looked at.
pub struct Study {
    /// At least 384 instances, and 10 labels.
    pub data: Dataset,
    /// Steps of the training.
    pub steps: u64,
    /// Whether a step scores what tables find, or all labels.
    pub by_tables: bool,
    /// Rate of Adam.
    pub rate: f64,
    /// What the tables are like.
    pub tables: LshParams,
}

/// Trains on the file of the first argument, or on synthetic data.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (args, mut study) = (std::env::args().skip(1).collect::<Vec<_>>(), Study::made_up()?);
    if let Some(file) = args.first() {
        study.data = read_dataset(Path::new(file), &ReadOptions::default())?;
    }
    study.steps = args.get(1).map_or(Ok(study.steps), |steps| steps.parse())?;
    study.by_tables = args.get(2).is_none_or(|list| list != "all");
    study.rate = args.get(3).map_or(Ok(study.rate), |rate| rate.parse())?;
    study.tables = args.get(4).map_or(Ok(study.tables), |tables| serde_json::from_str(tables))?;
    study.run(|line| println!("{line}"))
}

impl Study {
    /// Instance i of 400 has features i and 3 i modulo 30, and the label that they point at.
    pub fn made_up() -> Result<Self, Box<dyn Error>> {
        let pairs = (0..400u32).flat_map(|i| [i % 30, 30 + 3 * i % 30]);
        let features =
            CsrMatrix::new((400, 60), (0..=400).map(|i| 2 * i).collect(), pairs.collect(), vec![0.7f32; 800]);
        let labels = LabelRows::from_lists((0..400u32).map(|i| [i % 30]), 200)?;
        let data = Dataset { features, labels, label_names: None };
        let kind = Kind::SimHash { projection: Projection::Gaussian };
        let tables = LshParams { kind, candidates: 20, ..LshParams::default() };
        Ok(Self { data, steps: 100, by_tables: true, rate: 1e-2, tables })
    }

    /// Trains, and gives a line for each step that is looked at.
    pub fn run(&self, mut line: impl FnMut(Value)) -> Result<(), Box<dyn Error>> {
        let Self { data, steps, .. } = self;
        let (n, n_labels) = (data.features.rows(), data.labels.n_labels());
        assert!(n >= 384 && n_labels >= BEST, "{n} instances, {n_labels} labels, expected at least 384 and {BEST}");
        let examples = Examples::try_new(Features::Sparse(Rows::new(data.features.view())), &data.labels)?;
        let is_held = |i: &u32| (*i as usize).is_multiple_of(n / HELD_OUT) && (*i as usize) < n / HELD_OUT * HELD_OUT;
        let (held, mut order): (Vec<u32>, Vec<u32>) = (0..n as u32).partition(is_held);
        let counts = vec![0; n_labels];
        let of = SamplerData::new(&counts, n, WIDTH, SEED);
        let lsh = Lsh::new(LshBy::Embedding, self.tables, &of)?.with_lists(Lists::Own);
        let family = self.tables.sizing(n_labels as u64, WIDTH)?.params(SEED).build()?;
        let looked = Looked { family, chances: lsh.clone().with_weighting(Weighting::LogQ)? };
        let params = SampledParams { lists: Lists::Own, ..SampledParams::default() };
        let sampler = self.by_tables.then(|| Box::new(lsh) as Box<dyn Sampler>);
        let head = Sampled::new(n_labels, WIDTH, params, SEED).with_sampler(sampler);
        let mut network = Network::new(Bag::new(data.features.cols(), WIDTH, Activation::Relu, 0.0, SEED), head);
        let rule = Rule { optimizer: Optimizer::adam(), rate: self.rate };
        network.prepare(rule.optimizer, rule.optimizer);
        let (mut batch, mut held_out, mut scratch) = (Batch::default(), Batch::default(), Scratch::default());
        held_out.fill(&examples, &held);
        let (mut random, mut next) = (Stream::new(SEED), order.len());
        for number in 0..=*steps {
            let is_moment = [0, steps / 2, *steps].contains(&number);
            if is_moment || number.is_multiple_of((steps / 20).max(1)) {
                line(looked.at(number, &network, &held_out, is_moment)?);
            }
            if next + BATCH > order.len() {
                random.shuffle(&mut order);
                next = 0;
            }
            batch.fill(&examples, &order[next..][..BATCH]);
            next += BATCH;
            let epoch = (number * BATCH as u64 / order.len() as u64) as u32;
            let at = Step { number, epoch, seed: SEED };
            network.step(&batch, Loss::Softmax, &StepParams::new(at, rule), &mut scratch)?;
        }
        Ok(())
    }
}

/// What distributions are worked out with.
struct Looked {
    family: Box<dyn Family>,
    chances: Lsh,
}

impl Looked {
    /// The line of a step, by what the network gives for a batch.
    fn at(
        &self,
        number: u64,
        network: &Network<Bag, Sampled>,
        batch: &Batch,
        with_points: bool,
    ) -> Result<Value, Box<dyn Error>> {
        let (mut vectors, mut logits) = (Activations::default(), Activations::default());
        network.encoder().forward(batch, Mode::Predict, &mut vectors, &mut Default::default())?;
        network.head().logits(&vectors, &mut logits, &mut Default::default())?;
        let (vectors, weights) = (DenseRows::new(vectors.values(), WIDTH), network.head().weights());
        let queries = Queries { instances: batch.instances(), vectors, targets: batch.targets() };
        let with_bias: Vec<f32> = vectors.iter().flat_map(|row| row.iter().copied().chain([1.0])).collect();
        let (keys, tables, n) = (self.keys(&with_bias)?, self.tables(network.head())?, batch.len() as f64);
        let (labels, at) = (Vec::from_iter(0..weights.n() as u32), Step { number, epoch: 0, seed: SEED });
        let (mut log_q, mut found, mut points) = (Vec::new(), Vec::new(), Vec::new());
        let (mut far, mut likeliest, mut right, mut n_found) = ([0.0; 4], [0.0; 4], 0.0, 0.0);
        for i in 0..batch.len() {
            let most = logits.row(i).iter().copied().fold(f32::NEG_INFINITY, f32::max);
            self.chances.log_q(at, queries, Some(weights), 0..weights.n() as u32, i, &labels, &mut log_q)?;
            let query = Query { by: By::Keys(keys.row(i)), turn: 0, excluded: &[] };
            tables.query(query, Limits::NONE, &mut Default::default(), &mut found);
            let mut at_hand = vec![0.0; labels.len()];
            found.iter().for_each(|&label| at_hand[label as usize] = 1.0);
            let all = [
                logits.row(i).iter().map(|z| f64::from(z - most).exp()).collect(),
                vec![1.0; labels.len()],
                log_q.iter().map(|&log| f64::from(log).exp()).collect(),
                at_hand,
            ]
            .map(normalised);
            let mut by_p = labels.clone();
            by_p.sort_by(|&a, &b| all[0][b as usize].total_cmp(&all[0][a as usize]));
            for (q, (far, best)) in all.iter().zip(far.iter_mut().zip(&mut likeliest)) {
                *far += all[0].iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0 / n;
                *best += by_p[..BEST].iter().map(|&label| q[label as usize]).sum::<f64>() / n;
            }
            right += f64::from(u8::from(batch.targets().row(i).contains(&by_p[0]))) / n;
            n_found += found.len() as f64 / n;
            if with_points && i == 0 {
                points = thinned(&by_p, &all);
            }
        }
        let named = |values: [f64; 4]| Value::from_iter(NAMES.into_iter().zip(values.map(short)));
        Ok(json!({ "step": number, "P@1": short(right), "found": short(n_found), "variation": named(far),
            "likeliest": named(likeliest), "points": points }))
    }

    /// Keys of vectors, each with a last value for the bias.
    fn keys(&self, vectors: &[f32]) -> Result<Keys, Box<dyn Error>> {
        let mut keys = Keys::new(self.family.params().n_tables as usize);
        self.family.keys_dense(DenseRows::new(vectors, WIDTH + 1), &mut keys, &mut Default::default())?;
        Ok(keys)
    }

    /// The tables of the head's sampler as a checkpoint has them, or else of the rows as they are.
    fn tables(&self, head: &Sampled) -> Result<Tables, Box<dyn Error>> {
        let mut kept = Vec::new();
        head.visit(&mut |array| {
            if array.of.name == "sampler.lsh.keys" {
                kept = array.bytes.as_chunks().0.iter().map(|&bytes| u32::from_ne_bytes(bytes)).collect();
            }
            Ok(())
        })?;
        let labels = 0..head.weights().n() as u32;
        let keys = if kept.is_empty() {
            self.keys(&labels.flat_map(|label| with_bias_of(head.weights(), label)).collect::<Vec<_>>())?
        } else {
            Keys::from_rows(self.family.params().n_tables as usize, kept)
        };
        Ok(Tables::of_keys(self.family.key_bits(), keys))
    }
}

fn with_bias_of(weights: LabelWeights<'_>, label: u32) -> Vec<f32> {
    [weights.row(label, &mut Vec::new()), &[weights.bias(label)]].concat()
}

/// Scaled to a sum of 1; where there is nothing, a sampler draws evenly.
fn normalised(values: Vec<f64>) -> Vec<f64> {
    let (sum, n) = (values.iter().sum::<f64>(), values.len() as f64);
    values.into_iter().map(|v| if sum > 0.0 { v / sum } else { 1.0 / n }).collect()
}

/// Mean rank and probabilities of stretches of ranks that grow with the rank: at most 300.
fn thinned(order: &[u32], of: &[Vec<f64>; 4]) -> Vec<Vec<f64>> {
    let growth = (order.len() as f64).powf(1.0 / 200.0);
    let (mut first, mut points) = (0, Vec::new());
    while first < order.len() {
        let end = ((first as f64 * growth).ceil() as usize).clamp(first + 1, order.len());
        let mean = |q: &Vec<f64>| order[first..end].iter().map(|&l| q[l as usize]).sum::<f64>() / (end - first) as f64;
        points.push([(first + 1 + end) as f64 / 2.0].into_iter().chain(of.iter().map(mean)).map(short).collect());
        first = end;
    }
    points
}

/// Four digits.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
