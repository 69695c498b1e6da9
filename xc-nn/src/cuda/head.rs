//! Output layers on a device.

use super::DeviceRows;
use super::kernels::{DeviceLinear, Kernels, THREADS, XcConnections, XcPairs, XcUniform};
use crate::head::{Dense, Sampled, Sparse};
use std::ops::Range;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::Float;
use xc_kernels::best::{Keeping, Kept};
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Error, Plan, Shape, address};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK, from_rank_key};
use xc_sparse::uniform::{FanIn, InputIds, LANES};

/// An output layer that a device can run.
pub trait HeadOnDevice {
    /// Adds the memory that it takes there.
    fn plan(&self, plan: Plan) -> Plan;

    /// Copies it there.
    ///
    /// # Errors
    /// The device fails.
    fn on(&self, kernels: &Kernels) -> Result<DeviceHead, Error>;
}

/// An output layer on a device.
#[derive(Debug)]
pub struct DeviceHead {
    layer: Layer,
    n_labels: usize,
}

#[derive(Debug)]
enum Layer {
    Dense(DeviceLinear),
    Sparse(Connections),
}

/// Connections of labels, and what keeps them.
#[derive(Debug)]
struct Connections {
    of: XcConnections,
    _starts: Option<CudaSlice<u64>>,
    _inputs: CudaSlice<u8>,
    _weights: CudaSlice<u8>,
    _table: CudaSlice<f32>,
    _bias: CudaSlice<f32>,
}

/// The name of a part of a plan.
const OUTPUT_LAYER: &str = "the output layer";

impl HeadOnDevice for Dense {
    fn plan(&self, plan: Plan) -> Plan {
        self.answering().plan(plan, OUTPUT_LAYER)
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceHead, Error> {
        let linear = self.answering().on(kernels)?;
        Ok(DeviceHead { layer: Layer::Dense(linear), n_labels: self.bias().len() })
    }
}

impl HeadOnDevice for Sampled {
    fn plan(&self, plan: Plan) -> Plan {
        let of = DeviceLinear::n_values(self.stored().len(), self.params().precision) + self.bias().values().len();
        plan.of::<f32>(OUTPUT_LAYER, of)
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceHead, Error> {
        let device = &kernels.device;
        let (rows, bias) = (self.stored(), self.bias().values());
        let width = rows.len() / bias.len().max(1);
        let weights = match rows {
            FloatBuffer::F32(values) => device.upload(values)?,
            rows => {
                let mut values = vec![0.0; rows.len()];
                rows.widen(0..rows.len(), &mut values);
                device.upload(&values)?
            }
        };
        let linear = DeviceLinear::new(kernels, weights, bias, width, self.params().precision)?;
        Ok(DeviceHead { layer: Layer::Dense(linear), n_labels: bias.len() })
    }
}

impl HeadOnDevice for Sparse {
    fn plan(&self, plan: Plan) -> Plan {
        plan.of::<u8>(OUTPUT_LAYER, self.connections().n_bytes() + 4 * self.bias().values().len())
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceHead, Error> {
        let device = &kernels.device;
        let (connections, bias) = (self.connections(), self.bias().values());
        let (fan_in, starts) = match connections.fan_in() {
            FanIn::Uniform(fan_in) => (*fan_in as u32, None),
            FanIn::Varying(starts) => (0, Some(device.upload(starts)?)),
        };
        let (inputs, weights) = (device.upload(connections.indices().bytes())?, connections.weights());
        let (of_type, table) = type_of(weights);
        let (weights, table, on_bias) = (device.upload(weights.bytes())?, device.upload(&table)?, device.upload(bias)?);
        let of = XcConnections {
            starts: starts.as_ref().map_or(0, address),
            inputs: address(&inputs),
            weights: address(&weights),
            table: address(&table),
            bias: address(&on_bias),
            fan_in,
            n_inputs: connections.n_inputs() as u32,
            is_wide: u32::from(matches!(connections.indices(), InputIds::U32(_))),
            r#type: of_type,
        };
        let connections =
            Connections { of, _starts: starts, _inputs: inputs, _weights: weights, _table: table, _bias: on_bias };
        Ok(DeviceHead { layer: Layer::Sparse(connections), n_labels: bias.len() })
    }
}

/// The number that kernels have for a type of weights, and the values of its numbers of one byte.
fn type_of(weights: &FloatBuffer) -> (u32, Vec<f32>) {
    fn table<T: Float>() -> Vec<f32> {
        (0..=u8::MAX).map(|bits| bytemuck::pod_read_unaligned::<T>(&[bits]).widen()).collect()
    }
    match weights {
        FloatBuffer::F32(_) => (0, Vec::new()),
        FloatBuffer::Bf16(_) => (1, Vec::new()),
        FloatBuffer::F16(_) => (2, Vec::new()),
        FloatBuffer::E4m3(_) => (3, table::<xc_buffer::dtype::E4m3>()),
        FloatBuffer::E5m2(_) => (3, table::<xc_buffer::dtype::E5m2>()),
    }
}

impl DeviceHead {
    /// Logits of all labels.
    pub(super) fn logits(&self, kernels: &Kernels, vectors: &DeviceRows) -> Result<DeviceRows, Error> {
        let connections = match &self.layer {
            Layer::Dense(linear) => return linear.forward(kernels, vectors),
            Layer::Sparse(connections) => connections,
        };
        let lines = connections.lines(kernels, vectors)?;
        let mut values = kernels.device.zeros::<f32>(vectors.n * self.n_labels)?;
        let args = XcUniform { lines: address(&lines), first: 0, n: self.n_labels as u32, n_rows: vectors.n as u32 };
        let call = kernels.uniform.call(kernels.device.stream()).arg(&connections.of).arg(&args).arg(&mut values);
        // SAFETY: the structs are the kernel's, whose layout was compared; there are lines for all rows, and room for a
        // logit of each label.
        unsafe { call.launch(shape(self.n_labels, vectors.n)) }?;
        Ok(DeviceRows { values, n: vectors.n, width: self.n_labels })
    }

