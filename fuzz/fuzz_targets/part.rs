//! Parts of trees, of at most a million labels: a container of which the input is the parameters and arrays, given once
//! or twice. The first byte says how: written anew from the input (so that hashes and offsets hold), or files as they
//! stand in the input. What is put together is written, opened, and answers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{folder, model_folder};
use xc_sparse::CsrMatrix;
use xc_store::{Container, ContainerWriter, OpenMode};
use xc_tree::{KIND, PART_KIND, PredictParams, Silent, StoredTrees, TreeModel};

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(PART_KIND, input.0, input.1) else { return };
    let open = || Container::open(&path, OpenMode::Map);
    let Ok(part) = open() else { return };
    let size = |name: &str| part.parameter::<u64>(name).unwrap_or(0);
    // Tables of so many labels and features are memory that was asked for.
    if size("n_labels") > 1 << 20 || size("n_features") > 1 << 20 {
        return;
    }
    let one_line = |message: String| assert!(!message.contains('\n'), "the message has several lines: {message:?}");
    if input.0 & 2 != 0 {
        let twice = vec![open().expect("it was opened before"), part];
        return one_line(StoredTrees::of_parts(twice).expect_err("a part that is there twice").to_string());
    }
    let trees = match StoredTrees::of_parts(vec![part]) {
        Ok(trees) => trees,
        Err(error) => return one_line(error.to_string()),
    };
    let whole = folder("whole", &[]);
    let mut writer = ContainerWriter::create(&whole, KIND).expect("an empty folder takes a model");
    if let Err(error) = trees.write(&mut writer, &Silent) {
        return one_line(error.to_string());
    }
    writer.finish().expect("memory takes a small model");
    // Beams and post-processors may be what no model has.
    let Ok(model) = TreeModel::open(&whole) else { return };
    let n = model.info().n_features;
    if n <= 1 << 16 && model.info().beam <= 1 << 10 {
        let queries = CsrMatrix::from_checked((2, n), vec![0, n, n], (0..n as u32).collect(), vec![0.5; n]);
        model.predict_batch(queries.view(), &PredictParams::top(3)).unwrap();
    }
});
