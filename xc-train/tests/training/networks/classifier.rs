//! Classifiers of every composition: stored and opened, asked for all labels and for some, their
//! answers in the order of their logits, their memory foreseen.

use super::{features, targets};
use xc_buffer::Cancel;
use xc_buffer::dtype::DType;
use xc_dense::DenseRows;
use xc_model::classifier::{
    CandidateHeadParams, Classifier, ClassifierParams, ClassifierParamsError, ClassifierScratch, EmbeddingInit,
    EncoderParams, HeadParams, InputKind, LearningParams, Only, OpenClassifierError, PredictError, SparseHeadParams,
    Wiring,
};
use xc_nn::optim::Moments;
use xc_nn::sampler::{Lists, NegativeParams, SamplerParams};
use xc_nn::schedule::Constant;
use xc_nn::state::{Role, Snapshot, State};
use xc_nn::trainer::{Observer, Silent, Subset, TrainError, TrainEvent};
use xc_nn::{Activations, Batch, Examples, Loss, Optimizer, Row, Rows, TrainParams, Trainer};
use xc_sparse::rank::RankedBatch;
use xc_sparse::uniform::{ByteLines, ScreenRows};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_train::learn::{self, Workload};
use xc_train::preset;

const N: usize = 150;
const N_FEATURES: usize = 60;
const N_LABELS: usize = 40;

/// A dense preset, small.
fn dense() -> ClassifierParams {
    let mut params = preset::dense().params;
    params.encoder = EncoderParams::bag([12, 8]);
    let learning = &mut params.learning;
    (learning.input_dropout, learning.dropout, learning.seed) = (0.0, 0.0, 3);
    params
}

/// A uniform preset, small.
fn uniform() -> ClassifierParams {
    let mut params = preset::uniform().params;
    *params.encoder.widths_mut() = vec![12, 48];
    (params.learning.seed, params.learning.connections.rewire_every) = (5, 3);
    params.head = HeadParams::Sparse(SparseHeadParams { fan_in: 6, ..Default::default() });
    params
}

fn head(params: &mut ClassifierParams) -> &mut SparseHeadParams {
    match &mut params.head {
        HeadParams::Sparse(head) => head,
        other => panic!("{other:?}, expected a sparse head"),
    }
}

/// Every composition, small.
fn compositions() -> Vec<ClassifierParams> {
    let change = |change: fn(&mut ClassifierParams)| {
        let mut params = uniform();
        change(&mut params);
        params
    };
    vec![
        dense(),
        ClassifierParams { loss: Loss::SquaredHinge, ..dense() },
        ClassifierParams { loss: Loss::Softmax, ..dense() },
        uniform(),
        change(|p| (head(p).weights, p.learning.connections.moments) = (DType::E4m3, DType::Bf16)),
        change(|p| (head(p).wiring, head(p).weights) = (Wiring::Unstructured, DType::F16)),
        change(|p| p.head = HeadParams::Dense),
        change(|p| (p.learning.init, p.learning.embedding_rate) = (EmbeddingInit::Random, 1.0)),
        change(|p| p.encoder = EncoderParams::bag([12, 48])),
        change(|p| (p.head, p.loss) = (HeadParams::Dense, Loss::Softmax)),
        change(|p| p.encoder = EncoderParams::vectors([48])),
        change(|p| p.encoder = EncoderParams::vectors([20, 30])),
        change(|p| (p.learning.negatives.sampler, p.loss) = (SamplerParams::Uniform { per_list: 7 }, Loss::Bce)),
        change(|p| p.learning.negatives.sampler = SamplerParams::Frequency { per_list: 9, power: 0.75 }),
        change(|p| p.learning.negatives.sampler = SamplerParams::LogUniform { per_list: 9 }),
        change(|p| p.loss = Loss::Softmax),
        candidates(SamplerParams::All, Lists::Shared, DType::Bf16, Loss::Softmax),
        candidates(SamplerParams::Uniform { per_list: 7 }, Lists::Shared, DType::F32, Loss::Bce),
        candidates(SamplerParams::LogUniform { per_list: 5 }, Lists::Own, DType::Bf16, Loss::Nce),
        candidates(SamplerParams::TopK { per_instance: 3 }, Lists::Own, DType::F32, Loss::SquaredHinge),
    ]
}

