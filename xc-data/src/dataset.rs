//! Reading whole files into memory.

use super::blocks::{BlockReader, Blocks, LineParser};
use super::csv::CsvBlocks;
use super::entries::IdKind;
use super::error::{ReadError, ReadErrorKind};
use super::fasttext::{FastTextParser, TextRows};
use super::fields::Parts;
use super::form::{Begun, Form};
use super::format::Format;
use super::ids::RowIds;
use super::join::{Join, JoinError, Joined, Unmatched};
use super::jsonl::{JsonlFeaturesParser, JsonlTextParser};
use super::label::LabelCollector;
use super::npy::{read_npy_labels, read_npy_sparse};
use super::npz::{read_npz_labels, read_npz_matrix};
use super::options::ReadOptions;
use super::parser::InstanceBuffer;
use super::row::{MAX_IDS, RowBlock, RowLimits, Unseen};
use super::source::Source;
use super::stream::InstanceReader;
use super::svmlight::SvmlightParser;
use super::xc_text::{XcColumnsParser, XcHeader, XcParser};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::Path;
use xc_buffer::{Cancel, Silent};
use xc_sparse::rows::{CsrMatrix, Dataset, LabelRows};

/// Instances with text and labels.
#[derive(Clone, Debug)]
pub struct TextDataset {
    /// One text per instance.
    pub texts: Vec<String>,
    /// Labels, one list per instance.
    pub labels: LabelRows,
    /// Name of each label, if the source named them or a dictionary was given.
    pub label_names: Option<Vec<String>>,
}

/// Label lists of a file.
#[derive(Clone, Debug)]
pub struct LabelLists {
    /// One list per instance.
    pub labels: LabelRows,
    /// Name of each label, if the source named them or a dictionary was given.
    pub label_names: Option<Vec<String>>,
    /// Number of labels that were dropped since a given dictionary lacks them.
    pub n_dropped: u64,
    /// Number of labels of a sparse matrix whose entries are other than 1.
    pub n_graded: u64,
}

