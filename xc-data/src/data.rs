//! Instances of any kind with their labels.

use super::dataset::{TextDataset, format_of, holds_text, read_dataset, read_text};
use super::error::ReadError;
use super::file_form::FileForm;
use super::hold_out::{HoldOut, Split, hash_rows};
use super::options::ReadOptions;
use std::borrow::Cow;
use std::path::Path;
use xc_dense::{DenseMatrix, DenseRows};
use xc_sparse::rows::{CsrMatrix, CsrView, Dataset, LabelRows, OwnedRows, Rows, TokenRows};

/// Instances of one kind, borrowed or owned.
#[derive(Clone, Debug)]
pub enum DataRows<'a> {
    /// Rows that lie elsewhere.
    Borrowed(Rows<'a>),
    /// Rows of one's own.
    Owned(OwnedRows),
}

impl DataRows<'_> {
    /// The rows, borrowed.
    pub fn view(&self) -> Rows<'_> {
        match self {
            Self::Borrowed(rows) => *rows,
            Self::Owned(rows) => rows.view(),
        }
    }

    /// Rows of one's own: a copy of those that lie elsewhere.
    pub fn to_owned_rows(&self) -> Cow<'_, OwnedRows> {
        match self {
            Self::Borrowed(rows) => Cow::Owned(rows.select(&(0..rows.len() as u32).collect::<Vec<_>>())),
            Self::Owned(rows) => Cow::Borrowed(rows),
        }
    }
}

/// Instances, the labels of each, and the name of each label: borrowed or owned.
///
/// ```
/// use xc_data::{Data, HoldOut};
/// use xc_sparse::LabelRows;
///
/// let labels = LabelRows::from_lists([vec![0u32], vec![1], vec![0, 1]], 2)?;
/// let texts = vec!["red".to_owned(), "green".to_owned(), "both".to_owned()];
/// let data = Data::new(texts, labels).with_names(vec!["r".to_owned(), "g".to_owned()]);
/// // Which rows are held out is a choice of numbers: no row is copied.
/// let split = data.hold_out(HoldOut { share: 0.5, seed: 1, part: 0 });
/// assert_eq!(split.kept.len() + split.held_out.len(), 3);
/// let view = data.view();
/// assert!(std::ptr::eq(view.labels.as_ref(), data.labels.as_ref()));
/// # Ok::<(), xc_sparse::LabelRowsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Data<'a> {
    /// The instances.
    pub rows: DataRows<'a>,
    /// Their labels, a row an instance.
    pub labels: Cow<'a, LabelRows>,
    /// Name of each label, where labels have names.
    pub names: Option<Cow<'a, [String]>>,
}

impl<'a> Data<'a> {
    /// Instances and the labels of each.
    pub fn new(rows: impl Into<DataRows<'a>>, labels: impl Into<Cow<'a, LabelRows>>) -> Self {
        Self { rows: rows.into(), labels: labels.into(), names: None }
    }

    /// With a name for each label.
    pub fn with_names(self, names: impl Into<Cow<'a, [String]>>) -> Self {
        Self { names: Some(names.into()), ..self }
    }

    /// The instances.
    pub fn rows(&self) -> Rows<'_> {
        self.rows.view()
    }

    /// The same, borrowed: nothing is copied.
    pub fn view(&self) -> Data<'_> {
        Data {
            rows: DataRows::Borrowed(self.rows()),
            labels: Cow::Borrowed(&self.labels),
            names: self.names.as_deref().map(Cow::Borrowed),
        }
    }

    /// Which instances to learn from, and which are held out, by number.
    ///
    /// *Cost*: a hash of each row.
    pub fn hold_out(&self, how: HoldOut) -> Split {
        how.split(&hash_rows(self.rows()))
    }

    /// The instances with these numbers and their labels, copied.
    ///
    /// # Panics
    /// If a number is no row of both.
    pub fn select(&self, rows: &[u32]) -> Data<'static> {
        Data {
            rows: DataRows::Owned(self.rows().select(rows)),
            labels: Cow::Owned(self.labels.select(rows)),
            names: self.names.as_deref().map(|names| Cow::Owned(names.to_vec())),
        }
    }
}

