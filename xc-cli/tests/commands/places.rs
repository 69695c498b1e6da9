//! Places that models are read from and written to: links, leftovers, and what cannot be written.

use crate::program::{Folder, files, run};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use xc_store::atomic::{OutputFolder, WriteFileError};

const DATA: &str = "generate --instances 160 --test-instances 30 --features 80 --labels 20 --words 12 --output d";
const TRAIN: &str = "--train d/train.txt --validation-fraction 0.3";
const SMALL: &str = "--epochs 1 --network.widths 4";
const HELD: &str = "--validation d/train.txt --held-out";

/// Models in the folder `store`, with an index, members and a calibration.
fn models(folder: &Folder) {
    folder.ok(DATA);
    fs::create_dir(folder.path("store")).unwrap();
    folder.ok(&format!("train tree {TRAIN} --trees 1 --model store/tree"));
    folder.ok(&format!("train lns {TRAIN} {SMALL} --model store/lns"));
    folder.ok("index build --model store/lns");
    folder.ok(&format!("train mach {TRAIN} {SMALL} --buckets 8 --repetitions 2 --model store/mach"));
    folder.ok(&format!("blend store/tree store/lns {HELD} --rule reciprocal-ranks --output store/blend"));
    folder.ok(&format!("calibrate --model store/tree {HELD} --folds 2 --output store/calibrated"));
    fs::remove_dir_all(folder.path("store/calibrated.log")).unwrap();
}

const MODELS: [&str; 5] = ["tree", "lns", "mach", "blend", "calibrated"];

/// How the links of a model lead to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Links {
    RelativeFiles,
    AbsoluteFiles,
    /// Of a link to a file.
    Chained,
    /// Folders inside the model are links, files are not.
    Folders,
    /// The model's folder itself.
    Whole,
}

const LINKS: [Links; 5] = [Links::RelativeFiles, Links::AbsoluteFiles, Links::Chained, Links::Folders, Links::Whole];

/// Makes `to` a model of links to `from`; `back` leads from its parent to that of `from`.
fn link(from: &Path, to: &Path, links: Links, back: &Path) {
    if links == Links::Whole {
        return symlink(back.join(from.file_name().unwrap()), to).unwrap();
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        let relative = Path::new("..").join(back).join(from.parent().unwrap().file_name().unwrap()).join(&name);
        match (from.is_dir(), links) {
            (true, Links::Folders) => symlink(relative, to).unwrap(),
            (true, _) => {
                let back = Path::new("..").join(back).join(from.parent().unwrap().file_name().unwrap());
                link(&from, &to, links, &back);
            }
            (false, Links::RelativeFiles) => symlink(relative, to).unwrap(),
            (false, Links::AbsoluteFiles) => symlink(from, to).unwrap(),
            (false, Links::Chained) => {
                static LINKS: AtomicUsize = AtomicUsize::new(0);
                let place = to.ancestors().find(|folder| folder.ends_with("deep/er")).unwrap();
                let between = place.join(format!("link-{}", LINKS.fetch_add(1, Ordering::Relaxed)));
                symlink(from, &between).unwrap();
                symlink(between, to).unwrap();
            }
            (false, _) => drop(fs::copy(from, to).unwrap()),
        }
    }
}

/// Whether anything in a folder is a link.
fn has_links(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        let kind = entry.file_type().unwrap();
        kind.is_symlink() || kind.is_dir() && has_links(&entry.path())
    })
}

/// Commands that put a model's files into another one; `MODEL` stands for it.
const COPIES: [(&str, &[&str]); 5] = [
    ("calibrate --model MODEL --validation d/train.txt --held-out --folds 2 --output out", &MODELS),
    (
        "blend MODEL other --validation d/train.txt --held-out --rule reciprocal-ranks --output out",
        &["tree", "lns", "mach"],
    ),
    ("convert --from xc MODEL --to xc out --label-names names.txt", &MODELS),
    ("merge MODEL --output out", &["mach"]),
    ("index build --model MODEL --output out", &["lns"]),
];

