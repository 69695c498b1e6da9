//! The folder of a classifier: its parameters, every array under its name.

use super::{
    Classifier, ClassifierParams, ClassifierParamsError, HeadParams, InputKind, LearningParams, Output, Wide,
    WideParams, Wiring,
};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_buffer::Buffer;
use xc_nn::encoder::transformer::IS_BUILT;
use xc_nn::head::{Dense, Sampled, Sparse};
use xc_nn::state::State;
use xc_nn::{Decay, Init, Named, Network, Parameter};
use xc_sparse::uniform::{Connections, OpenConnectionsError};
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, OpenMode, WriteError, to_parameter};
use xc_tree::{RankerWeights, RankerWeightsError};

/// What the names of the head's arrays begin with.
const HEAD: &str = "head.";

/// Why a folder does not open as a classifier.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenClassifierError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// It holds another kind of model.
    #[error("{}: a model of kind {kind:?}, expected a classifier", path.display())]
    Kind {
        /// The folder.
        path: PathBuf,
        /// The kind that it states.
        kind: String,
    },
    /// The parameters make no classifier.
    #[error("{}: parameter classifier", path.display())]
    Params {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: ClassifierParamsError,
    },
    /// A network over tokens, in a build without it.
    #[error("{}: a network over tokens of texts, which this build lacks (feature transformer)", path.display())]
    NoTransformer {
        /// The folder.
        path: PathBuf,
    },
    /// A value is not a finite number.
    #[error("{}: array {name}: value {at} is not finite", path.display())]
    NotFinite {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
        /// Position in it.
        at: usize,
    },
    /// The wide term.
    #[error("{}: wide term", path.display())]
    Wide {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: RankerWeightsError,
    },
    /// A wide term without features.
    #[error("{}: a wide term, which sparse features are needed for, of a network over vectors", path.display())]
    WideOfVectors {
        /// The folder.
        path: PathBuf,
    },
    /// An array of the connections.
    #[error(transparent)]
    Connections(#[from] OpenConnectionsError),
}

/// Name and shape of an array.
pub(super) type NamedShape = (String, [usize; 2]);

/// Adds the arrays of a dense layer.
fn push_layer(out: &mut Vec<NamedShape>, name: &str, outputs: usize, inputs: usize) {
    out.push((format!("{name}.weights"), [outputs, inputs]));
    out.push((format!("{name}.bias"), [outputs, 1]));
}

impl ClassifierParams {
    /// Names and shapes of the arrays below the head, in the order of their parameters.
    pub fn encoder_shapes(&self, n_features: usize) -> Vec<(String, [usize; 2])> {
        let (mut out, mut width) =
            (self.encoder.kind().shapes(n_features), self.encoder.kind().lowest_width(n_features));
        for (below, units) in self.encoder.layer_widths().enumerate() {
            push_layer(&mut out, &format!("layer{}", below + 1), units, width);
            width = units;
        }
        out
    }
}

