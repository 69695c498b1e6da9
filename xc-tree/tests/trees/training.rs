//! Training end to end: awkward input, determinism, checkpoints, cancellation.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Cancel;
use xc_sparse::{CsrMatrix, CsrView, LabelRows};
use xc_store::{CheckpointError, CheckpointFolder};
use xc_tree::{
    CHECKPOINT, ClusterMethod, ClusterParams, LabelRepresentation, LinearParams, Loss, Negatives, Observer,
    PostProcessor, PredictParams, Preset, Silent, TrainError, TrainInput, TreeEvent, TreeMemory, TreeModel, TreeParams,
    TreeParts, Unseen, checkpoint_key, train_tree, train_trees,
};

/// `n` instances; instance i has labels i % l and (7 i) % l, a feature of its own for each label,
/// and noise.
fn data(n: usize, l: usize) -> (CsrMatrix, LabelRows) {
    let (mut indptr, mut indices, mut values, mut lists) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let labels = [(i % l) as u32, (7 * i % l) as u32];
        let mut row = vec![(labels[0], 1.0f32), (labels[1], 1.0), (l as u32 + (i * i % 11) as u32, 0.3)];
        row.sort_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
        let norm = row.iter().map(|e| e.1 * e.1).sum::<f32>().sqrt();
        indices.extend(row.iter().map(|e| e.0));
        values.extend(row.iter().map(|e| e.1 / norm));
        indptr.push(indices.len());
        lists.push(labels);
    }
    (CsrMatrix::from_checked((n, l + 11), indptr, indices, values), LabelRows::from_lists(lists, l).unwrap())
}

fn small(branching: usize, max_leaf: usize) -> TreeParams {
    TreeParams { cluster: ClusterParams { branching, max_leaf, ..ClusterParams::default() }, ..TreeParams::default() }
}

/// Best label of every instance by exhaustive search.
fn best(parts: &TreeParts, rows: CsrView<'_>) -> Vec<u32> {
    let post = PostProcessor::Hinge { p: 3 };
    (0..rows.rows())
        .map(|i| {
            let mut scores = vec![0.0f32];
            for chunks in &parts.levels {
                let mut next = Vec::new();
                for (chunk, &score) in chunks.iter().zip(&scores) {
                    let mut margins = chunk.bias.clone();
                    for (f, x) in rows.row(i).iter() {
                        if let Ok(row) = chunk.features.binary_search(&f) {
                            for e in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
                                margins[chunk.columns[e] as usize] += x * chunk.values[e];
                            }
                        }
                    }
                    next.extend(margins.iter().map(|&m| post.accumulate(score, m)));
                }
                scores = next;
            }
            let top = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            parts.topology.labels()[top.unwrap()]
        })
        .collect()
}

fn hits(parts: &TreeParts, x: &CsrMatrix, y: &LabelRows) -> usize {
    let found = best(parts, x.view());
    found.iter().zip(y.iter()).filter(|(label, row)| row.contains(label)).count()
}

fn same(a: &TreeParts, b: &TreeParts) -> bool {
    a.topology == b.topology && a.levels == b.levels
}

