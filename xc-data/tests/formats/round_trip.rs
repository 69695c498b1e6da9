//! What is written reads back as the same rows: every format, any block size, plain or compressed.

use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use xc_data::*;
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::{CsrMatrix, LabelRows};

const N_FEATURES: u32 = 40;
const N_LABELS: u32 = 9;

type RawRow = (Vec<u32>, std::collections::BTreeMap<u32, f32>);

fn value() -> impl Strategy<Value = f32> {
    let any_bits = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |v| v.is_finite() && *v != 0.0);
    prop_oneof![Just(1.0f32), (1u32..9).prop_map(|n| n as f32), any_bits]
}

fn rows() -> impl Strategy<Value = Vec<RawRow>> {
    let row = (prop::collection::vec(0..N_LABELS, 0..4), prop::collection::btree_map(0..N_FEATURES, value(), 0..6));
    prop::collection::vec(row, 1..12)
}

fn build(rows: &[RawRow]) -> (CsrMatrix, LabelRows) {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for (_, features) in rows {
        indices.extend(features.keys());
        values.extend(features.values());
        indptr.push(indices.len());
    }
    let features = CsrMatrix::from_checked((rows.len(), N_FEATURES as usize), indptr, indices, values);
    let labels = LabelRows::from_lists(rows.iter().map(|r| &r.0), N_LABELS as usize).unwrap();
    (features, labels)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn assert_same(
    path: &Path,
    options: &ReadOptions,
    features: &CsrMatrix,
    labels: &LabelRows,
) -> Result<(), TestCaseError> {
    let data = read_dataset(path, options).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(&data.features, features);
    let bits = |m: &CsrMatrix| m.data().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    prop_assert_eq!(bits(&data.features), bits(features));
    prop_assert_eq!(&data.labels, labels);
    Ok(())
}

fn with<T>(fill: impl FnOnce(&mut Vec<u8>) -> std::io::Result<T>) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out).unwrap();
    out
}

