//! The connections of every label.

use std::ops::Range;
use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_buffer::{Buffer, FloatBuffer};

/// How many connections the labels have.
#[derive(Clone, Debug, PartialEq)]
pub enum FanIn {
    /// The same number for every label.
    Uniform(usize),
    /// Label `l` has connections `starts[l]` to `starts[l + 1]`: the unstructured form, for comparison
    /// with the uniform one.
    Varying(Buffer<u64>),
}

impl FanIn {
    /// The connections of a label.
    ///
    /// # Panics
    /// If labels differ and `label` is out of range.
    #[inline(always)]
    pub fn range(&self, label: usize) -> Range<usize> {
        match self {
            Self::Uniform(fan_in) => label * fan_in..(label + 1) * fan_in,
            Self::Varying(starts) => starts[label] as usize..starts[label + 1] as usize,
        }
    }
}

/// Says that a type is one of the index types of this module: unsafe code relies on what they
/// answer.
mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// The type of a stored input number: `u16` or `u32`, and no other.
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
/// struct Mine;
/// impl xc_sparse::uniform::IndexWidth for Mine {
///     fn at(self) -> usize { 1 << 30 }
///     fn of(_: usize) -> Self { Mine }
///     fn all_below(_: &[Self], _: usize) -> bool { true }
/// }
/// ```
pub trait IndexWidth: sealed::Sealed + Copy + Ord + Send + Sync + 'static {
    /// As an index.
    fn at(self) -> usize;
    /// From an index that fits.
    fn of(at: usize) -> Self;
    /// Whether all are below `bound`. *Cost*: a few instructions for the inputs of a label.
    fn all_below(inputs: &[Self], bound: usize) -> bool;
}

impl IndexWidth for u16 {
    #[inline(always)]
    fn at(self) -> usize {
        usize::from(self)
    }

    fn of(at: usize) -> Self {
        at as u16
    }

    #[inline(always)]
    fn all_below(inputs: &[Self], bound: usize) -> bool {
        match u16::try_from(bound) {
            // Compared in their own width and without a branch, so that the compiler makes vectors
            // of it.
            Ok(bound) => inputs.iter().fold(true, |all, &input| all & (input < bound)),
            Err(_) => true,
        }
    }
}

impl IndexWidth for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }

    fn of(at: usize) -> Self {
        at as u32
    }

    #[inline(always)]
    fn all_below(inputs: &[Self], bound: usize) -> bool {
        match u32::try_from(bound) {
            // Compared in their own width and without a branch, so that the compiler makes vectors
            // of it.
            Ok(bound) => inputs.iter().fold(true, |all, &input| all & (input < bound)),
            Err(_) => true,
        }
    }
}

/// The inputs of the connections, label by label.
#[derive(Clone, Debug, PartialEq)]
pub enum InputIds {
    /// At most 65,536 inputs.
    U16(Buffer<u16>),
    /// More than 65,536 inputs.
    U32(Buffer<u32>),
}

/// Runs the same code for both widths of indices: `with_indices!(indices, i => expression)`.
#[macro_export]
#[doc(hidden)]
macro_rules! with_indices {
    ($indices:expr, $name:ident => $body:expr) => {
        match $indices {
            $crate::uniform::InputIds::U16($name) => $body,
            $crate::uniform::InputIds::U32($name) => $body,
        }
    };
}

impl InputIds {
    /// Largest number of inputs that two bytes can distinguish.
    pub const MOST_U16: usize = 1 << 16;

    /// Stores the values in the narrower type that can hold all numbers below `n_inputs`.
    ///
    /// # Panics
    /// If a value is not below `n_inputs`, or there are more than 2^32 inputs.
    pub fn new(n_inputs: usize, values: impl Iterator<Item = usize>) -> Self {
        assert!(n_inputs as u64 <= 1 << 32, "{n_inputs} inputs, expected at most 2^32");
        let values = values.inspect(|&value| assert!(value < n_inputs, "input {value} of {n_inputs}"));
        if n_inputs <= Self::MOST_U16 {
            Self::U16(values.map(u16::of).collect::<Vec<_>>().into())
        } else {
            Self::U32(values.map(u32::of).collect::<Vec<_>>().into())
        }
    }

    /// Bytes per index.
    pub fn bytes_each(n_inputs: usize) -> usize {
        if n_inputs <= Self::MOST_U16 { 2 } else { 4 }
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        with_indices!(self, values => values.len())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The input of connection `at`.
    ///
    /// # Panics
    /// If `at >= len()`.
    #[inline]
    pub fn get(&self, at: usize) -> usize {
        with_indices!(self, values => values[at].at())
    }

    pub(super) fn pick(&self, places: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::U16(values) => Self::U16(places.map(|at| values[at]).collect::<Vec<_>>().into()),
            Self::U32(values) => Self::U32(places.map(|at| values[at]).collect::<Vec<_>>().into()),
        }
    }

    /// The bytes, little-endian.
    pub fn bytes(&self) -> &[u8] {
        with_indices!(self, values => bytemuck::cast_slice(values))
    }

