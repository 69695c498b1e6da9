//! The kernels' PTX, one text a file.

/// The PTX of one file.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Name of the file, without its ending.
    pub name: &'static str,
    /// Its contents.
    pub ptx: &'static str,
}

macro_rules! texts {
    ($($name:literal)*) => { &[$(Text { name: $name, ptx: include_str!(concat!("../ptx/", $name, ".ptx")) }),*] };
}

/// All texts.
pub const TEXTS: &[Text] = texts! {
    "ann"
    "ann_cells"
    "best"
    "calibrate"
    "lsh"
    "mach"
    "nn"
    "product"
    "select"
    "tree_bf16"
    "tree_f16"
    "tree_f32"
};

impl Text {
    /// Names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.ptx.split(".entry ").skip(1).map(|rest| rest.split('(').next().unwrap_or(rest).trim())
    }

    /// The name of kernel `name` and how many parameters it has.
    pub(crate) fn kernel(&self, name: &str) -> Option<(&'static str, usize)> {
        let mut entries = self.ptx.split(".entry ").skip(1);
        entries.find_map(|entry| {
            let (found, rest) = entry.split_once('(')?;
            let parameters = rest.split_once(')')?.0;
            (found.trim() == name).then(|| (found.trim(), parameters.matches(".param").count()))
        })
    }
}
