//! XC text in two files: features, and labels cut off the same input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (features, labels) = (file("X.txt", input.0), file("Y.txt", input.1));
    let options = ReadOptions { labels: Some(labels.clone()), ..options() };
    match read_dataset(&features, &options) {
        Ok(data) => {
            assert_eq!(data.features.rows(), data.labels.len());
            let (mut x, mut y) = (Vec::new(), Vec::new());
            write_xc_features(&mut x, data.features.view()).unwrap();
            write_xc_labels(&mut y, &data.labels).unwrap();
            let stated = ReadOptions { labels: Some(file("Y2.txt", &y)), ..options.with_format(Format::Xc) };
            let again = read_dataset(&file("X2.txt", &x), &stated).unwrap();
            assert_eq!((&again.features, &again.labels), (&data.features, &data.labels));
        }
        Err(error) => {
            let message = error.to_string();
            let path = if error.file_name() == labels.display().to_string() { &labels } else { &features };
            check_message(path, &message);
        }
    }
});
