//! The folder of a tree model: its arrays and their names. See `docs/formats/model.md`.

use super::{ModelInfo, PostProcessor, Top, Tree, TreeModel, UnknownPostProcessor};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_buffer::Buffer;
use xc_sparse::chunked::{ChunkedLevel, MAX_WIDTH, OpenLevelError, SlotMap};
use xc_store::{Container, ContainerWriter, OpenError, OpenMode, WriteError};

/// The kind that `config.json` names.
pub const KIND: &str = "tree";

/// Features have numbers of 32 bits.
const MOST_FEATURES: u64 = 1 << 32;

/// Why a folder cannot be opened as a tree model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenTreeError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// A parameter has a value that this program does not know.
    #[error("{}: parameter {key}: {why}", path.display())]
    Parameter {
        /// The folder.
        path: PathBuf,
        /// The parameter.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A level or the slot map of a tree.
    #[error(transparent)]
    Level(#[from] OpenLevelError),
    /// Levels or labels do not fit together.
    #[error("{}: tree {tree}: {what}", path.display())]
    Shape {
        /// The folder.
        path: PathBuf,
        /// The tree.
        tree: usize,
        /// What is wrong.
        what: String,
    },
}

/// How the parts of a tree are opened: by the functions that check everything, or by those that
/// trust.
pub(super) struct Opener {
    pub(super) slot_map: fn(&Container, &str, usize) -> Result<SlotMap, OpenLevelError>,
    pub(super) level: fn(&Container, &str, &SlotMap) -> Result<ChunkedLevel, OpenLevelError>,
    pub(super) checks_labels: bool,
}

impl ModelInfo {
    /// Adds what a model knows beside its arrays; of each tree the number of its levels and of those
    /// that its head holds.
    pub(crate) fn write(&self, depths: &[(usize, usize)], writer: &mut ContainerWriter) {
        self.write_own(writer);
        let (depths, heads): (Vec<u64>, Vec<u64>) = depths.iter().map(|&(d, h)| (d as u64, h as u64)).unzip();
        writer.set_parameter("depths", depths);
        writer.set_parameter("heads", heads);
    }

    /// Adds what does not depend on the trees.
    pub(crate) fn write_own(&self, writer: &mut ContainerWriter) {
        writer.set_parameter("n_features", self.n_features as u64);
        writer.set_parameter("n_labels", self.n_labels as u64);
        writer.set_parameter("post_processor", self.post.to_string());
        writer.set_parameter("normalise_rows", self.normalise_rows);
        writer.set_parameter("row_length", f64::from(self.row_length));
        writer.set_parameter("beam", self.beam as u64);
    }

    /// What [`Self::write_own`] wrote.
    pub(crate) fn read(container: &Container) -> Result<Self, OpenTreeError> {
        let path = || container.folder().to_owned();
        let name: String = container.parameter("post_processor")?;
        let post: PostProcessor = name.parse().map_err(|e: UnknownPostProcessor| OpenTreeError::Parameter {
            path: path(),
            key: "post_processor",
            why: e.to_string(),
        })?;
        // Absent where a program has written the model whose rows have length 1.
        let row_length = container.parameter::<Option<f32>>("row_length")?.unwrap_or(1.0);
        if !(row_length.is_finite() && row_length > 0.0) {
            let why = format!("got {row_length}, expected a finite number above 0");
            return Err(OpenTreeError::Parameter { path: path(), key: "row_length", why });
        }
        let n_features = container.parameter("n_features")?;
        if n_features as u64 > MOST_FEATURES {
            let why = format!("got {n_features}, at most {MOST_FEATURES} expected: features are numbered by 32 bits");
            return Err(OpenTreeError::Parameter { path: path(), key: "n_features", why });
        }
        Ok(Self {
            n_features,
            n_labels: container.parameter("n_labels")?,
            post,
            normalise_rows: container.parameter("normalise_rows")?,
            row_length,
            beam: container.parameter("beam")?,
        })
    }
}

impl TreeModel {
    /// Writes the model's folder: complete, or not at all. An existing model is replaced.
    ///
    /// # Errors
    /// The folder holds something other than a model, or the system refuses to write.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let mut writer = ContainerWriter::create(folder.as_ref(), KIND)?;
        self.write(&mut writer)?;
        writer.finish()
    }

    /// Maps a model's folder and checks it; see [`TreeModel::from_container`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenTreeError> {
        Self::from_container(&Container::open(folder.as_ref(), OpenMode::Map)?)
    }

    /// Adds the model's parameters and arrays to a container of kind [`KIND`].
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let depths = self.trees.iter().map(|t| (t.depth(), t.top.as_ref().map_or(0, |top| top.depth)));
        self.info.write(&depths.collect::<Vec<_>>(), writer);
        for (t, tree) in self.trees.iter().enumerate() {
            tree.slot_map().write(&format!("tree{t}.slot_map"), writer)?;
            writer.add_slice(&format!("tree{t}.labels"), tree.labels())?;
            for (l, level) in tree.levels.iter().enumerate() {
                level.write(&format!("tree{t}.level{l}"), writer)?;
            }
            if let Some(top) = &tree.top {
                top.level.write(&format!("tree{t}.head"), writer)?;
            }
        }
        Ok(())
    }

    /// Opens the arrays of a container of kind [`KIND`].
    ///
    /// *Cost*: reads everything once, in parallel, about 4 GB a second on two cores: every
    /// invariant that the search relies on is checked. [`super::trusted`] leaves that out.
    ///
    /// # Errors
    /// See [`OpenTreeError`].
    pub fn from_container(container: &Container) -> Result<Self, OpenTreeError> {
        let opener = Opener { slot_map: SlotMap::open, level: ChunkedLevel::open, checks_labels: true };
        Self::open_with(container, &opener)
    }

    pub(super) fn open_with(container: &Container, opener: &Opener) -> Result<Self, OpenTreeError> {
        container.expect_kind(KIND)?;
        let path = || container.folder().to_owned();
        let info = ModelInfo::read(container)?;
        let depths: Vec<usize> = container.parameter("depths")?;
        if depths.is_empty() || depths.contains(&0) {
            let why = format!("got {depths:?}, expected one number of levels above 0 for each tree");
            return Err(OpenTreeError::Parameter { path: path(), key: "depths", why });
        }
        let mut trees = Vec::new();
        // Absent where a program without heads, or one that streams, has written the model.
        let heads: Option<Vec<usize>> = container.parameter("heads")?;
        let heads = heads.unwrap_or_else(|| vec![0; depths.len()]);
        if heads.len() != depths.len() {
            let why = format!("got {heads:?}, expected one number of levels for each of {} trees", depths.len());
            return Err(OpenTreeError::Parameter { path: path(), key: "heads", why });
        }
        for (t, depth) in depths.into_iter().enumerate() {
            trees.push(open_tree(container, &info, t, (depth, heads[t]), opener)?);
        }
        Ok(Self { info, trees })
    }
}

