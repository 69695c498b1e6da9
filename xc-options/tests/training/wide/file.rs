//! Folders with a wide term: what is written is opened, and what is damaged is refused by its name.

use super::{MODELS, N_FEATURES, N_LABELS, TRAINED, ask, queries};
use serde_json::{Value, json};
use std::path::Path;
use xc_buffer::dtype::DType;
use xc_hash::stream::Stream;
use xc_model::Model;
use xc_model::classifier::{Classifier, OpenClassifierError};
use xc_model::{Candidates, ChangeError, Changes, QueryOptions};
use xc_options::Training;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_train::fit::{Context, Silent};

/// An array that takes the place of one of the model's.
struct Array {
    name: &'static str,
    dtype: DType,
    bytes: Vec<u8>,
}

impl Array {
    fn of<T: bytemuck::NoUninit>(name: &'static str, dtype: DType, values: &[T]) -> Self {
        Self { name, dtype, bytes: bytemuck::cast_slice(values).to_vec() }
    }
}

/// The model with the parameter `wide` changed, without some arrays and with others.
fn rewritten(from: &Path, to: &Path, change: impl Fn(&mut Value), without: &str, with: &[Array]) {
    let source = Container::open(from, OpenMode::Read).unwrap();
    let mut writer = ContainerWriter::like(&source, to).unwrap();
    let mut wide = source.parameters()["wide"].clone();
    change(&mut wide);
    writer.set_parameter("wide", wide);
    let is_kept = |name: &str| name != without && with.iter().all(|array| array.name != name);
    writer.add_arrays(&source, is_kept).unwrap();
    for Array { name, dtype, bytes } in with {
        let shape = [bytes.len() / dtype.n_bytes()];
        writer.add(name, ArrayRef { dtype: *dtype, shape: &shape, bytes }).unwrap();
    }
    writer.finish().unwrap();
}

/// An error and its causes.
fn said(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn a_damaged_term_is_refused_by_the_name_of_the_field_the_array_or_the_label() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (TRAINED.place("bce"), folder.path().join("m"));
    let rankers = Classifier::open(&from).unwrap().wide().unwrap().rankers.clone();
    let (starts, features, bias) = (rankers.starts().to_vec(), rankers.features().to_vec(), rankers.bias().to_vec());
    let weights: Vec<f32> = (0..features.len()).map(|at| rankers.weights().get(at)).collect();
    let refused = |change: &dyn Fn(&mut Value), without: &str, with: &[Array], expected: &[&str]| {
        rewritten(&from, &to, change, without, with);
        let error = said(&Model::open(&to).err().unwrap());
        assert!(!error.contains('\n') && error.starts_with(&to.display().to_string()), "{error}");
        for expected in expected {
            assert!(error.contains(expected), "{expected:?} in {error}");
        }
    };
    rewritten(&from, &to, |_| {}, "", &[]);
    assert_eq!(Classifier::open(&to).unwrap().wide().unwrap().rankers, rankers);

    for (field, value, expected) in [
        ("unknown", json!(1), "unknown field `unknown`"),
        ("weight", json!(-0.5), "wide.weight"),
        ("weight", json!(1e60), "wide.weight"),
        ("weight", json!("much"), "parameter \"wide\""),
        ("labels", json!(0), "wide.labels"),
        ("labels", json!(-1), "parameter \"wide\""),
        ("precision", json!("U32"), "wide.precision is u32"),
        ("precision", json!("F8_E4M3"), "wide.precision is e4m3"),
    ] {
        refused(&|wide| wide[field] = value.clone(), "", &[], &[expected]);
    }
    for field in ["weight", "labels", "precision"] {
        refused(&|wide| drop(wide.as_object_mut().unwrap().remove(field)), "", &[], &[field]);
    }
    refused(&|wide| *wide = Value::Null, "", &[], &["wide"]);
    refused(&|wide| wide["precision"] = json!("BF16"), "", &[], &["wide.weights"]);

    for array in ["wide.starts", "wide.features", "wide.weights", "wide.bias"] {
        refused(&|_| {}, array, &[], &[array]);
    }
    let of_starts = |values: &[u64]| [Array::of("wide.starts", DType::U64, values)];
    let of_features = |values: &[u32]| [Array::of("wide.features", DType::U32, values)];
    let of_weights = |values: &[f32]| [Array::of("wide.weights", DType::F32, values)];
    let of_bias = |values: &[f32]| [Array::of("wide.bias", DType::F32, values)];
    // Of another length, or of another type.
    refused(&|_| {}, "", &of_starts(&starts[..N_LABELS]), &["wide.starts", "61"]);
    refused(&|_| {}, "", &of_features(&features[1..]), &["wide.features", &features.len().to_string()]);
    refused(&|_| {}, "", &of_weights(&weights[1..]), &["wide.weights", &features.len().to_string()]);
    refused(&|_| {}, "", &of_bias(&bias[1..]), &["wide.bias", "60"]);
    refused(&|_| {}, "", &[Array::of("wide.features", DType::F32, &weights)], &["wide.features"]);
    // Of other values: starts that do not rise from 0 to the number of weights, features that do not ascend or are
    // none, and what is not finite.
    let changed = |at: usize, to: u64| {
        let mut starts = starts.clone();
        starts[at] = to;
        starts
    };
    refused(&|_| {}, "", &of_starts(&changed(0, 1)), &["wide term"]);
    refused(&|_| {}, "", &of_starts(&changed(9, u64::MAX)), &["wide term"]);
    refused(&|_| {}, "", &of_starts(&changed(N_LABELS, u64::MAX)), &["wide.features"]);
    let list = |at: u64| starts.partition_point(|&start| start <= at) - 1;
    let at = starts.windows(2).position(|w| w[1] > w[0] + 2).unwrap();
    let first = starts[at] as usize;
    let label = format!("list {}", list(first as u64));
    let mut wrong = features.clone();
    wrong.swap(first, first + 1);
    refused(&|_| {}, "", &of_features(&wrong), &["wide term", &label]);
    wrong.clone_from(&features);
    wrong[starts[at + 1] as usize - 1] = N_FEATURES as u32;
    refused(&|_| {}, "", &of_features(&wrong), &["wide term", &label, "96"]);
    for value in [f32::NAN, f32::INFINITY] {
        let mut weights = weights.clone();
        weights[first] = value;
        refused(&|_| {}, "", &of_weights(&weights), &["wide term", &label]);
        let mut bias = bias.clone();
        bias[17] = value;
        refused(&|_| {}, "", &of_bias(&bias), &["wide term", "label 17"]);
    }
}

