//! A head whose state is not made of parameters alone: checkpoints, keys and the best state hold
//! all of it.

use crate::reference::{features, targets};
use half::f16;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xc_buffer::Cancel;
use xc_buffer::dtype::DType;
use xc_nn::encoder::Bag;
use xc_nn::head::{Dense, DenseScratch};
use xc_nn::schedule::HalveOnPlateau;
use xc_nn::state::{
    self, Array, Arrays, Role, Snapshot, State, StateError, Visitor, load_parameters, visit_parameters,
};
use xc_nn::trainer::{
    CHECKPOINT, CheckpointAt, Keep, Observer, STATE, Silent, Subset, Summary, TrainError, TrainEvent,
};
use xc_nn::{
    Activation, Activations, Examples, Head, Loss, Mode, Named, Network, Optimizer, Parameter, Rows, StepError,
    Targets, TrainParams, Trainer, Update,
};
use xc_store::{ArrayRef, CheckpointFolder, Container, ContainerWriter, OpenMode};

/// A dense head that also counts its steps in 16-bit places, adds a half-precision scale, and
/// remembers something.
#[derive(Clone, Debug)]
struct Counting {
    dense: Dense,
    places: Vec<u16>,
    scales: Vec<f16>,
    memory: Vec<i8>,
}

const ROWS: usize = 3;
/// No place is larger: what the head says about one that is.
const LARGEST: u16 = 5000;

impl Counting {
    fn new() -> Self {
        let dense = Dense::new(9, 6, 1);
        Self { dense, places: vec![1; 2 * ROWS], scales: vec![f16::ONE; ROWS], memory: vec![0; 2 * ROWS] }
    }
}

impl Head for Counting {
    type Input = Activations;
    type Scratch = DenseScratch;

    fn width(&self) -> usize {
        self.dense.width()
    }

    fn labels(&self) -> Range<u32> {
        self.dense.labels()
    }

    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut DenseScratch,
    ) -> Result<f64, StepError> {
        self.dense.loss(input, targets, loss, mode, scratch)
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut DenseScratch) -> Result<(), StepError> {
        self.dense.backward(gradient, scratch)
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut DenseScratch) -> Result<f64, StepError> {
        self.dense.squared_norm(input, scratch)
    }

    fn update(&mut self, input: &Activations, scratch: &mut DenseScratch, update: &Update) -> Result<(), StepError> {
        self.dense.update(input, scratch, update)?;
        for (i, (place, memory)) in self.places.iter_mut().zip(&mut self.memory).enumerate() {
            *memory = memory.wrapping_add(i as i8 + 3);
            *place = (*place + memory.unsigned_abs() as u16) % LARGEST;
        }
        let first = f32::from(self.places[0]) / 64.0;
        // One that is infinite stays so.
        self.scales.iter_mut().filter(|scale| scale.is_finite()).for_each(|scale| *scale = f16::from_f32(first));
        Ok(())
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut DenseScratch,
    ) -> Result<(), StepError> {
        self.dense.logits(input, logits, scratch)
    }
}

impl State for Counting {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "counting": LARGEST, "places": self.places[0] })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.dense.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.dense.parameters_mut()
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        visit_parameters(self.dense.parameters(), f)?;
        f(Array::new("head.places", Role::Answer, [ROWS, 2], &self.places))?;
        f(Array::new("head.scales", Role::Answer, [ROWS, 1], &self.scales))?;
        f(Array::new("head.memory", Role::Training, [ROWS, 2], &self.memory))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        load_parameters(self.dense.parameters_mut(), from)?;
        state::read(from, "head.places", Role::Answer, [ROWS, 2], &mut self.places)?;
        state::read(from, "head.scales", Role::Answer, [ROWS, 1], &mut self.scales)?;
        state::read(from, "head.memory", Role::Training, [ROWS, 2], &mut self.memory)?;
        match self.places.iter().find(|&&place| place >= LARGEST) {
            Some(place) => Err(StateError::new("head.places", format!("{place}, expected below {LARGEST}"))),
            None => Ok(()),
        }
    }
}

type Net = Network<Bag, Counting>;

fn network(head: Counting) -> Net {
    Network::new(Bag::new(30, 6, Activation::Relu, 0.1, 1), head)
}

/// Asks to stop after some steps of a run.
struct StopAfter {
    expected: u64,
    steps: AtomicU64,
}

impl Cancel for StopAfter {
    fn cancelled(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.expected
    }
}

