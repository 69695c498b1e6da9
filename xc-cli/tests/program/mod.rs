//! Runs the program in a folder of its own.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a run ended with.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Success without any word on stderr.
    #[track_caller]
    pub(crate) fn quiet_success(self) -> String {
        assert_eq!((self.code, &*self.stderr), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// This exit code, nothing on stdout, and exactly this one line on stderr.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, expected: &str) {
        assert_eq!((self.code, &*self.stdout), (code, ""), "{}", self.stderr);
        assert_eq!(self.stderr, format!("xc: error: {expected}\n"));
    }
}

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// `xc ARGUMENTS --quiet` in the folder, arguments separated by blanks.
    pub(crate) fn xc(&self, arguments: &str) -> Outcome {
        run(self.command(arguments).arg("--quiet"))
    }

    /// The same for a run that must succeed and say nothing on stderr.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &str) -> String {
        self.xc(arguments).quiet_success()
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xc"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// Names of what is in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(crate) fn run(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Content of every file of a folder by name.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// A JSON document.
#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

impl Folder {
    /// Runs `train` with `--resume` again and again until it is done, killing it after different
    /// times; when it was killed `most` times it may finish. At least twice it must have been
    /// killed.
    #[track_caller]
    pub(crate) fn resumed_after_kills(&self, train: &str, most: u32, wait_ms: impl Fn(u64) -> u64) {
        let mut killed = 0;
        for attempt in 0..200 {
            let mut child = self.command(&format!("{train} --resume --quiet --threads 2")).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(wait_ms(attempt)));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            if killed == most {
                self.ok(&format!("{train} --resume"));
                break;
            }
        }
        assert!(killed >= 2, "killed {killed} times");
    }
}
