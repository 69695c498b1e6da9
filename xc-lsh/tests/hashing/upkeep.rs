//! Upkeep of tables against tables that were built anew, its bounds, and its way through a checkpoint.

use crate::draws::{normals, params};
use proptest::prelude::*;
use std::borrow::Cow;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::Tables;
use xc_lsh::upkeep::{RebuildSchedule, UpkeepCounts, UpkeepState, UpkeepStateError};
use xc_lsh::{Family, FamilyKind, HashError, KeyScratch, Projection, Upkeep};

const WIDTH: usize = 6;

struct World {
    family: Box<dyn Family>,
    rows: Vec<f32>,
    tables: Tables,
    upkeep: Upkeep,
}

impl World {
    fn new(n: usize, schedule: RebuildSchedule) -> Self {
        let family = params(FamilyKind::SimHash { projection: Projection::Gaussian }, WIDTH, 4, 5, 1).build().unwrap();
        let rows = normals(&mut Stream::new(7), n * WIDTH);
        let tables = Tables::of_dense(&*family, DenseRows::new(&rows, WIDTH), &mut KeyScratch::default()).unwrap();
        Self { family, rows, tables, upkeep: Upkeep::new(schedule, n) }
    }

    /// Changes some rows, and notes it.
    fn change(&mut self, seed: u64, items: &[u32], by: f32) {
        let noise = normals(&mut Stream::new(seed), items.len() * WIDTH);
        for (&item, noise) in items.iter().zip(noise.chunks_exact(WIDTH)) {
            let row = &mut self.rows[item as usize * WIDTH..][..WIDTH];
            row.iter_mut().zip(noise).for_each(|(w, n)| *w += by * n);
            let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
            let (moved, length) = (by * length(noise), length(row));
            self.upkeep.note(item, moved, length);
        }
    }

    fn work(&mut self, step: u64) -> Result<UpkeepCounts, HashError> {
        let rows = &self.rows;
        self.upkeep.work(step, &mut self.tables, &*self.family, |items, out| gather(rows, items, out))
    }

    fn stale(&self) -> f64 {
        let rows = &self.rows;
        let gather = |items: &[u32], out: &mut Vec<f32>| gather(rows, items, out);
        self.upkeep.staleness(0, 1000, &self.tables, &*self.family, gather).unwrap().share()
    }

    fn built(&self) -> Tables {
        Tables::of_dense(&*self.family, DenseRows::new(&self.rows, WIDTH), &mut KeyScratch::default()).unwrap()
    }
}

fn gather(rows: &[f32], items: &[u32], out: &mut Vec<f32>) {
    items.iter().for_each(|&item| out.extend_from_slice(&rows[item as usize * WIDTH..][..WIDTH]));
}

#[test]
fn rebuilds_become_rarer_and_leave_tables_as_if_built_anew() {
    let mut world = World::new(50, RebuildSchedule::Rebuild { every: 4, growth: 2.0 });
    let mut at = Vec::new();
    for step in 0..64 {
        world.change(step, &[1, 7, 33], 1.0);
        let done = world.work(step).unwrap();
        assert_eq!((done.queue, done.changed_keys), (0, 0));
        if done.hashed > 0 {
            assert_eq!((done.hashed, done.sorted_tables), (50, 5));
            assert_eq!(world.tables.state(), world.built().state());
            assert_eq!(world.tables.stats(), world.built().stats());
            assert_eq!(world.stale(), 0.0);
            at.push(step + 1);
        }
    }
    // After 4 steps, 8 more, 16 more, 32 more.
    assert_eq!(at, [4, 12, 28, 60]);
}

#[test]
fn immediate_upkeep_is_never_stale_and_sorts_table_after_table() {
    let mut world = World::new(50, RebuildSchedule::Immediate { sort_every: 2 });
    let mut sorted = 0;
    for step in 0..10 {
        world.change(step, &[2, 3, step as u32 + 20], 0.5);
        let done = world.work(step).unwrap();
        assert_eq!((done.hashed, done.queue), (3, 0));
        assert_eq!(world.stale(), 0.0);
        sorted += done.sorted_tables;
    }
    assert_eq!(sorted, 5);
    // Two steps for each of five tables: what the last one changed waits in the others.
    assert_eq!(world.tables.state().keys, world.built().state().keys);
    let once_more = world.work(10).unwrap();
    assert_eq!((once_more.hashed, once_more.changed_keys), (0, 0));
}

