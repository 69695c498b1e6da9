//! What a run is cited by: program, commit, command line, data and date. It stands in the log beside the model, never
//! in the model: the same run gives the same bytes on another day.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The record of this run, with what it was trained on where that is known.
pub(super) fn record(data: Option<u64>) -> Value {
    let commit = Some(env!("XC_COMMIT")).filter(|commit| !commit.is_empty());
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": commit,
        "command": command,
        "data": data.map(|data| format!("{data:016x}")),
        "date": date(seconds),
    })
}

/// Seconds since 1970 as a date and time in UTC.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn seconds_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
