//! Classifiers. The first byte says how: a folder whose configuration and arrays are written anew from the input (so that
//! hashes and offsets hold), or its files as they stand in the input. What opens answers, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_dense::DenseRows;
use xc_fuzz::{check_message, folder, model_folder};
use xc_model::classifier::{Classifier, ClassifierScratch, InputKind, Only, PredictError};
use xc_nn::Rows;
use xc_sparse::CsrMatrix;
use xc_sparse::rank::RankedBatch;
use xc_store::{Container, ContainerWriter, OpenMode};
use xc_train::preset;

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(preset::UNIFORM, input.0, input.1) else { return };
    let opened = Container::open(&path, OpenMode::Map).map_err(|e| e.to_string());
    let model = match opened.and_then(|c| Classifier::of(&c, true).map_err(|e| e.to_string())) {
        Ok(model) => model,
        Err(message) => return check_message(&path, &message),
    };
    let n = model.n_features();
    if n <= 1 << 16 {
        let matrix = CsrMatrix::from_checked((2, n), vec![0, n, n], (0..n as u32).collect(), vec![0.5; n]);
        let values = vec![0.5; 2 * n];
        let queries = match model.params().encoder.input() {
            InputKind::Sparse => Rows::Sparse(matrix.view()),
            _ => Rows::Dense(DenseRows::new(&values, n)),
        };
        let mut scratch = ClassifierScratch::default();
        // All labels as candidates are asked in another way and answer the same.
        let all: Vec<u32> = (0..model.n_labels() as u32).collect();
        let mut ask = |only: Only<'_>| model.predict(queries, 3, only, &mut scratch);
        match (ask(Only::All), ask(Only::Labels(&all))) {
            (Ok(answers), Ok(some)) => {
                assert_eq!(answers.len(), 2);
                assert!(answers.iter().all(|row| row.len() == model.n_labels().min(3)));
                let bits = |of: &RankedBatch| -> Vec<(u32, u32)> {
                    of.iter().flatten().map(|s| (s.label, s.score.to_bits())).collect()
                };
                assert_eq!(bits(&answers), bits(&some));
            }
            // Sums of finite values may be no numbers.
            (all, some) => {
                let refused = |got: Result<_, PredictError>| matches!(got, Err(PredictError::NotFinite { .. }));
                assert!(refused(all) || refused(some));
            }
        }
    }
    let again = folder("again", &[]);
    let mut writer = ContainerWriter::create(&again, preset::UNIFORM).expect("an empty folder takes a model");
    model.write(&mut writer).expect("what was opened is written");
    writer.finish().expect("memory takes a small model");
    let second = Container::open(&again, OpenMode::Read).expect("it opens");
    let second = Classifier::of(&second, true).expect("as it was");
    assert!(model.params() == second.params() && bytes(&model) == bytes(&second) && model.wide() == second.wide());
});

/// Every array of a classifier, by name.
fn bytes(of: &Classifier) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let taken = of.network().visit(&mut |array| {
        all.push((array.of.name.to_owned(), array.bytes.to_vec()));
        Ok(())
    });
    taken.expect("arrays lie in memory");
    all
}
