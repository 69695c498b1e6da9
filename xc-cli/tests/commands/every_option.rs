//! What every option of every command changes.
//!
//! Each scenario is a command that succeeds. Every option that the help of the command lists is added to it, with
//! a value that is not the default. What comes out must differ from what came out without the option (files,
//! stdout, exit code), or the option must be refused by its name. So an option that belongs to a choice that is not
//! made cannot be given in silence, and every option must change something in at least one scenario.
//!
//! So many options and scenarios make thousands of runs, so every fifth pair is run (of training, none), and more where an
//! option has not shown its effect yet. XC_FIFTH=0..4 says which fifth; `cargo test -p xc-cli --test commands every_pair -- --ignored` runs all.
//!
//! Some options are let off, each list with its reason (`every_option/values.rs`): of those that ask for what may hold
//! already the help says so (`TAKEN`), and those that only decide whether a command is refused do that (`GATES`).

mod inputs;
mod scenarios;
mod values;

use crate::program::{Folder, Outcome, Shared, files, run};
use scenarios::{SCENARIOS, Scenario};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use xc_hash::stream::mix;

/// What a run leaves.
#[derive(PartialEq)]
struct Left {
    code: i32,
    stdout: String,
    files: BTreeMap<String, Vec<u8>>,
}

/// Fields that are times, or depend on them.
const TIMES: [&str; 25] = [
    "wall_s",
    "instances_per_s",
    "cpu_s",
    "build_s",
    "refresh_s",
    "qps",
    "exact_qps",
    "p50_us",
    "p99_us",
    "mean_ms",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "load_ms",
    "first_answer_ms",
    "peak_rss_bytes",
    "peak_anon_bytes",
    "line_ns",
    "floor_ms",
    "ms",
    "read_s",
    "train_s",
    "save_s",
    "elapsed_s",
    "seconds",
];

/// A document without times, and without what is only noted in it.
fn without_times(value: &mut Value, is_config: bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&&**name));
            if is_config {
                // What answers depend on is in the arrays, whose hashes are here, or among the other parameters.
                fields
                    .retain(|name, _| !["training", "classifier", "skipgram", "blend", "instances"].contains(&&**name));
            }
            fields.values_mut().for_each(|value| without_times(value, is_config));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| without_times(value, is_config)),
        _ => {}
    }
}

