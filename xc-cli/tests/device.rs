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
fn same(folder: &Folder, arguments: &str) {
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
            same(&folder, &format!("{predict} {more}"));
        }
    }
    folder.ok("convert --from xc one --to xc half --precision f16");
    same(&folder, "predict --model half --input train.txt --top-k 40");
    folder.ok("calibrate --model one --validation other.txt");
    for more in ["", "--threshold micro", "--raw-scores"] {
        same(&folder, &format!("predict --model one --input train.txt {more}"));
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
        same(&folder, &format!("predict --model {kind} --input train.txt --top-k 40"));
    }
    same(&folder, "predict --model dense --input train.txt --top-k 3 --min-score -20 --post-processor noop");
    folder.write("some.txt", "3\n17\n39\n");
    same(&folder, "predict --model uniform --input train.txt --only-labels some.txt");
    folder.ok("train tree --train train.txt --model tree --threads 1");
    folder.ok("blend tree dense --validation other.txt --output blend --threads 1");
    same(&folder, "predict --model blend --input train.txt --top-k 12");
}

#[test]
fn mach_models_predict_the_same_bytes_by_each_decoder() {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train mach --train train.txt --model mach --repetitions 3 --buckets 8 --epochs 2 --threads 1");
    for decoder in ["mean", "min", "median"] {
        same(&folder, &format!("predict --model mach --input train.txt --top-k 40 --decoder {decoder}"));
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
    same(&folder, &format!("{search} --exact"));
    let refused = on_card(&folder, &format!("{search} --device cuda"));
    refused.refused(2, "--device cuda: a search without --exact stays on the CPU");
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

#[test]
fn what_is_missing_is_named_and_auto_stays_on_the_cpu() {
    let folder = Folder::new();
    data(&folder);
    folder.ok("train tree --train train.txt --model tree --threads 1");
    let predict = "predict --model tree --input train.txt";
    let expected = folder.ok(predict);

    // A library that is no driver.
    folder.write("empty.c", "int nothing_of_cuda(void) { return 0; }\n");
    let fake = folder.path("fake");
    std::fs::create_dir(&fake).unwrap();
    let library = fake.join("libcuda.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(folder.path("empty.c")).status();
    assert!(built.unwrap().success());
    let missing = "the CUDA driver's library has no function cuDriverGetVersion: it is damaged, or not NVIDIA's";
    let ask = |device: &str| run(&mut with(&folder, &fake, &format!("{predict} --device {device}")));
    ask("cuda").refused(3, &format!("--device cuda: {missing}"));
    let auto = ask("auto");
    assert_eq!((auto.code, &*auto.stdout), (0, &*expected));
    let said = format!("xc: --device auto: the CPU answers: {missing}\n");
    assert!(auto.stderr.contains(&said), "{}", auto.stderr);

    on_card(&folder, &format!("{predict} --device cuda:9"))
        .refused(3, "--device cuda:9: no CUDA device 9; there are 1, counted from 0");
    folder.write("some.txt", "3\n17\n");
    on_card(&folder, &format!("{predict} --only-labels some.txt --device cuda"))
        .refused(2, "--device cuda: --only-labels of a model of kind \"tree\" stays on the CPU");
    let said = folder.xc(&format!("{predict} --device gpu"));
    assert!(said.code == 2 && said.stderr.contains("expected cpu, cuda, cuda:N or auto"), "{}", said.stderr);
}
