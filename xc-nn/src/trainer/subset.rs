//! Which instances are learned from, in which order, and the thread that gathers them.

use crate::{Batch, Examples};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::Scope;
use xc_hash::stream::{Order, Purpose, Stream, name};

/// Some rows of examples.
#[derive(Clone, Debug)]
pub struct Subset<'a> {
    examples: Examples<'a>,
    rows: Vec<u32>,
    label_texts: Option<u32>,
    of_texts: bool,
}

impl<'a> Subset<'a> {
    /// All rows.
    pub fn all(examples: Examples<'a>) -> Self {
        Self { examples, rows: (0..examples.len() as u32).collect(), label_texts: None, of_texts: false }
    }

    /// The rows with these numbers, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn some(examples: Examples<'a>, rows: Vec<u32>) -> Self {
        assert!(rows.iter().all(|&row| (row as usize) < examples.len()), "a row is not below {}", examples.len());
        Self { examples, rows, label_texts: None, of_texts: false }
    }

    /// Parts rows at random: one for training, one that holds `fraction` of the rows (rounded to
    /// the nearest) to validate by. Each keeps the order of the rows.
    ///
    /// # Panics
    /// If `fraction` is not in [0, 1].
    pub fn split(examples: Examples<'a>, fraction: f64, seed: u64) -> (Self, Self) {
        Self::all(examples).hold_out(fraction, seed)
    }

    /// The rows from `first` on are texts of labels: row `first + l` that of label `l`.
    pub fn with_label_texts(self, first: Option<u32>) -> Self {
        Self { label_texts: first, ..self }
    }

    /// The first row that is the text of a label, where there are any.
    pub fn label_texts(&self) -> Option<u32> {
        self.label_texts
    }

    /// The rows are features of texts: one without a feature is a text without a known word, which has no
    /// answer, and counts so in validation.
    pub fn with_texts(self, of_texts: bool) -> Self {
        Self { of_texts, ..self }
    }

    /// Whether a row has no answer, whatever the network makes of it.
    pub fn is_unanswered(&self, row: u32) -> bool {
        let row = row as usize;
        self.of_texts && self.examples.features().row(row).sparse().is_ok_and(|row| row.indices().is_empty())
    }

    /// As [`Subset::split`], of these rows. Texts of labels are never held out.
    ///
    /// # Panics
    /// If `fraction` is not in [0, 1].
    pub fn hold_out(self, fraction: f64, seed: u64) -> (Self, Self) {
        assert!((0.0..=1.0).contains(&fraction), "fraction {fraction}, expected 0 to 1");
        let Self { examples, rows, label_texts, of_texts } = self;
        let is_instance = |row: &u32| label_texts.is_none_or(|first| *row < first);
        let (mut rows, texts): (Vec<u32>, Vec<u32>) = rows.into_iter().partition(is_instance);
        Stream::new(name(seed, Purpose::Split, &[0])).shuffle(&mut rows);
        let mut train = rows.split_off((rows.len() as f64 * fraction).round() as usize);
        train.extend(texts);
        rows.sort_unstable();
        train.sort_unstable();
        let held_out = Self { examples, rows, label_texts: None, of_texts };
        (Self { examples, rows: train, label_texts, of_texts }, held_out)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The examples.
    pub fn examples(&self) -> &Examples<'a> {
        &self.examples
    }

    /// The rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

/// Order of the rows in an epoch: which of them is at each position.
pub(super) fn order(subset: &Subset<'_>, seed: u64, epoch: u32) -> Order {
    Order::new(subset.rows.len() as u64, name(seed, Purpose::Order, &[u64::from(epoch)]))
}

/// Gathers the batches of an epoch, one after the other.
pub(super) struct Gather<'a> {
    subset: &'a Subset<'a>,
    order: Order,
    batch_size: u64,
    number: u64,
    rows: Vec<u32>,
}

impl Gather<'_> {
    /// Number of batches to come.
    fn n_left(&self) -> u64 {
        self.order.len().div_ceil(self.batch_size).saturating_sub(self.number)
    }

    /// The next batch, in the buffers of another one.
    fn next(&mut self, mut batch: Batch) -> Option<Batch> {
        if self.n_left() == 0 {
            return None;
        }
        let begin = self.number * self.batch_size;
        let positions = begin..self.order.len().min(begin + self.batch_size);
        self.rows.clear();
        self.rows.extend(positions.map(|position| self.subset.rows[self.order.at(position) as usize]));
        batch.fill(&self.subset.examples, &self.rows);
        self.number += 1;
        Some(batch)
    }
}

