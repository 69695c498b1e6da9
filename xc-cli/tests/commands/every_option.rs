//! What every option of every command changes.
//!
//! Each scenario is a command that succeeds. Every option that the help of the command lists is added to it, with
//! a value that is not the default. What comes out must differ from what came out without the option (files,
//! stdout, exit code), or the option must be refused by its name. So an option that belongs to a choice that is not
//! made cannot be given in silence, and every option must change something in at least one scenario.
//!
//! So many options and scenarios make thousands of runs. Of the pairs of training, search and blend, whose refusals the
//! table of settings is tested for in the library too, every fifth is run, and more where an option has not shown its effect yet;
//! `cargo test -p xc-cli --test commands every_pair -- --ignored` runs all.
//!
//! Some options are let off, each list with its reason (`every_option/values.rs`): of those that ask for what may hold
//! already the help says so (`TAKEN`), and those that only decide whether a command is refused do that (`GATES`).

mod inputs;
mod scenarios;
mod values;

use crate::program::{Folder, Outcome, files, run};
use scenarios::{SCENARIOS, Scenario};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// The options that the help of a command lists, but for its own switches.
fn options(folder: &Folder, command: &str) -> Vec<String> {
    let help = folder.ok(&format!("{command} --help"));
    let listed =
        help.lines().filter_map(|line| line.trim_start().strip_prefix("--").filter(|_| line.starts_with("      --")));
    let mut names: Vec<String> = listed.map(|line| line.split([' ', '[', ',']).next().unwrap().to_owned()).collect();
    names.retain(|name| !["help", "version"].contains(&&**name));
    names.sort();
    names.dedup();
    names
}

struct Found {
    /// Options that changed something, by command.
    effective: BTreeSet<(String, String)>,
    wrong: Vec<String>,
}

/// Tries the options that `is_tried` accepts.
fn look(folder: &Folder, scenario: &Scenario, found: &Mutex<Found>, is_tried: impl Fn(&str) -> bool) {
    let Scenario { command, arguments, unseen } = scenario;
    let (words, base) = (typed(arguments), format!("{command} {arguments}"));
    let (given, others): (Vec<_>, Vec<_>) =
        options(folder, command).into_iter().partition(|option| words.contains(&&*format!("--{option}")));
    let tried: Vec<_> =
        others.into_iter().filter(|option| !values::is_of_the_run(option) && is_tried(option)).collect();
    if tried.is_empty() {
        return;
    }
    let (before, outcome) = left(folder, &base);
    if before.code != 0 || before != left(folder, &base).0 {
        found.lock().unwrap().wrong.push(format!("fails, or differs when it is run again: xc {base}: {outcome:?}"));
        return;
    }
    found.lock().unwrap().effective.extend(given.into_iter().map(|option| (command.to_string(), option)));
    for option in tried {
        let Some(value) = values::value(command, &option) else {
            let what = format!("no value is known of xc {command} --{option}: add one that is not the default");
            found.lock().unwrap().wrong.push(what);
            continue;
        };
        let with = format!("{base} --{option} {value}");
        let (after, outcome) = left(folder, &with);
        let mut found = found.lock().unwrap();
        if outcome.code == 2 {
            if !outcome.stderr.starts_with("xc: error: ") || outcome.stderr.contains("internal error") {
                found.wrong.push(format!("{with}: {outcome:?}"));
            }
            continue;
        }
        if after != before {
            found.effective.insert((command.to_string(), option.clone()));
        } else if !values::is_exempt(command, &option) && !values::is_weak(&option) && !unseen.contains(&&*option) {
            found.wrong.push(format!("changes nothing: xc {with}"));
        }
    }
}

/// Which of the pairs of scenario and option are run.
#[derive(Clone, Copy, PartialEq)]
enum Pairs {
    All,
    /// Every fifth, and those that an option without an effect so far needs.
    Fifth,
}

/// The same fifth in every run.
fn is_of_the_fifth(place: usize, option: &str) -> bool {
    option.bytes().fold(place as u64, |hash, byte| mix(hash, byte.into())).is_multiple_of(5)
}

/// Looks at scenarios, two at a time.
fn look_at_all(
    folder: &Folder,
    scenarios: &[&Scenario],
    found: &Mutex<Found>,
    is_tried: &(dyn Fn(usize, &str) -> bool + Sync),
) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scenario) = scenarios.get(place) else { break };
                    look(folder, scenario, found, |option| is_tried(place, option));
                }
            });
        }
    });
}

