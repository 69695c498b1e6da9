//! Progress of long training.

/// What training has just done.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TreeEvent {
    /// Tree `tree` of `n_trees` begins.
    Tree {
        /// Number of the tree, from 0.
        tree: usize,
        /// Trees in all.
        n_trees: usize,
    },
    /// Label vectors are being built for `n_labels` labels.
    Representing {
        /// Labels with at least one positive.
        n_labels: usize,
    },
    /// Labels are being clustered.
    Clustering {
        /// Labels to cluster.
        n_labels: usize,
    },
    /// The tree has its shape.
    Clustered {
        /// Levels of the tree.
        n_levels: usize,
    },
    /// A level begins.
    Level {
        /// The level, 0 below the root.
        level: usize,
        /// Levels in all.
        n_levels: usize,
        /// Rankers to train on it.
        n_rankers: usize,
        /// True when the level is taken from a checkpoint.
        resumed: bool,
    },
    /// Rankers of labels with rows of their own are to be learned: [`crate::rankers`].
    OwnRankers {
        /// Rankers to train, one a label.
        n_rankers: usize,
    },
    /// Some rankers are done: of the current level, where there is a tree.
    Rankers {
        /// Rankers done since the last event.
        done: usize,
    },
}
