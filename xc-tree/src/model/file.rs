//! The folder of a tree model: which arrays, under which names. See `docs/formats/model.md`.

use super::{Level, MappedLevel, MappedValues, ModelInfo, PostProcessor, Top, Tree, TreeModel, UnknownPostProcessor};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use xc_sparse::chunked::{ChunkedArrays, ChunkedError, ChunkedView, MAX_WIDTH, Precision, SlotMap, Values};
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, MappedArray, OpenError, OpenMode, WriteError};

/// The kind that `config.json` names.
pub const KIND: &str = "tree";

/// Why a folder does not open as a tree model.
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
    /// A level's arrays break an invariant.
    #[error("{}: tree {tree}, level {level}: {source}", path.display())]
    Level {
        /// The folder.
        path: PathBuf,
        /// The tree.
        tree: usize,
        /// The level.
        level: usize,
        /// What is wrong.
        source: ChunkedError,
    },
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

/// How much of a model is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every invariant that the search relies on: O(nnz), about 4 GB a second on two cores.
    Structure,
    /// Sizes and boundaries of the arrays only. The caller vouches that the folder was written by this program and has
    /// not been damaged since; otherwise answers may be wrong or the process may crash.
    Trusted,
}

impl TreeModel {
    /// Writes the model's folder: complete, or not at all. An older model there is replaced.
    ///
    /// # Errors
    /// The folder holds something else than a model, or the system refuses to write.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let mut writer = ContainerWriter::create(folder.as_ref(), KIND)?;
        self.write(&mut writer)?;
        writer.finish()
    }

    /// Maps a model's folder and checks it. [`TreeModel::from_container`] is the long way.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenTreeError> {
        Self::from_container(&Container::open(folder.as_ref(), OpenMode::Map)?, Check::Structure)
    }

    /// Adds the model's parameters and arrays to a container of kind [`KIND`].
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("n_features", self.info.n_features as u64);
        writer.set_parameter("n_labels", self.info.n_labels as u64);
        writer.set_parameter("post_processor", self.info.post.to_string());
        writer.set_parameter("normalise_rows", self.info.normalise_rows);
        writer.set_parameter("beam", self.info.beam as u64);
        let depths: Vec<u64> = self.trees.iter().map(|t| t.depth() as u64).collect();
        writer.set_parameter("depths", depths);
        let heads: Vec<u64> = self.trees.iter().map(|t| t.top.as_ref().map_or(0, |h| h.depth as u64)).collect();
        writer.set_parameter("heads", heads);
        for (t, tree) in self.trees.iter().enumerate() {
            writer.add_slice(&format!("tree{t}.slot_map"), tree.level(0).slot_map())?;
            writer.add_slice(&format!("tree{t}.labels"), tree.labels())?;
            for (l, level) in tree.levels.iter().enumerate() {
                write_level(writer, &format!("tree{t}.level{l}"), level)?;
            }
            if let Some(top) = &tree.top {
                write_level(writer, &format!("tree{t}.head"), &top.level)?;
            }
        }
        Ok(())
    }

    /// Opens the arrays of a container of kind [`KIND`].
    ///
    /// *Cost*: [`Check::Trusted`] touches a few pages; [`Check::Structure`] reads everything once, in parallel.
    pub fn from_container(container: &Container, check: Check) -> Result<Self, OpenTreeError> {
        container.expect_kind(KIND)?;
        let path = || container.folder().to_owned();
        let name: String = container.parameter("post_processor")?;
        let post: PostProcessor = name.parse().map_err(|e: UnknownPostProcessor| OpenTreeError::Parameter {
            path: path(),
            key: "post_processor",
            why: e.to_string(),
        })?;
        let info = ModelInfo {
            n_features: container.parameter("n_features")?,
            n_labels: container.parameter("n_labels")?,
            post,
            normalise_rows: container.parameter("normalise_rows")?,
            beam: container.parameter("beam")?,
        };
        let depths: Vec<usize> = container.parameter("depths")?;
        if depths.is_empty() || depths.contains(&0) {
            let why = format!("met {depths:?}, wanted one number of levels above 0 for each tree");
            return Err(OpenTreeError::Parameter { path: path(), key: "depths", why });
        }
        let mut trees = Vec::new();
        // Absent where a program without heads, or one that streams, has written the model.
        let heads: Option<Vec<usize>> = container.parameter("heads")?;
        let heads = heads.unwrap_or_else(|| vec![0; depths.len()]);
        if heads.len() != depths.len() {
            let why = format!("met {heads:?}, wanted one number of levels for each of {} trees", depths.len());
            return Err(OpenTreeError::Parameter { path: path(), key: "heads", why });
        }
        for (t, depth) in depths.into_iter().enumerate() {
            trees.push(open_tree(container, &info, t, (depth, heads[t]), check)?);
        }
        Ok(Self { info, trees })
    }
}

fn write_level(writer: &mut ContainerWriter, prefix: &str, level: &Level) -> Result<(), WriteError> {
    let ChunkedArrays { records, headers, values, directory, bias, part_ptr } = level.view().arrays();
    let name = |array: &str| format!("{prefix}.{array}");
    let flat: &[u64] = bytemuck::cast_slice(records);
    writer.add(&name("records"), ArrayRef::new(flat, &[records.len(), 4]))?;
    writer.add_slice(&name("headers"), headers)?;
    match values {
        Values::F32(v) => writer.add_slice(&name("values"), v)?,
        Values::F16(v) => writer.add_slice(&name("values"), v)?,
        Values::Bf16(v) => writer.add_slice(&name("values"), v)?,
    }
    writer.add_slice(&name("directory"), directory)?;
    writer.add_slice(&name("bias"), bias)?;
    writer.add_slice(&name("part_ptr"), part_ptr)
}

