//! The search for good settings of a kind of model: one run after the other, each through the training of
//! [`Training`], judged on held-out rows.

mod budget;
mod clock;
mod found;
mod free;
mod parts;
mod rungs;
mod stored;

pub use budget::parse_time;
pub use found::{BEST, Found, FoundPart, PICTURE, TrialRow, options_line};
pub use rungs::Rung;

use crate::Training;
use crate::data::Source;
use crate::settings::{SettingError, input};
use crate::tune::{HalvingParams, Job, Search, Space};
use clock::Clock;
use free::free;
use parts::{PART, Share};
use rungs::{DECIDES_FROM, rungs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stored::{LAYOUT, Run};
use xc_buffer::Cancel;
use xc_data::{Format, ReadOptions, holds_text};
use xc_metrics::{KeepRows, Metric};
use xc_model::message::{chain, seconds};
use xc_store::{Checkpoint, CheckpointFolder};
use xc_train::fit::{Context, FitError, FitErrorKind, Judging, Place, Watch, check_in_folder, make_folder};

/// Time where neither it nor a number of trials is given.
const BUDGET: Duration = Duration::from_secs(20 * 60);
/// Names in the output folder.
const TRIALS: &str = "trials";
const TRIAL: &str = "trial";
const MODEL: &str = "model";

/// A search to be made.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// What holds for every trial; its place is the folder of the search, new, empty or of one to go on with. Where the
    /// place has a part, [`Tuning::run_part`] does that of the next round of trials.
    pub training: Training,
    /// Time for all trials and the final model; 20 minutes where no number of trials is given either.
    pub budget: Option<Duration>,
    /// Settings to try, the default ones included.
    pub trials: Option<usize>,
    /// What to maximise.
    pub metric: Metric,
    /// Whether a model is trained in the end, with the best settings on all instances.
    pub train_model: bool,
    /// Folders of finished parts: all of each round that was done.
    pub from: Vec<PathBuf>,
}

/// What a search would try.
#[derive(Clone, Debug)]
pub struct SearchPlan {
    /// The settings that are searched, with their values.
    pub space: Space,
    /// Why each is.
    pub why: Vec<&'static str>,
    /// What trials are judged by.
    pub rungs: Vec<Rung>,
}

/// Watches a trial: says nothing, and passes on that it is cancelled.
struct Trial<'a>(&'a dyn Watch);

impl Cancel for Trial<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Watch for Trial<'_> {
    fn released(&self) {
        self.0.released();
    }
}

/// A search under way.
struct Session<'a> {
    tune: &'a Tuning,
    rungs: Vec<Rung>,
    search: Search,
    clock: Clock,
    runs: Vec<Run>,
    /// The first of these were done by parts.
    n_known: usize,
    /// What a process does of a search in parts.
    share: Option<Share>,
    context: &'a Context<'a>,
}

impl Tuning {
    /// A search for settings of a kind of model, whose results go into a folder.
    pub fn new(training: Training) -> Self {
        Self { training, budget: None, trials: None, metric: Metric::Precision(1), train_model: true, from: Vec::new() }
    }

    /// What would be searched.
    ///
    /// # Errors
    /// Settings that cannot be, or a file that cannot be read.
    pub fn plan(&self, seed: u64) -> Result<SearchPlan, FitError> {
        let Training { choices, source, place, refit, .. } = &self.training;
        let given = choices.iter().map(|(row, _)| row).find(|row| !row.in_search).map(|row| row.name);
        let given = given.or(place.checkpoint.as_ref().map(|_| "checkpoint")).or(refit.as_ref().map(|_| "refit"));
        if let Some(name) = given {
            return Err(SettingError::of(name, "belongs to xc train; a search has none").into());
        }
        check(self)?;
        let mut whole = self.training.clone();
        whole.place.part = None;
        whole.check(seed)?;
        let rungs = rungs(source.has_validation(), choices.validation_fraction(), seed)?;
        let (space, why) = free(&self.with(&[], MODEL)?, self.is_text()?, seed);
        Ok(SearchPlan { space, why, rungs })
    }

    /// Searches. The folder gets [`BEST`], a table of the trials, and what finished runs came to, so that a search that
    /// was interrupted goes on. The final model is trained by [`Self::best`].
    ///
    /// With [`Self::from`], what its parts did is not done again, and the result is that of a single part 0/1: trials are
    /// drawn before any is judged, and whole rounds decide which go on.
    ///
    /// # Errors
    /// Settings that cannot be, a folder with something else in it, a default run that fails, too little time for one
    /// trial, parts that are missing, twice or of another search, or an observer that cancels.
    pub fn run(&self, context: &Context<'_>) -> Result<Found, FitError> {
        if let Some(part) = self.training.place.part {
            return Err(FitError::usage(format_args!("--part {part}: a part of a round is no whole search")));
        }
        context.on_threads(|| self.search(context, |session, _| session.end()))
    }

