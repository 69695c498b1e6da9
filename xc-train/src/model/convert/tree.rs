//! Label trees of other systems.

use super::{ConvertError, Export, Format, ImportOptions, Imported};
use std::any::Any;
use std::path::Path;
use xc_tree::import::omikuji::{self, OmikujiModel};
use xc_tree::import::pecos::{self, PecosError, PecosModel};
use xc_tree::{ModelInfo, TreeModel, TreeParts};

pub(super) const PECOS: Format = Format { name: "pecos", import: import_pecos, export: export_pecos };
pub(super) const OMIKUJI: Format = Format { name: "omikuji", import: import_omikuji, export: |_, _| None };

fn import_pecos(source: &Path, options: &ImportOptions) -> Result<Imported, ConvertError> {
    let model = pecos::import(source).map_err(|e| ConvertError::Model(Box::new(e)))?;
    let PecosModel { n_features, n_labels, post, beam, parts, .. } = model;
    let info = ModelInfo { n_features, n_labels, post, normalise_rows: false, row_length: 1.0, beam };
    imported(source, info, vec![parts], options)
}

fn import_omikuji(source: &Path, options: &ImportOptions) -> Result<Imported, ConvertError> {
    let model = omikuji::import(source).map_err(|e| ConvertError::Model(Box::new(e)))?;
    let OmikujiModel { trees, post, normalise_rows, n_features, n_labels } = model;
    // Its folder does not say a beam; 10 is its default.
    imported(
        source,
        ModelInfo { n_features, n_labels, post, normalise_rows, row_length: 1.0, beam: 10 },
        trees,
        options,
    )
}

fn imported(
    source: &Path,
    mut info: ModelInfo,
    trees: Vec<TreeParts>,
    options: &ImportOptions,
) -> Result<Imported, ConvertError> {
    // Other systems may not know of labels that no instance had.
    if let Some(expected) = options.n_labels {
        if expected < info.n_labels {
            return Err(ConvertError::Labels { path: source.to_owned(), largest: info.n_labels - 1, expected });
        }
        info.n_labels = expected;
    }
    let tree = TreeModel::from_parts(info, trees, options.weights).map_err(|e| ConvertError::Model(Box::new(e)))?;
    let (info, n_trees) = (tree.info(), tree.trees().len());
    let n_labels = info.n_labels;
    let summary = format!("{} features, {n_labels} labels, {n_trees} trees, {} weights", info.n_features, tree.nnz());
    Ok(Imported { kind: xc_tree::KIND, n_labels, summary, write: Box::new(move |writer| tree.write(writer)) })
}

fn export_pecos(model: &dyn Any, export: &Export<'_>) -> Option<Result<(), ConvertError>> {
    model.downcast_ref().map(|tree: &TreeModel| write_pecos(tree, export))
}

fn write_pecos(tree: &TreeModel, export: &Export<'_>) -> Result<(), ConvertError> {
    let (info, n_trees) = (tree.info(), tree.trees().len());
    let path = || export.source.to_owned();
    let chosen = export.part.or((n_trees == 1).then_some(0)).filter(|&tree| tree < n_trees);
    let chosen = chosen.ok_or_else(|| ConvertError::Tree { path: path(), n_trees })?;
    if info.normalise_rows {
        return Err(ConvertError::Normalises { path: path() });
    }
    // Rows are not divided by a length there: the weights are.
    let mut parts = tree.to_parts(chosen);
    if info.row_length != 1.0 {
        let weights = parts.levels.iter_mut().flatten().flat_map(|chunk| &mut chunk.values);
        weights.for_each(|weight| *weight /= info.row_length);
    }
    let converted = PecosModel {
        parts,
        post: info.post,
        beam: info.beam,
        level_top_k: vec![info.beam; tree.trees()[chosen].depth()],
        n_features: info.n_features,
        n_labels: info.n_labels,
        bias: 1.0,
    };
    pecos::export(&converted, export.destination).map_err(|error| match error {
        PecosError::Io { .. } | PecosError::Write(_) => ConvertError::Write(Box::new(error)),
        _ => ConvertError::Model(Box::new(error)),
    })
}
