//! What the parts of a network are made of: arrays of any element type, visited and loaded one at a
//! time, and settings.
//!
//! ```text
//!   visit   State ──▶ Array { what it is, bytes } ──▶ checkpoint, snapshot of the best state
//!   load    State ◀── Arrays::read(what it is)    ◀── the same
//! ```
//!
//! An array is in host memory only while it is visited: a part whose values live elsewhere copies
//! one array at a time. An array says which rows of a longer one it holds, so that a part may hold
//! some labels of all.

use crate::Parameter;
use crate::layer::Named;
use crate::optim::Moments;
use half::{bf16, f16};
use std::error::Error;
use std::ops::Range;
use thiserror::Error;
use xc_buffer::dtype::{DType, Element};
use xc_store::{ArrayRef, Container};

/// What a part of a network holds: its settings, its parameters, and all arrays that a training run
/// goes on from.
pub trait State: Send + Sync {
    /// All settings. They tell two training runs apart: with the data, everything that is learned
    /// follows from them.
    fn settings(&self) -> serde_json::Value;

    /// Every parameter with its name, always in the same order. Default: none.
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        Vec::new()
    }

    /// Every parameter with its name, in the order of `parameters`.
    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        Vec::new()
    }

    /// Number of learned values. Default: those of `parameters`.
    fn n_values(&self) -> usize {
        self.parameters().iter().map(|named| named.parameter.values().len()).sum()
    }

    /// Makes room for the moments of an optimiser.
    fn prepare(&mut self, moments: Moments) {
        self.parameters_mut().into_iter().for_each(|named| named.parameter.prepare(moments));
    }

    /// Shows every array of the state, always in the same order. Default: those of `parameters`.
    ///
    /// # Errors
    /// Those of `f`, and what keeps an array from being read.
    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        visit_parameters(self.parameters(), f)
    }

    /// Overwrites every array of the state, computes what depends on them, and says what is
    /// impossible about them, since a file may hold anything. Default: those of `parameters`.
    ///
    /// # Errors
    /// An array cannot be read, or its content is impossible; the state is then in the middle of
    /// being loaded.
    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        load_parameters(self.parameters_mut(), from)
    }

    /// Looks for a learned value that is not finite; asked before a state is saved. Default: by the
    /// types of the arrays, see [`Array::first_not_finite`].
    ///
    /// # Errors
    /// The first one that is found.
    fn check_finite(&self) -> Result<(), StateError> {
        self.visit(&mut |array| array.check_finite())
    }
}

/// Who is shown the arrays of a state.
pub type Visitor<'v> = dyn FnMut(Array<'_>) -> Result<(), StateError> + 'v;

/// Where a state is loaded from.
pub trait Arrays {
    /// Reads the rows of an array that a part holds. Where only answers are kept, arrays of
    /// [`Role::Training`] are left as they are.
    ///
    /// # Errors
    /// There is no such array, or it is of another type or shape.
    fn read(&self, of: &Slice<'_>, into: &mut [u8]) -> Result<(), StateError>;
}

/// A saved network, its arrays under their own names; moments are not looked for.
impl Arrays for Container {
    fn read(&self, of: &Slice<'_>, into: &mut [u8]) -> Result<(), StateError> {
        if of.role == Role::Answer {
            let bytes = self.bytes(of.name, of.dtype, &of.shape()).map_err(|e| StateError::new(of.name, e))?;
            into.copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// What is wrong with an array of a state.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// It is not there.
    #[error("array {name}: not there")]
    Missing {
        /// The array.
        name: String,
    },
    /// A learned value is infinite or no number.
    #[error("array {name}: value {at} is not finite")]
    NotFinite {
        /// The array.
        name: String,
        /// Position of the value.
        at: usize,
    },
    /// It cannot be read or written, or its content is impossible.
    #[error("array {name}")]
    Array {
        /// The array.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StateError {
    /// Something about an array.
    pub fn new(name: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Array { name: name.into(), source: source.into() }
    }
}

/// What an array is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes part in answers: learned values, and indices that say where they belong.
    Answer,
    /// Only a training run that goes on needs it: an optimiser's moments, what a sampler remembers.
    Training,
}

/// What an array is: all of it but its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Unique in its network: `head.weights`, `head.weights.m0`. None begins with `best.` or is `hard_labels`.
    pub name: &'a str,
    /// What it is for.
    pub role: Role,
    /// Element type.
    pub dtype: DType,
    /// Rows of the whole array, of which a part may hold some.
    pub axis_len: u64,
    /// The rows that are held.
    pub range: Range<u64>,
    /// Elements of a row.
    pub width: usize,
}

impl<'a> Slice<'a> {
    /// An array of which nothing is held elsewhere.
    pub fn whole(name: &'a str, role: Role, dtype: DType, [rows, width]: [usize; 2]) -> Self {
        let rows = rows as u64;
        Self { name, role, dtype, axis_len: rows, range: 0..rows, width }
    }

