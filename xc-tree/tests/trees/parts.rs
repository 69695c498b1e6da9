//! Trees in parts: the same bytes as those of one process, and parts that do not belong together are refused.

use crate::made::{clusters, data};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::dtype::DType;
use xc_buffer::{Cancel, Part};
use xc_store::{ArrayRef, Checkpoint, CheckpointFolder, Container, ContainerWriter, OpenMode};
use xc_tree::{
    CHECKPOINT, ClusterMethod, ClusterParams, KIND, Negatives, Observer, PART_KIND, PartsError, PredictParams, Silent,
    StoredTrees, TrainError, TrainInput, TreeEvent, TreeModel, TreeParams, part_key, train_part,
};

fn small() -> TreeParams {
    TreeParams { n_trees: 2, cluster: clusters(4, 8), ..TreeParams::default() }
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

fn checkpoint(path: &Path, input: &TrainInput<'_>, params: &TreeParams, part: Part) -> Checkpoint {
    CheckpointFolder::claim(path, CHECKPOINT).unwrap().begin(part_key(input, params, part)).unwrap()
}

fn save_part(folder: &Path, input: &TrainInput<'_>, params: &TreeParams, part: Part) {
    let place = tempfile::tempdir().unwrap();
    let checkpoint = checkpoint(&place.path().join("c"), input, params, part);
    let trained = train_part(input, params, part, &Silent, &checkpoint).unwrap();
    let mut writer = ContainerWriter::create(folder, PART_KIND).unwrap();
    trained.write(&mut writer).unwrap();
    writer.finish().unwrap();
    checkpoint.finish().unwrap();
}

fn open(folder: &Path) -> Container {
    Container::open(folder, OpenMode::Map).unwrap()
}

fn merged(folders: &[&Path], into: &Path) -> Result<(), PartsError> {
    let trees = StoredTrees::of_parts(folders.iter().map(|folder| open(folder)).collect())?;
    let mut writer = ContainerWriter::create(into, KIND).unwrap();
    trees.write(&mut writer, &Silent).unwrap();
    writer.finish().unwrap();
    Ok(())
}

#[test]
fn any_number_of_parts_in_any_order_makes_the_model_of_one_process() {
    let (x, y) = data(700, 240);
    let input = TrainInput::new(x.view(), &y);
    let of = |n_trees, cluster| TreeParams { n_trees, cluster, ..TreeParams::default() };
    let unbalanced = ClusterParams { method: ClusterMethod::Unbalanced, ..clusters(5, 4) };
    let kinds = [
        small(),
        of(3, clusters(2, 160)),
        TreeParams { precision: DType::Bf16, ..of(3, unbalanced) },
        // A single chunk a tree: parts without any.
        of(1, clusters(2, 300)),
    ];
    for params in kinds {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        TreeModel::train(&input, &params).unwrap().save(path("whole")).unwrap();
        for n in [1, 2, 3, 5, 8] {
            let folders: Vec<_> = (0..n).map(|index| path(&format!("{n}-{index}"))).collect();
            for (index, folder) in (0..n).zip(&folders) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + index as usize % 2).build().unwrap();
                pool.install(|| save_part(folder, &input, &params, Part::new(index, n).unwrap()));
            }
            let mut order: Vec<&Path> = folders.iter().map(|folder| &**folder).collect();
            order.rotate_left(n as usize / 2);
            order.swap(0, n as usize - 1);
            merged(&order, &path("merged")).unwrap();
            assert!(contents(&path("merged")) == contents(&path("whole")), "{n} parts of {params:?}");
        }
    }
}

#[test]
fn chunks_are_shared_out_and_trees_of_other_parts_are_not_clustered() {
    #[derive(Default)]
    struct Clustered(AtomicUsize);
    impl Cancel for Clustered {
        fn cancelled(&self) -> bool {
            false
        }
    }
    impl Observer<TreeEvent> for Clustered {
        fn event(&self, event: TreeEvent) {
            self.0.fetch_add(usize::from(matches!(event, TreeEvent::Clustering { .. })), Ordering::Relaxed);
        }
    }
    let (x, y) = data(700, 240);
    let (input, params) = (TrainInput::new(x.view(), &y), small());
    for (n, clustered) in [(1, 2), (2, 1), (4, 1)] {
        let mut own = Vec::new();
        for index in 0..n {
            let part = Part::new(index, n).unwrap();
            let (place, watch) = (tempfile::tempdir().unwrap(), Clustered::default());
            let checkpoint = checkpoint(&place.path().join("c"), &input, &params, part);
            own.push(train_part(&input, &params, part, &watch, &checkpoint).unwrap().n_chunks().1);
            assert_eq!(watch.0.into_inner(), clustered, "part {part}");
        }
        assert!(own.iter().all(|&n| n > 0), "{own:?}");
    }
}

