//! Commands that succeed, each with another choice made.

/// A command whose options are tried, in a folder beside `in`.
pub(crate) struct Scenario {
    pub(crate) command: &'static str,
    pub(crate) arguments: &'static str,
    /// Options that belong to what is chosen here, and whose effect these data do not show.
    pub(crate) unseen: &'static [&'static str],
}

const fn of(command: &'static str, arguments: &'static str, unseen: &'static [&'static str]) -> Scenario {
    Scenario { command, arguments, unseen }
}

const TREE: &str = "train tree";
const MACH: &str = "train mach";
const DENSE: &str = "train dense";
const UNIFORM: &str = "train uniform";
const LNS: &str = "train lns";
const ASTRA: &str = "train astra";
const SKIPGRAM: &str = "train skipgram";

pub(crate) const SCENARIOS: &[Scenario] = &[
    of(TREE, "--train ../in/train.txt --trees 2 --cluster.max-leaf 3 --tree.branching 2 --model m", &[]),
    of(
        TREE,
        "--train ../in/train.txt --trees 1 --cluster.max-leaf 3 --tree.branching 2 --cluster.method unbalanced --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.txt --trees 1 --cluster.max-leaf 3 --tree.branching 2 --negatives matcher-aware --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.txt --trees 1 --cluster.max-leaf 3 --tree.branching 2 --cluster.representation label-features --label-features ../in/label-rows.txt --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.txt --trees 1 --cluster.max-leaf 3 --tree.branching 2 --validation ../in/test.txt --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.txt --cluster.max-leaf 3 --tree.branching 2 --validation-fraction 0.3 --label-names ../in/names.txt --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.jsonl --trees 2 --cluster.max-leaf 3 --tree.branching 2 --text.min-df 1 --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.csv --label-separator ; --trees 2 --cluster.max-leaf 3 --tree.branching 2 --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/many.txt --trees 1 --cluster.max-leaf 3 --tree.branching 2 --cluster.method unbalanced --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.svm --svmlight-base 1 --trees 2 --cluster.max-leaf 3 --tree.branching 2 --model m",
        &[],
    ),
    of(
        TREE,
        "--train ../in/train.npz --train-labels ../in/train-y.npz --trees 2 --cluster.max-leaf 3 --tree.branching 2 --model m",
        &[],
    ),
    of(MACH, "--train ../in/train.txt --epochs 2 --network.widths 8 --repetitions 3 --buckets 6 --model m", &[]),
    of(
        MACH,
        "--train ../in/train.txt --features ../in/train.npy --epochs 2 --network.widths 8 --repetitions-range 0..2 --buckets 6 --model m",
        &[],
    ),
    of(DENSE, "--train ../in/train.txt --epochs 2 --network.widths 8 --batch 16 --model m", &[]),
    of(
        DENSE,
        "--train ../in/train.txt --epochs 3 --network.widths 8,8 --batch 16 --optimizer adamw --validation ../in/test.txt --model m",
        &[],
    ),
    of(
        DENSE,
        "--train ../in/train.jsonl --text.min-df 1 --epochs 3 --network.widths 8 --batch 16 --schedule plateau --optimizer sgd --model m",
        &[],
    ),
    of(
        DENSE,
        "--train ../in/train.txt --features ../in/train.npy --epochs 2 --network.widths 8 --schedule constant --patience 1 --model m",
        &[],
    ),
    of(
        DENSE,
        "--train ../in/train.txt --epochs 2 --network.widths 8 --network.input-dropout 0.2 --validation-fraction 0.3 --model m",
        &[],
    ),
    of(
        DENSE,
        "--train ../in/train.csv --label-separator ; --validation ../in/test.csv --epochs 2 --network.widths 8 --model m",
        &[],
    ),
    of(DENSE, "--train ../in/train.svm --svmlight-base 1 --epochs 2 --network.widths 8 --model m", &[]),
    of(
        DENSE,
        "--train ../in/train.txt --features ../in/train.npy --validation ../in/test.txt --validation-features \
         ../in/test.npy --label-names ../in/names.txt --epochs 2 --network.widths 8 --model m",
        &[],
    ),
    of(
        UNIFORM,
        "--train ../in/train.txt --epochs 6 --network.widths 8 --network.intermediate 16 --head.fan-in 6 --batch 16 --head.rewire-every 3 --model m",
        &[],
    ),
    of(
        UNIFORM,
        "--train ../in/train.txt --epochs 2 --network.widths 8 --network.intermediate 16 --head.wiring dense --batch 16 --model m",
        &[],
    ),
    of(
        UNIFORM,
        "--train ../in/train.txt --epochs 6 --network.widths 8 --network.intermediate 16 --head.fan-in 6 --batch 16 --sampler frequency --negatives.sampled 4 --head.rewire-every 3 --model m",
        &[],
    ),
    of(
        UNIFORM,
        "--train ../in/train.txt --features ../in/train.npy --epochs 6 --network.intermediate 16 --head.fan-in 6 --batch 16 --head.rewire-every 0 --model m",
        &[],
    ),
    of(
        UNIFORM,
        "--train ../in/train.txt --epochs 6 --network.widths 8 --network.intermediate none --head.fan-in 6 --batch 16 --head.rewire-fraction 0 --loss bce --model m",
        &["network.precision", "network.init", "network.activation"],
    ),
    of(LNS, "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --model m", &[]),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler lsh-embedding --negatives.sampled 2 --negatives.uniform 3 --tables 4 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler lsh-label --negatives.shared false --negatives.sampled 2 --tables 4 --upkeep rebuild --model m",
        &["network.precision"],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler lsh-embedding --negatives.sampled 2 --negatives.uniform 3 --tables 4 --upkeep immediate --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler frequency --negatives.sampled 3 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler uniform --negatives.sampled 3 --weighting none --model m",
        &[],
    ),
    of(LNS, "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler all --model m", &[]),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler in-batch --negatives.uniform 2 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler top-k --negatives.sampled 2 --negatives.uniform 2 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler ann --negatives.sampled 2 --negatives.uniform 2 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler midx --negatives.sampled 2 --negatives.uniform 2 --model m",
        &[],
    ),
    of(
        LNS,
        "--train ../in/train.txt --features ../in/train.npy --epochs 4 --sampler uniform --negatives.sampled 3 --model m",
        &[],
    ),
    of(
        ASTRA,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --negatives.hard 2 --negatives.uniform 3 --model m",
        &[],
    ),
    of(
        ASTRA,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --negatives.hard 2 --negatives.uniform 3 --index.exact-below 1 --weighting unbiased --model m",
        &[],
    ),
    of(
        ASTRA,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --negatives.hard 2 --negatives.uniform 3 --retrieval exact --weighting none --model m",
        &[],
    ),
    of(
        ASTRA,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --negatives.hard 2 --negatives.uniform 3 --retrieval schedule --model m",
        &[],
    ),
    of(
        ASTRA,
        "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --negatives.uniform 3 --sampler random --model m",
        &[],
    ),
    of(ASTRA, "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler in-batch --model m", &[]),
    of(ASTRA, "--train ../in/train.txt --epochs 4 --network.widths 8 --batch 16 --sampler all --model m", &[]),
    of(
        ASTRA,
        "--train ../in/train.jsonl --epochs 4 --network.widths 8 --batch 16 --negatives.hard 2 --negatives.uniform 3 --sampler label-text --label-features ../in/label-texts.jsonl --model m",
        &[],
    ),
    of(
        SKIPGRAM,
        "--train ../in/words.txt --min-count 1 --network.widths 8 --epochs 2 --batch 64 --sampler all --model m",
        &[],
    ),
    of(
        SKIPGRAM,
        "--train ../in/words.txt --min-count 1 --network.widths 8 --epochs 2 --batch 64 --sampler frequency --negatives.sampled 5 --model m",
        &[],
    ),
    of(
        SKIPGRAM,
        "--train ../in/words.txt --min-count 1 --network.widths 8 --epochs 2 --batch 64 --sampler lsh-embedding --negatives.sampled 3 --negatives.uniform 4 --tables 4 --model m",
        &[],
    ),
    of(
        "tune tree",
        "--train ../in/train.txt --trials 2 --no-model --cluster.max-leaf 3 --tree.branching 2 --output t --json",
        &[],
    ),
    of("tune tree", "--train ../in/train.txt --trials 2 --trees 2 --validation ../in/test.txt --output t --json", &[]),
    of(
        "tune mach",
        "--train ../in/train.txt --trials 2 --epochs 2 --network.widths 8 --buckets 6 --output t --json",
        &[],
    ),
    of(
        "tune lns",
        "--train ../in/train.jsonl --trials 2 --epochs 2 --network.widths 8 --no-model --output t --json",
        &[],
    ),
    of("predict", "--model ../in/tree --input ../in/test.txt", &[]),
    of("predict", "--model ../in/tree --input ../in/test.txt --output p.txt", &[]),
    of("predict", "--model ../in/tree --input - --output-format jsonl", &[]),
    of("predict", "--model ../in/tree --input ../in/test.svm --svmlight-base 1", &[]),
    of("predict", "--model ../in/whole --input ../in/test.npz", &[]),
    of("predict", "--model ../in/named --input ../in/test.txt --names", &[]),
    of("predict", "--model ../in/named --input ../in/test.txt --output-format jsonl", &[]),
    of("predict", "--model ../in/text --input ../in/test.jsonl --output-format jsonl", &[]),
    of("predict", "--model ../in/text --input ../in/test.csv", &[]),
    of("predict", "--model ../in/tree --input ../in/test.txt --names --label-names ../in/names.txt", &[]),
    of("predict", "--model ../in/text --input ../in/test.jsonl --candidates ../in/test.jsonl", &[]),
    of("predict", "--model ../in/text --input ../in/test.jsonl --exclude ../in/test.csv --label-separator ;", &[]),
    of(
        "predict",
        "--model ../in/tree --input ../in/test.txt --exclude ../in/test.svm --svmlight-base 1",
        &["label-names"],
    ),
    of("predict", "--model ../in/calibrated --input ../in/test.txt", &[]),
    of("predict", "--model ../in/calibrated --input ../in/test.txt --threshold micro", &[]),
    of("predict", "--model ../in/mach --input ../in/test.txt", &[]),
    of("predict", "--model ../in/dense --input ../in/test.txt", &[]),
    of("predict", "--model ../in/indexed --input ../in/test.txt", &[]),
    of("predict", "--model ../in/vectors --input ../in/test.npy", &[]),
    of("predict", "--model ../in/uniform --input ../in/test.txt", &[]),
    of("bench predict", "--model ../in/tree --input ../in/test.txt --mode online --json", &[]),
    of("bench predict", "--model ../in/mach --input ../in/test.txt --mode online --json", &[]),
    of("bench predict", "--model ../in/indexed --input ../in/test.txt --mode batch --json", &[]),
    of("bench predict", "--model ../in/text --input ../in/test.jsonl --mode batch --json", &[]),
    of("evaluate", "--truth ../in/test.txt --predictions ../in/tree-5.txt", &["label-names"]),
    of(
        "evaluate",
        "--truth ../in/test.txt --predictions ../in/tree-5.txt --propensity-from ../in/train.txt --intervals",
        &["label-names", "model"],
    ),
    of(
        "evaluate",
        "--truth ../in/test.txt --predictions ../in/tree-5.txt --compare ../in/tree2-5.txt",
        &["label-names"],
    ),
    of("evaluate", "--truth ../in/test.jsonl --predictions ../in/tree-5.txt --label-names ../in/names.txt", &[]),
    of(
        "evaluate",
        "--truth ../in/test.svm --svmlight-base 1 --svmlight-label-base 1 --predictions ../in/tree-5.txt",
        &[],
    ),
    of("evaluate", "--model ../in/text --truth ../in/test.jsonl", &[]),
    of("evaluate", "--model ../in/text --truth ../in/test.csv --label-separator ; --worst w.jsonl", &[]),
    of("evaluate", "--model ../in/tree --truth ../in/test.txt --worst w.jsonl", &[]),
    of("predict", "--model ../in/text --input ../in/test.jsonl --exclude-field other", &[]),
    of("inspect", "../in/tree", &[]),
    of("index build", "--vectors ../in/train.npy --metric l2 --output i --cells 4", &[]),
    of("index build", "--vectors ../in/train.npy --metric ip --output i", &[]),
    of("index build", "--vectors ../in/train.txt --metric ip --output i", &[]),
    of("index build", "--vectors ../in/train.svm --svmlight-base 1 --metric ip --output i", &[]),
    of("index build", "--model ../in/dense --output i", &[]),
    of("index build", "--model ../in/dense --fit-queries ../in/test.txt --output i", &[]),
    of("index build", "--model ../in/text-dense --fit-queries ../in/test.jsonl --output i", &["label-field"]),
    of(
        "index build",
        "--model ../in/text-dense --fit-queries ../in/test.csv --label-separator ; --output i",
        &["label-field"],
    ),
    of(
        "index build",
        "--model ../in/dense --fit-queries ../in/test.svm --svmlight-base 1 --svmlight-label-base 1 --output i",
        &[],
    ),
    of("index build", "--model ../in/uniform --output i", &[]),
    of("index search", "--index ../in/l2 --queries ../in/test.npy", &["exact"]),
    of("index search", "--index ../in/ip --queries ../in/test.npy --output a.npz", &["exact", "prove"]),
    of("index search", "--index ../in/large --queries ../in/test.npy", &[]),
    of("index search", "--index ../in/lists --queries ../in/test.txt", &[]),
    of("index search", "--index ../in/lists --queries ../in/test.svm --svmlight-base 1", &[]),
    of("index evaluate", "--index ../in/l2 --queries ../in/test.npy --json", &[]),
    of("index evaluate", "--index ../in/l2 --queries ../in/test.npy --target-recall 0.9 --json", &[]),
    of("index evaluate", "--index ../in/lists --queries ../in/test.txt --json", &[]),
    of("index evaluate", "--index ../in/lists --queries ../in/test.svm --svmlight-base 1 --json", &[]),
    of(
        "index refresh",
        "--model ../in/text-dense --fit-queries ../in/test.jsonl --output i",
        &["label-field", "policy", "text-fields"],
    ),
    of(
        "index refresh",
        "--model ../in/text-dense --fit-queries ../in/test.csv --label-separator ; --output i",
        &["label-field", "policy", "text-fields"],
    ),
    of("index refresh", "--index ../in/large --vectors ../in/large-moved.npy --output i", &[]),
    of("index refresh", "--index ../in/l2 --vectors ../in/moved.npy --output i", &["policy"]),
    of("index refresh", "--model ../in/indexed --output i", &["policy"]),
    of("index refresh", "--model ../in/indexed --fit-queries ../in/test.txt --output i", &["policy"]),
    of(
        "index refresh",
        "--model ../in/indexed --fit-queries ../in/test.svm --svmlight-base 1 --svmlight-label-base 1 --output i",
        &["policy"],
    ),
    of("quickstart", "--output q", &[]),
    of("generate", "--instances 20 --test-instances 5 --features 50 --labels 10 --words 8 --output d", &[]),
    of("generate", "--features 200 --labels 50 --model m", &[]),
    of("generate", "--features 200 --labels 50 --test-instances 5 --model m --output d", &[]),
    of("merge", "../in/part1 ../in/part2 --output m", &[]),
    of("merge", "../in/part1 ../in/part2 --labels 20 --label-names ../in/more-names.txt --output m", &[]),
    of(
        "blend",
        "../in/tree ../in/tree2 --validation ../in/train.txt --held-out --networks 1 --folds 2 --output b",
        &[],
    ),
    of(
        "blend",
        "../in/tree ../in/tree2 --validation ../in/train.txt --held-out --rule net --networks 1 --folds 2 --output b",
        &[],
    ),
    of("blend", "../in/tree ../in/tree2 --validation ../in/test.txt --rule logistic --output b", &[]),
    of(
        "blend",
        "../in/tree ../in/tree2 --validation ../in/test.txt --rule reciprocal-ranks --output b",
        &["folds", "seed"],
    ),
    of("calibrate", "--model ../in/tree --validation ../in/train.txt --held-out --output c", &[]),
    of("blend", "../in/text ../in/text2 --validation ../in/test.jsonl --rule logistic --folds 2 --output b", &[]),
    of(
        "blend",
        "../in/text ../in/text2 --validation ../in/test.csv --label-separator ; --rule logistic --folds 2 --output b",
        &[],
    ),
    of(
        "blend",
        "../in/tree ../in/tree2 --validation ../in/test.svm --svmlight-base 1 --svmlight-label-base 1 --rule logistic --folds 2 --output b",
        &[],
    ),
    of(
        "blend",
        "../in/tree ../in/tree2 --validation ../in/test.npz --validation-labels ../in/test-y.npz --rule logistic --folds 2 --output b",
        &[],
    ),
    of(
        "calibrate",
        "--model ../in/tree --validation ../in/test.svm --svmlight-base 1 --svmlight-label-base 1 --output c",
        &[],
    ),
    of(
        "calibrate",
        "--model ../in/tree --validation ../in/test.npz --validation-labels ../in/test-y.npz --output c",
        &[],
    ),
    of("calibrate", "--model ../in/text --validation ../in/test.csv --label-separator ; --output c", &[]),
    of("calibrate", "--model ../in/text --validation ../in/test.jsonl --output c", &[]),
    of("convert", "--from xc-text ../in/train.txt --to jsonl a.jsonl", &[]),
    of("convert", "--from xc-text ../in/train.txt --to svmlight a.svm --output-base 0", &[]),
    of("convert", "--from svmlight ../in/train.svm --svmlight-base 1 --to npz a.npz --output-labels y.npz", &[]),
    of("convert", "--from npz ../in/train.npz --to npz a.npz", &[]),
    of("convert", "--from jsonl ../in/train.jsonl --to xc-text a.txt", &[]),
    of("convert", "--from jsonl ../in/train.jsonl --to xc-text a.txt --pipeline ../in/pipeline", &[]),
    of("convert", "--from jsonl ../in/train.jsonl --to csv a.csv", &[]),
    of("convert", "--from csv ../in/train.csv --label-separator ; --to fasttext a.txt", &[]),
    of("convert", "--from xc ../in/tree --to xc a", &[]),
    of("convert", "--from xc ../in/tree --label-names ../in/names.txt --to xc a", &[]),
    of("convert", "--from xc ../in/uniform --to xc a", &[]),
    of("convert", "--from xc ../in/tree --tree 1 --to pecos a", &[]),
    of(
        "convert",
        "--from jsonl ../in/train.jsonl --to npz a.npz --output-labels y.npz --save-pipeline p --label-names ../in/names.txt",
        &[],
    ),
    of("convert", "--from npz ../in/train.npz --input-labels ../in/train-y.npz --to xc-text a.txt", &[]),
    of("convert", "--from pecos ../in/pecos --to xc a", &[]),
    of("bench curves", "--log one=../in/log.jsonl --output c.svg", &[]),
    of("completions", "bash", &[]),
];
