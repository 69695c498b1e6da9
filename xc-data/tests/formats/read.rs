//! Reading whole files: each format, plain and compressed, at every block size.

use std::io::Write;
use std::path::PathBuf;
use xc_data::*;
use xc_sparse::Dataset;
use xc_sparse::rows::InputKind;
use xc_store::atomic::write_file;

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::File::create(&path).unwrap().write_all(content).unwrap();
    (dir, path)
}

fn read(name: &str, content: &str, options: &ReadOptions) -> Dataset {
    let (_dir, path) = file(name, content.as_bytes());
    read_dataset(&path, options).unwrap()
}

fn row(data: &Dataset, i: usize) -> Vec<(u32, f32)> {
    data.features.view().row(i).iter().collect()
}

fn labels(data: &Dataset) -> Vec<&[u32]> {
    data.labels.iter().collect()
}

#[test]
fn xc_text_with_a_header() {
    let data = read("a.txt", "4 10 4\n0,2 1:0.5 7:1\n 3:2.5\n1\n\n", &ReadOptions::default());
    assert_eq!((data.features.rows(), data.features.cols()), (4, 10));
    assert_eq!(data.labels.n_labels(), 4);
    assert_eq!(labels(&data), [&[0, 2][..], &[], &[1], &[]]);
    assert_eq!(row(&data, 0), [(1, 0.5), (7, 1.0)]);
    assert_eq!(row(&data, 1), [(3, 2.5)]);
    assert_eq!(row(&data, 2), []);
}

#[test]
fn unsorted_features_zeros_and_repeated_labels_are_put_right() {
    let data = read("a.txt", "2,0,2\t7:1e0   1:-.5 \t 3:0 2:-0.0\r\n1:1 2:2", &ReadOptions::default());
    assert_eq!(row(&data, 0), [(1, -0.5), (7, 1.0)]);
    assert_eq!(row(&data, 1), [(1, 1.0), (2, 2.0)]);
    assert_eq!(labels(&data), [&[0, 2][..], &[]]);
    assert_eq!((data.features.cols(), data.labels.n_labels()), (8, 3));
}

#[test]
fn jsonl_with_text_and_names() {
    let (_dir, path) = file(
        "a.jsonl",
        b"{\"title\": \"A\", \"text\": \"b\\u00e9\", \"labels\": [\"y\", \"x\"], \"other\": {\"a\": [1, null]}}\n{\"text\": \"c\", \"title\": null}\n",
    );
    let form = FileForm { text_fields: Some(vec!["title".into(), "text".into()]), ..FileForm::default() };
    let data = read_text(&path, &form.into()).unwrap();
    assert_eq!(data.texts, ["A b\u{e9}", "c"]);
    assert_eq!(data.label_names.unwrap(), ["x", "y"]);
    assert_eq!(data.labels.iter().collect::<Vec<_>>(), [&[0, 1][..], &[]]);
}

#[test]
fn jsonl_with_features() {
    let text = "{\"features\": {\"7\": 1, \"1\": 0.5, \"2\": 0}, \"labels\": [3]}\n{\"features\": [[4, -2]], \"labels\": null}\n";
    let data = read("a.jsonl", text, &ReadOptions::default());
    assert_eq!((row(&data, 0), row(&data, 1)), (vec![(1, 0.5), (7, 1.0)], vec![(4, -2.0)]));
    assert_eq!(labels(&data), [&[3][..], &[]]);
    let (_dir, path) = file("b.jsonl", text.as_bytes());
    assert_eq!(read_data(&path, &ReadOptions::default()).unwrap().rows().kind(), InputKind::Sparse);
}

#[test]
fn whole_and_line_by_line_agree_on_the_end_of_the_input() {
    let cases = [
        ("1,2 4:0.5 6:5\r", HeaderRule::Absent),
        ("1:1\r\n\r", HeaderRule::Absent),
        ("0 10 \n ", HeaderRule::Detect),
        ("1 10\n1:1\n \t\n\n", HeaderRule::Detect),
    ];
    for (text, header) in cases {
        let options = ReadOptions { header, ..ReadOptions::from(Format::Xc) };
        let data = read("a.txt", text, &options);
        let mut reader = InstanceReader::new("stdin", std::io::Cursor::new(text), &options).unwrap();
        let mut instance = InstanceBuffer::default();
        let mut n = 0;
        while reader.next_into(&mut instance).unwrap().is_some() {
            assert_eq!(instance.row.features().iter().collect::<Vec<_>>(), row(&data, n));
            n += 1;
        }
        assert_eq!(n, data.features.rows());
    }
}