#[test]
fn a_part_that_was_cancelled_goes_on_from_its_checkpoint_alone() {
    struct Stops(AtomicUsize);
    impl Cancel for Stops {
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed) == 0
        }
    }
    impl Observer<TreeEvent> for Stops {
        fn event(&self, event: TreeEvent) {
            if matches!(event, TreeEvent::Level { .. }) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
    let (x, y) = data(700, 240);
    let (input, params, part) = (TrainInput::new(x.view(), &y), small(), Part::new(1, 3).unwrap());
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    save_part(&path("whole"), &input, &params, part);
    let mut stopped = 0;
    for levels in 2.. {
        let checkpoint = checkpoint(&path("c"), &input, &params, part);
        match train_part(&input, &params, part, &Stops(AtomicUsize::new(levels)), &checkpoint) {
            Err(TrainError::Cancelled) => stopped += 1,
            trained => {
                let mut writer = ContainerWriter::create(path("resumed"), PART_KIND).unwrap();
                trained.unwrap().write(&mut writer).unwrap();
                writer.finish().unwrap();
                break;
            }
        }
    }
    assert!(stopped > 0);
    assert!(contents(&path("resumed")) == contents(&path("whole")));
    // Another part, or one of another number of trees, is other work.
    let keys = [(1, 3, 2), (2, 3, 2), (1, 4, 2), (1, 3, 1)]
        .map(|(i, n, n_trees)| part_key(&input, &TreeParams { n_trees, ..params.clone() }, Part::new(i, n).unwrap()));
    assert!((1..4).all(|at| keys[0] != keys[at]), "{keys:?}");
}

#[test]
fn parts_that_are_not_those_of_one_training_are_named() {
    let (x, y) = data(700, 240);
    let (input, params) = (TrainInput::new(x.view(), &y), small());
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let part = |index, n| Part::new(index, n).unwrap();
    for index in 0..3 {
        save_part(&path(&format!("p{index}")), &input, &params, part(index, 3));
    }
    let [p0, p1, p2] = ["p0", "p1", "p2"].map(path);
    let said = |folders: &[&Path]| merged(folders, &path("m")).unwrap_err().to_string();
    assert_eq!(said(&[&p2, &p0]), "part 1/3 is missing: 2 of 3 parts are given");
    let twice = said(&[&p0, &p1, &p0]);
    assert!(twice.contains("p0: is part 0/3, as is") && twice.contains("each part once is expected"), "{twice}");
    save_part(&path("half"), &input, &params, part(1, 2));
    let other = said(&[&p0, &path("half")]);
    assert!(other.contains("half: is part 1/2, expected a part of 3 as"), "{other}");
    // Other data, other settings, another number of trees.
    let (x2, y2) = data(699, 240);
    save_part(&path("data"), &TrainInput::new(x2.view(), &y2), &params, part(1, 3));
    save_part(&path("seed"), &input, &TreeParams { seed: 1, ..params.clone() }, part(1, 3));
    save_part(&path("trees"), &input, &TreeParams { n_trees: 3, ..params.clone() }, part(1, 3));
    for name in ["data", "seed", "trees"] {
        let error = said(&[&p0, &path(name), &p2]);
        assert!(error.contains("on other data or with other settings than") && error.contains(name), "{error}");
    }
    // Another program.
    let config = std::fs::read_to_string(p1.join("config.json")).unwrap();
    let at = config.find("\"version\"").expect("the version of training");
    let end = at + config[at..].find(|c: char| c.is_ascii_digit()).unwrap();
    let newer = format!("{}9{}", &config[..end], &config[end + 1..]);
    std::fs::write(p1.join("config.json"), newer).unwrap();
    let error = said(&[&p0, &p1, &p2]);
    assert!(error.contains("p1: was trained by version 9 of the training of trees"), "{error}");
    std::fs::write(p1.join("config.json"), config).unwrap();
    merged(&[&p0, &p1, &p2], &path("m")).unwrap();

    let matched = TreeParams { negatives: Negatives::MatcherAware { beam: 2 }, ..params.clone() };
    let checkpoint = checkpoint(&path("c"), &input, &matched, part(0, 3));
    let refused = train_part(&input, &matched, part(0, 3), &Silent, &checkpoint);
    assert!(matches!(refused, Err(TrainError::NegativesInParts)));
}

/// Both parts of two trees.
static PARTS: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let (x, y) = data(90, 30);
    let place = tempfile::tempdir().unwrap();
    for index in 0..2 {
        let part = Part::new(index, 2).unwrap();
        save_part(&place.path().join(format!("p{index}")), &TrainInput::new(x.view(), &y), &small(), part);
    }
    place
});

/// What is done to a part.
#[derive(Clone, Debug)]
enum Change {
    /// An element of an array becomes these bytes, with hashes that hold.
    Element { array: usize, at: usize, bytes: u64 },
    /// An array has so many elements, with hashes that hold.
    Length { array: usize, len: usize },
    /// An array is not there.
    Without { array: usize },
    /// A number of the parameters is another one.
    Parameter { name: &'static str, field: Option<&'static str>, value: u64 },
    /// A byte of a file is another one, whatever its hash.
    Byte { is_config: bool, at: usize, byte: u8 },
}