#[test]
fn models_of_links_are_copied_as_those_of_files_are() {
    let folder = Folder::new();
    models(&folder);
    folder.write("names.txt", (0..20).map(|label| format!("label {label}\n")).collect::<String>());
    folder.ok(&format!("train tree {TRAIN} --trees 1 --seed 3 --model other"));
    fs::create_dir_all(folder.path("deep/er")).unwrap();
    for (command, kinds) in COPIES {
        for kind in kinds {
            let of = |model: &str| command.replace("MODEL", model);
            folder.ok(&of(&format!("store/{kind}")));
            let expected = files(&folder.path("out"));
            fs::remove_dir_all(folder.path("out")).unwrap();
            for links in LINKS {
                let model = format!("deep/er/{kind}");
                link(&folder.path("store").join(kind), &folder.path(&model), links, Path::new("../../store"));
                folder.ok(&of(&model));
                assert!(!has_links(&folder.path("out")), "{command}, {kind}, {links:?}");
                assert!(files(&folder.path("out")) == expected, "{command}, {kind}, {links:?}");
                fs::remove_dir_all(folder.path("out")).unwrap();
                let made = folder.path(&model);
                if links == Links::Whole { fs::remove_file(made) } else { fs::remove_dir_all(made) }.unwrap();
            }
        }
    }
    // What was linked from is as it was.
    for kind in MODELS {
        folder.ok(&format!("inspect store/{kind} --verify"));
    }
}

#[test]
fn a_model_of_links_is_replaced_and_what_the_links_lead_to_is_left_alone() {
    let folder = Folder::new();
    models(&folder);
    let before = files(&folder.path("store"));
    fs::create_dir_all(folder.path("deep/er")).unwrap();
    for links in [Links::RelativeFiles, Links::AbsoluteFiles, Links::Folders] {
        for (kind, change) in [
            ("tree", format!("train tree {TRAIN} --trees 1 --seed 1 --model")),
            ("lns", format!("calibrate {HELD} --folds 2 --model")),
            ("blend", format!("calibrate {HELD} --folds 2 --model")),
        ] {
            let model = format!("deep/er/{kind}");
            link(&folder.path("store").join(kind), &folder.path(&model), links, Path::new("../../store"));
            folder.ok(&format!("{change} {model}"));
            folder.ok(&format!("inspect {model} --verify"));
            assert!(!has_links(&folder.path(&model)), "{kind}, {links:?}");
            fs::remove_dir_all(folder.path(&model)).unwrap();
        }
        assert!(files(&folder.path("store")) == before, "{links:?}");
    }
}

#[test]
fn permissions_of_a_copy_are_not_those_of_the_model() {
    let folder = Folder::new();
    models(&folder);
    let mode = |path: &str| fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777;
    let set = |path: &str, mode| fs::set_permissions(folder.path(path), fs::Permissions::from_mode(mode)).unwrap();
    let calibrate = format!("calibrate --model store/tree {HELD} --folds 2 --output out");
    folder.ok(&calibrate);
    let file = "model.safetensors";
    set(&format!("store/tree/{file}"), 0o444);
    fs::remove_file(folder.path(&format!("out/{file}"))).unwrap();
    fs::copy(folder.path(&format!("store/tree/{file}")), folder.path(&format!("out/{file}"))).unwrap();
    set(&format!("out/{file}"), 0o640);
    folder.ok(&calibrate);
    assert_eq!((mode(&format!("store/tree/{file}")), mode(&format!("out/{file}"))), (0o444, 0o640));
    folder.ok("inspect out --verify");
}

/// Commands that save a model at `store/NAME`.
fn saves(kind: &str) -> Vec<String> {
    let calibrate = format!("calibrate --model store/{kind} {HELD} --folds 2");
    let convert = format!("convert --from xc other --to xc store/{kind}");
    let blend = format!("blend part other {HELD} --rule reciprocal-ranks --output store/{kind}");
    match kind {
        "tree" => vec![calibrate, format!("train tree {TRAIN} --trees 1 --model store/tree"), convert],
        "lns" => vec![calibrate, format!("train lns {TRAIN} {SMALL} --model store/lns"), convert],
        "mach" => vec![calibrate, "merge part --output store/mach".to_owned(), convert],
        _ => vec![calibrate, blend, convert],
    }
}