/// A small network whose steps score some labels.
fn candidates(sampler: SamplerParams, lists: Lists, rows: DType, loss: Loss) -> ClassifierParams {
    let negatives = NegativeParams { lists, ..NegativeParams::new(sampler, 0, loss) };
    let of = dense();
    let learning = LearningParams { negatives, ..of.learning.clone() };
    ClassifierParams { head: HeadParams::Candidates(CandidateHeadParams { rows }), loss, learning, ..of }
}

struct Data {
    x: CsrMatrix,
    dense: Vec<f32>,
    y: LabelRows,
}

impl Data {
    fn new() -> Self {
        let x = features(N, N_FEATURES);
        let mut dense = vec![0.0; x.rows() * x.cols()];
        for (row, values) in x.view().iter().zip(dense.chunks_exact_mut(x.cols())) {
            row.iter().for_each(|(feature, value)| values[feature as usize] = value);
        }
        Self { x, dense, y: targets(N, N_LABELS) }
    }

    fn features(&self, input: InputKind) -> Rows<'_> {
        match input {
            InputKind::Sparse => Rows::Sparse(self.x.view()),
            _ => Rows::Dense(DenseRows::new(&self.dense, N_FEATURES)),
        }
    }

    fn row(&self, input: InputKind, i: usize) -> Row<'_> {
        match input {
            InputKind::Sparse => Row::Sparse(self.x.view().row(i)),
            _ => Row::Dense(&self.dense[i * N_FEATURES..][..N_FEATURES]),
        }
    }
}

fn classifier(params: &ClassifierParams) -> Classifier {
    Classifier::new(preset::UNIFORM, N_FEATURES, N_LABELS, params.clone()).unwrap()
}

fn train(data: &Data, params: &ClassifierParams, settings: TrainParams) -> Classifier {
    let mut model = classifier(params);
    let sample = Subset::all(Examples::try_new(data.features(params.encoder.input()), &data.y).unwrap());
    let mut trainer = Trainer {
        loss: params.loss,
        optimizer: Optimizer::adam(),
        schedule: &mut Constant,
        params: settings,
        checkpoint: None,
        hard: None,
        observer: &Silent,
    };
    learn::initialise(&mut model, None, &sample, &Silent).unwrap();
    trainer.train(model.network_mut(), &sample, None).unwrap();
    model
}

fn trained(data: &Data, params: &ClassifierParams) -> Classifier {
    train(data, params, TrainParams { batch_size: 16, epochs: 2, rate: 0.01, ..TrainParams::default() })
}

fn bits(batch: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    batch.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

#[test]
fn what_is_stored_opens_with_the_same_answers_and_candidates_rank_alike() {
    let data = Data::new();
    let folder = tempfile::tempdir().unwrap();
    for (number, params) in compositions().into_iter().enumerate() {
        let model = trained(&data, &params);
        let queries = data.features(params.encoder.input());
        let mut scratch = ClassifierScratch::default();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| model.predict(queries, 5, Only::All, &mut ClassifierScratch::default()).unwrap())
        };
        // One thread answers all together, two threads some each.
        let answers = on(1);
        assert_eq!(bits(&on(2)), bits(&answers), "{params:?}");
        answers.check().unwrap();
        let path = folder.path().join(number.to_string());
        model.save(&path).unwrap();
        for check in [true, false] {
            let opened = Classifier::of(&Container::open(&path, OpenMode::Map).unwrap(), check).unwrap();
            let known = ClassifierParams { learning: LearningParams::default(), ..params.clone() };
            assert_eq!((opened.params(), opened.kind()), (&known, preset::UNIFORM));
            let again = opened.predict(queries, 5, Only::All, &mut scratch).unwrap();
            assert_eq!(bits(&again), bits(&answers), "{params:?}");
        }
        // All labels as candidates, and those of an answer: the same order and scores.
        let all: Vec<u32> = (0..N_LABELS as u32).collect();
        let some = model.predict(queries, 5, Only::Labels(&all), &mut scratch).unwrap();
        assert_eq!(bits(&some), bits(&answers), "{params:?}");
        let lists = answers.iter().map(|row| {
            let mut labels: Vec<u32> = row[..2].iter().map(|s| s.label).collect();
            labels.sort_unstable();
            labels
        });
        let lists = LabelRows::from_lists(lists, N_LABELS).unwrap();
        let some = model.predict(queries, 5, Only::Rows { rows: &lists, first: 0 }, &mut scratch).unwrap();
        let first: Vec<_> = bits(&answers).into_iter().map(|row| row[..2].to_vec()).collect();
        assert_eq!(bits(&some), first, "{params:?}");
        let none = model.predict(queries, 5, Only::Labels(&[]), &mut scratch).unwrap();
        assert!(none.len() == N && none.iter().all(<[_]>::is_empty));
        // One at a time is the batch.
        let mut one = Vec::new();
        for i in 0..N {
            let row = data.row(params.encoder.input(), i);
            model.predict_one(row, 5, Only::All, &mut scratch, &mut one).unwrap();
            assert_eq!(one, answers.row(i), "{params:?} query {i}");
            model.predict_one(row, 5, Only::Labels(lists.row(i)), &mut scratch, &mut one).unwrap();
            assert_eq!(one, some.row(i), "{params:?} query {i}");
        }
    }
}

