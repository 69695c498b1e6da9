//! `--device`: the program with a driver that runs kernels on the CPU, and with none.

#[path = "commands/program.rs"]
mod program;

use program::{Folder, Outcome, json, npy, run};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use xc_kernels::Emulated;

/// Folder of the emulated driver, which is built by the first call.
fn driver() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        drop(Emulated::hold());
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/emulated/target/release")
    })
}

/// A command that finds the driver of a folder, and no other before it.
fn with(folder: &Folder, driver: &Path, arguments: &str) -> Command {
    let mut command = folder.command(arguments);
    command.env("LD_LIBRARY_PATH", driver);
    command
}

fn on_card(folder: &Folder, arguments: &str) -> Outcome {
    run(&mut with(folder, driver(), arguments))
}

/// Instances of 60 features and 40 labels, and others of the same kind.
fn data(folder: &Folder) {
    instances(folder, "train.txt", 0..80);
    instances(folder, "other.txt", 80..119);
}

fn instances(folder: &Folder, name: &str, numbers: Range<u32>) {
    let mut text = format!("{} 60 40\n", numbers.len());
    for i in numbers {
        let labels: Vec<String> = (0..1 + i % 3).map(|at| ((i * 7 + at * 11) % 40).to_string()).collect();
        // The first label shows.
        let shows = i * 7 % 40;
        let features = (0..60).filter(|&f| f == shows || f >= 40 && (f * 13 + i * 7) % 17 < 3);
        let features = features.map(|f| format!(" {f}:{}", 1 + (f + i) % 7));
        text += &format!("{}{}\n", labels.join(","), features.collect::<String>());
    }
    folder.write(name, text);
}

/// What a command answers is the same with both.
#[track_caller]
fn assert_same(folder: &Folder, arguments: &str) {
    let on_cpu = folder.ok(arguments);
    let on_device = on_card(folder, &format!("{arguments} --device cuda --quiet"));
    assert_eq!((on_device.code, &*on_device.stderr), (0, ""), "{arguments}");
    assert!(on_device.stdout == on_cpu, "{arguments}: other bytes");
    assert!(!on_cpu.trim().is_empty());
}

const SMALL: &str = "--epochs 2 --threads 1 --network.widths 8";

#[test]
fn trees_predict_the_same_bytes() {
    let folder = Folder::new();
    data(&folder);
    for (name, options) in [("one", ""), ("many", "--trees 3")] {
        folder.ok(&format!("train tree --train train.txt --model {name} --threads 1 {options}"));
        let predict = format!("predict --model {name} --input train.txt");
        let excluded = "--exclude train.txt --exclude-own-labels --top-k 9 --output-format jsonl";
        for more in ["", "--beam 1 --top-k 40", excluded] {
            assert_same(&folder, &format!("{predict} {more}"));
        }
    }
    folder.ok("convert --from xc one --to xc half --precision f16");
    assert_same(&folder, "predict --model half --input train.txt --top-k 40");
    folder.ok("calibrate --model one --validation other.txt");
    for more in ["", "--threshold micro", "--raw-scores"] {
        assert_same(&folder, &format!("predict --model one --input train.txt {more}"));
    }
}

#[test]
fn networks_and_what_is_made_of_them_predict_the_same_bytes() {
    let folder = Folder::new();
    data(&folder);
    for (kind, more) in
        [("dense", "--wide on"), ("uniform", "--network.intermediate 16 --head.fan-in 4"), ("lns", ""), ("astra", "")]
    {
        folder.ok(&format!("train {kind} --train train.txt --model {kind} {SMALL} {more}"));
        assert_same(&folder, &format!("predict --model {kind} --input train.txt --top-k 40"));
    }
    assert_same(&folder, "predict --model dense --input train.txt --top-k 3 --min-score -20 --post-processor noop");
    folder.write("some.txt", "3\n17\n39\n");
    assert_same(&folder, "predict --model uniform --input train.txt --only-labels some.txt");
    folder.ok("train tree --train train.txt --model tree --threads 1");
    folder.ok("blend tree dense --validation other.txt --output blend --threads 1");
    assert_same(&folder, "predict --model blend --input train.txt --top-k 12");
}

