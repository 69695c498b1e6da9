//! The model container: configuration, one array file and label names; what opens is looked at and searched.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder, sections};
use xc_sparse::CsrMatrix;
use xc_store::*;
use xc_tree::{PredictParams, TreeModel};

fuzz_target!(|bytes: &[u8]| {
    let [config, arrays, labels] = sections(bytes);
    let path = folder("model", &[("config.json", config), ("model.safetensors", arrays), ("labels.txt", labels)]);
    let mode = if bytes.len() % 2 == 0 { OpenMode::Map } else { OpenMode::Read };
    let container = match Container::open(&path, mode) {
        Ok(container) => container,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    for (name, _) in container.arrays() {
        let _ = (container.array::<u8>(name), container.array::<half::f16>(name), container.array::<u32>(name));
        let _ = (container.array::<f32>(name).map(|a| a.iter().sum::<f32>()), container.array::<u64>(name));
    }
    if let Err(error) = container.labels() {
        check_message(&path, &error.to_string());
    }
    for mismatch in container.verify().unwrap() {
        check_message(&path, &mismatch.to_string());
    }
    match TreeModel::from_container(&container) {
        Err(error) => check_message(&path, &error.to_string()),
        // More features than the seed's few are refused work, not an error.
        Ok(model) if model.info().n_features <= 1 << 16 && model.info().beam <= 1 << 10 => {
            let n = model.info().n_features;
            let every: Vec<u32> = (0..n as u32).collect();
            let queries = CsrMatrix::from_checked((2, n), vec![0, n, n], every, vec![0.5; n]);
            model.predict_batch(queries.view(), &PredictParams::top(5)).unwrap();
        }
        Ok(_) => {}
    }
});
