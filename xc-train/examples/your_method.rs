//! A method of your own from end to end: own sampler, loss and head, trained, saved, opened, evaluated and compared with
//! a dense output layer. `docs/your-method.md` explains it.
//!
//! ```text
//! cargo run --release -p xc-train --example your_method -- FOLDER
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use xc_hash::stream::{Purpose, Stream, name};
use xc_metrics::{BootstrapParams, EvaluatorParams, KeepRows, Metric, evaluate};
use xc_nn::head::{Dense, Ranked};
use xc_nn::loss::{LossFunction, Shares};
use xc_nn::sampler::{Candidates, LabelWeights, Queries, Sampler};
use xc_nn::state::{State, StateError};
use xc_nn::*;
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;
use xc_store::{Container, ContainerWriter, OpenMode};

/// Every `stride`-th label, the next ones in the next step: each stands for `stride` labels.
#[derive(Clone, Debug)]
struct Strided(u32);

impl Sampler for Strided {
    fn sample(
        &self,
        at: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: std::ops::Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let first = (at.number % u64::from(self.0)) as u32;
        let share = 1.0 / self.0 as f32;
        labels.skip(first as usize).step_by(self.0 as usize).for_each(|label| out.push(label, 1.0 / share, share.ln()));
        out.end_list();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for Strided {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "strided": self.0 })
    }
}

/// Binary cross-entropy that expects true labels at 0.9, since some are missing in the data.
#[derive(Debug)]
struct Smoothed;

impl LossFunction for Smoothed {
    fn name(&self) -> &'static str {
        "smoothed-0.9"
    }

    fn loss_and_gradient(&self, z: f32, is_true: bool) -> (f32, f32) {
        let target = if is_true { 0.9 } else { 0.0 };
        (z.max(0.0) + (-z.abs()).exp().ln_1p() - target * z, self.score(z) - target)
    }

    fn score(&self, z: f32) -> f32 {
        1.0 / (1.0 + (-z).exp())
    }
}

/// A row of weights and a bias for each label. In training it scores the true labels of the batch and those of the
/// sampler.
struct Chosen {
    /// The bias is the last value of a row.
    rows: Parameter,
    sampler: Box<dyn Sampler>,
}

/// What a step leaves to the next phases.
#[derive(Default)]
struct ChosenScratch {
    labels: Vec<u32>,
    /// An instance after the other, a value for each of `labels`.
    gradient: Vec<f32>,
}

impl Chosen {
    fn new(n_labels: usize, width: usize, sampler: impl Sampler + 'static) -> Self {
        Self { rows: Parameter::zeros(n_labels, width + 1, Decay::No), sampler: Box::new(sampler) }
    }

    fn logit(&self, label: u32, x: &[f32]) -> f32 {
        let row = &self.rows.values()[label as usize * self.rows.width()..][..self.rows.width()];
        row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + row[x.len()]
    }
}

impl Head for Chosen {
    type Input = Activations;
    type Scratch = ChosenScratch;

    fn width(&self) -> usize {
        self.rows.width() - 1
    }

    fn labels(&self) -> std::ops::Range<u32> {
        0..self.rows.rows() as u32
    }

