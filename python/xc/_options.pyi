"""Options of training by keyword. Written by `python/generate.py` from the table of settings: change that."""

import os
from typing import Iterable, Literal, Mapping, Sequence, TypedDict, Union, overload

from typing_extensions import Unpack

from . import Callback, LabelsLike, Report, RowsLike, Trained, Tuned

Value = Union[bool, int, float, str, os.PathLike[str], Sequence[int], None]
"""What an option may be given as."""

class TreeOptions(TypedDict, total=False):
    """Options of `xc train tree`."""

    preset: Union[Literal["default", "parabel", "bonsai", "xr-linear"], None]
    """Named settings: default, parabel, bonsai or xr-linear; other options override them [default: default]."""

    validation_fraction: Union[float, None]
    """Hold out this share of the training instances and score the model on them, unless validation is given; the
    same file and seed give the same instances for every kind of model [default: none]."""

    split_seed: Union[int, None]
    """Seed of the held-out instances, which runs of several seeds then share [default: that of seed]. Needs
    validation_fraction."""

    trees: Union[int, None]
    """Trees whose scores are averaged [default: 3; 1 with preset xr-linear]."""

    tree_branching: Union[int, None]
    """Children of a cluster [default: 16; 2 with preset parabel; 100 with preset bonsai]."""

    cluster_max_leaf: Union[int, None]
    """Target for the number of labels in a leaf cluster; a balanced tree may exceed it by half [default: 100]."""

    cluster_slack: Union[float, None]
    """Allowed imbalance of a split, from 0 (parts of equal size) to below 1 (balanced) [default: 0; 0.3 with preset
    xr-linear]. Needs cluster_method balanced."""

    cluster_method: Union[Literal["balanced", "unbalanced"], None]
    """Balanced (parts of nearly equal size) or unbalanced (parts as k-means finds them) [default: balanced;
    unbalanced with preset bonsai]."""

    cluster_max_depth: Union[int, None]
    """Maximum number of cluster levels above the labels (unbalanced) [default: 3]. Needs cluster_method
    unbalanced."""

    cluster_max_iterations: Union[int, None]
    """Maximum number of k-means iterations per split [default: 8]."""

    cluster_max_sample: Union[int, None]
    """Labels sampled for k-means per split, at most [default: 4096; 32768 with preset xr-linear]."""

    cluster_representation: Union[Literal["pifa", "pii", "label-features", "pifa-and-label-features"], None]
    """Label representation for clustering: the features of their instances (pifa), their instances (pii),
    label_features, or the first and the third combined [default: pifa]."""

    cluster_normalise_labels: Union[bool, None]
    """Whether an instance with m labels counts 1/sqrt(m), instead of 1, in the vectors that labels are compared by
    (pifa) [default: false; true with preset xr-linear]. Needs cluster_representation pifa or pifa-and-label-
    features."""

    cluster_max_label_nnz: Union[int, None]
    """Maximum number of features of a label's vector; the largest are kept [default: all]."""

    cluster_unseen: Union[Literal["drop", "keep"], None]
    """Labels without training instances: drop (never predicted) or keep [default: drop]."""

    linear_loss: Union[Literal["squared-hinge", "logistic"], None]
    """Squared-hinge or logistic [default: squared-hinge]."""

    linear_cost: Union[float, None]
    """Weight of the loss against the regulariser (liblinear's C), for rows of about length 1: others are divided by
    their typical length [default: 1; 10 with linear_loss logistic]."""

    linear_positive_cost: Union[float, None]
    """Additional cost factor of positives [default: 1]."""

    linear_negative_cost: Union[float, None]
    """Additional cost factor of negatives [default: 1]."""

    linear_bias: Union[float, None]
    """Value of the bias input, 0 for none [default: 1]."""

    linear_tolerance: Union[float, None]
    """Stop a ranker when its gradients differ by at most this (liblinear's eps) [default: 0.1]."""

    linear_max_passes: Union[int, None]
    """Maximum number of passes over the instances [default: 100; 20 with preset parabel or bonsai]."""

    linear_prune_below: Union[float, None]
    """Drop weights of smaller magnitude, for rows of about length 1: a larger value makes models smaller and faster
    [default: 0.1; 0.2 with linear_loss logistic]."""

    linear_max_weights: Union[int, None]
    """Maximum number of weights kept per ranker; the largest are kept [default: all]."""

    negatives: Union[Literal["teacher-forced", "matcher-aware"], None]
    """Negatives of a ranker: from its parent (teacher-forced), or also what the beam routes there (matcher-aware)
    [default: teacher-forced]."""

    negatives_beam: Union[int, None]
    """Clusters that matcher-aware negatives reach per level [default: 10]. Needs negatives matcher-aware."""

    post_processor: Union[Union[str, int], None]
    """Maps margins to scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9 [default:
    l3-hinge; l2-hinge with preset parabel; sigmoid with linear_loss logistic]."""

    beam: Union[int, None]
    """Clusters kept per level [default: 10]."""

    precision: Union[Literal["f32", "f16", "bf16"], None]
    """Type of the weights [default: f32]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class MachOptions(TypedDict, total=False):
    """Options of `xc train mach`."""

    repetitions: Union[int, None]
    """Repetitions: more distinguish labels better, at proportional cost [default: 8; 32 for 1,000,000 labels]."""

    repetitions_range: Union[Union[str, int], None]
    """Train only the repetitions with these numbers, excluding TO, to be merged with others [default: 0..8; 0..32
    for 1,000,000 labels]."""

    buckets: Union[int, None]
    """Buckets of a repetition, fewer than labels [default: 1875; 128 for 1,000 labels; 6250 for many labels; 10000
    for 1,000,000 labels]."""

    hash_family: Union[Literal["prime", "mersenne61", "multiply-shift", "tabulation"], None]
    """Family of the hash functions; prime needs no memory for labels, but has room for few further labels (xc merge
    labels) [default: multiply-shift]."""

    decoder: Union[Literal["mean", "min", "median"], None]
    """How bucket scores are combined into a label's score, unless a query asks for another decoder. The median was
    best, or within 0.1 points of P@1, on every data set measured [default: median]."""

    encoder: Union[Literal["features", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), or frozen (texts by a
    transformer as it comes) [default: features]."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]. Needs encoder frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    frozen."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none [default: 512]."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    [default: random]."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are) [default: relu; identity with
    network_init lsa]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 1; 0.1 with
    network_init lsa]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings [default: 0.3; 0.5 with
    network_dropout 0.5]."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input [default: 0.3]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: f32]."""

    loss: Union[Literal["softmax", "bce", "squared-hinge"], None]
    """Softmax (one true bucket), bce or squared-hinge (each bucket true or false) [default: bce; softmax for one
    label an instance]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 10]."""

    batch: Union[int, None]
    """Instances per step [default: 256]."""

    batch_size: Union[int, None]
    """Instances per step [default: 256]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.01; 0.1 with optimizer momentum; 1 with optimizer sgd; 0.02 with optimizer row-
    adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class DenseOptions(TypedDict, total=False):
    """Options of `xc train dense`."""

    wide: Union[bool, Literal["on", "off"], None]
    """Re-rank the best labels with one sparse linear model per label, which sees the rare words that embeddings
    lose. Off by default for small vocabularies (fewer than two features per value of an embedding) and over tokens;
    with on there, it reads all words, not only the first tokens [default: on; off for vectors and a transformer
    that is trained]."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin
    [default: the best on instances that are held out, else 0.3; of a squared hinge 1]. Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again [default: 100]. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from [default: 20]. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation [default: 2]. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude [default: 0.1]. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model [default: f32]. Needs wide on."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes) [default: features]."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01 [default: 0.0001]. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above [default: 1]. Needs encoder
    transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them [default: 0]. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention [default: 0]. Needs encoder
    transformer."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none [default: 512]."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    [default: random]."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are) [default: relu; identity with
    network_init lsa]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 1; 0.1 with
    network_init lsa]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings [default: 0.3; 0.2 for
    a transformer that is trained; 0.5 with network_dropout 0.5]."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input [default: 0.3]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: f32]."""

    loss: Union[Literal["softmax", "bce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false) [default: bce; softmax for one
    label an instance]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 10; 3 for a transformer that is trained]."""

    batch: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    batch_size: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.01; 0.1 with optimizer momentum; 1 with optimizer sgd; 0.02 with optimizer row-
    adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class UniformOptions(TypedDict, total=False):
    """Options of `xc train uniform`."""

    network_intermediate: Union[Union[str, int], None]
    """Units of the layer that labels are connected with; none: labels are connected with the layer below it
    [default: 32768; 1536 for 1,000 labels; none for many labels]."""

    head_fan_in: Union[int, None]
    """Connections per label [default: 32; 128 for many labels]."""

    head_wiring: Union[Literal["uniform", "unstructured", "dense"], None]
    """The same number of connections for every label, the same number on average, or connections with all units
    (for comparison) [default: uniform]."""

    head_precision: Union[Literal["f32", "bf16", "f16", "e4m3", "e5m2"], None]
    """Type of the connections' weights, in training and in the model [default: f32]."""

    head_moments: Union[Literal["f32", "bf16"], None]
    """Type of the optimiser's moments of the connections [default: f32]."""

    head_no_screening: Union[bool, None]
    """Score every label in full in each step. By default, with the squared hinge, batches of more than 64 and many
    labels, a step first screens labels in 8 bits and scores those that may be within the margin."""

    head_rewire_every: Union[int, None]
    """Steps between rewirings; 0: connections stay fixed [default: 250; 1000 for few instances and a transformer
    that is trained]."""

    head_rewire_fraction: Union[float, None]
    """Share of the connections, the weakest, that are redrawn in a rewiring; 0: none [default: 0.1]."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency"], None]
    """Labels that a step scores in addition to the true ones of its batch: all, uniform negatives, or negatives
    drawn by the rank of labels by frequency, or by their frequency to the power of 0.75 [default: all; frequency
    for many labels]."""

    negatives_sampled: Union[int, None]
    """Negatives drawn per step [default: none; 8000 for many labels]."""

    wide: Union[bool, Literal["on", "off"], None]
    """Re-rank the best labels with one sparse linear model per label, which sees the rare words that embeddings
    lose. Off by default for small vocabularies (fewer than two features per value of an embedding) and over tokens;
    with on there, it reads all words, not only the first tokens [default: on; off for vectors and a transformer
    that is trained]."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin
    [default: the best on instances that are held out, else 0.3; of a squared hinge 1]. Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again [default: 100]. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from [default: 20; 40 for many labels]. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation [default: 2]. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude [default: 0.1]. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model [default: f32]. Needs wide on."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes) [default: features]."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01 [default: 0.0001]. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above [default: 1]. Needs encoder
    transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them [default: 0]. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention [default: 0]. Needs encoder
    transformer."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes below the intermediate one, input side first, e.g. 512,512: for sparse features the first
    is the width of their embeddings [default: 512]."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    [default: lsa; random for many labels]."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are) [default: identity; relu with
    network_init random]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 0.1; 1 for
    many labels; 1 with network_init random]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings [default: 0.1; 0 for
    many labels; 0.2 for a transformer that is trained]."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input [default: 0]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: bf16]."""

    loss: Union[Literal["softmax", "bce", "squared-hinge"], None]
    """Squared-hinge or bce (each label true or false), softmax (one true label) [default: squared-hinge; softmax
    for many labels]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 10; 5 for many labels; 3 for a transformer that is trained]."""

    batch: Union[int, None]
    """Instances per step [default: 128; 32 for few instances and a transformer that is trained]."""

    batch_size: Union[int, None]
    """Instances per step [default: 128; 32 for few instances and a transformer that is trained]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.002; 0.003 for few instances; 0.01 for many labels; 0.1 with optimizer momentum; 1
    with optimizer sgd; 0.02 with optimizer row-adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class LnsOptions(TypedDict, total=False):
    """Options of `xc train lns`."""

    preset: Union[Literal["amazon-670k", "wikilshtc-325k", "text8"], None]
    """Settings that a paper used for a data set: widths, batch, rate, loss, tables; other options override them."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"], None]
    """Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by rank of
    frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest
    logits (top-k), or approximately those by an index (ann); those that hash tables find by the instance's vector
    (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted multi-index (midx) [default: lsh-
    embedding; all for 1,000 labels]."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance [default: true]. Needs sampler uniform or
    log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_sampled: Union[int, None]
    """Sampled labels: per list for samplers that do not look at the instances, else per instance [default: 10; 2000
    with sampler uniform, log-uniform or frequency; 500 with negatives_shared false]. Needs sampler uniform or log-
    uniform or frequency or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list in addition to those of the sampler, weighted to represent all remaining labels
    [default: 2000; 0 with sampler uniform, log-uniform, frequency or negatives_shared false]. Needs sampler uniform
    or log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weighting: Union[Literal["none", "log-q", "inverse"], None]
    """Importance weight of sampled negatives. none: 1. log-q: the log of its probability is subtracted from its
    logit (softmax, nce). inverse: 1 / its probability, at most weight_cap [default: inverse; none with
    negatives_shared false; log-q with sampler frequency loss softmax]. Needs sampler uniform or log-uniform or
    frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weight_cap: Union[float, None]
    """Largest weight (weighting inverse); 0: no limit [default: 4]. Needs weighting inverse."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model [default: f32]."""

    tables: Union[int, None]
    """Number of tables, L; without codes, the largest number [default: as many as find the labels that are wanted,
    at most 50]. Needs sampler lsh-embedding or lsh-label."""

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

    wide: Union[bool, Literal["on", "off"], None]
    """Re-rank the best labels with one sparse linear model per label, which sees the rare words that embeddings
    lose. Off by default for small vocabularies (fewer than two features per value of an embedding) and over tokens;
    with on there, it reads all words, not only the first tokens [default: on; off for vectors and a transformer
    that is trained]."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin
    [default: the best on instances that are held out, else 0.3; of a squared hinge 1]. Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again [default: 100]. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from [default: 20; 40 for many labels]. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation [default: 2]. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude [default: 0.1]. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model [default: f32]. Needs wide on."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes) [default: features]."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01 [default: 0.0001]. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above [default: 1]. Needs encoder
    transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them [default: 0]. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention [default: 0]. Needs encoder
    transformer."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none [default: 256; 1024 for few instances; 512 for long instances]."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    [default: random; lsa for long instances]."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are) [default: relu; identity for
    long instances and many labels; identity with network_init lsa]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 1; 0.1 for
    long instances; 0.1 with network_init lsa]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings [default: 0.3; 0 for
    many labels; 0.2 for a transformer that is trained; 0.5 with network_dropout 0.5]."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input [default: 0.3; 0 for many labels]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: f32]."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false), nce (true labels against drawn
    ones; with sampler uniform, log-uniform, frequency or midx) [default: bce; squared-hinge for long instances;
    softmax for many labels and one label an instance]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 10; 20 for few instances; 4 for many labels; 3 for a transformer
    that is trained]."""

    batch: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    batch_size: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.01; 0.003 for few instances; 0.005 for many labels; 0.1 with optimizer momentum; 1
    with optimizer sgd; 0.02 with optimizer row-adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class AstraOptions(TypedDict, total=False):
    """Options of `xc train astra`."""

    sampler: Union[Literal["weights", "label-text", "random", "in-batch", "all"], None]
    """Labels that a step scores in addition to the true ones: those whose weights score highest and uniform ones
    (weights), those whose texts have similar encodings and uniform ones (label-text), uniform ones alone (random),
    true labels of the batch (in-batch), or all [default: weights]."""

    retrieval: Union[Literal["in-step", "exact", "schedule"], None]
    """How the labels that score highest are found: in each step, by an index that follows the weights (in-step) or
    by comparing all labels (exact); or for all instances every few epochs, in parallel with training (schedule,
    algorithm 1 of the paper) [default: in-step]. Needs sampler weights or label-text."""

    retrieval_every: Union[int, None]
    """Epochs between retrievals (retrieval schedule) [default: 5]. Needs retrieval schedule."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance as in the paper [default: true]. Needs
    sampler weights or label-text or random or in-batch."""

    negatives_hard: Union[int, None]
    """Hard labels per instance [default: 10]. Needs sampler weights or label-text."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list [default: 800; 500 for 1,000 labels; 2000 for many labels; 0 with sampler in-batch].
    Needs sampler weights or label-text or random or in-batch."""

    weighting: Union[Literal["capped", "unbiased", "none"], None]
    """Weight of a uniform label: the number of labels that it stands for, at most weight_cap (capped), or without a
    limit (unbiased, lemma 4.1 of the paper), or 1 (none) [default: capped; none with sampler in-batch]. Needs
    sampler weights or label-text or random or in-batch."""

    weight_cap: Union[float, None]
    """Largest weight (weighting capped); 0: no limit [default: 4]. Needs weighting capped."""

    hard_from_epoch: Union[int, None]
    """First epoch with hard labels, from 1; earlier epochs have uniform labels in their place [default: 1; 3 with
    retrieval schedule]. Needs sampler weights or label-text."""

    index_every: Union[int, None]
    """Steps between repairs of the index [default: when the steps have doubled and once an epoch, if enough labels
    have changed]. Needs retrieval in-step."""

    index_exact_below: Union[int, None]
    """Up to this many labels, compare all instead of searching [default: 5000]. Needs retrieval in-step."""

    index_recall: Union[float, None]
    """Share of the hardest labels that a search should find [default: 0.9]. Needs retrieval in-step or schedule."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model [default: f32]."""

    wide: Union[bool, Literal["on", "off"], None]
    """Re-rank the best labels with one sparse linear model per label, which sees the rare words that embeddings
    lose. Off by default for small vocabularies (fewer than two features per value of an embedding) and over tokens;
    with on there, it reads all words, not only the first tokens [default: on; off for vectors and a transformer
    that is trained]."""

    wide_weight: Union[float, None]
    """Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin
    [default: the best on instances that are held out, else 0.3; of a squared hinge 1]. Needs wide on."""

    wide_labels: Union[int, None]
    """Labels of a query that are ranked again [default: 100]. Needs wide on."""

    wide_negatives: Union[int, None]
    """False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch
    for the rankers to learn from [default: 20; 40 for many labels]. Needs wide on."""

    wide_cost: Union[float, None]
    """Weight of a ranker's errors against its regularisation [default: 2]. Needs wide on."""

    wide_prune_below: Union[float, None]
    """Drop weights of rankers below this magnitude [default: 0.1]. Needs wide on."""

    wide_precision: Union[Literal["f32", "bf16", "f16"], None]
    """Type of their weights in the model [default: f32]. Needs wide on."""

    encoder: Union[Literal["features", "transformer", "frozen"], None]
    """What makes vectors of instances: features (embeddings, or vectors as they come), transformer (tokens of
    texts, trained with the network), or frozen (texts by a transformer as it comes) [default: features]."""

    transformer_from: Union[Union[str, os.PathLike[str]], None]
    """Folder with config.json, tokenizer.json and model.safetensors of a BERT, DistilBERT, MPNet, RoBERTa or XLM-
    RoBERTa, as HuggingFace's libraries write it, or the name of a repository that `hf download` has fetched;
    nothing is downloaded. Needs encoder transformer or frozen."""

    transformer_max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]. Needs encoder transformer or frozen."""

    transformer_prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it. Needs encoder
    transformer or frozen."""

    transformer_rate: Union[float, None]
    """Learning rate of the transformer; AdamW, weight decay 0.01 [default: 0.0001]. Needs encoder transformer."""

    transformer_layer_decay: Union[float, None]
    """Learning rate of each of its layers, as a share of that of the layer above [default: 1]. Needs encoder
    transformer."""

    transformer_frozen_layers: Union[int, None]
    """Lowest layers that stay as they are, the embeddings with them [default: 0]. Needs encoder transformer."""

    transformer_cache_states: Union[bool, None]
    """Keep what frozen layers make of the training texts in memory: the same model sooner. Needs encoder
    transformer."""

    transformer_dropout: Union[float, None]
    """Dropout probability inside of it: of states and of weights of attention [default: 0]. Needs encoder
    transformer."""

    network_widths: Union[Union[int, Sequence[int]], None]
    """Hidden layer sizes, input side first, e.g. 512,512: for sparse features the first is the width of their
    embeddings; vectors need none [default: 256; 1024 for few instances; 512 for long instances]."""

    network_init: Union[Literal["random", "lsa"], None]
    """Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows)
    [default: random; lsa for long instances]."""

    network_activation: Union[Literal["relu", "identity"], None]
    """What becomes of sums of embeddings: relu, or identity (they stay as they are) [default: relu; identity for
    long instances and many labels; identity with network_init lsa]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the embeddings, as a share of the learning rate; 0: they stay fixed [default: 1; 0.1 for
    long instances; 0.1 with network_init lsa]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the input: the values of a vector, or of the sum of embeddings [default: 0.3; 0 for
    many labels; 0.2 for a transformer that is trained; 0.5 with network_dropout 0.5]."""

    network_dropout: Union[float, None]
    """Dropout probability of the hidden units above the input [default: 0.3; 0 for many labels]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: f32]."""

    loss: Union[Literal["softmax", "bce", "squared-hinge"], None]
    """Softmax (one true label), bce or squared-hinge (each label true or false) [default: bce; squared-hinge for
    long instances; softmax for many labels and one label an instance]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 10; 20 for few instances; 4 for many labels; 3 for a transformer
    that is trained]."""

    batch: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    batch_size: Union[int, None]
    """Instances per step [default: 256; 32 for a transformer that is trained]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.01; 0.003 for few instances; 0.005 for many labels; 0.1 with optimizer momentum; 1
    with optimizer sgd; 0.02 with optimizer row-adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    text_ngrams: Union[int, None]
    """Longest sequence of words that is a feature: 1 for words, 2 for words and pairs [default: 1]."""

    text_chars: Union[Union[str, int], None]
    """Also use character sequences inside words, e.g. 3-5."""

    text_hash: Union[int, None]
    """Hash terms to N features instead of keeping a vocabulary."""

    text_min_df: Union[int, None]
    """Keep terms that occur in at least N training texts [default: 2]."""

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
    """Shortest word, in characters [default: 2]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

    tfidf: Union[bool, None]
    """Weight the features: (1 + ln tf) * (ln((1 + N)/(1 + df)) + 1); stored in the model."""

    normalise: Union[bool, None]
    """L2-normalise rows, in training and in prediction (stored in the model) [default: true; false for vectors]."""

