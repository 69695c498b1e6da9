//! Round trips through small folders, malformed ones, and the answers of libpecos itself.

use super::matrix::{Columns, write_columns};
use super::*;
use crate::{ModelInfo, PredictParams, Topology, TreeModel};
use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use xc_buffer::dtype::DType;
use xc_sparse::CsrMatrix;
use xc_sparse::chunked::ChunkRows;

/// An error and what caused it, joined as a program prints them.
trait Said {
    fn said(&self) -> String;
}

impl<E: std::error::Error> Said for E {
    fn said(&self) -> String {
        let links = std::iter::successors(self.source(), |link| link.source());
        links.fold(self.to_string(), |text, link| format!("{text}: {link}"))
    }
}

/// For each label, the bias and the weights of the nodes on its path: what a model means, whatever
/// its order.
type Meaning = BTreeMap<u32, Vec<(f32, BTreeMap<u32, f32>)>>;

fn meaning(parts: &TreeParts) -> Meaning {
    let mut paths: Vec<Vec<(f32, BTreeMap<u32, f32>)>> = vec![vec![]];
    for (level, chunks) in parts.levels.iter().enumerate() {
        let mut below = Vec::new();
        assert_eq!(chunks.len(), paths.len());
        for (parent, chunk) in chunks.iter().enumerate() {
            chunk.check().unwrap();
            let bounds = parts.topology.boundaries(level);
            assert_eq!(chunk.n_columns, (bounds[parent + 1] - bounds[parent]) as usize);
            for child in 0..chunk.n_columns {
                let mut weights = BTreeMap::new();
                for row in 0..chunk.features.len() {
                    for at in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
                        if chunk.columns[at] as usize == child {
                            weights.insert(chunk.features[row], chunk.values[at]);
                        }
                    }
                }
                let mut path = paths[parent].clone();
                path.push((chunk.bias[child], weights));
                below.push(path);
            }
        }
        paths = below;
    }
    parts.topology.labels().iter().copied().zip(paths).collect()
}

const N_FEATURES: usize = 12;

/// A tree of `depth` levels with random weights; one label more than leaves.
fn random_model(seed: u64, depth: usize) -> PecosModel {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut boundaries, mut levels) = (Vec::new(), Vec::new());
    let mut n_parents = 1;
    for _ in 0..depth {
        let (mut ptr, mut chunks) = (vec![0u32], Vec::new());
        for _ in 0..n_parents {
            let n = rng.random_range(0..4u32);
            ptr.push(ptr[ptr.len() - 1] + n);
            let mut entries = Vec::new();
            for feature in 0..N_FEATURES as u32 {
                for child in 0..n {
                    if rng.random_range(0..3) == 0 {
                        entries.push((feature, child, rng.random_range(-4..5) as f32 * 0.25 + 0.125));
                    }
                }
            }
            let bias = (0..n).map(|_| rng.random_range(-2..3) as f32).collect();
            chunks.push(ChunkRows::from_entries(n as usize, entries, bias).unwrap());
        }
        n_parents = ptr[ptr.len() - 1] as usize;
        boundaries.push(ptr);
        levels.push(chunks);
    }
    let n_labels = n_parents + 1;
    let mut labels: Vec<u32> = (0..n_labels as u32).collect();
    for i in (1..n_labels).rev() {
        labels.swap(i, rng.next_u32() as usize % (i + 1));
    }
    labels.truncate(n_parents);
    let topology = Topology::try_new(boundaries, labels, n_labels).unwrap();
    PecosModel {
        parts: TreeParts { topology, levels },
        post: PostProcessor::Hinge { p: 3 },
        beam: 7,
        level_top_k: (0..depth).map(|level| if level + 1 == depth && depth > 1 { 5 } else { 7 }).collect(),
        n_features: N_FEATURES,
        n_labels,
        bias: 1.0,
    }
}

