//! The rows.

use crate::Failed;
use crate::inputs::{TreeShape, numbers, sparse_rows};
use rayon::prelude::*;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use xc_ann::cuda::ExactScan;
use xc_ann::{Metric, exact};
use xc_buffer::dtype::DType;
use xc_dense::DenseRows;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_kernels::Device;
use xc_kernels::best::Best;
use xc_kernels::product::{Product, Rows};
use xc_lsh::cuda::SimHashOn;
use xc_lsh::{Family as _, FamilyKind, Keys, Projection, SimHash};
use xc_mach::{Assignment, BucketScores, DecodeScratch, Decoder};
use xc_nn::cuda::{EncoderOnDevice, HeadOnDevice};
use xc_nn::encoder::{Bag, Precomputed, Stack};
use xc_nn::head::sparse::SparseParams;
use xc_nn::head::{Dense, Ranked, Sparse};
use xc_nn::{Activation, Activations, Batch, Encoder, Head, Init, Network, Scratch, in_memory};
use xc_sparse::rank::{RankedBatch, Scored, TopK, from_rank_key};
use xc_tree::PredictParams;

/// What a call answered, as bytes: these are made when the call's time has been taken.
pub(crate) type Answer = Box<dyn FnOnce() -> Vec<u8>>;

/// A row at one size, on one device.
pub(crate) struct Case {
    /// Runs it.
    pub(crate) call: Box<dyn FnMut() -> Result<Answer, Failed>>,
    /// The CPU's bytes.
    pub(crate) expected: Box<dyn FnOnce() -> Vec<u8>>,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Counts grow in proportion between these sizes and the one that is timed.
    pub(crate) counted: [usize; 2],
    pub(crate) timed: usize,
    /// Whether kernels depend on how many queries there are for a multiprocessor: then small sizes have few of these.
    pub(crate) by_processor: bool,
    /// Queries of a call.
    pub(crate) queries: fn(usize) -> usize,
    /// Operations of a call by its definition; 0: not stated.
    pub(crate) flops: fn(usize) -> f64,
    /// Bytes that a call reads and writes if each goes once to memory.
    pub(crate) most_bytes: fn(usize) -> f64,
    pub(crate) case: MakeCase,
}

const MACH_QUERIES: usize = 32;
const MACH_REPETITIONS: u32 = 32;
const MACH_BUCKETS: u32 = 20_000;
const SCAN_WIDTH: usize = 128;
const SCAN_QUERIES: usize = 256;
const PRODUCT_SIDE: usize = 8192;
const PRODUCT_K: usize = 4096;
const TILE: usize = 128;
const BEST: (usize, usize) = (256, 64);
const BITS: usize = 450;
const SPARSE: (usize, usize, usize) = (256, 512, 32);
const DENSE: (usize, usize) = (128, 512);

