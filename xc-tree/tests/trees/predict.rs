//! Beam search, online and in batch, against an exhaustive walk of plain columns.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xc_buffer::dtype::DType;
use xc_sparse::chunked::{ChunkRows, IteratorChoice, IteratorKind};
use xc_sparse::rank::{Scored, rank_order};
use xc_sparse::{CsrMatrix, SparseRow};
use xc_store::{Container, ContainerWriter, OpenMode};
use xc_tree::*;

const D: usize = 400;

fn random_tree(rng: &mut Xoshiro256PlusPlus, n_labels: usize, branching: usize) -> TreeParts {
    // Boundaries from the leaves up, clusters of 1 to `branching` children.
    let mut counts = vec![];
    let mut nodes = n_labels;
    loop {
        let mut ptr = vec![0u32];
        let mut at = 0;
        while at < nodes {
            at = (at + rng.random_range(1..=branching)).min(nodes);
            ptr.push(at as u32);
        }
        let parents = ptr.len() - 1;
        counts.push(ptr);
        if parents <= branching {
            counts.push(vec![0, parents as u32]);
            break;
        }
        nodes = parents;
    }
    counts.reverse();
    let mut labels: Vec<u32> = (0..n_labels as u32).collect();
    for i in (1..labels.len()).rev() {
        labels.swap(i, rng.random_range(0..=i));
    }
    let topology = Topology::try_new(counts, labels, n_labels).unwrap();
    let levels = (0..topology.depth())
        .map(|l| {
            let boundaries = topology.boundaries(l).to_vec();
            boundaries.windows(2).map(|w| random_chunk(rng, (w[1] - w[0]) as usize)).collect()
        })
        .collect();
    TreeParts { topology, levels }
}

fn random_chunk(rng: &mut Xoshiro256PlusPlus, width: usize) -> ChunkRows {
    let mut entries = vec![];
    for column in 0..width as u32 {
        for _ in 0..rng.random_range(0..12) {
            entries.push((rng.random_range(0..D as u32), column, rng.random_range(-2.0f32..2.0)));
        }
    }
    entries.sort_by_key(|e| (e.0, e.1));
    entries.dedup_by_key(|e| (e.0, e.1));
    let bias = (0..width).map(|_| rng.random_range(-1.0f32..1.0)).collect();
    ChunkRows::from_entries(width, entries, bias).unwrap()
}