#[test]
fn mach_models_predict_the_same_bytes_by_each_decoder() {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train mach --train train.txt --model mach --repetitions 3 --buckets 8 --epochs 2 --threads 1");
    for decoder in ["mean", "min", "median"] {
        assert_same(&folder, &format!("predict --model mach --input train.txt --top-k 40 --decoder {decoder}"));
    }
    let early = on_card(&folder, "predict --model mach --input train.txt --max-labels 9 --device cuda");
    early.refused(2, "--device cuda: --max-labels of a model of kind \"mach\" stays on the CPU");
}

#[test]
fn streams_and_indexes_answer_the_same_bytes() {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train tree --train train.txt --model tree --threads 1");
    let lines: String = folder
        .read("train.txt")
        .lines()
        .skip(1)
        .fold(String::new(), |text, line| text + line.split_once(' ').map_or("", |(_, features)| features) + "\n");
    let stream = "predict --model tree --input - --top-k 7";
    let on_cpu = folder.answered(stream, &lines);
    folder.write("lines.txt", &lines);
    let input = std::fs::File::open(folder.path("lines.txt")).unwrap();
    let on_device = run(with(&folder, driver(), &format!("{stream} --device cuda")).stdin(input));
    assert_eq!((on_device.code, on_device.stdout), (0, on_cpu.stdout));

    folder.write("rows.npy", npy(300, 12, |i, j| ((i * 37 + j * 11) % 29) as f32 / 7.0 - 2.0));
    folder.write("queries.npy", npy(9, 12, |i, j| ((i * 13 + j * 17) % 31) as f32 / 9.0 - 1.5));
    folder.ok("index build --vectors rows.npy --metric l2 --output my.index --threads 1");
    let search = "index search --index my.index --queries queries.npy --top-k 10";
    assert_same(&folder, &format!("{search} --exact"));
    folder.write("some.txt", "3\n17\n39\n");
    let refused = on_card(&folder, &format!("{search} --search-width 0.1 --device cuda"));
    refused.refused(2, "--device cuda: a search of the graph stays on the CPU, other than --exact and --cells");
    for metric in ["l2", "cosine", "ip"] {
        folder.ok(&format!("index build --vectors rows.npy --metric {metric} --cells 9 --output my.cells --threads 1"));
        for cells in [1, 3, 20] {
            assert_same(&folder, &search.replace("my.index", &format!("my.cells --cells {cells}")));
        }
    }
    let proven = search.replace("my.index", "my.cells --cells 2 --prove 300");
    assert_eq!(on_card(&folder, &format!("{proven} --quiet --device cuda")).stdout, folder.ok(&proven));
    let usual = search.replace("my.index", "my.cells");
    let of_filter = on_card(&folder, &format!("{usual} --filter some.txt --device cuda"));
    of_filter.refused(2, "--device cuda: --filter: a search among some rows stays on the CPU, unless it is --exact");
    let chosen = on_card(&folder, &format!("{usual} --filter some.txt --device auto --quiet"));
    assert_eq!((chosen.code, chosen.stdout), (0, folder.ok(&format!("{usual} --filter some.txt"))));
    folder.write("nan.npy", npy(2, 12, |i, _| if i == 1 { f32::NAN } else { 1.0 }));
    let without = "index search --index my.cells --cells 2 --queries nan.npy";
    let (cpu, card) = (folder.xc(without), on_card(&folder, &format!("{without} --device cuda")));
    assert_eq!((cpu.code, &cpu.stderr), (card.code, &card.stderr));
    assert!(cpu.code == 2 && cpu.stderr.contains("nan.npy"), "{}", cpu.stderr);
    let measured = on_card(
        &folder,
        "index evaluate --index my.index --queries queries.npy --runs 1 --search-width 16 --device cuda --json --quiet",
    );
    assert_eq!((measured.code, &*measured.stderr), (0, ""));
    assert!(json(&measured.stdout)["recall"].as_f64().unwrap() > 0.9, "{}", measured.stdout);

    let bench = "bench predict --model tree --input train.txt --repeat 1 --json --quiet --device cuda";
    let timed = on_card(&folder, &format!("{bench} --mode batch"));
    assert_eq!((timed.code, &*timed.stderr), (0, ""));
    assert!(json(&timed.stdout)["mean_ms"].as_f64().unwrap() > 0.0);
    let online = "--mode online asks one query after the other, which stays on the CPU; --mode batch is expected";
    on_card(&folder, bench).refused(2, &format!("--device cuda: {online}"));
}

