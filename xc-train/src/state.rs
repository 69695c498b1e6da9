//! The arrays that a network's state is made of, whatever the types of their elements: what checkpoints hold, what keys
//! are made of, and what is copied when the best state is kept.

use crate::Parameter;
use crate::layer::Named;
use half::{bf16, f16};
use xc_sparse::store::{ArrayRef, Dtype, Element};

/// What a part of a network holds: its parameters, and all arrays that a training goes on from.
pub trait State: Send + Sync {
    /// All settings as text, to tell two networks apart.
    fn settings(&self) -> String;

    /// Every parameter with its name, always in the same order.
    fn parameters(&self) -> Vec<Named<&Parameter>>;

    /// Every parameter with its name, in the order of `parameters`.
    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>>;

    /// Number of learned values. Default: those of `parameters`.
    fn n_values(&self) -> usize {
        self.parameters().iter().map(|named| named.parameter.values().len()).sum()
    }

    /// Makes room for the `n_moments` moments of an optimiser.
    fn prepare(&mut self, n_moments: usize) {
        self.parameters_mut().into_iter().for_each(|named| named.parameter.prepare(n_moments));
    }

    /// Every array of the state, always in the same order: what a checkpoint holds. Default: those of `parameters`.
    fn arrays(&self) -> Vec<Array<'_>> {
        arrays_of(self.parameters())
    }

    /// The same arrays in the same order, to be overwritten as a whole.
    fn arrays_mut(&mut self) -> Vec<ArrayMut<'_>> {
        arrays_mut_of(self.parameters_mut())
    }

    /// Told when `arrays_mut` were overwritten, by a checkpoint or an earlier state: computes what depends on them and says
    /// what is impossible about them, since a file may hold anything.
    ///
    /// # Errors
    /// One line: which array, what was met, what was wanted.
    fn overwritten(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Whether every learned value is finite; asked before a state is saved. Default: by the types of the arrays, see
    /// [`are_finite`].
    fn is_finite(&self) -> bool {
        are_finite(&self.arrays())
    }
}

/// What an array is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes part in answers: learned values, and indices that say where they belong.
    Values,
    /// What an optimiser remembers. Only a training that goes on needs it.
    Moments,
}

/// An array of a network, borrowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<'a> {
    /// Unique in its network: `head.weights`, `head.weights.m0`. None begins with `best.`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Element type.
    pub dtype: Dtype,
    /// Rows and width, row-major.
    pub shape: [usize; 2],
    /// The elements. They come from a slice of their type, so they are aligned for it.
    pub bytes: &'a [u8],
}

/// An array of a network, borrowed to be overwritten.
#[derive(Debug, PartialEq)]
pub struct ArrayMut<'a> {
    /// As in [`Array`].
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Element type.
    pub dtype: Dtype,
    /// Rows and width, row-major.
    pub shape: [usize; 2],
    /// The elements, aligned for their type.
    pub bytes: &'a mut [u8],
}

impl<'a> Array<'a> {
    /// Elements of a Rust type.
    ///
    /// # Panics
    /// If their number is not that of the shape.
    pub fn new<T: Element>(name: impl Into<String>, role: Role, shape: [usize; 2], values: &'a [T]) -> Self {
        let name = name.into();
        check_length(&name, values.len(), shape);
        Self { name, role, dtype: T::DTYPE, shape, bytes: bytemuck::cast_slice(values) }
    }

    /// As a container takes it.
    pub fn to_ref(&self) -> ArrayRef<'_> {
        ArrayRef { dtype: self.dtype, shape: &self.shape, bytes: self.bytes }
    }

    /// Position of the first element that is infinite or no number. Elements other than F32, F16 and BF16 are not looked at.
    pub fn first_not_finite(&self) -> Option<usize> {
        match self.dtype {
            Dtype::F32 => position::<f32>(self.bytes, |v| !v.is_finite()),
            Dtype::F16 => position::<f16>(self.bytes, |v| !v.is_finite()),
            Dtype::BF16 => position::<bf16>(self.bytes, |v| !v.is_finite()),
            _ => None,
        }
    }
}

impl<'a> ArrayMut<'a> {
    /// Elements of a Rust type.
    ///
    /// # Panics
    /// If their number is not that of the shape.
    pub fn new<T: Element>(name: impl Into<String>, role: Role, shape: [usize; 2], values: &'a mut [T]) -> Self {
        let name = name.into();
        check_length(&name, values.len(), shape);
        Self { name, role, dtype: T::DTYPE, shape, bytes: bytemuck::cast_slice_mut(values) }
    }
}

fn check_length(name: &str, met: usize, [rows, width]: [usize; 2]) {
    assert!(met == rows * width, "array {name}: {met} elements for {rows} x {width}");
}

fn position<T: Element>(bytes: &[u8], is_wanted: impl Fn(T) -> bool) -> Option<usize> {
    bytemuck::cast_slice::<u8, T>(bytes).iter().position(|&v| is_wanted(v))
}

/// Values and moments of parameters, each parameter's together: `NAME`, then `NAME.m0` and `NAME.m1` where there are any.
pub fn arrays_of<'a>(parameters: impl IntoIterator<Item = Named<&'a Parameter>>) -> Vec<Array<'a>> {
    let mut out = Vec::new();
    for Named { name, parameter } in parameters {
        let shape = [parameter.rows(), parameter.width()];
        out.push(Array::new(name.as_str(), Role::Values, shape, parameter.values()));
        for (i, moment) in parameter.moments.iter().enumerate().filter(|(_, m)| !m.is_empty()) {
            out.push(Array::new(format!("{name}.m{i}"), Role::Moments, shape, moment));
        }
    }
    out
}

