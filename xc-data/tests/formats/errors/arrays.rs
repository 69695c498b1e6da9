//! Arrays: npy and npz.

use super::*;

/// An npy file with this header and these data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}

#[test]
fn bad_npy_files_name_the_array_and_the_entry() {
    let header =
        |descr: &str, shape: &str| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let one = 1.0f32.to_le_bytes();
    let malformed = "array npy: the npy header is malformed: it is not a dictionary of descr, fortran_order and shape";
    check(
        "a.npy",
        &ReadOptions::default(),
        &[
            (b"", "array npy: the npy header is malformed: it is cut off"),
            (
                b"\x93NUMPX\x01\x00\x00\x00",
                "array npy: the npy header is malformed: it does not begin with the magic bytes of npy",
            ),
            (b"\x93NUMPY\x09\x00\x00\x00", "array npy: the npy header is malformed: its version is not 1, 2 or 3"),
            (
                b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
                "array npy: the npy header is malformed: it is longer than 65536 bytes",
            ),
            (&npy("{'descr': '<f4'}", &[]), malformed),
            (&npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 1)}", &[]), malformed),
            (&npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, -1)}", &[]), malformed),
            (
                &npy(&header("<c8", "(1, 1)"), &[0; 8]),
                "array npy: type \"<c8\" is not read, expected bool, integers of 1 to 8 bytes, or floats of 2, 4 or 8 bytes",
            ),
            (&npy(&header("<f4", "(1,)"), &one), "array npy: shape [1], expected [rows, columns]"),
            (
                &npy(&header("<f4", "(1000000000000000000, 0)"), &[]),
                "array npy: shape [1000000000000000000, 0], expected [rows, columns] with 1 to 4294967295 columns",
            ),
            (
                &npy(&header("<f4", "(1000000000000000000, 3)"), &one),
                "array npy: 4 bytes of data, the shape asks for 12000000000000000000",
            ),
            (&npy(&header("<f4", "(2, 1)"), &one), "array npy: 4 bytes of data, the shape asks for 8"),
            (
                &npy(&header("<f4", "(1, 1)"), &[0; 5]),
                "array npy: more than the 4 bytes of data that the shape asks for",
            ),
            (
                &npy(&header("<f4", "(1, 1)"), &f32::NAN.to_le_bytes()),
                "array npy: entry 0 is NaN, expected a finite value that f32 can hold",
            ),
            (
                &npy(&header("<f8", "(1, 1)"), &1e300f64.to_le_bytes()),
                &format!("array npy: entry 0 is {}, expected a finite value that f32 can hold", 1e300f64),
            ),
        ],
    );
}

/// An npz archive with these members.
fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn array(descr: &str, shape: &str, data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    npy(&header, &data.into_iter().collect::<Vec<u8>>())
}

fn longs(values: &[i64]) -> Vec<u8> {
    array("<i8", &format!("({},)", values.len()), values.iter().flat_map(|v| v.to_le_bytes()))
}

fn floats(values: &[f64]) -> Vec<u8> {
    array("<f8", &format!("({},)", values.len()), values.iter().flat_map(|v| v.to_le_bytes()))
}

fn sparse(format: &str, shape: &[i64], indptr: &[i64], indices: &[i64], data: &[f64]) -> Vec<u8> {
    npz(&[
        ("indices.npy", longs(indices)),
        ("indptr.npy", longs(indptr)),
        ("format.npy", array("|S3", "()", format.bytes())),
        ("shape.npy", longs(shape)),
        ("data.npy", floats(data)),
    ])
}

