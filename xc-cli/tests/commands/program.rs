//! Runs the program in a folder of its own.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::{Duration, Instant};

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

    /// The error, in words or, with `--json`, in JSON.
    pub(crate) fn error(&self) -> String {
        match serde_json::from_str::<Value>(&self.stderr) {
            Ok(said) => said["error"].as_str().unwrap().to_owned(),
            Err(_) => self.stderr.trim_end().strip_prefix("xc: error: ").unwrap_or_default().to_owned(),
        }
    }

    /// This exit code, nothing on stdout, and exactly this one line on stderr, or this error in JSON with `--json`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, expected: &str) {
        assert_eq!((self.code, &*self.stdout), (code, ""), "{}", self.stderr);
        match serde_json::from_str::<Value>(&self.stderr) {
            Ok(said) => assert_eq!(said, serde_json::json!({ "error": expected, "exit_code": code })),
            Err(_) => assert_eq!(self.stderr, format!("xc: error: {expected}\n")),
        }
    }
}

pub(crate) struct Folder {
    place: tempfile::TempDir,
    program: PathBuf,
    /// What it is a copy of stays as long as it does, for the copies that others take.
    _of: Option<Arc<Folder>>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { place: tempfile::tempdir().unwrap(), program: env!("CARGO_BIN_EXE_xc").into(), _of: None }
    }

    /// A folder whose commands are those of a program without optional parts: of this one where it is built so, else of
    /// XC_DEFAULT_PROGRAM. Where there is none it is said, and the test has nothing to ask.
    pub(crate) fn of_default_program() -> Option<Self> {
        static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
            if cfg!(not(any(feature = "cuda", feature = "transformer"))) {
                return Some(env!("CARGO_BIN_EXE_xc").into());
            }
            let named = std::env::var_os("XC_DEFAULT_PROGRAM").map(PathBuf::from);
            if named.is_none() {
                // Past the tests' own capture of what is printed.
                let what = "SKIPPED: tests of a program without optional parts; XC_DEFAULT_PROGRAM=FILE names one";
                let mut stderr = std::io::stderr();
                stderr.write_all(format!("{what} (cargo build -p xc-cli)\n").as_bytes()).unwrap();
            }
            named
        });
        PROGRAM.clone().map(|program| Self { program, ..Self::new() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
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
        let mut command = Command::new(&self.program);
        command.current_dir(self.place.path()).args(arguments.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// `xc ARGUMENTS` with these bytes on stdin.
    pub(crate) fn answered(&self, arguments: &str, input: impl AsRef<[u8]>) -> Outcome {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.as_ref().to_vec());
        // A program that has ended reads no further.
        let send = std::thread::spawn(move || _ = stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        send.join().unwrap();
        outcome(output)
    }

    /// `xc ARGUMENTS --quiet` with its pipes open.
    pub(crate) fn stream(&self, arguments: &str) -> Stream {
        Stream::new(self.command(arguments).arg("--quiet"))
    }

    /// Names of what is in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.place.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// What several tests ask for and none changes: made by the first of them, gone with the last.
pub(crate) struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock().unwrap();
        kept.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *kept = Arc::downgrade(&made);
            made
        })
    }
}

impl Shared<Folder> {
    /// A folder of one's own with what `make` leaves in a new one.
    pub(crate) fn copy(&self, make: impl FnOnce(&Folder)) -> Folder {
        let of = self.get(|| {
            let folder = Folder::new();
            make(&folder);
            folder
        });
        let folder = Folder { _of: Some(of.clone()), ..Folder::new() };
        for (name, bytes) in files(of.place.path()) {
            std::fs::create_dir_all(folder.path(&name).parent().unwrap()).unwrap();
            folder.write(&name, bytes);
        }
        folder
    }
}

pub(crate) fn run(command: &mut Command) -> Outcome {
    outcome(command.output().unwrap())
}

fn outcome(output: std::process::Output) -> Outcome {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A program whose pipes are open.
pub(crate) struct Stream {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<BufReader<ChildStdout>>,
}

impl Stream {
    pub(crate) fn new(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, stdin, stdout }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// One line of its output; waits for ever where none comes.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn signal(&self, signal: &str) {
        let arguments = [format!("-{signal}"), self.child.id().to_string()];
        assert!(Command::new("kill").args(arguments).status().unwrap().success());
    }

    /// Ends its input and gives its exit code and stderr.
    pub(crate) fn end(mut self) -> (i32, String) {
        drop(self.stdin.take());
        self.ended()
    }

    /// The same while its input stays open.
    pub(crate) fn ended(&mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (status.code().unwrap(), stderr)
    }
}

/// Waits for an event of another process, at most a minute.
pub(crate) fn wait_until(mut event: impl FnMut() -> bool) {
    let start = Instant::now();
    while !event() {
        assert!(start.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The bytes of an `.npy` file of rows.
pub(crate) fn npy(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f32) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let len = (10 + header.len() + 1).div_ceil(64) * 64 - 10;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((len as u16).to_le_bytes());
    out.extend(format!("{header:<width$}\n", width = len - 1).bytes());
    for row in 0..rows {
        (0..columns).for_each(|column| out.extend(value(row, column).to_le_bytes()));
    }
    out
}

/// Content of every file of a folder by name.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// Content of every file below a folder by its path.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.path().is_dir() {
            true => {
                all.extend(files(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)))
            }
            false => drop(all.insert(name, std::fs::read(entry.path()).unwrap())),
        }
    }
    all
}

/// Rows of a CSV file, the header first.
pub(crate) fn table(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                row.last_mut().unwrap().push(characters.next().unwrap());
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop().unwrap(), [""]);
    rows
}

/// A JSON document.
#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

impl Folder {
    /// Runs `train` with `--resume` again and again until it is done, killing it after different
    /// times; when it was killed `most` times it may finish. A machine on which it is done before
    /// the second kill starts again with half the times.
    #[track_caller]
    pub(crate) fn resumed_after_kills(&self, train: &str, most: u32, wait_ms: impl Fn(u64) -> u64) {
        let before = files(&self.path("."));
        for halved in 0..8 {
            if self.kills(train, most, |attempt| wait_ms(attempt) >> halved) >= 2 {
                return;
            }
            for name in self.names() {
                let path = self.path(&name);
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
            }
            for (name, bytes) in &before {
                std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
                self.write(name, bytes);
            }
        }
        panic!("done before the second kill at any time");
    }

    /// Times that a training run was killed until it was done.
    #[track_caller]
    fn kills(&self, train: &str, most: u32, wait_ms: impl Fn(u64) -> u64) -> u32 {
        for attempt in 0..most {
            let mut child = self.command(&format!("{train} --resume --quiet --threads 2")).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(wait_ms(attempt.into())));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                return attempt;
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.ok(&format!("{train} --resume"));
        most
    }
}