/// Reads a file with sparse features: XC text, svmlight, JSONL with features, npz or npy.
///
/// Features are sorted, entries of value 0 dropped, repeated labels kept once; rows without labels or
/// without features are kept. *Cost*: memory for the result and four blocks per thread; text is parsed
/// on all threads of the ambient pool.
///
/// # Errors
/// File, line, what was found and what was expected; a text format without features is
/// [`ReadErrorKind::WrongFormat`].
pub fn read_dataset(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Dataset, ReadError> {
    read_dataset_until(path, options, &Silent)
}

/// [`read_dataset`] that stops when it is asked to: after each batch of blocks of a text format, and before and after the
/// arrays of the others.
///
/// # Errors
/// As [`read_dataset`], and [`ReadErrorKind::Cancelled`].
pub fn read_dataset_until(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    cancel: &dyn Cancel,
) -> Result<Dataset, ReadError> {
    let path = path.as_ref();
    let format = format_of(path, options)?;
    let mut data = match format {
        Format::Npz | Format::Npy => {
            check(cancel, path)?;
            read_features(path, format, options)?
        }
        _ => Lines::open(path, format, IdKind::Feature, options)?.dataset(options, cancel)?,
    };
    check(cancel, path)?;
    if let Some(labels) = &options.labels {
        let mut of_labels = ReadOptions { labels: None, ..options.clone() };
        of_labels.form.format = None;
        let (lists, _) = read_labels_of(labels, &of_labels, path, options, data.features.rows())?;
        data.labels = lists.labels;
        data.label_names = lists.label_names;
    }
    Ok(data)
}

fn check(cancel: &dyn Cancel, file: &Path) -> Result<(), ReadError> {
    if cancel.cancelled() { Err(ReadError::path(file, ReadErrorKind::Cancelled)) } else { Ok(()) }
}

/// Reads a file with text: fastText, JSONL, CSV or TSV.
///
/// # Errors
/// As [`read_dataset`].
pub fn read_text(path: impl AsRef<Path>, options: &ReadOptions) -> Result<TextDataset, ReadError> {
    let path = path.as_ref();
    let elsewhere = options.labels.is_some() && options.parts == Parts::Instances;
    let parts = if elsewhere { Parts::Queries } else { options.parts };
    let options = &ReadOptions { parts, ..options.clone() };
    let mut labels = LabelCollector::of(options);
    let mut texts = Vec::new();
    let mut rows = open_text(path, options)?;
    for block in &mut rows {
        let block = block?;
        for (instance, &line) in block.instances.into_iter().zip(&block.lines) {
            labels.push(&instance.labels).map_err(|kind| ReadError::line(&path.display().to_string(), line, kind))?;
            texts.push(instance.text);
        }
    }
    let found = labels.finish();
    let (mut labels, mut label_names) = (found.labels, found.names);
    if let Some(path_labels) = &options.labels {
        let mut of_labels = ReadOptions { labels: None, ..options.clone() };
        of_labels.form.format = None;
        let (lists, _) = read_labels_of(path_labels, &of_labels, path, options, texts.len())?;
        labels = lists.labels;
        label_names = lists.label_names;
    }
    Ok(TextDataset { texts, labels, label_names })
}

/// Whether a file of this format holds text (rather than features).
///
/// # Errors
/// A file that cannot be opened or is empty.
pub fn holds_text(path: impl AsRef<Path>, format: Format, options: &ReadOptions) -> Result<bool, ReadError> {
    let path = path.as_ref();
    match format {
        Format::FastText | Format::Csv | Format::Tsv => Ok(true),
        Format::Jsonl => {
            let source = Source::open_to_look(path, options.max_expanded_bytes)?;
            Ok(Lines::over(source, format, IdKind::Feature, options)?.begun.holds_text())
        }
        _ => Ok(false),
    }
}

/// Reads the labels of a file in any format: XC text (one file, or `label:value` entries below `rows
/// labels`), svmlight, JSONL, fastText, CSV, TSV, an npz matrix whose entries above 0 are labels, or an
/// npy array: one class for each row, or rows of 0 and 1. Text and features of JSONL, CSV and TSV are
/// ignored and may be missing.
///
/// # Errors
/// As [`read_dataset`].
pub fn read_labels(path: impl AsRef<Path>, options: &ReadOptions) -> Result<LabelLists, ReadError> {
    let path = path.as_ref();
    read_lists(path, Parts::Labels, options).map(|(lists, _)| lists)
}

/// Reads the labels of a file, and the ids of its instances.
///
/// # Errors
/// As [`read_labels`].
pub fn read_labels_and_ids(path: impl AsRef<Path>, options: &ReadOptions) -> Result<(LabelLists, RowIds), ReadError> {
    let path = path.as_ref();
    read_lists(path, Parts::LabelsAndIds, options)
}

/// Reads the ids of a file's instances: none of a format without ids. Nothing is asked of its labels.
///
/// # Errors
/// As [`read_dataset`].
pub fn read_ids(path: impl AsRef<Path>, options: &ReadOptions) -> Result<RowIds, ReadError> {
    let path = path.as_ref();
    let format = format_of(path, options)?;
    let mut found = RowIds::default();
    if !matches!(format, Format::Jsonl | Format::Csv | Format::Tsv) {
        return Ok(found);
    }
    let options = ReadOptions { parts: Parts::Queries, labels: None, ..options.clone().with_format(format) };
    let mut reader = InstanceReader::over(Source::open(path, options.max_expanded_bytes)?, &options)?;
    let mut instance = InstanceBuffer::default();
    while let Some(line) = reader.next_into(&mut instance)? {
        found.ids.push(instance.text.id.take());
        found.lines.push(line);
    }
    Ok(found.unless_without())
}

/// Reads the labels of the `n_rows` instances of the file `of`, one list for each, in the order of the instances: rows that both
/// files give ids belong together by them ([`Join`]), others by their numbers.
///
/// *Cost*: ids of the instances are read, in another pass over their file, only where the file of labels has ids.
///
/// # Errors
/// As [`read_labels`]; ids that do not fit; without ids, another number of rows.
pub fn read_labels_of(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    of: impl AsRef<Path>,
    of_options: &ReadOptions,
    n_rows: usize,
) -> Result<(LabelLists, Joined), ReadError> {
    let (path, of) = (path.as_ref(), of.as_ref());
    let (mut lists, ids) = read_labels_and_ids(path, options)?;
    let located = |e: JoinError| ReadError::path(path, ReadErrorKind::Join(e));
    let mut joined = Joined::default();
    if !ids.ids.is_empty() {
        let first = read_ids(of, of_options)?;
        let mut join = Join::new(ids, lists.labels.len(), Unmatched::Refused);
        let mut rows = Vec::with_capacity(first.ids.len());
        for id in &first.ids {
            // Every row is matched, or the file is refused.
            rows.extend(join.next(id.as_ref()).map_err(located)?.map(|row| row as u32));
        }
        joined = join.finish().map_err(located)?;
        if joined.by_ids && (joined.is_reordered || joined.left_out > 0) {
            lists.labels = lists.labels.select(&rows);
        }
    }
    if lists.labels.len() != n_rows {
        let (got, expected) = (lists.labels.len() as u64, n_rows as u64);
        let kind = ReadErrorKind::LabelRows { got, expected, features: of.display().to_string() };
        return Err(ReadError::path(path, kind));
    }
    Ok((lists, joined))
}

fn read_lists(path: &Path, parts: Parts, options: &ReadOptions) -> Result<(LabelLists, RowIds), ReadError> {
    let format = format_of(path, options)?;
    let mut found_ids = RowIds::default();
    let of = |labels| LabelLists { labels, label_names: None, n_dropped: 0, n_graded: 0 };
    let from_data = |data: Dataset| LabelLists { label_names: data.label_names, ..of(data.labels) };
    // Bounds on features are for the file with the features.
    let options = &ReadOptions { labels: None, n_features: None, parts, ..options.clone().with_format(format) };
    let lists = match format {
        Format::Xc | Format::Svmlight => {
            from_data(Lines::open(path, format, IdKind::Label, options)?.dataset(options, &Silent)?)
        }
        Format::Jsonl | Format::FastText | Format::Csv | Format::Tsv => {
            let mut labels = LabelCollector::of(options);
            for block in open_text(path, options)? {
                let block = block?;
                for (instance, &line) in block.instances.into_iter().zip(&block.lines) {
                    let pushed = labels.push(&instance.labels);
                    pushed.map_err(|kind| ReadError::line(&path.display().to_string(), line, kind))?;
                    found_ids.ids.push(instance.id);
                    found_ids.lines.push(line);
                }
            }
            let found = labels.finish();
            LabelLists { label_names: found.names, n_dropped: found.n_dropped, ..of(found.labels) }
        }
        Format::Npz => {
            let (labels, n_graded) = read_label_lists(path, options)?;
            LabelLists { n_graded, ..of(labels) }
        }
        Format::Npy => of(read_npy_labels(path, options)?),
    };
    Ok((lists, found_ids.unless_without()))
}

/// The fields of the first object of a JSONL file, in ascending order; empty if it is not an object.
///
/// # Errors
/// A file that cannot be read.
pub fn first_fields(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Vec<String>, ReadError> {
    let path = path.as_ref();
    let mut source = Source::open_to_look(path, options.max_expanded_bytes)?.one_object_a_line();
    let mut line = Vec::new();
    source.read_line(&mut line, 1, options.max_line_bytes)?;
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).unwrap_or_default();
    Ok(object.into_keys().collect())
}

pub(crate) fn format_of(path: &Path, options: &ReadOptions) -> Result<Format, ReadError> {
    for (what, given) in [("feature", options.n_features), ("label", options.n_labels)] {
        if let Some(got) = given.map(|n| n as u64).filter(|&n| n > MAX_IDS) {
            return Err(ReadError::path(path, ReadErrorKind::GivenTooLarge { what, got, expected: MAX_IDS }));
        }
    }
    Format::detect(path, options)
}

/// Text instances of a file, block by block in file order.
pub struct TextBlocks(TextBlocksOf);

enum TextBlocksOf {
    FastText(Box<Blocks<FastTextParser>>),
    Jsonl(Box<Blocks<JsonlTextParser>>),
    Table(Box<CsvBlocks>),
}

impl Iterator for TextBlocks {
    type Item = Result<TextRows, ReadError>;
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            TextBlocksOf::FastText(blocks) => blocks.next(),
            TextBlocksOf::Jsonl(blocks) => blocks.next(),
            TextBlocksOf::Table(blocks) => blocks.next(),
        }
    }
}

