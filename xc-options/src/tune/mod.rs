//! Which settings are best for some data: successive halving over settings, evaluated on rows that were
//! not trained on.
//!
//! ```text
//!   rung       0            1            2                 a rung costs more than the one below it, and tells more
//!   default    x            x            x                 always first on a rung
//!   trial 1    x ─ best ──▶ x ─ best ──▶ x                 goes on when it is among the best third of its rung
//!   trial 2    x            x            │
//!   trial 3    x                         └▶ wins if it is better than the default, on the same rows, by more than the
//!   ...                                     standard error of the difference; otherwise the default does
//! ```
//!
//! A [`Space`] lists the settings: for each of them a few values, one of which is the default. A
//! [`Search`] chooses the next setting and receives its score for each row. It neither trains nor
//! measures time: the caller decides what a rung is and when to stop.
//!
//! *Determinism*: what comes next is a function of the space, the parameters and what was recorded,
//! in the order of recording. A search goes on after an interruption when the same is recorded again.
//!
//! The asynchronous rule of promotion is that of `[li2020asha]`; new settings are drawn at random at
//! first, and then mostly near the best ones.
//!
//! ```
//! use xc_options::tune::{Choice, Scale, Search, HalvingParams, Space};
//!
//! let cost = Choice::new("cost", &["0.1", "1", "10"], 1, Scale::Ordered);
//! let mut search = Search::new(Space::new(vec![cost]), HalvingParams { rungs: 2, ..HalvingParams::default() });
//! let mut trials = 0;
//! while let Some(job) = search.next(trials < 3) {
//!     trials += usize::from(job.rung == 0);
//!     // Train and answer: here the largest value is right more often.
//!     let right = 10 + 5 * job.settings.values()[0];
//!     let scores = (0..50).map(|row| f64::from(row < right)).collect();
//!     search.record(&job.settings, job.rung, Some(scores));
//! }
//! let winner = search.winner();
//! assert_eq!(search.space().changes(search.settings(winner.trial)), [("cost", "10")]);
//! assert!(winner.against_default.unwrap().difference > 0.0);
//! ```
//!
//! # When not to use it
//! For numbers that must be found exactly: values are listed, not interpolated.

mod draw;
mod paired;
mod search;
mod space;

pub use paired::Paired;
pub use search::{HalvingParams, Job, Search, Winner};
pub use space::{Choice, Scale, Settings, Space};
