//! Weights of labels in f32 or bf16, with what an optimiser remembers of them.

use crate::head::tiled::Table;
use crate::optim::Moments;
use crate::parameter::{Decay, Init, Parameter, RowsMut};
use crate::sampler::LabelWeights;
use crate::state::{self, Array, Arrays, Role, Slice, StateError, Visitor};
use crate::stored::StoredMut;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;

/// One row of weights a label, and a bias.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    weights: FloatBuffer,
    moments: Vec<FloatBuffer>,
    width: usize,
    bias: Parameter,
}

impl Rows {
    /// Rows that were learned.
    ///
    /// # Panics
    /// If there is not a row for each bias.
    pub(super) fn new(weights: FloatBuffer, width: usize, bias: Parameter) -> Self {
        let n = bias.values().len();
        assert!(Some(weights.len()) == n.checked_mul(width), "{} weights for {n} rows of {width}", weights.len());
        Self { weights, moments: Vec::new(), width, bias }
    }

    /// First weights even, of variance 1/width; biases 0.
    pub(super) fn first(n: usize, width: usize, dtype: DType, init: Init, stream: u64) -> Self {
        let bias = Parameter::zeros(n, 1, Decay::No);
        if init == Init::Zeros {
            return Self::new(FloatBuffer::pages(dtype, n * width), width, bias);
        }
        let mut values = Parameter::zeros(n, width, Decay::Yes);
        init.fill(stream, (3.0 / width.max(1) as f32).sqrt(), &mut values);
        let weights = match dtype {
            DType::F32 => FloatBuffer::F32(values.into_values().into()),
            _ => FloatBuffer::nearest(dtype, values.values().iter().copied()),
        };
        Self::new(weights, width, bias)
    }

    pub(super) fn n(&self) -> usize {
        self.bias.rows()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn stored(&self) -> &FloatBuffer {
        &self.weights
    }

    pub(super) fn bias(&self) -> &Parameter {
        &self.bias
    }

    pub(super) fn bias_mut(&mut self) -> &mut Parameter {
        &mut self.bias
    }

    pub(super) fn prepare(&mut self, moments: Moments) {
        self.bias.prepare(moments);
        let len = moments.len(self.n(), self.width);
        self.moments.resize_with(moments.n, || FloatBuffer::pages(DType::F32, len));
    }

    /// The arrays of the weights; the biases are a parameter.
    pub(super) fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        for (name, role, values) in self.arrays() {
            let of = Slice::whole(&name, role, values.dtype(), shape(self.n(), values));
            f(Array { of, bytes: values.bytes() })?;
        }
        Ok(())
    }

    fn arrays(&self) -> impl Iterator<Item = (String, Role, &FloatBuffer)> {
        let moments = self.moments.iter().enumerate();
        let moments = moments.map(|(i, moment)| (format!("{WEIGHTS}.m{i}"), Role::Training, moment));
        std::iter::once((WEIGHTS.to_owned(), Role::Answer, &self.weights)).chain(moments)
    }

    pub(super) fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        let n = self.n();
        let read = |name: &str, role, values: &mut FloatBuffer| {
            let of = Slice::whole(name, role, values.dtype(), shape(n, values));
            from.read(&of, values.bytes_mut())
        };
        read(WEIGHTS, Role::Answer, &mut self.weights)?;
        for (i, moment) in self.moments.iter_mut().enumerate() {
            read(&format!("{WEIGHTS}.m{i}"), Role::Training, moment)?;
        }
        Ok(())
    }

    pub(super) fn check_finite(&self) -> Result<(), StateError> {
        state::visit_parameters([self.named_bias()], &mut |array| array.check_finite())?;
        match self.weights.not_finite() {
            Some(at) => Err(StateError::NotFinite { name: WEIGHTS.to_owned(), at }),
            None => Ok(()),
        }
    }

    pub(super) fn named_bias(&self) -> crate::Named<&Parameter> {
        crate::Named { name: BIAS.to_owned(), parameter: &self.bias }
    }

    pub(super) fn named_bias_mut(&mut self) -> crate::Named<&mut Parameter> {
        crate::Named { name: BIAS.to_owned(), parameter: &mut self.bias }
    }
}

/// Rows of an array: of weights, or of a moment of weights or rows.
fn shape(n: usize, values: &FloatBuffer) -> [usize; 2] {
    [n, values.len() / n.max(1)]
}

const WEIGHTS: &str = "head.weights";
const BIAS: &str = "head.bias";

impl Table for Rows {
    fn weights(&self) -> LabelWeights<'_> {
        LabelWeights::new(self.weights.as_slice(), self.width, self.bias.values())
    }

    fn parts_mut(&mut self) -> (StoredMut<'_>, RowsMut<'_>) {
        (StoredMut::new(&mut self.weights, &mut self.moments), self.bias.rows_mut())
    }
}