/// `is_pooled`: the commands share their options, so one of them has to show what an option changes.
fn every_option_of(commands: &[&str], is_pooled: bool, pairs: Pairs) {
    let folder = inputs::make();
    let found = Mutex::new(Found { effective: BTreeSet::new(), wrong: Vec::new() });
    let scenarios: Vec<&Scenario> = SCENARIOS.iter().filter(|scenario| commands.contains(&scenario.command)).collect();
    let is_first = |place: usize, option: &str| pairs == Pairs::All || is_of_the_fifth(place, option);
    look_at_all(&folder, &scenarios, &found, &is_first);
    if pairs == Pairs::Fifth {
        let shown = found.lock().unwrap().effective.clone();
        let is_shown = |option: &str| shown.iter().any(|(_, of)| of == option);
        look_at_all(&folder, &scenarios, &found, &|place, option| !is_first(place, option) && !is_shown(option));
    }
    let Found { effective, mut wrong } = found.into_inner().unwrap();
    for command in commands {
        assert!(scenarios.iter().any(|scenario| scenario.command == *command), "no scenario of {command}");
        for option in options(&folder, command) {
            let shows = |command: &&str| effective.contains(&(command.to_string(), option.clone()));
            let is_shown = if is_pooled { commands.iter().any(shows) } else { shows(command) };
            let need_not = values::is_exempt(command, &option)
                || (command.starts_with("tune") && !values::OF_SEARCH.contains(&&*option));
            if !is_shown && !need_not {
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
    let folder = inputs::make();
    for (command, arguments, with, refuses) in values::GATES {
        let base = format!("{command} {arguments}");
        let option = with.split(' ').next().unwrap();
        let codes = [base.clone(), format!("{base} --{with}")].map(|line| left(&folder, &line).1);
        let [without, with] = &codes;
        assert_eq!((without.code, with.code), if refuses { (0, 2) } else { (2, 0) }, "xc {base}: {codes:?}");
        let refusal = if refuses { with } else { without };
        assert!(refusal.stderr.contains(&format!("--{option}")) || option == "max-age", "{refusal:?}");
    }
    for (command, option, words) in values::TAKEN {
        let help = words_of_help(&folder, command);
        assert!(help.contains(&format!("--{option}")) && help.contains(words), "xc {command} --{option}: {words}");
    }
}

const TREES: [&str; 1] = ["train tree"];
const NETWORKS: [&str; 6] =
    ["train mach", "train dense", "train uniform", "train lns", "train astra", "train skipgram"];
const SEARCHES: [&str; 3] = ["tune tree", "tune mach", "tune lns"];

#[test]
fn every_option_of_training_a_tree_changes_something_or_is_refused() {
    every_option_of(&TREES, false, Pairs::Fifth);
}

#[test]
fn every_option_of_training_a_network_changes_something_or_is_refused() {
    every_option_of(&NETWORKS, true, Pairs::Fifth);
}

#[test]
fn every_option_of_a_search_changes_something_or_is_refused() {
    every_option_of(&SEARCHES, true, Pairs::Fifth);
}

#[test]
#[ignore = "thousands of runs, of which every fifth is run without being asked for"]
fn every_pair_of_scenario_and_option_of_training_changes_something_or_is_refused() {
    every_option_of(&TREES, false, Pairs::All);
    every_option_of(&NETWORKS, true, Pairs::All);
    every_option_of(&SEARCHES, true, Pairs::All);
    every_option_of(&["blend"], false, Pairs::All);
}

#[test]
fn every_option_of_a_blend_changes_something_or_is_refused() {
    every_option_of(&["blend"], false, Pairs::Fifth);
}

#[test]
fn every_option_of_answering_changes_something_or_is_refused() {
    every_option_of(&["predict", "bench predict", "evaluate", "inspect", "explain"], false, Pairs::All);
}

#[test]
fn every_option_of_an_index_changes_something_or_is_refused() {
    every_option_of(&["index build", "index search", "index evaluate", "index refresh"], false, Pairs::All);
}

#[test]
fn every_option_of_other_commands_changes_something_or_is_refused() {
    let commands = ["quickstart", "generate", "merge", "calibrate", "convert", "bench curves", "completions"];
    every_option_of(&commands, false, Pairs::All);
}
