//! Which models may be members of one blend.

use crate::blend::KIND;
use crate::{InputKind, Model, OpenModelError};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_store::{Container, Mismatch, OpenError};

/// Maximum number of members of a blend.
pub const MAX_MEMBERS: usize = 16;

/// Why models cannot be members of one blend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// Too few or too many.
    #[error("{got} members; between 1 and {MAX_MEMBERS} are expected")]
    Number {
        /// How many.
        got: usize,
    },
    /// The same model twice.
    #[error("{}: the same model as {}; different members are expected", path.display(), other.display())]
    Twice {
        /// The folder.
        path: PathBuf,
        /// The other folder.
        other: PathBuf,
    },
    /// A blend in a blend.
    #[error("{}: a blend; models of other kinds are expected as members", path.display())]
    Nested {
        /// The folder.
        path: PathBuf,
    },
    /// Another number of labels.
    #[error("{}: {got} labels; {} has {expected}, and the same labels are expected", path.display(), first.display())]
    Labels {
        /// The folder.
        path: PathBuf,
        /// Number of its labels.
        got: usize,
        /// That of the first member.
        expected: usize,
        /// Folder of the first member.
        first: PathBuf,
    },
    /// Labels with other names, or in another order.
    #[error("{}: label {label} is called {got:?}; in {} it is {expected:?}", path.display(), first.display())]
    Name {
        /// The folder.
        path: PathBuf,
        /// The first label that differs.
        label: usize,
        /// Its name.
        got: String,
        /// Its name in the first member.
        expected: String,
        /// Folder of the first member.
        first: PathBuf,
    },
    /// Only one of the two models has label names.
    #[error("{}: labels {} names, those of {} {}", path.display(), has(*.named), first.display(), has(!*.named))]
    Unnamed {
        /// The folder.
        path: PathBuf,
        /// Whether its labels have names.
        named: bool,
        /// Folder of the first member.
        first: PathBuf,
    },
    /// Another kind of input.
    #[error("{}: takes {got}; {} takes {expected}", path.display(), first.display())]
    Input {
        /// The folder.
        path: PathBuf,
        /// What it takes.
        got: InputKind,
        /// What the first member takes.
        expected: InputKind,
        /// Folder of the first member.
        first: PathBuf,
    },
    /// Another number of features.
    #[error("{}: takes {got} features; {} takes {expected}", path.display(), first.display())]
    Width {
        /// The folder.
        path: PathBuf,
        /// Number of its features.
        got: usize,
        /// That of the first member.
        expected: usize,
        /// Folder of the first member.
        first: PathBuf,
    },
    /// A file changed since it was saved.
    #[error("{0}: damaged since it was saved")]
    Damaged(Mismatch),
    /// A part of a model is lost.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// Label names that cannot be read.
    #[error(transparent)]
    Open(#[from] Box<OpenModelError>),
    /// The number of retrained members is not that of the members that the blend was fitted with.
    #[error("{got} members trained again for {expected} members; one for each is expected, in the same order")]
    Refits {
        /// How many.
        got: usize,
        /// Number of members.
        expected: usize,
    },
    /// A retrained member is of another kind.
    #[error("{}: a model of kind {got:?}; one of kind {expected:?} is expected, as {}", path.display(), first.display())]
    Refit {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        got: &'static str,
        /// Kind of the member that it replaces.
        expected: &'static str,
        /// Folder of that member.
        first: PathBuf,
    },
}

fn has(named: bool) -> &'static str {
    if named { "have" } else { "have no" }
}

/// Refuses blends.
pub(crate) fn check_kind(container: &Container) -> Result<(), MembersError> {
    if container.kind() == KIND {
        return Err(MembersError::Nested { path: container.folder().to_owned() });
    }
    Ok(())
}

