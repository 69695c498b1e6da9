//! `xc explain`: what becomes of scores without a feature, as a table and as JSON.

use crate::program::{Folder, json};

fn trained() -> Folder {
    let folder = Folder::new();
    let rows = "{\"id\":7,\"text\":\"dog barks loud\",\"labels\":[\"bark\"]}\n\
                {\"id\":8,\"text\":\"cat purrs low\",\"labels\":[\"purr\"]}\n";
    folder.write("train.jsonl", rows.repeat(5));
    folder.write("test.jsonl", rows);
    folder.ok("train tree --train train.jsonl --trees 2 --model tree");
    folder.ok("train dense --train train.jsonl --epochs 3 --network.widths 8 --wide on --model dense");
    folder
}

#[test]
fn a_label_is_named_by_name_or_id_and_every_instance_is_explained() {
    let folder = trained();
    let by_name = folder.ok("explain --model tree --input test.jsonl --label bark --label purr --json");
    assert_eq!(by_name, folder.ok("explain --model tree --input test.jsonl --label 0 --label 1 --json"));
    let all: Vec<_> = by_name.lines().map(json).collect();
    assert_eq!(all.len(), 4);
    for (explained, (instance, id, label, name)) in
        all.iter().zip([(0, 7, 0, "bark"), (0, 7, 1, "purr"), (1, 8, 0, "bark"), (1, 8, 1, "purr")])
    {
        assert_eq!((&explained["instance"], &explained["id"]), (&instance.into(), &id.into()));
        assert_eq!((&explained["label"], &explained["name"]), (&label.into(), &name.into()));
        assert_eq!(explained["trees"].as_array().unwrap().len(), 2);
        for node in explained["trees"].as_array().unwrap().iter().flat_map(|path| path.as_array().unwrap()) {
            let parts = node["parts"].as_array().unwrap().iter().map(|part| part["part"].as_f64().unwrap());
            let sum = node["bias"].as_f64().unwrap() + parts.sum::<f64>();
            assert!((sum - node["margin"].as_f64().unwrap()).abs() < 1e-5, "{node}");
        }
    }
    let dog = all[0]["effects"].as_array().unwrap().iter().find(|effect| effect["term"] == "dog").unwrap();
    assert!(dog["effect"].as_f64().unwrap() > 0.0, "{dog}");

    let text = folder.ok("explain --model dense --input test.jsonl --label bark --top 1");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("instance 0 (7): label 0 \"bark\" has score 0.") && lines[0].contains(", logit "));
    assert_eq!(lines[2], "  weaker effects of 2 features are left out");
    assert!(lines[3].starts_with("  with the wide term: logit "), "{text}");
    assert_eq!(lines.len(), 8, "{text}");
}

#[test]
fn a_label_or_input_that_the_model_does_not_have_is_refused() {
    let folder = trained();
    for (arguments, expected) in [
        ("--input test.jsonl --label cow", "--label cow: a label name or an id below 2 is expected"),
        ("--input test.jsonl --label 2", "--label 2: a label name or an id below 2 is expected"),
        ("--input - --label 0", "--input -: a file is expected"),
        ("--input none.jsonl --label 0", "none.jsonl"),
        ("--input test.jsonl --label 0 --raw-scores", "--raw-scores"),
        ("--input test.jsonl --label 0 --top 0", "--top"),
    ] {
        let outcome = folder.xc(&format!("explain --model tree {arguments}"));
        assert_eq!(outcome.code, 2, "{arguments}");
        assert!(outcome.stderr.contains(expected), "{arguments}: {}", outcome.stderr);
    }
}
