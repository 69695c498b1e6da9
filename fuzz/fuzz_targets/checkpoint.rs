//! Checkpoints of a small training. The first byte says how: the state of a true checkpoint, in which the input replaces the
//! position and arrays (hashes, part and key hold), its files as they stand in the input, or the marker too. Training goes on
//! from what opens, to the end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use xc_buffer::Cancel;
use xc_fuzz::{Block, blocks, folder, sections};
use xc_model::classifier::{Classifier, ClassifierParams};
use xc_nn::schedule::HalveOnPlateau;
use xc_nn::trainer::{
    CHECKPOINT, CheckpointAt, EarlyStopping, Observer, PatienceFrom, STATE, Silent, Subset, Summary, TrainError,
    TrainEvent, TrainObserver,
};
use xc_nn::{Examples, Loss, Optimizer, Rows, TrainParams, Trainer};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::{ArrayRef, CHECKPOINT_KIND, CheckpointFolder, Container, ContainerWriter, OpenMode};
use xc_train::preset;

/// Stops in the middle of the second epoch.
struct Stop;

impl Cancel for Stop {
    fn cancelled(&self) -> bool {
        STEPS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2
    }
}

impl Observer<TrainEvent<'_>> for Stop {
    fn event(&self, _: TrainEvent<'_>) {}
}

static STEPS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

fn train(folder: &Path, observer: &TrainObserver<'_>) -> (Classifier, Result<Summary, TrainError>) {
    let x = CsrMatrix::from_checked((6, 4), (0..7).collect(), vec![0, 1, 2, 3, 0, 1], vec![1.0; 6]);
    let y = LabelRows::from_lists([[0u32], [1], [2], [0], [1], [2]], 3).expect("label lists");
    let examples = Examples::try_new(Rows::Sparse(x.view()), &y).expect("examples");
    let (train, validation) = Subset::split(examples, 0.34, 1);
    let mut schedule = HalveOnPlateau::new(1);
    let mut params = ClassifierParams { loss: Loss::Softmax, ..preset::dense().params };
    *params.encoder.widths_mut() = vec![2];
    let mut model = Classifier::new(preset::DENSE, 4, 3, params).expect("a possible classifier");
    let claimed = CheckpointFolder::claim(&folder.join("checkpoint"), CHECKPOINT);
    let checkpoint = match claimed.and_then(|claimed| claimed.begin("fuzz".to_owned())) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return (model, Err(error.into())),
    };
    let mut trainer = Trainer {
        loss: Loss::Softmax,
        optimizer: Optimizer::adam().with_weight_decay(0.01),
        schedule: &mut schedule,
        params: TrainParams {
            batch_size: 2,
            epochs: 3,
            early_stopping: Some(EarlyStopping { patience: 2, from: PatienceFrom::Start }),
            ..TrainParams::default()
        },
        checkpoint: Some(CheckpointAt {
            checkpoint: &checkpoint,
            part: STATE.to_owned(),
            every: Some(1000),
            after: std::time::Duration::ZERO,
        }),
        hard: None,
        observer,
    };
    let outcome = trainer.train(model.network_mut(), &train, Some(&validation));
    (model, outcome)
}

/// A true checkpoint.
static TRUE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = folder("true", &[]);
    assert!(matches!(train(&path, &Stop).1, Err(TrainError::Cancelled { .. })));
    path.join("checkpoint")
});

/// Its marker.
fn marker() -> Vec<u8> {
    std::fs::read(TRUE.join("config.json")).expect("the true checkpoint has a marker")
}

fn rewrite(path: &Path, input: &[u8]) -> Option<()> {
    let [position, parts @ ..]: [&[u8]; 5] = sections(input);
    let replaced = blocks(&parts);
    let container = Container::open(&TRUE.join(STATE), OpenMode::Read).expect("the true checkpoint opens");
    let state = path.join("checkpoint").join(STATE);
    let mut writer = ContainerWriter::create(&state, CHECKPOINT_KIND).expect("nothing is there");
    container.parameters().iter().for_each(|(name, value)| writer.set_parameter(name, value.clone()));
    if let Ok(position) = serde_json::from_slice::<serde_json::Value>(position) {
        writer.set_parameter("position", position);
    }
    for Block { name, dtype, shape, bytes } in &replaced {
        writer.add(name, ArrayRef { dtype: *dtype, shape, bytes }).ok()?;
    }
    for (name, entry) in container.arrays().filter(|(name, _)| replaced.iter().all(|b| b.name != *name)) {
        let values = container.array::<f32>(name).expect("whole");
        writer.add(name, ArrayRef::new(&values, &entry.shape)).ok()?;
    }
    writer.finish().ok()
}

fuzz_target!(|input: (u8, &[u8])| {
    let [config, arrays, own] = sections(input.1);
    let true_marker = marker();
    let files = |marker: &[u8]| {
        let state = [("checkpoint/state/config.json", config), ("checkpoint/state/model.safetensors", arrays)];
        folder("checkpoint", &[state[0], state[1], ("checkpoint/config.json", marker)])
    };
    let path = match input.0 % 3 {
        0 => {
            let path = folder("checkpoint", &[("checkpoint/config.json", &true_marker)]);
            if rewrite(&path, input.1).is_none() {
                return;
            }
            path
        }
        1 => files(&true_marker),
        _ => files(own),
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
