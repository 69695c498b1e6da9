//! From characters to statements.

/// A piece of a text with the line on which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) line: u32,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A directive or an instruction, without its semicolon.
    Statement(String),
    Label(String),
    /// A brace that opens a scope, with what stands before it.
    Open(String),
    Close,
}

/// Directives that end with their line.
const OF_A_LINE: [&str; 5] = [".version", ".target", ".address_size", ".file", ".loc"];

/// Splits a text; the second value is what is left without an end, with its line.
pub(super) fn pieces(text: &str) -> (Vec<Piece>, Option<(u32, String)>) {
    let mut out = Vec::new();
    let (mut so_far, mut begin, mut in_operand, mut in_comment) = (String::new(), 0, 0usize, false);
    for (number, line) in (1..).zip(text.lines()) {
        let mut plain = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            if in_comment {
                let Some((_, after)) = rest.split_once("*/") else { break };
                (in_comment, rest) = (false, after);
            } else if rest.starts_with("//") {
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                (in_comment, rest) = (true, after);
                plain.push(' ');
            } else {
                let at = rest[1..].find('/').map_or(rest.len(), |at| at + 1);
                plain.push_str(&rest[..at]);
                rest = &rest[at..];
            }
        }
        let plain = plain.trim();
        if so_far.is_empty() && OF_A_LINE.iter().any(|d| plain.split_whitespace().next() == Some(d)) {
            out.push(Piece { line: number, what: What::Statement(plain.into()) });
            continue;
        }
        for c in plain.chars() {
            if so_far.is_empty() {
                begin = number;
            }
            let header = so_far.starts_with('.');
            let ends = match c {
                '{' if in_operand == 0 && so_far.is_empty() => Some(What::Open(String::new())),
                '{' if in_operand == 0 && header && !so_far.contains('=') => Some(What::Open(so_far.trim().into())),
                '}' if in_operand == 0 => Some(What::Close),
                ';' if in_operand == 0 => Some(What::Statement(so_far.trim().into())),
                ':' if in_operand == 0 && !so_far.contains(char::is_whitespace) => Some(What::Label(so_far.clone())),
                _ => None,
            };
            in_operand = match c {
                '{' if ends.is_none() => in_operand + 1,
                '}' if ends.is_none() => in_operand - 1,
                _ => in_operand,
            };
            match ends {
                Some(what) => {
                    if what != What::Statement(String::new()) {
                        out.push(Piece { line: begin, what });
                    }
                    so_far.clear();
                }
                None if so_far.is_empty() && c.is_whitespace() => {}
                None => so_far.push(c),
            }
        }
        if !so_far.is_empty() {
            so_far.push(' ');
        }
    }
    let left = so_far.trim();
    (out, (!left.is_empty()).then(|| (begin, left.to_owned())))
}

/// Operands between the commas that stand in no brackets.
pub(super) fn operands(text: &str) -> Vec<&str> {
    let (mut out, mut begin, mut depth) = (Vec::new(), 0, 0i32);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    let last = text[begin..].trim();
    if !last.is_empty() || begin > 0 {
        out.push(last);
    }
    out
}
