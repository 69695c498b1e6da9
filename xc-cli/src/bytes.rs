//! Numbers of bytes as text.

/// Bytes with an optional unit: `500M` and `500MB` are powers of 1000, `8GiB` of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is no number of bytes, such as 8GiB or 500M"))?;
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("unknown unit {other:?}; expected K, M, G, T or KiB, MiB, GiB, TiB")),
    };
    Ok((number * factor) as u64)
}

/// Bytes for a person.
pub(crate) fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Bytes as an option takes them, rounded up.
pub(crate) fn whole_bytes(bytes: u64) -> String {
    match bytes.div_ceil(1 << 20) {
        mib if mib < 10 << 10 => format!("{mib}MiB"),
        mib => format!("{}GiB", mib.div_ceil(1 << 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_read_as_a_person_means_them() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("1.5k"), Ok(1500));
        assert_eq!(parse_bytes("8GiB"), Ok(8 << 30));
        assert!(parse_bytes("many").is_err());
        assert!(parse_bytes("8 apples").is_err());
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(17), "17 B");
    }
}