fn lines_without_times(text: &str) -> String {
    let line = |line: &str| match serde_json::from_str(line) {
        Ok(mut value) => {
            without_times(&mut value, false);
            value.to_string()
        }
        Err(_) => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Runs a command in an empty folder beside `in`.
fn left(folder: &Folder, arguments: &str) -> (Left, Outcome) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("run-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let place = folder.path(&name);
    std::fs::create_dir(&place).unwrap();
    let mut command = folder.command("");
    let stdin = arguments.contains("--input -").then(|| std::fs::File::open(folder.path("in/requests.txt")).unwrap());
    command.current_dir(&place).args(typed(arguments));
    if !arguments.starts_with("completions") {
        // The runs are side by side already.
        command.args(["--quiet", "--threads", "1"]);
    }
    if let Some(stdin) = stdin {
        command.stdin(stdin);
    }
    let outcome = run(&mut command);
    let mut kept = files(&place);
    let is_search = arguments.starts_with("tune");
    kept.retain(|name, _| !name.ends_with("train.json") && !name.ends_with("build.json"));
    for (name, bytes) in &mut kept {
        if name.ends_with("config.json") {
            let mut value: Value = serde_json::from_slice(bytes).unwrap();
            without_times(&mut value, true);
            // The hash of all of it.
            value.as_object_mut().unwrap().remove("xxh3");
            if !arguments.contains(".jsonl") && !arguments.contains(".csv") {
                value["parameters"].as_object_mut().unwrap().remove("input");
            }
            *bytes = value.to_string().into_bytes();
        } else if name.ends_with(".svg") && (name.contains(".log/") || is_search || arguments.starts_with("index")) {
            // A picture of times.
            bytes.clear();
        } else if name.ends_with(".jsonl") && (is_search || name.contains(".log/")) {
            *bytes = lines_without_times(std::str::from_utf8(bytes).unwrap()).into_bytes();
        }
    }
    std::fs::remove_dir_all(&place).unwrap();
    (Left { code: outcome.code, stdout: lines_without_times(&outcome.stdout), files: kept }, outcome)
}

/// Arguments separated by blanks; `''` is an empty one.
fn typed(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().map(|word| word.trim_matches('\'')).collect()
}

/// The options that the help of a command lists, but for its own switches and those of optional parts: where the program has
/// some, tests of their own ask what these change.
fn options(folder: &Folder, command: &str) -> Vec<String> {
    let help = folder.ok(&format!("{command} --help"));
    let listed =
        help.lines().filter_map(|line| line.trim_start().strip_prefix("--").filter(|_| line.starts_with("      --")));
    let mut names: Vec<String> = listed.map(|line| line.split([' ', '[', ',']).next().unwrap().to_owned()).collect();
    names.retain(|name| !["help", "version"].contains(&&**name) && !values::is_of_an_optional_part(name));
    names.sort();
    names.dedup();
    names
}

/// What the runs have shown so far.
#[derive(Default)]
struct Found {
    /// Options that changed something, by command.
    effective: BTreeSet<(String, String)>,
    wrong: Vec<String>,
    /// What a scenario leaves without a further option, by its place; nothing where it fails.
    bases: BTreeMap<usize, Option<Arc<Left>>>,
}

/// Scenarios of some commands, and the options of these.
struct Asked<'a> {
    folder: &'a Folder,
    scenarios: Vec<&'static Scenario>,
    options: BTreeMap<&'a str, Vec<String>>,
    found: Mutex<Found>,
}

impl Asked<'_> {
    /// What the scenario leaves, the same when it is run again.
    fn base(&self, place: usize) -> Option<Arc<Left>> {
        if let Some(known) = self.found.lock().unwrap().bases.get(&place) {
            return known.clone();
        }
        let Scenario { command, arguments, .. } = self.scenarios[place];
        let base = format!("{command} {arguments}");
        let (before, outcome) = left(self.folder, &base);
        let is_good = before.code == 0 && before == left(self.folder, &base).0;
        let mut found = self.found.lock().unwrap();
        if !is_good {
            found.wrong.push(format!("fails, or differs when it is run again: xc {base}: {outcome:?}"));
        }
        let kept = is_good.then(|| Arc::new(before));
        found.bases.insert(place, kept.clone());
        kept
    }

    /// Tries the options of a scenario that `is_tried` accepts.
    fn look(&self, place: usize, is_tried: impl Fn(&str) -> bool) {
        let Scenario { command, arguments, unseen } = self.scenarios[place];
        let words = typed(arguments);
        let (given, others): (Vec<&String>, Vec<_>) =
            self.options[command].iter().partition(|option| words.contains(&&*format!("--{option}")));
        let tried: Vec<_> =
            others.into_iter().filter(|option| !values::is_of_the_run(option) && is_tried(option)).collect();
        // An option that the scenario has needs no other to be asked for: the scenario alone shows it.
        if tried.is_empty() && !given.iter().any(|option| is_tried(option)) {
            return;
        }
        let Some(before) = self.base(place) else { return };
        let given = given.into_iter().map(|option| (command.to_string(), option.clone()));
        self.found.lock().unwrap().effective.extend(given);
        for option in tried {
            let Some(value) = values::value(command, option) else {
                let what = format!("no value is known of xc {command} --{option}: add one that is not the default");
                self.found.lock().unwrap().wrong.push(what);
                continue;
            };
            let with = format!("{command} {arguments} --{option} {value}");
            let (after, outcome) = left(self.folder, &with);
            let mut found = self.found.lock().unwrap();
            if outcome.code == 2 {
                let is_said = ["xc: error: ", "{\"error\":"].iter().any(|begin| outcome.stderr.starts_with(begin));
                if !is_said || outcome.stderr.contains("internal error") {
                    found.wrong.push(format!("{with}: {outcome:?}"));
                }
                continue;
            }
            if after != *before {
                found.effective.insert((command.to_string(), option.clone()));
            } else if !values::is_exempt(command, option) && !values::is_weak(option) && !unseen.contains(&&**option) {
                found.wrong.push(format!("changes nothing: xc {with}"));
            }
        }
    }

    /// Looks at all scenarios, two at a time, from one of them on.
    fn look_at_all(&self, first: usize, is_tried: &(dyn Fn(usize, &str) -> bool + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= self.scenarios.len() {
                            break;
                        }
                        let place = (first + at) % self.scenarios.len();
                        self.look(place, |option| is_tried(place, option));
                    }
                });
            }
        });
    }
}

