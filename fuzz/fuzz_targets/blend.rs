//! Blends of two small networks. The first byte says how: a folder whose configuration and arrays are written anew from the
//! input beside sound members, or its files as they stand in the input, without members. What opens answers: one query alone
//! as in a batch, and longer answers begin as shorter ones do.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use std::sync::LazyLock;
use xc_fuzz::{check_message, folder, model_folder_with};
use xc_model::Model;
use xc_model::blend::KIND;
use xc_model::classifier::Classifier;
use xc_model::{QueryOptions, Rows};
use xc_sparse::CsrMatrix;
use xc_store::{Container, OpenMode};
use xc_train::preset;

/// Networks of 4 features and 6 labels that have learned nothing.
static MEMBERS: LazyLock<[Container; 2]> = LazyLock::new(|| {
    ["first", "second"].map(|name| {
        let mut params = preset::dense().params;
        (*params.encoder.widths_mut(), params.learning.seed) = (vec![3], name.len() as u64);
        let path = folder(name, &[]);
        Classifier::new(preset::DENSE, 4, 6, params).expect("a small network").save(&path).expect("memory takes it");
        Container::open(&path, OpenMode::Read).expect("it opens")
    })
});

fuzz_target!(|input: (u8, &[u8])| {
    let made = model_folder_with(KIND, input.0, input.1, |writer| {
        let entry = |member: &Container| json!({"kind": member.kind(), "xxh3": member.config_hash()});
        writer.set_parameter("members", MEMBERS.iter().map(entry).collect::<Vec<_>>());
        (0..).zip(&*MEMBERS).for_each(|(number, member)| writer.add_member(number, member).expect("it is there"));
    });
    let Some(path) = made else { return };
    let model = match Model::open(&path) {
        Ok(model) => model,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let rows = CsrMatrix::from_checked((2, 4), vec![0, 4, 4], vec![0, 1, 2, 3], vec![0.5; 4]);
    let ask = |k: usize| model.predict_batch(Rows::Sparse(rows.view()), &QueryOptions::top(k));
    // Weights may be so large that scores are no numbers.
    let (Ok(short), Ok(long)) = (ask(2), ask(9)) else { return };
    for (short, long) in short.ranked.iter().zip(long.ranked.iter()) {
        assert!(short.len() == 2 && long.len() == 6 && long[..2] == *short);
    }
});