    /// Rows that are held, and their width.
    pub fn shape(&self) -> [usize; 2] {
        [(self.range.end - self.range.start) as usize, self.width]
    }
}

/// An array of a state, borrowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<'a> {
    /// What it is.
    pub of: Slice<'a>,
    /// The elements, row-major. They come from a slice of their type, so they are aligned for it.
    pub bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// All rows of an array, as elements of a Rust type.
    ///
    /// # Panics
    /// If their number is not that of the shape.
    pub fn new<T: Element>(name: &'a str, role: Role, [rows, width]: [usize; 2], values: &'a [T]) -> Self {
        assert!(
            Some(values.len()) == rows.checked_mul(width),
            "array {name}: {} elements for {rows} x {width}",
            values.len()
        );
        let rows = rows as u64;
        let of = Slice { name, role, dtype: T::DTYPE, axis_len: rows, range: 0..rows, width };
        Self { of, bytes: bytemuck::cast_slice(values) }
    }

    /// Hands an array and its shape to a container, which takes it under any name.
    pub fn write<R>(&self, write: impl FnOnce(ArrayRef<'_>) -> R) -> R {
        write(ArrayRef { dtype: self.of.dtype, shape: &self.of.shape(), bytes: self.bytes })
    }

    /// Position of the first element that is infinite or no number. Elements other than F32, F16
    /// and BF16 are not looked at.
    pub fn first_not_finite(&self) -> Option<usize> {
        match self.of.dtype {
            DType::F32 => position::<f32>(self.bytes, |v| !v.is_finite()),
            DType::F16 => position::<f16>(self.bytes, |v| !v.is_finite()),
            DType::Bf16 => position::<bf16>(self.bytes, |v| !v.is_finite()),
            _ => None,
        }
    }

    /// Whether a learned value is not finite; see [`Array::first_not_finite`].
    ///
    /// # Errors
    /// One that is not.
    pub fn check_finite(&self) -> Result<(), StateError> {
        match self.first_not_finite() {
            Some(at) if self.of.role == Role::Answer => {
                Err(StateError::NotFinite { name: self.of.name.to_owned(), at })
            }
            _ => Ok(()),
        }
    }
}

/// Reads all rows of an array into elements of a Rust type.
///
/// # Errors
/// As [`Arrays::read`].
///
/// # Panics
/// If the number of elements is not that of the shape.
pub fn read<T: Element>(
    from: &dyn Arrays,
    name: &str,
    role: Role,
    [rows, width]: [usize; 2],
    into: &mut [T],
) -> Result<(), StateError> {
    assert!(Some(into.len()) == rows.checked_mul(width), "array {name}: {} elements for {rows} x {width}", into.len());
    let of = Slice::whole(name, role, T::DTYPE, [rows, width]);
    from.read(&of, bytemuck::cast_slice_mut(into))
}

fn position<T: Element>(bytes: &[u8], is_wanted: impl Fn(T) -> bool) -> Option<usize> {
    bytemuck::cast_slice::<u8, T>(bytes).iter().position(|&v| is_wanted(v))
}

/// Shows values and moments of parameters, each parameter's together: `NAME`, then `NAME.m0` and
/// `NAME.m1` where there are any.
///
/// # Errors
/// Those of `f`.
pub fn visit_parameters<'a>(
    parameters: impl IntoIterator<Item = Named<&'a Parameter>>,
    f: &mut Visitor<'_>,
) -> Result<(), StateError> {
    for Named { name, parameter } in parameters {
        let shape = [parameter.rows(), parameter.width()];
        f(Array::new(&name, Role::Answer, shape, parameter.values()))?;
        for (i, moment) in parameter.moments.iter().enumerate().filter(|(_, m)| !m.is_empty()) {
            let shape = [shape[0], moment.len() / shape[0]];
            f(Array::new(&format!("{name}.m{i}"), Role::Training, shape, moment))?;
        }
    }
    Ok(())
}

/// Overwrites what [`visit_parameters`] shows. Values that lie in a model file are copied first.
///
/// # Errors
/// As [`Arrays::read`].
pub fn load_parameters<'a>(
    parameters: impl IntoIterator<Item = Named<&'a mut Parameter>>,
    from: &dyn Arrays,
) -> Result<(), StateError> {
    for Named { name, parameter } in parameters {
        let shape = [parameter.rows(), parameter.width()];
        let rows = parameter.rows_mut();
        read(from, &name, Role::Answer, shape, rows.values)?;
        for (i, moment) in [rows.first, rows.second].into_iter().enumerate().filter(|(_, m)| !m.is_empty()) {
            let shape = [shape[0], moment.len() / shape[0]];
            read(from, &format!("{name}.m{i}"), Role::Training, shape, moment)?;
        }
    }
    Ok(())
}

