//! What a run does beside training.

/// What a run does beside training a network.
#[derive(Clone, Debug, PartialEq)]
pub struct RunParams {
    /// Share of the instances that is held out.
    pub validation_fraction: Option<f64>,
    /// The seed that they are held out by; nothing: that of the run.
    pub split_seed: Option<u64>,
    /// Steps between checkpoints.
    pub checkpoint_every: Option<u64>,
    /// Steps between lines of the log.
    pub log_every: u64,
}

impl Default for RunParams {
    fn default() -> Self {
        Self { validation_fraction: None, split_seed: None, checkpoint_every: None, log_every: 100 }
    }
}
