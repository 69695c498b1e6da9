//! No command replaces a file that it reads, one file twice, or what somebody else put in its place.

use crate::program::{Folder, Shared, npy};

/// Commands that write: `IN` is a file that they read, `OUT` the one that they write.
const WRITERS: [(&str, &str); 10] = [
    ("predict --model m --input IN --output OUT", "test.jsonl"),
    ("predict --model m --input test.jsonl --only-labels IN --output OUT", "some.txt"),
    ("predict --model m --input test.jsonl --exclude IN --exclude-own-labels --output OUT", "test.jsonl"),
    ("evaluate --model m --input IN --per-label OUT", "test.jsonl"),
    ("evaluate --model m --truth test.jsonl --predictions IN --worst OUT", "p.jsonl"),
    ("convert --from jsonl IN --to csv OUT", "test.jsonl"),
    (
        "convert --from jsonl test.jsonl --to npz x.npz --text.min-df 1 --label-names IN --output-labels OUT",
        "labels.txt",
    ),
    ("index search --index i --queries IN --output OUT", "v.npy"),
    ("index evaluate --index i --queries IN --plot OUT", "v.npy"),
    ("train skipgram --train IN --model words --min-count 1 --network.widths 4 --epochs 1 --vectors OUT", "words.txt"),
];

fn make(folder: &Folder) {
    let line = |at: usize| format!("{{\"text\":\"word{} fruit\",\"labels\":[\"l{}\"]}}\n", at % 4, at % 4);
    folder.write("test.jsonl", (0..12).map(line).collect::<String>());
    folder.write("some.txt", "l0\nl1\n");
    folder.write("words.txt", "red apple\nred pear\n");
    folder.write("labels.txt", "l0\nl1\nl2\nl3\n");
    folder.ok("train tree --train test.jsonl --text.min-df 1 --model m");
    folder.ok("predict --model m --input test.jsonl --output p.jsonl");
    folder.write("v.npy", npy(8, 4, |row, column| (row * 7 + column * 3) as f32 % 5.0));
    folder.ok("index build --vectors v.npy --metric l2 --output i");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_read_is_not_written_however_it_is_named() {
    static FOLDER: Shared<Folder> = Shared::new();
    for (command, read) in WRITERS {
        let folder = FOLDER.copy(make);
        std::os::unix::fs::symlink(".", folder.path("here")).unwrap();
        std::os::unix::fs::symlink(read, folder.path("link")).unwrap();
        std::fs::hard_link(folder.path(read), folder.path("hard")).unwrap();
        let before = (folder.names(), std::fs::read(folder.path(read)).unwrap());
        for name in [read, &format!("./{read}"), &format!("here/{read}"), "link", "hard"] {
            let command = command.replace("IN", read).replace("OUT", name);
            let outcome = folder.xc(&command);
            assert_eq!(outcome.code, 2, "{command}: {}", outcome.stderr);
            assert!(outcome.error().contains("are one file, and it is read"), "{command}: {}", outcome.stderr);
            assert!((folder.names(), std::fs::read(folder.path(read)).unwrap()) == before, "{command}");
        }
        // The right use.
        let other = match command {
            _ if command.contains("--plot") => "o.svg",
            _ if command.contains("--output-labels") => "o.npz",
            _ => "o.txt",
        };
        let command = command.replace("IN", read).replace("OUT", other);
        assert_eq!(folder.xc(&command).code, 0, "{command}: {}", folder.xc(&command).stderr);
    }
}

#[test]
fn generated_files_replace_generated_ones_alone() {
    let folder = Folder::new();
    let generate = "generate --instances 20 --features 10 --labels 3 --output d";
    folder.ok(generate);
    folder.ok(&format!("{generate} --seed 7"));
    let names = ["train.txt", "test.txt", "train.jsonl", "test.jsonl", "labels.txt"];
    for name in names {
        let own = folder.read(&format!("d/{name}"));
        folder.write(&format!("d/{name}"), "mine\n");
        let outcome = folder.xc(generate);
        assert!(outcome.code == 2 && outcome.error().contains(&format!("its {name} is not a generated file")));
        assert_eq!(folder.read(&format!("d/{name}")), "mine\n");
        folder.write(&format!("d/{name}"), own);
    }
    folder.ok(generate);
    // What a killed run left is no obstacle.
    std::fs::create_dir_all(folder.path("q/model.checkpoint")).unwrap();
    folder.ok("quickstart --output q");
    folder.ok("quickstart --output q");
}
