//! What is refused: one line that names file, line and what was expected, and the right exit code.

use crate::program::{Folder, run};

/// A folder with a data set that is in order (`ok.txt`, `test.txt`) and a model of it (`m`).
fn with_model() -> Folder {
    let folder = Folder::new();
    folder.write("ok.txt", "3 4 5\n0 0:1\n1 1:1\n0,4 2:1\n");
    folder.write("test.txt", "2 4 5\n0 0:1\n1 1:1\n");
    folder.ok("train tree --train ok.txt --model m");
    folder
}

#[test]
fn a_file_that_states_fewer_features_than_the_model_takes_is_refused() {
    let folder = with_model();
    folder.write("narrow.txt", "2 3 5\n0 0:1\n1 1:1\n");
    folder.write("bare.svm", "0 0:1\n1 1:1\n");
    for command in ["predict --model m --input narrow.txt", "bench predict --model m --input narrow.txt --mode batch"] {
        folder.xc(command).refused(2, "narrow.txt: line 1: 3 features, expected 4");
    }
    folder
        .xc("train tree --train ok.txt --validation narrow.txt --model n")
        .refused(2, "narrow.txt: line 1: 3 features, expected 4");
    // Rows that state no width may lack the last features.
    folder.ok("predict --model m --input bare.svm --svmlight-base 0 --output p.txt");
    assert_eq!(folder.read("p.txt").lines().count(), 2);
}

#[test]
fn malformed_training_files() {
    let folder = Folder::new();
    let no_label = "no instance has a label; at least one label is expected (a file without labels in it takes them from --train-labels)";
    for (name, content, expected) in [
        ("a.txt", &b""[..], "the file is empty, expected rows of instances"),
        ("a.txt", b"3 4 5\n0 1:1\n1 2:1\n", "line 1: the header says 3 rows, got 2"),
        ("a.txt", b"1 4 5\n0 1:1\n1 2:1\n", "line 1: the header says 1 rows, got 2"),
        (
            "a.txt",
            b"1 4 5\n0 4:1\n",
            "line 2, column 3: feature 4 is out of range, expected an id below 4 (said by the header)",
        ),
        (
            "a.txt",
            b"1 4 5\n5 3:1\n",
            "line 2, column 1: label 5 is out of range, expected an id below 5 (said by the header)",
        ),
        ("a.txt", b"1 4 5\n1 -3:1\n", "line 2, column 3: got \"-3\", expected a feature id that is not negative"),
        ("a.txt", b"1 4 5\n-1 3:1\n", "line 2, column 1: got \"-1\", expected a label id that is not negative"),
        ("a.txt", b"1 4 5\n1 x:1\n", "line 2, column 3: got \"x\", expected a feature id (a whole number)"),
        (
            "a.txt",
            b"1 4 5\n1 99999999999:1\n",
            "line 2, column 3: got \"99999999999\", expected a feature id up to 4294967294",
        ),
        ("a.txt", b"1 4 5\n1 2:1e99\n", "line 2, column 5: got \"1e99\", expected a value that f32 can hold"),
        ("a.txt", b"1 4 5\n1 2 3:1\n", "line 2, column 3: got \"2\", expected feature:value"),
        ("a.txt", b"1 4 5\n1 2:nan\n", "line 2, column 5: got \"nan\", expected a finite value"),
        ("a.txt", b"1 4 5\n1 2:inf\n", "line 2, column 5: got \"inf\", expected a finite value"),
        ("a.txt", b"1 4 5\n1 2:1 2:2\n", "line 2: feature 2 is named twice in this row, expected each feature once"),
        ("a.txt", b"2 4 5\n 1:1\n 2:1\n", no_label),
        ("a.txt", b"1 4 0\n 1:1\n", no_label),
        ("a.jsonl", b"{\"text\":\"a b\",\"la\n", "line 1, column 17: incomplete JSON: EOF while parsing a string"),
        (
            "a.jsonl",
            b"{\"text\":5,\"labels\":[1]}\n",
            "line 1, column 9: invalid type: integer `5`, expected a string in the field \"text\"",
        ),
        (
            "a.jsonl",
            b"{\"body\":\"a b\",\"labels\":[1]}\n",
            "line 1: the object has none of the fields \"text\"; its fields are \"body\", \"labels\" (--text-fields NAMES)",
        ),
        (
            "a.jsonl",
            b"{\"text\":\"a\xff\"}\n",
            "line 1, column 11: bytes that are not UTF-8, got \"\u{fffd}\\\"}\" (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)",
        ),
        ("a.svm", b"0 1:1\n", "svmlight files count features from 0 or from 1: state which (--svmlight-base 0 or 1)"),
    ] {
        folder.write(name, content);
        folder.xc(&format!("train tree --train {name} --model m")).refused(2, &format!("{name}: {expected}"));
        assert_eq!(folder.names(), [name], "something is left behind");
        std::fs::remove_file(folder.path(name)).unwrap();
    }
}

