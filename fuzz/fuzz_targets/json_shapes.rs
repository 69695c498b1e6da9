//! JSON arrays and objects of several lines: read as the same objects, one a line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use xc_data::*;
use xc_fuzz::{check_message, file, options};

fuzz_target!(|bytes: &[u8]| {
    let options = options().with_format(Format::Jsonl);
    // Most inputs would not be of this form.
    for shape in [bytes.to_vec(), [b"[\n", bytes].concat(), [b"[\n", bytes, b"\n]"].concat(), [b"{\n", bytes].concat()]
    {
        let path = file("a.json", &shape);
        let whole = read_text(&path, &options);
        if let Err(error) = &whole {
            check_message(&path, &error.to_string());
        }
        let Ok(objects) = serde_json::from_slice::<Vec<&RawValue>>(&shape) else { continue };
        // A blank line is refused where rows are expected, before an array, too.
        let first = shape.split(|&b| b == b'\n').next().unwrap_or_default();
        if first.trim_ascii().is_empty() {
            continue;
        }
        // A line that begins with a bracket would be an array of its own.
        if objects.iter().any(|object| !object.get().starts_with('{')) {
            continue;
        }
        let mut lines = Vec::new();
        for object in objects {
            lines.extend(object.get().bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }));
            lines.push(b'\n');
        }
        let by_line = read_text(&file("a.jsonl", &lines), &options);
        match (whole, by_line) {
            (Ok(whole), Ok(by_line)) => {
                assert_eq!((&whole.texts, &whole.labels), (&by_line.texts, &by_line.labels));
                assert_eq!(whole.label_names, by_line.label_names);
            }
            // An empty file is refused, an empty array has no rows.
            (Ok(whole), Err(_)) => assert!(whole.texts.is_empty()),
            // Fields that are not read may be nested to any depth on a line.
            (Err(error), by_line) => assert!(by_line.is_err() || error.to_string().contains("128 brackets")),
        }
    }
});
