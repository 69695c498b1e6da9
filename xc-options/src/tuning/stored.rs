//! Runs that are finished, in OUTPUT/trials, so that none is done twice.

use crate::Training;
use crate::data::Source;
use crate::settings::transformer;
use crate::tune::{Settings, Space};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use xc_buffer::Part;
use xc_model::message::chain;
use xc_store::{
    CHECKPOINT_KIND, Checkpoint, CheckpointKey, CheckpointLayout, Container, ContainerWriter, OpenError, WriteError,
};
use xc_train::fit::{FitError, open_container};

/// What the folder of a search's runs holds.
pub(super) const LAYOUT: CheckpointLayout = CheckpointLayout { system: "tune", parts: &["run-#"] };

/// The parameter that says which part of a search it is.
const PART: &str = "part";

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
    if let Some(encoder) = transformer::encoder(&training.choices.of(&transformer::TABLE))? {
        key.text(&encoder.hash()?);
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
        Source::Memory(arrays) => arrays.put_into(&mut key),
    }
    Ok(key.finish())
}

/// Keeps a run.
pub(super) fn save(checkpoint: &Checkpoint, number: usize, run: &Run) -> Result<(), FitError> {
    Ok(checkpoint.save(&part(number), CHECKPOINT_KIND, |writer| put("", run, writer))?)
}

fn put(prefix: &str, run: &Run, writer: &mut ContainerWriter) -> Result<(), WriteError> {
    let name = |name: &str| format!("{prefix}{name}");
    writer.set_parameter(&name("settings"), json!(run.settings));
    writer.set_parameter(&name("rung"), json!(run.rung));
    writer.set_parameter(&name("wall_s"), json!(run.wall_s));
    writer.set_parameter(&name("error"), json!(run.scores.as_ref().err()));
    writer.add_slice(&name("scores"), run.scores.as_deref().unwrap_or_default())
}

fn get(prefix: &str, container: &Container) -> Result<Run, OpenError> {
    let name = |name: &str| format!("{prefix}{name}");
    let error: Option<String> = container.parameter(&name("error"))?;
    let scores = container.array::<f64>(&name("scores"))?.to_vec();
    Ok(Run {
        settings: container.parameter(&name("settings"))?,
        rung: container.parameter(&name("rung"))?,
        wall_s: container.parameter(&name("wall_s"))?,
        scores: error.map_or(Ok(scores), Err),
    })
}

/// What is wrong with a run as one of a search.
fn fault(run: &Run, space: &Space, n_rungs: usize) -> Option<&'static str> {
    (!space.contains(&run.settings) || run.rung >= n_rungs).then_some("is no run of this search")
}

fn part(number: usize) -> String {
    format!("run-{number}")
}

/// The runs of an earlier session, in their order.
pub(super) fn read(checkpoint: &Checkpoint, space: &Space, n_rungs: usize) -> Result<Vec<Run>, FitError> {
    let mut runs = Vec::new();
    while let Some(container) = checkpoint.part(&part(runs.len()))? {
        let damaged = |what: &str| {
            let folder = container.folder().display();
            FitError::usage(format_args!("{folder}: {what}; --restart begins the search anew"))
        };
        let run = get("", &container).map_err(|e| damaged(&chain(&e)))?;
        if let Some(what) = fault(&run, space, n_rungs) {
            return Err(damaged(what));
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Which runs a finished part has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Which {
    /// Of the search.
    pub(super) key: String,
    pub(super) index: u32,
    pub(super) of: u32,
    /// The rung that was shared out.
    pub(super) rung: usize,
    n_runs: usize,
}

impl Which {
    pub(super) fn new(key: String, part: Part, rung: usize, n_runs: usize) -> Self {
        Self { key, index: part.index(), of: part.of(), rung, n_runs }
    }
}

/// Writes what a part came to.
pub(super) fn write_part(folder: &Path, which: &Which, runs: &[Run]) -> Result<(), FitError> {
    let mut writer = ContainerWriter::create(folder, CHECKPOINT_KIND)?;
    writer.set_parameter(PART, json!(which));
    for (at, run) in runs.iter().enumerate() {
        put(&format!("run{at}."), run, &mut writer)?;
    }
    Ok(writer.finish()?)
}

/// A finished part.
///
/// # Errors
/// It is not there, damaged, or of another search than that with this key.
pub(super) fn read_part(
    folder: &Path,
    key: &str,
    space: &Space,
    n_rungs: usize,
) -> Result<(Which, Vec<Run>), FitError> {
    let shown = folder.display();
    if !folder.exists() {
        return Err(FitError::usage(format_args!(
            "{shown}: not there; the --output of an `xc tune --part` that has ended is expected"
        )));
    }
    let container = open_container(folder)?;
    let damaged = |what: &str| FitError::usage(format_args!("{shown}: {what}"));
    container.expect_kind(CHECKPOINT_KIND).map_err(|e| damaged(&chain(&e)))?;
    if let Some(mismatch) = container.verify().map_err(|e| damaged(&chain(&e)))?.first() {
        return Err(damaged(&mismatch.to_string()));
    }
    let which: Which = container.parameter(PART).map_err(|e| damaged(&chain(&e)))?;
    if which.key != key {
        return Err(damaged("was made with other data or options; the same for all parts are expected"));
    }
    if which.index >= which.of || which.rung >= n_rungs {
        return Err(damaged("is no part of this search"));
    }
    let mut runs = Vec::new();
    for at in 0..which.n_runs {
        let run = get(&format!("run{at}."), &container).map_err(|e| damaged(&chain(&e)))?;
        if let Some(what) = fault(&run, space, n_rungs) {
            return Err(damaged(&format!("run {at} {what}")));
        }
        runs.push(run);
    }
    Ok((which, runs))
}
