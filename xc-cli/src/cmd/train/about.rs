//! What `xc train KIND --help` says first.

const TREE: &str = "\
Train a label tree

Labels are grouped into a tree by the similarity of their instances. Each node below the
root has a linear ranker, which decides whether an instance belongs to that node. The
model stores how its features are made, so `xc predict` takes the same kind of input.

Rows of features (XC text, svmlight, npz) are scaled to length 1, and weighted with
--tfidf; text (JSONL, fastText) goes through the pipeline of the --text options. Vectors
(npy) keep their relative lengths: all are divided by their typical length.

The model folder appears when it is complete. Until then finished work is kept in
MODEL.checkpoint, and --resume continues from there. The report of the run is written to
MODEL.log/train.json; with validation instances, their metrics by number of trees to log.jsonl
and curve.svg there.

Examples:
  xc train tree --train train.txt --model my.model
  xc train tree --train train.jsonl --text-fields title,text --validation dev.jsonl
    --model my.model
  xc train tree --train counts.txt --tfidf --preset parabel --model parabel.model
  xc train tree --train x.npz --train-labels y.npz --trees 3 --tree.branching 16
    --model my.model
  xc train tree --train train.txt --model my.model --explain
  xc train tree --train train.txt --part 0/2 --model part-0
  xc train tree --train train.txt --part 1/2 --model part-1
  xc merge part-0 part-1 --output my.model";

const MACH: &str = "\
Train MACH: networks over hashed labels

Labels are hashed into --buckets buckets, --repetitions times independently, and
each repetition is a network with one output per bucket: the number of weights and the
training time depend on the number of buckets, not of labels. A label's score combines
the scores of its buckets in all repetitions.

Repetitions are independent. --part trains a share of them, --repetitions-range those
that it names, on this machine or another, and `xc merge` combines them: the result is
byte for byte that of one run.

A finished repetition is kept in MODEL.checkpoint until the model is complete, and
--resume continues an unfinished one. Progress is logged to MODEL.log.

Examples:
  xc train mach --train train.txt --tfidf --repetitions 8 --buckets 2000 --model my.model
  xc train mach --train train.txt --repetitions 8 --part 0/2 --model part-0.model
  xc train mach --train train.txt --repetitions 8 --part 1/2 --model part-1.model
  xc merge part-0.model part-1.model --output my.model";

const DENSE: &str = "\
Train a network with one output per label

Embeddings of the features are summed into a vector, which goes through the hidden
layers to one output per label. Weights and time grow with the number of labels. This
kind is the baseline that the others are compared with, and a good choice for a few
thousand labels. Prediction scores every label.

Progress is logged to MODEL.log (log.jsonl, curve.svg, train.json). --resume continues
an interrupted run, which ends with the same bytes as without the interruption.

Examples:
  xc train dense --train train.txt --tfidf --model dense.model
  xc train dense --train train.jsonl --validation dev.jsonl --epochs 20 --patience 2
    --model dense.model";

const UNIFORM: &str = "\
Train a network with a sparse output layer

Each label is connected with --head.fan-in units of a wide layer
(--network.intermediate) instead of all of them: memory and time of the output layer
grow with labels * fan-in. The squared hinge skips labels that are right by a margin.
The weakest connections are dropped and redrawn during training.

Instances are sparse features or text, or vectors that were computed elsewhere:
--features FILE.npy (one row per instance, f32) in addition to --train, which then gives
only the labels. A file of plain f32 stays on disk.

The memory that training needs is printed before it begins; --max-memory refuses more.
Progress is logged to MODEL.log. --resume continues an interrupted run, which ends with
the same bytes as without the interruption.

Examples:
  xc train uniform --train train.txt --tfidf --model my.model
  xc train uniform --train labels.txt --features train.npy --head.precision bf16
    --model my.model
  xc train uniform --train l.txt --features x.npy --validation lv.txt
    --validation-features v.npy --epochs 100 --schedule plateau --schedule.lowest 0.1
    --monitor P@3 --patience 1 --patience-from lowest-rate --model my.model";

const LNS: &str = "\
Train a network with negative sampling

Embeddings of the features are summed into a vector; every label has a row of weights. A
step scores the true labels of its batch and those that a sampler chooses, so its time
does not grow with the number of labels. Prediction scores every label.

By default a batch shares one list of candidates: labels that hash tables find for its
instances, and uniform ones. The rows of these labels are multiplied with all vectors at
once. With --negatives.shared false, each instance has its own list.

Unless given, width, initial embeddings, loss, rate and epochs follow from the training
instances: fewer than 12,000 (\"few\"), 100 features or more on average (\"long\").

The time of each stage of a step is reported at the end and in MODEL.log (log.jsonl,
curve.svg, train.json). --resume continues an interrupted run, which ends with the same
bytes as without the interruption.

Examples:
  xc train lns --train train.txt --tfidf --model lns.model
  xc train lns --train train.txt --sampler midx --negatives.uniform 500 --model lns.model
  xc train lns --train train.txt --preset amazon-670k --model lns.model";

const ASTRA: &str = "\
Train a network with hard and uniform negatives (ASTRA)

Embeddings of the features are summed into a vector; every label has a row of weights. A
step scores the true labels of its batch, the false labels that score highest for its
instances, and uniform labels that stand for all others, so its time does not grow with
the number of labels. An index over the rows of weights finds the hardest labels; it is
updated as the weights change. Prediction scores every label.

Unless given, width, initial embeddings, loss, rate and epochs follow from the training
instances, as in `xc train lns`; --explain prints all values and the reasons for them,
and trains nothing.

The time of each stage of a step is reported at the end and in MODEL.log (log.jsonl,
curve.svg, train.json). --resume continues an interrupted run, which ends with the same
bytes as without the interruption.

Examples:
  xc train astra --train train.txt --tfidf --model astra.model
  xc train astra --train train.txt --negatives.hard 20 --negatives.uniform 4000 --model astra.model
  xc train astra --train train.txt --sampler random --model random.model
  xc train astra --train train.jsonl --label-features labels.jsonl --model astra.model";

const SKIPGRAM: &str = "\
Train word vectors on a text

The text is a file of lines, or JSONL. Each word is an instance: its vector, unchanged,
predicts the words near it (skip-gram). A step scores the true words of its batch and
those that a sampler chooses, as in xc train lns, whose options apply.

The answers of the model are words: for each line, xc predict gives the words nearest to
those of the line by cosine, and leaves out the line's own. The vectors are also written
to MODEL.vectors.txt in word2vec's text format.

Progress is logged to MODEL.log. --resume continues an interrupted run, which ends with
the same bytes as without the interruption.

Examples:
  xc train skipgram --train text.txt --model words.model
  xc train skipgram --train text8 --preset text8 --model words.model
  xc train skipgram --train text.txt --window 5 --subsample 1e-3 --sampler frequency
    --loss nce --model words.model
  echo \"king\" | xc predict --model words.model --input - --names --top-k 10";

/// What is said of a kind: its first line alone is the short form.
pub(super) fn of(kind: &str) -> &'static str {
    match kind {
        "tree" => TREE,
        "mach" => MACH,
        "dense" => DENSE,
        "uniform" => UNIFORM,
        "lns" => LNS,
        "astra" => ASTRA,
        "skipgram" => SKIPGRAM,
        _ => "",
    }
}
