//! Help screens of a program without optional parts: which options stand in which section, and which are left out of the
//! short help.

use crate::program::Folder;
use std::collections::BTreeMap;

/// Every command that does something.
const COMMANDS: [&str; 31] = [
    "quickstart",
    "generate",
    "train tree",
    "train mach",
    "train dense",
    "train uniform",
    "train lns",
    "train astra",
    "train skipgram",
    "tune tree",
    "tune mach",
    "tune dense",
    "tune uniform",
    "tune lns",
    "tune astra",
    "predict",
    "evaluate",
    "explain",
    "index build",
    "index search",
    "index refresh",
    "index evaluate",
    "inspect",
    "merge",
    "blend",
    "calibrate",
    "convert",
    "bench predict",
    "bench curves",
    "completions",
    "",
];

/// Sections of a help screen in their order, each with its options in theirs.
fn sections(help: &str) -> Vec<(String, Vec<String>)> {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in help.lines() {
        let option = line
            .strip_prefix("      --")
            .or_else(|| line.strip_prefix("  -").and_then(|s| s.split_once("--")).map(|s| s.1));
        if let Some(option) = option {
            let name = option.split([' ', '[', ',']).next().unwrap().to_owned();
            sections.last_mut().unwrap().1.push(name);
        } else if line.ends_with(':') && !line.starts_with(' ') {
            sections.push((line.trim_end_matches(':').to_owned(), Vec::new()));
        }
    }
    sections.retain(|(_, options)| !options.is_empty());
    sections
}

fn screen(folder: &Folder, command: &str, switch: &str) -> Vec<(String, Vec<String>)> {
    sections(&folder.ok(&format!("{command} {switch}")))
}

