//! Doubles in JSON, every one of them: infinite ones and those that are no number as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A double as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

impl From<f64> for Written {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Number(value) } else { Self::Text(value.to_string()) }
    }
}

impl Written {
    fn value<E: serde::de::Error>(self) -> Result<f64, E> {
        match self {
            Self::Number(value) => Ok(value),
            Self::Text(text) => text.parse().map_err(|_| E::custom(format_args!("{text:?} is no number"))),
        }
    }
}

/// For `serde(with)`.
pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    Written::from(*value).serialize(to)
}

/// For `serde(with)`.
pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Written::deserialize(from)?.value()
}

/// Lists of doubles.
pub(super) mod list {
    use super::*;

    /// For `serde(with)`.
    pub(crate) fn serialize<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(|&value| Written::from(value)))
    }

    /// For `serde(with)`.
    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<f64>, D::Error> {
        Vec::<Written>::deserialize(from)?.into_iter().map(Written::value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Two {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super::list")]
        many: Vec<f64>,
    }

    #[test]
    fn every_double_comes_back() {
        let many = vec![0.1, -0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0];
        let text = serde_json::to_string(&Two { one: f64::NAN, many: many.clone() }).unwrap();
        let got: Two = serde_json::from_str(&text).unwrap();
        assert!(got.one.is_nan());
        assert!(got.many.iter().zip(&many).all(|(a, b)| a.to_bits() == b.to_bits()), "{text}");
        assert!(serde_json::from_str::<Two>(r#"{"one":"many","many":[]}"#).is_err());
    }
}