fn bounded(format: Format, block_bytes: usize) -> ReadOptions {
    ReadOptions {
        block_bytes,
        n_features: Some(N_FEATURES as usize),
        n_labels: Some(N_LABELS as usize),
        ..ReadOptions::from(format)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn xc_text(rows in rows(), block_bytes in 1usize..80) {
        let (features, labels) = build(&rows);
        let folder = Folder::new();
        let text = with(|out| write_xc(out, features.view(), &labels));
        let path = folder.put("a.txt", &text);
        assert_same(&path, &bounded(Format::Xc, block_bytes), &features, &labels)?;

        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let path = folder.put("a.gz.txt", &gzip.finish().unwrap());
        assert_same(&path, &bounded(Format::Xc, block_bytes), &features, &labels)?;
        let path = folder.put("b.txt", &zstd::encode_all(&text[..], 1).unwrap());
        assert_same(&path, &bounded(Format::Xc, block_bytes), &features, &labels)?;

        // Without the header line, and with the other line end.
        let body = text.splitn(2, |&b| b == b'\n').nth(1).unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap().replace('\n', "\r\n");
        let path = folder.put("c.txt", body.as_bytes());
        let options = ReadOptions { header: HeaderRule::Absent, ..bounded(Format::Xc, block_bytes) };
        assert_same(&path, &options, &features, &labels)?;
    }

    #[test]
    fn xc_text_in_two_files(rows in rows(), block_bytes in 1usize..80) {
        let (features, labels) = build(&rows);
        let folder = Folder::new();
        let path = folder.put("X.txt", &with(|out| write_xc_features(out, features.view())));
        let of_labels = folder.put("Y.txt", &with(|out| write_xc_labels(out, &labels)));
        let options = ReadOptions { labels: Some(of_labels), ..bounded(Format::Xc, block_bytes) };
        assert_same(&path, &options, &features, &labels)?;
    }

    #[test]
    fn svmlight(rows in rows(), block_bytes in 1usize..80, one in any::<bool>()) {
        let (features, labels) = build(&rows);
        let base = if one { IndexBase::One } else { IndexBase::Zero };
        let bases = SvmlightBases { features: base, labels: IndexBase::Zero };
        let folder = Folder::new();
        let path = folder.put("a.svm", &with(|out| write_svmlight(out, features.view(), &labels, bases)));
        let options = ReadOptions { form: FileForm { svmlight_base: Some(base), ..bounded(Format::Svmlight, block_bytes).form.clone() }, ..bounded(Format::Svmlight, block_bytes) };
        assert_same(&path, &options, &features, &labels)?;
    }

    #[test]
    fn jsonl_features(rows in rows(), block_bytes in 1usize..80) {
        let (features, labels) = build(&rows);
        let folder = Folder::new();
        let path = folder.put("a.jsonl", &with(|out| write_jsonl_features(out, features.view(), &labels, None)));
        assert_same(&path, &bounded(Format::Jsonl, block_bytes), &features, &labels)?;
    }

    #[test]
    fn npz_and_npy(rows in rows()) {
        let (features, labels) = build(&rows);
        let folder = Folder::new();
        let mut bytes = Cursor::new(Vec::new());
        write_npz(&mut bytes, features.view()).unwrap();
        let path = folder.put("a.npz", bytes.get_ref());
        let of_labels = folder.put("Y.txt", &with(|out| write_xc_labels(out, &labels)));
        let options = ReadOptions { labels: Some(of_labels), ..ReadOptions::default() };
        assert_same(&path, &options, &features, &labels)?;

        let columns = features.clone().transpose().to_csr();
        let (indptr, indices, values) = (columns.indptr(), columns.indices(), columns.data());
        let mut bytes = Cursor::new(Vec::new());
        write_npz_arrays(&mut bytes, NpzLayout::Csc, rows.len(), N_FEATURES as usize, indptr, indices, values).unwrap();
        let path = folder.put("b.npz", bytes.get_ref());
        assert_same(&path, &options, &features, &labels)?;
        prop_assert_eq!(read_npz_matrix(&path, &options).unwrap(), features.clone());

        let mut dense = vec![0.0; rows.len() * N_FEATURES as usize];
        for (row, values) in features.view().iter().zip(dense.chunks_exact_mut(N_FEATURES as usize)) {
            row.iter().for_each(|(feature, value)| values[feature as usize] = value);
        }
        let path = folder.put("a.npy", &with(|out| write_npy(out, rows.len(), N_FEATURES as usize, &dense)));
        assert_same(&path, &options, &features, &labels)?;
        prop_assert_eq!(read_npy(&path, &options).unwrap().values.to_vec(), dense.clone());
        // Some rows at a time, the same bytes.
        let mut one_by_one = NpyRows::begin(Cursor::new(Vec::new()), N_FEATURES as usize).unwrap();
        dense.chunks(3 * N_FEATURES as usize).for_each(|rows| one_by_one.push(rows).unwrap());
        prop_assert_eq!(one_by_one.end().unwrap().into_inner(), std::fs::read(&path).unwrap());
    }

    #[test]
    fn text_with_names(
        rows in prop::collection::vec(("[a-zé\"\\\\{}:,☃]{0,6}( [a-z]{1,5}){0,3}", prop::collection::vec(0..N_LABELS, 0..4)), 1..10),
        block_bytes in 1usize..80,
    ) {
        let names: Vec<String> = (0..N_LABELS).map(|i| format!("label\"{i}é")).collect();
        let texts: Vec<String> = rows.iter().map(|r| r.0.trim().to_owned()).collect();
        let labels = LabelRows::from_lists(rows.iter().map(|r| &r.1), names.len()).unwrap();
        let folder = Folder::new();
        let known = std::sync::Arc::new(LabelNames::try_new(names.clone()).unwrap());
        let written = [
            (Format::Jsonl, with(|out| write_jsonl_text(out, &texts, &labels, Some(&names)))),
            (Format::FastText, with(|out| write_fasttext(out, &texts, &labels, Some(&names)))),
        ];
        for (format, bytes) in written {
            let path = folder.put("a", &bytes);
            let options = ReadOptions { label_names: Some(known.clone()), ..bounded(format, block_bytes) };
            let data = read_text(&path, &options).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&data.texts, &texts);
            prop_assert_eq!(&data.labels, &labels);
            // Without a dictionary, ids follow the order of the names that occur.
            let data = read_text(&path, &ReadOptions { label_names: None, n_labels: None, ..options }).unwrap();
            let found = data.label_names.unwrap_or_default();
            prop_assert!(found.is_sorted());
            for (ours, truth) in data.labels.iter().zip(labels.iter()) {
                let ours: Vec<&str> = ours.iter().map(|&l| found[l as usize].as_str()).collect();
                let truth: Vec<&str> = truth.iter().map(|&l| names[l as usize].as_str()).collect();
                prop_assert_eq!(ours, truth);
            }
        }
    }

    #[test]
    fn predictions(rows in prop::collection::vec(prop::collection::btree_map(0..N_LABELS, value(), 0..6), 1..12), block_bytes in 1usize..80) {
        let mut batch = RankedBatch::new();
        for row in &rows {
            batch.push_row(&row.iter().map(|(&label, &score)| Scored { label, score }).collect::<Vec<_>>());
        }
        batch.sort();
        let folder = Folder::new();
        let options = ReadOptions { block_bytes, n_labels: Some(N_LABELS as usize), ..ReadOptions::default() };
        let names: Vec<String> = (0..N_LABELS).map(|i| format!("é{i}")).collect();
        let lines = folder.put("a.txt", &with(|out| write_prediction_lines(out, &batch, None)));
        let jsonl = folder.put("a.jsonl", &with(|out| write_prediction_jsonl(out, &batch, Some(&names))));
        let mut bytes = Cursor::new(Vec::new());
        write_prediction_npz(&mut bytes, &batch, N_LABELS as usize).unwrap();
        let npz = folder.put("a.npz", bytes.get_ref());
        for path in [lines, jsonl, npz] {
            let found = read_predictions(&path, &options).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&found, &batch);
        }
    }

    #[test]
    fn a_stream_gives_the_rows_of_the_whole_file(rows in rows()) {
        let (features, labels) = build(&rows);
        let bases = SvmlightBases { features: IndexBase::One, labels: IndexBase::Zero };
        let written = [
            (None, with(|out| write_xc(out, features.view(), &labels))),
            (None, with(|out| write_xc_features(out, features.view()))),
            (Some(Format::Svmlight), with(|out| write_svmlight(out, features.view(), &labels, bases))),
            (Some(Format::Jsonl), with(|out| write_jsonl_features(out, features.view(), &labels, None))),
        ];
        for (which, (format, bytes)) in written.into_iter().enumerate() {
            let options = ReadOptions::from(FileForm { format, svmlight_base: Some(IndexBase::One), ..FileForm::default() });
            let mut reader = InstanceReader::new("stdin", Cursor::new(bytes), &options).unwrap();
            let mut instance = InstanceBuffer::default();
            let mut n = 0;
            while reader.next_into(&mut instance).map_err(|e| TestCaseError::fail(e.to_string()))?.is_some() {
                prop_assert_eq!(instance.row.features(), features.view().row(n));
                if matches!(which, 0 | 2) {
                    prop_assert_eq!(instance.row.labels(), labels.row(n));
                }
                if which == 3 {
                    let ids: Vec<LabelRef> = labels.row(n).iter().map(|&l| LabelRef::Id(l)).collect();
                    prop_assert_eq!(&instance.text.labels, &ids);
                }
                n += 1;
            }
            prop_assert_eq!(n, rows.len());
        }
    }
}

