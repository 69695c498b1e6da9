//! A batch of instances, and the data it is taken from.

use crate::TargetRows;
use crate::table::Entries;
use crate::{Row, Rows, StepError};
use thiserror::Error;
use xc_dense::DenseRows;
use xc_sparse::SparseRow;
use xc_sparse::rows::InputKind;

/// Instances for training or evaluation: features, and the true outputs of each instance.
#[derive(Clone, Copy, Debug)]
pub struct Examples<'a> {
    features: Rows<'a>,
    targets: TargetRows<'a>,
}

/// Why features and targets do not form examples.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExamplesError {
    /// The numbers of features and targets differ.
    #[error("{n_features} rows of features, {n_targets} rows of targets")]
    Length {
        /// Rows of features.
        n_features: usize,
        /// Rows of targets.
        n_targets: usize,
    },
    /// Texts, from which no encoder makes vectors.
    #[error("instances are texts, expected features, vectors or tokens")]
    Texts,
    /// A feature is infinite or not a number.
    #[error("row {row} has a feature that is not finite")]
    NotFinite {
        /// The row.
        row: usize,
    },
}

/// A batch of rows that an encoder does not take.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("instances are {got} of {got_width}, expected {expected} of {expected_width}")]
pub struct WrongBatch {
    /// What the instances are.
    pub got: InputKind,
    /// Features, values of a vector, or tokens that there are ([`Batch::width`]).
    pub got_width: usize,
    /// What the encoder takes.
    pub expected: InputKind,
    /// How many of them.
    pub expected_width: usize,
}

impl<'a> Examples<'a> {
    /// Checks lengths and values. *Cost*: one pass over the features.
    ///
    /// # Errors
    /// Lengths differ; instances are texts; a feature is not finite.
    pub fn try_new(features: Rows<'a>, targets: impl Into<TargetRows<'a>>) -> Result<Self, ExamplesError> {
        let targets = targets.into();
        if features.len() != targets.len() {
            return Err(ExamplesError::Length { n_features: features.len(), n_targets: targets.len() });
        }
        if features.kind() == InputKind::Text {
            return Err(ExamplesError::Texts);
        }
        let is_wild = |&row: &usize| features.row(row).values().iter().any(|v| !v.is_finite());
        if let Some(row) = (0..features.len()).find(is_wild) {
            return Err(ExamplesError::NotFinite { row });
        }
        Ok(Self { features, targets })
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The features.
    pub fn features(&self) -> Rows<'a> {
        self.features
    }

    /// The targets.
    pub fn targets(&self) -> TargetRows<'a> {
        self.targets
    }
}

/// A few instances, copied together, as an encoder reads them. Buffers only grow. Instances of tokens lie one after
/// another without padding, and the place of a token among all of them takes the part of the instance by feature.
///
/// ```text
///   by instance    number 40: features 2 7, values 0.5 1.0      number 3: feature 2, value 2.0
///   by feature     feature 2: place 0 0.5, place 1 2.0          feature 7: place 0 1.0
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    instances: Vec<u32>,
    width: usize,
    kind: Option<InputKind>,
    indptr: Vec<u32>,
    features: Vec<u32>,
    values: Vec<f32>,
    dense: Vec<f32>,
    words: Words,
    by_feature: Entries,
    target_ptr: Vec<u32>,
    targets: Vec<u32>,
}

/// Features of words beside tokens, row after row.
#[derive(Clone, Debug, Default)]
struct Words {
    ends: Vec<usize>,
    features: Vec<u32>,
    values: Vec<f32>,
}

impl Words {
    fn clear(&mut self) {
        self.ends.clear();
        self.features.clear();
        self.values.clear();
    }

    fn push(&mut self, row: SparseRow<'_>) {
        self.features.extend_from_slice(row.indices());
        self.values.extend_from_slice(row.values());
        self.ends.push(self.features.len());
    }