pub(crate) const ROWS: &[Row] = &[
    of_tree(
        "tree, 69,120 labels, 29 features, batch 1,024",
        1024,
        |_| 74e6,
        |device, n| tree(device, &GIT_FILES, n, 29),
    ),
    of_tree(
        "tree, 69,120 labels, 29 features, batch 8,192",
        8192,
        |_| 74e6,
        |device, n| tree(device, &GIT_FILES, n, 29),
    ),
    of_tree(
        "tree, 507,904 labels 32 wide, 75 features, batch 1,024",
        1024,
        |_| 250e6,
        |device, n| tree(device, &WIDE_32, n, 75),
    ),
    of_mach("MACH mean, 50M labels, 32 repetitions, 32 queries", |device, n| mach(device, n, Decoder::Mean)),
    of_mach("MACH min, 50M labels, 32 repetitions, 32 queries", |device, n| mach(device, n, Decoder::Min)),
    of_mach("MACH median, 50M labels, 32 repetitions, 32 queries", |device, n| mach(device, n, Decoder::Median)),
    Row {
        name: "exact product, 8,192 x 4,096 x 8,192",
        counted: [1, 2],
        timed: 4096,
        by_processor: false,
        queries: |_| 1,
        flops: |tiles| 2.0 * (tiles * TILE * TILE * PRODUCT_K) as f64,
        most_bytes: |_| 4.0 * (2 * PRODUCT_SIDE * PRODUCT_K + PRODUCT_SIDE * PRODUCT_SIDE) as f64,
        case: exact_product,
    },
    Row {
        name: "exact scan, 4M x 128, 1 query",
        counted: [20_000, 60_000],
        timed: 4_000_000,
        by_processor: false,
        queries: |_| 1,
        flops: |n| 2.0 * (n * SCAN_WIDTH) as f64,
        most_bytes: |n| (4 * n * (SCAN_WIDTH + 2)) as f64,
        case: |device, n| scan(device, n, 1),
    },
    Row {
        name: "exact scan, 1M x 128, 256 queries",
        counted: [2048, 3072],
        timed: 1_000_000,
        by_processor: false,
        queries: |_| SCAN_QUERIES,
        flops: |n| 2.0 * (n * SCAN_WIDTH * SCAN_QUERIES) as f64,
        most_bytes: |n| (4 * n * (SCAN_WIDTH + 2)) as f64,
        case: |device, n| scan(device, n, SCAN_QUERIES),
    },
    Row {
        name: "row top 10, 256 x 670,091, 64 wide",
        counted: [2048, 4096],
        timed: 670_091,
        by_processor: false,
        queries: |_| BEST.0,
        flops: |n| 2.0 * (n * BEST.0 * BEST.1) as f64,
        most_bytes: |n| (4 * n * BEST.1) as f64 + 4e6,
        case: best_of_rows,
    },
    Row {
        name: "SimHash, 200,000 x 128, 450 bits",
        counted: [128, 512],
        timed: 200_000,
        by_processor: false,
        queries: |n| n,
        flops: |n| 2.0 * (n * SCAN_WIDTH * BITS) as f64,
        most_bytes: |n| (n * (4 * SCAN_WIDTH + 3 * 64 + 200)) as f64,
        case: sim_hash,
    },
    Row {
        name: "uniform layer, 670,091 x 32 of 512, batch 256, top 5",
        counted: [2048, 3072],
        timed: 670_091,
        by_processor: false,
        queries: |_| SPARSE.0,
        flops: |n| 2.0 * (n * SPARSE.0 * SPARSE.2) as f64,
        most_bytes: |n| (n * (4 * SPARSE.2 + 4)) as f64 + 2e6,
        case: uniform,
    },
    Row {
        name: "bag of 130,000 x 512 and 131,072 dense outputs, batch 128, top 5",
        counted: [2048, 3072],
        timed: 131_072,
        by_processor: false,
        queries: |_| DENSE.0,
        flops: |n| 2.0 * (n * DENSE.0 * DENSE.1) as f64,
        most_bytes: |n| (4 * n * DENSE.1) as f64 + 30e6,
        case: bag_and_dense,
    },
];

type MakeCase = fn(&Arc<Device>, usize) -> Result<Case, Failed>;

/// A row whose size is the number of queries; `model_bytes` are those of the model.
const fn of_tree(name: &'static str, batch: usize, model_bytes: fn(usize) -> f64, case: MakeCase) -> Row {
    Row {
        name,
        counted: [16, 48],
        timed: batch,
        by_processor: true,
        queries: |n| n,
        flops: |_| 0.0,
        most_bytes: model_bytes,
        case,
    }
}

/// A row whose size is the number of labels.
const fn of_mach(name: &'static str, case: MakeCase) -> Row {
    Row {
        name,
        counted: [4096, 12_288],
        timed: 50_000_000,
        by_processor: false,
        queries: |_| MACH_QUERIES,
        flops: |_| 0.0,
        most_bytes: |_| 200e6,
        case,
    }
}