/// As [`arrays_of`], to be overwritten. Values that lie in a model file are copied first.
pub fn arrays_mut_of<'a>(parameters: impl IntoIterator<Item = Named<&'a mut Parameter>>) -> Vec<ArrayMut<'a>> {
    let mut out = Vec::new();
    for Named { name, parameter } in parameters {
        let shape = [parameter.rows(), parameter.width()];
        let rows = parameter.rows_mut();
        out.push(ArrayMut::new(name.as_str(), Role::Values, shape, rows.values));
        for (i, moment) in [rows.first, rows.second].into_iter().enumerate().filter(|(_, m)| !m.is_empty()) {
            out.push(ArrayMut::new(format!("{name}.m{i}"), Role::Moments, shape, moment));
        }
    }
    out
}

/// Whether every learned value is finite; see [`Array::first_not_finite`].
pub fn are_finite(arrays: &[Array<'_>]) -> bool {
    arrays.iter().filter(|array| array.role == Role::Values).all(|array| array.first_not_finite().is_none())
}

/// Copies of the arrays of [`Role::Values`], in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(pub(crate) Vec<Vec<u8>>);

impl Copies {
    /// Takes what the arrays hold now. The buffers of an earlier copy of the same arrays are used again.
    pub(crate) fn take(&mut self, arrays: &[Array<'_>]) {
        let values = || arrays.iter().filter(|array| array.role == Role::Values);
        self.0.resize_with(values().count(), Vec::new);
        for (copy, array) in self.0.iter_mut().zip(values()) {
            copy.clear();
            copy.extend_from_slice(array.bytes);
        }
    }

    /// Puts everything back.
    ///
    /// # Panics
    /// If the arrays are not those that were copied.
    pub(crate) fn give(&self, arrays: Vec<ArrayMut<'_>>) {
        let values: Vec<_> = arrays.into_iter().filter(|array| array.role == Role::Values).collect();
        assert!(values.len() == self.0.len(), "{} arrays, {} copies", values.len(), self.0.len());
        values.into_iter().zip(&self.0).for_each(|(array, copy)| array.bytes.copy_from_slice(copy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decay;

    #[test]
    fn arrays_are_those_of_the_parameters_in_their_order() {
        let (mut a, mut b) = (Parameter::zeros(2, 3, Decay::Yes), Parameter::zeros(4, 1, Decay::No));
        a.prepare(2);
        b.prepare(1);
        a.values_mut().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let named = || [Named { name: "a".into(), parameter: &a }, Named { name: "b".into(), parameter: &b }];
        let met = arrays_of(named());
        let names: Vec<_> = met.iter().map(|array| (array.name.as_str(), array.role, array.shape)).collect();
        let (v, m) = (Role::Values, Role::Moments);
        assert_eq!(
            names,
            [("a", v, [2, 3]), ("a.m0", m, [2, 3]), ("a.m1", m, [2, 3]), ("b", v, [4, 1]), ("b.m0", m, [4, 1])]
        );
        assert_eq!(bytemuck::cast_slice::<u8, f32>(met[0].bytes), a.values());
        let shapes: Vec<_> = met.iter().map(|a| (a.name.clone(), a.role, a.dtype, a.shape)).collect();
        let mut copies = Copies::default();
        copies.take(&met);
        assert_eq!(copies.0.len(), 2);
        let (mut c, mut d) = (a.clone(), b.clone());
        c.values_mut().fill(9.0);
        let arrays = arrays_mut_of([
            Named { name: "a".into(), parameter: &mut c },
            Named { name: "b".into(), parameter: &mut d },
        ]);
        let twins: Vec<_> = arrays.iter().map(|a| (a.name.clone(), a.role, a.dtype, a.shape)).collect();
        assert_eq!(twins, shapes);
        copies.give(arrays);
        assert_eq!(c.values(), a.values());
    }

    #[test]
    fn what_is_not_finite_is_found_by_type() {
        let shape = [1, 3];
        let array = |values: &'static [f32]| Array::new("x", Role::Values, shape, values);
        assert_eq!(array(&[1.0, f32::MAX, -0.0]).first_not_finite(), None);
        assert_eq!(array(&[1.0, 2.0, f32::INFINITY]).first_not_finite(), Some(2));
        let halves = [f16::ONE, f16::NAN, f16::ONE];
        assert_eq!(Array::new("x", Role::Values, shape, &halves).first_not_finite(), Some(1));
        let halves = [bf16::NEG_INFINITY, bf16::ONE, bf16::ONE];
        let array = Array::new("x", Role::Values, shape, &halves);
        assert_eq!(array.first_not_finite(), Some(0));
        // The same bits as indices are numbers like others; moments are not asked.
        let bits: Vec<u16> = halves.iter().map(|v| v.to_bits()).collect();
        assert_eq!(Array::new("x", Role::Values, shape, &bits).first_not_finite(), None);
        assert!(!are_finite(std::slice::from_ref(&array)));
        assert!(are_finite(&[Array { role: Role::Moments, ..array }]));
    }

    #[test]
    #[should_panic(expected = "array x: 5 elements for 2 x 3")]
    fn a_wrong_shape_is_said() {
        Array::new("x", Role::Values, [2, 3], &[0u16; 5]);
    }
}
