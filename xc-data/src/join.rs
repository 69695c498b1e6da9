//! Two files that both say which row is which: rows of the second are found by the ids of the first.

use super::ids::{RowId, RowIds};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use thiserror::Error;

/// What a row of the first file without a row in the second is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// An error.
    Refused,
    /// A row without anything in the second.
    Empty,
}

/// Why rows cannot be matched by their ids.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The second file lacks an id.
    #[error("no row has the id {id:?} of instance {row}; one for each instance is expected")]
    Missing {
        /// The id, as text.
        id: String,
        /// Number of the row in the first file, from 0.
        row: usize,
    },
    /// The second file has an id twice.
    #[error(
        "line {second}: the id {id:?} again, after line {first}; rows in another order or number than the instances are \
         found by their ids, and each is expected once"
    )]
    Repeated {
        /// The id, as text.
        id: String,
        /// Line of the first row that has it.
        first: u64,
        /// Line of the second one.
        second: u64,
    },
    /// A row of the first file says nothing.
    #[error(
        "an id is absent for instance {row}; rows in another order or number than the instances are found by their ids, \
         and one for each is expected"
    )]
    NoId {
        /// Number of the row in the first file, from 0.
        row: usize,
    },
}

/// Finds the rows of a second file that belong to those of a first, which are given one by one.
///
/// While both files have the same ids in the same order, rows belong together by their number, and ids may occur several
/// times or be absent. From the first difference on they are found by id, as text: each id of the first file is expected once
/// in the second, whose further rows are left out. Where one of the files has no ids, numbers decide.
///
/// *Cost*: from the first difference on O(1) a row, and a table of all ids of the second file.
#[derive(Debug)]
pub struct Join {
    second: RowIds,
    n_second: usize,
    unmatched: Unmatched,
    /// Rows of the first file that were given, those before the first one included.
    n_first: usize,
    /// Of the rows that were paired by number: the first, and whether ids of some were compared.
    begin: usize,
    is_compared: bool,
    /// The first pair of which one has no id.
    gap: Option<usize>,
    by_id: Option<ById>,
}

#[derive(Debug)]
struct ById {
    rows: HashMap<Box<str>, Places>,
    used: Vec<bool>,
}

/// Where an id stands in the second file: the first row and the second one.
#[derive(Clone, Copy, Debug)]
struct Places {
    first: usize,
    second: Option<usize>,
}

/// How the rows of both files belonged together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Whether ids said so; else their numbers alone did, and it is the caller's to ask for equally many.
    pub by_ids: bool,
    /// Whether the order was another one.
    pub is_reordered: bool,
    /// Rows of the second file that no row of the first asked for.
    pub left_out: usize,
}

impl Join {
    /// For a second file of `n_second` rows.
    ///
    /// # Panics
    /// If there are ids, and not one a row.
    pub fn new(second: RowIds, n_second: usize, unmatched: Unmatched) -> Self {
        assert!(second.ids.is_empty() || second.ids.len() == n_second, "an id for each of {n_second} rows");
        Self { second, n_second, unmatched, n_first: 0, begin: 0, is_compared: false, gap: None, by_id: None }
    }

    /// Begins with this row of the first file, from 0.
    pub fn begin_at(&mut self, row: usize) {
        (self.n_first, self.begin) = (row, row);
    }

    /// Whether the second file says which row is which.
    pub fn has_ids(&self) -> bool {
        !self.second.ids.is_empty()
    }

    /// Whether rows are found by their ids, no longer by their numbers.
    pub fn is_by_id(&self) -> bool {
        self.by_id.is_some()
    }

