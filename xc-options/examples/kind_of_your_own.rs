//! An encoder, a head and a sampler of your own as a custom kind of model: trained, saved, opened beside the standard
//! kinds, and blended with a tree: `cargo run --release -p xc-options --example kind_of_your_own`.
use std::error::Error;
use xc_data::Data;
use xc_dense::DenseRows;
use xc_model::{InputKind, Kind, Model, NetworkModel, OpenOptions, Opened, QueryOptions};
use xc_nn::sampler::{Candidates, FromFn, Queries, Sampler};
use xc_nn::{loss::Shares, state::State, *};
use xc_options::data::{HeldOut, blend};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::fit::{Context, Place, Silent};
use xc_train::kinds::{Fit, TreeFit};

const N_FEATURES: usize = 60;
const N_LABELS: usize = 30;
const WIDTH: usize = 16;

/// The encoder: the sum of a learned vector for each feature.
struct Sums(Parameter);
impl Encoder for Sums {
    type Output = Activations;
    type Scratch = ();
    fn width(&self) -> usize {
        WIDTH
    }
    fn forward(&self, batch: &Batch, _: Mode, y: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        y.reshape(batch.len(), WIDTH);
        y.values_mut().fill(0.0);
        let sums = y.values_mut().chunks_mut(WIDTH).enumerate();
        sums.for_each(|(i, y)| batch.row(i).iter().for_each(|(f, x)| add(y, x, row(self.0.values(), f))));
        Ok(())
    }
    fn update(&mut self, batch: &Batch, g: &Activations, (): &mut (), update: &Update) -> Result<(), StepError> {
        let mut sums = vec![0.0; self.0.values().len()];
        let all = (0..batch.len()).flat_map(|i| batch.row(i).iter().map(move |(f, x)| (i, f, x)));
        all.for_each(|(i, feature, x)| add(&mut sums[feature as usize * WIDTH..], x, g.row(i)));
        self.0.rows_mut().update(&sums, &update.change);
        Ok(())
    }
}
impl State for Sums {
    fn settings(&self) -> serde_json::Value {
        "sums of vectors of features".into()
    }
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![Named { name: "features".into(), parameter: &self.0 }]
    }
    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![Named { name: "features".into(), parameter: &mut self.0 }]
    }
}

/// The sampler: every third label, the next ones in the next step; each stands for three.
fn every_third(at: Step, _: Queries<'_>, labels: std::ops::Range<u32>, out: &mut Candidates) {
    labels.skip(at.number as usize % 3).step_by(3).for_each(|label| out.push(label, 3.0, -3f32.ln()));
}

/// The head: labels have vectors that are given; a step scores the sampled labels and an instance's own.
struct Given(Vec<f32>, FromFn);
impl Head for Given {
    type Input = Activations;
    type Scratch = Activations; // the gradient of the logits
    fn width(&self) -> usize {
        WIDTH
    }
    fn labels(&self) -> std::ops::Range<u32> {
        0..N_LABELS as u32
    }
    fn logits(&self, x: &Activations, z: &mut Activations, _: &mut Activations) -> Result<(), StepError> {
        z.reshape(x.len(), N_LABELS);
        let dot = |i, label| row(&self.0, label).iter().zip(x.row(i)).map(|(w, x)| w * x).sum::<f32>();
        let all = (0..x.len()).flat_map(|i| self.labels().map(move |label| (i, label)));
        z.values_mut().iter_mut().zip(all).for_each(|(z, (i, label))| *z = dot(i, label));
        Ok(())
    }
    fn loss(
        &self,
        x: &Activations,
        y: Targets<'_>,
        by: Loss,
        mode: Mode,
        g: &mut Activations,
    ) -> Result<f64, StepError> {
        self.logits(x, g, &mut Activations::default())?;
        let (mut weights, mut sum, n) = (vec![1.0; N_LABELS], 0.0, x.len() as f32);
        if let Mode::Train(at) = mode {
            let (vectors, mut out) = (DenseRows::new(x.values(), WIDTH), Candidates::default());
            self.1.sample(
                at,
                Queries { instances: y.instances(), vectors, targets: y },
                None,
                self.labels(),
                &mut out,
            )?;
            weights.fill(0.0);
            out.list(0).labels.iter().zip(out.list(0).weight).for_each(|(&l, &weight)| weights[l as usize] = weight);
        }
        for (at, z) in g.values_mut().iter_mut().enumerate() {
            let is_true = y.row(at / N_LABELS).contains(&((at % N_LABELS) as u32));
            let (value, slope) = by.loss_and_gradient(*z, is_true, Shares::NONE);
            let weight = if is_true { 1.0 } else { weights[at % N_LABELS] };
            (sum, *z) = (sum + f64::from(weight * value / n), weight * slope / n);
        }
        Ok(sum)
    }
    fn backward(&self, dx: &mut Activations, g: &mut Activations) -> Result<(), StepError> {
        dx.reshape(g.len(), WIDTH);
        dx.values_mut().fill(0.0);
        let rows = dx.values_mut().chunks_mut(WIDTH).enumerate();
        rows.for_each(|(i, dx)| self.labels().for_each(|l| add(dx, g.row(i)[l as usize], row(&self.0, l))));
        Ok(())
    }
    fn update(&mut self, _: &Activations, _: &mut Activations, _: &Update) -> Result<(), StepError> {
        Ok(())
    }
}
impl State for Given {
    fn settings(&self) -> serde_json::Value {
        self.1.settings()
    }
}

