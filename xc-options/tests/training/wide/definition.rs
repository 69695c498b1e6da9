//! Scores by their definition, and that every way to ask gives the same ones.

use super::{AGAIN, MODELS, N_LABELS, TRAINED, ask, queries};
use std::collections::BTreeMap;
use xc_ann::Silent;
use xc_model::Model;
use xc_model::classifier::Classifier;
use xc_model::explain::ExplainOptions;
use xc_model::{Answer, Candidates, Excluded, OpenOptions, QueryOptions, Rows, Scratch, UseIndex, label_index_params};
use xc_nn::Loss;
use xc_sparse::LabelRows;
use xc_sparse::rank::{LabelId, Scored};

/// The logarithm of what a loss makes of a logit, in f64.
fn log_p(loss: Loss, z: f64, all: &[f64]) -> f64 {
    match loss {
        Loss::Softmax => {
            let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            z - largest - all.iter().map(|z| (z - largest).exp()).sum::<f64>().ln()
        }
        Loss::Bce => -(-z).exp().ln_1p(),
        // The margin.
        Loss::SquaredHinge => z,
        other => panic!("{other:?} is not tested"),
    }
}

/// The logit of each label of one query, by the definition, and the labels in the order of the network.
fn expected(of: &Classifier, made: xc_sparse::SparseRow<'_>, network: &[Scored]) -> (Vec<f64>, Vec<LabelId>) {
    let wide = of.wide().unwrap();
    let logits: Vec<f64> = network.iter().map(|s| f64::from(s.score)).collect();
    let mut whole = vec![0.0; N_LABELS];
    for s in network {
        let value = |feature| made.iter().find(|(other, _)| *other == feature).map_or(0.0, |(_, value)| value);
        let sum: f64 = wide.rankers.row(s.label).map(|(f, w)| f64::from(w) * f64::from(value(f))).sum();
        let p = log_p(of.params().loss, f64::from(s.score), &logits);
        whole[s.label as usize] =
            sum + f64::from(wide.rankers.bias()[s.label as usize]) + f64::from(wide.params.weight) * p;
    }
    (whole, network.iter().map(|s| s.label).collect())
}

#[test]
fn raw_scores_are_margins_and_weighted_log_probabilities_and_the_rest_stays_behind_in_the_order_of_the_network() {
    for (name, ..) in MODELS {
        let (model, network) = (TRAINED.raw(name), TRAINED.network(name));
        let of = Classifier::open(TRAINED.place(name)).unwrap();
        let (loss, again) = (of.params().loss, of.wide().unwrap().params.labels.min(N_LABELS));
        assert_eq!(again, if name == "all" { N_LABELS } else { AGAIN }, "{name}");
        assert!(of.wide().unwrap().rankers.features().len() > 3 * N_LABELS, "{name}: rankers know nothing");
        let queries = queries(name);
        let made = model.features(queries.view()).unwrap();
        let whole = ask(&model, queries.view(), &QueryOptions::top(N_LABELS + 7));
        let of_network = ask(&network, queries.view(), &QueryOptions::top(N_LABELS));
        let mut changed = 0;
        for (i, (got, network)) in whole.iter().zip(&of_network).enumerate() {
            assert_eq!((got.len(), network.len()), (N_LABELS, N_LABELS), "{name}");
            let (logits, order) = expected(&of, made.view().row(i).sparse().unwrap(), network);
            for s in &got[..again] {
                let expected = logits[s.label as usize];
                assert!((f64::from(s.score) - expected).abs() < 1e-4, "{name}, {loss:?}, row {i}: {s:?}, {expected}");
            }
            assert!(got.windows(2).all(|w| w[0].score >= w[1].score), "{name}, row {i}");
            let labels = |of: &[Scored]| of.iter().map(|s| s.label).collect::<Vec<_>>();
            let sorted = |mut labels: Vec<LabelId>| {
                labels.sort_unstable();
                labels
            };
            assert_eq!(sorted(labels(&got[..again])), sorted(order[..again].to_vec()), "{name}, row {i}");
            assert_eq!(labels(&got[again..]), order[again..], "{name}, row {i}");
            assert!(got[again..].iter().all(|s| s.score < got[again - 1].score), "{name}, row {i}");
            changed += usize::from(labels(&got[..again]) != order[..again]);
        }
        assert!(changed > whole.len() / 2, "{name}: the term changed {changed} of {} answers", whole.len());
    }
}

