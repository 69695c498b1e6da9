//! `--encoder transformer`: networks over tokens of texts.

#[path = "../../../xc-options/tests/tokens/made.rs"]
mod made;

use crate::program::{Folder, contents, files, json, run};
use crate::without_transformer::KINDS;
use serde_json::{Value, json};

/// Texts of two words that name their labels, a text of each label, a small BERT for them.
fn made() -> Folder {
    let folder = Folder::new();
    let words = ["audio", "mail", "library", "reader", "client", "window", "server", "editor"];
    let line = |i: usize| {
        let (first, second) = (words[i % 8], words[(i / 3) % 8]);
        json!({ "text": format!("{first} of {second}s"), "labels": [first, format!("of {second}")] }).to_string()
    };
    let lines: Vec<String> = (0..240).map(line).collect();
    folder.write("train.jsonl", lines[..200].join("\n"));
    folder.write("test.jsonl", lines[200..].join("\n"));
    std::fs::create_dir(folder.path("bert")).unwrap();
    made::write_folder(&folder.path("bert"));
    folder
}

/// A training of a kind over that BERT, without a model.
fn train(kind: &str) -> String {
    let more = match kind {
        "uniform" => "--network.intermediate 64 --head.fan-in 16 --optimizer.rate 0.02",
        "astra" => "--negatives.hard 3 --negatives.uniform 4 --index.exact-below 1 --index.every 7",
        _ => "",
    };
    format!(
        "train {kind} --train train.jsonl --encoder transformer --transformer.from bert --transformer.max-tokens 8 \
         --transformer.rate 0.005 --epochs 30 --batch-size 16 --loss bce {more}"
    )
}

#[test]
fn every_kind_is_trained_asked_judged_and_explained() {
    let folder = made();
    for kind in KINDS {
        let train = train(kind);
        let plan = json(&folder.ok(&format!("{train} --model m --explain --json")));
        let of = |about: &str| plan["plan"].as_array().unwrap().iter().find(|line| line["about"] == about).unwrap();
        assert_eq!(of("tokens")["says"].as_str().unwrap().split(' ').next(), Some("6.0"), "{}", of("tokens"));
        assert!(of("work")["says"].as_str().unwrap().contains("TFLOP an epoch in a transformer of 2 layers"), "{plan}");
        // 200 texts of six tokens: forward and twice as much backward through two layers.
        let (linear, attention) = (2 * 1200 * (4 * 16 * 16 + 2 * 16 * 32), 4 * 7200 * 16);
        assert_eq!(plan["data"]["transformer_operations_per_epoch"], f64::from((linear + attention) * 6), "{plan}");
        assert_eq!(plan["data"]["tokens_per_instance"], 6.0);
        assert!(plan["memory_bytes"].as_u64().unwrap() < 256 << 20, "{plan}");

        for threads in [1, 2, 3] {
            folder.ok(&format!("{train} --model {kind}{threads} --threads {threads}"));
        }
        let one = contents(&folder.path(&format!("{kind}1")));
        for threads in [2, 3] {
            assert!(one == contents(&folder.path(&format!("{kind}{threads}"))), "{kind}: {threads} threads");
        }
        let judged = json(&folder.ok(&format!("evaluate --model {kind}1 --input test.jsonl --json")));
        let p1 = judged["P@1"].as_f64().unwrap_or_else(|| panic!("{judged}"));
        assert!(p1 > 0.9, "{kind}: P@1 {p1}");
        let answers = folder.ok(&format!("predict --model {kind}1 --input test.jsonl"));
        assert_eq!(answers.lines().count(), 40);
        // A stream of texts has the same answers.
        let test = folder.read("test.jsonl") + "\n";
        let streamed = folder.answered(&format!("predict --model {kind}1 --input - --quiet"), test);
        assert_eq!(streamed.stdout, answers, "{kind}: {}", streamed.stderr);
    }
    folder.write("one.jsonl", json!({ "text": "mail of windows" }).to_string());
    let explained = json(&folder.ok("explain --model lns1 --input one.jsonl --label mail --json"));
    let effects = explained["effects"].as_array().unwrap();
    let mut terms: Vec<&str> = effects.iter().map(|effect| effect["term"].as_str().unwrap()).collect();
    assert_eq!(terms[0], "mail", "{explained}");
    terms.sort_unstable();
    assert_eq!(terms, ["##s", "[CLS]", "[SEP]", "mail", "of", "window"]);
    let about = folder.ok("inspect lns1");
    assert!(about.contains("transformer"), "{about}");
}

