//! The settings of networks with a sparse output layer.

use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, USUAL, Values, refuse_idle};
use crate::tune::Scale;
use Values::{F64, Forms, Names, Size, Switch, Text};
use serde_json::Value;
use xc_model::classifier::{ConnectionLearning, HeadParams, MAX_UNITS, SparseHeadParams};
use xc_model::message::label_of;
use xc_nn::Loss;
use xc_nn::sampler::{NegativeParams, SamplerParams};
use xc_train::network::UniformParams;

/// Types of weights of connections.
const TYPES: [(&str, &str); 5] =
    [("f32", "\"F32\""), ("bf16", "\"BF16\""), ("f16", "\"F16\""), ("e4m3", "\"F8_E4M3\""), ("e5m2", "\"F8_E5M2\"")];

const fn row(name: &'static str, at: At<UniformParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Uniform(at)).heading("Output layer options")
}

const NONE: &str = "none";
/// A wiring by which labels are connected with all units: there is no sparse layer.
const DENSE: &str = "dense";

const INTERMEDIATE: At<UniformParams> = At::Form {
    name: "intermediate",
    get: |p| Some(p.intermediate.map_or_else(|| NONE.to_owned(), |units| units.to_string()).into()),
    put: |p, value| {
        p.intermediate = value.as_str().filter(|units| *units != NONE).and_then(|units| units.parse().ok());
        Ok(())
    },
};

const WIRING: At<UniformParams> = At::Form {
    name: "network.classifier.head.wiring",
    get: |p| {
        let head = p.clone().head_mut().map(|head| head.wiring.get());
        Some(head.unwrap_or_else(|| DENSE.into()))
    },
    put: |p, value| {
        if *value == DENSE {
            p.network.classifier.head = HeadParams::Dense;
            return Ok(());
        }
        if p.head_mut().is_none() {
            p.network.classifier.head = HeadParams::Sparse(SparseHeadParams::default());
        }
        p.head_mut().map_or(Ok(()), |head| head.wiring.put(value))
    },
};

const NO_SCREENING: At<UniformParams> = At::Form {
    name: "network.classifier.learning.connections.screening",
    get: |p| Some((!p.clone().connections_mut()?.screening).into()),
    put: |p, value| {
        p.connections_mut().into_iter().for_each(|of| of.screening = *value != true);
        Ok(())
    },
};

/// Of a sparse layer.
const SAMPLER: At<UniformParams> = At::Form {
    name: "network.classifier.learning.negatives.sampler",
    get: |p| p.clone().head_mut().map(|_| label_of(&p.network.classifier.learning.negatives.sampler).into()),
    put: |p, value| {
        if p.head_mut().is_some() {
            let of = &mut p.network.classifier.learning.negatives;
            *of = sampler(value.as_str().unwrap_or_default(), of.sampler.n_chosen()).into();
        }
        Ok(())
    },
};

const SAMPLED: At<UniformParams> = At::Field("network.classifier.learning.negatives.sampler.chosen", |p| {
    p.head_mut()?;
    Some(p.network.classifier.learning.negatives.sampler.n_chosen_mut()?)
});

/// Where labels of a step come from, by its name.
fn sampler(name: &str, per_list: usize) -> SamplerParams {
    match name {
        "uniform" => SamplerParams::Uniform { per_list },
        "log-uniform" => SamplerParams::LogUniform { per_list },
        "frequency" => SamplerParams::Frequency { per_list, power: NegativeParams::USUAL_POWER },
        _ => SamplerParams::All,
    }
}