#[test]
fn drift_hashes_what_moved_far_enough_and_no_more_than_allowed() {
    let mut world = World::new(200, RebuildSchedule::Drift { share: 0.5, per_step: 10, sort_every: 0 });
    let all: Vec<u32> = (0..200).collect();
    // A hundredth of the length: nobody is due.
    world.change(1, &all, 0.002);
    assert_eq!(world.work(0).unwrap(), UpkeepCounts::default());
    world.change(2, &all[50..80], 3.0);
    let before = world.stale();
    assert!(before > 0.02, "{before}");
    for step in 1..=3 {
        let done = world.work(step).unwrap();
        assert_eq!((done.hashed, done.queue), (10, 30 - 10 * step as usize));
        assert!(done.changed_keys > 0 && done.sorted_tables == 0);
    }
    assert!(world.stale() < before / 5.0, "{} of {before}", world.stale());
    // Changes add up until an item is due.
    let mut n_hashed = 0;
    for step in 4..400 {
        world.change(step, &[9], 0.01);
        n_hashed += world.work(step).unwrap().hashed;
    }
    assert!((1..40).contains(&n_hashed), "{n_hashed}");
}

#[test]
fn a_row_that_is_not_finite_is_named_by_its_item_and_waits() {
    let mut world = World::new(40, RebuildSchedule::Immediate { sort_every: 0 });
    world.change(1, &[3, 31], 1.0);
    world.rows[31 * WIDTH + 2] = f32::NAN;
    let kept = world.tables.clone();
    match world.work(0) {
        Err(HashError::NotFinite { row: 31, column: 2, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(world.tables.state(), kept.state());
    world.rows[31 * WIDTH + 2] = 0.0;
    world.rows[3 * WIDTH..4 * WIDTH].fill(0.0);
    let done = world.work(1).unwrap();
    assert_eq!((done.hashed, done.n_zero), (2, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_was_restored_goes_on_alike(seed in any::<u64>(), kind in 0usize..3, cut in 0u64..12) {
        let schedule = [
            RebuildSchedule::Rebuild { every: 3, growth: 1.5 },
            RebuildSchedule::Immediate { sort_every: 3 },
            RebuildSchedule::Drift { share: 0.3, per_step: 4, sort_every: 2 },
        ][kind];
        let json = serde_json::to_string(&schedule).unwrap();
        prop_assert_eq!(serde_json::from_str::<RebuildSchedule>(&json).unwrap(), schedule);
        let run = |until: u64, cut: Option<u64>| {
            let mut world = World::new(60, schedule);
            for step in 0..until {
                if cut == Some(step) {
                    world.tables = Tables::restore(5, world.tables.key_bits(), world.tables.state()).unwrap();
                    world.upkeep = Upkeep::restore(schedule, world.upkeep.state()).unwrap();
                }
                let items: Vec<u32> = (0..60).filter(|i| xc_hash::stream::mix(seed ^ step, *i).is_multiple_of(4)).map(|i| i as u32).collect();
                world.change(seed ^ step, &items, 0.1);
                world.work(step).unwrap();
            }
            world
        };
        let (whole, resumed) = (run(12, None), run(12, Some(cut)));
        prop_assert_eq!(whole.tables.state(), resumed.tables.state());
        prop_assert_eq!(whole.upkeep.state(), resumed.upkeep.state());
    }
}

#[test]
fn arrays_that_make_no_upkeep_are_errors() {
    let restore = |moved: &[f32], queue: &[u32]| {
        let state = UpkeepState { moved: Cow::Borrowed(moved), queue: queue.to_vec(), counters: [0; 3] };
        Upkeep::restore(RebuildSchedule::Immediate { sort_every: 1 }, state).map(|_| ())
    };
    assert_eq!(restore(&[0.0, 1.0], &[1, 0]), Ok(()));
    for queue in [[0, 0], [1, 2]] {
        assert_eq!(restore(&[0.0, 1.0], &queue), Err(UpkeepStateError::Queue { item: queue[1], n_items: 2 }));
    }
    assert!(matches!(restore(&[0.0, f32::NAN], &[]), Err(UpkeepStateError::Moved { item: 1, .. })));
    assert!(matches!(restore(&[-1.0], &[]), Err(UpkeepStateError::Moved { item: 0, .. })));
}
