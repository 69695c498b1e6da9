//! Which rows a model was trained on, kept in its folder.
//!
//! A row is known by a hash of what a query consists of (`xc_data::hash_row`): its text, or its features before any
//! weighting. Labels do not count. Models that weight or tokenise differently therefore agree on
//! which rows they share, and rows that are equal are one row: they are held out together.
//!
//! ```text
//!   training.rows          U64   hashes of the rows, ascending, each once
//!   training.label_counts  U32   rows that carry each label
//!   training.instances     U64   number of the rows, each time that they occur counted
//!   training.held_out      U32   numbers of the rows that were held out, ascending
//! ```
//!
//! # When not to use it
//! As a secret: whoever has a row can tell whether the model was trained on it.

use std::path::PathBuf;
use thiserror::Error;
use xc_sparse::LabelRows;
use xc_store::{Container, ContainerWriter, OpenError, WriteError};
use xxhash_rust::xxh3::Xxh3Default;

const ROWS: &str = "training.rows";
const LABEL_COUNTS: &str = "training.label_counts";
const INSTANCES: &str = "training.instances";
const HELD_OUT: &str = "training.held_out";

/// The rows that a model was trained on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainingRows {
    hashes: Vec<u64>,
    label_counts: Vec<u32>,
    n_instances: u64,
    held_out: Vec<u32>,
}

/// Why a folder's training rows cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainingRowsError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// Numbers out of order.
    #[error("{}: array {array}: number {at} is not above the one before it", path.display())]
    Order {
        /// The folder.
        path: PathBuf,
        /// The array.
        array: &'static str,
        /// Position in it.
        at: usize,
    },
}

impl TrainingRows {
    /// Of the hashes of all rows of a file, of which those with the numbers `kept` were learned
    /// from and those with the numbers `held_out` were not. `labels` are those of all rows, and
    /// behind them those of instances that are in no file, as texts of labels.
    ///
    /// # Panics
    /// If a number is no row, or there are more hashes than rows of labels.
    pub fn new(hashes: &[u64], labels: &LabelRows, kept: &[u32], held_out: Vec<u32>) -> Self {
        assert!(hashes.len() <= labels.len(), "{} hashes, {} rows of labels", hashes.len(), labels.len());
        let mut own: Vec<u64> = kept.iter().map(|&row| hashes[row as usize]).collect();
        own.sort_unstable();
        own.dedup();
        let mut label_counts = vec![0u32; labels.n_labels()];
        for &label in kept.iter().flat_map(|&row| labels.row(row as usize)) {
            label_counts[label as usize] += 1;
        }
        Self { hashes: own, label_counts, n_instances: kept.len() as u64, held_out }
    }

