//! Lines of stdin, read by a thread of their own: a signal ends a wait for a line that may never
//! come; and all of stdin as a file.

use crate::error::CliError;
use crate::interrupt;
use crate::whole_stdin;
pub(crate) use crate::whole_stdin::NAME;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use xc_data::{Line, LineBlock, LineBlocks, ReadError};
use xc_store::atomic::OutputFolder;
use xc_train::fit::beside;

/// Longest line that is read.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 26;
/// What lines that wait may take together before no more are fetched.
const PENDING_BYTES: usize = 1 << 23;

/// `path`, or if it is `-` a file of all that stdin gives, for a command that reads its file more than once. The file is
/// beside `output` until [`whole_stdin::forget`].
///
/// # Errors
/// Ctrl-C; stdin cannot be read; the folder of `output` cannot be written, or is full.
pub(crate) fn as_file(path: PathBuf, output: &Path) -> Result<PathBuf, CliError> {
    if path != Path::new("-") {
        return Ok(path);
    }
    if let Some(file) = whole_stdin::file() {
        return Ok(file);
    }
    let folder = OutputFolder::create(beside(output, "stdin")).map_err(|e| CliError::unwritable(&e))?;
    let (mut stdin, mut unread) = (io::stdin().lock(), None);
    let written = folder.file("stdin", |file| {
        let mut room = vec![0; 1 << 16];
        while !interrupt::interrupted() {
            match stdin.read(&mut room) {
                Ok(0) => break,
                Ok(n) => file.write_all(&room[..n])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    unread = Some(error);
                    break;
                }
            }
        }
        Ok(())
    });
    if interrupt::interrupted() {
        return Err(CliError::interrupted());
    }
    if let Some(error) = unread {
        return Err(CliError::failed(format_args!("{NAME}: cannot be read: {error}")));
    }
    written.map_err(|e| CliError::unwritable(&e))?;
    let file = folder.path().join("stdin");
    Ok(whole_stdin::keep(folder, file))
}

/// The lines that have been read and not answered.
pub(crate) struct StdinLines {
    blocks: Receiver<Result<LineBlock, ReadError>>,
    pending: VecDeque<LineBlock>,
    /// Lines of the first block that are done.
    done: usize,
    failed: Option<ReadError>,
    ended: bool,
}

impl StdinLines {
    /// Starts the thread that reads; it ends with the input, a signal or the program.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn open() -> Result<Self, CliError> {
        interrupt::answer_a_stream();
        let (sender, blocks) = sync_channel(4);
        let read = move || {
            let mut lines = match LineBlocks::new(NAME, io::stdin(), None, MAX_LINE_BYTES) {
                Ok(lines) => lines,
                Err(error) => return drop(sender.send(Err(error))),
            };
            while !interrupt::interrupted() {
                let Some(block) = lines.next_block().transpose() else { return };
                let failed = block.is_err();
                if sender.send(block).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("xc-stdin".into()).spawn(read);
        thread.map_err(|e| CliError::failed(format_args!("{NAME}: cannot start a thread: {e}")))?;
        Ok(Self { blocks, pending: VecDeque::new(), done: 0, failed: None, ended: false })
    }

    /// Waits for a line, and takes what has come with it, up to `most` lines; false at the end. A
    /// signal that stops a stream is its end once the lines before it are answered.
    ///
    /// # Errors
    /// Ctrl-C; stdin cannot be read or is damaged.
    pub(crate) fn wait(&mut self, most: usize) -> Result<bool, CliError> {
        loop {
            if interrupt::interrupted() && !interrupt::stopped() {
                return Err(CliError::interrupted());
            }
            self.fetch(most);
            if self.n_pending() > 0 {
                return Ok(true);
            }
            if let Some(error) = self.failed.take() {
                return Err(error.into());
            }
            if self.ended {
                return Ok(false);
            }
            match self.blocks.recv_timeout(interrupt::LOOK_EVERY) {
                Ok(block) => self.take(block),
                Err(_) if interrupt::stopped() => self.ended = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
        }
    }

    /// Takes blocks that are there already.
    fn fetch(&mut self, most: usize) {
        let bytes = |pending: &VecDeque<LineBlock>| pending.iter().map(LineBlock::n_bytes).sum::<usize>();
        while !self.ended && self.n_pending() < most && bytes(&self.pending) < PENDING_BYTES {
            match self.blocks.try_recv() {
                Ok(block) => self.take(block),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.ended = true,
            }
        }
    }

    fn take(&mut self, block: Result<LineBlock, ReadError>) {
        match block {
            Ok(block) => self.pending.push_back(block),
            Err(error) => (self.failed, self.ended) = (Some(error), true),
        }
    }

    fn n_pending(&self) -> usize {
        self.pending.iter().map(LineBlock::len).sum::<usize>() - self.done
    }

    /// Up to `most` lines that wait, the first ones.
    pub(crate) fn lines(&self, most: usize) -> Vec<Line<'_>> {
        let all = self.pending.iter().flat_map(|block| (0..block.len()).map(|at| block.line(at)));
        all.skip(self.done).take(most).collect()
    }

    /// Forgets the first `n` lines that wait.
    pub(crate) fn forget(&mut self, n: usize) {
        self.done += n;
        while let Some(first) = self.pending.front().filter(|first| first.len() <= self.done) {
            self.done -= first.len();
            self.pending.pop_front();
        }
    }
}