/// Places are those of [`UniformParams`].
pub const TABLE: Table = Table {
    rows: &[
        row("network.intermediate", INTERMEDIATE, Text(check_units), "N|none")
            .of_data()
            .help(
                "Units of the layer that labels are connected with; none: labels are connected with the layer \
             below it",
            )
            .searched(
                &[USUAL, "1024", "4096", "16384", "none"],
                0,
                Scale::Named,
                "a wider layer tells more labels apart",
            ),
        row("head.fan-in", At::Field("network.classifier.head.fan_in", |p| Some(&mut p.head_mut()?.fan_in)), Size, "N")
            .of_data()
            .help("Connections per label")
            .searched(
                &["16", "32", "64", "128"],
                1,
                Scale::Ordered,
                "more connections fit better, at a cost that grows with them",
            ),
        row("head.wiring", WIRING, Names(&["uniform", "unstructured", "dense"]), "WIRING").rare().help(
            "The same number of connections for every label, the same number on average, or connections with \
             all units (for comparison)",
        ),
        row(
            "head.precision",
            At::Field("network.classifier.head.weights", |p| Some(&mut p.head_mut()?.weights)),
            Forms(&TYPES),
            "TYPE",
        )
        .help("Type of the connections' weights, in training and in the model"),
        row(
            "head.moments",
            At::Field("network.classifier.learning.connections.moments", |p| Some(&mut p.connections_mut()?.moments)),
            Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]),
            "TYPE",
        )
        .rare()
        .help("Type of the optimiser's moments of the connections"),
        row("head.no-screening", NO_SCREENING, Switch, "").rare().help(
            "Score every label in full in each step. By default, with the squared hinge, batches of more \
             than 64 and many labels, a step first screens labels in 8 bits and scores those that may be \
             within the margin",
        ),
        row(
            "head.rewire-every",
            At::Field("network.classifier.learning.connections.rewire_every", |p| {
                Some(&mut p.connections_mut()?.rewire_every)
            }),
            Size,
            "STEPS",
        )
        .follows("batch")
        .rare()
        .help("Steps between rewirings; 0: connections stay fixed"),
        row(
            "head.rewire-fraction",
            At::Field("network.classifier.learning.connections.rewire_fraction", |p| {
                Some(&mut p.connections_mut()?.rewire_fraction)
            }),
            F64,
            "SHARE",
        )
        .rare()
        .help("Share of the connections, the weakest, that are redrawn in a rewiring; 0: none"),
        row("sampler", SAMPLER, Names(&["all", "uniform", "log-uniform", "frequency"]), "SAMPLER")
            .follows("negatives.sampled")
            .help(
                "Labels that a step scores in addition to the true ones of its batch: all, uniform negatives, or \
             negatives drawn by the rank of labels by frequency, or by their frequency to the power of 0.75",
            ),
        row("negatives.sampled", SAMPLED, Size, "N").of_data().help("Negatives drawn per step"),
    ],
    starts: &[],
};

fn check_units(text: &str) -> Result<(), String> {
    match text {
        "none" => Ok(()),
        _ => match text.parse::<usize>() {
            Ok(n) if n <= MAX_UNITS => Ok(()),
            Ok(_) => Err(format!("got {text:?}, expected at most {MAX_UNITS} units")),
            Err(_) => Err(format!("got {text:?}, expected a number of units or none")),
        },
    }
}

/// Whether a layer that labels are connected with, of its own, was asked for.
pub fn asks_for_layer(choices: &Choices) -> bool {
    choices.get("network.intermediate").is_some_and(|units| *units != NONE)
}

/// A network with what was chosen of its output layer; what was not is that of the network, and follows from its batches.
///
/// # Errors
/// A choice that changes nothing, by the name of its setting.
pub fn params(mut usual: UniformParams, choices: &Choices) -> Result<UniformParams, SettingError> {
    if choices.get("head.wiring").is_some_and(|wiring| *wiring == DENSE) {
        refuse_sparse(choices)?;
        // Before what was chosen is put in its place, in whichever order.
        usual.network.classifier.head = HeadParams::Dense;
        return TABLE.place(usual, choices);
    }
    if usual.head_mut().is_none() {
        usual.network.classifier.head = HeadParams::Sparse(SparseHeadParams::default());
    }
    let classifier = &mut usual.network.classifier;
    classifier.learning.connections = ConnectionLearning {
        rewire_every: ConnectionLearning::usual_rewire_every(usual.network.training.batch_size),
        ..ConnectionLearning::default()
    };
    if let Some(chosen) = chosen_sampler(choices)? {
        classifier.learning.negatives = chosen.into();
    }
    let made = TABLE.place(usual, choices)?;
    let classifier = &made.network.classifier;
    let screens = classifier.learning.negatives.sampler == SamplerParams::All && classifier.loss == Loss::SquaredHinge;
    let every = choices.value::<u64>("head.rewire-every");
    let share = choices.value::<f64>("head.rewire-fraction");
    refuse_idle(&[
        (
            "head.no-screening",
            choices.value("head.no-screening") == Some(true) && !screens,
            "--loss squared-hinge over all labels",
        ),
        (
            "head.rewire-fraction",
            share.is_some_and(|share| share > 0.0) && every == Some(0),
            "a --head.rewire-every above 0",
        ),
        (
            "head.rewire-every",
            every.is_some_and(|steps| steps > 0) && share == Some(0.0),
            "a --head.rewire-fraction above 0",
        ),
    ])?;
    Ok(made)
}