    /// Does the part that the place of the training names of a round of trials: of the first round, or of the one after
    /// those of [`Self::from`]. The folder gets a table of its trials, and what the next round takes up.
    ///
    /// # Errors
    /// As [`Self::run`]; no part is named, or no round is left.
    pub fn run_part(&self, context: &Context<'_>) -> Result<FoundPart, FitError> {
        context.on_threads(|| {
            self.search(context, |session, key| match session.share.take() {
                Some(share) => share.end(key, session),
                None => Err(FitError::usage("--part: I/N is expected")),
            })
        })
    }

    /// Whether trials are drawn before any is judged.
    fn in_rounds(&self) -> bool {
        self.training.place.part.is_some() || !self.from.is_empty()
    }

    fn search<T>(
        &self,
        context: &Context<'_>,
        end: impl FnOnce(&mut Session<'_>, &str) -> Result<T, FitError>,
    ) -> Result<T, FitError> {
        let output = &self.training.place.model;
        check_in_folder(&output.join(BEST))?;
        let SearchPlan { space, rungs, .. } = self.plan(context.seed)?;
        let names: Vec<_> = rungs.iter().map(|rung| &*rung.name).collect();
        let fraction = self.training.choices.validation_fraction();
        let plan = (&space, context.seed, self.metric.to_string(), names, fraction);
        let trials = self.trials.filter(|_| self.in_rounds());
        let key = match trials {
            Some(trials) => stored::key(&self.training, &(plan, trials))?,
            None => stored::key(&self.training, &plan)?,
        };
        let mut params = HalvingParams {
            seed: context.seed,
            rungs: rungs.len(),
            decides_from: DECIDES_FROM,
            ..HalvingParams::default()
        };
        if trials.is_some() {
            // Nothing is known yet that they could be near to.
            params.at_random = usize::MAX;
        }
        let limit = self.budget.or(if self.trials.is_some() { None } else { Some(BUDGET) });
        let mut session = Session {
            tune: self,
            clock: Clock::new(limit, self.train_model, &rungs),
            rungs,
            search: Search::new(space, params),
            runs: Vec::new(),
            n_known: 0,
            share: None,
            context,
        };
        session.search.draw_ahead(trials.unwrap_or(0));
        session.take_parts(&self.from, &key)?;
        session.share = self.training.place.part.map(|part| Share::next(&session, part)).transpose()?;
        let of_checkpoint = session.share.as_ref().map_or_else(|| key.clone(), |share| share.key(&key));
        let is_new = !output.exists();
        let ended = begin(output, &self.training.place, context).and_then(|folder| {
            let checkpoint = folder.begin(of_checkpoint)?;
            session
                .go_on(stored::read(&checkpoint, session.search.space(), session.rungs.len())?, checkpoint.path())?;
            session.work(&checkpoint)?;
            end(&mut session, &key)
        });
        if ended.is_err() && is_new {
            // What failed before the first trial was done leaves nothing; a folder with something in it stays.
            remove_trial(output);
            let _ = std::fs::remove_dir(output);
        }
        ended
    }

    /// The training of the final model: the settings that were found, on all instances.
    ///
    /// # Errors
    /// Settings that are none of the kind.
    pub fn best(&self, found: &Found) -> Result<Training, FitError> {
        let changes: Vec<_> = found.changes.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut training = self.with(&changes, MODEL)?;
        // Nothing is chosen by instances any more.
        training.choices.remove("validation-fraction");
        training.source = training.source.without_validation();
        Ok(training)
    }

    /// A training run with settings, which leaves its model beneath the folder of the search.
    fn with(&self, changes: &[(&str, &str)], model: &str) -> Result<Training, FitError> {
        let mut training = self.training.clone();
        for (name, value) in changes {
            training.set(name, value)?;
        }
        training.choices.remove("validation-fraction");
        training.place = Place { restart: true, ..Place::new(self.training.place.model.join(model)) };
        Ok(training)
    }

    fn is_text(&self) -> Result<bool, FitError> {
        let files = match &self.training.source {
            Source::Memory(arrays) => return Ok(arrays.train.rows().kind() == xc_model::classifier::InputKind::Text),
            Source::Files(files) => files,
        };
        std::fs::File::open(&files.train).map_err(|e| FitError::input(&files.train, &e))?;
        let mut options = ReadOptions::from(input::file_form(&self.training.choices));
        let format = Format::detect(&files.train, &options)?;
        options.form.format = Some(format);
        Ok(holds_text(&files.train, format, &options)?)
    }
}

/// Removes the model of the latest trial, and what it had finished of another.
fn remove_trial(output: &Path) {
    for suffix in ["", ".log", ".checkpoint"] {
        // What cannot be removed is only in the way.
        let _ = std::fs::remove_dir_all(output.join(format!("{TRIAL}{suffix}")));
    }
}

/// Refuses options of the search that cannot be.
fn check(tune: &Tuning) -> Result<(), FitError> {
    let in_rounds = match tune.training.place.part {
        Some(part) => Some(format!("--part {part}")),
        None => (!tune.from.is_empty()).then(|| "--from".to_owned()),
    };
    if let Some(option) = in_rounds {
        if tune.budget.is_some() {
            let why = "trials that are shared out have no time of their own; --trials N is expected";
            return Err(FitError::usage(format_args!("--budget: {why} ({option})")));
        }
        if tune.trials.is_none() {
            let why = "shares out a number of trials; --trials N is expected, the same for all parts";
            return Err(FitError::usage(format_args!("{option}: {why}")));
        }
    }
    if let Some(got @ 0..=1) = tune.trials {
        return Err(FitError::usage(format_args!(
            "--trials {got}: 2 or more are expected, the default options among them"
        )));
    }
    let metric = tune.metric;
    let is_known = matches!(
        metric,
        Metric::Precision(_) | Metric::Ndcg(_) | Metric::Psp(_) | Metric::Psndcg(_) | Metric::Recall(_)
    );
    if !is_known || metric.k().is_none_or(|k| !(1..=5).contains(&k)) {
        return Err(FitError::usage(format_args!(
            "--metric {metric}: P, nDCG, PSP, PSnDCG or recall @ 1 to 5 is expected"
        )));
    }
    Ok(())
}

/// Takes the output folder, new, empty or of the search to go on with.
fn begin(output: &Path, place: &Place, context: &Context<'_>) -> Result<CheckpointFolder, FitError> {
    let shown = output.display();
    if output.file_name().is_none() {
        return Err(FitError::usage(format_args!("--output {shown}: a path that ends in a name is expected")));
    }
    make_folder(output)?;
    let refused = |e: std::io::Error| FitError::usage(format_args!("{shown}: {}", chain(&e)));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(output).map_err(refused)? {
        names.push(entry.map_err(refused)?.file_name().to_string_lossy().into_owned());
    }
    let is_ours = |name: &String| {
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or_default();
        [TRIALS, TRIAL, MODEL, PART].contains(&stem) || BEST.starts_with(&format!("{stem}."))
    };
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(FitError::usage(format_args!(
            "{shown}: holds {other:?}, which is no part of a search; a new or empty folder is expected"
        )));
    }
    if !names.is_empty() && !place.resume && !place.restart {
        return Err(FitError::usage(format_args!(
            "{shown}: not empty; --resume goes on with the search in it, --restart removes it"
        )));
    }
    let trials = output.join(TRIALS);
    let folder = CheckpointFolder::claim(&trials, LAYOUT)?;
    if place.restart {
        folder.clear()?;
        found::remove(output)?;
    } else if place.resume && !folder.has_parts()? {
        context.warn(format_args!("{shown}: no finished trial; the search begins anew"));
    }
    context.observer.resumable_search(&trials);
    Ok(folder)
}

