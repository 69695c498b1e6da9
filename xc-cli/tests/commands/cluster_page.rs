//! The commands of docs/cluster.md, run as they stand there, with a loop in place of the scheduler.

use crate::program::{Folder, contents};
use std::path::Path;
use std::process::Command;

/// Blocks of code of the page, with their language.
fn blocks() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = Vec::new();
    let mut rest = page.split("```");
    rest.next();
    while let (Some(block), behind) = (rest.next(), rest.next()) {
        let (language, code) = block.split_once('\n').unwrap();
        blocks.push((language.to_owned(), code.to_owned()));
        assert!(behind.is_some(), "a block that is not closed");
    }
    blocks
}

/// Runs commands by a shell that finds this program as `xc`.
fn shell(folder: &Folder, script: &str, variable: Option<(&str, u32)>) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_xc")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg("-euc").arg(script).current_dir(folder.path(".")).env("PATH", path);
    if let Some((name, value)) = variable {
        command.env(name, value.to_string());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The numbers of the tasks of an array job.
fn tasks(script: &str) -> std::ops::RangeInclusive<u32> {
    let range = script.split_once("--array=").unwrap().1;
    let (first, last) = range.split_once('-').unwrap();
    let last = last.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    first.parse().unwrap()..=last.parse().unwrap()
}

fn read(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.path(name)).unwrap()
}

#[test]
fn every_command_of_the_page_runs_and_its_parts_are_the_whole() {
    let folder = Folder::new();
    folder.ok("generate --instances 300 --test-instances 50 --features 300 --labels 40 --words 20 --output data");
    folder.write("train.jsonl", folder.read("data/train.jsonl"));
    folder.write("queries.jsonl", folder.read("data/test.jsonl"));
    folder.ok("train tree --train train.jsonl --model my.model");
    folder.ok("predict --model my.model --input queries.jsonl --output whole.txt");
    let mut figures = Vec::new();
    let all = blocks();
    for (language, code) in &all {
        match &**language {
            "sh" if code.contains("SLURM_ARRAY_TASK_ID") => {
                for task in tasks(code) {
                    shell(&folder, code, Some(("SLURM_ARRAY_TASK_ID", task)));
                }
            }
            "sh" => {
                let said = shell(&folder, code, None);
                figures.extend(said.contains("nDCG").then_some(said));
            }
            "yaml" => {
                let whole = read(&folder, "answers.txt");
                let n: u32 = code.split_once("completions: ").unwrap().1.split('\n').next().unwrap().parse().unwrap();
                let command = code.split_once("command: [sh, -c, '").unwrap().1.split_once("']").unwrap().0;
                for index in 0..n {
                    std::fs::remove_file(folder.path(&format!("answers-{index}.txt"))).unwrap();
                    shell(&folder, command, Some(("JOB_COMPLETION_INDEX", index)));
                }
                let parts: Vec<u8> = (0..n).flat_map(|i| read(&folder, &format!("answers-{i}.txt"))).collect();
                assert!(parts == whole);
            }
            "python" => {
                // What Spark pipes the lines of a partition through.
                let Some((_, behind)) = code.split_once(".pipe(\"") else { continue };
                let command = behind.split_once("\", checkCode=True)").unwrap().0;
                let mut parts = String::new();
                for part in 1..=8 {
                    parts += &shell(&folder, &format!("split -n l/{part}/8 queries.jsonl | {command}"), None);
                }
                assert_eq!(parts, shell(&folder, &format!("{command} < queries.jsonl"), None));
            }
            other => panic!("a block of language {other:?}"),
        }
    }
    assert_eq!(all.iter().filter(|(language, _)| language == "sh").count(), 6);
    assert!(read(&folder, "answers.txt") == read(&folder, "whole.txt"));
    let whole = "xc evaluate --truth queries.jsonl --model my.model --predictions whole.txt";
    assert_eq!(figures, [shell(&folder, whole, None)]);
    folder.ok("train tree --train train.jsonl --model tree.whole");
    assert!(contents(&folder.path("trees.model")) == contents(&folder.path("tree.whole")));
    let tune = "tune tree --train train.jsonl --trials 9";
    folder.ok(&format!("{tune} --part 0/1 --output trials"));
    folder.ok(&format!("{tune} --from trials --output tuned-by-one"));
    assert!(read(&folder, "tuned/best.toml") == read(&folder, "tuned-by-one/best.toml"));
    assert!(contents(&folder.path("tuned/model")) == contents(&folder.path("tuned-by-one/model")));
    // What is done without parts.
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cluster.md")).unwrap();
    let split = page.split('`').find(|code| code.starts_with("split -n l/3/8 ")).unwrap().replace('\n', " ");
    let mut answers = String::new();
    for part in 1..=8 {
        let one = split.replace("l/3/8", &format!("l/{part}/8")).replace("answers-2", "split");
        shell(&folder, &one, None);
        answers += &folder.read("split");
    }
    assert_eq!(answers, folder.read("whole.txt"));
}