    fn loss(
        &self,
        x: &Activations,
        y: Targets<'_>,
        loss: Loss,
        mode: Mode,
        ChosenScratch { labels, gradient }: &mut ChosenScratch,
    ) -> Result<f64, StepError> {
        let mut weights = std::collections::BTreeMap::new();
        match mode {
            Mode::Train(at) => {
                let (vectors, mut out) = (DenseRows::new(x.values(), x.width()), Candidates::default());
                let queries = Queries { instances: y.instances(), vectors, targets: y };
                self.sampler.sample(at, queries, None, self.labels(), &mut out)?;
                weights.extend(out.list(0).labels.iter().copied().zip(out.list(0).weight.iter().copied()));
                // A true label that was not drawn is no negative of the other instances.
                (0..y.len()).flat_map(|i| y.row(i)).for_each(|&label| _ = weights.entry(label).or_insert(0.0));
            }
            Mode::Predict => weights.extend(self.labels().map(|label| (label, 1.0))),
        }
        (*labels, *gradient) = (weights.keys().copied().collect(), Vec::new());
        let (n, mut sum) = (x.len() as f32, 0.0);
        for i in 0..x.len() {
            for (&label, &weight) in &weights {
                let is_true = y.row(i).contains(&label);
                let (value, slope) = loss.loss_and_gradient(self.logit(label, x.row(i)), is_true, Shares::NONE);
                let weight = if is_true { 1.0 } else { weight };
                sum += f64::from(weight * value);
                gradient.push(weight * slope / n);
            }
        }
        Ok(sum / f64::from(n))
    }

    fn backward(&self, dx: &mut Activations, s: &mut ChosenScratch) -> Result<(), StepError> {
        let n = s.gradient.len() / s.labels.len();
        dx.reshape(n, self.width());
        dx.values_mut().fill(0.0);
        for (dx, gradient) in dx.values_mut().chunks_mut(self.width()).zip(s.gradient.chunks(s.labels.len())) {
            for (&label, g) in s.labels.iter().zip(gradient) {
                let row = &self.rows.values()[label as usize * self.rows.width()..];
                dx.iter_mut().zip(row).for_each(|(dx, w)| *dx += g * w);
            }
        }
        Ok(())
    }

    fn update(&mut self, x: &Activations, s: &mut ChosenScratch, update: &Update) -> Result<(), StepError> {
        let width = self.rows.width();
        let mut sums = vec![0.0; self.rows.rows() * width];
        for (i, gradient) in s.gradient.chunks(s.labels.len()).enumerate() {
            for (&label, g) in s.labels.iter().zip(gradient) {
                let row = &mut sums[label as usize * width..][..width];
                row.iter_mut().zip(x.row(i).iter().chain([&1.0])).for_each(|(sum, x)| *sum += g * x);
            }
        }
        self.rows.rows_mut().update(&sums, &update.change);
        Ok(())
    }

    fn logits(&self, x: &Activations, z: &mut Activations, _: &mut ChosenScratch) -> Result<(), StepError> {
        z.reshape(x.len(), self.rows.rows());
        for (i, z) in z.values_mut().chunks_mut(self.rows.rows()).enumerate() {
            z.iter_mut().zip(0..).for_each(|(z, label)| *z = self.logit(label, x.row(i)));
        }
        Ok(())
    }
}

impl State for Chosen {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "chosen": self.rows.width(), "sampler": self.sampler.settings() })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![Named { name: "head.rows".into(), parameter: &self.rows }]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![Named { name: "head.rows".into(), parameter: &mut self.rows }]
    }
}

const N_LABELS: usize = 60;
const WIDTH: usize = 24;

/// Vectors of two labels' directions and noise, and the labels.
fn data(n: usize, seed: u64) -> Result<(Vec<f32>, LabelRows), Box<dyn Error>> {
    let mut directions = vec![0.0; N_LABELS * WIDTH];
    Stream::new(name(0, Purpose::Init, &[])).fill_uniform(1.0, &mut directions);
    let mut stream = Stream::new(name(seed, Purpose::Split, &[]));
    let (mut x, mut lists) = (vec![0.0; n * WIDTH], Vec::new());
    for x in x.chunks_mut(WIDTH) {
        stream.fill_uniform(0.8, x);
        let labels = std::collections::BTreeSet::from([(); 2].map(|()| stream.below(N_LABELS as u32)));
        for label in &labels {
            let direction = &directions[*label as usize * WIDTH..];
            x.iter_mut().zip(direction).for_each(|(x, d)| *x += d);
        }
        lists.push(Vec::from_iter(labels));
    }
    Ok((x, LabelRows::from_lists(lists, N_LABELS)?))
}