#[test]
fn labels_are_answered_in_the_order_of_their_logits_past_the_margin_too() {
    // Trained until many logits are past the margin, where the squared hinge's score is 1.
    let data = Data::new();
    let settings = TrainParams { batch_size: 8, epochs: 60, rate: 0.02, ..TrainParams::default() };
    for params in [ClassifierParams { loss: Loss::SquaredHinge, ..dense() }, dense(), {
        let mut params = uniform();
        params.head = HeadParams::Dense;
        params
    }] {
        let model = train(&data, &params, settings.clone());
        let queries = data.features(InputKind::Sparse);
        let (mut batch, mut logits) = (Batch::default(), Activations::default());
        batch.fill_features(queries, 0..N);
        model.network().logits(&batch, &mut logits, &mut Default::default()).unwrap();
        let all: Vec<u32> = (0..N_LABELS as u32).collect();
        let mut n_saturated = 0;
        for only in [Only::All, Only::Labels(&all)] {
            let answers = model.predict(queries, N_LABELS, only, &mut ClassifierScratch::default()).unwrap();
            for (i, row) in answers.iter().enumerate() {
                let logit = |label: u32| logits.values()[i * N_LABELS + label as usize];
                assert_eq!(row.len(), N_LABELS);
                for pair in row.windows(2) {
                    let (a, b) = (logit(pair[0].label), logit(pair[1].label));
                    assert!(a > b || (a == b && pair[0].label < pair[1].label), "query {i}: {a} before {b}");
                    assert_eq!(pair[0].score > pair[1].score, a > b, "query {i}: {pair:?}");
                    n_saturated += usize::from(b >= 1.0);
                }
                assert!(row.iter().all(|s| (0.0..=1.0).contains(&s.score)));
            }
        }
        assert!(params.loss == Loss::Bce || n_saturated > 20, "{n_saturated} pairs past the margin");
    }
}

#[test]
fn a_dense_classifier_learns_its_training_rows() {
    let (x, y) = (features(40, 60), targets(40, 25));
    for loss in [Loss::Softmax, Loss::Bce, Loss::SquaredHinge] {
        let mut params = dense();
        (params.encoder, params.loss) = (EncoderParams::bag([32, 16]), loss);
        let mut model = Classifier::new(preset::DENSE, 60, 25, params).unwrap();
        let queries = Rows::Sparse(x.view());
        let mut trainer = Trainer {
            loss,
            optimizer: Optimizer::adam(),
            schedule: &mut Constant,
            params: TrainParams { batch_size: 8, epochs: 120, rate: 0.01, ..Default::default() },
            checkpoint: None,
            hard: None,
            observer: &Silent,
        };
        let sample = Subset::all(Examples::try_new(queries, &y).unwrap());
        trainer.train(model.network_mut(), &sample, None).unwrap();
        let answers = model.predict(queries, 100, Only::All, &mut ClassifierScratch::default()).unwrap();
        assert_eq!(answers.row(0).len(), 25, "never more than there are labels");
        let with_labels: Vec<usize> = (0..40).filter(|&i| !y.row(i).is_empty()).collect();
        let hits = with_labels.iter().filter(|&&i| y.row(i).contains(&answers.row(i)[0].label)).count();
        assert!(hits * 10 >= with_labels.len() * 9, "{loss:?}: {hits} of {}", with_labels.len());
    }
}