#[test]
fn a_term_beside_a_network_over_vectors_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, with) = (folder.path().join("plain"), folder.path().join("with"));
    let (_, labels) = super::rows(60);
    let values: Vec<f32> = (0..60 * 8).map(|i| (i * 37 % 17) as f32 / 8.0 - 1.0).collect();
    let vectors = xc_dense::DenseMatrix::new(60, 8, values);
    let mut training = Training::new("lns", (vectors.clone(), labels.clone()), &plain).unwrap();
    training.set("epochs", "1").unwrap();
    training.run(&Context::new(&Silent).with_threads(1)).unwrap();
    assert!(Classifier::open(&plain).unwrap().wide().is_none());
    let source = Container::open(&plain, OpenMode::Read).unwrap();
    let of_rows = Container::open(TRAINED.place("bce"), OpenMode::Read).unwrap();
    let mut writer = ContainerWriter::like(&source, &with).unwrap();
    writer.set_parameter("wide", of_rows.parameters()["wide"].clone());
    writer.add_arrays(&source, |_| true).unwrap();
    writer.add_arrays(&of_rows, |name| name.starts_with("wide.")).unwrap();
    writer.finish().unwrap();
    let error = Classifier::open(&with).unwrap_err();
    assert!(matches!(error, OpenClassifierError::WideOfVectors { .. }), "{error}");
    assert!(said(&Model::open(&with).err().unwrap()).contains("a wide term, which sparse features are needed for"));

    let model = folder.path().join("never");
    let mut training = Training::new("dense", (vectors, labels), &model).unwrap();
    training.set("wide", "on").unwrap();
    let error = training.run(&Context::new(&Silent).with_threads(1)).unwrap_err();
    assert!(error.to_string().starts_with("--wide on: instances are vectors"), "{error}");
    assert!(!model.exists());
}

#[test]
fn a_term_in_another_type_answers_nearly_as_before_and_one_without_small_weights_has_none() {
    let folder = tempfile::tempdir().unwrap();
    for (name, ..) in MODELS {
        let (model, queries, to) = (Model::open(TRAINED.place(name)).unwrap(), queries(name), folder.path().join("m"));
        let before = Classifier::open(TRAINED.place(name)).unwrap().wide().unwrap().clone();
        let best = |model: &Model| -> Vec<u32> {
            ask(model, queries.view(), &QueryOptions::top(1)).iter().map(|row| row[0].label).collect()
        };
        let small = Changes { precision: Some(DType::Bf16), prune_below: Some(0.3), ..Changes::default() };
        model.change(&Changes { prune_below: None, ..small.clone() }).unwrap().save(&to).unwrap();
        let (rounded, whole) = (best(&Model::open(&to).unwrap()), best(&model));
        let same = rounded.iter().zip(&whole).filter(|(a, b)| a == b).count();
        assert!(same * 10 >= whole.len() * 9, "{name}: {same} of {} best labels are the same", whole.len());
        model.change(&small).unwrap().save(&to).unwrap();
        let after = Classifier::open(&to).unwrap().wide().unwrap().clone();
        let expected = |label: u32| -> Vec<(u32, f32)> {
            let of = before.rankers.row(label).filter(|(_, w)| w.abs() >= 0.3);
            of.map(|(feature, w)| (feature, half::bf16::from_f32(w).to_f32())).collect()
        };
        for label in 0..N_LABELS as u32 {
            assert_eq!(after.rankers.row(label).collect::<Vec<_>>(), expected(label), "{name}, label {label}");
        }
        assert_eq!((after.params.precision, after.rankers.bias()), (DType::Bf16, before.rankers.bias()), "{name}");
        assert!(after.rankers.features().len() < before.rankers.features().len(), "{name}");
    }
}

