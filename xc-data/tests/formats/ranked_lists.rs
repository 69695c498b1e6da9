//! Ranked lists that are read are the ones that were written: names that look like ids, and scores that are one f32.

use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use xc_data::*;
use xc_sparse::rank::{RankedBatch, Scored};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn named(names: &[&str]) -> ReadOptions {
    let names = LabelNames::try_new(names.iter().map(|&name| name.to_owned()).collect()).unwrap();
    ReadOptions { n_labels: Some(names.len()), label_names: Some(names.into()), ..ReadOptions::default() }
}

/// Names that look like ids, lists, numbers, quotes, objects and archives, and ordinary ones.
fn names() -> impl Strategy<Value = Vec<String>> {
    let odd = prop_oneof![
        "[0-9]{1,4}",
        "[0-9 :.\"]{1,6}",
        "[-+0-9.eE]{1,5}",
        "[a-cé{}\"\\\\]{1,4}",
        "[ a:]{1,3}",
        Just("PK\u{3}\u{4}".to_owned()),
        Just("\u{feff}a".to_owned()),
        Just("{\"labels\":[]}".to_owned()),
        Just("1:0.5 2:0.25".to_owned()),
    ];
    prop::collection::hash_set(odd, 8).prop_map(|names| names.into_iter().collect())
}

