//! How files are compressed, by their first bytes.

use std::io::{self, BufRead};

/// How a stream is compressed, detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip, one or several members.
    Gzip,
    /// zstd, one or several frames.
    Zstd,
    /// bzip2, one or several streams.
    Bzip2,
    /// xz, one or several streams.
    Xz,
}

impl Compression {
    const MAGIC: [(&'static [u8], Self); 4] = [
        (&[0x1f, 0x8b], Self::Gzip),
        (&[0x28, 0xb5, 0x2f, 0xfd], Self::Zstd),
        // The first block, or the end of a stream without one, is part of it: text may begin with BZh.
        (b"BZh", Self::Bzip2),
        (b"\xfd7zXZ\0", Self::Xz),
    ];
    /// Bytes that tell how a file is compressed.
    pub(crate) const HEAD_BYTES: usize = 10;

    /// Recognises how a file is compressed by its first bytes.
    pub fn of(head: &[u8]) -> Self {
        let found = Self::MAGIC.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, found)| found);
        match found {
            Some(Self::Bzip2) if !is_bzip2(head) => Self::Plain,
            found => found.unwrap_or(Self::Plain),
        }
    }

    /// Whether more bytes behind `head` may change what [`Compression::of`] says.
    pub(super) fn is_open(head: &[u8]) -> bool {
        let begins = |magic: &[u8]| head.len() < magic.len() && magic.starts_with(head);
        Self::MAGIC.into_iter().any(|(magic, _)| begins(magic))
            || (head.starts_with(b"BZh") && head.len() < Self::HEAD_BYTES && may_be_bzip2(head))
    }

    /// What an archive is inside of, when it is not one itself; nothing is consumed.
    pub(crate) fn around(file: &mut impl BufRead) -> io::Result<Option<Self>> {
        let compression = Self::of(file.fill_buf()?);
        Ok((compression != Self::Plain).then_some(compression))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// The command that undoes it.
    pub fn undo(self) -> &'static str {
        match self {
            Self::Plain => "cat",
            Self::Gzip => "gunzip FILE",
            Self::Zstd => "unzstd FILE",
            Self::Bzip2 => "bunzip2 FILE",
            Self::Xz => "unxz FILE",
        }
    }
}

/// Whether these first bytes are those of bzip2: its level, and a block or the end of the stream.
fn is_bzip2(head: &[u8]) -> bool {
    head.len() >= Compression::HEAD_BYTES && may_be_bzip2(head)
}

fn may_be_bzip2(head: &[u8]) -> bool {
    let [_, _, _, level, block @ ..] = head else { return true };
    let block = &block[..block.len().min(6)];
    (b'1'..=b'9').contains(level)
        && (b"\x31\x41\x59\x26\x53\x59".starts_with(block) || b"\x17\x72\x45\x38\x50\x90".starts_with(block))
}