    fn row(&self, place: usize) -> Option<SparseRow<'_>> {
        let end = *self.ends.get(place)?;
        let range = place.checked_sub(1).map_or(0, |before| self.ends[before])..end;
        Some(SparseRow::from_checked(&self.features[range.clone()], &self.values[range]))
    }
}

impl Batch {
    /// Empties the batch.
    fn begin(&mut self, width: usize, kind: InputKind) {
        (self.width, self.kind) = (width, Some(kind));
        for list in [&mut self.target_ptr, &mut self.indptr] {
            list.clear();
            list.push(0);
        }
        for list in [&mut self.instances, &mut self.targets, &mut self.features] {
            list.clear();
        }
        self.values.clear();
        self.dense.clear();
        self.words.clear();
    }

    fn push(&mut self, instance: u32, row: Row<'_>) {
        self.instances.push(instance);
        match row {
            Row::Sparse(row) => {
                self.features.extend_from_slice(row.indices());
                self.values.extend_from_slice(row.values());
                self.indptr.push(self.features.len() as u32);
            }
            Row::Dense(values) => self.dense.extend_from_slice(values),
            Row::Tokens(row) => {
                self.features.extend_from_slice(row.ids);
                self.indptr.push(self.features.len() as u32);
                row.words.into_iter().for_each(|words| self.words.push(words));
            }
            Row::Text(_) => panic!("a text, expected features, a vector or tokens"),
        }
        self.target_ptr.push(0);
    }

    /// Copies one query for prediction. It has the number 0.
    ///
    /// # Panics
    /// If a feature or token is not below `n_features`; if it is a vector of another width, or a text.
    pub fn fill_one(&mut self, query: Row<'_>, n_features: usize) {
        match query {
            Row::Sparse(row) => {
                let is_inside = row.indices().iter().all(|&f| (f as usize) < n_features);
                assert!(is_inside, "a feature is not below {n_features}");
            }
            Row::Dense(values) => assert_eq!(values.len(), n_features, "values of a vector"),
            Row::Tokens(row) => {
                assert!(row.ids.iter().all(|&id| (id as usize) < n_features), "a token is not below {n_features}");
            }
            Row::Text(_) => {}
        }
        self.begin(n_features, query.kind());
        self.push(0, query);
    }

    /// Copies the features of the instances `rows` for prediction.
    ///
    /// # Panics
    /// If a row does not exist, or is a text.
    pub fn fill_features(&mut self, features: Rows<'_>, rows: impl ExactSizeIterator<Item = usize>) {
        self.begin(features.width(), features.kind());
        rows.for_each(|i| self.push(i as u32, features.row(i)));
    }

    /// Copies the instances `rows` with their targets and groups their entries by feature, or their places by token, for
    /// training.
    ///
    /// *Cost*: O(nnz log nnz) of the rows.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn fill(&mut self, examples: &Examples<'_>, rows: &[u32]) {
        self.fill_features(examples.features, rows.iter().map(|&i| i as usize));
        for (at, &i) in rows.iter().enumerate() {
            examples.targets.append(i as usize, &mut self.targets);
            self.target_ptr[at + 1] = self.targets.len() as u32;
        }
        match self.kind {
            Some(InputKind::Dense) => {}
            Some(InputKind::Tokens) => self.by_feature.fill_places(&self.features),
            _ => {
                self.by_feature.fill(&self.indptr, &self.features, &self.values);
            }
        }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Number of features, of values of a vector, or of tokens that there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Refuses rows of another kind or width than an encoder takes.
    ///
    /// # Errors
    /// See [`WrongBatch`].
    pub fn check(&self, kind: InputKind, width: usize) -> Result<(), StepError> {
        let (got, got_width) = (self.kind.unwrap_or(kind), self.width);
        if (got, got_width) == (kind, width) {
            return Ok(());
        }
        let wrong = WrongBatch { got, got_width, expected: kind, expected_width: width };
        Err(StepError::new("encoder", wrong))
    }

