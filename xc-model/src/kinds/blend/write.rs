//! Writes the folder of a blend.

use super::{Entry, FACTOR, LABEL_COUNTS, MEAN, MEMBERS, SCALES};
use crate::Model;
use crate::blend::{Features, Rule};
use serde_json::json;
use xc_store::{ContainerWriter, WriteError};

/// Adds a blend to a container of its kind: the rule, fitted on these features, and the members themselves.
/// `fitted_with` are the members that gave the answers of the fit, if `members` were retrained
/// afterwards.
///
/// *Cost*: files of members are linked if the file system supports it, otherwise copied.
///
/// # Errors
/// A member was replaced since it was opened; a file system error.
pub fn write_blend(
    writer: &mut ContainerWriter,
    rule: &Rule,
    features: &Features,
    members: &[Model],
    fitted_with: Option<&[Model]>,
) -> Result<(), WriteError> {
    let entry =
        |model: &Model| Entry { kind: model.kind.name.to_owned(), xxh3: model.container.config_hash().to_owned() };
    let entries = |models: &[Model]| json!(models.iter().map(entry).collect::<Vec<_>>());
    writer.set_parameter(MEMBERS, entries(members));
    if let Some(models) = fitted_with {
        writer.set_parameter("fitted_with", entries(models));
    }
    writer.set_parameter("rule", rule.kind().name());
    writer.set_parameter("depth", crate::blend::DEPTH as u64);
    writer.set_parameter(SCALES, json!(features.scales()));
    writer.add_slice(LABEL_COUNTS, features.label_counts())?;
    let (mean, factor) = features.standard();
    writer.add_slice(MEAN, mean)?;
    writer.add_slice(FACTOR, factor)?;
    rule.write(writer)?;
    members.iter().enumerate().try_for_each(|(number, member)| writer.add_member(number, &member.container))
}