/// Opens a file with text (fastText, JSONL, CSV, TSV) for reading block by block, for callers that turn
/// text into features without keeping the text.
///
/// # Errors
/// A file that cannot be opened, is empty, or has another format.
pub fn open_text(path: impl AsRef<Path>, options: &ReadOptions) -> Result<TextBlocks, ReadError> {
    let path = path.as_ref();
    let format = format_of(path, options)?;
    if let Some(delimiter) = format.delimiter(options.form.delimiter) {
        let source = Source::open(path, options.max_expanded_bytes)?;
        let blocks = CsvBlocks::new(source, delimiter, options)?;
        return Ok(TextBlocks(TextBlocksOf::Table(Box::new(blocks))));
    }
    let Lines { reader, begun, .. } = Lines::open(path, format, IdKind::Feature, options)?;
    Ok(TextBlocks(match begun.form {
        Form::FastText => {
            let parser = FastTextParser { labels: options.label_strings };
            TextBlocksOf::FastText(Box::new(Blocks::new(reader, parser)))
        }
        // A first object without text is for the parser to report.
        Form::JsonlText | Form::JsonlFeatures => {
            let parser = JsonlTextParser { options: options.clone() };
            TextBlocksOf::Jsonl(Box::new(Blocks::new(reader, parser)))
        }
        _ => return Err(ReadError::path(path, ReadErrorKind::WrongFormat { format: format.name(), expected: "text" })),
    }))
}