    /// Numbers of the instances in the data that the batch was taken from.
    pub fn instances(&self) -> &[u32] {
        &self.instances
    }

    /// Sparse features of the instance at a position of the batch.
    ///
    /// # Panics
    /// If there is no such position, or the rows are not sparse.
    pub fn row(&self, place: usize) -> SparseRow<'_> {
        let range = self.indptr[place] as usize..self.indptr[place + 1] as usize;
        SparseRow::from_checked(&self.features[range.clone()], &self.values[range])
    }

    /// Features of the instance at a position of the batch: its own, or those of the words beside its tokens; nothing where
    /// it has none of either.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn words(&self, place: usize) -> Option<SparseRow<'_>> {
        match self.kind {
            Some(InputKind::Sparse) => Some(self.row(place)),
            _ => self.words.row(place),
        }
    }

    /// Sparse rows: where each begins and ends, features, values.
    #[cfg(feature = "cuda")]
    pub(crate) fn sparse(&self) -> (&[u32], &[u32], &[f32]) {
        (&self.indptr, &self.features, &self.values)
    }

    /// The vectors of all instances, if the rows are dense.
    pub fn dense(&self) -> Option<DenseRows<'_>> {
        (self.kind == Some(InputKind::Dense)).then(|| DenseRows::new(&self.dense, self.width))
    }

    /// The ids of all instances, one after another, and where those of each begin and end (one end more than
    /// instances), if the rows are tokens.
    pub fn tokens(&self) -> Option<(&[u32], &[u32])> {
        (self.kind == Some(InputKind::Tokens)).then_some((&*self.features, &*self.indptr))
    }

    /// If the batch was filled for training: the entries of sparse rows by feature; of tokens their places among all
    /// tokens of the batch by id, with the value 1.
    pub fn by_feature(&self) -> &Entries {
        &self.by_feature
    }

    /// The true labels of each instance.
    pub fn targets(&self) -> Targets<'_> {
        Targets { instances: &self.instances, ptr: &self.target_ptr, labels: &self.targets }
    }
}

/// The true labels of each instance of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    instances: &'a [u32],
    ptr: &'a [u32],
    labels: &'a [u32],
}

impl<'a> Targets<'a> {
    /// Wraps existing lists: those of the instance at position `i` are at `ptr[i]..ptr[i + 1]`.
    ///
    /// # Panics
    /// If `ptr` is not one longer than `instances`, does not begin with 0, decreases, or does not end
    /// with the number of labels; or if the labels of an instance are not ascending and unique.
    pub fn new(instances: &'a [u32], ptr: &'a [u32], labels: &'a [u32]) -> Self {
        assert!(ptr.len() == instances.len() + 1, "{} ends for {} instances", ptr.len(), instances.len());
        assert!(ptr[0] == 0 && ptr.is_sorted() && ptr[instances.len()] as usize == labels.len(), "lists {ptr:?}");
        let out = Self { instances, ptr, labels };
        for i in 0..out.len() {
            assert!(out.row(i).is_sorted_by(|a, b| a < b), "labels {:?} of instance {}", out.row(i), instances[i]);
        }
        out
    }

    /// Instances, and where the labels of each begin and end.
    pub(crate) fn parts(&self) -> (&'a [u32], &'a [u32], &'a [u32]) {
        (self.instances, self.ptr, self.labels)
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Numbers of the instances in the data that the batch was taken from.
    pub fn instances(&self) -> &'a [u32] {
        self.instances
    }

