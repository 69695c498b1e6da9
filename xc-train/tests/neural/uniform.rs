//! The composition with a sparse output layer: stored and opened, asked for all labels and for some, its memory foreseen.

use crate::reference::{features, targets};
use std::sync::Arc;
use xc_sparse::dense::MatmulPrecision;
use xc_sparse::rank::RankedBatch;
use xc_sparse::store::{Container, ContainerWriter, OpenMode};
use xc_sparse::uniform::{ByteLines, NumberType, ScreenRows};
use xc_sparse::{CsrMatrix, LabelRows, Rows};
use xc_train::head::Grouped;
use xc_train::head::grouped::Groups;
use xc_train::schedule::Constant;
use xc_train::state::Role;
use xc_train::state::State;
use xc_train::trainer::{Event, Observer, Sample, Silent, TrainError};
use xc_train::uniform::{
    FirstVectors, InputKind, KIND, UniformModel, UniformParams, UniformParamsError, UniformScratch, Wiring,
};
use xc_train::{DenseRows, Examples, Features, Init, Loss, Optimizer, TrainParams, Trainer};

const N: usize = 150;
const N_FEATURES: usize = 60;
const N_LABELS: usize = 40;

/// Every kind of model, small.
fn shapes() -> Vec<UniformParams> {
    let base = UniformParams {
        widths: vec![12],
        intermediate: Some(48),
        connections: 6,
        rewire_every: 3,
        seed: 5,
        ..UniformParams::default()
    };
    let change = |change: fn(&mut UniformParams)| {
        let mut params = base.clone();
        change(&mut params);
        params
    };
    vec![
        base.clone(),
        change(|p| (p.weights, p.moments) = (NumberType::E4m3, NumberType::Bf16)),
        change(|p| (p.wiring, p.weights) = (Wiring::Unstructured, NumberType::F16)),
        change(|p| p.wiring = Wiring::Dense),
        change(|p| (p.first_vectors, p.vector_rate) = (FirstVectors::Random, 1.0)),
        change(|p| (p.wiring, p.loss) = (Wiring::Dense, Loss::Softmax)),
        change(|p| p.loss = Loss::Softmax),
        change(|p| (p.input, p.widths) = (InputKind::Dense, vec![])),
        change(|p| (p.input, p.widths, p.intermediate) = (InputKind::Dense, vec![20, 30], None)),
        change(|p| (p.negatives, p.loss) = (Some(7), Loss::Bce)),
        change(|p| (p.groups, p.group_epochs) = (Some(4), 1)),
    ]
}

struct Data {
    x: CsrMatrix,
    dense: Vec<f32>,
    y: LabelRows,
}

impl Data {
    fn new() -> Self {
        let x = features(N, N_FEATURES);
        let dense = x.to_dense().iter().copied().collect();
        Self { x, dense, y: targets(N, N_LABELS) }
    }

    fn features(&self, input: InputKind) -> Features<'_> {
        match input {
            InputKind::Sparse => Features::Sparse(Rows::new(self.x.view())),
            InputKind::Dense => Features::Dense(DenseRows::new(&self.dense, N_FEATURES)),
        }
    }
}

fn trained(data: &Data, params: &UniformParams) -> UniformModel {
    let mut model = UniformModel::new(N_FEATURES, N_LABELS, params.clone()).unwrap();
    let examples = Examples::try_new(data.features(params.input), &data.y).unwrap();
    let sample = Sample::all(examples);
    let mut trainer = Trainer {
        loss: params.loss,
        optimizer: Optimizer::adam(),
        schedule: &mut Constant,
        params: TrainParams { batch_size: 16, epochs: 2, rate: 0.01, ..TrainParams::default() },
        checkpoint: None,
        log: None,
        observer: &Silent,
    };
    model.begin(&sample, &Silent).unwrap();
    model.train(&mut trainer, &sample, None).unwrap();
    model
}

