//! Encoders on a device.

use super::DeviceRows;
use super::kernels::{DeviceLinear, Kernels, THREADS, XcBag};
use crate::encoder::{Bag, Precomputed, Stack};
use crate::{Activations, Batch, Encoder};
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Error, Plan, Shape, address};

/// An encoder that a device can run.
pub trait EncoderOnDevice {
    /// Adds the memory that it takes there.
    fn plan(&self, plan: Plan) -> Plan;

    /// Copies it there.
    ///
    /// # Errors
    /// The device fails.
    fn on(&self, kernels: &Kernels) -> Result<DeviceEncoder, Error>;
}

/// An encoder on a device: what reads the instances, and dense layers.
#[derive(Debug)]
pub struct DeviceEncoder {
    lowest: Lowest,
    layers: Vec<Layer>,
}

#[derive(Debug)]
enum Lowest {
    Bag { table: CudaSlice<f32>, bias: CudaSlice<f32>, n_features: usize, width: usize, relu: bool },
    Vectors { width: usize },
}

#[derive(Debug)]
struct Layer {
    linear: DeviceLinear,
    relu: bool,
}

impl EncoderOnDevice for Bag {
    fn plan(&self, plan: Plan) -> Plan {
        plan.of::<f32>("embeddings", (self.n_features() + 1) * self.width())
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceEncoder, Error> {
        let (table, bias, relu) = self.answering();
        let (table, bias) = (kernels.device.upload(table)?, kernels.device.upload(bias)?);
        let lowest = Lowest::Bag { table, bias, n_features: self.n_features(), width: self.width(), relu };
        Ok(DeviceEncoder { lowest, layers: Vec::new() })
    }
}

impl EncoderOnDevice for Precomputed {
    fn plan(&self, plan: Plan) -> Plan {
        plan
    }

    fn on(&self, _: &Kernels) -> Result<DeviceEncoder, Error> {
        Ok(DeviceEncoder { lowest: Lowest::Vectors { width: self.width() }, layers: Vec::new() })
    }
}

impl<E: EncoderOnDevice + Encoder<Output = Activations>> EncoderOnDevice for Stack<E> {
    fn plan(&self, plan: Plan) -> Plan {
        let layers = self.answering();
        layers.fold(self.below().plan(plan), |plan, (linear, _)| linear.plan(plan, "dense layers"))
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceEncoder, Error> {
        let mut out = self.below().on(kernels)?;
        for (linear, relu) in self.answering() {
            out.layers.push(Layer { linear: linear.on(kernels)?, relu });
        }
        Ok(out)
    }
}

impl DeviceEncoder {
    /// Vectors of a batch.
    pub(super) fn forward(&self, kernels: &Kernels, batch: &Batch) -> Result<DeviceRows, Error> {
        let mut rows = self.lowest.forward(kernels, batch)?;
        for Layer { linear, relu } in &self.layers {
            rows = linear.forward(kernels, &rows)?;
            if *relu {
                kernels.relu(&mut rows)?;
            }
        }
        Ok(rows)
    }
}

impl Lowest {
    fn forward(&self, kernels: &Kernels, batch: &Batch) -> Result<DeviceRows, Error> {
        let (device, n) = (&kernels.device, batch.len());
        let (table, bias, n_features, width, relu) = match self {
            Self::Bag { table, bias, n_features, width, relu } => (table, bias, *n_features, *width, *relu),
            Self::Vectors { width } => {
                let (got, dense) = (batch.width(), batch.dense());
                let Some(rows) = dense.filter(|_| got == *width) else { panic!("rows of {got}, expected {width}") };
                return Ok(DeviceRows { values: device.upload(rows.values())?, n, width: *width });
            }
        };
        let got = batch.width();
        assert!(got == n_features && batch.dense().is_none(), "rows of {got}, expected {n_features}");
        let (begin, features, values) = batch.sparse();
        let (begin, features, values) = (device.upload(begin)?, device.upload(features)?, device.upload(values)?);
        let out = device.zeros::<f32>(n * width)?;
        let args = XcBag {
            begin: address(&begin),
            features: address(&features),
            values: address(&values),
            table: address(table),
            bias: address(bias),
            out: address(&out),
            width: width as u32,
            relu: u32::from(relu),
        };
        let call = kernels.bag.call(device.stream()).arg(&args);
        let shape = Shape { grid: [n, width.div_ceil(THREADS), 1], threads: THREADS as u32, shared: 0 };
        // SAFETY: the struct is the kernel's, whose layout was compared; features are below the rows of the table, and
        // there is room for n rows.
        unsafe { call.launch(shape) }?;
        Ok(DeviceRows { values: out, n, width })
    }
}
