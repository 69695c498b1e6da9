//! The settings of label trees.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, USUAL, Values, field};
use crate::tune::Scale;
use Values::{Bool, F32, F64, Forms, Names, Size, Text};
use xc_tree::{Loss, Negatives, PostProcessor, Preset, TreeParams};

/// Types of weights that are stored.
pub(super) const WEIGHTS: Values = Forms(&[("f32", "\"F32\""), ("f16", "\"F16\""), ("bf16", "\"BF16\"")]);

const SHAPE: &str = "Tree options";
const RANKERS: &str = "Ranker options";
const SAVED: &str = "Prediction defaults kept in the model";

const fn row(name: &'static str, at: At<TreeParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Tree(at)).of_preset()
}

const fn shape(name: &'static str, at: At<TreeParams>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).heading(SHAPE)
}

const fn ranker(name: &'static str, at: At<TreeParams>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).heading(RANKERS)
}

const fn saved(name: &'static str, at: At<TreeParams>, values: Values, unit: &'static str) -> Setting {
    row(name, at, values, unit).heading(SAVED)
}

const NEGATIVES_BEAM: At<TreeParams> = At::Field("negatives.matcher-aware.beam", |of| match &mut of.negatives {
    Negatives::MatcherAware { beam } => Some(beam),
    Negatives::TeacherForced => None,
});

/// Settings of trees that are none of their parameters.
pub const OWN: Table = Table {
    rows: &[
        Setting::new("preset", Names(&["default", "parabel", "bonsai", "xr-linear"]), "NAME")
            .help("Named settings: default, parabel, bonsai or xr-linear; other options override them"),
        Setting::new("validation-fraction", F64, "SHARE").none("0").usual("none").help(
            "Hold out this share of the training instances and score the model on them, unless --validation is given; the \
             same file and --seed give the same instances for every kind of model",
        ),
        Setting::new("split-seed", Size, "N").of_training_alone().rare()
            .help("Seed of the held-out instances, which runs of several seeds then share")
            .none("that of --seed")
            .belongs_to("validation-fraction", &[]),
    ],
    starts: &[],
};

