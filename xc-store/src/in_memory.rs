//! A model that was never in a folder.

use super::{Container, ContainerWriter, WriteError};

impl Container {
    /// A model that was never in a folder, of what `fill` adds to it: it has the bytes that a folder would have, and is
    /// opened as one. [`ContainerWriter::copy_of`] puts it into a folder.
    ///
    /// ```
    /// use xc_store::Container;
    ///
    /// let model = Container::in_memory("tree", |writer| writer.add_slice("weights", &[1.5f32, 2.0]))?;
    /// assert_eq!(&*model.array::<f32>("weights")?, &[1.5, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// *Cost*: a copy of each array, in room for up to twice as many bytes.
    ///
    /// # Errors
    /// What `fill` says; an array that is not finished; too little memory.
    pub fn in_memory<E: From<WriteError>>(
        kind: &str,
        fill: impl FnOnce(&mut ContainerWriter) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut writer = ContainerWriter::to_memory(kind);
        fill(&mut writer)?;
        let files = writer.finish_in_memory()?;
        Self::of_memory(files).map_err(|e| WriteError::from(e).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayRef, OpenError, OpenMode};
    use xc_buffer::dtype::DType;

    /// Arrays whole, side by side, and of a length that is not known; a part; names; parameters.
    fn fill(writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        writer.set_parameter("n", 3);
        writer.labels(&["a", "b"].map(str::to_owned))?;
        writer.add_slice("before", &[7u8])?;
        let mut a = writer.stream_shaped("a", DType::F32, &[500, 2])?;
        let b = writer.stream_shaped("b", DType::U64, &[0])?;
        let mut own = writer.stream("own", DType::F32)?;
        writer.add("after", ArrayRef::new(&values, &[10, 100]))?;
        a.extend(&values[..1])?;
        own.extend(&values)?;
        a.extend(&values[1..])?;
        a.finish_shaped(&[500, 2])?;
        own.finish()?;
        b.finish()?;
        writer.begin_file("part")?;
        writer.add_slice("part.x", &[1.5f32])
    }

    #[test]
    fn a_model_in_memory_has_the_bytes_of_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let [folder, copy] = ["folder", "copy"].map(|name| place.path().join(name));
        let mut writer = ContainerWriter::create(&folder, "tree").unwrap();
        fill(&mut writer).unwrap();
        writer.finish().unwrap();
        let (memory, folder) =
            (Container::in_memory("tree", fill).unwrap(), Container::open(&folder, OpenMode::Map).unwrap());
        assert_eq!((memory.config_hash(), memory.n_bytes()), (folder.config_hash(), folder.n_bytes()));
        assert_eq!(memory.labels().unwrap(), folder.labels().unwrap());
        assert_eq!(memory.array::<f32>("a").unwrap(), folder.array::<f32>("a").unwrap());
        assert!(memory.verify().unwrap().is_empty() && !memory.replacement()());
        for (model, again) in [(&memory, memory.again().unwrap()), (&folder, folder.again().unwrap())] {
            assert_eq!((again.config_hash(), again.folder()), (model.config_hash(), model.folder()));
            assert_eq!(again.array::<f32>("a").unwrap(), model.array::<f32>("a").unwrap());
        }
        assert!(memory.inside("index", OpenMode::Map).unwrap().is_none());
        ContainerWriter::copy_of(&memory, &copy).unwrap().finish().unwrap();
        let copy = Container::open(&copy, OpenMode::Read).unwrap();
        assert_eq!(copy.config_hash(), folder.config_hash());
        assert!(copy.verify().unwrap().is_empty());
        for name in
            ["config.json", "labels.txt", "model.safetensors", "model-own.safetensors", "model-part.safetensors"]
        {
            let [of_folder, of_copy] = [&folder, &copy].map(|of| std::fs::read(of.folder().join(name)).unwrap());
            assert!(of_folder == of_copy, "{name}");
        }
    }

    #[test]
    fn a_member_from_memory_is_a_member() {
        let place = tempfile::tempdir().unwrap();
        let memory = Container::in_memory("tree", fill).unwrap();
        let mut writer = ContainerWriter::create(place.path().join("blend"), "blend").unwrap();
        writer.add_member(0, &memory).unwrap();
        writer.finish().unwrap();
        let blend = Container::open(place.path().join("blend"), OpenMode::Map).unwrap();
        let member = blend.inside(&crate::member_folder(0), OpenMode::Map).unwrap().unwrap();
        assert_eq!(member.config_hash(), memory.config_hash());
    }

    #[test]
    fn what_is_not_finished_and_what_has_no_folder_is_refused() {
        let unfinished = Container::in_memory("tree", |writer| writer.stream("a", DType::F32).map(drop));
        assert!(matches!(unfinished, Err(WriteError::UnfinishedStream { .. })), "{unfinished:?}");
        let memory = Container::in_memory("tree", fill).unwrap();
        let inside = Container::in_memory("blend", |writer| writer.add_member(0, &memory));
        assert!(matches!(inside, Err(WriteError::InMemory)), "{inside:?}");
        assert!(matches!(memory.array::<f32>("none"), Err(OpenError::MissingArray { .. })));
    }
}
