//! What to try next, and what won.

use super::draw::{anywhere, near};
use super::paired::Paired;
use super::space::{Settings, Space};
use xc_hash::stream::{Purpose, Stream, name};

/// How a space is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvingParams {
    /// Names all draws.
    pub seed: u64,
    /// Number of rungs; 1 or more.
    pub rungs: usize,
    /// The first rung that is like the use of the settings: winners are chosen on this one or above,
    /// and rows of it and of all rungs above count together.
    pub decides_from: usize,
    /// Of so many trials of a rung, the best one goes on. Default 3 (li2020asha uses 4).
    pub reduction: usize,
    /// Trials that are drawn anywhere before others are drawn near the best. Default 8.
    pub at_random: usize,
}

impl Default for HalvingParams {
    fn default() -> Self {
        Self { seed: 0, rungs: 1, decides_from: 0, reduction: 3, at_random: 8 }
    }
}

/// What is to be done: settings, on a rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the trial; 0 is that of the default settings.
    pub trial: usize,
    /// Its settings.
    pub settings: Settings,
    /// The rung.
    pub rung: usize,
}

/// What is used in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Winner {
    /// Number of the trial; 0: the default settings.
    pub trial: usize,
    /// The rung that decided; nothing where no other trial reached one that may.
    pub rung: Option<usize>,
    /// How the winner compares with the default settings; nothing where it is these.
    pub against_default: Option<Paired>,
}

/// Settings that are tried.
#[derive(Clone, Debug)]
struct Trial {
    settings: Settings,
    /// Scores of the rows of each rung.
    rungs: Vec<Option<Vec<f64>>>,
    failed: bool,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    space: Space,
    params: HalvingParams,
    trials: Vec<Trial>,
}

/// Trials that new ones are drawn near to.
const GOOD: usize = 3;
/// Draws before a space counts as used up.
const DRAWS: usize = 200;

