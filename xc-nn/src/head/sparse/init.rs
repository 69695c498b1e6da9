//! What a layer begins with: connections and weights, drawn for each output from a stream of its
//! own.

use super::{STREAM, Sparse, SparseParams};
use crate::{Decay, Init, Parameter};
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::uniform::{Connections, ConnectionsError, FanIn, InputIds, check_shape, distinct};

impl Sparse {
    /// `n_outputs` outputs over vectors of `width`; connections drawn evenly, first weights even,
    /// of variance 1 / connections.
    ///
    /// # Errors
    /// More connections than inputs, or none.
    ///
    /// # Panics
    /// If moments are neither f32 nor bf16.
    pub fn new(n_outputs: usize, width: usize, params: SparseParams, first: Init) -> Result<Self, ConnectionsError> {
        assert!(matches!(params.moments, DType::F32 | DType::Bf16), "moments of {:?}", params.moments);
        let per_output = params.per_output;
        let seed = match first {
            Init::Random { seed } => seed,
            Init::Zeros => 0,
        };
        let random = |output: usize| {
            let mut stream = Stream::new(name(seed, Purpose::Connections, &[STREAM, output as u64]));
            move || stream.next_u64()
        };
        check_shape(width, per_output)?;
        let mut connections = match params.uniform {
            true => Connections::uniform(n_outputs, width, per_output, params.weights, |output, row| {
                *row = distinct(per_output, width, Vec::new().into_iter(), &mut random(output));
            })?,
            false => unstructured(n_outputs, width, &params, &random)?,
        };
        if let Init::Random { seed } = first {
            let bound = (3.0 / per_output as f32).sqrt();
            // A row at a time: the weights of a low precision never exist in f32.
            let (mut output, mut row) = (0, Vec::new());
            let mut end = 0;
            let values = (0..connections.len()).map(|at| {
                while at == end {
                    let len = connections.range(output).len();
                    row.resize(len, 0.0);
                    let path = [STREAM, output as u64];
                    Stream::new(name(seed, Purpose::Init, &path)).fill_uniform(bound, &mut row);
                    (output, end) = (output + 1, end + len);
                }
                row[at + row.len() - end]
            });
            let weights = FloatBuffer::nearest(params.weights, values);
            *connections.weights_mut() = weights;
        }
        let bias = Parameter::zeros(n_outputs, 1, Decay::No);
        Ok(Self { init: first, ..Self::from_parts(params, connections, bias) })
    }
}

/// As many connections as in the uniform form, anywhere: each output gets a random number of them.
fn unstructured<R: FnMut() -> u64>(
    n_outputs: usize,
    n_inputs: usize,
    params: &SparseParams,
    random: &impl Fn(usize) -> R,
) -> Result<Connections, ConnectionsError> {
    let mut counts = vec![0u64; n_outputs];
    let mut choose = random(n_outputs);
    let mut left = n_outputs * params.per_output;
    while left > 0 {
        let output = ((u128::from(choose()) * n_outputs as u128) >> 64) as usize;
        if counts[output] < n_inputs as u64 {
            counts[output] += 1;
            left -= 1;
        }
    }
    let mut starts = vec![0u64];
    let mut inputs = Vec::with_capacity(n_outputs * params.per_output);
    for (output, &count) in counts.iter().enumerate() {
        inputs.extend(distinct(count as usize, n_inputs, Vec::new().into_iter(), &mut random(output)));
        starts.push(inputs.len() as u64);
    }
    let weights = FloatBuffer::zeros(params.weights, inputs.len());
    let indices = InputIds::new(n_inputs, inputs.into_iter());
    Connections::from_parts(n_outputs, n_inputs, FanIn::Varying(starts.into()), indices, weights)
}
