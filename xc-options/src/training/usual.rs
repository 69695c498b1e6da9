//! The usual value of each setting of a kind, as help, pages and stubs say it: that which a training run without the setting
//! has, for instances of several shapes and at the choices that the value follows from.

use super::network::{self, system};
use super::plan::Resolved;
use super::{reading, tree};
use crate::settings::judge::JudgeParams;
use crate::settings::kinds::{self, Build};
use crate::settings::text::TextSettings;
use crate::settings::{self, Choices, Setting, SettingPlace, Table, Values, data};
use std::collections::BTreeMap;
use xc_ann::{BuildParams, Metric};
use xc_hash::text::PipelineParams;
use xc_model::classifier::InputKind;
use xc_train::blend::FitParams;
use xc_train::calibrate::CalibrateParams;
use xc_train::fit::{Embed, Place, TrainingShape};
use xc_train::network::TextEncoder;
use xc_train::preset::DataShape;
use xc_tree::Preset;

/// Instances whose usual values differ, each with what it is called: of short texts and many thousands of labels, and of other
/// ones in one way each.
const SHAPES: [(&str, TrainingShape); 9] = {
    const fn of(n_instances: usize, length: usize, n_labels: usize) -> TrainingShape {
        let (n_entries, most_frequent) = (n_instances * length, n_instances / 10);
        let data = DataShape { n_instances, n_entries, n_labels, most_frequent };
        TrainingShape { input: InputKind::Sparse, n_features: 50_000, n_labels, most_labels: 7, data: Some(data) }
    }
    let usual = of(200_000, 30, 30_000);
    [
        ("", usual),
        ("few instances", of(5_000, 30, 30_000)),
        ("long instances", of(200_000, 200, 30_000)),
        ("1,000 labels", of(200_000, 30, 1_000)),
        ("many labels", of(200_000, 30, 100_000)),
        (MILLION, of(2_000_000, 30, 1_000_000)),
        ("one label an instance", TrainingShape { most_labels: 1, ..usual }),
        ("vectors", TrainingShape { input: InputKind::Dense, n_features: 384, ..usual }),
        (TOKENS, TrainingShape { input: InputKind::Tokens, n_features: 384, ..usual }),
    ]
};

const MILLION: &str = "1,000,000 labels";
const TOKENS: &str = "a transformer that is trained";

/// Choices, as they are typed.
type Typed = Vec<(&'static str, &'static str)>;

/// What is said of the usual value of each setting of a kind: `10; 500 with --negatives.shared false`. Settings of which
/// nothing is to be said are not among them.
pub fn usual_values(kind: &str, build: Build) -> BTreeMap<&'static str, String> {
    let rows = kinds::rows_of(kind, build);
    let trains = build.has_transformers() && rows.iter().any(|row| row.name == "transformer.rate");
    let shapes = SHAPES.into_iter().filter(|(whom, _)| trains || *whom != TOKENS).collect();
    let mut of = Usual { kind, shapes, known: BTreeMap::new() };
    rows.into_iter().filter_map(|row| Some((row.name, of.said(row)?))).collect()
}

/// The same of a table whose values follow from nothing else: of an index, a blend, a calibration, of files, and of words.
pub fn usual_values_of(table: &Table) -> BTreeMap<&'static str, String> {
    table.rows.iter().filter_map(|row| Some((row.name, usual_value_of(row)?))).collect()
}

/// The same of a row of such a table.
pub fn usual_value_of(row: &Setting) -> Option<String> {
    let computed = || match row.place {
        _ if matches!(row.values, Values::Switch) => None,
        SettingPlace::Index(_) => row.shown_in(&BuildParams::new(Metric::L2)),
        SettingPlace::Blend(_) => row.shown_in(&FitParams::default()),
        SettingPlace::Calibration(_) => row.shown_in(&CalibrateParams::default()),
        SettingPlace::Terms(_) => row.shown_in(&TextSettings::default()),
        SettingPlace::Text(_) => row.shown_in(&PipelineParams::default()),
        SettingPlace::Judge(_) => row.shown_in(&JudgeParams::default()),
        SettingPlace::Embed(_) => row.shown_in(&Embed::new("")),
        SettingPlace::Encoder(_) => row.shown_in(&TextEncoder::default()),
        _ => None,
    };
    row.usual.map(str::to_owned).or_else(computed)
}

struct Usual<'a> {
    kind: &'a str,
    /// Instances, each with what it is called.
    shapes: Vec<(&'static str, TrainingShape)>,
    known: BTreeMap<(Typed, usize), Option<Resolved>>,
}

