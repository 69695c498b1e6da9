//! A value of each option that is not its default.

/// Options about the machine, or about what is said and kept while a command runs: they change no answer.
const OF_THE_RUN: [&str; 13] = [
    "verify",
    "threads",
    "max-memory",
    "progress",
    "quiet",
    "config",
    "checkpoint",
    "checkpoint-every",
    "resume",
    "restart",
    "trusted",
    "in-memory",
    "head.no-screening",
];

/// Options that ask for what may hold already, and are taken then; with what the help says of it. These are all, beside
/// `--threads`, `--seed` and `--quiet`, which every command takes.
pub(crate) const TAKEN: [(&str, &str, &str); 4] = [
    ("predict", "exact", "(without an index, a network always does)"),
    ("bench predict", "exact", "(without an index, a network always does)"),
    ("index search", "exact", "(an index of sparse rows always answers exactly)"),
    ("predict", "names", "(lines; jsonl and csv always have them)"),
];

/// Options that decide whether a command is refused, and change nothing else: the command without the option, and
/// whether it is refused with it.
pub(crate) const GATES: [(&str, &str, &str, bool); 10] = [
    (
        "predict",
        "--model ../in/tree --input ../in/test.txt --only-labels ../in/more-some.txt",
        "unknown-labels skip",
        false,
    ),
    ("predict", "--model ../in/text --input ../in/test.jsonl --exclude-field labels", "exclude-own-labels", false),
    ("blend", "../in/tree ../in/tree2 --validation ../in/train.txt --rule logistic --output b", "held-out", false),
    ("calibrate", "--model ../in/tree --validation ../in/train.txt --output c", "held-out", false),
    ("blend", "../in/tree ../in/foreign --validation ../in/test.txt --rule logistic --output b", "unknown-rows", false),
    ("calibrate", "--model ../in/foreign --validation ../in/test.txt --output c", "unknown-rows", false),
    (
        "index build",
        "--vectors ../in/large.npy --metric l2 --degree 2 --keep 2 --target-recall 0 --cells 0 --output i",
        "min-recall 1",
        true,
    ),
    ("index build", "--model ../in/dense --fit-queries ../in/rows.txt --output i", "max-loss 1", true),
    ("index refresh", "--model ../in/indexed --fit-queries ../in/rows.txt --output i", "max-loss 1", true),
    ("predict", "--model ../in/continued --input ../in/test.txt --search-width 1", "max-age 1000", false),
];

/// Options of a measurement that change only the times.
const OF_SPEED: [&str; 13] = [
    "repeat",
    "svmlight-base",
    "beam",
    "cells",
    "decoder",
    "iterator",
    "max-age",
    "max-labels",
    "post-processor",
    "repetitions",
    "search-width",
    "text-fields",
    "top-k",
];

/// Options of an index of labels that so few labels do not show.
const OF_MANY_LABELS: [(&str, &str); 5] = [
    ("index build", "label-field"),
    ("index refresh", "label-field"),
    ("index refresh", "label-separator"),
    ("index refresh", "text-fields"),
    ("predict", "search-width"),
];

/// The options of `xc tune` itself; what the others change, `xc train` shows.
pub(crate) const OF_SEARCH: [&str; 7] =
    ["trials", "metric", "no-model", "part", "from", "validation-fraction", "validation"];

/// Whether an option need not change what comes out. A format that a file does not have is refused.
pub(crate) fn is_exempt(command: &str, option: &str) -> bool {
    let of_speed =
        (command == "bench predict" && OF_SPEED.contains(&option)) || (command, option) == ("index evaluate", "runs");
    let is_gate = GATES.iter().any(|(of, _, with, _)| *of == command && with.split(' ').next() == Some(option));
    option == "format"
        // Time that a search may take.
        || option == "budget"
        || LATE.contains(&option)
        || of_speed
        || OF_THE_RUN.contains(&option)
        || is_gate
        || OF_MANY_LABELS.contains(&(command, option))
        || TAKEN.iter().any(|(of, taken, _)| (*of, *taken) == (command, option))
}

/// Options whose effect few data show: one scenario has to.
const WEAK: [&str; 22] = [
    "cluster.normalise-labels",
    "seed",
    "cluster.max-iterations",
    "cluster.max-sample",
    "cluster.unseen",
    "hard-from-epoch",
    "label-separator",
    "log-every",
    "monitor",
    "patience",
    "retrieval",
    "search-width",
    "text.min-df",
    "text.strip-accents",
    "weight-cap",
    "weighting",
    "index.every",
    "index.recall",
    "patience-from",
    "retrieval.every",
    "schedule.lowest",
    "upkeep.share",
];
/// Of these, those that few labels and epochs do not show at all, and forms of tables, which one file has or has not:
/// other tests do.
const LATE: [&str; 12] = [
    "delimiter",
    "label-fields",
    "no-header",
    "no-quotes",
    "unseen",
    "label-names-field",
    "index.every",
    "index.recall",
    "patience-from",
    "retrieval.every",
    "schedule.lowest",
    "upkeep.share",
];