type OwnNetwork<H> = Network<encoder::Stack<encoder::Precomputed>, H>;

fn network<H: Head<Input = Activations>>(head: H) -> OwnNetwork<H> {
    let encoder = encoder::Stack::new(encoder::Precomputed::new(WIDTH));
    Network::new(encoder.push(48, Activation::Relu, 0.0, 1), head)
}

fn train<H: Head<Input = Activations>>(network: &mut OwnNetwork<H>, loss: Loss) -> Result<(), Box<dyn Error>> {
    let (x, y) = data(1500, 1)?;
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&x, WIDTH)), &y)?;
    let rule = UpdateRule { optimizer: Optimizer::adam(), rate: 0.01 };
    network.prepare(rule.optimizer, rule.optimizer);
    let (mut batch, mut scratch) = (Batch::default(), Scratch::default());
    for number in 0..300 {
        let first = number as u32 * 50 % 1500;
        batch.fill(&examples, &(first..first + 50).collect::<Vec<_>>());
        network.step(&batch, loss, &StepParams::new(Step { number, epoch: 0, seed: 1 }, rule), &mut scratch)?;
    }
    Ok(())
}

/// The five best labels of the test instances.
fn answers<H: Head<Input = Activations>>(network: &OwnNetwork<H>) -> Result<(RankedBatch, LabelRows), Box<dyn Error>> {
    let (x, y) = data(500, 2)?;
    let (mut batch, mut ranked) = (Batch::default(), Ranked::default());
    let examples = Examples::try_new(Rows::Dense(DenseRows::new(&x, WIDTH)), &y)?;
    batch.fill(&examples, &(0..500).collect::<Vec<_>>());
    network.rank(&batch, None, 5, &mut Scratch::default(), &mut ranked)?;
    Ok((ranked.best, y))
}

fn save<H: Head<Input = Activations>>(network: &OwnNetwork<H>, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut writer = ContainerWriter::create(folder, "your-method")?;
    let write = |array: state::Array<'_>| {
        let name = array.of.name;
        array.write(|bytes| writer.add(name, bytes)).map_err(|e| StateError::new(name, e))
    };
    network.visit(&mut { write })?;
    Ok(writer.finish()?)
}

/// P@1 of the own method and of the dense layer, after all of it.
pub fn run(folder: &Path) -> Result<(f64, f64), Box<dyn Error>> {
    let mut own = network(Chosen::new(N_LABELS, 48, Strided(4)));
    train(&mut own, Loss::Own(&Smoothed))?;
    save(&own, &folder.join("model"))?;

    let mut opened = network(Chosen::new(N_LABELS, 48, Strided(4)));
    opened.load(&Container::open(folder.join("model"), OpenMode::Map)?)?;
    let (mine, truth) = answers(&opened)?;
    assert_eq!(mine, answers(&own)?.0);

    let mut dense = network(Dense::new(N_LABELS, 48, 1));
    train(&mut dense, Loss::Bce)?;
    let (theirs, _) = answers(&dense)?;

    // For `xc evaluate --predictions` and `--compare`.
    xc_data::write_prediction_lines(&mut File::create(folder.join("mine.txt"))?, &mine, None)?;
    xc_data::write_prediction_lines(&mut File::create(folder.join("dense.txt"))?, &theirs, None)?;
    let params = EvaluatorParams { keep_rows: KeepRows::Yes, ..EvaluatorParams::new(N_LABELS) };
    let (mine, theirs) = (evaluate(&truth, &mine, params.clone())?, evaluate(&truth, &theirs, params)?);
    let compared = mine.compare(&theirs, &BootstrapParams::default())?;
    println!("{}", compared.table());
    let of = |report: &xc_metrics::MetricReport| report.value(Metric::Precision(1)).unwrap_or(0.0);
    Ok((of(&mine), of(&theirs)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("a folder is expected")?;
    std::fs::create_dir_all(&folder)?;
    run(&folder).map(|_| ())
}
