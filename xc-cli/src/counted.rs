//! Numbers with what they count.

/// `1 tree`, `3 trees`.
pub(crate) fn counted(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}