#[test]
fn threads_do_not_change_what_is_read() {
    let rows: Vec<RawRow> = (0..500u32)
        .map(|i| (vec![i % N_LABELS], (0..i % 7).map(|f| ((f * 5 + i) % N_FEATURES, 0.1 + i as f32)).collect()))
        .collect();
    let (features, labels) = build(&rows);
    let folder = Folder::new();
    let path = folder.put("a.txt", &with(|out| write_xc(out, features.view(), &labels)));
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for block_bytes in [1, 37, 1000, 1 << 20] {
            let data = pool.install(|| read_dataset(&path, &bounded(Format::Xc, block_bytes))).unwrap();
            assert_eq!(data.features, features);
            assert_eq!(data.labels, labels);
        }
    }
}

#[test]
fn npz_members_stand_in_scipys_order_stored_and_sized() {
    let matrix = CsrMatrix::from_checked((2, 3), vec![0, 1, 2], vec![2, 0], vec![0.5, -1.0]);
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, matrix.view()).unwrap();
    let bytes = bytes.into_inner();
    // Walk the local headers, as readers do that do not know the central directory.
    let (mut at, mut names) = (0, Vec::new());
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    while bytes[at..].starts_with(b"PK\x03\x04") {
        let (flags, method, packed, size) = (u16_at(at + 6), u16_at(at + 8), u32_at(at + 18), u32_at(at + 22));
        assert_eq!((flags & 8, method, packed), (0, 0, size), "no data descriptor, stored");
        let name = &bytes[at + 30..at + 30 + usize::from(u16_at(at + 26))];
        names.push(String::from_utf8(name.to_vec()).unwrap());
        let data = at + 30 + name.len() + usize::from(u16_at(at + 28));
        assert!(bytes[data..].starts_with(b"\x93NUMPY\x01\x00"));
        at = data + size as usize;
    }
    assert_eq!(names, ["indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy"]);
}

