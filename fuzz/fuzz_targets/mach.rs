//! MACH models of at most a million labels. The first byte says how: a folder whose configuration and arrays are written anew from the input (so that
//! hashes and offsets hold), or its files as they stand in the input. What opens answers, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder, model_folder};
use xc_model::mach::{Asking, KIND, MachContainer};
use xc_nn::Rows;
use xc_sparse::CsrMatrix;
use xc_store::OpenMode;

fuzz_target!(|input: (u8, &[u8])| {
    let Some(path) = model_folder(KIND, input.0, input.1) else { return };
    let opened = match MachContainer::open(&path, OpenMode::Map) {
        Ok(opened) if opened.n_labels() <= 1 << 20 => opened,
        Ok(_) => return,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let (model, lost) = match opened.model(None) {
        Ok(found) => found,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    lost.iter().for_each(|lost| assert!(opened.numbers().contains(&lost.number)));
    let n = model.n_features();
    if n <= 1 << 16 {
        let queries = CsrMatrix::from_checked((2, n), vec![0, n, n], (0..n as u32).collect(), vec![0.5; n]);
        // Weights may be so large that scores overflow, which is an error.
        if let Ok(answers) = model.predict_batch(Rows::Sparse(queries.view()), &Asking::top(3)) {
            assert_eq!(answers.ranked.len(), 2);
            assert!(answers.ranked.iter().all(|row| row.len() == model.n_labels().min(3)));
            assert!(answers.certificates.iter().all(|certificate| certificate.exact));
        }
    }
    let again = folder("again", &[]);
    let numbers = model.assignment().numbers();
    let writer = model.params().create(&again, n, model.n_labels(), numbers);
    let mut writer = writer.expect("an empty folder takes a model");
    for &number in numbers {
        let repetition = opened.repetition(number).expect("it was opened before");
        repetition.write(&mut writer).expect("what was opened is written");
    }
    writer.finish().expect("memory takes a small model");
    let second = MachContainer::open(&again, OpenMode::Read).expect("it opens");
    let (second, lost) = second.model(None).expect("as it was");
    assert!(lost.is_empty() && second.assignment().numbers() == numbers);
});