#[test]
fn queries_of_another_kind_or_width_and_candidates_that_are_no_labels_are_refused() {
    let data = Data::new();
    let (sparse, mut scratch) = (classifier(&dense()), ClassifierScratch::default());
    let said = |error: PredictError| error.to_string();
    let vectors = data.features(InputKind::Dense);
    let refused = sparse.predict(vectors, 5, Only::All, &mut scratch).unwrap_err();
    assert_eq!(said(refused), "an instance is a vector, expected sparse features");
    let narrow = CsrMatrix::zero((2, 59));
    let narrow = Rows::Sparse(narrow.view());
    let refused = sparse.predict(narrow, 5, Only::All, &mut scratch).unwrap_err();
    assert_eq!(said(refused), "queries of 59 features, expected 60");
    let queries = data.features(InputKind::Sparse);
    let refused = sparse.predict(queries, 5, Only::Labels(&[3, 40]), &mut scratch).unwrap_err();
    assert_eq!(said(refused), "query 0: candidate 40 is out of range, expected an id below 40");
    let row = xc_sparse::SparseRow::from_checked(&[60], &[1.0]);
    let refused = sparse.predict_one(Row::Sparse(row), 5, Only::All, &mut scratch, &mut Vec::new()).unwrap_err();
    assert_eq!(said(refused), "feature 60 is out of range, expected an id below 60");
    let large = xc_sparse::SparseRow::from_checked(&[1, 2, 3], &[3e38, -3e38, 3e38]);
    for params in compositions().into_iter().filter(|p| p.encoder.input() == InputKind::Sparse) {
        let got = trained(&data, &params).predict_one(Row::Sparse(large), 5, Only::All, &mut scratch, &mut Vec::new());
        assert!(got.is_ok() || got == Err(PredictError::NotFinite { query: 0 }), "{got:?}");
    }
}

#[test]
fn the_memory_foreseen_is_that_of_the_arrays() {
    let data = Data::new();
    for params in compositions() {
        let model = trained(&data, &params);
        let is_unstructured = matches!(&params.head, HeadParams::Sparse(head) if head.wiring == Wiring::Unstructured);
        let bytes = |role| -> u64 {
            let arrays = Snapshot::of(&model.network().parts()).unwrap();
            let of_role = arrays.arrays().filter(|&(_, of, _)| of == role);
            let sum: usize = of_role.map(|(.., array)| array.bytes.len()).sum();
            // The end of the last label's connections is not counted.
            sum as u64 - if is_unstructured && role == Role::Answer { 8 } else { 0 }
        };
        let work = Workload {
            n_instances: 100,
            n_features: N_FEATURES,
            n_labels: N_LABELS,
            batch_size: 16,
            n_epochs: 1,
            moments: Optimizer::adam().moments(),
            keeps_best: true,
            clips: false,
            tokens: Default::default(),
        };
        let memory = learn::memory(&params, &work);
        assert_eq!((memory.parameters, memory.moments), (bytes(Role::Answer), bytes(Role::Training)), "{params:?}");
        assert_eq!(memory.best, memory.parameters);
        assert!(memory.buffers > 4 * 16 * 2 * params.encoder.top_width(N_FEATURES) as u64);
        let clips = learn::memory(&params, &Workload { clips: true, ..work });
        assert!(clips.buffers >= memory.buffers, "clipping holds the gradients of all labels");
        assert_eq!(memory.total(), 2 * memory.parameters + memory.moments + memory.buffers + memory.wide);
        let has_term = params.learning.wide.is_some() && params.encoder.input() == InputKind::Sparse;
        assert_eq!(memory.wide > 0, has_term, "{params:?}");
        assert_eq!(learn::memory(&params, &Workload { keeps_best: false, ..work }).best, 0);
        if params.precision == preset::dense().params.precision {
            assert_eq!(learn::n_values(&params, N_FEATURES, N_LABELS), model.network().n_values() as u64);
        }
        // Without moments and a copy, two tables of LSA are more than a table and a step's buffers.
        let wide = |init| {
            let mut params = params.clone();
            params.learning.init = init;
            learn::memory(&params, &Workload { n_features: 1 << 20, moments: Moments::NONE, keeps_best: false, ..work })
                .total()
        };
        let (random, lsa) = (wide(EmbeddingInit::Random), wide(EmbeddingInit::Lsa));
        let table = 4 << 20;
        match params.encoder.input() {
            InputKind::Sparse => assert!(lsa > random + table * 11 && lsa >= 2 * 12 * table, "{lsa} {random}"),
            _ => assert_eq!(lsa, random),
        }
    }
}

