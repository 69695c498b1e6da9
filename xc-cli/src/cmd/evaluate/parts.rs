//! Which files answers in parts are, and in which order.

use crate::error::{CliError, chain};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use xc_store::atomic::parent_of;

/// The files that were named, one after the other: themselves, or those that fit a pattern, by the numbers in their
/// names.
///
/// # Errors
/// A pattern that no file fits; names that differ in a number alone, against its order.
pub(super) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in named {
        if is_pattern(path) && !path.exists() {
            files.extend(fitting(path)?);
        } else {
            files.push(path.clone());
        }
    }
    // As a shell sorts what fits a pattern: part-10 before part-2.
    let name = |path: &Path| path.to_string_lossy().into_owned();
    if let Some([a, b]) = files.windows(2).find(|pair| is_against_numbers(&name(&pair[0]), &name(&pair[1]))) {
        return Err(CliError::usage(format_args!(
            "--predictions: {} before {}, against their numbers; a pattern in quotes takes files by their numbers",
            a.display(),
            b.display()
        )));
    }
    Ok(files)
}

fn is_pattern(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(['*', '?']))
}

fn fitting(pattern: &Path) -> Result<Vec<PathBuf>, CliError> {
    let shown = pattern.display();
    let refused = |what: &str| CliError::usage(format_args!("--predictions {shown}: {what}"));
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = parent_of(pattern);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| refused(&chain(&e)))? {
        let entry = entry.map_err(|e| refused(&chain(&e)))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        // As in a shell: hidden files are not meant.
        if fits(&name, &file) && (name.starts_with('.') || !file.starts_with('.')) {
            found.push((file, pattern.with_file_name(entry.file_name())));
        }
    }
    found.sort_by(|(a, _), (b, _)| by_numbers(a, b));
    match found.is_empty() {
        true => Err(refused("no file fits the pattern")),
        false => Ok(found.into_iter().map(|(_, path)| path).collect()),
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters and `?` for one.
fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // Which beginnings of the pattern fit what was seen of the name.
    let step = |before: &[bool], c: Option<char>| {
        let mut fit = vec![c.is_none(); 1];
        for (at, &p) in pattern.iter().enumerate() {
            let is_same = c.is_some_and(|c| p == '?' || (p == c && p != '*'));
            let stays = p == '*' && (fit[at] || before.get(at + 1).is_some_and(|&fits| fits));
            fit.push(stays || (p != '*' && is_same && before.get(at).is_some_and(|&fits| fits)));
        }
        fit
    };
    let fit = name.chars().fold(step(&[], None), |before, c| step(&before, Some(c)));
    fit[pattern.len()]
}

/// A piece of a name: a number, with its digits, or other text.
#[derive(PartialEq, Eq)]
enum Piece<'a> {
    Number(&'a str),
    Text(&'a str),
}

fn pieces(name: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        pieces.push(if is_number { Piece::Number(piece) } else { Piece::Text(piece) });
        rest = behind;
    }
    pieces
}

fn by_number(a: &str, b: &str) -> Ordering {
    let digits = |text: &'_ str| text.trim_start_matches('0').to_owned();
    let (a, b) = (digits(a), digits(b));
    a.len().cmp(&b.len()).then(a.cmp(&b))
}

/// Numbers by their value, other text by its characters.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let pairs = |(a, b): (&Piece<'_>, &Piece<'_>)| match (a, b) {
        (Piece::Number(a), Piece::Number(b)) => by_number(a, b),
        (Piece::Number(a) | Piece::Text(a), Piece::Number(b) | Piece::Text(b)) => a.cmp(b),
    };
    let (left, right) = (pieces(a), pieces(b));
    let differs = left.iter().zip(&right).map(pairs).find(|order| order.is_ne());
    differs.unwrap_or(left.len().cmp(&right.len())).then_with(|| a.cmp(b))
}

/// Whether two names differ in one number alone, and the first has the larger.
fn is_against_numbers(a: &str, b: &str) -> bool {
    let (left, right) = (pieces(a), pieces(b));
    let mut differ = left.iter().zip(&right).filter(|(a, b)| a != b);
    let (Some(pair), None) = (differ.next(), differ.next()) else { return false };
    let (Piece::Number(a), Piece::Number(b)) = pair else { return false };
    left.len() == right.len() && by_number(a, b).is_gt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("part-*", "part-", true),
            ("part-*", "part-10.txt", true),
            ("part-*", "apart-1", false),
            ("*-?.txt", "a-b-1.txt", true),
            ("*-?.txt", "a-10.txt", false),
            ("**é*", "xé", true),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "abcbc", true),
            ("a*b*c", "abcb", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn names_are_ordered_by_their_numbers() {
        let mut names = ["p10.txt", "p2.txt", "p02.txt", "p1", "q0", "p1a3", "p1a20", "p100000000000000000000000"];
        names.sort_by(|a, b| by_numbers(a, b));
        assert_eq!(names, ["p1", "p1a3", "p1a20", "p02.txt", "p2.txt", "p10.txt", "p100000000000000000000000", "q0"]);
        assert!(is_against_numbers("part-10.txt", "part-2.txt"));
        for (a, b) in [("part-2", "part-10"), ("b-1", "a-2"), ("a-2-1", "a-1-2"), ("x", "x"), ("a-2", "a-1-b")] {
            assert!(!is_against_numbers(a, b), "{a} {b}");
        }
    }
}