fn bits(batch: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    batch.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

#[test]
fn what_is_stored_opens_with_the_same_answers_and_candidates_score_alike() {
    let data = Data::new();
    let folder = tempfile::tempdir().unwrap();
    for (number, params) in shapes().into_iter().enumerate() {
        let model = trained(&data, &params);
        let queries = data.features(params.input);
        let mut scratch = UniformScratch::default();
        let answers = model.predict_batch(queries, 5, &mut scratch);
        answers.check().unwrap();
        let path = folder.path().join(number.to_string());
        let mut writer = ContainerWriter::create(&path, KIND).unwrap();
        model.write(&mut writer).unwrap();
        writer.finish().unwrap();
        for check in [true, false] {
            let opened = UniformModel::open(&Container::open(&path, OpenMode::Map).unwrap(), check).unwrap();
            assert_eq!(opened.params(), &params);
            assert_eq!(bits(&opened.predict_batch(queries, 5, &mut scratch)), bits(&answers), "{params:?}");
        }
        // All labels as candidates, and those of an answer: the same scores.
        let all: Vec<u32> = (0..N_LABELS as u32).collect();
        let some = model.predict_candidates(queries, |_| &all, 5, &mut scratch);
        assert_eq!(bits(&some), bits(&answers), "{params:?}");
        let lists: Vec<Vec<u32>> = answers.iter().map(|row| row[..2].iter().map(|s| s.label).collect()).collect();
        let some = model.predict_candidates(queries, |i| &lists[i], 5, &mut scratch);
        let first: Vec<_> = bits(&answers).into_iter().map(|row| row[..2].to_vec()).collect();
        assert_eq!(bits(&some), first, "{params:?}");
        let none = model.predict_candidates(queries, |_| &[], 5, &mut scratch);
        assert!(none.len() == N && none.iter().all(<[_]>::is_empty));
    }
}

#[test]
fn the_memory_foreseen_is_that_of_the_arrays() {
    let data = Data::new();
    for params in shapes() {
        let model = trained(&data, &params);
        let bytes = |role| -> u64 {
            let arrays = model.network().arrays();
            let sum: usize = arrays.iter().filter(|array| array.role == role).map(|array| array.bytes.len()).sum();
            // The end of the last label's connections is not counted.
            sum as u64 - if params.wiring == Wiring::Unstructured && role == Role::Values { 8 } else { 0 }
        };
        let memory = params.memory(N_FEATURES, N_LABELS, 16, Optimizer::adam().n_moments(), true, false);
        assert_eq!((memory.parameters, memory.moments), (bytes(Role::Values), bytes(Role::Moments)), "{params:?}");
        assert_eq!(memory.best, memory.parameters);
        assert!(memory.buffers > 4 * 16 * 2 * params.top_width(N_FEATURES) as u64);
        let clips = params.memory(N_FEATURES, N_LABELS, 16, 2, true, true);
        assert!(clips.buffers >= memory.buffers, "clipping holds the gradients of all labels");
        assert_eq!(memory.total(), 2 * memory.parameters + memory.moments + memory.buffers);
        assert_eq!(params.memory(N_FEATURES, N_LABELS, 16, 2, false, false).best, 0);
        // Without moments and a copy, two tables of a search are more than a table and a step's buffers.
        let wide = |first_vectors| {
            let params = UniformParams { first_vectors, ..params.clone() };
            params.memory(1 << 20, N_LABELS, 16, 0, false, false).total()
        };
        let (random, leading) = (wide(FirstVectors::Random), wide(FirstVectors::Leading));
        let table = 4 << 20;
        match params.input {
            InputKind::Sparse => {
                assert!(leading > random + table * 11 && leading >= 2 * 12 * table, "{leading} {random}")
            }
            InputKind::Dense => assert_eq!(leading, random),
        }
        if params.groups.is_some() {
            let of: Arc<[u32]> = (0..N_LABELS as u32).map(|label| label % 4).collect();
            let groups = Groups { of, n: 4, connections: 256, weight: 1.0, steps: 1 };
            let mut grouped = Grouped::new(model.network().head().clone(), groups, Init::Zeros).unwrap();
            grouped.prepare(2);
            let arrays = grouped.arrays();
            let of_groups = |role| -> u64 {
                let own = arrays.iter().filter(|array| array.name.starts_with("groups.") && array.role == role);
                own.map(|array| array.bytes.len() as u64).sum()
            };
            let (values, moments) = (of_groups(Role::Values), of_groups(Role::Moments));
            // So that no search for directions takes more than either.
            let without = UniformParams { groups: None, first_vectors: FirstVectors::Random, ..params };
            let more = |keeps_best| {
                let buffers = |p: &UniformParams| p.memory(N_FEATURES, N_LABELS, 16, 2, keeps_best, false).buffers;
                buffers(&UniformParams { groups: Some(4), ..without.clone() }) - buffers(&without)
            };
            assert!(more(false) > values + moments && more(true) == more(false) + values);
        }
    }
}

#[test]
fn a_model_that_does_not_say_what_is_newer_is_as_models_were() {
    let mut stored = serde_json::to_value(UniformParams::default()).unwrap();
    assert_eq!((&stored["products"], &stored["screening"]), (&"bf16".into(), &true.into()));
    assert_eq!(&stored["first_vectors"], "leading");
    let newer = ["products", "screening", "first_vectors", "vector_rate"];
    stored.as_object_mut().unwrap().retain(|name, _| !newer.contains(&name.as_str()));
    let opened: UniformParams = serde_json::from_value(stored).unwrap();
    let (products, first_vectors) = (MatmulPrecision::F32, FirstVectors::Random);
    assert_eq!(
        opened,
        UniformParams { products, first_vectors, vector_rate: 1.0, screening: false, ..UniformParams::default() }
    );
}

/// The table and the bias of the bag.
fn vectors(model: &UniformModel) -> Vec<Vec<f32>> {
    let parameters = model.network().parameters();
    let of_bag = parameters.iter().filter(|named| named.name.starts_with("bag."));
    of_bag.map(|named| named.parameter.values().to_vec()).collect()
}

#[test]
fn vectors_begin_at_directions_of_the_rows_learned_from_and_learn_at_their_share() {
    let data = Data::new();
    let params = shapes().swap_remove(0);
    let features = data.features(InputKind::Sparse);
    let begun = |params: &UniformParams, targets: &LabelRows, fraction: f64| {
        let examples = Examples::try_new(features, targets).unwrap();
        let (train, _) = Sample::split(examples, fraction, 3);
        let mut model = UniformModel::new(N_FEATURES, N_LABELS, params.clone()).unwrap();
        model.begin(&train, &Silent).unwrap();
        vectors(&model)
    };
    let first = begun(&params, &data.y, 0.0);
    // Sums have the size of those of random vectors; columns are orthogonal.
    let [table, bias] = &first[..] else { panic!("a table and a bias") };
    let sums = |i: usize| {
        let row = Rows::new(data.x.view()).row(i);
        let of =
            |k: usize| row.indices.iter().zip(row.values).map(|(&f, v)| v * table[f as usize * 12 + k]).sum::<f32>();
        (0..12).map(|k| f64::from(of(k)).powi(2)).sum::<f64>()
    };
    let mean = (0..N).map(sums).sum::<f64>() / (12 * N) as f64;
    assert!((mean * 60.0 - 1.0).abs() < 0.1, "{mean}");
    assert!(bias.iter().all(|&b| b == 0.0));
    let dot = |a: usize, b: usize| table.chunks(12).map(|row| f64::from(row[a]) * f64::from(row[b])).sum::<f64>();
    assert!(dot(0, 5).abs() < 1e-4 * dot(0, 0) && dot(11, 3).abs() < 1e-4 * dot(0, 0));
    // Labels have no say, rows that judge neither.
    let none = LabelRows::from_lists(vec![[0u32; 0]; N], N_LABELS).unwrap();
    assert_eq!(begun(&params, &none, 0.0), first);
    assert_ne!(begun(&params, &data.y, 0.2), first);
    // Adam's steps are the rate in size, so its share shows.
    let moved = |share: f32| {
        let params = UniformParams { vector_rate: share, ..params.clone() };
        let model = trained(&data, &params);
        let largest = |now: &[f32], then: &[f32]| now.iter().zip(then).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        vectors(&model).iter().zip(&first).map(|(now, then)| largest(now, then)).fold(0.0, f32::max)
    };
    assert_eq!(moved(0.0), 0.0);
    let (whole, part) = (moved(1.0), moved(0.01));
    assert!(part > 0.0 && part < 0.03 * whole, "{part} {whole}");
}

#[test]
fn vectors_that_do_not_learn_stay_whatever_is_above_them() {
    let data = Data::new();
    let base = UniformParams { vector_rate: 0.0, ..shapes().swap_remove(0) };
    let bare = UniformParams { intermediate: None, first_vectors: FirstVectors::Random, ..base.clone() };
    let examples = Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap();
    let sample = Sample::all(examples);
    for (params, clip_norm) in [(&base, Some(0.5)), (&bare, None), (&bare, Some(0.5))] {
        let mut model = UniformModel::new(N_FEATURES, N_LABELS, params.clone()).unwrap();
        model.begin(&sample, &Silent).unwrap();
        let first = vectors(&model);
        let head = |model: &UniformModel| model.network().head().parameters()[0].parameter.values().to_vec();
        let first_head = head(&model);
        let mut trainer = Trainer {
            loss: params.loss,
            optimizer: Optimizer::adam(),
            schedule: &mut Constant,
            params: TrainParams { batch_size: 16, epochs: 1, rate: 0.01, clip_norm, ..TrainParams::default() },
            checkpoint: None,
            log: None,
            observer: &Silent,
        };
        model.train(&mut trainer, &sample, None).unwrap();
        assert_eq!(vectors(&model), first, "{clip_norm:?}");
        assert_ne!(head(&model), first_head, "{clip_norm:?}: nothing was learned");
    }
}

#[test]
fn a_search_for_directions_stops_when_asked_to() {
    struct Stop;
    impl Observer for Stop {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let data = Data::new();
    let examples = Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap();
    let mut model = UniformModel::new(N_FEATURES, N_LABELS, shapes().swap_remove(0)).unwrap();
    let met = model.begin(&Sample::all(examples), &Stop);
    assert!(matches!(met, Err(TrainError::Cancelled { step: 0 })), "{met:?}");
}

#[test]
fn what_screening_takes_is_foreseen_where_it_happens() {
    let params = UniformParams { input: InputKind::Dense, widths: vec![], ..UniformParams::default() };
    let (labels, width, per_label) = (100_000, 32_768, 32);
    let without = UniformParams { screening: false, ..params.clone() };
    let more = |params: &UniformParams, batch, clips| {
        let of = |params: &UniformParams| params.memory(64, labels, batch, 2, false, clips).buffers;
        of(params) - of(&UniformParams { screening: false, ..params.clone() })
    };
    let wanted = ByteLines::bytes(512, width) + 16_384 * ScreenRows::bytes_each(per_label);
    assert_eq!(more(&params, 512, false), wanted);
    assert_eq!(more(&params, 64, false), 0, "small batches");
    assert_eq!(more(&params, 512, true), wanted, "clipping");
    assert_eq!(more(&UniformParams { loss: Loss::Bce, ..params }, 512, false), 0, "no margin");
    assert_eq!(more(&without, 512, false), 0);
}

#[test]
fn the_bias_begins_at_how_often_a_label_is_true() {
    let data = Data::new();
    let params = UniformParams { widths: vec![4], intermediate: None, connections: 2, ..UniformParams::default() };
    let mut model = UniformModel::new(N_FEATURES, N_LABELS, params).unwrap();
    let examples = Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap();
    model.begin(&Sample::all(examples), &Silent).unwrap();
    let count = data.y.labels().iter().filter(|&&l| l == 7).count() as f64;
    let parameters = model.network().parameters();
    let bias = parameters.iter().find(|named| named.name == "head.bias").unwrap().parameter.values()[7];
    // A tenth below the prior, which keeps the first scores of what is false off the margin.
    assert!((f64::from(bias) - (2.0 * (count + 0.5) / (N as f64 + 1.0) - 1.1)).abs() < 1e-6);
    assert_eq!(Loss::SquaredHinge, model.params().loss);
}

#[test]
fn impossible_shapes_are_said() {
    let said = |change: fn(&mut UniformParams)| {
        let mut params = UniformParams { widths: vec![8], intermediate: Some(16), ..UniformParams::default() };
        params.connections = 4;
        change(&mut params);
        let error = UniformModel::new(N_FEATURES, N_LABELS, params).map(|_| ()).unwrap_err();
        error.to_string()
    };
    assert_eq!(said(|p| p.connections = 17), "17 connections a label, wanted at most the number of inputs, 16");
    assert_eq!(said(|p| p.connections = 0), "the number of connections a label is 0, wanted at least 1");
    assert!(said(|p| p.widths.clear()).contains("wanted at least one width"));
    assert!(said(|p| p.intermediate = Some(0)).contains("wanted at least 1 unit"));
    assert!(said(|p| p.moments = NumberType::F16).contains("moments of f16, wanted f32 or bf16"));
    assert!(said(|p| p.rewire_fraction = f64::NAN).contains("rewire_fraction is NaN"));
    assert!(said(|p| p.vector_rate = -0.1).contains("vector_rate is -0.1"));
    assert!(said(|p| p.vector_rate = f32::INFINITY).contains("vector_rate is inf"));
    assert!(said(|p| p.hidden_dropout = 1.0).contains("hidden_dropout is 1"));
    assert!(said(|p| (p.wiring, p.weights) = (Wiring::Dense, NumberType::F16)).contains("no weights of low precision"));
    let many = UniformParams { connections: 1 << 12, ..UniformParams::default() };
    assert!(matches!(many.check(10, 1 << 20), Err(UniformParamsError::TooMany { .. })));
    assert!(many.check(10, 1 << 19).is_ok());
    assert!(UniformParams { rewire_every: 0, ..many }.check(10, 1 << 20).is_ok());
    assert!(serde_json::from_str::<UniformParams>(r#"{"widths": [3], "other": 1}"#).is_err());
}
