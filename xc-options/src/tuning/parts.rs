//! A search shared out among processes that have nothing but files in common.
//!
//! ```text
//!   round 0   all trials, drawn before any is judged, on rung 0      part I of N: those at I, I + N, I + 2 N, ...
//!   round 1   the best of them, with the default options, on rung 1   the same, once all parts of round 0 are there
//!   ...
//! ```
//!
//! What a round consists of follows from the rounds before it alone, so that every part computes the same.

use super::stored::{self, Run, Which};
use super::{FoundPart, Session};
use crate::tune::Job;
use std::path::{Path, PathBuf};
use xc_buffer::Part;
use xc_store::CheckpointKey;
use xc_train::fit::FitError;

/// The folder of a finished part in that of its search.
pub(super) const PART: &str = "part";

/// What a process does of a round.
pub(super) struct Share {
    part: Part,
    rung: usize,
    /// Trials of the part, and how many the round has.
    pub(super) trials: Vec<usize>,
    n_trials: usize,
}

impl Share {
    /// The share of a part in the round that comes next.
    pub(super) fn next(session: &Session<'_>, part: Part) -> Result<Self, FitError> {
        let round = session.search.round();
        let Some(first) = round.first() else {
            return Err(FitError::usage(format_args!(
                "--part {part}: all trials are judged; no --part is expected, which ends the search"
            )));
        };
        Ok(Self {
            part,
            rung: first.rung,
            trials: own(&round, part).map(|job| job.trial).collect(),
            n_trials: round.len(),
        })
    }

    pub(super) fn rung(&self) -> usize {
        self.rung
    }

    /// The key of the part's own checkpoint.
    pub(super) fn key(&self, of_search: &str) -> String {
        let mut key = CheckpointKey::new(stored::LAYOUT.system, 0);
        key.text(of_search);
        key.numbers(&[u64::from(self.part.index()), u64::from(self.part.of()), self.rung as u64]);
        key.finish()
    }

    /// Keeps what the part came to where the next round looks for it.
    pub(super) fn end(&self, of_search: &str, session: &Session<'_>) -> Result<FoundPart, FitError> {
        let runs = &session.runs[session.n_known..];
        let which = Which::new(of_search.to_owned(), self.part, self.rung, runs.len());
        stored::write_part(&session.output().join(PART), &which, runs)?;
        let judged_by = session.rungs[self.rung].name.clone();
        let rows = session.found().rows.split_off(session.n_known);
        Ok(FoundPart { part: self.part, judged_by, n_trials: self.n_trials, rows })
    }
}

/// What a part has of jobs, which are dealt one by one.
fn own(round: &[Job], part: Part) -> impl Iterator<Item = &Job> {
    round.iter().skip(part.index() as usize).step_by(part.of() as usize)
}

/// A part that was read.
struct Read<'a> {
    folder: &'a Path,
    which: Which,
    runs: Vec<Run>,
}

impl Session<'_> {
    /// Takes up what the parts of earlier rounds came to, in any order of their folders.
    pub(super) fn take_parts(&mut self, folders: &[PathBuf], key: &str) -> Result<(), FitError> {
        let mut parts = Vec::new();
        for folder in folders {
            let (which, runs) = stored::read_part(&folder.join(PART), key, self.search.space(), self.rungs.len())?;
            parts.push(Read { folder, which, runs });
        }
        parts.sort_by_key(|part| (part.which.rung, part.which.index));
        for round in parts.chunk_by(|a, b| a.which.rung == b.which.rung) {
            self.take_round(round)?;
        }
        self.n_known = self.runs.len();
        Ok(())
    }

    /// Takes up the parts of one round, sorted.
    fn take_round(&mut self, parts: &[Read<'_>]) -> Result<(), FitError> {
        let Which { of, rung, .. } = parts[0].which;
        let first = parts[0].folder.display();
        for (at, part) in parts.iter().enumerate() {
            let (shown, name) = (part.folder.display(), format!("{}/{}", part.which.index, part.which.of));
            if part.which.of != of {
                return Err(FitError::usage(format_args!(
                    "{shown}: is part {name}, expected a part of {of} as {first}"
                )));
            }
            if let Some(other) = parts[..at].iter().find(|other| other.which.index == part.which.index) {
                let other = other.folder.display();
                return Err(FitError::usage(format_args!(
                    "{shown}: is part {name}, as is {other}; each part once is expected"
                )));
            }
        }
        let is_there = |index: u32| parts.iter().any(|part| part.which.index == index);
        let by = &self.rungs[rung].name;
        if let Some(missing) = (0..of).find(|&index| !is_there(index)) {
            let got = parts.len();
            return Err(FitError::usage(format_args!(
                "--from: part {missing}/{of} of the trials by {by} is missing: {got} of {of} parts are given"
            )));
        }
        let round = self.search.round();
        for part in parts {
            let which = Part::new(part.which.index, of).unwrap_or(Part::WHOLE);
            let expected = own(&round, which).map(|job| (&job.settings, job.rung));
            if !part.runs.iter().map(|run| (&run.settings, run.rung)).eq(expected) {
                return Err(FitError::usage(format_args!(
                    "{}: holds other trials than the rounds before give, or these are not in --from",
                    part.folder.display()
                )));
            }
        }
        for (at, _) in round.iter().enumerate() {
            let part = &parts[at % parts.len()];
            self.take_checked(part.runs[at / parts.len()].clone(), part.folder)?;
        }
        Ok(())
    }
}