/// Reads a file of sparse features or texts. JSONL has features if its first object has the features field and none
/// of the text fields.
///
/// # Errors
/// As [`read_dataset`].
pub fn read_data(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Data<'static>, ReadError> {
    let path = path.as_ref();
    let format = format_of(path, options)?;
    let options = options.clone().with_format(format);
    if holds_text(path, format, &options)? {
        read_text(path, &options).map(Data::from)
    } else {
        read_dataset(path, &options).map(Data::from)
    }
}

impl FileForm {
    /// Reads a file that looks so: [`read_data`] with the usual options.
    ///
    /// ```no_run
    /// use xc_data::FileForm;
    ///
    /// let form = FileForm { text_fields: Some(vec!["title".into(), "body".into()]), ..FileForm::default() };
    /// let data = form.read("train.csv")?;
    /// println!("{} instances, {} labels", data.rows().len(), data.labels.n_labels());
    /// # Ok::<(), xc_data::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// As [`read_data`].
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Data<'static>, ReadError> {
        read_data(path, &self.clone().into())
    }
}

impl<'a> From<Rows<'a>> for DataRows<'a> {
    fn from(rows: Rows<'a>) -> Self {
        Self::Borrowed(rows)
    }
}

impl<'a> From<CsrView<'a>> for DataRows<'a> {
    fn from(rows: CsrView<'a>) -> Self {
        Self::Borrowed(Rows::Sparse(rows))
    }
}

impl<'a> From<DenseRows<'a>> for DataRows<'a> {
    fn from(rows: DenseRows<'a>) -> Self {
        Self::Borrowed(Rows::Dense(rows))
    }
}

impl From<OwnedRows> for DataRows<'_> {
    fn from(rows: OwnedRows) -> Self {
        Self::Owned(rows)
    }
}

impl From<CsrMatrix> for DataRows<'_> {
    fn from(rows: CsrMatrix) -> Self {
        Self::Owned(OwnedRows::Sparse(rows))
    }
}

impl From<DenseMatrix> for DataRows<'_> {
    fn from(rows: DenseMatrix) -> Self {
        Self::Owned(OwnedRows::Dense(rows))
    }
}

impl From<Vec<String>> for DataRows<'_> {
    fn from(texts: Vec<String>) -> Self {
        Self::Owned(OwnedRows::Texts(texts))
    }
}

impl From<TokenRows> for DataRows<'_> {
    fn from(rows: TokenRows) -> Self {
        Self::Owned(OwnedRows::Tokens(rows))
    }
}

impl From<Dataset> for Data<'_> {
    fn from(Dataset { features, labels, label_names }: Dataset) -> Self {
        Self { names: label_names.map(Cow::Owned), ..Self::new(features, Cow::Owned(labels)) }
    }
}

impl From<TextDataset> for Data<'_> {
    fn from(TextDataset { texts, labels, label_names }: TextDataset) -> Self {
        Self { names: label_names.map(Cow::Owned), ..Self::new(texts, Cow::Owned(labels)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_borrowed_lies_where_it_lay_and_what_is_held_out_is_a_choice_of_numbers() {
        let x = CsrMatrix::try_new((4, 3), vec![0, 1, 2, 3, 3], vec![0, 1, 0], vec![1.0, 2.0, 1.0]).unwrap();
        let y = LabelRows::from_lists([vec![0u32], vec![1], vec![], vec![1]], 2).unwrap();
        let data = Data::new(x.view(), Cow::Borrowed(&y)).with_names(vec!["a".to_owned(), "b".to_owned()]);
        let view = data.view();
        let Rows::Sparse(rows) = view.rows() else { panic!("other rows") };
        assert_eq!(rows.data().as_ptr(), x.view().data().as_ptr());
        assert!(matches!(&data.view().labels, Cow::Borrowed(labels) if std::ptr::eq(*labels, &y)));

        let Split { kept, held_out } = data.hold_out(HoldOut { share: 0.5, seed: 0, part: 0 });
        let both = [&kept[..], &held_out].concat();
        assert_eq!(both.len(), 4);
        // Rows 0 and 2 are equal.
        assert_eq!(kept.contains(&0), kept.contains(&2));
        let some = data.select(&[3, 1]);
        assert_eq!(some.labels.iter().collect::<Vec<_>>(), [[1], [1]]);
        assert_eq!((some.rows().len(), some.names.as_deref().map(<[_]>::len)), (2, Some(2)));
    }
}
