//! The options that are free to be searched: those of a kind that go with what was given.

use super::kinds::Tuned;
use super::spaces::{Listed, Of, Searched};
use super::typed::{Given, parse};
use xc_train::tune::{Choice, Space};

/// The options for instances of a kind that go with what was given, each with why it is there.
pub(super) fn free<A: Tuned>(listed: &Listed, is_text: bool, given: &[Given], seed: u64) -> (Space, Vec<&'static str>) {
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
    use super::*;
    use crate::cmd::train::{astra, dense, lns, mach, tree_args, uniform};

    fn names<A: Tuned>(is_text: bool, options: &[(&str, &str)]) -> Vec<String> {
        let all = [("train", "t"), ("model", "m")];
        let given: Vec<Given> = all.iter().chain(options).map(|(name, value)| Given::new::<A>(name, value)).collect();
        let (space, _) = free::<A>(&A::space(), is_text, &given, 0);
        space.choices().iter().map(|choice| choice.name().to_owned()).collect()
    }

    fn every_value_is_taken<A: Tuned>() {
        let (listed, kind) = (A::space(), A::KIND);
        let (text, features) = (names::<A>(true, &[]), names::<A>(false, &[]));
        for searched in &listed.options {
            let is_listed = [&text, &features].into_iter().flatten().any(|name| name == searched.option);
            assert!(is_listed, "{kind}: --{}: {text:?} {features:?}", searched.option);
        }
        assert!(text.contains(&"text.ngrams".to_owned()) && !text.contains(&"tfidf".to_owned()), "{kind}");
        assert!(features.contains(&"tfidf".to_owned()) && !features.contains(&"text.ngrams".to_owned()), "{kind}");
        // Starts name what is listed.
        for (option, value) in listed.starts.iter().copied().flatten() {
            let is_listed = listed.options.iter().any(|s| s.option == *option && s.values.contains(value));
            assert!(is_listed, "{kind}: --{option} {value}");
        }
    }

    #[test]
    fn every_listed_value_is_one_that_the_training_takes() {
        every_value_is_taken::<tree_args::Args>();
        every_value_is_taken::<mach::Args>();
        every_value_is_taken::<dense::Args>();
        every_value_is_taken::<uniform::Args>();
        every_value_is_taken::<lns::Args>();
        every_value_is_taken::<astra::Args>();
    }

    #[test]
    fn what_is_given_and_what_does_not_go_with_it_is_not_searched() {
        let has = |names: &[String], name: &str| names.iter().any(|other| other == name);
        assert!(!has(&names::<tree_args::Args>(true, &[("trees", "1")]), "trees"));
        let hashed = names::<tree_args::Args>(true, &[("text.hash", "1024")]);
        assert!(!has(&hashed, "text.min-df") && has(&hashed, "text.ngrams"), "{hashed:?}");
        // Vectors need no embeddings, and no weights of features.
        let vectors = names::<dense::Args>(false, &[("features", "x.npy")]);
        assert!(!has(&vectors, "network.init") && !has(&vectors, "tfidf") && has(&vectors, "epochs"), "{vectors:?}");
    }
}
