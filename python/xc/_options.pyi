"""Options of training by keyword. Written by `python/generate.py` from the table of settings: change that."""

import os
from typing import Any, Callable, Iterable, Literal, Mapping, Sequence, TypedDict, Union, overload

from typing_extensions import Unpack

from . import LabelsLike, Report, RowsLike, Trained, Tuned

class TreeOptions(TypedDict, total=False):
    """Options of `xc train tree`."""

    preset: Union[Literal["default", "parabel", "bonsai", "xr-linear"], None]
    """Named settings: default, parabel, bonsai or xr-linear; other options override them."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances and score the model on them, unless validation is given; the
    same file and seed give the same instances for every kind of model."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    trees: Union[int, None]
    """Trees whose scores are averaged."""

    tree_branching: Union[int, None]
    """Children of a cluster."""

    cluster_max_leaf: Union[int, None]
    """Target for the number of labels in a leaf cluster; a balanced tree may exceed it by half."""

    cluster_slack: Union[float, None]
    """Allowed imbalance of a split, from 0 (parts of equal size) to below 1 (balanced). Needs cluster_method
    balanced."""

    cluster_method: Union[Literal["balanced", "unbalanced"], None]
    """Balanced (parts of nearly equal size) or unbalanced (parts as k-means finds them)."""

    cluster_max_depth: Union[int, None]
    """Maximum number of cluster levels above the labels (unbalanced). Needs cluster_method unbalanced."""

    cluster_max_iterations: Union[int, None]
    """Maximum number of k-means iterations per split."""

    cluster_max_sample: Union[int, None]
    """Labels sampled for k-means per split, at most."""

    cluster_representation: Union[Literal["pifa", "pii", "label-features", "pifa-and-label-features"], None]
    """Label representation for clustering: the features of their instances (pifa), their instances (pii),
    label_features, or the first and the third combined."""

    cluster_normalise_labels: Union[bool, None]
    """Whether an instance with m labels counts 1/sqrt(m), instead of 1, in the vectors that labels are compared by
    (pifa). Needs cluster_representation pifa or pifa-and-label-features."""

    cluster_max_label_nnz: Union[int, None]
    """Maximum number of features of a label's vector; the largest are kept."""

    cluster_unseen: Union[Literal["drop", "keep"], None]
    """Labels without training instances: drop (never predicted) or keep."""

    linear_loss: Union[Literal["squared-hinge", "logistic"], None]
    """Squared-hinge or logistic."""

    linear_cost: Union[float, None]
    """Weight of the loss against the regulariser (liblinear's C), for rows of about length 1: others are divided by
    their typical length."""

    linear_positive_cost: Union[float, None]
    """Additional cost factor of positives."""

    linear_negative_cost: Union[float, None]
    """Additional cost factor of negatives."""

    linear_bias: Union[float, None]
    """Value of the bias input, 0 for none."""

    linear_tolerance: Union[float, None]
    """Stop a ranker when its gradients differ by at most this (liblinear's eps)."""

    linear_max_passes: Union[int, None]
    """Maximum number of passes over the instances."""

    linear_prune_below: Union[float, None]
    """Drop weights of smaller magnitude, for rows of about length 1: a larger value makes models smaller and
    faster."""

    linear_max_weights: Union[int, None]
    """Maximum number of weights kept per ranker; the largest are kept."""

    negatives: Union[Literal["teacher-forced", "matcher-aware"], None]
    """Negatives of a ranker: from its parent (teacher-forced), or also what the beam routes there (matcher-
    aware)."""

    negatives_beam: Union[int, None]
    """Clusters that matcher-aware negatives reach per level [default: 10]. Needs negatives matcher-aware."""

    post_processor: Union[Union[str, int], None]
    """Maps margins to scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9 [default:
    l3-hinge; l2-hinge with preset parabel; sigmoid with linear_loss logistic]."""

    beam: Union[int, None]
    """Clusters kept per level."""

    precision: Union[Literal["f32", "f16", "bf16"], None]
    """Type of the weights."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class MachOptions(TypedDict, total=False):
    """Options of `xc train mach`."""

    encoder: Union[Literal["features", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), or frozen (texts by a
    transformer as it comes)."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included. Needs encoder frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    frozen."""

    repetitions: Union[int, None]
    """Repetitions: more distinguish labels better, at proportional cost [default: 8 for up to 160000 labels, rising
    to 32 for 640000]."""

    repetitions_range: Union[Union[str, int], None]
    """Train only the repetitions with these numbers, excluding TO, to be merged with others."""

    buckets: Union[int, None]
    """Buckets of a repetition, fewer than labels [default: such that all repetitions together have half as many
    buckets as there are labels; from 128, or half of the labels, to 10000]."""

    hash_family: Union[Literal["prime", "mersenne61", "multiply-shift", "tabulation"], None]
    """Family of the hash functions; prime needs no memory for labels, but has room for few further labels (xc merge
    labels) [default: multiply-shift; prime for more than a million labels]."""

    decoder: Union[Literal["mean", "min", "median"], None]
    """How bucket scores are combined into a label's score, unless a query asks for another decoder. The median was
    best, or within 0.1 points of P@1, on every data set measured; with tens of millions of labels the mean decodes
    ten times as fast [default: median; min below 12 buckets, where labels share half of theirs too often for a
    median]."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class DenseOptions(TypedDict, total=False):
    """Options of `xc train dense`."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes)."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above. Needs encoder transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention. Needs encoder transformer."""

    wide: Union[Literal["on", "off"], None]
    """Rank the best labels again by sparse rankers, one a label: they keep rare words, which labels of few
    instances need (off where features are fewer than two for a value of an embedding, and over tokens, where on
    reads all words)."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin.
    Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model. Needs wide on."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class UniformOptions(TypedDict, total=False):
    """Options of `xc train uniform`."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes)."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above. Needs encoder transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention. Needs encoder transformer."""

    network_intermediate: Union[Union[str, int], None]
    """Units of the layer that labels are connected with; none: labels are connected with the layer below it
    [default: five for four labels, as a multiple of 512, from 512 to 32768; none for many labels]."""

    head_fan_in: Union[int, None]
    """Connections per label."""

    head_wiring: Union[Literal["uniform", "unstructured", "dense"], None]
    """The same number of connections for every label, the same number on average, or connections with all units
    (for comparison)."""

    head_precision: Union[Literal["f32", "bf16", "f16", "e4m3", "e5m2"], None]
    """Type of the connections' weights, in training and in the model [default: f32]."""

    head_moments: Union[Literal["f32", "bf16"], None]
    """Type of the optimiser's moments of the connections [default: f32]."""

    head_no_screening: Union[bool, None]
    """Score every label in full in each step. By default, with the squared hinge, batches of more than 64 and many
    labels, a step first screens labels in 8 bits and scores those that may be within the margin."""

    head_rewire_every: Union[int, None]
    """Steps between rewirings; 0: connections stay fixed [default: as many as 32000 instances take]."""

    head_rewire_fraction: Union[float, None]
    """Share of the connections, the weakest, that are redrawn in a rewiring; 0: none."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency"], None]
    """Labels that a step scores in addition to the true ones of its batch: all, uniform negatives, or negatives
    drawn by the rank of labels by frequency, or by their frequency to the power of 0.75 [default: all; frequency
    for many labels; uniform with negatives_sampled]."""

    negatives_sampled: Union[int, None]
    """Negatives drawn per step [default: a tenth of many labels]."""

    wide: Union[Literal["on", "off"], None]
    """Rank the best labels again by sparse rankers, one a label: they keep rare words, which labels of few
    instances need (off where features are fewer than two for a value of an embedding, and over tokens, where on
    reads all words)."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin.
    Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model. Needs wide on."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class LnsOptions(TypedDict, total=False):
    """Options of `xc train lns`."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes)."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above. Needs encoder transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention. Needs encoder transformer."""

    preset: Union[Literal["amazon-670k", "wikilshtc-325k", "text8"], None]
    """Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options override them."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"], None]
    """Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by rank of
    frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest
    logits (top-k), or approximately those by an index (ann); those that hash tables find by the instance's vector
    (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted multi-index (midx) [default: lsh-
    embedding; all where labels are few]."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance [default: true]. Needs sampler uniform or
    log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_sampled: Union[int, None]
    """Sampled labels: per list for samplers that do not look at the instances [default: 2000], else per instance
    [default: 10 for a shared list, 500 for separate lists]. Needs sampler uniform or log-uniform or frequency or
    top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list in addition to those of the sampler, weighted to represent all remaining labels
    [default: 2000 in a shared list of a sampler that looks at the instances, else 0]. Needs sampler uniform or log-
    uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weighting: Union[Literal["none", "log-q", "inverse"], None]
    """Importance weight of sampled negatives. none: 1. log-q: the log of its probability is subtracted from its
    logit (softmax, nce). inverse: 1 / its probability, at most weight_cap [default: inverse with uniform labels;
    else none with tables and top-k, log-q with softmax and nce, inverse with other losses]. Needs sampler uniform
    or log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weight_cap: Union[float, None]
    """Largest weight (weighting inverse); 0: no limit [default: 4]. Needs weighting inverse."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model."""

    tables: Union[int, None]
    """Number of tables, L; without codes, the largest number [default: 50]. Needs sampler lsh-embedding or lsh-
    label."""

    codes: Union[int, None]
    """Codes per key, K [default: chosen so that few unrelated labels collide]. Needs sampler lsh-embedding or lsh-
    label."""

    tables_family: Union[Literal["wta", "sim-hash"], None]
    """Hash functions: winner-take-all over 8 coordinates, or signs of projections, for which the chance that a
    label is found is known (weighting log-q, inverse) [default: wta]. Needs sampler lsh-embedding or lsh-label."""

    upkeep: Union[Literal["drift", "rebuild", "immediate"], None]
    """Rehash policy: as labels drift (drift), all at intervals (rebuild), or in every step that changes them
    (immediate) [default: drift]. Needs sampler lsh-embedding or lsh-label."""

    upkeep_every: Union[int, None]
    """Steps until the first rebuild; each further interval is a tenth longer (upkeep rebuild) [default: 50]. Needs
    upkeep rebuild."""

    upkeep_share: Union[float, None]
    """How far a label's row may move before it is rehashed, as a share of its length (upkeep drift) [default:
    0.05]. Needs upkeep drift."""

    wide: Union[Literal["on", "off"], None]
    """Rank the best labels again by sparse rankers, one a label: they keep rare words, which labels of few
    instances need (off where features are fewer than two for a value of an embedding, and over tokens, where on
    reads all words)."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin.
    Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model. Needs wide on."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class AstraOptions(TypedDict, total=False):
    """Options of `xc train astra`."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes)."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above. Needs encoder transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention. Needs encoder transformer."""

    sampler: Union[Literal["weights", "label-text", "random", "in-batch", "all"], None]
    """Labels that a step scores in addition to the true ones: those whose weights score highest and uniform ones
    (weights), those whose texts have similar encodings and uniform ones (label-text), uniform ones alone (random),
    true labels of the batch (in-batch), or all."""

    retrieval: Union[Literal["in-step", "exact", "schedule"], None]
    """How the labels that score highest are found: in each step, by an index that follows the weights (in-step) or
    by comparing all labels (exact); or for all instances every few epochs, in parallel with training (schedule,
    algorithm 1 of the paper). Needs sampler weights or label-text."""

    retrieval_every: Union[int, None]
    """Epochs between retrievals (retrieval schedule) [default: 5]. Needs retrieval schedule."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance as in the paper [default: true]. Needs
    sampler weights or label-text or random or in-batch."""

    negatives_hard: Union[int, None]
    """Hard labels per instance [default: 10]. Needs sampler weights or label-text."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list [default: 500 for up to 20,000 labels, rising to 2,000 for 70,000; 0 with sampler in-
    batch]. Needs sampler weights or label-text or random or in-batch."""

    weighting: Union[Literal["capped", "unbiased", "none"], None]
    """Weight of a uniform label: the number of labels that it stands for, at most weight_cap (capped), or without a
    limit (unbiased, lemma 4.1 of the paper), or 1 (none) [default: capped]. Needs sampler weights or label-text or
    random or in-batch."""

    weight_cap: Union[float, None]
    """Largest weight (weighting capped); 0: no limit [default: 4]. Needs weighting capped."""

    hard_from_epoch: Union[int, None]
    """First epoch with hard labels, from 1; earlier epochs have uniform labels in their place [default: 1; 3 with
    retrieval schedule, which needs two epochs]. Needs sampler weights or label-text."""

    index_every: Union[int, None]
    """Steps between repairs of the index [default: whenever the number of steps has doubled, and once per epoch,
    but only after the steps since the last repair have changed four times as many labels as there are]. Needs
    retrieval in-step."""

    index_exact_below: Union[int, None]
    """Up to this many labels, compare all instead of searching [default: 5000]. Needs retrieval in-step."""

    index_recall: Union[float, None]
    """Share of the hardest labels that a search should find [default: 0.9]. Needs retrieval in-step or schedule."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model."""

    wide: Union[Literal["on", "off"], None]
    """Rank the best labels again by sparse rankers, one a label: they keep rare words, which labels of few
    instances need (off where features are fewer than two for a value of an embedding, and over tokens, where on
    reads all words)."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin.
    Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model. Needs wide on."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts."""

    text_max_features: Union[int, None]
    """Keep at most N terms, the most frequent ones."""

    text_words: Union[int, None]
    """Keep the N most frequent words. This option and the next two choose the kinds of terms, in place of
    text_ngrams and text_chars; 0 leaves a kind out."""

    text_pairs: Union[int, None]
    """Keep the N most frequent pairs of neighbouring words."""

    text_trigrams: Union[int, None]
    """Keep the N most frequent sequences of three characters inside words."""

    text_oov: Union[int, None]
    """Hash terms outside the vocabulary into N additional features, instead of dropping them."""

    text_fold: Union[int, None]
    """Fold all features into N by hashing their numbers; weights that collide are added. 0 folds nothing."""

    text_preset: Union[Literal["mach"], None]
    """Named values of the previous five options; any of these that is given overrides the preset. mach: 125000
    words, 20000 pairs, 70000 trigrams, 500000 features for other terms, folded into 80000."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors,
    which networks use as they are]."""

