//! What a checkpoint holds of a layer.

use super::Sparse;
use crate::Parameter;
use crate::layer::Named;
use crate::optim::Moments;
use crate::state::{self, Array, Arrays, Role, Slice, State, StateError, Visitor, load_parameters, visit_parameters};
use serde_json::json;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_sparse::uniform::{Connections, FanIn, InputIds};

impl State for Sparse {
    fn settings(&self) -> serde_json::Value {
        json!({
            "sparse": [self.connections.n_labels(), self.connections.n_inputs()],
            "params": self.params,
            "init": self.init,
            "sampler": self.sampler.as_ref().map(|sampler| sampler.settings()),
            "screening": self.screening,
            "tile": self.tile,
        })
    }

    /// The biases; connections and weights are among the arrays.
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![Named { name: "head.bias".to_owned(), parameter: &self.bias }]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![Named { name: "head.bias".to_owned(), parameter: &mut self.bias }]
    }

    fn n_values(&self) -> usize {
        self.connections.len() + self.connections.n_labels()
    }

    fn prepare(&mut self, moments: Moments) {
        self.bias.prepare(moments);
        let (of, len) = (self.params.moments, self.connections.len());
        self.moments.resize_with(moments.n, || FloatBuffer::zeros(of, len));
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        visit_parameters(self.parameters(), f)?;
        let c = &self.connections;
        let shape = shape(c);
        if let FanIn::Varying(starts) = c.fan_in() {
            f(Array::new("head.starts", Role::Answer, [starts.len(), 1], starts))?;
        }
        f(Array {
            of: Slice::whole("head.indices", Role::Answer, dtype(c.indices()), shape),
            bytes: c.indices().bytes(),
        })?;
        let weights = c.weights();
        let dtype = weights.dtype();
        f(Array { of: Slice::whole("head.weights", Role::Answer, dtype, shape), bytes: weights.bytes() })?;
        for (i, moment) in self.moments.iter().enumerate() {
            let (name, dtype) = (format!("head.weights.m{i}"), moment.dtype());
            f(Array { of: Slice::whole(&name, Role::Training, dtype, shape), bytes: moment.bytes() })?;
        }
        self.sampler.as_ref().map_or(Ok(()), |sampler| sampler.visit(f))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        load_parameters(self.parameters_mut(), from)?;
        let shape = shape(&self.connections);
        let (fan_in, indices, weights) = self.connections.all_mut();
        if let FanIn::Varying(starts) = fan_in {
            let starts = starts.to_mut();
            state::read(from, "head.starts", Role::Answer, [starts.len(), 1], starts)?;
        }
        let index = dtype(indices);
        from.read(&Slice::whole("head.indices", Role::Answer, index, shape), indices.bytes_mut())?;
        let dtype = weights.dtype();
        from.read(&Slice::whole("head.weights", Role::Answer, dtype, shape), weights.bytes_mut())?;
        for (i, moment) in self.moments.iter_mut().enumerate() {
            let (name, dtype) = (format!("head.weights.m{i}"), moment.dtype());
            from.read(&Slice::whole(&name, Role::Training, dtype, shape), moment.bytes_mut())?;
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.load(from)?;
        }
        self.connections.check().map_err(|e| StateError::new("head.indices", e))
    }

    fn check_finite(&self) -> Result<(), StateError> {
        visit_parameters(self.parameters(), &mut |array| array.check_finite())?;
        match self.connections.weights().not_finite() {
            Some(at) => Err(StateError::NotFinite { name: "head.weights".to_owned(), at }),
            None => Ok(()),
        }
    }
}

fn shape(connections: &Connections) -> [usize; 2] {
    match connections.fan_in() {
        FanIn::Uniform(per_output) => [connections.n_labels(), *per_output],
        FanIn::Varying(_) => [connections.len(), 1],
    }
}

fn dtype(indices: &InputIds) -> DType {
    match indices {
        InputIds::U16(_) => DType::U16,
        InputIds::U32(_) => DType::U32,
    }
}
