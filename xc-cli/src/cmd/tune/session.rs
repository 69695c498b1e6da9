//! The search itself: one run after the other, each through the training that `xc train` does.

use super::budget::{Clock, say};
use super::free::free;
use super::kinds::Tuned;
use super::outcome::{self, BEST, Outcome};
use super::rungs::{DECIDES_FROM, Rung, rungs};
use super::stored::{self, LAYOUT, Run};
use super::typed::{Given, Typed, parse};
use super::{NOT_TUNED, TuneArgs};
use crate::cmd::train::inputs::{PlaceArgs, checkpoint_error};
use crate::cmd::train::report::Judging;
use crate::context::Context;
use crate::data::InputArgs;
use crate::error::{CliError, chain};
use crate::interrupt;
use crate::output::{check as check_output, check_in_folder, make_folder, print};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xc_metrics::{KeepRows, Metric};
use xc_sparse::io::{Format, holds_text};
use xc_sparse::store::{Checkpoint, CheckpointFolder};
use xc_train::tune::{Job, Search, SearchParams, Space};

/// Time where neither it nor a number of trials is given.
const BUDGET: Duration = Duration::from_secs(20 * 60);
/// Names in the output folder.
const TRIALS: &str = "trials";
const TRIAL: &str = "trial";
const MODEL: &str = "model";

/// Options of `xc train` that are the search's own affair.
const NOT_FOR_TRIALS: [&str; 5] = ["model", "resume", "restart", "explain", "validation-fraction"];

/// A search under way.
struct Session<'a, A> {
    tune: &'a TuneArgs,
    /// What holds for every trial.
    given: Vec<Given>,
    output: PathBuf,
    rungs: Vec<Rung>,
    search: Search,
    clock: Clock,
    runs: Vec<Run>,
    context: &'a Context,
    kind: std::marker::PhantomData<A>,
}

pub(super) fn run<A: Tuned>(typed: &Typed<A>, context: &Context) -> Result<(), CliError> {
    let Typed { tune, args, given } = typed;
    for name in NOT_TUNED {
        if given.iter().any(|given| given.name == name) {
            return Err(CliError::usage(format_args!("--{name}: belongs to xc train; a search has none")));
        }
    }
    check(tune)?;
    if !args.data().place.explain {
        check_in_folder(&args.data().place.model.join(BEST))?;
    }
    check_output(Path::new("-"))?;
    args.check(context.seed)?;
    let place = &args.data().place;
    let rungs = rungs(args.data().validation.is_some(), args.validation_fraction(), context.seed)?;
    let given: Vec<Given> = given.iter().filter(|given| !NOT_FOR_TRIALS.contains(&&*given.name)).cloned().collect();
    let is_text = is_text(&place.train, &args.data().input)?;
    let (space, why) = free::<A>(&A::space(), is_text, &with_model(&given, Path::new(MODEL)), context.seed);
    if place.explain {
        return print(&explain(&space, &why, &rungs));
    }
    let plan = (
        &space,
        context.seed,
        tune.metric.to_string(),
        rungs.iter().map(|r| &*r.name).collect::<Vec<_>>(),
        args.validation_fraction(),
    );
    let key = stored::key(A::KIND, &given, &plan)?;

    let output = &place.model;
    let is_new = !output.exists();
    let ended = begin(output, place, context).and_then(|folder| {
        let checkpoint = folder.begin(key).map_err(|e| checkpoint_error(&e))?;
        let params = SearchParams {
            seed: context.seed,
            rungs: rungs.len(),
            decides_from: DECIDES_FROM,
            ..SearchParams::default()
        };
        let limit = tune.budget.or(if tune.trials.is_some() { None } else { Some(BUDGET) });
        let mut session = Session::<A> {
            tune,
            given,
            output: output.clone(),
            clock: Clock::new(limit, !tune.no_model, &rungs),
            rungs,
            search: Search::new(space, params),
            runs: Vec::new(),
            context,
            kind: std::marker::PhantomData,
        };
        session.go_on(stored::read(&checkpoint, session.search.space(), session.rungs.len())?);
        session.work(&checkpoint)
    });
    if ended.is_err() && is_new {
        // What failed before the first trial was done leaves nothing; a folder with something in it stays.
        remove_trial(output);
        let _ = std::fs::remove_dir(output);
    }
    ended
}

/// Removes the model of the latest trial, and what it had finished of another.
fn remove_trial(output: &Path) {
    for suffix in ["", ".log", ".checkpoint"] {
        // What cannot be removed is only in the way.
        let _ = std::fs::remove_dir_all(output.join(format!("{TRIAL}{suffix}")));
    }
}

