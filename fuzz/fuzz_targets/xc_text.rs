//! XC text in one file: what is read writes and reads back as the same rows, whole or line by line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (u8, &[u8])| {
    let header = [HeaderRule::Detect, HeaderRule::Required, HeaderRule::Absent][usize::from(input.0 % 3)];
    let options = ReadOptions { header, ..options().with_format(Format::Xc) };
    let path = file("xc.txt", input.1);
    let data = match read_dataset(&path, &options) {
        Ok(data) => data,
        Err(error) => return check_message(&path, &error.to_string()),
    };
    let mut text = Vec::new();
    write_xc(&mut text, data.features.view(), &data.labels).unwrap();
    let again =
        read_dataset(&file("again.txt", &text), &ReadOptions { header: HeaderRule::Required, ..options.clone() })
            .unwrap();
    assert_eq!((&again.features, &again.labels), (&data.features, &data.labels));

    let mut reader = InstanceReader::new("stream", Cursor::new(input.1.to_vec()), &options).unwrap();
    if Compression::of(input.1) != Compression::Plain {
        return;
    }
    let mut instance = InstanceBuffer::default();
    let mut n = 0;
    while reader.next_into(&mut instance).unwrap().is_some() {
        assert_eq!(instance.row.features(), data.features.view().row(n));
        n += 1;
    }
    assert_eq!(n, data.features.rows());
});