class SkipgramOptions(TypedDict, total=False):
    """Options of `xc train skipgram`."""

    preset: Union[Literal["text8"], None]
    """Settings that a paper used for a text: batch, rate, tables; other options override them."""

    sampler: Union[Literal["all", "uniform", "log-uniform", "frequency", "in-batch", "top-k", "ann", "lsh-embedding", "lsh-label", "midx"], None]
    """Labels that a step scores in addition to the true ones: all; drawn (uniform, log-uniform by rank of
    frequency, by frequency to the power of 0.75); true labels of the batch (in-batch); those with the largest
    logits (top-k), or approximately those by an index (ann); those that hash tables find by the instance's vector
    (lsh-embedding) or by the true labels (lsh-label); drawn from an inverted multi-index (midx) [default: lsh-
    embedding; all for 1,000 labels]."""

    negatives_shared: Union[bool, None]
    """One list of negatives per batch, or, if false, one per instance [default: true]. Needs sampler uniform or
    log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_sampled: Union[int, None]
    """Sampled labels: per list for samplers that do not look at the instances, else per instance [default: 10; 2000
    with sampler uniform, log-uniform or frequency; 500 with negatives_shared false]. Needs sampler uniform or log-
    uniform or frequency or top-k or ann or lsh-embedding or lsh-label or midx."""

    negatives_uniform: Union[int, None]
    """Uniform labels per list in addition to those of the sampler, weighted to represent all remaining labels
    [default: 2000; 0 with sampler uniform, log-uniform, frequency or negatives_shared false]. Needs sampler uniform
    or log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or midx."""

    weighting: Union[Literal["none", "log-q", "inverse"], None]
    """Importance weight of sampled negatives. none: 1. log-q: the log of its probability is subtracted from its
    logit (softmax, nce). inverse: 1 / its probability, at most weight_cap [default: inverse; log-q with sampler
    uniform, log-uniform, frequency or sampler frequency loss softmax; none with negatives_shared false]. Needs
    sampler uniform or log-uniform or frequency or in-batch or top-k or ann or lsh-embedding or lsh-label or
    midx."""

    weight_cap: Union[float, None]
    """Largest weight (weighting inverse); 0: no limit [default: 4]. Needs weighting inverse."""

    head_precision: Union[Literal["f32", "bf16"], None]
    """Type of the rows of label weights, in training and in the model [default: f32]."""

    tables: Union[int, None]
    """Number of tables, L; without codes, the largest number [default: as many as find the labels that are wanted,
    at most 50]. Needs sampler lsh-embedding or lsh-label."""

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
    """Width of a vector [default: 200]."""

    network_embedding_rate: Union[float, None]
    """Learning rate of the vectors, as a share of the learning rate; 0: they stay fixed [default: 1]."""

    network_input_dropout: Union[float, None]
    """Dropout probability of the values of a vector [default: 0; 0.5 with network_dropout 0.5]."""

    network_precision: Union[Literal["f32", "bf16"], None]
    """Precision of dense products: f32, or values rounded to bf16 (sums stay f32), which is faster on processors
    with AVX512_BF16; stored in the model [default: f32]."""

    loss: Union[Literal["softmax", "bce", "nce", "squared-hinge"], None]
    """Softmax, bce or squared-hinge (each word is near it or not), nce (true words against drawn ones; with sampler
    uniform, log-uniform, frequency or midx) [default: softmax]."""

    epochs: Union[int, None]
    """Passes over the training instances [default: 5]."""

    batch: Union[int, None]
    """Instances per step [default: 512]."""

    batch_size: Union[int, None]
    """Instances per step [default: 512]."""

    optimizer: Union[Literal["adam", "adamw", "momentum", "sgd", "row-adagrad"], None]
    """Optimiser; row-adagrad is row-wise Adagrad [default: adam]."""

    optimizer_rate: Union[float, None]
    """Learning rate [default: 0.001; 0.1 with optimizer momentum; 1 with optimizer sgd; 0.02 with optimizer row-
    adagrad]."""

    optimizer_weight_decay: Union[float, None]
    """Weight decay, decoupled [default: 0; 0.01 with optimizer adamw]."""

    schedule: Union[Literal["constant", "cosine", "plateau"], None]
    """Schedule of the learning rate: constant, cosine (warm-up, then down to 0), or plateau (halved when the
    monitor value stops improving) [default: cosine]."""

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
    """Stop after N epochs in which the monitor value did not improve [default: never stops early]."""

    patience_from: Union[Literal["start", "lowest-rate"], None]
    """Count these epochs from the start, or once the learning rate is at its lowest [default: start]. Needs
    patience."""

    monitor: Union[Union[str, int], None]
    """Metric for model selection and early stopping: loss, or a metric of `xc evaluate` such as P@3 or PSP@5, on
    the held-out instances [default: P@1; the training loss where no instances are held out]."""

    keep: Union[Literal["best", "last"], None]
    """Keep the parameters of the best epoch or of the last one [default: best]."""

    checkpoint_every: Union[int, None]
    """Steps between checkpoints, in addition to those after epochs (at most one per minute) [default: after epochs,
    at most one a minute]."""

    log_every: Union[int, None]
    """Steps between lines of the training log [default: 100]."""

    window: Union[int, None]
    """Context window: words on each side, within a line [default: 2]."""

    min_count: Union[int, None]
    """Keep words that occur at least N times [default: 5]."""

    vocabulary: Union[int, None]
    """Keep at most N words, the most frequent ones [default: all]."""

    subsample: Union[float, None]
    """Leave out occurrences of words whose share of the text is above SHARE, more of them for more frequent words;
    word2vec uses 1e-3, 0 leaves out none [default: 0]."""

    text_min_chars: Union[int, None]
    """Shortest word, in characters [default: 1]."""

    text_split_at_blanks: Union[bool, None]
    """Split words at white space, instead of taking runs of letters and digits."""

    text_keep_case: Union[bool, None]
    """Distinguish upper case from lower case."""

    text_strip_accents: Union[bool, None]
    """Drop accents."""

class IndexOptions(TypedDict, total=False):
    """Options of `xc index build`."""

    degree: Union[int, None]
    """Maximum number of edges of a vector (elsewhere M) [default: 32]."""

    keep: Union[int, None]
    """Construction beam (elsewhere efConstruction): a wider one gives better edges and takes longer [default:
    100]."""

    passes: Union[int, None]
    """Build passes: a later pass finds better edges [default: 2]."""

    factor: Union[float, None]
    """Pruning factor: more edges above 1 for distances, below 1 for inner products [default: 1; for inner products
    the one of 0.79, 0.9 and 1 that is best on small graphs over some of the vectors]."""

    cells: Union[int, None]
    """Cells of vectors near each other, in addition to the graph; 0: none [default: twice the square root of the
    number of vectors, kept if they are faster than the graph]."""

    top_k: Union[int, None]
    """Answers per query that the width is fitted for [default: 10]."""

    target_recall: Union[float, None]
    """Share of the best to find. For a model, also the share of queries whose best label must be found [default:
    0.95; for a model 0.99, or max_loss instead if the instances have labels]."""

    min_recall: Union[float, None]
    """Refuse an index that finds a smaller share of the best than this."""

class BlendOptions(TypedDict, total=False):
    """Options of `xc blend`."""

    rule: Union[Literal["reciprocal-ranks", "logistic", "net", "boosted"], None]
    """How the answers are merged into one ranking: reciprocal-ranks (only the probabilities are fitted), logistic,
    net, or boosted (trees of decisions) [default: the best of them in cross-validation]."""

    folds: Union[int, None]
    """Folds of the validation instances in cross-validation [default: 5]."""

    hidden: Union[int, None]
    """Hidden units of a network, at most 65536 (rule net) [default: 24]."""

    networks: Union[int, None]
    """Networks whose answers are averaged, at most 1024 (rule net) [default: 4]."""

class CalibrateOptions(TypedDict, total=False):
    """Options of `xc calibrate`."""

    method: Union[Literal["isotonic", "platt"], None]
    """The curve: isotonic (any rising curve) or platt (a logistic one with two parameters, for few rows) [default:
    isotonic]."""

    top_k: Union[int, None]
    """Best labels of each row that are used [default: 50]."""

    least_true: Union[int, None]
    """Number of rows with a label that it needs for its own threshold; other labels use the macro F1 threshold
    [default: 5]."""

    folds: Union[int, None]
    """Folds of the rows, each evaluated by a fit on the others [default: 5]."""

class SearchOptions(TypedDict, total=False):
    """Options of `xc predict`."""

    beam: Union[int, None]
    """Clusters kept per level of a tree: a wider beam is slower and finds more. In the mean of several trees, trees
    whose beam does not reach a label count 0 for it [default: the model's]."""

    decoder: Union[Literal["mean", "min", "median"], None]
    """How a MACH model combines bucket scores into a label's score [default: the model's]."""

    max_labels: Union[int, None]
    """Stop the decode of a MACH model after about N labels, even if the answer is not certain [default: when the
    answer is certain]."""

    search_width: Union[float, None]
    """Search effort in the index of the labels: higher finds more and is slower. Labels are followed that are
    further off than the last answer by up to this share of its logit; 16 compares all labels by their codes. Labels
    have the scores of exact, but those of softmax are shares among the labels that were found [default: as
    fitted]."""

    cells: Union[int, None]
    """Compare the labels of the N nearest cells of the index instead of searching its graph, if it has cells."""

    exact: Union[bool, None]
    """Score all labels, even if the model has an index of them (without an index, a network always does). Labels
    that the index finds have the same scores, but those of softmax, which are shares among all labels."""

class ConvertOptions(TypedDict, total=False):
    """Options of `xc convert --from xc --to xc`."""

    precision: Union[Literal["f32", "f16", "bf16"], None]
    """Type of the weights of an xc model: f32, f16 or bf16 [default: f32 for a model of another system, else that
    of SRC]."""

    prune_below: Union[float, None]
    """Drop weights of a tree or of a wide term below this magnitude, as linear_prune_below and wide_prune_below do
    in training."""

    wide: Union[bool, Literal["off"], None]
    """Leave out the wide term of a network."""

    trees: Union[int, None]
    """Keep the first T trees of an ensemble."""

    post_processor: Union[Union[str, int], None]
    """How margins of a tree become scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to
    9."""

class EmbedOptions(TypedDict, total=False):
    """Options of `xc embed`."""

    max_tokens: Union[int, None]
    """Tokens of a text, at most, special ones included [default: 64]."""

    prefix: Union[Union[str, int], None]
    """What stands before every text, such as "query: " where the transformer was trained with it [default: the
    folder's default prompt, if it has one]."""

    precision: Union[Literal["f32", "bf16"], None]
    """What products multiply: f32, or values rounded to bf16, in half the time where the CPU has them [default:
    f32]."""

    normalise: Union[bool, None]
    """Scale vectors to length 1 [default: true]."""

class EvaluateOptions(TypedDict, total=False):
    """Options of `xc evaluate`."""

    propensity_a: Union[float, None]
    """A of the propensity model 1 / (1 + C (n + B)^-A) [default: 0.55]."""

    propensity_b: Union[float, None]
    """B of the propensity model [default: 1.5]."""

    threshold: Union[float, Literal["best"], None]
    """Add precision, recall and F1 (micro, macro, per instance) of the labels that score at least T; best: the
    threshold with the largest micro F1 on these same rows."""

    intervals: Union[bool, None]
    """Add a bootstrap interval to every metric."""

    resamples: Union[int, None]
    """Number of bootstrap resamples [default: 1000]."""

    level: Union[float, None]
    """Share of the resamples inside an interval [default: 0.95]."""

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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
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
    callbacks: Union[Callback, Iterable[Callback]] = ...,
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
    **keywords: Unpack[SkipgramOptions],
) -> Tuned: ...