/// A text file that is read whole: in blocks, on all threads. One line at a time is
/// `InstanceReader`'s, which must not read ahead.
struct Lines {
    reader: BlockReader,
    begun: Begun,
    format: Format,
    file: String,
}

impl Lines {
    fn open(path: &Path, format: Format, columns: IdKind, options: &ReadOptions) -> Result<Self, ReadError> {
        Self::over(Source::open(path, options.max_expanded_bytes)?, format, columns, options)
    }

    /// Looks at the first line, which is put back unless it is a header; a byte order mark is taken
    /// off.
    fn over(source: Source, format: Format, columns: IdKind, options: &ReadOptions) -> Result<Self, ReadError> {
        let source = if format == Format::Jsonl { source.one_object_a_line() } else { source };
        let mut reader = BlockReader::new(source, options.block_bytes, options.max_line_bytes);
        let file = reader.name().to_owned();
        let mut line = Vec::new();
        if !reader.first_line(&mut line)? {
            return Err(ReadError::file(&file, ReadErrorKind::Empty { expected: format.first_line() }));
        }
        let begun = Begun::at(&line, &file, format, columns, options)?;
        if begun.header.is_none() {
            reader.put_back(&line);
        }
        Ok(Self { reader, begun, format, file })
    }

    /// The rows, of every form that has features or label ids.
    fn dataset(self, options: &ReadOptions, cancel: &dyn Cancel) -> Result<Dataset, ReadError> {
        let Self { reader, begun: Begun { form, header, limits }, format, file } = self;
        let rows = match form {
            Form::Xc => gather(Blocks::new(reader, XcParser { limits }), header, &file, cancel)?,
            Form::XcColumns(columns) => {
                gather(Blocks::new(reader, XcColumnsParser { limits, columns }), header, &file, cancel)?
            }
            Form::Svmlight(form) => gather(Blocks::new(reader, SvmlightParser { form, limits }), None, &file, cancel)?,
            Form::JsonlText | Form::JsonlFeatures => {
                return read_jsonl_features(reader, limits, &file, options, cancel);
            }
            Form::FastText | Form::Table { .. } => {
                let kind = ReadErrorKind::WrongFormat { format: format.name(), expected: "sparse features" };
                return Err(ReadError::file(&file, kind));
            }
        };
        // The columns of a file of labels are bounded as features are.
        let (features, labels) = (limits.width(), limits.labels.map(|b| b.below));
        options.count_unseen(rows.unseen);
        Ok(match form {
            Form::XcColumns(IdKind::Label) => rows.into_dataset(None, features),
            _ => rows.into_dataset(features, labels),
        })
    }
}