/// Values of trees were chosen so that each has been the best one for some set of data, or is a step on the way there.
pub const TABLE: Table = Table {
    rows: &[
        row("trees", field!(n_trees), Size, "T")
            .help("Trees whose scores are averaged")
            .searched(&["3", "5", "10"], 0, Scale::Ordered, "averages more clusterings"),
        shape("tree.branching", field!(cluster.branching), Size, "B").help("Children of a cluster").searched(
            &["2", "8", "16", "32", "100"],
            2,
            Scale::Ordered,
            "fewer levels lose fewer labels, more levels share more rows",
        ),
        shape("cluster.max-leaf", field!(cluster.max_leaf), Size, "N")
            .help("Target for the number of labels in a leaf cluster; a balanced tree may exceed it by half")
            .searched(
                &["20", "50", "100", "300", "1000"],
                2,
                Scale::Ordered,
                "more labels are set against one another; with few labels there is one level, without a search",
            ),
        shape("cluster.slack", field!(cluster.slack), F32, "SHARE")
            .rare().help("Allowed imbalance of a split, from 0 (parts of equal size) to below 1 (balanced)")
            .belongs_to("cluster.method", &["balanced"]),
        shape("cluster.method", field!(cluster.method), Names(&["balanced", "unbalanced"]), "METHOD")
            .help("balanced (parts of nearly equal size) or unbalanced (parts as k-means finds them)")
            .searched(&["balanced", "unbalanced"], 0, Scale::Named, "groups of labels may have very different sizes"),
        shape("cluster.max-depth", field!(cluster.max_depth), Size, "N")
            .help("Maximum number of cluster levels above the labels (unbalanced)")
            .belongs_to("cluster.method", &["unbalanced"]),
        shape("cluster.max-iterations", field!(cluster.max_iterations), Size, "N").rare()
            .help("Maximum number of k-means iterations per split"),
        shape("cluster.max-sample", field!(cluster.max_sample), Size, "N").rare()
            .help("Labels sampled for k-means per split, at most"),
        shape("cluster.representation", field!(representation),
            Names(&["pifa", "pii", "label-features", "pifa-and-label-features"]),
            "WHAT",
        )
        .help(
            "Label representation for clustering: the features of their instances (pifa), their instances (pii), \
             --label-features, or the first and the third combined",
        ),
        shape("cluster.normalise-labels", field!(normalise_labels), Bool, "BOOL").rare()
            .help(
                "Whether an instance with m labels counts 1/sqrt(m), instead of 1, in the vectors that labels are compared \
                 by (pifa)",
            )
            .belongs_to("cluster.representation", &["pifa", "pifa-and-label-features"]),
        shape("cluster.max-label-nnz", field!(max_label_nnz), Size, "N").rare()
            .help("Maximum number of features of a label's vector; the largest are kept")
            .none("all"),
        shape("cluster.unseen", field!(unseen), Names(&["drop", "keep"]), "WHAT").rare()
            .help("Labels without training instances: drop (never predicted) or keep"),
        ranker("linear.loss", field!(linear.loss), Names(&["squared-hinge", "logistic"]), "LOSS")
            .help("squared-hinge or logistic")
            .searched(
                &["squared-hinge", "logistic"],
                0,
                Scale::Named,
                "the logistic loss ranks rare labels better where rows have many labels",
            ),
        ranker("linear.cost", field!(linear.cost), F32, "C")
            .help(
                "Weight of the loss against the regulariser (liblinear's C), for rows of about length 1: others are divided \
                 by their typical length",
            )
            .follows("linear.loss")
            .searched(
                &["0.1", "0.3", "0.5", USUAL, "2", "3", "10", "30"],
                3,
                Scale::Ordered,
                "few rows and noisy labels want less, many rows of short text want more",
            ),
        ranker("linear.positive-cost", field!(linear.positive_cost), F32, "X").rare()
            .help("Additional cost factor of positives")
            .searched(
                &["0.5", "1", "2", "4"],
                1,
                Scale::Ordered,
                "rankers of rare labels see few positives among many negatives",
            ),
        ranker("linear.negative-cost", field!(linear.negative_cost), F32, "X").rare().help("Additional cost factor of negatives"),
        ranker("linear.bias", field!(linear.bias), F32, "X").help("Value of the bias input, 0 for none").searched(
            &["0", "1"],
            1,
            Scale::Ordered,
            "without it rankers go by the features alone",
        ),
        ranker("linear.tolerance", field!(linear.tolerance), F32, "X").rare()
            .help("Stop a ranker when its gradients differ by at most this (liblinear's eps)"),
        ranker("linear.max-passes", field!(linear.max_passes), Size, "N")
            .rare().help(
                "Maximum number of passes over the instances",
            ),
        ranker("linear.prune-below", field!(linear.prune_below), F32, "X")
            .help(
                "Drop weights of smaller magnitude, for rows of about length 1: a larger value makes models smaller and \
                 faster",
            )
            .follows("linear.loss")
            .searched(
                &["0.01", "0.03", USUAL, "0.2"],
                2,
                Scale::Ordered,
                "small weights are what a small cost or the logistic loss consists of",
            ),
        ranker("linear.max-weights", field!(linear.max_weights), Size, "N")
            .help("Maximum number of weights kept per ranker; the largest are kept")
            .none("all"),
        ranker("negatives", field!(negatives),
            Forms(&[("teacher-forced", "\"teacher-forced\""), ("matcher-aware", "{\"matcher-aware\":{\"beam\":10}}")]),
            "WHICH",
        )

            .help(
                "Negatives of a ranker: from its parent (teacher-forced), or also what the beam routes there \
                 (matcher-aware)",
            )
        .searched(
            &["teacher-forced", "matcher-aware"],
            0,
            Scale::Named,
            "rankers see rows that the levels above send to them by mistake",
        ),
        ranker("negatives.beam", NEGATIVES_BEAM, Size, "B")
            .help("Clusters that matcher-aware negatives reach per level")
            .belongs_to("negatives", &["matcher-aware"]),
        saved("post-processor", field!(post), Text(check_post), "NAME")
            .help(
                "Maps margins to scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9",
            )
            .follows("linear.loss")
            .searched(
                &[USUAL, "sigmoid", "l1-hinge", "l2-hinge", "l4-hinge", "l6-hinge"],
                0,
                Scale::Named,
                "how much an upper level counts compared with the label's own ranker",
            ),
        saved("beam", field!(beam), Size, "B").help("Clusters kept per level").searched(
            &["10", "20", "50"],
            0,
            Scale::Ordered,
            "fewer labels are lost on the way down",
        ),
        saved("precision", field!(precision), WEIGHTS, "TYPE")
            .help("Type of the weights"),
    ],
    starts: &[
        &[("linear.cost", "0.3")],
        &[("linear.cost", "3")],
        &[("text.ngrams", "2")],
        &[("linear.loss", "logistic")],
        &[("tfidf", "true")],
        &[("linear.cost", "0.3"), ("cluster.max-leaf", "1000"), ("trees", "5")],
        &[("linear.loss", "logistic"), ("text.ngrams", "2"), ("tfidf", "true"), ("trees", "5")],
        &[("linear.cost", "3"), ("trees", "5"), ("beam", "20")],
    ],
};

fn check_post(text: &str) -> Result<(), String> {
    text.parse::<PostProcessor>().map(|_| ()).map_err(|e| e.to_string())
}

/// The preset with what was chosen.
///
/// # Errors
/// A choice that changes nothing, or a number out of range, by the name of its setting.
pub fn params(preset: Preset, choices: &Choices) -> Result<TreeParams, SettingError> {
    let mut params = preset.params();
    params.set_loss(choices.value::<Loss>("linear.loss").unwrap_or(params.linear.loss));
    let params = TABLE.place(params, choices)?;
    params.check().map_err(|e| {
        let setting = TABLE.at(e.name).map_or(e.name, |row| row.name);
        SettingError::of_value(setting, e.got, format_args!("expected {}", e.expected))
    })?;
    Ok(params)
}

