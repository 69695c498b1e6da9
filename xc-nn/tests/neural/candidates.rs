//! A head of one row a label whose steps score what a sampler chooses: against plain sums in f64.

use crate::fixed::{Fixed, log_q};
use proptest::prelude::*;
use std::error::Error;
use xc_buffer::DType;
use xc_buffer::FloatBuffer;
use xc_dense::MatmulPrecision;
use xc_nn::head::{Dense, Ranked, Sampled, SampledParams, SampledScratch};
use xc_nn::sampler::{Drawn, Lists, Weighting};
use xc_nn::state::{Snapshot, State};
use xc_nn::{Activations, Decay, Head, Init, Loss, Mode, Optimizer, Parameter, Step, Targets, Update, UpdateRule};

/// A batch, a layer and lists.
#[derive(Clone, Debug)]
struct Case {
    n_labels: usize,
    width: usize,
    x: Vec<f32>,
    w: Vec<f32>,
    b: Vec<f32>,
    targets: Vec<Vec<u32>>,
    lists: Vec<Vec<(u32, f32, f32)>>,
}

impl Case {
    fn n(&self) -> usize {
        self.targets.len()
    }

    fn input(&self) -> Activations {
        let mut input = Activations::default();
        input.reshape(self.n(), self.width);
        input.values_mut().copy_from_slice(&self.x);
        input
    }

    fn head(&self, lists: Lists, rows: DType, with_sampler: bool) -> Sampled {
        let params = SampledParams { rows, precision: MatmulPrecision::F32, lists };
        let weights = FloatBuffer::nearest(rows, self.w.iter().copied());
        let head = Sampled::from_parts(weights, self.width, Parameter::new(self.b.clone(), 1, Decay::No), params);
        let sampler = Fixed { lists: self.lists.clone(), has_rows: true, ..Fixed::default() };
        head.with_sampler(with_sampler.then(|| Box::new(sampler) as _))
    }

    /// One step of plain descent at rate 1: loss, gradient of the input, and the layer afterwards.
    fn step(&self, mut head: Sampled, loss: Loss, by_parts: bool) -> (f64, Vec<f32>, Sampled) {
        let (instances, ptr, labels) = flat(&self.targets);
        let targets = Targets::new(&instances, &ptr, &labels);
        let (input, mut gradient, mut scratch) = (self.input(), Activations::default(), SampledScratch::default());
        let update = update(Optimizer::sgd(), 1.0, 3);
        let value = if by_parts {
            let value = head.loss(&input, targets, loss, Mode::Train(update.at), &mut scratch).unwrap();
            head.backward(&mut gradient, &mut scratch).unwrap();
            head.update(&input, &mut scratch, &update).unwrap();
            value
        } else {
            head.step(&input, targets, loss, &update, Some(&mut gradient), &mut scratch).unwrap()
        };
        (value, gradient.values().to_vec(), head)
    }

    /// Which labels an instance scores, with what becomes of each where it is false: weight and log
    /// q, or that it is left out.
    fn scored(&self, i: usize, lists: Lists) -> Vec<(u32, f64, f64)> {
        let listed = |list: &[(u32, f32, f32)]| list.iter().map(|&(l, w, q)| (l, f64::from(w), f64::from(q))).collect();
        let mut out: Vec<(u32, f64, f64)> = match lists {
            Lists::Own => listed(&self.lists[i.min(self.lists.len() - 1)]),
            Lists::Shared => {
                let mut union: Vec<(u32, f64, f64)> = self.lists.iter().flat_map(|list| listed(list)).collect();
                union.sort_by_key(|item| item.0);
                union.dedup_by(|b, a| {
                    let same = a.0 == b.0;
                    if same {
                        (a.1, a.2) = (a.1.min(b.1), a.2.max(b.2));
                    }
                    same
                });
                union
            }
        };
        let others = match lists {
            Lists::Own => self.targets[i].clone(),
            Lists::Shared => self.targets.concat(),
        };
        for label in others {
            if out.iter().all(|item| item.0 != label) {
                out.push((label, 1.0, f64::INFINITY));
            }
        }
        out
    }

