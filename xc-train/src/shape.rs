//! The network that the dense baseline and each repetition of MACH are: a bag, perhaps dense layers, a dense head.

use crate::encoder::{Bag, Stack};
use crate::parameter::Init;
use crate::trainer::Sample;
use crate::{Activation, Activations, Batch, Encoder, Head, Loss, Network, Scratch, head};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use thiserror::Error;
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, MappedArray, OpenError, WriteError};

/// Sparse features to logits.
pub type BagNetwork = Network<Stack<Bag>, head::Dense>;

/// Shape of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkParams {
    /// Widths: that of the bag, then of each dense layer above it. Default: one of 512 (a guess).
    pub widths: Vec<usize>,
    /// Chance that a hidden value is dropped in training, in [0, 1). Default 0.
    pub dropout: f32,
    /// Default: softmax.
    pub loss: Loss,
    /// Names the streams of first values. Default 0.
    pub seed: u64,
}

impl Default for NetworkParams {
    fn default() -> Self {
        Self { widths: vec![512], dropout: 0.0, loss: Loss::Softmax, seed: 0 }
    }
}

/// A shape that is impossible.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("widths {:?} and dropout {}; wanted at least one width, none of them 0, and dropout in [0, 1)", met.widths, met.dropout)]
pub struct ShapeError {
    /// The shape met.
    pub met: NetworkParams,
}

/// Why a stored network does not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenNetworkError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// The shape is impossible.
    #[error("{}: parameter network", path.display())]
    Shape {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: ShapeError,
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
}

impl NetworkParams {
    /// Says whether there is such a network.
    ///
    /// # Errors
    /// No width, a width of 0, or dropout outside [0, 1).
    pub fn check(&self) -> Result<(), ShapeError> {
        let is_sound = !self.widths.is_empty() && !self.widths.contains(&0) && (0.0..1.0).contains(&self.dropout);
        if is_sound { Ok(()) } else { Err(ShapeError { met: self.clone() }) }
    }

    /// The network over `n_features` features with `n_outputs` outputs.
    ///
    /// # Panics
    /// If [`NetworkParams::check`] fails.
    pub fn network(&self, n_features: usize, n_outputs: usize, first: Init) -> BagNetwork {
        self.check().unwrap_or_else(|e| panic!("{e}"));
        let Self { widths, dropout, .. } = self;
        let mut encoder = Stack::new(Bag::new(n_features, widths[0], Activation::Relu, *dropout, first));
        for &width in &widths[1..] {
            encoder = encoder.push(width, Activation::Relu, *dropout, first);
        }
        Network::new(encoder, head::Dense::new(n_outputs, widths[widths.len() - 1], first))
    }

    /// Numbers that the network learns.
    ///
    /// # Panics
    /// If there is no width.
    pub fn n_values(&self, n_features: usize, n_outputs: usize) -> u64 {
        self.arrays(n_features, n_outputs).iter().map(|(_, [rows, width])| (rows * width) as u64).sum()
    }

    /// The network's arrays in a container, every name behind `prefix`. Nothing is copied: they stay where the container has
    /// them.
    ///
    /// *Cost*: one pass over the values, to find those that are not finite.
    ///
    /// # Errors
    /// An array is missing, has another shape, or holds a value that is not finite.
    pub fn open(
        &self,
        container: &Container,
        prefix: &str,
        n_features: usize,
        n_outputs: usize,
    ) -> Result<BagNetwork, OpenNetworkError> {
        self.check().map_err(|source| OpenNetworkError::Shape { path: container.folder().to_owned(), source })?;
        // Every array before the network is made: no memory is taken that the file does not account for.
        let arrays = stored_arrays(container, prefix, &self.arrays(n_features, n_outputs), true)?;
        let mut network = self.network(n_features, n_outputs, Init::Zeros);
        for (named, array) in network.parameters_mut().into_iter().zip(arrays) {
            named.parameter.set_stored(array);
        }
        Ok(network)
    }

    /// Names and shapes of the arrays of a network whose widths are sound, in the order of its parameters.
    fn arrays(&self, n_features: usize, n_outputs: usize) -> Vec<(String, [usize; 2])> {
        let widths = &self.widths;
        let mut out = vec![("bag.table".to_owned(), [n_features, widths[0]]), ("bag.bias".to_owned(), [widths[0], 1])];
        for (below, pair) in widths.windows(2).enumerate() {
            push_layer(&mut out, &format!("layer{}", below + 1), pair[1], pair[0]);
        }
        push_layer(&mut out, "head", n_outputs, widths[widths.len() - 1]);
        out
    }
}

/// Name and shape of an array.
pub(crate) type NamedShape = (String, [usize; 2]);

/// Adds the arrays of a dense layer.
pub(crate) fn push_layer(out: &mut Vec<NamedShape>, name: &str, outputs: usize, inputs: usize) {
    out.push((format!("{name}.weights"), [outputs, inputs]));
    out.push((format!("{name}.bias"), [outputs, 1]));
}

/// Arrays of a container, every name behind `prefix`; with `check` all values are looked at.
pub(crate) fn stored_arrays(
    container: &Container,
    prefix: &str,
    wanted: &[NamedShape],
    check: bool,
) -> Result<Vec<MappedArray<f32>>, OpenNetworkError> {
    let mut arrays = Vec::with_capacity(wanted.len());
    for (name, shape) in wanted {
        let name = format!("{prefix}{name}");
        let array: MappedArray<f32> = container.array_shaped(&name, shape)?;
        if check && let Some(at) = array.iter().position(|v| !v.is_finite()) {
            return Err(OpenNetworkError::NotFinite { path: container.folder().to_owned(), name, at });
        }
        arrays.push(array);
    }
    Ok(arrays)
}

