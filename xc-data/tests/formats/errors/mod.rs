//! Bad input: each case gives one line that names the file, the place, what was found and what was
//! expected.

mod arrays;
mod text;

use std::io::{Cursor, Read, Write};
use std::path::Path;
use xc_data::*;
use xc_sparse::CsrMatrix;

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
            let got = message(name, content, |path| read_data(path, &options).err());
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
    ReadOptions::from(FileForm { format: Some(format), svmlight_base: Some(IndexBase::One), ..FileForm::default() })
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

#[test]
fn torn_and_damaged_compression_is_told_from_bad_content() {
    let text: Vec<u8> = (0..500).flat_map(|i| format!("{} {}:{}\n", i % 7, i % 11, i).into_bytes()).collect();
    let (gz, zst) = (gzip(&text), zstd::encode_all(&text[..], 3).unwrap());
    let (mut bz2, mut xz) = (Vec::new(), Vec::new());
    bzip2::read::BzEncoder::new(&text[..], bzip2::Compression::fast()).read_to_end(&mut bz2).unwrap();
    liblzma::read::XzEncoder::new(&text[..], 3).read_to_end(&mut xz).unwrap();
    let torn = "is truncated or damaged:";
    for (bytes, name) in [(&gz, "gzip"), (&zst, "zstd"), (&bz2, "bzip2"), (&xz, "xz")] {
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            let got = message("a.txt", &bytes[..cut], |path| read_data(path, &format(Format::Xc)).err());
            assert!(got.starts_with(&format!("a.txt: the {name} data {torn}")), "{got}");
        }
        let small = ReadOptions { max_expanded_bytes: Some(1000), ..format(Format::Xc) };
        check("a.txt", &small, &[(bytes, "the compressed data expands to more than 1000 bytes, the limit")]);
    }
    // gzip has a checksum; a zstd frame need not have one.
    let mut flipped = gz.clone();
    *flipped.last_mut().unwrap() ^= 0x10;
    let got = message("a.txt", &flipped, |path| read_data(path, &format(Format::Xc)).err());
    assert!(got.starts_with(&format!("a.txt: the gzip data {torn}")), "{got}");
    check("a.txt", &format(Format::Xc), &[(&gzip(b""), "the file is empty, expected a header or a row")]);
    let bomb = || std::io::repeat(b'\n').take(1 << 24);
    let (mut bz2, mut xz) = (Vec::new(), Vec::new());
    bzip2::read::BzEncoder::new(bomb(), bzip2::Compression::best()).read_to_end(&mut bz2).unwrap();
    liblzma::read::XzEncoder::new(bomb(), 6).read_to_end(&mut xz).unwrap();
    let small = ReadOptions { max_expanded_bytes: Some(1 << 12), header: HeaderRule::Absent, ..format(Format::Xc) };
    for bomb in [zstd::encode_all(bomb(), 3).unwrap(), bz2, xz] {
        check("a.txt", &small, &[(&bomb, "the compressed data expands to more than 4096 bytes, the limit")]);
    }
    // A dictionary of 1.5 GiB, larger than any usual one, is not allocated: its size is a byte of the block's header.
    let mut xz = Vec::new();
    liblzma::read::XzEncoder::new(&b"0 0:1\n"[..], 0).read_to_end(&mut xz).unwrap();
    let (header, end) = (12, 12 + 4 * usize::from(xz[12]));
    assert_eq!(xz[header + 2..header + 4], [0x21, 1]);
    xz[header + 4] = 37;
    let mut crc = flate2::Crc::new();
    crc.update(&xz[header..end]);
    xz[end..end + 4].copy_from_slice(&crc.sum().to_le_bytes());
    let without = ReadOptions { header: HeaderRule::Absent, ..format(Format::Xc) };
    let got = message("a.txt", &xz, |path| read_data(path, &without).err());
    assert!(got.starts_with(&format!("a.txt: the xz data {torn}")), "{got}");
}

#[test]
fn files_that_cannot_be_read_or_told_say_so() {
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
    let got = message("a.dat", b"hello\n", |path| read_data(path, &ReadOptions::default()).err());
    assert!(got.starts_with("a.dat: the format is not recognised"), "{got}");
    let got = message("a.dat", b"", |path| read_data(path, &ReadOptions::default()).err());
    assert_eq!(got, "a.dat: the file is empty, expected rows of instances");
    let got = message("a.ft", b"__label__a b\n", |path| read_dataset(path, &ReadOptions::default()).err());
    assert_eq!(got, "a.ft: fasttext does not hold sparse features");
    assert_eq!(
        "excel".parse::<Format>().unwrap_err().said(),
        "format \"excel\" does not exist, expected xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy"
    );
}

#[test]
fn labels_that_do_not_match_the_rows_are_refused() {
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
fn bad_label_names_are_refused() {
    let read = |content: &[u8], column| message("labels.txt", content, |path| read_label_names(path, column).err());
    assert_eq!(read(b"", NameColumn::Line), "labels.txt: the file is empty, expected one label name per line");
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
        "labels.txt: line 1: got \"a\\t1\", expected one label name per line, without a tab"
    );
    assert_eq!(
        read(b"a\n\xff\n", NameColumn::Line),
        "labels.txt: line 2, column 1: bytes that are not UTF-8, got \"\u{fffd}\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)"
    );
    assert_eq!(read(b"a\t1\tx\nb\n", NameColumn::FIRST), "no error");
    assert_eq!(read(b"0\ta\n1\tb\tx\n", NameColumn::At(1)), "no error");
    assert_eq!(
        read(b"0\ta\nb\n", NameColumn::At(1)),
        "labels.txt: line 2: got \"b\", expected a column of label names: columns are separated by tabs"
    );
}

#[test]
fn bad_predictions_are_refused() {
    let options = ReadOptions { n_labels: Some(10), ..ReadOptions::default() };
    let read = |content: &[u8]| message("p.txt", content, |path| read_predictions(path, &options).err());
    assert_eq!(read(b""), "p.txt: the file is empty, expected one line of label:score entries per instance");
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
    assert_eq!(read(b"{\"labels\":[1]}\n"), "p.txt: line 1: missing field `scores`");
    let matrix = CsrMatrix::from_checked((1, 12), vec![0, 1], vec![11], vec![0.5]);
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, matrix.view()).unwrap();
    assert_eq!(
        read(bytes.get_ref()),
        "p.txt: row 0: label 11 is out of range, expected an id below 10 (the number given)"
    );
}