#[test]
fn separable_data_is_learned_by_every_kind_of_tree() {
    let (x, y) = data(300, 30);
    let logistic = LinearParams { loss: Loss::Logistic, cost: 10.0, ..LinearParams::default() };
    let unbalanced =
        ClusterParams { method: ClusterMethod::Unbalanced, branching: 5, max_leaf: 4, ..ClusterParams::default() };
    let kinds = [
        small(2, 4),
        small(4, 3),
        small(3, 100),
        TreeParams { representation: LabelRepresentation::Pii, ..small(4, 5) },
        TreeParams { cluster: unbalanced, ..TreeParams::default() },
        TreeParams { linear: logistic, ..small(4, 5) },
        TreeParams { negatives: Negatives::MatcherAware { beam: 3 }, ..small(4, 3) },
        TreeParams { max_label_nnz: Some(2), ..small(4, 3) },
    ];
    for params in kinds {
        let parts = train_tree(&TrainInput::new(x.view(), &y), &params, 0, &Silent, None).unwrap();
        assert_eq!(parts.levels.len(), parts.topology.depth());
        for (level, chunks) in parts.levels.iter().enumerate() {
            let boundaries = parts.topology.boundaries(level);
            assert_eq!(chunks.len(), boundaries.len() - 1);
            for (p, chunk) in chunks.iter().enumerate() {
                chunk.check().unwrap();
                assert_eq!(chunk.n_columns as u32, boundaries[p + 1] - boundaries[p]);
            }
        }
        let right = hits(&parts, &x, &y);
        assert!(right >= 285, "{right} of 300 right with {params:?}");
    }
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let (x, y) = data(400, 60);
    for params in [small(4, 5), TreeParams { negatives: Negatives::MatcherAware { beam: 2 }, ..small(20, 2) }] {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train_tree(&TrainInput::new(x.view(), &y), &params, 0, &Silent, None).unwrap())
        };
        let one = run(1);
        assert!(same(&one, &run(2)) && same(&one, &run(5)));
    }
}

#[test]
fn trees_of_an_ensemble_and_seeds_differ() {
    let (x, y) = data(200, 40);
    let params = TreeParams { n_trees: 2, ..small(2, 4) };
    let trees = train_trees(&TrainInput::new(x.view(), &y), &params, &Silent, None).unwrap();
    assert_eq!(trees.len(), 2);
    assert!(!same(&trees[0], &trees[1]));
    let again = train_tree(&TrainInput::new(x.view(), &y), &params, 1, &Silent, None).unwrap();
    assert!(same(&trees[1], &again));
    let other = TreeParams { seed: 1, ..params };
    assert!(!same(&trees[0], &train_tree(&TrainInput::new(x.view(), &y), &other, 0, &Silent, None).unwrap()));
}

#[test]
fn matcher_aware_negatives_change_lower_levels_only() {
    let (x, y) = data(300, 60);
    let forced = train_tree(&TrainInput::new(x.view(), &y), &small(4, 4), 0, &Silent, None).unwrap();
    let params = TreeParams { negatives: Negatives::MatcherAware { beam: 4 }, ..small(4, 4) };
    let aware = train_tree(&TrainInput::new(x.view(), &y), &params, 0, &Silent, None).unwrap();
    assert!(forced.topology == aware.topology && forced.levels[0] == aware.levels[0]);
    assert_ne!(forced.levels[1], aware.levels[1]);
}

#[test]
fn labels_without_positives_are_dropped_or_kept() {
    let (x, y) = data(100, 10);
    let y = y.with_n_labels(14);
    let dropped = train_tree(&TrainInput::new(x.view(), &y), &small(2, 3), 0, &Silent, None).unwrap();
    assert_eq!(dropped.topology.labels().len(), 10);
    let params = TreeParams { unseen: Unseen::Keep, ..small(2, 3) };
    let kept = train_tree(&TrainInput::new(x.view(), &y), &params, 0, &Silent, None).unwrap();
    assert_eq!(kept.topology.labels().len(), 14);
    assert!(hits(&kept, &x, &y) >= 95);
}

#[test]
fn instances_without_features_or_labels_take_part() {
    let (x, y) = data(60, 6);
    let mut lists: Vec<Vec<u32>> = y.iter().map(<[u32]>::to_vec).collect();
    lists.extend([vec![2], vec![]]);
    let y = LabelRows::from_lists(lists, 6).unwrap();
    let (mut indptr, indices, values) = (x.indptr().to_vec(), x.indices().to_vec(), x.data().to_vec());
    let cols = x.cols();
    indptr.push(indices.len());
    indptr.push(indices.len());
    let x = CsrMatrix::from_checked((62, cols), indptr, indices, values);
    let parts = train_tree(&TrainInput::new(x.view(), &y), &small(2, 2), 0, &Silent, None).unwrap();
    assert!(parts.levels.iter().flatten().all(|c| c.check().is_ok()));
    assert!(hits(&parts, &x, &y) >= 57);
}

