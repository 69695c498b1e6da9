//! Trained models, changed without training: other label names for any kind, other weights where
//! the kind has such a form.
//!
//! A kind that can be changed in more than its label names is a line in [`change_weights`].

use super::Model;
use crate::calibrate::Calibration;
use crate::classifier::{Classifier, HeadParams, WIDE, WIDE_FEATURES, WIDE_PREFIX, Wide, write_wide};
use crate::skipgram::SkipgramModel;
use crate::tokens::{TokensAndWords, WORDS_PREFIX};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_sparse::rank::LabelId;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenError, WriteError};
use xc_tree::text::PIPELINE_PREFIX;
use xc_tree::{PostProcessor, TreeChangeError, TreeChanges, TreeModel};

/// What is changed about a model; `Default` changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// How weights are stored: trees f32, f16 or bf16; sampled output layers f32 or bf16; sparse ones and wide terms
    /// any of these. A term has the type of its network's output layer, where that is one of these layers.
    pub precision: Option<DType>,
    /// Of trees and wide terms: weights below this magnitude are dropped.
    pub prune_below: Option<f32>,
    /// Of trees: so many are kept, the first ones.
    pub n_trees: Option<usize>,
    /// Of trees: these labels alone are answered, under their old ids.
    pub keep_labels: Option<Vec<LabelId>>,
    /// Of trees: how margins become scores.
    pub post: Option<PostProcessor>,
    /// Of a network with a wide term: it is left out.
    pub without_wide: bool,
    /// One name a label.
    pub label_names: Option<Vec<String>>,
}

/// Why a model cannot be changed so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// A kind of model without that.
    #[error("{}: a model of kind {kind:?} has no {option} to change; expected {expected}", path.display())]
    Kind {
        /// The folder.
        path: PathBuf,
        /// The kind.
        kind: &'static str,
        /// What was to change, as options call it.
        option: &'static str,
        /// The kinds that have it.
        expected: &'static str,
    },
    /// A type that the layer does not come in.
    #[error("{}: weights of type {}; expected {expected}", path.display(), got.short_name())]
    Precision {
        /// The folder.
        path: PathBuf,
        /// The type.
        got: DType,
        /// The types that it comes in.
        expected: &'static str,
    },
    /// A weight that the type cannot hold.
    #[error("{}: weight {at} is {weight}, which {} cannot hold", path.display(), to.short_name())]
    Overflow {
        /// The folder.
        path: PathBuf,
        /// Position in the array of weights.
        at: usize,
        /// The weight.
        weight: f32,
        /// The type.
        to: DType,
    },
    /// A threshold that is none.
    #[error("{}: prune below {got}; expected a finite number of 0 or more", path.display())]
    Prune {
        /// The folder.
        path: PathBuf,
        /// The number.
        got: f32,
    },
    /// Not one name a label.
    #[error("{got} label names; the model has {expected} labels, and one name each is expected")]
    Names {
        /// Names.
        got: usize,
        /// Labels.
        expected: usize,
    },
    /// What a tree model says.
    #[error("{}", path.display())]
    Tree {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: TreeChangeError,
    },
    /// A part of the model is lost.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A model as it will be saved.
pub struct Changed<'m> {
    model: &'m Model,
    weights: Weights,
    names: Option<Vec<String>>,
    note: Value,
    /// Whether labels have other scores.
    rescored: bool,
}

impl std::fmt::Debug for Changed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changed").field("of", &self.model.folder()).field("changes", &self.note).finish_non_exhaustive()
    }
}

/// The weights of a changed model.
enum Weights {
    /// Those of the model.
    Same,
    Trees(Box<TreeModel>),
    /// Those of a network: its output layer, its wide term.
    Network(Box<NetworkChange>),
}

/// What changes about a network.
#[derive(Default)]
struct NetworkChange {
    /// Rows of the output layer, and the parameters that say their type.
    rows: Option<(Value, FloatBuffer)>,
    /// The wide term, or that there is none any more.
    wide: Option<Option<Wide>>,
}

impl Model {
    /// The model with some changes, to be saved as another one.
    ///
    /// *Cost*: with label names alone, none; else a pass over the weights that change, which are
    /// held in memory until they are saved.
    ///
    /// # Errors
    /// A change that the kind of model does not have, or that this model does not allow; see
    /// [`ChangeError`].
    pub fn change(&self, changes: &Changes) -> Result<Changed<'_>, ChangeError> {
        if self.container.lost().len() > 0 {
            // The same once more, for the error of the first file that is lost.
            Container::open(self.container.folder(), Default::default())?;
        }
        let expected = self.shape.n_labels;
        if let Some(names) = &changes.label_names {
            if self.kind.name == SkipgramModel::KIND {
                return Err(self.lacks("label-names", "any kind but skipgram, whose labels are its words"));
            }
            if names.len() != expected {
                return Err(ChangeError::Names { got: names.len(), expected });
            }
        }
        let weights = change_weights(self, changes)?;
        let kept = Changes { keep_labels: None, label_names: None, ..changes.clone() };
        let (names, note, rescored) = (changes.label_names.clone(), changes.note(), kept != Changes::default());
        Ok(Changed { model: self, weights, names, note, rescored })
    }

    fn lacks(&self, option: &'static str, expected: &'static str) -> ChangeError {
        ChangeError::Kind { path: self.container.folder().to_owned(), kind: self.kind.name, option, expected }
    }
}