/// Copies of the arrays of some parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    arrays: Vec<Kept>,
}

#[derive(Clone, Debug, PartialEq)]
struct Kept {
    name: String,
    role: Role,
    dtype: DType,
    shape: [usize; 2],
    bytes: Vec<u8>,
}

impl Snapshot {
    /// Copies all arrays of some parts.
    ///
    /// # Errors
    /// An array cannot be read.
    pub fn of(parts: &[&dyn State]) -> Result<Self, StateError> {
        let mut out = Self::default();
        out.take(parts, &[Role::Answer, Role::Training])?;
        Ok(out)
    }

    /// Copies what the arrays of some roles hold now. The buffers of an earlier snapshot of the
    /// same parts are used again.
    ///
    /// # Errors
    /// An array cannot be read.
    pub fn take(&mut self, parts: &[&dyn State], roles: &[Role]) -> Result<(), StateError> {
        let mut n = 0;
        for part in parts {
            part.visit(&mut |array| {
                if !roles.contains(&array.of.role) {
                    return Ok(());
                }
                let Slice { name, role, dtype, .. } = array.of;
                let mut bytes = self.arrays.get_mut(n).map(|copy| std::mem::take(&mut copy.bytes)).unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(array.bytes);
                let copy = Kept { name: name.to_owned(), role, dtype, shape: array.of.shape(), bytes };
                match self.arrays.get_mut(n) {
                    Some(old) => *old = copy,
                    None => self.arrays.push(copy),
                }
                n += 1;
                Ok(())
            })?;
        }
        self.arrays.truncate(n);
        Ok(())
    }

    /// The arrays with their names and roles, in the order of the parts.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, Role, ArrayRef<'_>)> {
        self.arrays.iter().map(|Kept { name, role, dtype, shape, bytes }| {
            (name.as_str(), *role, ArrayRef { dtype: *dtype, shape, bytes })
        })
    }

    /// Bytes of an array, to be changed.
    pub fn bytes_mut(&mut self, name: &str) -> Option<&mut [u8]> {
        self.arrays.iter_mut().find(|copy| copy.name == name).map(|copy| &mut *copy.bytes)
    }
}

