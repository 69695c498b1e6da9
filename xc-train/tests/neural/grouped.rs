//! Groups beside outputs: the gradient is the sum of both tasks', and nothing is left of them when they have faded.

use crate::sparse::{Data, head, params, update};
use std::sync::Arc;
use xc_sparse::LabelRows;
use xc_train::encoder::{Precomputed, Stack};
use xc_train::head::grouped::{Groups, head_params};
use xc_train::head::{Grouped, Sparse};
use xc_train::state::Role;
use xc_train::state::State;
use xc_train::uniform::{InputKind, UniformModel, UniformParams};
use xc_train::{
    Activation, Activations, Batch, DenseRows, Examples, Features, Head, Init, Loss, Network, Optimizer, Rule, Step,
    StepParams,
};

const N_OUTPUTS: usize = 30;
const WIDTH: usize = 24;

fn groups(steps: u64) -> Groups {
    let of: Arc<[u32]> = (0..N_OUTPUTS as u32).map(|output| output % 8).collect();
    Groups { of, n: 8, connections: 10, weight: 0.7, steps }
}

/// The rows of groups that rows of outputs mean.
fn of_groups(data: &Data, groups: &Groups) -> LabelRows {
    let rows = data.targets.iter().map(|row| {
        let mut row: Vec<u32> = row.iter().map(|&output| groups.of[output as usize]).collect();
        row.sort_unstable();
        row.dedup();
        row
    });
    LabelRows::from_lists(rows, groups.n).unwrap()
}

#[test]
fn the_gradient_is_that_of_both_tasks_by_their_weights() {
    let data = Data::new(40, WIDTH, N_OUTPUTS, 3);
    let main = head(N_OUTPUTS, WIDTH, params(6, true), 3);
    for by in [Loss::SquaredHinge, Loss::Bce] {
        for (number, weight) in [(0, 0.7), (5, 0.35), (9, 0.07), (10, 0.0), (1000, 0.0)] {
            let groups = groups(10);
            assert!((groups.weight_at(number) - weight).abs() < 1e-6);
            let mut grouped = Grouped::new(main.clone(), groups.clone(), Init::Random { seed: 4 }).unwrap();
            // The group head by itself, with the values that it has inside.
            let mut alone = Sparse::new(groups.n, WIDTH, head_params(groups.connections, WIDTH), Init::Zeros).unwrap();
            let inside: Vec<(String, Vec<u8>)> = grouped
                .arrays()
                .into_iter()
                .filter_map(|a| Some((a.name.strip_prefix("groups.")?.to_owned(), a.bytes.to_vec())))
                .collect();
            for (to, (name, from)) in alone.arrays_mut().into_iter().zip(&inside) {
                assert_eq!(to.name, format!("head.{name}"));
                to.bytes.copy_from_slice(from);
            }
            alone.overwritten().unwrap();
            let (sgd, input, batch) = (Optimizer::sgd(), data.input(), data.batch());
            let update = update(sgd, 1.0, number);
            let mut group_batch = Batch::default();
            let targets = of_groups(&data, &groups);
            let examples = Features::Dense(DenseRows::new(&data.values, data.width));
            let rows: Vec<u32> = (0..40).collect();
            group_batch.fill(&Examples::try_new(examples, &targets).unwrap(), &rows);
            let (mut both, mut one, mut other) = <[Activations; 3]>::default().into();
            let met =
                grouped.step(&input, batch.targets(), by, &update, Some(&mut both), &mut Default::default()).unwrap();
            let mut plain = main.clone();
            let first =
                plain.step(&input, batch.targets(), by, &update, Some(&mut one), &mut Default::default()).unwrap();
            let second = alone
                .step(&input, group_batch.targets(), by, &update, Some(&mut other), &mut Default::default())
                .unwrap();
            assert!((met - (first + f64::from(weight) * second)).abs() < 1e-5 * met);
            assert!(second > 0.0 && other.values().iter().any(|&g| g != 0.0), "groups say something");
            for ((&both, &one), &other) in both.values().iter().zip(one.values()).zip(other.values()) {
                assert!((both - (one + weight * other)).abs() < 1e-6, "{both} {one} {other}");
            }
            // The main head learns as it does alone, and the group head too while it matters.
            let of = |head: &Sparse| head.arrays().into_iter().map(|a| a.bytes.to_vec()).collect::<Vec<_>>();
            let inside: Vec<Vec<u8>> = grouped
                .arrays()
                .into_iter()
                .filter(|a| a.name.starts_with("groups."))
                .map(|a| a.bytes.to_vec())
                .collect();
            assert_eq!(of(&grouped.clone().into_main()), of(&plain));
            assert_eq!(inside == of(&alone), weight > 0.0);
        }
    }
}