proptest! {
    #[test]
    fn lists_of_names_are_read_back_whatever_the_names_are(
        names in names(),
        rows in prop::collection::vec(prop::collection::btree_map(0u32..8, -4i32..5, 0..4), 1..8),
        block_bytes in 1usize..60,
    ) {
        let mut batch = RankedBatch::new();
        for row in &rows {
            let row = row.iter().map(|(&label, &score)| Scored { label, score: score as f32 / 4.0 });
            batch.push_row(&row.collect::<Vec<_>>());
        }
        batch.sort();
        let mut by_name = Vec::new();
        write_prediction_lines(&mut by_name, &batch, Some(&names)).unwrap();
        let mut by_id = Vec::new();
        write_prediction_lines(&mut by_id, &batch, None).unwrap();
        let folder = Folder::new();
        let known = LabelNames::try_new(names).unwrap();
        let options = ReadOptions { label_names: Some(known.into()), block_bytes, ..ReadOptions::default() };
        for bytes in [by_name, by_id] {
            let found = read_predictions(&folder.put("p.txt", &bytes), &options);
            let found = found.map_err(|e| TestCaseError::fail(format!("{e}: {}", String::from_utf8_lossy(&bytes))))?;
            prop_assert_eq!(&found, &batch, "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn lists_keep_the_order_of_their_scores_as_f64(
        rows in prop::collection::vec(prop::collection::btree_map(0u32..6, score(), 0..6), 1..6),
    ) {
        let mut expected = RankedBatch::new();
        let (mut lines, mut jsonl) = (String::new(), String::new());
        let (mut indptr, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
        for row in &rows {
            let mut ranked: Vec<(u32, f64)> = row.iter().map(|(&label, &score)| (label, score)).collect();
            lines += &ranked.iter().map(|(label, score)| format!("{label}:{score:?}")).collect::<Vec<_>>().join(" ");
            lines.push('\n');
            let labels: Vec<u32> = ranked.iter().map(|item| item.0).collect();
            let scores: Vec<f64> = ranked.iter().map(|item| item.1).collect();
            jsonl += &format!("{{\"labels\":{labels:?},\"scores\":{scores:?}}}\n");
            indices.extend(labels.iter().map(|&label| i64::from(label)));
            values.extend(scores);
            indptr.push(indices.len() as i64);
            ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            expected.push_items(ranked.into_iter().map(|(label, score)| Scored { label, score: score as f32 }));
        }
        let row_ids: Vec<i64> = (0..rows.len()).flat_map(|row| vec![row as i64; rows[row].len()]).collect();
        let shape = longs(&[rows.len() as i64, 6]);
        let csr = npz(&[
            ("indices.npy", longs(&indices)),
            ("indptr.npy", longs(&indptr)),
            ("format.npy", array("|S3", "()", *b"csr")),
            ("shape.npy", shape.clone()),
            ("data.npy", doubles(&values)),
        ]);
        let coo = npz(&[
            ("row.npy", longs(&row_ids)),
            ("col.npy", longs(&indices)),
            ("format.npy", array("|S3", "()", *b"coo")),
            ("shape.npy", shape),
            ("data.npy", doubles(&values)),
        ]);
        let folder = Folder::new();
        let files = [("p.txt", lines.into_bytes()), ("p.jsonl", jsonl.into_bytes()), ("p.npz", csr), ("q.npz", coo)];
        for (name, bytes) in files {
            let found = read_predictions(&folder.put(name, bytes), &ReadOptions::default());
            prop_assert_eq!(&found.map_err(|e| TestCaseError::fail(e.to_string()))?, &expected, "{}", name);
        }
    }
}

/// Scores of which many are one f32.
fn score() -> impl Strategy<Value = f64> {
    let base = prop_oneof![Just(0.5), Just(1.0), Just(-2.0), Just(1e8), Just(1e-30)];
    (base, -3i32..4).prop_map(|(base, step): (f64, i32)| base * (1.0 + f64::from(step) * 1e-11))
}

fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn array(descr: &str, shape: &str, data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.bytes());
    out.extend(data);
    out
}

fn longs(values: &[i64]) -> Vec<u8> {
    array("<i8", &format!("({},)", values.len()), values.iter().flat_map(|v| v.to_le_bytes()))
}

fn doubles(values: &[f64]) -> Vec<u8> {
    array("<f8", &format!("({},)", values.len()), values.iter().flat_map(|v| v.to_le_bytes()))
}

#[test]
fn lists_that_could_be_ids_or_names_are_refused() {
    let folder = Folder::new();
    let options = named(&["7", "1", "cat", "2019"]);
    let message = |text: &str| match read_predictions(&folder.put("p.txt", text), &options) {
        Ok(batch) => {
            format!("{:?}", batch.iter().map(|row| row.iter().map(|s| s.label).collect()).collect::<Vec<Vec<u32>>>())
        }
        Err(e) => e.to_string().split_once("p.txt: ").unwrap().1.to_owned(),
    };
    assert_eq!(message("1:0.5 0:0.25\n\n2:1\n"), "[[1, 0], [], [2]]");
    assert_eq!(message("\"1\":0.5\t\"7\":0.25\n\ncat:1\n"), "[[1, 0], [], [2]]");
    assert_eq!(message("1:0.5\tcat:0.25\n"), "[[1, 2]]");
    assert!(message("1:0.5\t7:0.25\n").starts_with("line 1: the list may hold ids or names"));
    assert!(message("cat:1\n\n1:0.5\n").starts_with("line 3: label ids, where line 1 has names"));
    assert!(message("1:0.5\n\ncat:1\n").starts_with("line 1: label ids, where line 3 has names"));
    assert!(message("2019:1\n").ends_with("the label with the name 2019 is written \"2019\", in quotes"));
    assert_eq!(message("5:1\n"), "line 1: label 5 has no name: the list of names names 4 labels, from 0 on");
    assert_eq!(message("\"cat:1\n"), "line 1, column 1: got \"\\\"cat:1\", expected a name in quotes as a JSON string");
    assert_eq!(message("dog:1\n"), "line 1, column 1: label name \"dog\" is not among the 4 known names");
}

#[test]
fn jsonl_may_name_its_labels_and_gives_the_ids_of_its_instances() {
    let folder = Folder::new();
    let rows = "{\"id\":\"a\",\"labels\":[\"1\",\"cat\"],\"scores\":[0.5,1]}\n{\"id\":7,\"error\":\"x\"}\n{\"labels\":[0],\"scores\":[1]}\n";
    let path = folder.put("p.jsonl", rows.lines().take(2).collect::<Vec<_>>().join("\n"));
    let found = read_predictions_of(&path, &named(&["7", "1", "cat"])).unwrap();
    assert_eq!(found.ranked.row(0).iter().map(|s| s.label).collect::<Vec<_>>(), [2, 1]);
    let ids: Vec<_> = found.ids.iter().flatten().map(|id| id.text().into_owned()).collect();
    assert_eq!(ids, ["a", "7"]);
    let path = folder.put("q.jsonl", rows);
    let error = read_predictions(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("line 1: got \"1\", expected a label id, since no label names are given"), "{error}");
    let path = folder.put("r.jsonl", "0:0.5\n");
    let error = read_predictions(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("line 1: got \"0:0.5\", expected a JSON object"), "{error}");
}

#[test]
fn predictions_of_a_stream_are_those_of_the_file() {
    let folder = Folder::new();
    for text in ["1:0.5 0:0.25\n\n2:1\n", "\u{feff}{\"id\":1,\"labels\":[1],\"scores\":[0.5]}\n"] {
        let of_file = read_predictions_of(&folder.put("p", text), &ReadOptions::default()).unwrap();
        let of_stream = read_prediction_stream("in", Cursor::new(text), &ReadOptions::default()).unwrap();
        assert_eq!((of_file.ranked, of_file.ids), (of_stream.ranked, of_stream.ids));
    }
    let archive = npz(&[("format.npy", array("|S3", "()", *b"csr"))]);
    let error = read_prediction_stream("in", Cursor::new(archive), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "in: npz is not read from a stream: expected lines or jsonl, or a file");
}

#[test]
fn label_names_of_json_lines_want_a_field() {
    let folder = Folder::new();
    let path = folder.put("lbl.json", "\u{feff}{\"uid\":7,\"title\":\"red fox\"}\n{\"uid\":\"8\",\"title\":\"dog\"}\n");
    let message = |found: Result<LabelNames, ReadError>| match found {
        Ok(names) => names.names().join("|"),
        Err(e) => e.to_string().split_once("lbl.json: ").unwrap().1.to_owned(),
    };
    assert_eq!(
        message(read_label_names(&path, NameColumn::FIRST)),
        "line 1: a JSON object, expected a label name; a field of the object holds the name: state which of \"title\", \
         \"uid\""
    );
    assert_eq!(message(read_label_names_field(&path, "title")), "red fox|dog");
    assert_eq!(message(read_label_names_field(&path, "uid")), "7|8");
    assert_eq!(
        message(read_label_names_field(&path, "name")),
        "line 1: the object has no field \"name\"; its fields are \"title\", \"uid\""
    );
}
