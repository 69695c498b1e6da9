//! The false labels that training steps collect: against sorted logits of all labels of the step.

use crate::fixed::{Fixed, log_q};
use proptest::prelude::*;
use xc_buffer::DType;
use xc_buffer::FloatBuffer;
use xc_dense::MatmulPrecision;
use xc_nn::head::sparse::Screening;
use xc_nn::head::{Dense, Ranked, Sampled, SampledParams, Sparse};
use xc_nn::sampler::{Lists, Sampler};
use xc_nn::state::{Snapshot, State};
use xc_nn::{Activations, Decay, Head, Init, Loss, Mode, Optimizer, Parameter, Step, Targets, Update, UpdateRule};
use xc_sparse::rank::{Scored, rank_order};

const LOSSES: [Loss; 4] = [Loss::Bce, Loss::Softmax, Loss::SquaredHinge, Loss::Nce];

/// A batch, a layer and lists. All numbers are small multiples of 1/4, so that logits are exact in any order of
/// sums, and many are equal.
#[derive(Clone, Debug)]
struct Case {
    n_labels: usize,
    width: usize,
    x: Vec<f32>,
    w: Vec<f32>,
    b: Vec<f32>,
    targets: Vec<Vec<u32>>,
    lists: Vec<Vec<u32>>,
    n: usize,
}

/// What a training step goes over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scope {
    All,
    Listed(Lists),
}

impl Case {
    fn input(&self) -> Activations {
        let mut input = Activations::default();
        input.reshape(self.targets.len(), self.width);
        input.values_mut().copy_from_slice(&self.x);
        input
    }

    fn logits(&self) -> Activations {
        let mut logits = Activations::default();
        logits.reshape(self.targets.len(), self.n_labels);
        for (i, row) in logits.values_mut().chunks_exact_mut(self.n_labels).enumerate() {
            for (label, z) in row.iter_mut().enumerate() {
                let (x, w) = (&self.x[i * self.width..][..self.width], &self.w[label * self.width..][..self.width]);
                *z = x.iter().zip(w).map(|(x, w)| x * w).sum::<f32>() + self.b[label];
            }
        }
        logits
    }

    fn sampled(&self, scope: Scope) -> Sampled {
        let lists = if let Scope::Listed(lists) = scope { lists } else { Lists::Shared };
        let params = SampledParams { rows: DType::F32, precision: MatmulPrecision::F32, lists };
        let weights = FloatBuffer::F32(self.w.clone().into());
        let head = Sampled::from_parts(weights, self.width, Parameter::new(self.b.clone(), 1, Decay::No), params);
        head.with_sampler(self.sampler(scope, true))
    }

    /// Candidates whose weights and chances differ from label to label, for a head that has rows or not.
    fn sampler(&self, scope: Scope, has_rows: bool) -> Option<Box<dyn Sampler>> {
        let of = |&label: &u32| (label, 0.5 + (label % 3) as f32, log_q(label));
        let lists = || self.lists.iter().map(|list| list.iter().map(of).collect()).collect();
        (scope != Scope::All).then(|| Box::new(Fixed { lists: lists(), has_rows, ..Fixed::default() }) as _)
    }

    fn dense(&self) -> Dense {
        let mut head = Dense::new(self.n_labels, self.width, Init::Zeros);
        for named in head.parameters_mut() {
            let from = if named.name == "head.bias" { &self.b } else { &self.w };
            named.parameter.values_mut().copy_from_slice(from);
        }
        head
    }

    /// By the definition: the labels of the step that are false, sorted by their logits.
    fn expected(&self, logits: &Activations, scope: Scope) -> Vec<u32> {
        let mut out = Vec::new();
        for (i, positives) in self.targets.iter().enumerate() {
            let mut labels: Vec<u32> = match scope {
                Scope::All => (0..self.n_labels as u32).collect(),
                Scope::Listed(Lists::Shared) => [self.lists.concat(), self.targets.concat()].concat(),
                Scope::Listed(Lists::Own) => self.lists[i.min(self.lists.len() - 1)].clone(),
            };
            labels.sort_unstable();
            labels.dedup();
            labels.retain(|label| !positives.contains(label));
            let row = logits.row(i);
            let item = |label: u32| Scored { label, score: row[label as usize] };
            labels.sort_by(|&a, &b| rank_order(item(a), item(b)));
            out.extend(labels.into_iter().chain(std::iter::repeat(u32::MAX)).take(self.n));
        }
        out
    }
}

/// What a step leaves: loss, gradient of the input, the head's arrays; and what it collected.
type Left = (u64, Vec<u32>, Snapshot, Vec<u32>);

