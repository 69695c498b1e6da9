//! PECOS models of one level. The first byte says how: whole npz archives, archives put together from the arrays in the
//! input (a whole one rarely survives its checksum), or the mapped form. What is read is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Write};
use xc_fuzz::{check_message, folder, sections};
use xc_tree::import::pecos::{export, import};

/// An archive of the arrays `indices`, `indptr`, `shape`, `data` as they stand in the input.
fn archive(arrays: &[&[u8]]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let format = b"\x93NUMPY\x01\x00\x36\x00{'descr': '|S3', 'fortran_order': False, 'shape': (),}\ncsc";
    let named = ["indices", "indptr", "shape", "data"].into_iter().zip(arrays.iter().copied());
    for (name, bytes) in named.chain([("format", &format[..])]) {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fuzz_target!(|input: (u8, &[u8])| {
    let parts: [&[u8]; 9] = sections(input.1);
    let ranker: &[u8] = br#"{"model": "HierarchicalMLModel", "depth": 1}"#;
    let (clusters, weights);
    let is_mapped = input.0 % 3 == 1;
    if input.0 % 3 == 2 {
        (clusters, weights) = (archive(&parts[1..5]), archive(&parts[5..9]));
    } else {
        (clusters, weights) = (parts[1].to_vec(), parts[2].to_vec());
    }
    let files: &[(&str, &[u8])] = &[
        ("ranker/param.json", ranker),
        ("ranker/0.model/param.json", parts[0]),
        (if is_mapped { "ranker/0.model/C.mmap_store" } else { "ranker/0.model/C.npz" }, &clusters),
        (if is_mapped { "ranker/0.model/W.mmap_store" } else { "ranker/0.model/W.npz" }, &weights),
        ("ranker/0.model/perm.mmap_store", parts[3]),
    ];
    let path = folder("pecos", &files[..if is_mapped && !parts[3].is_empty() { 5 } else { 4 }]);
    match import(&path) {
        Err(error) => check_message(&path, &error.to_string()),
        Ok(model) => {
            model.parts.levels.iter().flatten().for_each(|chunk| chunk.check().unwrap());
            if model.n_labels <= 1 << 16 {
                let again = folder("again", &[]);
                export(&model, &again).unwrap();
                assert_eq!(import(&again).unwrap().n_labels, model.n_labels);
            }
        }
    }
});