impl Session<'_> {
    /// Takes up what an earlier session did.
    fn go_on(&mut self, runs: Vec<Run>, folder: &Path) -> Result<(), FitError> {
        runs.into_iter().try_for_each(|run| self.take_checked(run, folder))?;
        if !self.runs.is_empty() {
            let n = self.runs.len();
            let trials = (0..self.search.n_trials()).filter(|&trial| self.search.highest(trial).is_some()).count();
            self.context
                .note(format_args!("tune: {n} runs of {trials} trials are there, {}", seconds(self.clock.spent())));
        }
        Ok(())
    }

    /// Takes up a run that was read from a folder.
    fn take_checked(&mut self, run: Run, folder: &Path) -> Result<(), FitError> {
        let others = self.runs.iter().find_map(|other| other.scores.as_ref().ok().filter(|_| other.rung == run.rung));
        let fits = |scores: &Vec<f64>| !scores.is_empty() && others.is_none_or(|others| others.len() == scores.len());
        if !run.scores.as_ref().map_or(true, fits) {
            let folder = folder.display();
            return Err(FitError::usage(format_args!(
                "{folder}: has scores of other instances; --restart begins the search anew"
            )));
        }
        self.take(run);
        Ok(())
    }

    fn take(&mut self, run: Run) {
        self.search.record(&run.settings, run.rung, run.scores.clone().ok());
        let trial = self.search.trial_of(&run.settings);
        self.clock.add(trial.unwrap_or_default(), run.rung, run.wall_s);
        self.runs.push(run);
    }

    fn work(&mut self, checkpoint: &Checkpoint) -> Result<(), FitError> {
        while let Some(job) = self.next_job() {
            self.context.check_interrupt()?;
            let run = self.run_job(&job)?;
            stored::save(checkpoint, self.runs.len() - self.n_known, &run)?;
            self.take(run);
            self.say(&job);
            self.found().write_table(self.output())?;
            if self.runs.len() == 1
                && let Some(needed) = self.clock.too_short()
            {
                return Err(self.too_short(needed));
            }
        }
        remove_trial(self.output());
        Ok(())
    }

    /// The end of a whole search.
    fn end(&self) -> Result<Found, FitError> {
        // Where the first part of the rows shows that every trial is worse, none goes on, and nothing is left to do.
        if self.runs.iter().all(|run| run.rung < DECIDES_FROM) && self.search.next(false).is_some() {
            let needed = self.clock.too_short().unwrap_or_default();
            return Err(self.too_short(needed));
        }
        let found = self.found();
        found.write_table(self.output())?;
        found.write(self.output())?;
        Ok(found)
    }

    fn too_short(&self, needed: f64) -> FitError {
        FitError::usage(format_args!(
            "--budget {}: too short for one trial beside the default options; {} or more are expected (--resume \
             keeps what is done)",
            seconds(self.clock.limit().unwrap_or_default()),
            seconds(needed.ceil())
        ))
    }

    fn next_job(&self) -> Option<Job> {
        if let Some(share) = &self.share {
            let rung = share.rung();
            let next = share.trials.iter().copied().find(|&trial| !self.search.is_done(trial, rung))?;
            return Some(Job { trial: next, settings: self.search.settings(next).clone(), rung });
        }
        if self.tune.in_rounds() {
            return self.search.round().into_iter().next();
        }
        let has_trials = self.tune.trials.is_none_or(|most| self.search.n_trials() < most);
        let job = self.search.next(has_trials && self.clock.is_open());
        // With all promotions done there may be time for more.
        let job = job.or_else(|| if has_trials { self.search.next(true) } else { None });
        job.filter(|job| self.clock.has_time_for(job.trial, job.rung))
    }

    /// The folder of the search.
    fn output(&self) -> &Path {
        &self.tune.training.place.model
    }

    /// Trains and judges a trial on a rung. A trial that fails is recorded as such, unless it is that
    /// of the default options.
    fn run_job(&self, job: &Job) -> Result<Run, FitError> {
        let start = Instant::now();
        let scores = self.scores(job);
        let scores = match scores {
            Err(e) if job.trial == 0 || e.kind() == FitErrorKind::Cancelled => return Err(e),
            scores => scores.map_err(|e| e.to_string()),
        };
        let wall_s = start.elapsed().as_secs_f64();
        Ok(Run { settings: job.settings.clone(), rung: job.rung, wall_s, scores })
    }

    fn scores(&self, job: &Job) -> Result<Vec<f64>, FitError> {
        let metric = self.tune.metric;
        let training = self.tune.with(&self.search.space().changes(&job.settings), TRIAL)?;
        let judging = Judging { ks: metric.k().into_iter().collect(), keep_rows: KeepRows::Yes, curve: false };
        let silent = Trial(self.context.observer);
        let context = self.context.watched_by(&silent);
        let mut scores = Vec::new();
        for hold_out in &self.rungs[job.rung].hold_outs {
            let report = training.trained(*hold_out, &judging, false, &context)?;
            let rows = report.metrics.and_then(|metrics| metrics.by_instance(metric));
            scores.extend(rows.ok_or_else(|| {
                FitError::usage(format_args!(
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
        let limit = self.clock.limit().map_or(String::new(), |limit| format!(" of {}", seconds(limit)));
        self.context.note(format_args!(
            "tune: trial {}, {rung}: {came_to}; {}; {}, {}{limit} in all",
            job.trial,
            options_line(&self.search.space().changes(&job.settings)),
            seconds(run.wall_s),
            seconds(self.clock.spent())
        ));
    }

    fn found(&self) -> Found {
        Found::new(self.tune, &self.search, &self.runs, &self.rungs)
    }
}
