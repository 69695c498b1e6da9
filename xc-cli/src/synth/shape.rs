//! The parameters of synthetic data, and named sets of them.

/// Sizes and laws of a data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Training instances.
    pub(crate) instances: u64,
    /// Test instances.
    pub(crate) test_instances: u64,
    /// Size of the vocabulary.
    pub(crate) features: u64,
    /// Number of labels.
    pub(crate) labels: u64,
    /// Mean number of words drawn for an instance (repetitions counted).
    pub(crate) words: f64,
    /// Mean number of label draws for an instance, at least 1.
    pub(crate) labels_per_instance: f64,
    /// Share of words that say nothing about the labels.
    pub(crate) background: f64,
    /// Share of instances whose first label is taken in turn, so that each label occurs.
    pub(crate) coverage: f64,
    /// Exponent of the power law of label frequencies.
    pub(crate) zipf: f64,
    /// Children of a node of the hidden tree.
    pub(crate) arity: u64,
}

const BASE: Shape = Shape {
    instances: 50_000,
    test_instances: 5_000,
    features: 100_000,
    labels: 30_000,
    words: 90.0,
    labels_per_instance: 5.0,
    background: 0.6,
    coverage: 0.6,
    zipf: 0.8,
    arity: 8,
};

/// Shapes by name: sizes are those of the public data sets of the name.
pub(crate) const PRESETS: &[(&str, Shape)] = &[
    (
        "demo",
        Shape {
            instances: 6_000,
            test_instances: 1_000,
            features: 12_000,
            labels: 500,
            words: 60.0,
            labels_per_instance: 3.0,
            background: 0.8,
            coverage: 0.3,
            ..BASE
        },
    ),
    (
        "eurlex-4k",
        Shape {
            instances: 15_539,
            test_instances: 3_809,
            features: 5_000,
            labels: 3_993,
            words: 420.0,
            labels_per_instance: 5.7,
            // As hard as the set of that name: P@1 of about 80 with a default tree.
            background: 0.857,
            coverage: 0.3,
            ..BASE
        },
    ),
    (
        "wiki10-31k",
        Shape {
            instances: 14_146,
            test_instances: 6_616,
            features: 101_938,
            labels: 30_938,
            words: 1_000.0,
            labels_per_instance: 23.5,
            ..BASE
        },
    ),
    ("syn30k", BASE),
    ("syn500k", Shape { instances: 200_000, features: 130_000, labels: 500_000, words: 87.0, ..BASE }),
    (
        "wikipedia-500k",
        Shape {
            instances: 1_813_391,
            test_instances: 783_743,
            features: 2_381_304,
            labels: 501_070,
            words: 520.0,
            labels_per_instance: 5.2,
            ..BASE
        },
    ),
    (
        "amazon-670k",
        Shape {
            instances: 490_449,
            test_instances: 153_025,
            features: 135_909,
            labels: 670_091,
            words: 87.0,
            labels_per_instance: 6.0,
            ..BASE
        },
    ),
    (
        "amazon-3m",
        Shape {
            instances: 1_717_899,
            test_instances: 742_507,
            features: 337_067,
            labels: 2_812_281,
            words: 55.0,
            labels_per_instance: 52.0,
            ..BASE
        },
    ),
    (
        "100m",
        Shape {
            instances: 1_000_000,
            test_instances: 100_000,
            features: 4_000_000,
            labels: 100_000_000,
            words: 87.0,
            ..BASE
        },
    ),
];