#[test]
fn unsorted_features_are_sorted_and_rows_without_labels_or_features_are_kept() {
    let folder = Folder::new();
    let rows = ["0 0:1 2:1", "1 1:1 3:0.5", " 1:1", "0,1"];
    folder.write("a.txt", format!("4 4 5\n{}\n", rows.join("\n")));
    folder.write(
        "b.txt",
        format!("4 4 5\n{}\n", rows.join("\n").replace("0:1 2:1", "2:1 0:1").replace("1:1 3:0.5", "3:0.5 1:1")),
    );
    folder.ok("train tree --train a.txt --model a");
    folder.ok("train tree --train b.txt --model b");
    let of = |model: &str, input: &str| folder.ok(&format!("predict --model {model} --input {input}"));
    assert_eq!(of("a", "a.txt"), of("b", "b.txt"));
    assert_eq!(of("a", "a.txt").lines().count(), 4);
    assert!(!of("a", "a.txt").lines().nth(3).unwrap().is_empty(), "a row without features is scored by bias");
}

#[test]
fn files_that_do_not_belong_together() {
    let folder = with_model();
    folder.write("x.txt", "2 4\n0:1\n1:1\n");
    folder.write("y.txt", "3 5\n0:1\n1:1\n2:1\n");
    folder
        .xc("train tree --train x.txt --train-labels y.txt --model n")
        .refused(2, "y.txt: got 3 rows of labels, expected 2: one for each row of x.txt");
    folder.write("names.txt", "a\nb\nc\n");
    folder
        .xc("train tree --train ok.txt --label-names names.txt --model n")
        .refused(2, "ok.txt: 5 labels; names.txt gives 3 names, and one for each label is expected");
    folder.write("weights.txt", "1\nheavy\n1\n");
    folder
        .xc("train tree --train ok.txt --instance-weights weights.txt --model n")
        .refused(2, "weights.txt: line 2: got \"heavy\", expected one number of 0 or more");
    folder.write("costs.txt", "1\n2\n");
    folder
        .xc("train tree --train ok.txt --label-costs costs.txt --model n")
        .refused(2, "costs.txt: 2 numbers; one for each of the 5 labels is expected");
    folder.write("wide.txt", "1 9 5\n0 8:1\n");
    let outcome = folder.xc("predict --model m --input wide.txt --unseen refuse");
    assert_eq!((outcome.code, &*outcome.stdout), (2, ""));
    assert!(outcome.stderr.starts_with("xc: error: wide.txt: line 1: ") && outcome.stderr.contains('9'), "{outcome:?}");
    folder.write("text.jsonl", "{\"text\":\"a\"}\n");
    folder
        .xc("predict --model m --input text.jsonl")
        .refused(2, "text.jsonl: holds text; features are expected, since the model was trained on features");
    folder.write("only.txt", "0\n5\n");
    folder
        .xc("predict --model m --input test.txt --only-labels only.txt")
        .refused(2, "only.txt: line 2: got \"5\", expected a label id below 5; --unknown-labels skip leaves out labels that the model does not have");
}

