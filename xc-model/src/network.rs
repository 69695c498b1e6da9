//! Any network of `xc-nn` as a model, whatever its encoder and head are.

use crate::kind::{Answering, Ask, ModelShape, Told};
use crate::query::{Answers, BatchError, QueryError};
use crate::{InputKind, Row, Rows};
use xc_nn::state::{Role, StateError};
use xc_nn::{Activations, Batch, Encoder, Head, Network, Scratch, StepError};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_store::atomic::WriteFileError;
use xc_store::{Container, ContainerWriter, WriteError};

/// A network as a model: it ranks labels by their logits, which are also the scores. With a [`Kind`](crate::Kind) that
/// opens it, an [`Encoder`] and a [`Head`] make a custom kind.
///
/// Its folder holds the arrays that answers need ([`Role::Answer`]), and the settings of encoder and head
/// ([`State::settings`](xc_nn::state::State::settings)) as its parameters `encoder` and `head`, from which a kind can build
/// the network. Everything else of it, such as activations and vectors that the program computes, comes from the network
/// that [`NetworkModel::open`] is given.
///
/// *Cost*: the encoder, all logits of a query, and a pass over them.
pub struct NetworkModel<E, H> {
    network: Network<E, H>,
    takes: InputKind,
    n_features: usize,
}

impl<E: Encoder, H: Head<Input = E::Output>> NetworkModel<E, H> {
    /// A model of a network that takes instances of this kind, with `n_features` features, tokens or values of a
    /// vector.
    ///
    /// # Panics
    /// If `takes` is [`InputKind::Text`], which networks do not take.
    pub fn new(network: Network<E, H>, takes: InputKind, n_features: usize) -> Self {
        assert!(takes != InputKind::Text, "a network takes features, vectors or tokens, no texts");
        Self { network, takes, n_features }
    }

    /// Loads the arrays of a container into `network`, which was built like the one that was saved.
    ///
    /// # Errors
    /// An array that is absent, has another shape or type, or holds a value that is not
    /// finite.
    ///
    /// # Panics
    /// As [`NetworkModel::new`].
    pub fn open(
        mut network: Network<E, H>,
        takes: InputKind,
        n_features: usize,
        container: &Container,
    ) -> Result<Self, StateError> {
        network.load(container)?;
        network.check_finite()?;
        Ok(Self::new(network, takes, n_features))
    }

    /// The network.
    pub fn network(&self) -> &Network<E, H> {
        &self.network
    }
}

/// The parameters of a folder that hold the settings of encoder and head.
const PARTS: [&str; 2] = ["encoder", "head"];

/// Buffers for the queries of a [`NetworkModel`].
pub struct NetworkScratch<E: Encoder, H: Head> {
    batch: Batch,
    network: Scratch<E, H>,
    logits: Activations,
    top: TopK,
}

impl<E: Encoder, H: Head> Default for NetworkScratch<E, H> {
    fn default() -> Self {
        let (batch, network, logits, top) = Default::default();
        Self { batch, network, logits, top }
    }
}

/// Maximum number of queries whose logits are computed together.
const TOGETHER: usize = 64;
/// Maximum number of logits that are computed together, unless one query has more.
const LOGITS: usize = 1 << 22;

impl<E, H> NetworkModel<E, H>
where
    E: Encoder,
    H: Head<Input = E::Output>,
{
    /// The logits of what `scratch.batch` holds.
    fn logits(&self, scratch: &mut NetworkScratch<E, H>) -> Result<(), QueryError> {
        let NetworkScratch { batch, network, logits, .. } = scratch;
        self.network.logits(batch, logits, network).map_err(failed)
    }

    /// The best labels of a row of logits.
    fn best(&self, logits: &[f32], ask: &Ask<'_>, query: usize, top: &mut TopK) -> Result<(), QueryError> {
        let first = self.network.head().labels().start;
        top.reset(ask.top_k);
        let mut has_nan = false;
        let mut push = |label, score: f32| {
            has_nan |= score.is_nan();
            top.push(Scored { label, score });
        };
        match ask.candidates.of(query) {
            Some(labels) => {
                // A head may have a range of labels that does not begin at 0.
                let labels = labels.iter().filter(|&&label| label >= first);
                labels.for_each(|&label| push(label, logits[(label - first) as usize]));
            }
            None => logits.iter().zip(first..).for_each(|(&score, label)| push(label, score)),
        }
        let is_finite = !has_nan && top.sorted().iter().all(|s| s.score.is_finite());
        if is_finite { Ok(()) } else { Err(QueryError::Scores) }
    }
}

fn failed(error: StepError) -> QueryError {
    QueryError::Own(crate::message::chain(&error).into())
}

impl<E, H> Answering for NetworkModel<E, H>
where
    E: Encoder + 'static,
    E::Output: 'static,
    E::Scratch: 'static,
    H: Head<Input = E::Output> + 'static,
    H::Scratch: 'static,
{
    type Scratch = NetworkScratch<E, H>;

    fn shape(&self) -> ModelShape {
        ModelShape::new(self.takes, self.n_features, self.network.head().labels().end as usize)
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        scratch.batch.fill_one(row, self.n_features);
        self.logits(scratch)?;
        let NetworkScratch { logits, top, .. } = scratch;
        self.best(logits.row(0), ask, 0, top)?;
        top.sorted().clone_into(out);
        Ok(Told::default())
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut Self::Scratch) -> Result<Answers, BatchError> {
        let together = (LOGITS / self.shape().n_labels.max(1)).clamp(1, TOGETHER);
        let mut ranked = RankedBatch::new();
        for first in (0..rows.len()).step_by(together) {
            let n = together.min(rows.len() - first);
            scratch.batch.fill_features(rows, first..first + n);
            self.logits(scratch).map_err(|source| BatchError { query: first, source })?;
            let NetworkScratch { logits, top, .. } = &mut *scratch;
            for i in 0..n {
                let best = self.best(logits.row(i), ask, first + i, top);
                best.map_err(|source| BatchError { query: first + i, source })?;
                ranked.push_row(top.sorted());
            }
        }
        Ok(Answers { ranked, ..Answers::default() })
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        for (part, of) in PARTS.into_iter().zip(self.network.parts()) {
            writer.set_parameter(part, of.settings());
        }
        let mut written = Ok(());
        let visited = self.network.visit(&mut |array| {
            if array.of.role == Role::Answer && written.is_ok() {
                written = array.write(|bytes| writer.add(array.of.name, bytes));
            }
            Ok(())
        });
        visited.map_err(|e| WriteFileError {
            path: Default::default(),
            doing: "read an array of the network",
            source: std::io::Error::other(e),
        })?;
        written
    }
}

