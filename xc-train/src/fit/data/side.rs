//! Small text files beside the data: sets, numbers, options.

use crate::fit::FitError;
use std::path::Path;

/// The text of a file, without a byte order mark.
///
/// # Errors
/// A file that cannot be read or is not UTF-8.
pub fn read_side_file(path: &Path) -> Result<String, FitError> {
    let bytes = std::fs::read(path).map_err(|e| FitError::input(path, &e))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(e) => {
            let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            return Err(FitError::usage(format_args!("{}: line {line}: not UTF-8", path.display())));
        }
    };
    Ok(without_mark(text).to_owned())
}

/// A text without the byte order mark that some editors write in front.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
