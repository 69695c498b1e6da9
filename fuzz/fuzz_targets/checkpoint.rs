//! Checkpoints of a small training. The first byte says how: the state of a true checkpoint, in which the input replaces
//! arrays (hashes and the key hold), or its files as they stand in the input. Training goes on from what opens, to the end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use xc_fuzz::{Block, blocks, folder, sections};
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_train::classifier::{Classifier, ClassifierParams, preset};
use xc_train::schedule::HalveOnPlateau;
use xc_train::trainer::{CheckpointAt, Event, LogAt, Observer, Sample, Silent, Summary, TrainError};
use xc_train::{Examples, Features, Loss, Optimizer, TrainParams, Trainer};

/// Stops in the middle of the second epoch.
struct Stop;

impl Observer for Stop {
    fn event(&self, _: Event<'_>) {}

    fn cancelled(&self) -> bool {
        STEPS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2
    }
}

static STEPS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

fn train(folder: &Path, observer: &dyn Observer) -> (Classifier, Result<Summary, TrainError>) {
    let x = CsrMatrix::new((6, 4), (0..7).collect(), vec![0, 1, 2, 3, 0, 1], vec![1.0; 6]);
    let y = LabelRows::from_lists([[0u32], [1], [2], [0], [1], [2]], 3).expect("label lists");
    let examples = Examples::try_new(Features::Sparse(Rows::new(x.view())), &y).expect("examples");
    let (train, validation) = Sample::split(examples, 0.34, 1);
    let mut schedule = HalveOnPlateau::new(1);
    let mut trainer = Trainer {
        loss: Loss::Softmax,
        optimizer: Optimizer::adam().with_weight_decay(0.01),
        schedule: &mut schedule,
        params: TrainParams { batch_size: 2, epochs: 3, patience: Some(2), ..TrainParams::default() },
        checkpoint: Some(CheckpointAt {
            folder: folder.to_owned(),
            every: Some(1000),
            after: std::time::Duration::ZERO,
        }),
        log: Some(LogAt { folder: folder.join("log"), every: 1 }),
        observer,
    };
    let mut params = ClassifierParams { loss: Loss::Softmax, ..preset::dense().params };
    params.encoder.widths = vec![2];
    let mut model = Classifier::new(preset::DENSE, 4, 3, params).expect("a possible classifier");
    let outcome = model.train(&mut trainer, &train, Some(&validation));
    (model, outcome)
}

/// A true checkpoint.
static TRUE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = folder("true", &[]);
    assert!(matches!(train(&path, &Stop).1, Err(TrainError::Cancelled { .. })));
    path.join("state")
});

fn rewrite(path: &Path, input: &[u8]) -> Option<()> {
    let parts: [&[u8]; 4] = sections(input);
    let replaced = blocks(&parts);
    let container = Container::open(&TRUE, OpenMode::Read).expect("the true checkpoint opens");
    let mut writer = ContainerWriter::create(&path.join("state"), "checkpoint").expect("nothing is there");
    container.parameters().iter().for_each(|(name, value)| writer.set_parameter(name, value.clone()));
    for Block { name, dtype, shape, bytes } in &replaced {
        // Positions and moments are lists.
        let list = [bytes.len() / dtype.n_bytes()];
        let shape: &[usize] = if *name == "position" { &list } else { shape };
        writer.add(name, ArrayRef { dtype: *dtype, shape, bytes }).ok()?;
    }
    for (name, entry) in container.arrays().filter(|(name, _)| replaced.iter().all(|b| b.name != *name)) {
        if entry.dtype.n_bytes() == 8 {
            writer.add_slice(name, &container.array::<u64>(name).expect("whole")).ok()?;
        } else {
            let values = container.array::<f32>(name).expect("whole");
            writer.add(name, ArrayRef::new(&values, &entry.shape)).ok()?;
        }
    }
    writer.finish().ok()
}

fuzz_target!(|input: (u8, &[u8])| {
    let path = if input.0 % 2 == 0 {
        let path = folder("checkpoint", &[]);
        if rewrite(&path, input.1).is_none() {
            return;
        }
        path
    } else {
        let [config, arrays] = sections(input.1);
        folder("checkpoint", &[("state/config.json", config), ("state/model.safetensors", arrays)])
    };
    let (model, outcome) = train(&path, &Silent);
    match outcome {
        Err(error) => assert!(!error.to_string().contains('\n'), "several lines: {error}"),
        Ok(_) => {
            for named in model.network().parameters() {
                assert!(named.parameter.values().iter().all(|v| v.is_finite()), "{} is not finite", named.name);
            }
        }
    }
});
