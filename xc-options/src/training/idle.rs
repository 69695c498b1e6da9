//! Options about files that no file of a command has a use for.

use crate::settings::{Choices, FileContent, input};
use std::path::Path;
use xc_data::{FileForm, Format, ReadOptions, holds_text};
use xc_train::fit::FitError;

/// How the options of text are called.
const OF_TEXT: &str = "text.";

/// The format of a file; nothing where it cannot be told before the file is read.
fn format_of(path: &Path, options: &ReadOptions) -> Option<Format> {
    // A pipe can be read once.
    path.is_file().then(|| Format::detect(path, options).ok()).flatten()
}

/// Refuses options about forms that none of the files has. A stated format is that of the first one.
///
/// # Errors
/// The option, and what is expected with it.
pub fn refuse_idle_form<'a>(
    choices: &Choices,
    form: &FileForm,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<(), FitError> {
    refuse_idle_of(choices, form, None, files)
}

/// The same of the options about labels, in the files that labels are read from.
///
/// # Errors
/// As [`refuse_idle_form`].
pub fn refuse_idle_of_labels<'a>(
    choices: &Choices,
    form: &FileForm,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<(), FitError> {
    refuse_idle_of(choices, form, Some(FileContent::Labels), files)
}

/// The same of the options about texts and ids, in the files that instances are read from.
///
/// # Errors
/// As [`refuse_idle_form`].
pub fn refuse_idle_of_instances<'a>(
    choices: &Choices,
    form: &FileForm,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<(), FitError> {
    refuse_idle_of(choices, form, Some(FileContent::Instances), files)
}

/// Refuses options about files that none of these is; `content`: those about this content alone.
fn refuse_idle_of<'a>(
    choices: &Choices,
    form: &FileForm,
    content: Option<FileContent>,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<(), FitError> {
    let choices = choices.of(&input::TABLE);
    let given = choices.iter().filter_map(|(row, _)| Some((row.name, row.of_files?)));
    let given: Vec<_> = given.filter(|(_, of)| content.is_none_or(|content| of.content == content)).collect();
    if given.is_empty() {
        return Ok(());
    }
    let mut options = ReadOptions::from(form.clone());
    let mut formats = Vec::new();
    for path in files {
        // What is wrong with it is said where it is read.
        let Some(format) = format_of(path, &options) else { return Ok(()) };
        formats.push(format);
        options = options.of_any_format();
    }
    let found = match formats.first() {
        Some(first) if formats.len() == 1 => format!("the file is {first}"),
        _ => "none of the files is one of them".to_owned(),
    };
    for (name, of) in given {
        if !formats.iter().any(|format| of.formats.contains(format)) {
            choices.refuse_if(|option| option == name, format_args!("it is for {} files, and {found}", of.said()))?;
        }
    }
    Ok(())
}

/// Refuses options of text where neither the training file nor a `further` one holds text, and options of
/// features where the training file does not hold features. `is_vectors`: the instances are vectors.
pub(super) fn refuse_idle_of_text(
    form: &FileForm,
    train: &Path,
    is_vectors: bool,
    further: Option<&Path>,
    choices: &Choices,
) -> Result<(), FitError> {
    let options = ReadOptions::from(form.clone());
    let is_text = |path: &Path, options: &ReadOptions| {
        let format = format_of(path, options)?;
        holds_text(path, format, &options.clone().with_format(format)).ok()
    };
    let of_train = if is_vectors { Some(false) } else { is_text(train, &options) };
    let of_further = further.map(|path| is_text(path, &options.of_any_format()));
    // What is wrong with a file is said where it is read.
    let (Some(of_train), Some(of_further)) = (of_train, of_further.unwrap_or(Some(false))) else { return Ok(()) };
    let name = train.display();
    if !of_train && !of_further {
        let what = if is_vectors { "vectors" } else { "features" };
        let why = format_args!("it is for texts, and {name} holds {what}");
        choices.refuse_if(|option| option.starts_with(OF_TEXT), why)?;
    }
    if of_train {
        let why = format_args!("it is for features, and {name} holds text, which is weighted and scaled already");
        choices.refuse_if(|option| ["tfidf", "normalise"].contains(&option), why)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    const FORMATS: [Format; 8] = [
        Format::Xc,
        Format::Svmlight,
        Format::FastText,
        Format::Jsonl,
        Format::Csv,
        Format::Tsv,
        Format::Npz,
        Format::Npy,
    ];

    /// Every option of files, with files of every format.
    #[test]
    fn an_option_is_refused_where_no_file_is_one_that_it_says_something_of() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut n = 0;
        for row in input::TABLE.rows {
            let Some(of) = row.of_files else { continue };
            let mut choices = Choices::default();
            let value = match row.values {
                Values::Switch => "true",
                _ if row.name.ends_with("base") => "1",
                _ => ";",
            };
            choices.set(row, value).unwrap();
            for format in FORMATS {
                let form = FileForm { format: Some(format), ..FileForm::default() };
                let refused = refuse_idle_form(&choices, &form, [file.path()]).map_err(|e| e.to_string());
                let is_refused = |refused: &Result<(), String>| match refused {
                    Ok(()) => false,
                    Err(said) => {
                        assert!(said.starts_with(&format!("--{}", row.name)) && said.contains(&of.said()), "{said}");
                        assert!(said.ends_with(&format!("the file is {format}")), "{said}");
                        true
                    }
                };
                assert_eq!(is_refused(&refused), !of.formats.contains(&format), "--{} of {format}", row.name);
                let of_labels = refuse_idle_of_labels(&choices, &form, [file.path()]).is_err();
                assert_eq!(of_labels, refused.is_err() && of.content == FileContent::Labels);
                let of_instances = refuse_idle_of_instances(&choices, &form, [file.path()]).is_err();
                assert_eq!(of_instances, refused.is_err() && of.content == FileContent::Instances);
                n += 1;
            }
        }
        assert_eq!(n, 80);
    }
}