/// Of the shape of a tree trained on names of files: levels, children and weights.
const GIT_FILES: TreeShape =
    TreeShape { levels: &[(16, 21_000), (16, 5200), (3, 1970), (90, 118)], n_features: 54_226 };
const WIDE_32: TreeShape = TreeShape { levels: &[(16, 20_000), (31, 4000), (32, 400), (32, 40)], n_features: 130_000 };

fn pair(of: Scored) -> [u32; 2] {
    [of.label, of.score.to_bits()]
}

fn bytes(batch: &RankedBatch) -> Vec<u8> {
    let of = |row: &[Scored]| {
        let pairs = row.iter().flat_map(|&s| pair(s));
        [row.len() as u32].into_iter().chain(pairs).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
    };
    batch.iter().flat_map(of).collect()
}

fn answer(batch: RankedBatch) -> Answer {
    Box::new(move || bytes(&batch))
}

/// A hash of all bits: products are large.
fn hash(values: &[f32]) -> Vec<u8> {
    let of = |part: &[f32]| {
        let mut hasher = DefaultHasher::new();
        part.iter().for_each(|v| hasher.write_u32(v.to_bits()));
        hasher.finish().to_le_bytes()
    };
    values.par_chunks(1 << 18).flat_map_iter(of).collect()
}

fn tree(device: &Arc<Device>, shape: &'static TreeShape, n: usize, n_features: usize) -> Result<Case, Failed> {
    let (model, queries) = (shape.model(), shape.queries(n, n_features));
    let on_device = model.on(device)?;
    let (of_cpu, params) = (queries.clone(), PredictParams::top(10));
    Ok(Case {
        call: Box::new(move || Ok(answer(on_device.predict_batch(queries.view(), &params)?))),
        expected: Box::new(move || bytes(&model.predict_batch(of_cpu.view(), &params).unwrap())),
    })
}

/// Scores of a network that is sure of a dozen labels a query, from less to less. They are among the first, as where
/// labels are numbered by how frequent they are: what a scan finds early screens the rest.
fn sure(of: &Assignment) -> Vec<f32> {
    const FREQUENT: usize = 2048;
    let (n_repetitions, n_buckets) = (of.n_repetitions(), of.n_buckets());
    let mut scores = numbers(MACH_QUERIES * n_repetitions * n_buckets, 3);
    scores.par_iter_mut().for_each(|score| *score = score.abs().powi(4) * 1e-3);
    for query in 0..MACH_QUERIES {
        for i in 0..12 {
            let label = (query * 37 + i * 97) % FREQUENT.min(of.n_labels());
            for position in 0..n_repetitions {
                let bucket = of.bucket(position, label as u32) as usize;
                scores[(query * n_repetitions + position) * n_buckets + bucket] += 0.6 / (i + 1) as f32;
            }
        }
    }
    scores
}

fn mach(device: &Arc<Device>, n_labels: usize, decoder: Decoder) -> Result<Case, Failed> {
    /// Queries of which the CPU's answers are compared.
    const COMPARED: usize = 16;
    let params = UniversalParams {
        family: UniversalFamily::MultiplyShift,
        n_keys: n_labels as u64,
        n_buckets: MACH_BUCKETS,
        seed: 11,
    };
    let of = Assignment::first(params, MACH_REPETITIONS)?;
    let (scores, on_device) = (sure(&of), of.on(device)?);
    let uploaded = device.upload(&scores)?;
    let each = of.n_repetitions() * of.n_buckets();
    let first = move |mut bytes: Vec<u8>| {
        bytes.truncate(COMPARED * 84);
        bytes
    };
    let call = move || {
        let answers = on_device.scan(&uploaded, MACH_QUERIES, decoder, 10)?;
        Ok(Box::new(move || first(bytes(&answers))) as Answer)
    };
    let expected = move || {
        let one = |scores: &[f32]| {
            let scores = BucketScores::try_new(scores, of.n_repetitions(), of.n_buckets()).expect("scores");
            let (mut scratch, mut out) = (DecodeScratch::default(), Vec::new());
            of.scan(&scores, decoder, 10, &mut scratch, &mut out);
            out
        };
        let rows: Vec<Vec<Scored>> = scores.par_chunks(each).take(COMPARED).map(one).collect();
        let mut batch = RankedBatch::new();
        rows.iter().for_each(|row| batch.push_row(row));
        first(bytes(&batch))
    };
    Ok(Case { call: Box::new(call), expected: Box::new(expected) })
}

