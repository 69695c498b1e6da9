//! Trees whose weights stay in the checkpoint: the same model as one that was in memory.

use crate::made::{clusters, data};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Cancel;
use xc_buffer::dtype::DType;
use xc_store::{Checkpoint, CheckpointFolder, ContainerWriter};
use xc_tree::{
    CHECKPOINT, ClusterMethod, ClusterParams, KIND, KeptError, Negatives, Silent, TrainInput, TreeMemory, TreeModel,
    TreeParams, checkpoint_key, train_out_of_core,
};

/// Trees with and without a top, wider than one chunk, of both methods, precisions and negatives.
fn kinds() -> Vec<TreeParams> {
    let of = |cluster| TreeParams { cluster, n_trees: 2, ..TreeParams::default() };
    let unbalanced = ClusterParams { method: ClusterMethod::Unbalanced, ..clusters(5, 4) };
    vec![
        of(clusters(2, 4)),
        TreeParams { precision: DType::Bf16, ..of(clusters(16, 6)) },
        TreeParams { n_trees: 1, ..of(clusters(2, 300)) },
        of(clusters(2, 160)),
        TreeParams { negatives: Negatives::MatcherAware { beam: 2 }, ..of(unbalanced) },
    ]
}

fn checkpoint(path: &Path, input: &TrainInput<'_>, params: &TreeParams) -> Checkpoint {
    CheckpointFolder::claim(path, CHECKPOINT).unwrap().begin(checkpoint_key(input, params)).unwrap()
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

#[test]
fn a_model_packed_from_the_checkpoint_has_the_bytes_of_one_in_memory_at_any_number_of_threads() {
    let (x, y) = data(900, 300);
    let input = TrainInput::new(x.view(), &y);
    for params in kinds() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let model = TreeModel::train(&input, &params).unwrap();
        model.save(path("whole")).unwrap();
        for n_threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let checkpoint = checkpoint(&path("checkpoint"), &input, &params);
            let counts = pool.install(|| {
                let trees = train_out_of_core(&input, &params, &Silent, &checkpoint).unwrap();
                let mut writer = ContainerWriter::create(&path("kept"), KIND).unwrap();
                let counts = trees.write(&mut writer, &Silent).unwrap();
                writer.finish().unwrap();
                counts
            });
            checkpoint.finish().unwrap();
            assert_eq!((counts, counts.weights), (model.weight_counts(), model.nnz()));
            assert!(contents(&path("kept")) == contents(&path("whole")), "{params:?}, {n_threads} threads");
        }
        TreeModel::open(path("kept")).unwrap();
    }
}

#[test]
fn a_level_that_is_not_what_was_written_is_an_error_when_it_is_packed() {
    let (x, y) = data(200, 40);
    let (input, params) =
        (TrainInput::new(x.view(), &y), TreeParams { cluster: clusters(4, 4), ..TreeParams::default() });
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("checkpoint");
    let checkpoint = checkpoint(&path, &input, &params);
    let trees = train_out_of_core(&input, &params, &Silent, &checkpoint).unwrap();
    let pack = || {
        let mut writer = ContainerWriter::create(&place.path().join("model"), KIND).unwrap();
        trees.write(&mut writer, &Silent).map(|_| ()).map_err(|e| e.to_string())
    };
    pack().unwrap();
    for name in ["tree-1-level-1/model.safetensors", "tree-2-level-0/model-values.safetensors"] {
        let sound = std::fs::read(path.join(name)).unwrap();
        let mut bad = sound.clone();
        let at = bad.len() - 1;
        bad[at] ^= 1;
        std::fs::write(path.join(name), &bad).unwrap();
        let error = pack().unwrap_err();
        assert!(error.contains("is damaged"), "{name}: {error}");
        std::fs::write(path.join(name), &sound).unwrap();
    }
    std::fs::remove_dir_all(path.join("tree-1-topology")).unwrap();
    assert!(pack().unwrap_err().contains("it is not there"));
}

/// Asks to stop from a question on.
struct From(usize, AtomicUsize);

impl Cancel for From {
    fn cancelled(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

#[test]
fn packing_that_is_asked_to_stop_leaves_the_checkpoint_as_it_is() {
    let (x, y) = data(200, 40);
    let (input, params) =
        (TrainInput::new(x.view(), &y), TreeParams { cluster: clusters(4, 4), ..TreeParams::default() });
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let checkpoint = checkpoint(&path("checkpoint"), &input, &params);
    let trees = train_out_of_core(&input, &params, &Silent, &checkpoint).unwrap();
    let pack = |name: &str, cancel: &From| {
        let mut writer = ContainerWriter::create(&path(name), KIND).unwrap();
        trees.write(&mut writer, cancel)?;
        writer.finish().unwrap();
        Ok::<(), KeptError>(())
    };
    let never = From(usize::MAX, AtomicUsize::new(0));
    pack("whole", &never).unwrap();
    let asked = never.1.into_inner();
    assert!(asked > 20, "{asked} questions");
    for from in (0..asked).step_by(5) {
        let stopped = pack("model", &From(from, AtomicUsize::new(0)));
        assert!(matches!(stopped, Err(KeptError::Cancelled)), "question {from} of {asked}");
        assert!(!path("model").exists());
    }
    pack("model", &From(asked, AtomicUsize::new(0))).unwrap();
    assert!(contents(&path("model")) == contents(&path("whole")));
}

#[test]
fn finished_trees_take_no_memory_and_huge_settings_do_not_wrap() {
    let (x, y) = data(200, 40);
    let input = TrainInput::new(x.view(), &y);
    let of = |n_trees| TreeParams { n_trees, ..TreeParams::default() };
    let kept = |n_trees| TreeMemory::kept(&input, &of(n_trees), 2).peak();
    assert_eq!(kept(1), kept(16));
    let whole = |n_trees| TreeMemory::in_memory(&input, &of(n_trees), 2);
    assert_eq!(whole(16).weights, 16 * whole(1).weights);
    assert_eq!(whole(usize::MAX).peak(), u64::MAX);
    let huge = TreeParams {
        cluster: ClusterParams { method: ClusterMethod::Unbalanced, ..clusters(usize::MAX, usize::MAX) },
        negatives: Negatives::MatcherAware { beam: usize::MAX },
        max_label_nnz: Some(usize::MAX),
        ..of(1)
    };
    assert_eq!(TreeMemory::kept(&input, &huge, usize::MAX).peak(), u64::MAX);
}