/// Makes a shared library of C.
fn library(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let (source, library) = (folder.path(&format!("{name}.c")), folder.path(name));
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    assert!(built.unwrap().success());
    library
}

/// What the emulated driver says of itself and of its card.
#[derive(Clone, Copy)]
struct Card {
    capability: (u32, u32),
    memory: u64,
    n_cards: u32,
    driver_version: u32,
}

const GOOD: Card = Card { capability: (8, 0), memory: 1 << 30, n_cards: 1, driver_version: 13000 };

impl Card {
    /// `xc ARGUMENTS` with it: a library that is loaded before all others loads the driver and sets it so.
    fn asked(self, folder: &Folder, arguments: &str) -> Outcome {
        let Self { capability: (major, minor), memory, n_cards, driver_version } = self;
        let driver = driver();
        let text = format!(
            r#"#include <dlfcn.h>
            __attribute__((constructor)) static void set_device(void) {{
                void (*set)(unsigned, unsigned, unsigned long long, unsigned, unsigned);
                void* driver = dlopen("{}/libcuda.so", RTLD_NOW | RTLD_GLOBAL);
                if (!driver) __builtin_trap();
                *(void**)&set = dlsym(driver, "xc_emulated_set_device");
                set({major}, {minor}, {memory}ull, {n_cards}, {driver_version});
            }}"#,
            driver.display()
        );
        let first = library(folder, "first.so", &text);
        run(with(folder, driver, arguments).env("LD_PRELOAD", first))
    }
}

/// `--device cuda` is refused with exit code 3 and one line; `auto` says the same and answers on the CPU.
#[track_caller]
fn assert_missing(is_said: impl Fn(&str) -> bool, asked: impl Fn(&Folder, &str) -> Outcome) {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train tree --train train.txt --model tree --threads 1");
    assert_missing_of(&folder, "predict --model tree --input train.txt", is_said, asked);
}

#[track_caller]
fn assert_missing_of(
    folder: &Folder,
    predict: &str,
    is_said: impl Fn(&str) -> bool,
    asked: impl Fn(&Folder, &str) -> Outcome,
) {
    let expected = folder.ok(predict);
    let refused = asked(folder, &format!("{predict} --device cuda"));
    assert_eq!((refused.code, &*refused.stdout), (3, ""), "{}", refused.stderr);
    let said = refused.stderr.strip_prefix("xc: error: --device cuda: ").and_then(|text| text.strip_suffix('\n'));
    assert!(said.is_some_and(|text| !text.contains('\n') && is_said(text)), "{}", refused.stderr);
    let auto = asked(folder, &format!("{predict} --device auto"));
    assert_eq!((auto.code, &*auto.stdout), (0, &*expected), "{}", auto.stderr);
    let says_so = |line: &str| line.strip_prefix("xc: --device auto: the CPU answers: ").is_some_and(&is_said);
    assert!(auto.stderr.lines().any(says_so), "{}", auto.stderr);
}

#[test]
fn a_machine_without_a_driver_is_told() {
    let libraries = Command::new("ldconfig").arg("-p").output();
    let has_driver = libraries.is_ok_and(|names| String::from_utf8_lossy(&names.stdout).contains("libcuda.so"));
    let missing = "no CUDA driver: the library libcuda is not installed";
    let asked = |folder: &Folder, arguments: &str| {
        std::fs::create_dir_all(folder.path("nothing")).unwrap();
        run(&mut with(folder, &folder.path("nothing"), arguments))
    };
    if has_driver {
        let folder = Folder::new();
        data(&folder);
        folder.ok("train tree --train train.txt --model tree --threads 1");
        let said = asked(&folder, "predict --model tree --input train.txt --device cuda").stderr;
        assert!(!said.contains(missing), "{said}");
        return;
    }
    assert_missing(|text| text == missing, asked);
}

#[test]
fn a_library_that_is_no_driver_is_told() {
    let missing = "the CUDA driver's library has no function cuDriverGetVersion: it is damaged, or not NVIDIA's";
    let asked = |folder: &Folder, arguments: &str| {
        library(folder, "fake/libcuda.so", "int nothing_of_cuda(void) { return 0; }\n");
        run(&mut with(folder, &folder.path("fake"), arguments))
    };
    assert_missing(|text| text == missing, asked);
}