    /// The best labels of each row.
    pub(super) fn rank(
        &self,
        kernels: &Kernels,
        vectors: &DeviceRows,
        k: usize,
        out: &mut RankedBatch,
    ) -> Result<(), Error> {
        let (device, n) = (&kernels.device, self.n_labels);
        let connections = match &self.layer {
            Layer::Dense(linear) => {
                let best = linear.with(kernels, vectors, |input, weights| {
                    kernels.best.run(device, input, weights, Some(linear.bias()), k)
                })?;
                (0..best.len()).for_each(|row| push(best.row(row), out));
                return Ok(());
            }
            Layer::Sparse(connections) => connections,
        };
        let k = k.min(n);
        if k == 0 || vectors.is_empty() {
            (0..vectors.n).for_each(|_| out.push_row(&[]));
            return Ok(());
        }
        let lines = connections.lines(kernels, vectors)?;
        let mut kept = Kept::new(device, vectors.n, k, Kept::usual_room(n, 2 * k).max(k))?;
        let offer = |part: Range<usize>, keeping: &Keeping| {
            let (first, n) = (part.start as u64, part.len() as u32);
            let args = XcUniform { lines: address(&lines), first, n, n_rows: vectors.n as u32 };
            let call = kernels.uniform_best.call(device.stream()).arg(&connections.of).arg(&args).arg(keeping);
            // SAFETY: as in `logits`; `kept` has room for its rows.
            unsafe { call.launch(shape(part.len(), vectors.n)) }
        };
        let wanted = k as u32;
        let narrow = |keeping: &Keeping, lost: &mut CudaSlice<u32>| {
            let call = kernels.narrow.call(device.stream()).arg(keeping).arg(&wanted).arg(lost);
            // SAFETY: `kept` has room for its rows, of which each has a block.
            unsafe { call.launch(Shape { grid: [vectors.n, 1, 1], threads: THREADS as u32, shared: 0 }) }
        };
        kept.search(device, n, usize::MAX, offer, narrow)?;
        let (keys, begin) = kept.gathered(device)?;
        let mut keys = device.download(&keys)?;
        for ends in begin.windows(2) {
            let keys = &mut keys[ends[0] as usize..ends[1] as usize];
            keys.sort_unstable();
            push(&keys[..k.min(keys.len())], out);
        }
        Ok(())
    }