fn random_queries(rng: &mut Xoshiro256PlusPlus, n: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for _ in 0..n {
        let nnz = rng.random_range(0..60);
        let mut row: Vec<u32> = (0..nnz).map(|_| rng.random_range(0..D as u32)).collect();
        row.sort();
        row.dedup();
        values.extend(row.iter().map(|_| rng.random_range(0.0f32..1.0)));
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::try_new((n, D), indptr, indices, values).unwrap()
}

fn margin(chunk: &ChunkRows, column: usize, row: SparseRow<'_>) -> f32 {
    let mut sum = 0.0f32;
    for (feature, x) in row.iter() {
        if let Ok(r) = chunk.features.binary_search(&feature) {
            for at in chunk.row_ptr[r] as usize..chunk.row_ptr[r + 1] as usize {
                if chunk.columns[at] as usize == column {
                    sum += x * chunk.values[at];
                }
            }
        }
    }
    sum + chunk.bias[column]
}

/// The beam search as the paper states it, one column at a time.
fn reference_tree(tree: &TreeParts, post: PostProcessor, row: SparseRow<'_>, beam: usize, k: usize) -> Vec<Scored> {
    let ranked = reference_ranking(tree, post, row, beam, k);
    ranked.iter().map(|s| Scored { label: s.label, score: post.finish(s.score) }).collect()
}

/// Its labels and ranking scores.
fn reference_ranking(tree: &TreeParts, post: PostProcessor, row: SparseRow<'_>, beam: usize, k: usize) -> Vec<Scored> {
    let mut nodes = vec![Scored { label: 0, score: 0.0 }];
    for (l, chunks) in tree.levels.iter().enumerate() {
        let last = l + 1 == tree.levels.len();
        let boundaries = tree.topology.boundaries(l);
        let mut next = vec![];
        for node in &nodes {
            let parent = node.label as usize;
            for column in 0..chunks[parent].n_columns {
                let child = boundaries[parent] + column as u32;
                let score = post.accumulate(node.score, margin(&chunks[parent], column, row));
                next.push(Scored { label: if last { tree.topology.labels()[child as usize] } else { child }, score });
            }
        }
        next.sort_by(|&a, &b| rank_order(a, b));
        next.truncate(if last { k } else { beam });
        nodes = next;
    }
    nodes
}

fn bits(row: &[Scored]) -> Vec<(u32, u32)> {
    row.iter().map(|s| (s.label, s.score.to_bits())).collect()
}

fn info(n_labels: usize, post: PostProcessor) -> ModelInfo {
    ModelInfo { n_features: D, n_labels, post, normalise_rows: false, row_length: 1.0, beam: 10 }
}

const POSTS: [PostProcessor; 5] = [
    PostProcessor::Hinge { p: 3 },
    PostProcessor::LogHinge { p: 2 },
    PostProcessor::Sigmoid,
    PostProcessor::LogSigmoid,
    PostProcessor::Noop,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_slice_of_queries_is_answered_as_they_are(seed in any::<u64>(), n in 1usize..12, cut in (0usize..13, 0usize..13), normalise_rows: bool) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let parts = random_tree(&mut rng, 50, 4);
        let queries = random_queries(&mut rng, n);
        let info = ModelInfo { normalise_rows, ..info(50, PostProcessor::Sigmoid) };
        let model = TreeModel::from_parts(info, vec![parts], DType::F32).unwrap();
        let params = PredictParams::top(5);
        let (from, to) = (cut.0.min(cut.1).min(n), cut.0.max(cut.1).min(n));
        let all = model.predict_batch(queries.view(), &params).unwrap();
        let slice = queries.slice(from..to);
        for some in [model.predict_batch(slice, &params).unwrap(), model.predict_batch(slice.to_owned().view(), &params).unwrap()] {
            prop_assert_eq!(some.len(), to - from);
            prop_assert!((from..to).all(|i| bits(some.row(i - from)) == bits(all.row(i))));
        }
    }

    #[test]
    fn a_row_that_is_none_is_no_answer_without_a_word(seed in any::<u64>(), at in 0usize..3, value in prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)], normalise_rows: bool) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let parts = random_tree(&mut rng, 30, 4);
        let info = ModelInfo { normalise_rows, ..info(30, PostProcessor::Sigmoid) };
        let model = TreeModel::from_parts(info, vec![parts], DType::F32).unwrap();
        let mut values = [1.0, 0.5, 2.0];
        values[at] = value;
        prop_assert!(SparseRow::try_new(&[1, 5, 90], &values).is_err());
        let row = SparseRow::from_checked(&[1, 5, 90], &values);
        prop_assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.predict(row, 5))).is_err());
        let matrix = CsrMatrix::from_checked((1, D), vec![0, 3], vec![1, 5, 90], values.to_vec());
        let params = PredictParams::top(5);
        prop_assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.predict_batch(matrix.view(), &params))).is_err());
        let unsorted = SparseRow::from_checked(&[5, 1, 90], &[1.0; 3]);
        prop_assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.predict(unsorted, 5))).is_err());
    }

    #[test]
    fn queries_of_another_width_are_refused_with_both_numbers(seed in any::<u64>(), width in 0..2 * D, beyond in 0u32..50) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let model = TreeModel::from_parts(info(20, PostProcessor::Sigmoid), vec![random_tree(&mut rng, 20, 4)], DType::F32).unwrap();
        let params = PredictParams::top(5);
        let matrix = CsrMatrix::from_checked((1, width), vec![0, 0], vec![], vec![]);
        let expected = if width == D { Ok(1) } else { Err(QueryError::Width { found: width, expected: D }) };
        prop_assert_eq!(model.predict_batch(matrix.view(), &params).map(|answers| answers.len()), expected);

        let feature = D as u32 - 1 + beyond;
        let expected = if beyond == 0 { Ok(()) } else { Err(QueryError::Feature { feature, n_features: D }) };
        let (indices, values) = ([0, feature], [1.0, 1.0]);
        let row = SparseRow::try_new(&indices, &values).unwrap();
        let (mut scratch, mut out) = (PredictScratch::default(), vec![Scored { label: 0, score: 0.0 }]);
        let restriction = model.restrict(&[3]).unwrap();
        prop_assert_eq!(model.predict(row, 5).map(|_| ()), expected);
        prop_assert_eq!(model.paths(row, 3).map(|_| ()), expected);
        prop_assert_eq!(model.predict_restricted(row, &restriction, 5, &mut scratch, &mut out), expected);
        prop_assert_eq!(model.predict_one(row, &params, &mut scratch, &mut out), expected);
        prop_assert!(out.is_empty() == expected.is_err());
    }

    #[test]
    fn online_and_batch_equal_the_plain_search(seed in any::<u64>(), n_labels in 1usize..400, branching in 2usize..40, beam in 1usize..20, k in 0usize..30, n in 0usize..12) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let parts = random_tree(&mut rng, n_labels, branching);
        let queries = random_queries(&mut rng, n);
        let rows = queries.view();
        for post in POSTS {
            let model = TreeModel::from_parts(info(n_labels, post), vec![parts.clone()], DType::F32).unwrap();
            let (mut scratch, mut out) = (PredictScratch::default(), vec![]);
            for choice in [IteratorChoice::Auto, IteratorChoice::Fixed(IteratorKind::Lookup), IteratorChoice::Fixed(IteratorKind::Marching)] {
                let params = PredictParams::top(k).with_beam(beam).with_choice(choice);
                let batch = model.predict_batch(queries.view(), &params).unwrap();
                prop_assert_eq!(batch.len(), n);
                prop_assert!(batch.check().is_ok());
                for i in 0..n {
                    let expected = reference_tree(&parts, post, rows.row(i), beam, k);
                    model.predict_one(rows.row(i), &params, &mut scratch, &mut out).unwrap();
                    prop_assert_eq!(bits(&out), bits(&expected), "{} query {}", post, i);
                    prop_assert_eq!(bits(batch.row(i)), bits(&expected), "{} batch {}", post, i);
                }
            }
        }
    }

    #[test]
    fn a_batch_that_shares_its_chunks_equals_the_plain_search(seed in any::<u64>(), n_labels in 100usize..300, beam in 1usize..12, k in 1usize..12) {
        // Hundreds of queries for some ten clusters of many children: beams are searched in waves.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let parts = random_tree(&mut rng, n_labels, 40);
        let queries = random_queries(&mut rng, 300);
        let rows = queries.view();
        for post in [PostProcessor::Hinge { p: 3 }, PostProcessor::Sigmoid, PostProcessor::Noop] {
            let model = TreeModel::from_parts(info(n_labels, post), vec![parts.clone()], DType::F32).unwrap();
            let batch = model.predict_batch(queries.view(), &PredictParams::top(k).with_beam(beam)).unwrap();
            for i in 0..300 {
                let expected = reference_tree(&parts, post, rows.row(i), beam, k);
                prop_assert_eq!(bits(batch.row(i)), bits(&expected), "{} query {}", post, i);
            }
        }
    }

    #[test]
    fn an_ensemble_is_the_mean_of_its_trees_however_many_labels_are_asked_for(
        seed in any::<u64>(), n_labels in 1usize..300, branching in 2usize..20, n in 0usize..8, beam in 1usize..12,
        k in 0usize..60, n_trees in 2usize..5,
    ) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let trees: Vec<TreeParts> = (0..n_trees).map(|_| random_tree(&mut rng, n_labels, branching)).collect();
        let queries = random_queries(&mut rng, n);
        let rows = queries.view();
        // Scores of a cubic hinge are often 0, where only ids tell labels apart.
        for post in [PostProcessor::Hinge { p: 3 }, PostProcessor::Sigmoid] {
            let model = TreeModel::from_parts(info(n_labels, post), trees.clone(), DType::F32).unwrap();
            let (mut scratch, mut out) = (PredictScratch::default(), vec![]);
            for k in [k, n_labels] {
                let params = PredictParams::top(k).with_beam(beam);
                let batch = model.predict_batch(queries.view(), &params).unwrap();
                for i in 0..n {
                    // All labels that a tree's beam reaches; those that it does not reach count 0.
                    let mut sums = vec![None; n_labels];
                    for tree in &trees {
                        for s in reference_ranking(tree, post, rows.row(i), beam, n_labels) {
                            let mut score = [s.score];
                            post.finish_all(&mut score);
                            prop_assert!((score[0] - post.finish(s.score)).abs() <= 3e-7 * score[0].abs().max(1e-30));
                            sums[s.label as usize] = Some(sums[s.label as usize].unwrap_or(0.0f32) + score[0]);
                        }
                    }
                    let mean = |(label, sum): (usize, &Option<f32>)| {
                        Some(Scored { label: label as u32, score: (*sum)? / n_trees as f32 })
                    };
                    let mut expected: Vec<Scored> = sums.iter().enumerate().filter_map(mean).collect();
                    expected.sort_by(|&a, &b| rank_order(a, b));
                    expected.truncate(k);
                    model.predict_one(rows.row(i), &params, &mut scratch, &mut out).unwrap();
                    prop_assert_eq!(bits(&out), bits(&expected), "{} query {}", post, i);
                    prop_assert_eq!(bits(batch.row(i)), bits(&expected), "{} batch {}", post, i);
                }
            }
        }
    }

    #[test]
    fn given_labels_get_the_scores_of_the_full_run(seed in any::<u64>(), n_labels in 1usize..200, picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20), n_trees in 1usize..3) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let trees: Vec<TreeParts> = (0..n_trees).map(|_| random_tree(&mut rng, n_labels, 6)).collect();
        let queries = random_queries(&mut rng, 4);
        let rows = queries.view();
        let post = PostProcessor::Hinge { p: 3 };
        let model = TreeModel::from_parts(info(n_labels, post), trees, DType::F32).unwrap();
        let wanted: Vec<u32> = picks.iter().map(|p| p.index(n_labels) as u32).collect();
        let restriction = model.restrict(&wanted).unwrap();
        let params = PredictParams::top(n_labels).with_beam(n_labels);
        let (mut scratch, mut full, mut out) = (PredictScratch::default(), vec![], vec![]);
        for i in 0..4 {
            model.predict_one(rows.row(i), &params, &mut scratch, &mut full).unwrap();
            full.retain(|s| wanted.contains(&s.label));
            model.predict_restricted(rows.row(i), &restriction, n_labels, &mut scratch, &mut out).unwrap();
            prop_assert_eq!(bits(&out), bits(&full));
        }
        prop_assert!(model.restrict(&[n_labels as u32]).is_err());
    }

    #[test]
    fn a_saved_model_answers_the_same(seed in any::<u64>(), n_labels in 1usize..100, half in any::<bool>()) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let trees: Vec<TreeParts> = (0..2).map(|_| random_tree(&mut rng, n_labels, 6)).collect();
        let queries = random_queries(&mut rng, 5);
        let precision = if half { DType::Bf16 } else { DType::F32 };
        let model = TreeModel::from_parts(info(n_labels, PostProcessor::Sigmoid), trees.clone(), precision).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        let mut writer = ContainerWriter::create(&path, KIND).unwrap();
        model.write(&mut writer).unwrap();
        writer.finish().unwrap();
        let params = PredictParams::top(5);
        let expected = model.predict_batch(queries.view(), &params).unwrap();
        for is_trusted in [false, true] {
            let container = Container::open(&path, OpenMode::Map).unwrap();
            let opened = match is_trusted {
                // SAFETY: the model was just written.
                true => unsafe { trusted::open(&container) },
                false => TreeModel::from_container(&container),
            };
            let opened = opened.unwrap();
            prop_assert_eq!(opened.info(), model.info());
            prop_assert_eq!(&opened.predict_batch(queries.view(), &params).unwrap(), &expected);
            if !half {
                prop_assert_eq!(&opened.to_parts(1).levels, &trees[1].levels);
            }
        }
    }

    #[test]
    fn a_changed_model_answers_the_kept_labels_with_their_old_scores(seed in any::<u64>(), n_labels in 1usize..120, picks in prop::collection::vec(any::<prop::sample::Index>(), 1..20), n_kept in 1usize..4) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let trees: Vec<TreeParts> = (0..3).map(|_| random_tree(&mut rng, n_labels, 6)).collect();
        let queries = random_queries(&mut rng, 4);
        let rows = queries.view();
        let model = TreeModel::from_parts(info(n_labels, PostProcessor::Hinge { p: 3 }), trees.clone(), DType::F32).unwrap();
        let wanted: Vec<u32> = picks.iter().map(|p| p.index(n_labels) as u32).collect();
        let post = PostProcessor::Sigmoid;
        let changes = TreeChanges { n_trees: Some(n_kept), keep_labels: Some(&wanted), post: Some(post), ..TreeChanges::default() };
        let changed = model.changed(&changes).unwrap();
        // The first trees with that post-processor, of whose answers the other labels are left out.
        let expected = TreeModel::from_parts(info(n_labels, post), trees[..n_kept.min(3)].to_vec(), DType::F32).unwrap();
        let params = PredictParams::top(n_labels).with_beam(n_labels);
        let (mut scratch, mut full, mut out) = (PredictScratch::default(), vec![], vec![]);
        for i in 0..4 {
            expected.predict_one(rows.row(i), &params, &mut scratch, &mut full).unwrap();
            full.retain(|s| wanted.contains(&s.label));
            changed.predict_one(rows.row(i), &params, &mut scratch, &mut out).unwrap();
            prop_assert_eq!(bits(&out), bits(&full));
        }
    }

    #[test]
    fn pruning_and_precision_change_each_weight_as_training_would(seed in any::<u64>(), n_labels in 1usize..60, least in 0.0f32..2.5) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let trees: Vec<TreeParts> = (0..2).map(|_| random_tree(&mut rng, n_labels, 6)).collect();
        let model = TreeModel::from_parts(info(n_labels, PostProcessor::Sigmoid), trees.clone(), DType::F32).unwrap();
        let same = model.changed(&TreeChanges::default()).unwrap();
        prop_assert_eq!(&same.to_parts(1).levels, &trees[1].levels);
        let changes = TreeChanges { prune_below: Some(least), precision: Some(DType::Bf16), ..TreeChanges::default() };
        let changed = model.changed(&changes).unwrap();
        for (tree, parts) in trees.iter().enumerate() {
            let now = changed.to_parts(tree);
            prop_assert_eq!(&now.topology, &parts.topology);
            for (chunks, before) in now.levels.iter().flatten().zip(parts.levels.iter().flatten()) {
                let round = |x: f32| half::bf16::from_f32(x).to_f32();
                let kept: Vec<f32> = before.values.iter().copied().filter(|x| x.abs() >= least).map(round).collect();
                prop_assert_eq!(&chunks.values, &kept);
                prop_assert_eq!(&chunks.bias, &before.bias);
            }
        }
    }
}