fn change() -> impl Strategy<Value = Change> {
    let odd = || prop::sample::select(vec![0, 1, 2, 3, 7, 1 << 20, (1 << 31) - 1, u64::from(u32::MAX), 1 << 33]);
    // Tables of all features are memory that is asked for.
    let size = prop::sample::select(vec![0, 1, 2, 3, 7, 1 << 20, 1 << 33]);
    let which = |name, field| (Just(name), Just(field));
    let parameters = prop_oneof![
        which("n_labels", None),
        which("n_features", None),
        which("part", Some("index")),
        which("part", Some("of")),
        which("part", Some("trees")),
        which("part", Some("version")),
    ];
    prop_oneof![
        4 => (0usize..99, any::<usize>(), odd()).prop_map(|(array, at, bytes)| Change::Element { array, at, bytes }),
        2 => (0usize..99, 0usize..40).prop_map(|(array, len)| Change::Length { array, len }),
        1 => (0usize..99).prop_map(|array| Change::Without { array }),
        2 => (parameters, size).prop_map(|((name, field), value)| Change::Parameter { name, field, value }),
        2 => (any::<bool>(), any::<usize>(), any::<u8>())
            .prop_map(|(is_config, at, byte)| Change::Byte { is_config, at, byte }),
    ]
}

/// The part, written anew with the change.
fn changed(part: &Container, to: &Path, change: &Change) {
    let mut writer = ContainerWriter::create(to, PART_KIND).unwrap();
    for (name, value) in part.parameters() {
        let mut value = value.clone();
        if let Change::Parameter { name: of, field, value: other } = change
            && of == name
        {
            match field {
                Some(field) => value[field] = (*other).into(),
                None => value = (*other).into(),
            }
        }
        writer.set_parameter(name, value);
    }
    let n = part.arrays().len();
    for (place, (name, entry)) in part.arrays().enumerate() {
        let mut bytes = part.bytes(name, entry.dtype, &entry.shape).unwrap().to_vec();
        let (size, mut shape) = (entry.dtype.n_bytes(), entry.shape.clone());
        match *change {
            Change::Element { array, at, bytes: number } if array % n == place && !bytes.is_empty() => {
                let at = at % (bytes.len() / size) * size;
                bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
            }
            Change::Length { array, len } if array % n == place => {
                bytes.resize(len * size, 1);
                shape = vec![len];
            }
            Change::Without { array } if array % n == place => continue,
            _ => {}
        }
        writer.add(name, ArrayRef { dtype: entry.dtype, shape: &shape, bytes: &bytes }).unwrap();
    }
    writer.finish().unwrap();
    if let Change::Byte { is_config, at, byte } = *change {
        let file = to.join(if is_config { "config.json" } else { "model.safetensors" });
        let mut bytes = std::fs::read(&file).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        std::fs::write(&file, bytes).unwrap();
    }
}

#[test]
fn more_features_than_there_are_numbers_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let (part, other) = (place.path().join("changed"), PARTS.path().join("p1"));
    let change = Change::Parameter { name: "n_features", field: None, value: 1 << 33 };
    changed(&open(&PARTS.path().join("p0")), &part, &change);
    let refused = merged(&[&part, &other], &place.path().join("m")).unwrap_err().to_string();
    assert!(refused.contains("changed: parameter n_features: got 8589934592, at most 4294967296"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_part_with_anything_in_it_is_refused_in_a_line_or_becomes_a_model_that_answers(
        change in change(), which in 0usize..2,
    ) {
        let place = tempfile::tempdir().unwrap();
        let folders = [0, 1].map(|index| PARTS.path().join(format!("p{index}")));
        changed(&open(&folders[which]), &place.path().join("changed"), &change);
        let containers = [0, 1].map(|index| {
            let folder = if index == which { place.path().join("changed") } else { folders[index].clone() };
            Container::open(&folder, OpenMode::Map).map_err(|e| e.to_string())
        });
        let into = place.path().join("m");
        let merged = || {
            let [first, second] = containers;
            let trees = StoredTrees::of_parts(vec![first?, second?]).map_err(|e| e.to_string())?;
            let mut writer = ContainerWriter::create(&into, KIND).unwrap();
            trees.write(&mut writer, &Silent).map_err(|e| e.to_string())?;
            writer.finish().unwrap();
            TreeModel::open(&into).map_err(|e| e.to_string())
        };
        match merged() {
            Ok(model) => {
                let (x, _) = data(3, 30);
                if model.info().n_features == 30 + 11 {
                    prop_assert_eq!(model.predict_batch(x.view(), &PredictParams::top(3)).unwrap().len(), 3);
                }
            }
            Err(message) => prop_assert!(!message.contains('\n') && !message.is_empty(), "{}", message),
        }
    }
}
