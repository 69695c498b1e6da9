//! Where an option has no effect it is refused: for every option of every kind, beside every value of every choice.
//!
//! Whether it has an effect is seen by placing it: parameters that a run would have are others, or the same. Rows are not asked
//! what they need, so one that forgot to say it is found.

use super::Training;
use super::network::{System, system};
use super::tree;
use crate::data::Files;
use crate::settings::kinds::{self, KINDS};
use crate::settings::{Choices, Setting, Values, data, input, mach, text, transformer, words};
use std::collections::BTreeMap;
use xc_model::classifier::InputKind;
use xc_train::fit::{Place, TrainingShape};
use xc_train::preset::DataShape;

/// Choices, as they are typed.
type Typed = Vec<(&'static str, String)>;

const N_LABELS: usize = 30_000;

/// A training run with some choices, over a file whose form is not known before it is read.
fn training(kind: &str, typed: &Typed) -> Result<Training, String> {
    let files = Files { label_features: label_features(kind, typed), train: "nowhere.txt".into(), ..Files::default() };
    let mut training = Training::new(kind, files, "m").map_err(|e| e.to_string())?;
    typed.iter().try_for_each(|(name, value)| training.set(name, value)).map_err(|e| e.to_string())?;
    Ok(training)
}

/// Texts of labels, where a choice asks for them.
fn label_features(kind: &str, typed: &Typed) -> Option<std::path::PathBuf> {
    let asks = |(name, value): &(&str, String)| match (kind, *name) {
        ("tree", "cluster.representation") => value.contains("label-features"),
        ("astra", "sampler") => value == "label-text",
        _ => false,
    };
    typed.iter().any(asks).then(|| "labels.txt".into())
}

/// All parameters of such a run, as text; or why it is refused.
fn made(kind: &str, typed: &Typed) -> Result<String, String> {
    let training = training(kind, typed)?;
    training.check(0).map_err(|e| e.to_string())?;
    let choices = &training.choices;
    let of_files = (
        text::params(choices).map_err(|e| e.to_string())?,
        data::weighting(choices, false),
        input::file_form(choices),
        choices.hold_out(0).map_err(|e| e.to_string())?,
    );
    let Some(system) = system(kind, choices, &Place::default()) else {
        return Ok(format!("{of_files:?} {:?}", tree::params(&training, 0).map_err(|e| e.to_string())?));
    };
    let network = of_network(&*system, choices)?;
    let of_kind = match kind {
        "mach" => format!("{:?}", mach::layout(N_LABELS, choices).map_err(|e| e.to_string())?),
        "skipgram" => format!("{:?}", (words::params(choices).map_err(|e| e.to_string())?, skipgram_words(choices))),
        _ => String::new(),
    };
    Ok(format!("{of_files:?} {network} {of_kind}"))
}

/// What a word is there.
fn skipgram_words(choices: &Choices) -> xc_hash::text::PipelineParams {
    text::TOKENS.place(xc_hash::text::PipelineParams::default(), choices).unwrap()
}

fn of_network(system: &dyn System, choices: &Choices) -> Result<String, String> {
    let (n_instances, n_entries) = (200_000, 6_000_000);
    let data = DataShape { n_instances, n_entries, n_labels: N_LABELS, most_frequent: 20_000 };
    let input = system.choices().input(InputKind::Sparse);
    let n_features = if input == InputKind::Sparse { 50_000 } else { 384 };
    let shape = TrainingShape { input, n_features, n_labels: N_LABELS, most_labels: 7, data: Some(data) };
    let mut network = system.params(&shape, 1, false).map_err(|e| e.to_string())?;
    system.choices().settle(n_features, &mut network);
    let preset = system.preset_for(&shape);
    system.choices().refuse_idle(&preset, &network.classifier).map_err(|e| e.to_string())?;
    let run = system.choices().run().map_err(|e| e.to_string())?;
    let encoder = transformer::encoder(choices).map_err(|e| e.to_string())?;
    Ok(format!("{network:?} {run:?} {encoder:?}"))
}

/// Values of an option, of which one at least is not what a run has anyway.
fn values(row: &Setting) -> Vec<String> {
    let some = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    match row.values {
        Values::Size if row.name == "svmlight-base" => some(&["0", "1"]),
        Values::Size => some(&["3", "11"]),
        Values::Sizes => some(&["24", "40"]),
        Values::F32 | Values::F32OrInf | Values::F64 => some(&["0.25", "0.375"]),
        Values::Bool => some(&["true", "false"]),
        Values::Switch => some(&["true"]),
        Values::Names(_) | Values::Forms(_) => some(&row.names().unwrap()),
        Values::Text(check) => {
            let all = ["x", "3-4", "P@3", "noop", "sigmoid", "1..3", "64", "csv", "|", "1", "bert"];
            some(&all.into_iter().filter(|text| check(text).is_ok()).collect::<Vec<_>>())
        }
    }
}

/// Choices that others stand beside: none, and each value of each row of few values.
fn bases(kind: &str) -> Vec<Typed> {
    let rows = kinds::rows(kind);
    let named = rows.iter().filter(|row| row.names().is_some() && row.name != "encoder");
    let one = named.flat_map(|row| row.names().unwrap().into_iter().map(|value| vec![(row.name, value.to_owned())]));
    let mut all: Vec<Typed> = std::iter::once(Vec::new()).chain(one).collect();
    // What a choice cannot be without, where it is refused alone.
    for base in &mut all {
        let (name, value) = base.first().cloned().unwrap_or(("", String::new()));
        if kind == "uniform" && name == "sampler" && value != "all" {
            base.push(("negatives.sampled", "9".to_owned()));
        }
        if let Some((other, values)) = kinds::row(kind, name).and_then(|row| row.belongs_to) {
            base.insert(0, (other, values.first().map_or("1", |value| value).to_owned()));
        }
    }
    // What options belong to that are no choice among names.
    let further: [&[(&'static str, &str)]; 4] = [
        &[("validation-fraction", "0.25")],
        &[("patience", "1"), ("schedule", "plateau"), ("schedule.lowest", "0.5")],
        &[("encoder", "frozen"), ("transformer.from", "bert")],
        &[("negatives.sampled", "9")],
    ];
    all.extend(further.map(|base| base.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()));
    all.retain(|base| made(kind, base).is_ok());
    all
}

/// What is judged by follows from held-out rows of files, too.
const OF_FILES: [&str; 1] = ["monitor"];

/// Whether an option is seen beside a transformer alone, whose folder is read: tests of tokens make one.
fn is_of_a_folder(name: &str) -> bool {
    name == "encoder" || name.starts_with("transformer.")
}

#[test]
fn an_option_beside_any_choice_changes_the_parameters_or_is_refused() {
    let (mut n, mut n_refused, mut wrong) = (0, 0, Vec::new());
    for kind in KINDS {
        let mut shown: BTreeMap<&str, bool> = BTreeMap::new();
        for base in bases(kind) {
            let before = made(kind, &base).unwrap();
            for row in kinds::rows(kind) {
                let is_given = base.iter().any(|(name, _)| *name == row.name);
                if is_given || OF_FILES.contains(&row.name) {
                    continue;
                }
                let outcomes: Vec<_> = values(row)
                    .into_iter()
                    .map(|value| made(kind, &[&base[..], &[(row.name, value)]].concat()))
                    .collect();
                n += outcomes.len();
                n_refused += outcomes.iter().filter(|made| made.is_err()).count();
                *shown.entry(row.name).or_default() |= outcomes.iter().flatten().any(|made| *made != before);
                // One may be what a run has anyway.
                if outcomes.iter().flatten().filter(|made| **made == before).count() > 1 {
                    wrong.push(format!("xc train {kind} {base:?}: --{} has no effect and is taken", row.name));
                }
                let is_named = |refused: &str| {
                    let names = base.iter().map(|(name, _)| *name).chain([row.name]);
                    names.into_iter().any(|name| refused.contains(&format!("--{name}")))
                };
                let unnamed = outcomes.iter().filter_map(|made| made.as_ref().err()).find(|refused| !is_named(refused));
                // A number that another option does not go with is said by that one.
                if let Some(refused) = unnamed.filter(|refused| !refused.contains(", expected at most")) {
                    wrong.push(format!("xc train {kind} {base:?} --{}: {refused}", row.name));
                }
            }
        }
        let never = shown
            .iter()
            .filter(|(name, changes)| !**changes && !is_of_a_folder(name))
            .map(|(name, _)| format!("xc train {kind}: --{name} never changes anything"));
        wrong.extend(never);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n > 10_000 && n_refused > 1_000, "{n} runs, {n_refused} refused");
}
