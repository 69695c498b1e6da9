//! Model folders: a trained model together with what makes its features and the names of its labels.

use crate::error::{CliError, chain};
use crate::interrupt;
use std::path::{Path, PathBuf};
use xc_hash::text::{FeatureMaker, PartArray, PipelineParts};
use xc_sparse::io::LabelNames;
use xc_sparse::store::{Container, ContainerWriter, Dtype, OpenError, OpenMode, WriteError};
use xc_tree::{Check, TreeModel};

/// Arrays of the feature pipeline are stored under this prefix.
const PIPELINE_PREFIX: &str = "pipeline.";

/// An open model.
pub(crate) struct Model {
    pub(crate) tree: TreeModel,
    /// How text or counts become features; `None` when features are used as they are.
    pub(crate) maker: Option<FeatureMaker>,
    container: Container,
}

/// How a model is opened.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OpenArgs {
    /// Open the model without checking it: fast, for folders that nobody else writes
    #[arg(long)]
    pub(crate) trusted: bool,
    /// Read the model into memory, in large pages, instead of mapping its file: opens slower,
    /// answers faster
    #[arg(long)]
    pub(crate) in_memory: bool,
}

impl Model {
    /// Opens a model of any kind that this program knows.
    pub(crate) fn open(folder: &Path, how: OpenArgs) -> Result<Self, CliError> {
        let mode = if how.in_memory { OpenMode::Read } else { OpenMode::Map };
        let container = open_container(folder, mode)?;
        if container.kind() != xc_tree::KIND {
            return Err(CliError::usage(format_args!(
                "{}: a model of kind {:?}; this program knows {:?}",
                folder.display(),
                container.kind(),
                xc_tree::KIND
            )));
        }
        let check = if how.trusted { Check::Trusted } else { Check::Structure };
        let tree = TreeModel::open(&container, check).map_err(|e| CliError::usage(chain(&e)))?;
        let maker = read_maker(&container)?;
        if let Some(maker) = &maker
            && maker.n_features() != tree.info().n_features
        {
            return Err(CliError::usage(format_args!(
                "{}: the feature pipeline makes {} features, the trees want {}",
                folder.display(),
                maker.n_features(),
                tree.info().n_features
            )));
        }
        Ok(Self { tree, maker, container })
    }

    /// Names of the labels, if they have some.
    pub(crate) fn label_names(&self) -> Result<Option<LabelNames>, CliError> {
        let Some(names) = self.container.labels().map_err(|e| CliError::usage(chain(&e)))? else { return Ok(None) };
        let names =
            LabelNames::try_new(names).map_err(|e| CliError::input(&self.container.folder().join("labels.txt"), &e))?;
        Ok(Some(names))
    }

    /// Bytes of all array files.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.container.n_bytes()
    }
}

/// Opens the folder; an absent one is said to be absent rather than to lack a file.
pub(crate) fn open_container(folder: &Path, mode: OpenMode) -> Result<Container, CliError> {
    let wanted = |what: &str| CliError::usage(format_args!("{}: {what}; a model folder is wanted", folder.display()));
    match std::fs::metadata(folder) {
        Err(e) => return Err(wanted(&crate::error::io_text(&e))),
        Ok(meta) if !meta.is_dir() => return Err(wanted("not a folder")),
        Ok(_) => {}
    }
    Container::open(folder, mode).map_err(|e: OpenError| CliError::usage(chain(&e)))
}

/// What a model is saved with.
pub(crate) struct Extras<'a> {
    pub(crate) maker: Option<&'a FeatureMaker>,
    pub(crate) names: Option<&'a [String]>,
    /// How it was trained, for a person and for `inspect`.
    pub(crate) training: Option<serde_json::Value>,
}

/// Saves a model in one step: the folder is the old one or the new one, never a part.
pub(crate) fn save(folder: &Path, tree: &TreeModel, extras: Extras<'_>) -> Result<(), CliError> {
    let write = || -> Result<(), WriteError> {
        let mut writer = ContainerWriter::create(folder, xc_tree::KIND)?;
        tree.write(&mut writer)?;
        if let Some(training) = extras.training {
            writer.set_parameter("training", training);
        }
        if let Some(maker) = extras.maker {
            write_maker(&mut writer, maker)?;
        }
        if let Some(names) = extras.names {
            writer.labels(names)?;
        }
        writer.finish()
    };
    interrupt::saving(Some(folder));
    let outcome = write().map_err(|e| write_error(&e));
    interrupt::saving(None);
    outcome
}

/// A model folder that may not be written is exit code 2 when the user named something that must not be replaced,
/// otherwise 1.
pub(crate) fn write_error(error: &WriteError) -> CliError {
    match error {
        WriteError::Occupied { .. } => CliError::usage(chain(error)),
        _ => CliError::failed(chain(error)),
    }
}

/// `MODEL` + `.suffix`, beside the model.
pub(crate) fn beside(model: &Path, suffix: &str) -> PathBuf {
    // "dir/model/" and "dir/model" name the same folder.
    let mut name = model.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Stores what makes features: its description as the container's pipeline, its arrays among the model's.
pub(crate) fn write_maker(writer: &mut ContainerWriter, maker: &FeatureMaker) -> Result<(), WriteError> {
    let PipelineParts { config, arrays } = maker.to_parts();
    writer.set_pipeline(config);
    for (name, array) in &arrays {
        let name = format!("{PIPELINE_PREFIX}{name}");
        match array {
            PartArray::F32(values) => writer.add_slice(&name, values)?,
            PartArray::U32(values) => writer.add_slice(&name, values)?,
            PartArray::U8(values) => writer.add_slice(&name, values)?,
        }
    }
    Ok(())
}

/// Reads what [`write_maker`] stored.
pub(crate) fn read_maker(container: &Container) -> Result<Option<FeatureMaker>, CliError> {
    let Some(config) = container.pipeline() else { return Ok(None) };
    let damaged = |what: String| CliError::usage(format_args!("{}: {what}", container.folder().display()));
    let mut arrays = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(short) = name.strip_prefix(PIPELINE_PREFIX) else { continue };
        let open = |e: OpenError| CliError::usage(chain(&e));
        let array = match entry.dtype {
            Dtype::F32 => PartArray::F32(container.array::<f32>(name).map_err(open)?.to_vec()),
            Dtype::U32 => PartArray::U32(container.array::<u32>(name).map_err(open)?.to_vec()),
            Dtype::U8 => PartArray::U8(container.array::<u8>(name).map_err(open)?.to_vec()),
            other => return Err(damaged(format!("array {name:?} is of type {other}, wanted F32, U32 or U8"))),
        };
        arrays.push((short.to_owned(), array));
    }
    let maker = FeatureMaker::from_parts(PipelineParts { config: config.clone(), arrays });
    maker.map(Some).map_err(|e| damaged(format!("feature pipeline: {}", chain(&e))))
}