#[test]
fn changes_that_a_model_does_not_allow_are_refused_by_what_is_wrong() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let parts = random_tree(&mut rng, 9, 4);
    // Label 9 has no leaf.
    let model = TreeModel::from_parts(info(10, PostProcessor::Noop), vec![parts], DType::F32).unwrap();
    let none = TreeChanges::default();
    for (changes, expected) in [
        (TreeChanges { n_trees: Some(0), ..none.clone() }, "0 trees; the model has 1, and 1 to 1 can be kept"),
        (TreeChanges { n_trees: Some(2), ..none.clone() }, "2 trees; the model has 1, and 1 to 1 can be kept"),
        (
            TreeChanges { prune_below: Some(f32::NAN), ..none.clone() },
            "prune below NaN; expected a finite number of 0 or more",
        ),
        (TreeChanges { keep_labels: Some(&[10]), ..none.clone() }, "label 10 is out of range; the model has 10 labels"),
        (TreeChanges { keep_labels: Some(&[9]), ..none.clone() }, "none of the 1 labels to keep has a leaf in tree 0"),
        (TreeChanges { keep_labels: Some(&[]), ..none.clone() }, "none of the 0 labels to keep has a leaf in tree 0"),
    ] {
        assert_eq!(model.changed(&changes).unwrap_err().to_string(), expected);
    }
    let error = model.changed(&TreeChanges { precision: Some(DType::U8), ..none }).unwrap_err();
    assert!(error.to_string().starts_with("tree 0, level 0"), "{error}");
}

#[test]
fn a_label_on_two_leaves_is_refused() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let parts = random_tree(&mut rng, 9, 4);
    let model = TreeModel::from_parts(info(9, PostProcessor::Noop), vec![parts], DType::F32).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model");
    let mut writer = ContainerWriter::create(&path, KIND).unwrap();
    model.write(&mut writer).unwrap();
    writer.finish().unwrap();
    // Two leaves get the label of the first one; lengths and everything else stay.
    let labels: Vec<u8> = model.trees()[0].labels().iter().flat_map(|l| l.to_le_bytes()).collect();
    let file = path.join("model.safetensors");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(labels.len()).position(|w| w == labels).unwrap();
    bytes.copy_within(at..at + 4, at + 4);
    std::fs::write(&file, bytes).unwrap();
    let container = Container::open(&path, OpenMode::Map).unwrap();
    let error = TreeModel::from_container(&container).err().unwrap().to_string();
    assert!(error.contains("stands on two leaves"), "{error}");
}