#[test]
fn sizes_beyond_all_memory_do_not_wrap() {
    let mut params = dense();
    *params.encoder.widths_mut() = vec![usize::MAX / 2, 1 << 40];
    let work = Workload {
        n_instances: 100,
        n_features: 1 << 40,
        n_labels: usize::MAX,
        batch_size: 1 << 20,
        n_epochs: 1,
        moments: Optimizer::adam().moments(),
        keeps_best: true,
        clips: false,
        tokens: Default::default(),
    };
    assert_eq!(learn::memory(&params, &work).total(), u64::MAX);
}

/// The table and the bias of the bag.
fn embeddings(model: &Classifier) -> Vec<Vec<f32>> {
    let parameters = model.network().parameters();
    let of_bag = parameters.iter().filter(|named| named.name.starts_with("bag."));
    of_bag.map(|named| named.parameter.values().to_vec()).collect()
}

#[test]
fn embeddings_begin_at_an_lsa_of_the_rows_learned_from_and_learn_at_their_share() {
    let data = Data::new();
    let params = uniform();
    let features = data.features(InputKind::Sparse);
    let begun = |targets: &LabelRows, fraction: f64| {
        let (train, _) = Subset::split(Examples::try_new(features, targets).unwrap(), fraction, 3);
        let mut model = classifier(&params);
        learn::initialise(&mut model, None, &train, &Silent).unwrap();
        embeddings(&model)
    };
    let first = begun(&data.y, 0.0);
    // Sums have the size of those of random vectors; columns are orthogonal.
    let [table, bias] = &first[..] else { panic!("a table and a bias") };
    let sums = |i: usize| {
        let row = data.x.view().row(i);
        let of = |k: usize| {
            row.indices().iter().zip(row.values()).map(|(&f, v)| v * table[f as usize * 12 + k]).sum::<f32>()
        };
        (0..12).map(|k| f64::from(of(k)).powi(2)).sum::<f64>()
    };
    let mean = (0..N).map(sums).sum::<f64>() / (12 * N) as f64;
    assert!((mean * 60.0 - 1.0).abs() < 0.1, "{mean}");
    assert!(bias.iter().all(|&b| b == 0.0));
    let dot = |a: usize, b: usize| table.chunks(12).map(|row| f64::from(row[a]) * f64::from(row[b])).sum::<f64>();
    assert!(dot(0, 5).abs() < 1e-4 * dot(0, 0) && dot(11, 3).abs() < 1e-4 * dot(0, 0));
    // Labels have no say, rows that judge neither.
    let none = LabelRows::from_lists(vec![[0u32; 0]; N], N_LABELS).unwrap();
    assert_eq!(begun(&none, 0.0), first);
    assert_ne!(begun(&data.y, 0.2), first);
    // Adam's steps are the rate in size, so its share shows.
    let moved = |share: f32| {
        let mut params = params.clone();
        params.learning.embedding_rate = share;
        let model = trained(&data, &params);
        let largest = |now: &[f32], then: &[f32]| now.iter().zip(then).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        embeddings(&model).iter().zip(&first).map(|(now, then)| largest(now, then)).fold(0.0, f32::max)
    };
    assert_eq!(moved(0.0), 0.0);
    let (whole, part) = (moved(1.0), moved(0.01));
    assert!(part > 0.0 && part < 0.03 * whole, "{part} {whole}");
}

#[test]
fn embeddings_that_do_not_learn_stay_whatever_is_above_them() {
    let data = Data::new();
    let mut base = uniform();
    base.learning.embedding_rate = 0.0;
    let mut bare = base.clone();
    (bare.encoder, bare.learning.init) = (EncoderParams::bag([12]), EmbeddingInit::Random);
    let sample = Subset::all(Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap());
    for (params, clip_norm) in [(&base, Some(0.5)), (&bare, None), (&bare, Some(0.5))] {
        let settings = TrainParams { batch_size: 16, epochs: 1, rate: 0.01, clip_norm, ..TrainParams::default() };
        let mut begun = classifier(params);
        learn::initialise(&mut begun, None, &sample, &Silent).unwrap();
        let model = train(&data, params, settings);
        let head = |model: &Classifier| model.network().head().parameters()[0].parameter.values().to_vec();
        assert_eq!(embeddings(&model), embeddings(&begun), "{clip_norm:?}");
        assert_ne!(head(&model), head(&begun), "{clip_norm:?}: nothing was learned");
    }
}