/// The list reads as an id up to its second entry, and so as a repeated label if that were kept.
#[test]
fn predictions_whose_first_name_is_a_number_are_read_as_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predictions.txt");
    std::fs::write(&path, "1:0.5\ta:0.25\n").unwrap();
    let names = LabelNames::try_new(vec!["a".into(), "1".into()]).unwrap();
    let options = ReadOptions { label_names: Some(names.into()), ..ReadOptions::from(Format::Xc) };
    let read = read_predictions(&path, &options).unwrap();
    let expected = [Scored { label: 1, score: 0.5 }, Scored { label: 0, score: 0.25 }];
    assert_eq!(read.row(0), expected);
    // The other way round label 1 comes first in the ids' trial.
    let names = LabelNames::try_new(vec!["1".into(), "a".into()]).unwrap();
    std::fs::write(&path, "1:0.5\ta:0.25\n").unwrap();
    let read = read_predictions(&path, &ReadOptions { label_names: Some(names.into()), ..options }).unwrap();
    assert_eq!(read.row(0), [Scored { label: 0, score: 0.5 }, Scored { label: 1, score: 0.25 }]);
}

#[test]
fn a_line_of_blanks_is_an_empty_list_among_ids_and_among_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predictions.txt");
    let names = LabelNames::try_new(vec!["a".into(), "b".into()]).unwrap();
    let options = ReadOptions { label_names: Some(names.into()), ..ReadOptions::from(Format::Xc) };
    for list in ["1:0.5", "b:0.5"] {
        for blanks in ["", " ", "\t", " \t "] {
            std::fs::write(&path, format!("{list}\n{blanks}\n{list}\n")).unwrap();
            let read = read_predictions(&path, &options).unwrap();
            let list = [Scored { label: 1, score: 0.5 }];
            assert_eq!([read.row(0), read.row(1), read.row(2)], [&list[..], &[], &list]);
        }
    }
}