#[test]
fn one_carriage_return_belongs_to_a_line_end_and_a_second_does_not() {
    let options = ReadOptions { header: HeaderRule::Absent, ..ReadOptions::from(Format::Xc) };
    for text in ["\r\r", "\r\r\n", "1:1\n\r\r\n"] {
        let (_dir, path) = file("a.txt", text.as_bytes());
        assert!(read_dataset(&path, &options).is_err(), "{text:?}");
        let mut reader = InstanceReader::new("stdin", std::io::Cursor::new(text), &options).unwrap();
        let mut instance = InstanceBuffer::default();
        assert!((0..3).any(|_| reader.next_into(&mut instance).is_err()), "{text:?}");
    }
}

#[test]
fn ids_reach_the_largest_that_32_bits_count() {
    let text = "4294967294 4294967294:2 0:1\n";
    let data = read("a.txt", text, &ReadOptions::from(Format::Xc));
    assert_eq!((data.features.cols(), data.labels.n_labels()), ((1 << 32) - 1, (1 << 32) - 1));
    assert_eq!(row(&data, 0), [(0, 1.0), (u32::MAX - 1, 2.0)]);
    let (_dir, path) = file("a.npz", b"");
    write_file(&path, |out| write_npz(out, data.features.view())).unwrap();
    assert_eq!(read_dataset(&path, &ReadOptions::default()).unwrap().features, data.features);
}

#[test]
fn formats_are_told_by_name_then_by_content() {
    let cases: [(&str, &str, Option<Format>); 19] = [
        ("a.jsonl.gz", "", Some(Format::Jsonl)),
        ("a.SVM", "", Some(Format::Svmlight)),
        ("a.npz", "", Some(Format::Npz)),
        ("a.ft.zst", "", Some(Format::FastText)),
        ("a.txt", "{\"text\": \"a\"}\n", Some(Format::Jsonl)),
        ("a.txt", "3 4 5\n", Some(Format::Xc)),
        ("a.txt", "3 4\n", Some(Format::Xc)),
        ("a.txt", "1,2 3:4.5e-3\n", Some(Format::Xc)),
        ("a.txt", "words __label__a\n", Some(Format::FastText)),
        ("a.txt", "1 qid:3 4:5\n", Some(Format::Svmlight)),
        ("a.txt", "PK\u{3}\u{4}", Some(Format::Npz)),
        ("a.txt", "some words\n", None),
        ("a.csv.gz", "", Some(Format::Csv)),
        ("a.TSV", "", Some(Format::Tsv)),
        ("a.txt", "id,\"text\",tags\n", Some(Format::Csv)),
        ("a.txt", "labels\ttitle\n", Some(Format::Tsv)),
        // No column that is read: words.
        ("a.txt", "some, words\n", None),
        ("a.txt", "text\n", None),
        ("a.txt", " [{\"text\": \"a\"}]\n", Some(Format::Jsonl)),
    ];
    for (name, content, expected) in cases {
        let (_dir, path) = file(name, content.as_bytes());
        assert_eq!(Format::detect(&path, &ReadOptions::default()).ok(), expected, "{name} {content:?}");
    }
}

/// Asks for an end when it has been asked so often.
struct After(std::sync::atomic::AtomicUsize);

impl xc_buffer::Cancel for After {
    fn cancelled(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn reading_stops_when_it_is_asked_to() {
    let texts = ["0 1:1\n".repeat(4000), r#"{"features": {"1": 1}, "labels": ["a"]}"#.to_owned() + "\n"];
    for (name, content) in [("a.txt", texts[0].clone()), ("a.jsonl", texts[1].repeat(600))] {
        let (_dir, path) = file(name, content.as_bytes());
        let options = ReadOptions { block_bytes: 1 << 10, ..ReadOptions::default() };
        let whole = read_dataset(&path, &options).unwrap();
        let polls = content.len() / (1 << 10);
        for asked in [0, 1, polls / 2] {
            let error = read_dataset_until(&path, &options, &After(asked.into())).unwrap_err();
            assert!(matches!(error.kind(), ReadErrorKind::Cancelled), "{name}: {error}");
        }
        let read = read_dataset_until(&path, &options, &After((4 * polls).into())).unwrap();
        assert_eq!((read.features, read.labels), (whole.features, whole.labels), "{name}");
    }
    let mut npy = Vec::new();
    write_npy(&mut npy, 2, 2, &[0.0, 1.0, 2.0, 0.0]).unwrap();
    let (_dir, path) = file("a.npy", &npy);
    for asked in [0, 1] {
        let error = read_dataset_until(&path, &ReadOptions::default(), &After(asked.into())).unwrap_err();
        assert!(matches!(error.kind(), ReadErrorKind::Cancelled), "{error}");
    }
}
