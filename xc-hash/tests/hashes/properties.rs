//! What must hold for every text and every pipeline.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use xc_hash::murmur3_32;
use xc_hash::text::*;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[abc ]{0,30}",
        2 => "[ab_,.7 éΣ\u{301}\\t]{0,20}",
        1 => "\\PC{0,12}",
        1 => Just(String::new()),
        1 => Just("?! … 😀".to_string()),
        1 => Just("x".repeat(5000)),
    ]
}

fn any_grams() -> impl Strategy<Value = Grams> {
    (0..3, 1u32..4, 0u32..3).prop_map(|(kind, min, more)| match kind {
        0 => Grams::Words { min, max: min + more },
        1 => Grams::Chars { min, max: min + more },
        _ => Grams::CharsInWords { min, max: min + more },
    })
}

fn any_hash() -> impl Strategy<Value = HashingParams> {
    (1u32..40, any::<u32>(), any::<bool>()).prop_map(|(n_features, seed, alternate)| {
        let sign = if alternate { HashSign::Alternate } else { HashSign::Positive };
        HashingParams { n_features, seed, sign }
    })
}

fn any_slots() -> impl Strategy<Value = Slots> {
    prop_oneof![
        any_hash().prop_map(Slots::Hashed),
        (0u32..4, prop::option::of(0.0f64..=1.0), prop::option::of(0u32..9), 0u32..5).prop_map(
            |(min, max_df, max_features, oov_slots)| Slots::Vocabulary(VocabularyParams {
                min_df: DfBound::Count(min),
                max_df: max_df.map(DfBound::Fraction),
                max_features,
                oov_slots
            })
        ),
    ]
}

fn any_weighting() -> impl Strategy<Value = TermWeighting> {
    (
        prop::sample::select(vec![Tf::Sublinear, Tf::Raw, Tf::Binary]),
        prop::sample::select(vec![Idf::Smooth, Idf::Plain, Idf::None]),
        prop::sample::select(vec![Norm::L2, Norm::L1, Norm::None]),
    )
        .prop_map(|(tf, idf, norm)| TermWeighting { tf, idf, norm })
}

fn any_params() -> impl Strategy<Value = PipelineParams> {
    let block = (any_grams(), any_slots(), prop::sample::select(vec![1.0f32, 0.5, 3.0]))
        .prop_map(|(grams, slots, scale)| Block { grams, slots, scale });
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let fold = prop::option::of(any_hash());
    (flags, 0u32..4, prop::collection::vec(block, 1..4), any_weighting(), 0u32..6, fold).prop_map(
        |((lower, strip, words), min_token_chars, blocks, weighting, oov_slots, fold)| {
            let shares = |b: &Block| matches!(b.slots, Slots::Vocabulary(v) if v.oov_slots == 0);
            PipelineParams {
                case: if lower { Case::Lower } else { Case::Keep },
                accents: if strip { Accents::Strip } else { Accents::Keep },
                tokens: if words { TokenRule::Words } else { TokenRule::Whitespace },
                min_token_chars,
                oov_slots: if blocks.iter().any(shares) { oov_slots } else { 0 },
                blocks,
                weighting,
                fold,
            }
        },
    )
}

/// The terms of one text, from the definition and with nothing shared but the words and the normal
/// form.
fn naive_terms(params: &PipelineParams, grams: Grams, text: &str) -> Vec<String> {
    let mut normal = String::new();
    normalise(text, params.case, params.accents, &mut normal);
    let mut words = Words::default();
    words.cut(&normal, params.tokens, params.min_token_chars);
    let space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let (min, max) = grams.range();
    let mut out = Vec::new();
    let runs = |chars: &[char], n: usize| chars.windows(n).map(|w| w.iter().collect()).collect::<Vec<String>>();
    match grams {
        Grams::Words { .. } => {
            let list: Vec<&str> = (0..words.len()).map(|i| words.gram(i, 1)).collect();
            (min..=max).for_each(|n| out.extend(list.windows(n as usize).map(|w| w.join(" "))));
        }
        Grams::Chars { .. } => {
            let mut chars: Vec<char> = Vec::new();
            for run in normal.chars().collect::<Vec<_>>().chunk_by(|&a, &b| space(a) && space(b)) {
                if run.len() > 1 { chars.push(' ') } else { chars.push(run[0]) }
            }
            (min..=max).for_each(|n| out.extend(runs(&chars, n as usize)));
        }
        Grams::CharsInWords { .. } => {
            for word in normal.split(space).filter(|w| !w.is_empty()) {
                let chars: Vec<char> = format!(" {word} ").chars().collect();
                for n in min as usize..=max as usize {
                    if n >= chars.len() {
                        out.push(chars.iter().collect());
                        break;
                    }
                    out.extend(runs(&chars, n));
                }
            }
        }
    }
    out
}

