//! Dense models. The first byte says how: a folder whose configuration and arrays are written anew from the input (so that
//! hashes and offsets hold), or its files as they stand in the input. What opens answers, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder, model_folder};
use xc_sparse::CsrMatrix;
use xc_sparse::store::{Container, ContainerWriter, OpenMode};
use xc_train::dense::{DenseModel, KIND};

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(KIND, input.0, input.1) else { return };
    let opened = Container::open(&path, OpenMode::Map).map_err(|e| e.to_string());
    let model = match opened.and_then(|c| DenseModel::open(&c).map_err(|e| e.to_string())) {
        Ok(model) => model,
        Err(message) => return check_message(&path, &message),
    };
    let n = model.n_features();
    if n <= 1 << 16 {
        let queries = CsrMatrix::new((2, n), vec![0, n, n], (0..n as u32).collect(), vec![0.5; n]);
        let answers = model.predict_batch(queries.view(), 3);
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|row| row.len() == model.n_labels().min(3)));
    }
    let again = folder("again", &[]);
    let mut writer = ContainerWriter::create(&again, KIND).expect("an empty folder takes a model");
    model.write(&mut writer).expect("what was opened is written");
    writer.finish().expect("memory takes a small model");
    let second = DenseModel::open(&Container::open(&again, OpenMode::Read).expect("it opens")).expect("as it was");
    for (a, b) in model.network().parameters().into_iter().zip(second.network().parameters()) {
        assert!(a.name == b.name && a.parameter.values() == b.parameter.values(), "{} changed", a.name);
    }
});
