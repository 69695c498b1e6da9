//! The text formats.

use super::*;

#[test]
fn malformed_xc_text_is_named_by_line_and_column() {
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
fn malformed_svmlight_is_named_by_line_and_column() {
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
    let unstated = ReadOptions::from(Format::Svmlight);
    check("a.svm", &unstated, &[(b"1 1:1\n", "svmlight files count features from 0 or from 1: state which")]);
    let mut labels_from_one = format(Format::Svmlight);
    labels_from_one.form.svmlight_label_base = Some(IndexBase::One);
    check(
        "a.svm",
        &labels_from_one,
        &[(b"1,0 1:1\n", "line 1, column 3: got \"0\", expected label ids counted from 1")],
    );
}

#[test]
fn malformed_fasttext_is_named_by_line_and_column() {
    check(
        "a.ft",
        &format(Format::FastText),
        &[
            (b"", "the file is empty, expected one instance a line"),
            (
                b"__label__a ok\n__label__b \xff\n",
                "line 2, column 12: bytes that are not UTF-8, got \"\u{fffd}\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)",
            ),
            (b"__label__ text\n", "line 1, column 1: got \"__label__\", expected a label after __label__"),
        ],
    );
    let ids = ReadOptions { label_strings: LabelStrings::Ids, n_labels: Some(5), ..format(Format::FastText) };
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
fn malformed_json_is_named_by_line_and_column() {
    check(
        "a.jsonl",
        &format(Format::Jsonl),
        &[
            (b"", "the file is empty, expected one JSON object a line"),
            (
                b"{\"text\": \"a\"}\n{\"text\": \"a\", \"lab",
                "line 2, column 18: incomplete JSON: EOF while parsing a string",
            ),
            (b"{\"text\": \"a\"}\n\n", "line 2: got \"\", expected a JSON object"),
            (b"{\"text\": \"a\"} x\n", "line 1, column 15: malformed JSON: trailing characters"),
            (b"{\"text\": \"a\"}\n{\"text\" \"a\"}\n", "line 2, column 9: malformed JSON: expected `:`"),
            (
                b"{\"text\": \"a\"}\n[1]\n",
                "line 2: a JSON array, expected one object a line (pandas writes that with to_json(path, orient=\"records\", lines=True))",
            ),
            (
                b"{\"text\": 5}\n",
                "line 1, column 10: invalid type: integer `5`, expected a string in the field \"text\"",
            ),
            (
                b"{\"text\": \"a\"}\n{\"txt\": \"a\"}\n",
                "line 2: the object has none of the fields \"text\"; its fields are \"txt\"",
            ),
            (b"{\"text\": \"a\", \"text\": \"b\"}\n", "line 1, column 26: the field \"text\" is given twice"),
            (
                b"{\"text\": \"a\", \"labels\": 3.5}\n",
                "line 1, column 27: invalid type: floating point `3.5`, expected labels: a list of ids or of names, or one of them",
            ),
            (
                b"{\"text\": \"a\", \"labels\": \"x; y\"}\n",
                "line 1: \"x; y\" may be one label or several, expected a statement of what separates labels",
            ),
            (
                b"{\"text\": \"a\", \"labels\": \"['x', 'y']\"}\n",
                "line 1: \"['x', 'y']\" is a list written as text, expected labels with a separator between them",
            ),
            (
                b"{\"text\": {\"0\": \"a\"}, \"labels\": {\"0\": \"x\"}}\n",
                "line 1, column 10: an object in the field \"text\", expected a string; a table has one object a line (pandas writes that with to_json(path, orient=\"records\", lines=True))",
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
                "line 1, column 27: a label name is empty or has a control character, expected a printable name",
            ),
            (
                b"{\"text\": \"\xff\"}\n",
                "line 1, column 11: bytes that are not UTF-8, got \"\u{fffd}\\\"}\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)",
            ),
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
            (
                b"{\"features\": {}}\n{\"labels\": [1]}\n",
                "line 2: the object has none of the fields \"features\"; its fields are \"labels\"",
            ),
            (
                b"{\"features\": {}, \"labels\": [2]}\n",
                "line 1: label 2 is out of range, expected an id below 2 (the number given)",
            ),
        ],
    );
}
