//! Queries and folders that are refused, and what is said.

use crate::folders::{self, Front, N_FEATURES, N_LABELS, WIDTH};
use serde_json::{Value, json};
use std::path::Path;
use xc_buffer::dtype::DType;
use xc_dense::DenseRows;
use xc_model::classifier;
use xc_model::{
    Answer, Candidates, Excluded, InputKind, Model, OpenModelError, OpenOptions, QueryError, QueryOptions, Row, Rows,
    Scratch, SearchOptions,
};
use xc_nn::Loss;
use xc_sparse::chunked::IteratorChoice;
use xc_sparse::{CsrMatrix, LabelRows, SparseRow, SparseRowError};
use xc_store::{Container, ContainerWriter, OpenMode};

fn tree() -> Model {
    let folder = tempfile::tempdir().unwrap();
    folders::tree(&folder.path().join("m"), Front::Plain, 1);
    Model::open(folder.path().join("m")).unwrap()
}

fn refused(model: &Model, query: Row<'_>, options: &QueryOptions<'_>) -> QueryError {
    let mut answer = Answer::default();
    let error = model.predict(&query, options, &mut Scratch::default(), &mut answer).unwrap_err();
    assert!(answer.labels.is_empty());
    error
}

fn row<'a>(indices: &'a [u32], values: &'a [f32]) -> Row<'a> {
    Row::Sparse(SparseRow::from_checked(indices, values))
}

#[test]
fn rows_that_no_model_may_see_are_refused_with_their_place() {
    let (model, options) = (tree(), QueryOptions::default());
    let refused = |indices: &[u32], values: &[f32]| refused(&model, row(indices, values), &options);
    assert_eq!(refused(&[7, 3], &[1.0, 1.0]), QueryError::Row(SparseRowError::Order { previous: 7, next: 3 }));
    assert_eq!(refused(&[3, 3], &[1.0, 1.0]), QueryError::Row(SparseRowError::Order { previous: 3, next: 3 }));
    let lengths = SparseRow::try_new(&[3, 4], &[1.0]);
    assert_eq!(lengths, Err(SparseRowError::Lengths { features: 2, values: 1 }));
    let n_features = N_FEATURES;
    assert_eq!(refused(&[3, 90], &[1.0, 2.0]), QueryError::Feature { feature: 90, position: 1, n_features });
    let error = refused(&[3, 4], &[1.0, f32::INFINITY]);
    assert_eq!(error.to_string(), "value inf at position 1; expected a finite number");
    assert!(matches!(refused(&[3], &[f32::NAN]), QueryError::NotFinite { position: 0, .. }));
}

#[test]
fn inputs_of_another_kind_or_width_are_refused() {
    let (model, options) = (tree(), QueryOptions::default());
    let got = refused(&model, Row::Dense(&[1.0]), &options);
    assert_eq!(got.to_string(), "the query is a vector; the model takes sparse features");
    assert!(matches!(refused(&model, Row::Text("a"), &options), QueryError::Input { .. }));
    let wide = CsrMatrix::zero((2, N_FEATURES + 1));
    let error = model.predict_batch(Rows::Sparse(wide.view()), &options).unwrap_err();
    assert_eq!(
        (&*error.to_string(), &*error.source.to_string()),
        ("query 0", "the query has 91 features; the model takes 90")
    );

    let folder = tempfile::tempdir().unwrap();
    folders::uniform(folder.path(), classifier::InputKind::Dense, Loss::SquaredHinge);
    let model = Model::open(folder.path()).unwrap();
    assert_eq!(model.describe().takes, InputKind::Dense);
    let got = refused(&model, Row::Dense(&[0.0; WIDTH + 1]), &options);
    assert_eq!(got, QueryError::Width { got: WIDTH + 1, expected: WIDTH, dense: true });
    assert!(matches!(refused(&model, row(&[0], &[1.0]), &options), QueryError::Input { .. }));
    assert!(matches!(
        refused(&model, row(&[], &[]), &QueryOptions { made: true, ..options }),
        QueryError::Input { .. }
    ));
    let mut values = vec![0.5; 3 * WIDTH];
    values[2 * WIDTH + 1] = f32::NAN;
    let error = model.predict_batch(Rows::Dense(DenseRows::new(&values, WIDTH)), &options).unwrap_err();
    assert_eq!(error.query, 2);
}

#[test]
fn labels_and_options_that_the_model_does_not_have_are_refused() {
    let model = tree();
    let query = row(&[1], &[1.0]);
    let unknown = QueryError::Label { label: 40, n_labels: N_LABELS };
    let candidates = QueryOptions { candidates: Candidates::Labels(&[2, 40]), ..QueryOptions::default() };
    assert_eq!(refused(&model, query, &candidates), unknown);
    assert_eq!(
        refused(&model, query, &QueryOptions { exclude: Excluded::Labels(&[40]), ..QueryOptions::default() }),
        unknown
    );
    let lists = LabelRows::from_lists([[0u32], [1]], 2).unwrap();
    let by_query = Candidates::ByQuery { rows: &lists, first: 2 };
    let by_query = QueryOptions { candidates: by_query, ..QueryOptions::default() };
    assert_eq!(refused(&model, query, &by_query), QueryError::Lists { what: "candidates", got: 2, expected: 3 });
    let min_score = QueryOptions { min_score: Some(f32::NAN), ..QueryOptions::default() };
    assert_eq!(refused(&model, query, &min_score), QueryError::MinScore);
    let with = |search| QueryOptions { search, ..QueryOptions::default() };
    assert_eq!(refused(&model, query, &with(SearchOptions { beam: Some(0), ..Default::default() })), QueryError::Beam);
    let error = refused(&model, query, &with(SearchOptions { max_labels: Some(3), ..Default::default() }));
    assert_eq!(error.to_string(), "models of kind \"tree\" have no option \"max-labels\"");

    let folder = tempfile::tempdir().unwrap();
    folders::dense(folder.path(), Front::Plain, Loss::Bce);
    let model = Model::open(folder.path()).unwrap();
    let choice = with(SearchOptions { matching: Some(IteratorChoice::Auto), ..Default::default() });
    assert!(matches!(refused(&model, query, &choice), QueryError::Option { option: "iterator", kind: "dense" }));
}