#[test]
fn an_lsa_stops_when_asked_to() {
    struct Stop;
    impl Cancel for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }

    impl Observer<TrainEvent<'_>> for Stop {
        fn event(&self, _: TrainEvent<'_>) {}
    }
    let data = Data::new();
    let examples = Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap();
    let got = learn::initialise(&mut classifier(&uniform()), None, &Subset::all(examples), &Stop);
    assert!(matches!(got, Err(TrainError::Cancelled { step: 0 })), "{got:?}");
}

#[test]
fn what_screening_takes_is_foreseen_where_it_happens() {
    let mut params = preset::uniform().params;
    params.encoder = EncoderParams::vectors([32_768]);
    let (n_labels, width, fan_in) = (100_000, 32_768, 32);
    let more = |params: &ClassifierParams, batch_size, clips| {
        let work = Workload {
            n_instances: 100,
            n_features: 64,
            n_labels,
            batch_size,
            n_epochs: 1,
            moments: Optimizer::adam().moments(),
            keeps_best: false,
            clips,
            tokens: Default::default(),
        };
        let mut without = params.clone();
        without.learning.connections.screening = false;
        learn::memory(params, &work).buffers - learn::memory(&without, &work).buffers
    };
    let expected = ByteLines::bytes(512, width) + 16_384 * ScreenRows::bytes_each(fan_in);
    assert_eq!(more(&params, 512, false), expected);
    assert_eq!(more(&params, 64, false), 0, "small batches");
    assert_eq!(more(&params, 512, true), expected, "clipping");
    assert_eq!(more(&ClassifierParams { loss: Loss::Bce, ..params }, 512, false), 0, "no margin");
}

#[test]
fn the_bias_begins_at_how_often_a_label_is_true() {
    let data = Data::new();
    let mut params = uniform();
    *params.encoder.widths_mut() = vec![12];
    let mut model = classifier(&params);
    let examples = Examples::try_new(data.features(InputKind::Sparse), &data.y).unwrap();
    learn::initialise(&mut model, None, &Subset::all(examples), &Silent).unwrap();
    let count = data.y.labels().iter().filter(|&&l| l == 7).count() as f64;
    let parameters = model.network().parameters();
    let bias = parameters.iter().find(|named| named.name == "head.bias").unwrap().parameter.values()[7];
    // A tenth below the prior, which keeps the first scores of what is false off the margin.
    assert!((f64::from(bias) - (2.0 * (count + 0.5) / (N as f64 + 1.0) - 1.1)).abs() < 1e-6);
}

