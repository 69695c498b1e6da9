//! Bad input: each case gives one line that names the file, the place, what was found and what was
//! expected.

use std::io::{Cursor, Write};
use std::path::Path;
use xc_sparse::CsrMatrix;
use xc_sparse::io::*;

/// An error and what caused it, joined as a program prints them.
trait Said {
    fn said(&self) -> String;
}

impl<E: std::error::Error> Said for E {
    fn said(&self) -> String {
        let links = std::iter::successors(self.source(), |link| link.source());
        links.fold(self.to_string(), |text, link| format!("{text}: {link}"))
    }
}

/// Reads `content` as a file of this name; gives the message with the folder taken off.
fn message(name: &str, content: &[u8], read: impl Fn(&Path) -> Option<ReadError>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let Some(error) = read(&path) else { return "no error".to_owned() };
    let message = error.said();
    assert!(!message.contains('\n'), "one line: {message:?}");
    message.replace(&format!("{}/", folder.path().display()), "")
}

#[track_caller]
fn check(name: &str, options: &ReadOptions, cases: &[(&[u8], &str)]) {
    let mut wrong = Vec::new();
    for (content, expected) in cases {
        // The block size must not change what is reported.
        for block_bytes in [1, 7, 1 << 20] {
            let options = ReadOptions { block_bytes, ..options.clone() };
            let got = message(name, content, |path| read_instances(path, &options).err());
            let expected = format!("{name}: {expected}");
            if got != expected {
                let content = String::from_utf8_lossy(&content[..content.len().min(100)]);
                wrong.push(format!("{content:?} in blocks of {block_bytes}:\n  got    {got}\n  expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn format(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), svmlight_base: Some(IndexBase::One), ..ReadOptions::default() }
}

#[test]
fn xc_text() {
    check(
        "a.txt",
        &format(Format::Xc),
        &[
            (b"", "the file is empty, expected a header or a row"),
            (
                b"\xef\xbb\xbf\n",
                "line 1: got \"\", expected a header of whole numbers: rows features labels (or rows columns)",
            ),
            (
                b"2 3 x\n",
                "line 1: got \"2 3 x\", expected a header of whole numbers: rows features labels (or rows columns)",
            ),
            (
                b"2 -3 4\n",
                "line 1: got \"2 -3 4\", expected a header of whole numbers: rows features labels (or rows columns)",
            ),
            (b"5\n", "line 1: got \"5\", expected a header of whole numbers: rows features labels (or rows columns)"),
            (
                b"1 2 3 4\n",
                "line 1: got \"1 2 3 4\", expected a header of whole numbers: rows features labels (or rows columns)",
            ),
            (
                b"2 3 99999999999999999999\n",
                "line 1: got \"2 3 99999999999999999999\", expected a header of whole numbers: rows features labels (or rows columns)",
            ),
            (b"2 4294967297 4\n", "line 1: the header says 4294967297 features, expected at most 4294967295"),
            (b"2 3 9999999999\n", "line 1: the header says 9999999999 labels, expected at most 4294967295"),
            (b"2 3 4\n1 0:1\n", "line 1: the header says 2 rows, got 1"),
            (b"1 3 4\n1 0:1\n2 1:1\n", "line 1: the header says 1 rows, got 2"),
            (b"1000000000000000000 3 4\n1 0:1\n", "line 1: the header says 1000000000000000000 rows, got 1"),
            (
                b"1 3 4\n1 3:1\n",
                "line 2, column 3: feature 3 is out of range, expected an id below 3 (said by the header)",
            ),
            (
                b"1 3 4\n0,4 2:1\n",
                "line 2, column 3: label 4 is out of range, expected an id below 4 (said by the header)",
            ),
            (b"1 3 4\n-1 2:1\n", "line 2, column 1: got \"-1\", expected a label id that is not negative"),
            (b"1 3 4\nx 2:1\n", "line 2, column 1: got \"x\", expected a label id (a whole number)"),
            (b"1 3 4\n1x 2:1\n", "line 2, column 1: got \"1x\", expected a label id (a whole number)"),
            (b"1 3 4\n1, 2:1\n", "line 2, column 3: got \"\", expected a label id (a whole number)"),
            (b"1 3 4\n1.5 2:1\n", "line 2, column 1: got \"1.5\", expected a label id (a whole number)"),
            (
                b"1 3 4\n99999999999 2:1\n",
                "line 2, column 1: got \"99999999999\", expected a label id up to 4294967294",
            ),
            (b"1 3 4\n1,2:1\n", "line 2, column 3: got \"2:1\", expected a label id (a whole number)"),
            (b"1 3 4\n1 -2:1\n", "line 2, column 3: got \"-2\", expected a feature id that is not negative"),
            (b"1 3 4\n1 y:1\n", "line 2, column 3: got \"y\", expected a feature id (a whole number)"),
            (b"1 3 4\n1 :1\n", "line 2, column 3: got \"\", expected a feature id (a whole number)"),
            (
                b"1 3 4\n1 4294967296:1\n",
                "line 2, column 3: got \"4294967296\", expected a feature id up to 4294967294",
            ),
            (b"1 3 4\n1 2\n", "line 2, column 3: got \"2\", expected feature:value"),
            (b"1 3 4\n1 2 1:3\n", "line 2, column 3: got \"2\", expected feature:value"),
            (b"1 3 4\n1 2:\n", "line 2, column 5: got \"\", expected a value (a number)"),
            (b"1 3 4\n1 2:1:1\n", "line 2, column 5: got \"1:1\", expected a value (a number)"),
            (b"1 3 4\n1 2:abc\n", "line 2, column 5: got \"abc\", expected a value (a number)"),
            (b"1 3 4\n1 2:\xff\xfe\n", "line 2, column 5: got \"\u{fffd}\u{fffd}\", expected a value (a number)"),
            (b"1 3 4\n1 2:nan\n", "line 2, column 5: got \"nan\", expected a finite value"),
            (b"1 3 4\n1 2:-inf\n", "line 2, column 5: got \"-inf\", expected a finite value"),
            (b"1 3 4\n1 2:1e39\n", "line 2, column 5: got \"1e39\", expected a value that f32 can hold"),
            (b"1 3 4\n1 2:1 0:1 2:3\n", "line 2: feature 2 is named twice in this row, expected each feature once"),
            (b"1 3 4\n1 2:1 2:1\n", "line 2: feature 2 is named twice in this row, expected each feature once"),
            (
                b"1 9 9\n1 12345678901234567890123456789012345678901234567890\n",
                "line 2, column 3: got \"1234567890123456789012345678901234567890...\", expected feature:value",
            ),
            (b"2 3\n0:1\n1 2:1\n", "line 3, column 1: got \"1\", expected feature:value"),
            (b"1 3 4\n1 \"\x01\n", "line 2, column 3: got \"\\\"\\u{1}\", expected feature:value"),
        ],
    );
    let absent = ReadOptions { header: HeaderRule::Absent, ..format(Format::Xc) };
    let width = "is out of range, expected an id below 4294967295 (the most that 32 bits hold)";
    check(
        "a.txt",
        &absent,
        &[
            (b"1 4294967295:1\n", &format!("line 1, column 3: feature 4294967295 {width}")),
            (b"4294967295 1:1\n", &format!("line 1, column 1: label 4294967295 {width}")),
        ],
    );
    let required = ReadOptions { header: HeaderRule::Required, ..format(Format::Xc) };
    check(
        "a.txt",
        &required,
        &[(
            b"0 1:1\n",
            "line 1: got \"0 1:1\", expected a header of whole numbers: rows features labels (or rows columns)",
        )],
    );
    let given = ReadOptions { n_features: Some(3), n_labels: Some(2), ..format(Format::Xc) };
    check(
        "a.txt",
        &given,
        &[
            (b"1 4 2\n0 1:1\n", "line 1: 4 features, expected 3"),
            (b"1 2 2\n0 1:1\n", "line 1: 2 features, expected 3"),
            (b"1 3 3\n0 1:1\n", "line 1: the header says 3 labels, expected at most 2"),
            (
                b"0 1:1\n0 3:1\n",
                "line 2, column 3: feature 3 is out of range, expected an id below 3 (the number given)",
            ),
            (b"2 1:1\n", "line 1, column 1: label 2 is out of range, expected an id below 2 (the number given)"),
        ],
    );
    let short = ReadOptions { max_line_bytes: 8, ..format(Format::Xc) };
    check("a.txt", &short, &[(b"0 1:1\n0 1:1 2:1 3:1 4:1\n", "line 2: a line of more than 8 bytes, the limit")]);
}

#[test]
fn svmlight() {
    check(
        "a.svm",
        &format(Format::Svmlight),
        &[
            (b"", "the file is empty, expected rows of svmlight"),
            (b"1 0:1\n", "line 1, column 3: got \"0:1\", expected feature ids counted from 1"),
            (b"1 qid:x 1:1\n", "line 1, column 3: got \"qid:x\", expected qid:number"),
            (
                b"# a comment\n\n1 qid:7 1:1 # another\n1 1:1 qid:7\n",
                "line 4, column 7: got \"qid\", expected a feature id (a whole number)",
            ),
            (b"1 2:1 2:2\n", "line 1: feature 1 is named twice in this row, expected each feature once"),
            (b"+1 2:1\n", "line 1, column 1: got \"+1\", expected a label id (a whole number)"),
            (b"-1 2:1\n", "line 1, column 1: got \"-1\", expected a label id that is not negative"),
        ],
    );
    let unstated = ReadOptions { format: Some(Format::Svmlight), ..ReadOptions::default() };
    check("a.svm", &unstated, &[(b"1 1:1\n", "svmlight files count features from 0 or from 1: state which")]);
    let labels_from_one = ReadOptions { svmlight_label_base: IndexBase::One, ..format(Format::Svmlight) };
    check(
        "a.svm",
        &labels_from_one,
        &[(b"1,0 1:1\n", "line 1, column 3: got \"0\", expected label ids counted from 1")],
    );
}

#[test]
fn fasttext() {
    check(
        "a.ft",
        &format(Format::FastText),
        &[
            (b"", "the file is empty, expected one instance a line"),
            (b"__label__a ok\n__label__b \xff\n", "line 2, column 12: bytes that are not UTF-8, got \"\u{fffd}\""),
            (b"__label__ text\n", "line 1, column 1: got \"__label__\", expected a label after __label__"),
        ],
    );
    let ids = ReadOptions { fasttext_labels: FastTextLabels::Ids, n_labels: Some(5), ..format(Format::FastText) };
    check(
        "a.ft",
        &ids,
        &[
            (
                b"a __label__x\n",
                "line 1, column 3: got \"__label__x\", expected a label id from 0 to 4294967294 after __label__",
            ),
            (
                b"__label__+1\n",
                "line 1, column 1: got \"__label__+1\", expected a label id from 0 to 4294967294 after __label__",
            ),
            (b"__label__1\n__label__5\n", "line 2: label 5 is out of range, expected an id below 5 (the number given)"),
        ],
    );
    let names = LabelNames::try_new(vec!["a".into()]).unwrap();
    let known = ReadOptions { label_names: Some(names.into()), ..format(Format::FastText) };
    check("a.ft", &known, &[(b"__label__a\n__label__b\n", "line 2: label name \"b\" is not among the 1 known names")]);
}

#[test]
fn jsonl() {
    check(
        "a.jsonl",
        &format(Format::Jsonl),
        &[
            (b"", "the file is empty, expected one JSON object a line"),
            (b"{\"text\": \"a\"}\n{\"text\": \"a\", \"lab", "line 2, column 18: torn JSON: EOF while parsing a string"),
            (b"{\"text\": \"a\"}\n\n", "line 2: got \"\", expected a JSON object"),
            (b"{\"text\": \"a\"} x\n", "line 1, column 15: malformed JSON: trailing characters"),
            (b"{\"text\": \"a\"}\n{\"text\" \"a\"}\n", "line 2, column 9: malformed JSON: expected `:`"),
            (b"{\"text\": \"a\"}\n[1]\n", "line 2: invalid type: sequence, expected a JSON object"),
            (
                b"{\"text\": 5}\n",
                "line 1, column 10: invalid type: integer `5`, expected a string in the field \"text\"",
            ),
            (b"{\"text\": \"a\"}\n{\"txt\": \"a\"}\n", "line 2: the object has none of the fields \"text\""),
            (b"{\"text\": \"a\", \"text\": \"b\"}\n", "line 1, column 26: the field \"text\" is given twice"),
            (
                b"{\"text\": \"a\", \"labels\": 3}\n",
                "line 1, column 25: invalid type: integer `3`, expected a list of labels: all ids or all names",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [1.5]}\n",
                "line 1, column 28: invalid type: floating point `1.5`, expected a label: an id from 0 to 4294967294 or a name",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [-1]}\n",
                "line 1, column 27: invalid value: integer `-1`, expected a label: an id from 0 to 4294967294 or a name",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [4294967296]}\n",
                "line 1, column 35: invalid value: integer `4294967296`, expected a label: an id from 0 to 4294967294 or a name",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [1, \"x\"]}\n",
                "line 1, column 32: labels are ids and names in one list, expected all ids or all names",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [1]}\n{\"text\": \"a\", \"labels\": [\"x\"]}\n",
                "line 2: got \"x\", expected a label id, as in the labels before",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [\"x\"]}\n{\"text\": \"a\", \"labels\": [1]}\n",
                "line 2: got 1, expected a label name, as in the labels before",
            ),
            (
                b"{\"text\": \"a\", \"labels\": [\"\"]}\n",
                "line 1, column 27: a label name is empty or has a tab or line break, expected a printable name",
            ),
            (b"{\"text\": \"\xff\"}\n", "line 1, column 11: bytes that are not UTF-8, got \"\u{fffd}\\\"}\""),
        ],
    );
    let bounded = ReadOptions { n_features: Some(5), n_labels: Some(2), ..format(Format::Jsonl) };
    check(
        "a.jsonl",
        &bounded,
        &[
            (
                b"{\"features\": {\"5\": 1}}\n",
                "line 1: feature 5 is out of range, expected an id below 5 (the number given)",
            ),
            (
                b"{\"features\": {\"-1\": 1}}\n",
                "line 1, column 18: invalid value: string \"-1\", expected a feature id from 0 to 4294967294 in quotes",
            ),
            (b"{\"features\": {\"1\": \"x\"}}\n", "line 1, column 22: invalid type: string \"x\", expected f32"),
            (b"{\"features\": {\"1\": 1e39}}\n", "line 1, column 23: malformed JSON: number out of range"),
            (
                b"{\"features\": {\"1\": 1, \"1\": 2}}\n",
                "line 1: feature 1 is named twice in this row, expected each feature once",
            ),
            (b"{\"features\": [[1, 2, 3]]}\n", "line 1, column 22: malformed JSON: trailing characters"),
            (
                b"{\"features\": 7}\n",
                "line 1, column 14: invalid type: integer `7`, expected features: a map from id to value or a list of [id, value] pairs",
            ),
            (b"{\"features\": {}}\n{\"labels\": [1]}\n", "line 2: the object has none of the fields \"features\""),
            (
                b"{\"features\": {}, \"labels\": [2]}\n",
                "line 1: label 2 is out of range, expected an id below 2 (the number given)",
            ),
        ],
    );
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

#[test]
fn compressed_input() {
    let text: Vec<u8> = (0..500).flat_map(|i| format!("{} {}:{}\n", i % 7, i % 11, i).into_bytes()).collect();
    let (gz, zst) = (gzip(&text), zstd::encode_all(&text[..], 3).unwrap());
    let torn = "is truncated or damaged:";
    for (bytes, name) in [(&gz, "gzip"), (&zst, "zstd")] {
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            let got = message("a.txt", &bytes[..cut], |path| read_instances(path, &format(Format::Xc)).err());
            assert!(got.starts_with(&format!("a.txt: the {name} data {torn}")), "{got}");
        }
        let small = ReadOptions { max_expanded_bytes: Some(1000), ..format(Format::Xc) };
        check("a.txt", &small, &[(bytes, "the compressed data expands to more than 1000 bytes, the limit")]);
    }
    // gzip has a checksum; a zstd frame need not have one.
    let mut flipped = gz.clone();
    *flipped.last_mut().unwrap() ^= 0x10;
    let got = message("a.txt", &flipped, |path| read_instances(path, &format(Format::Xc)).err());
    assert!(got.starts_with(&format!("a.txt: the gzip data {torn}")), "{got}");
    check("a.txt", &format(Format::Xc), &[(&gzip(b""), "the file is empty, expected a header or a row")]);
    let bomb = zstd::encode_all(std::io::repeat(b'\n').take(1 << 24), 3).unwrap();
    let small = ReadOptions { max_expanded_bytes: Some(1 << 12), header: HeaderRule::Absent, ..format(Format::Xc) };
    check("a.txt", &small, &[(&bomb, "the compressed data expands to more than 4096 bytes, the limit")]);
}

use std::io::Read;

#[test]
fn files_that_cannot_be_read_or_told() {
    let missing = read_dataset(Path::new("no/such/file.txt"), &ReadOptions::default()).unwrap_err().said();
    assert_eq!(missing, "no/such/file.txt: cannot be read: No such file or directory (os error 2)");
    let folder = tempfile::tempdir().unwrap();
    assert!(read_dataset(folder.path(), &format(Format::Xc)).unwrap_err().said().contains("cannot be read: "));
    #[cfg(unix)]
    {
        let got = read_dataset(Path::new("/dev/null"), &ReadOptions::default()).unwrap_err().said();
        assert!(got.starts_with("/dev/null: it is not a regular file and cannot be read twice"), "{got}");
        let got = read_dataset(Path::new("/dev/null"), &format(Format::Xc)).unwrap_err().said();
        assert_eq!(got, "/dev/null: the file is empty, expected a header or a row");
    }
    let got = message("a.dat", b"hello\n", |path| read_instances(path, &ReadOptions::default()).err());
    assert!(got.starts_with("a.dat: the format is not recognised"), "{got}");
    let got = message("a.dat", b"", |path| read_instances(path, &ReadOptions::default()).err());
    assert_eq!(got, "a.dat: the file is empty, expected rows of instances");
    let got = message("a.ft", b"__label__a b\n", |path| read_dataset(path, &ReadOptions::default()).err());
    assert_eq!(got, "a.ft: fasttext does not hold sparse features");
    assert_eq!(
        "csv".parse::<Format>().unwrap_err().said(),
        "format \"csv\" does not exist, expected xc, svmlight, fasttext, jsonl, npz or npy"
    );
}

#[test]
fn labels_that_do_not_match() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let features = put("X.txt", "2 3\n0:1\n\n");
    let read = |labels: &str| {
        let options = ReadOptions { labels: Some(put("Y.txt", labels)), ..ReadOptions::default() };
        let message = read_dataset(&features, &options).unwrap_err().said();
        message.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(read("1 4\n0:1\n"), "Y.txt: got 1 rows of labels, expected 2: one for each row of X.txt");
    assert_eq!(
        read("2 4\n0:1\n4:1\n"),
        "Y.txt: line 3, column 1: feature 4 is out of range, expected an id below 4 (said by the header)"
            .replace("feature", "label")
    );
    assert_eq!(read("3 4\n0:1\n1:1\n"), "Y.txt: line 1: the header says 3 rows, got 2");
}

#[test]
fn label_names() {
    let read = |content: &[u8], column| message("labels.txt", content, |path| read_label_names(path, column).err());
    assert_eq!(read(b"", NameColumn::Line), "labels.txt: the file is empty, expected one label name a line");
    assert_eq!(
        read(b"a\n\nb\n", NameColumn::Line),
        "labels.txt: line 2: got \"\", expected a label name, not an empty one"
    );
    assert_eq!(
        read(b"a\nb\na\n", NameColumn::Line),
        "labels.txt: line 3: label name \"a\" was already given on line 1"
    );
    assert_eq!(
        read(b"a\t1\n", NameColumn::Line),
        "labels.txt: line 1: got \"a\\t1\", expected one label name a line, without a tab"
    );
    assert_eq!(
        read(b"a\n\xff\n", NameColumn::Line),
        "labels.txt: line 2, column 1: bytes that are not UTF-8, got \"\u{fffd}\""
    );
    assert_eq!(read(b"a\t1\tx\nb\n", NameColumn::First), "no error");
}

#[test]
fn predictions() {
    let options = ReadOptions { n_labels: Some(10), ..ReadOptions::default() };
    let read = |content: &[u8]| message("p.txt", content, |path| read_predictions(path, &options).err());
    assert_eq!(read(b""), "p.txt: the file is empty, expected one line of label:score entries an instance");
    assert_eq!(read(b"1:0.5 2\n"), "p.txt: line 1, column 7: got \"2\", expected label:value");
    assert_eq!(
        read(b"\n1:0.5 10:0.5\n"),
        "p.txt: line 2, column 7: label 10 is out of range, expected an id below 10 (the number given)"
    );
    assert_eq!(read(b"1:0.5 1:0.25\n"), "p.txt: line 1: label 1 is named twice in this row, expected each label once");
    assert_eq!(read(b"1:nan\n"), "p.txt: line 1, column 3: got \"nan\", expected a score (a number)");
    assert_eq!(read(b"1:x\n"), "p.txt: line 1, column 3: got \"x\", expected a score (a number)");
    assert_eq!(read(b"-1:1\n"), "p.txt: line 1, column 1: got \"-1\", expected a label id that is not negative");
    assert_eq!(
        read(b"{\"labels\":[1],\"scores\":[]}\n"),
        "p.txt: line 1: 1 labels and 0 scores, expected one score for each label"
    );
    assert_eq!(read(b"{\"labels\":[1]}\n"), "p.txt: line 1, column 14: missing field `scores`");
    let matrix = CsrMatrix::new((1, 12), vec![0, 1], vec![11], vec![0.5]);
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, matrix.view()).unwrap();
    assert_eq!(
        read(bytes.get_ref()),
        "p.txt: row 0: label 11 is out of range, expected an id below 10 (the number given)"
    );
}

/// An npy file with this header and these data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}

#[test]
fn npy_files() {
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
fn npz_archives() {
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
                &sparse("csr", &[2, 3], &[0, 2, 2], &[1, 1], &[0.5, 1.0]),
                "array indices.npy: id 1 occurs twice in row (or column) 0, expected each id once",
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
