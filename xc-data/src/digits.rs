//! Numbers as text.

use std::io::Write as _;

/// Appends a whole number.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the shortest digits that read back as the same `f32`; whole numbers have no decimal point.
#[inline]
pub fn push_f32(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        _ = write!(out, "{value}");
        return;
    }
    // Counts are the usual whole values.
    if (0.0..1e7).contains(&value) && value.fract() == 0.0 && !(value == 0.0 && value.is_sign_negative()) {
        push_u64(out, value as u64);
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let digits = buffer.format_finite(value);
    out.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f32) -> String {
        let mut out = Vec::new();
        push_f32(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn digits_read_back_as_the_same_value_and_are_no_longer_than_the_standard_ones(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = text(value);
            prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits);
            let digits = |t: &str| t.split(['e', 'E']).next().unwrap().trim_start_matches('-').replace('.', "").trim_matches('0').len();
            let standard = format!("{value:e}");
            prop_assert!(digits(&text) <= digits(&standard), "{} against {}", text, standard);
        }
    }

    #[test]
    fn whole_values_have_no_point() {
        let written: Vec<String> =
            [0.0, -0.0, 1.0, -3.0, 0.5, 1e6, 1e7, 16777216.0, 1e30, 1e-30, f32::MAX, f32::INFINITY].map(text).into();
        assert_eq!(
            written,
            ["0", "-0", "1", "-3", "0.5", "1000000", "10000000", "16777216", "1e+30", "1e-30", "3.4028235e+38", "inf"]
        );
    }
}
