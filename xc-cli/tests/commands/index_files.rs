//! Files of indexes and of their answers: what they hold, full disks, and cuts.

use crate::program::{Folder, contents, json, npy, run};
use std::path::{Path, PathBuf};
use xc_data::{ReadOptions, read_predictions};

fn value(row: usize, column: usize) -> f32 {
    ((row * 31 + column * 17 + row * column * 7919) % 1009) as f32 / 300.0
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("rows.npy", npy(300, 20, value));
    folder.write("queries.npy", npy(12, 20, |row, column| value(row * 13 + 1, column) + 0.01));
    folder
}

fn arrays(index: &Path) -> PathBuf {
    let files = std::fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|e| e == "safetensors")).unwrap()
}

#[test]
fn the_name_of_a_file_says_how_answers_are_written() {
    let folder = folder();
    folder.ok("index build --vectors rows.npy --metric l2 --output m.index");
    let search = "index search --index m.index --queries queries.npy --top-k 7";
    let lines = folder.ok(search);
    for (output, as_written) in [("a.npz", "npz"), ("a.NPZ", "npz"), ("a.jsonl", "jsonl"), ("a.txt", "lines")] {
        folder.ok(&format!("{search} --output {output}"));
        folder.ok(&format!("{search} --output told --output-format {as_written}"));
        assert!(std::fs::read(folder.path(output)).unwrap() == std::fs::read(folder.path("told")).unwrap(), "{output}");
    }
    folder.ok(&format!("{search} --output b.npz --output-format lines"));
    assert_eq!((folder.read("a.txt"), folder.read("b.npz")), (lines.clone(), lines.clone()));
    assert_eq!(folder.read("a.jsonl").lines().count(), 12);
    // What xc predict writes is read in the same way: the best first, with the same scores.
    let found = read_predictions(&folder.path("a.npz"), &ReadOptions::default()).unwrap();
    let pairs = |row: &[xc_sparse::rank::Scored]| {
        row.iter().map(|s| format!("{}:{}", s.label, s.score)).collect::<Vec<_>>().join(" ")
    };
    assert!(found.iter().map(pairs).eq(lines.lines().map(str::to_owned)));
}

#[test]
fn the_time_of_a_build_stands_beside_the_index_and_is_that_of_no_other() {
    let folder = folder();
    folder.ok("generate --instances 90 --features 40 --labels 9 --words 9 --output data");
    for (vectors, queries) in [("rows.npy", "queries.npy"), ("data/train.txt", "data/test.txt")] {
        let build = format!("index build --vectors {vectors} --metric ip --output m.index --json");
        let built = json(&folder.ok(&build));
        let evaluate = || {
            json(&folder.ok(&format!("index evaluate --index m.index --queries {queries} --runs 1 --json")))["build_s"]
                .clone()
        };
        assert!(built["build_s"].as_f64().unwrap() > 0.0 && evaluate() == built["build_s"], "{built}");
        let before = contents(&folder.path("m.index"));
        // A log of other bytes, one that is none, and none.
        folder.ok(&format!("index build --vectors {vectors} --metric cosine --output other.index"));
        let log = |index: &str| folder.path(&format!("{index}.log/build.json"));
        let own = std::fs::read(log("m.index")).unwrap();
        std::fs::copy(log("other.index"), log("m.index")).unwrap();
        assert!(evaluate().is_null());
        std::fs::write(log("m.index"), "{").unwrap();
        assert!(evaluate().is_null());
        std::fs::remove_dir_all(folder.path("m.index.log")).unwrap();
        assert!(evaluate().is_null());
        // A log that cannot be written is told, and the index stands.
        folder.write("m.index.log", "a file");
        let got = run(&mut folder.command(&build));
        assert!(got.code == 0 && got.stderr.contains("m.index.log"), "{}", got.stderr);
        assert!(contents(&folder.path("m.index")) == before);
        std::fs::remove_file(folder.path("m.index.log")).unwrap();
        std::fs::create_dir(folder.path("m.index.log")).unwrap();
        std::fs::write(log("m.index"), own).unwrap();
        assert_eq!(evaluate(), built["build_s"], "the same index has the same log");
    }
}