/// Which of the pairs of scenario and option are run.
#[derive(Clone, Copy, PartialEq)]
enum Pairs {
    All,
    /// Every fifth, and those that an option without an effect so far needs.
    Fifth,
    /// Those that an option needs to show its effect, from a scenario on that turns with the fifth: what is refused beside which
    /// choice is asked in process (`xc-options/src/training/effects.rs`).
    Shown,
}

/// The fifth that a pair belongs to.
fn fifth_of(place: usize, option: &str) -> u64 {
    option.bytes().fold(place as u64, |hash, byte| mix(hash, byte.into())) % 5
}

/// The fifth that is run.
fn chosen_fifth() -> u64 {
    let fifth = std::env::var("XC_FIFTH").map_or(0, |text| text.parse().expect("XC_FIFTH: 0 to 4 is expected"));
    assert!(fifth < 5, "XC_FIFTH={fifth}: 0 to 4 is expected");
    fifth
}

/// What the commands are asked with, and its files as they were made.
struct Inputs {
    folder: Folder,
    made: BTreeMap<String, Vec<u8>>,
}

static INPUTS: Shared<Inputs> = Shared::new();

/// Runs a test in the folder that all tests of this module share; afterwards its inputs are what they were.
fn with_inputs(test: impl FnOnce(&Folder)) {
    let inputs = INPUTS.get(|| {
        let folder = inputs::make();
        let made = files(&folder.path("in"));
        Inputs { folder, made }
    });
    let Inputs { folder, made } = &*inputs;
    test(folder);
    let changed: Vec<_> =
        files(&folder.path("in")).into_iter().filter(|(name, bytes)| made.get(name) != Some(bytes)).collect();
    assert!(changed.is_empty(), "a command wrote to {:?}", changed.iter().map(|(name, _)| name).collect::<Vec<_>>());
}

/// `is_pooled`: the commands share their options, so one of them has to show what an option changes.
fn every_option_of(commands: &[&str], is_pooled: bool, pairs: Pairs) {
    with_inputs(|folder| every_option_in(folder, commands, is_pooled, pairs));
}