/// Features of one text, each with its weight and with the sizes that were summed into it.
type Row = BTreeMap<u32, (f64, f64)>;

/// Feature and sign of a hashed key, from the definition.
fn naive_hash(key: &[u8], h: HashingParams) -> (u32, f64) {
    let signed = murmur3_32(key, h.seed) as i32 as i64;
    let sign = if h.sign == HashSign::Alternate && signed < 0 { -1.0 } else { 1.0 };
    ((signed.abs() % h.n_features as i64) as u32, sign)
}

/// Fits and transforms with maps and sets; `None` where no feature is left.
fn naive_rows(params: &PipelineParams, train: &[String], texts: &[String]) -> Option<(usize, Vec<Row>)> {
    enum Place {
        Terms(BTreeMap<String, u32>, u32),
        Hash(HashingParams),
    }
    let n = train.len() as f64;
    let mut places = Vec::new();
    let mut width = 0;
    for block in &params.blocks {
        let place = match block.slots {
            Slots::Hashed(h) => Place::Hash(h),
            Slots::Vocabulary(v) => {
                let mut stats: BTreeMap<String, (f64, u64)> = BTreeMap::new();
                for text in train {
                    let terms = naive_terms(params, block.grams, text);
                    for term in terms.iter().collect::<BTreeSet<_>>() {
                        stats.entry(term.clone()).or_default().0 += 1.0;
                    }
                    terms.into_iter().for_each(|term| stats.entry(term).or_default().1 += 1);
                }
                let DfBound::Count(min) = v.min_df else { unreachable!("the generator gives counts") };
                let max = match v.max_df {
                    Some(DfBound::Fraction(share)) => share * n,
                    _ => f64::INFINITY,
                };
                let mut kept: Vec<_> =
                    stats.into_iter().filter(|(_, (df, _))| *df >= min as f64 && *df <= max).collect();
                if let Some(most) = v.max_features {
                    kept.sort_by(|a, b| b.1.1.cmp(&a.1.1).then(a.0.cmp(&b.0)));
                    kept.truncate(most as usize);
                }
                let terms: BTreeSet<String> = kept.into_iter().map(|(term, _)| term).collect();
                Place::Terms(terms.into_iter().zip(0..).collect(), v.oov_slots)
            }
        };
        let size = match &place {
            Place::Terms(terms, oov) => terms.len() as u32 + oov,
            Place::Hash(h) => h.n_features,
        };
        places.push((place, width));
        width += size;
    }
    let shared = width;
    width += params.oov_slots;
    if width == 0 {
        return None;
    }
    let count = |text: &String| {
        let mut row: BTreeMap<u32, f64> = BTreeMap::new();
        for (i, (block, (place, first))) in params.blocks.iter().zip(&places).enumerate() {
            for term in naive_terms(params, block.grams, text) {
                let oov = |n_features, seed| {
                    naive_hash(term.as_bytes(), HashingParams { n_features, seed, sign: HashSign::Positive })
                };
                let (slot, value) = match place {
                    Place::Terms(terms, own) => match (terms.get(&term), own, params.oov_slots) {
                        (Some(&id), ..) => (first + id, 1.0),
                        (None, 0, 0) => continue,
                        (None, 0, n) => (shared + oov(n, i as u32).0, 1.0),
                        (None, &n, _) => (first + terms.len() as u32 + oov(n, 0).0, 1.0),
                    },
                    Place::Hash(h) => {
                        let (slot, sign) = naive_hash(term.as_bytes(), *h);
                        (first + slot, sign)
                    }
                };
                *row.entry(slot).or_default() += value;
            }
        }
        row.retain(|_, v| *v != 0.0);
        row
    };
    let mut df = vec![0f64; width as usize];
    for text in train {
        count(text).keys().for_each(|&f| df[f as usize] += 1.0);
    }
    let scale = |feature: u32| {
        if feature >= shared {
            return 1.0;
        }
        let block = places.iter().rposition(|(_, first)| *first <= feature).unwrap();
        // Empty blocks share their first feature with the next one; the last of them owns it.
        params.blocks[block].scale as f64
    };
    let weigh = |counts: BTreeMap<u32, f64>| {
        let mut row = Row::new();
        for (slot, v) in counts {
            let tf = match params.weighting.tf {
                Tf::Raw => v.abs(),
                Tf::Binary => 1.0,
                Tf::Sublinear => 1.0 + v.abs().ln(),
            };
            let idf = match params.weighting.idf {
                Idf::None => 1.0,
                Idf::Smooth => ((1.0 + n) / (1.0 + df[slot as usize])).ln() + 1.0,
                Idf::Plain if train.is_empty() => 1.0,
                Idf::Plain => (n / df[slot as usize].max(1.0)).ln() + 1.0,
            };
            let weight = v.signum() * tf * idf * scale(slot);
            let (feature, sign) = params.fold.map_or((slot, 1.0), |h| naive_hash(&slot.to_le_bytes(), h));
            let sums = row.entry(feature).or_default();
            *sums = (sums.0 + sign * weight, sums.1 + weight.abs());
        }
        let norm = match params.weighting.norm {
            Norm::None => 1.0,
            Norm::L1 => row.values().map(|x| x.0.abs()).sum(),
            Norm::L2 => row.values().map(|x| x.0 * x.0).sum::<f64>().sqrt(),
        };
        row.values_mut().for_each(|x| *x = (x.0 / norm, x.1 / norm));
        row
    };
    let n_features = params.fold.map_or(width, |h| h.n_features);
    Some((n_features as usize, texts.iter().map(|t| weigh(count(t))).collect()))
}

