//! Instances with labels in memory, whatever they were read from.

use xc_hash::text::Featurizer;
use xc_sparse::io::Vectors;
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_train::{DenseRows, Features};

/// Features of all instances of a file.
pub(crate) enum FeatureRows {
    /// Weighted features.
    Sparse(CsrMatrix),
    /// Vectors, mapped where the file allows it.
    Vectors(Vectors),
}

/// Instances of a file with their labels.
pub(crate) struct Dataset {
    pub(crate) features: FeatureRows,
    pub(crate) labels: LabelRows,
    /// Name of each label where labels have names.
    pub(crate) names: Option<Vec<String>>,
    /// How the features were made, when they were not simply read.
    pub(crate) maker: Option<Featurizer>,
}

/// What is learned from, and what else is watched.
pub(crate) struct Datasets {
    pub(crate) train: Dataset,
    pub(crate) validation: Option<Dataset>,
    /// The training instance that is the text of label 0, those of the others behind it, where texts of
    /// labels are learned from.
    pub(crate) label_texts: Option<usize>,
}

impl Dataset {
    /// Number of instances.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Number of features of an instance, or values of its vector.
    pub(crate) fn width(&self) -> usize {
        self.features().width()
    }

    /// As a network takes them.
    pub(crate) fn features(&self) -> Features<'_> {
        match &self.features {
            FeatureRows::Sparse(matrix) => Features::Sparse(Rows::new(matrix.view())),
            FeatureRows::Vectors(vectors) => Features::Dense(DenseRows::new(vectors.values(), vectors.columns())),
        }
    }

    /// The features of a file that was read as sparse ones.
    ///
    /// # Panics
    /// If they are vectors.
    pub(crate) fn sparse(&self) -> &CsrMatrix {
        match &self.features {
            FeatureRows::Sparse(matrix) => matrix,
            FeatureRows::Vectors(_) => panic!("vectors, where sparse features were read"),
        }
    }

    /// The features alone.
    ///
    /// # Panics
    /// If they are vectors.
    pub(crate) fn into_sparse(self) -> CsrMatrix {
        match self.features {
            FeatureRows::Sparse(matrix) => matrix,
            FeatureRows::Vectors(_) => panic!("vectors, where sparse features were read"),
        }
    }

    /// Bytes of features and labels in memory.
    pub(crate) fn n_bytes(&self) -> u64 {
        let features = match &self.features {
            FeatureRows::Sparse(matrix) => 8 * matrix.nnz() + 8 * matrix.rows(),
            FeatureRows::Vectors(vectors) if vectors.is_mapped() => 0,
            FeatureRows::Vectors(vectors) => 4 * vectors.values().len(),
        };
        (features + 4 * self.labels.nnz() + 8 * self.labels.len()) as u64
    }

    /// Bytes that stay in a file until they are looked at.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        match &self.features {
            FeatureRows::Vectors(vectors) if vectors.is_mapped() => 4 * vectors.values().len() as u64,
            _ => 0,
        }
    }
}

impl Datasets {
    /// Bytes of features and labels in memory.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.train.n_bytes() + self.validation.as_ref().map_or(0, Dataset::n_bytes)
    }
}