fn every_option_in(folder: &Folder, commands: &[&str], is_pooled: bool, pairs: Pairs) {
    let scenarios = SCENARIOS.iter().filter(|scenario| commands.contains(&scenario.command)).collect();
    let options = commands.iter().map(|command| (*command, options(folder, command))).collect();
    let asked = Asked { folder, scenarios, options, found: Mutex::default() };
    let chosen = chosen_fifth();
    let is_first = |place: usize, option: &str| match pairs {
        Pairs::All => true,
        Pairs::Fifth => fifth_of(place, option) == chosen,
        Pairs::Shown => false,
    };
    if pairs != Pairs::Shown {
        asked.look_at_all(0, &is_first);
    }
    // The options of a search that training shows need not change a search.
    let need_not = |command: &str, option: &str| {
        values::is_exempt(command, option) || (command.starts_with("tune") && !values::OF_SEARCH.contains(&option))
    };
    let is_shown = |effective: &BTreeSet<(String, String)>, command: &str, option: &str| {
        effective.iter().any(|(of, shown)| shown == option && (is_pooled || of == command))
    };
    if pairs != Pairs::All {
        let first = chosen as usize * asked.scenarios.len() / 5;
        asked.look_at_all(first, &|place, option| {
            let command = asked.scenarios[place].command;
            let is_open = || !is_shown(&asked.found.lock().unwrap().effective, command, option);
            !is_first(place, option) && !need_not(command, option) && is_open()
        });
    }
    let Asked { scenarios, options, found, .. } = asked;
    let Found { effective, mut wrong, .. } = found.into_inner().unwrap();
    for command in commands {
        assert!(scenarios.iter().any(|scenario| scenario.command == *command), "no scenario of {command}");
        for option in &options[command] {
            if !is_shown(&effective, command, option) && !need_not(command, option) {
                wrong.push(format!("never changes anything: xc {command} --{option}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the help says of an option, in one line.
fn words_of_help(folder: &Folder, command: &str) -> String {
    folder.ok(&format!("{command} --help")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn options_that_decide_what_is_refused_do_so_and_the_help_names_those_that_may_change_nothing() {
    with_inputs(|folder| {
        for (command, arguments, with, refuses) in values::GATES {
            let base = format!("{command} {arguments}");
            let option = with.split(' ').next().unwrap();
            let codes = [base.clone(), format!("{base} --{with}")].map(|line| left(folder, &line).1);
            let [without, with] = &codes;
            assert_eq!((without.code, with.code), if refuses { (0, 2) } else { (2, 0) }, "xc {base}: {codes:?}");
            let refusal = if refuses { with } else { without };
            assert!(refusal.stderr.contains(&format!("--{option}")) || option == "max-age", "{refusal:?}");
        }
        for (command, option, words) in values::TAKEN {
            let help = words_of_help(folder, command);
            assert!(help.contains(&format!("--{option}")) && help.contains(words), "xc {command} --{option}: {words}");
        }
    });
}

const TREES: &[&str] = &["train tree"];
const NETWORKS: &[&str] = &["train mach", "train dense", "train uniform", "train lns", "train astra", "train skipgram"];
const SEARCHES: &[&str] = &["tune tree", "tune mach", "tune lns"];
const BLENDS: &[&str] = &["blend"];
const ANSWERS: &[&str] = &["predict", "bench predict", "evaluate", "inspect", "explain"];
const INDEXES: &[&str] = &["index build", "index search", "index evaluate", "index refresh"];
const OTHERS: &[&str] = &["quickstart", "generate", "merge", "calibrate", "convert", "bench curves", "completions"];

#[test]
fn every_option_of_training_a_tree_changes_something_or_is_refused() {
    every_option_of(TREES, false, Pairs::Shown);
}

#[test]
fn every_option_of_training_a_network_changes_something_or_is_refused() {
    every_option_of(NETWORKS, true, Pairs::Shown);
}

#[test]
fn every_option_of_a_search_changes_something_or_is_refused() {
    every_option_of(SEARCHES, true, Pairs::Shown);
}

#[test]
fn every_option_of_a_blend_changes_something_or_is_refused() {
    every_option_of(BLENDS, false, Pairs::Fifth);
}

#[test]
fn every_option_of_answering_changes_something_or_is_refused() {
    every_option_of(ANSWERS, false, Pairs::Fifth);
}

#[test]
fn every_option_of_an_index_changes_something_or_is_refused() {
    every_option_of(INDEXES, false, Pairs::Fifth);
}

#[test]
fn every_option_of_other_commands_changes_something_or_is_refused() {
    every_option_of(OTHERS, false, Pairs::Fifth);
}

#[test]
#[ignore = "thousands of runs, of which every fifth is run without being asked for"]
fn every_pair_of_scenario_and_option_changes_something_or_is_refused() {
    for (commands, is_pooled) in [
        (TREES, false),
        (NETWORKS, true),
        (SEARCHES, true),
        (BLENDS, false),
        (ANSWERS, false),
        (INDEXES, false),
        (OTHERS, false),
    ] {
        every_option_of(commands, is_pooled, Pairs::All);
    }
}