    /// The row of the second file that belongs to the next row of the first. Numbers beyond its rows are given where
    /// numbers decide.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn next(&mut self, id: Option<&RowId>) -> Result<Option<usize>, JoinError> {
        let at = self.n_first;
        self.n_first += 1;
        if self.by_id.is_none() {
            if self.second.ids.is_empty() {
                return Ok(Some(at));
            }
            match (id, self.second.ids.get(at)) {
                (Some(id), Some(Some(other))) if id == other || id.text() == other.text() => {
                    self.is_compared = true;
                    return Ok(Some(at));
                }
                (None, _) | (_, Some(None)) => {
                    self.gap = self.gap.or(Some(at));
                    return Ok(Some(at));
                }
                (Some(_), _) => self.find_by_id(at)?,
            }
        }
        let Some(id) = id else { return Err(JoinError::NoId { row: at }) };
        let by_id = self.by_id.as_mut().unwrap_or_else(|| unreachable!("made above"));
        match by_id.rows.get(&*id.text()) {
            Some(&Places { second: Some(second), first }) => Err(self.repeated(&id.text(), first, second)),
            Some(&Places { first, .. }) => {
                by_id.used[first] = true;
                Ok(Some(first))
            }
            None if self.unmatched == Unmatched::Empty => Ok(None),
            None => Err(JoinError::Missing { id: id.text().into_owned(), row: at }),
        }
    }

    /// After the last row of the first file.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn finish(&mut self) -> Result<Joined, JoinError> {
        let left_out = self.n_second.saturating_sub(self.n_first);
        if self.by_id.is_none() && self.is_compared && left_out > 0 {
            // Rows by number are those by id only where no id occurs again further down.
            self.find_by_id(self.n_first)?;
            return Ok(Joined { by_ids: true, is_reordered: false, left_out });
        }
        Ok(match &self.by_id {
            None => {
                let by_ids = self.is_compared && self.n_first <= self.n_second;
                Joined { by_ids, is_reordered: false, left_out }
            }
            Some(by_id) => {
                let left_out = by_id.used.iter().filter(|&&used| !used).count();
                Joined { by_ids: true, is_reordered: true, left_out }
            }
        })
    }

    /// Makes the table of ids; the pairs before `end` stay as they are, which asks for ids that occur once.
    fn find_by_id(&mut self, end: usize) -> Result<(), JoinError> {
        if let Some(row) = self.gap {
            return Err(JoinError::NoId { row });
        }
        let mut rows: HashMap<Box<str>, Places> = HashMap::with_capacity(self.n_second);
        for (row, id) in self.second.ids.iter().enumerate() {
            let Some(id) = id else { continue };
            match rows.entry(id.text().into()) {
                Entry::Vacant(entry) => {
                    entry.insert(Places { first: row, second: None });
                }
                Entry::Occupied(mut entry) => {
                    let places = entry.get_mut();
                    places.second = places.second.or(Some(row));
                }
            }
        }
        let mut used = vec![false; self.n_second];
        for (row, used) in used.iter_mut().enumerate().take(end.min(self.n_second)).skip(self.begin) {
            let id = self.second.ids[row].as_ref().map(RowId::text).unwrap_or_default();
            if let Some(&Places { first, second: Some(second) }) = rows.get(&*id) {
                return Err(self.repeated(&id, first, second));
            }
            *used = true;
        }
        self.by_id = Some(ById { rows, used });
        Ok(())
    }

    fn repeated(&self, id: &str, first: usize, second: usize) -> JoinError {
        let line = |row: usize| self.second.lines.get(row).copied().unwrap_or(row as u64 + 1);
        JoinError::Repeated { id: id.to_owned(), first: line(first), second: line(second) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(texts: &[Option<u8>]) -> RowIds {
        RowIds { ids: texts.iter().map(|id| id.map(|id| RowId::of_text(&id.to_string()))).collect(), lines: Vec::new() }
    }

    fn joined(
        first: &[Option<u8>],
        second: &[Option<u8>],
        unmatched: Unmatched,
    ) -> Result<(Vec<Option<usize>>, Joined), JoinError> {
        let (first, second) = (ids(first), ids(second));
        let mut join = Join::new(second.clone(), second.ids.len(), unmatched);
        let rows = first.ids.iter().map(|id| join.next(id.as_ref())).collect::<Result<_, _>>()?;
        join.finish().map(|joined| (rows, joined))
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_same_number_or_of_the_same_id(
            first in prop::collection::vec(prop::option::weighted(0.95, 0u8..9), 0..7),
            second in prop_oneof![
                prop::collection::vec(prop::option::weighted(0.95, 0u8..9), 0..12),
                Just((0u8..9).map(Some).collect::<Vec<_>>()).prop_shuffle(),
            ],
            like in any::<bool>(), unmatched in prop_oneof![Just(Unmatched::Refused), Just(Unmatched::Empty)],
        ) {
            let second = if like { [first.clone(), second].concat() } else { second };
            let by_number: Vec<_> = (0..first.len()).map(Some).collect();
            let agree = first.len() <= second.len()
                && first.iter().zip(&second).all(|(a, b)| a.is_none() || b.is_none() || a == b);
            let places = |id| second.iter().enumerate().filter(move |&(_, other)| *other == Some(id)).map(|(row, _)| row);
            match joined(&first, &second, unmatched) {
                Ok((rows, found)) if !found.is_reordered => {
                    prop_assert_eq!(&rows, &by_number);
                    // Nothing to compare, or the same ids, of which those that are left out are others.
                    prop_assert!(!found.by_ids || agree);
                    prop_assert!(!found.by_ids || first.len() == second.len()
                        || first.iter().all(|id| places(id.unwrap()).count() == 1));
                    prop_assert_eq!(found.left_out, second.len().saturating_sub(first.len()));
                }
                Ok((rows, found)) => {
                    prop_assert!(!agree);
                    for (id, row) in first.iter().zip(&rows) {
                        let of: Vec<usize> = places(id.unwrap()).collect();
                        prop_assert!(of.len() == 1 || unmatched == Unmatched::Empty && of.is_empty());
                        prop_assert_eq!(*row, of.first().copied());
                    }
                    let used = (0..second.len()).filter(|row| rows.contains(&Some(*row))).count();
                    prop_assert_eq!(found.left_out, second.len() - used);
                }
                Err(JoinError::NoId { row }) => {
                    prop_assert!(first[row].is_none() || second.get(row).is_some_and(Option::is_none));
                }
                Err(JoinError::Missing { id, row }) => {
                    prop_assert_eq!(unmatched, Unmatched::Refused);
                    prop_assert_eq!(&first[row].unwrap().to_string(), &id);
                    prop_assert_eq!(places(first[row].unwrap()).count(), 0);
                }
                Err(JoinError::Repeated { id, first: one, second: two }) => {
                    let id: u8 = id.parse().unwrap();
                    prop_assert!(first.contains(&Some(id)));
                    prop_assert_eq!(places(id).take(2).map(|row| row as u64 + 1).collect::<Vec<_>>(), vec![one, two]);
                }
            }
        }
    }

    #[test]
    fn equal_sequences_pass_with_what_they_repeat_and_lack() {
        let same = [Some(1), None, Some(1), Some(2)];
        let by_ids = Joined { by_ids: true, is_reordered: false, left_out: 0 };
        assert_eq!(joined(&same, &same, Unmatched::Refused).unwrap(), ((0..4).map(Some).collect(), by_ids));
        // A catalogue that is larger.
        let (rows, found) = joined(&[Some(3), Some(1)], &[Some(1), Some(2), Some(3)], Unmatched::Refused).unwrap();
        assert_eq!((rows, found.left_out), (vec![Some(2), Some(0)], 1));
    }
}
