//! How the time of a search is typed.

use std::time::Duration;

/// Reads a time: 90s, 20m (or 20min), 1h30m.
///
/// # Errors
/// What was expected in its place.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("got {text:?}, expected a time such as 90s, 20m or 1h30m");
    let (mut seconds, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..unit].parse().map_err(|_| wrong())?;
        let end = rest[unit..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |at| unit + at);
        seconds += number
            * match &rest[unit..end] {
                "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return Err(wrong()),
            };
        rest = &rest[end..];
    }
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if time.is_zero() { Err(wrong()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |text| parse_time(text).map(|time| time.as_secs_f64());
        assert_eq!(
            [seconds("90s"), seconds("20m"), seconds("1h30m"), seconds("0.5m"), seconds("20min")],
            [90.0, 1200.0, 5400.0, 30.0, 1200.0].map(Ok)
        );
        for wrong in ["", "20", "0s", "m", "5d", "-3s", "1e9h", "1é", "nan"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
