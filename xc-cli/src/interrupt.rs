//! Ctrl-C: commands stop at the next safe point; if none comes soon, what is half saved is removed
//! and the program ends.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The checkpoint of the training under way.
static CHECKPOINT: Mutex<Option<PathBuf>> = Mutex::new(None);

/// How long a command may take to reach a safe point.
const GRACE: Duration = Duration::from_secs(5);
/// How often a wait looks whether Ctrl-C was pressed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Starts to listen. Without a handler (no signal support) the operating system's own behaviour
/// remains.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            leave();
        }
        // The main thread ends the program when it meets a safe point; otherwise this thread does.
        std::thread::spawn(|| {
            let start = Instant::now();
            while start.elapsed() < GRACE {
                std::thread::sleep(LOOK_EVERY);
            }
            leave();
        });
    });
}

/// True after Ctrl-C.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Says where the training under way keeps what it has finished.
pub(crate) fn resumable(checkpoint: PathBuf) {
    *CHECKPOINT.lock().unwrap_or_else(|e| e.into_inner()) = Some(checkpoint);
}

/// What the program says when it was interrupted.
pub(crate) fn line() -> &'static str {
    let checkpoint = CHECKPOINT.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let entries = checkpoint.into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    // Parts are folders; those behind a dot are half written.
    let is_part = |e: std::fs::DirEntry| e.path().is_dir() && !e.file_name().to_string_lossy().starts_with('.');
    if entries.into_iter().any(is_part) { "interrupted; go on with --resume" } else { "interrupted" }
}

#[expect(clippy::exit, reason = "Ctrl-C ends the program from the signal thread")]
fn leave() -> ! {
    use std::io::Write;
    xc_sparse::atomic::remove_partial();
    let _ = writeln!(io::stderr(), "xc: error: {}", line());
    std::process::exit(130)
}

/// Stdin whose reads end with an error when Ctrl-C is pressed: a plain read would wait for a line
/// that may never come.
pub(crate) struct Stdin {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
}

impl Stdin {
    /// Starts the thread that reads; it ends with the input or the program.
    pub(crate) fn open() -> io::Result<Self> {
        let (sender, blocks) = sync_channel(4);
        std::thread::Builder::new().name("xc-stdin".into()).spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut block = vec![0; 1 << 16];
                let outcome = stdin.read(&mut block).map(|n| {
                    block.truncate(n);
                    block
                });
                let done = !matches!(&outcome, Ok(block) if !block.is_empty());
                if sender.send(outcome).is_err() || done {
                    return;
                }
            }
        })?;
        Ok(Self { blocks, block: Vec::new(), at: 0 })
    }
}

impl Read for Stdin {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.blocks.recv_timeout(LOOK_EVERY) {
                Ok(block) => (self.block, self.at) = (block?, 0),
                Err(RecvTimeoutError::Timeout) if interrupted() => return Err(io::Error::other("interrupted")),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            if self.block.is_empty() {
                return Ok(0);
            }
        }
        let n = into.len().min(self.block.len() - self.at);
        into[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