#[test]
fn it_is_searched_calibrated_and_blended_with_what_reads_the_same_texts_in_another_way() {
    let folder = made();
    let held_out = "--validation-fraction 0.25 --seed 3";
    folder.ok(&format!("{} {held_out} --model lns", train("lns")));
    folder.ok(&format!("train tree --train train.jsonl {held_out} --model tree"));
    folder.ok("calibrate --model lns --validation train.jsonl --held-out --output calibrated");
    let of =
        |model: &str| json(&folder.ok(&format!("evaluate --model {model} --input test.jsonl --json")))["P@1"].clone();
    assert_eq!(of("calibrated"), of("lns"));
    let likely = folder.ok("predict --model calibrated --input test.jsonl --threshold micro");
    let all = folder.ok("predict --model calibrated --input test.jsonl");
    assert!(likely.lines().count() == 40 && likely.len() < all.len(), "{likely}");
    assert!(likely.split(' ').any(|pair| pair.contains(':')), "{likely}");

    for threads in [1, 3] {
        folder.ok(&format!(
            "blend tree lns --validation train.jsonl --held-out --rule logistic --output blend{threads} --threads {threads}"
        ));
    }
    assert!(files(&folder.path("blend1")) == files(&folder.path("blend3")));
    assert!(of("blend1").as_f64() > Some(0.9), "{}", of("blend1"));
    let answers = folder.ok("predict --model blend1 --input test.jsonl");
    let streamed = folder.answered("predict --model blend1 --input - --quiet", folder.read("test.jsonl") + "\n");
    assert_eq!(streamed.stdout, answers, "{}", streamed.stderr);

    let search =
        train("lns").replace("train lns", "tune lns").replace("--transformer.rate 0.005 --epochs 30", "--epochs 3");
    let plan = folder.ok(&format!("{search} --output tuned --explain"));
    assert!(plan.contains("--transformer.rate") && !plan.contains("--text.ngrams"), "{plan}");
    folder.ok(&format!("{search} --trials 3 --output tuned --threads 3"));
    let best = folder.read("tuned/best.toml");
    assert!(best.contains("encoder = \"transformer\""), "{best}");
    assert!(of("tuned/model").is_number());
}

