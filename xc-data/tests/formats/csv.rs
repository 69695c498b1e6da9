//! CSV and TSV: what is written reads back, files and streams agree, bad input is named by line.

use proptest::prelude::*;
use std::io::{Cursor, Read, Write};
use std::path::PathBuf;
use xc_data::*;
use xc_sparse::LabelRows;

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

fn csv() -> ReadOptions {
    ReadOptions::from(Format::Csv)
}

fn divided(separator: &str) -> ReadOptions {
    FileForm { label_separator: Some(LabelSeparator::Text(separator.into())), ..Format::Csv.into() }.into()
}

fn read(text: impl AsRef<[u8]>, options: &ReadOptions) -> TextDataset {
    read_text(&Folder::new().put("a.csv", text), options).unwrap()
}

/// The message for this file, the folder taken off; the same from a stream.
#[track_caller]
fn refused(text: impl AsRef<[u8]>, options: &ReadOptions, expected: &str) {
    let (folder, text) = (Folder::new(), text.as_ref());
    for block_bytes in [1, 40, 1 << 20] {
        let options = ReadOptions { block_bytes, ..options.clone() };
        let got = read_text(&folder.put("a.csv", text), &options).unwrap_err().to_string();
        assert_eq!(got.replace(&format!("{}/", folder.0.path().display()), ""), format!("a.csv: {expected}"));
    }
    let mut reader = InstanceReader::new("a.csv", Trickle(text.to_vec(), 0), options).unwrap();
    let mut instance = InstanceBuffer::default();
    let error = loop {
        match reader.next_into(&mut instance) {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), format!("a.csv: {expected}"));
}

/// A stream that gives one byte at a time.
struct Trickle(Vec<u8>, usize);

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = usize::from(self.1 < self.0.len() && !into.is_empty());
        into[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        Ok(n)
    }
}

#[test]
fn columns_are_picked_by_name_and_fields_may_have_several_lines() {
    let text =
        "\u{feff}id,title,body,tags\r\n7,A dog,\"It barks,\r\n\"\"loudly\"\".\",animal; noise\r\n\r\n8,,word,\r\n";
    let form = FileForm {
        text_fields: Some(vec!["body".into(), "title".into()]),
        label_field: Some("tags".into()),
        label_separator: Some(LabelSeparator::Text(";".into())),
        ..FileForm::default()
    };
    let data = read(text, &ReadOptions::from(form.clone()).with_format(Format::Csv));
    assert_eq!(data.texts, ["It barks,\r\n\"loudly\". A dog", "word"]);
    assert_eq!(data.label_names.unwrap(), ["animal", "noise"]);
    assert_eq!(data.labels.iter().collect::<Vec<_>>(), [&[0, 1][..], &[]]);

    let gzip = |text: &str| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    let as_tabs = text
        .replace("7,A dog,", "7\tA dog\t")
        .replace(".\",an", ".\"\tan")
        .replace("id,title,body,tags", "id\ttitle\tbody\ttags");
    let as_tabs = as_tabs.replace("8,,word,", "8\t\tword\t");
    let folder = Folder::new();
    let path = folder.put("a.tsv.gz", gzip(&as_tabs));
    assert_eq!(read_text(&path, &form.into()).unwrap().texts, data.texts);
}

#[test]
fn each_use_asks_for_its_own_columns_alone() {
    let folder = Folder::new();
    let path = folder.put("a.csv", "uid,text,labels\n007,a b,x\n,c,y\n");
    let form = FileForm { text_fields: Some(vec!["body".into()]), ..Format::Csv.into() };
    let labels = read_labels(&path, &form.into()).unwrap();
    assert_eq!(labels.label_names.unwrap(), ["x", "y"]);

    let form = FileForm { label_field: Some("tags".into()), id_field: Some("uid".into()), ..Format::Csv.into() };
    let options = ReadOptions { parts: Parts::Queries, ..form.into() };
    let mut reader = InstanceReader::over(Source::open(&path, None).unwrap(), &options).unwrap();
    let mut instance = InstanceBuffer::default();
    let mut found = Vec::new();
    while let Some(line) = reader.next_into(&mut instance).unwrap() {
        found.push((line, instance.text.id.as_ref().unwrap().as_json().to_owned(), instance.text.text.clone()));
        assert!(instance.text.labels.is_empty());
    }
    assert_eq!(found, [(2, "\"007\"".into(), "a b".into()), (3, "\"\"".into(), "c".into())]);
}