#[test]
fn leftovers_of_killed_writers_in_a_model_are_removed_by_the_next_save() {
    let folder = Folder::new();
    models(&folder);
    folder.ok(&format!("train tree {TRAIN} --trees 1 --seed 3 --model other"));
    folder.ok(&format!("train mach {TRAIN} {SMALL} --buckets 8 --repetitions 2 --model part"));
    let leave = |path: &str| {
        fs::create_dir_all(folder.path(path)).unwrap();
        fs::write(folder.path(path).join("model.safetensors"), "half").unwrap();
    };
    for kind in MODELS {
        for save in saves(kind) {
            leave(&format!("store/{kind}/.index.0123abcd.partial"));
            leave(&format!("store/{kind}/.index.ffffffff.partial/member-0"));
            leave(&format!("store/{kind}/.member-1.00000000.partial"));
            folder.write(&format!("store/{kind}/.config.json.00c0ffee.partial"), "{");
            for inside in ["index", "member-0", "member-1", "member-1/index"] {
                if folder.path(&format!("store/{kind}/{inside}")).is_dir() {
                    folder.write(&format!("store/{kind}/{inside}/.labels.txt.12345678.partial"), "half");
                }
            }
            folder.ok(&save);
            let left: Vec<String> =
                files(&folder.path("store")).into_keys().filter(|n| n.contains(".partial")).collect();
            assert!(left.is_empty(), "{save}: {left:?}");
            folder.ok(&format!("inspect store/{kind} --verify"));
        }
    }
    // Nor are they copied.
    for kind in ["lns", "blend"] {
        folder.ok(&saves(kind)[1]);
        leave(&format!("store/{kind}/.index.0123abcd.partial"));
        folder.ok(&format!("calibrate --model store/{kind} {HELD} --folds 2 --output copy"));
        assert!(!files(&folder.path("copy")).keys().any(|name| name.contains(".partial")));
        fs::remove_dir_all(folder.path("copy")).unwrap();
    }
}

#[test]
fn what_is_being_written_in_a_model_or_is_of_others_is_not_lost() {
    let folder = Folder::new();
    models(&folder);
    let save = &saves("tree")[1];
    let partial = "store/tree/.index.0123abcd.partial";
    fs::create_dir(folder.path(partial)).unwrap();
    let lock = fs::File::open(folder.path(partial)).unwrap();
    lock.lock().unwrap();
    let got = folder.xc(save);
    assert_eq!((got.code, got.stderr.lines().count()), (2, 1), "{got:?}");
    let why = "store/tree: a model folder in which \".index.0123abcd.partial\" is being written; expected a new path";
    assert!(got.stderr.contains(why), "{got:?}");
    assert!(folder.path(partial).is_dir());
    drop(lock);
    folder.ok(save);
    for foreign in
        [".index.0123ABCD.partial", ".index.123.partial", ".notes.0123abcd.partial", ".index.0123abcd", "notes"]
    {
        fs::create_dir(folder.path("store/tree").join(foreign)).unwrap();
        let refused = folder.xc(save);
        assert_eq!(refused.code, 2, "{foreign}: {refused:?}");
        assert!(refused.stderr.contains(&format!("also holds {foreign:?}, which would be lost")), "{refused:?}");
        fs::remove_dir(folder.path("store/tree").join(foreign)).unwrap();
    }
}

#[test]
fn a_killed_index_build_does_not_keep_the_model_from_being_replaced() {
    let folder = Folder::new();
    models(&folder);
    let is_partial = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(".index."))
    };
    let is_left = || fs::read_dir(folder.path("store/lns")).unwrap().any(is_partial);
    for save in &saves("lns")[..2] {
        let is_killed = (0..200).any(|_| {
            let mut build = folder.command("index build --model store/lns --quiet").spawn().unwrap();
            while !is_left() && build.try_wait().unwrap().is_none() {}
            build.kill().unwrap();
            build.wait().unwrap();
            is_left()
        });
        assert!(is_killed, "no build was killed while it was writing");
        folder.ok(save);
        assert!(!is_left(), "{save}");
        folder.ok("inspect store/lns --verify");
    }
}