proptest! {
    #[test]
    fn entries_of_one_place_add_up_and_are_one_label(
        rows in prop::collection::vec(prop::collection::vec((0u32..4, -2i32..3), 0..8), 1..5),
        by_columns in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut expected = vec![[0i32; 4]; rows.len()];
        for (row, sums) in rows.iter().zip(&mut expected) {
            for &(column, value) in row {
                indices.push(column);
                values.push(value as f32);
                sums[column as usize] += value;
            }
            indptr.push(indices.len());
        }
        let layout = if by_columns { NpzLayout::Csc } else { NpzLayout::Csr };
        let (n_rows, n_columns) = if by_columns { (4, rows.len()) } else { (rows.len(), 4) };
        let mut file = std::fs::File::create(&path).unwrap();
        write_npz_arrays(&mut file, layout, n_rows, n_columns, &indptr, &indices, &values).unwrap();
        let matrix = read_npz_matrix(&path, &ReadOptions::default()).unwrap();
        for (outer, sums) in expected.iter().enumerate() {
            for (inner, &sum) in sums.iter().enumerate() {
                let (row, column) = if by_columns { (inner, outer) } else { (outer, inner) };
                let got = matrix.row(row).iter().find(|x| x.0 as usize == column).map(|x| x.1);
                prop_assert_eq!(got, (sum != 0).then_some(sum as f32));
            }
        }
        // Of labels: none is below 0.
        let is_negative = |entry: &(u32, i32)| entry.1 < 0;
        let read = read_labels(&path, &ReadOptions::default());
        let Some((outer, at)) =
            rows.iter().enumerate().find_map(|(outer, row)| Some((outer, *row.iter().find(|entry| is_negative(entry))?)))
        else {
            let lists = read.unwrap();
            let n_graded = rows.iter().flatten().filter(|entry| entry.1 > 1).count();
            prop_assert_eq!(lists.n_graded, n_graded as u64);
            for (row, list) in lists.labels.iter().enumerate() {
                let sum =
                    |label: &u32| if by_columns { expected[*label as usize][row] } else { expected[row][*label as usize] };
                let all: Vec<u32> = (0..n_columns as u32).filter(|label| sum(label) != 0).collect();
                prop_assert_eq!(list, &all[..]);
            }
            return Ok(());
        };
        let (row, column) = if by_columns { (at.0 as usize, outer) } else { (outer, at.0 as usize) };
        let said = read.unwrap_err().to_string();
        prop_assert!(said.contains(&format!("{} (row {row}, column {column})", at.1)), "{said}");
    }

    #[test]
    fn features_beyond_those_that_are_known_are_left_out_and_counted(
        rows in prop::collection::vec(prop::collection::btree_map(0u32..9, 1i32..9, 0..6), 1..6),
        known in 1usize..9,
        block_bytes in 1usize..40,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let matrix = |n: usize, below: u32| {
            let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in &rows {
                for (&feature, &value) in row.range(..below) {
                    indices.push(feature);
                    values.push(value as f32);
                }
                indptr.push(indices.len());
            }
            CsrMatrix::from_checked((rows.len(), n), indptr, indices, values)
        };
        let (whole, expected) = (matrix(9, 9), matrix(known, known as u32));
        let entries = (whole.nnz() - expected.nnz()) as u64;
        let with_unseen = rows.iter().filter(|row| row.range(known as u32..).next().is_some()).count() as u64;
        let labels = LabelRows::from_lists(rows.iter().map(|_| [0u32]), 1).unwrap();
        let bases = SvmlightBases { features: IndexBase::Zero, labels: IndexBase::Zero };
        let mut files: Vec<(Format, Vec<u8>)> = Vec::new();
        let mut out = Vec::new();
        write_xc(&mut out, whole.view(), &labels).unwrap();
        files.push((Format::Xc, std::mem::take(&mut out)));
        write_svmlight(&mut out, whole.view(), &labels, bases).unwrap();
        files.push((Format::Svmlight, std::mem::take(&mut out)));
        write_jsonl_features(&mut out, whole.view(), &labels, None).unwrap();
        files.push((Format::Jsonl, std::mem::take(&mut out)));
        let mut npz = std::io::Cursor::new(Vec::new());
        write_npz(&mut npz, whole.view()).unwrap();
        files.push((Format::Npz, npz.into_inner()));
        for (format, bytes) in files {
            let path = folder.path().join("a");
            std::fs::write(&path, &bytes).unwrap();
            let count = std::sync::Arc::new(UnseenCount::default());
            let options = ReadOptions { form: FileForm { format: Some(format), svmlight_base: Some(IndexBase::Zero), ..FileForm::default() }, n_features: Some(known), unseen: Some(count.clone()), block_bytes, ..ReadOptions::default() };
            let data = read_dataset(&path, &options).unwrap();
            prop_assert_eq!(&data.features, &expected, "{}", format);
            prop_assert_eq!((count.entries(), count.rows()), (entries, with_unseen), "{}", format);
            if entries > 0 {
                let strict = ReadOptions { unseen: None, ..options.clone() };
                prop_assert!(read_dataset(&path, &strict).is_err());
            }
            if format != Format::Npz {
                let mut reader = InstanceReader::over(Source::open(&path, None).unwrap(), &options).unwrap();
                let mut instance = InstanceBuffer::default();
                while reader.next_into(&mut instance).unwrap().is_some() {}
                prop_assert_eq!((count.entries(), count.rows()), (2 * entries, 2 * with_unseen), "{}", format);
            }
        }
    }
}
