//! Kinds of classifiers: parameters and settings of training that go together, by name.

use super::{ClassifierParams, EmbeddingInit, EncoderParams, HeadParams, InputKind, SparseHeadParams};
use crate::Loss;
#[cfg(feature = "train")]
use crate::TrainParams;
use xc_sparse::dense::MatmulPrecision;

/// A kind of classifier. Its name is the kind that a model folder states.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Parameters of the classifier.
    pub params: ClassifierParams,
    /// Settings of its training; the learning rate is that of Adam.
    #[cfg(feature = "train")]
    pub training: TrainParams,
}

/// One output layer over all labels: [`dense`].
pub const DENSE: &str = "dense";
/// A sparse output layer over a wide layer: [`uniform`].
pub const UNIFORM: &str = "uniform";

/// Every kind of classifier.
pub const ALL: [fn() -> Preset; 2] = [dense, uniform];

/// The preset called `name`.
pub fn named(name: &str) -> Option<Preset> {
    ALL.iter().map(|preset| preset()).find(|preset| preset.name == name)
}

/// Sparse features, embeddings of 512 values, a dense output layer; each label right or not.
///
/// Weights and every step grow with labels * width: the choice up to some hundred thousand labels.
pub fn dense() -> Preset {
    let encoder = EncoderParams {
        input: InputKind::Sparse,
        widths: vec![512],
        init: EmbeddingInit::Random,
        embedding_rate: EmbeddingInit::Random.usual_rate(),
        input_dropout: 0.3,
        dropout: 0.3,
    };
    let params = ClassifierParams {
        encoder,
        head: HeadParams::Dense,
        loss: Loss::Bce,
        precision: MatmulPrecision::F32,
        seed: 0,
    };
    Preset {
        name: DENSE,
        params,
        #[cfg(feature = "train")]
        training: TrainParams { batch_size: 256, epochs: 10, rate: 1e-2, ..TrainParams::default() },
    }
}

/// Embeddings begun by LSA, an intermediate layer of 32,768 units, 32 connections per label,
/// squared hinge.
///
/// Weights of the output layer grow with labels * connections. Without the intermediate layer a
/// label sees too few values (schultheis2023uniform, section 3.4).
pub fn uniform() -> Preset {
    let encoder = EncoderParams {
        input: InputKind::Sparse,
        widths: vec![512, 32_768],
        init: EmbeddingInit::Lsa,
        embedding_rate: EmbeddingInit::Lsa.usual_rate(),
        input_dropout: 0.1,
        dropout: 0.0,
    };
    let params = ClassifierParams {
        encoder,
        head: HeadParams::Sparse(SparseHeadParams::default()),
        loss: Loss::SquaredHinge,
        precision: MatmulPrecision::Bf16,
        seed: 0,
    };
    Preset {
        name: UNIFORM,
        params,
        #[cfg(feature = "train")]
        training: TrainParams { batch_size: 32, epochs: 10, rate: 1e-3, ..TrainParams::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_possible_and_found_by_its_name() {
        for preset in ALL.map(|preset| preset()) {
            preset.params.check(1000, 50_000).unwrap();
            #[cfg(feature = "train")]
            preset.training.check().unwrap();
            assert_eq!(named(preset.name).unwrap().params, preset.params);
        }
        assert!(named("tree").is_none());
    }
}