impl Arrays for Snapshot {
    /// # Panics
    /// If the array has another shape or type than it had.
    fn read(&self, of: &Slice<'_>, into: &mut [u8]) -> Result<(), StateError> {
        match self.arrays.iter().find(|copy| copy.name == of.name) {
            Some(copy) => {
                let (got, expected) = ((copy.dtype, copy.shape), (of.dtype, of.shape()));
                assert!(got == expected, "array {}: {got:?}, expected {expected:?}", of.name);
                into.copy_from_slice(&copy.bytes);
                Ok(())
            }
            None if of.role == Role::Training => Ok(()),
            None => Err(StateError::Missing { name: of.name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decay;

    /// Two parameters, of two moments and of one.
    struct Two(Parameter, Parameter);

    impl State for Two {
        fn settings(&self) -> serde_json::Value {
            serde_json::Value::Null
        }

        fn parameters(&self) -> Vec<Named<&Parameter>> {
            vec![Named { name: "a".into(), parameter: &self.0 }, Named { name: "b".into(), parameter: &self.1 }]
        }

        fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
            let Self(a, b) = self;
            vec![Named { name: "a".into(), parameter: a }, Named { name: "b".into(), parameter: b }]
        }
    }

    fn two() -> Two {
        let (mut a, mut b) = (Parameter::zeros(2, 3, Decay::Yes), Parameter::zeros(4, 1, Decay::No));
        a.prepare(Moments { n: 2, by_row: false });
        b.prepare(Moments { n: 1, by_row: true });
        a.values_mut().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        a.rows_mut().first.fill(7.0);
        Two(a, b)
    }

    #[test]
    fn arrays_are_those_of_the_parameters_in_their_order_and_come_back() {
        let first = two();
        let whole = Snapshot::of(&[&first]).unwrap();
        let names: Vec<_> = whole.arrays().map(|(name, role, array)| (name, role, array.shape.to_vec())).collect();
        let (v, m) = (Role::Answer, Role::Training);
        let expected =
            [("a", v, [2, 3]), ("a.m0", m, [2, 3]), ("a.m1", m, [2, 3]), ("b", v, [4, 1]), ("b.m0", m, [4, 1])];
        assert_eq!(names, expected.map(|(name, role, shape)| (name, role, shape.to_vec())));
        let mut other = two();
        other.0.values_mut().fill(9.0);
        other.0.rows_mut().first.fill(9.0);
        // Answers alone: moments stay.
        let mut answers = whole.clone();
        answers.take(&[&first], &[Role::Answer]).unwrap();
        assert_eq!(answers.arrays().count(), 2);
        other.load(&answers).unwrap();
        assert_eq!((other.0.values(), other.0.moments[0][0]), (first.0.values(), 9.0));
        other.load(&whole).unwrap();
        assert_eq!(Snapshot::of(&[&other]).unwrap(), whole);
        let none = other.load(&Snapshot::default()).unwrap_err();
        assert_eq!(none.to_string(), "array a: not there");
    }

    #[test]
    fn what_is_not_finite_is_found_by_type() {
        let shape = [1, 3];
        let array = |values: &'static [f32]| Array::new("x", Role::Answer, shape, values);
        assert_eq!(array(&[1.0, f32::MAX, -0.0]).first_not_finite(), None);
        assert_eq!(array(&[1.0, 2.0, f32::INFINITY]).first_not_finite(), Some(2));
        let halves = [f16::ONE, f16::NAN, f16::ONE];
        assert_eq!(Array::new("x", Role::Answer, shape, &halves).first_not_finite(), Some(1));
        let halves = [bf16::NEG_INFINITY, bf16::ONE, bf16::ONE];
        let array = Array::new("x", Role::Answer, shape, &halves);
        assert_eq!(array.check_finite().unwrap_err().to_string(), "array x: value 0 is not finite");
        // The same bits as indices are numbers like others; what only a training run needs is not
        // asked.
        let bits: Vec<u16> = halves.iter().map(|v| v.to_bits()).collect();
        assert_eq!(Array::new("x", Role::Answer, shape, &bits).first_not_finite(), None);
        assert!(Array::new("x", Role::Training, shape, &halves).check_finite().is_ok());
    }

    #[test]
    #[should_panic(expected = "array x: 5 elements for 2 x 3")]
    fn a_wrong_shape_is_said() {
        Array::new("x", Role::Answer, [2, 3], &[0u16; 5]);
    }
}
