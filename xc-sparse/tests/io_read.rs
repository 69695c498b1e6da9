//! Reading whole files: each format, plain and compressed, at every block size.

use std::io::Write;
use std::path::PathBuf;
use xc_sparse::Dataset;
use xc_sparse::io::*;

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
    xc_sparse::Rows::new(data.features.view()).row(i).iter().collect()
}

fn labels(data: &Dataset) -> Vec<&[u32]> {
    data.labels.iter().collect()
}

#[test]
fn xc_text_with_a_header() {
    let data = read("a.txt", "4 10 4\n0,2 1:0.5 7:1\n 3:2.5\n1\n\n", &ReadOptions::default());
    assert_eq!(data.features.shape(), (4, 10));
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
    let fields = JsonlFields { text: vec!["title".into(), "text".into()], ..JsonlFields::default() };
    let data = read_text(&path, &ReadOptions { fields, ..ReadOptions::default() }).unwrap();
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
    assert!(matches!(read_instances(&path, &ReadOptions::default()), Ok(Instances::Features(_))));
}

#[test]
fn a_carriage_return_at_the_end_of_the_input_ends_its_line_whole_and_line_by_line() {
    for text in ["1,2 4:0.5 6:5\r", "1:1\r\n\r"] {
        let options = ReadOptions { format: Some(Format::Xc), header: HeaderRule::Absent, ..ReadOptions::default() };
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
