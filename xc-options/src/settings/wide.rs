//! The settings of the wide term: rankers over sparse features beside a network, over those of all words where a
//! transformer reads the first tokens.

use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, Values};
use crate::tune::Scale;
use Values::{F32, Forms, Names, Size};
use xc_model::classifier::{InputKind, WideLearning};
use xc_train::network::NetworkParams;
use xc_train::preset::Preset;

/// A setting of the term, where there is one.
const fn of_term(name: &'static str, at: At<NetworkParams>, values: Values, unit: &'static str) -> Setting {
    let row = Setting::new(name, values, unit).at(SettingPlace::Network(at)).heading("Wide term options");
    row.rare().belongs_to("wide", &["on"]).of_preset()
}

fn term(params: &mut NetworkParams) -> Option<&mut WideLearning> {
    params.classifier.learning.wide.as_mut()
}

/// A field of the term.
macro_rules! of {
    ($field:ident) => {
        At::Field(concat!("classifier.learning.wide.", stringify!($field)), |p| {
            term(p).map(|of| &mut of.$field as &mut dyn Slot)
        })
    };
}

/// Whether there is a term.
const PRESENCE: At<NetworkParams> = At::Form {
    name: "classifier.learning.wide",
    get: |p| Some(if p.classifier.learning.wide.is_some() { ON } else { "off" }.into()),
    put: |p, value| {
        let wide = &mut p.classifier.learning.wide;
        *wide = if *value == ON { Some(wide.unwrap_or_default()) } else { None };
        Ok(())
    },
};

const ON: &str = "on";

/// Places are those of [`WideLearning`] in a network.
pub const TABLE: Table = Table {
    rows: &[
        Setting::new("wide", Names(&[ON, "off"]), "on|off")
            .at(SettingPlace::Network(PRESENCE))
            .heading("Network options")
            .of_data()
            .help(
                "Re-rank the best labels with one sparse linear model per label, which sees the rare words that \
                 embeddings lose. Off by default for small vocabularies (fewer than two features per value of an \
                 embedding) and over tokens; with on there, it reads all words, not only the first tokens",
            )
            .searched(&[super::USUAL, "on", "off"], 0, Scale::Named, "labels of few instances need rare words"),
        of_term("wide.weight", of!(weight), F32, "X")
            .help("Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin")
            .none("the best on instances that are held out, else 0.3; of a squared hinge 1"),
        of_term("wide.labels", of!(labels), Size, "N").help("Labels of a query that are ranked again"),
        of_term("wide.negatives", of!(negatives), Size, "N").help(
            "False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch \
             for the rankers to learn from",
        ),
        of_term("wide.cost", of!(cost), F32, "C")
            .help("Weight of a ranker's errors against its regularisation"),
        of_term("wide.prune-below", of!(threshold), F32, "X").help("Drop weights of rankers below this magnitude"),
        of_term("wide.precision", of!(precision), Forms(&TYPES), "TYPE").help("Type of their weights in the model"),
    ],
    starts: &[],
};

/// Types of weights.
const TYPES: [(&str, &str); 3] = [("f32", "\"F32\""), ("bf16", "\"BF16\""), ("f16", "\"F16\"")];

/// Adds to a network over instances of a kind what was chosen of the term. Over tokens one that was asked for has the
/// other values of the preset.
///
/// # Errors
/// A choice that changes nothing, by the name of its setting.
pub fn add(
    mut network: NetworkParams,
    preset: &Preset,
    input: InputKind,
    choices: &Choices,
) -> Result<NetworkParams, SettingError> {
    if choices.get("wide").is_some_and(|wide| *wide == ON) {
        network.classifier.learning.wide = network.classifier.learning.wide.or(preset.params.learning.wide);
    }
    let made = TABLE.place(network, choices)?;
    if made.classifier.learning.wide.is_some() && input == InputKind::Dense {
        let what = "instances are vectors; a term of features is expected to have features";
        return Err(SettingError::of_value("wide", ON, what));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_buffer::dtype::DType;
    use xc_train::preset;

    fn chosen(
        usual: Option<WideLearning>,
        input: InputKind,
        options: &[(&str, &str)],
    ) -> Result<Option<WideLearning>, String> {
        let mut choices = Choices::default();
        options.iter().for_each(|(name, value)| choices.set(TABLE.row(name).unwrap(), value).unwrap());
        let mut preset = preset::dense();
        preset.params.learning.wide = usual;
        let made = add(NetworkParams::of(&preset, input), &preset, input, &choices);
        made.map(|made| made.classifier.learning.wide).map_err(|e| e.to_string())
    }

    #[test]
    fn a_term_is_chosen_or_usual_and_only_over_sparse_features() {
        let usual = WideLearning::default();
        let sparse = |usual, options| chosen(usual, InputKind::Sparse, options);
        assert_eq!((sparse(None, &[]), sparse(Some(usual), &[])), (Ok(None), Ok(Some(usual))));
        assert_eq!(sparse(Some(usual), &[("wide", "off")]), Ok(None));
        let made = sparse(None, &[("wide.cost", "0.5"), ("wide", "on"), ("wide.precision", "bf16")]).unwrap();
        assert_eq!(made, Some(WideLearning { cost: 0.5, precision: DType::Bf16, ..usual }));
        let idle = sparse(None, &[("wide.labels", "3")]).unwrap_err();
        assert_eq!(idle, "--wide.labels has no effect with --wide off: add --wide on, or leave it out");
        assert_eq!(chosen(Some(usual), InputKind::Dense, &[]), Ok(None));
        // Beside tokens there is one where it was asked for, with the other values of the preset.
        let more = WideLearning { negatives: 40, ..usual };
        assert_eq!(chosen(Some(more), InputKind::Tokens, &[]), Ok(None));
        assert_eq!(chosen(Some(more), InputKind::Tokens, &[("wide", "on")]), Ok(Some(more)));
        assert!(chosen(None, InputKind::Dense, &[("wide", "on")]).unwrap_err().starts_with("--wide on: "));
    }
}
