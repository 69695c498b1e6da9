//! Trains on an XC-repository text file, predicts with a beam of 10 in plain code and prints quality and time.
//!
//! `train_bench TRAIN TEST [preset=parabel] [threads=2] [name=value ...]`; names are dotted parameters, for example
//! `cluster.branching=16`.
#![allow(clippy::print_stdout)] // an example talks to its user

use rayon::prelude::*;
use std::collections::HashSet;
use std::time::Instant;
use xc_sparse::chunked::ChunkRows;
use xc_sparse::{CsrMatrix, LabelRows, Rows, SparseRow};
use xc_tree::{Event, Observer, PostProcessor, Preset, TrainInput, TreeParams, TreeParts, train_trees};

struct Clock(Instant, f64);

impl Observer for Clock {
    fn event(&self, event: Event) {
        if !matches!(event, Event::Rankers { .. }) {
            println!("{:8.2} s  {:8.2} cpu s  {event:?}", self.0.elapsed().as_secs_f64(), cpu_seconds() - self.1);
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (train, test) = (args.next().expect("TRAIN"), args.next().expect("TEST"));
    let rest: Vec<(String, String)> =
        args.map(|a| a.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).expect("name=value")).collect();
    let find = |name: &str| rest.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let preset: Preset = find("preset").unwrap_or("default").parse().expect("a preset");
    let mut json = serde_json::to_value(preset.params()).expect("parameters are JSON");
    for (name, value) in rest.iter().filter(|(n, _)| !["preset", "threads", "beam"].contains(&n.as_str())) {
        let path = format!("/{}", name.replace('.', "/"));
        let slot = json.pointer_mut(&path).unwrap_or_else(|| panic!("no parameter {name}"));
        *slot = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.clone()));
    }
    let params: TreeParams = serde_json::from_value(json).expect("valid parameters");
    let threads = find("threads").map_or(2, |t| t.parse().expect("a number"));
    let beam = find("beam").map_or(10, |t| t.parse().expect("a number"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("a thread pool");

    let (x, y) = read(&train);
    let (tx, ty) = read(&test);
    let before = peak_mib();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let trees = train_trees(&TrainInput::new(x.view(), &y), &params, &Clock(start, cpu), None).expect("a tree");
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let nnz: Vec<usize> = (0..trees[0].levels.len())
        .map(|l| trees.iter().map(|t| t.levels[l].iter().map(ChunkRows::nnz).sum::<usize>()).sum())
        .collect();
    let nodes: Vec<usize> = (0..nnz.len()).map(|l| trees[0].topology.n_nodes(l)).collect();
    println!(
        "wall {wall:.2} s  cpu {cpu:.2} s  peak {} MiB (data {before})  nodes {nodes:?}  weights {nnz:?}",
        peak_mib()
    );
    let start = Instant::now();
    let rows = Rows::new(tx.view());
    let predicted: Vec<Vec<u32>> =
        (0..rows.len()).into_par_iter().map(|i| predict(&trees, rows.row(i), beam, 5)).collect();
    print!("{:.3} ms/query  ", start.elapsed().as_secs_f64() * 1e3 / rows.len() as f64);
    report(&predicted, &y, &ty);
}

fn predict(trees: &[TreeParts], row: SparseRow<'_>, beam: usize, k: usize) -> Vec<u32> {
    let post = PostProcessor::Hinge { p: 3 };
    let mut all: Vec<(u32, f32)> = Vec::new();
    for tree in trees {
        let mut nodes = vec![(0u32, 0.0f32)];
        let depth = tree.levels.len();
        for (level, chunks) in tree.levels.iter().enumerate() {
            let mut next = Vec::new();
            for &(p, score) in &nodes {
                let chunk = &chunks[p as usize];
                let mut margins = chunk.bias.clone();
                let mut from = 0;
                for (f, x) in row.iter() {
                    let at = from + chunk.features[from..].partition_point(|&g| g < f);
                    from = at;
                    if chunk.features.get(at) == Some(&f) {
                        for e in chunk.row_ptr[at] as usize..chunk.row_ptr[at + 1] as usize {
                            margins[chunk.columns[e] as usize] += x * chunk.values[e];
                        }
                    }
                }
                let first = tree.topology.boundaries(level)[p as usize];
                next.extend(margins.iter().enumerate().map(|(c, &m)| (first + c as u32, post.accumulate(score, m))));
            }
            next.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            if level + 1 < depth {
                next.truncate(beam);
            } else {
                next.truncate(beam.max(20));
            }
            nodes = next;
        }
        all.extend(nodes.iter().map(|&(leaf, s)| (tree.topology.labels()[leaf as usize], post.finish(s))));
    }
    all.sort_by_key(|e| e.0);
    let mut merged: Vec<(u32, f32)> = Vec::new();
    for (label, score) in all {
        match merged.last_mut() {
            Some(last) if last.0 == label => last.1 += score,
            _ => merged.push((label, score)),
        }
    }
    merged.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    merged.truncate(k);
    merged.into_iter().map(|e| e.0).collect()
}

fn report(predicted: &[Vec<u32>], train: &LabelRows, truth: &LabelRows) {
    let mut counts = vec![0usize; train.n_labels().max(truth.n_labels())];
    train.labels().iter().for_each(|&l| counts[l as usize] += 1);
    let (a, b) = (0.55f64, 1.5f64);
    let c = ((train.len() as f64).ln() - 1.0) * (b + 1.0).powf(a);
    let gain: Vec<f64> = counts.iter().map(|&n| 1.0 + c * (n as f64 + b).powf(-a)).collect();
    for k in [1, 3, 5] {
        let (mut hits, mut won, mut best) = (0usize, 0.0, 0.0);
        for (list, row) in predicted.iter().zip(truth.iter()) {
            let set: HashSet<u32> = row.iter().copied().collect();
            for l in list.iter().take(k).filter(|l| set.contains(l)) {
                hits += 1;
                won += gain[*l as usize];
            }
            let mut ideal: Vec<f64> = row.iter().map(|&l| gain[l as usize]).collect();
            ideal.sort_by(|x, y| y.total_cmp(x));
            best += ideal.iter().take(k).sum::<f64>();
        }
        print!("P@{k} {:.2} PSP@{k} {:.2}  ", 100.0 * hits as f64 / (k * predicted.len()) as f64, 100.0 * won / best);
    }
    println!();
}

fn read(path: &str) -> (CsrMatrix, LabelRows) {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let mut lines = text.lines();
    let head: Vec<usize> = lines.next().expect("a header").split(' ').map(|n| n.parse().expect("a number")).collect();
    let (mut indptr, mut indices, mut values, mut lists) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for line in lines.take(head[0]) {
        let (labels, features) = line.split_once(' ').unwrap_or((line, ""));
        lists.push(
            labels.split(',').filter(|l| !l.is_empty()).map(|l| l.parse().expect("a label")).collect::<Vec<u32>>(),
        );
        for pair in features.split_ascii_whitespace() {
            let (f, v) = pair.split_once(':').expect("feature:value");
            indices.push(f.parse().expect("a feature"));
            values.push(v.parse().expect("a value"));
        }
        indptr.push(indices.len());
    }
    let x = CsrMatrix::new((head[0], head[1]), indptr, indices, values);
    (x, LabelRows::from_lists(lists, head[2]).expect("labels in range"))
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat
        .rsplit(')')
        .next()
        .map_or(0, |rest| rest.split_ascii_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum());
    ticks as f64 / 100.0
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:")?.split_ascii_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}