/// What help says of the usual value of a row: that of the default preset, and of others where they differ.
pub fn usual(row: &Setting) -> Option<String> {
    let of = |params: &TreeParams| row.shown_in(params);
    let default = TreeParams::default();
    // Said in the row: it follows from more than a preset.
    if ["post-processor", "negatives.beam"].contains(&row.name) {
        return None;
    }
    let Some(mut said) = of(&default) else { return Some(row.none.to_owned()) };
    let mut logistic = default;
    logistic.set_loss(Loss::Logistic);
    let of_loss = of(&logistic).filter(|other| row.follows.is_some() && *other != said);
    let own = said.clone();
    let mut others: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, preset) in [("parabel", Preset::Parabel), ("bonsai", Preset::Bonsai), ("xr-linear", Preset::XrLinear)] {
        let Some(other) = of(&preset.params()).filter(|other| *other != own) else { continue };
        match others.iter_mut().find(|(value, _)| *value == other) {
            Some((_, names)) => names.push(name),
            None => others.push((other, vec![name])),
        }
    }
    for (at, (value, names)) in others.iter().enumerate() {
        let with = if at == 0 { "; " } else { ", " };
        let preset = if at == 0 { " with --preset " } else { " with " };
        said += &format!("{with}{value}{preset}{}", names.join(" and "));
    }
    said.extend(of_loss.map(|other| format!("; {other} with --linear.loss logistic")));
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(options: &[(&str, &str)]) -> Result<TreeParams, SettingError> {
        let mut choices = Choices::default();
        for (name, value) in options {
            choices.set(TABLE.row(name).unwrap(), value)?;
        }
        params(Preset::Default, &choices)
    }

    #[test]
    fn every_row_leads_to_a_field_of_its_own_and_changes_it() {
        let before = TreeParams::default();
        for row in TABLE.rows {
            let same = TABLE.rows.iter().filter(|other| other.place.name() == row.place.name()).count();
            assert!(!row.help.is_empty() && same == 1, "{}", row.name);
            let value = match row.values {
                Size => "7".to_owned(),
                Bool => "true".to_owned(),
                Names(_) | Forms(_) => (*row.names().unwrap().last().unwrap()).to_owned(),
                Text(_) => "noop".to_owned(),
                _ => "0.625".to_owned(),
            };
            let mut options = vec![(row.name, &*value)];
            let gives = row.belongs_to.map(|(other, values)| (other, values[0]));
            options.extend(gives);
            let after = chosen(&options).unwrap();
            assert!(after != before, "{}", row.name);
            assert_eq!(row.shown_in(&after), Some(value.clone()), "{}", row.name);
            // A value of what it belongs to that gives it no meaning.
            let Some((other, values)) = row.belongs_to else { continue };
            let idle = TABLE.row(other).unwrap().names().unwrap().into_iter().find(|name| !values.contains(name));
            let idle = idle.unwrap();
            let refused = chosen(&[(row.name, &value), (other, idle)]).unwrap_err().to_string();
            let needs = format!("--{other} {}", values.join(" or "));
            let expected = format!("--{} has no effect with --{other} {idle}: add {needs}, or leave it out", row.name);
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn nothing_chosen_is_the_preset_and_the_order_of_choices_is_of_no_matter() {
        for preset in [Preset::Default, Preset::Parabel, Preset::Bonsai, Preset::XrLinear] {
            assert_eq!(params(preset, &Choices::default()).unwrap(), preset.params());
        }
        let some = [
            ("negatives.beam", "3"),
            ("negatives", "matcher-aware"),
            ("linear.cost", "0.1"),
            ("linear.loss", "logistic"),
        ];
        let all = chosen(&some).unwrap();
        let reversed: Vec<_> = some.into_iter().rev().collect();
        assert_eq!(chosen(&reversed).unwrap(), all);
        assert_eq!((all.linear.cost, all.linear.prune_below), (0.1, Loss::Logistic.usual_prune_below()));
        assert_eq!(all.negatives, Negatives::MatcherAware { beam: 3 });
    }

    #[test]
    fn what_is_out_of_range_is_said_by_the_name_of_the_setting() {
        let refused = |name, value| chosen(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(refused("trees", "0"), "--trees 0: expected 1 to 1000");
        assert!(refused("tree.branching", "1").starts_with("--tree.branching 1: expected "));
        assert!(refused("linear.cost", "inf").starts_with("--linear.cost inf: expected a finite number"));
        assert!(refused("cluster.method", "other").contains("expected balanced or unbalanced"));
        assert!(refused("post-processor", "softmax").contains("unknown post-processor"));
        for row in TABLE.rows {
            for text in ["", "-", "1e999", "\u{1F600}", "18446744073709551616", "nan"] {
                if let Err(e) = chosen(&[(row.name, text)]) {
                    assert!(e.to_string().starts_with(&format!("--{}", row.name)), "{e}");
                }
            }
        }
    }
}
