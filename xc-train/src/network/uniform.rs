//! A network with a sparse output layer.

use super::NetworkParams;
use xc_model::classifier::{ConnectionLearning, HeadParams, SparseHeadParams};

/// A network whose output layer is sparse (or dense, to be compared with it), over an intermediate layer of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformParams {
    /// What is beneath the intermediate layer, and the output layer.
    pub network: NetworkParams,
    /// Units of the layer that labels are connected with; `None`: the one beneath.
    pub intermediate: Option<usize>,
}

impl UniformParams {
    /// The sparse output layer, to be changed, unless it is dense.
    pub fn head_mut(&mut self) -> Option<&mut SparseHeadParams> {
        match &mut self.network.classifier.head {
            HeadParams::Sparse(head) => Some(head),
            HeadParams::Dense | HeadParams::Candidates(_) => None,
        }
    }

    /// How its connections are trained, to be changed, unless it is dense.
    pub fn connections_mut(&mut self) -> Option<&mut ConnectionLearning> {
        self.head_mut()?;
        Some(&mut self.network.classifier.learning.connections)
    }

    /// The network, with the intermediate layer.
    pub fn into_network(self) -> NetworkParams {
        let Self { mut network, intermediate } = self;
        network.classifier.encoder.widths_mut().extend(intermediate);
        network
    }
}