/// Commands with an output; `OUT` stands for it. Inputs are absent: whoever cannot write says so before it reads.
const FOLDERS: [&str; 12] = [
    "train tree --train absent --model OUT",
    "train dense --train absent --model OUT",
    "train tree --train absent --model m --checkpoint OUT",
    "train skipgram --train absent --model OUT",
    "index build --vectors absent.npy --metric l2 --output OUT",
    "index refresh --index absent --vectors absent.npy --output OUT",
    "merge absent --output OUT",
    "blend absent absent --validation absent --output OUT",
    "calibrate --model absent --validation absent --output OUT",
    "convert --from xc absent --to xc OUT",
    "convert --from pecos absent --to xc OUT",
    "convert --from xc absent --to pecos OUT",
];

const FILES: [&str; 6] = [
    "predict --model absent --input absent --output OUT",
    "index search --index absent --queries absent.npy --output OUT",
    "index evaluate --index absent --queries absent.npy --plot OUT",
    "convert --from jsonl absent --to xc-text OUT",
    "bench curves --log absent --output OUT",
    "convert --from xc-text absent --to npz d.npz --output-labels OUT",
];

#[test]
fn one_exit_code_says_what_is_wrong_with_a_place_before_any_work() {
    let folder = Folder::new();
    folder.write("file", "mine");
    fs::create_dir(folder.path("full")).unwrap();
    folder.write("full/mine", "mine");
    symlink("loop", folder.path("loop")).unwrap();
    let long = "n".repeat(300);
    // The user named what cannot be: 2. The system does not let us write there: 1.
    let all = [("no/such/x", 2), ("file/x", 2), (&*long, 2), ("loop/x", 2), ("/proc/x", 1), ("/sys/x", 1)];
    for (commands, places) in [
        (&FOLDERS[..], [&all[..], &[("file", 2), ("full", 2), ("loop", 2)]].concat()),
        (&FILES[..], [&all[..], &[("full", 2)]].concat()),
    ] {
        for command in commands {
            for &(place, code) in &places {
                let got = folder.xc(&command.replace("OUT", place));
                assert_eq!((got.code, &*got.stdout), (code, ""), "{command} {place}: {}", got.stderr);
                assert_eq!(got.stderr.lines().count(), 1, "{command} {place}: {}", got.stderr);
                assert!(!got.stderr.contains("absent"), "{command} {place}: {}", got.stderr);
            }
        }
    }
    // These make the folders that they are to write into.
    for command in ["tune tree --train absent --output", "generate --instances 9 --output", "quickstart --output"] {
        for (place, code) in [("file", 2), ("file/x", 2), (&*long, 2), ("loop/x", 2), ("/proc/x", 1), ("/sys/x/y", 1)] {
            let got = folder.xc(&format!("{command} {place}"));
            assert_eq!((got.code, &*got.stdout), (code, ""), "{command} {place}: {}", got.stderr);
            assert!(
                got.stderr.lines().count() == 1 && !got.stderr.contains("absent"),
                "{command} {place}: {}",
                got.stderr
            );
        }
    }
    assert_eq!(folder.names(), ["file", "full", "loop"]);
    assert_eq!((folder.read("file"), folder.read("full/mine")), ("mine".into(), "mine".into()));
}

#[test]
fn a_calibration_and_a_log_that_cannot_be_written_are_said_before_any_work() {
    let folder = Folder::new();
    models(&folder);
    let before = files(&folder.path("."));
    for (command, code) in [
        (format!("calibrate --model store/tree {HELD} --picture no/such/../x/p.svg"), 0),
        (format!("calibrate --model store/tree {HELD} --picture /proc/x.svg"), 1),
        (format!("calibrate --model store/tree {HELD} --picture /proc/x/p.svg"), 1),
        (format!("calibrate --model store/tree {HELD} --picture d/train.txt/p.svg"), 2),
        (format!("calibrate --model store/tree {HELD} --picture d"), 2),
    ] {
        if code > 0 {
            let got = folder.xc(&command);
            assert_eq!(got.code, code, "{command}: {}", got.stderr);
            assert!(files(&folder.path(".")) == before, "{command}");
        }
    }
    folder.ok(&format!("calibrate --model store/tree {HELD} --folds 2 --picture new/folder/p.svg"));
    assert!(folder.path("new/folder/p.svg").is_file());
    // A file in the place of the log.
    folder.write("m.log", "mine");
    assert_eq!(folder.xc("train tree --train d/train.txt --trees 1 --model m").code, 2);
}

