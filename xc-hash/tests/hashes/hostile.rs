//! Damaged parts and impossible parameters: precise errors, never a panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use xc_hash::text::*;

/// An error and what caused it, joined as a program prints them.
trait Said {
    fn said(&self) -> String;
}

impl<E: std::error::Error> Said for E {
    fn said(&self) -> String {
        let links = std::iter::successors(self.source(), |link| link.source());
        links.fold(self.to_string(), |text, link| format!("{text}: {link}"))
    }
}

const TRAIN: [&str; 4] = ["the cat sat", "the dog sat", "a dog and a cat", "été été"];

fn stored() -> PipelineParts {
    Pipeline::fit(params(), &TRAIN).unwrap().into_parts()
}

/// The same with shared slots and a fold.
fn stored_folded() -> PipelineParts {
    let fold = Some(HashingParams { n_features: 6, seed: 3, sign: HashSign::Alternate });
    Pipeline::fit(PipelineParams { oov_slots: 5, fold, ..params() }, &TRAIN).unwrap().into_parts()
}

fn params() -> PipelineParams {
    let oov = VocabularyParams { oov_slots: 3, ..VocabularyParams::default() };
    PipelineParams {
        blocks: vec![
            Block::words(1, 1),
            Block { slots: Slots::Vocabulary(oov), ..Block::words(2, 2) },
            Block { grams: Grams::CharsInWords { min: 2, max: 3 }, ..Block::words(1, 1).hashed(8) },
        ],
        ..PipelineParams::default()
    }
}

fn array<'a>(parts: &'a mut PipelineParts, name: &str) -> &'a mut PartArray {
    &mut parts.arrays.iter_mut().find(|(n, _)| n == name).unwrap().1
}

fn u32s<'a>(parts: &'a mut PipelineParts, name: &str) -> &'a mut Vec<u32> {
    match array(parts, name) {
        PartArray::U32(a) => a,
        other => panic!("{name} is {other:?}"),
    }
}

fn bytes<'a>(parts: &'a mut PipelineParts, name: &str) -> &'a mut Vec<u8> {
    match array(parts, name) {
        PartArray::U8(a) => a,
        other => panic!("{name} is {other:?}"),
    }
}

fn idf(parts: &mut PipelineParts) -> &mut Vec<f32> {
    match array(parts, "idf") {
        PartArray::F32(a) => a,
        other => panic!("idf is {other:?}"),
    }
}

/// Damages a good pipeline and gives the message.
fn refusal(damage: impl FnOnce(&mut PipelineParts)) -> String {
    let mut parts = stored();
    damage(&mut parts);
    Featurizer::from_parts(parts).unwrap_err().said()
}

#[test]
fn every_damage_is_named() {
    assert!(Featurizer::from_parts(stored()).is_ok());
    let cases: [(&str, String); 18] = [
        ("array \"idf\" is missing", refusal(|p| p.arrays.retain(|(n, _)| n != "idf"))),
        ("array \"surplus\"", refusal(|p| p.arrays.push(("surplus".into(), PartArray::U8(vec![]))))),
        ("array \"idf\" is not part", refusal(|p| p.arrays.push(("idf".into(), PartArray::F32(vec![]))))),
        ("holds u8, expected f32", refusal(|p| *array(p, "idf") = PartArray::U8(vec![]))),
        ("array \"idf\" has 14 entries, expected 15", refusal(|p| idf(p).truncate(14))),
        ("idf of feature 2 is NaN", refusal(|p| idf(p)[2] = f32::NAN)),
        ("idf of feature 0 is -1", refusal(|p| idf(p)[0] = -1.0)),
        ("idf of feature 1 is inf", refusal(|p| idf(p)[1] = f32::INFINITY)),
        ("block 0: term 1 ends at byte 2, which must be above 3", refusal(|p| u32s(p, "block0_term_ends")[1] = 2)),
        ("block 0: the last term ends at byte 9 of 12", refusal(|p| _ = u32s(p, "block0_term_ends").pop())),
        ("block 0: term 3 ends at byte 99", refusal(|p| u32s(p, "block0_term_ends")[3] = 99)),
        ("block 0: term 0 is not UTF-8", refusal(|p| bytes(p, "block0_terms")[0] = 0xff)),
        ("block 0: term 1 is not above", refusal(|p| bytes(p, "block0_terms")[3] = b'a')),
        ("pipeline version 2; this program reads up to 1", refusal(|p| p.config["version"] = json!(2))),
        ("n_features is 14, the parameters and arrays make 15", refusal(|p| p.config["n_features"] = json!(14))),
        ("unknown field `extra`", refusal(|p| p.config["extra"] = json!(1))),
        ("block 2: n_features is 0", refusal(|p| p.config["params"]["blocks"][2]["slots"]["n_features"] = json!(0))),
        ("\"params\" is missing", refusal(|p| _ = p.config.as_object_mut().unwrap().remove("params"))),
    ];
    for (want, got) in cases {
        assert!(got.contains(want), "expected {want:?} in {got:?}");
    }
}

