//! Fits compared with their definitions.

use super::*;
use rayon::ThreadPoolBuilder;
use xc_sparse::rank::rank_order;

const N_LABELS: u32 = 50;

struct Never;

impl Cancel for Never {}

/// Answers of a member that sees the true labels through noise of this size.
fn member(truth: &LabelRows, noise: f32, seed: u64) -> RankedBatch {
    let (mut stream, mut out) = (Stream::new(seed), RankedBatch::new());
    for labels in truth.iter() {
        let mut values = vec![0.0; N_LABELS as usize];
        stream.fill_uniform(noise, &mut values);
        let score = |(label, value): (u32, &f32)| {
            let z = value + if labels.contains(&label) { 1.0 } else { -1.0 };
            Scored { label, score: 1.0 / (1.0 + (-z).exp()) }
        };
        let mut row: Vec<Scored> = (0..).zip(&values).map(score).collect();
        row.sort_by(|&a, &b| rank_order(a, b));
        row.truncate(DEPTH + 5);
        out.push_row(&row);
    }
    out
}

fn truth(n: u32, seed: u32) -> LabelRows {
    let label = |i: u32, times: u32| (i * times + seed) % N_LABELS;
    let rows = (0..n).map(|i| if i % 5 == 0 { vec![label(i, 7)] } else { vec![label(i, 3) / 2, 25 + label(i, 3) / 2] });
    LabelRows::from_lists(rows, N_LABELS as usize).unwrap()
}

fn quick(rule: Option<RuleKind>) -> FitParams {
    FitParams { rule, folds: 2, networks: 2, epochs: 8, ..FitParams::default() }
}

/// Ranked lists of some rows.
fn ranked(fitted: &FittedRule, answers: &[RankedBatch]) -> RankedBatch {
    let rows = (0..answers[0].len()).map(|row| answers.iter().map(|of| of.row(row)).collect::<Vec<_>>());
    let (rows, mut out) = (rows.collect::<Vec<_>>(), RankedBatch::new());
    let lists = rows.iter().map(|lists| &lists[..]);
    fitted.rule.rank(&fitted.features, lists, &mut RuleScratch::default(), |row| out.push_row(row));
    out
}

fn p1(truth: &LabelRows, answers: &RankedBatch) -> f64 {
    metrics(truth, answers).unwrap().value(Metric::Precision(1)).unwrap()
}

#[test]
fn a_blend_is_better_than_its_members_on_rows_that_it_has_not_seen() {
    let (held_out, test) = (truth(400, 1), truth(400, 3));
    let answers = |of: &LabelRows, seed| [member(of, 2.0, seed), member(of, 2.5, seed + 1)];
    let fitted = fit(&answers(&held_out, 1), &held_out, &[9; 50], &quick(None), &Never).unwrap();
    let seen = answers(&test, 5);
    let blended = ranked(&fitted, &seen);
    assert_eq!(blended.check(), Ok(()));
    let best = p1(&test, &seen[0]).max(p1(&test, &seen[1]));
    assert!(p1(&test, &blended) > best + 0.05, "{} beside {best}", p1(&test, &blended));
    assert!(fitted.judged.iter().all(|judged| judged.calibration_error < 0.03), "{:?}", fitted.judged);
    assert_eq!((fitted.judged.len(), fitted.members.len(), fitted.below), (4, 2, None));
}

#[test]
fn the_same_bits_at_any_number_of_threads_and_for_a_row_alone() {
    let rows = truth(50, 2);
    let answers = [member(&rows, 2.0, 1), member(&rows, 3.0, 2)];
    let is_the_same = |rule: RuleKind| {
        let of_threads = [1, 3].map(|n| {
            let pool = ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| {
                let fitted = fit(&answers, &rows, &[9; 50], &quick(Some(rule)), &Never).unwrap();
                assert_eq!(fitted.rule.kind(), rule);
                let all = ranked(&fitted, &answers);
                let alone = |row| {
                    let alone = answers.each_ref().map(|of| {
                        let mut one = RankedBatch::new();
                        one.push_row(of.row(row));
                        one
                    });
                    ranked(&fitted, &alone).row(0).to_vec()
                };
                assert!((0..rows.len()).step_by(17).all(|row| alone(row) == all.row(row)));
                all
            })
        });
        assert_eq!(of_threads[0], of_threads[1], "{rule}");
    };
    std::thread::scope(|scope| {
        for rule in RuleKind::ALL {
            scope.spawn(move || is_the_same(rule));
        }
    });
}