fn row(of: &[f32], at: u32) -> &[f32] {
    &of[at as usize * WIDTH..][..WIDTH]
}
fn add(to: &mut [f32], by: f32, of: &[f32]) {
    to.iter_mut().zip(of).for_each(|(to, of)| *to += by * of);
}

fn network() -> Network<Sums, Given> {
    let given = (0..N_LABELS * WIDTH).map(|i| ((i * i * 7 + i) as f32).sin()).collect();
    let features = Parameter::zeros(N_FEATURES, WIDTH, Decay::No);
    Network::new(Sums(features), Given(given, FromFn::new("every third", every_third)))
}
/// The kind: its name, and how its folders are opened.
const MINE: Kind = Kind::new("mine", |container| {
    Ok(Opened::new(NetworkModel::open(network(), InputKind::Sparse, N_FEATURES, container)?))
});

/// Of two features one tells the label, and the other is noise.
fn data(numbers: std::ops::Range<u32>) -> Result<(CsrMatrix, LabelRows), Box<dyn Error>> {
    let noise = |i: u32| 30 + (i.wrapping_mul(2_654_435_761) >> 16) % 30;
    let features: Vec<u32> = numbers.clone().flat_map(|i| [i % 30, noise(i)]).collect();
    let indptr = (0..=numbers.len()).map(|i| 2 * i).collect();
    let x = CsrMatrix::try_new((numbers.len(), N_FEATURES), indptr, features, vec![0.7; 2 * numbers.len()])?;
    Ok((x, LabelRows::from_lists(numbers.map(|i| [i % 30]), N_LABELS)?))
}

/// Trains both, blends them, and fails if the blend is often wrong.
pub fn main() -> Result<(), Box<dyn Error>> {
    let ((x, y), folder) = (data(0..600)?, tempfile::tempdir()?);
    let (mut network, examples) = (network(), Examples::try_new(Rows::Sparse(x.view()), &y)?);
    let rule = UpdateRule { optimizer: Optimizer::adam(), rate: 0.02 };
    network.prepare(rule.optimizer, rule.optimizer);
    let (mut batch, mut scratch) = (Batch::default(), Scratch::default());
    for number in 0..200 {
        batch.fill(&examples, &Vec::from_iter((0..50).map(|i| (number as u32 * 50 + i) % 600)));
        network.step(&batch, Loss::Bce, &StepParams::new(Step { number, ..Step::default() }, rule), &mut scratch)?;
    }
    let at = |name: &str| folder.path().join(name);
    let mine = NetworkModel::new(network, InputKind::Sparse, N_FEATURES);
    Model::of(&MINE, &mine, &Default::default())?.save(at("mine"))?;
    TreeFit::default().fit_into(&Data::new(x, y), None, &Place::new(at("tree")), &Context::new(&Silent))?;

    let options = OpenOptions { kinds: &[&MINE], ..OpenOptions::default() };
    let open = |name: &str| Model::open_with(at(name), &options);
    let rows = HeldOut { allow_unverified: true, leave_out_seen: true, ..HeldOut::new(data(5000..5400)?) };
    let context = Context::new(&Silent);
    blend(vec![open("mine")?, open("tree")?], None, &rows, &Default::default(), at("both"), &context)?;
    let (x, y) = data(9000..9300)?;
    let answers = open("both")?.predict_batch(Rows::Sparse(x.view()), &QueryOptions::top(1))?;
    let hits = answers.ranked.iter().zip(y.iter()).filter(|(best, truth)| truth.contains(&best[0].label)).count();
    if hits > 270 { Ok(()) } else { Err(format!("{hits} of 300 best labels of the blend are true").into()) }
}