#[test]
fn a_folded_pipeline_is_kept_and_its_damages_are_named() {
    let refusal = |damage: fn(&mut PipelineParts)| {
        let mut parts = stored_folded();
        damage(&mut parts);
        Featurizer::from_parts(parts).unwrap_err().said()
    };
    let kept = Featurizer::from_parts(stored_folded()).unwrap();
    assert_eq!((kept.n_features(), kept.to_parts()), (6, stored_folded()));
    for (want, got) in [
        ("n_features is 20, the parameters and arrays make 6", refusal(|p| p.config["n_features"] = json!(20))),
        ("array \"idf\" has 6 entries, expected 20", refusal(|p| idf(p).truncate(6))),
        ("fold: n_features is 0", refusal(|p| p.config["params"]["fold"]["n_features"] = json!(0))),
        ("unknown field `surplus`", refusal(|p| p.config["params"]["fold"]["surplus"] = json!(0))),
        ("array \"idf\" has 20 entries, expected 19", refusal(|p| p.config["params"]["oov_slots"] = json!(4))),
    ] {
        assert!(got.contains(want), "expected {want:?} in {got:?}");
    }
}

#[test]
fn a_cause_names_the_field_that_the_message_does_not_repeat() {
    let refused = |place: &str, field: &str| {
        let mut parts = stored();
        parts.config.pointer_mut(place).unwrap()[field] = json!("strip");
        Pipeline::from_parts(parts).unwrap_err()
    };
    for (place, field) in [("", "ac\nts\u{7}"), ("/params", "a"), ("/params/weighting", "a"), ("/params/blocks/0", "a")]
    {
        let error = refused(place, field);
        assert_eq!(error.to_string(), "pipeline config");
        assert!(error.said().starts_with(&format!("pipeline config: unknown field `{field}`")), "{error:?}");
    }
}

#[test]
fn kinds_are_not_mixed_up() {
    let weights = RowWeights::fit(TermWeighting::default(), 2, &[0, 1], &[1], &[2.0]).unwrap();
    let maker = Featurizer::Rows(weights.clone());
    assert_eq!(Featurizer::from_parts(maker.to_parts()).unwrap(), maker);
    let error = Pipeline::from_parts(maker.to_parts()).unwrap_err();
    assert_eq!(error.to_string(), "pipeline config: kind is \"rows\", expected \"text\"");
    assert!(RowWeights::from_parts(stored()).is_err());
    assert!(Featurizer::from_parts(PipelineParts { config: Value::Null, arrays: vec![] }).is_err());
}

