//! Values of the libraries as options, by the names that their serialised form has.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;
use xc_buffer::dtype::DType;

/// Reads a value by its name; `names` are what help shows.
///
/// # Panics
/// If one of them is no name of the type.
pub(crate) fn named<T, const N: usize>(names: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let parse = |name| serde_json::from_value(Value::String(name)).unwrap_or_else(|e| panic!("{e}"));
    PossibleValuesParser::new(names).map(parse)
}

/// Reads a type of numbers by its short name; `types` are what help shows.
pub(crate) fn number_type<const N: usize>(types: [DType; N]) -> impl TypedValueParser<Value = DType> {
    let parse = move |name: String| types.into_iter().find(|t| t.short_name() == name).unwrap_or(DType::F32);
    PossibleValuesParser::new(types.map(DType::short_name)).map(parse)
}

/// Reads the type of a tree's weights by its name.
pub(crate) fn weight_type() -> impl TypedValueParser<Value = DType> {
    number_type([DType::F32, DType::F16, DType::Bf16])
}
