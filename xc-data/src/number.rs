//! Numbers from bytes: ids and values, as fast as the common case allows and exact in every case.

/// Why digits are not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdTrouble {
    /// No digit here.
    NoDigit,
    /// A number beyond `u32`.
    TooLarge,
}

/// Reads decimal digits from `at`; gives the number and the position after its last digit.
#[inline(always)]
pub(crate) fn scan_id(bytes: &[u8], mut at: usize) -> Result<(u32, usize), IdTrouble> {
    let start = at;
    let mut id = 0u64;
    while let Some(&byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        id = id * 10 + u64::from(digit);
        if id > u64::from(u32::MAX) {
            return Err(IdTrouble::TooLarge);
        }
        at += 1;
    }
    if at == start { Err(IdTrouble::NoDigit) } else { Ok((id as u32, at)) }
}

/// Reads a whole token as a number up to `u64::MAX`.
pub(crate) fn parse_u64(token: &[u8]) -> Option<u64> {
    if token.is_empty() || !token.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// True between the entries of a row.
#[inline(always)]
pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Position of the next blank from `at`, or the end.
#[inline]
pub(crate) fn token_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| is_blank(b)).map_or(bytes.len(), |n| at + n)
}

// Powers of ten that f64 holds exactly.
const POW10: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Reads a number from `at` up to the next blank; gives the value and where its token ends, or the
/// end alone when the token is no number. Equal to `str::parse::<f32>` in every bit, infinities and
/// NaN included.
///
/// The usual token has a mantissa below 2^53 and a power of ten up to 22: both exact in f64, so one
/// multiplication or division is the correctly rounded f64. Rounding that to f32 is correct too,
/// unless the f64 stands exactly half way between two f32 (there the digits lost in the first
/// rounding decide) or outside the normal range of f32; those go to the standard library, and so
/// does every unusual spelling.
#[inline]
pub(crate) fn scan_f32(bytes: &[u8], start: usize) -> Result<(f32, usize), usize> {
    let mut at = start;
    let negative = bytes.get(at) == Some(&b'-');
    at += usize::from(negative);
    let mut mantissa = 0u64;
    let first = at;
    while let Some(&byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let mut digits = at - first;
    let mut exponent = 0i32;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let fraction = at;
        while let Some(&byte) = bytes.get(at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        digits += at - fraction;
        exponent = -((at - fraction).min(1000) as i32);
    }
    if digits == 0 || digits > 19 {
        return scan_f32_slowly(bytes, start);
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        let down = bytes.get(at) == Some(&b'-');
        at += usize::from(down || bytes.get(at) == Some(&b'+'));
        let power = at;
        let mut written = 0i32;
        while let Some(&byte) = bytes.get(at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 || at - power == 4 {
                break;
            }
            written = written * 10 + i32::from(digit);
            at += 1;
        }
        if at == power {
            return scan_f32_slowly(bytes, start);
        }
        exponent += if down { -written } else { written };
    }
    if bytes.get(at).is_some_and(|&b| !is_blank(b)) {
        return scan_f32_slowly(bytes, start);
    }
    let magnitude = if mantissa == 0 {
        0.0
    } else if mantissa < 1 << 53 && exponent.unsigned_abs() <= 22 {
        let power = POW10[exponent.unsigned_abs() as usize];
        let wide = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
        let half_way = wide.to_bits() & 0x1FFF_FFFF == 0x1000_0000;
        if half_way || wide < f64::from(f32::MIN_POSITIVE) || wide > f64::from(f32::MAX) {
            return scan_f32_slowly(bytes, start);
        }
        wide as f32
    } else {
        return scan_f32_slowly(bytes, start);
    };
    Ok((if negative { -magnitude } else { magnitude }, at))
}

#[cold]
fn scan_f32_slowly(bytes: &[u8], start: usize) -> Result<(f32, usize), usize> {
    let end = token_end(bytes, start);
    let token = std::str::from_utf8(&bytes[start..end]).map_err(|_| end)?;
    token.parse().map(|value| (value, end)).map_err(|_| end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> Result<(), TestCaseError> {
        let ours = scan_f32(text.as_bytes(), 0).map(|(value, end)| (value.to_bits(), end)).ok();
        let std = text.parse::<f32>().ok().map(|value| (value.to_bits(), text.len()));
        match (ours, std) {
            (Some((a, _)), Some((b, _))) if f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan() => {}
            _ => prop_assert_eq!(ours, std, "{}", text),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_value_equals_the_standard_parser_for_any_float(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            check(&format!("{value}"))?;
            check(&format!("{value:e}"))?;
            check(&format!("{value:.3}"))?;
            check(&format!("{:.12}", f64::from(value)))?;
        }

        #[test]
        fn a_value_equals_the_standard_parser_near_half_way(bits in 1u32..0x7F00_0000, nudge in -3i64..4) {
            // The middle of two neighbouring f32 and its f64 neighbours, with all their digits.
            let (low, high) = (f64::from(f32::from_bits(bits)), f64::from(f32::from_bits(bits + 1)));
            let middle = f64::from_bits(((low + high) / 2.0).to_bits().wrapping_add_signed(nudge));
            check(&format!("{middle}"))?;
            check(&format!("{middle:e}"))?;
            check(&format!("{middle:.20e}"))?;
        }

        #[test]
        fn a_value_equals_the_standard_parser_for_any_spelling(text in "[-+]?[0-9]{0,22}(\\.[0-9]{0,22})?([eE][-+]?[0-9]{0,5})?") {
            check(&text)?;
        }

        #[test]
        fn short_decimals_equal_the_standard_parser(whole in 0u32..20, fraction in 0u64..1_000_000_000, width in 1usize..10) {
            check(&format!("{whole}.{fraction:0width$}"))?;
        }

        #[test]
        fn noise_is_accepted_exactly_when_the_standard_parser_accepts_it(text in "[-+.0-9eEinfatyNI]{0,9}") {
            check(&text)?;
        }

        #[test]
        fn an_id_equals_the_standard_parser(id in any::<u64>(), zeros in 0usize..5) {
            let text = format!("{}{id}", "0".repeat(zeros));
            let ours = scan_id(text.as_bytes(), 0).ok().map(|(id, _)| id);
            prop_assert_eq!(ours, text.parse::<u32>().ok());
        }
    }

    #[test]
    fn awkward_values() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "1",
            "+1",
            "-0",
            "0",
            "1.",
            ".5",
            "1e",
            "1e+",
            "1e5",
            "1e-5",
            "1e39",
            "-1e39",
            "3.4028236e38",
            "3.4028235e38",
            "1e-45",
            "7e-46",
            "1.1754944e-38",
            "inf",
            "nan",
            "-inf",
            "infinity",
            "0x10",
            "1_0",
            "16777217",
            "16777219",
            "9007199254740993",
            "0.000000000000000000000000000001",
            "1e99999",
            "0e99999",
            "1e-99999",
            "00000000000000000000001",
        ] {
            check(text).unwrap();
        }
    }
}
