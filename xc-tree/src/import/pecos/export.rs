//! Writing a model folder that PECOS loads for prediction.

use super::PecosModel;
use super::clusters::cluster_matrix;
use super::error::PecosError;
use super::folder::{layer_folder, replace_whole};
use super::matrix::{Columns, write_columns};
use crate::model::Topology;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use xc_sparse::chunked::ChunkRows;
use xc_sparse::rows::group_by;
use xc_store::atomic::{OutputFolder, WriteFileError};

/// Writes `model` as `XLinearModel.save` would: `XLinearModel.load(folder, is_predict_only=True)`
/// reads it.
///
/// Bias weights, which are multiplied by the bias input here, are written for an input of 1. Labels
/// without a leaf get an empty column. The folder appears complete or not at all.
///
/// # Errors
/// The folder exists and is not empty; the system refuses.
///
/// # Panics
/// If the parts do not fit together (see [`TreeParts`](crate::TreeParts)), or a label or feature is
/// out of range.
///
/// # Cost
/// O(nnz); memory for one level beside the model.
pub fn export(model: &PecosModel, folder: impl AsRef<Path>) -> Result<(), PecosError> {
    let folder = folder.as_ref();
    let topology = &model.parts.topology;
    let depth = topology.depth();
    assert!(model.parts.levels.len() == depth, "{} levels of weights for {depth}", model.parts.levels.len());
    replace_whole(folder, |folder| {
        write_json(folder, "param.json", json!({"__meta__": meta("pecos.xmc.xlinear.model###XLinearModel")}))?;
        let n_codes = if depth > 1 { topology.n_nodes(depth - 2) } else { 1 };
        let param = json!({
            "__meta__": meta("pecos.xmc.base###HierarchicalMLModel"),
            "model": "HierarchicalMLModel",
            "depth": depth,
            "nr_features": model.n_features,
            "nr_codes": n_codes,
            "nr_labels": model.n_labels,
        });
        write_json(folder, "ranker/param.json", param)?;
        for level in 0..depth {
            write_level(model, level, folder)?;
        }
        Ok(())
    })
}

fn write_level(model: &PecosModel, level: usize, folder: &OutputFolder) -> Result<(), PecosError> {
    let topology = &model.parts.topology;
    let layer = layer_folder(level);
    let clusters = cluster_matrix(topology, level, model.n_labels);
    let only_topk = model.level_top_k.get(level).copied().unwrap_or(model.beam);
    let param = json!({
        "__meta__": meta("pecos.xmc.base###MLModel"),
        "model": "MLModel",
        "nr_labels": clusters.n_rows,
        "nr_features": model.n_features,
        "nr_codes": clusters.n_columns(),
        "bias": 1.0,
        "pred_kwargs": {
            "__meta__": meta("pecos.xmc.base###MLModel.PredParams"),
            "only_topk": only_topk,
            "post_processor": model.post.to_string(),
        },
    });
    write_json(folder, layer.join("param.json"), param)?;
    folder.file(layer.join("C.npz"), |file| write_columns(file, &clusters))?;
    let weights = weight_matrix(topology, level, &model.parts.levels[level], model.n_features, clusters.n_rows);
    Ok(folder.file(layer.join("W.npz"), |file| write_columns(file, &weights))?)
}

/// The weights of one level by columns, the bias as the last row.
fn weight_matrix(
    topology: &Topology,
    level: usize,
    chunks: &[ChunkRows],
    n_features: usize,
    n_columns: usize,
) -> Columns {
    let boundaries = topology.boundaries(level);
    assert!(chunks.len() + 1 == boundaries.len(), "{} chunks for {} parents", chunks.len(), boundaries.len() - 1);
    let labels = (level + 1 == topology.depth()).then(|| topology.labels());
    let column = |node: usize| labels.map_or(node, |labels| labels[node] as usize);
    // Features ascend, so each column comes out in order; the bias row is the last of all.
    let entries = chunks.iter().zip(boundaries).flat_map(|(chunk, &first)| {
        let weights = chunk.row_ptr.windows(2).zip(&chunk.features).flat_map(move |(w, &feature)| {
            assert!((feature as usize) < n_features, "feature {feature} of {n_features}");
            (w[0] as usize..w[1] as usize).map(move |at| (first + chunk.columns[at], (feature, chunk.values[at])))
        });
        let biases = (first..).zip(&chunk.bias).filter(|(_, bias)| **bias != 0.0);
        weights.chain(biases.map(|(node, &bias)| (node, (n_features as u32, bias))))
    });
    let pairs = entries.map(|(node, entry)| (column(node as usize) as u32, entry));
    let (indptr, entries) = group_by(n_columns, pairs).into_parts();
    let (rows, values) = entries.into_iter().unzip();
    Columns { n_rows: n_features + 1, indptr, rows, values }
}

fn meta(class: &str) -> Value {
    json!({ "class_fullname": class })
}

fn write_json(folder: &OutputFolder, name: impl AsRef<Path>, value: Value) -> Result<(), WriteFileError> {
    folder.file(name, |file| {
        serde_json::to_writer_pretty(&mut *file, &value)?;
        file.write_all(b"\n")
    })
}