    /// A number that tells training sets apart: it follows from the instances and how often each label is true of them,
    /// whatever their order.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(&self.n_instances.to_le_bytes());
        self.hashes.iter().for_each(|row| hash.update(&row.to_le_bytes()));
        self.label_counts.iter().for_each(|count| hash.update(&count.to_le_bytes()));
        hash.digest()
    }

    /// The rows that a folder keeps; nothing where it keeps none.
    ///
    /// # Errors
    /// Arrays of another type, or out of order.
    pub fn read(container: &Container) -> Result<Option<Self>, TrainingRowsError> {
        if container.entry(ROWS).is_none() {
            return Ok(None);
        }
        let hashes = container.array::<u64>(ROWS)?.to_vec();
        let label_counts = container.array::<u32>(LABEL_COUNTS)?.to_vec();
        let n_instances = container.array::<u64>(INSTANCES)?.iter().sum();
        let held_out = match container.entry(HELD_OUT) {
            Some(_) => container.array::<u32>(HELD_OUT)?.to_vec(),
            None => Vec::new(),
        };
        let path = || container.folder().to_owned();
        if let Some(at) = not_rising(&hashes) {
            return Err(TrainingRowsError::Order { path: path(), array: ROWS, at });
        }
        match not_rising(&held_out) {
            Some(at) => Err(TrainingRowsError::Order { path: path(), array: HELD_OUT, at }),
            None => Ok(Some(Self { hashes, label_counts, n_instances, held_out })),
        }
    }

    /// Adds them to a container.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.add_slice(ROWS, &self.hashes)?;
        writer.add_slice(LABEL_COUNTS, &self.label_counts)?;
        writer.add_slice(INSTANCES, &[self.n_instances])?;
        if !self.held_out.is_empty() {
            writer.add_slice(HELD_OUT, &self.held_out)?;
        }
        Ok(())
    }

    /// Number of different rows.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether a row of this hash is among them.
    pub fn contains(&self, hash: u64) -> bool {
        self.hashes.binary_search(&hash).is_ok()
    }

    /// Number of rows, equal ones counted each time.
    pub fn n_instances(&self) -> usize {
        self.n_instances as usize
    }

    /// Rows that carry each label.
    pub fn label_counts(&self) -> &[u32] {
        &self.label_counts
    }

    /// Numbers of the rows of the training file that were held out.
    pub fn held_out(&self) -> &[u32] {
        &self.held_out
    }

    /// The rows of parts of a model that were trained apart, for `n_labels` labels. Where the parts
    /// saw different rows, a label counts as often as in the part that saw it most.
    pub fn union(parts: &[Self], n_labels: usize) -> Self {
        let mut all = Self { label_counts: vec![0; n_labels], ..Self::default() };
        for part in parts {
            all.hashes.extend_from_slice(&part.hashes);
            all.n_instances = all.n_instances.max(part.n_instances);
            let counts = all.label_counts.iter_mut().zip(&part.label_counts);
            counts.for_each(|(most, &count)| *most = count.max(*most));
        }
        all.hashes.sort_unstable();
        all.hashes.dedup();
        // Rows that one part held out were seen by another that held out other rows.
        if let [first, others @ ..] = parts
            && others.iter().all(|part| part.held_out == first.held_out)
        {
            all.held_out.clone_from(&first.held_out);
        }
        all
    }
}

fn not_rising<T: PartialOrd>(values: &[T]) -> Option<usize> {
    values.windows(2).position(|pair| pair[0] >= pair[1]).map(|before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_store::OpenMode;

    #[test]
    fn rows_are_read_as_they_were_written_and_parts_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let labels = LabelRows::from_lists([vec![0u32, 2], vec![2], vec![1]], 4).unwrap();
        let rows = TrainingRows::new(&[9, 4, 9], &labels, &[0, 2], vec![1]);
        assert_eq!((rows.len(), rows.label_counts(), rows.held_out()), (1, &[1, 1, 1, 0][..], &[1][..]));
        assert_eq!(rows.n_instances(), 2);
        assert!(rows.contains(9) && !rows.contains(4));
        let path = folder.path().join("m");
        let mut writer = ContainerWriter::create(&path, "other").unwrap();
        rows.write(&mut writer).unwrap();
        writer.finish().unwrap();
        let container = Container::open(&path, OpenMode::Map).unwrap();
        assert_eq!(TrainingRows::read(&container).unwrap().unwrap(), rows);

        let other = TrainingRows::new(&[9, 4, 9], &labels, &[0, 1, 2], vec![]);
        let both = TrainingRows::union(&[rows.clone(), other], 5);
        assert_eq!((both.len(), both.label_counts(), both.held_out()), (2, &[1, 1, 2, 0, 0][..], &[][..]));
        assert_eq!(TrainingRows::union(&[rows.clone(), rows.clone()], 4), rows);

        let mut writer = ContainerWriter::create(&path, "other").unwrap();
        writer.add_slice(ROWS, &[7u64, 7]).unwrap();
        writer.add_slice(LABEL_COUNTS, &[0u32]).unwrap();
        writer.add_slice(INSTANCES, &[2u64]).unwrap();
        writer.finish().unwrap();
        let error = TrainingRows::read(&Container::open(&path, OpenMode::Map).unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("array training.rows: number 1 is not above the one before it"), "{error}");
    }
}