#[test]
fn changes_that_a_term_does_not_have_are_refused() {
    let model = Model::open(TRAINED.place("dense")).unwrap();
    let change = |changes: &Changes| model.change(changes).map(drop);
    for least in [-1.0, f32::NAN, f32::INFINITY] {
        let error = change(&Changes { prune_below: Some(least), ..Changes::default() }).unwrap_err();
        assert!(matches!(error, ChangeError::Prune { .. }), "{error}");
    }
    for to in [DType::E4m3, DType::U32] {
        let error = change(&Changes { precision: Some(to), ..Changes::default() }).unwrap_err();
        assert!(error.to_string().ends_with("expected f32, f16 or bf16"), "{error}");
    }
    // What is left out is not changed.
    for changes in [
        Changes { precision: Some(DType::F16), ..Changes::default() },
        Changes { prune_below: Some(0.1), ..Changes::default() },
    ] {
        assert!(change(&changes).is_ok());
        let error = change(&Changes { without_wide: true, ..changes }).unwrap_err();
        assert!(matches!(error, ChangeError::Kind { .. }), "{error}");
    }
    let network = TRAINED.network("dense");
    for changes in
        [Changes { without_wide: true, ..Changes::default() }, Changes { prune_below: Some(0.1), ..Changes::default() }]
    {
        assert!(matches!(network.change(&changes).map(drop), Err(ChangeError::Kind { .. })));
    }
}

/// Changes one to three bytes, the same ones in every run.
fn damage(bytes: &mut [u8], number: u64) {
    let mut stream = Stream::new(number);
    for _ in 0..=stream.below(2) {
        let at = stream.below(bytes.len() as u32) as usize;
        bytes[at] = match stream.below(4) {
            0 => 0,
            1 => 0xff,
            2 => bytes[at] ^ (1 << stream.below(8)),
            _ => stream.below(256) as u8,
        };
    }
}

#[test]
fn damaged_arrays_are_refused_or_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (queries, all) = (queries("bce"), (0..N_LABELS as u32).collect::<Vec<_>>());
    let (mut opened, mut refused) = (0, 0);
    for number in 0..400 {
        let from = TRAINED.place(["bce", "softmax", "hinge", "dense"][number as usize % 4]);
        let source = Container::open(&from, OpenMode::Read).unwrap();
        let name = ["wide.starts", "wide.features", "wide.weights", "wide.bias"][number as usize / 4 % 4];
        let entry = source.entry(name).unwrap();
        let mut bytes = source.bytes(name, entry.dtype, &entry.shape).unwrap().to_vec();
        damage(&mut bytes, number);
        let to = folder.path().join("m");
        let change = |wide: &mut Value| {
            if number % 5 == 0 {
                wide["labels"] = json!(number % 7 + 1);
                wide["weight"] = json!([0.0, 1e-30, 3e38][number as usize % 3]);
            }
        };
        rewritten(&from, &to, change, "", &[Array { name, dtype: entry.dtype, bytes }]);
        let model = match Model::open(&to) {
            Ok(model) => model,
            Err(error) => {
                refused += 1;
                let error = said(&error);
                assert!(error.contains("wide") && !error.contains('\n'), "{number}: {error}");
                continue;
            }
        };
        opened += 1;
        let candidates = QueryOptions { candidates: Candidates::Labels(&all), ..QueryOptions::top(3) };
        let [free, some] =
            [QueryOptions::top(3), candidates].map(|options| model.predict_batch(queries.view(), &options));
        match (free, some) {
            (Ok(free), Ok(some)) => {
                assert!(free.ranked.iter().flatten().all(|s| (0.0..=1.0).contains(&s.score)), "{number}");
                assert_eq!(free.ranked, some.ranked, "{number}");
            }
            // Sums of finite numbers may be none.
            (free, some) => {
                let [free, some] = [free, some].map(|answers| answers.unwrap_err().to_string());
                assert_eq!(free, some, "{number}");
            }
        }
    }
    assert!(opened > 100 && refused > 50, "{opened} opened, {refused} refused");
}