/// The sampler that was chosen; none where nothing was said.
fn chosen_sampler(choices: &Choices) -> Result<Option<SamplerParams>, SettingError> {
    let named = choices.get("sampler").and_then(Value::as_str);
    match (named, choices.value("negatives.sampled")) {
        (None, None) => Ok(None),
        (Some("all"), None) => Ok(Some(SamplerParams::All)),
        (Some(name), None) => Err(SettingError::of_value("sampler", name, "--negatives.sampled N is expected with it")),
        (Some("all"), Some(_)) => {
            Err(SettingError::of("negatives.sampled", "--sampler all scores every label; one of the two is expected"))
        }
        (named, Some(per_list)) => Ok(Some(sampler(named.unwrap_or("uniform"), per_list))),
    }
}

/// Refuses what belongs to sparse layers, where the layer is the dense one that they are compared with.
fn refuse_sparse(choices: &Choices) -> Result<(), SettingError> {
    let of_sparse = TABLE.rows.iter().filter(|row| !["network.intermediate", "head.wiring"].contains(&row.name));
    let is_off = |row: &Setting| match row.name {
        // A dense layer scores all labels.
        "sampler" => choices.get("sampler").is_some_and(|name| *name == "all"),
        "head.no-screening" => choices.get("head.no-screening").is_some_and(|is_on| *is_on == false),
        _ => false,
    };
    match of_sparse.into_iter().find(|row| choices.get(row.name).is_some() && !is_off(row)) {
        Some(row) => {
            Err(SettingError::plain(row.name, "belongs to sparse output layers; --head.wiring dense has none"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_model::classifier::InputKind;
    use xc_train::network::NetworkParams;
    use xc_train::preset;

    fn chosen(options: &[(&str, &str)]) -> Result<UniformParams, SettingError> {
        let mut choices = Choices::default();
        for (name, value) in options {
            choices.set(TABLE.row(name).unwrap(), value)?;
        }
        let mut network = NetworkParams::of(&preset::uniform(), InputKind::Sparse);
        let intermediate = network.classifier.encoder.widths_mut().pop();
        params(UniformParams { network, intermediate }, &choices)
    }

    #[test]
    fn units_are_a_number_or_none() {
        assert_eq!((check_units("none"), check_units("65536")), (Ok(()), Ok(())));
        assert_eq!(check_units("many").unwrap_err(), "got \"many\", expected a number of units or none");
        let of = |units| chosen(&[("network.intermediate", units)]).unwrap();
        assert_eq!((of("none").intermediate, of("7").intermediate), (None, Some(7)));
        assert_eq!(chosen(&[]).unwrap().intermediate, Some(32_768));
        assert_eq!(of("7").into_network().classifier.encoder.widths(), [512, 7]);
        assert_eq!(of("none").into_network().classifier.encoder.widths(), [512]);
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own() {
        for row in TABLE.rows {
            let (value, with): (_, &[(&str, &str)]) = match row.name {
                "network.intermediate" => ("7", &[]),
                "head.wiring" => ("unstructured", &[]),
                "head.precision" | "head.moments" => ("bf16", &[]),
                "head.no-screening" => ("true", &[]),
                "head.rewire-fraction" => ("0.625", &[]),
                "sampler" => ("frequency", &[("negatives.sampled", "9")]),
                _ => ("7", &[]),
            };
            let made = chosen(&[with, &[(row.name, value)]].concat()).unwrap();
            assert_eq!(row.shown_in(&made).as_deref(), Some(value), "{}", row.name);
            assert_ne!(row.shown_in(&chosen(&[]).unwrap()).as_deref(), Some(value), "{}", row.name);
        }
    }

    #[test]
    fn a_dense_layer_has_nothing_of_a_sparse_one() {
        let dense = chosen(&[("head.wiring", "dense"), ("sampler", "all")]).unwrap();
        assert_eq!(dense.network.classifier.head, HeadParams::Dense);
        for (name, value) in [("head.fan-in", "8"), ("sampler", "uniform"), ("head.no-screening", "true")] {
            let refused = chosen(&[("head.wiring", "dense"), (name, value)]).unwrap_err().to_string();
            let expected = format!("--{name} belongs to sparse output layers; --head.wiring dense has none");
            assert_eq!(refused, expected);
        }
    }
}