fn exact_product(device: &Arc<Device>, tiles: usize) -> Result<Case, Failed> {
    let tall = (tiles as f64).sqrt().ceil() as usize;
    let (m, n, k) = (tall * TILE, tiles / tall * TILE, PRODUCT_K);
    let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
    let (on_a, on_b, mut c) = (device.upload(&a)?, device.upload(&b)?, device.zeros::<f32>(m * n)?);
    let (product_of, device) = (Product::load(device)?, device.clone());
    let call = move || {
        let (a, b) = (Rows::new(&on_a, m, k, k), Rows::new(&on_b, n, k, k));
        product_of.run(device.stream(), a, b, None, &mut c)?;
        let entries = device.download(&c)?;
        Ok(Box::new(move || hash(&entries)) as Answer)
    };
    let expected = move || {
        let mut c = vec![0.0; m * n];
        let (a, b) = (MatRef::new(&a, m, k), MatRef::new(&b, n, k).t());
        product(MatMut::new(&mut c, m, n), a, b, Start::Zero, MatmulPrecision::F32, &mut Default::default());
        hash(&c)
    };
    Ok(Case { call: Box::new(call), expected: Box::new(expected) })
}

fn scan(device: &Arc<Device>, n: usize, n_queries: usize) -> Result<Case, Failed> {
    // A scan borrows rows and device; these stay until the program ends.
    let rows: &'static [f32] = numbers(n * SCAN_WIDTH, 1).leak();
    let device: &'static Device = Box::leak(Box::new(Device::clone(device)));
    let (rows, queries) = (DenseRows::new(rows, SCAN_WIDTH), numbers(n_queries * SCAN_WIDTH, 2));
    let scan = ExactScan::on(device, rows, Metric::InnerProduct)?;
    let of_cpu = queries.clone();
    Ok(Case {
        call: Box::new(move || Ok(answer(scan.exact(DenseRows::new(&queries, SCAN_WIDTH), 10, None)?))),
        expected: Box::new(move || bytes(&exact(rows, DenseRows::new(&of_cpu, SCAN_WIDTH), Metric::InnerProduct, 10))),
    })
}

fn best_of_rows(device: &Arc<Device>, n: usize) -> Result<Case, Failed> {
    const TOP: usize = 10;
    let (m, k) = BEST;
    let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
    let (on_a, on_b, best, device) = (device.upload(&a)?, device.upload(&b)?, Best::load(device)?, device.clone());
    let call = move || {
        let ranked = best.run(&device, Rows::new(&on_a, m, k, k), Rows::new(&on_b, n, k, k), None, TOP)?;
        let bytes = move || {
            let rows = (0..m).flat_map(|i| &ranked.row(i)[..TOP]);
            rows.flat_map(|&key| pair(from_rank_key(key))).flat_map(u32::to_le_bytes).collect()
        };
        Ok(Box::new(bytes) as Answer)
    };
    let expected = move || {
        let of = |row: &[f32]| {
            let mut best = TopK::new(TOP);
            for (label, other) in b.chunks_exact(k).enumerate() {
                let score = row.iter().zip(other).fold(0.0f32, |sum, (&a, &b)| a.mul_add(b, sum));
                best.push(Scored { label: label as u32, score });
            }
            best.sorted().iter().flat_map(|&s| pair(s)).flat_map(u32::to_le_bytes).collect()
        };
        let rows: Vec<Vec<u8>> = a.par_chunks(k).map(of).collect();
        rows.concat()
    };
    Ok(Case { call: Box::new(call), expected: Box::new(expected) })
}

