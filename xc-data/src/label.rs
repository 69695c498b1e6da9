//! Labels by id or by name, and the dictionary between them.

use super::error::{ReadErrorKind, Snippet};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;
use xc_buffer::is_control;
use xc_sparse::rows::LabelRows;
use xxhash_rust::xxh3::Xxh3Builder;

/// What is expected where a label's name has a control character ([`is_control`]).
pub(crate) const PRINTABLE: &str = "a printable label name, without control characters";

/// A label in a text format.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelRef {
    /// By number.
    Id(u32),
    /// By name.
    Name(String),
}

/// How labels that are written as text (fastText, CSV, TSV, strings of JSONL that are split) are
/// interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelStrings {
    /// As names, even if they consist of digits.
    #[default]
    Names,
    /// As numbers.
    Ids,
}

/// Names of labels: the name of label `i` is `names()[i]`.
#[derive(Clone, Debug, Default)]
pub struct LabelNames {
    names: Vec<String>,
    ids: HashMap<String, u32, Xxh3Builder>,
    /// Where they were read, for messages.
    file: Option<Box<str>>,
}

/// A label name that occurs twice in a list.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("label name {name:?} is given twice, at {first} and {second}")]
pub struct RepeatedName {
    /// The name.
    pub name: String,
    /// Its first position.
    pub first: usize,
    /// Its second position.
    pub second: usize,
}

impl PartialEq for LabelNames {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl LabelNames {
    /// Numbers the names in the given order.
    ///
    /// # Errors
    /// A repeated name.
    pub fn try_new(names: Vec<String>) -> Result<Self, RepeatedName> {
        let mut ids = HashMap::with_capacity_and_hasher(names.len(), Xxh3Builder::new());
        for (i, name) in names.iter().enumerate() {
            if let Some(first) = ids.insert(name.clone(), i as u32) {
                return Err(RepeatedName { name: name.clone(), first: first as usize, second: i });
            }
        }
        Ok(Self { names, ids, file: None })
    }

    /// The same names, as those of a file, which messages name.
    pub fn of_file(self, file: &str) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// All names in order of their ids.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the names.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if there is no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The file that they were read from, if any.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// What is wrong about a label that has no name.
    pub(crate) fn has_no_name(&self, label: u32) -> ReadErrorKind {
        let file = self.file.clone().unwrap_or_else(|| "the list of names".into());
        ReadErrorKind::NoName { label, file, names: self.len() }
    }

    /// What is wrong about a name that no label has.
    pub fn has_no_label(&self, name: &str) -> ReadErrorKind {
        ReadErrorKind::UnknownLabel { got: Snippet::new(name.as_bytes()), known: self.len(), file: self.file.clone() }
    }

    /// Id of a name: as it is written, or else without blanks at its ends.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).or_else(|| self.ids.get(name.trim())).copied()
    }
}

/// What to do with a label name that the given dictionary does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownLabels {
    /// Report it as an error.
    #[default]
    Refuse,
    /// Number unknown names after the known ones, in ascending order: the true labels of an evaluation
    /// include labels that no model can predict.
    Append,
    /// Leave them out.
    Drop,
}

/// Collects the label lists of instances and numbers their names.
///
/// Without a given dictionary, names are numbered in ascending byte order, so that ids do not depend on
/// the order of the instances. Instances by id and instances by name cannot be mixed.
#[derive(Debug, Default)]
pub struct LabelCollector {
    known: Arc<LabelNames>,
    given: bool,
    unknown: UnknownLabels,
    fresh: HashMap<String, u32, Xxh3Builder>,
    form: Option<Form>,
    indptr: Vec<usize>,
    ids: Vec<u32>,
    max_id: Option<u32>,
    below: Option<u64>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Ids,
    Names,
}

/// Label lists, numbered.
#[derive(Clone, Debug)]
pub struct CollectedLabels {
    /// One list per instance.
    pub labels: LabelRows,
    /// Names in order of the ids, if the source named its labels or a dictionary was given.
    pub names: Option<Vec<String>>,
    /// Number of different names that a given dictionary did not have (appended); 0 without a
    /// dictionary.
    pub n_appended: usize,
    /// Number of dropped label entries.
    pub n_dropped: u64,
}

impl LabelCollector {
    /// Numbers names by a dictionary that is built from them.
    pub fn new() -> Self {
        Self { indptr: vec![0], ..Self::default() }
    }

    /// Numbers names by a given dictionary.
    pub fn with_names(known: impl Into<Arc<LabelNames>>, unknown: UnknownLabels) -> Self {
        Self { known: known.into(), given: true, unknown, ..Self::new() }
    }

    /// Rejects ids at or above `n_labels`.
    pub fn with_bound(mut self, n_labels: Option<usize>) -> Self {
        self.below = n_labels.map(|n| n as u64);
        self
    }

