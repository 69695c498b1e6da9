//! CSV and TSV, with labels of each kind of division, as a file and as a stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (u8, &[u8])| {
    let (how, bytes) = input;
    let format = if how & 1 == 0 { Format::Csv } else { Format::Tsv };
    let separator = match how >> 1 & 3 {
        0 => None,
        1 => Some(LabelSeparator::Whole),
        2 => Some(LabelSeparator::Text("||".into())),
        _ => Some(LabelSeparator::Text(";".into())),
    };
    let label_strings = if how & 8 == 0 { LabelStrings::Names } else { LabelStrings::Ids };
    let no_header = how & 128 != 0;
    let form = FileForm {
        format: Some(format),
        label_separator: separator.clone(),
        delimiter: (how & 32 != 0).then_some(b';'),
        no_quotes: how & 64 != 0,
        no_header,
        text_fields: no_header.then(|| vec!["1".into()]),
        label_field: no_header.then(|| "2".into()),
        ..FileForm::default()
    };
    let options = ReadOptions { form, label_strings, ..options() };
    // Most inputs would not get past the header.
    let header: &[u8] = if how & 16 == 0 {
        b""
    } else if format == Format::Csv {
        b"text,labels\n"
    } else {
        b"text\tlabels\n"
    };
    let bytes = [header, bytes].concat();
    let path = file("a.csv", &bytes);
    let whole = read_text(&path, &options);
    let mut reader = InstanceReader::new("stream", Cursor::new(bytes), &options).unwrap();
    let (mut instance, mut texts) = (InstanceBuffer::default(), Vec::new());
    while let Ok(Some(_)) = reader.next_into(&mut instance) {
        texts.push(instance.text.text.clone());
    }
    let data = match whole {
        Ok(data) => data,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    assert_eq!(texts, data.texts);
    let mut out = Vec::new();
    let names = data.label_names.as_deref();
    // Labels are read with blanks and repetitions, and written without: those of one string may not go back.
    let written = separator.clone().unwrap_or(LabelSeparator::Whole);
    if write_csv(&mut out, &data.texts, &data.labels, names, &written, format).is_err() {
        return;
    }
    let options = ReadOptions { form: FileForm { label_separator: Some(written), ..format.into() }, ..options };
    let again = read_text(&file("again.csv", &out), &options).unwrap();
    assert_eq!((&again.texts, &again.labels), (&data.texts, &data.labels));
    assert_eq!(again.label_names, data.label_names);
});