/// Loss of a linear function of the features, in f64, and its gradient.
fn loss_of(weights: &[f64], rows: &[f32], targets: &LabelRows) -> (f64, Vec<f64>) {
    let n = weights.len() - 1;
    let (mut loss, mut gradient) = (0.0, vec![0.0; n + 1]);
    for (row, target) in rows.chunks_exact(n).zip(targets.iter()) {
        let z = row.iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + weights[n];
        let (p, y) = (1.0 / (1.0 + (-z).exp()), if target.is_empty() { 0.0 } else { 1.0 });
        loss -= if y > 0.0 { p.ln() } else { (1.0 - p).ln() };
        row.iter().zip(&mut gradient).for_each(|(x, g)| *g += (p - y) * f64::from(*x));
        gradient[n] += p - y;
    }
    let scale = 1.0 / targets.len() as f64;
    (loss * scale, gradient.into_iter().map(|g| g * scale).collect())
}

#[test]
fn the_logistic_rule_comes_near_the_least_loss_of_any() {
    let rows = truth(120, 4);
    let answers = [member(&rows, 2.0, 1), member(&rows, 3.0, 2)];
    let sample = Sample::new(&answers, &rows, &[9; 50]);
    let (values, n) = (&sample.values[..], sample.features.n());
    // The reference: gradient descent, with a gradient that finite differences confirm.
    let mut best = vec![0.0; n + 1];
    let (loss, gradient) = loss_of(&best, values, &sample.targets);
    for at in 0..=n {
        let mut moved = best.clone();
        moved[at] += 1e-5;
        let slope = (loss_of(&moved, values, &sample.targets).0 - loss) / 1e-5;
        assert!((slope - gradient[at]).abs() < 1e-4, "number {at}: {slope} beside {}", gradient[at]);
    }
    for _ in 0..1500 {
        let gradient = loss_of(&best, values, &sample.targets).1;
        best.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 0.5 * g);
    }
    let least = loss_of(&best, values, &sample.targets).0;
    let all = (0..sample.targets.len() as u32).collect();
    let rule = sample.learn(RuleKind::Logistic, all, &quick(None), &Never).unwrap();
    let Rule::Network(networks) = &rule else { panic!("a logistic rule is a network") };
    let parameters = networks[0].network().parameters();
    let weights: Vec<f64> =
        parameters.iter().flat_map(|p| p.parameter.values()).map(|&value| f64::from(value)).collect();
    let got = loss_of(&weights, values, &sample.targets).0;
    assert!(got < 1.05 * least, "{got}, the least is about {least}");
}

#[test]
fn scores_of_a_net_are_those_of_the_definition() {
    let truth = truth(20, 4);
    let answers = [member(&truth, 2.0, 1)];
    let sample = Sample::new(&answers, &truth, &[9; 50]);
    let all = (0..sample.targets.len() as u32).collect();
    let params = FitParams { networks: 1, hidden: 5, ..quick(None) };
    let rule = sample.learn(RuleKind::Net, all, &params, &Never).unwrap();
    let Rule::Network(networks) = &rule else { panic!("a net is a network") };
    let parameters = networks[0].network().parameters();
    let values = |name: &str| parameters.iter().find(|p| p.name == name).unwrap().parameter.values();
    let [weights, bias] = [values("layer1.weights"), values("layer1.bias")];
    for row in 0..truth.len() {
        let (lists, mut labels, mut features) = ([answers[0].row(row)], Vec::new(), Vec::new());
        sample.features.fill(&lists, &mut Default::default(), &mut labels, &mut features);
        let score = |row: &[f32]| {
            let unit = |(weights, bias): (&[f32], &f32)| {
                (weights.iter().zip(row).map(|(w, x)| f64::from(w * x)).sum::<f64>() + f64::from(*bias)).max(0.0)
            };
            let hidden = weights.chunks_exact(row.len()).zip(bias).map(unit);
            let logit = hidden.zip(values("head.weights")).map(|(h, w)| h * f64::from(*w)).sum::<f64>();
            1.0 / (1.0 + (-logit - f64::from(values("head.bias")[0])).exp())
        };
        let expected: Vec<f64> = features.chunks_exact(sample.features.n()).map(score).collect();
        rule.rank(&sample.features, std::iter::once(&lists[..]), &mut RuleScratch::default(), |best| {
            assert_eq!(best.len(), labels.len());
            for s in best {
                let expected = expected[labels.binary_search(&s.label).unwrap()];
                assert!((expected - f64::from(s.score)).abs() < 1e-4, "{}, expected {expected}", s.score);
            }
        });
    }
}

#[test]
fn the_line_of_reciprocal_ranks_has_no_slope_in_its_loss() {
    let points: Vec<(f64, bool)> = (0..200).map(|i| (f64::from(i % 20) / 20.0, i * i % 23 < i % 20)).collect();
    let loss = |[slope, bias]: [f64; 2]| {
        let of = |&(x, is_true): &(f64, bool)| {
            let z = slope * x + bias;
            (1.0 + z.exp()).ln() - if is_true { z } else { 0.0 }
        };
        points.iter().map(of).sum::<f64>() + 0.5e-3 * slope * slope
    };
    let best = line(&points);
    assert!(best[0] > 1.0, "{best:?}");
    for at in 0..2 {
        let moved = |by: f64| {
            let mut moved = best;
            moved[at] += by;
            loss(moved)
        };
        assert!(((moved(1e-4) - moved(-1e-4)) / 2e-4).abs() < 1e-4, "{best:?}");
    }
    // A sum that separates the candidates completely, and one that does not at all.
    let steep = line(&[(0.1, false), (0.2, false), (0.8, true), (0.9, true)]);
    assert!(steep[0] > 10.0 && steep.iter().all(|v| v.is_finite()), "{steep:?}");
    assert!(line(&[(0.5, true), (0.5, false)])[0].abs() < 1e-6);
}