fn update() -> Update {
    Update::new(Step { number: 3, epoch: 0, seed: 5 }, UpdateRule { optimizer: Optimizer::adagrad(), rate: 0.5 }, 1.0)
}

fn step<H>(mut head: H, case: &Case, loss: Loss, n: usize, by_parts: bool, threads: usize) -> Left
where
    H: Head<Input = Activations>,
{
    let mut ptr = vec![0];
    case.targets.iter().for_each(|row| ptr.push(ptr[ptr.len() - 1] + row.len() as u32));
    let (instances, labels): (Vec<u32>, _) = ((0..case.targets.len() as u32).collect(), case.targets.concat());
    let targets = Targets::new(&instances, &ptr, &labels);
    let (input, mut gradient, mut scratch) = (case.input(), Activations::default(), H::Scratch::default());
    let update = update();
    head.prepare(Optimizer::adagrad().moments());
    head.collect(n, &mut scratch);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let value = if by_parts {
            let value = head.loss(&input, targets, loss, Mode::Train(update.at), &mut scratch).unwrap();
            head.backward(&mut gradient, &mut scratch).unwrap();
            head.update(&input, &mut scratch, &update).unwrap();
            value
        } else {
            head.step(&input, targets, loss, &update, Some(&mut gradient), &mut scratch).unwrap()
        };
        let collected = head.collected(&scratch).to_vec();
        // Only training steps collect.
        let judged = (loss != Loss::Nce).then_some((targets, loss));
        head.loss(&input, targets, Loss::Bce, Mode::Predict, &mut scratch).unwrap();
        head.rank(&input, judged, 2, &mut scratch, &mut Ranked::default()).unwrap();
        assert_eq!(head.collected(&scratch), collected);
        let bits = gradient.values().iter().map(|value| value.to_bits()).collect();
        (value.to_bits(), bits, Snapshot::of(&[&head]).unwrap(), collected)
    })
}

/// Steps of a head collect what is expected, and leave what they leave without.
fn check<H>(head: &H, case: &Case, loss: Loss, expected: &[u32]) -> Result<(), TestCaseError>
where
    H: Head<Input = Activations> + Clone,
{
    for by_parts in [false, true] {
        for threads in [1, 2] {
            let (value, gradient, after, collected) = step(head.clone(), case, loss, case.n, by_parts, threads);
            prop_assert_eq!(&collected, expected, "{:?} by parts {} threads {}", loss, by_parts, threads);
            let without = step(head.clone(), case, loss, 0, by_parts, threads);
            prop_assert!((value, gradient, after, vec![]) == without, "{:?} by parts {}", loss, by_parts);
        }
    }
    Ok(())
}

fn labels(n: usize, most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::btree_set(0..n as u32, 0..=most.min(n)).prop_map(|set| set.into_iter().collect())
}

