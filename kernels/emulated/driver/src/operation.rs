//! What a stream does.

use std::sync::Arc;
use xc_emulated_ptx::{Launch, Module};

/// An operation of a stream, or of a graph.
#[derive(Clone)]
pub(crate) enum Operation {
    Launch {
        module: Arc<Module>,
        kernel: usize,
        launch: Launch,
        params: Vec<u8>,
    },
    /// From bytes that were taken over when it was asked for.
    In {
        to: u64,
        bytes: Vec<u8>,
    },
    InPinned {
        to: u64,
        from: usize,
        len: usize,
    },
    OutPinned {
        to: usize,
        from: u64,
        len: usize,
    },
    Across {
        to: u64,
        from: u64,
        len: usize,
    },
    Fill {
        at: u64,
        pattern: Vec<u8>,
        times: usize,
    },
    Free {
        at: u64,
    },
    Record {
        event: usize,
    },
    /// Until an event has been recorded so many times.
    Await {
        event: usize,
        times: usize,
    },
}

impl Operation {
    /// What a fault is blamed on.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Launch { .. } => "a launch",
            Self::In { .. } | Self::InPinned { .. } => "a copy to the device",
            Self::OutPinned { .. } => "a copy from the device",
            Self::Across { .. } => "a copy within the device",
            Self::Fill { .. } => "a fill",
            Self::Free { .. } => "a free",
            Self::Record { .. } | Self::Await { .. } => "an event",
        }
    }
}

/// An operation in a queue.
pub(crate) struct Item {
    pub(crate) number: u32,
    /// What the host had waited for when it asked for the operation.
    pub(crate) clock: crate::clock::Clock,
    /// Operations of other streams that come first, by the rules of the legacy stream.
    pub(crate) after: Vec<(u32, u32)>,
    pub(crate) operation: Operation,
}
