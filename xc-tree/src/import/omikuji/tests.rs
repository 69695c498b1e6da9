//! Trees written by hand, damaged ones, and the answers of omikuji itself.

use super::*;
use ciborium::{Value, cbor};
use proptest::prelude::*;
use std::collections::BTreeMap;

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

/// A weight matrix of `n_features + 1` rows.
enum Matrix {
    Dense(Vec<Vec<f32>>),
    Sparse(usize, Vec<(u64, Vec<(u64, f32)>)>),
}

enum Sketch {
    Branch(Matrix, Vec<Sketch>),
    Leaf(Matrix, Vec<u32>),
}

const N_FEATURES: usize = 3;

fn matrix_value(matrix: &Matrix) -> Value {
    match matrix {
        Matrix::Dense(rows) => cbor!({
            "Dense" => { "v" => 1, "dim" => [rows.len(), rows[0].len()], "data" => rows.concat() }
        }),
        Matrix::Sparse(n_columns, rows) => {
            let mut ends = vec![0];
            rows.iter().for_each(|(_, row)| ends.push(ends[ends.len() - 1] + row.len()));
            let entries: Vec<_> = rows.iter().flat_map(|row| &row.1).copied().collect();
            cbor!({ "Sparse" => {
                "outer_dim" => N_FEATURES + 1,
                "inner_dim" => n_columns,
                "indptr" => ends,
                "outer_inds" => rows.iter().map(|row| row.0).collect::<Vec<_>>(),
                "inner_inds" => entries.iter().map(|entry| entry.0).collect::<Vec<_>>(),
                "data" => entries.iter().map(|entry| entry.1).collect::<Vec<_>>(),
            } })
        }
    }
    .unwrap()
}

fn node_value(node: &Sketch) -> Value {
    match node {
        Sketch::Branch(weights, children) => cbor!({ "Branch" => {
            "weights" => matrix_value(weights),
            "children" => children.iter().map(node_value).collect::<Vec<_>>(),
        } }),
        Sketch::Leaf(weights, labels) => {
            cbor!({ "Leaf" => { "weights" => matrix_value(weights), "labels" => labels } })
        }
    }
    .unwrap()
}

/// Bytes of a node. Floats take half precision where nothing is lost, as the program writes them.
fn encoded(node: &Sketch) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(&node_value(node), &mut bytes).unwrap();
    bytes
}

/// Leaves at depths 1 and 2, one matrix dense and the others sparse.
fn sketch() -> Sketch {
    let shallow =
        Sketch::Leaf(Matrix::Sparse(2, vec![(0, vec![(1, 0.5), (0, 2.0)]), (3, vec![(1, -1.0)])]), vec![4, 0]);
    let deep =
        |label: u32| Sketch::Leaf(Matrix::Sparse(1, vec![(2, vec![(0, 0.3)]), (3, vec![(0, 0.7)])]), vec![label]);
    let dense = vec![vec![0.0, 1.5], vec![0.1, 0.0], vec![0.0, 0.0], vec![0.25, 0.0]];
    let branch = Sketch::Branch(Matrix::Dense(dense), vec![deep(1), deep(2)]);
    Sketch::Branch(Matrix::Sparse(2, vec![(1, vec![(0, -0.5)]), (3, vec![(0, 0.5), (1, 0.5)])]), vec![shallow, branch])
}

fn save(folder: &Path, loss: &str, trees: &[Sketch]) {
    fs::write(folder.join("settings.json"), format!("{{\"n_features\": 3, \"classifier_loss_type\": \"{loss}\"}}"))
        .unwrap();
    for (i, tree) in trees.iter().enumerate() {
        fs::write(folder.join(format!("tree{i}.cbor")), encoded(tree)).unwrap();
    }
}

/// Beam search over all trees, in the plainest words; `query` is of unit length.
fn predict(model: &OmikujiModel, query: &[(u32, f32)], beam: usize) -> Vec<(u32, f32)> {
    let mut total: BTreeMap<u32, f32> = BTreeMap::new();
    for tree in &model.trees {
        let mut kept = vec![(0u32, 0.0f32)];
        for (level, chunks) in tree.levels.iter().enumerate() {
            let mut below = Vec::new();
            for &(parent, score) in &kept {
                let chunk = &chunks[parent as usize];
                let mut margins = vec![0f32; chunk.n_columns];
                for &(feature, value) in query {
                    let Ok(row) = chunk.features.binary_search(&feature) else { continue };
                    for at in chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize {
                        margins[chunk.columns[at] as usize] += value * chunk.values[at];
                    }
                }
                let first = tree.topology.boundaries(level)[parent as usize];
                let start = below.len();
                for (child, margin) in margins.iter().enumerate() {
                    below.push((first + child as u32, model.post.accumulate(score, margin + chunk.bias[child])));
                }
                if level + 1 == tree.levels.len() {
                    below[start..].sort_by(|a, b| b.1.total_cmp(&a.1));
                    below.truncate(start + beam);
                }
            }
            below.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            if level + 1 < tree.levels.len() {
                below.truncate(beam);
            }
            kept = below;
        }
        for (leaf, score) in kept {
            *total.entry(tree.topology.labels()[leaf as usize]).or_default() += model.post.finish(score);
        }
    }
    let n = model.trees.len() as f32;
    let mut out: Vec<_> = total.into_iter().map(|(label, score)| (label, score / n)).collect();
    out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    out
}