impl Classifier {
    /// Adds parameters and arrays to a container of the classifier's kind. How it learned is among them unless the
    /// classifier was opened: that is not read.
    ///
    /// # Errors
    /// The container refuses.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        if let Some(wide) = &self.wide {
            write_wide(wide, writer)?;
            if self.params.encoder.input() == InputKind::Tokens {
                writer.set_parameter(WIDE_FEATURES, wide.rankers.n_features() as u64);
            }
        }
        writer.set_parameter("n_features", self.n_features() as u64);
        writer.set_parameter("n_labels", self.n_labels() as u64);
        writer.set_parameter("classifier", self.params.to_value());
        if self.knows_learning {
            writer.set_parameter(LearningParams::NAME, to_parameter(&self.params.learning));
        }
        self.write_arrays("", writer)
    }

    /// Adds the arrays alone, every name behind `prefix`.
    ///
    /// # Errors
    /// The container refuses.
    pub(crate) fn write_arrays(&self, prefix: &str, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        for named in self.network.parameters() {
            let shape = [named.parameter.rows(), named.parameter.width()];
            writer.add(&format!("{prefix}{}", named.name), ArrayRef::new(named.parameter.values(), &shape))?;
        }
        match self.network.head() {
            Output::Sparse(sparse) => sparse.connections().write(&format!("{prefix}{HEAD}"), writer),
            Output::Dense(_) => Ok(()),
            Output::Candidates(head) => {
                let (dtype, shape) = (head.stored().dtype(), &[head.weights().n(), head.weights().width()]);
                let bytes = head.stored().bytes();
                writer.add(&format!("{prefix}{HEAD}weights"), ArrayRef { dtype, shape, bytes })
            }
        }
    }

    /// Saves the classifier as a model folder, in one step.
    ///
    /// # Errors
    /// The folder holds something else, or the file system refuses.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let folder = folder.as_ref();
        let mut writer = ContainerWriter::create(folder, self.kind)?;
        self.write(&mut writer)?;
        writer.finish()
    }

    /// Opens a model folder; the arrays are mapped.
    ///
    /// # Errors
    /// See [`OpenClassifierError`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenClassifierError> {
        let folder = folder.as_ref();
        Self::of(&Container::open(folder, OpenMode::Map)?, true)
    }

    /// Opens a container; the arrays stay where the container has them.
    ///
    /// *Cost*: with `check` a pass over all arrays, which finds values that are not finite,
    /// connections out of range and connections twice. Without it the caller vouches for the file;
    /// a wrong connection then ends an answer with a panic.
    ///
    /// # Errors
    /// See [`OpenClassifierError`].
    pub fn of(container: &Container, check: bool) -> Result<Self, OpenClassifierError> {
        let path = || container.folder().to_owned();
        let Some(kind) = super::named(container.kind()) else {
            return Err(OpenClassifierError::Kind { path: path(), kind: container.kind().to_owned() });
        };
        if !IS_BUILT && container.parameters().get("classifier").is_some_and(|of| of["encoder"]["kind"] == "tokens") {
            return Err(OpenClassifierError::NoTransformer { path: path() });
        }
        let params: ClassifierParams = container.parameter("classifier")?;
        let (n_features, n_labels) = (container.parameter("n_features")?, container.parameter("n_labels")?);
        let mut classifier = Self::open_arrays(container, "", kind, params, n_features, n_labels, check)?;
        classifier.set_wide(open_wide(container, &classifier, check)?);
        Ok(classifier)
    }

    /// Opens the arrays whose names begin with `prefix`.
    pub(crate) fn open_arrays(
        container: &Container,
        prefix: &str,
        kind: &'static str,
        params: ClassifierParams,
        n_features: usize,
        n_labels: usize,
        check: bool,
    ) -> Result<Self, OpenClassifierError> {
        let refused = |source| OpenClassifierError::Params { path: container.folder().to_owned(), source };
        params.check_shape(n_features).map_err(refused)?;
        // Every array before a layer is made: no memory is taken that the file does not account
        // for.
        let below = stored_arrays(container, prefix, &params.encoder_shapes(n_features), check)?;
        let width = params.encoder.top_width(n_features);
        let mut shapes: Vec<NamedShape> = Vec::new();
        let output = match &params.head {
            HeadParams::Sparse(head) => {
                shapes.push((format!("{HEAD}bias"), [n_labels, 1]));
                let biases = stored_arrays(container, prefix, &shapes, check)?;
                let fan_in = (head.wiring == Wiring::Uniform).then_some(head.fan_in);
                let prefix = format!("{prefix}{HEAD}");
                let connections = Connections::open(container, &prefix, n_labels, width, fan_in, head.weights, check)?;
                let mut bias = Parameter::zeros(n_labels, 1, Decay::No);
                biases.into_iter().for_each(|values| bias.set_stored(values));
                Output::Sparse(params.as_trained(Sparse::from_parts(head.layer(&params.learning), connections, bias)))
            }
            HeadParams::Candidates(head) => {
                shapes.push((format!("{HEAD}bias"), [n_labels, 1]));
                let biases = stored_arrays(container, prefix, &shapes, check)?;
                let name = format!("{prefix}{HEAD}weights");
                let weights = container.floats(&name, head.rows, &[n_labels, width])?;
                if check && let Some(at) = weights.not_finite() {
                    return Err(OpenClassifierError::NotFinite { path: container.folder().to_owned(), name, at });
                }
                let mut bias = Parameter::zeros(n_labels, 1, Decay::No);
                biases.into_iter().for_each(|values| bias.set_stored(values));
                let layer = head.layer(params.precision, &params.learning);
                Output::Candidates(Sampled::from_parts(weights, width, bias, layer))
            }
            HeadParams::Dense => {
                push_layer(&mut shapes, "head", n_labels, width);
                let arrays = stored_arrays(container, prefix, &shapes, check)?;
                let mut dense = Dense::new(n_labels, width, Init::Zeros).with_products(params.precision);
                set_stored(dense.parameters_mut(), arrays);
                Output::Dense(dense)
            }
        };
        let mut encoder = params.encoder(n_features, Init::Zeros);
        set_stored(encoder.parameters_mut(), below);
        let network = Network::new(encoder, output);
        Ok(Self { kind, params, n_features, network, knows_learning: false, wide: None, index: None, scale: None })
    }
}