impl<E, H> std::fmt::Debug for NetworkModel<E, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkModel")
            .field("takes", &self.takes)
            .field("n_features", &self.n_features)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Candidates, Kind, Model, Opened, QueryOptions};
    use proptest::prelude::*;
    use xc_dense::DenseRows;
    use xc_nn::encoder::{Precomputed, Stack};
    use xc_nn::head::Dense;
    use xc_sparse::rank::rank_order;

    const WIDTH: usize = 3;
    const N_LABELS: usize = 70;

    fn network(seed: u64) -> Network<Stack<Precomputed>, Dense> {
        Network::new(Stack::new(Precomputed::new(WIDTH)), Dense::new(N_LABELS, WIDTH, seed))
    }

    const KIND: Kind = Kind::new("own-network", |container| {
        Ok(Opened::new(NetworkModel::open(network(0), InputKind::Dense, WIDTH, container)?))
    });

    /// All labels by their logits, by the definition.
    fn ranked(of: &Network<Stack<Precomputed>, Dense>, x: &[f32]) -> Vec<Scored> {
        let (mut batch, mut logits) = (Batch::default(), Activations::default());
        batch.fill_one(Row::Dense(x), WIDTH);
        of.logits(&batch, &mut logits, &mut Scratch::default()).unwrap();
        let scored = logits.row(0).iter().zip(0..).map(|(&score, label)| Scored { label, score });
        let mut all: Vec<Scored> = scored.collect();
        all.sort_by(|&a, &b| rank_order(a, b));
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_network_answers_with_its_logits_alone_in_batches_and_from_its_folder(
            x in proptest::collection::vec(-2.0f32..2.0, 0..=WIDTH * 130),
            seed in 1u64..9,
            k in prop_oneof![Just(0usize), 1usize..9, Just(500)],
            only in proptest::option::of(proptest::collection::btree_set(0..N_LABELS as u32, 0..5)),
        ) {
            let x = &x[..x.len() / WIDTH * WIDTH];
            let of = network(seed);
            let model = Model::of(&KIND, &NetworkModel::new(network(seed), InputKind::Dense, WIDTH), &Default::default());
            let model = model.unwrap();
            let only = only.map(Vec::from_iter);
            let candidates = only.as_ref().map_or(Candidates::All, |only| Candidates::Labels(only));
            let options = QueryOptions { candidates, ..QueryOptions::top(k) };
            let batch = model.predict_batch(Rows::Dense(DenseRows::new(x, WIDTH)), &options).unwrap();
            prop_assert_eq!(batch.ranked.len(), x.len() / WIDTH);
            let (mut scratch, mut answer) = Default::default();
            for (x, found) in x.chunks(WIDTH).zip(batch.ranked.iter()) {
                let mut expected = ranked(&of, x);
                expected.retain(|s| only.as_ref().is_none_or(|only| only.contains(&s.label)));
                expected.truncate(k);
                prop_assert_eq!(found, &expected[..]);
                model.predict(&Row::Dense(x), &options, &mut scratch, &mut answer).unwrap();
                prop_assert_eq!(&answer.labels, &expected);
            }
        }
    }

    #[test]
    fn logits_that_are_no_numbers_are_an_error() {
        let mut damaged = network(1);
        damaged.parameters_mut()[0].parameter.rows_mut().values[0] = f32::NAN;
        let model = NetworkModel::new(damaged, InputKind::Dense, WIDTH);
        let ask = Ask { top_k: 3, candidates: Candidates::All, search: Default::default() };
        let said = model.one(Row::Dense(&[1.0; WIDTH]), &ask, &mut Default::default(), &mut Vec::new());
        assert_eq!(said.unwrap_err(), QueryError::Scores);
    }

    #[test]
    fn a_folder_of_another_network_is_refused() {
        let container = Container::in_memory("own-network", |writer| -> Result<(), WriteError> {
            NetworkModel::new(network(1), InputKind::Dense, WIDTH).write(writer)
        });
        let container = container.unwrap();
        let other = Network::new(Stack::new(Precomputed::new(WIDTH)), Dense::new(N_LABELS + 1, WIDTH, 1));
        assert!(NetworkModel::open(other, InputKind::Dense, WIDTH, &container).is_err());
        assert_eq!(container.parameters()["head"]["dense"]["width"], WIDTH);
        let mut damaged = network(1);
        damaged.parameters_mut()[0].parameter.rows_mut().values[0] = f32::NAN;
        let container = Container::in_memory("own-network", |writer| -> Result<(), WriteError> {
            NetworkModel::new(damaged, InputKind::Dense, WIDTH).write(writer)
        });
        let said = NetworkModel::open(network(1), InputKind::Dense, WIDTH, &container.unwrap()).unwrap_err();
        assert!(said.to_string().contains("not finite"), "{said}");
    }
}