#[test]
fn bad_npz_archives_name_the_array_and_the_entry() {
    let good = sparse("csr", &[2, 3], &[0, 1, 2], &[2, 0], &[0.5, 1.0]);
    let mut flipped = good.clone();
    let at = flipped.windows(9).position(|w| w == b"shape.npy").unwrap() + 30;
    flipped[at] ^= 0xff;
    assert_eq!(message("a.npz", &good, |path| read_dataset(path, &ReadOptions::default()).err()), "no error");
    let got = message("a.npz", &flipped, |path| read_dataset(path, &ReadOptions::default()).err());
    assert!(
        got.starts_with("a.npz: the zip data is truncated or damaged: ") || got.starts_with("a.npz: array shape.npy"),
        "{got}"
    );
    let got = message("a.npz", &good[..good.len() / 2], |path| read_dataset(path, &ReadOptions::default()).err());
    assert!(got.starts_with("a.npz: the zip data is truncated or damaged: "), "{got}");
    let expected = "expected a sparse matrix as scipy.sparse.save_npz writes it";
    check(
        "a.npz",
        &ReadOptions::default(),
        &[
            (b"", &format!("the file is empty, {expected}")),
            (&npz(&[]), &format!("the archive has no member format.npy, {expected}")),
            (
                &npz(&[("format.npy", array("|S3", "()", *b"csr"))]),
                &format!("the archive has no member shape.npy, {expected}"),
            ),
            (
                &sparse("bsr", &[2, 3], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array format.npy: entry 0 is \"bsr\", expected csr, csc or coo",
            ),
            (&sparse("csr", &[2, 3, 4], &[0, 1, 2], &[2, 0], &[0.5, 1.0]), "array shape.npy: shape [3], expected [2]"),
            (
                &sparse("csr", &[2, -3], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array shape.npy: entry 1 is -3, expected a whole number that is not negative",
            ),
            (
                &sparse("csr", &[3, 3], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array indptr.npy: shape [3], expected [4]: one entry more than the shape's 3",
            ),
            (
                &sparse("csr", &[i64::MAX, 3], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array indptr.npy: shape [3], expected [9223372036854775808]: one entry more than the shape's 9223372036854775807",
            ),
            (&sparse("csr", &[2, 3], &[1, 1, 2], &[2, 0], &[0.5, 1.0]), "array indptr.npy: entry 0 is 1, expected 0"),
            (
                &sparse("csr", &[2, 3], &[0, 3, 2], &[2, 0], &[0.5, 1.0]),
                "array indptr.npy: entry 2 is 2, expected at least 3, the entry before",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 1, 3], &[2, 0], &[0.5, 1.0]),
                "array indptr.npy: entry 2 is 3, expected 2, the number of values",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 1, 2], &[2], &[0.5, 1.0]),
                "array indices.npy: shape [1], expected [2]: one for each value",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 1, 2], &[3, 0], &[0.5, 1.0]),
                "array indices.npy: entry 0 is 3, expected an id below 3 (said by the shape)",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 1, 2], &[-1, 0], &[0.5, 1.0]),
                "array indices.npy: entry 0 is -1, expected a whole number from 0 to 4294967295",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 1, 2], &[2, 0], &[0.5, f64::NAN]),
                "array data.npy: entry 1 is NaN, expected a finite value that f32 can hold",
            ),
            (
                &sparse("csr", &[2, 3], &[0, 2, 2], &[1, 1], &[3e38, 3e38]),
                "array data.npy: the entries of id 1 in row (or column) 0 add up to more than f32 can hold",
            ),
            (
                &sparse("csr", &[2, 1 << 33], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array shape.npy: entry 0 is 8589934592, expected at most 4294967295 for ids of 32 bits",
            ),
            (
                &sparse("csc", &[1 << 31, 2], &[0, 1, 2], &[2, 0], &[0.5, 1.0]),
                "array shape.npy: shape [2147483648, 2], expected at most 1050624 rows for 2 entries stored by columns",
            ),
        ],
    );
    let small = ReadOptions { max_expanded_bytes: Some(2000), ..ReadOptions::default() };
    let bomb = sparse("csr", &[1, 100000], &[0, 90000], &vec![0; 90000], &vec![1.0; 90000]);
    check("a.npz", &small, &[(&bomb, "the compressed data expands to more than 2000 bytes, the limit")]);
    let wide = ReadOptions { n_features: Some(4), ..ReadOptions::default() };
    check("a.npz", &wide, &[(&good, "3 features, expected 4")]);
    let narrow = ReadOptions { n_features: Some(2), ..ReadOptions::default() };
    check("a.npz", &narrow, &[(&good, "3 features, expected 2")]);
}
