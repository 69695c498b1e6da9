//! Boosted trees in a model folder.

use xc_boost::{BoostedTree, BoostedTrees, LEAVES, SPLITS};
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};

const FEATURES: &str = "rule.splits.feature";
const THRESHOLDS: &str = "rule.splits.threshold";
const LEAF_VALUES: &str = "rule.leaves";
const BIAS: &str = "rule.bias";

pub(super) fn write(of: &BoostedTrees, writer: &mut ContainerWriter) -> Result<(), WriteError> {
    let trees = of.trees();
    let flat = |of: fn(&BoostedTree) -> &[f32]| trees.iter().flat_map(of).copied().collect::<Vec<f32>>();
    let features: Vec<u16> = trees.iter().flat_map(|tree| tree.features).collect();
    let (splits, leaves) = ([trees.len(), SPLITS], [trees.len(), LEAVES]);
    writer.add(FEATURES, ArrayRef::new(&features, &splits))?;
    writer.add(THRESHOLDS, ArrayRef::new(&flat(|tree| &tree.thresholds), &splits))?;
    writer.add(LEAF_VALUES, ArrayRef::new(&flat(|tree| &tree.leaves), &leaves))?;
    writer.add_slice(BIAS, &[of.bias()])
}

/// Those of a container over rows of `n` features, where it has some; or what is wrong with them.
pub(super) fn of(container: &Container, n: usize) -> Result<Option<Result<BoostedTrees, &'static str>>, OpenError> {
    let Some(entry) = container.entry(FEATURES) else { return Ok(None) };
    let n_trees = entry.shape.first().copied().unwrap_or(0);
    let features = container.array_shaped::<u16>(FEATURES, &[n_trees, SPLITS])?;
    let thresholds = container.array_shaped::<f32>(THRESHOLDS, &[n_trees, SPLITS])?;
    let leaves = container.array_shaped::<f32>(LEAF_VALUES, &[n_trees, LEAVES])?;
    let bias = container.array_shaped::<f32>(BIAS, &[1])?[0];
    let arrays = features.as_chunks().0.iter().zip(thresholds.as_chunks().0).zip(leaves.as_chunks().0);
    let trees = arrays.map(|((&features, &thresholds), &leaves)| BoostedTree { features, thresholds, leaves });
    Ok(Some(BoostedTrees::try_new(bias, trees.collect(), n).map_err(|_| "whose trees give no numbers")))
}
