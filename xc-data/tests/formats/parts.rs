//! Parts of a file, each read by itself, are the file in order.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use xc_buffer::Part;
use xc_data::{
    FileForm, Format, IndexBase, InstanceBuffer, InstanceReader, ReadError, ReadOptions, Source, UnknownLabels,
};

/// What a row holds.
type Row = (Vec<u32>, Vec<f32>, String, Option<String>);

fn rows_of(mut reader: InstanceReader, format: Format) -> Result<Vec<Row>, ReadError> {
    let (mut rows, mut buffer) = (Vec::new(), InstanceBuffer::default());
    let is_text = !matches!(format, Format::Xc | Format::Svmlight);
    while reader.next_into(&mut buffer)?.is_some() {
        let features = buffer.row.features();
        let id = buffer.text.id.as_ref().map(|id| id.as_json().to_owned());
        let (indices, values) = match is_text {
            true => (Vec::new(), Vec::new()),
            false => (features.indices().to_vec(), features.values().to_vec()),
        };
        rows.push((indices, values, buffer.text.text.clone(), id));
    }
    Ok(rows)
}

fn whole(path: &Path, options: &ReadOptions) -> Result<Vec<Row>, ReadError> {
    let reader = InstanceReader::over(Source::open(path, None)?, options)?;
    rows_of(reader, options.form.format.unwrap())
}

/// The rows of each of `of` parts.
fn parts(path: &Path, of: u32, options: &ReadOptions) -> Result<Vec<Vec<Row>>, ReadError> {
    let mut out: Vec<Vec<Row>> = Vec::new();
    for index in 0..of {
        let part = Part::new(index, of).unwrap();
        let (reader, rows) = InstanceReader::part(path, part, true, options)?;
        let n: usize = out.iter().map(Vec::len).sum();
        assert_eq!(rows.before, Some(n as u64), "rows before part {part}");
        let counted = rows_of(reader, options.form.format.unwrap())?;
        // Whether rows are counted changes nothing else.
        let (reader, _) = InstanceReader::part(path, part, false, options)?;
        assert_eq!(rows_of(reader, options.form.format.unwrap())?, counted);
        out.push(counted);
    }
    Ok(out)
}

fn options(format: Format) -> ReadOptions {
    ReadOptions {
        form: FileForm { format: Some(format), svmlight_base: Some(IndexBase::Zero), ..FileForm::default() },
        unknown_labels: UnknownLabels::Refuse,
        ..ReadOptions::default()
    }
}

fn write(folder: &tempfile::TempDir, text: &[u8]) -> PathBuf {
    let path = folder.path().join("rows");
    std::fs::write(&path, text).unwrap();
    path
}

/// Lines joined by line ends of one kind, the last of which may be absent, behind a byte order mark or none.
fn file(lines: &[String], end: &str, is_closed: bool, mark: bool) -> Vec<u8> {
    let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
    text.push_str(&lines.join(end));
    if is_closed && !lines.is_empty() {
        text.push_str(end);
    }
    text.into_bytes()
}

fn check(text: &[u8], options: &ReadOptions) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, text);
    let expected = whole(&path, options).map_err(|e| TestCaseError::fail(format!("{e}: {text:?}")))?;
    for of in [1, 2, 3, 7, 40] {
        let got = parts(&path, of, options).map_err(|e| TestCaseError::fail(format!("{e}: {text:?}")))?;
        prop_assert_eq!(got.concat(), expected.clone(), "{} parts of {:?}", of, String::from_utf8_lossy(text));
    }
    Ok(())
}

/// A row of features with ids below 20.
fn features() -> impl Strategy<Value = String> {
    prop::collection::btree_map(0u32..20, 1u32..9, 0..4)
        .prop_map(|row| row.iter().map(|(id, value)| format!("{id}:{value}")).collect::<Vec<_>>().join(" "))
}