    /// Loss, and the gradients of input, weights and biases, by the definitions.
    fn reference(
        &self,
        loss: Loss,
        scored: impl Fn(usize) -> Vec<(u32, f64, f64)>,
    ) -> (f64, Vec<f64>, Vec<f64>, Vec<f64>) {
        let (d, n) = (self.width, self.n() as f64);
        let (mut total, mut dx) = (0.0, vec![0.0; self.x.len()]);
        let (mut dw, mut db) = (vec![0.0; self.w.len()], vec![0.0; self.b.len()]);
        for (i, positives) in self.targets.iter().enumerate() {
            let x = |at: usize| f64::from(self.x[i * d + at]);
            let w = |label: u32, at: usize| f64::from(self.w[label as usize * d + at]);
            let logit =
                |label: u32| (0..d).map(|at| x(at) * w(label, at)).sum::<f64>() + f64::from(self.b[label as usize]);
            let scored = scored(i);
            let corrected: Vec<(u32, bool, f64, f64)> = scored
                .iter()
                .map(|&(label, weight, q)| {
                    let is_true = positives.contains(&label);
                    let shift = match loss {
                        Loss::Softmax if !is_true => q,
                        Loss::Nce => {
                            if is_true {
                                f64::from(log_q(label))
                            } else {
                                q
                            }
                        }
                        _ => 0.0,
                    };
                    let weight = if is_true || loss == Loss::Nce { 1.0 } else { weight };
                    (label, is_true, weight, logit(label) - shift)
                })
                .collect();
            let sum: f64 = corrected.iter().map(|item| item.3.exp()).sum();
            let share = 1.0 / positives.len() as f64;
            if loss == Loss::Softmax && !positives.is_empty() {
                total += sum.ln() / n;
            }
            for (label, is_true, weight, z) in corrected {
                let y = if is_true { 1.0 } else { -1.0 };
                let (cost, slope) = match loss {
                    Loss::Softmax if positives.is_empty() => (0.0, 0.0),
                    Loss::Softmax if is_true => (-z * share, z.exp() / sum - share),
                    Loss::Softmax => (0.0, z.exp() / sum),
                    Loss::Bce | Loss::Nce => (weight * (-y * z).exp().ln_1p(), -weight * y / ((y * z).exp() + 1.0)),
                    Loss::SquaredHinge | Loss::Own(_) => {
                        let slack = (1.0 - y * z).max(0.0);
                        (weight * slack * slack, -2.0 * weight * y * slack)
                    }
                };
                total += cost / n;
                db[label as usize] += slope / n;
                for at in 0..d {
                    dx[i * d + at] += slope / n * w(label, at);
                    dw[label as usize * d + at] += slope / n * x(at);
                }
            }
        }
        (total, dx, dw, db)
    }
}

fn update(optimizer: Optimizer, rate: f64, number: u64) -> Update {
    Update::new(Step { number, epoch: 0, seed: 5 }, UpdateRule { optimizer, rate }, 1.0)
}

fn flat(targets: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut ptr = vec![0];
    targets.iter().for_each(|row| ptr.push(ptr.last().unwrap() + row.len() as u32));
    ((0..targets.len() as u32).collect(), ptr, targets.concat())
}

fn close(what: &str, got: impl IntoIterator<Item = f32>, expected: &[f64]) -> Result<(), TestCaseError> {
    let got: Vec<f32> = got.into_iter().collect();
    prop_assert_eq!(got.len(), expected.len());
    for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        prop_assert!(
            (f64::from(got) - expected).abs() < 2e-5 * expected.abs().max(1.0),
            "{} {}: {}, expected {}",
            what,
            at,
            got,
            expected
        );
    }
    Ok(())
}

fn labels(n: usize, most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::btree_set(0..n as u32, 0..=most.min(n)).prop_map(|set| set.into_iter().collect())
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1usize..40, prop::sample::select(vec![1usize, 3, 16, 33]), 1usize..8, any::<bool>());
    sizes.prop_flat_map(|(n_labels, width, n, one_list)| {
        let values = |len| prop::collection::vec(-1.0f32..1.0, len);
        let item = (0.25f32..4.0, -3.0f32..0.0);
        let list = labels(n_labels, 12).prop_flat_map(move |labels| {
            let n = labels.len();
            (Just(labels), prop::collection::vec(item.clone(), n))
        });
        let list = list.prop_map(|(labels, of)| labels.into_iter().zip(of).map(|(l, (w, q))| (l, w, q)).collect());
        let n_lists = if one_list { 1 } else { n };
        let (targets, lists) = (prop::collection::vec(labels(n_labels, 4), n), prop::collection::vec(list, n_lists));
        (values(n * width), values(n_labels * width), values(n_labels), targets, lists)
            .prop_map(move |(x, w, b, targets, lists)| Case { n_labels, width, x, w, b, targets, lists })
    })
}