#[test]
fn vectors_of_texts_are_written_and_learned_from() {
    let folder = made();
    let embed = "embed --from bert --max-tokens 8";
    let said = json(&folder.ok(&format!("{embed} --input train.jsonl --output train.npy --threads 3 --json")));
    assert_eq!((&said["rows"], &said["width"], &said["tokens"]), (&json!(200), &json!(16), &json!(1200)), "{said}");
    folder.ok(&format!("{embed} --input train.jsonl --output alone.npy --threads 1"));
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(bytes("train.npy") == bytes("alone.npy"));
    let rows = |name: &str, n: usize| -> Vec<Vec<f32>> {
        let bytes = bytes(name);
        let values = bytes[bytes.len() - n * 64..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        values.collect::<Vec<_>>().chunks_exact(16).map(<[f32]>::to_vec).collect()
    };
    let scaled = rows("train.npy", 200);
    assert!(scaled.iter().all(|row| (row.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5));
    // One text, in a file of another format, and not scaled.
    let first: Value = serde_json::from_str(folder.read("train.jsonl").lines().next().unwrap()).unwrap();
    folder.write("one.csv", format!("text\n{}\n", first["text"].as_str().unwrap()));
    folder.ok(&format!("{embed} --input one.csv --text-fields text --output one.npy --normalise false"));
    let one = &rows("one.npy", 1)[0];
    let mut unit = one.clone();
    xc_sparse::rows::normalise(&mut unit);
    assert!(unit == scaled[0] && *one != unit, "{one:?}");

    // A prefix is as if it stood in the text.
    folder.write("short.csv", "text\nof mails\n");
    folder.write("long.csv", "text\nlibrary.of mails\n");
    for (input, more) in [("short", ""), ("short", " --prefix library."), ("long", "")] {
        let output = format!("{input}{}.npy", more.len());
        folder.ok(&format!("{embed} --input {input}.csv --text-fields text --output {output}{more}"));
    }
    assert!(bytes("short18.npy") == bytes("long0.npy") && bytes("short0.npy") != bytes("long0.npy"));

    folder.ok(&format!("{embed} --input test.jsonl --output test.npy"));
    let learning = "--epochs 150 --batch 16 --network.dropout 0 --network.widths 64 --optimizer.rate 0.01";
    folder.ok(&format!(
        "train mach --train train.jsonl --features train.npy --buckets 8 --repetitions 6 {learning} --model m"
    ));
    let judged = json(&folder.ok("evaluate --model m --input test.npy --truth test.jsonl --json"));
    // By chance 0.125: this BERT has learned nothing.
    assert!(judged["P@1"].as_f64().unwrap_or_else(|| panic!("{judged}")) > 0.25, "{judged}");

    for (more, why) in [
        ("--from nowhere --input train.jsonl --output x.npy", "nowhere: no such folder"),
        (
            "--from bert --max-tokens 25 --input train.jsonl --output x.npy",
            "error: --max-tokens 25: bert has 24 positions",
        ),
        (
            "--from bert --max-tokens 3 --prefix library --input train.jsonl --output x.npy",
            "error: --prefix \"library\": it takes all of at most 3 tokens",
        ),
        (
            "--from bert --max-tokens 8 --input train.npy --output x.npy",
            "train.npy: holds features; text (jsonl, csv, tsv or fasttext) is expected\n",
        ),
        ("--from bert --max-tokens 8 --input train.jsonl --output x.txt", "a name that ends in .npy is expected"),
        ("--from bert --max-tokens 8 --input train.jsonl --output x.npy --label-field labels", "--label-field"),
        ("--from bert --max-tokens 8 --input train.jsonl --output x.npy --svmlight-base 1", "--svmlight-base"),
    ] {
        let outcome = folder.xc(&format!("embed {more}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(why), "{more}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{more}: {}", outcome.stderr);
    }
    assert!(!folder.path("x.npy").exists());
}

#[test]
fn a_frozen_transformer_is_the_pipeline_of_models_of_vectors() {
    let folder = made();
    let held_out = "--validation-fraction 0.25 --seed 3";
    let frozen = |kind: &str| {
        format!(
            "train {kind} --train train.jsonl --encoder frozen --transformer.from bert --transformer.max-tokens 8 \
             --epochs 150 --batch 16 --optimizer.rate 0.01 --network.widths 64 --network.dropout 0 {held_out}"
        )
    };
    let mach = format!("{} --buckets 8", frozen("mach"));
    folder.ok(&format!("{mach} --repetitions 4 --model mach"));
    for (model, range) in [("first", "0..2"), ("second", "2..4")] {
        folder.ok(&format!("{mach} --repetitions-range {range} --model {model}"));
    }
    folder.ok("merge first second --output merged");
    assert!(contents(&folder.path("merged")) == contents(&folder.path("mach")));
    folder.ok(&format!("{} --model dense", frozen("dense")));
    folder.ok(&format!("train tree --train train.jsonl {held_out} --model tree"));
    folder.ok("blend tree mach dense --validation train.jsonl --held-out --rule logistic --output blend");
    folder.ok("calibrate --model dense --validation train.jsonl --held-out --output calibrated");

    // It is the network over vectors of a file; nothing of the folder that they came from is asked for again.
    let embed = "embed --from bert --max-tokens 8 --normalise false";
    folder.ok(&format!("{embed} --input train.jsonl --output train.npy"));
    folder.ok(&format!("{embed} --input test.jsonl --output test.npy"));
    let all = |kind: &str| frozen(kind).replace(held_out, "").replace("--epochs 150", "--epochs 9");
    folder.ok(&format!("{} --model all", all("dense")));
    folder.ok(
        "train dense --train train.jsonl --features train.npy --epochs 9 --batch 16 --optimizer.rate 0.01 --network.widths 64 --network.dropout 0 --model npy",
    );
    std::fs::rename(folder.path("bert"), folder.path("gone")).unwrap();
    let of_vectors = folder.ok("predict --model npy --input test.npy");
    assert_eq!(folder.ok("predict --model all --input test.jsonl"), of_vectors);
    for model in ["mach", "dense", "blend", "calibrated"] {
        let judged = json(&folder.ok(&format!("evaluate --model {model} --input test.jsonl --json")));
        // By chance 0.125: this BERT has learned nothing.
        assert!(judged["P@1"].as_f64().unwrap_or_else(|| panic!("{judged}")) > 0.25, "{model}: {judged}");
        let answers = folder.ok(&format!("predict --model {model} --input test.jsonl"));
        let streamed =
            folder.answered(&format!("predict --model {model} --input - --quiet"), folder.read("test.jsonl") + "\n");
        assert_eq!(streamed.stdout, answers, "{model}: {}", streamed.stderr);
        folder.ok(&format!("bench predict --model {model} --input test.jsonl --repeat 1"));
    }
    folder.write("one.jsonl", json!({ "text": "mail of windows" }).to_string());
    let explained = json(&folder.ok("explain --model dense --input one.jsonl --label mail --json"));
    let effects = explained["effects"].as_array().unwrap();
    let mut terms: Vec<&str> = effects.iter().map(|effect| effect["term"].as_str().unwrap()).collect();
    terms.sort_unstable();
    assert_eq!(terms, ["##s", "[CLS]", "[SEP]", "mail", "of", "window"]);
    // Nothing is taken out of members over vectors in a blend.
    let explained = json(&folder.ok("explain --model blend --input one.jsonl --label mail --json"));
    let best = json(&folder.ok("predict --model blend --input one.jsonl --top-k 16 --names --output-format jsonl"));
    let place = best["names"].as_array().unwrap().iter().position(|name| name == "mail").unwrap();
    let scores = [&explained["score"], &best["scores"][place]].map(|score| score.as_f64().unwrap() as f32);
    assert_eq!(scores[0], scores[1], "{explained}");
    assert!(!explained["effects"].as_array().unwrap().is_empty(), "{explained}");
    let made = "its transformer makes vectors of texts; features are expected";
    folder
        .xc("convert train.jsonl train.svm --from jsonl --to xc-text --pipeline dense")
        .refused(2, &format!("dense: {made}"));

    let plan = json(&folder.ok(&format!("{} --model m --explain --json", frozen("dense").replace("bert", "gone"))));
    let of = |name: &str| plan["options"].as_array().unwrap().iter().find(|row| row["option"] == name).unwrap();
    assert_eq!(
        (&of("transformer.max-tokens")["value"], &of("transformer.rate")["value"]),
        (&json!("8"), &json!("none"))
    );
    assert_eq!(plan["data"]["features"], 16, "{plan}");
}

#[test]
fn texts_of_labels_are_learned_from() {
    let folder = made();
    let names = "audio,mail,library,reader,client,window,server,editor".split(',');
    let lines = names
        .clone()
        .map(|name| json!({ "text": name }).to_string())
        .chain(names.map(|name| json!({ "text": format!("of {name}s") }).to_string()));
    folder.write("labels.txt", "audio\nmail\nlibrary\nreader\nclient\nwindow\nserver\neditor\nof audio\nof mail\nof library\nof reader\nof client\nof window\nof server\nof editor\n");
    folder.write("labels.jsonl", lines.collect::<Vec<_>>().join("\n"));
    let train = format!("{} --label-names labels.txt --label-features labels.jsonl", train("astra"));
    let plan = json(&folder.ok(&format!("{train} --model m --explain --json")));
    assert_eq!(plan["data"]["instances"], 216, "{plan}");
    for threads in [1, 3] {
        folder.ok(&format!("{train} --sampler label-text --model m{threads} --threads {threads}"));
    }
    assert!(contents(&folder.path("m1")) == contents(&folder.path("m3")));
    // A label's own text has the label first.
    folder.write("one.jsonl", json!({ "text": "of readers" }).to_string());
    let best = folder.ok("predict --model m1 --input one.jsonl --top-k 1");
    assert!(best.contains("11:") || best.contains("of reader"), "{best}");
    folder.write("labels.jsonl", json!({ "text": "audio" }).to_string());
    folder
        .xc(&format!("{train} --model other"))
        .refused(2, "labels.jsonl: 1 rows; one for each of the 16 labels is expected");
}

#[cfg(unix)]
#[test]
fn killed_at_any_step_it_resumes_to_the_same_bytes() {
    let folder = made();
    let schedule =
        train("astra").replace("--index.exact-below 1 --index.every 7", "--retrieval schedule --retrieval.every 2");
    for (at, train) in [train("lns"), train("uniform"), train("astra"), schedule].into_iter().enumerate() {
        let train =
            format!("{} --checkpoint-every 3 --transformer.dropout 0.1", train.replace("--epochs 30", "--epochs 60"));
        folder.ok(&format!("{train} --model straight{at}"));
        folder.resumed_after_kills(&format!("{train} --model m{at}"), 6, |attempt| 60 + 97 * attempt % 400);
        let [straight, resumed] = ["straight", "m"].map(|name| contents(&folder.path(&format!("{name}{at}"))));
        assert!(straight == resumed, "{train}");
    }
}

#[test]
fn folders_and_texts_that_cannot_be_are_said_in_a_line() {
    let folder = made();
    let train = train("dense").replace("--epochs 30", "--epochs 1");
    let refused = |more: &str, expected: &str| {
        let train =
            if more.contains("max-tokens") { train.replace("--transformer.max-tokens 8", "") } else { train.clone() };
        let outcome = folder.xc(&format!("{train} --model m {more}"));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{more}: {}", outcome.stderr);
        let said = outcome.stderr.strip_prefix("xc: error: ").and_then(|line| line.strip_suffix('\n'));
        assert!(said.is_some_and(|line| !line.contains('\n') && line.contains(expected)), "{more}: {}", outcome.stderr);
        assert!(!folder.path("m").exists(), "{more}");
    };
    let without_from = train.replace("--transformer.from bert", "");
    let outcome = folder.xc(&format!("{without_from} --model m"));
    outcome.refused(2, "--encoder transformer: a folder is expected with it (--transformer.from)");
    refused("--transformer.max-tokens 25", "--transformer.max-tokens 25: bert has 24 positions");
    refused("--tfidf", "--tfidf: a transformer reads tokens of texts, not features");

    let kept = |name: &str| std::fs::read(folder.path(&format!("bert/{name}"))).unwrap();
    let (config, weights, tokenizer) = (kept("config.json"), kept("model.safetensors"), kept("tokenizer.json"));
    let mut other: Value = serde_json::from_slice(&config).unwrap();
    other["model_type"] = json!("gpt2");
    folder.write("bert/config.json", other.to_string());
    refused("", "bert/config.json: model_type is \"gpt2\", expected ");
    (other["model_type"], other["hidden_act"]) = (json!("bert"), json!("relu"));
    folder.write("bert/config.json", other.to_string());
    refused("", "bert/config.json: hidden_act is \"relu\", expected ");
    // A layer more than there are weights of.
    (other["hidden_act"], other["num_hidden_layers"]) = (json!("gelu"), json!(3));
    folder.write("bert/config.json", other.to_string());
    refused("", "encoder.layer.2.attention.self.query.weight");
    folder.write("bert/config.json", &config);
    folder.write("bert/model.safetensors", &weights[..weights.len() - 5]);
    refused("", "bert/model.safetensors: ");
    folder.write("bert/model.safetensors", &weights);
    folder.write("bert/tokenizer.json", made::of_words(&format!("{} more", made::NAMES)).to_string());
    refused("", "the two do not belong together");
    folder.write("bert/tokenizer.json", "{}");
    refused("", "bert/tokenizer.json: no tokenizer: ");
    folder.write("bert/tokenizer.json", &tokenizer);
    folder.write("rows.txt", "1 14 2\n0 0:1\n");
    let of_rows = train.replace("train.jsonl", "rows.txt");
    let of_features =
        "rows.txt: holds features; text (jsonl, csv, tsv or fasttext) is expected, since the model was trained on text";
    folder.xc(&format!("{of_rows} --model m")).refused(2, of_features);
    folder.xc(&format!("{train} --validation rows.txt --model m")).refused(2, of_features);

    // Texts without a word, and of more words than a model takes, are learned from and answered as others are.
    let odd = [String::new(), " \u{0}\n\u{3000}".to_owned(), "mail ".repeat(100_000), "\u{1F980}".to_owned()];
    let odd: Vec<String> = odd.iter().map(|text| json!({ "text": text, "labels": ["mail"] }).to_string()).collect();
    folder.write("train.jsonl", folder.read("train.jsonl") + "\n" + &odd.join("\n"));
    folder.write("odd.jsonl", odd.join("\n"));
    folder.ok(&format!("{train} --model m"));
    let answers = folder.ok("predict --model m --input odd.jsonl --top-k 3");
    assert_eq!(answers.lines().count(), 4, "{answers}");
    let streamed = folder.answered("predict --model m --input - --top-k 3 --quiet", folder.read("odd.jsonl") + "\n");
    assert_eq!(streamed.stdout, answers);
    // Cut to eight tokens, two of them special, it is what six words are.
    folder.write("six.jsonl", json!({ "text": "mail ".repeat(6) }).to_string());
    let six = folder.ok("predict --model m --input six.jsonl --top-k 3");
    assert_eq!(answers.lines().nth(2), six.lines().next());
    // What is no longer there when it goes on is not asked for again: the model has all of it.
    std::fs::remove_dir_all(folder.path("bert")).unwrap();
    assert_eq!(folder.ok("predict --model m --input odd.jsonl --top-k 3"), answers);
}

#[test]
fn a_wide_term_over_all_words_stands_beside_tokens() {
    let folder = made();
    // Tokens end before the second word, which the words of the whole text have.
    let train = train("dense").replace("max-tokens 8", "max-tokens 3").replace("--epochs 30", "--epochs 20");
    let p3 = |model: &str| {
        json(&folder.ok(&format!("evaluate --model {model} --input test.jsonl --json")))["P@3"].as_f64().unwrap()
    };
    folder.ok(&format!("{train} --model alone"));
    folder.ok(&format!("{train} --wide on --validation-fraction 0.2 --model wide"));
    let (alone, wide) = (p3("alone"), p3("wide"));
    assert!(wide > alone + 0.1 && wide > 0.6, "P@3 {wide} with all words, {alone} without");
    let plan = folder.ok(&format!("{train} --wide on --text.ngrams 2 --model m --explain"));
    assert!(plan.contains("--wide ") && plan.contains("--text.ngrams"), "{plan}");
    folder.write("one.jsonl", json!({ "text": "mail of windows" }).to_string());
    let mut explain = folder.command("explain --model wide --input one.jsonl --json --label");
    let explained = json(&run(explain.arg("of window")).quiet_success());
    assert_eq!(explained["effects"].as_array().unwrap().len(), 3, "{explained}");
    assert_eq!(explained["wide"]["parts"][0]["term"], "windows", "{explained}");
    // A stream has the answers of a file; calibrations and blends ask it as any other.
    let answers = folder.ok("predict --model wide --input test.jsonl");
    let streamed = folder.answered("predict --model wide --input - --quiet", folder.read("test.jsonl") + "\n");
    assert_eq!(streamed.stdout, answers, "{}", streamed.stderr);
    folder.ok("calibrate --model wide --validation train.jsonl --held-out --output calibrated");
    assert_eq!(p3("calibrated"), wide);
    folder.ok("train tree --train train.jsonl --validation-fraction 0.2 --model tree");
    folder.ok("blend tree wide --validation train.jsonl --held-out --output both");
    assert!(p3("both") > 0.6);
    let mut explain = folder.command("explain --model both --input one.jsonl --json --label");
    let explained = json(&run(explain.arg("of window")).quiet_success());
    let terms: Vec<_> = explained["effects"].as_array().unwrap().iter().map(|effect| &effect["term"]).collect();
    assert!(terms.len() == 3 && terms.iter().all(|term| term.is_string()), "{explained}");
    folder.ok("convert --from xc wide --to xc without --wide off");
    assert_eq!(p3("without"), {
        folder.ok(&format!("{train} --validation-fraction 0.2 --model network"));
        p3("network")
    });
}

#[test]
fn what_was_trained_goes_out_to_other_libraries() {
    let folder = made();
    folder.ok("embed --max-tokens 8 --from bert --input test.jsonl --output before.npy");
    // Layers that stay are those of the folder that they came from.
    folder.ok(&format!(
        "{} --transformer.frozen-layers 2 --model still",
        train("dense").replace("--epochs 30", "--epochs 1")
    ));
    folder.ok("convert --from xc still --to huggingface still.hf");
    folder.ok("embed --max-tokens 8 --from still.hf --input test.jsonl --output still.npy");
    let bytes = |of: &str| std::fs::read(folder.path(of)).unwrap();
    assert!(bytes("before.npy") == bytes("still.npy"));
    assert!(bytes("still.hf/tokenizer.json") == bytes("bert/tokenizer.json"));
    // Those that learned are others, beside a wide term too, and are learned from again.
    folder.ok(&format!("{} --wide on --model wide", train("lns")));
    folder.ok("convert --from xc wide --to huggingface wide.hf");
    folder.ok("embed --max-tokens 8 --from wide.hf --input test.jsonl --output wide.npy");
    assert!(bytes("before.npy") != bytes("wide.npy"));
    folder
        .ok(&format!("{} --model again", train("dense").replace("transformer.from bert", "transformer.from wide.hf")));
    let config: Value = serde_json::from_slice(&bytes("wide.hf/tokenizer_config.json")).unwrap();
    let expected = json!({ "model_max_length": 8, "tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": true,
        "strip_accents": null, "tokenize_chinese_chars": true });
    assert_eq!(config, expected);
    folder.ok(&format!(
        "{} --transformer.prefix mail --model prefix",
        train("dense").replace("--epochs 30", "--epochs 1")
    ));
    let said = run(&mut folder.command("convert --from xc prefix --to huggingface prefix.hf"));
    let warned = "xc: warning: prefix: its texts begin with \"mail\", which has to be put before them elsewhere\n";
    assert_eq!((said.code, &*said.stderr), (0, warned));
    // The same bytes each time, and nothing is written over.
    folder.ok("convert --from xc wide --to huggingface twice.hf");
    assert!(files(&folder.path("wide.hf")) == files(&folder.path("twice.hf")));
    folder
        .xc("convert --from xc wide --to huggingface wide.hf")
        .refused(2, "wide.hf: is not empty; expected a new path or an empty folder");

    folder.ok("train tree --train train.jsonl --model tree");
    let expected = "a network that was trained over a transformer is expected (--encoder transformer)";
    let refused = |typed: &str, what: &str| folder.xc(typed).refused(2, what);
    refused("convert --from xc tree --to huggingface no", &format!("tree: it has no transformer; {expected}"));
    folder.ok("train dense --train train.jsonl --encoder frozen --transformer.from bert --transformer.max-tokens 8 --epochs 1 --model frozen");
    let frozen = "frozen: its transformer is as it came, in the folder that it was trained from";
    refused("convert --from xc frozen --to huggingface no", &format!("{frozen}; {expected}"));
    let source = "bert: a folder of format huggingface holds a transformer and no labels; xc train --encoder transformer \
                  learns from it";
    refused("convert --from huggingface bert --to xc no", source);
    let idle = "or leave it out";
    refused(
        "convert --from xc wide --to huggingface no --tree 0",
        &format!("--tree 0 has no effect here: add --to pecos, {idle}"),
    );
    refused(
        "convert --from xc wide --to huggingface no --precision bf16",
        &format!("--precision bf16 has no effect here: add --to xc, {idle}"),
    );
    assert!(!folder.path("no").exists());
}

/// Wherever a transformer is named, without network.
#[test]
fn a_transformer_is_named_as_the_repository_that_was_downloaded() {
    let folder = made();
    let snapshot = folder.path("cache/models--org--bert/snapshots/0a1b");
    std::fs::create_dir_all(snapshot.parent().unwrap()).unwrap();
    std::fs::rename(folder.path("bert"), &snapshot).unwrap();
    std::fs::create_dir(folder.path("cache/models--org--bert/refs")).unwrap();
    folder.write("cache/models--org--bert/refs/main", "0a1b");
    let short = |encoder: &str, kind: &str| {
        format!(
            "train {kind} --train train.jsonl --encoder {encoder} --transformer.max-tokens 8 --epochs 1 --threads 1"
        )
    };
    let cache = folder.path("cache");
    let named =
        |command: &str, name: &str| run(folder.command(&command.replace("NAME", name)).env("HF_HUB_CACHE", &cache));
    for (at, command) in [
        format!("{} --transformer.from NAME --model OUT", short("transformer", "lns")),
        format!("{} --transformer.from NAME --model OUT", short("frozen", "mach")),
        "embed --from NAME --input test.jsonl --max-tokens 8 --output OUT.npy".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let by = |out: &str| command.replace("OUT", &format!("{out}{at}"));
        for (out, name) in [("name", "org/bert"), ("path", "cache/models--org--bert/snapshots/0a1b")] {
            let outcome = named(&by(out), name);
            assert_eq!(outcome.code, 0, "{outcome:?}");
        }
        let end = if command.contains(".npy") { ".npy" } else { "" };
        let [a, b] = ["name", "path"].map(|out| folder.path(&format!("{out}{at}{end}")));
        match a.is_dir() {
            true => assert!(contents(&a) == contents(&b), "{command}"),
            false => assert!(std::fs::read(a).unwrap() == std::fs::read(b).unwrap(), "{command}"),
        }
        let outcome = named(&by("none"), "org/other");
        let expected = format!("no model of this name in {}; `hf download org/other` fetches it", cache.display());
        assert!(outcome.code == 2 && outcome.stderr.contains(&expected), "{outcome:?}");
    }
}

/// Two tokens of their own that take blanks around them away: the library panics where one stands in those of the other.
#[test]
fn a_panic_of_the_library_of_tokenizers_names_the_file() {
    let folder = made();
    let path = folder.path("bert/tokenizer.json");
    let mut file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let strips = |id: u32, content: &str, behind: bool| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": true, "rstrip": behind, "normalized": false,
            "special": true })
    };
    file["added_tokens"] = json!([strips(2, "[CLS]", true), strips(3, "[SEP]", true), strips(1, " ", false)]);
    file["model"]["vocab"][" "] = json!(1);
    folder.write("bert/tokenizer.json", file.to_string());
    folder.ok("embed --from bert --input test.jsonl --max-tokens 8 --output no.npy");
    folder.write("texts.jsonl", json!({ "text": "mail [SEP]   of" }).to_string());
    let mut command = folder.command("embed --from bert --input texts.jsonl --max-tokens 8 --output no.npy");
    let outcome = run(command.env_remove("RUST_BACKTRACE"));
    assert_eq!(outcome.code, 2, "{outcome:?}");
    let [line] = outcome.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{outcome:?}") };
    assert!(line.starts_with("xc: error: bert/tokenizer.json: the library of tokenizers fails at it at "), "{line}");
    assert!(line.ends_with("AddedVocabulary bad split"), "{line}");
}
