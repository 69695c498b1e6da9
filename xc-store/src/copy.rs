//! Models that start from another one.

use super::config::{Config, LABELS_FILE};
use super::error::WriteError;
use super::memory::lock;
use super::replace::{PART_FOLDER, link_folders, link_or_copy, link_part};
use super::{ArrayRef, Container, ContainerWriter};
use crate::atomic::failed;
use std::path::Path;

impl ContainerWriter {
    /// Begins a model with the kind, parameters, pipeline and label names of another one, without its
    /// arrays.
    ///
    /// # Errors
    /// As [`ContainerWriter::create`].
    pub fn like(model: &Container, destination: impl AsRef<Path>) -> Result<Self, WriteError> {
        let destination = destination.as_ref();
        let mut writer = Self::create(destination, model.kind())?;
        writer.config.parameters = model.config.parameters.clone();
        writer.config.pipeline = model.config.pipeline.clone();
        if let Some(entry) = &model.config.labels {
            // As they are, hash included: damage stays visible.
            let bytes = model.label_bytes()?;
            writer.put(LABELS_FILE, &bytes)?;
            writer.config.labels = Some(entry.clone());
        }
        Ok(writer)
    }

    /// Begins a model as a copy of another one, with its arrays, members and index: files are linked if
    /// the file system supports it, otherwise copied. Parameters and label names can be replaced, and
    /// arrays added in a separate file ([`ContainerWriter::begin_file`]).
    ///
    /// # Errors
    /// As [`ContainerWriter::create`]; `model` was replaced since it was opened, or is incomplete.
    pub fn copy_of(model: &Container, destination: impl AsRef<Path>) -> Result<Self, WriteError> {
        let destination = destination.as_ref();
        let mut writer = Self::create(destination, model.kind())?;
        let to = writer.building()?.path().to_owned();
        let link = |name: &str| link_or_copy(&model.folder().join(name), &to.join(name));
        let mut files: Vec<&str> = model.config.arrays.values().map(|entry| &*entry.file).collect();
        files.extend(model.config.labels.as_ref().map(|_| LABELS_FILE));
        files.sort_unstable();
        files.dedup();
        if let Some(memory) = model.memory() {
            files.into_iter().try_for_each(|name| writer.put(name, memory[name].as_bytes()))?;
        } else {
            let linked = files.into_iter().try_for_each(link).and_then(|()| link_folders(model.folder(), &to));
            // The configuration names the hash of every file: what was linked is what was opened.
            if !Config::read(model.folder()).is_ok_and(|(_, hash)| hash.got == model.config_hash()) {
                return Err(WriteError::Replaced { path: model.folder().to_owned() });
            }
            linked.map_err(failed(&to, "link a model into it"))?;
        }
        writer.config = model.config.clone();
        writer.config.arrays.clear();
        let arrays = model.config.arrays.iter().map(|(name, entry)| (name.clone(), Some(entry.clone())));
        lock(writer.registry()).extend(arrays);
        Ok(writer)
    }

    /// Gives a model that was begun [like](ContainerWriter::like) another one the index of that one, if it has
    /// one: linked if the file system supports it, otherwise copied.
    ///
    /// # Errors
    /// It cannot be read or written; `model` was replaced since it was opened.
    pub fn add_index(&mut self, model: &Container) -> Result<(), WriteError> {
        if model.memory().is_some() {
            return Ok(());
        }
        let to = self.building()?.path();
        let linked = link_part(model.folder(), to);
        if !Config::read(model.folder()).is_ok_and(|(_, hash)| hash.got == model.config_hash()) {
            return Err(WriteError::Replaced { path: model.folder().to_owned() });
        }
        Ok(linked.map_err(failed(to, "link an index into it"))?)
    }

    /// Adds the arrays of another model that `keep` selects, unchanged.
    ///
    /// # Errors
    /// As [`ContainerWriter::add`]; an array of `model` is lost.
    pub fn add_arrays(&mut self, model: &Container, keep: impl Fn(&str) -> bool) -> Result<(), WriteError> {
        for (name, entry) in model.arrays().filter(|(name, _)| keep(name)) {
            let bytes = model.bytes(name, entry.dtype, &entry.shape)?;
            self.add(name, ArrayRef { dtype: entry.dtype, shape: &entry.shape, bytes })?;
        }
        Ok(())
    }