#[test]
fn terms_beyond_the_bound_are_counted_in_further_passes() {
    // Words of very different frequencies, and as many pairs again.
    let texts: Vec<String> = (0..3000u32).map(|i| format!("w{} w{} w{} the", i % 7, i % 97, i * i % 2003)).collect();
    let terms = VocabularyParams { max_features: Some(60), ..VocabularyParams::default() };
    let block = Block { slots: Slots::Vocabulary(terms), ..Block::words(1, 1) };
    let grams = Grams::Words { min: 2, max: 2 };
    let blocks = vec![block, Block { grams, ..block }, Block { grams, ..Block::words(1, 1) }];
    let params = PipelineParams { blocks, oov_slots: 10, ..PipelineParams::default() };
    let free = Pipeline::fit(params.clone(), &texts).unwrap();
    assert!(free.n_slots() > 200, "{}", free.n_slots());
    let within = |bound: usize, threads: usize| {
        let mut passes = 0;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fitted = pool.install(|| {
            Pipeline::fit_stream_within(params.clone(), bound, |sink| {
                passes += 1;
                texts.chunks(500).for_each(|texts| sink.add(texts));
                Ok::<(), std::io::Error>(())
            })
        });
        (fitted, passes)
    };
    for threads in [1, 3] {
        for (bound, expected) in [(usize::MAX, 2..=2), (200_000, 3..=9), (40_000, 9..=65)] {
            let (fitted, passes) = within(bound, threads);
            assert_eq!(fitted.unwrap(), free, "{bound} bytes, {threads} threads");
            assert!(expected.contains(&passes), "{bound} bytes, {threads} threads: {passes} passes");
        }
        let (refused, passes) = within(500, threads);
        let expected = "the different terms of the texts do not fit into 500 bytes, even in 64 passes over them";
        assert_eq!((refused.unwrap_err().to_string(), passes), (expected.to_string(), 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_are_those_of_the_definition_and_serving_equals_training(
        params in any_params(),
        train in prop::collection::vec(any_text(), 0..9),
        new in prop::collection::vec(any_text(), 0..4),
    ) {
        let texts: Vec<String> = train.iter().chain(&new).cloned().collect();
        let Some((width, want)) = naive_rows(&params, &train, &texts) else {
            let no_features = matches!(Pipeline::fit(params, &train), Err(FitPipelineError::NoFeatures { .. }));
            prop_assert!(no_features);
            return Ok(());
        };
        let pipeline = Pipeline::fit(params, &train).unwrap();
        let rows = pipeline.transform_batch(&texts);
        prop_assert_eq!((rows.iter().len(), rows.n_features), (texts.len(), width));
        for ((features, values), want) in rows.iter().zip(&want) {
            // A row that cancels to next to nothing is rounding error blown up by the norm.
            if want.values().any(|(_, summed)| *summed > 1e4 || summed.is_nan()) {
                continue;
            }
            let got: BTreeMap<u32, f32> = features.iter().copied().zip(values.iter().copied()).collect();
            prop_assert_eq!(got.len(), features.len(), "a feature twice");
            for (feature, value) in &got {
                prop_assert!(*value != 0.0 && want.contains_key(feature), "{feature}: {value}");
            }
            // Weights are rounded to `f32`. What cancels in one feature is off by what was summed into it,
            // and the norm carries that to every other feature of the row.
            let all_summed: f64 = want.values().map(|(_, summed)| summed).sum();
            for (feature, (want, summed)) in want {
                let got = got.get(feature).map_or(0.0, |v| *v as f64);
                let rounding = 1e-6 * (summed + want.abs() * all_summed);
                prop_assert!((got - want).abs() <= rounding, "{feature}: {got} {want}, {rounding}");
            }
        }

        // Stored and opened again: equal, and each text alone gives the bits of the batch.
        let stored = pipeline.to_parts();
        let json = serde_json::to_string(&stored.config).unwrap();
        let opened = PipelineParts { config: serde_json::from_str(&json).unwrap(), arrays: stored.arrays };
        let served = Pipeline::from_parts(opened).unwrap();
        prop_assert_eq!(&served, &pipeline);
        let mut scratch = served.scratch();
        for (text, expected) in texts.iter().zip(rows.iter()) {
            let (features, values) = served.transform_one(text, &mut scratch);
            prop_assert_eq!(features, expected.0);
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(values), bits(expected.1));
        }
    }

    #[test]
    fn a_folded_row_is_the_sum_of_the_row_before_folding(
        params in any_params(),
        hash in any_hash(),
        train in prop::collection::vec(any_text(), 1..9),
    ) {
        let weighting = TermWeighting { norm: Norm::None, ..params.weighting };
        let flat = PipelineParams { weighting, fold: None, ..params };
        let folded = PipelineParams { fold: Some(hash), ..flat.clone() };
        let (Ok(flat), Ok(folded)) = (Pipeline::fit(flat, &train), Pipeline::fit(folded, &train)) else {
            return Ok(());
        };
        prop_assert_eq!((folded.n_features(), folded.n_slots()), (hash.n_features as usize, flat.n_features()));
        prop_assert_eq!(folded.weights(), flat.weights());
        let (flat, folded) = (flat.transform_batch(&train), folded.transform_batch(&train));
        for (flat, folded) in flat.iter().zip(folded.iter()) {
            let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
            for (slot, &weight) in flat.0.iter().zip(flat.1) {
                let (feature, sign) = naive_hash(&slot.to_le_bytes(), hash);
                *sums.entry(feature).or_default() += sign * weight as f64;
            }
            sums.retain(|_, sum| *sum != 0.0);
            // In the order of the slots, so the very bits.
            let want: Vec<(u32, f32)> = sums.into_iter().map(|(f, sum)| (f, sum as f32)).collect();
            let got: Vec<(u32, f32)> = folded.0.iter().copied().zip(folded.1.iter().copied()).collect();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn a_bound_on_memory_does_not_show(
        params in any_params(),
        train in prop::collection::vec(any_text(), 0..30),
        bound in 2_000usize..20_000,
        threads in 1usize..4,
    ) {
        let bounded = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            Pipeline::fit_stream_within(params.clone(), bound, |sink| {
                train.chunks(7).for_each(|texts| sink.add(texts));
                Ok::<(), std::io::Error>(())
            })
        });
        match (bounded, Pipeline::fit(params, &train)) {
            (Ok(bounded), free) => prop_assert_eq!(Ok(bounded), free),
            (Err(FitStreamError::Fit(FitPipelineError::TermBytes { term_bytes })), _) => prop_assert_eq!(term_bytes, bound),
            (Err(error), free) => prop_assert_eq!(error.to_string(), free.unwrap_err().to_string()),
        }
    }

    #[test]
    fn threads_and_batches_do_not_show(
        train in prop::collection::vec(any_text(), 0..90),
        batch in 1usize..50,
        fold in any::<bool>(),
    ) {
        let params = PipelineParams {
            blocks: vec![Block::words(1, 2), Block { grams: Grams::Chars { min: 2, max: 3 }, ..Block::words(1, 1).hashed(64) }],
            oov_slots: 50,
            fold: fold.then_some(HashingParams { n_features: 70, ..HashingParams::default() }),
            ..PipelineParams::default()
        };
        let fit = |threads: usize| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                let pipeline = Pipeline::fit_stream(params.clone(), |sink| {
                    train.chunks(batch).for_each(|texts| sink.add(texts));
                    Ok::<(), std::io::Error>(())
                })
                .unwrap();
                (pipeline.transform_batch(&train), pipeline)
            })
        };
        let (one, three) = (fit(1), fit(3));
        prop_assert_eq!(&one.1, &three.1);
        prop_assert_eq!(one.0, three.0);
    }
}