#[test]
fn ids_of_objects_are_kept_as_they_were_written() {
    let text = "{\"id\": \"a\\u00e9\", \"text\": \"x\", \"labels\": 9.5}\n{\"text\": \"y\", \"id\": 123456789012345678901234567890}\n\
                {\"id\": null, \"text\": \"z\"}\n";
    let options = ReadOptions { parts: Parts::Queries, ..ReadOptions::default() };
    let mut reader = InstanceReader::new("a", Cursor::new(text), &options).unwrap();
    let mut instance = InstanceBuffer::default();
    let mut ids = Vec::new();
    while reader.next_into(&mut instance).unwrap().is_some() {
        ids.push(instance.text.id.as_ref().map(|id| id.as_json().to_owned()));
    }
    assert_eq!(ids, [Some("\"a\\u00e9\"".into()), Some("123456789012345678901234567890".into()), None]);

    let ids = |line: &str, needs_id| {
        let form = FileForm { needs_id, ..Format::Jsonl.into() };
        let options = ReadOptions { parts: Parts::Queries, ..form.into() };
        let mut reader = InstanceReader::new("a", Cursor::new(line.to_owned()), &options).unwrap();
        reader.next_into(&mut InstanceBuffer::default()).unwrap_err().to_string()
    };
    let message = ids("{\"text\": \"x\", \"id\": [1]}", false);
    assert_eq!(message, "a: line 1, column 24: the field \"id\" is no string and no number");
    let message = ids("{\"text\": \"x\"}", true);
    assert_eq!(message, "a: line 1: the object has none of the fields \"id\"; its fields are \"text\"");
}

#[test]
fn strings_of_labels_in_objects_are_divided_as_those_of_tables() {
    let text = "{\"text\": \"a\", \"labels\": \"x; y\"}\n{\"text\": \"b\", \"labels\": [\"z;z\"]}\n{\"text\": \"c\", \"labels\": \"\"}\n";
    let options = divided(";").with_format(Format::Jsonl);
    let data = read(text, &options);
    assert_eq!(data.label_names.unwrap(), ["x", "y", "z;z"]);
    assert_eq!(data.labels.iter().collect::<Vec<_>>(), [&[0, 1][..], &[2], &[]]);
}

#[test]
fn bad_tables_are_named_by_line() {
    let csv = &csv();
    refused("", csv, "the file is empty, expected a header of column names");
    refused("\r\n\n", csv, "the file is empty, expected a header of column names");
    refused("id,text\n", csv, "line 1: the header has no column \"labels\"; its columns are \"id\", \"text\"");
    refused("\nid;text;labels\n", csv, "line 2: the header has no column \"text\"; its columns are \"id;text;labels\"");
    refused("text,labels,a,a\n", csv, "line 1: column \"a\" is named twice in the header, expected each name once");
    refused("text,labels\na,b\n\nc\n", csv, "line 4: 1 fields, expected 2 as in the header");
    refused("text,labels\n\"a\r\nb\",c\r\nd,e,f\r\n", csv, "line 4: 3 fields, expected 2 as in the header");
}

#[test]
fn bad_fields_are_named_by_line_and_column() {
    let csv = &csv();
    refused(
        b"text,labels\na,b\nc\xe9,\n",
        csv,
        "line 3: in column \"text\": bytes that are not UTF-8, got \"\u{fffd}\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)",
    );
    refused(
        b"te\xe9xt,labels\na,b\n",
        csv,
        "line 1: bytes that are not UTF-8, got \"\u{fffd}xt\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)",
    );
    refused(
        "text,labels\na,b\n\"c,d\ne,f\n",
        csv,
        "line 3: a quoted field that is not closed in the row that begins here",
    );
    refused("text,labels\na,\"b", csv, "line 2: a quoted field that is not closed in the row that begins here");
    let several = "line 3: in column \"labels\": \"b|c\" may be one label or several, expected a statement of what separates labels";
    refused("text,labels\na,b\na,b|c\n", csv, several);
    let list = "line 2: in column \"labels\": \"['b', 'c']\" is a list written as text, expected labels with a separator between them";
    refused("text,labels\na,\"['b', 'c']\"\n", &divided(","), list);
    let short = ReadOptions { max_line_bytes: 12, ..csv.clone() };
    refused("text,labels\nabcd,\"efgh\nijkl\"\n", &short, "line 2: a line of more than 12 bytes, the limit");
    let ids = ReadOptions { label_strings: LabelStrings::Ids, ..csv.clone() };
    refused(
        "text,labels\na,b\n",
        &ids,
        "line 2: in column \"labels\": got \"b\", expected a label id from 0 to 4294967294, since the labels have no names",
    );
    let known = LabelNames::try_new(vec!["a".into()]).unwrap();
    let known = ReadOptions { label_names: Some(known.into()), ..csv.clone() };
    let path = Folder::new();
    let path = path.put("a.csv", "text,labels\nx,a\ny,b\n");
    assert!(read_text(&path, &known).is_err());
}

