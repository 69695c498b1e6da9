//! The content of a text file's lines, decided once from its format, the options and the first line.

use super::entries::IdKind;
use super::error::{LineError, ReadError, ReadErrorKind};
use super::fields::Parts;
use super::format::Format;
use super::jsonl::object_holds_text;
use super::options::ReadOptions;
use super::row::RowLimits;
use super::svmlight::{SvmlightBases, SvmlightForm};
use super::xc_text::XcHeader;

/// The form of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// XC text in one file.
    Xc,
    /// XC text in two files: entries of features, or of labels.
    XcColumns(IdKind),
    Svmlight(SvmlightForm),
    FastText,
    /// CSV or TSV; `CsvReader` reads these, whose rows may have several lines.
    Table {
        delimiter: u8,
    },
    JsonlText,
    JsonlFeatures,
}

/// A text file whose first line has been looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) form: Form,
    /// The first line, when it is a header and no row.
    pub(crate) header: Option<XcHeader>,
    /// Bounds of ids: those of the options, and of the header.
    pub(crate) limits: RowLimits,
}

impl Begun {
    /// Looks at the first line of `file`; `columns` are what the two-file form of XC text holds
    /// there.
    pub(crate) fn at(
        line: &[u8],
        file: &str,
        format: Format,
        columns: IdKind,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let limits = options.limits();
        let (mut begun, fields) = (Self { form: Form::Xc, header: None, limits }, &options.form);
        begun.form = match format {
            Format::FastText => Form::FastText,
            Format::Svmlight => match options.form.svmlight_base {
                Some(features) => Form::Svmlight(SvmlightForm {
                    bases: SvmlightBases { features, labels: options.form.svmlight_label_base.unwrap_or_default() },
                    labels_first: options.parts != Parts::Queries,
                }),
                None => return Err(ReadError::file(file, ReadErrorKind::BaseNotStated)),
            },
            Format::Csv => Form::Table { delimiter: options.form.delimiter.unwrap_or(b',') },
            Format::Tsv => Form::Table { delimiter: options.form.delimiter.unwrap_or(b'\t') },
            Format::Jsonl if object_holds_text(line, fields) => Form::JsonlText,
            Format::Jsonl => Form::JsonlFeatures,
            Format::Xc => {
                let at_header = |error: LineError| error.locate(file, 1);
                begun.header = XcHeader::parse(line, options.header).map_err(at_header)?;
                let form = match begun.header {
                    Some(XcHeader { n_labels: None, .. }) => Form::XcColumns(columns),
                    _ => Form::Xc,
                };
                begun.limits = match (begun.header, form) {
                    (None, _) => limits,
                    (Some(header), Form::XcColumns(IdKind::Label)) => {
                        let given = RowLimits { features: limits.labels, labels: None, known: None };
                        header.limits_within(&given).map_err(at_header)?
                    }
                    (Some(header), _) => header.limits(&limits).map_err(at_header)?,
                };
                form
            }
            Format::Npz | Format::Npy => {
                let kind = ReadErrorKind::WrongFormat { format: format.name(), expected: "one instance a line" };
                return Err(ReadError::file(file, kind));
            }
        };
        Ok(begun)
    }

    /// Whether the instances are text.
    pub(crate) fn holds_text(&self) -> bool {
        matches!(self.form, Form::FastText | Form::Table { .. } | Form::JsonlText)
    }
}