#[test]
fn a_result_that_has_no_stdout_to_go_to_is_said_before_any_work() {
    let folder = Folder::new();
    for command in [
        "evaluate --truth absent --predictions absent",
        "evaluate --truth absent --predictions absent --json",
        "predict --model absent --input absent",
        "train tree --train absent --model m --json",
        "blend absent absent --validation absent --output b",
        "calibrate --model absent --validation absent --output c",
        "index evaluate --index absent --queries absent.npy",
        "tune tree --train absent --output t",
    ] {
        let mut shell = Command::new("sh");
        let line = format!("exec {} {command} --quiet >&-", env!("CARGO_BIN_EXE_xc"));
        let got = run(shell.args(["-c", &line]).current_dir(folder.path(".")));
        got.refused(1, "standard output: cannot write: it is closed");
    }
    assert!(folder.names().is_empty());
}

#[test]
fn a_program_without_file_descriptors_leaves_nothing_behind() {
    let folder = Folder::new();
    models(&folder);
    let before = contents_of(&folder);
    for n in 4..14 {
        for command in [
            "index build --vectors d/train.txt --metric ip --output out".to_owned(),
            "convert --from xc store/blend --to xc out".to_owned(),
            format!("blend store/tree store/lns {HELD} --rule reciprocal-ranks --output out"),
            format!("calibrate --model store/lns {HELD} --folds 2 --output out"),
            format!("train tree {TRAIN} --trees 1 --model out"),
            "predict --model store/tree --input d/test.txt --output out".to_owned(),
        ] {
            // What the test itself was given open would count.
            let inherited: String = (3..10).map(|fd| format!("{fd}>&- ")).collect();
            let program = env!("CARGO_BIN_EXE_xc");
            let line = format!("exec {inherited}; ulimit -n {n}; exec {program} {command} --quiet --threads 1");
            let got = run(Command::new("sh").args(["-c", &line]).current_dir(folder.path(".")));
            assert!((0..=3).contains(&got.code), "{n}: {command}: {got:?}");
            if got.code > 0 {
                assert_eq!(got.stderr.lines().count(), 1, "{n}: {command}: {got:?}");
            }
            for made in ["out", "out.log", "out.checkpoint"] {
                let path = folder.path(made);
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
            assert_eq!(contents_of(&folder), before, "{n}: {command}: {got:?}");
        }
    }
}

/// Every path below the folder.
fn contents_of(folder: &Folder) -> Vec<String> {
    let mut names = folder.names();
    names.extend(files(&folder.path(".")).into_keys());
    names
}

/// A folder of hard links to the files of another one.
fn linked(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { linked(&from, &to) } else { fs::hard_link(from, to).unwrap() }
    }
}

#[test]
fn a_sound_model_is_verified_while_others_take_its_place() {
    let folder = Folder::new();
    models(&folder);
    let (live, kept) = (folder.path("live"), ["store/blend", "store/lns", "store/blend"].map(|name| folder.path(name)));
    linked(&kept[0], &live);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for model in &kept {
                    let new = OutputFolder::create(&live).unwrap();
                    linked(model, new.path());
                    new.commit_over(|_| Ok::<_, WriteFileError>(())).unwrap();
                }
            }
        });
        let failed: Vec<_> = (0..150).map(|_| folder.xc("inspect live --verify")).filter(|got| got.code != 0).collect();
        is_done.store(true, Ordering::Relaxed);
        assert!(failed.is_empty(), "{} of 150: {failed:?}", failed.len());
    });
    // Damage is still found.
    fs::write(folder.path("damaged.json"), "{}").unwrap();
    let config = folder.path("live/config.json");
    fs::rename(folder.path("damaged.json"), config).unwrap();
    assert_eq!(folder.xc("inspect live --verify").code, 2);
}
