//! The loop: it learns, stops, resumes after being killed, and says what is wrong.

use crate::reference::{features, targets};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use xc_buffer::Cancel;
use xc_metrics::Metric;
use xc_nn::encoder::{Bag, Stack};
use xc_nn::head::Dense;
use xc_nn::schedule::{Constant, HalveOnPlateau};
use xc_nn::trainer::{
    CHECKPOINT, CheckpointAt, EarlyStopping, Keep, Monitor, Observer, PatienceFrom, STATE, Silent, Subset, TrainError,
    TrainEvent, TrainObserver, ValidationParams, evaluate,
};
use xc_nn::{Activation, Examples, HardLabels, Loss, Network, Optimizer, Rows, TrainParams, Trainer};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::{ArrayRef, CheckpointError, CheckpointFolder, Container, ContainerWriter, OpenMode};

const N: usize = 300;
const N_FEATURES: usize = 200;
const N_OUTPUTS: usize = 40;

struct Data {
    x: CsrMatrix,
    y: LabelRows,
}

impl Data {
    fn new() -> Self {
        Self { x: features(N, N_FEATURES), y: targets(N, N_OUTPUTS) }
    }

    fn examples(&self) -> Examples<'_> {
        Examples::try_new(Rows::Sparse(self.x.view()), &self.y).unwrap()
    }
}

fn network() -> Network<Stack<Bag>, Dense> {
    let encoder = Stack::new(Bag::new(N_FEATURES, 24, Activation::Relu, 0.1, 4)).push(16, Activation::Relu, 0.1, 4);
    Network::new(encoder, Dense::new(N_OUTPUTS, 16, 4))
}

fn params() -> TrainParams {
    TrainParams {
        batch_size: 16,
        epochs: 8,
        rate: 0.01,
        seed: 4,
        clip_norm: Some(1.0),
        keep: Keep::Last,
        monitor: Monitor::Loss,
        ..Default::default()
    }
}

fn stop_after(patience: u32, from: PatienceFrom) -> Option<EarlyStopping> {
    Some(EarlyStopping { patience, from })
}

fn values(network: &Network<Stack<Bag>, Dense>) -> Vec<u32> {
    network.parameters().iter().flat_map(|p| p.parameter.values().iter().map(|v| v.to_bits())).collect()
}

fn trainer<'a>(params: TrainParams, schedule: &'a mut HalveOnPlateau, observer: &'a TrainObserver<'a>) -> Trainer<'a> {
    let optimizer = Optimizer::adam().with_weight_decay(0.01);
    Trainer { loss: Loss::Bce, optimizer, schedule, params, checkpoint: None, hard: None, observer }
}

/// Trains with a checkpoint under `folder`.
fn run(folder: &Path, params: TrainParams, observer: &TrainObserver<'_>) -> Result<Vec<u32>, TrainError> {
    run_collecting(folder, params, observer, None)
}

fn run_collecting(
    folder: &Path,
    params: TrainParams,
    observer: &TrainObserver<'_>,
    hard: Option<&mut HardLabels>,
) -> Result<Vec<u32>, TrainError> {
    let data = Data::new();
    let (train, validation) = Subset::split(data.examples(), 0.2, 1);
    let mut schedule = HalveOnPlateau::new(1);
    std::fs::create_dir_all(folder).unwrap();
    let place = CheckpointFolder::claim(&folder.join("checkpoint"), CHECKPOINT)?;
    #[expect(clippy::needless_late_init, reason = "the trainer borrows it, so it lives longer")]
    let checkpoint;
    let mut trainer = Trainer { hard, ..trainer(params, &mut schedule, observer) };
    checkpoint = place.begin(trainer.key(CHECKPOINT, &"24, 16", &train, Some(&validation)))?;
    let part = STATE.to_owned();
    trainer.checkpoint = Some(CheckpointAt { checkpoint: &checkpoint, part, every: Some(3), after: Duration::ZERO });
    let mut network = network();
    trainer.train(&mut network, &train, Some(&validation))?;
    Ok(values(&network))
}

/// Writes a line a resumption, so that the parent sees that there were some, and takes its time.
struct Slow(PathBuf);

impl Cancel for Slow {}

