//! omikuji models: one tree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_fuzz::{check_message, folder};
use xc_tree::import::omikuji::import;

fuzz_target!(|input: (bool, &[u8])| {
    let loss = if input.0 { "Hinge" } else { "Log" };
    let settings = format!("{{\"n_features\": 3, \"classifier_loss_type\": \"{loss}\"}}");
    let path = folder("omikuji", &[("settings.json", settings.as_bytes()), ("tree0.cbor", input.1)]);
    match import(&path) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(model) => model.trees[0].levels.iter().flatten().for_each(|chunk| chunk.check().unwrap()),
    }
});