#[test]
fn impossible_options() {
    let folder = with_model();
    for (arguments, expected) in [
        ("predict --model m --input test.txt --top-k 0", "--top-k 0: at least 1 is expected"),
        ("predict --model m --input test.txt --names", "--names: m has no label names; --label-names FILE gives some"),
        ("train tree --train ok.txt --model n --tree.branching 1", "--tree.branching 1: expected 2 or more"),
        (
            "train tree --train ok.txt --model n --cluster.representation label-features",
            "--cluster.representation asks for label features; expected --label-features",
        ),
        ("generate --output d --labels 0", "--labels 0: 1 to 4294967295 are expected"),
        ("--threads 0 inspect m", "--threads 0: between 1 and 4096 are expected"),
        (
            "convert --from npz m --to xc n",
            "convert: data and models do not become each other; xc is a model, data in XC text is xc-text",
        ),
    ] {
        folder.xc(arguments).refused(2, expected);
    }
    for (arguments, beginning) in [
        (
            "train tree --train ok.txt --model n --post-processor softmax",
            "invalid value 'softmax' for '--post-processor <NAME>': unknown post-processor",
        ),
        (
            "train tree --train ok.txt --model n --preset best",
            "invalid value 'best' for '--preset <NAME>' [possible values: default, parabel,",
        ),
        ("predict --model m --input test.txt --top-k many", "invalid value 'many' for '--top-k <K>'"),
        ("predict --model m", "the following required arguments were not provided: <--input <FILE>|--text <TEXT>>"),
        ("predict --model m --input test.txt --colour", "unexpected argument '--colour' (see"),
        ("predcit", "unknown command 'xc predcit'; a similar one is 'predict' (see 'xc --help')"),
    ] {
        let outcome = folder.xc(arguments);
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{arguments}");
        assert!(outcome.stderr.starts_with(&format!("xc: error: {beginning}")), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn features_and_labels_go_into_two_files_or_none() {
    let folder = Folder::new();
    folder.ok("generate --instances 20 --features 30 --labels 10 --no-text --no-names --output d");
    let to = |features: &str, labels: &str| {
        folder.xc(&format!("convert --from xc-text d/train.txt --to npz {features} --output-labels {labels}"))
    };
    std::os::unix::fs::symlink(".", folder.path("here")).unwrap();
    for other in ["a.npz", "./a.npz", "here/a.npz"] {
        to("a.npz", other).refused(
            2,
            &format!("a.npz and --output-labels {other} are one file, and both are written; another file is expected"),
        );
    }
    assert_eq!(to("/dev/full", "labels.npz").code, 1);
    assert_eq!(folder.names(), ["d", "here"]);
    assert_eq!(to("a.npz", "labels.npz").code, 0);
    assert_eq!(folder.names(), ["a.npz", "d", "here", "labels.npz"]);
}

#[test]
fn messages_are_short_and_hold_no_control_characters() {
    let folder = with_model();
    folder.write("long.txt", "x".repeat(100_000));
    folder.write("weights.txt", "1\n1\n-1\n");
    let of = |arguments: &str, words: &str| {
        let outcome = folder.xc(arguments);
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{outcome:?}");
        assert!(outcome.stderr.len() < 300 && outcome.stderr.contains(words), "{outcome:?}");
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    };
    of("predict --model m --input test.txt --only-labels long.txt", "long.txt: line 1: got \"xxx");
    of("predict --model m --input test.txt --config \u{1b}[31m", "\\u{1b}[31m: ");
    let train = "train tree --train ok.txt --model n";
    of(&format!("{train} --label-costs long.txt"), "long.txt: line 1: got \"xxx");
    of(&format!("{train} --instance-weights weights.txt"), "weights.txt: line 3: got \"-1\"");
}

#[test]
fn more_labels_asked_than_there_are_gives_short_rows() {
    let folder = with_model();
    let answers = folder.ok("predict --model m --input test.txt --top-k 100 --beam 100");
    let counts: Vec<usize> = answers.lines().map(|l| l.split(' ').count()).collect();
    assert_eq!(counts, [3, 3], "labels 2 and 3 have no instance and no leaf");
}

#[test]
fn absent_files_and_folders() {
    let folder = with_model();
    for (arguments, expected) in [
        ("train tree --train absent.txt --model n", "absent.txt: No such file or directory"),
        ("train tree --train ok.txt --validation absent.txt --model n", "absent.txt: No such file or directory"),
        ("predict --model absent --input test.txt", "absent: expected a model folder: No such file or directory"),
        ("predict --model ok.txt --input test.txt", "ok.txt: not a folder; expected a model folder"),
        ("predict --model m --input absent.txt", "absent.txt: cannot be read: No such file or directory"),
        ("predict --model m --input test.txt --config absent.toml", "absent.toml: No such file or directory"),
    ] {
        folder.xc(arguments).refused(2, expected);
    }
}

#[test]
fn damaged_models_are_told_from_sound_ones() {
    let folder = with_model();
    let array_file = folder.path("m/model.safetensors");
    let config_file = folder.path("m/config.json");
    let (arrays, config) = (std::fs::read(&array_file).unwrap(), folder.read("m/config.json"));
    let predict = || folder.xc("predict --model m --input test.txt");
    assert_eq!(predict().code, 0);

    for cut in [0, 1, 100, arrays.len() / 2, arrays.len() - 1] {
        std::fs::write(&array_file, &arrays[..cut]).unwrap();
        let outcome = predict();
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "cut at {cut}");
        assert!(
            outcome.stderr.starts_with("xc: error: ") && outcome.stderr.contains("model.safetensors"),
            "{outcome:?}"
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
    // A flipped bit is found by `inspect --verify` wherever it is; prediction either answers or
    // refuses.
    for at in (0..arrays.len()).step_by(arrays.len() / 40) {
        let mut flipped = arrays.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&array_file, &flipped).unwrap();
        let outcome = folder.xc("inspect m --verify");
        assert_eq!(outcome.code, 2, "byte {at}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        let outcome = predict();
        assert!(matches!(outcome.code, 0 | 2), "byte {at}: {outcome:?}");
    }
    std::fs::write(&array_file, &arrays).unwrap();

    std::fs::write(&config_file, config.replacen("\"format_version\": 1", "\"format_version\": 2", 1)).unwrap();
    let outcome = predict();
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("m/config.json: format version 2, this program reads up to 1"), "{outcome:?}");
    std::fs::write(&config_file, &config[..config.len() / 2]).unwrap();
    let outcome = predict();
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("config.json"), "{outcome:?}");
    std::fs::write(&config_file, &config).unwrap();
    assert_eq!(predict().code, 0);
}

#[test]
fn what_a_machine_lacks_is_exit_code_3() {
    let folder = with_model();
    let outcome = folder.xc("train tree --train ok.txt --model n --max-memory 10");
    assert_eq!(outcome.code, 3);
    assert!(
        outcome.stderr.starts_with("xc: error: xc train tree needs about ")
            && outcome.stderr.contains("more than --max-memory 10 B: data ")
            && outcome.stderr.contains("fewer instances or features would help\n"),
        "{outcome:?}"
    );
    assert_eq!(folder.names(), ["m", "m.log", "ok.txt", "test.txt"]);
}

#[test]
fn a_folder_that_is_no_model_is_never_replaced_and_a_model_is() {
    let folder = with_model();
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/letter.txt", "dear");
    let outcome = folder.xc("train tree --train ok.txt --model mine");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("xc: error: ") && outcome.stderr.contains("/mine: "), "{outcome:?}");
    assert_eq!(folder.read("mine/letter.txt"), "dear");
    let before = folder.read("m/config.json");
    folder.ok("train tree --train ok.txt --model m --linear.cost 2");
    assert_ne!(folder.read("m/config.json"), before);
}

#[test]
fn an_output_that_cannot_be_is_exit_code_2_one_that_cannot_be_written_1_and_both_leave_nothing() {
    let folder = with_model();
    folder
        .xc("predict --model m --input test.txt --output absent/p.txt")
        .refused(2, "absent/p.txt: cannot write: No such file or directory");
    folder
        .xc("predict --model m --input test.txt --output ok.txt/p.txt")
        .refused(2, "ok.txt/p.txt: cannot write: Not a directory");
    folder.xc("predict --model m --input test.txt --output m").refused(2, "m: is a folder; a file name is expected");
    if cfg!(target_os = "linux") {
        for arguments in [
            "predict --model m --input test.txt --output /dev/full",
            "convert --from xc-text ok.txt --to jsonl /dev/full",
        ] {
            let what = "/dev/full: cannot write: No space left on device; nothing was replaced: make room and repeat the \
                        command";
            folder.xc(arguments).refused(1, what);
        }
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let outcome = run(folder.command("inspect m").stdout(full));
        assert_eq!(
            (outcome.code, &*outcome.stderr),
            (
                1,
                "xc: error: standard output: cannot write: No space left on device; nothing was replaced: make room and \
                 repeat the command\n"
            )
        );
    }
    assert_eq!(folder.names(), ["m", "m.log", "ok.txt", "test.txt"]);
}

#[test]
#[cfg(unix)]
fn no_permission_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_model();
    let set =
        |name: &str, mode| std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    set("ok.txt", 0o000);
    std::fs::create_dir(folder.path("closed")).unwrap();
    set("closed", 0o500);
    if std::fs::read(folder.path("ok.txt")).is_ok() {
        use std::io::Write;
        writeln!(std::io::stderr(), "SKIPPED no_permission_says_so: this user may read and write everything").unwrap();
        set("ok.txt", 0o600);
        return;
    }
    folder.xc("train tree --train ok.txt --model n").refused(2, "ok.txt: Permission denied");
    folder
        .xc("predict --model m --input test.txt --output closed/p.txt")
        .refused(1, "closed/p.txt: cannot write: Permission denied");
    set("ok.txt", 0o600);
    let outcome = folder.xc("train tree --train ok.txt --model closed/m");
    assert_eq!(outcome.code, 1, "{outcome:?}");
    set("closed", 0o700);
    assert_eq!(std::fs::read_dir(folder.path("closed")).unwrap().count(), 0);
}