impl Search {
    /// A search at its beginning.
    ///
    /// # Panics
    /// If there is no rung, none decides, or the reduction is below 2.
    pub fn new(space: Space, params: HalvingParams) -> Self {
        assert!(params.decides_from < params.rungs, "{params:?}: one rung at least decides");
        assert!(params.reduction >= 2, "{params:?}: a reduction of 2 or more is expected");
        let default = Trial { settings: space.default_settings(), rungs: vec![None; params.rungs], failed: false };
        Self { space, params, trials: vec![default] }
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Number of trials so far, the default settings included.
    pub fn n_trials(&self) -> usize {
        self.trials.len()
    }

    /// The trial of settings that were recorded.
    pub fn trial_of(&self, settings: &Settings) -> Option<usize> {
        self.trials.iter().position(|trial| trial.settings == *settings)
    }

    /// Settings of a trial.
    pub fn settings(&self, trial: usize) -> &Settings {
        &self.trials[trial].settings
    }

    /// The mean score of a trial on a rung, once it is recorded. On rungs that decide, rows of those
    /// before it count too.
    pub fn score(&self, trial: usize, rung: usize) -> Option<f64> {
        let rows = self.rows(trial, rung)?;
        Some(rows.iter().sum::<f64>() / rows.len().max(1) as f64)
    }

    /// The highest rung on which a trial was recorded.
    pub fn highest(&self, trial: usize) -> Option<usize> {
        self.trials[trial].rungs.iter().rposition(Option::is_some)
    }

    /// How a trial compares with the default settings on a rung, once both are recorded.
    pub fn against_default(&self, trial: usize, rung: usize) -> Option<Paired> {
        Some(Paired::new(&self.rows(trial, rung)?, &self.rows(0, rung)?))
    }

    /// Scores of the rows that count on a rung.
    fn rows(&self, trial: usize, rung: usize) -> Option<Vec<f64>> {
        let rungs = &self.trials[trial].rungs;
        rungs[rung].as_ref()?;
        let first = if rung < self.params.decides_from { rung } else { self.params.decides_from };
        Some(rungs[first..=rung].iter().flatten().flatten().copied().collect())
    }

    /// Says how good settings were on a rung: a score for each of its rows, or nothing where the
    /// trial failed and is not to be gone on with.
    ///
    /// # Panics
    /// If they are no settings of the space, there is no such rung, or another number of rows was
    /// recorded for it.
    pub fn record(&mut self, settings: &Settings, rung: usize, scores: Option<Vec<f64>>) {
        assert!(self.space.contains(settings), "{settings:?} is not of the space");
        if let (Some(scores), Some(others)) = (&scores, &self.trials[0].rungs[rung]) {
            assert!(scores.len() == others.len(), "{} rows on a rung of {}", scores.len(), others.len());
        }
        let at = self.trial_of(settings).unwrap_or_else(|| {
            let rungs = vec![None; self.params.rungs];
            self.trials.push(Trial { settings: settings.clone(), rungs, failed: false });
            self.trials.len() - 1
        });
        self.trials[at].failed |= scores.is_none();
        self.trials[at].rungs[rung] = scores;
    }

    /// Draws settings up to `n` trials before any of them is recorded, so that [`round`](Self::round) can share them out.
    /// Fewer where the space has no more, or where they are drawn near good ones ([`HalvingParams::at_random`]).
    pub fn draw_ahead(&mut self, n: usize) {
        while self.trials.len() < n {
            let Some(Job { settings, .. }) = self.new_trial() else { return };
            self.trials.push(Trial { settings, rungs: vec![None; self.params.rungs], failed: false });
        }
    }

    /// All that can be done before anything else is known, by rung and trial: a whole rung of the trials that are there,
    /// and then of the best of these. Nothing when all is done.
    pub fn round(&self) -> Vec<Job> {
        let is_open = |trial: usize, rung: usize| !self.is_done(trial, rung);
        let first: Vec<Job> =
            (0..self.trials.len()).filter(|&trial| is_open(trial, 0)).map(|trial| self.job(trial, 0)).collect();
        if !first.is_empty() || self.trials.first().is_none_or(|default| default.failed) {
            return first;
        }
        let rounds = (0..self.params.rungs - 1).map(|rung| {
            let mut trials: Vec<usize> = self.promoted(rung, false).collect();
            // The default settings are what others are compared with.
            if !trials.is_empty() {
                trials.push(0);
            }
            trials.retain(|&trial| is_open(trial, rung + 1));
            trials.sort_unstable();
            trials.into_iter().map(|trial| self.job(trial, rung + 1)).collect::<Vec<_>>()
        });
        rounds.into_iter().find(|jobs| !jobs.is_empty()).unwrap_or_default()
    }

    /// Whether a trial was recorded on a rung, or failed and does not go on.
    pub fn is_done(&self, trial: usize, rung: usize) -> bool {
        let Trial { rungs, failed, .. } = &self.trials[trial];
        *failed || rungs[rung].is_some()
    }

    /// What to do next; nothing when all is done. With `open` new settings may be drawn; without,
    /// those that are there go on until the best has reached the top.
    pub fn next(&self, open: bool) -> Option<Job> {
        if self.trials[0].rungs[0].is_none() {
            return (!self.trials[0].failed).then(|| self.job(0, 0));
        }
        let on_higher = (0..self.params.rungs - 1).rev().find_map(|rung| self.promotion(rung, open));
        on_higher.or_else(|| if open { self.new_trial() } else { None })
    }

    fn job(&self, trial: usize, rung: usize) -> Job {
        Job { trial, settings: self.trials[trial].settings.clone(), rung }
    }

    /// The best trials of a rung go on to the next one; the default settings go before the first.
    fn promotion(&self, rung: usize, open: bool) -> Option<Job> {
        let next = self.promoted(rung, open).find(|&trial| !self.is_done(trial, rung + 1))?;
        let default = &self.trials[0];
        if default.failed {
            return None;
        }
        Some(self.job(if default.rungs[rung + 1].is_none() { 0 } else { next }, rung + 1))
    }

    /// The best trials of a rung that go on to the next one, or have done so: best first, without the default settings.
    fn promoted(&self, rung: usize, open: bool) -> impl Iterator<Item = usize> {
        let ranked = self.ranked(rung);
        let quota = ranked.len() / self.params.reduction;
        let quota = if open { quota } else { quota.max(1) };
        let is_hopeless = move |trial: &usize| self.against_default(*trial, rung).is_some_and(|p| p.is_clearly_worse());
        ranked.into_iter().take(quota).filter(move |trial| !is_hopeless(trial))
    }

    /// Trials other than the default settings that were recorded on a rung, best first.
    fn ranked(&self, rung: usize) -> Vec<usize> {
        let scored = (1..self.trials.len()).filter_map(|trial| Some((trial, self.score(trial, rung)?)));
        let mut scored: Vec<(usize, f64)> = scored.collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().map(|(trial, _)| trial).collect()
    }

    /// Trials that got furthest, the best of them first.
    fn good(&self) -> Vec<&Settings> {
        let reached = |trial: usize| Some((self.highest(trial)?, trial));
        let mut all: Vec<(usize, f64, usize)> = (0..self.trials.len())
            .filter_map(reached)
            .filter_map(|(rung, trial)| Some((rung, self.score(trial, rung)?, trial)))
            .collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        all.into_iter().take(GOOD).map(|(.., trial)| &self.trials[trial].settings).collect()
    }

    /// Settings that were not tried, or nothing when they are hard to find.
    fn new_trial(&self) -> Option<Job> {
        let trial = self.trials.len();
        let is_new = |settings: &Settings| self.trial_of(settings).is_none();
        let job = |settings: Settings| Job { trial, settings, rung: 0 };
        if let Some(start) = self.space.starts().iter().find(|start| is_new(start)) {
            return Some(job(start.clone()));
        }
        if self.space.choices().is_empty() {
            return None;
        }
        let mut stream = Stream::new(name(self.params.seed, Purpose::Trials, &[trial as u64]));
        let good = self.good();
        let at_random = trial <= self.space.starts().len().saturating_add(self.params.at_random);
        let mut draw = || match at_random || stream.below(4) == 0 {
            true => anywhere(&self.space, &mut stream),
            false => near(&self.space, &good, &mut stream),
        };
        (0..DRAWS).map(|_| draw()).find(|settings| is_new(settings)).map(job)
    }

    /// What is used: on the highest rung that another trial has reached, the trial that is better than
    /// the default settings by most, if by more than the standard error of the difference; the default
    /// settings otherwise.
    pub fn winner(&self) -> Winner {
        let decides = |rung: usize| {
            let compared =
                self.ranked(rung).into_iter().filter_map(|trial| Some((trial, self.against_default(trial, rung)?)));
            let compared: Vec<(usize, Paired)> = compared.collect();
            (!compared.is_empty()).then_some((rung, compared))
        };
        let Some((rung, compared)) = (self.params.decides_from..self.params.rungs).rev().find_map(decides) else {
            return Winner { trial: 0, rung: None, against_default: None };
        };
        // Ranked, so that of equal ones the first wins.
        match compared.into_iter().find(|(_, paired)| paired.is_better()) {
            Some((trial, paired)) => Winner { trial, rung: Some(rung), against_default: Some(paired) },
            None => Winner { trial: 0, rung: Some(rung), against_default: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::{Choice, Scale};
    use super::*;
    use proptest::prelude::*;
    use xc_hash::stream::mix64;

    const ROWS: usize = 60;

    fn space() -> Space {
        Space::new(vec![
            Choice::new("a", &["0", "1", "2", "3", "4"], 2, Scale::Ordered),
            Choice::new("b", &["x", "y", "z"], 0, Scale::Named),
            Choice::new("c", &["off", "on"], 0, Scale::Named),
        ])
    }

    fn params(seed: u64) -> HalvingParams {
        HalvingParams { seed, rungs: 3, decides_from: 1, ..HalvingParams::default() }
    }

    /// Scores of made-up settings: `quality` of them is right on average, the same rows for all.
    fn scores(settings: &Settings, rung: usize, quality: impl Fn(&Settings) -> f64) -> Vec<f64> {
        let share = quality(settings);
        let draw = |row: usize| mix64((row + 1000 * rung) as u64) as f64 / u64::MAX as f64;
        (0..ROWS).map(|row| f64::from(draw(row) < share)).collect()
    }

    fn good(settings: &Settings) -> f64 {
        let v = settings.values();
        0.3 + 0.1 * v[0] as f64 + if v[2] == 1 { 0.1 } else { 0.0 }
    }

    fn run(search: &mut Search, most: usize, quality: impl Fn(&Settings) -> f64) -> Vec<Job> {
        let mut jobs = Vec::new();
        while let Some(job) = search.next(search.n_trials() < most) {
            search.record(&job.settings, job.rung, Some(scores(&job.settings, job.rung, &quality)));
            jobs.push(job);
        }
        jobs
    }

    #[test]
    fn the_default_comes_first_on_every_rung_and_a_better_one_wins() {
        let mut search = Search::new(space(), params(1));
        let jobs = run(&mut search, 25, good);
        for rung in 0..3 {
            let first = jobs.iter().find(|job| job.rung == rung).unwrap();
            assert_eq!(first.trial, 0, "rung {rung}");
        }
        let of = |rung| jobs.iter().filter(|job| job.rung == rung && job.trial > 0).count();
        assert_eq!(of(0), 24);
        assert!((2..=12).contains(&of(1)) && (1..=5).contains(&of(2)), "{} {}", of(1), of(2));
        let winner = search.winner();
        assert_eq!(winner.rung, Some(2));
        assert!(good(search.settings(winner.trial)) > 0.7, "{:?}", search.settings(winner.trial));
        // Rows of the rungs that decide count together.
        assert_eq!(winner.against_default.unwrap().rows, 2 * ROWS);
    }

    #[test]
    fn the_default_wins_ties_and_what_only_a_lower_rung_says() {
        let mut search = Search::new(space(), params(2));
        run(&mut search, 12, |_| 0.5);
        let winner = search.winner();
        assert_eq!((winner.trial, winner.rung), (0, Some(2)));
        let mut search = Search::new(space(), params(2));
        for _ in 0..4 {
            let job = search.next(true).unwrap();
            if job.rung == 0 {
                search.record(&job.settings, 0, Some(scores(&job.settings, 0, good)));
            }
        }
        assert_eq!(search.winner(), Winner { trial: 0, rung: None, against_default: None });
    }

    #[test]
    fn starts_come_before_draws_and_no_settings_come_twice() {
        let mut search = Search::new(space().with_starts([&[("c", "on")][..], &[("b", "z")]]), params(3));
        let jobs = run(&mut search, 1000, good);
        let fresh: Vec<&Job> = jobs.iter().filter(|job| job.rung == 0).collect();
        assert_eq!((fresh[1].settings.values(), fresh[2].settings.values()), (&[2, 0, 1][..], &[2, 2, 0][..]));
        let mut seen: Vec<_> = fresh.iter().map(|job| &job.settings).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), fresh.len());
        // Nearly all of the 30 there are.
        assert!(fresh.len() > 25, "{}", fresh.len());
    }

    #[test]
    fn a_trial_that_failed_does_not_go_on() {
        let mut search = Search::new(space(), params(4));
        let mut failed = Vec::new();
        while let Some(job) = search.next(search.n_trials() < 15) {
            assert!(!failed.contains(&job.settings));
            let fails = job.settings.values()[2] == 1;
            let got = (!fails).then(|| scores(&job.settings, job.rung, good));
            search.record(&job.settings, job.rung, got);
            failed.extend(fails.then_some(job.settings));
        }
        assert!(!failed.is_empty() && search.settings(search.winner().trial).values()[2] == 0);
        // Without the default settings there is nothing to compare with.
        let mut search = Search::new(space(), params(4));
        search.record(&search.space().default_settings(), 0, None);
        assert_eq!(search.next(true), None);
    }

    proptest! {
        #[test]
        fn rounds_are_the_same_whoever_does_which_of_their_jobs(seed in 0u64..1000, n in 2usize..25, of in 1usize..5) {
            let begun = || {
                let mut search = Search::new(space(), HalvingParams { at_random: usize::MAX, ..params(seed) });
                search.draw_ahead(n);
                search
            };
            let done = |search: &mut Search, job: &Job| {
                let fails = mix64(job.trial as u64 + seed).is_multiple_of(9) && job.trial > 0;
                let got = (!fails).then(|| scores(&job.settings, job.rung, good));
                search.record(&job.settings, job.rung, got);
            };
            // One job after the other.
            let mut one = begun();
            prop_assert_eq!(one.n_trials(), n);
            let mut jobs = Vec::new();
            while let Some(job) = one.round().into_iter().next() {
                done(&mut one, &job);
                jobs.push(job);
            }
            // Whole rounds, each by several who hear of the others at its end alone.
            let mut several = begun();
            let mut rounds = Vec::new();
            loop {
                let round = several.round();
                if round.is_empty() {
                    break;
                }
                for index in 0..of {
                    let mut own = several.clone();
                    own.round().iter().skip(index).step_by(of).for_each(|job| done(&mut own, job));
                    for job in round.iter().skip(index).step_by(of) {
                        prop_assert!(own.is_done(job.trial, job.rung));
                    }
                }
                round.iter().for_each(|job| done(&mut several, job));
                rounds.extend(round);
            }
            prop_assert_eq!(&jobs, &rounds);
            prop_assert_eq!(one.winner(), several.winner());
            prop_assert_eq!(jobs.iter().filter(|job| job.rung == 0).count(), n);
            prop_assert!(jobs.is_sorted_by_key(|job| (job.rung, job.trial)));
        }

        #[test]
        fn what_comes_next_follows_from_what_was_recorded(seed in 0u64..1000, most in 2usize..20, cut in 0usize..40) {
            let mut search = Search::new(space(), params(seed));
            let jobs = run(&mut search, most, good);
            // An interrupted search that is told the same goes on with the same.
            let mut again = Search::new(space(), params(seed));
            let cut = cut.min(jobs.len());
            for job in &jobs[..cut] {
                again.record(&job.settings, job.rung, Some(scores(&job.settings, job.rung, good)));
            }
            prop_assert_eq!(&run(&mut again, most, good)[..], &jobs[cut..]);
            prop_assert_eq!(again.winner(), search.winner());
            // A trial goes up one rung at a time.
            for job in &jobs {
                let before = jobs.iter().take_while(|other| *other != job).filter(|other| other.trial == job.trial);
                prop_assert_eq!(before.count(), job.rung);
            }
        }

        #[test]
        fn a_winner_is_better_than_the_default_by_more_than_the_standard_error(seed in 0u64..200, skill in 0u64..50) {
            let quality = |s: &Settings| 0.4 + 0.2 * (mix64(s.values()[0] as u64 + 7 * skill) as f64 / u64::MAX as f64);
            let mut search = Search::new(space(), params(seed));
            run(&mut search, 10, quality);
            let winner = search.winner();
            match winner.against_default {
                Some(paired) => prop_assert!(winner.trial > 0 && paired.difference > paired.standard_error),
                None => prop_assert_eq!(winner.trial, 0),
            }
        }
    }
}
