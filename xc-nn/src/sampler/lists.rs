//! How lists are made: the streams that they are drawn from, and one list per batch or per
//! instance.

use super::{Candidates, Lists, Queries};
use crate::{Step, StepError};
use rayon::prelude::*;
use xc_hash::stream::{Purpose, name};

/// The sampler that draws: no two samplers of a step share a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    Drawn = 1,
    Mixture = 2,
    Lsh = 3,
    Midx = 4,
    Codewords = 5,
}

impl Who {
    /// The stream of the list that a step's batch shares.
    pub(super) fn of_step(self, at: Step) -> u64 {
        name(at.seed, Purpose::Negatives, &[self as u64, 0, at.number])
    }

    /// The stream of an instance in an epoch; it does not depend on the batch or on the place in
    /// it.
    pub(super) fn of_instance(self, at: Step, instance: u32) -> u64 {
        name(at.seed, Purpose::Negatives, &[self as u64, 1, u64::from(at.epoch), u64::from(instance)])
    }
}

/// A list under construction: labels ascending and unique.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) labels: Vec<u32>,
    /// Weight and log q of each label.
    pub(super) corrections: Vec<(f32, f32)>,
}

impl List {
    pub(super) fn push(&mut self, label: u32, correction: (f32, f32)) {
        self.labels.push(label);
        self.corrections.push(correction);
    }

    /// Sorts the labels, removes duplicates, and gives all of them weight 1 and log q 0.
    pub(super) fn make_exact(&mut self) {
        self.labels.sort_unstable();
        self.labels.dedup();
        self.corrections.clear();
        self.corrections.resize(self.labels.len(), (1.0, 0.0));
    }

    /// Makes the list exact, and adds it to `out`.
    pub(super) fn end_exact(mut self, out: &mut Candidates) {
        self.make_exact();
        self.end(out);
    }

    pub(super) fn end(&self, out: &mut Candidates) {
        let corrected = self.labels.iter().zip(&self.corrections);
        corrected.for_each(|(&label, &(weight, log_q))| out.push(label, weight, log_q));
        out.end_list();
    }
}

/// Makes one list for the batch, or one per instance in parallel. `make` gets the name of the
/// list's stream and the place of its instance.
pub(super) fn make_lists(
    lists: Lists,
    (at, who): (Step, Who),
    queries: Queries<'_>,
    out: &mut Candidates,
    make: impl Fn(u64, Option<usize>, &mut List) -> Result<(), StepError> + Sync,
) -> Result<(), StepError> {
    match lists {
        Lists::Shared => {
            let mut list = List::default();
            make(who.of_step(at), None, &mut list)?;
            list.end(out);
        }
        Lists::Own => {
            own_lists(queries.instances.len(), out, |place, list| {
                make(who.of_instance(at, queries.instances[place]), Some(place), list)
            })?;
        }
    }
    Ok(())
}

/// Makes lists of labels that are selected, not drawn, with weight 1 and log q 0. `add` appends the
/// labels of one of the `n` places.
pub(super) fn exact_lists(
    lists: Lists,
    n: usize,
    out: &mut Candidates,
    add: impl Fn(usize, &mut Vec<u32>) + Sync,
) -> Result<(), StepError> {
    match lists {
        Lists::Shared => {
            let mut list = List::default();
            (0..n).for_each(|place| add(place, &mut list.labels));
            list.end_exact(out);
            Ok(())
        }
        Lists::Own => own_lists(n, out, |place, list| {
            add(place, &mut list.labels);
            list.make_exact();
            Ok(())
        }),
    }
}

/// Makes a list for each of `n` places.
pub(super) fn own_lists(
    n: usize,
    out: &mut Candidates,
    make: impl Fn(usize, &mut List) -> Result<(), StepError> + Sync,
) -> Result<(), StepError> {
    let mut made: Vec<List> = Vec::new();
    made.resize_with(n, List::default);
    made.par_iter_mut().enumerate().try_for_each(|(place, list)| make(place, list))?;
    made.iter().for_each(|list| list.end(out));
    Ok(())
}

/// Labels that are true of any instance, ascending.
pub(super) fn positives(queries: Queries<'_>) -> Vec<u32> {
    let mut all: Vec<u32> = (0..queries.targets.len()).flat_map(|i| queries.targets.row(i)).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