#[test]
fn a_driver_without_a_card_is_told() {
    let card = Card { n_cards: 0, ..GOOD };
    let missing = "there is a CUDA driver, but no card that it can use";
    assert_missing(|text| text == missing, |folder, arguments| card.asked(folder, arguments));
}

#[test]
fn an_old_driver_is_told() {
    let card = Card { driver_version: 11080, ..GOOD };
    let missing = "the CUDA driver is of version 11.8, at least 12.0 expected";
    assert_missing(|text| text == missing, |folder, arguments| card.asked(folder, arguments));
}

#[test]
fn an_old_card_is_told() {
    let card = Card { capability: (7, 5), ..GOOD };
    let is_said = |text: &str| {
        text.starts_with("CUDA device \"") && text.ends_with("\" has compute capability 7.5, at least 8.0 expected")
    };
    assert_missing(is_said, |folder, arguments| card.asked(folder, arguments));
}

#[test]
fn a_card_with_too_little_memory_is_told_with_the_numbers() {
    let card = Card { memory: 4096, ..GOOD };
    let is_said = |text: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        let ["the", "device", "has", "4096", "bytes", "free,", needed, "expected,", "of", "these", largest, "for", ..] =
            words[..]
        else {
            return false;
        };
        let [needed, largest] = [needed, largest].map(|number| number.parse::<u64>().unwrap_or(0));
        needed > 4096 && 0 < largest && largest <= needed
    };
    assert_missing(is_said, |folder, arguments| card.asked(folder, arguments));
}

#[test]
fn a_kind_without_kernels_is_told() {
    let folder = Folder::new();
    let line = |i: usize| (0..7).map(|at| format!("w{}", (i * 5 + at * i) % 23)).collect::<Vec<_>>().join(" ") + "\n";
    folder.write("text.txt", (0..200).map(line).collect::<String>());
    folder.write("words.txt", "w1\nw7\n");
    folder.ok("train skipgram --train text.txt --model words --network.widths 8 --epochs 1 --threads 1");
    let missing = "models of kind \"skipgram\" are answered by the CPU alone";
    let predict = "predict --model words --input words.txt";
    assert_missing_of(&folder, predict, |text| text == missing, |folder, arguments| GOOD.asked(folder, arguments));
}

#[test]
fn more_than_a_block_has_room_for_is_the_cpus_and_said() {
    let folder = Folder::new();
    folder.ok("generate --model large --output queries --labels 20000 --features 500 --tree.weights 2 --query-features 5 --test-instances 2");
    let predict = "predict --model large --input queries/test.txt --top-k 20000 --beam 1000";
    let expected = folder.ok(predict);
    for device in ["cuda", "auto"] {
        let got = on_card(&folder, &format!("{predict} --device {device}"));
        assert_eq!((got.code, got.stdout == expected), (0, true), "{}", got.stderr);
        let begin = format!("xc: --device {device}: batches that have no room there are the CPU's: xc_tree_");
        let end = " bytes of shared memory in a block, at most ";
        let is_said = got
            .stderr
            .lines()
            .any(|line| line.starts_with(&begin) && line.contains(end) && line.ends_with(" expected"));
        assert!(is_said, "{}", got.stderr);
    }
    assert_same(&folder, "predict --model large --input queries/test.txt --top-k 2000");
}

#[test]
fn devices_and_options_that_are_not_there_are_refused() {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train tree --train train.txt --model tree --threads 1");
    let predict = "predict --model tree --input train.txt";
    on_card(&folder, &format!("{predict} --device cuda:9"))
        .refused(3, "--device cuda:9: no CUDA device 9; there are 1, counted from 0");
    folder.write("some.txt", "3\n17\n");
    on_card(&folder, &format!("{predict} --only-labels some.txt --device cuda"))
        .refused(2, "--device cuda: --only-labels of a model of kind \"tree\" stays on the CPU");
    let said = folder.xc(&format!("{predict} --device gpu"));
    assert!(said.code == 2 && said.stderr.contains("expected cpu, cuda, cuda:N or auto"), "{}", said.stderr);
}