#[test]
fn scores_are_sigmoids_of_the_logits_and_fall_strictly_with_them() {
    for (name, ..) in MODELS {
        let (model, raw) = (Model::open(TRAINED.place(name)).unwrap(), TRAINED.raw(name));
        let (queries, all) = (queries(name), QueryOptions::top(N_LABELS));
        for (scores, logits) in ask(&model, queries.view(), &all).iter().zip(ask(&raw, queries.view(), &all)) {
            for (s, z) in scores.iter().zip(&logits) {
                let sigmoid = 1.0 / (1.0 + (-f64::from(z.score)).exp());
                assert_eq!(s.label, z.label, "{name}");
                assert!((f64::from(s.score) - sigmoid).abs() < 1e-5, "{name}: {s:?} of {z:?}");
            }
            for (s, z) in scores.windows(2).zip(logits.windows(2)) {
                assert_eq!(s[0].score > s[1].score, z[0].score > z[1].score, "{name}");
            }
        }
    }
}

#[test]
fn fewer_labels_single_queries_and_smaller_batches_have_the_same_scores() {
    for (name, ..) in MODELS {
        let queries = queries(name);
        for post_processor in [None, Some("noop"), Some("softmax"), Some("l2-hinge")] {
            let options = OpenOptions { post_processor: post_processor.map(str::to_owned), ..OpenOptions::default() };
            let model = Model::open_with(TRAINED.place(name), &options).unwrap();
            let whole = ask(&model, queries.view(), &QueryOptions::top(N_LABELS));
            for k in [0, 1, 3, AGAIN, AGAIN + 5, N_LABELS + 1, usize::MAX] {
                let fewer = ask(&model, queries.view(), &QueryOptions::top(k));
                for (fewer, whole) in fewer.iter().zip(&whole) {
                    assert_eq!(fewer[..], whole[..k.min(N_LABELS)], "{name}, {k} labels");
                }
            }
            let (mut answer, mut scratch) = (Answer::default(), Scratch::default());
            for (i, whole) in whole.iter().enumerate() {
                let query = queries.view().row(i);
                model.predict(&query, &QueryOptions::top(7), &mut scratch, &mut answer).unwrap();
                assert_eq!(answer.labels, whole[..7], "{name}, row {i}");
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            let many = pool.install(|| ask(&model, queries.view(), &QueryOptions::top(N_LABELS)));
            assert_eq!(many, whole, "{name}: three threads");
        }
    }
}

#[test]
fn labels_of_the_first_list_have_the_same_scores_as_candidates() {
    for (name, ..) in MODELS {
        let (model, queries) = (TRAINED.raw(name), queries(name));
        let whole = ask(&model, queries.view(), &QueryOptions::top(AGAIN));
        let lists = LabelRows::from_lists(
            whole.iter().map(|row| row.iter().step_by(2).map(|s| s.label).collect::<Vec<_>>()),
            N_LABELS,
        )
        .unwrap();
        let candidates = Candidates::ByQuery { rows: &lists, first: 0 };
        let some = ask(&model, queries.view(), &QueryOptions { candidates, ..QueryOptions::top(AGAIN) });
        for (i, (some, whole)) in some.iter().zip(&whole).enumerate() {
            let expected: Vec<Scored> = whole.iter().step_by(2).copied().collect();
            assert_eq!(some, &expected, "{name}, row {i}");
            // Alone.
            let (mut answer, labels) = (Answer::default(), lists.row(i));
            let options = QueryOptions { candidates: Candidates::Labels(labels), ..QueryOptions::top(AGAIN) };
            model.predict(&queries.view().row(i), &options, &mut Scratch::default(), &mut answer).unwrap();
            assert_eq!(answer.labels, expected, "{name}, row {i}");
        }
        // All of them: what no list says.
        let every: Vec<LabelId> = (0..N_LABELS as u32).collect();
        let options = QueryOptions { candidates: Candidates::Labels(&every), ..QueryOptions::top(AGAIN) };
        assert_eq!(ask(&model, queries.view(), &options), whole, "{name}");
    }
}

#[test]
fn excluded_labels_leave_the_others_as_they_are() {
    for (name, ..) in MODELS {
        let (model, queries) = (TRAINED.raw(name), queries(name));
        let whole = ask(&model, queries.view(), &QueryOptions::top(N_LABELS));
        let lists: Vec<Vec<LabelId>> = whole.iter().map(|row| vec![row[0].label, row[2].label]).collect();
        let rows = LabelRows::from_lists(&lists, N_LABELS).unwrap();
        let exclude = Excluded::ByQuery { rows: &rows, first: 0 };
        let rest = ask(&model, queries.view(), &QueryOptions { exclude, ..QueryOptions::top(5) });
        for ((rest, whole), excluded) in rest.iter().zip(&whole).zip(&lists) {
            let expected: Vec<Scored> =
                whole.iter().filter(|s| !excluded.contains(&s.label)).take(5).copied().collect();
            assert_eq!(rest, &expected, "{name}");
        }
    }
}

#[test]
fn with_an_index_of_labels_those_that_it_finds_have_their_scores() {
    for name in ["bce", "softmax", "astra", "dense"] {
        let (place, queries) = (TRAINED.place(&format!("{name}.indexed")), queries(name));
        Model::open(TRAINED.place(name)).unwrap().change(&Default::default()).unwrap().save(&place).unwrap();
        let model = Model::open(&place).unwrap();
        let index = model.build_index(Some(queries.view()), &label_index_params(), &Silent).unwrap();
        model.save_index(&index, None).unwrap();
        let open = |index| {
            let options = OpenOptions { post_processor: Some("noop".to_owned()), index, ..OpenOptions::default() };
            Model::open_with(&place, &options).unwrap()
        };
        let exact = ask(&open(UseIndex::Never), queries.view(), &QueryOptions::top(N_LABELS));
        let indexed = open(UseIndex::Fresh);
        let found = ask(&indexed, queries.view(), &QueryOptions::top(5));
        let mut same = 0;
        for (i, (found, exact)) in found.iter().zip(&exact).enumerate() {
            let exact: BTreeMap<LabelId, f32> = exact.iter().map(|s| (s.label, s.score)).collect();
            // A softmax compares what was found: logits are higher by the same number.
            let higher: Vec<f32> = found.iter().map(|s| s.score - exact[&s.label]).collect();
            let bound = if name == "softmax" { higher[0] } else { 0.0 };
            assert!(higher.iter().all(|h| (h - bound).abs() < 1e-4), "{name}, row {i}: {higher:?}");
            assert!(found.windows(2).all(|w| w[0].score >= w[1].score), "{name}, row {i}");
            same +=
                usize::from(exact.iter().all(|(label, z)| *z <= exact[&found[0].label] || *label == found[0].label));
        }
        assert!(same * 10 >= 9 * found.len(), "{name}: the best label of {same} of {} queries", found.len());
    }
}

#[test]
fn a_text_without_a_known_word_is_answered_as_without_a_term() {
    let (model, network) = (TRAINED.raw("text"), TRAINED.network("text"));
    let queries = ["nothing of it", ""];
    let answer = |model: &Model| {
        let answers = model.predict_batch(Rows::texts(&queries), &QueryOptions::top(5)).unwrap();
        (answers.ranked.iter().map(<[Scored]>::len).collect::<Vec<_>>(), answers.known_terms)
    };
    assert_eq!(answer(&model), (vec![0, 0], vec![0, 0]));
    assert_eq!(answer(&model), answer(&network));
}

#[test]
fn network_bias_and_parts_of_an_explanation_are_the_raw_score() {
    for (name, ..) in MODELS {
        let (raw, queries) = (TRAINED.raw(name), queries(name));
        let network = TRAINED.network(name);
        let made = raw.features(queries.view()).unwrap();
        for (i, best) in ask(&raw, queries.view(), &QueryOptions::top(4)).iter().enumerate() {
            let query = queries.view().row(i);
            for s in best {
                let explained = raw.explain(&query, s.label, &ExplainOptions::default()).unwrap();
                let wide = explained.wide.unwrap();
                assert!((wide.logit() - s.score).abs() < 1e-5, "{name}, row {i}: {wide:?}, score {}", s.score);
                let sum = wide.parts.iter().map(|(_, part)| part).sum::<f32>() + wide.bias + wide.network;
                assert!((sum - s.score).abs() < 1e-5 && (explained.score - s.score).abs() < 1e-5, "{name}, row {i}");
                assert!(wide.parts.windows(2).all(|w| w[0].0 < w[1].0), "{name}, row {i}");
                let row = made.view().row(i).sparse().unwrap();
                assert!(wide.parts.iter().all(|(feature, _)| row.indices().contains(feature)), "{name}, row {i}");
                // The logit is the network's own, as without a term.
                let alone = network.explain(&query, s.label, &ExplainOptions::default()).unwrap();
                assert_eq!((explained.logit, alone.wide), (alone.logit, None), "{name}, row {i}");
            }
        }
    }
}