impl Observer<TrainEvent<'_>> for Slow {
    fn event(&self, event: TrainEvent<'_>) {
        match event {
            TrainEvent::Resumed { step, .. } => {
                let known = std::fs::read_to_string(&self.0).unwrap_or_default();
                std::fs::write(&self.0, format!("{known}{step}\n")).unwrap();
            }
            TrainEvent::Step { .. } => std::thread::sleep(Duration::from_millis(2)),
            _ => {}
        }
    }
}

/// Not a test: the process that `killed_at_any_moment...` starts and kills.
#[test]
#[ignore = "a child process of another test"]
fn child() {
    let folder = PathBuf::from(std::env::var_os("XC_TRAIN_CHILD").expect("started by the other test"));
    let got = run(&folder, params(), &Slow(folder.join("resumed"))).unwrap();
    let bytes: Vec<u8> = got.iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.join("partial"), bytes).unwrap();
    std::fs::rename(folder.join("partial"), folder.join("values")).unwrap();
}

#[test]
fn killed_at_any_moment_it_resumes_to_the_same_bytes() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    let began = Instant::now();
    let expected = run(&whole, params(), &Slow(base.path().join("unused"))).unwrap();
    let took = began.elapsed();
    let folder = base.path().join("killed");
    std::fs::create_dir(&folder).unwrap();
    let mut kills = 0;
    for attempt in 0u64.. {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "training::child"])
            .env("XC_TRAIN_CHILD", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Long enough for the child to begin; then somewhere in the next quarter of the work.
        let share = (attempt * 0x9e37 % 97) as f64 / 97.0;
        let deadline = Instant::now() + Duration::from_millis(30) + took.mul_f64(0.25 * share);
        let done = loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "the child failed by itself");
                break true;
            }
            if attempt < 12 && Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                break false;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if done {
            break;
        }
        kills += 1;
    }
    let got: Vec<u32> = std::fs::read(folder.join("values"))
        .unwrap()
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b))
        .collect();
    assert!(got == expected, "bytes differ after {kills} kills");
    let resumed = std::fs::read_to_string(folder.join("resumed")).unwrap_or_default();
    let steps: Vec<u64> = resumed.lines().map(|l| l.parse().unwrap()).collect();
    assert!(steps.iter().any(|&s| s > 0 && s < 120), "it never resumed in the middle: {steps:?} after {kills} kills");
    // Nothing half-written is left behind.
    let entries = std::fs::read_dir(folder.join("checkpoint")).unwrap();
    let mut left: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".xc-lock", "config.json", "state"]);
}

/// Cancels after a number of steps.
struct CancelAfter(u64, Mutex<u64>);

impl Cancel for CancelAfter {
    fn cancelled(&self) -> bool {
        *self.1.lock().unwrap() >= self.0
    }
}

impl Observer<TrainEvent<'_>> for CancelAfter {
    fn event(&self, event: TrainEvent<'_>) {
        if let TrainEvent::Step { step, .. } = event {
            *self.1.lock().unwrap() = step;
        }
    }
}

