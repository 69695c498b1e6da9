//! Explanations say what the model answers with and without a feature.

use crate::answers::MODELS;
use crate::folders::{self, Front, N_LABELS, WIDTH};
use rayon::ThreadPoolBuilder;
use std::sync::LazyLock;
use tempfile::TempDir;
use xc_ann::{BuildParams, Metric, Silent};
use xc_buffer::DType;
use xc_hash::text::Featurizer;
use xc_model::blend::DEPTH;
use xc_model::calibrate::{Calibration, Curve, Pair, Thresholds};
use xc_model::calibrate::{Method, ThresholdKind};
use xc_model::classifier::Classifier;
use xc_model::explain::{ExplainOptions, Explanation};
use xc_model::{Answer, Candidates, InputKind, Model, OpenOptions, QueryError, QueryOptions, Row, Rows, Scratch};
use xc_nn::Loss;
use xc_sparse::SparseRow;
use xc_sparse::rank::LabelId;

/// Kinds that the others lack.
static MORE: LazyLock<(TempDir, Vec<Model>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    folders::tree(&at("three-trees"), Front::Plain, 3);
    folders::tree(&at("three-weighted-trees"), Front::Weights, 3);
    folders::astra(&at("astra"), Front::Text);
    folders::lns(&at("index"), Front::Plain, Loss::Bce, DType::F32);
    let model = Model::open(at("index")).unwrap();
    let index = model.build_index(None, &BuildParams::new(Metric::InnerProduct), &Silent).unwrap();
    model.save_index(&index, None).unwrap();
    folders::tree(&at("plain"), Front::Text, 1);
    let pairs: Vec<Pair> =
        (1..100u32).map(|i| Pair { label: 0, score: i as f32 / 100.0, is_true: i % 7 < i / 20 }).collect();
    let thresholds = Thresholds { micro: 0.5, macro_: 0.5, by_label: vec![0.5; N_LABELS] };
    let calibration = Calibration { curve: Curve::fit(&pairs, Method::Platt), thresholds, top_k: 10 };
    Model::open(at("plain")).unwrap().save_calibrated(&calibration, &at("calibrated")).unwrap();
    let names = ["three-trees", "three-weighted-trees", "astra", "index", "calibrated"];
    let models = names.map(|name| Model::open(at(name)).unwrap()).into();
    (folder, models)
});

/// A query, and whether its features were made before.
type Query<'a> = (Row<'a>, bool);

fn name(model: &Model) -> &str {
    model.folder().file_name().unwrap().to_str().unwrap()
}

/// The score of a label for one query, among these labels.
fn score(model: &Model, query: Query<'_>, label: LabelId, among: &[LabelId]) -> f32 {
    let options = QueryOptions::top(among.len().min(DEPTH));
    let options = QueryOptions { made: query.1, candidates: Candidates::Labels(among), ..options };
    let mut answer = Answer::default();
    model.predict(&query.0, &options, &mut Scratch::default(), &mut answer).unwrap();
    answer.labels.iter().find(|s| s.label == label).map_or(0.0, |s| s.score)
}

fn best(model: &Model, query: Query<'_>, k: usize) -> Vec<LabelId> {
    let mut answer = Answer::default();
    model
        .predict(
            &query.0,
            &QueryOptions { made: query.1, ..QueryOptions::top(k) },
            &mut Scratch::default(),
            &mut answer,
        )
        .unwrap();
    answer.labels.iter().map(|s| s.label).collect()
}

fn explain(model: &Model, query: Query<'_>, label: LabelId, n_features: usize) -> Explanation {
    model.explain(&query.0, label, &ExplainOptions { made: query.1, n_features, raw: false }).unwrap()
}