impl Observer<TrainEvent<'_>> for StopAfter {
    fn event(&self, event: TrainEvent<'_>) {
        if let TrainEvent::Step { .. } = event {
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One run of at most `steps` steps with a checkpoint; the network afterwards.
fn run(folder: &Path, head: Counting, keep: Keep, steps: u64) -> (Net, Result<Summary, TrainError>) {
    let (x, y) = (features(60, 30), targets(60, 9));
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let (train, validation) = Subset::split(examples, 0.2, 1);
    let mut schedule = HalveOnPlateau::new(1);
    let place = CheckpointFolder::claim(folder, CHECKPOINT).unwrap();
    let checkpoint = place.begin(format!("{keep:?}")).unwrap();
    let mut trainer = Trainer {
        loss: Loss::Bce,
        optimizer: Optimizer::adam(),
        schedule: &mut schedule,
        // Fast enough that the best evaluation is not the last one.
        params: TrainParams { batch_size: 8, epochs: 6, rate: 3.0, keep, ..Default::default() },
        checkpoint: Some(CheckpointAt {
            checkpoint: &checkpoint,
            part: STATE.to_owned(),
            every: Some(1000),
            after: Duration::MAX,
        }),
        hard: None,
        observer: &StopAfter { expected: steps, steps: AtomicU64::new(0) },
    };
    let mut network = network(head);
    let outcome = trainer.train(&mut network, &train, Some(&validation));
    (network, outcome)
}

fn bytes(network: &Net) -> Vec<(String, Vec<u8>)> {
    let all = Snapshot::of(&network.parts()).unwrap();
    all.arrays().map(|(name, _, array)| (name.to_owned(), array.bytes.to_vec())).collect()
}

#[test]
fn interrupted_after_any_step_every_array_ends_the_same() {
    for keep in [Keep::Best, Keep::Last] {
        let base = tempfile::tempdir().unwrap();
        let (whole, summary) = run(&base.path().join("whole"), Counting::new(), keep, u64::MAX);
        let summary = summary.unwrap();
        assert_eq!(summary.steps, 36);
        if keep == Keep::Best {
            let best = summary.best.unwrap().0;
            assert!(best < summary.steps, "the best state is the last one: nothing is put back");
            let (last, ..) = run(&base.path().join("last"), Counting::new(), Keep::Last, u64::MAX);
            assert_ne!(last.head().places, whole.head().places);
        }
        let mut steps = 0;
        let parts = loop {
            match run(&base.path().join("parts"), Counting::new(), keep, 5) {
                (network, Ok(_)) => break network,
                (.., Err(TrainError::Cancelled { step })) => steps = step,
                (.., Err(other)) => panic!("{other}"),
            }
        };
        assert_eq!(steps, 35);
        // Moments are not part of what is kept.
        let values = |net: &Net| {
            let mut answers = Snapshot::default();
            answers.take(&net.parts(), &[Role::Answer]).unwrap();
            answers
        };
        assert!(values(&whole) == values(&parts), "{keep:?}");
        if keep == Keep::Last {
            assert!(bytes(&whole) == bytes(&parts));
        }
    }
}

#[test]
fn a_checkpoint_has_the_names_of_the_parameters_and_best_values_alone() {
    let base = tempfile::tempdir().unwrap();
    assert!(run(base.path(), Counting::new(), Keep::Best, 8).1.is_err());
    let state = Container::open(&base.path().join("state"), OpenMode::Read).unwrap();
    let names: Vec<&str> = state.arrays().map(|(name, _)| name).collect();
    let values = ["bag.bias", "bag.table", "head.bias", "head.places", "head.scales", "head.weights"];
    let mut expected: Vec<String> =
        values.iter().flat_map(|name| [(*name).to_owned(), format!("best.{name}")]).collect();
    for name in ["bag.bias", "bag.table", "head.bias", "head.weights"] {
        expected.extend([format!("{name}.m0"), format!("{name}.m1")]);
    }
    expected.push("head.memory".to_owned());
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!(state.entry("best.head.places").unwrap().dtype, DType::U16);
    assert_eq!(state.entry("head.scales").unwrap().dtype, DType::F16);
}

#[test]
fn keys_follow_settings_from_which_first_values_come() {
    let first = Counting::new().settings();
    assert_eq!(first, Counting { memory: vec![9; 2 * ROWS], ..Counting::new() }.settings());
    assert_ne!(first, Counting { places: vec![2; 2 * ROWS], ..Counting::new() }.settings());
    let bag = |seed: u64| Bag::new(30, 6, Activation::Relu, 0.1, seed).settings();
    assert_ne!(bag(1), bag(2), "the seed of first values is a setting");
    assert_ne!(Dense::new(9, 6, 1).settings(), Dense::new(9, 6, 2).settings());
}

#[test]
fn keys_follow_the_model_the_settings_the_rows_and_their_contents() {
    let (x, y) = (features(60, 30), targets(60, 9));
    let mut other = x.clone();
    other.data_mut()[7] += 0.5;
    let key = |model: &[u64], epochs: u32, x: &xc_sparse::CsrMatrix, seed: u64, schedule: &mut HalveOnPlateau| {
        let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
        let (train, validation) = Subset::split(examples, 0.2, seed);
        let trainer = Trainer {
            loss: Loss::Bce,
            optimizer: Optimizer::adam(),
            schedule,
            params: TrainParams { epochs, ..Default::default() },
            checkpoint: None,
            hard: None,
            observer: &Silent,
        };
        trainer.key(CHECKPOINT, &model, &train, Some(&validation))
    };
    let keys = [
        key(&[1, 2], 3, &x, 1, &mut HalveOnPlateau::new(1)),
        key(&[1, 3], 3, &x, 1, &mut HalveOnPlateau::new(1)),
        key(&[1, 2], 4, &x, 1, &mut HalveOnPlateau::new(1)),
        key(&[1, 2], 3, &other, 1, &mut HalveOnPlateau::new(1)),
        key(&[1, 2], 3, &x, 2, &mut HalveOnPlateau::new(1)),
        key(&[1, 2], 3, &x, 1, &mut HalveOnPlateau::new(2)),
    ];
    let unique: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(unique.len(), keys.len(), "{keys:?}");
    assert_eq!(keys[0], key(&[1, 2], 3, &x, 1, &mut HalveOnPlateau::new(1)));
}

/// What a run says when one array of its checkpoint is replaced; hashes and key hold.
fn with_array(name: &str, dtype: DType, shape: &[usize], bytes: &[u8]) -> String {
    let base = tempfile::tempdir().unwrap();
    assert!(run(base.path(), Counting::new(), Keep::Best, 8).1.is_err());
    let state = base.path().join("state");
    let whole = Container::open(&state, OpenMode::Read).unwrap();
    let mut writer = ContainerWriter::create(&state, "checkpoint").unwrap();
    whole.parameters().iter().for_each(|(key, value)| writer.set_parameter(key, value.clone()));
    for (array, entry) in whole.arrays() {
        let old = whole.bytes(array, entry.dtype, &entry.shape).unwrap();
        let new = ArrayRef { dtype: entry.dtype, shape: &entry.shape, bytes: old };
        writer.add(array, if array == name { ArrayRef { dtype, shape, bytes } } else { new }).unwrap();
    }
    writer.finish().unwrap();
    match run(base.path(), Counting::new(), Keep::Best, u64::MAX).1 {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn arrays_of_another_type_or_shape_or_impossible_content_are_refused() {
    let ones = [1u8, 0].repeat(2 * ROWS);
    assert_eq!(with_array("head.places", DType::U16, &[ROWS, 2], &ones), "");
    let got = with_array("head.places", DType::I16, &[ROWS, 2], &ones);
    assert!(got.contains("array \"head.places\" is of type I16, expected U16"), "{got}");
    let got = with_array("best.head.places", DType::U16, &[2, ROWS], &ones);
    assert!(got.contains("array \"best.head.places\" has shape [2, 3], expected [3, 2]"), "{got}");
    let got = with_array("head.memory", DType::I8, &[1, 1], &[0]);
    assert!(got.contains("array \"head.memory\" has shape [1, 1], expected [3, 2]"), "{got}");
    for name in ["head.places", "best.head.places"] {
        let got = with_array(name, DType::U16, &[ROWS, 2], &[0xff; 4 * ROWS]);
        assert!(got.contains("is damaged: array head.places: 65535, expected below 5000"), "{got}");
    }
    for name in ["head.scales", "best.head.scales"] {
        // 0x7c00 is infinity.
        let got = with_array(name, DType::F16, &[ROWS, 1], &[0, 0x3c, 0, 0x7c, 0, 0x3c]);
        assert!(got.contains(&format!("array {name}: value 1 is not finite")), "{got}");
    }
}

#[test]
fn an_array_that_is_not_finite_is_not_saved() {
    let base = tempfile::tempdir().unwrap();
    let mut head = Counting::new();
    head.scales[2] = f16::INFINITY;
    assert!(network(head.clone()).check_finite().is_err() && network(Counting::new()).check_finite().is_ok());
    let (.., got) = run(base.path(), head, Keep::Best, 8);
    assert!(matches!(got, Err(TrainError::NotFinite { step: 8, checkpoint: None, .. })), "{got:?}");
    assert!(!base.path().join("state").exists());
}
