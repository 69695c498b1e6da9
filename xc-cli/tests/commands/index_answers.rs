//! What an index answers, and what it says of that: far from the origin, for fewer answers than it was fitted for, of
//! vectors without a length, and after damage.

use crate::program::{Folder, json, npy, run};
use std::collections::HashSet;

/// Numbers that look like independent ones, about normal.
fn value(seed: usize, row: usize, column: usize) -> f32 {
    let mut sum = 0.0;
    for turn in 0..6u64 {
        let mut at = (seed as u64) << 40 ^ (row as u64) << 16 ^ (column as u64) << 3 ^ turn;
        at = (at ^ at >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        at = (at ^ at >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum += ((at ^ at >> 31) >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
    }
    1.4 * sum
}

fn answers(text: &str) -> Vec<Vec<u32>> {
    let row = |pair: &str| pair.split(':').next().unwrap().parse().unwrap();
    text.lines().map(|line| line.split(' ').filter(|pair| !pair.is_empty()).map(row).collect()).collect()
}

/// In f64, one after the other.
fn by_hand(metric: &str, rows: &[Vec<f32>], query: &[f32], k: usize) -> Vec<u32> {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let distance =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>();
    let score = |row: &[f32]| match metric {
        "l2" => -distance(query, row),
        "ip" => product(query, row),
        _ => product(query, row) / (product(query, query) * product(row, row)).sqrt(),
    };
    let mut all: Vec<(f64, u32)> = rows.iter().zip(0..).map(|(row, label)| (score(row), label)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(k).map(|pair| pair.1).collect()
}

fn share(found: &[Vec<u32>], truth: &[Vec<u32>]) -> f64 {
    let hits = |(found, truth): (&Vec<u32>, &Vec<u32>)| {
        let found: HashSet<u32> = found.iter().copied().collect();
        truth.iter().filter(|label| found.contains(label)).count()
    };
    let n: usize = found.iter().zip(truth).map(hits).sum();
    n as f64 / truth.iter().map(Vec::len).sum::<usize>() as f64
}

#[test]
fn exact_answers_and_reported_recall_are_those_of_double_precision() {
    let shifted = |offset: f32, column_offset: f32, scale: f32| {
        move |seed: usize, row: usize, column: usize| {
            (offset + value(seed, row, column) + if column == 0 { column_offset } else { 0.0 }) * scale
        }
    };
    for (offset, column_offset, scale) in [
        (0.0, 0.0, 1.0),
        (1e4, 0.0, 1.0),
        (1e5, 0.0, 1.0),
        (0.0, 2e4, 1.0),
        (0.0, 0.0, 1e-24),
        (0.0, 0.0, 1e-40),
        (3e3, 0.0, 1e12),
    ] {
        let of = shifted(offset, column_offset, scale);
        let folder = Folder::new();
        folder.write("rows.npy", npy(600, 8, |row, column| of(1, row, column)));
        folder.write("queries.npy", npy(40, 8, |row, column| of(2, row, column)));
        let rows: Vec<Vec<f32>> = (0..600).map(|row| (0..8).map(|column| of(1, row, column)).collect()).collect();
        for metric in ["l2", "cosine", "ip"] {
            let query = |row: usize| (0..8).map(|column| of(2, row, column)).collect::<Vec<f32>>();
            let truth: Vec<Vec<u32>> = (0..40).map(|row| by_hand(metric, &rows, &query(row), 10)).collect();
            let what = format!("{metric}, {offset} {column_offset} {scale}");
            folder.ok(&format!("index build --vectors rows.npy --metric {metric} --output ix"));
            let search = "index search --index ix --queries queries.npy";
            assert_eq!(answers(&folder.ok(&format!("{search} --exact"))), truth, "{what}");
            let found = share(&answers(&folder.ok(search)), &truth);
            assert!(found >= 0.93, "{found} found: {what}");
            let narrow = answers(&folder.ok(&format!("{search} --search-width -0.3")));
            let told =
                json(&folder.ok("index evaluate --index ix --queries queries.npy --search-width -0.3 --runs 1 --json"));
            let recall = told["recall"].as_f64().unwrap();
            assert!((recall - share(&narrow, &truth)).abs() < 0.01, "{told}: {what}");
        }
    }
}

#[test]
fn fewer_answers_than_an_index_was_fitted_for_are_found_as_surely() {
    let folder = Folder::new();
    folder.write("queries.npy", npy(150, 16, |row, column| value(2, row, column)));
    for n in [40, 200, 700, 2600] {
        folder.write("rows.npy", npy(n, 16, |row, column| value(1, row, column)));
        for metric in ["l2", "cosine", "ip"] {
            let told =
                json(&folder.ok(&format!("index build --vectors rows.npy --metric {metric} --output ix --json")));
            assert!(n > 2000 || told["scan"] == true, "{told}");
            for k in [1, 2, 5, 10] {
                let search = format!("index search --index ix --queries queries.npy --top-k {k}");
                let truth = answers(&folder.ok(&format!("{search} --exact")));
                let found = share(&answers(&folder.ok(&search)), &truth);
                let error = (0.95f64 * 0.05 / 150.0).sqrt();
                assert!(found >= 0.95 - 2.0 * error, "{n} rows, {metric}: {found} of the {k} best");
            }
        }
    }
    let said = run(&mut folder.command("index build --vectors queries.npy --metric l2 --output ix"));
    assert!(said.stderr.contains("a search is a scan"), "{}", said.stderr);
}

#[test]
fn queries_of_zeros_are_counted_and_stop_no_others() {
    let folder = Folder::new();
    folder.write("rows.npy", npy(300, 8, |row, column| value(1, row, column)));
    let zeros = [0, 7, 8, 39];
    let query = |row: usize, column| if zeros.contains(&row) { 0.0 } else { value(2, row, column) };
    folder.write("queries.npy", npy(40, 8, query));
    let text = |n: usize, of: &dyn Fn(usize, usize) -> f32| {
        let row = |row: usize| (0..8).map(|c| format!(" {c}:{}", of(row, c))).collect::<String>();
        format!("{n} 8 1\n{}\n", (0..n).map(row).collect::<Vec<_>>().join("\n"))
    };
    folder.write("rows.txt", text(300, &|row, column| value(1, row, column)));
    let sparse = text(40, &query).replace(" 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0", " ");
    folder.write("queries.txt", sparse);
    for (rows, queries, of_fit) in
        [("rows.npy", "queries.npy", "--fit-queries queries.npy"), ("rows.txt", "queries.txt", "")]
    {
        folder.ok(&format!("index build --vectors {rows} --metric cosine --output ix {of_fit}"));
        for exact in ["", "--exact"] {
            let search = format!("index search --index ix --queries {queries} --top-k 3 {exact}");
            let told = run(&mut folder.command(&search));
            assert_eq!(told.code, 0, "{}", told.stderr);
            assert!(told.stderr.contains("4 queries of zeros have no direction"), "{}", told.stderr);
            for (row, found) in answers(&told.stdout).iter().enumerate() {
                assert_eq!(found.len(), if zeros.contains(&row) { 0 } else { 3 }, "{rows}, {row}");
            }
        }
        let told = json(&folder.ok(&format!("index evaluate --index ix --queries {queries} --runs 1 --json")));
        assert_eq!(told["queries"], 40, "{told}");
    }
}

#[test]
fn a_score_of_zero_has_no_sign_and_no_answers_are_not_asked_for() {
    let folder = Folder::new();
    folder.write("rows.npy", npy(9, 2, |row, column| if row % 2 == column { row as f32 } else { 0.0 }));
    for metric in ["l2", "ip", "cosine"] {
        folder.ok(&format!("index build --vectors rows.npy --metric {metric} --output ix"));
        for exact in ["", "--exact"] {
            let found = folder.ok(&format!("index search --index ix --queries rows.npy {exact}"));
            assert!(!found.split([' ', '\n']).any(|pair| pair.ends_with(":-0")), "{metric}: {found}");
        }
        folder
            .xc("index search --index ix --queries rows.npy --top-k 0")
            .refused(2, "--top-k 0: at least 1 is expected");
    }
}

#[test]
fn an_unknown_file_of_vectors_is_told_what_is_read() {
    let folder = Folder::new();
    folder.write("rows.i8bin", [2u8, 0, 0, 0, 2, 0, 0, 0, 1, 2, 3, 4]);
    folder.write("rows.npy", npy(9, 2, |row, column| value(1, row, column)));
    folder.ok("index build --vectors rows.npy --metric l2 --output ix");
    let expected = "rows.i8bin: format not recognised; vectors (npy, fvecs, bvecs, ivecs, fbin or u8bin, by the file's name) \
                    or sparse rows (xc, svmlight or npz) are expected";
    folder.xc("index build --vectors rows.i8bin --metric l2 --output other").refused(2, expected);
    folder.xc("index search --index ix --queries rows.i8bin").refused(2, expected);
    let fvecs = |row: usize| [2i32.to_le_bytes(), (row as f32).to_le_bytes(), 1f32.to_le_bytes()].concat();
    folder.write("ROWS.FVECS", (0..4).flat_map(fvecs).collect::<Vec<u8>>());
    folder.ok("index build --vectors ROWS.FVECS --metric l2 --output other");
}

/// Numbers of a fit that no fit finds are refused where an index is opened, or the index is left out.
#[test]
fn damaged_numbers_of_a_fit_are_refused() {
    let folder = Folder::new();
    folder.write("rows.npy", npy(60, 8, |row, column| value(1, row, column)));
    folder.ok("index build --vectors rows.npy --metric l2 --output ix");
    folder.ok("generate --instances 200 --test-instances 40 --features 100 --labels 50 --output d");
    folder.ok("train lns --train d/train.txt --network.widths 8 --epochs 1 --model m");
    folder.ok("index build --model m");
    let damages = [("width", "-8.5"), ("width", "-1"), ("k", "0"), ("recall", "1.5"), ("target", "-0.5")];
    for (index, search) in [
        ("ix", "index search --index ix --queries rows.npy"),
        ("m/index", "predict --model m --input d/test.txt --output -"),
    ] {
        let file = format!("{index}/config.json");
        let sound = folder.read(&file);
        for (name, number) in damages {
            let mut config = json(&sound);
            config["parameters"]["fitted"][name] = json(number);
            folder.write(&file, config.to_string());
            let told = run(&mut folder.command(search));
            let is_refused =
                told.code == 2 && index == "ix" || told.code == 0 && told.stderr.contains("does not answer");
            assert!(is_refused && told.stderr.contains("that no fit finds"), "{name}: {}", told.stderr);
            let of = if index == "ix" { "ix" } else { "m" };
            let told = folder.xc(&format!("inspect --verify {of}"));
            assert_eq!(told.code, 2, "{}", told.stderr);
        }
        folder.write(&file, sound);
    }
}
