//! Model folders: a trained model together with what makes its features and the names of its labels.

use crate::context::Context;
use crate::error::{CliError, chain};
use crate::interrupt;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use xc_hash::text::{Featurizer, PartArray, PipelineParts};
use xc_hash::universal::Family;
use xc_mach::Decoder;
use xc_sparse::dtype::DType;
use xc_sparse::io::LabelNames;
use xc_sparse::store::{Container, ContainerWriter, OpenError, OpenMode, WriteError};
use xc_train::classifier::{Classifier, InputKind, preset};
use xc_train::mach::{self, MachContainer, MachModel};
use xc_tree::TreeModel;

/// Arrays of the feature pipeline are stored under this prefix.
pub(crate) const PIPELINE_PREFIX: &str = "pipeline.";

/// An open model.
pub(crate) struct Model {
    pub(crate) system: System,
    /// How text or counts become features; `None` when features are used as they are.
    pub(crate) maker: Option<Featurizer>,
    container: Container,
}

/// What answers.
pub(crate) enum System {
    Tree(TreeModel),
    Classifier(Box<Classifier>),
    Mach(Box<MachModel>),
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
    pub(crate) fn open(folder: &Path, how: OpenArgs, context: &Context) -> Result<Self, CliError> {
        Self::open_some(folder, how, None, context)
    }

    /// Opens a model; of a MACH model only some repetitions where `repetitions` names them. Repetitions that are missing or
    /// damaged are said and left out.
    pub(crate) fn open_some(
        folder: &Path,
        how: OpenArgs,
        repetitions: Option<&[u32]>,
        context: &Context,
    ) -> Result<Self, CliError> {
        let mode = if how.in_memory { OpenMode::Read } else { OpenMode::Map };
        let container = open_parts(folder, mode)?;
        let unreadable = |e: &dyn std::error::Error| CliError::usage(chain(e));
        let kind = container.kind().to_owned();
        if repetitions.is_some() && kind != mach::KIND {
            return Err(CliError::usage(format_args!("--repetitions: {} is no MACH model", folder.display())));
        }
        if kind != mach::KIND
            && let Some((_, first)) = container.lost().next()
        {
            return Err(unreadable(first));
        }
        let (system, container) = match &*kind {
            xc_tree::KIND => {
                let tree = match how.trusted {
                    // SAFETY: whoever says `--trusted` vouches for the folder.
                    #[allow(unsafe_code, reason = "the option says that the folder is to be trusted")]
                    true => unsafe { xc_tree::trusted::open(&container) },
                    false => TreeModel::from_container(&container),
                };
                let tree = tree.map_err(|e| unreadable(&e))?;
                (System::Tree(tree), container)
            }
            mach::KIND => {
                let open = MachContainer::of(container).map_err(|e| unreadable(&e))?;
                let (model, left_out) = open.model(repetitions).map_err(|e| unreadable(&e))?;
                left_out.iter().for_each(|lost| context.warn(chain(lost)));
                if !left_out.is_empty() {
                    let (n, of) = (model.assignment().n_repetitions(), open.numbers().len());
                    context.warn(format_args!("{}: {n} of {of} repetitions answer", folder.display()));
                }
                (System::Mach(Box::new(model)), open.into_container())
            }
            kind if preset::named(kind).is_some() => {
                let model = Classifier::of(&container, !how.trusted).map_err(|e| unreadable(&e))?;
                (System::Classifier(Box::new(model)), container)
            }
            other => {
                return Err(CliError::usage(format_args!(
                    "{}: a model of kind {other:?}; this program knows {:?}, {:?}, {:?} and {:?}",
                    folder.display(),
                    xc_tree::KIND,
                    preset::DENSE,
                    mach::KIND,
                    preset::UNIFORM
                )));
            }
        };
        let maker = read_maker(&container)?;
        let model = Self { system, maker, container };
        if let Some(maker) = &model.maker
            && maker.n_features() != model.n_features()
        {
            return Err(CliError::usage(format_args!(
                "{}: the feature pipeline makes {} features, the model wants {}",
                folder.display(),
                maker.n_features(),
                model.n_features()
            )));
        }
        Ok(model)
    }

    /// Number of features of a query.
    pub(crate) fn n_features(&self) -> usize {
        match &self.system {
            System::Tree(tree) => tree.info().n_features,
            System::Classifier(classifier) => classifier.n_features(),
            System::Mach(mach) => mach.n_features(),
        }
    }

    /// Number of labels.
    pub(crate) fn n_labels(&self) -> usize {
        match &self.system {
            System::Tree(tree) => tree.info().n_labels,
            System::Classifier(classifier) => classifier.n_labels(),
            System::Mach(mach) => mach.n_labels(),
        }
    }

    /// Width of the vectors that the model takes, if it takes no sparse features.
    pub(crate) fn vector_width(&self) -> Option<usize> {
        match &self.system {
            System::Classifier(model) if model.params().encoder.input == InputKind::Dense => Some(model.n_features()),
            _ => None,
        }
    }

    /// The kind as `config.json` names it.
    pub(crate) fn kind(&self) -> &str {
        self.container.kind()
    }