#[test]
fn impossible_parameters_are_refused_before_any_text_is_read() {
    let refused = |block: Block| {
        let params = PipelineParams { blocks: vec![Block::words(1, 1), block], ..PipelineParams::default() };
        let fitted = Pipeline::fit_stream(params, |_| -> Result<(), std::io::Error> { panic!("texts were read") });
        fitted.unwrap_err().said()
    };
    let good = Block::words(1, 1);
    let bound = |min_df, max_df| Slots::Vocabulary(VocabularyParams { min_df, max_df, ..VocabularyParams::default() });
    for (block, want) in [
        (Block::words(0, 1), "block 1: terms of 0 to 1"),
        (Block::words(3, 2), "block 1: terms of 3 to 2"),
        (Block::words(1, 65), "block 1: terms of 1 to 65"),
        (good.hashed(0), "block 1: n_features is 0"),
        (Block { scale: f32::NAN, ..good }, "block 1: scale is NaN"),
        (Block { scale: -1.0, ..good }, "block 1: scale is -1"),
        (Block { scale: 1e7, ..good }, "between 1e-6 and 1e6"),
        (Block { slots: bound(DfBound::Fraction(f64::NAN), None), ..good }, "min_df is the fraction NaN"),
        (Block { slots: bound(DfBound::Count(1), Some(DfBound::Fraction(1.5))), ..good }, "max_df is the fraction 1.5"),
        (Block { slots: bound(DfBound::Count(3), Some(DfBound::Count(2))), ..good }, "min_df is above max_df"),
    ] {
        let got = refused(block);
        assert!(got.contains(want), "expected {want:?} in {got:?}");
    }
    let none = PipelineParams { blocks: vec![], ..PipelineParams::default() };
    assert_eq!(none.check(), Err(BlockError::None));
    let wide = PipelineParams {
        blocks: vec![good.hashed(u32::MAX)],
        weighting: TermWeighting { idf: Idf::None, ..TermWeighting::default() },
        ..PipelineParams::default()
    };
    let error = Pipeline::fit(wide, &TRAIN).unwrap_err();
    assert_eq!(error, FitPipelineError::Params(BlockError::TooWide { n_features: u32::MAX as u64 }));

    let with = |blocks, oov_slots, n_features| {
        let fold = Some(HashingParams { n_features, ..HashingParams::default() });
        PipelineParams { blocks, oov_slots, fold, ..PipelineParams::default() }.check()
    };
    let own = VocabularyParams { oov_slots: 1, ..VocabularyParams::default() };
    let own = Block { slots: Slots::Vocabulary(own), ..good };
    assert_eq!(with(vec![own, good.hashed(4)], 9, 4), Err(BlockError::OovUnused { oov_slots: 9 }));
    assert_eq!(with(vec![own, good], 9, 4), Ok(()));
    assert_eq!(with(vec![good], 0, 0), Err(BlockError::Fold { n_features: 0 }));
    assert_eq!(with(vec![good], 0, 1 << 31), Ok(()));
    assert_eq!(with(vec![good], 0, u32::MAX), Err(BlockError::Fold { n_features: u32::MAX }));
    let shared = PipelineParams { oov_slots: u32::MAX, ..PipelineParams::default() };
    assert!(matches!(Pipeline::fit(shared, &TRAIN), Err(FitPipelineError::Params(BlockError::TooWide { .. }))));
}

#[test]
fn texts_without_a_usable_term() {
    let fit = |texts: &[&str]| Pipeline::fit(PipelineParams::default(), texts);
    assert_eq!(fit(&[]), Err(FitPipelineError::NoFeatures { n_texts: 0, n_terms: 0, min_chars: 2 }));
    // Every term is in one text only; two are asked.
    assert_eq!(fit(&["one two"]), Err(FitPipelineError::NoFeatures { n_texts: 1, n_terms: 2, min_chars: 2 }));
    // The message names what took the terms: their length, or the bounds.
    let said = |texts: &[&str]| fit(texts).unwrap_err().to_string();
    assert_eq!(said(&[]), "no feature is left: there is no text");
    let short = "no feature is left: none of 2 texts has a term of words with at least 2 characters";
    assert_eq!(said(&["a b", "a c"]), short);
    let rare = "no feature is left: none of 2 different terms of 1 texts is within the document-frequency bounds";
    assert_eq!(said(&["one two"]), rare);
    let pipeline = fit(&["same words", "same words"]).unwrap();
    let rows = pipeline.transform_batch(&["", "?!", "😀", "a", "other", "\u{301}"]);
    assert_eq!((rows.iter().len(), rows.values.len()), (6, 0));
    let none = pipeline.transform_batch::<&str>(&[]);
    assert_eq!((none.iter().len(), none.n_features), (0, 2));
    let mut hashed = PipelineParams::default();
    hashed.blocks[0] = hashed.blocks[0].hashed(16);
    let blank = Pipeline::fit::<&str>(hashed, &[]).unwrap();
    assert_eq!(blank.weights().idf(), [1.0; 16]);
}