/// Steps whose labels are one list, a list for each, or all: loss, gradients and changed rows.
fn check(
    case: &Case,
    loss: Loss,
    lists: Option<Lists>,
    by_parts: bool,
    tile: Option<usize>,
) -> Result<(), TestCaseError> {
    // A list made of several has no chances of true labels.
    if loss == Loss::Nce && (lists.is_none() || (lists == Some(Lists::Shared) && case.lists.len() > 1)) {
        return Ok(());
    }
    let mut head = case.head(lists.unwrap_or_default(), DType::F32, lists.is_some());
    if let Some(tile) = tile {
        head = head.with_tile(tile);
    }
    let all = |_| (0..case.n_labels as u32).map(|label| (label, 1.0, 0.0)).collect();
    let expected = match lists {
        Some(lists) => case.reference(loss, |i| case.scored(i, lists)),
        None => case.reference(loss, all),
    };
    let (value, gradient, after) = case.step(head, loss, by_parts);
    let (total, dx, dw, db) = expected;
    prop_assert!((value - total).abs() < 2e-5 * total.abs().max(1.0), "loss {}, expected {}", value, total);
    close("input", gradient, &dx)?;
    let mut row = Vec::new();
    let rows = (0..case.n_labels as u32).flat_map(|label| after.weights().row(label, &mut row).to_vec());
    close("weights", rows.zip(&case.w).map(|(after, before)| before - after), &dw)?;
    close("biases", case.b.iter().zip(after.bias().values()).map(|(before, after)| before - after), &db)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_step_over_lists_or_all_labels_is_what_the_definitions_say(
        case in cases(),
        loss in prop::sample::select(Loss::ALL.to_vec()),
        lists in prop::sample::select(vec![None, Some(Lists::Shared), Some(Lists::Own)]),
        by_parts in any::<bool>(),
        tile in prop::sample::select(vec![None, Some(1), Some(5), Some(100)]),
    ) {
        check(&case, loss, lists, by_parts, tile)?;
    }

    #[test]
    fn rows_in_bf16_are_rounded_to_a_neighbour_of_what_f32_would_be(case in cases(), lists in prop::sample::select(vec![Lists::Shared, Lists::Own])) {
        let mut exact = case.clone();
        let narrow = FloatBuffer::nearest(DType::Bf16, case.w.iter().copied());
        exact.w = (0..narrow.len()).map(|at| narrow.get(at)).collect();
        let (_, _, narrow) = case.step(case.head(lists, DType::Bf16, true), Loss::Bce, false);
        let (_, _, wide) = exact.step(exact.head(lists, DType::F32, true), Loss::Bce, false);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for label in 0..case.n_labels as u32 {
            for (a, b) in narrow.weights().row(label, &mut a).iter().zip(wide.weights().row(label, &mut b)) {
                prop_assert!((a - b).abs() <= b.abs() * 2f32.powi(-7), "label {}: {} for {}", label, a, b);
            }
        }
    }

    #[test]
    fn a_sampler_hears_how_far_each_label_moved(case in cases(), lists in prop::sample::select(vec![Lists::Shared, Lists::Own]), tile in prop::sample::select(vec![None, Some(3)])) {
        let mut head = case.head(lists, DType::F32, true);
        if let Some(tile) = tile {
            head = head.with_tile(tile);
        }
        let before = head.clone();
        let (_, _, after) = case.step(head, Loss::Bce, false);
        // The debug form is the way to a sampler behind its trait.
        let heard = format!("{after:?}");
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for label in 0..case.n_labels as u32 {
            let (a, b) = (before.weights().row(label, &mut a), after.weights().row(label, &mut b));
            let squares: f32 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
            let bias = after.weights().bias(label) - before.weights().bias(label);
            let moved = (squares + bias * bias).sqrt();
            let got = heard.split_once("heard: [").unwrap().1.split("), (").find_map(|item| {
                let (of, length) = item.trim_start_matches(['(', '[']).split_once(", ")?;
                let length = length.split([')', ']']).next()?;
                (of.parse() == Ok(label)).then(|| length.parse::<f32>().unwrap())
            });
            match got {
                Some(got) => prop_assert!((got - moved).abs() < 1e-5, "label {}: {}, expected {}", label, got, moved),
                None => prop_assert_eq!(moved, 0.0, "label {} moved unheard", label),
            }
        }
    }
}