/// A field as it is written.
fn field(quotes: bool) -> BoxedStrategy<String> {
    let plain = "[a-cé ]{0,5}";
    match quotes {
        false => plain.boxed(),
        true => {
            prop_oneof![plain, "[a-cé,;\"\n\r ]{0,8}".prop_map(|text| format!("\"{}\"", text.replace('"', "\"\""))),]
                .boxed()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn parts_of_xc_text(
        rows in prop::collection::vec(features(), 1..12), header in any::<bool>(), blank in 0usize..3,
        crlf in any::<bool>(), closed in any::<bool>(), mark in any::<bool>(),
    ) {
        let mut lines: Vec<String> = rows.iter().map(|row| format!(" {row}")).collect();
        if header {
            lines.insert(0, format!("{} 20 5", rows.len()));
            lines.extend(std::iter::repeat_n(String::new(), blank));
        } else {
            // A first line without a colon would be taken for a malformed header.
            lines[0] = " 3:1".to_owned();
        }
        check(&file(&lines, if crlf { "\r\n" } else { "\n" }, closed, mark), &options(Format::Xc))?;
    }

    #[test]
    fn parts_of_svmlight(
        rows in prop::collection::vec(prop_oneof![features().prop_map(|row| format!(" {row}")), Just(String::new()),
            Just("# 1:2".to_owned()), Just("  # x".to_owned()), Just("0 1:2 # x".to_owned())], 0..12),
        crlf in any::<bool>(), closed in any::<bool>(), mark in any::<bool>(),
    ) {
        check(&file(&rows, if crlf { "\r\n" } else { "\n" }, closed, mark), &options(Format::Svmlight))?;
    }

    #[test]
    fn parts_of_lines_of_text(
        rows in prop::collection::vec("(__label__[ab] )?[a-cé\u{feff} ]{0,6}", 0..12),
        crlf in any::<bool>(), closed in any::<bool>(), mark in any::<bool>(),
    ) {
        check(&file(&rows, if crlf { "\r\n" } else { "\n" }, closed, mark), &options(Format::FastText))?;
    }

    #[test]
    fn parts_of_jsonl(
        rows in prop::collection::vec(("[a-cé\u{2028}\"\\\\\n{}]{0,6}", any::<u8>()), 1..12),
        crlf in any::<bool>(), closed in any::<bool>(), mark in any::<bool>(),
    ) {
        let object = |(text, id): &(String, u8)| serde_json::json!({ "id": id, "text": text }).to_string();
        let lines: Vec<String> = rows.iter().map(object).collect();
        check(&file(&lines, if crlf { "\r\n" } else { "\n" }, closed, mark), &options(Format::Jsonl))?;
    }

    #[test]
    fn parts_of_tables(
        quotes in any::<bool>(), header in any::<bool>(), tabs in any::<bool>(), seed in any::<u64>(),
        rows in (1usize..10).prop_flat_map(|n| (
            prop::collection::vec((field(true), field(true)), n),
            prop::collection::vec((field(false), field(false)), n),
            prop::collection::vec(any::<bool>(), n),
        )),
        crlf in any::<bool>(), closed in any::<bool>(), mark in any::<bool>(),
    ) {
        let (quoted, plain, blank) = rows;
        let delimiter = if tabs { "\t" } else { "," };
        let names = ["text", "id"].join(delimiter);
        let mut lines = if header { vec![names] } else { Vec::new() };
        if seed % 5 == 0 {
            lines.insert(0, String::new());
        }
        for ((a, b), blank) in if quotes { quoted } else { plain }.iter().zip(blank) {
            // Neither is a blank line, and neither begins like a byte order mark.
            lines.push(format!("x{delimiter}{b}"));
            lines.push(if a.is_empty() { format!("y{delimiter}") } else { format!("{a}{delimiter}z") });
            if blank {
                lines.push(String::new());
            }
        }
        let mut options = options(if tabs { Format::Tsv } else { Format::Csv });
        (options.form.no_header, options.form.no_quotes) = (!header, !quotes);
        options.parts = xc_data::Parts::Queries;
        if !header {
            options.form.text_fields = Some(vec!["1".to_owned()]);
            options.form.id_field = Some("2".to_owned());
        }
        check(&file(&lines, if crlf { "\r\n" } else { "\n" }, closed, mark), &options)?;
    }
}

#[test]
fn lines_of_messages_count_from_the_byte_that_the_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, b"3 20 5\n 1:1\n 2:2\n 3:x\n");
    let options = options(Format::Xc);
    let error = |index, of| parts_error(&path, Part::new(index, of).unwrap(), &options);
    assert!(error(0, 1).ends_with("rows: line 4, column 4: got \"x\", expected a value (a number)"), "{}", error(0, 1));
    assert!(error(2, 3).contains("rows (from byte 17): line 1, column 4"), "{}", error(2, 3));
    assert_eq!(error(1, 3), "");
}

fn parts_error(path: &Path, part: Part, options: &ReadOptions) -> String {
    let rows =
        InstanceReader::part(path, part, false, options).and_then(|(r, _)| rows_of(r, options.form.format.unwrap()));
    rows.err().map_or(String::new(), |e| e.to_string())
}

#[test]
fn a_header_that_promises_other_rows_is_found_by_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Format::Xc);
    for (promised, n) in [(3, 2), (2, 3), (5, 0)] {
        let rows: String = (0..n).map(|i| format!(" {i}:1\n")).collect();
        let path = write(&folder, format!("{promised} 20 5\n{rows}").as_bytes());
        assert!(whole(&path, &options).is_err());
        for of in [1, 2, 7] {
            let errors = (0..of).map(|index| parts_error(&path, Part::new(index, of).unwrap(), &options));
            assert_eq!(errors.filter(|error| error.contains("rows")).count(), 1, "{promised} {n} {of}");
        }
    }
}

#[test]
fn files_that_cannot_be_cut_are_refused_by_every_part() {
    let folder = tempfile::tempdir().unwrap();
    let packed = zstd::encode_all(&b"{\"text\":\"a\"}\n"[..], 3).unwrap();
    let cases: [(Format, &[u8], &str); 6] = [
        (Format::Jsonl, &packed, "it is compressed"),
        (Format::Jsonl, b"[{\"text\":\"a\"},{\"text\":\"b\"}]", "not one JSON object a line"),
        (Format::Jsonl, b"{\"text\":\n\"a\"}\n{\"text\":\n\"b\"}\n", "not one JSON object a line"),
        (Format::Csv, b"text,labels\ra,b\rc,d", "carriage returns alone"),
        (Format::Csv, b"text,labels\na,\"b\nc\"\nd\"e,f\n", "quotes"),
        (Format::Jsonl, b"", "the file is empty"),
    ];
    for (format, text, expected) in cases {
        let path = write(&folder, text);
        for index in 0..3 {
            let error = parts_error(&path, Part::new(index, 3).unwrap(), &options(format));
            // A quote where none may be is found by the part that reaches it.
            assert!(error.contains(expected) || (expected == "quotes" && index < 2), "{index} {error}");
        }
    }
    let error = parts_error(folder.path(), Part::new(0, 2).unwrap(), &options(Format::Xc));
    assert!(error.contains("not a regular file"), "{error}");
}