#[test]
fn folders_that_are_no_model_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent");
    assert!(matches!(Model::open(&path), Err(OpenModelError::Absent { .. })));
    std::fs::write(&path, "x").unwrap();
    assert!(matches!(Model::open(&path), Err(OpenModelError::NotAFolder { .. })));
    let other = folder.path().join("other");
    xc_store::ContainerWriter::create(&other, "pipeline").unwrap().finish().unwrap();
    let Err(error) = Model::open(&other) else { panic!("a pipeline opened as a model") };
    assert!(error.to_string().contains("a model of kind \"pipeline\"; expected one of tree, dense"), "{error}");
    let tree = folder.path().join("tree");
    folders::tree(&tree, Front::Plain, 1);
    let options = OpenOptions { repetitions: Some(vec![0]), ..OpenOptions::default() };
    assert!(matches!(Model::open_with(&tree, &options), Err(OpenModelError::NoRepetitions { kind: "tree", .. })));
}

#[test]
fn repetitions_that_are_lost_are_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    folders::mach(&path, Front::Plain);
    std::fs::remove_file(path.join("model-repetition-0002.safetensors")).unwrap();
    let model = Model::open(&path).unwrap();
    let warnings: Vec<String> = model.warnings().map(|w| w.to_string()).collect();
    assert_eq!((warnings.len(), warnings[1].as_str()), (2, "3 of 4 repetitions answer"));
    assert!(warnings[0].starts_with("repetition 2 is left out"), "{warnings:?}");
    let options = OpenOptions { repetitions: Some(vec![2]), ..OpenOptions::default() };
    assert!(Model::open_with(&path, &options).is_err());
}

/// A model that is `model` but for one field of its configuration, which `path` leads to.
fn with_field(model: &Path, path: &[&str], value: Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Container::open(model, OpenMode::Read).unwrap();
    let mut writer = ContainerWriter::copy_of(&source, &folder.path().join("m")).unwrap();
    let mut changed = source.parameters()[path[0]].clone();
    let place = path[1..].iter().fold(&mut changed, |at, name| &mut at[*name]);
    *place = value;
    writer.set_parameter(path[0], changed);
    writer.finish().unwrap();
    folder
}

#[test]
fn a_setting_of_trainers_that_is_not_known_changes_no_answer_and_one_of_answers_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let (x, options) = (folders::rows(9), QueryOptions::default());
    let ask = |path: &Path| {
        let answers = Model::open(path).unwrap().predict_batch(Rows::Sparse(x.view()), &options).unwrap();
        answers.ranked.iter().flatten().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>()
    };
    for kind in ["uniform", "lns", "mach"] {
        match kind {
            "uniform" => folders::uniform(&path, classifier::InputKind::Sparse, Loss::SquaredHinge),
            "lns" => folders::lns(&path, Front::Plain, Loss::Bce, DType::Bf16),
            _ => folders::mach(&path, Front::Plain),
        }
        let before = ask(&path);
        for (inside, value) in [
            (&["learning", "warmup"][..], json!(3)),
            (&["learning", "negatives", "sampler", "name"], json!("of-tomorrow")),
            (&["learning", "connections", "rewire_every"], json!("often")),
            (&["learning"], json!("nothing that anybody knows")),
            (&["training", "settings", "warmup"], json!(1)),
        ] {
            let source = Container::open(&path, OpenMode::Read).unwrap();
            let has_part = source.parameters().contains_key(inside[0]);
            if has_part {
                assert_eq!(ask(&with_field(&path, inside, value).path().join("m")), before, "{kind} {inside:?}");
            } else {
                assert_eq!(inside[0], "training", "{kind}");
            }
        }
        let of_answers: &[&[&str]] = match kind {
            "mach" => {
                &[&["mach", "warmup"], &["mach", "classifier", "warmup"], &["mach", "classifier", "head", "warmup"]]
            }
            _ => &[&["classifier", "warmup"], &["classifier", "encoder", "warmup"], &["classifier", "head", "warmup"]],
        };
        for inside in of_answers {
            let changed = with_field(&path, inside, json!(3));
            let Err(error) = Model::open(changed.path().join("m")) else { panic!("{kind} {inside:?} is taken") };
            let said = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
            let said = said.map(ToString::to_string).collect::<Vec<_>>().join(": ");
            assert!(said.contains("warmup") && said.contains("unknown field"), "{kind} {inside:?}: {said}");
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}