/// Refuses members that do not take the same input, or differ in the number of labels.
pub(crate) fn check_alike(members: &[Model]) -> Result<(), MembersError> {
    let Some((first, others)) = members.split_first() else { return Err(MembersError::Number { got: 0 }) };
    let (expected, path) = (first.describe(), |model: &Model| model.container.folder().to_owned());
    for other in others {
        let got = other.describe();
        let (path, first) = (path(other), path(first));
        if got.n_labels != expected.n_labels {
            return Err(MembersError::Labels { path, got: got.n_labels, expected: expected.n_labels, first });
        }
        if got.takes != expected.takes {
            return Err(MembersError::Input { path, got: got.takes, expected: expected.takes, first });
        }
        // Members that take text have pipelines and features of their own.
        if got.takes != InputKind::Text && got.n_features != expected.n_features {
            return Err(MembersError::Width { path, got: got.n_features, expected: expected.n_features, first });
        }
    }
    Ok(())
}

impl Model {
    /// Checks that these models may be members of one blend: none is a blend or occurs twice, their
    /// files are complete and undamaged, and they have the same labels, the same label names and
    /// the same kind of input.
    ///
    /// *Cost*: reads every file once.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub fn check_members(members: &[Self]) -> Result<(), MembersError> {
        if members.is_empty() || members.len() > MAX_MEMBERS {
            return Err(MembersError::Number { got: members.len() });
        }
        let folder = |model: &Self| model.container.folder().to_owned();
        for (at, member) in members.iter().enumerate() {
            check_kind(&member.container)?;
            let same = |other: &&Self| other.container.config_hash() == member.container.config_hash();
            if let Some(other) = members[..at].iter().find(same) {
                return Err(MembersError::Twice { path: folder(member), other: folder(other) });
            }
        }
        check_alike(members)?;
        let names = |model: &Self| model.label_names().map_err(|e| MembersError::Open(Box::new(e)));
        let expected = names(&members[0])?;
        for member in &members[1..] {
            check_names(member.container.folder(), &names(member)?, members[0].container.folder(), &expected)?;
        }
        for member in members {
            // A MACH model can be opened without lost repetitions.
            if member.container.lost().len() > 0 {
                Container::open(member.container.folder(), Default::default())?;
            }
            if let Some(mismatch) = member.container.verify()?.into_iter().next() {
                return Err(MembersError::Damaged(mismatch));
            }
        }
        Ok(())
    }

    /// Checks that `refits` may replace `members` as the same models retrained on all rows: as
    /// many, of the same kinds, with the same labels, and fit to be members of one blend.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub fn check_refits(members: &[Self], refits: &[Self]) -> Result<(), MembersError> {
        let (got, expected) = (refits.len(), members.len());
        if got != expected {
            return Err(MembersError::Refits { got, expected });
        }
        let folder = |model: &Self| model.container.folder().to_owned();
        for (member, refit) in members.iter().zip(refits) {
            let (got, expected) = (refit.kind.name, member.kind.name);
            if got != expected {
                return Err(MembersError::Refit { path: folder(refit), got, expected, first: folder(member) });
            }
        }
        Self::check_members(refits)?;
        let both = [&members[0], &refits[0]].map(Self::label_names);
        let [expected, got] = both.map(|names| names.map_err(|e| MembersError::Open(Box::new(e))));
        check_names(refits[0].container.folder(), &got?, members[0].container.folder(), &expected?)?;
        let (n, expected) = (refits[0].shape.n_labels, members[0].shape.n_labels);
        if n != expected {
            let (path, first) = (folder(&refits[0]), folder(&members[0]));
            return Err(MembersError::Labels { path, got: n, expected, first });
        }
        Ok(())
    }
}

fn check_names(
    path: &Path,
    got: &Option<Vec<String>>,
    first: &Path,
    expected: &Option<Vec<String>>,
) -> Result<(), MembersError> {
    let (path, first) = (path.to_owned(), first.to_owned());
    let (Some(names), Some(others)) = (got, expected) else {
        let named = got.is_some();
        return if named == expected.is_some() { Ok(()) } else { Err(MembersError::Unnamed { path, named, first }) };
    };
    match names.iter().zip(others).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(label) => {
            let (got, expected) = (names[label].clone(), others[label].clone());
            Err(MembersError::Name { path, label, got, expected, first })
        }
    }
}