/// So many instances with up to three labels each.
fn large(n: usize, n_labels: usize, width: usize) -> Case {
    let value = |i: usize| ((i * 7919 + 13) % 211) as f32 / 105.0 - 1.0;
    let targets = (0..n).map(|i| {
        let mut row: Vec<u32> = (0..i % 4).map(|j| ((i * 31 + j * j * 77 + j) % n_labels) as u32).collect();
        row.sort_unstable();
        row.dedup();
        row
    });
    Case {
        n_labels,
        width,
        x: (0..n * width).map(value).collect(),
        w: (0..n_labels * width).map(|i| 0.2 * value(i + 5)).collect(),
        b: (0..n_labels).map(|i| 0.1 * value(i + 11)).collect(),
        targets: targets.collect(),
        lists: vec![(0..n_labels as u32).step_by(3).map(|label| (label, 1.5, -0.5)).collect()],
    }
}

/// Bytes of the state after some steps in a pool of threads; the head is copied through its state
/// half-way.
fn bytes(threads: usize, lists: Option<Lists>, rows: DType, loss: Loss, tile: Option<usize>, resumes: bool) -> Vec<u8> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let case = large(70, 2500, 33);
        let optimizer = if loss.is_separable() { Optimizer::row_adagrad() } else { Optimizer::adam() };
        let fresh = || {
            let params = SampledParams { rows, precision: MatmulPrecision::F32, lists: lists.unwrap_or_default() };
            let sampler = lists.map(|_| Box::new(Drawn::uniform(700).with_weighting(Weighting::LogQ)) as _);
            let mut head = Sampled::new(case.n_labels, case.width, params, 3).with_sampler(sampler);
            head.prepare(optimizer.moments());
            match tile {
                Some(tile) => head.with_tile(tile),
                None => head,
            }
        };
        let (mut head, mut scratch, mut gradient) = (fresh(), SampledScratch::default(), Activations::default());
        let (instances, ptr, labels) = flat(&case.targets);
        let targets = Targets::new(&instances, &ptr, &labels);
        let mut out = Vec::new();
        for number in 0..6 {
            if resumes && number == 3 {
                let state = Snapshot::of(&[&head]).unwrap();
                head = fresh();
                head.load(&state).unwrap();
                scratch = SampledScratch::default();
            }
            let update = update(optimizer, 0.01, number);
            let input = case.input();
            let value = head.step(&input, targets, loss, &update, Some(&mut gradient), &mut scratch).unwrap();
            assert!(value.is_finite());
            out.extend(value.to_le_bytes());
            out.extend(gradient.values().iter().flat_map(|v| v.to_le_bytes()));
        }
        head.visit(&mut |array| {
            out.extend_from_slice(array.bytes);
            Ok(())
        })
        .unwrap();
        out
    })
}

#[test]
fn threads_and_interruptions_do_not_change_a_bit() {
    let cases = [
        (Some(Lists::Shared), DType::F32, Loss::Softmax, None),
        (Some(Lists::Shared), DType::Bf16, Loss::Nce, None),
        (Some(Lists::Own), DType::F32, Loss::Bce, None),
        (Some(Lists::Own), DType::Bf16, Loss::Softmax, None),
        (None, DType::F32, Loss::Softmax, Some(1000)),
        (None, DType::Bf16, Loss::SquaredHinge, Some(300)),
        (None, DType::F32, Loss::Bce, None),
    ];
    for (lists, rows, loss, tile) in cases {
        let one = bytes(1, lists, rows, loss, tile, false);
        for (threads, resumes) in [(2, false), (3, true)] {
            let other = bytes(threads, lists, rows, loss, tile, resumes);
            assert!(one == other, "{lists:?} {rows} {loss}: {threads} threads, resumed: {resumes}");
        }
    }
}