#[test]
fn a_stream_goes_on_behind_a_bad_row() {
    let text = "text,labels\na,x\nb\nc,y\n";
    let mut reader = InstanceReader::new("a", Trickle(text.into(), 0), &csv()).unwrap();
    let mut instance = InstanceBuffer::default();
    assert_eq!(reader.next_into(&mut instance).unwrap(), Some(2));
    assert_eq!(reader.next_into(&mut instance).unwrap_err().line_number(), Some(3));
    assert_eq!(reader.next_into(&mut instance).unwrap(), Some(4));
    assert_eq!(instance.text.text, "c");
    assert_eq!(reader.next_into(&mut instance).unwrap(), None);
}

#[test]
fn an_answer_can_be_given_to_a_row_before_the_next_one_is_there() {
    struct Rows(Vec<&'static [u8]>);
    impl Read for Rows {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some(row) = self.0.pop() else { panic!("read ahead of the row asked for") };
            let n = into.len().min(row.len());
            into[..n].copy_from_slice(&row[..n]);
            if n < row.len() {
                self.0.push(&row[n..]);
            }
            Ok(n)
        }
    }
    let input = Rows(vec![b"b,y\n", b"a,x\n", b"text,labels\n"]);
    let mut reader = InstanceReader::new("a", input, &ReadOptions::default()).unwrap();
    let mut instance = InstanceBuffer::default();
    assert_eq!(reader.next_into(&mut instance).unwrap(), Some(2));
    assert_eq!(reader.next_into(&mut instance).unwrap(), Some(3));
    assert_eq!(instance.text.text, "b");
}

#[test]
fn labels_that_would_not_read_back_are_not_written() {
    let labels = LabelRows::from_lists([vec![0u32, 1]], 2).unwrap();
    let write = |names: [&str; 2], separator: &LabelSeparator| {
        let names = names.map(str::to_owned);
        write_csv(&mut Vec::new(), &["t"], &labels, Some(&names), separator, Format::Csv).map_err(|e| e.to_string())
    };
    let semicolon = LabelSeparator::Text(";".into());
    assert_eq!(write(["a b", "c,d"], &semicolon), Ok(()));
    for names in [["a;b", "c"], [" a", "c"], ["", "c"], ["[a", "b]"]] {
        assert!(write(names, &semicolon).unwrap_err().contains("do not read back"), "{names:?}");
    }
    assert!(write(["a|", "b"], &LabelSeparator::Text("||".into())).is_err());
    assert!(write(["a", "b"], &LabelSeparator::Whole).unwrap_err().contains("several labels"));
}

fn text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec!["\"", ",", "\n", "\r", "\t", " ", "\u{feff}", "é", "a", "\"\"", ";", "'"]);
    prop_oneof![prop::collection::vec(special, 0..8).prop_map(|parts| parts.concat()), "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_reads_back(
        rows in prop::collection::vec((text(), prop::collection::btree_set(0u32..6, 0..4)), 1..9),
        block_bytes in 1usize..80,
        tabs in any::<bool>(),
        named in any::<bool>(),
    ) {
        let texts: Vec<&str> = rows.iter().map(|(text, _)| &**text).collect();
        let labels = LabelRows::from_lists(rows.iter().map(|(_, labels)| labels.iter().copied().collect::<Vec<u32>>()), 6).unwrap();
        let names: Vec<String> = ["a", "b c", "d,e", "\"f\"", "é", "[g"].map(str::to_owned).into();
        let format = if tabs { Format::Tsv } else { Format::Csv };
        let separator = LabelSeparator::Text(";".into());
        let mut out = Vec::new();
        write_csv(&mut out, &texts, &labels, named.then_some(&names[..]), &separator, format).unwrap();
        let known = LabelNames::try_new(names.clone()).unwrap();
        let options = ReadOptions { block_bytes, label_strings: if named { LabelStrings::Names } else { LabelStrings::Ids }, label_names: named.then(|| known.into()), n_labels: (!named).then_some(6), ..divided(";").with_format(format) };
        let folder = Folder::new();
        let again = read_text(&folder.put("a.csv", &out), &options).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&again.texts, &texts);
        prop_assert_eq!(&again.labels, &labels);
        let mut reader = InstanceReader::new("a", Trickle(out, 0), &options).unwrap();
        let mut instance = InstanceBuffer::default();
        for text in texts {
            prop_assert!(reader.next_into(&mut instance).unwrap().is_some());
            prop_assert_eq!(&instance.text.text, text);
        }
        prop_assert_eq!(reader.next_into(&mut instance).unwrap(), None);
    }

    #[test]
    fn any_bytes_give_rows_or_one_line_of_error(bytes in prop::collection::vec(any::<u8>(), 0..60), header in any::<bool>()) {
        let bytes = if header { [b"text,labels\n", &bytes[..]].concat() } else { bytes };
        let folder = Folder::new();
        let path = folder.put("a.csv", &bytes);
        let whole = read_text(&path, &divided(";"));
        if let Err(error) = &whole {
            let message = error.to_string();
            prop_assert!(message.starts_with(&path.display().to_string()) && !message.contains('\n'), "{}", message);
        }
    }
}

