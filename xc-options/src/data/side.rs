//! Small text files beside the data: sets, numbers, options.

use std::io::Read;
use std::path::Path;
use xc_train::fit::FitError;

/// Longest line, as of a file of label names.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The text of a file, without a byte order mark.
///
/// # Errors
/// A file that cannot be read, is not UTF-8 or has a line of more than 1 MiB, such as one without an end.
pub fn read_side_file(path: &Path) -> Result<String, FitError> {
    let fail = |e| FitError::input(path, &e);
    let mut file = std::fs::File::open(path).map_err(fail)?;
    let (mut bytes, mut block, mut line) = (Vec::new(), vec![0; 1 << 16], (1, 0));
    loop {
        let n = file.read(&mut block).map_err(fail)?;
        if n == 0 {
            break;
        }
        for part in block[..n].split_inclusive(|&b| b == b'\n') {
            line.1 += part.len();
            if line.1 > MAX_LINE_BYTES {
                let (path, line) = (path.display(), line.0);
                return Err(FitError::usage(format_args!(
                    "{path}: line {line}: longer than {MAX_LINE_BYTES} bytes; a short one is expected"
                )));
            }
            if part.ends_with(b"\n") {
                line = (line.0 + 1, 0);
            }
        }
        bytes.extend_from_slice(&block[..n]);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_refused_and_many_short_ones_are_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("a\n{}", "b".repeat(MAX_LINE_BYTES + 1))).unwrap();
        let error = read_side_file(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2: longer than"), "{error}");
        std::fs::write(file.path(), "line\n".repeat(MAX_LINE_BYTES)).unwrap();
        assert_eq!(read_side_file(file.path()).unwrap().lines().count(), MAX_LINE_BYTES);
        #[cfg(target_os = "linux")]
        assert!(read_side_file(Path::new("/dev/zero")).is_err());
    }
}
