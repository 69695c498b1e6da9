//! A kind with its settings as a value, to be trained on data in memory.

use super::network::{self, system};
use super::{Training, kinds, reading, tree};
use crate::settings::{Choices, SettingError, SettingPlace, data as rows, mach, text, transformer};
use std::path::Path;
use xc_data::Data;
use xc_model::classifier::InputKind;
use xc_train::fit::{Context, FitError, Place};
use xc_train::kinds::{FeatureParams, Fit, MachFit, NetworkFit, NetworkKind, TreeFit};
use xc_train::network::EncoderName;

/// What a kind with settings by their names is for these instances: a model before it is trained. [`Fit::fit`] trains it, and
/// [`Fit::fit_into`] into the folder that [`Training`] writes.
///
/// ```
/// use xc_data::Data;
/// use xc_options::fit_of;
/// use xc_sparse::LabelRows;
/// use xc_train::fit::{Context, Silent};
///
/// let texts = ["audio library", "audio sound", "mail reader", "mail client"].map(str::to_owned).to_vec();
/// let data = Data::new(texts, LabelRows::from_lists([[0], [0], [1], [1]], 2)?);
/// let context = Context::new(&Silent);
/// for (kind, settings) in [("tree", [("trees", "3"), ("text.min-df", "1")]), ("dense", [("epochs", "2"), ("text.min-df", "1")])] {
///     let fitted = fit_of(kind, &settings, &data, &context)?.fit(&data, None, &context)?;
///     assert_eq!(fitted.report.kind, kind);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// *Cost*: makes the features, which usual values of networks follow from.
///
/// # Errors
/// A kind or setting that is not known, a value that it cannot have, a choice without an effect; a setting of files, of how
/// instances are held out, or of the work itself, none of which a value has; skip-gram and networks over a transformer, which
/// [`Training`] trains; instances that no feature can be made of.
pub fn fit_of(
    kind: &str,
    settings: &[(&str, &str)],
    data: &Data<'_>,
    context: &Context<'_>,
) -> Result<Box<dyn Fit>, FitError> {
    let mut of = Training::new(kind, Path::new(""), "")?;
    settings.iter().try_for_each(|(name, value)| of.set(name, value))?;
    let choices = &of.choices;
    choices.refuse_conflicts()?;
    reading::refuse_idle_of_rows(choices, data.rows(), None)?;
    refuse_what_is_of_a_run(kind, choices)?;
    if transformer::chosen(choices) != EncoderName::Features {
        return Err(
            SettingError::of("encoder", "a transformer is read from its folder: Training trains over one").into()
        );
    }
    let weighting = rows::weighting(choices, data.rows().kind() == InputKind::Dense);
    let features = FeatureParams { text: text::params(choices)?, weighting };
    let Some(system) = system(kind, choices, &Place::default()) else {
        return Ok(Box::new(TreeFit { features, params: tree::params(&of, context.seed)? }));
    };
    let known = NetworkKind::ALL.into_iter().find(|known| known.name() == kind);
    if known.is_none() && kind != xc_model::mach::KIND {
        let what = format_args!("models of kind {kind} are trained on texts without labels: Training trains them");
        return Err(FitError::usage(what));
    }
    network::check(&*system, &of, true, context.seed)?;
    let shape = features.shape(data, context)?;
    let network = network::params(&*system, &shape, context.seed, true)?;
    Ok(match known {
        Some(kind) => Box::new(NetworkFit { kind, features, network }),
        None => Box::new(MachFit { layout: mach::layout(shape.n_labels, choices)?, features, network }),
    })
}

/// Refuses what is said of instances that are held out, and of the work.
fn refuse_what_is_of_a_run(kind: &str, choices: &Choices) -> Result<(), SettingError> {
    let is_of_a_run = |name: &str| {
        let is_of_work = kinds::row(kind, name).is_some_and(|row| matches!(row.place, SettingPlace::Run(_)));
        is_of_work || ["validation-fraction", "split-seed"].contains(&name)
    };
    choices.refuse_if(is_of_a_run, "it is about a run of its own; instances that judge are given beside the others")
}