    /// The bytes, mutable. [`Connections::check`] tells whether they are still valid.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        with_indices!(self, values => bytemuck::cast_slice_mut(values.to_mut()))
    }
}

/// Why connections are invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectionsError {
    /// More connections than inputs.
    #[error("{got} connections a label, expected at most the number of inputs, {n_inputs}")]
    TooMany {
        /// Connections of a label.
        got: usize,
        /// Number of inputs.
        n_inputs: usize,
    },
    /// No inputs, or no connections per label.
    #[error("{what} is 0, expected at least 1")]
    Zero {
        /// Which number.
        what: &'static str,
    },
    /// Arrays whose lengths do not match the shape.
    #[error("{got} {what}, expected {expected}")]
    Length {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Starts that do not ascend from 0 to the number of connections.
    #[error("start {at} of the labels' connections is {got}, expected an ascending list from 0 to {expected}")]
    Starts {
        /// Position.
        at: usize,
        /// The value found.
        got: u64,
        /// The number of connections.
        expected: usize,
    },
    /// An input that does not exist.
    #[error("label {label} is connected with input {input} of {n_inputs}")]
    OutOfRange {
        /// The label.
        label: usize,
        /// The input.
        input: usize,
        /// Number of inputs.
        n_inputs: usize,
    },
    /// A repeated input.
    #[error("label {label} is connected with input {input} twice")]
    Repeated {
        /// The label.
        label: usize,
        /// The input.
        input: usize,
    },
    /// A weight that is not finite.
    #[error("a weight of label {label} is not finite")]
    NotFinite {
        /// The label.
        label: usize,
    },
}

/// The weights of a sparse output layer, label-major.
///
/// *Shapes*: `n_labels()` labels over `n_inputs()` inputs; in the uniform form two arrays of
/// `n_labels * s`.
#[derive(Clone, Debug, PartialEq)]
pub struct Connections {
    n_inputs: usize,
    n_labels: usize,
    fan_in: FanIn,
    indices: InputIds,
    weights: FloatBuffer,
}

impl Connections {
    /// Makes `fan_in` connections per label. `draw` chooses their inputs: it is called once per label
    /// and fills a list with `fan_in` distinct inputs. All weights are 0.
    ///
    /// # Errors
    /// See [`ConnectionsError`].
    ///
    /// # Panics
    /// If `draw` gives another number of inputs.
    pub fn uniform(
        n_labels: usize,
        n_inputs: usize,
        fan_in: usize,
        of: DType,
        mut draw: impl FnMut(usize, &mut Vec<usize>),
    ) -> Result<Self, ConnectionsError> {
        check_shape(n_inputs, fan_in)?;
        let mut refused = None;
        let inputs = (0..n_labels).map_while(|label| {
            let mut row = Vec::new();
            draw(label, &mut row);
            assert!(row.len() == fan_in, "{} inputs for label {label}, expected {fan_in}", row.len());
            let wrong = row.iter().copied().find(|&input| input >= n_inputs);
            refused = wrong.map(|input| ConnectionsError::OutOfRange { label, input, n_inputs });
            refused.is_none().then_some(row)
        });
        let indices = InputIds::new(n_inputs, inputs.flatten());
        if let Some(error) = refused {
            return Err(error);
        }
        let weights = FloatBuffer::zeros(of, indices.len());
        Self::from_parts(n_labels, n_inputs, FanIn::Uniform(fan_in), indices, weights)
    }

    /// Takes the arrays and checks them. *Cost*: a sort of each label's inputs.
    ///
    /// # Errors
    /// See [`ConnectionsError`].
    pub fn from_parts(
        n_labels: usize,
        n_inputs: usize,
        fan_in: FanIn,
        indices: InputIds,
        weights: FloatBuffer,
    ) -> Result<Self, ConnectionsError> {
        let out = Self { n_inputs, n_labels, fan_in, indices, weights };
        out.check()?;
        Ok(out)
    }

    #[cfg(feature = "store")]
    /// Takes arrays of a file. Starts are always checked: they say which memory a label's
    /// connections are.
    pub(super) fn opened(
        n_labels: usize,
        n_inputs: usize,
        fan_in: FanIn,
        indices: InputIds,
        weights: FloatBuffer,
        check: bool,
    ) -> Result<Self, ConnectionsError> {
        let out = Self { n_inputs, n_labels, fan_in, indices, weights };
        if check {
            out.check()?
        } else {
            out.check_lengths()?
        }
        Ok(out)
    }