impl Changes {
    /// The first change that only trees have, as options call it.
    fn of_trees(&self) -> Option<&'static str> {
        let given = [
            (self.n_trees.is_some(), "trees"),
            (self.keep_labels.is_some(), "keep-labels"),
            (self.post.is_some(), "post-processor"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }

    /// What is kept of them in the model.
    fn note(&self) -> Value {
        let mut note = serde_json::Map::new();
        let mut put = |key: &str, value: Option<Value>| value.map(|value| note.insert(key.to_owned(), value));
        put("precision", self.precision.map(|of| json!(of.short_name())));
        put("prune_below", self.prune_below.map(|least| json!(f64::from(least))));
        put("trees", self.n_trees.map(|n| json!(n)));
        put("labels_kept", self.keep_labels.as_ref().map(|labels| json!(labels.len())));
        put("wide", self.without_wide.then(|| json!("off")));
        put("post_processor", self.post.map(|post| json!(post.to_string())));
        Value::Object(note)
    }
}

fn change_weights(model: &Model, changes: &Changes) -> Result<Weights, ChangeError> {
    let of_trees = changes.of_trees();
    let of_networks = changes.precision.is_some() || changes.prune_below.is_some() || changes.without_wide;
    if of_trees.is_none() && !of_networks {
        return Ok(Weights::Same);
    }
    if let (Some(_), true) = (model.as_standard::<TreeModel>(), changes.without_wide) {
        return Err(model.lacks("wide", WITH_TERM));
    }
    if let Some(tree) = model.as_standard::<TreeModel>() {
        let changes = TreeChanges {
            precision: changes.precision,
            prune_below: changes.prune_below,
            n_trees: changes.n_trees,
            keep_labels: changes.keep_labels.as_deref(),
            post: changes.post,
        };
        let changed = tree.changed(&changes);
        let path = || model.folder().to_owned();
        return Ok(Weights::Trees(Box::new(changed.map_err(|source| ChangeError::Tree { path: path(), source })?)));
    }
    if let Some(option) = of_trees {
        return Err(model.lacks(option, "a tree"));
    }
    let Some(classifier) = model.as_standard::<Classifier>() else {
        let (option, expected) = match changes {
            Changes { precision: Some(_), .. } => ("precision", LAYERED),
            Changes { without_wide: true, .. } => ("wide", WITH_TERM),
            _ => ("prune-below", PRUNED),
        };
        return Err(model.lacks(option, expected));
    };
    let mut changed = NetworkChange::default();
    if changes.without_wide && classifier.wide().is_none() {
        return Err(model.lacks("wide", WITH_TERM));
    }
    let kept = classifier.wide().filter(|_| !changes.without_wide);
    if changes.prune_below.is_some() && kept.is_none() {
        return Err(model.lacks("prune-below", PRUNED));
    }
    if let Some(to) = changes.precision {
        // The rankers beside a dense layer change alone.
        let alone = kept.is_some() && matches!(classifier.params().head, HeadParams::Dense);
        changed.rows = if alone { None } else { Some(layer(model, classifier, to)?) };
    }
    changed.wide = match kept {
        None => changes.without_wide.then_some(None),
        Some(wide) => change_wide(model, wide, changes)?.map(Some),
    };
    Ok(Weights::Network(Box::new(changed)))
}

/// A wide term in another type or without small weights, where that is asked for.
fn change_wide(model: &Model, wide: &Wide, changes: &Changes) -> Result<Option<Wide>, ChangeError> {
    if changes.precision.is_none() && changes.prune_below.is_none() {
        return Ok(None);
    }
    let path = || model.folder().to_owned();
    let (to, least) = (changes.precision.unwrap_or(wide.params.precision), changes.prune_below.unwrap_or(0.0));
    if !(least >= 0.0 && least.is_finite()) {
        return Err(ChangeError::Prune { path: path(), got: least });
    }
    if !matches!(to, DType::F32 | DType::F16 | DType::Bf16) {
        return Err(ChangeError::Precision { path: path(), got: to, expected: "f32, f16 or bf16" });
    }
    Ok(Some(wide.changed(least, to)))
}

const WITH_TERM: &str = "a network with a wide term";
const PRUNED: &str = "a tree, or a network with a wide term";
const LAYERED: &str = "a tree, or a network with a wide term or a sparse or sampled output layer (uniform, lns, astra)";
const ROWS: &str = "head.weights";

/// The output layer of a network in another type.
fn layer(model: &Model, classifier: &Classifier, to: DType) -> Result<(Value, FloatBuffer), ChangeError> {
    let path = || model.folder().to_owned();
    let mut params = classifier.params().clone();
    let wrong = |expected| Err(ChangeError::Precision { path: path(), got: to, expected });
    let from = match &mut params.head {
        HeadParams::Candidates(_) if !matches!(to, DType::F32 | DType::Bf16) => return wrong("f32 or bf16"),
        HeadParams::Sparse(_) if !matches!(to, DType::F32 | DType::F16 | DType::Bf16) => {
            return wrong("f32, f16 or bf16");
        }
        HeadParams::Candidates(head) => std::mem::replace(&mut head.rows, to),
        HeadParams::Sparse(head) => std::mem::replace(&mut head.weights, to),
        HeadParams::Dense => return Err(model.lacks("precision", LAYERED)),
    };
    let shape = model.container.entry(ROWS).map(|entry| entry.shape.clone()).unwrap_or_default();
    let old = model.container.floats(ROWS, from, &shape)?;
    let rows = FloatBuffer::nearest(to, (0..old.len()).map(|at| old.get(at)));
    if let Some(at) = rows.not_finite() {
        return Err(ChangeError::Overflow { path: path(), at, weight: old.get(at), to });
    }
    Ok((params.to_value(), rows))
}

impl Changed<'_> {
    /// Whether an index of the model's labels is of other weights, and left out.
    pub fn drops_index(&self) -> bool {
        let is_same = match &self.weights {
            Weights::Same => true,
            Weights::Trees(_) => false,
            Weights::Network(change) => change.rows.is_none(),
        };
        let folder = self.model.folder();
        !is_same && !folder.as_os_str().is_empty() && folder.join(xc_store::PART_FOLDER).is_dir()
    }