fn sim_hash(device: &Arc<Device>, n: usize) -> Result<Case, Failed> {
    const TABLES: u32 = 50;
    let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
    let n_codes = BITS as u32 / TABLES;
    let params = xc_lsh::FamilyParams { kind, width: SCAN_WIDTH, n_codes, n_tables: TABLES, key_bits: 32, seed: 5 };
    let family: &'static SimHash = Box::leak(Box::new(SimHash::new(params)?));
    let device: &'static Device = Box::leak(Box::new(Device::clone(device)));
    let (on_device, rows) = (SimHashOn::new(device, family)?, numbers(n * SCAN_WIDTH, 1));
    let of_cpu = rows.clone();
    let bytes = |keys: &Keys| keys.as_slice().iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>();
    Ok(Case {
        call: Box::new(move || {
            let mut keys = Keys::new(TABLES as usize);
            on_device.keys_dense(DenseRows::new(&rows, SCAN_WIDTH), &mut keys)?;
            Ok(Box::new(move || bytes(&keys)))
        }),
        expected: Box::new(move || {
            let mut keys = Keys::new(TABLES as usize);
            let rows = DenseRows::new(&of_cpu, SCAN_WIDTH);
            family.keys_dense(rows, &mut keys, &mut Default::default()).expect("keys");
            bytes(&keys)
        }),
    })
}

fn network<E, H>(device: &Arc<Device>, network: Network<E, H>, batch: Batch) -> Result<Case, Failed>
where
    E: Encoder<Output = Activations> + EncoderOnDevice + 'static,
    H: Head<Input = Activations> + HeadOnDevice + 'static,
{
    const TOP: usize = 5;
    let on_device = network.on(device)?;
    let batch = Arc::new(batch);
    let of_cpu = batch.clone();
    let call = move || {
        let mut ranked = Ranked::default();
        on_device.rank(&batch, TOP, &mut ranked)?;
        Ok(answer(ranked.best))
    };
    let expected = move || {
        let (mut scratch, mut ranked) = (Scratch::default(), Ranked::default());
        in_memory(network.rank(&of_cpu, None, TOP, &mut scratch, &mut ranked));
        bytes(&ranked.best)
    };
    Ok(Case { call: Box::new(call), expected: Box::new(expected) })
}

fn uniform(device: &Arc<Device>, n_labels: usize) -> Result<Case, Failed> {
    let (n, width, per_output) = SPARSE;
    let params = SparseParams { per_output, uniform: true, weights: DType::Bf16, moments: DType::F32, rewire: None };
    let head = Sparse::new(n_labels, width, params, Init::Random { seed: 1 })?;
    let values = numbers(n * width, 2);
    let mut batch = Batch::default();
    batch.fill_features(xc_nn::Rows::Dense(DenseRows::new(&values, width)), 0..n);
    network(device, Network::new(Stack::new(Precomputed::new(width)), head), batch)
}

fn bag_and_dense(device: &Arc<Device>, n_labels: usize) -> Result<Case, Failed> {
    const FEATURES: usize = 130_000;
    let (n, width) = DENSE;
    let encoder = Stack::new(Bag::new(FEATURES, width, Activation::Relu, 0.0, 1));
    let head = Dense::new(n_labels, width, Init::Random { seed: 2 });
    let rows = sparse_rows(n, FEATURES, 75);
    let mut batch = Batch::default();
    batch.fill_features(xc_nn::Rows::Sparse(rows.view()), 0..n);
    network(device, Network::new(encoder, head), batch)
}