#[test]
fn one_label_and_one_instance_are_enough() {
    let x = CsrMatrix::from_checked((1, 2), vec![0, 1], vec![1], vec![1.0]);
    let y = LabelRows::from_lists([[0u32]], 1).unwrap();
    for preset in [Preset::Default, Preset::Parabel, Preset::Bonsai, Preset::XrLinear] {
        let parts = train_tree(&TrainInput::new(x.view(), &y), &preset.params(), 0, &Silent, None).unwrap();
        assert_eq!(parts.topology.labels(), [0]);
    }
}

#[test]
fn unusable_input_is_refused_by_name() {
    let (x, y) = data(20, 4);
    let train = |input: &TrainInput<'_>, params: &TreeParams| train_tree(input, params, 0, &Silent, None).unwrap_err();
    let good = TreeParams::default();
    let none = LabelRows::from_lists(vec![Vec::<u32>::new(); 20], 4).unwrap();
    assert!(matches!(train(&TrainInput::new(x.view(), &none), &good), TrainError::NoPositives { n_labels: 4, .. }));
    let zero = LabelRows::from_lists(vec![Vec::<u32>::new(); 20], 0).unwrap();
    assert!(matches!(train(&TrainInput::new(x.view(), &zero), &good), TrainError::NoPositives { n_labels: 0, .. }));
    let short = LabelRows::from_lists([[1u32]], 4).unwrap();
    assert!(matches!(
        train(&TrainInput::new(x.view(), &short), &good),
        TrainError::Length { got: 1, expected: 20, .. }
    ));
    let mut spoiled = x.clone();
    spoiled.data_mut()[7] = f32::NAN;
    assert!(matches!(train(&TrainInput::new(spoiled.view(), &y), &good), TrainError::NotFinite { .. }));
    let asks = TreeParams { representation: LabelRepresentation::LabelFeatures, ..good.clone() };
    assert!(matches!(train(&TrainInput::new(x.view(), &y), &asks), TrainError::LabelFeatures));
    let tight = TreeParams { max_memory_bytes: Some(100), ..good.clone() };
    let input = TrainInput::new(x.view(), &y);
    match train(&input, &tight) {
        TrainError::Memory { needed_bytes, max_bytes: 100 } => {
            let one = TreeParams { n_trees: 1, ..tight.clone() };
            assert_eq!(needed_bytes, TreeMemory::in_memory(&input, &one, rayon::current_num_threads()).peak());
        }
        other => panic!("{other}"),
    }
    let weights = vec![-1.0; 20];
    let weighted = TrainInput { instance_weights: Some(&weights), ..input };
    assert!(matches!(train(&weighted, &good), TrainError::Weight { at: 0, .. }));
    let costs = vec![1.0, 1.0, 0.0, 1.0];
    let costly = TrainInput { label_costs: Some(&costs), ..input };
    assert!(matches!(train(&costly, &good), TrainError::Weight { at: 2, .. }));
    let params = TreeParams { n_trees: 0, ..good };
    assert!(matches!(train(&input, &params), TrainError::Params(_)));
}

#[test]
fn an_instance_of_weight_zero_does_not_exist_for_the_rankers() {
    let (x, y) = data(80, 8);
    let weights: Vec<f32> = (0..80).map(|i| if i < 16 { 1.0 } else { 0.0 }).collect();
    let weighted = TrainInput { instance_weights: Some(&weights), ..TrainInput::new(x.view(), &y) };
    let tight = TreeParams {
        linear: LinearParams { tolerance: 1e-4, max_passes: 3000, prune_below: 0.0, ..LinearParams::default() },
        ..small(2, 100)
    };
    let a = train_tree(&weighted, &tight, 0, &Silent, None).unwrap();
    let fewer = x.slice(0..16).to_owned();
    let rows = LabelRows::from_lists(y.iter().take(16), 8).unwrap();
    let b = train_tree(&TrainInput::new(fewer.view(), &rows), &tight, 0, &Silent, None).unwrap();
    let near = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 2e-3);
    assert!(near(&a.levels[0][0].bias, &b.levels[0][0].bias));
    let c = train_tree(&TrainInput::new(x.view(), &y), &tight, 0, &Silent, None).unwrap();
    assert!(!near(&a.levels[0][0].bias, &c.levels[0][0].bias));
}

