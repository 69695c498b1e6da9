//! The settings of networks with a sparse output layer.

use super::{Choices, Setting, SettingError, Table, USUAL, Values, refuse_idle};
use crate::classifier::{ClassifierParams, ConnectionLearning, HeadParams, MAX_UNITS, SparseHeadParams, Wiring};
use crate::message::{label_of, name_of};
use crate::tune::Scale;
use Values::{F64, Forms, Names, Size, Switch, Text};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;
use xc_nn::Loss;
use xc_nn::sampler::{NegativeParams, SamplerParams};

/// Types of weights of connections.
const TYPES: [(&str, &str); 5] =
    [("f32", "\"F32\""), ("bf16", "\"BF16\""), ("f16", "\"F16\""), ("e4m3", "\"F8_E4M3\""), ("e5m2", "\"F8_E5M2\"")];

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("Output layer options")
}

/// Fields are those of [`UniformSettings`].
pub const TABLE: Table = Table {
    rows: &[
        row("network.intermediate", "intermediate", Text(check_units), "N|none")
            .of_data()
            .help(
                "Units of the layer that labels are connected with; none: labels are connected with the layer \
             below it [default: five for four labels, as a multiple of 512, from 512 to 32768; none for many labels]",
            )
            .searched(
                &[USUAL, "1024", "4096", "16384", "none"],
                0,
                Scale::Named,
                "a wider layer tells more labels apart",
            ),
        row("head.fan-in", "fan_in", Size, "N").of_data().help("Connections per label").searched(
            &["16", "32", "64", "128"],
            1,
            Scale::Ordered,
            "more connections fit better, at a cost that grows with them",
        ),
        row("head.wiring", "wiring", Names(&["uniform", "unstructured", "dense"]), "WIRING").help(
            "The same number of connections for every label, the same number on average, or connections with \
             all units (for comparison)",
        ),
        row("head.precision", "weights", Forms(&TYPES), "TYPE")
            .help("Type of the connections' weights, in training and in the model [default: f32]"),
        row("head.moments", "moments", Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]), "TYPE")
            .help("Type of the optimiser's moments of the connections [default: f32]"),
        row("head.no-screening", "no_screening", Switch, "").rare().help(
            "Score every label in full in each step. By default, with the squared hinge, batches of more \
             than 64 and many labels, a step first screens labels in 8 bits and scores those that may be \
             within the margin",
        ),
        row("head.rewire-every", "rewire_every", Size, "STEPS")
            .follows("batch")
            .help("Steps between rewirings; 0: connections stay fixed [default: as many as 32000 instances take]"),
        row("head.rewire-fraction", "rewire_fraction", F64, "SHARE")
            .help("Share of the connections, the weakest, that are redrawn in a rewiring; 0: none"),
        row("sampler", "sampler", Names(&["all", "uniform", "log-uniform", "frequency"]), "SAMPLER")
            .follows("negatives.sampled")
            .help(
                "Labels that a step scores in addition to the true ones of its batch: all, uniform negatives, or \
             negatives drawn by the rank of labels by frequency, or by their frequency to the power of 0.75 [default: all; frequency for many labels; uniform with \
             --negatives.sampled]",
            ),
        row("negatives.sampled", "negatives", Size, "N")
            .of_data()
            .help("Negatives drawn per step [default: a tenth of many labels]"),
    ],
    starts: &[],
};

/// What was chosen; what was not follows from the rest and the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UniformSettings {
    /// Units of the layer that labels are connected with: a number, or `none`.
    pub intermediate: Option<String>,
    /// Connections per label.
    pub fan_in: Option<usize>,
    /// How labels are connected; `dense`: with all units.
    pub wiring: String,
    /// Type of the weights.
    pub weights: Option<DType>,
    /// Type of their moments.
    pub moments: Option<DType>,
    /// Score every label in full in each step.
    pub no_screening: bool,
    /// Steps between rewirings.
    pub rewire_every: Option<u64>,
    /// Share of the connections that are redrawn.
    pub rewire_fraction: Option<f64>,
    /// Where labels of a step come from.
    pub sampler: Option<String>,
    /// How many.
    pub negatives: Option<usize>,
}

impl Default for UniformSettings {
    /// Nothing chosen.
    fn default() -> Self {
        Self {
            intermediate: None,
            fan_in: None,
            wiring: "uniform".to_owned(),
            weights: None,
            moments: None,
            no_screening: false,
            rewire_every: None,
            rewire_fraction: None,
            sampler: None,
            negatives: None,
        }
    }
}

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

