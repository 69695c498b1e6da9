//! Options about files that no file of a command has a use for.

use crate::settings::Choices;
use crate::settings::input;
use std::path::Path;
use xc_data::{FileForm, Format, ReadOptions, holds_text};
use xc_train::fit::FitError;

/// Options about fields and columns.
const OF_FIELDS: [&str; 4] = ["text-fields", "label-field", "label-separator", "id-field"];
/// Options about svmlight files.
const OF_SVMLIGHT: [&str; 2] = ["svmlight-base", "svmlight-label-base"];
/// Options about the labels of a file.
const OF_LABELS: [&str; 3] = ["label-field", "label-separator", "svmlight-label-base"];
/// Options about its instances.
const OF_INSTANCES: [&str; 2] = ["text-fields", "id-field"];
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
    refuse_idle_of(choices, form, |_| true, files)
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
    refuse_idle_of(choices, form, |option| OF_LABELS.contains(&option), files)
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
    refuse_idle_of(choices, form, |option| OF_INSTANCES.contains(&option), files)
}

fn refuse_idle_of<'a>(
    choices: &Choices,
    form: &FileForm,
    fits: impl Fn(&str) -> bool,
    files: impl IntoIterator<Item = &'a Path>,
) -> Result<(), FitError> {
    let choices = choices.of(&input::TABLE);
    let is_given = |option: &&str| fits(option) && choices.get(option).is_some();
    if !OF_FIELDS.iter().chain(&OF_SVMLIGHT).any(is_given) {
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
        _ => "none of the files is one".to_owned(),
    };
    if !formats.iter().any(|format| matches!(format, Format::Jsonl | Format::Csv | Format::Tsv)) {
        let why = format_args!("jsonl, csv or tsv is expected with it; {found}");
        choices.refuse_if(|option| fits(option) && OF_FIELDS.contains(&option), why)?;
    }
    if !formats.contains(&Format::Svmlight) {
        let why = format_args!("svmlight is expected with it; {found}");
        choices.refuse_if(|option| fits(option) && OF_SVMLIGHT.contains(&option), why)?;
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
        let what = if is_vectors { "instances are vectors" } else { "the file holds features" };
        let why = format_args!("text is expected with it; {name}: {what}");
        choices.refuse_if(|option| option.starts_with(OF_TEXT), why)?;
    }
    if of_train {
        let why =
            format_args!("features are expected with it; {name} holds text, which is weighted and scaled already");
        choices.refuse_if(|option| ["tfidf", "normalise"].contains(&option), why)?;
    }
    Ok(())
}
