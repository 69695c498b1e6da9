//! Labels found by their own texts: no training, but one vocabulary over the training texts and those of the labels.
//!
//! ```
//! use xc_model::{Answer, QueryOptions, Row, Scratch};
//! use xc_train::names::NamesFit;
//!
//! let rows = ["a flaw in the parser of images", "a crash in the mail client"];
//! let labels = ["imagemagick image parser", "openssl", "thunderbird mail client"];
//! let model = NamesFit::default().fit(&rows, &labels, None)?;
//! let (mut scratch, mut best) = (Scratch::default(), Answer::default());
//! model.predict(&Row::Text("heap overflow in openssl"), &QueryOptions::top(2), &mut scratch, &mut best)?;
//! assert_eq!(best.labels.iter().map(|found| found.label).collect::<Vec<_>>(), [1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When to use it
//! As a member of a blend ([`crate::blend`]), where texts hold what labels are called: it finds labels with few training rows or
//! none. Alone it knows nothing of which labels are frequent.

use crate::fit::{FitError, Target};
use xc_data::{FileForm, Format};
use xc_hash::text::{Featurizer, Pipeline, PipelineParams};
use xc_model::label_texts::NamesModel;
use xc_model::message::chain;
use xc_model::{Extras, Model, TrainingRows};
use xc_sparse::{CsrMatrix, LabelRows};

/// How texts become features.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamesFit {
    /// Bounds of its vocabularies are those of terms of the training texts alone: terms of labels are kept from their first
    /// occurrence.
    pub text: PipelineParams,
}

impl NamesFit {
    /// A model in memory, which [`Model::save`] writes: `labels` has the text of each label, `rows` are the training texts, which
    /// say how much a term tells; `names` are those of the labels, where they have some.
    ///
    /// *Cost*: a pass over all texts. *Memory*: every term, and the features of the labels twice.
    ///
    /// # Errors
    /// No label, a pipeline that makes no feature, or names that are not one a label.
    pub fn fit<R, L>(&self, rows: &[R], labels: &[L], names: Option<&[String]>) -> Result<Model, FitError>
    where
        R: AsRef<str> + Sync,
        L: AsRef<str> + Sync,
    {
        let n = labels.len();
        if n == 0 {
            return Err(FitError::usage("texts of labels: one at least is expected"));
        }
        if let Some(names) = names.filter(|names| names.len() != n) {
            let got = names.len();
            return Err(FitError::usage(format_args!(
                "{got} names for the texts of {n} labels; one a label is expected"
            )));
        }
        let pipeline = Pipeline::fit_stream(self.text.clone(), |sink| {
            sink.add(rows);
            sink.keep(labels);
            Ok::<(), std::convert::Infallible>(())
        });
        let pipeline = pipeline.map_err(|e| FitError::usage(chain(&e)))?;
        let made = pipeline.transform_batch(labels);
        let shape = (n, made.n_features);
        let matrix = CsrMatrix::try_new(shape, made.indptr, made.indices, made.values);
        let matrix = matrix.map_err(|e| FitError::failed(chain(&e)))?;
        let model = NamesModel::new(matrix.view()).map_err(|e| FitError::failed(chain(&e)))?;
        // No row was learned from: a blend takes counts of labels from other members.
        let none = LabelRows::from_lists(Vec::<Vec<u32>>::new(), n).map_err(|e| FitError::failed(chain(&e)))?;
        let (maker, form) = (Featurizer::Text(pipeline), FileForm::from(Format::Jsonl));
        let trained_on = TrainingRows::new(&[], &none, &[], Vec::new());
        let extras = Extras { maker: Some(&maker), names, input: Some(&form), training: None, rows: Some(&trained_on) };
        let saved = Target::Memory.save(NamesModel::KIND, extras, |writer| Ok(model.write(writer)?))?;
        let container = saved.unwrap_or_else(|| panic!("a model that stays in memory"));
        Model::of_memory(container).map_err(|e| FitError::failed(chain(&e)))
    }
}