    /// The best labels of each row among those of its list.
    pub(super) fn rank_some(
        &self,
        kernels: &Kernels,
        vectors: &DeviceRows,
        lists: &[&[LabelId]],
        k: usize,
        out: &mut RankedBatch,
    ) -> Result<(), Error> {
        let Layer::Sparse(connections) = &self.layer else { panic!("lists of labels for a dense layer") };
        let labels = lists.concat();
        if let Some(label) = labels.iter().find(|&&label| label as usize >= self.n_labels) {
            panic!("label {label} of {}", self.n_labels);
        }
        let device = &kernels.device;
        let rows: Vec<u32> = (0..).zip(lists).flat_map(|(row, list)| std::iter::repeat_n(row, list.len())).collect();
        let (on_labels, on_rows) = (device.upload(&labels)?, device.upload(&rows)?);
        let logits = device.zeros::<f32>(labels.len())?;
        let args = XcPairs {
            rows: address(&vectors.values),
            row: address(&on_rows),
            label: address(&on_labels),
            logits: address(&logits),
            n: labels.len() as u64,
        };
        let call = kernels.uniform_pairs.call(device.stream()).arg(&connections.of).arg(&args);
        // SAFETY: the structs are the kernel's, whose layout was compared; labels and rows are there, and room for a
        // logit of each pair.
        unsafe { call.launch(kernels.over(labels.len())) }?;
        let logits = device.download(&logits)?;
        let (mut top, mut at) = (TopK::new(k), 0);
        for list in lists {
            top.reset(k);
            list.iter().zip(&logits[at..]).for_each(|(&label, &score)| top.push(Scored { label, score }));
            at += list.len();
            out.push_row(top.sorted());
        }
        Ok(())
    }
}

impl Connections {
    /// Rows of inputs as the kernels read them.
    fn lines(&self, kernels: &Kernels, rows: &DeviceRows) -> Result<CudaSlice<u32>, Error> {
        let (n_inputs, n_blocks) = (self.of.n_inputs as usize, rows.n.div_ceil(LANES));
        assert!(rows.width == n_inputs, "width {}, expected {n_inputs}", rows.width);
        let mut lines = kernels.device.zeros::<u32>(n_blocks * n_inputs * LANES / 2)?;
        let (n, width) = (rows.n as u32, self.of.n_inputs);
        let call = kernels.lines.call(kernels.device.stream()).arg(&rows.values).arg(&n).arg(&width).arg(&mut lines);
        let shape = Shape { grid: [n_inputs.div_ceil(32), n_blocks, 1], threads: THREADS as u32, shared: 0 };
        // SAFETY: there are n rows, and room for a line of each input and block of rows.
        unsafe { call.launch(shape) }?;
        Ok(lines)
    }
}

/// A warp for each label and 32 rows.
fn shape(n_labels: usize, n_rows: usize) -> Shape {
    Shape { grid: [n_labels.div_ceil(8), n_rows.div_ceil(LANES), 1], threads: THREADS as u32, shared: 0 }
}

/// Appends a row of keys.
fn push(keys: &[u64], out: &mut RankedBatch) {
    out.push_row(&keys.iter().map(|&key| from_rank_key(key)).collect::<Vec<_>>());
}