    /// Whether a calibration is of other scores, and left out.
    pub fn drops_calibration(&self) -> bool {
        self.model.calibration.is_some() && self.rescored
    }

    /// Saves the model in one step, the pipeline, what it knows of its training and its label names
    /// included.
    ///
    /// # Errors
    /// The folder holds something else than a model; the model was replaced since it was opened;
    /// the file system refuses.
    pub fn save(&self, destination: impl AsRef<Path>) -> Result<(), WriteError> {
        let destination = destination.as_ref();
        let source = &self.model.container;
        let mut writer = match &self.weights {
            Weights::Same => ContainerWriter::copy_of(source, destination)?,
            _ => ContainerWriter::like(source, destination)?,
        };
        if self.note.as_object().is_some_and(|note| !note.is_empty()) {
            writer.set_parameter("changed", self.note.clone());
        }
        if let Some(names) = &self.names {
            writer.labels(names)?;
        }
        let calibration = self.model.calibration.as_ref().filter(|_| !self.rescored);
        let is_other = |name: &str| !Calibration::is_array(name);
        match &self.weights {
            Weights::Same => {}
            Weights::Trees(trees) => {
                writer.add_arrays(source, |name| is_other(name) && !is_of_trees(name))?;
                trees.write(&mut writer)?;
            }
            Weights::Network(change) => {
                let NetworkChange { rows, wide } = &**change;
                // Without the term nobody reads words beside tokens.
                let tokens = source.pipeline().filter(|_| matches!(wide, Some(None)));
                let tokens = tokens.and_then(TokensAndWords::tokens_alone);
                let of_words = format!("{PIPELINE_PREFIX}{WORDS_PREFIX}");
                let is_kept = |name: &str| {
                    is_other(name)
                        && (tokens.is_none() || !name.starts_with(&of_words))
                        && (rows.is_none() || name != ROWS)
                        && (wide.is_none() || !name.starts_with(WIDE_PREFIX))
                };
                writer.add_arrays(source, is_kept)?;
                if rows.is_none() {
                    writer.add_index(source)?;
                }
                if let Some((params, rows)) = rows {
                    writer.set_parameter("classifier", params.clone());
                    let shape = source.entry(ROWS).map(|entry| &*entry.shape);
                    let shape = shape.unwrap_or_default();
                    writer.add(ROWS, ArrayRef { dtype: rows.dtype(), shape, bytes: rows.bytes() })?;
                }
                match wide {
                    Some(Some(wide)) => write_wide(wide, &mut writer)?,
                    Some(None) => [WIDE, WIDE_FEATURES].into_iter().for_each(|name| writer.remove_parameter(name)),
                    None => {}
                }
                if let Some(tokens) = tokens {
                    writer.set_pipeline(tokens.clone());
                }
            }
        }
        match calibration {
            Some(calibration) => calibration.write(&mut writer)?,
            None => Calibration::remove(&mut writer)?,
        }
        writer.finish()
    }
}

/// Whether an array is one of a tree: `tree0.labels`.
fn is_of_trees(name: &str) -> bool {
    let rest = name.strip_prefix("tree").and_then(|rest| rest.split_once('.'));
    rest.is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