class SkipgramOptions(TypedDict, total=False):
    """Options of `xc train skipgram`."""

    preset: Union[Literal["amazon-670k", "wikilshtc-325k", "text8"], None]
    """Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options override them."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"], None]
    """Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by rank of
    frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest
    logits (top-k), or approximately those by an index (ann); those that hash tables find by the instance's vector
    (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted multi-index (midx) [default: lsh-
    embedding; all where labels are few]."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance [default: true]. Needs sampler uniform or
    log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_sampled: Union[int, None]
    """Sampled labels: per list for samplers that do not look at the instances [default: 2000], else per instance
    [default: 10 for a shared list, 500 for separate lists]. Needs sampler uniform or log-uniform or frequency or
    top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list in addition to those of the sampler, weighted to represent all remaining labels
    [default: 2000 in a shared list of a sampler that looks at the instances, else 0]. Needs sampler uniform or log-
    uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weighting: Union[Literal["none", "log-q", "inverse"], None]
    """Importance weight of sampled negatives. none: 1. log-q: the log of its probability is subtracted from its
    logit (softmax, nce). inverse: 1 / its probability, at most weight_cap [default: inverse with uniform labels;
    else none with tables and top-k, log-q with softmax and nce, inverse with other losses]. Needs sampler uniform
    or log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weight_cap: Union[float, None]
    """Largest weight (weighting inverse); 0: no limit [default: 4]. Needs weighting inverse."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model."""

    tables: Union[int, None]
    """Number of tables, L; without codes, the largest number [default: 50]. Needs sampler lsh-embedding or lsh-
    label."""

    codes: Union[int, None]
    """Codes per key, K [default: chosen so that few unrelated labels collide]. Needs sampler lsh-embedding or lsh-
    label."""

    tables_family: Union[Literal["wta", "sim-hash"], None]
    """Hash functions: winner-take-all over 8 coordinates, or signs of projections, for which the chance that a
    label is found is known (weighting log-q, inverse) [default: wta]. Needs sampler lsh-embedding or lsh-label."""

    upkeep: Union[Literal["drift", "rebuild", "immediate"], None]
    """Rehash policy: as labels drift (drift), all at intervals (rebuild), or in every step that changes them
    (immediate) [default: drift]. Needs sampler lsh-embedding or lsh-label."""

    upkeep_every: Union[int, None]
    """Steps until the first rebuild; each further interval is a tenth longer (upkeep rebuild) [default: 50]. Needs
    upkeep rebuild."""

    upkeep_share: Union[float, None]
    """How far a label's row may move before it is rehashed, as a share of its length (upkeep drift) [default:
    0.05]. Needs upkeep drift."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are)."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1 after lsa,
    else 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false)."""

    epochs: Union[int, None]
    """Passes over the training instances."""

    batch: Union[int, None]
    """Instances per step."""

    batch_size: Union[int, None]
    """Instances per step."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad."""

    optimizer_rate: Union[float, None]
    """Learning rate."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0.01 for adamw, else 0]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving)."""

    schedule_lowest: Union[float, None]
    """Lowest learning rate, as a share of the initial one (plateau) [default: 0]. Needs schedule plateau."""

    clip_norm: Union[float, None]
    """Clip gradients to this norm [default: no clipping]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances, to evaluate the network after each epoch; the same file and
    seed give the same instances for every kind of model [default: none; the instances of validation, if given, are
    evaluated instead]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    patience: Union[int, None]
    """Stop after N epochs in which the monitor value did not improve [default: never]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest. Needs patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss if none are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute)."""

    log_every: Union[int, None]
    """Steps between lines of the training log."""

    window: Union[int, None]
    """Context window: words on each side, within a line."""

    min_count: Union[int, None]
    """Keep words that occur at least N times."""

    vocabulary: Union[int, None]
    """Keep at most N words, the most frequent ones [default: all]."""

    subsample: Union[float, None]
    """Leave out occurrences of words whose share of the text is above SHARE, more of them for more frequent words;
    word2vec uses 1e-3, 0 leaves out none."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

