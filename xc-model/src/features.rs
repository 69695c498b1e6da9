//! What a model takes, and what its pipeline makes of queries.

use super::query::{check_row, check_tokens, check_values};
use super::scratch::Making;
use super::{BatchError, InputKind, Model, OwnedRows, QueryError, Row, Rows};
use crate::tokens::{features_of, tokenise, vectorise};
use xc_hash::text::{Featurizer, VectoriseError};
use xc_sparse::SparseRow;
use xc_sparse::rows::TokenRow;

impl Model {
    pub(crate) fn takes(&self) -> InputKind {
        match &self.maker {
            Some(Featurizer::Text(_) | Featurizer::Tokens(_) | Featurizer::Vectors(_)) => InputKind::Text,
            _ => self.shape.takes,
        }
    }

    /// Whether features are those of texts: a query without one has no term that is known.
    pub(crate) fn knows_terms(&self) -> bool {
        matches!(self.maker, Some(Featurizer::Text(_)))
    }

    /// Queries as the input of the model's network or trees: features, tokens or vectors, for use with
    /// [`QueryOptions::made`](super::QueryOptions::made). A model without a pipeline takes them as they come.
    ///
    /// # Errors
    /// Queries of another kind or width; features that cannot be weighted, texts without tokens or vectors.
    pub fn features(&self, queries: Rows<'_>) -> Result<OwnedRows, BatchError> {
        let of_all = |source| BatchError { query: 0, source };
        let untold = |(query, source)| BatchError { query, source: QueryError::Tokenise(source) };
        match (queries, &self.maker) {
            (Rows::Texts(texts), Some(Featurizer::Text(pipeline))) => {
                Ok(OwnedRows::Sparse(features_of(pipeline, texts)))
            }
            (Rows::Texts(texts), Some(Featurizer::Tokens(of))) => {
                tokenise(&**of, texts).map(OwnedRows::Tokens).map_err(untold)
            }
            (Rows::Texts(texts), Some(Featurizer::Vectors(of))) => {
                let tokens = tokenise(of.tokens(), texts).map_err(untold)?;
                let refused = |e: VectoriseError| BatchError { query: e.at, source: QueryError::Vectorise(e) };
                vectorise(&**of, tokens.view()).map(OwnedRows::Dense).map_err(refused)
            }
            (Rows::Sparse(rows), None) if self.shape.takes == InputKind::Sparse => {
                Ok(OwnedRows::Sparse(rows.to_owned()))
            }
            (Rows::Sparse(rows), Some(Featurizer::Rows(weights))) => {
                if rows.cols() != self.shape.n_features {
                    let (got, expected) = (rows.cols(), self.shape.n_features);
                    return Err(of_all(QueryError::Width { got, expected, dense: false }));
                }
                let mut made = rows.to_owned();
                let (_, _, values) = made.parts_mut();
                for (i, row) in rows.iter().enumerate() {
                    check_values(row.values()).map_err(|source| BatchError { query: i, source })?;
                    weights.weigh(row.indices(), &mut values[rows.range(i)]);
                }
                Ok(OwnedRows::Sparse(made))
            }
            // Vectors as they come; texts of a blend, whose members make their own features, or of a custom kind.
            (Rows::Texts(_) | Rows::Dense(_), None) if queries.kind() == self.shape.takes => {
                let all: Vec<u32> = (0..queries.len() as u32).collect();
                Ok(queries.select(&all))
            }
            _ => Err(of_all(QueryError::Input { got: queries.kind(), expected: self.takes() })),
        }
    }

    /// The features of a query, checked.
    pub(crate) fn row<'r>(&self, query: &Row<'r>, made: bool, making: &'r mut Making) -> Result<Row<'r>, QueryError> {
        let n_features = self.shape.n_features;
        let Making { text, values, tokens } = making;
        match (*query, self.maker.as_ref().filter(|_| !made)) {
            (Row::Text(words), Some(Featurizer::Text(pipeline))) => {
                let (indices, values) = pipeline.transform_one(words, text);
                return Ok(Row::Sparse(SparseRow::from_checked(indices, values)));
            }
            (Row::Text(words), Some(Featurizer::Tokens(of))) => {
                tokens.clear();
                of.append(words, tokens).map_err(QueryError::Tokenise)?;
                let words = of.words().map(|pipeline| {
                    let (indices, values) = pipeline.transform_one(words, text);
                    SparseRow::from_checked(indices, values)
                });
                return Ok(Row::Tokens(TokenRow { ids: tokens, words }));
            }
            (Row::Text(words), Some(Featurizer::Vectors(of))) => {
                tokens.clear();
                values.clear();
                of.tokens().append(words, tokens).map_err(QueryError::Tokenise)?;
                of.append(&[tokens], values).map_err(QueryError::Vectorise)?;
                return Ok(Row::Dense(values));
            }
            (Row::Sparse(row), Some(Featurizer::Rows(weights))) => {
                check_row(row, n_features)?;
                values.clear();
                values.extend_from_slice(row.values());
                weights.weigh(row.indices(), values);
                return Ok(Row::Sparse(SparseRow::from_checked(row.indices(), values)));
            }
            (row, maker) => {
                let (got, expected) = (row.kind(), maker.map_or(self.shape.takes, |_| self.takes()));
                if got != expected {
                    return Err(QueryError::Input { got, expected });
                }
            }
        }
        match query {
            Row::Sparse(row) => check_row(*row, n_features)?,
            Row::Dense(values) if values.len() != n_features => {
                return Err(QueryError::Width { got: values.len(), expected: n_features, dense: true });
            }
            Row::Dense(values) => check_values(values)?,
            Row::Tokens(row) => {
                check_tokens(row.ids, n_features)?;
                match (self.shape.words, row.words) {
                    (Some(n_features), Some(words)) => check_row(words, n_features)?,
                    (Some(_), None) => return Err(QueryError::NoWords),
                    (None, _) => {}
                }
            }
            Row::Text(_) => {}
        }
        Ok(*query)
    }
}
