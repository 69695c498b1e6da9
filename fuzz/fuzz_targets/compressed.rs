//! gzip, zstd, bzip2 and xz around text: damaged streams, and bombs within the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (u8, &[u8])| {
    let magic: &[u8] = match input.0 % 5 {
        0 => &[],
        1 => &[0x1f, 0x8b, 0x08],
        2 => &[0x28, 0xb5, 0x2f, 0xfd],
        3 => b"BZh11AY&SY",
        _ => b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46",
    };
    let bytes = [magic, input.1].concat();
    let path = file("a", &bytes);
    let options = ReadOptions { header: HeaderRule::Absent, ..options() };
    if let Err(error) = Format::detect(&path, &ReadOptions::default()) {
        check_message(&path, &error.to_string());
    }
    let options = options.with_format(Format::Xc);
    let whole = read_dataset(&path, &options);
    if let Err(error) = &whole {
        check_message(&path, &error.to_string());
    }
    let Ok(mut reader) = InstanceReader::new("stream", Cursor::new(bytes), &options) else { return };
    let mut instance = InstanceBuffer::default();
    let mut n = 0;
    while let Ok(Some(_)) = reader.next_into(&mut instance) {
        n += 1;
    }
    if let Ok(data) = whole {
        assert_eq!(n, data.features.rows());
    }
});
