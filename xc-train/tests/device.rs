//! Models on a device: the bytes of the CPU's answers, and what is refused.

#[path = "model/folders.rs"]
#[allow(dead_code, reason = "another test makes other models")]
mod folders;

use folders::{Front, N_LABELS};
use std::path::Path;
use xc_buffer::DType;
use xc_kernels::{Device, Emulated};
use xc_mach::Decoder;
use xc_model::blend::RuleKind;
use xc_model::classifier::InputKind;
use xc_model::{Answers, Candidates, Excluded, Model, QueryOptions, Rows, SearchOptions};
use xc_nn::Loss;
use xc_sparse::LabelRows;

/// Answers on the threads of a pool, as batches are.
fn answers(model: &Model, options: &QueryOptions<'_>, n: usize) -> Answers {
    let x = folders::rows(n);
    rayon::scope(|_| model.predict_batch(Rows::Sparse(x.view()), options)).unwrap()
}

fn bits(answers: &Answers) -> Vec<Vec<(u32, u32)>> {
    answers.ranked.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

/// Kernels that ran.
fn n_launches(emulated: &Emulated) -> usize {
    let counts = emulated.counts();
    emulated.clear_counts();
    counts.lines().count()
}

/// A model in a folder that ends with it.
fn model(make: impl FnOnce(&Path)) -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    make(&path);
    let model = Model::open(&path).unwrap();
    (folder, model)
}

/// The same answers on the device as before, by kernels or without.
fn same(emulated: &Emulated, model: &mut Model, asked: &[(QueryOptions<'_>, bool)]) {
    let on_cpu: Vec<Answers> = asked.iter().map(|(options, _)| answers(model, options, 9)).collect();
    model.put_on(&Device::open(0).unwrap()).unwrap();
    emulated.clear_counts();
    for ((options, by_kernels), expected) in asked.iter().zip(on_cpu) {
        let got = answers(model, options, 9);
        assert_eq!(bits(&got), bits(&expected), "{options:?}");
        assert_eq!(got.known_terms, expected.known_terms);
        if emulated.is_emulated() {
            assert_eq!(n_launches(emulated) > 0, *by_kernels, "{options:?}");
        }
        assert_eq!(model.bound_to_cpu_by(options).is_some(), !by_kernels && options.top_k <= N_LABELS, "{options:?}");
    }
}

#[test]
fn trees() {
    let emulated = Emulated::hold();
    let lists = LabelRows::from_lists((0..9).map(|i| (i..i + i % 4).collect::<Vec<u32>>()), N_LABELS).unwrap();
    let excluded = QueryOptions { exclude: Excluded::ByQuery { rows: &lists, first: 0 }, ..QueryOptions::top(3) };
    let narrow = SearchOptions { beam: Some(1), ..SearchOptions::default() };
    for (front, n_trees) in [(Front::Plain, 1), (Front::Weights, 3)] {
        let (_folder, mut model) = model(|path| folders::tree(path, front, n_trees));
        let some = QueryOptions { candidates: Candidates::Labels(&[3, 8, 30]), ..QueryOptions::top(2) };
        let asked = [
            (QueryOptions::top(N_LABELS), true),
            (QueryOptions { search: narrow, ..QueryOptions::top(4) }, true),
            (excluded, true),
            (QueryOptions { exclude: Excluded::Labels(&[2, 5]), min_score: Some(0.1), ..QueryOptions::top(4) }, true),
            (some, false),
        ];
        same(&emulated, &mut model, &asked);
    }
}

#[test]
fn networks() {
    let emulated = Emulated::hold();
    let makes: [&dyn Fn(&Path); 5] = [
        &|path| folders::dense(path, Front::Weights, Loss::Bce),
        &|path| folders::dense(path, Front::Plain, Loss::Softmax),
        &|path| folders::uniform(path, InputKind::Sparse, Loss::SquaredHinge),
        &|path| folders::lns(path, Front::Plain, Loss::Bce, DType::Bf16),
        &|path| folders::astra(path, Front::Plain),
    ];
    for make in makes {
        let (_folder, mut model) = model(make);
        let some = QueryOptions { candidates: Candidates::Labels(&[3, 8, 30]), ..QueryOptions::top(2) };
        let excluded = QueryOptions { exclude: Excluded::Labels(&[2, 5]), ..QueryOptions::top(4) };
        same(&emulated, &mut model, &[(QueryOptions::top(N_LABELS), true), (excluded, true), (some, true)]);
    }
}

#[test]
fn mach_models_by_each_decoder() {
    let emulated = Emulated::hold();
    let (_folder, mut model) = model(|path| folders::mach(path, Front::Plain));
    let by = |search| QueryOptions { search, ..QueryOptions::top(4) };
    let decoders = Decoder::ALL.map(|decoder| SearchOptions { decoder: Some(decoder), ..SearchOptions::default() });
    let early = SearchOptions { max_labels: Some(5), ..SearchOptions::default() };
    let some = QueryOptions { candidates: Candidates::Labels(&[3, 8, 30]), ..QueryOptions::top(2) };
    let [mean, min, median] = decoders.map(|search| (by(search), true));
    same(&emulated, &mut model, &[mean, min, median, (by(early), false), (some, true)]);
}

#[test]
fn blends() {
    let emulated = Emulated::hold();
    let folder = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a", "b", "all"].map(|name| folder.path().join(name));
    folders::tree(&a, Front::Plain, 1);
    folders::dense(&b, Front::Plain, Loss::Bce);
    folders::blend(&all, &[&a, &b], RuleKind::ReciprocalRanks);
    let mut model = Model::open(&all).unwrap();
    // The tree's part of it is the CPU's.
    let some = QueryOptions { candidates: Candidates::Labels(&[3, 8, 30]), ..QueryOptions::top(2) };
    same(&emulated, &mut model, &[(QueryOptions::top(7), true), (some, true)]);
}

#[test]
fn what_the_device_lacks_is_said_with_the_numbers_and_the_cpu_answers_on() {
    let emulated = Emulated::hold();
    if !emulated.is_emulated() {
        return;
    }
    let (_folder, mut model) = model(|path| folders::tree(path, Front::Plain, 2));
    let expected = answers(&model, &QueryOptions::top(5), 9);
    emulated.set_device((8, 0), 4096, 1, 13000);
    let error = model.put_on(&Device::open(0).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("the device has 4096 bytes free, ") && error.contains(" for "), "{error}");
    emulated.set_device((8, 0), 1 << 30, 1, 13000);
    emulated.clear_counts();
    assert_eq!(answers(&model, &QueryOptions::top(5), 9), expected);
    assert_eq!(n_launches(&emulated), 0);
}
