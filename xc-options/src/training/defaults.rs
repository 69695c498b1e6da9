//! The defaults of a training run are those of the parts that it is made of.

use super::Training;
use super::network::system;
use crate::settings::{Choices, text};
use std::path::Path;
use xc_hash::text::PipelineParams;
use xc_model::classifier::{ClassifierParams, InputKind};
use xc_nn::{Loss, Optimizer, TrainParams};
use xc_train::fit::{Place, TrainingShape};
use xc_train::kinds::{MachFit, NetworkKind};
use xc_train::preset::{self, DataShape, Preset};
use xc_tree::TreeParams;

/// Sets of all shapes that usual values tell apart.
fn shapes() -> Vec<DataShape> {
    let mut out = Vec::new();
    for n_instances in [200, 30_000] {
        for length in [20, 300] {
            for n_labels in [60, 2010, 2011, 30_000, 60_000, 700_000] {
                for most_frequent in [0, 150, n_instances] {
                    out.push(DataShape { n_instances, n_entries: n_instances * length, n_labels, most_frequent });
                }
            }
        }
    }
    out
}

fn same(kind: &str, data: DataShape, expected: &ClassifierParams) {
    same_with(kind, &[], data, expected);
}

fn same_with(kind: &str, options: &[(&str, &str)], data: DataShape, expected: &ClassifierParams) {
    let shape = TrainingShape {
        input: InputKind::Sparse,
        n_features: 5000,
        n_labels: data.n_labels,
        most_labels: 7,
        data: Some(data),
    };
    let mut training = Training::new(kind, Path::new("t"), "m").unwrap();
    options.iter().for_each(|(name, value)| training.set(name, value).unwrap());
    let system = system(kind, &training.choices, &Place::default()).unwrap();
    let made = system.params(&shape, 0, true).unwrap().classifier;
    assert_eq!(&made, expected, "{kind} {options:?}, {data:?}");
}

#[test]
fn an_intermediate_layer_that_is_asked_for_comes_with_the_values_of_one() {
    let many = DataShape { n_instances: 30_000, n_entries: 600_000, n_labels: 60_000, most_frequent: 150 };
    let few = DataShape { n_labels: 60, most_frequent: 30_000, ..many };
    let asked = [("network.intermediate", "1024")];
    let mut expected = preset::uniform_with_layer_for(many).params;
    *expected.encoder.widths_mut() = vec![512, 1024];
    same_with("uniform", &asked, many, &expected);
    let none = [("network.intermediate", "none"), ("network.init", "lsa")];
    let mut expected = preset::uniform_for(few).params;
    *expected.encoder.widths_mut() = vec![512];
    same_with("uniform", &none, few, &expected);
    // Many labels of vectors keep their layer: there are no embeddings to stand on.
    let shape =
        TrainingShape { input: InputKind::Dense, n_features: 90, n_labels: 60_000, most_labels: 7, data: Some(many) };
    let vectors = system("uniform", &Choices::default(), &Place::default()).unwrap().params(&shape, 0, true).unwrap();
    let vectors = vectors.classifier;
    assert_eq!((vectors.encoder.widths(), vectors.loss), (&[32_768][..], Loss::SquaredHinge));
}

#[test]
fn a_run_without_settings_has_those_of_the_library() {
    for (name, expected) in [
        ("default", TreeParams::default()),
        ("parabel", TreeParams::parabel()),
        ("bonsai", TreeParams::bonsai()),
        ("xr-linear", TreeParams::xr_linear()),
    ] {
        let mut training = Training::new("tree", Path::new("t"), "m").unwrap();
        training.set("preset", name).unwrap();
        // Rows are scaled where features are made.
        assert_eq!(training.reading().unwrap().normalises(), expected.normalise_rows, "{name}");
        assert_eq!(
            super::tree::params(&training, 0).unwrap(),
            TreeParams { normalise_rows: false, ..expected },
            "{name}"
        );
    }
    for data in shapes() {
        same("dense", data, &preset::dense().params);
        same("uniform", data, &preset::uniform_for(data).params);
        same("lns", data, &preset::lns_for(data).params);
        same("astra", data, &preset::astra_for(data).params);
        same("mach", data, &xc_train::preset::mach().params);
        if data.n_labels > 2010 {
            same("skipgram", data, &preset::skipgram().params);
        }
        let trained: [(&str, Preset); 4] = [
            ("dense", preset::dense()),
            ("uniform", preset::uniform_for(data)),
            ("lns", preset::lns_for(data)),
            ("astra", preset::astra_for(data)),
        ];
        for (kind, preset) in trained {
            let system = system(kind, &Choices::default(), &Place::default()).unwrap();
            let made = system.choices().network(&preset, InputKind::Sparse, 0, true).unwrap();
            assert_eq!(made.training, TrainParams { seed: 0, ..preset.training }, "{kind}, {data:?}");
            assert_eq!(made.optimizer.rule(), Optimizer::default(), "{kind}");
        }
    }
    // Presets that follow from no data are those of the library as well.
    assert_eq!(text::params(&Choices::default()).unwrap(), PipelineParams::default());
}

/// The two ways to parameters agree where nothing is chosen, for instances of every shape.
#[test]
fn nothing_chosen_is_what_kinds_as_values_are() {
    let usual = |kind: &str, shape: &TrainingShape| match kind {
        "mach" => MachFit::usual(shape).map(|made| made.network),
        _ => NetworkKind::ALL
            .into_iter()
            .find(|known| known.name() == kind)
            .unwrap()
            .usual(shape)
            .map(|made| made.network),
    };
    for data in shapes() {
        for (input, n_features) in [(InputKind::Sparse, 5000), (InputKind::Sparse, 300), (InputKind::Dense, 90)] {
            for most_labels in [1, 7] {
                let n_labels = data.n_labels;
                let shape = TrainingShape { input, n_features, n_labels, most_labels, data: Some(data) };
                for kind in ["dense", "uniform", "lns", "astra", "mach"] {
                    let system = system(kind, &Choices::default(), &Place::default()).unwrap();
                    let mut named = system.params(&shape, 0, true).unwrap();
                    system.choices().settle(n_features, &mut named);
                    assert_eq!(usual(kind, &shape).unwrap(), named, "{kind}: {shape:?}");
                }
            }
        }
    }
}
