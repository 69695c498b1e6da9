//! The options that are free to be searched: those of a kind that go with what was given.

use super::kinds::Tuned;
use super::spaces::{Listed, Of, Searched};
use super::typed::{Given, parse};
use xc_train::tune::{Choice, Space};

/// The options for instances of a kind that go with what was given, each with why it is there.
pub(super) fn free<A: Tuned>(listed: Listed, is_text: bool, given: &[Given], seed: u64) -> (Space, Vec<&'static str>) {
    let fits = |searched: &&Searched| match searched.of {
        Of::All => true,
        Of::Text => is_text,
        Of::Features => !is_text,
    };
    let is_free = |searched: &&Searched| {
        given.iter().all(|given| given.name != searched.option)
            && searched.values.iter().enumerate().filter(|(at, _)| *at != searched.default).all(|(_, value)| {
                let changed = given.iter().cloned().chain([Given::new::<A>(searched.option, value)]);
                parse::<A>(&changed.collect::<Vec<_>>()).is_ok_and(|args| args.check(seed).is_ok())
            })
    };
    let searched: Vec<&Searched> = listed.options.iter().filter(fits).filter(is_free).collect();
    let choice = |s: &&Searched| Choice::new(s.option, s.values, s.default, s.scale);
    let space = Space::new(searched.iter().map(choice).collect()).with_starts(listed.starts.iter().copied());
    (space, searched.into_iter().map(|searched| searched.why).collect())
}

#[cfg(test)]
mod tests {
    use super::super::spaces::TREE;
    use super::*;
    use crate::cmd::train::tree_args;

    fn given(options: &[(&str, &str)]) -> Vec<Given> {
        let all = [("train", "t"), ("model", "m")];
        all.iter().chain(options).map(|(name, value)| Given::new::<tree_args::Args>(name, value)).collect()
    }

    fn names(is_text: bool, options: &[(&str, &str)]) -> Vec<String> {
        let (space, _) = free::<tree_args::Args>(TREE, is_text, &given(options), 0);
        space.choices().iter().map(|choice| choice.name().to_owned()).collect()
    }

    #[test]
    fn every_listed_value_is_one_that_the_training_takes() {
        let all: Vec<_> = TREE.options.iter().map(|searched| searched.option).collect();
        let (text, features) = (names(true, &[]), names(false, &[]));
        assert!(
            all.iter().all(|&option| text.iter().chain(&features).any(|name| name == option)),
            "{text:?} {features:?}"
        );
        assert!(text.contains(&"text.ngrams".to_owned()) && !text.contains(&"tfidf".to_owned()));
        // Starts name what is listed.
        for (option, value) in TREE.starts.iter().copied().flatten() {
            assert!(TREE.options.iter().any(|s| s.option == *option && s.values.contains(value)), "{option} {value}");
        }
    }

    #[test]
    fn what_is_given_and_what_does_not_go_with_it_is_not_searched() {
        assert!(!names(true, &[("trees", "1")]).contains(&"trees".to_owned()));
        let hashed = names(true, &[("text.hash", "1024")]);
        assert!(
            !hashed.contains(&"text.min-df".to_owned()) && hashed.contains(&"text.ngrams".to_owned()),
            "{hashed:?}"
        );
    }
}