#[test]
fn tiles_have_the_bits_of_the_whole_where_a_loss_adds_up_and_those_of_a_dense_head() {
    let case = large(40, 3000, 17);
    let dense = {
        let mut dense = Dense::new(case.n_labels, case.width, Init::Zeros);
        let mut parameters = dense.parameters_mut();
        parameters[0].parameter.values_mut().copy_from_slice(&case.w);
        parameters[1].parameter.values_mut().copy_from_slice(&case.b);
        dense
    };
    for loss in Loss::ALL {
        let (value, gradient, whole) = case.step(case.head(Lists::Shared, DType::F32, false), loss, false);
        let mut dense = dense.clone();
        let (instances, ptr, labels) = flat(&case.targets);
        let mut of_dense = Activations::default();
        let (targets, rule) = (Targets::new(&instances, &ptr, &labels), update(Optimizer::sgd(), 1.0, 3));
        dense.step(&case.input(), targets, loss, &rule, Some(&mut of_dense), &mut Default::default()).unwrap();
        assert!(of_dense.values() == gradient && whole.stored() == &dense_rows(&dense), "{loss}");
        for tile in [700, 1024] {
            let head = case.head(Lists::Shared, DType::F32, false).with_tile(tile);
            let (tiled_value, tiled_gradient, tiled) = case.step(head, loss, false);
            assert!((value - tiled_value).abs() < 1e-6 * value);
            if loss.is_separable() {
                assert!(gradient == tiled_gradient && whole.stored() == tiled.stored(), "{loss} in tiles of {tile}");
            }
        }
    }
}

#[test]
fn own_lists_are_learned_in_one_pass_as_in_three() {
    // 40,000 pairs in many leaves, labels with all instances and labels with one, and rows that
    // take more than a block.
    let mut case = large(200, 3000, 17);
    for (i, loss) in Loss::ALL.into_iter().cycle().take(8).enumerate() {
        if i == 4 {
            let list = |i: usize| (0..600).map(move |at| ((at * 5 + i * at % 5) as u32, 0.5 + at as f32 / 300.0, -0.3));
            case.lists = (0..200).map(|i| list(i).collect()).collect();
        }
        let rows = if i % 3 == 0 { DType::Bf16 } else { DType::F32 };
        let (value, gradient, fused) = case.step(case.head(Lists::Own, rows, true), loss, false);
        let (of_parts, gradient_of_parts, parts) = case.step(case.head(Lists::Own, rows, true), loss, true);
        assert!(value == of_parts && gradient == gradient_of_parts, "{loss} {rows}: {value}, {of_parts}");
        assert!(fused.stored() == parts.stored() && fused.bias().values() == parts.bias().values(), "{loss} {rows}");
    }
}

#[test]
fn lists_without_a_label_change_nothing() {
    let mut case = large(3, 10, 4);
    (case.targets, case.lists) = (vec![vec![]; 3], vec![vec![]; 3]);
    for (lists, by_parts) in [(Lists::Own, false), (Lists::Own, true), (Lists::Shared, false)] {
        let head = case.head(lists, DType::F32, true);
        let (value, gradient, after) = case.step(head.clone(), Loss::Bce, by_parts);
        assert_eq!((value, gradient), (0.0, vec![0.0; 12]), "{lists:?}");
        assert!(after.stored() == head.stored());
    }
    // One pair.
    case.targets[1] = vec![7];
    check(&case, Loss::Softmax, Some(Lists::Own), false, None).unwrap();
    check(&case, Loss::Bce, Some(Lists::Own), false, None).unwrap();
}

fn dense_rows(dense: &Dense) -> FloatBuffer {
    FloatBuffer::F32(dense.weights().values().to_vec().into())
}

#[test]
fn clipped_steps_know_the_norm_of_all_gradients() {
    let case = large(20, 300, 9);
    for lists in [None, Some(Lists::Shared), Some(Lists::Own)] {
        let head = case.head(lists.unwrap_or_default(), DType::F32, lists.is_some());
        let (instances, ptr, labels) = flat(&case.targets);
        let (input, mut scratch) = (case.input(), SampledScratch::default());
        let (targets, at) = (Targets::new(&instances, &ptr, &labels), Mode::Train(Step::default()));
        head.loss(&input, targets, Loss::Bce, at, &mut scratch).unwrap();
        let got = head.squared_norm(&input, &mut scratch).unwrap();
        let (_, _, dw, db) = match lists {
            Some(lists) => case.reference(Loss::Bce, |i| case.scored(i, lists)),
            None => case.reference(Loss::Bce, |_| (0..300).map(|label| (label, 1.0, 0.0)).collect()),
        };
        let expected: f64 = dw.iter().chain(&db).map(|g| g * g).sum();
        assert!((got - expected).abs() < 1e-5 * expected, "{lists:?}: {got}, expected {expected}");
    }
}