#[test]
fn impossible_classifiers_are_refused() {
    let said = |change: fn(&mut ClassifierParams)| {
        let mut params = uniform();
        (*params.encoder.widths_mut(), head(&mut params).fan_in) = (vec![8, 16], 4);
        change(&mut params);
        Classifier::new(preset::UNIFORM, N_FEATURES, N_LABELS, params).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(said(|p| head(p).fan_in = 17), "17 connections a label, expected at most the number of inputs, 16");
    assert_eq!(said(|p| head(p).fan_in = 0), "the number of connections a label is 0, expected at least 1");
    assert!(said(|p| p.encoder.widths_mut().clear()).contains("expected at least one width"));
    assert!(said(|p| *p.encoder.widths_mut() = vec![3, 0]).contains("expected at least one width"));
    assert!(said(|p| p.learning.connections.moments = DType::F16).contains("moments of f16, expected f32 or bf16"));
    assert!(said(|p| p.learning.connections.rewire_fraction = f64::NAN).contains("rewire_fraction is NaN"));
    assert!(said(|p| p.learning.negatives.sampler = SamplerParams::Uniform { per_list: 0 }).contains("per_list is 0"));
    let power =
        |p: &mut ClassifierParams| p.learning.negatives.sampler = SamplerParams::Frequency { per_list: 3, power: -1.0 };
    assert!(said(power).contains("power is -1"));
    assert!(
        said(|p| p.learning.negatives.sampler = SamplerParams::TopK { per_instance: 2 })
            .contains("the layer is sparse")
    );
    assert!(said(|p| p.learning.embedding_rate = -0.1).contains("embedding_rate is -0.1"));
    assert!(said(|p| p.learning.embedding_rate = f32::INFINITY).contains("embedding_rate is inf"));
    assert!(said(|p| p.learning.dropout = 1.0).contains("dropout is 1"));
    assert!(said(|p| p.learning.input_dropout = f32::NAN).contains("input_dropout is NaN"));
    let mut many = preset::uniform().params;
    head(&mut many).fan_in = 1 << 12;
    assert!(matches!(many.check(10, 1 << 20), Err(ClassifierParamsError::TooMany { .. })));
    assert!(many.check(10, 1 << 19).is_ok());
    many.learning.connections.rewire_every = 0;
    assert!(many.check(10, 1 << 20).is_ok());
    let mut stored = serde_json::to_value(uniform()).unwrap();
    // How it learns stands elsewhere.
    let known = ClassifierParams { learning: LearningParams::default(), ..uniform() };
    assert_eq!(serde_json::from_value::<ClassifierParams>(stored.clone()).unwrap(), known);
    stored["other"] = 1.into();
    assert!(serde_json::from_value::<ClassifierParams>(stored).is_err());
}

#[test]
fn a_folder_that_is_no_classifier_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut params = dense();
    *params.encoder.widths_mut() = vec![3];
    let model = Classifier::new(preset::DENSE, 5, 4, params.clone()).unwrap();
    let save = |kind: &str, change: &dyn Fn(&mut ContainerWriter)| {
        let mut writer = ContainerWriter::create(&path, kind).unwrap();
        model.write(&mut writer).unwrap();
        change(&mut writer);
        writer.finish().unwrap();
        Classifier::open(&path)
    };
    assert!(save(preset::DENSE, &|_| ()).is_ok());
    assert!(matches!(save("tree", &|_| ()), Err(OpenClassifierError::Kind { .. })));
    let many = |w: &mut ContainerWriter| w.set_parameter("n_labels", u64::MAX / 2);
    assert!(matches!(save(preset::DENSE, &many), Err(OpenClassifierError::Container(_))));
    for widths in [vec![], vec![0]] {
        // Empty arrays of any shape weigh nothing on disk; the network that they ask for would.
        let mut without = params.clone();
        *without.encoder.widths_mut() = widths;
        let change = |w: &mut ContainerWriter| w.set_parameter("classifier", serde_json::to_value(&without).unwrap());
        assert!(matches!(save(preset::DENSE, &change), Err(OpenClassifierError::Params { .. })));
    }
    let no_query = CsrMatrix::zero((0, 5));
    let no_query = Rows::Sparse(no_query.view());
    assert_eq!(model.predict(no_query, 3, Only::All, &mut ClassifierScratch::default()).unwrap().len(), 0);
}

#[test]
fn a_bias_that_the_file_does_not_hold_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut writer = ContainerWriter::create(&path, preset::DENSE).unwrap();
    let width = 1usize << 24;
    let mut params = dense();
    *params.encoder.widths_mut() = vec![width];
    writer.set_parameter("n_features", 0u64);
    writer.set_parameter("n_labels", 0u64);
    writer.set_parameter("classifier", serde_json::to_value(&params).unwrap());
    for (name, shape) in [("bag.table", [0, width]), ("head.weights", [0, width]), ("head.bias", [0, 1])] {
        writer.add(name, ArrayRef::new::<f32>(&[], &shape)).unwrap();
    }
    writer.add("bag.bias", ArrayRef::new(&[0.5f32], &[1, 1])).unwrap();
    writer.finish().unwrap();
    let message = Classifier::open(&path).unwrap_err().to_string();
    assert!(message.contains("bag.bias") && message.contains("16777216"), "{message}");
}

#[test]
fn a_classifier_without_labels_answers_every_query_with_nothing() {
    let model = Classifier::new(preset::DENSE, 5, 0, dense()).unwrap();
    let queries = CsrMatrix::zero((2, 5));
    let queries = Rows::Sparse(queries.view());
    let answers = model.predict(queries, 3, Only::All, &mut ClassifierScratch::default()).unwrap();
    assert_eq!((answers.len(), answers.iter().flatten().count()), (2, 0));
}
