//! The settings that are free to be searched: those of a kind that go with what was chosen.

use crate::settings::{Searched, data, text, transformer};
use crate::tune::{Choice, Space};
use crate::{Training, tables};
use xc_train::network::EncoderName;

/// The settings for instances of a kind that go with what was chosen, each with why it is there.
pub(super) fn free(training: &Training, is_text: bool, seed: u64) -> (Space, Vec<&'static str>) {
    let tables = tables(training.kind());
    // What a transformer reads are neither features of texts nor of a file.
    let has_features = transformer::chosen(&training.choices) == EncoderName::Features;
    let fits = |name: &str| match name {
        _ if text::TABLE.row(name).is_some() => is_text && has_features,
        _ if data::TABLE.row(name).is_some() => !is_text && has_features,
        _ => true,
    };
    let is_free = |name: &str, searched: &Searched| {
        training.choices.get(name).is_none()
            && searched.values.iter().enumerate().filter(|(at, _)| *at != searched.default).all(|(_, value)| {
                let mut changed = training.clone();
                changed.set(name, value).is_ok() && changed.check(seed).is_ok()
            })
    };
    let rows = tables.iter().flat_map(|table| table.rows);
    let searched = rows.filter_map(|row| row.searched.map(|searched| (row.name, searched)));
    let free: Vec<_> = searched.filter(|(name, searched)| fits(name) && is_free(name, searched)).collect();
    let choices = free.iter().map(|(name, s)| Choice::new(name, s.values, s.default, s.scale)).collect();
    let starts = tables.iter().flat_map(|table| table.starts).copied();
    (Space::new(choices).with_starts(starts), free.into_iter().map(|(_, searched)| searched.why).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Files;

    fn names(kind: &str, is_text: bool, settings: &[(&str, &str)], files: Files) -> Vec<String> {
        let mut training = Training::new(kind, files, "m").unwrap();
        settings.iter().for_each(|(name, value)| training.set(name, value).unwrap());
        free(&training, is_text, 0).0.choices().iter().map(|choice| choice.name().to_owned()).collect()
    }

    #[test]
    fn every_listed_value_is_one_that_the_training_takes() {
        for kind in ["tree", "mach", "dense", "uniform", "lns", "astra"] {
            let of = |is_text| names(kind, is_text, &[], Files::default());
            let (text, features) = (of(true), of(false));
            let all = tables(kind);
            let rows = all.iter().flat_map(|table| table.rows).filter(|row| row.searched.is_some());
            // What needs a transformer is tested with one.
            for row in rows.filter(|row| row.belongs_to.is_none_or(|(other, _)| other != "encoder")) {
                let is_listed = [&text, &features].into_iter().flatten().any(|name| name == row.name);
                assert!(is_listed, "{kind}: --{}: {text:?} {features:?}", row.name);
            }
            assert!(text.contains(&"text.ngrams".to_owned()) && !text.contains(&"tfidf".to_owned()), "{kind}");
            assert!(features.contains(&"tfidf".to_owned()) && !features.contains(&"text.ngrams".to_owned()), "{kind}");
            // Starts name what is listed.
            for (name, value) in all.iter().flat_map(|table| table.starts).copied().flatten() {
                let row = all.iter().find_map(|table| table.row(name)).unwrap();
                assert!(row.searched.unwrap().values.contains(value), "{kind}: --{name} {value}");
            }
        }
    }

    #[test]
    fn what_is_given_and_what_does_not_go_with_it_is_not_searched() {
        let has = |names: &[String], name: &str| names.iter().any(|other| other == name);
        assert!(!has(&names("tree", true, &[("trees", "1")], Files::default()), "trees"));
        let hashed = names("tree", true, &[("text.hash", "1024")], Files::default());
        assert!(!has(&hashed, "text.min-df") && has(&hashed, "text.ngrams"), "{hashed:?}");
        // Vectors need no embeddings, and no weights of features.
        let files = Files { features: Some("x.npy".into()), ..Files::default() };
        let vectors = names("dense", false, &[], files);
        assert!(!has(&vectors, "network.init") && !has(&vectors, "tfidf") && has(&vectors, "epochs"), "{vectors:?}");
        assert!(!has(&vectors, "transformer.rate"), "{vectors:?}");
    }
}