    /// The tree, for what only trees can do.
    ///
    /// # Errors
    /// The model is of another kind.
    pub(crate) fn tree(&self) -> Result<&TreeModel, CliError> {
        match &self.system {
            System::Tree(tree) => Ok(tree),
            _ => Err(CliError::usage(format_args!(
                "{}: a model of kind {:?}; a tree is wanted",
                self.container.folder().display(),
                self.kind()
            ))),
        }
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

/// Maps the files of a folder, all of which have to be sound.
pub(crate) fn open_container(folder: &Path) -> Result<Container, CliError> {
    check_folder(folder)?;
    Container::open(folder, OpenMode::Map).map_err(|e| CliError::usage(chain(&e)))
}

/// Opens the folder as far as it is sound.
pub(crate) fn open_parts(folder: &Path, mode: OpenMode) -> Result<Container, CliError> {
    check_folder(folder)?;
    Container::open_parts(folder, mode).map_err(|e| CliError::usage(chain(&e)))
}

/// An absent folder is said to be absent rather than to lack a file.
fn check_folder(folder: &Path) -> Result<(), CliError> {
    let wanted = |what: &str| CliError::usage(format_args!("{}: {what}; a model folder is wanted", folder.display()));
    match std::fs::metadata(folder) {
        Err(e) => Err(wanted(&crate::error::io_text(&e))),
        Ok(meta) if !meta.is_dir() => Err(wanted("not a folder")),
        Ok(_) => Ok(()),
    }
}

/// What a model is saved with.
pub(crate) struct Extras<'a> {
    pub(crate) maker: Option<&'a Featurizer>,
    pub(crate) names: Option<&'a [String]>,
    /// How it was trained, for a person and for `inspect`.
    pub(crate) training: Option<serde_json::Value>,
}

/// Saves a tree in one step: the folder is the old one or the new one, never a part.
pub(crate) fn save(folder: &Path, tree: &TreeModel, extras: Extras<'_>) -> Result<(), CliError> {
    save_with(folder, xc_tree::KIND, extras, |writer| tree.write(writer))
}

/// Saves what `write` adds to a model of some kind.
pub(crate) fn save_with(
    folder: &Path,
    kind: &str,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), WriteError>,
) -> Result<(), CliError> {
    let create = || ContainerWriter::create(folder, kind);
    save_created(create, extras, |writer| write(writer).map_err(|e| write_error(&e)))
}

/// Saves what `write` adds to what `create` began.
pub(crate) fn save_created(
    create: impl FnOnce() -> Result<ContainerWriter, WriteError>,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let save = || -> Result<(), CliError> {
        let failed = |e: WriteError| write_error(&e);
        let mut writer = create().map_err(failed)?;
        interrupt::saving(Some(writer.partial()));
        if let Some(training) = extras.training {
            writer.set_parameter("training", training);
        }
        if let Some(maker) = extras.maker {
            write_maker(&mut writer, maker).map_err(failed)?;
        }
        if let Some(names) = extras.names {
            writer.labels(names).map_err(failed)?;
        }
        write(&mut writer)?;
        writer.finish().map_err(failed)
    };
    let outcome = save();
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
pub(crate) fn write_maker(writer: &mut ContainerWriter, maker: &Featurizer) -> Result<(), WriteError> {
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
pub(crate) fn read_maker(container: &Container) -> Result<Option<Featurizer>, CliError> {
    let Some(config) = container.pipeline() else { return Ok(None) };
    let damaged = |what: String| CliError::usage(format_args!("{}: {what}", container.folder().display()));
    let mut arrays = Vec::new();
    for (name, entry) in container.arrays() {
        let Some(short) = name.strip_prefix(PIPELINE_PREFIX) else { continue };
        let open = |e: OpenError| CliError::usage(chain(&e));
        let array = match entry.dtype {
            DType::F32 => PartArray::F32(container.array::<f32>(name).map_err(open)?.to_vec()),
            DType::U32 => PartArray::U32(container.array::<u32>(name).map_err(open)?.to_vec()),
            DType::U8 => PartArray::U8(container.array::<u8>(name).map_err(open)?.to_vec()),
            other => return Err(damaged(format!("array {name:?} is of type {other}, wanted F32, U32 or U8"))),
        };
        arrays.push((short.to_owned(), array));
    }
    let maker = Featurizer::from_parts(PipelineParts { config: config.clone(), arrays });
    maker.map(Some).map_err(|e| damaged(format!("feature pipeline: {}", chain(&e))))
}

/// What ranks the labels of a MACH model, as an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecoderName {
    /// Mean over the repetitions, made unbiased
    Mean,
    /// The least of the repetitions
    Min,
    /// The median of the repetitions
    Median,
}

impl DecoderName {
    pub(crate) fn decoder(self) -> Decoder {
        match self {
            Self::Mean => Decoder::Mean,
            Self::Min => Decoder::Min,
            Self::Median => Decoder::Median,
        }
    }
}

/// A family of hash functions, as an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyName {
    /// Carter and Wegman's modulo the smallest prime that serves
    Prime,
    /// Carter and Wegman's modulo 2^61 - 1
    Mersenne61,
    /// Multiply, add, shift
    MultiplyShift,
    /// Simple tabulation
    Tabulation,
}

impl FamilyName {
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Prime => Family::Prime,
            Self::Mersenne61 => Family::Mersenne61,
            Self::MultiplyShift => Family::MultiplyShift,
            Self::Tabulation => Family::Tabulation,
        }
    }
}