/// The rows of a table by the rules alone, which are checked as they are read; `None` where one is broken.
fn by_the_rules(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut rows, mut rest, mut has_bare, mut has_lines) = (Vec::new(), text, false, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('\n') {
            rest = after;
            continue;
        }
        let mut row = Vec::new();
        loop {
            let field;
            if let Some(quoted) = rest.strip_prefix('"') {
                let (mut text, mut left) = (String::new(), quoted);
                loop {
                    let (part, after) = left.split_once('"')?;
                    text += part;
                    match after.strip_prefix('"') {
                        Some(after) => (text, left) = (text + "\"", after),
                        None => {
                            left = after;
                            break;
                        }
                    }
                }
                has_lines |= text.contains('\n');
                (field, rest) = (text, left);
            } else {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                has_bare |= rest[..end].contains('"');
                (field, rest) = (rest[..end].to_owned(), &rest[end..]);
            }
            row.push(field);
            match rest.chars().next() {
                Some(',') => rest = &rest[1..],
                Some('\n') | None => break,
                Some(_) => return None,
            }
        }
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        rows.push(row);
    }
    (rows.iter().all(|row| row.len() == 2) && !(has_bare && has_lines)).then_some(rows)
}

#[test]
fn quotes_of_both_kinds_are_refused_at_the_end_of_a_file_too() {
    for end in ["", "\n"] {
        let text = format!("text,labels\na\",\"\n\"{end}");
        let expected = "line 2: a quoted field of several lines in a file that also has quotes inside fields without \
                        quotes: expected one or the other";
        refused(text, &csv(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_table_is_read_by_the_rules_or_refused(rows in "[ab\",\n\\\\]{0,24}") {
        let text = format!("text,labels\n{rows}");
        let form = FileForm { label_separator: Some(LabelSeparator::Whole), ..Format::Csv.into() };
        let folder = Folder::new();
        let path = folder.put("a.csv", &text);
        for block_bytes in [1, 1 << 20] {
            let options = ReadOptions { block_bytes, ..form.clone().into() };
            let got = read_text(&path, &options);
            match by_the_rules(&text) {
                Some(rows) => {
                    let expected: Vec<&str> = rows[1..].iter().map(|row| &*row[0]).collect();
                    // A label with a line end is refused for itself.
                    if rows.iter().all(|row| !row[1].trim_ascii().contains('\n')) {
                        prop_assert_eq!(got.unwrap().texts, expected, "{:?}", text);
                    }
                }
                None => prop_assert!(got.is_err(), "{text:?} gave {got:?}"),
            }
        }
    }

    #[test]
    fn without_quotes_each_line_is_a_row(rows in prop::collection::vec(("[ab\"; ]{1,8}", "[xy\"]{1,3}"), 0..6)) {
        let lines: String = rows.iter().map(|(text, label)| format!("{text}\t{label}\n")).collect();
        let form = FileForm { no_quotes: true, label_separator: Some(LabelSeparator::Whole), ..Format::Tsv.into() };
        let data = read(format!("text\tlabels\n{lines}"), &form.clone().into());
        prop_assert_eq!(&data.texts, &rows.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>());
        let names = data.label_names.unwrap_or_default();
        let labels: Vec<_> = data.labels.iter().map(|row| names[row[0] as usize].clone()).collect();
        prop_assert_eq!(labels, rows.iter().map(|(_, label)| label.clone()).collect::<Vec<_>>());
        // The same without a header, by number.
        let form = FileForm { no_header: true, text_fields: Some(vec!["1".into()]), label_field: Some("2".into()), ..form };
        if !rows.is_empty() {
            prop_assert_eq!(read(lines, &form.into()).texts, data.texts);
        }
    }
}