#[test]
fn a_model_that_normalises_equals_one_of_normalised_rows_and_normalises_what_it_is_asked() {
    let (x, y) = data(200, 30);
    let mut scaled = x.clone();
    for i in 0..x.rows() {
        let row = &mut scaled.data_mut()[x.view().range(i)];
        let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt() as f32;
        row.iter_mut().for_each(|v| *v /= length);
    }
    let mut stretched = x.clone();
    stretched.data_mut().iter_mut().for_each(|v| *v *= 8.0);
    let unit = TreeParams { normalise_rows: true, ..small(4, 4) };
    let expected = TreeModel::train(&TrainInput::new(scaled.view(), &y), &small(4, 4)).unwrap();
    let model = TreeModel::train(&TrainInput::new(stretched.view(), &y), &unit).unwrap();
    assert_eq!((model.info().normalise_rows, model.info().beam), (true, 10));
    let params = PredictParams::top(5);
    assert_eq!(
        model.predict_batch(stretched.view(), &params).unwrap(),
        expected.predict_batch(scaled.view(), &params).unwrap()
    );
    let row = stretched.view().row(3);
    let batch = model.predict_batch(stretched.view(), &params).unwrap();
    assert_eq!(model.predict(row, 5).unwrap(), batch.row(3));
}

/// Cancels after a number of events.
struct Patience(AtomicUsize);

impl Cancel for Patience {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Observer<TreeEvent> for Patience {
    fn event(&self, _: TreeEvent) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }
}

/// Trains a tree with the checkpoint in `folder`.
fn kept(
    folder: &Path,
    input: &TrainInput<'_>,
    params: &TreeParams,
    tree: usize,
    observer: &dyn Observer<TreeEvent>,
) -> Result<TreeParts, TrainError> {
    let checkpoint = CheckpointFolder::claim(folder, CHECKPOINT)?.begin(checkpoint_key(input, params))?;
    train_tree(input, params, tree, observer, Some(&checkpoint))
}

#[test]
fn a_resumed_training_equals_an_uninterrupted_one() {
    let (x, y) = data(300, 60);
    let input = TrainInput::new(x.view(), &y);
    for params in [small(4, 4), TreeParams { negatives: Negatives::MatcherAware { beam: 2 }, ..small(4, 4) }] {
        let whole = train_tree(&input, &params, 0, &Silent, None).unwrap();
        for patience in 1..12 {
            let folder = tempfile::tempdir().unwrap();
            let observer = Patience(AtomicUsize::new(patience));
            let stopped = kept(folder.path(), &input, &params, 0, &observer);
            assert!(matches!(stopped, Err(TrainError::Cancelled)), "{patience} events");
            let resumed = kept(folder.path(), &input, &params, 0, &Silent).unwrap();
            assert!(same(&whole, &resumed), "{patience} events");
            let again = kept(folder.path(), &input, &params, 0, &Silent).unwrap();
            assert!(same(&whole, &again));
        }
    }
}

/// Cancels from a question on.
struct Asked {
    from: usize,
    so_far: AtomicUsize,
}

impl Asked {
    fn from(from: usize) -> Self {
        Self { from, so_far: AtomicUsize::new(0) }
    }
}

impl Cancel for Asked {
    fn cancelled(&self) -> bool {
        self.so_far.fetch_add(1, Ordering::Relaxed) >= self.from
    }
}

impl Observer<TreeEvent> for Asked {
    fn event(&self, _: TreeEvent) {}
}