#[test]
fn nodes_of_unequal_depth_become_levels_and_score_as_their_formula() {
    for (loss, post) in [("Hinge", PostProcessor::Hinge { p: 2 }), ("Log", PostProcessor::Sigmoid)] {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), loss, &[sketch(), sketch()]);
        let model = import(folder.path()).unwrap();
        assert_eq!((model.post, model.normalise_rows, model.n_features, model.n_labels), (post, true, 3, 5));
        assert_eq!(model.trees.len(), 2);
        let tree = &model.trees[0];
        assert_eq!(tree.topology.boundaries(0), &[0, 2]);
        assert_eq!(tree.topology.boundaries(1), &[0, 1, 3]);
        assert_eq!(tree.topology.boundaries(2), &[0, 2, 3, 4]);
        assert_eq!(tree.topology.labels(), &[4, 0, 1, 2]);
        for chunks in &tree.levels {
            chunks.iter().for_each(|chunk| chunk.check().unwrap());
        }
        let shallow = &tree.levels[2][0];
        assert_eq!((&shallow.columns[..], &shallow.values[..]), (&[0, 1][..], &[2.0, 0.5][..]));
        // By hand: the shallow labels pass two scored nodes, the others three. The query is feature
        // 0 at 1.
        let g = |z: f32| if loss == "Hinge" { -(1.0 - z).max(0.0).powi(2) } else { -(1.0 + (-z).exp()).ln() };
        let expected = BTreeMap::from([
            (4, g(0.5) + g(2.0)),
            (0, g(0.5) + g(-0.5)),
            (1, g(0.5) + g(0.25) + g(0.7)),
            (2, g(0.5) + g(1.5) + g(0.7)),
        ]);
        let got = predict(&model, &[(0, 1.0)], 10);
        assert_eq!(got.len(), 4);
        for (label, score) in got {
            assert!((score - expected[&label].exp()).abs() < 1e-6, "{loss} label {label}: {score}");
        }
    }
}

#[test]
fn a_chain_node_adds_exactly_nothing() {
    for (loss, parent) in [(Loss::Hinge, -0.37f32), (Loss::Log, -1.25e-7), (Loss::Log, 0.0)] {
        assert_eq!(loss.post().accumulate(parent, loss.chain_bias()).to_bits(), parent.to_bits());
        assert_eq!(half::f16::from_f32(loss.chain_bias()).to_f32(), loss.chain_bias());
        assert_eq!(half::bf16::from_f32(loss.chain_bias()).to_f32(), loss.chain_bias());
    }
}

#[test]
fn a_root_with_labels_is_one_level() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "Hinge", &[Sketch::Leaf(Matrix::Sparse(2, vec![]), vec![3, 1])]);
    let model = import(folder.path()).unwrap();
    assert_eq!(model.trees[0].topology.depth(), 1);
    assert_eq!(model.trees[0].topology.labels(), &[3, 1]);
}

#[test]
fn trees_come_in_the_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let leaf = |label| Sketch::Leaf(Matrix::Sparse(1, vec![]), vec![label]);
    save(folder.path(), "Log", &(0..12).map(leaf).collect::<Vec<_>>());
    let model = import(folder.path()).unwrap();
    let labels: Vec<u32> = model.trees.iter().map(|tree| tree.topology.labels()[0]).collect();
    assert_eq!(labels, (0..12).collect::<Vec<_>>());
}

fn spoiled(tree: Sketch) -> String {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "Hinge", &[tree]);
    import(folder.path()).unwrap_err().said()
}