fn open_tree(
    container: &Container,
    info: &ModelInfo,
    t: usize,
    (depth, head): (usize, usize),
    opener: &Opener,
) -> Result<Tree, OpenTreeError> {
    let shape_error = |what: String| OpenTreeError::Shape { path: container.folder().to_owned(), tree: t, what };
    let slot_map = (opener.slot_map)(container, &format!("tree{t}.slot_map"), info.n_features)?;
    let labels: Buffer<u32> = container.array(&format!("tree{t}.labels"))?;
    let (mut levels, mut n_parents) = (Vec::new(), 1);
    for l in 0..depth {
        let level = (opener.level)(container, &format!("tree{t}.level{l}"), &slot_map)?;
        if level.arrays().part_ptr.len() != n_parents + 1 {
            let got = level.arrays().part_ptr.len() as i64 - 1;
            return Err(shape_error(format!("level {l} has {got} parents, expected {n_parents}")));
        }
        n_parents = level.view().n_columns();
        levels.push(level);
    }
    if labels.len() != n_parents {
        return Err(shape_error(format!("{} leaf labels, expected {n_parents}", labels.len())));
    }
    if opener.checks_labels {
        check_labels(&labels, info.n_labels).map_err(shape_error)?;
    }
    let mut tree = Tree { levels, labels, top: None };
    if head > 0 {
        tree.top = Some(open_top(container, t, &tree, head, opener)?);
    }
    Ok(tree)
}

/// Each leaf has a label of its own, below `n_labels`.
fn check_labels(labels: &[u32], n_labels: usize) -> Result<(), String> {
    if let Some(label) = labels.iter().find(|&&l| l as usize >= n_labels) {
        return Err(format!("a leaf has label {label}, there are only {n_labels}"));
    }
    // As large as the largest label present, which the file's own length does not bound but 32 bits
    // do.
    let mut seen = vec![0u64; labels.iter().max().map_or(0, |&l| l as usize / 64 + 1)];
    for &label in labels {
        let (word, bit) = (&mut seen[label as usize / 64], 1 << (label % 64));
        if *word & bit != 0 {
            return Err(format!("label {label} stands on two leaves"));
        }
        *word |= bit;
    }
    Ok(())
}

fn open_top(container: &Container, t: usize, tree: &Tree, depth: usize, opener: &Opener) -> Result<Top, OpenTreeError> {
    let level = (opener.level)(container, &format!("tree{t}.head"), tree.slot_map())?;
    let (got, part_ptr) = (level.view().n_columns(), &level.arrays().part_ptr);
    let expected: usize = tree.levels.iter().take(depth).map(|l| l.view().n_columns()).sum();
    if depth > tree.depth() || expected > MAX_WIDTH || got != expected || part_ptr[..] != [0, 1] {
        let what = format!("a head of {depth} levels and {got} nodes, expected {expected} nodes in one chunk");
        return Err(OpenTreeError::Shape { path: container.folder().to_owned(), tree: t, what });
    }
    Ok(Top { level, depth })
}