#[test]
#[cfg(unix)]
fn a_limit_on_the_size_of_files_fails_a_build_and_a_refresh_and_leaves_what_was_there() {
    let folder = folder();
    folder.ok("generate --instances 300 --features 200 --labels 20 --words 20 --no-text --output data");
    folder.ok("index build --vectors rows.npy --metric l2 --output m.index");
    let (before, names) = (contents(&folder.path("m.index")), folder.names());
    folder.write("moved.npy", npy(300, 20, |row, column| value(row + 1, column)));
    for (command, is_new) in [
        ("index build --vectors rows.npy --metric ip --output m.index", false),
        ("index build --vectors rows.npy --metric ip --output new.index", true),
        ("index build --vectors data/train.txt --metric ip --output new.index", true),
        ("index refresh --index m.index --vectors moved.npy", false),
        ("index search --index m.index --queries queries.npy --top-k 300 --output found.npz", true),
    ] {
        let xc = folder.command(command);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\" --quiet"]).arg(xc.get_program()).args(xc.get_args());
        let got = run(shell.current_dir(xc.get_current_dir().unwrap()));
        let is_one_line = got.stderr.starts_with("xc: error: ") && got.stderr.lines().count() == 1;
        assert!(got.code == 1 && is_one_line, "{command}: {} {}", got.code, got.stderr);
        assert!(got.stderr.to_lowercase().contains("file too large"), "{command}: {}", got.stderr);
        let output = command.split(' ').find(|word| word.starts_with(if is_new { "new" } else { "m.index" }));
        assert!(output.is_none_or(|output| got.stderr.contains(output)), "{command}: {}", got.stderr);
        assert!(contents(&folder.path("m.index")) == before, "{command}");
        let left: Vec<_> = folder.names().into_iter().filter(|name| name != "moved.npy").collect();
        assert_eq!(left, names, "{command}");
    }
}

#[test]
fn an_index_cut_anywhere_is_refused_in_one_line_that_names_the_file() {
    let folder = folder();
    folder.ok("generate --instances 90 --features 40 --labels 9 --words 9 --output data");
    for (vectors, queries, options) in
        [("rows.npy", "queries.npy", "--cells 8"), ("data/train.txt", "data/test.txt", "")]
    {
        folder.ok(&format!("index build --vectors {vectors} --metric l2 --output m.index {options}"));
        for file in [folder.path("m.index/config.json"), arrays(&folder.path("m.index"))] {
            let name = file.file_name().unwrap().to_str().unwrap();
            let whole = std::fs::read(&file).unwrap();
            let is_arrays = name.ends_with(".safetensors");
            // Nothing left, within the length of the header, within the header, at both sides of its end, at and
            // around the end of each array, and all but the last byte.
            let header = if is_arrays { 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize } else { 0 };
            // A line break ends the configuration, which is whole without it.
            let last = whole.trim_ascii_end().len() - 1;
            let mut cuts = vec![0, 1, 7, 8, 9, whole.len() / 2, if is_arrays { whole.len() - 1 } else { last }];
            if is_arrays {
                let arrays = json(std::str::from_utf8(&whole[8..header]).unwrap());
                let offsets =
                    arrays.as_object().unwrap().values().filter_map(|array| array["data_offsets"][1].as_u64());
                let ends = offsets.map(|end| header + end as usize).chain([header]);
                cuts.extend(ends.flat_map(|end| [end - 1, end, end + 1]));
                cuts.retain(|&cut| cut < whole.len());
                assert!(cuts.len() > 20, "{cuts:?}");
            }
            for cut in cuts {
                std::fs::write(&file, &whole[..cut]).unwrap();
                for command in ["search", "evaluate"] {
                    let got = folder.xc(&format!("index {command} --index m.index --queries {queries}"));
                    let is_one_line = got.stderr.starts_with("xc: error: m.index") && got.stderr.lines().count() == 1;
                    assert!(got.code == 2 && is_one_line, "{name} cut at {cut}: {} {}", got.code, got.stderr);
                    assert!(got.stderr.contains(name), "{name} cut at {cut}: {}", got.stderr);
                }
            }
            std::fs::remove_file(&file).unwrap();
            let got = folder.xc(&format!("index search --index m.index --queries {queries}"));
            assert!(got.code == 2 && got.stderr.lines().count() == 1, "{name} is gone: {}", got.stderr);
            std::fs::write(&file, &whole).unwrap();
        }
        folder.ok(&format!("index search --index m.index --queries {queries}"));
    }
}