    /// Number of instances so far.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// True before the first instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one instance.
    ///
    /// # Errors
    /// A name among ids or an id among names; an unknown name under [`UnknownLabels::Refuse`], or one
    /// with a control character; an id out of bounds.
    pub fn push(&mut self, labels: &[LabelRef]) -> Result<(), ReadErrorKind> {
        for label in labels {
            let form = match label {
                LabelRef::Id(_) => Form::Ids,
                LabelRef::Name(_) => Form::Names,
            };
            if *self.form.get_or_insert(form) != form {
                let (got, expected) = match label {
                    LabelRef::Id(id) => (Snippet::bare(&id.to_string()), "a label name, as in the labels before"),
                    LabelRef::Name(name) => (Snippet::new(name.as_bytes()), "a label id, as in the labels before"),
                };
                return Err(ReadErrorKind::Malformed { got, expected });
            }
            match label {
                LabelRef::Id(id) => self.push_id(*id)?,
                LabelRef::Name(name) => self.push_name(name)?,
            }
        }
        self.indptr.push(self.ids.len());
        Ok(())
    }

    fn push_id(&mut self, id: u32) -> Result<(), ReadErrorKind> {
        use super::error::{Bound, BoundFrom};
        if let Some(below) = self.below.filter(|&below| u64::from(id) >= below) {
            let bound = Bound { below, from: BoundFrom::Caller };
            return Err(ReadErrorKind::OutOfRange { what: "label", got: u64::from(id), bound });
        }
        let is_named = (id as usize) < self.known.len();
        if self.given && self.below.is_none() && self.unknown == UnknownLabels::Refuse && !is_named {
            return Err(self.known.has_no_name(id));
        }
        if self.given && self.unknown == UnknownLabels::Drop && id as usize >= self.known.len() {
            self.dropped += 1;
            return Ok(());
        }
        self.max_id = self.max_id.max(Some(id));
        self.ids.push(id);
        Ok(())
    }

    fn push_name(&mut self, name: &str) -> Result<(), ReadErrorKind> {
        if let Some(id) = self.known.id(name) {
            self.ids.push(id);
            return Ok(());
        }
        if self.given {
            match self.unknown {
                UnknownLabels::Refuse => {
                    return Err(self.known.has_no_label(name));
                }
                UnknownLabels::Drop => {
                    self.dropped += 1;
                    return Ok(());
                }
                UnknownLabels::Append => {}
            }
        }
        if name.contains(is_control) {
            let got = Snippet::new(name.as_bytes());
            return Err(ReadErrorKind::Malformed { got, expected: PRINTABLE });
        }
        // Fresh names are numbered after the known ones in the order found, and renumbered
        // at the end.
        let id = match self.fresh.get(name) {
            Some(&id) => id,
            None => {
                let next = (self.known.len() + self.fresh.len()) as u64;
                let id =
                    u32::try_from(next).ok().filter(|&id| id < u32::MAX).ok_or_else(|| ReadErrorKind::Malformed {
                        got: Snippet::new(name.as_bytes()),
                        expected: "at most 4294967295 different label names",
                    })?;
                self.fresh.insert(name.to_owned(), id);
                id
            }
        };
        self.ids.push(id);
        Ok(())
    }

    /// Numbers the names and returns the lists. *Cost*: O(entries + names log names).
    pub fn finish(mut self) -> CollectedLabels {
        let n_known = self.known.len();
        let n_fresh = self.fresh.len();
        let mut fresh: Vec<(String, u32)> = self.fresh.into_iter().collect();
        fresh.sort_unstable();
        let mut renumbered = vec![0u32; n_fresh];
        for (rank, (_, id)) in fresh.iter().enumerate() {
            renumbered[*id as usize - n_known] = (n_known + rank) as u32;
        }
        for id in &mut self.ids {
            if let Some(fresh) = (*id as usize).checked_sub(n_known).and_then(|i| renumbered.get(i)) {
                *id = *fresh;
            }
        }
        let from_ids = self.max_id.map_or(0, |id| id as usize + 1);
        let n_labels = from_ids.max(n_known + n_fresh).max(self.below.map_or(0, |b| b as usize));
        let named = self.given || n_fresh > 0;
        let names = named.then(|| {
            let mut names = Arc::unwrap_or_clone(self.known).into_names();
            names.extend(fresh.into_iter().map(|(name, _)| name));
            names
        });
        let lists = self.indptr.windows(2).map(|w| &self.ids[w[0]..w[1]]);
        // Every id is below n_labels by construction, and from_lists sorts.
        let labels = LabelRows::from_lists(lists, n_labels).expect("ids were bounded while collected");
        CollectedLabels { labels, names, n_appended: if self.given { n_fresh } else { 0 }, n_dropped: self.dropped }
    }
}