#[test]
fn what_cannot_be_fitted_says_why() {
    let rows = truth(20, 1);
    let good = member(&rows, 1.0, 1);
    let said = |answers: &RankedBatch, rows: &LabelRows, params: &FitParams| {
        fit(std::slice::from_ref(answers), rows, &[1; 50], params, &Never).unwrap_err().to_string()
    };
    let none = LabelRows::from_lists(vec![Vec::<u32>::new(); 20], 50).unwrap();
    assert_eq!(said(&good, &none, &quick(None)), "0 rows with labels; at least 2 are expected");
    let mut empty = RankedBatch::new();
    (0..20).for_each(|_| empty.push_row(&[]));
    let expected = "no candidate is true: no member has a true label among its 30 best";
    assert_eq!(said(&empty, &rows, &quick(None)), expected);
    let mut right = RankedBatch::new();
    rows.iter().for_each(|labels| right.push_row(&[Scored { label: labels[0], score: 0.5 }]));
    let expected = "every candidate is true: there is nothing to tell apart";
    assert_eq!(said(&right, &rows, &quick(None)), expected);
    // A member that ranks the true label last.
    let mut wrong = RankedBatch::new();
    for labels in rows.iter() {
        let other = |i: u32| (labels[0] + 1 + i) % N_LABELS;
        let list = (0..9).map(other).filter(|label| !labels.contains(label)).chain([labels[0]]);
        wrong.push_items(list.enumerate().map(|(i, label)| Scored { label, score: 0.9 - 0.05 * i as f32 }));
    }
    let expected = "candidates are not more often true where their reciprocal ranks are larger";
    assert_eq!(said(&wrong, &rows, &quick(Some(RuleKind::ReciprocalRanks))), expected);
    let params = FitParams { folds: 1, ..quick(None) };
    assert_eq!(said(&good, &rows, &params), "folds 1; at least 2 is expected");
}

#[test]
fn losses_and_calibration_are_those_of_the_definitions() {
    let said = [(0.5, true), (0.5, false)];
    assert!((log_loss(&said) - 2f64.ln()).abs() < 1e-9);
    assert!(log_loss(&[(0.0, false), (1.0, true)]) < 1e-6 && log_loss(&[(1.0, false)]) > 10.0);
    // Groups of two: probabilities 0.25 with one of two true, and 1 with both true.
    let mut said: Vec<(f32, bool)> = [(0.25, false), (0.25, true), (1.0, true), (1.0, true)].repeat(5);
    assert!((calibration_error(&mut said) - 0.125).abs() < 1e-9);
    assert_eq!((log_loss(&[]), calibration_error(&mut [])), (0.0, 0.0));
}

#[test]
fn a_rule_below_a_member_is_taken_only_where_it_is_asked_for() {
    let rows = truth(400, 1);
    // One member knows, the other guesses: reciprocal ranks believe both.
    let answers = [member(&rows, 1.5, 1), member(&rows, 300.0, 2)];
    let asked = fit(&answers, &rows, &[9; 50], &quick(Some(RuleKind::ReciprocalRanks)), &Never).unwrap();
    let below = asked.below.unwrap();
    assert_eq!(
        (below.rule, below.member, asked.rule.kind()),
        (RuleKind::ReciprocalRanks, 0, RuleKind::ReciprocalRanks)
    );
    assert_eq!(below.of_member, precisions(&asked.members[0]));
    assert!(below.of_rule[0] < below.of_member[0] - 0.05, "{below:?}");
    let said = below.to_string();
    assert!(said.starts_with("reciprocal-ranks has P@1 ") && said.contains("that member alone P@1 "), "{said}");
    // Others are not below it, and one of them is chosen.
    let chosen = fit(&answers, &rows, &[9; 50], &quick(None), &Never).unwrap();
    assert!(chosen.below.is_none() && chosen.rule.kind() != RuleKind::ReciprocalRanks);
    let judged = chosen.judged.iter().find(|judged| judged.rule == chosen.rule.kind()).unwrap();
    let refused = Below::of(&Judged { of_rows: vec![0.0; 400], ..judged.clone() }, &chosen.members, &answers, &rows);
    let error = RuleFitError::Below(refused.unwrap()).to_string();
    assert!(error.starts_with("no rule ranks as well as member 0 alone: "), "{error}");
}