fn cases() -> impl Strategy<Value = Case> {
    let n_labels = prop_oneof![1usize..6, 10usize..50, Just(16), Just(33), 300usize..400];
    let n = prop::sample::select(vec![1usize, 2, 7, 20, 24, 25, 500]);
    (n_labels, 1usize..6, prop_oneof![1usize..8, Just(33)], any::<bool>(), n).prop_flat_map(
        |(n_labels, width, batch, one_list, n)| {
            let values = |len| prop::collection::vec((-4i8..=4).prop_map(|q| f32::from(q) / 4.0), len);
            let all = Just((0..n_labels as u32).collect::<Vec<_>>());
            let truth = prop_oneof![3 => labels(n_labels, 4), 1 => Just(vec![]), 1 => all];
            let listed = prop_oneof![labels(n_labels, 12), labels(n_labels, 200)];
            let n_lists = if one_list { 1 } else { batch };
            let targets = prop::collection::vec(truth, batch);
            let lists = prop::collection::vec(listed, n_lists);
            (values(batch * width), values(n_labels * width), values(n_labels), targets, lists)
                .prop_map(move |(x, w, b, targets, lists)| Case { n_labels, width, x, w, b, targets, lists, n })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dense_steps_collect_the_best_false_labels(case in cases()) {
        let expected = case.expected(&case.logits(), Scope::All);
        for loss in [Loss::Bce, Loss::Softmax, Loss::SquaredHinge] {
            check(&case.dense(), &case, loss, &expected)?;
        }
    }

    #[test]
    fn sampled_steps_collect_the_best_false_labels_of_their_lists(
        case in cases(),
        scope in prop::sample::select(vec![
            Scope::All, Scope::Listed(Lists::Shared), Scope::Listed(Lists::Own),
        ]),
        tile in prop::sample::select(vec![None, Some(1), Some(5), Some(64)]),
    ) {
        let mut head = case.sampled(scope);
        if let Some(tile) = tile {
            head = head.with_tile(tile);
        }
        let expected = case.expected(&case.logits(), scope);
        for loss in LOSSES {
            // A list made of several has no chances of true labels.
            let knows = scope == Scope::Listed(Lists::Own) || case.lists.len() == 1;
            if loss != Loss::Nce || (knows && scope != Scope::All) {
                check(&head, &case, loss, &expected)?;
            }
        }
    }

    #[test]
    fn sparse_steps_collect_the_best_false_labels(
        case in cases(),
        lists in any::<bool>(),
        init in prop::sample::select(vec![Init::Zeros, Init::Random { seed: 1 }]),
        tile in prop::sample::select(vec![None, Some(1), Some(20)]),
        below in prop::sample::select(vec![0.0f32, 0.75]),
    ) {
        let case = Case { lists: case.lists[..1].to_vec(), ..case };
        let scope = if lists { Scope::Listed(Lists::Shared) } else { Scope::All };
        let params = crate::sparse::params(case.width.div_ceil(2), true);
        let mut head = Sparse::new(case.n_labels, case.width, params, init).unwrap();
        head.bias_mut().iter_mut().zip(&case.b).for_each(|(to, b)| *to = b - below);
        head = head.with_sampler(case.sampler(scope, false));
        if let Some(tile) = tile {
            head = head.with_tile(tile);
        }
        let mut logits = Activations::default();
        head.logits(&case.input(), &mut logits, &mut Default::default()).unwrap();
        let expected = case.expected(&logits, scope);
        for loss in [Loss::Bce, Loss::Softmax, Loss::SquaredHinge] {
            check(&head, &case, loss, &expected)?;
        }
    }
}

/// Labels in an order that looks random, and a batch of them.
fn large(batch: usize, n_labels: usize, n: usize) -> Case {
    let quarters = |len: usize, by: usize| (0..len).map(|i| (i * by % 9) as f32 / 4.0 - 1.0).collect::<Vec<_>>();
    let (x, w, b) = (quarters(batch * 2, 7), quarters(n_labels * 2, 2), quarters(n_labels, 4));
    let targets = (0..batch).map(|i| (i % 3 > 0).then_some((i * 31 % n_labels) as u32).into_iter().collect());
    Case { n_labels, width: 2, x, w, b, targets: targets.collect(), lists: vec![], n }
}

#[test]
fn a_dense_step_in_tiles_collects_what_its_phases_do() {
    // More logits than are kept at once.
    let case = large(1030, 4099, 20);
    check(&case.dense(), &case, Loss::Bce, &case.expected(&case.logits(), Scope::All)).unwrap();
}

#[test]
fn a_step_that_screens_collects_what_it_scores_in_full() {
    for (bias, is_all) in [(9.0, true), (-1.5, false)] {
        let case = large(70, 500, 20);
        let mut head = Sparse::new(case.n_labels, 2, crate::sparse::params(2, true), Init::Random { seed: 1 }).unwrap();
        head.bias_mut().iter_mut().zip(&case.b).for_each(|(to, b)| *to = b + bias);
        let mut logits = Activations::default();
        head.logits(&case.input(), &mut logits, &mut Default::default()).unwrap();
        let expected = case.expected(&logits, Scope::All);
        let head = head.with_screening(Screening::Always);
        if is_all {
            check(&head, &case, Loss::SquaredHinge, &expected).unwrap();
            continue;
        }
        let (.., after, collected) = step(head.clone(), &case, Loss::SquaredHinge, case.n, false, 2);
        let without = step(head, &case, Loss::SquaredHinge, 0, false, 2);
        assert!(after == without.2);
        for (i, (got, best)) in collected.chunks(case.n).zip(expected.chunks(case.n)).enumerate() {
            let logit = |label: u32| logits.row(i)[label as usize];
            // Screening may overlook what is barely above the margin.
            let above = |label: &u32| logit(*label) > -0.9;
            assert!(best.iter().filter(|label| above(label)).all(|label| got.contains(label)), "{got:?} {best:?}");
            let got: Vec<u32> = got.iter().copied().take_while(|&label| label != u32::MAX).collect();
            assert!(got.is_sorted_by_key(|&label| (std::cmp::Reverse((logit(label) * 1e6) as i64), label)), "{got:?}");
            assert!(got.iter().all(|label| !case.targets[i].contains(label)));
        }
    }
}
