//! The kernels of networks, and what they have in common.

use super::DeviceRows;
use crate::layer::Linear;
use std::sync::Arc;
use xc_dense::MatmulPrecision;
use xc_kernels::best::Best;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::layout::{self, Argument};
use xc_kernels::product::{Product, Rows};
use xc_kernels::{Device, Error, Kernel, Plan, Shape, arguments};

arguments! {
    /// Sparse rows and embeddings of their features.
    pub(super) struct XcBag {
        begin: u64,
        features: u64,
        values: u64,
        table: u64,
        bias: u64,
        out: u64,
        width: u32,
        relu: u32,
    }
    /// Connections of labels.
    pub(super) struct XcConnections {
        starts: u64,
        inputs: u64,
        weights: u64,
        table: u64,
        bias: u64,
        fan_in: u32,
        n_inputs: u32,
        is_wide: u32,
        r#type: u32,
    }
    /// Consecutive labels for rows of inputs.
    pub(super) struct XcUniform {
        lines: u64,
        first: u64,
        n: u32,
        n_rows: u32,
    }
    /// Pairs of a row and a label.
    pub(super) struct XcPairs {
        rows: u64,
        row: u64,
        label: u64,
        logits: u64,
        n: u64,
    }
    /// Rows of logits, and of scores.
    pub(super) struct XcScores {
        logits: u64,
        scores: u64,
        stride: u64,
        width: u32,
        loss: u32,
    }
}

/// Loaded kernels.
#[derive(Debug)]
pub struct Kernels {
    pub(super) device: Arc<Device>,
    pub(super) product: Product,
    pub(super) best: Best,
    pub(super) bag: Kernel,
    relu: Kernel,
    round: Kernel,
    pub(super) lines: Kernel,
    pub(super) uniform: Kernel,
    pub(super) uniform_best: Kernel,
    pub(super) uniform_pairs: Kernel,
    pub(super) narrow: Kernel,
    pub(super) scores: Kernel,
}

/// Threads of a block.
pub(super) const THREADS: usize = 256;

impl Kernels {
    /// Loads them.
    ///
    /// # Errors
    /// The device fails, or was given other structs than the host has.
    pub fn load(device: &Arc<Device>) -> Result<Self, Error> {
        let layouts = [XcBag::LAYOUT, XcConnections::LAYOUT, XcUniform::LAYOUT, XcPairs::LAYOUT, XcScores::LAYOUT];
        layout::check(device, "xc_layout_nn", &layouts)?;
        Ok(Self {
            device: device.clone(),
            product: Product::load(device)?,
            best: Best::load(device)?,
            bag: device.kernel("xc_nn_bag")?,
            relu: device.kernel("xc_nn_relu")?,
            round: device.kernel("xc_nn_round")?,
            lines: device.kernel("xc_nn_lines")?,
            uniform: device.kernel("xc_nn_uniform")?,
            uniform_best: device.kernel("xc_nn_uniform_best")?,
            uniform_pairs: device.kernel("xc_nn_uniform_pairs")?,
            narrow: device.kernel("xc_sparse_narrow")?,
            scores: device.kernel("xc_nn_scores")?,
        })
    }

    /// Blocks that go over `n` values together.
    pub(super) fn over(&self, n: usize) -> Shape {
        let most = 8 * self.device.limits().processors.max(1) as usize;
        Shape { grid: [n.div_ceil(THREADS).min(most), 1, 1], threads: THREADS as u32, shared: 0 }
    }

    /// Replaces values below 0 by 0.
    pub(super) fn relu(&self, rows: &mut DeviceRows) -> Result<(), Error> {
        let n = (rows.n * rows.width) as u64;
        let call = self.relu.call(self.device.stream()).arg(&mut rows.values).arg(&n);
        // SAFETY: there are n values.
        unsafe { call.launch(self.over(n as usize)) }
    }

    /// The values as products of bf16 read them.
    pub(super) fn rounded(&self, values: &CudaSlice<f32>, n: usize) -> Result<CudaSlice<f32>, Error> {
        let mut out = self.device.zeros::<f32>(n)?;
        let count = n as u64;
        let call = self.round.call(self.device.stream()).arg(values).arg(&count).arg(&mut out);
        // SAFETY: there are n values, and room for as many.
        unsafe { call.launch(self.over(n)) }?;
        Ok(out)
    }
}

/// Rows of weights and a bias each, for products with rows of inputs.
#[derive(Debug)]
pub(super) struct DeviceLinear {
    weights: CudaSlice<f32>,
    bias: CudaSlice<f32>,
    n: usize,
    width: usize,
    /// Whether operands are rounded to bf16.
    rounds: bool,
}

impl Linear {
    /// Copies the layer to the device.
    pub(super) fn on(&self, kernels: &Kernels) -> Result<DeviceLinear, Error> {
        let weights = kernels.device.upload(self.weights.values())?;
        DeviceLinear::new(kernels, weights, self.bias.values(), self.weights.width(), self.products)
    }

    /// Adds the memory that it takes there.
    pub(super) fn plan(&self, plan: Plan, part: &'static str) -> Plan {
        plan.of::<f32>(
            part,
            DeviceLinear::n_values(self.weights.values().len(), self.products) + self.bias.values().len(),
        )
    }
}

impl DeviceLinear {
    /// Values on the device while weights are copied there: rounded ones are copies.
    pub(super) fn n_values(n_weights: usize, products: MatmulPrecision) -> usize {
        n_weights * if products == MatmulPrecision::Bf16 { 2 } else { 1 }
    }

    pub(super) fn new(
        kernels: &Kernels,
        weights: CudaSlice<f32>,
        bias: &[f32],
        width: usize,
        products: MatmulPrecision,
    ) -> Result<Self, Error> {
        let (n, rounds) = (bias.len(), products == MatmulPrecision::Bf16);
        let weights = if rounds { kernels.rounded(&weights, n * width)? } else { weights };
        Ok(Self { weights, bias: kernels.device.upload(bias)?, n, width, rounds })
    }

    pub(super) fn forward(&self, kernels: &Kernels, input: &DeviceRows) -> Result<DeviceRows, Error> {
        let mut values = kernels.device.zeros::<f32>(input.n * self.n)?;
        self.with(kernels, input, |input, weights| {
            kernels.product.run(kernels.device.stream(), input, weights, Some(&self.bias), &mut values)
        })?;
        Ok(DeviceRows { values, n: input.n, width: self.n })
    }

    /// Calls `product` with the operands.
    pub(super) fn with<T>(
        &self,
        kernels: &Kernels,
        input: &DeviceRows,
        product: impl FnOnce(Rows<'_>, Rows<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        assert!(input.width == self.width, "width {}, expected {}", input.width, self.width);
        let rounded = if self.rounds { Some(kernels.rounded(&input.values, input.n * input.width)?) } else { None };
        let values = rounded.as_ref().unwrap_or(&input.values);
        let rows = Rows::new(values, input.n, self.width, self.width);
        product(rows, Rows::new(&self.weights, self.n, self.width, self.width))
    }

    pub(super) fn bias(&self) -> &CudaSlice<f32> {
        &self.bias
    }
}