impl UniformSettings {
    /// What was chosen.
    ///
    /// # Errors
    /// A value that is none.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        TABLE.apply(&Self::default(), choices)
    }

    /// Everything that they came to in a classifier with so many units in a layer of its own; a dense layer has none.
    pub fn of(params: &ClassifierParams, units: Option<usize>) -> Self {
        let intermediate = Some(units.map_or_else(|| "none".to_owned(), |units| units.to_string()));
        let HeadParams::Sparse(SparseHeadParams { fan_in, wiring, weights }) = params.head else {
            return Self { intermediate, wiring: "dense".to_owned(), ..Self::default() };
        };
        let ConnectionLearning { moments, screening, rewire_every, rewire_fraction } = params.learning.connections;
        let sampler = params.learning.negatives.sampler;
        Self {
            intermediate,
            fan_in: Some(fan_in),
            wiring: name_of(&wiring),
            weights: Some(weights),
            moments: Some(moments),
            no_screening: !screening,
            rewire_every: Some(rewire_every),
            rewire_fraction: Some(rewire_fraction),
            sampler: Some(label_of(&sampler)),
            negatives: Some(sampler.n_chosen()).filter(|&n| n > 0),
        }
    }

    /// Whether a layer that labels are connected with, of its own, was asked for.
    pub fn asks_for_layer(&self) -> bool {
        self.intermediate.as_deref().is_some_and(|units| units != "none")
    }

    /// Units of the layer that labels are connected with, where there is one of its own.
    pub fn intermediate(&self, usual: Option<usize>) -> Option<usize> {
        match self.intermediate.as_deref() {
            Some(units) => units.parse().ok(),
            None => usual,
        }
    }

    /// Gives a classifier this head, trained in batches of a size.
    ///
    /// # Errors
    /// A choice that changes nothing, by the name of its setting.
    pub fn put(&self, batch_size: usize, params: &mut ClassifierParams) -> Result<(), SettingError> {
        let wiring = match &*self.wiring {
            "uniform" => Wiring::Uniform,
            "unstructured" => Wiring::Unstructured,
            _ => {
                params.head = self.dense()?;
                return Ok(());
            }
        };
        let usual = match &params.head {
            HeadParams::Sparse(of_preset) => of_preset.clone(),
            HeadParams::Dense | HeadParams::Candidates(_) => SparseHeadParams::default(),
        };
        let of = ConnectionLearning::default();
        let sampler = match (&self.sampler, self.negatives) {
            (None, None) => params.learning.negatives.sampler,
            _ => self.sampler()?,
        };
        let screens = sampler == SamplerParams::All && params.loss == Loss::SquaredHinge;
        refuse_idle(&[
            ("head.no-screening", self.no_screening && !screens, "--loss squared-hinge over all labels"),
            (
                "head.rewire-fraction",
                self.rewire_fraction.is_some_and(|share| share > 0.0) && self.rewire_every == Some(0),
                "a --head.rewire-every above 0",
            ),
            (
                "head.rewire-every",
                self.rewire_every.is_some_and(|steps| steps > 0) && self.rewire_fraction == Some(0.0),
                "a --head.rewire-fraction above 0",
            ),
        ])?;
        params.head = HeadParams::Sparse(SparseHeadParams {
            fan_in: self.fan_in.unwrap_or(usual.fan_in),
            wiring,
            weights: self.weights.unwrap_or(usual.weights),
        });
        params.learning.negatives = sampler.into();
        params.learning.connections = ConnectionLearning {
            moments: self.moments.unwrap_or(of.moments),
            screening: !self.no_screening,
            rewire_every: self.rewire_every.unwrap_or(ConnectionLearning::usual_rewire_every(batch_size)),
            rewire_fraction: self.rewire_fraction.unwrap_or(of.rewire_fraction),
        };
        Ok(())
    }

    fn sampler(&self) -> Result<SamplerParams, SettingError> {
        let named = self.sampler.as_deref();
        let Some(per_list) = self.negatives else {
            return match named {
                None | Some("all") => Ok(SamplerParams::All),
                Some(name) => Err(SettingError::of_value("sampler", name, "--negatives.sampled N is expected with it")),
            };
        };
        match named {
            Some("all") => Err(SettingError::of(
                "negatives.sampled",
                "--sampler all scores every label; one of the two is expected",
            )),
            Some("log-uniform") => Ok(SamplerParams::LogUniform { per_list }),
            Some("frequency") => Ok(SamplerParams::Frequency { per_list, power: NegativeParams::USUAL_POWER }),
            _ => Ok(SamplerParams::Uniform { per_list }),
        }
    }

    /// The dense layer that sparse ones are compared with: what belongs to sparse ones is refused.
    fn dense(&self) -> Result<HeadParams, SettingError> {
        let given = [
            ("head.fan-in", self.fan_in.is_some()),
            ("head.precision", self.weights.is_some()),
            ("head.moments", self.moments.is_some()),
            ("head.no-screening", self.no_screening),
            ("head.rewire-every", self.rewire_every.is_some()),
            ("head.rewire-fraction", self.rewire_fraction.is_some()),
            ("sampler", self.sampler.as_deref().is_some_and(|sampler| sampler != "all")),
            ("negatives.sampled", self.negatives.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((setting, _)) => {
                Err(SettingError::plain(setting, "belongs to sparse output layers; --head.wiring dense has none"))
            }
            None => Ok(HeadParams::Dense),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_number_or_none() {
        assert_eq!((check_units("none"), check_units("65536")), (Ok(()), Ok(())));
        assert_eq!(check_units("many").unwrap_err(), "got \"many\", expected a number of units or none");
        let of = |units: &str| UniformSettings { intermediate: Some(units.to_owned()), ..UniformSettings::default() };
        assert_eq!((of("none").intermediate(Some(3)), of("7").intermediate(Some(3))), (None, Some(7)));
        assert_eq!(UniformSettings::default().intermediate(Some(3)), Some(3));
        assert!(of("7").asks_for_layer() && !of("none").asks_for_layer());
        assert!(!UniformSettings::default().asks_for_layer());
    }
}
