//! A setting that changes nothing is refused with what it belongs to: for every row of every table.

use xc_model::classifier::InputKind;
use xc_options::settings::{
    Choices, Setting, SettingError, Table, Values, astra, candidates, mach, network, tree, uniform, wide,
};
use xc_train::network::{NetworkParams, UniformParams};
use xc_train::preset;

/// Enough labels for lists of candidates.
const N_LABELS: usize = 1 << 20;
/// What is made of choices.
type Make = fn(&Choices) -> Result<(), SettingError>;

const TABLES: [(Table, Make); 7] = [
    (tree::TABLE, |choices| tree::params(xc_tree::Preset::Default, choices).map(drop)),
    (network::TABLE, |choices| {
        network::params(&preset::dense(), InputKind::Sparse, choices)?;
        network::run_params(choices).map(drop)
    }),
    (wide::TABLE, |choices| {
        let (mut preset, input) = (preset::dense(), InputKind::Sparse);
        preset.params.learning.wide = None;
        wide::add(NetworkParams::of(&preset, input), &preset, input, choices).map(drop)
    }),
    (mach::TABLE, |choices| mach::layout(N_LABELS, choices).map(drop)),
    (uniform::TABLE, |choices| {
        let network = NetworkParams::of(&preset::uniform(), InputKind::Sparse);
        uniform::params(UniformParams { network, intermediate: None }, choices).map(drop)
    }),
    (candidates::TABLE, |choices| {
        candidates::add(NetworkParams::of(&preset::lns(), InputKind::Sparse), 90, N_LABELS, choices).map(drop)
    }),
    (astra::TABLE, |choices| {
        astra::add(NetworkParams::of(&preset::lns(), InputKind::Sparse), 90, N_LABELS, choices).map(drop)
    }),
];

/// A value that is not the usual one.
fn value(row: &Setting) -> String {
    match row.values {
        Values::Size => "7".to_owned(),
        Values::Sizes => "3,4".to_owned(),
        Values::F32 | Values::F32OrInf | Values::F64 => "0.625".to_owned(),
        Values::Bool | Values::Switch => "true".to_owned(),
        Values::Names(_) | Values::Forms(_) => row.names().unwrap()[1].to_owned(),
        Values::Text(_) => unreachable!("{}: no such row belongs to another", row.name),
    }
}

#[test]
fn a_setting_without_the_choice_that_it_belongs_to_is_refused_with_that_choice() {
    let mut n = 0;
    for (table, make) in TABLES {
        for row in table.rows {
            let Some((other, values)) = row.belongs_to else { continue };
            let (of, needs) = (table.row(other).unwrap(), table.needs(row).unwrap());
            let refused = |choice: Option<&str>| {
                let mut choices = Choices::default();
                choices.set(row, &value(row)).unwrap();
                choice.iter().for_each(|choice| choices.set(of, choice).unwrap());
                make(&choices).err().map(|e| e.to_string())
            };
            let add = if needs.contains(" other than ") { "choose a" } else { "add" };
            let expected = |with: &str| format!("--{} has no effect {with}: {add} {needs}, or leave it out", row.name);
            let names = of.names().unwrap_or_default();
            for name in names.iter().filter(|name| !values.contains(name)) {
                let said = refused(Some(name)).unwrap_or_default();
                // What is not even shown stands beside nothing.
                assert!([expected("here"), expected(&format!("with --{other} {name}"))].contains(&said), "{said}");
                n += 1;
            }
            if values.is_empty() {
                assert_eq!(refused(None), Some(expected("here")));
            }
            // It may need more than that, but not that.
            let given: &[&str] = if values.is_empty() { &["2"] } else { values };
            for name in given {
                let said = refused(Some(name)).unwrap_or_default();
                assert!(!said.ends_with(&format!("{add} {needs}, or leave it out")), "--{other} {name}: {said}");
            }
        }
    }
    assert!(n > 70, "{n} combinations");
}
