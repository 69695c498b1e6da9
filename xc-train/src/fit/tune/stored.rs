//! Runs that are finished, in OUTPUT/trials, so that none is done twice.

use crate::fit::{FitError, Source, Training};
use crate::message::chain;
use crate::tune::{Settings, Space};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use xc_sparse::store::{CHECKPOINT_KIND, Checkpoint, CheckpointKey, Layout};

/// What the folder of a search's runs holds.
pub(super) const LAYOUT: Layout = Layout { system: "tune", parts: &["run-#"] };

/// Raised when trials come to something else.
const VERSION: u64 = 1;

/// A trial on a rung, done.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) rung: usize,
    pub(super) wall_s: f64,
    /// What each held-out instance adds to the metric; why there is nothing where the trial failed.
    pub(super) scores: Result<Vec<f64>, String>,
}

/// Hash of everything that the runs of a search depend on, the content of files included.
///
/// # Errors
/// A file cannot be read.
pub(super) fn key(training: &Training, plan: &impl serde::Serialize) -> Result<String, FitError> {
    let mut key = CheckpointKey::new(LAYOUT.system, VERSION);
    key.text(training.kind());
    key.settings(plan);
    for (row, value) in training.choices.iter() {
        key.text(row.name);
        key.settings(value);
    }
    match &training.source {
        Source::Files(files) => {
            key.settings(&(files.names.column, &files.names.field));
            for path in files.all() {
                let refused = |e: std::io::Error| FitError::input(path, &e);
                let (mut file, mut block) = (File::open(path).map_err(refused)?, vec![0; 1 << 20]);
                loop {
                    match file.read(&mut block).map_err(refused)? {
                        0 => break,
                        n => key.bytes(&block[..n]),
                    }
                }
            }
        }
        Source::Memory(arrays) => arrays.hash(&mut key),
    }
    Ok(key.finish())
}

/// Keeps a run.
pub(super) fn save(checkpoint: &Checkpoint, number: usize, run: &Run) -> Result<(), FitError> {
    let saved = checkpoint.save(&part(number), CHECKPOINT_KIND, |writer| {
        writer.set_parameter("settings", json!(run.settings));
        writer.set_parameter("rung", json!(run.rung));
        writer.set_parameter("wall_s", json!(run.wall_s));
        writer.set_parameter("error", json!(run.scores.as_ref().err()));
        writer.add_slice("scores", run.scores.as_deref().unwrap_or_default())
    });
    Ok(saved?)
}

fn part(number: usize) -> String {
    format!("run-{number}")
}

/// The runs of an earlier session, in their order.
pub(super) fn read(checkpoint: &Checkpoint, space: &Space, n_rungs: usize) -> Result<Vec<Run>, FitError> {
    let mut runs: Vec<Run> = Vec::new();
    while let Some(container) = checkpoint.part(&part(runs.len()))? {
        let damaged = |what: &str| {
            let folder = container.folder().display();
            FitError::usage(format_args!("{folder}: {what}; --restart begins the search anew"))
        };
        let opened = |e: xc_sparse::store::OpenError| damaged(&chain(&e));
        let settings: Settings = container.parameter("settings").map_err(opened)?;
        let (rung, wall_s): (usize, f64) =
            (container.parameter("rung").map_err(opened)?, container.parameter("wall_s").map_err(opened)?);
        let error: Option<String> = container.parameter("error").map_err(opened)?;
        let scores = container.array::<f64>("scores").map_err(opened)?.to_vec();
        if !space.contains(&settings) || rung >= n_rungs {
            return Err(damaged("is no run of this search"));
        }
        let of_default = runs.iter().find(|run| run.rung == rung).and_then(|run| run.scores.as_ref().ok());
        if error.is_none() && (scores.is_empty() || of_default.is_some_and(|others| others.len() != scores.len())) {
            return Err(damaged("has scores of other instances"));
        }
        runs.push(Run { settings, rung, wall_s, scores: error.map_or(Ok(scores), Err) });
    }
    Ok(runs)
}