/// Whether an option is of kernels or transformers.
pub(crate) fn is_of_an_optional_part(option: &str) -> bool {
    ["device", "encoder"].contains(&option) || option.starts_with("transformer.")
}

/// Whether an option changes no answer of any command.
pub(crate) fn is_of_the_run(option: &str) -> bool {
    OF_THE_RUN.contains(&option)
}

/// Whether some data do not show what an option changes.
pub(crate) fn is_weak(option: &str) -> bool {
    WEAK.contains(&option)
}

/// A value that is not the default; nothing for a switch.
pub(crate) fn value(command: &str, option: &str) -> Option<&'static str> {
    let (kind, _) = command.split_once(' ').unwrap_or((command, ""));
    Some(match (kind, command, option) {
        // Of the machine.
        (_, _, "threads") => "1",
        (_, _, "seed") => "3",
        (_, _, "max-memory") => "4GiB",
        (_, _, "progress") => "lines",
        (_, _, "json" | "quiet") => "",
        (_, _, "config") => "../in/empty.toml",
        // Places.
        (_, "predict", "output") => "other.txt",
        (_, "index search", "output") => "other.txt",
        (_, _, "checkpoint" | "output" | "refit" | "save-pipeline" | "vectors")
            if command != "index build" && command != "index refresh" =>
        {
            "other"
        }
        (_, "index refresh", "vectors") => "../in/moved.npy",
        (_, "index build", "vectors") => "../in/test.npy",
        ("index", _, "output") => "other",
        (_, "generate", "model") => "made",
        ("train" | "tune", _, "model") => "other",
        (_, _, "model") => "../in/indexed",
        // Forms of files.
        (_, _, "format") => "tsv",
        (_, _, "text-fields") => "title",
        (_, _, "label-field") => "other",
        (_, _, "label-separator") => "-",
        (_, _, "id-field") => "key",
        (_, _, "delimiter") => "|",
        (_, _, "label-fields") => "one,two",
        (_, _, "no-header" | "no-quotes") => "",
        (_, _, "unseen") => "refuse",
        (_, _, "svmlight-base") => "0",
        (_, _, "svmlight-label-base") => "1",
        (_, _, "train-labels") => "../in/train-others.txt",
        (_, _, "validation") => "../in/test.txt",
        (_, _, "validation-labels") => "../in/others.txt",
        (_, "merge", "label-names") => "../in/more-names.txt",
        (_, _, "label-names") => "../in/other-names.txt",
        (_, _, "label-names-column") => "2",
        (_, _, "label-names-field") => "name",
        (_, _, "exclude-field") => "other",
        (_, _, "exclude-own-labels") => "",
        (_, _, "per-label") => "labels.csv",
        (_, _, "worst-rows") => "2",
        (_, _, "worst") => "worst.jsonl",
        (_, _, "features") if ["train", "tune"].contains(&kind) => "../in/train.npy",
        (_, _, "validation-features") => "../in/test.npy",
        (_, "train tree", "label-features") => "../in/label-rows.txt",
        (_, _, "label-features") => "../in/label-rows.txt",
        (_, _, "instance-weights") => "../in/weights.txt",
        (_, _, "label-costs") => "../in/costs.txt",
        // Text.
        (_, _, "text.ngrams") => "2",
        (_, _, "text.chars") => "3-4",
        (_, _, "text.hash" | "text.oov" | "text.fold") => "16",
        (_, _, "text.min-df") => "15",
        (_, _, "text.max-features" | "text.words" | "text.pairs" | "text.trigrams") => "9",
        (_, _, "text.preset") => "mach",
        (_, _, "text.min-chars") => "5",
        (_, _, "text.split-at-blanks" | "text.keep-case" | "text.strip-accents") => "",
        // Searches.
        ("tune", _, "budget") => "1h",
        ("tune", _, "trials") => "3",
        ("tune", _, "metric") => "nDCG@3",
        ("tune", _, "part") => "1/2",
        ("tune", _, "from") => "../in/tuned",
        // Training.
        (_, _, "resume" | "restart" | "explain" | "tfidf" | "no-model") => "",
        (_, _, "normalise") => "false",
        (_, _, "validation-fraction") => "0.4",
        (_, _, "split-seed") => "3",
        (_, "train tree" | "tune tree", "preset") => "parabel",
        (_, _, "trees") => "1",
        (_, _, "tree.branching") => "3",
        (_, _, "cluster.max-leaf") => "2",
        (_, _, "cluster.slack") => "0.5",
        (_, _, "cluster.method") => "unbalanced",
        (_, _, "cluster.max-depth" | "cluster.max-iterations") => "1",
        (_, _, "cluster.max-sample") => "4",
        (_, _, "cluster.representation") => "pii",
        (_, _, "cluster.normalise-labels") => "true",
        (_, _, "cluster.max-label-nnz") => "2",
        (_, _, "cluster.unseen") => "keep",
        (_, _, "linear.loss") => "logistic",
        (_, _, "linear.cost") => "0.3",
        (_, _, "linear.positive-cost" | "linear.negative-cost") => "2.5",
        (_, _, "linear.bias") => "0",
        (_, _, "linear.tolerance") => "0.9",
        (_, _, "linear.max-passes") => "1",
        (_, _, "linear.prune-below") => "0.3",
        (_, _, "linear.max-weights") => "2",
        (_, "train tree" | "tune tree", "negatives") => "matcher-aware",
        (_, _, "negatives.beam") => "1",
        (_, "predict", "post-processor") => "noop",
        (_, _, "post-processor") => "sigmoid",
        (_, _, "beam") => "1",
        (_, _, "precision") => "bf16",
        (_, _, "repetitions") if kind == "train" => "2",
        (_, _, "repetitions-range") => "1..3",
        (_, "predict" | "train tree" | "train mach", "part") => "1/2",
        (_, _, "buckets") => "5",
        (_, _, "hash.family") => "tabulation",
        (_, _, "decoder") => "mean",
        (_, _, "network.widths") => "6",
        (_, "train uniform", "network.init") => "random",
        (_, "train uniform", "network.activation") => "relu",
        (_, _, "network.init") => "lsa",
        (_, _, "network.activation") => "identity",
        (_, _, "network.embedding-rate") => "0.5",
        (_, _, "network.input-dropout" | "network.dropout") => "0.45",
        (_, "train uniform", "network.precision") => "f32",
        (_, _, "network.precision") => "bf16",
        (_, _, "network.intermediate") => "8",
        (_, "train tree", "loss") => "logistic",
        (_, "train skipgram", "loss") => "bce",
        (_, _, "loss") => "softmax",
        (_, _, "epochs") => "1",
        (_, _, "batch") => "7",
        (_, _, "optimizer") => "momentum",
        (_, _, "optimizer.rate") => "0.02",
        (_, _, "optimizer.weight-decay") => "0.1",
        (_, _, "schedule") => "constant",
        (_, _, "schedule.lowest") => "0.9",
        (_, _, "clip-norm") => "0.001",
        (_, _, "patience") => "1",
        (_, _, "patience-from") => "lowest-rate",
        (_, _, "monitor") => "recall@3",
        (_, "index build", "keep") => "5",
        (_, _, "keep") => "last",
        (_, _, "checkpoint-every" | "log-every") => "2",
        (_, _, "head.fan-in") => "3",
        (_, _, "head.wiring") => "unstructured",
        (_, _, "head.precision" | "head.moments") => "bf16",
        (_, _, "head.no-screening") => "",
        (_, _, "head.rewire-every") => "2",
        (_, _, "head.rewire-fraction") => "0.4",
        (_, "train astra", "sampler") => "random",
        (_, _, "sampler") => "uniform",
        (_, "train lns" | "tune lns" | "train skipgram", "preset") => "text8",
        (_, _, "negatives.shared") => "false",
        (_, _, "negatives.sampled") => "3",
        (_, _, "negatives.uniform") => "4",
        (_, "train astra", "weighting") => "unbiased",
        (_, _, "weighting") => "log-q",
        (_, _, "weight-cap") => "1.5",
        (_, _, "tables") => "3",
        (_, _, "codes") => "2",
        (_, _, "tables.family") => "sim-hash",
        (_, _, "upkeep") => "immediate",
        (_, _, "upkeep.every") => "2",
        (_, _, "upkeep.share") => "0.9",
        (_, _, "retrieval") => "exact",
        (_, _, "retrieval.every") => "1",
        (_, _, "negatives.hard") => "1",
        (_, _, "hard-from-epoch") => "2",
        (_, _, "index.every") => "1",
        (_, _, "index.exact-below") => "1",
        (_, _, "index.recall") => "0.5",
        (_, _, "wide") => "off",
        (_, _, "wide.weight") => "0.9",
        (_, _, "wide.labels") => "2",
        (_, _, "wide.negatives") => "1",
        (_, _, "wide.cost") => "0.3",
        (_, _, "wide.prune-below") => "0.5",
        (_, _, "wide.precision") => "bf16",
        (_, _, "window") => "1",
        (_, _, "min-count") => "4",
        (_, _, "vocabulary") => "9",
        (_, _, "subsample") => "0.01",
        // Answers.
        (_, "evaluate", "input") => "../in/others.txt",
        (_, _, "input") => "../in/test.txt",
        (_, _, "top-k") => "2",
        (_, "explain", "top") => "1",
        (_, "explain" | "predict", "text") => "stone",
        (_, _, "only-labels") => "../in/some.txt",
        (_, _, "candidates" | "exclude") => "../in/lists.txt",
        (_, _, "min-score") => "0.6",
        (_, _, "threshold") => "0.3",
        (_, _, "raw-scores" | "names" | "exact" | "in-memory" | "trusted" | "cold" | "floor" | "verify") => "",
        (_, _, "output-format") => "jsonl",
        (_, _, "on-error" | "unknown-labels") => "skip",
        (_, _, "max-labels") => "2",
        (_, _, "repetitions") => "0",
        (_, _, "search-width") => "-0.9",
        (_, "index build", "cells") => "2",
        (_, _, "cells") => "1",
        (_, _, "max-age") => "5",
        (_, _, "mode") => "batch",
        (_, _, "repeat" | "runs") => "2",
        (_, "bench predict", "queries") => "3",
        (_, _, "iterator") => "marching",
        (_, _, "truth") => "../in/train.txt",
        (_, _, "predictions") => "../in/tree2-5.txt",
        (_, _, "k") => "2",
        (_, _, "propensity-from") => "../in/train.txt",
        (_, _, "propensity-a") => "0.3",
        (_, _, "propensity-b") => "3",
        (_, _, "weights") => "../in/test-weights.txt",
        (_, "evaluate", "filter") => "../in/pairs.txt",
        (_, _, "filter" | "exclude-rows") => "../in/some.txt",
        (_, _, "compare") => "../in/tree2-5.txt",
        (_, _, "intervals") => "",
        (_, _, "resamples") => "20",
        (_, _, "level") => "0.5",
        // Indexes.
        (_, "bench curves", "metric") => "P@3",
        (_, _, "metric") => "cosine",
        (_, _, "index") => "../in/ip",
        (_, _, "queries") => "../in/train.npy",
        (_, _, "degree") => "3",
        (_, _, "passes") => "1",
        (_, _, "factor") => "0.7",
        (_, _, "fit-queries") => "../in/test.npy",
        (_, _, "fit-instances") => "3",
        (_, _, "max-loss") => "3",
        (_, _, "target-recall") => "0.4",
        (_, _, "min-recall") => "1",
        (_, _, "prove") => "3000",
        (_, _, "plot" | "picture") => "plot.svg",
        (_, _, "policy") => "rebuild",
        // Models.
        (_, "merge", "labels") => "20",
        (_, _, "held-out" | "unknown-rows") => "",
        (_, _, "refit-members") => "../in/whole ../in/whole2",
        (_, _, "rule") => "logistic",
        (_, _, "folds") => "3",
        (_, _, "hidden") => "3",
        (_, _, "networks") => "1",
        (_, _, "method") => "platt",
        (_, _, "least-true") => "2",
        (_, _, "from" | "to") => "npz",
        (_, _, "input-labels") => "../in/train-others.txt",
        (_, _, "output-labels") => "labels.npz",
        (_, _, "output-base") => "1",
        (_, _, "pipeline") => "../in/pipeline",
        (_, _, "labels") => "20",
        (_, _, "tree") => "0",
        (_, _, "prune-below") => "0.5",
        (_, _, "keep-labels") => "../in/some.txt",
        // Data.
        (_, "generate", "preset") => "eurlex-4k",
        (_, _, "instances" | "test-instances") => "7",
        (_, "generate", "features") => "90",
        (_, _, "words") => "5",
        (_, _, "labels-per-instance") => "1.5",
        (_, _, "background") => "0.9",
        (_, _, "values") => "counts",
        (_, _, "no-text" | "no-names" | "log-x") => "",
        (_, _, "tree.weights") => "3",
        (_, _, "tree.overlap") => "0.5,0.5",
        (_, _, "like") => "../in/tree",
        (_, _, "query-features") => "9",
        (_, _, "log") => "two=../in/log.jsonl",
        (_, _, "x") => "epoch",
        _ => return None,
    })
}