/// Label vectors, both clusterings and the solvers ask whether to stop, and nothing unfinished is kept.
#[test]
fn a_training_that_is_stopped_at_any_question_goes_on_as_if_it_had_not_been() {
    let (x, y) = data(300, 60);
    let input = TrainInput::new(x.view(), &y);
    let balanced = small(4, 4);
    let logistic = LinearParams { loss: Loss::Logistic, ..balanced.linear.clone() };
    let k_means = ClusterParams { method: ClusterMethod::Unbalanced, ..balanced.cluster.clone() };
    for params in [
        TreeParams { linear: logistic, ..balanced.clone() },
        TreeParams { cluster: k_means, ..balanced.clone() },
        balanced.clone(),
    ] {
        let whole = train_tree(&input, &params, 0, &Silent, None).unwrap();
        let never = Asked::from(usize::MAX);
        train_tree(&input, &params, 0, &never, None).unwrap();
        let asked = never.so_far.into_inner();
        // Each of 60 label vectors, and each of some 80 rankers in groups at every pass.
        assert!(asked > 150, "{asked} questions");
        for from in (0..60).step_by(19).chain((60..asked).step_by(asked / 7)) {
            let folder = tempfile::tempdir().unwrap();
            let stopped = kept(folder.path(), &input, &params, 0, &Asked::from(from));
            assert!(matches!(stopped, Err(TrainError::Cancelled)), "question {from} of {asked}");
            assert!(same(&whole, &kept(folder.path(), &input, &params, 0, &Silent).unwrap()), "question {from}");
        }
    }
}

#[test]
fn trees_share_a_checkpoint_and_do_not_take_each_others_parts() {
    let (x, y) = data(100, 20);
    let input = TrainInput::new(x.view(), &y);
    let params = small(2, 4);
    let folder = tempfile::tempdir().unwrap();
    for tree in [0, 1] {
        let parts = kept(folder.path(), &input, &params, tree, &Silent).unwrap();
        assert!(same(&parts, &train_tree(&input, &params, tree, &Silent, None).unwrap()));
    }
    // More trees go on from those that are there.
    let more = TreeParams { n_trees: 2, ..params.clone() };
    assert_eq!(checkpoint_key(&input, &more), checkpoint_key(&input, &params));
    let (from, to) = (folder.path().join("tree-1-topology"), folder.path().join("tree-0-topology"));
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let got = kept(folder.path(), &input, &params, 0, &Silent).unwrap_err();
    assert!(matches!(got, TrainError::Checkpoint(CheckpointError::WrongPart { .. })), "{got}");
}

#[test]
fn a_checkpoint_of_other_data_or_damaged_is_an_error() {
    let (x, y) = data(100, 20);
    let input = TrainInput::new(x.view(), &y);
    let folder = tempfile::tempdir().unwrap();
    let kept = |input: &TrainInput<'_>, params: &TreeParams| kept(folder.path(), input, params, 0, &Silent);
    kept(&input, &small(2, 4)).unwrap();
    let foreign = |e| matches!(e, TrainError::Checkpoint(CheckpointError::Foreign { .. }));
    assert!(foreign(kept(&input, &small(2, 5)).unwrap_err()));
    let (mut other, _) = data(100, 20);
    other.data_mut()[0] += 0.25;
    assert!(foreign(kept(&TrainInput::new(other.view(), &y), &small(2, 4)).unwrap_err()));
    for name in ["tree-0-topology/model.safetensors", "tree-0-level-0/model-values.safetensors"] {
        let path = folder.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        for at in [bytes.len() / 2, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 16;
            std::fs::write(&path, &bad).unwrap();
            let got = kept(&input, &small(2, 4)).unwrap_err();
            let TrainError::Checkpoint(error) = &got else { panic!("{got}") };
            assert!(!error.is_failure(), "{got}");
        }
        std::fs::write(&path, &bytes[..bytes.len() / 3]).unwrap();
        assert!(kept(&input, &small(2, 4)).is_err());
        std::fs::write(&path, &bytes).unwrap();
    }
    kept(&input, &small(2, 4)).unwrap();
}