#[test]
fn malformed_trees_name_the_file_and_what_is_wrong() {
    let leaf = |weights, labels: &[u32]| Sketch::Leaf(weights, labels.to_vec());
    let sparse = |rows: Vec<(u64, Vec<(u64, f32)>)>| Matrix::Sparse(1, rows);
    let cases = [
        (leaf(Matrix::Sparse(2, vec![]), &[1]), "weights for 2 children, the node has 1"),
        (leaf(sparse(vec![(4, vec![(0, 1.0)])]), &[1]), "lie outside"),
        (leaf(sparse(vec![(2, vec![(0, 1.0)]), (1, vec![(0, 1.0)])]), &[1]), "do not ascend"),
        (leaf(sparse(vec![(2, vec![(1, 1.0)])]), &[1]), "column beyond 1"),
        (leaf(sparse(vec![(2, vec![(0, 1.0), (0, 1.0)])]), &[1]), "without repetition"),
        (leaf(sparse(vec![(2, vec![(0, f32::NAN)])]), &[1]), "not finite"),
        (leaf(sparse(vec![(3, vec![(0, f32::INFINITY)])]), &[1]), "finite bias"),
        (leaf(Matrix::Dense(vec![vec![1.0]; 3]), &[1]), "weights of 3 rows, expected 3 features and the bias"),
        (leaf(Matrix::Sparse(2, vec![]), &[1, 1]), "repeated"),
        (Sketch::Branch(Matrix::Sparse(0, vec![]), vec![]), "a branch without children"),
    ];
    for (tree, expected) in cases {
        let got = spoiled(tree);
        assert!(got.contains(expected) && got.contains("tree0.cbor"), "got {got:?}, expected {expected:?}");
    }
    let chain =
        |depth| (0..depth).fold(leaf(sparse(vec![]), &[0]), |below, _| Sketch::Branch(sparse(vec![]), vec![below]));
    assert!(spoiled(chain(1000)).contains("nested deeper"));
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "Hinge", &[chain(90)]);
    assert_eq!(import(folder.path()).unwrap().trees[0].topology.depth(), 91);
}

#[test]
fn malformed_folders_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(import(folder.path()), Err(OmikujiError::Io { .. })));
    save(folder.path(), "Squared", &[]);
    let error = import(folder.path()).unwrap_err().said();
    assert!(error.contains("settings.json") && error.contains("Squared"), "{error}");
    save(folder.path(), "Log", &[]);
    assert!(matches!(import(folder.path()), Err(OmikujiError::NoTrees { .. })));
    fs::write(folder.path().join("tree0.cbor"), b"").unwrap();
    let error = import(folder.path()).unwrap_err().said();
    assert!(error.contains("the file ends here"), "{error}");
    // A list that claims 2^60 elements.
    let mut claims = b"\xa1\x64Leaf\xa2\x66labels\x9b".to_vec();
    claims.extend((1u64 << 60).to_be_bytes());
    fs::write(folder.path().join("tree0.cbor"), claims).unwrap();
    assert!(matches!(import(folder.path()), Err(OmikujiError::Cbor { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_flip_or_cut_panics(at in 0.0f64..1.0, bit in 0u8..8, is_cut in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "Hinge", &[sketch()]);
        let path = folder.path().join("tree0.cbor");
        let mut bytes = fs::read(&path).unwrap();
        let at = (bytes.len() as f64 * at) as usize;
        if is_cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        fs::write(&path, &bytes).unwrap();
        match import(folder.path()) {
            Ok(model) => {
                prop_assert!(!is_cut);
                predict(&model, &[(0, 1.0)], 2);
            }
            Err(error) => prop_assert!(error.to_string().contains("tree0.cbor")),
        }
    }
}

#[derive(Deserialize)]
struct Answers {
    x: Vec<(u32, f32)>,
    beam10: Vec<(u32, f32)>,
    beam3: Vec<(u32, f32)>,
}

#[test]
#[ignore = "needs models: XC_DATA=FOLDER with omikuji-fixture/{parabel,bonsai,log}/ (models) and NAME.json beside them (queries, answers)"]
fn omikuji_answers_are_reproduced() {
    let data = PathBuf::from(std::env::var_os("XC_DATA").expect("SKIPPED: XC_DATA is not set"));
    let data = data.join("omikuji-fixture");
    for name in ["parabel", "bonsai", "log"] {
        let model = import(&data.join(name)).unwrap();
        let answers = fs::read(data.join(format!("{name}.json"))).unwrap();
        let answers: Vec<Answers> = serde_json::from_slice(&answers).unwrap();
        let mut swapped = 0;
        for (row, answer) in answers.iter().enumerate() {
            let norm = answer.x.iter().map(|entry| entry.1 * entry.1).sum::<f32>().sqrt();
            let query: Vec<_> = answer.x.iter().map(|&(feature, value)| (feature, value / norm)).collect();
            for (beam, expected) in [(10, &answer.beam10), (3, &answer.beam3)] {
                let got = predict(&model, &query, beam);
                for (m, w) in got.iter().zip(expected) {
                    assert!(
                        (m.1 - w.1).abs() < 2e-6,
                        "{name} row {row} beam {beam}: got {got:?}, expected {expected:?}"
                    );
                    swapped += usize::from(m.0 != w.0);
                }
            }
        }
        assert!(swapped <= 4, "{name}: {swapped} labels swapped by ties");
    }
}
