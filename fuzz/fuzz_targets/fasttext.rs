//! fastText with labels by name and by number.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (bool, &[u8])| {
    let label_strings = if input.0 { LabelStrings::Ids } else { LabelStrings::Names };
    let options = ReadOptions { label_strings, ..options().with_format(Format::FastText) };
    let path = file("a.ft", input.1);
    let data = match read_text(&path, &options) {
        Ok(data) => data,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let mut text = Vec::new();
    write_fasttext(&mut text, &data.texts, &data.labels, data.label_names.as_deref()).unwrap();
    let again = read_text(&file("again.ft", &text), &options).unwrap();
    assert_eq!((&again.texts, &again.labels), (&data.texts, &data.labels));
    assert_eq!(again.label_names, data.label_names);
});
