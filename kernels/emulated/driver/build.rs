//! Gives the library the name under which the CUDA driver is looked for.

fn main() {
    // cudarc asks for this name first: once a test has loaded the library by its path, the loader gives it the same one.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
}