fn open_tree(
    container: &Container,
    info: &ModelInfo,
    t: usize,
    (depth, head): (usize, usize),
    check: Check,
) -> Result<Tree, OpenTreeError> {
    let shape_error = |what: String| OpenTreeError::Shape { path: container.folder().to_owned(), tree: t, what };
    let slot_map: MappedArray<u32> = container.array_shaped(&format!("tree{t}.slot_map"), &[info.n_features])?;
    let slot_map = Arc::new(slot_map);
    if check == Check::Structure && slot_map.len() < 2 {
        SlotMap::try_from_vec(slot_map.to_vec()).map_err(|e| shape_error(e.to_string()))?;
    }
    let labels: MappedArray<u32> = container.array(&format!("tree{t}.labels"))?;
    let (mut levels, mut n_parents) = (Vec::new(), 1);
    for l in 0..depth {
        let level = open_level(container, &format!("tree{t}.level{l}"), slot_map.clone())?;
        let a = level.arrays();
        let level_error =
            |source| OpenTreeError::Level { path: container.folder().to_owned(), tree: t, level: l, source };
        if a.part_ptr.len() != n_parents + 1 {
            return Err(shape_error(format!(
                "level {l} has {} parents, wanted {n_parents}",
                a.part_ptr.len() as i64 - 1
            )));
        }
        n_parents = a.bias.len();
        if check == Check::Structure {
            ChunkedView::try_new(a.records, a.headers, a.values, a.directory, a.bias, &slot_map, a.part_ptr)
                .map_err(level_error)?;
        }
        levels.push(Level::Mapped(level));
    }
    if labels.len() != n_parents {
        return Err(shape_error(format!("{} leaf labels, wanted {n_parents}", labels.len())));
    }
    if check == Check::Structure {
        if let Some(label) = labels.iter().find(|&&l| l as usize >= info.n_labels) {
            return Err(shape_error(format!("a leaf has label {label}, there are only {}", info.n_labels)));
        }
        // As large as the largest label present, which the file's own length does not bound but 32 bits do.
        let mut seen = vec![0u64; labels.iter().max().map_or(0, |&l| l as usize / 64 + 1)];
        for &label in labels.iter() {
            let (word, bit) = (&mut seen[label as usize / 64], 1 << (label % 64));
            if *word & bit != 0 {
                return Err(shape_error(format!("label {label} stands on two leaves")));
            }
            *word |= bit;
        }
    }
    let mut tree = Tree { levels, labels, top: None };
    if head > 0 {
        tree.top = Some(open_top(container, t, &tree, head, slot_map, check)?);
    }
    Ok(tree)
}

fn open_top(
    container: &Container,
    t: usize,
    tree: &Tree,
    depth: usize,
    slot_map: Arc<MappedArray<u32>>,
    check: Check,
) -> Result<Top, OpenTreeError> {
    let path = || container.folder().to_owned();
    let level = open_level(container, &format!("tree{t}.head"), slot_map.clone())?;
    let a = level.arrays();
    let wanted: usize = tree.levels.iter().take(depth).map(|l| l.view().n_columns()).sum();
    if depth > tree.depth() || wanted > MAX_WIDTH || a.bias.len() != wanted || a.part_ptr != [0, 1] {
        let what = format!("a head of {depth} levels and {} nodes, wanted {wanted} nodes in one chunk", a.bias.len());
        return Err(OpenTreeError::Shape { path: path(), tree: t, what });
    }
    if check == Check::Structure {
        ChunkedView::try_new(a.records, a.headers, a.values, a.directory, a.bias, &slot_map, a.part_ptr)
            .map_err(|source| OpenTreeError::Level { path: path(), tree: t, level: 0, source })?;
    }
    Ok(Top { level: Level::Mapped(level), depth })
}

fn open_level(
    container: &Container,
    prefix: &str,
    slot_map: Arc<MappedArray<u32>>,
) -> Result<MappedLevel, OpenTreeError> {
    let name = |array: &str| format!("{prefix}.{array}");
    let values = name("values");
    let precision = match container.entry(&values).map(|e| e.dtype.name()) {
        Some("F16") => Precision::F16,
        Some("BF16") => Precision::Bf16,
        // Anything else is reported by the typed access below.
        _ => Precision::F32,
    };
    let records: MappedArray<u64> = container.array(&name("records"))?;
    let n_records = records.len() / 4;
    let records = container.array_shaped(&name("records"), &[n_records, 4])?;
    Ok(MappedLevel {
        records,
        headers: container.array(&name("headers"))?,
        values: match precision {
            Precision::F32 => MappedValues::F32(container.array(&values)?),
            Precision::F16 => MappedValues::F16(container.array(&values)?),
            Precision::Bf16 => MappedValues::Bf16(container.array(&values)?),
        },
        directory: container.array(&name("directory"))?,
        bias: container.array(&name("bias"))?,
        slot_map,
        part_ptr: container.array(&name("part_ptr"))?,
    })
}
