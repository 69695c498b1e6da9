//! Calls of the library of tokenizers, which takes parts of a file at their word and may panic at a text: whoever is told of the
//! panic learns whose file it was.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

thread_local! {
    /// The file whose tokenizer this thread is at work with.
    static FILE: RefCell<Option<Arc<Path>>> = const { RefCell::new(None) };
}

/// The file whose tokenizer this thread is at work with, if it is: a hook that is told of a panic then knows that the file is at
/// fault. A panic there is an error of the text, or of the opening, where the program unwinds.
pub fn tokenizer_at_work() -> Option<PathBuf> {
    FILE.with_borrow(|file| file.as_deref().map(Path::to_owned))
}

/// Does work of the library with a file.
///
/// # Errors
/// What the library says, or panics with, in one line.
pub(super) fn at_work<T>(file: &Arc<Path>, work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    FILE.set(Some(Arc::clone(file)));
    // Nothing of ours is changed in there, and the library's caches are left out where a panic has locked them.
    let done = catch_unwind(AssertUnwindSafe(work));
    FILE.set(None);
    match done {
        Ok(done) => done.map_err(|e| one_line(&e.to_string())),
        Err(panic) => {
            let text =
                panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|text| &**text));
            Err(one_line(&format!(
                "the library of tokenizers fails at it: {}",
                text.unwrap_or("a panic without a text")
            )))
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_file_and_of_nothing_else() {
        let file: Arc<Path> = Path::new("tokenizer.json").into();
        assert_eq!(at_work(&file, || Ok(tokenizer_at_work())), Ok(Some("tokenizer.json".into())));
        assert_eq!(at_work(&file, || Err::<(), _>("two\n lines".into())), Err("two lines".to_owned()));
        let panics = at_work(&file, || -> tokenizers::Result<()> { panic!("no {}", "split") });
        assert_eq!(panics, Err("the library of tokenizers fails at it: no split".to_owned()));
        assert_eq!(tokenizer_at_work(), None);
    }
}