/// The parameter that says how a wide term answers.
pub const WIDE: &str = "wide";
/// Features of words that it is over, where instances are tokens.
pub(crate) const WIDE_FEATURES: &str = "wide_features";
/// What the names of its arrays begin with.
pub(crate) const WIDE_PREFIX: &str = "wide.";

/// Adds a wide term: its parameters, a sparse row of weights and a bias for each label.
pub(crate) fn write_wide(wide: &Wide, writer: &mut ContainerWriter) -> Result<(), WriteError> {
    let rankers = &wide.rankers;
    writer.set_parameter(WIDE, to_parameter(&wide.params));
    let (weights, n) = (rankers.weights(), rankers.features().len());
    writer.add(&format!("{WIDE_PREFIX}starts"), ArrayRef::new(rankers.starts(), &[rankers.starts().len()]))?;
    writer.add(&format!("{WIDE_PREFIX}features"), ArrayRef::new(rankers.features(), &[n]))?;
    writer.add(&format!("{WIDE_PREFIX}skips"), ArrayRef::new(rankers.skips(), &[rankers.skips().len()]))?;
    let weights = ArrayRef { dtype: weights.dtype(), shape: &[n], bytes: weights.bytes() };
    writer.add(&format!("{WIDE_PREFIX}weights"), weights)?;
    writer.add(&format!("{WIDE_PREFIX}bias"), ArrayRef::new(rankers.bias(), &[rankers.n_labels()]))
}

/// Features of the words that a wide term over tokens reads beside them.
fn words_of(container: &Container) -> Result<usize, OpenClassifierError> {
    /// As of a text pipeline.
    const MOST: usize = 1 << 31;
    let got: usize = container.parameter(WIDE_FEATURES)?;
    let source = || ClassifierParamsError::Number { name: WIDE_FEATURES, got: got as f64, expected: "at most 2^31" };
    if got > MOST {
        return Err(OpenClassifierError::Params { path: container.folder().to_owned(), source: source() });
    }
    Ok(got)
}

/// The wide term of a container, where it has one; with `check` all of its arrays are looked at.
fn open_wide(container: &Container, of: &Classifier, check: bool) -> Result<Option<Wide>, OpenClassifierError> {
    if !container.parameters().contains_key(WIDE) {
        return Ok(None);
    }
    let path = || container.folder().to_owned();
    let params: WideParams = container.parameter(WIDE)?;
    params.check().map_err(|source| OpenClassifierError::Params { path: path(), source })?;
    let n_features = match of.params().encoder.input() {
        InputKind::Tokens => words_of(container)?,
        InputKind::Sparse => of.n_features(),
        InputKind::Dense | InputKind::Text => return Err(OpenClassifierError::WideOfVectors { path: path() }),
    };
    let name = |array: &str| format!("{WIDE_PREFIX}{array}");
    let starts: Buffer<u64> = container.array_shaped(&name("starts"), &[of.n_labels() + 1])?;
    let bias: Buffer<f32> = container.array_shaped(&name("bias"), &[of.n_labels()])?;
    // As many as the last start says, which the rows are checked against.
    let n = usize::try_from(starts.last().copied().unwrap_or(0)).unwrap_or(usize::MAX);
    let features: Buffer<u32> = container.array_shaped(&name("features"), &[n])?;
    let skips: Buffer<u32> = container.array_shaped(&name("skips"), &[n / RankerWeights::WEIGHTS_PER_SKIP])?;
    let weights = container.floats(&name("weights"), params.precision, &[n])?;
    let rankers = match check {
        true => RankerWeights::try_new(n_features, starts, features, skips, weights, bias)
            .map_err(|source| OpenClassifierError::Wide { path: path(), source })?,
        false => RankerWeights::from_checked(n_features, starts, features, skips, weights, bias),
    };
    Ok(Some(Wide { params, rankers }))
}

fn set_stored(parameters: Vec<Named<&mut Parameter>>, arrays: Vec<Buffer<f32>>) {
    parameters.into_iter().zip(arrays).for_each(|(named, array)| named.parameter.set_stored(array));
}

/// Arrays of a container, every name behind `prefix`; with `check` all values are looked at.
fn stored_arrays(
    container: &Container,
    prefix: &str,
    shapes: &[NamedShape],
    check: bool,
) -> Result<Vec<Buffer<f32>>, OpenClassifierError> {
    let mut arrays = Vec::with_capacity(shapes.len());
    for (name, shape) in shapes {
        let name = format!("{prefix}{name}");
        let array: Buffer<f32> = container.array_shaped(&name, shape)?;
        if check && let Some(at) = array.iter().position(|v| !v.is_finite()) {
            return Err(OpenClassifierError::NotFinite { path: container.folder().to_owned(), name, at });
        }
        arrays.push(array);
    }
    Ok(arrays)
}
