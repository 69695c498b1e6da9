//! Word vectors. The first byte says how: a folder whose configuration and arrays are written anew from the input (so that
//! hashes and offsets hold), or its files as they stand in the input. What opens answers, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder, model_folder};
use xc_model::skipgram::{NearestScratch, SkipgramModel};
use xc_sparse::CsrMatrix;
use xc_store::{Container, ContainerWriter, OpenMode};

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(SkipgramModel::KIND, input.0, input.1) else { return };
    let opened = Container::open(&path, OpenMode::Map).map_err(|e| e.to_string());
    let model = match opened.and_then(|c| SkipgramModel::of(&c).map_err(|e| e.to_string())) {
        Ok(model) => model,
        Err(message) => return check_message(&path, &message),
    };
    let n = model.n_words();
    if n > 1 << 12 {
        return;
    }
    // Every word alone, nothing, and all of them.
    let features: Vec<u32> = (0..n as u32).chain(0..n as u32).collect();
    let ends = (0..=n).chain([n, 2 * n]).collect();
    let queries = CsrMatrix::from_checked((n + 2, n), ends, features, vec![1.0; 2 * n]);
    let bits = |model: &SkipgramModel| -> Vec<(u32, u32)> {
        let answers = model.nearest_of_batch(queries.view(), 3, |_| None, &mut NearestScratch::default());
        assert!(answers.check().is_ok() && answers.row(n).is_empty() && answers.row(n + 1).is_empty());
        answers.iter().flatten().map(|s| (s.label, s.score.to_bits())).collect()
    };
    let before = bits(&model);
    let again = folder("again", &[]);
    let mut writer = ContainerWriter::create(&again, SkipgramModel::KIND).expect("an empty folder takes a model");
    model.write(&mut writer).expect("what was opened is written");
    writer.finish().expect("memory takes a small model");
    let second = Container::open(&again, OpenMode::Read).expect("it opens");
    assert!(bits(&SkipgramModel::of(&second).expect("as it was")) == before);
});
