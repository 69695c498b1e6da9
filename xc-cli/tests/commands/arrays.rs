//! Arrays of numpy and matrices of scipy as features and as labels.

use crate::program::{Folder, npy};

/// Bytes of a zip archive with these members, stored.
fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        !bytes.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
        })
    };
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let size = (bytes.len() as u32).to_le_bytes();
        let mut about = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        about.extend(crc(bytes).to_le_bytes());
        about.extend([size, size].concat());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        directory.extend(*b"PK\x01\x02\x14\x00");
        directory.extend(&about);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.bytes());
        out.extend(*b"PK\x03\x04");
        out.extend(&about);
        out.extend(name.bytes());
        out.extend(bytes);
    }
    let n = (members.len() as u16).to_le_bytes();
    let (start, size) = (out.len() as u32, directory.len() as u32);
    out.extend(directory);
    out.extend(*b"PK\x05\x06\0\0\0\0");
    out.extend([n, n].concat());
    out.extend([size.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

/// Bytes of an npy array: type, shape as Python writes it, values.
fn array(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = (10 + header.len() + 1).div_ceil(64) * 64 - 10;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((len as u16).to_le_bytes());
    out.extend(format!("{header:<width$}\n", width = len - 1).bytes());
    out.extend(values);
    out
}

fn ints(values: &[i32]) -> Vec<u8> {
    array("<i4", &format!("({},)", values.len()), &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

fn floats(values: &[f32]) -> Vec<u8> {
    array("<f4", &format!("({},)", values.len()), &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

/// A coo matrix as scipy saves it.
fn coo(shape: [i32; 2], entries: &[(i32, i32, f32)]) -> Vec<(&'static str, Vec<u8>)> {
    let column = |pick: fn(&(i32, i32, f32)) -> i32| ints(&entries.iter().map(pick).collect::<Vec<_>>());
    vec![
        ("row.npy", column(|e| e.0)),
        ("col.npy", column(|e| e.1)),
        ("format.npy", array("|S3", "()", b"coo")),
        ("shape.npy", ints(&shape)),
        ("data.npy", floats(&entries.iter().map(|e| e.2).collect::<Vec<_>>())),
    ]
}

#[track_caller]
fn refuses(outcome: &crate::program::Outcome, expected: &[&str]) {
    assert_eq!(outcome.code, 2, "{outcome:?}");
    for expected in expected {
        assert!(outcome.stderr.contains(expected), "{}\nfor {expected}", outcome.stderr);
    }
}

#[test]
fn entries_of_one_place_in_an_npz_add_up_or_are_one_label() {
    let folder = Folder::new();
    folder.write(
        "x.npz",
        zip(&coo([3, 2], &[(0, 0, 1.0), (0, 0, 2.5), (1, 1, 1.0), (2, 1, 4.0), (2, 0, 1.0), (2, 1, -4.0)])),
    );
    folder.write("y.npz", zip(&coo([3, 2], &[(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0)])));
    folder.ok("convert --from npz x.npz --input-labels y.npz --to xc-text o.txt");
    assert_eq!(folder.read("o.txt"), "3 2 2\n1 0:3.5\n0 1:1\n0 0:1\n");
    // The same by rows.
    let csr = vec![
        ("indices.npy", ints(&[0, 0, 1, 1, 0, 1])),
        ("indptr.npy", ints(&[0, 2, 3, 6])),
        ("format.npy", array("|S3", "()", b"csr")),
        ("shape.npy", ints(&[3, 2])),
        ("data.npy", floats(&[1.0, 2.5, 1.0, 4.0, 1.0, -4.0])),
    ];
    folder.write("x.npz", zip(&csr));
    folder.ok("convert --from npz x.npz --input-labels y.npz --to xc-text again.txt");
    assert_eq!(folder.read("again.txt"), folder.read("o.txt"));
    folder.write("x.npz", zip(&coo([1, 1], &[(0, 0, 3e38), (0, 0, 3e38)])));
    refuses(&folder.xc("convert --from npz x.npz --to xc-text o.txt"), &["array data.npy", "more than f32 can hold"]);
    // An entry that is wrong is named by its own member.
    folder.write("x.npz", zip(&coo([1, 1], &[(0, 1, 1.0)])));
    refuses(&folder.xc("convert --from npz x.npz --to xc-text o.txt"), &["array col.npy: entry 0 is 1"]);
}

#[test]
fn an_npz_with_two_members_of_one_name_is_refused() {
    let folder = Folder::new();
    let members = coo([1, 2], &[(0, 0, 1.0)]);
    for at in 0..members.len() {
        for second in [0, members.len()] {
            let mut twice = members.clone();
            let mut other = twice[at].clone();
            // The bytes are another array, or the same.
            if other.0 == "data.npy" {
                other.1 = floats(&[2.0]);
            }
            twice.insert(second, other);
            folder.write("x.npz", zip(&twice));
            let name = format!("two members of the name \"{}\"", members[at].0);
            refuses(&folder.xc("convert --from npz x.npz --to xc-text o.txt"), &[&name]);
        }
    }
    // numpy knows both by the name `data`.
    let mut twice = members.clone();
    twice.push(("data", floats(&[2.0])));
    folder.write("x.npz", zip(&twice));
    refuses(&folder.xc("convert --from npz x.npz --to xc-text o.txt"), &["two members of the name \"data\""]);
    folder.write("x.npz", zip(&members));
    folder.ok("convert --from npz x.npz --to xc-text o.txt");
}

#[test]
fn an_array_is_one_class_a_row_or_rows_of_0_and_1() {
    let folder = Folder::new();
    folder.write("x.npy", npy(4, 2, |row, column| f32::from(row % 2 == column)));
    let read = |bytes: Vec<u8>| {
        folder.write("y.npy", bytes);
        let outcome = folder.xc("convert --from npy x.npy --input-labels y.npy --to xc-text o.txt");
        if outcome.code == 0 {
            let lines = folder.read("o.txt");
            return Ok(lines
                .lines()
                .map(|line| line.split(' ').next().unwrap().to_owned())
                .skip(1)
                .collect::<Vec<_>>());
        }
        refuses(&outcome, &["y.npy: "]);
        Err(outcome.stderr)
    };
    let bytes = |values: &[f64], descr: &str| -> Vec<u8> {
        let one = |value: &f64| match descr {
            "<i8" => (*value as i64).to_le_bytes().to_vec(),
            "<i4" => (*value as i32).to_le_bytes().to_vec(),
            "|u1" | "|b1" => vec![*value as u8],
            "|i1" => vec![*value as i8 as u8],
            "<f4" => (*value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
        values.iter().flat_map(one).collect()
    };
    for descr in ["<i8", "<i4", "|u1", "|b1", "<f4", "<f8"] {
        for shape in ["(4,)", "(4, 1)"] {
            let classes = array(descr, shape, &bytes(&[1.0, 0.0, 0.0, 1.0], descr));
            assert_eq!(read(classes).unwrap(), ["1", "0", "0", "1"], "{descr} {shape}");
        }
        let columns = array(descr, "(4, 2)", &bytes(&[1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0], descr));
        assert_eq!(read(columns).unwrap(), ["0", "", "0,1", "1"], "{descr}");
    }
    let by_columns = array("<i4", "(4, 2)", &bytes(&[1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0], "<i4"));
    let header = by_columns.windows(5).position(|bytes| bytes == b"False").unwrap();
    let mut by_columns = by_columns;
    by_columns.splice(header..header + 5, *b"True ");
    assert_eq!(read(by_columns).unwrap(), ["0", "", "0,1", "1"]);
    for (descr, shape, values, expected) in [
        ("<i8", "(4,)", &[0.0, -1.0, 0.0, 0.0][..], "entry 1 is -1 (row 1, column 0), expected a class from 0"),
        ("<f8", "(4,)", &[0.0, 0.0, 0.5, 0.0], "entry 2 is 0.5 (row 2, column 0), expected a class from 0"),
        ("<f8", "(4,)", &[0.0, f64::NAN, 0.0, 0.0], "entry 1 is NaN"),
        ("<f4", "(4,)", &[0.0, f64::INFINITY, 0.0, 0.0], "entry 1 is inf"),
        ("<i8", "(4,)", &[0.0, 4294967295.0, 0.0, 0.0], "expected a class from 0 to 4294967294"),
        ("<i8", "(4, 2)", &[0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], "entry 3 is 2 (row 1, column 1), expected 0 or 1"),
        (
            "<f8",
            "(4, 2)",
            &[0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0],
            "entry 3 is 0.5 (row 1, column 1), expected 0 or 1",
        ),
        ("|i1", "(4, 2)", &[-1.0; 8], "entry 0 is -1 (row 0, column 0), expected 0 or 1"),
        ("<i8", "(2, 2, 1)", &[0.0; 4], "shape [2, 2, 1], expected [rows]"),
        ("<i8", "()", &[0.0], "shape [], expected [rows]"),
        ("<i8", "(3,)", &[0.0; 3], "3 rows of labels"),
        ("<i8", "(4000000000,)", &[0.0; 4], "bytes of data, the shape asks for"),
    ] {
        let error = read(array(descr, shape, &bytes(values, descr))).unwrap_err();
        assert!(error.contains(expected), "{error}\nfor {expected}");
    }
    // Wherever labels are read.
    folder.write("x.npy", npy(8, 2, |row, column| f32::from(row % 2 == column)));
    folder.write("y.npy", array("<i8", "(8,)", &bytes(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], "<i8")));
    folder.ok("train tree --train x.npy --train-labels y.npy --validation x.npy --validation-labels y.npy --model m");
    folder.ok("train dense --train y.npy --features x.npy --model n --network.widths 4 --epochs 1");
    folder.ok("predict --model m --input x.npy --output p.txt --top-k 1");
    let best: Vec<String> = folder.read("p.txt").lines().map(|line| line[..2].to_owned()).collect();
    assert_eq!(best, ["0:", "1:"].repeat(4));
    assert!(folder.ok("evaluate --truth y.npy --predictions p.txt --k 1").contains("100.00"));
    folder.ok("predict --model m --input x.npy --candidates y.npy");
}