/// Calls `check` with some queries of every model but blends: each with its row as the model makes it.
fn each_query(mut check: impl FnMut(&Model, Query<'_>, Query<'_>)) {
    let (texts, rows) = (folders::texts(), folders::rows(6));
    let vectors: Vec<f32> = (0..6 * WIDTH).map(|i| (i * 37 % 17) as f32 / 8.0 - 1.0).collect();
    let models = MODELS.1.iter().chain(&MORE.1).filter(|model| model.describe().kind != "blend");
    for model in models {
        for i in 0..6 {
            let text = [&*texts[i * 5]];
            let row = rows.slice(i..i + 1);
            match (model.describe().takes, model.pipeline()) {
                (InputKind::Dense, _) => {
                    let query = (Row::Dense(&vectors[i * WIDTH..][..WIDTH]), false);
                    check(model, query, query);
                }
                (InputKind::Text, _) => {
                    let made = model.features(Rows::texts(&text)).unwrap();
                    check(model, (Row::Text(text[0]), false), (made.view().row(0), true));
                }
                (InputKind::Sparse, _) => {
                    let made = model.features(Rows::Sparse(row)).unwrap();
                    let query = (Row::Sparse(row.row(0)), false);
                    check(model, query, (made.view().row(0), true));
                }
                (InputKind::Tokens, _) => panic!("a model of tokens without texts"),
            }
        }
    }
}

/// A query without some features, or coordinates.
fn without<T>(query: Query<'_>, out: &[u32], work: impl FnOnce(Query<'_>) -> T) -> T {
    match query.0 {
        Row::Dense(values) => {
            let mut values = values.to_vec();
            out.iter().for_each(|&at| values[at as usize] = 0.0);
            work((Row::Dense(&values), false))
        }
        Row::Sparse(row) => {
            let kept = row.indices().iter().zip(row.values()).filter(|(feature, _)| !out.contains(feature));
            let (indices, values): (Vec<u32>, Vec<f32>) = kept.unzip();
            let row = SparseRow::from_checked(&indices, &values);
            work((Row::Sparse(row), query.1))
        }
        Row::Text(_) | Row::Tokens(_) => unreachable!("a row that was made"),
    }
}

#[test]
fn effects_are_what_predict_answers_with_and_without_the_feature() {
    let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let (mut n_models, mut n_effects, mut moved) = (Vec::new(), 0, 0);
    each_query(|model, query, made| {
        n_models.push(name(model).to_owned());
        for label in best(model, query, 2) {
            let explained = explain(model, query, label, 200);
            let name = name(model);
            assert_eq!(explained, pool.install(|| explain(model, query, label, 200)), "{name}");
            let whole = score(model, query, label, &[label]);
            assert_eq!((explained.score, explained.others), (whole, None), "{name}");
            for effect in &explained.effects {
                let number = effect.feature.number.unwrap();
                let rest = without(made, &[number], |made| score(model, made, label, &[label]));
                assert_eq!(effect.score, whole - rest, "{name}: feature {number}");
                moved += usize::from(effect.score != 0.0);
            }
            n_effects += explained.effects.len();
            // Those with the smallest values together.
            let two = explain(model, query, label, 2);
            let others = two.others.unwrap();
            assert_eq!((two.effects.len(), others.n), (2, explained.effects.len() - 2), "{name}");
            let kept = |number: u32| two.effects.iter().any(|effect| effect.feature.number == Some(number));
            let gone = explained.effects.iter().filter_map(|effect| effect.feature.number).filter(|n| !kept(*n));
            let rest = without(made, &gone.collect::<Vec<_>>(), |made| score(model, made, label, &[label]));
            assert_eq!(others.score, whole - rest, "{name}");
        }
    });
    n_models.dedup();
    assert!(n_models.len() >= 16 && moved > n_effects / 2, "{n_models:?}: {moved} of {n_effects}");
}

