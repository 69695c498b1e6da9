//! Rows of scikit-learn's vectorizers, frozen by `golden/make.py`: same non-zeros, same values.

use serde_json::Value;
use xc_hash::text::*;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/sklearn.json")).unwrap()
}

fn texts(golden: &Value) -> Vec<String> {
    golden["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_string()).collect()
}

/// Our parameters for scikit-learn's options; an option that is not known here fails the test.
fn params(options: &Value, hashing: bool) -> PipelineParams {
    let mut p = PipelineParams::hashing_vectorizer(1 << 20);
    let mut hash = HashingParams { n_features: 1 << 20, seed: 0, sign: HashSign::Alternate };
    let mut terms = VocabularyParams { min_df: DfBound::Count(1), ..VocabularyParams::default() };
    if !hashing {
        p.weighting.idf = Idf::Smooth;
    }
    let (mut analyzer, mut range) = ("word", (1, 1));
    for (name, value) in options.as_object().unwrap() {
        let bound = || match value.as_u64() {
            Some(count) => DfBound::Count(count as u32),
            None => DfBound::Fraction(value.as_f64().unwrap()),
        };
        match (name.as_str(), value.as_str()) {
            ("n_features", _) => hash.n_features = value.as_u64().unwrap() as u32,
            ("alternate_sign", _) if *value == false => hash.sign = HashSign::Positive,
            ("norm", None) if value.is_null() => p.weighting.norm = Norm::None,
            ("norm", Some("l1")) => p.weighting.norm = Norm::L1,
            ("norm", Some("l2")) => p.weighting.norm = Norm::L2,
            ("ngram_range", _) => range = (value[0].as_u64().unwrap() as u32, value[1].as_u64().unwrap() as u32),
            ("lowercase", _) if *value == false => p.case = Case::Keep,
            ("analyzer", Some(name)) => analyzer = name,
            ("strip_accents", Some("unicode")) => p.accents = Accents::Strip,
            ("sublinear_tf", _) if *value == true => p.weighting.tf = Tf::Sublinear,
            ("smooth_idf", _) if *value == false => p.weighting.idf = Idf::Plain,
            ("use_idf", _) if *value == false => p.weighting.idf = Idf::None,
            ("binary", _) if *value == true => p.weighting.tf = Tf::Binary,
            ("min_df", _) => terms.min_df = bound(),
            ("max_df", _) => terms.max_df = Some(bound()),
            _ => panic!("no translation for {name} = {value}"),
        }
    }
    let (min, max) = range;
    let grams = match analyzer {
        "word" => Grams::Words { min, max },
        "char" => Grams::Chars { min, max },
        "char_wb" => Grams::CharsInWords { min, max },
        other => panic!("analyzer {other}"),
    };
    let slots = if hashing { Slots::Hashed(hash) } else { Slots::Vocabulary(terms) };
    p.blocks = vec![Block { grams, slots, scale: 1.0 }];
    p
}

fn compare(pipeline: &Pipeline, texts: &[String], case: &Value) {
    let rows = pipeline.transform_batch(texts);
    let mut n_values = 0;
    for (((features, values), want), text) in rows.iter().zip(case["rows"].as_array().unwrap()).zip(texts) {
        let want: Vec<(u32, f64)> =
            want.as_array().unwrap().iter().map(|x| (x[0].as_u64().unwrap() as u32, x[1].as_f64().unwrap())).collect();
        let expected: Vec<u32> = want.iter().map(|x| x.0).collect();
        assert_eq!(features, expected, "{} {text:?}", case["options"]);
        for (&got, &(feature, want)) in values.iter().zip(&want) {
            let near = (got as f64 - want).abs() <= 1e-6 * want.abs().max(1.0);
            assert!(near, "{} {text:?} feature {feature}: {got}, expected {want}", case["options"]);
            n_values += 1;
        }
    }
    assert!(n_values > 30, "only {n_values} values compared: {}", case["options"]);
}

#[test]
fn hashing_vectorizer_value_by_value() {
    let golden = golden();
    let texts = texts(&golden);
    for case in golden["hashing"].as_array().unwrap() {
        let pipeline = Pipeline::fit(params(&case["options"], true), &texts[..0]).unwrap();
        compare(&pipeline, &texts, case);
    }
}

#[test]
fn tfidf_vectorizer_value_by_value() {
    let golden = golden();
    let texts = texts(&golden);
    for case in golden["tfidf"].as_array().unwrap() {
        let pipeline = Pipeline::fit(params(&case["options"], false), &texts).unwrap();
        let vocabulary = pipeline.vocabulary(0).unwrap();
        let terms: Vec<&str> = (0..vocabulary.len() as u32).map(|id| vocabulary.term(id)).collect();
        let want: Vec<&str> = case["terms"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
        assert_eq!(terms, want, "{}", case["options"]);
        compare(&pipeline, &texts, case);
    }
}

#[test]
fn shared_slots_and_folding_value_by_value() {
    let golden = golden();
    let texts = texts(&golden);
    for case in golden["folded"].as_array().unwrap() {
        let options = &case["options"];
        let number = |v: &Value| v.as_u64().unwrap() as u32;
        let blocks = options["blocks"].as_array().unwrap().iter().map(|block| {
            let (min, max) = (number(&block[1]), number(&block[1]));
            let grams = if block[0] == "word" { Grams::Words { min, max } } else { Grams::CharsInWords { min, max } };
            let max_features = Some(number(&block[2]));
            let terms = VocabularyParams { min_df: DfBound::Count(1), max_features, ..VocabularyParams::default() };
            Block { grams, slots: Slots::Vocabulary(terms), scale: 1.0 }
        });
        let sign = if options["sign"] == true { HashSign::Alternate } else { HashSign::Positive };
        let params = PipelineParams {
            blocks: blocks.collect(),
            oov_slots: number(&options["oov"]),
            weighting: TermWeighting { tf: Tf::Raw, idf: Idf::None, norm: Norm::None },
            fold: Some(HashingParams { n_features: number(&options["fold"]), seed: number(&options["seed"]), sign }),
            ..PipelineParams::default()
        };
        compare(&Pipeline::fit(params, &texts).unwrap(), &texts, case);
    }
}