/// Adds a network's parameters to a container, every name behind `prefix`.
///
/// # Errors
/// The container refuses.
pub(crate) fn write<E: Encoder, H: Head<Input = E::Output>>(
    network: &Network<E, H>,
    prefix: &str,
    writer: &mut ContainerWriter,
) -> Result<(), WriteError> {
    for named in network.parameters() {
        let shape = [named.parameter.rows(), named.parameter.width()];
        writer.add(&format!("{prefix}{}", named.name), ArrayRef::new(named.parameter.values(), &shape))?;
    }
    Ok(())
}

/// Puts the biases of the outputs where the loss is least for a network that knows only how often each output is true in a
/// sample, smoothed by half an instance. Without it a network of very many outputs spends its first epochs on learning that
/// nearly all of them are false.
pub(crate) fn begin_at_prior<E: Encoder, H: Head<Input = E::Output>>(
    network: &mut Network<E, H>,
    sample: &Sample<'_>,
    loss: Loss,
) {
    let targets = sample.examples().targets();
    let mut counts = vec![0u32; targets.n_labels()];
    sample.rows().iter().flat_map(|&i| targets.row(i as usize)).for_each(|&output| counts[output as usize] += 1);
    let n = sample.rows().len() as f64;
    let prior = |count: u32| {
        let count = f64::from(count);
        match loss {
            // Up to a constant, which the softmax does not see.
            Loss::Softmax => (count + 0.5).ln() - (n + 1.0).ln(),
            Loss::Bce => ((count + 0.5) / ((n - count).max(0.0) + 0.5)).ln(),
            Loss::SquaredHinge => 2.0 * (count + 0.5) / (n + 1.0) - 1.0,
        }
    };
    for named in network.parameters_mut().into_iter().filter(|named| named.name == "head.bias") {
        let values = named.parameter.values_mut();
        values.iter_mut().zip(&counts).for_each(|(value, &count)| *value = prior(count) as f32);
    }
}

/// Buffers of answering.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) batch: Batch,
    pub(crate) logits: Activations,
    pub(crate) workspace: Scratch<Stack<Bag>, head::Dense>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_values_is_that_of_the_network() {
        for widths in [vec![3], vec![4, 7], vec![2, 5, 3]] {
            let params = NetworkParams { widths, ..Default::default() };
            let network = params.network(11, 6, Init::Zeros);
            assert_eq!(params.n_values(11, 6), network.n_values() as u64, "{params:?}");
            let met = network.parameters().into_iter();
            let met: Vec<_> = met.map(|n| (n.name, [n.parameter.rows(), n.parameter.width()])).collect();
            assert_eq!(params.arrays(11, 6), met);
        }
    }

    #[test]
    fn arrays_are_those_of_the_network() {
        for widths in [vec![3], vec![3, 5], vec![4, 1, 2]] {
            let params = NetworkParams { widths, ..Default::default() };
            let network = params.network(7, 6, Init::Zeros);
            let met = network.parameters().into_iter().map(|n| (n.name, [n.parameter.rows(), n.parameter.width()]));
            assert_eq!(met.collect::<Vec<_>>(), params.arrays(7, 6));
        }
    }

    #[test]
    fn the_prior_is_the_best_constant() {
        use crate::{Examples, Features};
        let rows = [&[0u32, 2][..], &[0], &[], &[0, 2], &[0], &[2]];
        let targets = xc_sparse::LabelRows::from_lists(rows.map(<[u32]>::to_vec), 4).unwrap();
        let x = xc_sparse::CsrMatrix::zero((6, 3));
        let examples = Examples::try_new(Features::Sparse(xc_sparse::Rows::new(x.view())), &targets).unwrap();
        let sample = Sample::all(examples);
        for loss in [Loss::Softmax, Loss::Bce, Loss::SquaredHinge] {
            let params = NetworkParams { widths: vec![2], loss, ..Default::default() };
            let mut network = params.network(3, 4, Init::Zeros);
            begin_at_prior(&mut network, &sample, loss);
            // Rows without features see the biases alone, since nothing else is there.
            let bias = network.head().bias().to_vec();
            let total = |bias: &[f32]| {
                let one = |i| loss.of_row(&mut bias.to_vec(), targets.row(i), 1.0);
                (0..6).map(one).sum::<f64>()
            };
            let best = total(&bias);
            for j in [0, 2] {
                for step in [-1.0, 1.0] {
                    let mut moved = bias.clone();
                    moved[j] += step;
                    assert!(total(&moved) > best, "{loss:?} output {j}");
                }
            }
            assert!(bias[0] > bias[2] && bias[2] > bias[1] && bias[1] == bias[3], "{loss:?} {bias:?}");
        }
    }

    #[test]
    fn impossible_shapes_are_said() {
        for (widths, dropout) in [(vec![], 0.0), (vec![0], 0.0), (vec![3, 0], 0.0), (vec![3], 1.0), (vec![3], f32::NAN)]
        {
            let params = NetworkParams { widths, dropout, ..Default::default() };
            assert!(params.check().unwrap_err().to_string().contains("wanted at least one width"));
        }
    }
}