#[test]
fn a_blend_ranks_the_candidates_of_the_whole_query() {
    let [blend, mach, tree] =
        ["blend-logistic", "mach", "tree"].map(|wanted| MODELS.1.iter().find(|model| name(model) == wanted).unwrap());
    let rows = folders::rows(12);
    let mut compared = 0;
    for i in 0..rows.rows() {
        let query = (Row::Sparse(rows.row(i)), false);
        for label in best(blend, query, 3) {
            let explained = explain(blend, query, label, 200);
            let mut fixed = vec![label];
            [mach, tree].iter().for_each(|member| fixed.extend(best(member, query, DEPTH)));
            let whole = score(blend, query, label, &fixed);
            assert_eq!(explained.score, whole);
            assert_eq!(whole, score(blend, query, label, &(0..N_LABELS as u32).collect::<Vec<_>>()));
            for effect in &explained.effects {
                let number = effect.feature.number.unwrap();
                let rest = without(query, &[number], |query| score(blend, query, label, &fixed));
                // The last of many candidates have no place in an answer.
                if rest > 0.0 {
                    assert_eq!(effect.score, whole - rest, "row {i}, label {label}, feature {number}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 60, "{compared}");
    // Members of a blend may make rows of their own; terms of texts are shared.
    for wanted in ["blend", "blend-text"] {
        let blend = MODELS.1.iter().find(|model| name(model) == wanted).unwrap();
        let query = if wanted == "blend" { Row::Sparse(rows.row(3)) } else { Row::Text("alpha3 beta1 gamma2") };
        let query = (query, false);
        let label = best(blend, query, 1)[0];
        let explained = explain(blend, query, label, 200);
        let terms: Vec<_> = explained.effects.iter().filter_map(|effect| effect.feature.term.as_deref()).collect();
        assert_eq!(explained.effects.len(), 3, "{explained:?}");
        assert_eq!(terms.len(), if wanted == "blend" { 0 } else { 3 }, "{explained:?}");
        assert!(explained.effects.iter().any(|effect| effect.score != 0.0));
    }
}

#[test]
fn networks_have_logits_and_trees_parts_that_sum_to_their_margins() {
    let (mut logits, mut sums) = (0, 0);
    each_query(|model, query, made| {
        let name = name(model);
        let label = best(model, query, 1)[0];
        let explained = explain(model, query, label, 200);
        assert_eq!(explained.logit.is_some(), model.as_kind::<Classifier>().is_some(), "{name}");
        assert_eq!(explained.paths.is_empty(), model.describe().kind != "tree", "{name}");
        if let Some(logit) = explained.logit {
            let options = OpenOptions { post_processor: Some("noop".into()), ..OpenOptions::default() };
            let raw = Model::open_with(model.folder(), &options).unwrap();
            let all: Vec<LabelId> = (0..N_LABELS as u32).collect();
            let close = |a: f32, b: f32| assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{name}: {a}, {b}");
            let with = |query: Query<'_>| {
                let options = QueryOptions { candidates: Candidates::Labels(&all), ..QueryOptions::top(N_LABELS) };
                let (options, mut answer) = (QueryOptions { made: query.1, ..options }, Answer::default());
                raw.predict(&query.0, &options, &mut Scratch::default(), &mut answer).unwrap();
                answer.labels.iter().find(|s| s.label == label).unwrap().score
            };
            close(logit, with(query));
            for effect in &explained.effects {
                let rest = without(made, &[effect.feature.number.unwrap()], with);
                close(effect.logit.unwrap(), logit - rest);
                logits += 1;
            }
        }
        for node in explained.paths.iter().flatten() {
            let sum = f64::from(node.bias) + node.parts.iter().map(|part| f64::from(part.1)).sum::<f64>();
            assert!((sum - f64::from(node.margin)).abs() < 1e-5, "{name}: {sum}, {node:?}");
            sums += 1;
        }
    });
    assert!(logits > 100 && sums > 50, "{logits} logits, {sums} margins");
}

#[test]
fn features_have_terms_where_the_pipeline_knows_them() {
    let model = MODELS.1.iter().find(|model| name(model) == "tree-text").unwrap();
    let Some(Featurizer::Text(pipeline)) = model.pipeline() else { panic!("a model of text") };
    let explained = explain(model, (Row::Text("alpha3 delta beta3"), false), 3, 200);
    assert!(!explained.effects.is_empty());
    for effect in &explained.effects {
        let feature = &effect.feature;
        assert_eq!(feature.term.as_deref(), pipeline.term(feature.number.unwrap()));
        assert!(!feature.hashed && feature.value > 0.0);
    }
    assert_eq!(explained.effects[0].feature.term.as_deref(), Some("alpha3"));
    let options = ExplainOptions::default();
    let unknown = model.explain(&Row::Text("alpha3"), N_LABELS as u32, &options);
    assert_eq!(unknown, Err(QueryError::Label { label: N_LABELS as u32, n_labels: N_LABELS }));
    assert!(matches!(model.explain(&Row::Dense(&[1.0]), 0, &options), Err(QueryError::Input { .. })));
    // Of a calibrated model, probabilities or its own scores.
    let model = MORE.1.iter().find(|model| name(model) == "calibrated").unwrap();
    let of = |raw| model.explain(&Row::Text("alpha3"), 3, &ExplainOptions { raw, ..options }).unwrap().score;
    assert!(model.describe().calibrated && of(true) != of(false));
    assert_eq!(model.calibration().unwrap().thresholds.of(ThresholdKind::Micro, 3), 0.5);
}