/// The first of the random models that is not tiny.
fn filled_model(depth: usize) -> PecosModel {
    (0..).map(|seed| random_model(seed, depth)).find(|model| model.n_labels > 2 + depth).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_exported_model_means_the_same_when_imported(seed in any::<u64>(), depth in 1usize..4) {
        let model = random_model(seed, depth);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pecos");
        export(&model, &path).unwrap();
        let back = import(&path).unwrap();
        prop_assert_eq!(meaning(&back.parts), meaning(&model.parts));
        prop_assert_eq!(
            (back.post, back.beam, &back.level_top_k, back.n_features, back.n_labels, back.bias),
            (model.post, model.beam, &model.level_top_k, model.n_features, model.n_labels, model.bias)
        );
        // Children ascend by label now, so a second trip changes nothing at all.
        let again = folder.path().join("again");
        export(&back, &again).unwrap();
        let back_again = import(&again).unwrap();
        prop_assert_eq!(&back_again.parts.topology, &back.parts.topology);
        prop_assert_eq!(&back_again.parts.levels, &back.parts.levels);
    }

    #[test]
    fn no_flip_or_cut_of_a_file_panics(file in 0usize..64, at in 0.0f64..1.0, bit in 0u8..8, is_cut in any::<bool>(),
        is_stored in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pecos");
        let model = filled_model(2);
        if is_stored { write_stored(&model, &path) } else { export(&model, &path).unwrap() }
        let files = files(&path);
        let path_of_file = &files[file % files.len()];
        let mut bytes = fs::read(path_of_file).unwrap();
        let at = (bytes.len() as f64 * at) as usize;
        if is_cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        fs::write(path_of_file, &bytes).unwrap();
        if let Ok(model) = import(&path) {
            let _ = meaning(&model.parts);
        }
    }

    #[test]
    fn cluster_chains_come_back(seed in any::<u64>(), depth in 1usize..5) {
        let model = random_model(seed, depth);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        export_clusters(&model.parts.topology, model.n_labels, &path).unwrap();
        let (topology, n_labels) = import_clusters(&path).unwrap();
        prop_assert_eq!(n_labels, model.n_labels);
        for level in 0..depth {
            prop_assert_eq!(topology.boundaries(level), model.parts.topology.boundaries(level));
        }
        let sorted = |t: &Topology| {
            let mut groups: Vec<Vec<u32>> = t.boundaries(depth - 1).windows(2)
                .map(|w| t.labels()[w[0] as usize..w[1] as usize].to_vec()).collect();
            groups.iter_mut().for_each(|group| group.sort_unstable());
            groups
        };
        prop_assert_eq!(sorted(&topology), sorted(&model.parts.topology));
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Writes a block file; see `stored`.
fn write_blocks(path: &Path, blocks: &[Vec<u8>]) {
    let (mut bytes, mut table) = (Vec::new(), (blocks.len() as u64).to_le_bytes().to_vec());
    for block in blocks {
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        table.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        table.extend_from_slice(&(block.len() as u64).to_le_bytes());
        bytes.extend_from_slice(block);
    }
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let at = bytes.len() as u64;
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(b"\x93PECOS<\x01");
    bytes.extend_from_slice(&at.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

fn words(list: impl IntoIterator<Item = u32>) -> Vec<u8> {
    list.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn longs(list: impl IntoIterator<Item = u64>) -> Vec<u8> {
    list.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The mapped form of a model, written by the description of the format and not by the reader's
/// code.
fn write_stored(model: &PecosModel, folder: &Path) {
    export(model, folder).unwrap();
    let topology = &model.parts.topology;
    for (level, chunks) in model.parts.levels.iter().enumerate() {
        let layer = folder.join(format!("ranker/{level}.model"));
        fs::remove_file(layer.join("W.npz")).unwrap();
        fs::remove_file(layer.join("C.npz")).unwrap();
        let path = layer.join("param.json");
        let mut param: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        param["is_mmap"] = true.into();
        fs::write(&path, param.to_string()).unwrap();
        let is_last = level + 1 == topology.depth();
        let n_nodes = topology.n_nodes(level) as u32;
        // A label without a leaf stands behind all others.
        let n_rows = if is_last { model.n_labels as u32 } else { n_nodes };
        let bounds = topology.boundaries(level);
        let clusters = [
            words([n_rows]),
            words([chunks.len() as u32]),
            longs([u64::from(n_nodes)]),
            longs(bounds.iter().map(|&b| u64::from(b))),
            words(0..n_nodes),
            words((0..n_nodes).map(|_| 1f32.to_bits())),
        ];
        write_blocks(&layer.join("C.mmap_store"), &clusters);
        if is_last {
            let mut order = topology.labels().to_vec();
            let missing: Vec<u32> = (0..n_rows).filter(|label| !order.contains(label)).collect();
            order.extend(missing);
            let places = (0..n_rows).map(|l| order.iter().position(|&o| o == l).unwrap() as u32);
            let n = longs([u64::from(n_rows)]);
            let perm = [n.clone(), words(places), n, words(order.iter().copied())];
            write_blocks(&layer.join("perm.mmap_store"), &perm);
        }
        let (mut heads, mut features, mut ptr, mut entries) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (chunk, window) in chunks.iter().zip(bounds.windows(2)) {
            let base = entries.len() as u64 / 2;
            let biases: Vec<_> = chunk.bias.iter().enumerate().filter(|(_, b)| **b != 0.0).collect();
            let n_rows = chunk.features.len() + usize::from(!biases.is_empty());
            heads.extend([window[0], window[1], n_rows as u32, u32::from(!biases.is_empty()), 9, 9, 9, 9]);
            features.extend_from_slice(&chunk.features);
            ptr.extend(chunk.row_ptr.iter().map(|&at| base + u64::from(at)));
            entries.extend(chunk.columns.iter().zip(&chunk.values).flat_map(|(&c, v)| [c, v.to_bits()]));
            if !biases.is_empty() {
                features.push(model.n_features as u32);
                entries.extend(biases.iter().flat_map(|&(c, b)| [c as u32, b.to_bits()]));
                ptr.push(entries.len() as u64 / 2);
            }
        }
        let weights = [
            words([chunks.len() as u32]),
            words([model.n_features as u32 + 1]),
            words([n_rows]),
            longs([heads.len() as u64 / 8]),
            words(heads),
            longs([features.len() as u64]),
            words(features),
            longs([ptr.len() as u64]),
            longs(ptr),
            longs([entries.len() as u64 / 2]),
            words(entries),
        ];
        write_blocks(&layer.join("W.mmap_store"), &weights);
    }
}

#[test]
fn the_mapped_form_means_the_same() {
    let models = [random_model(1, 1), filled_model(1), filled_model(2), filled_model(3), random_model(11, 3)];
    for model in models {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pecos");
        write_stored(&model, &path);
        let back = import(&path).unwrap();
        assert_eq!(back.parts.topology, model.parts.topology);
        assert_eq!(back.parts.levels, model.parts.levels);
        assert_eq!((back.n_features, back.n_labels), (model.n_features, model.n_labels));
    }
}

/// A two-level model by hand: two clusters, three labels.
fn write_small(folder: &Path) {
    let entries = |feature: u32| vec![(feature, 0, 1.0), (feature, 1, 2.0)];
    let chunk = |feature| ChunkRows::from_entries(2, entries(feature), vec![0.5, 0.0]).unwrap();
    let single = ChunkRows::from_entries(1, vec![(4, 0, 7.0)], vec![0.0]).unwrap();
    let topology = Topology::try_new(vec![vec![0, 2], vec![0, 2, 3]], vec![0, 2, 1], 3).unwrap();
    let model = PecosModel {
        parts: TreeParts { topology, levels: vec![vec![chunk(1)], vec![chunk(2), single]] },
        post: PostProcessor::Hinge { p: 3 },
        beam: 20,
        level_top_k: vec![20, 20],
        n_features: 5,
        n_labels: 3,
        bias: 1.0,
    };
    export(&model, folder).unwrap();
}

fn small() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pecos");
    write_small(&path);
    (folder, path)
}

fn overwrite(path: &Path, matrix: &Columns) {
    let _absent = fs::remove_file(path);
    write_columns(&mut std::fs::File::create(path).unwrap(), matrix).unwrap();
}

fn columns(n_rows: usize, lists: &[&[(u32, f32)]]) -> Columns {
    let mut matrix = Columns { n_rows, indptr: vec![0], rows: vec![], values: vec![] };
    for list in lists {
        matrix.rows.extend(list.iter().map(|e| e.0));
        matrix.values.extend(list.iter().map(|e| e.1));
        matrix.indptr.push(matrix.rows.len());
    }
    matrix
}

#[test]
fn inner_clusters_that_are_not_in_order_are_brought_together() {
    let (_folder, path) = small();
    let before = import(&path).unwrap();
    // Three inner nodes in two groups, {0, 2} and {1}: the second level's columns are numbered 0,
    // 1, 2.
    let inner = path.join("ranker/1.model");
    let third = path.join("ranker/2.model");
    fs::create_dir(&third).unwrap();
    fs::copy(inner.join("param.json"), third.join("param.json")).unwrap();
    let ranker = path.join("ranker/param.json");
    let text = fs::read_to_string(&ranker).unwrap().replace("\"depth\": 2", "\"depth\": 3");
    fs::write(&ranker, text).unwrap();
    overwrite(&inner.join("C.npz"), &columns(3, &[&[(0, 1.0), (2, 1.0)], &[(1, 1.0)]]));
    overwrite(&inner.join("W.npz"), &columns(6, &[&[(0, 10.0)], &[(0, 11.0)], &[(0, 12.0), (5, 0.25)]]));
    overwrite(&third.join("C.npz"), &columns(4, &[&[(3, 1.0)], &[(0, 1.0)], &[(1, 1.0), (2, 1.0)]]));
    overwrite(&third.join("W.npz"), &columns(6, &[&[(1, 20.0)], &[(1, 21.0)], &[(1, 22.0)], &[(1, 23.0)]]));
    let model = import(&path).unwrap();
    assert_eq!(model.parts.topology.labels(), &[3, 1, 2, 0]);
    assert_eq!(model.parts.topology.boundaries(2), &[0, 1, 3, 4]);
    let meaning = meaning(&model.parts);
    let weights = |label: u32, level: usize| meaning[&label][level].1.values().copied().collect::<Vec<_>>();
    for (label, node, own) in [(0, 11.0, 20.0), (1, 12.0, 21.0), (2, 12.0, 22.0), (3, 10.0, 23.0)] {
        assert_eq!((weights(label, 1), weights(label, 2)), (vec![node], vec![own]));
    }
    assert_eq!(meaning[&1][1].0, 0.25);
    assert_eq!(meaning[&0][0], super::tests::meaning(&before.parts)[&1][0], "node 1 hangs below cluster 1 of the top");
}

#[test]
fn unsorted_columns_are_sorted_and_the_bias_input_multiplies_the_last_row() {
    let (_folder, path) = small();
    let layer = path.join("ranker/1.model");
    overwrite(&layer.join("W.npz"), &columns(6, &[&[(5, 0.5), (3, 2.0), (1, 1.0)], &[], &[(4, 1.0)]]));
    let param = layer.join("param.json");
    fs::write(&param, fs::read_to_string(&param).unwrap().replace("\"bias\": 1.0", "\"bias\": 3.0")).unwrap();
    let model = import(&path).unwrap();
    let leaf = &meaning(&model.parts)[&0][1];
    assert_eq!(leaf, &(1.5, BTreeMap::from([(1, 1.0), (3, 2.0)])));
    assert_eq!(model.bias, 3.0);
    // Without a bias the last row is a feature as any other.
    for level in 0..2 {
        let param = path.join(format!("ranker/{level}.model/param.json"));
        let text = fs::read_to_string(&param).unwrap();
        fs::write(&param, text.replace("\"bias\": 3.0", "\"bias\": -1.0").replace("\"bias\": 1.0", "\"bias\": 0"))
            .unwrap();
    }
    let model = import(&path).unwrap();
    assert_eq!((model.n_features, model.bias), (6, 0.0));
    assert_eq!(meaning(&model.parts)[&0][1], (0.0, BTreeMap::from([(1, 1.0), (3, 2.0), (5, 0.5)])));
}

/// Imports a model after `change`, which must spoil it; gives the message.
fn spoiled(change: impl FnOnce(&Path)) -> String {
    let (_folder, path) = small();
    import(&path).unwrap();
    change(&path);
    import(&path).unwrap_err().said()
}

fn replace_text(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn malformed_folders_name_the_file_and_what_is_wrong() {
    let ranker = |from: &'static str, to: &'static str| {
        spoiled(move |path| replace_text(&path.join("ranker/param.json"), from, to))
    };
    let layer = |from: &'static str, to: &'static str| {
        spoiled(move |path| replace_text(&path.join("ranker/1.model/param.json"), from, to))
    };
    let matrix = |name: &'static str, matrix: Columns| {
        spoiled(move |path| overwrite(&path.join("ranker/1.model").join(name), &matrix))
    };
    let cases = [
        (spoiled(|path| fs::remove_dir_all(path).unwrap()), "ranker/param.json"),
        (ranker("\"depth\": 2", "\"depth\": 0"), "depth is 0, expected 1 to 64"),
        (ranker("\"depth\": 2", "\"depth\": 3"), "2.model/param.json"),
        (ranker("\"depth\": 2", "\"depth\": -2"), "ranker/param.json"),
        (ranker("HierarchicalMLModel\",\n  \"nr", "MLModel\",\n  \"nr"), "expected \"HierarchicalMLModel\""),
        (layer("\"bias\": 1.0,", ""), "missing field `bias`"),
        (layer("l3-hinge", "softmax"), "unknown post-processor \"softmax\""),
        (layer("l3-hinge", "sigmoid"), "post-processor sigmoid, but the level above has l3-hinge"),
        (layer("\"only_topk\": 20", "\"only_topk\": 0"), "only_topk"),
        (spoiled(|path| fs::remove_file(path.join("ranker/0.model/C.npz")).unwrap()), "0.model/C.npz"),
        (spoiled(|path| fs::write(path.join("ranker/0.model/W.npz"), b"not a zip").unwrap()), "0.model/W.npz"),
        (matrix("C.npz", columns(3, &[&[(0, 1.0)], &[(1, 1.0)], &[(2, 1.0)]])), "number of clusters is 3, expected 2"),
        (matrix("C.npz", columns(3, &[&[(0, 1.0), (2, 1.0)], &[(2, 1.0)]])), "row 2 hangs below two clusters"),
        (matrix("C.npz", columns(3, &[&[(0, 1.0), (3, 1.0)], &[(2, 1.0)]])), "an id below 3"),
        (matrix("C.npz", columns(2, &[&[(0, 1.0)], &[(1, 1.0)]])), "number of columns is 3, expected 2"),
        (matrix("W.npz", columns(6, &[&[(1, f32::NAN)], &[], &[]])), "array data.npy: entry 0 is NaN"),
        (matrix("W.npz", columns(6, &[&[], &[(1, 1.0), (1, 2.0)], &[]])), "column 1: row 1 stands there twice"),
        (matrix("W.npz", columns(7, &[&[], &[], &[]])), "number of features is 6, expected 5"),
        (matrix("W.npz", columns(0, &[&[], &[], &[]])), "number of rows"),
    ];
    for (got, expected) in cases {
        assert!(got.contains(expected), "got {got:?}, expected {expected:?}");
    }
}

#[test]
fn blocks_that_do_not_fit_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pecos");
    let model = filled_model(2);
    write_stored(&model, &path);
    let layer = path.join("ranker/1.model");
    let n = model.n_labels as u64;
    let labels = |first: u32| words((0..n as u32).map(|l| if l == 0 { first } else { l }));
    let perm = |second: Vec<u8>, m: u64| vec![longs([n]), labels(0), longs([m]), second];
    let cases = [
        ("perm.mmap_store", perm(labels(n as u32), n), "there are only"),
        ("perm.mmap_store", perm(labels(1), n), "hangs below two clusters"),
        ("perm.mmap_store", perm(labels(0), n - 1), "expected"),
        ("perm.mmap_store", perm(words([0]), 1), "length of the permutation is 1"),
        ("perm.mmap_store", vec![longs([n])], "block 1: is missing"),
        ("C.mmap_store", vec![words([3])], "block 1: is missing"),
        ("W.mmap_store", vec![words([1]), words([1]), words([1])], "number of columns is 1"),
        ("W.mmap_store", vec![longs([1])], "8 bytes, expected 1 elements of 4"),
    ];
    for (name, blocks, expected) in cases {
        let file = layer.join(name);
        let sound = fs::read(&file).unwrap();
        import(&path).unwrap();
        write_blocks(&file, &blocks);
        let got = import(&path).unwrap_err().said();
        assert!(got.contains(expected) && got.contains("1.model"), "got {got:?}, expected {expected:?}");
        fs::write(&file, sound).unwrap();
    }
}

#[test]
fn an_export_leaves_a_filled_folder_alone() {
    let (_folder, path) = small();
    let model = import(&path).unwrap();
    assert!(matches!(export(&model, &path), Err(PecosError::Occupied { .. })));
    assert!(matches!(export(&model, &path.join("param.json")), Err(PecosError::Occupied { .. })));
    assert!(matches!(export(&model, &path.join("no/such")), Err(PecosError::Write(_))));
    let empty = path.join("empty");
    fs::create_dir(&empty).unwrap();
    export(&model, &empty).unwrap();
    assert_eq!(import(&empty).unwrap().parts.levels, model.parts.levels);
}

/// Beam search in the plainest words: the reference for the fixture below.
fn predict(model: &PecosModel, post: PostProcessor, query: (&[u32], &[f32]), beam: usize, k: usize) -> Vec<(u32, f32)> {
    let parts = &model.parts;
    let mut kept = vec![(0u32, 0.0f32)];
    for (level, chunks) in parts.levels.iter().enumerate() {
        let mut below = Vec::new();
        for &(parent, score) in &kept {
            let chunk = &chunks[parent as usize];
            let mut margins = vec![0f32; chunk.n_columns];
            for (feature, value) in query.0.iter().zip(query.1) {
                let Ok(row) = chunk.features.binary_search(feature) else { continue };
                for at in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
                    margins[chunk.columns[at] as usize] += value * chunk.values[at];
                }
            }
            let first = parts.topology.boundaries(level)[parent as usize];
            for (child, margin) in margins.iter().enumerate() {
                below.push((first + child as u32, post.accumulate(score, margin + chunk.bias[child])));
            }
        }
        let is_last = level + 1 == parts.levels.len();
        below.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        below.truncate(if is_last { k } else { beam });
        kept = below;
    }
    kept.into_iter().map(|(leaf, score)| (parts.topology.labels()[leaf as usize], post.finish(score))).collect()
}

/// The model as the crate searches it.
fn pack(model: &PecosModel, post: PostProcessor) -> TreeModel {
    let (n_features, n_labels, beam) = (model.n_features, model.n_labels, model.beam);
    let info = ModelInfo { n_features, n_labels, post, normalise_rows: false, row_length: 1.0, beam };
    TreeModel::from_parts(info, vec![model.parts.clone()], DType::F32).unwrap()
}

fn read_rows(path: &Path) -> CsrMatrix {
    xc_data::read_npz_matrix(path, &xc_data::ReadOptions::default()).unwrap()
}

#[test]
#[ignore = "needs the PECOS fixture: XC_DATA=FOLDER with pecos-fixture/ in it"]
fn libpecos_answers_are_reproduced() {
    let data = PathBuf::from(std::env::var_os("XC_DATA").expect("SKIPPED: XC_DATA is not set"));
    let fixture = data.join("pecos-fixture/xlinear");
    let model = import(&fixture.join("model")).unwrap();
    let queries = read_rows(&fixture.join("X.tst.npz"));
    let mut near_ties = 0;
    for (beam, k, name) in
        [(10, 10, "l3-hinge"), (1, 5, "l3-hinge"), (50, 20, "l3-hinge"), (10, 10, "sigmoid"), (10, 10, "noop")]
    {
        let expected = read_rows(&fixture.join(format!("pred_beam{beam}_top{k}_{name}.npz")));
        let post = name.parse().unwrap();
        let packed = pack(&model, post);
        let batch = packed.predict_batch(queries.view(), &PredictParams::top(k).with_beam(beam)).unwrap();
        for row in 0..queries.rows() {
            let query = queries.view().row(row);
            let got = predict(&model, post, (query.indices(), query.values()), beam, k);
            let got_packed: Vec<_> = batch.row(row).iter().map(|s| (s.label, s.score)).collect();
            if got_packed != got {
                // Equal scores are broken by label there and by place here; anything else is a
                // fault.
                let scores = |list: &[(u32, f32)]| list.iter().map(|e| e.1).collect::<Vec<_>>();
                assert_eq!(scores(&got_packed), scores(&got), "{name} row {row}");
            }
            let mut list: Vec<_> = expected.view().row(row).iter().collect();
            list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            assert_eq!(got.len(), list.len());
            for (m, w) in got.iter().zip(&list) {
                assert!(
                    (m.1 - w.1).abs() < 2e-6 * w.1.abs().max(1.0),
                    "{name} row {row}: got {got:?}, expected {list:?}"
                );
                if m.0 != w.0 {
                    near_ties += 1;
                }
            }
        }
    }
    assert!(near_ties <= 4, "{near_ties} labels swapped by ties");
    // What we write is read back the same.
    let folder = tempfile::tempdir().unwrap();
    export(&model, &folder.path().join("copy")).unwrap();
    assert_eq!(import(&folder.path().join("copy")).unwrap().parts.levels, model.parts.levels);
}
