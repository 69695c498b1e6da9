//! What a name may not have.

/// Whether a label's name may not have a character: control characters, line separators, and characters
/// that change the direction of text. A reader does not see them, and a terminal obeys them.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
