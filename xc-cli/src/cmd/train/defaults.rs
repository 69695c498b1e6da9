//! The defaults of the program are those of the library.

use super::network::{Shape, System};
use super::{astra, dense, lns, mach, skipgram, tree_args, uniform};
use crate::data::TextArgs;
use clap::Parser;
use xc_hash::text::PipelineParams;
use xc_nn::{Optimizer, TrainParams};
use xc_train::classifier::preset::{self, DataShape};
use xc_train::classifier::{ClassifierParams, InputKind, Preset};
use xc_tree::TreeParams;

#[derive(clap::Parser)]
struct Line<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// Options as they are where only those that must be are given.
fn parsed<A: clap::Args>(more: &str) -> A {
    let line = format!("xc {more}");
    Line::<A>::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{line}: {e}")).args
}

const FILES: &str = "--train t --model m";

/// Sets of all shapes that usual values tell apart.
fn shapes() -> Vec<DataShape> {
    let mut out = Vec::new();
    for n_instances in [200, 30_000] {
        for length in [20, 300] {
            for n_labels in [60, 2010, 2011, 30_000, 60_000, 700_000] {
                out.push(DataShape { n_instances, n_entries: n_instances * length, n_labels });
            }
        }
    }
    out
}

fn same(kind: &str, system: &dyn System, data: DataShape, expected: &ClassifierParams) {
    let shape =
        Shape { input: InputKind::Sparse, n_features: 5000, n_labels: data.n_labels, most_labels: 7, data: Some(data) };
    assert_eq!(&system.params(&shape, 0).unwrap(), expected, "{kind}, {data:?}");
}

#[test]
fn what_the_program_does_without_options_is_what_the_library_does() {
    for (name, expected) in [
        ("default", TreeParams::default()),
        ("parabel", TreeParams::parabel()),
        ("bonsai", TreeParams::bonsai()),
        ("xr-linear", TreeParams::xr_linear()),
    ] {
        let args: tree_args::Args = parsed(&format!("{FILES} --preset {name}"));
        // The program's rows are scaled where features are made.
        assert_eq!(args.data.normalises(), expected.normalise_rows, "{name}");
        assert_eq!(args.params(0).unwrap(), TreeParams { normalise_rows: false, ..expected }, "{name}");
    }
    assert_eq!(parsed::<tree_args::Args>(FILES).params(0).unwrap().seed, TreeParams::default().seed);

    let (of_dense, of_uniform) = (parsed::<dense::Args>(FILES), parsed::<uniform::Args>(FILES));
    let (of_lns, of_astra) = (parsed::<lns::Args>(FILES), parsed::<astra::Args>(FILES));
    let (of_mach, of_words) = (parsed::<mach::Args>(FILES), parsed::<skipgram::Args>(FILES));
    for data in shapes() {
        same("dense", &of_dense, data, &preset::dense().params);
        same("uniform", &of_uniform, data, &preset::uniform_for(data).params);
        same("lns", &of_lns, data, &preset::lns_for(data).params);
        same("astra", &of_astra, data, &preset::astra_for(data).params);
        same("mach", &of_mach, data, &xc_train::mach::preset().params);
        if data.n_labels > 2010 {
            same("skipgram", &of_words, data, &preset::skipgram().params);
        }
        let trained: [(&str, &super::network_args::NetworkArgs, Preset); 4] = [
            ("dense", &of_dense.network, preset::dense()),
            ("uniform", &of_uniform.network, preset::uniform_for(data)),
            ("lns", &of_lns.network, preset::lns_for(data)),
            ("astra", &of_astra.network, preset::astra_for(data)),
        ];
        for (kind, network, preset) in trained {
            let training = network.train_params(&preset, 0, true).unwrap();
            assert_eq!(training, TrainParams { seed: 0, ..preset.training }, "{kind}, {data:?}");
            assert_eq!(network.optimizer().unwrap(), Optimizer::default(), "{kind}");
        }
    }
    // Presets that follow from no data are those of the library as well.
    assert_eq!(parsed::<TextArgs>("").params().unwrap(), PipelineParams::default());
}