#[test]
fn passes_that_differ_are_noticed() {
    let mut params = PipelineParams::default();
    params.blocks.push(Block::words(1, 1).hashed(8));
    let mut n = 0;
    let fitted = Pipeline::fit_stream(params.clone(), |sink| {
        n += 1;
        sink.add(&TRAIN[n..]);
        Ok::<(), std::io::Error>(())
    });
    assert_eq!(fitted.unwrap_err().said(), "the first pass found 3 texts, a later one 2; all must read the same texts");
    let fitted = Pipeline::fit_stream(params, |_| Err(std::io::Error::other("disk on fire")));
    assert_eq!(fitted.unwrap_err().said(), "reading the texts: disk on fire");
}

/// All places of a JSON value, to be overwritten one at a time.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_string());
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| places(v, &format!("{here}/{k}"), out)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| places(v, &format!("{here}/{i}"), out)),
        _ => {}
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u32..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z-]{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "none",
            "plain",
            "smooth",
            "raw",
            "words",
            "chars",
            "hashed",
            "vocabulary",
            "rows",
            "text"
        ])
        .prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
    ]
}

#[derive(Clone, Debug)]
enum Damage {
    Json(prop::sample::Index, Value),
    Drop(prop::sample::Index),
    Number(prop::sample::Index, prop::sample::Index, u32),
    Cut(prop::sample::Index, prop::sample::Index),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), any_json()).prop_map(|(at, value)| Damage::Json(at, value)),
        index().prop_map(Damage::Drop),
        (index(), index(), prop_oneof![any::<u32>(), 0u32..30]).prop_map(|(a, i, v)| Damage::Number(a, i, v)),
        (index(), index()).prop_map(|(a, i)| Damage::Cut(a, i)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn damaged_parts_are_refused_or_work(damages in prop::collection::vec(any_damage(), 1..4), fold in any::<bool>()) {
        let mut parts = if fold { stored_folded() } else { stored() };
        for damage in damages {
            match damage {
                Damage::Json(at, value) => {
                    let mut all = Vec::new();
                    places(&parts.config, "", &mut all);
                    let place = &all[at.index(all.len())];
                    if let Some(target) = parts.config.pointer_mut(place) {
                        *target = value;
                    }
                }
                Damage::Drop(at) if !parts.arrays.is_empty() => {
                    parts.arrays.swap_remove(at.index(parts.arrays.len()));
                }
                Damage::Number(at, i, value) if !parts.arrays.is_empty() => {
                    let n = parts.arrays.len();
                    match &mut parts.arrays[at.index(n)].1 {
                        PartArray::F32(a) if !a.is_empty() => { let n = a.len(); a[i.index(n)] = f32::from_bits(value) }
                        PartArray::U32(a) if !a.is_empty() => { let n = a.len(); a[i.index(n)] = value }
                        PartArray::U8(a) if !a.is_empty() => { let n = a.len(); a[i.index(n)] = value as u8 }
                        _ => {}
                    }
                }
                Damage::Cut(at, i) if !parts.arrays.is_empty() => {
                    let n = parts.arrays.len();
                    match &mut parts.arrays[at.index(n)].1 {
                        PartArray::F32(a) => { let n = a.len() + 1; a.truncate(i.index(n)) }
                        PartArray::U32(a) => { let n = a.len() + 1; a.truncate(i.index(n)) }
                        PartArray::U8(a) => { let n = a.len() + 1; a.truncate(i.index(n)) }
                    }
                }
                _ => {}
            }
        }
        // What opens must serve: rows in range, ascending, without NaN.
        if let Ok(Featurizer::Text(pipeline)) = Featurizer::from_parts(parts) {
            let rows = pipeline.transform_batch(&["the dog, the été and a CAT sat", ""]);
            prop_assert!(rows.indices.iter().all(|&f| (f as usize) < pipeline.n_features()));
            prop_assert!(rows.values.iter().all(|v| v.is_finite()));
        }
    }
}