#[test]
fn each_section_is_there_once_and_holds_what_it_says() {
    let Some(folder) = Folder::of_default_program() else { return };
    let shared: BTreeMap<&str, &[&str]> = BTreeMap::from([
        (
            "Input options",
            &[
                "format",
                "text-fields",
                "number-fields",
                "label-field",
                "label-fields",
                "label-separator",
                "id-field",
                "delimiter",
                "no-quotes",
                "no-header",
                "unseen",
                "svmlight-base",
                "svmlight-label-base",
            ][..],
        ),
        (
            "Search options",
            &[
                "beam",
                "post-processor",
                "decoder",
                "max-labels",
                "repetitions",
                "search-width",
                "cells",
                "exact",
                "max-age",
            ],
        ),
        ("Common options", &["threads", "seed", "max-memory", "json", "verify", "progress", "quiet", "config"]),
    ]);
    for command in COMMANDS {
        let sections = screen(&folder, command, "--help");
        let mut names: Vec<&String> = sections.iter().map(|(name, _)| name).collect();
        assert_eq!(names.first().map(|name| &***name), Some("Options"), "{command}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), sections.len(), "{command}: {sections:?}");
        for (section, options) in &sections {
            if let Some(allowed) = shared.get(&**section) {
                let other = options.iter().find(|option| !allowed.contains(&&***option));
                assert_eq!(other, None, "{command}: {section}");
            }
            let of_text = options.iter().filter(|option| option.starts_with("text.")).count();
            let expected = match &**section {
                "Text options" => options.len(),
                // A vocabulary of words is what that command is about.
                "Word options" => of_text,
                _ => 0,
            };
            assert_eq!(of_text, expected, "{command}: {section}: {options:?}");
        }
        // What is shared comes last.
        let at = |name: &str| sections.iter().position(|(section, _)| section == name);
        let last = sections.len() - 1;
        assert!(at("Common options").is_none_or(|at| at == last), "{command}");
        for section in ["Input options", "Text options"] {
            let own = sections
                .iter()
                .rposition(|(name, _)| !["Input options", "Text options", "Common options"].contains(&&**name));
            assert!(at(section).is_none_or(|at| Some(at) > own), "{command}: {section}");
        }
    }
}

/// The short help of each command is the one that is kept in tests/commands/help/. XC_WRITE_SCREENS=1 writes them anew.
#[test]
fn the_short_help_is_the_one_that_is_kept_and_fits_a_screen() {
    let Some(folder) = Folder::of_default_program() else { return };
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/help");
    for command in COMMANDS.iter().filter(|command| !command.is_empty()) {
        let screen = folder.ok(&format!("{command} -h"));
        let file = kept.join(format!("{}.txt", command.replace(' ', "-")));
        if std::env::var_os("XC_WRITE_SCREENS").is_some() {
            std::fs::write(&file, &screen).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(screen, expected, "{}: XC_WRITE_SCREENS=1 writes it anew", file.display());
        let widest = screen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(screen.lines().count() <= 50 && widest <= 100, "{command}: {} x {widest}", screen.lines().count());
        // Each option that it shows is one of the command, in the section of the long help.
        let long = folder.ok(&format!("{command} --help"));
        let listed = sections(&long);
        let mut section = String::new();
        for line in screen.lines() {
            if let Some(name) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
                section = name.to_owned();
            }
            let Some(option) = line.strip_prefix("  --") else { continue };
            let name = option.split(' ').next().unwrap();
            let of = listed.iter().find(|(of, _)| *of == section).map(|(_, options)| options);
            assert!(of.is_some_and(|options| options.iter().any(|o| o == name)), "{command}: {section}: --{name}");
            assert!(option.trim() != name, "{command}: --{name} without a word");
        }
        for section in ["Input options", "Text options", "Common options"] {
            assert!(!screen.contains(section), "{command}: {section}");
        }
        let n = count(&listed);
        assert!(n == 0 || screen.lines().last().unwrap().contains(&format!("all {n} options")), "{command}: {screen}");
    }
}

/// docs/reference/options is what the program writes. XC_WRITE_DOCS=1 writes it anew. Every option of a page stands in the
/// command's man page and in its schema.
#[test]
fn the_pages_of_options_are_those_of_the_program() {
    let folder = Folder::new();
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/options");
    for what in ["pages", "man", "schema"] {
        folder.ok(&format!("options {what} --output {what}"));
    }
    if std::env::var_os("XC_WRITE_DOCS").is_some() {
        let _ = std::fs::remove_dir_all(&kept);
        folder.ok(&format!("options pages --output {}", kept.display()));
    }
    let names = |path: &std::path::Path| {
        let files = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let written = names(&folder.path("pages"));
    assert_eq!(names(&kept), written, "XC_WRITE_DOCS=1 writes them anew");
    let schema: serde_json::Value = serde_json::from_str(&folder.read("schema/config.schema.json")).unwrap();
    let mut n = 0;
    for name in written {
        let page = folder.read(&format!("pages/{name}"));
        let before = std::fs::read_to_string(kept.join(&name)).unwrap();
        assert!(page == before, "{name}: XC_WRITE_DOCS=1 writes it anew");
        let Some(command) = name.strip_suffix(".md").filter(|name| *name != "README") else { continue };
        let man = folder.read(&format!("man/xc-{command}.1")).replace("\\-", "-");
        let called = page.lines().next().unwrap().strip_prefix("# xc ").unwrap();
        let properties = &schema["$defs"][called]["properties"];
        for option in page.lines().filter_map(|line| line.strip_prefix("- `--")) {
            let option = option.split([' ', '`']).next().unwrap();
            assert!(man.contains(&format!("--{option}")), "{command}: --{option} is not on the man page");
            assert!(properties[option].is_object(), "{command}: --{option} is not in the schema");
            n += 1;
        }
    }
    assert!(n > 800, "{n} options");
}

/// Options of a long help, but for its own switches.
fn count(sections: &[(String, Vec<String>)]) -> usize {
    let all = sections.iter().flat_map(|(_, options)| options);
    all.filter(|option| !["help", "version"].contains(&&***option)).count()
}

#[test]
fn what_is_required_comes_first_then_what_is_a_commands_own() {
    let Some(folder) = Folder::of_default_program() else { return };
    for (command, first) in [
        ("train tree", &["train", "model", "preset", "trees"][..]),
        ("train mach", &["train", "model"]),
        ("tune tree", &["train", "output", "preset", "trees"]),
        ("index search", &["index", "queries", "exact"]),
        ("index evaluate", &["index", "queries", "target-recall"]),
        ("predict", &["model", "input", "top-k", "output"]),
        ("evaluate", &["truth", "predictions", "k"]),
    ] {
        let sections = screen(&folder, command, "--help");
        let options = &sections[0].1;
        let order: Vec<usize> = first.iter().map(|name| options.iter().position(|o| o == name).unwrap()).collect();
        assert!(order.is_sorted(), "{command}: {options:?}");
    }
    let sections = screen(&folder, "index build", "--help");
    for option in ["top-k", "target-recall", "min-recall"] {
        assert!(sections[0].1.iter().any(|other| other == option), "{option}: {sections:?}");
    }
    let of_vectors = folder.ok("index search --help");
    for option in ["--text-fields", "--label-field", "--label-separator", "--id-field", "--svmlight-label-base"] {
        assert!(!of_vectors.contains(option), "{option}");
    }
}

#[test]
fn common_options_are_listed_where_they_are_used_and_some_are_taken_everywhere() {
    let Some(folder) = Folder::of_default_program() else { return };
    for command in COMMANDS {
        let sections = screen(&folder, command, "--help");
        let listed = sections.into_iter().find(|(name, _)| name == "Common options").map(|(_, options)| options);
        let listed = listed.unwrap_or_default();
        assert!(!listed.iter().any(|option| option == "device"), "{command}");
        if command.is_empty() {
            continue;
        }
        // Enough for a command to be parsed, nothing for it to work with.
        let rest = match command {
            "quickstart" => "--output /dev/null/x",
            "generate" => "--output /dev/null/x",
            "predict" => "--model x --input x",
            "evaluate" => "--truth x --predictions x",
            "explain" => "--model x --input x --label 0",
            "index build" => "--vectors x --metric l2 --output x",
            "index search" | "index evaluate" => "--index x --queries x",
            "index refresh" => "--index x --vectors x",
            "inspect" => "x",
            "merge" => "x --output y",
            "blend" => "x y --validation x --output z",
            "calibrate" => "--model x --validation x",
            "convert" => "--from npz x --to xc-text y",
            "bench predict" => "--model x --input x",
            "bench curves" => "--log x --output y",
            "completions" => "bash",
            command if command.starts_with("tune") => "--train x --output y",
            _ => "--train x --model y",
        };
        for (option, value) in
            [("threads", "1"), ("seed", "3"), ("max-memory", "1GiB"), ("json", ""), ("progress", "lines")]
        {
            let outcome = folder.xc(&format!("{command} {rest} --{option} {value}"));
            let refused =
                format!("--{option} {value}").trim_end().to_owned() + &format!(": `xc {command}` has no use for it");
            let is_refused = outcome.stderr.contains(&refused);
            let is_taken = listed.iter().any(|other| other == option) || ["threads", "seed"].contains(&option);
            assert_eq!(is_refused, !is_taken, "{command} --{option}: {outcome:?}");
            assert!(!is_refused || outcome.code == 2, "{outcome:?}");
        }
    }
    folder.write("o.toml", "json = true\n");
    folder
        .xc("convert --from npz x --to xc-text y --config o.toml")
        .refused(2, "o.toml: --json: `xc convert` has no use for it");
    let outcome = folder.xc("convert --from npz x --to xc-text y --device cpu");
    assert!(outcome.code == 2 && outcome.stderr.contains("unexpected argument '--device'"), "{outcome:?}");
    let outcome = folder.xc("predict --model m --input x --device gpu");
    assert!(outcome.code == 2 && outcome.stderr.contains("expected cpu, cuda, cuda:N or auto"), "{outcome:?}");
}

#[test]
fn a_program_without_kernels_says_so_where_a_card_is_asked_for() {
    let Some(folder) = Folder::of_default_program() else { return };
    folder.ok("generate --instances 60 --features 50 --labels 8 --no-text --no-names --output d");
    folder.ok("train tree --train d/train.txt --model m");
    let predict = "predict --model m --input d/test.txt";
    folder
        .xc(&format!("{predict} --device cuda"))
        .refused(3, "--device cuda: this program was built without CUDA (feature cuda of xc-cli)");
    assert_eq!(folder.ok(&format!("{predict} --device auto")), folder.ok(predict));
}