/// Epochs of fewer batches gather them between the steps: starting a thread takes longer than that.
const LEAST_AHEAD: u64 = 8;

/// Batches of an epoch. A thread of their own gathers them, at most two ahead, unless they are few.
pub(super) enum Batches<'a> {
    Ahead { filled: Receiver<Batch>, used: Sender<Batch> },
    Between { gather: Gather<'a>, used: Box<Batch> },
}

impl<'a> Batches<'a> {
    /// The batches of `order` from number `first` on.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        subset: &'a Subset<'a>,
        order: Order,
        batch_size: usize,
        first: usize,
    ) -> Self {
        let (batch_size, number) = (batch_size as u64, first as u64);
        let mut gather = Gather { subset, order, batch_size, number, rows: Vec::new() };
        if gather.n_left() < LEAST_AHEAD {
            return Self::Between { gather, used: Box::default() };
        }
        let (send, filled) = sync_channel(2);
        let (used, returned) = channel();
        scope.spawn(move || {
            while let Some(batch) = gather.next(returned.try_recv().unwrap_or_default()) {
                // Nobody takes more: training has stopped.
                if send.send(batch).is_err() {
                    return;
                }
            }
        });
        Self::Ahead { filled, used }
    }

    /// The next batch, or nothing at the end of the epoch.
    pub(super) fn next(&mut self) -> Option<Batch> {
        match self {
            Self::Ahead { filled, .. } => filled.recv().ok(),
            Self::Between { gather, used } => gather.next(std::mem::take(&mut **used)),
        }
    }

    /// Gives a batch's buffers back.
    pub(super) fn recycle(&mut self, batch: Batch) {
        match self {
            // At the end of an epoch nobody wants it.
            Self::Ahead { used, .. } => drop(used.send(batch)),
            Self::Between { used, .. } => **used = batch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DenseRows;
    use crate::Rows;
    use xc_sparse::LabelRows;

    #[test]
    fn a_split_parts_all_rows_and_an_order_permutes_them() {
        let targets = LabelRows::from_lists((0..101u32).map(|i| [i % 3]), 3).unwrap();
        let values: Vec<f32> = (0..101).map(|i| i as f32).collect();
        let examples = Examples::try_new(Rows::Dense(DenseRows::new(&values, 1)), &targets).unwrap();
        let (train, validation) = Subset::split(examples, 0.2, 5);
        assert_eq!(validation.rows().len(), 20);
        let mut all = [train.rows(), validation.rows()].concat();
        all.sort_unstable();
        assert_eq!(all, Subset::all(examples).rows());
        assert_ne!(Subset::split(examples, 0.2, 6).1.rows(), validation.rows());
        let rows = |epoch| -> Vec<u32> {
            let order = order(&train, 1, epoch);
            (0..order.len()).map(|position| train.rows()[order.at(position) as usize]).collect()
        };
        let (first, second) = (rows(0), rows(1));
        assert_ne!(first, second);
        assert_eq!(first, rows(0));
        let mut sorted = second.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, train.rows());
        // Batches are what the order says, from any one on, of 81 rows: gathered ahead, between the steps, none left.
        for (size, from) in [(8, 0), (8, 3), (8, 10), (8, 11), (81, 0), (100, 0)] {
            std::thread::scope(|scope| {
                let mut batches = Batches::start(scope, &train, order(&train, 1, 0), size, from);
                let is_ahead = 81_usize.div_ceil(size).saturating_sub(from) as u64 >= LEAST_AHEAD;
                assert_eq!(matches!(batches, Batches::Ahead { .. }), is_ahead);
                let mut got = Vec::new();
                while let Some(batch) = batches.next() {
                    assert!(batch.len() <= size);
                    got.extend(batch.dense().unwrap().values().iter().map(|&v| v as u32));
                    batches.recycle(batch);
                }
                assert_eq!(got, first[(size * from).min(81)..]);
            });
        }
    }
}