impl Usual<'_> {
    fn said(&mut self, row: &'static Setting) -> Option<String> {
        if row.usual.is_some() {
            return usual_value_of(row);
        }
        if matches!(row.values, Values::Switch) {
            return None;
        }
        let given = self.meaning(row);
        // A build without transformers does not make the parameters of one.
        let first = self.value(row, &given, 0).or_else(|| usual_value_of(row)).unwrap_or_else(|| row.none.to_owned());
        // A value, and at what it is another one: shapes, then choices.
        let mut others: Vec<(String, Vec<String>, bool)> = Vec::new();
        let mut add = |value: Option<String>, whom: String, is_shape: bool| {
            let Some(value) = value.filter(|value| *value != first) else { return };
            match others.iter_mut().find(|(known, _, of)| *known == value && *of == is_shape) {
                Some((_, all, _)) => all.push(whom),
                None => others.push((value, vec![whom], is_shape)),
            }
        };
        let mut many = None;
        for at in 1..self.shapes.len() {
            let whom = self.shapes[at].0;
            // What vectors do not have is said by the option.
            let value = self.value(row, &given, at).filter(|value| !value.is_empty() && !value.starts_with("none: "));
            // More of what is said of many already.
            if whom != MILLION || value != many {
                add(value.clone(), whom.to_owned(), true);
            }
            many = value;
        }
        for choices in self.choices(row) {
            let typed: Vec<_> = choices.iter().map(|(name, value)| format!("--{name} {value}")).collect();
            let all = joined(&given, &choices);
            add(self.value(row, &all, 0), typed.join(" "), false);
        }
        if others.is_empty() && first == NONE {
            return None;
        }
        let said = others.into_iter().map(|(value, whom, is_shape)| match is_shape {
            true => format!("; {value} for {}", listed(&whom, " and ")),
            false => format!("; {value} with {}", listed(&without_repeats(whom), " or ")),
        });
        Some(first.clone() + &said.collect::<String>())
    }

    /// What gives a setting its meaning.
    fn meaning(&mut self, row: &Setting) -> Typed {
        let idle =
            self.values(&Vec::new(), 0).is_none_or(|values| values.is_idle(row.name) || values.get(row.name).is_none());
        let Some((other, values)) = row.belongs_to.filter(|_| idle) else { return Typed::new() };
        let Some(of) = kinds::row(self.kind, other) else { return Typed::new() };
        let value = values.first().copied().unwrap_or(match of.values {
            Values::F32 | Values::F32OrInf | Values::F64 => "0.5",
            _ => "1",
        });
        joined(&self.meaning(of), &vec![(other, value)])
    }

    /// Choices at which the usual value of a setting may be another one.
    fn choices(&self, row: &Setting) -> Vec<Typed> {
        let presets = (self.kind == "tree" && row.of_preset).then_some("preset");
        let needed = row.belongs_to.map(|(other, _)| other).filter(|other| row.follows != Some(other));
        let followed = [presets, row.follows, needed];
        let mut out: Vec<Typed> = Vec::new();
        for name in followed.into_iter().flatten() {
            let names = kinds::row(self.kind, name).and_then(Setting::names).unwrap_or_default();
            out.extend(names.into_iter().map(|value| vec![(name, value)]));
        }
        out.extend(row.said_at.iter().map(|choices| choices.to_vec()));
        out
    }

    /// The value of a setting where it has a meaning.
    fn value(&mut self, row: &Setting, given: &Typed, shape: usize) -> Option<String> {
        let values = self.values(given, shape)?;
        let (value, _) = values.get(row.name).filter(|_| !values.is_idle(row.name))?;
        Some(value.to_owned())
    }

    fn values(&mut self, given: &Typed, shape: usize) -> Option<&Resolved> {
        let (kind, of) = (self.kind, self.shapes[shape].1);
        let known = self.known.entry((given.clone(), shape));
        known.or_insert_with(|| resolved(kind, given, &of)).as_ref()
    }
}

/// The values of all settings of a run with some choices, where it can be.
fn resolved(kind: &str, given: &Typed, shape: &TrainingShape) -> Option<Resolved> {
    let mut choices = Choices::default();
    for (name, value) in given {
        choices.set(kinds::row(kind, name)?, value).ok()?;
    }
    let mut out = Resolved::default();
    let of_files = choices.of(&settings::text::TABLE);
    reading::resolve(&of_files, data::normalises(&choices, shape.input == InputKind::Dense), &mut out).ok()?;
    match system(kind, &choices, &Place::default()) {
        Some(system) => {
            let mut network = system.params(shape, 0, false).ok()?;
            system.choices().settle(shape.n_features, &mut network);
            let run = system.choices().run().ok()?;
            network::resolve(&*system, &choices, shape, (&network, &run), &mut out).ok()?;
        }
        None => {
            let preset = choices.value("preset").unwrap_or(Preset::Default);
            let params = settings::tree::params(preset, &choices).ok()?;
            tree::resolve(preset, &params, &choices, &mut out).ok()?;
        }
    }
    Some(out)
}

/// What is said of a setting that has no value.
const NONE: &str = "none";

/// Choices with others, of which the last ones count.
fn joined(first: &Typed, then: &Typed) -> Typed {
    let kept = first.iter().filter(|(name, _)| then.iter().all(|(other, _)| other != name));
    kept.chain(then).copied().collect()
}

/// `a, b or c`.
fn listed(all: &[String], last: &str) -> String {
    match all.split_last() {
        Some((last_one, [])) => last_one.clone(),
        Some((last_one, others)) => format!("{}{last}{last_one}", others.join(", ")),
        None => String::new(),
    }
}

/// `--a 1`, `--a 2` as `--a 1`, `2`.
fn without_repeats(all: Vec<String>) -> Vec<String> {
    let mut before = String::new();
    let shortened = all.into_iter().map(|typed| match typed.split_once(' ') {
        Some((name, value)) if name == before && !value.contains("--") => value.to_owned(),
        Some((name, _)) => {
            before = name.to_owned();
            typed
        }
        None => typed,
    });
    shortened.collect()
}