#[test]
fn cancelled_after_every_step_it_still_ends_the_same() {
    let base = tempfile::tempdir().unwrap();
    let params = TrainParams { epochs: 2, validate_every: Some(7), ..params() };
    let expected = run(&base.path().join("a"), params.clone(), &Silent).unwrap();
    let mut steps = 0;
    let got = loop {
        steps += 1;
        match run(&base.path().join("b"), params.clone(), &CancelAfter(1, Mutex::default())) {
            Ok(got) => break got,
            Err(TrainError::Cancelled { step }) => assert_eq!(step, steps),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(steps, 31, "30 steps and one run that finds nothing left to do");
    assert!(got == expected);
}

/// Cancels from a question on.
struct CancelFrom(u64, AtomicU64);

impl Cancel for CancelFrom {
    fn cancelled(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

impl Observer<TrainEvent<'_>> for CancelFrom {
    fn event(&self, _: TrainEvent<'_>) {}
}

/// Inside of a validation too, whose step is not done again.
#[test]
fn cancelled_at_every_question_it_still_ends_the_same() {
    let params = TrainParams { epochs: 2, validate_every: Some(7), ..params() };
    let base = tempfile::tempdir().unwrap();
    let never = CancelFrom(u64::MAX, AtomicU64::new(0));
    let expected = run(&base.path().join("whole"), params.clone(), &never).unwrap();
    let asked = never.1.into_inner();
    assert!(asked > 34, "{asked} questions: 30 steps, and batches of 4 validations");
    for first in 0..asked {
        let folder = base.path().join(first.to_string());
        let stopped = run(&folder, params.clone(), &CancelFrom(first, AtomicU64::new(0)));
        assert!(matches!(stopped, Err(TrainError::Cancelled { .. })), "question {first}");
        assert!(run(&folder, params.clone(), &Silent).unwrap() == expected, "question {first}");
    }
}

#[test]
fn a_checkpoint_of_other_settings_or_damaged_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let few = TrainParams { epochs: 1, ..params() };
    run(base.path(), few.clone(), &Silent).unwrap();
    let other = run(base.path(), TrainParams { rate: 0.02, ..few.clone() }, &Silent);
    assert!(matches!(other, Err(TrainError::Checkpoint(CheckpointError::Foreign { .. }))), "{other:?}");
    let file = base.path().join("checkpoint/state/model.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = run(base.path(), few, &Silent);
    assert!(matches!(damaged, Err(TrainError::Checkpoint(CheckpointError::Damaged { .. }))), "{damaged:?}");
}

#[test]
fn a_checkpoint_whose_content_cannot_be_is_refused_although_its_hashes_hold() {
    let base = tempfile::tempdir().unwrap();
    let few = TrainParams { epochs: 2, ..params() };
    run(base.path(), few.clone(), &Silent).unwrap();
    let state = base.path().join("checkpoint/state");
    let whole = Container::open(&state, OpenMode::Read).unwrap();
    let rewrite = |name: &str, change: &dyn Fn(&mut [f32]), position: &dyn Fn(&mut serde_json::Value)| {
        let mut writer = ContainerWriter::create(&state, "checkpoint").unwrap();
        whole.parameters().iter().for_each(|(key, value)| writer.set_parameter(key, value.clone()));
        let mut numbers = whole.parameters()["position"].clone();
        position(&mut numbers);
        writer.set_parameter("position", numbers);
        for (array, entry) in whole.arrays() {
            let mut values = whole.array::<f32>(array).unwrap().to_vec();
            if array == name {
                change(&mut values);
            }
            writer.add(array, ArrayRef::new(&values, &entry.shape)).unwrap();
        }
        writer.finish().unwrap();
        run(base.path(), few.clone(), &Silent)
    };
    let of_position = |name: &str, value: serde_json::Value| {
        rewrite("", &|_| (), &|position| *position.pointer_mut(name).unwrap() = value.clone())
    };
    assert!(of_position("/epoch", 2.into()).is_ok());
    for (name, number) in [
        ("/epoch", 1),
        ("/epoch", u64::MAX >> 32),
        ("/batch", 15),
        ("/step", 29),
        ("/step", u64::MAX),
        ("/waited", 1 << 31),
        ("/best/step", 31),
    ] {
        let got = of_position(name, number.into());
        let Err(TrainError::Checkpoint(CheckpointError::Damaged { what, .. })) = &got else {
            panic!("{name}: {got:?}")
        };
        assert!(what.contains("is no position of epochs of 15 batches"), "{what}");
    }
    // Not a number, or not all of them.
    for (name, value) in [("/epoch", "one".into()), ("/epoch", u64::MAX.into()), ("", serde_json::json!({"epoch": 2}))]
    {
        let got = of_position(name, value).unwrap_err().to_string();
        assert!(got.contains("parameter \"position\""), "{got}");
    }
    for name in ["head.weights", "layer1.bias"] {
        let got = rewrite(name, &|values| values[1] = f32::INFINITY, &|_| ());
        let message = got.unwrap_err().to_string();
        assert!(message.contains(&format!("array {name}: value 1 is not finite")), "{message}");
    }
}

#[test]
fn hard_labels_are_the_same_after_interruptions_and_change_nothing() {
    let (base, data) = (tempfile::tempdir().unwrap(), Data::new());
    let params = TrainParams { epochs: 2, ..params() };
    let expected = run(&base.path().join("without"), params.clone(), &Silent).unwrap();
    let table = |place| HardLabels::new(N, 2, 3, place).unwrap();
    let mut whole = table(None);
    let got = run_collecting(&base.path().join("whole"), params.clone(), &Silent, Some(&mut whole)).unwrap();
    assert!(got == expected, "collecting changed what is learned");
    let (folder, file) = (base.path().join("parts"), tempfile::tempdir().unwrap());
    let parts = 'steps: loop {
        // In memory and in a file by turns.
        for place in [None, Some(file.path())] {
            let mut hard = table(place);
            let stop = CancelAfter(1, Mutex::default());
            match run_collecting(&folder, params.clone(), &stop, Some(&mut hard)) {
                Err(TrainError::Cancelled { .. }) => {}
                got => {
                    assert!(got.unwrap() == expected);
                    break 'steps hard;
                }
            }
        }
    };
    let (whole, parts) = (whole.into_rows(N_OUTPUTS).unwrap(), parts.into_rows(N_OUTPUTS).unwrap());
    assert_eq!(whole, parts);
    let train = Subset::split(data.examples(), 0.2, 1).0;
    for i in 0..N {
        let (hard, truth) = (whole.row(i), data.y.row(i));
        assert!(hard.iter().all(|label| !truth.contains(label)));
        // Three of each epoch, some of them the same.
        let expected = if train.rows().contains(&(i as u32)) { 3..=6 } else { 0..=0 };
        assert!(expected.contains(&hard.len()), "instance {i}: {hard:?}");
    }
}

#[test]
fn a_checkpoint_of_other_hard_labels_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let few = TrainParams { epochs: 1, ..params() };
    let run = |n| {
        let mut hard = HardLabels::new(N, 1, n, None).unwrap();
        run_collecting(base.path(), few.clone(), &Silent, Some(&mut hard))
    };
    run(3).unwrap();
    let other = run(4);
    assert!(matches!(other, Err(TrainError::Checkpoint(CheckpointError::Foreign { .. }))), "{other:?}");
    let state = base.path().join("checkpoint/state");
    let whole = Container::open(&state, OpenMode::Read).unwrap();
    let table = whole.array_shaped::<u32>("hard_labels", &[N, 3]).unwrap();
    let rewrite = |table: Option<(&[u32], &[usize])>| {
        let mut writer = ContainerWriter::create(&state, "checkpoint").unwrap();
        whole.parameters().iter().for_each(|(key, value)| writer.set_parameter(key, value.clone()));
        for (array, entry) in whole.arrays().filter(|(name, _)| *name != "hard_labels") {
            let bytes = whole.bytes(array, entry.dtype, &entry.shape).unwrap();
            writer.add(array, ArrayRef { dtype: entry.dtype, shape: &entry.shape, bytes }).unwrap();
        }
        if let Some((values, shape)) = table {
            writer.add("hard_labels", ArrayRef::new(values, shape)).unwrap();
        }
        writer.finish().unwrap();
        run(3)
    };
    rewrite(Some((&table, &[N, 3]))).unwrap();
    let mut no_label = table.to_vec();
    no_label[5] = !(N_OUTPUTS as u32);
    for (table, expected) in [
        (Some((&*table, &[3, N][..])), "hard_labels"),
        (Some((&table[1..], &[N * 3 - 1][..])), "hard_labels"),
        (None, "hard_labels"),
        (Some((&*no_label, &[N, 3][..])), "label 40, expected one below 40"),
    ] {
        let got = rewrite(table);
        let Err(TrainError::Checkpoint(CheckpointError::Damaged { what, .. })) = &got else { panic!("{got:?}") };
        assert!(what.contains(expected), "{what}");
    }
}

#[test]
fn a_diverging_training_stops_and_names_the_last_good_state() {
    let base = tempfile::tempdir().unwrap();
    let data = Data::new();
    let mut constant = Constant;
    let checkpoint = CheckpointFolder::claim(base.path(), CHECKPOINT).unwrap().begin("key".to_owned()).unwrap();
    let mut trainer = Trainer {
        loss: Loss::SquaredHinge,
        optimizer: Optimizer::sgd(),
        schedule: &mut constant,
        params: TrainParams { rate: 1e4, clip_norm: None, epochs: 50, ..params() },
        checkpoint: Some(CheckpointAt {
            checkpoint: &checkpoint,
            part: STATE.to_owned(),
            every: Some(1),
            after: Duration::ZERO,
        }),
        hard: None,
        observer: &Silent,
    };
    let got = trainer.train(&mut network(), &Subset::all(data.examples()), None);
    let Err(error @ TrainError::NotFinite { .. }) = got else { panic!("{got:?}") };
    let TrainError::NotFinite { step, checkpoint: Some((folder, at)), .. } = &error else { panic!("{error:?}") };
    assert_eq!(folder, base.path());
    assert!(*at <= *step && *at > 0, "saved after {at}, failed in {step}");
    assert!(
        error.to_string().contains(&format!("last good checkpoint: {}, after step {at}", base.path().display())),
        "{error}"
    );
    let state = Container::open(&base.path().join("state"), Default::default()).unwrap();
    assert!(state.array::<f32>("head.weights").unwrap().iter().all(|v| v.is_finite()));
}

#[test]
fn it_learns_stops_early_and_keeps_the_best() {
    let data = Data::new();
    let (train, validation) = Subset::split(data.examples(), 0.3, 2);
    let mut schedule = HalveOnPlateau::new(100);
    let seen = Mutex::new(Vec::new());
    struct Watch<'a>(&'a Mutex<Vec<(f64, bool)>>);
    impl Cancel for Watch<'_> {}

    impl Observer<TrainEvent<'_>> for Watch<'_> {
        fn event(&self, event: TrainEvent<'_>) {
            if let TrainEvent::Validated { validation, is_best, .. } = event {
                self.0.lock().unwrap().push((validation.loss, is_best));
            }
        }
    }
    let watch = Watch(&seen);
    let params = TrainParams {
        epochs: 500,
        early_stopping: stop_after(3, PatienceFrom::Start),
        rate: 0.02,
        keep: Keep::Best,
        ..params()
    };
    let mut trainer = trainer(params, &mut schedule, &watch);
    let mut network = network();
    let summary = trainer.train(&mut network, &train, Some(&validation)).unwrap();
    let losses = seen.lock().unwrap();
    assert!(summary.stopped_early && summary.epochs < 500 && losses.len() == summary.epochs as usize);
    let best = losses.iter().map(|l| l.0).fold(f64::INFINITY, f64::min);
    assert_eq!(summary.best.unwrap().1, best);
    assert_eq!(losses.iter().rposition(|l| l.1).unwrap(), losses.len() - 4, "three evaluations after the best one");
    assert!(best < losses[0].0 * 0.999, "it learned nothing: {losses:?}");
    let metrics = ValidationParams::new(Monitor::Loss, &train).unwrap();
    let again =
        evaluate(&network, &validation, Loss::Bce, 50, &metrics, &mut Default::default(), &Silent).unwrap().unwrap();
    assert!((again.loss / best - 1.0).abs() < 1e-9, "{again:?} {best}");
}

#[test]
fn the_rate_is_halved_down_to_its_lowest_before_patience_counts() {
    #[derive(Default)]
    struct Seen {
        /// Of each step.
        rates: Mutex<Vec<f64>>,
        /// After how many steps, and P@3.
        precisions: Mutex<Vec<(usize, f64)>>,
    }
    impl Cancel for Seen {}

    impl Observer<TrainEvent<'_>> for Seen {
        fn event(&self, event: TrainEvent<'_>) {
            match event {
                TrainEvent::Step { rate, .. } => self.rates.lock().unwrap().push(rate),
                TrainEvent::Validated { step, validation, .. } => {
                    let precision = validation.metrics.value(Metric::Precision(3)).unwrap();
                    self.precisions.lock().unwrap().push((step as usize, precision));
                }
                _ => {}
            }
        }
    }
    let data = Data::new();
    let (train, validation) = Subset::split(data.examples(), 0.3, 2);
    let mut runs = Vec::new();
    for patience_from in [PatienceFrom::Start, PatienceFrom::LowestRate] {
        let seen = Seen::default();
        let mut schedule = HalveOnPlateau::new(1).down_to(0.1);
        let monitor = Monitor::Metric(Metric::Precision(3));
        let early_stopping = stop_after(2, patience_from);
        let params = TrainParams { epochs: 500, early_stopping, rate: 0.02, monitor, ..params() };
        let mut trainer = trainer(params, &mut schedule, &seen);
        let summary = trainer.train(&mut network(), &train, Some(&validation)).unwrap();
        assert!(summary.stopped_early);
        let (rates, precisions) = (seen.rates.into_inner().unwrap(), seen.precisions.into_inner().unwrap());
        // The rule once more, in the plainest words.
        let (mut rate, mut best, mut waited, mut at) = (0.02, f64::NEG_INFINITY, 0, 0);
        for (i, &(step, precision)) in precisions.iter().enumerate() {
            assert!(rates[at..step].iter().all(|&r| r == rate), "{i}: {rate} {:?}", &rates[at..step]);
            at = step;
            if precision > best {
                (best, waited) = (precision, 0);
            } else {
                waited += u32::from(patience_from == PatienceFrom::Start || rate <= 0.002);
                rate = f64::max(rate / 2.0, 0.002);
            }
            assert_eq!(waited >= 2, i + 1 == precisions.len(), "evaluation {i} at rate {rate}");
        }
        assert_eq!(summary.best.unwrap().1, best);
        runs.push((precisions.len(), rates[rates.len() - 1]));
    }
    let [(short, _), (long, last)] = runs[..] else { panic!("two runs") };
    assert!(short < long && last == 0.002, "{runs:?}");
}