#[test]
fn answers_and_their_losses_are_those_of_a_dense_head() {
    let case = large(7, 2600, 5);
    let head = case.head(Lists::Shared, DType::F32, true);
    let (instances, ptr, labels) = flat(&case.targets);
    let targets = Targets::new(&instances, &ptr, &labels);
    let mut logits = Activations::default();
    head.logits(&case.input(), &mut logits, &mut Default::default()).unwrap();
    for loss in Loss::ALL {
        let (mut out, mut scratch) = (Ranked::default(), SampledScratch::default());
        head.rank(&case.input(), Some((targets, loss)), 4, &mut scratch, &mut out).unwrap();
        for i in 0..7 {
            let row = logits.row(i);
            let mut order: Vec<u32> = (0..row.len() as u32).collect();
            order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]).then(a.cmp(&b)));
            let got: Vec<u32> = out.best.row(i).iter().map(|item| item.label).collect();
            assert_eq!(got, order[..4]);
            let expected = loss.of_row(&mut row.to_vec(), targets.row(i), 1.0);
            assert!((out.losses[i] - expected).abs() < 1e-6 * expected.abs().max(1.0), "{loss}: {}", out.losses[i]);
        }
    }
}

#[test]
fn what_a_step_touched_is_counted() {
    let case = large(40, 3000, 17);
    let (instances, ptr, labels) = flat(&case.targets);
    let targets = Targets::new(&instances, &ptr, &labels);
    for (lists, scored) in [(None, 40 * 3000), (Some(Lists::Shared), 0), (Some(Lists::Own), 0)] {
        let mut head = case.head(lists.unwrap_or_default(), DType::F32, lists.is_some());
        let mut scratch = SampledScratch::default();
        let update = update(Optimizer::sgd(), 0.1, 0);
        head.step(&case.input(), targets, Loss::Bce, &update, None, &mut scratch).unwrap();
        let cost = head.cost(&scratch);
        let of = |i| lists.map_or(3000, |lists| case.scored(i, lists).len());
        let mut rows: Vec<u32> = (0..40).flat_map(|i| case.scored(i, lists.unwrap_or_default())).map(|s| s.0).collect();
        rows.sort_unstable();
        rows.dedup();
        let n_rows = if lists.is_some() { rows.len() } else { 3000 } as u64;
        let pairs = if scored > 0 { scored } else { (0..40).map(of).sum::<usize>() } as u64;
        assert_eq!((cost.n_read, cost.n_written, cost.n_scored), (n_rows, n_rows, pairs), "{lists:?}");
    }
}

#[test]
fn wrong_numbers_of_lists_and_unknown_chances_are_refused() {
    let case = large(5, 30, 4);
    let refused = |lists, n_lists: usize, loss| {
        let mut case = case.clone();
        case.lists = vec![vec![(3, 1.0, 0.0)]; n_lists];
        let mut head = case.head(lists, DType::F32, true);
        let (instances, ptr, labels) = flat(&case.targets);
        let (targets, update) = (Targets::new(&instances, &ptr, &labels), update(Optimizer::sgd(), 0.1, 0));
        let step = head.step(&case.input(), targets, loss, &update, None, &mut Default::default());
        step.err().map(|e| e.source().unwrap().to_string())
    };
    let two = "2 lists of candidates, expected 1 or one for each of 5";
    assert_eq!(refused(Lists::Own, 2, Loss::Bce).as_deref(), Some(two));
    assert!(refused(Lists::Shared, 5, Loss::Nce).unwrap().contains("nce with a list made of several"));
    assert_eq!(refused(Lists::Own, 5, Loss::Nce), None);
    assert_eq!(refused(Lists::Shared, 5, Loss::Softmax), None);
}
