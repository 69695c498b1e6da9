//! Label trees alone: PECOS cluster chains (`config.json`, `C0.npz`, `C1.npz`, ...).

use super::error::{PecosError, io_error, json_error, matrix_error};
use super::matrix::{Columns, read_columns, write_columns};
use crate::model::Topology;
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

#[derive(Serialize, Deserialize)]
struct ChainConfig {
    len: usize,
}

/// More levels than any tree has: keeps a damaged number from asking for a million files.
pub(super) const MAX_DEPTH: usize = 64;

/// Reads the folder that `ClusterChain.save` wrote. Also gives the number of labels.
///
/// # Errors
/// Files that are absent or malformed; matrices that describe no tree.
pub fn import_clusters(folder: impl AsRef<Path>) -> Result<(Topology, usize), PecosError> {
    let folder = folder.as_ref();
    let path = folder.join("config.json");
    let bytes = fs::read(&path).map_err(io_error(&path))?;
    let config: ChainConfig = serde_json::from_slice(&bytes).map_err(json_error(&path))?;
    if config.len == 0 || config.len > MAX_DEPTH {
        let got = config.len.to_string();
        return Err(PecosError::Parameter { path, field: "len", got, expected: "1 to 64" });
    }
    let mut walk = Walk::default();
    for level in 0..config.len {
        let path = folder.join(format!("C{level}.npz"));
        walk.push(&path, &read_columns(&path)?)?;
    }
    let n_labels = walk.n_rows;
    Ok((walk.finish(folder)?, n_labels))
}

/// Writes the folder that `ClusterChain.load` reads.
///
/// # Errors
/// The folder exists and is not empty; the system refuses.
pub fn export_clusters(topology: &Topology, n_labels: usize, folder: impl AsRef<Path>) -> Result<(), PecosError> {
    let folder = folder.as_ref();
    super::folder::replace_whole(folder, |folder| {
        for level in 0..topology.depth() {
            let clusters = cluster_matrix(topology, level, n_labels);
            folder.file(format!("C{level}.npz"), |file| write_columns(file, &clusters))?;
        }
        let config = ChainConfig { len: topology.depth() };
        Ok(folder.file("config.json", |file| Ok(serde_json::to_writer(file, &config)?))?)
    })
}

/// The cluster matrix of one level: a column a parent, a row a child (the last level: a row a
/// label).
pub(super) fn cluster_matrix(topology: &Topology, level: usize, n_labels: usize) -> Columns {
    let indptr: Vec<usize> = topology.boundaries(level).iter().map(|&b| b as usize).collect();
    let is_last = level + 1 == topology.depth();
    let n_nodes = topology.n_nodes(level);
    let mut rows: Vec<u32> = if is_last { topology.labels().to_vec() } else { (0..n_nodes as u32).collect() };
    for window in topology.boundaries(level).windows(2) {
        // Columns of a matrix ascend. Only the last level is ever touched by this.
        rows[window[0] as usize..window[1] as usize].sort_unstable();
    }
    let values = vec![1.0; rows.len()];
    Columns { n_rows: if is_last { n_labels } else { n_nodes }, indptr, rows, values }
}

/// A walk down the cluster matrices, which brings the children of each node together.
#[derive(Default)]
pub(super) struct Walk {
    levels: Vec<Vec<u32>>,
    /// Number of each node of the last level found, in tree order, in that level's own numbering.
    order: Vec<u32>,
    n_rows: usize,
}

impl Walk {
    /// Boundaries and order of the last level found.
    pub(super) fn last(&self) -> (&[u32], &[u32]) {
        (self.levels.last().map_or(&[], |list| list), &self.order)
    }

    /// Number of each parent of the next level, in tree order, in the numbering of the level above.
    pub(super) fn parents(&self) -> Vec<u32> {
        if self.levels.is_empty() { vec![0] } else { self.order.clone() }
    }

    /// Rows of the last matrix found: nodes, or labels.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Goes one level down.
    ///
    /// # Errors
    /// As many columns are expected as the level above has nodes, and no node below two parents.
    pub(super) fn push(&mut self, path: &Path, clusters: &Columns) -> Result<(), PecosError> {
        let expected = if self.levels.is_empty() { 1 } else { self.n_rows };
        if clusters.n_columns() != expected {
            let (what, got) = ("number of clusters", clusters.n_columns());
            return Err(PecosError::Size { path: path.to_owned(), what, got, expected });
        }
        let parents = self.parents();
        let mut seen = vec![false; clusters.n_rows];
        let mut boundaries = Vec::with_capacity(parents.len() + 1);
        boundaries.push(0u32);
        let mut order = Vec::with_capacity(clusters.rows.len());
        for parent in parents {
            let (rows, values) = clusters.column(parent as usize);
            for (&row, &value) in rows.iter().zip(values) {
                // A stored zero is no membership.
                if value == 0.0 {
                    continue;
                }
                if std::mem::replace(&mut seen[row as usize], true) {
                    return Err(matrix_error(path, format!("row {row} hangs below two clusters, expected a tree")));
                }
                order.push(row);
            }
            // Below 2^32, because each row counts once and there are at most that many.
            boundaries.push(order.len() as u32);
        }
        self.levels.push(boundaries);
        self.order = order;
        self.n_rows = clusters.n_rows;
        Ok(())
    }

    /// The tree; `folder` is named in errors.
    pub(super) fn finish(self, folder: &Path) -> Result<Topology, PecosError> {
        Topology::try_new(self.levels, self.order, self.n_rows)
            .map_err(|source| PecosError::Tree { path: folder.to_owned(), source })
    }
}
