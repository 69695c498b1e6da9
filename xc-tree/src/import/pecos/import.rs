//! Reading a model folder.

use super::clusters::{MAX_DEPTH, Walk};
use super::columns::chunks;
use super::error::{PecosError, io_error, json_error};
use super::folder::layer_folder;
use super::matrix::read_columns;
use super::{PecosModel, stored};
use crate::model::{PostProcessor, TreeParts};
use serde::{Deserialize, de::DeserializeOwned};
use std::{fs, path::Path};

/// `ranker/param.json`.
#[derive(Deserialize)]
struct RankerParam {
    model: String,
    depth: usize,
}

/// `ranker/{d}.model/param.json`.
#[derive(Deserialize)]
struct LayerParam {
    model: String,
    bias: f32,
    pred_kwargs: PredParam,
    #[serde(default)]
    is_mmap: bool,
}

#[derive(Deserialize)]
struct PredParam {
    only_topk: usize,
    post_processor: String,
}

/// Reads the folder that `XLinearModel.save` or `XLinearModel.compile_mmap_model` wrote.
///
/// # Errors
/// Files that are absent or malformed, sizes that do not fit together, clusters that are no tree,
/// weights that are not finite, levels with different post-processors.
///
/// # Cost
/// O(nnz log branching), parallel over the clusters of a level. Peak memory: the model as
/// [`TreeParts`] (8 bytes a weight and some per feature row) and one level's arrays as they stand
/// in the file.
pub fn import(folder: impl AsRef<Path>) -> Result<PecosModel, PecosError> {
    let folder = folder.as_ref();
    let ranker_path = folder.join("ranker").join("param.json");
    let ranker: RankerParam = read_json(&ranker_path)?;
    check_class(&ranker_path, &ranker.model, "HierarchicalMLModel")?;
    if ranker.depth == 0 || ranker.depth > MAX_DEPTH {
        let got = ranker.depth.to_string();
        return Err(PecosError::Parameter { path: ranker_path, field: "depth", got, expected: "1 to 64" });
    }
    let mut walk = Walk::default();
    let (mut levels, mut level_top_k) = (Vec::new(), Vec::new());
    let mut post: Option<PostProcessor> = None;
    let mut n_features: Option<usize> = None;
    let (mut n_labels, mut bias) = (0, 0.0);
    for level in 0..ranker.depth {
        let layer = folder.join(layer_folder(level));
        let path = layer.join("param.json");
        let param: LayerParam = read_json(&path)?;
        check_class(&path, &param.model, "MLModel")?;
        if !param.bias.is_finite() || param.pred_kwargs.only_topk == 0 {
            let got = format!("{} and {}", param.bias, param.pred_kwargs.only_topk);
            let field = "bias and pred_kwargs.only_topk";
            return Err(PecosError::Parameter { path, field, got, expected: "a finite number, and 1 or more" });
        }
        let name = &param.pred_kwargs.post_processor;
        let got = name.parse().map_err(|source| PecosError::PostProcessor { path: path.clone(), source })?;
        if let Some(above) = post.filter(|&above| above != got) {
            return Err(PecosError::MixedPostProcessors { path, got: name.clone(), expected: above.to_string() });
        }
        post = Some(got);
        level_top_k.push(param.pred_kwargs.only_topk);
        bias = param.bias.max(0.0);

        let is_last = level + 1 == ranker.depth;
        let read = if param.is_mmap { read_mapped_layer } else { read_layer };
        let (chunks, n_rows) = read(&layer, is_last, (bias > 0.0).then_some(bias), &mut walk)?;
        let features = n_rows - usize::from(bias > 0.0);
        if n_features.is_some_and(|above| above != features) {
            let (what, expected) = ("number of features", n_features.unwrap_or_default());
            return Err(PecosError::Size { path: layer, what, got: features, expected });
        }
        n_features = Some(features);
        n_labels = walk.n_rows();
        levels.push(chunks);
    }
    let inner = &level_top_k[..(ranker.depth - 1).max(1)];
    let beam = inner.iter().copied().max().unwrap_or(1);
    let topology = walk.finish(folder)?;
    Ok(PecosModel {
        parts: TreeParts { topology, levels },
        // Set in the first round of the loop, and depth is at least 1.
        post: post.unwrap_or(PostProcessor::Noop),
        beam,
        level_top_k,
        n_features: n_features.unwrap_or_default(),
        n_labels,
        bias,
    })
}

type Layer = (Vec<xc_sparse::chunked::ChunkRows>, usize);

/// One level in the npz form; also gives the number of rows of `W`.
fn read_layer(layer: &Path, _is_last: bool, bias: Option<f32>, walk: &mut Walk) -> Result<Layer, PecosError> {
    let clusters_path = layer.join("C.npz");
    let clusters = read_columns(&clusters_path)?;
    walk.push(&clusters_path, &clusters)?;
    let path = layer.join("W.npz");
    let weights = read_columns(&path)?;
    if weights.n_columns() != clusters.n_rows {
        let (got, expected) = (weights.n_columns(), clusters.n_rows);
        return Err(PecosError::Size { path, what: "number of columns", got, expected });
    }
    check_bias_row(&path, weights.n_rows, bias)?;
    let (boundaries, order) = walk.last();
    Ok((chunks(&path, &weights, boundaries, order, bias)?, weights.n_rows))
}

/// One level in the mapped form, whose nodes stand in tree order.
fn read_mapped_layer(layer: &Path, is_last: bool, bias: Option<f32>, walk: &mut Walk) -> Result<Layer, PecosError> {
    let clusters_path = layer.join("C.mmap_store");
    let mut clusters = stored::read_clusters(&clusters_path)?;
    let path = layer.join("W.mmap_store");
    let (mut in_file, n_rows) = stored::read_chunks(&path, &clusters, bias)?;
    check_bias_row(&path, n_rows, bias)?;
    let perm_path = layer.join("perm.mmap_store");
    if is_last && perm_path.exists() {
        let labels = stored::read_permutation(&perm_path, clusters.n_rows)?;
        for row in &mut clusters.rows {
            *row = labels[*row as usize];
        }
    }
    let parents = walk.parents();
    walk.push(&clusters_path, &clusters)?;
    let (boundaries, _) = walk.last();
    let mut out = Vec::with_capacity(parents.len());
    for (window, &parent) in boundaries.windows(2).zip(&parents) {
        // In range: `push` found as many columns as there are nodes above, and `read_chunks` as
        // many chunks.
        let chunk = std::mem::take(&mut in_file[parent as usize]);
        if chunk.n_columns != (window[1] - window[0]) as usize {
            let what = "number of children of a cluster";
            let (got, expected) = (chunk.n_columns, (window[1] - window[0]) as usize);
            return Err(PecosError::Size { path, what, got, expected });
        }
        out.push(chunk);
    }
    Ok((out, n_rows))
}

/// With a bias there must be a row for it.
fn check_bias_row(path: &Path, n_rows: usize, bias: Option<f32>) -> Result<(), PecosError> {
    if bias.is_some() && n_rows == 0 {
        let what = "number of rows (the last is the bias)";
        return Err(PecosError::Size { path: path.to_owned(), what, got: 0, expected: 1 });
    }
    Ok(())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, PecosError> {
    let bytes = fs::read(path).map_err(io_error(path))?;
    serde_json::from_slice(&bytes).map_err(json_error(path))
}

fn check_class(path: &Path, got: &str, expected: &'static str) -> Result<(), PecosError> {
    if got == expected {
        return Ok(());
    }
    Err(PecosError::Class { path: path.to_owned(), got: got.to_owned(), expected })
}