@overload
def train(
    kind: Literal["tree"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[TreeOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["mach"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[MachOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["dense"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[DenseOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["uniform"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[UniformOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["lns"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[LnsOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["astra"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[AstraOptions],
) -> Trained: ...

@overload
def train(
    kind: Literal["skipgram"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    model: Union[str, os.PathLike[str], None] = ...,
    checkpoint: Union[str, os.PathLike[str], None] = ...,
    refit: Union[str, os.PathLike[str], None] = ...,
    device: str = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[SkipgramOptions],
) -> Trained: ...

@overload
def plan(
    kind: Literal["tree"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[TreeOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["mach"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[MachOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["dense"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[DenseOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["uniform"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[UniformOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["lns"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[LnsOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["astra"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[AstraOptions],
) -> Report: ...

@overload
def plan(
    kind: Literal["skipgram"],
    X: RowsLike,
    Y: Union[LabelsLike, None] = ...,
    *,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[SkipgramOptions],
) -> Report: ...

@overload
def tune(
    kind: Literal["tree"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[TreeOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["mach"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[MachOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["dense"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[DenseOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["uniform"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[UniformOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["lns"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[LnsOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["astra"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[AstraOptions],
) -> Tuned: ...

@overload
def tune(
    kind: Literal["skipgram"],
    X: RowsLike,
    Y: LabelsLike,
    *,
    budget: Union[str, None] = ...,
    trials: Union[int, None] = ...,
    metric: str = ...,
    output: Union[str, os.PathLike[str], None] = ...,
    train_model: bool = ...,
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callable[[dict[str, Any]], object], Iterable[Callable[[dict[str, Any]], object]]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Any], None] = ...,
    **keywords: Unpack[SkipgramOptions],
) -> Tuned: ...