/// Refuses options of the search that cannot be.
fn check(tune: &TuneArgs) -> Result<(), CliError> {
    if let Some(got @ 0..=1) = tune.trials {
        return Err(CliError::usage(format_args!(
            "--trials {got}: 2 or more are expected, the default options among them"
        )));
    }
    let metric = tune.metric;
    let is_known = matches!(
        metric,
        Metric::Precision(_) | Metric::Ndcg(_) | Metric::Psp(_) | Metric::Psndcg(_) | Metric::Recall(_)
    );
    if !is_known || metric.k().is_none_or(|k| !(1..=5).contains(&k)) {
        return Err(CliError::usage(format_args!(
            "--metric {metric}: P, nDCG, PSP, PSnDCG or recall @ 1 to 5 is expected"
        )));
    }
    Ok(())
}

fn is_text(train: &Path, input: &InputArgs) -> Result<bool, CliError> {
    std::fs::File::open(train).map_err(|e| CliError::usage(format_args!("{}: {}", train.display(), chain(&e))))?;
    let mut options = input.options();
    let format = Format::detect(train, &options)?;
    options.format = Some(format);
    Ok(holds_text(train, format, &options)?)
}

/// Options of a training run that leaves its model in a folder.
fn with_model(given: &[Given], model: &Path) -> Vec<Given> {
    let model = Given { name: "model".to_owned(), values: vec![model.into()] };
    given.iter().cloned().chain([model]).collect()
}

fn explain(space: &Space, why: &[&str], rungs: &[Rung]) -> String {
    let mut text = String::from("options that are searched, the default marked *\n");
    for (choice, why) in space.choices().iter().zip(why) {
        let value =
            |(at, value): (usize, &String)| format!("{value}{}", if at == choice.default_value() { "*" } else { "" });
        let values: Vec<String> = choice.values().iter().enumerate().map(value).collect();
        text += &format!("  --{:<24} {}\n  {:26} {why}\n", choice.name(), values.join(" "), "");
    }
    text += "rungs\n";
    for rung in rungs {
        text += &format!("  {}: {:.2} of the rows are learned from\n", rung.name, rung.work);
    }
    text
}

/// Takes the output folder, new, empty or of the search to go on with.
fn begin(output: &Path, place: &PlaceArgs, context: &Context) -> Result<CheckpointFolder, CliError> {
    let shown = output.display();
    if output.file_name().is_none() {
        return Err(CliError::usage(format_args!("--output {shown}: a path that ends in a name is expected")));
    }
    make_folder(output)?;
    let refused = |e: std::io::Error| CliError::usage(format_args!("{shown}: {}", chain(&e)));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(output).map_err(refused)? {
        names.push(entry.map_err(refused)?.file_name().to_string_lossy().into_owned());
    }
    let is_ours = |name: &String| {
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or_default();
        [TRIALS, TRIAL, MODEL].contains(&stem) || BEST.starts_with(&format!("{stem}."))
    };
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(CliError::usage(format_args!(
            "{shown}: holds {other:?}, which is no part of a search; a new or empty folder is expected"
        )));
    }
    if !names.is_empty() && !place.resume && !place.restart {
        return Err(CliError::usage(format_args!(
            "{shown}: not empty; --resume goes on with the search in it, --restart removes it"
        )));
    }
    let trials = output.join(TRIALS);
    let folder = CheckpointFolder::claim(&trials, LAYOUT).map_err(|e| checkpoint_error(&e))?;
    if place.restart {
        folder.clear().map_err(|e| checkpoint_error(&e))?;
        outcome::remove(output)?;
    } else if place.resume && !folder.has_parts().map_err(|e| checkpoint_error(&e))? {
        context.warn(format_args!("{shown}: no finished trial; the search begins anew"));
    }
    interrupt::resumable_search(trials);
    Ok(folder)
}