/// Rows of all blocks in one piece.
#[derive(Default)]
struct Gathered {
    feature_ends: Vec<usize>,
    label_ends: Vec<usize>,
    labels: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<f32>,
    max_feature: Option<u32>,
    max_label: Option<u32>,
    unseen: Unseen,
}

impl Gathered {
    fn new() -> Self {
        Self { feature_ends: vec![0], label_ends: vec![0], ..Self::default() }
    }

    fn len(&self) -> usize {
        self.feature_ends.len() - 1
    }

    fn append(&mut self, block: &RowBlock) {
        let (features, labels) = (self.indices.len(), self.labels.len());
        self.feature_ends.extend(block.feature_ends.iter().map(|end| end + features));
        self.label_ends.extend(block.label_ends.iter().map(|end| end + labels));
        self.indices.extend_from_slice(&block.store.indices);
        self.values.extend_from_slice(&block.store.values);
        self.labels.extend_from_slice(&block.store.labels);
        self.unseen.entries += block.store.unseen.entries;
        self.unseen.rows += block.store.unseen.rows;
        self.max_feature = self.max_feature.max(block.store.indices.iter().copied().max());
        self.max_label = self.max_label.max(block.store.labels.iter().copied().max());
    }

    // True for a row with neither labels nor features.
    fn is_bare(&self, row: usize) -> bool {
        self.feature_ends[row] == self.feature_ends[row + 1] && self.label_ends[row] == self.label_ends[row + 1]
    }

    fn pop_row(&mut self) {
        self.feature_ends.pop();
        self.label_ends.pop();
    }

    fn into_labels(self, n_labels: Option<u64>) -> LabelRows {
        let n_labels = n_labels.map_or(self.max_label.map_or(0, |l| l as usize + 1), |n| n as usize);
        // Each parser bounds ids by n_labels, sorts a row's labels and drops repetitions.
        LabelRows::try_new(self.label_ends, self.labels, n_labels).expect("parsers give sorted labels within bounds")
    }

    fn into_dataset(mut self, n_features: Option<u64>, n_labels: Option<u64>) -> Dataset {
        let n_features = n_features.map_or(self.max_feature.map_or(0, |f| f as usize + 1), |n| n as usize);
        let n_rows = self.len();
        let indptr = std::mem::take(&mut self.feature_ends);
        let (mut indices, mut values) = (std::mem::take(&mut self.indices), std::mem::take(&mut self.values));
        indices.shrink_to_fit();
        values.shrink_to_fit();
        // Each parser bounds ids by n_features, sorts rows and refuses repetitions.
        let features = CsrMatrix::from_checked((n_rows, n_features), indptr, indices, values);
        Dataset { features, labels: self.into_labels(n_labels), label_names: None }
    }
}

fn gather<P: LineParser<Block = RowBlock>>(
    blocks: Blocks<P>,
    header: Option<XcHeader>,
    file: &str,
    cancel: &dyn Cancel,
) -> Result<Gathered, ReadError> {
    let mut all = Gathered::new();
    let expected = header.map(|h| h.n_rows);
    for block in blocks {
        let block = block?;
        check(cancel, file.as_ref())?;
        all.append(&block);
        // Far more rows than promised: no need to read on.
        if expected.is_some_and(|n| all.len() as u64 > n.saturating_add(1 << 20)) {
            break;
        }
    }
    if let Some(expected) = expected {
        // Blank lines at the end of the file are not rows.
        while all.len() as u64 > expected && all.is_bare(all.len() - 1) {
            all.pop_row();
        }
        let got = all.len() as u64;
        if got != expected {
            return Err(ReadError::line(file, 1, ReadErrorKind::RowCount { got, expected }));
        }
    }
    Ok(all)
}

