//! Vectors of the words of a text.

use super::corpus::WordText;
use super::instances::Instances;
use super::session::{Learned, Learner, NetworkSession, Trained};
use crate::fit::FitError;
use crate::preset;
use crate::skipgram::WordsParams;
use std::path::PathBuf;
use xc_hash::text::Featurizer;
use xc_model::Extras;
use xc_model::classifier::LearningParams;
use xc_model::skipgram::SkipgramModel;
use xc_store::atomic::write_file;
use xc_store::to_parameter;

/// Vectors of words.
pub(super) struct Words {
    pub(super) params: WordsParams,
    /// Where they go as text, beside a folder.
    pub(super) vectors: PathBuf,
}

impl Learner for Words {
    fn kind(&self) -> &'static str {
        SkipgramModel::KIND
    }

    fn train<'t>(&'t self, session: &'t NetworkSession<'t>) -> Result<Trained<'t>, FitError> {
        let Instances::Words(WordText { words, .. }) = &session.instances else {
            unreachable!("words were read");
        };
        let Learned { classifier, what, figures } = session.learn(preset::LNS)?;
        let found = SkipgramModel::of_classifier(&classifier, words.of_feature().to_vec());
        Ok(Trained {
            save: Box::new(move |extras| {
                let maker = Featurizer::Text(words.pipeline().clone());
                let extras = Extras { maker: Some(&maker), names: Some(words.names()), ..extras };
                let container = session.target.save(SkipgramModel::KIND, extras, |writer| {
                    writer.set_parameter("skipgram", to_parameter(&self.params));
                    writer.set_parameter("classifier", to_parameter(&session.network.classifier));
                    writer.set_parameter(LearningParams::NAME, to_parameter(&session.network.classifier.learning));
                    Ok(found.write(writer)?)
                })?;
                if container.is_none() {
                    write_file(&self.vectors, |out| found.write_text(words.names(), out))
                        .map_err(|e| FitError::unwritable(&e))?;
                }
                Ok(container)
            }),
            answer: None,
            what,
            figures,
        })
    }
}