    /// True labels of the instance at position `i`, ascending and unique.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &'a [u32] {
        &self.labels[self.ptr[i] as usize..self.ptr[i + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_sparse::rows::TokenRows;
    use xc_sparse::{CsrMatrix, LabelRows};

    #[test]
    fn a_batch_shows_its_rows_by_instance_and_by_feature() {
        let x = CsrMatrix::from_checked((3, 9), vec![0, 2, 2, 3], vec![2, 7, 2], vec![0.5, 1.0, 2.0]);
        let y = LabelRows::from_lists([&[1u32, 3][..], &[], &[0]].map(<[u32]>::to_vec), 4).unwrap();
        let examples = Examples::try_new(Rows::Sparse(x.view()), &y).unwrap();
        let mut batch = Batch::default();
        batch.fill(&examples, &[2, 0]);
        assert_eq!((batch.len(), batch.width(), batch.instances()), (2, 9, &[2, 0][..]));
        assert!(batch.dense().is_none());
        assert_eq!((batch.row(1).indices(), batch.row(1).values()), (&[2, 7][..], &[0.5, 1.0][..]));
        let entries = batch.by_feature();
        assert_eq!(entries.rows(), [2, 7]);
        assert_eq!(entries.of(0), (&[0, 1][..], &[2.0, 0.5][..]));
        assert_eq!((batch.targets().row(0), batch.targets().row(1)), (&[0][..], &[1, 3][..]));
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let examples = Examples::try_new(Rows::Dense(DenseRows::new(&values, 2)), &y).unwrap();
        batch.fill(&examples, &[1, 2]);
        assert_eq!(batch.dense().unwrap().values(), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!(batch.targets().instances(), [1, 2]);
    }

    #[test]
    fn a_batch_of_tokens_keeps_their_order_and_knows_the_places_of_each() {
        let tokens = TokenRows::try_new(vec![4, 1, 4, 0, 1], vec![3, 3, 5], 5).unwrap();
        let y = LabelRows::from_lists([[0u32], [0], [1]], 2).unwrap();
        let examples = Examples::try_new(Rows::Tokens(tokens.view()), &y).unwrap();
        let mut batch = Batch::default();
        batch.fill(&examples, &[2, 1, 0]);
        assert_eq!((batch.len(), batch.width()), (3, 5));
        assert_eq!(batch.tokens(), Some((&[0, 1, 4, 1, 4][..], &[0, 2, 2, 5][..])));
        let places = batch.by_feature();
        assert_eq!(places.rows(), [0, 1, 4]);
        assert_eq!(places.of(1), (&[1, 3][..], &[1.0, 1.0][..]));
        assert_eq!(places.of(2).0, [2, 4]);
        assert!(batch.words(0).is_none());
        let words = CsrMatrix::try_new((3, 9), vec![0, 1, 3, 3], vec![8, 0, 2], vec![1.0, 2.0, 3.0]).unwrap();
        let tokens = tokens.clone().with_words(words.clone()).unwrap();
        batch.fill_features(Rows::Tokens(tokens.view()), [1, 2, 0].into_iter());
        for (place, row) in [1, 2, 0].into_iter().enumerate() {
            assert_eq!(batch.words(place), Some(words.row(row)));
        }
        assert_eq!(batch.tokens(), Some((&[0, 1, 4, 1, 4][..], &[0, 0, 2, 5][..])));
        batch.fill_one(Row::tokens(&[3, 3]), 5);
        assert_eq!(batch.tokens(), Some((&[3, 3][..], &[0, 2][..])));
        assert!(batch.words(0).is_none());
        // What was filled with other rows holds no tokens.
        batch.fill_one(Row::Dense(&[0.5]), 1);
        assert!(batch.tokens().is_none());
    }

    #[test]
    #[should_panic(expected = "a token is not below 5")]
    fn a_token_past_the_vocabulary_is_refused() {
        Batch::default().fill_one(Row::tokens(&[5]), 5);
    }

    #[test]
    #[should_panic(expected = "labels [4, 4] of instance 7")]
    fn targets_that_are_not_ascending_are_refused() {
        Targets::new(&[7], &[0, 2], &[4, 4]);
    }

    #[test]
    #[should_panic(expected = "2 ends for 2 instances")]
    fn targets_of_another_number_of_instances_are_refused() {
        Targets::new(&[7, 8], &[0, 0], &[]);
    }
}