fn read_jsonl_features(
    reader: BlockReader,
    limits: RowLimits,
    file: &str,
    options: &ReadOptions,
    cancel: &dyn Cancel,
) -> Result<Dataset, ReadError> {
    let parser = JsonlFeaturesParser { options: options.clone(), limits };
    let mut rows = Gathered::new();
    let mut labels = LabelCollector::of(options);
    for block in Blocks::new(reader, parser) {
        let block = block?;
        check(cancel, file.as_ref())?;
        for (list, &line) in block.labels.iter().zip(&block.rows.lines) {
            labels.push(list).map_err(|kind| ReadError::line(file, line, kind))?;
        }
        rows.append(&block.rows);
    }
    let found = labels.finish();
    options.count_unseen(rows.unseen);
    let data = rows.into_dataset(limits.width(), None);
    Ok(Dataset { labels: found.labels, label_names: found.names, ..data })
}

fn check_columns(path: &Path, got: usize, expected: Option<usize>) -> Result<(), ReadError> {
    match expected {
        Some(expected) if got > expected => Err(ReadError::path(path, ReadErrorKind::TooManyColumns { got, expected })),
        _ => Ok(()),
    }
}

fn read_features(path: &Path, format: Format, options: &ReadOptions) -> Result<Dataset, ReadError> {
    let mut features = if format == Format::Npz {
        read_npz_matrix(path, options)?
    } else {
        let dense = read_npy_sparse(path, options)?;
        let (rows, columns) = (dense.rows, dense.columns);
        let shape = if dense.by_columns { (columns, rows) } else { (rows, columns) };
        let matrix = CsrMatrix::from_checked(shape, dense.indptr, dense.indices, dense.values);
        if dense.by_columns { matrix.transpose().to_csr() } else { matrix }
    };
    if let Some(n) = options.n_features.filter(|&n| options.unseen.is_some() && n < features.cols()) {
        features = without_unseen(features, n, options);
    }
    if let Some(expected) = options.n_features.filter(|&n| n != features.cols()) {
        let (got, expected) = (features.cols() as u64, expected as u64);
        return Err(ReadError::path(path, ReadErrorKind::Width { got, expected }));
    }
    let labels = LabelRows::from_lists(std::iter::repeat_n([0u32; 0], features.rows()), options.n_labels.unwrap_or(0))
        .expect("empty lists have no label out of range");
    Ok(Dataset { features, labels, label_names: None })
}

/// The first `n` columns; entries of the others are counted.
fn without_unseen(features: CsrMatrix, n: usize, options: &ReadOptions) -> CsrMatrix {
    let rows = features.rows();
    let (mut indptr, mut indices, mut values) = features.into_parts();
    let (mut start, mut kept, mut unseen) = (0, 0, Unseen::default());
    for end in &mut indptr[1..] {
        let row = start..*end;
        start = row.end;
        // Ascending: what is unseen comes last.
        let n_known = indices[row.clone()].partition_point(|&feature| (feature as usize) < n);
        unseen.add((row.len() - n_known) as u64);
        indices.copy_within(row.start..row.start + n_known, kept);
        values.copy_within(row.start..row.start + n_known, kept);
        kept += n_known;
        *end = kept;
    }
    indices.truncate(kept);
    values.truncate(kept);
    options.count_unseen(unseen);
    CsrMatrix::from_checked((rows, n), indptr, indices, values)
}

fn read_label_lists(path: &Path, options: &ReadOptions) -> Result<(LabelRows, u64), ReadError> {
    let (matrix, n_graded) = read_npz_labels(path, options)?;
    check_columns(path, matrix.cols(), options.n_labels)?;
    let n_labels = matrix.cols().max(options.n_labels.unwrap_or(0));
    let (indptr, labels, _) = matrix.into_parts();
    // Sorted and bounded by the shape.
    Ok((LabelRows::try_new(indptr, labels, n_labels).expect("rows of a CSR matrix are sorted and bounded"), n_graded))
}