    /// Checks the connections.
    ///
    /// # Errors
    /// See [`ConnectionsError`].
    pub fn check(&self) -> Result<(), ConnectionsError> {
        self.check_lengths()?;
        let n_inputs = self.n_inputs;
        let mut row = Vec::new();
        for label in 0..self.n_labels {
            let range = self.range(label);
            row.clear();
            row.extend(range.clone().map(|at| self.indices.get(at)));
            row.sort_unstable();
            if let Some(&input) = row.last()
                && input >= n_inputs
            {
                return Err(ConnectionsError::OutOfRange { label, input, n_inputs });
            }
            if let Some(pair) = row.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(ConnectionsError::Repeated { label, input: pair[0] });
            }
            if range.into_iter().any(|at| !self.weights.get(at).is_finite()) {
                return Err(ConnectionsError::NotFinite { label });
            }
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), ConnectionsError> {
        let (n, n_inputs) = (self.indices.len(), self.n_inputs);
        let length = |what, got, expected| match got == expected {
            true => Ok(()),
            false => Err(ConnectionsError::Length { what, got, expected }),
        };
        match &self.fan_in {
            FanIn::Uniform(fan_in) => {
                check_shape(n_inputs, *fan_in)?;
                length("indices", n, self.n_labels.saturating_mul(*fan_in))?;
            }
            FanIn::Varying(starts) => {
                if n_inputs == 0 {
                    return Err(ConnectionsError::Zero { what: "the number of inputs" });
                }
                length("starts of labels", starts.len(), self.n_labels.saturating_add(1))?;
                let wrong = |at: usize| ConnectionsError::Starts { at, got: starts[at], expected: n };
                let ascends = |at: usize| if at == 0 { starts[0] == 0 } else { starts[at - 1] <= starts[at] };
                if let Some(at) = (0..starts.len()).find(|&at| !ascends(at) || starts[at] > n as u64) {
                    return Err(wrong(at));
                }
                if starts[self.n_labels] != n as u64 {
                    return Err(wrong(self.n_labels));
                }
            }
        }
        length("weights", self.weights.len(), n)
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of connections of all labels.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// How many connections the labels have.
    pub fn fan_in(&self) -> &FanIn {
        &self.fan_in
    }

    /// The connections of a label.
    ///
    /// # Panics
    /// If `label` is out of range.
    #[inline(always)]
    pub fn range(&self, label: usize) -> Range<usize> {
        assert!(label < self.n_labels, "label {label} of {}", self.n_labels);
        self.fan_in.range(label)
    }

    /// Largest number of connections of a label.
    pub fn widest(&self) -> usize {
        match &self.fan_in {
            FanIn::Uniform(fan_in) => *fan_in,
            FanIn::Varying(starts) => starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0),
        }
    }

    /// Inputs of the connections.
    pub fn indices(&self) -> &InputIds {
        &self.indices
    }

    /// Inputs of the connections, mutable; [`Connections::check`] tells whether they are still valid.
    pub fn indices_mut(&mut self) -> &mut InputIds {
        &mut self.indices
    }

    /// Weights of the connections.
    pub fn weights(&self) -> &FloatBuffer {
        &self.weights
    }

    /// Weights of the connections, mutable.
    pub fn weights_mut(&mut self) -> &mut FloatBuffer {
        &mut self.weights
    }

    /// The fan-in, and both arrays, mutable.
    pub fn parts_mut(&mut self) -> (&FanIn, &mut InputIds, &mut FloatBuffer) {
        (&self.fan_in, &mut self.indices, &mut self.weights)
    }

    /// All arrays, mutable; [`Connections::check`] tells whether they are still valid.
    pub fn all_mut(&mut self) -> (&mut FanIn, &mut InputIds, &mut FloatBuffer) {
        (&mut self.fan_in, &mut self.indices, &mut self.weights)
    }

    pub(super) fn replace(&mut self, fan_in: FanIn, indices: InputIds, weights: FloatBuffer) {
        (self.fan_in, self.indices, self.weights) = (fan_in, indices, weights);
    }

    /// Copies the connections of some labels, which become labels 0, 1, ...
    ///
    /// # Panics
    /// If a label is out of range.
    pub fn select(&self, labels: &[u32]) -> Self {
        let places = || labels.iter().flat_map(|&label| self.range(label as usize));
        let fan_in = match &self.fan_in {
            FanIn::Uniform(fan_in) => FanIn::Uniform(*fan_in),
            FanIn::Varying(_) => {
                let mut at = 0u64;
                let ends = labels.iter().map(|&label| {
                    at += self.range(label as usize).len() as u64;
                    at
                });
                FanIn::Varying(std::iter::once(0).chain(ends).collect::<Vec<_>>().into())
            }
        };
        Self {
            n_inputs: self.n_inputs,
            n_labels: labels.len(),
            fan_in,
            indices: self.indices.pick(places()),
            weights: self.weights.pick(places()),
        }
    }

    /// Bytes of the arrays.
    pub fn n_bytes(&self) -> usize {
        let starts = if let FanIn::Varying(starts) = &self.fan_in { starts.len() * 8 } else { 0 };
        starts + self.indices.bytes().len() + self.weights.bytes().len()
    }
}

/// Checks that labels can have `fan_in` connections.
///
/// # Errors
/// `fan_in` is 0 or above `n_inputs`, or `n_inputs` is 0.
pub fn check_shape(n_inputs: usize, fan_in: usize) -> Result<(), ConnectionsError> {
    if n_inputs == 0 {
        return Err(ConnectionsError::Zero { what: "the number of inputs" });
    }
    if fan_in == 0 {
        return Err(ConnectionsError::Zero { what: "the number of connections a label" });
    }
    if fan_in > n_inputs {
        return Err(ConnectionsError::TooMany { got: fan_in, n_inputs });
    }
    Ok(())
}