impl<A: Tuned> Session<'_, A> {
    /// Takes up what an earlier session did.
    fn go_on(&mut self, runs: Vec<Run>) {
        runs.into_iter().for_each(|run| self.take(run));
        if !self.runs.is_empty() {
            let (n, trials) = (self.runs.len(), self.search.n_trials());
            self.context.note(format_args!("tune: {n} runs of {trials} trials are there, {}", say(self.clock.spent())));
        }
    }

    fn take(&mut self, run: Run) {
        self.search.record(&run.settings, run.rung, run.scores.clone().ok());
        let trial = self.search.trial_of(&run.settings);
        self.clock.add(trial.unwrap_or_default(), run.rung, run.wall_s);
        self.runs.push(run);
    }

    fn work(&mut self, checkpoint: &Checkpoint) -> Result<(), CliError> {
        while let Some(job) = self.next_job() {
            self.context.check_interrupt()?;
            let run = self.run_job(&job)?;
            stored::save(checkpoint, self.runs.len(), &run)?;
            self.take(run);
            self.say(&job);
            self.outcome().write_table(&self.output)?;
            if self.runs.len() == 1
                && let Some(needed) = self.clock.too_short()
            {
                return Err(self.too_short(needed));
            }
        }
        // Where the first part of the rows shows that every trial is worse, none goes on, and nothing is left to do.
        if self.runs.iter().all(|run| run.rung < DECIDES_FROM) && self.search.next(false).is_some() {
            let needed = self.clock.too_short().unwrap_or_default();
            return Err(self.too_short(needed));
        }
        remove_trial(&self.output);
        let outcome = self.outcome();
        outcome.write(&self.output)?;
        if !self.tune.no_model {
            self.train_model(&outcome.changes)?;
        }
        outcome.print(&self.output, self.context)
    }

    fn too_short(&self, needed: f64) -> CliError {
        CliError::usage(format_args!(
            "--budget {}: too short for one trial beside the default options; {} or more are expected (--resume \
             keeps what is done)",
            say(self.clock.limit().unwrap_or_default()),
            say(needed.ceil())
        ))
    }

    fn next_job(&self) -> Option<Job> {
        let has_trials = self.tune.trials.is_none_or(|most| self.search.n_trials() < most);
        let job = self.search.next(has_trials && self.clock.is_open());
        // With all promotions done there may be time for more.
        let job = job.or_else(|| if has_trials { self.search.next(true) } else { None });
        job.filter(|job| self.clock.has_time_for(job.trial, job.rung))
    }

    /// The options of a training run with settings.
    fn options(&self, changes: &[(&str, &str)], model: &str) -> Vec<Given> {
        let changed = changes.iter().map(|(name, value)| Given::new::<A>(name, value));
        let restart = Given { name: "restart".to_owned(), values: Vec::new() };
        with_model(&self.given, &self.output.join(model)).into_iter().chain(changed).chain([restart]).collect()
    }

    fn args(options: &[Given]) -> Result<A, CliError> {
        parse(options).map_err(CliError::usage)
    }

    /// Trains and judges a trial on a rung. A trial that fails is recorded as such, unless it is that
    /// of the default options.
    fn run_job(&self, job: &Job) -> Result<Run, CliError> {
        let start = Instant::now();
        let scores = self.scores(job);
        let scores = match scores {
            Err(e) if job.trial == 0 || e.is_interruption() => return Err(e),
            scores => scores.map_err(|e| e.line().unwrap_or("failed").to_owned()),
        };
        let wall_s = start.elapsed().as_secs_f64();
        Ok(Run { settings: job.settings.clone(), rung: job.rung, wall_s, scores })
    }

    fn scores(&self, job: &Job) -> Result<Vec<f64>, CliError> {
        let metric = self.tune.metric;
        let args = Self::args(&self.options(&self.search.space().changes(&job.settings), TRIAL))?;
        let judging = Judging { ks: metric.k().into_iter().collect(), keep_rows: KeepRows::Yes, curve: false };
        let mut scores = Vec::new();
        for hold_out in &self.rungs[job.rung].hold_outs {
            let report = args.train(&args.data().place, *hold_out, &judging, &self.context.silent())?;
            let rows = report.and_then(|report| report.metrics).and_then(|metrics| metrics.by_instance(metric));
            scores.extend(rows.ok_or_else(|| {
                CliError::usage(format_args!(
                    "--metric {metric}: cannot be computed for these data (too few instances for propensities)"
                ))
            })?);
        }
        Ok(scores)
    }

    /// One line about what was done.
    fn say(&self, job: &Job) {
        let Some(run) = self.runs.last() else { return };
        let rung = &self.rungs[job.rung].name;
        let came_to = match (&run.scores, self.search.score(job.trial, job.rung)) {
            (Err(why), _) => format!("failed: {why}"),
            (Ok(_), score) => {
                let against = match self.search.against_default(job.trial, job.rung) {
                    Some(p) if job.trial > 0 => {
                        format!(" ({:+.2}, standard error {:.2})", 100.0 * p.difference, 100.0 * p.standard_error)
                    }
                    _ => String::new(),
                };
                format!("{} {:.2}{against}", self.tune.metric, 100.0 * score.unwrap_or_default())
            }
        };
        let limit = self.clock.limit().map_or(String::new(), |limit| format!(" of {}", say(limit)));
        self.context.note(format_args!(
            "tune: trial {}, {rung}: {came_to}; {}; {}, {}{limit} in all",
            job.trial,
            outcome::options_line(&self.search.space().changes(&job.settings)),
            say(run.wall_s),
            say(self.clock.spent())
        ));
    }

    fn outcome(&self) -> Outcome {
        Outcome::new(A::KIND, self.tune.metric, &self.search, &self.runs, &self.rungs, &self.given)
    }

    /// Trains with the best options on all instances, by the same way as `xc train`.
    fn train_model(&self, changes: &[(String, String)]) -> Result<(), CliError> {
        let changes: Vec<(&str, &str)> = changes.iter().map(|(name, value)| (&**name, &**value)).collect();
        // Nothing is chosen by instances any more.
        let is_judge = |given: &Given| given.name.starts_with("validation");
        let options: Vec<Given> = self.options(&changes, MODEL).into_iter().filter(|g| !is_judge(g)).collect();
        let args = Self::args(&options)?;
        let context = Context { json: false, ..self.context.clone() };
        let report = args.train(&args.data().place, None, &Judging::default(), &context)?;
        report.map_or(Ok(()), |report| report.finish(&args.data().place, &context))
    }
}
