//! Errors, numbers and names as a person reads them.

use std::error::Error;
use xc_buffer::is_control;

/// What caused an error, what caused that, and so on.
pub fn causes<'e>(error: &'e dyn Error) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// An error and what caused it, in one line: control characters in what came from outside are
/// escaped, and a cause that the error itself ends with is said once.
pub fn chain(error: &dyn Error) -> String {
    let text = causes(error)
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.ends_with(&cause) { text } else { format!("{text}: {cause}") });
    without_os_numbers(&escaped(&text))
}

/// Characters of a message, at most: what came from outside may have any length.
const LONGEST: usize = 2000;

/// A message as it is printed: in one line, whatever its sources wrote, without control characters,
/// and without the middle of what is longer than anybody reads.
pub fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.split(['\n', '\r']).map(str::trim).filter(|s| !s.is_empty()).collect();
    let line = escaped(&lines.join(" "));
    if line.len() <= LONGEST {
        return line;
    }
    let (head, tail) = (line.floor_char_boundary(LONGEST / 2), line.ceil_char_boundary(line.len() - LONGEST / 2));
    format!("{} ... {}", &line[..head], &line[tail..])
}

/// Control characters as they are written in a program: a terminal would obey them.
pub fn escaped(text: &str) -> String {
    let escape = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Takes every ` (os error 2)` out.
pub fn without_os_numbers(text: &str) -> String {
    const MARK: &str = " (os error ";
    let mut parts = text.split(MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => out.push_str(rest),
            _ => {
                out.push_str(MARK);
                out.push_str(part);
            }
        }
    }
    out
}

/// Bytes for a person.
pub fn format_bytes(bytes: u64) -> String {
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
pub fn whole_bytes(bytes: u64) -> String {
    match bytes.div_ceil(1 << 20) {
        mib if mib < 10 << 10 => format!("{mib}MiB"),
        mib => format!("{}GiB", mib.div_ceil(1 << 10)),
    }
}

/// `1 tree`, `3 trees`.
pub fn counted(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// A setting's name, as files and options write it.
pub fn name_of(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The name of a setting that has fields beside it.
pub fn label_of(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.get("name").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// A time as a person says it.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s => format!("{}:{:02} min", (s / 60.0) as u64, (s % 60.0) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_chain_has_each_link_once_and_no_control_characters() {
        let system = io::Error::from_raw_os_error(2);
        let error = xc_data::ReadError::path(std::path::Path::new("a\nb"), xc_data::ReadErrorKind::Io(system));
        assert_eq!(chain(&error), "a\\nb: cannot be read: No such file or directory");
    }

    #[test]
    fn a_cause_that_an_error_says_itself_is_not_said_again() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot start: {0}")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::from_raw_os_error(11));
        assert_eq!(chain(&error), "cannot start: Resource temporarily unavailable");
    }

    #[test]
    fn a_message_of_any_length_is_short_and_obeyed_by_no_terminal() {
        let line = one_line(&format!("m: \u{1b}[31mred\u{9b} {}é end", "é".repeat(100_000)));
        assert!(line.starts_with("m: \\u{1b}[31mred\\u{9b} é") && line.ends_with("é end"), "{line}");
        assert!(line.len() < 2 * LONGEST && line.contains(" ... "));
        assert_eq!(one_line("a\tb\n c"), "a\\tb c");
    }

    #[test]
    fn numbers_of_bytes_and_seconds_are_read_by_a_person() {
        assert_eq!([3.21, 34.6, 754.0].map(seconds), ["3.2 s", "35 s", "12:34 min"]);
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(17), "17 B");
    }
}