#[test]
fn it_reaches_the_answer_where_one_feature_says_it_all() {
    let rows = 400;
    let x = CsrMatrix::from_checked(
        (rows, 20),
        (0..=rows).collect(),
        (0..rows as u32).map(|i| i % 20).collect(),
        vec![1.0; rows],
    );
    let y = LabelRows::from_lists((0..rows as u32).map(|i| [(i % 20) * 7 % 20]), 20).unwrap();
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
    let mut constant = Constant;
    let optimizer = Optimizer::adam();
    let mut trainer = Trainer {
        loss: Loss::Softmax,
        optimizer,
        schedule: &mut constant,
        params: TrainParams { batch_size: 32, epochs: 20, rate: 0.02, ..Default::default() },
        checkpoint: None,
        hard: None,
        observer: &Silent,
    };
    let mut network = Network::new(Bag::new(20, 16, Activation::Relu, 0.0, 1), Dense::new(20, 16, 1));
    let all = Subset::all(examples);
    let summary = trainer.train(&mut network, &all, Some(&all)).unwrap();
    assert_eq!(summary.best.unwrap().1, 1.0, "P@1 is watched unless something else is asked for");
    let metrics = ValidationParams::new(Monitor::Loss, &all).unwrap();
    let last =
        evaluate(&network, &all, Loss::Softmax, 50, &metrics, &mut Default::default(), &Silent).unwrap().unwrap();
    assert!(last.metrics.value(Metric::Precision(1)) == Some(1.0) && last.loss < 0.5, "{last:?}");
}

#[test]
fn bad_settings_are_named() {
    let data = Data::new();
    let stopping = EarlyStopping { patience: 0, from: PatienceFrom::Start };
    let sample = Subset::all(data.examples());
    for (bad, expected) in [
        (TrainParams { batch_size: 0, ..params() }, "batch_size is 0, expected at least 1"),
        (TrainParams { rate: f64::NAN, ..params() }, "rate is NaN, expected a finite number from 0 on"),
        (TrainParams { clip_norm: Some(0.0), ..params() }, "clip_norm is 0, expected a finite number above 0"),
        (TrainParams { validate_every: Some(0), ..params() }, "validate_every is 0, expected at least 1"),
        (TrainParams { early_stopping: Some(stopping), ..params() }, "patience is 0, expected at least 1"),
    ] {
        let got = trainer(bad, &mut HalveOnPlateau::new(1), &Silent).train(&mut network(), &sample, None);
        assert_eq!(got.unwrap_err().to_string(), expected);
    }
    let empty = Subset::split(data.examples(), 1.0, 0).0;
    let got = trainer(params(), &mut HalveOnPlateau::new(1), &Silent).train(&mut network(), &empty, None);
    assert!(matches!(got, Err(TrainError::NoInstances)));
}