    /// Removes a part that [`ContainerWriter::copy_of`] copied: the file `model-NAME.safetensors` with
    /// its arrays. Does nothing if there is none.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove_file(&mut self, name: &str) -> Result<(), WriteError> {
        let file = format!("model-{name}.safetensors");
        lock(self.registry()).retain(|_, entry| entry.as_ref().is_none_or(|entry| entry.file != file));
        self.remove_built(&file)
    }

    /// Removes the index that [`ContainerWriter::copy_of`] copied, if there is one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_index(&mut self) -> Result<(), WriteError> {
        let path = self.building()?.path().join(PART_FOLDER);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).map_err(failed(&path, "remove it"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenMode, member_folder};

    fn open(path: &Path) -> Container {
        Container::open(path, OpenMode::Map).unwrap()
    }

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn save(path: &Path, value: u32) {
        let mut writer = ContainerWriter::create(path, "tree").unwrap();
        writer.set_parameter("n", 3);
        writer.labels(&names(&["a", "b"])).unwrap();
        writer.add_slice("weights", &[value]).unwrap();
        writer.begin_file("extra").unwrap();
        writer.add_slice("extra.x", &[1.5f32]).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn a_copy_has_all_that_the_model_has_but_what_is_set_again() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        save(&one, 7);
        save(&one.join(PART_FOLDER), 8);
        save(&one.join(member_folder(0)), 9);
        let model = open(&one);
        ContainerWriter::copy_of(&model, &two).unwrap().finish().unwrap();
        assert_eq!(open(&two).config_hash(), model.config_hash());
        assert!(open(&two).verify().unwrap().is_empty());
        for inside in [PART_FOLDER.to_owned(), member_folder(0)] {
            assert_eq!(open(&two.join(&inside)).config_hash(), open(&one.join(&inside)).config_hash());
        }

        // Over itself, with changes: the model that is open stays what it was.
        let mut writer = ContainerWriter::copy_of(&model, &one).unwrap();
        writer.set_parameter("n", 4);
        writer.labels(&names(&["c", "d"])).unwrap();
        writer.remove_file("extra").unwrap();
        writer.begin_file("extra").unwrap();
        writer.add_slice("extra.y", &[2.5f32]).unwrap();
        writer.finish().unwrap();
        let new = open(&one);
        assert!(new.verify().unwrap().is_empty());
        assert_eq!((new.parameter::<u32>("n").unwrap(), new.labels().unwrap()), (4, Some(names(&["c", "d"]))));
        assert_eq!(
            (&*new.array::<u32>("weights").unwrap(), &*new.array::<f32>("extra.y").unwrap()),
            (&[7][..], &[2.5][..])
        );
        assert!(new.entry("extra.x").is_none());
        assert_eq!((model.labels().unwrap(), model.parameter::<u32>("n").unwrap()), (Some(names(&["a", "b"])), 3));
        assert!(open(&two).verify().unwrap().is_empty(), "files that are shared are never changed");
        assert!(one.join(PART_FOLDER).is_dir() && one.join(member_folder(0)).is_dir());

        let mut writer = ContainerWriter::copy_of(&new, &one).unwrap();
        writer.remove_index().unwrap();
        writer.remove_file("none").unwrap();
        writer.finish().unwrap();
        assert!(one.join(member_folder(0)).is_dir());
    }

    #[test]
    fn a_model_like_another_has_its_parameters_names_and_chosen_arrays() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        save(&one, 7);
        let model = open(&one);
        let mut writer = ContainerWriter::like(&model, &two).unwrap();
        writer.add_arrays(&model, |name| name == "extra.x").unwrap();
        writer.finish().unwrap();
        let new = open(&two);
        assert!(new.verify().unwrap().is_empty());
        assert_eq!(
            (new.kind(), new.parameters(), new.labels().unwrap()),
            ("tree", model.parameters(), model.labels().unwrap())
        );
        assert_eq!((new.arrays().len(), &*new.array::<f32>("extra.x").unwrap()), (1, &[1.5][..]));
        assert!(!two.join(PART_FOLDER).exists());

        save(&one.join(PART_FOLDER), 8);
        let mut writer = ContainerWriter::like(&model, &two).unwrap();
        writer.add_index(&model).unwrap();
        writer.finish().unwrap();
        let [from, to] = [&one, &two].map(|model| open(&model.join(PART_FOLDER)));
        assert_eq!(to.config_hash(), from.config_hash());
        assert!(to.verify().unwrap().is_empty());
        save(&one, 9);
        let refused = ContainerWriter::like(&open(&two), folder.path().join("three")).unwrap().add_index(&model);
        assert!(matches!(refused, Err(WriteError::Replaced { .. })), "{refused:?}");
    }

    #[test]
    fn a_model_that_was_replaced_since_it_was_opened_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        save(&one, 1);
        let model = open(&one);
        save(&one, 2);
        let refused = ContainerWriter::copy_of(&model, &two).unwrap_err();
        assert_eq!(refused.to_string(), format!("{}: replaced since it was opened", one.display()));
        assert!(!two.exists());
    }
}