#[test]
fn the_state_has_the_groups_and_the_answers_have_not() {
    let main = head(N_OUTPUTS, WIDTH, params(6, true), 3);
    let mut grouped = Grouped::new(main.clone(), groups(10), Init::Random { seed: 4 }).unwrap();
    grouped.prepare(2);
    let of_groups = |role| {
        let arrays = grouped.arrays();
        arrays.iter().filter(|a| a.name.starts_with("groups.") && a.role == role).count()
    };
    assert_eq!((of_groups(Role::Values), of_groups(Role::Moments)), (3, 4));
    let names: Vec<String> = grouped.arrays().into_iter().map(|a| a.name).collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
    let other = Grouped::new(main.clone(), groups(11), Init::Random { seed: 4 }).unwrap();
    assert_ne!(grouped.settings(), other.settings());
    let data = Data::new(40, WIDTH, N_OUTPUTS, 3);
    let (mut a, mut b) = Default::default();
    assert_eq!(
        grouped.rank(&data.input(), None, 5, &mut a).unwrap(),
        main.rank(&data.input(), None, 5, &mut b).unwrap(),
        "answers are the main head's"
    );
    assert_eq!((grouped.labels().len(), grouped.n_values()), (N_OUTPUTS, main.n_values()));
}

#[test]
fn after_they_have_faded_a_network_is_trained_as_without_them() {
    let data = Data::new(40, WIDTH, N_OUTPUTS, 3);
    let encoder = Stack::new(Precomputed::new(WIDTH)).push(32, Activation::Relu, 0.0, 1);
    let main = Sparse::new(N_OUTPUTS, 32, params(6, true), Init::Random { seed: 3 }).unwrap();
    let grouped = Grouped::new(main.clone(), groups(2), Init::Random { seed: 4 }).unwrap();
    let (mut with, mut without) = (Network::new(encoder.clone(), grouped), Network::new(encoder, main));
    let adam = Optimizer::adam();
    with.prepare(adam, adam);
    without.prepare(adam, adam);
    let step =
        |number| StepParams::new(Step { number, epoch: 0, seed: 1 }, Rule { optimizer: Optimizer::adam(), rate: 0.01 });
    let batch = data.batch();
    let (mut a, mut b) = Default::default();
    let weights = |parts: Vec<xc_train::Named<&xc_train::Parameter>>| parts[0].parameter.values().to_vec();
    for number in 2..5 {
        with.step(&batch, Loss::SquaredHinge, &step(number), &mut a).unwrap();
        without.step(&batch, Loss::SquaredHinge, &step(number), &mut b).unwrap();
        assert_eq!(weights(with.parameters()), weights(without.parameters()));
    }
    with.step(&batch, Loss::SquaredHinge, &step(1), &mut a).unwrap();
    without.step(&batch, Loss::SquaredHinge, &step(1), &mut b).unwrap();
    assert_ne!(weights(with.parameters()), weights(without.parameters()));
}

#[test]
fn a_model_trained_in_groups_is_a_model_like_any_other() {
    let data = Data::new(200, WIDTH, N_OUTPUTS, 3);
    let params = UniformParams {
        input: InputKind::Dense,
        widths: vec![],
        intermediate: Some(64),
        connections: 8,
        groups: Some(8),
        group_epochs: 2,
        ..UniformParams::default()
    };
    let train = |of: Option<Arc<[u32]>>| {
        let model = UniformModel::new(WIDTH, N_OUTPUTS, params.clone()).unwrap();
        let mut schedule = xc_train::schedule::Constant;
        let adam = Optimizer::adam();
        let mut trainer = xc_train::Trainer {
            loss: Loss::SquaredHinge,
            optimizer: adam,
            schedule: &mut schedule,
            params: xc_train::TrainParams { batch_size: 32, epochs: 3, rate: 0.01, ..Default::default() },
            checkpoint: None,
            log: None,
            observer: &xc_train::trainer::Silent,
        };
        let sample = xc_train::trainer::Sample::all(data.examples());
        match of {
            Some(of) => model.train_in_groups(of, &mut trainer, &sample, None).unwrap().0,
            None => {
                let mut model = model;
                model.train(&mut trainer, &sample, None).unwrap();
                model
            }
        }
    };
    let (with, without) = (train(Some(groups(0).of)), train(None));
    let names = |model: &UniformModel| model.network().arrays().into_iter().map(|a| a.name).collect::<Vec<_>>();
    assert_eq!(names(&with), names(&without));
    let bytes =
        |model: &UniformModel| model.network().arrays().into_iter().map(|a| a.bytes.to_vec()).collect::<Vec<_>>();
    assert_ne!(bytes(&with), bytes(&without), "the groups had a say");
    assert_eq!(bytes(&with), bytes(&train(Some(groups(0).of))));
}
