//! A card: opened, asked for its limits, and given the text of kernels.

use crate::error::asked;
use crate::texts::TEXTS;
use crate::{Call, Error};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute as Asked, CUresult};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits,
    result,
};
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The oldest driver whose functions are called as they are here.
const LEAST_DRIVER: i32 = 12000;

/// What the crates call of the driver, by way of cudarc, which panics where one is missing.
const SYMBOLS: &[&str] = &[
    "cuDriverGetVersion",
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxGetCurrent",
    "cuCtxSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuLaunchKernel",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuEventDestroy_v2",
];

/// What a card allows at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory that a block can have when it asks for them.
    pub shared: u32,
    /// Multiprocessors.
    pub processors: u32,
}

/// An open card with one stream, and the kernels loaded on it so far.
///
/// Events are not tracked behind the caller's back: whoever uses a second stream orders the two by events.
/// A clone is the same open card.
#[derive(Clone, Debug)]
pub struct Device {
    stream: Arc<CudaStream>,
    limits: Limits,
    name: Arc<str>,
    loaded: Arc<Mutex<Loaded>>,
}

/// What is on a card so far, by name.
#[derive(Debug, Default)]
struct Loaded {
    modules: HashMap<&'static str, Arc<CudaModule>>,
    kernels: HashMap<&'static str, Kernel>,
}

/// A kernel that is loaded, with what its text and the card allow.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) function: CudaFunction,
    pub(crate) name: &'static str,
    pub(crate) n_parameters: usize,
    pub(crate) most_threads: u32,
    pub(crate) static_shared: u32,
    pub(crate) limits: Limits,
}

impl Device {
    /// Opens card `index` and loads nothing on it.
    ///
    /// *Cost*: about half a second for the first of a process.
    ///
    /// # Errors
    /// What is missing: a driver, a function of it, a newer one, a card, a newer one.
    pub fn open(index: usize) -> Result<Self, Error> {
        let n = n_cards()?;
        if n == 0 {
            return Err(Error::NoCard);
        }
        if index >= n {
            return Err(Error::NoSuchCard { index, n });
        }
        let device = result::device::get(index as i32).map_err(asked("the device"))?;
        let attribute = |which| {
            // SAFETY: the driver answers with this handle, and writes one number.
            unsafe { result::device::get_attribute(device, which) }.map_err(asked("an attribute of the device"))
        };
        let got = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let name = result::device::get_name(device).map_err(asked("the device's name"))?;
        if got.0 < 8 {
            return Err(Error::OldCard { name, got });
        }
        let limit = |which| attribute(which).map(|n| n.max(0) as u32);
        let limits = Limits {
            grid: [
                limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            threads: limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared: limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            processors: limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        };
        let context = CudaContext::new(index).map_err(asked("a context on the device"))?;
        // SAFETY: streams are ordered by events that the callers record.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(asked("a stream"))?;
        Ok(Self { stream, limits, name: name.into(), loaded: Arc::default() })
    }

    /// The stream of everything that is not given another one.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Another stream; nothing orders it and the first one but events.
    pub fn new_stream(&self) -> Result<Arc<CudaStream>, Error> {
        self.context().new_stream().map_err(asked("a stream"))
    }

    /// The context of the streams and of memory.
    pub fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    /// What the card allows.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Name of the card.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of memory that are free now.
    pub fn free_memory(&self) -> Result<u64, Error> {
        self.context().mem_get_info().map(|(free, _)| free as u64).map_err(asked("the free memory"))
    }

    /// The kernel of this name; the module of its text is loaded by the first call.
    ///
    /// *Cost*: the driver compiles a text for up to 0.3 s, once, and remembers it in later processes. A kernel that was
    /// asked for before is looked up by its name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = loaded.kernels.get(name) {
            return Ok(kernel.clone());
        }
        let found = TEXTS.iter().find_map(|text| Some((text, text.kernel(name)?)));
        let (text, (name, n_parameters)) = found.ok_or_else(|| Error::NoKernel { name: name.to_owned() })?;
        let module = match loaded.modules.get(text.name) {
            Some(module) => module.clone(),
            None => {
                let module = self.context().load_module(Ptx::from_src(text.ptx)).map_err(asked("loading a module"))?;
                loaded.modules.insert(text.name, module.clone());
                module
            }
        };
        let function = module.load_function(name).map_err(asked("a kernel of a module"))?;
        let attribute = |which| function.get_attribute(which).map_err(asked("an attribute of a kernel"));
        let kernel = Kernel {
            name,
            n_parameters,
            most_threads: attribute(Asked::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)? as u32,
            static_shared: attribute(Asked::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? as u32,
            limits: self.limits,
            function,
        };
        loaded.kernels.insert(name, kernel.clone());
        Ok(kernel)
    }

    /// Copies values to the card; no values give room for one, since a card allocates no empty memory.
    pub fn upload<T: DeviceRepr + ValidAsZeroBits>(&self, values: &[T]) -> Result<CudaSlice<T>, Error> {
        if values.is_empty() {
            return self.zeros(1);
        }
        self.stream.clone_htod(values).map_err(asked("a copy to the device"))
    }

    /// Copies values to the beginning of a part of the card's memory.
    ///
    /// # Panics
    /// If the part is shorter.
    pub fn write<T: DeviceRepr>(&self, values: &[T], to: &mut impl DevicePtrMut<T>) -> Result<(), Error> {
        self.stream.memcpy_htod(values, to).map_err(asked("a copy to the device"))
    }

    /// Zeros on the card, at least one.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, n: usize) -> Result<CudaSlice<T>, Error> {
        self.stream.alloc_zeros(n.max(1)).map_err(asked("memory of the device"))
    }

    /// Waits for everything on [`Device::stream`].
    pub fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().map_err(asked("waiting for the device"))
    }

    /// Copies values from the card, and waits for the copy and everything before it on [`Device::stream`].
    pub fn download<T: DeviceRepr>(&self, values: &impl DevicePtr<T>) -> Result<Vec<T>, Error> {
        let out = self.stream.clone_dtoh(values).map_err(asked("a copy from the device"))?;
        self.wait()?;
        Ok(out)
    }
}

impl Kernel {
    /// A call of the kernel on `stream`, which takes its arguments one by one.
    pub fn call<'a>(&'a self, stream: &'a Arc<CudaStream>) -> Call<'a> {
        Call::new(self, stream)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Registers of a thread, and bytes of local memory that it spills to, as the driver compiled it.
    pub fn registers_and_local(&self) -> Result<(u32, u32), Error> {
        let asks = asked("an attribute of a kernel");
        let of = |f: &CudaFunction| Ok((f.num_regs()? as u32, f.local_size_bytes()? as u32));
        of(&self.function).map_err(asks)
    }
}

/// Where a slice lies on the card, for structs that are kernels' arguments. It is valid as long as the slice lives.
pub fn address<T>(slice: &CudaSlice<T>) -> u64 {
    slice.device_ptr(slice.stream()).0
}

/// How many cards there are.
fn n_cards() -> Result<usize, Error> {
    // SAFETY: loading the driver's library runs its initialisers, as every CUDA program does.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    // SAFETY: as above; the library is there.
    let library = unsafe { sys::culib() };
    for &symbol in SYMBOLS {
        // SAFETY: the address is looked for, never called.
        if unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_err() {
            return Err(Error::Symbol { symbol });
        }
    }
    let mut got = 0;
    // SAFETY: the driver writes one number; it may be asked before `cuInit`.
    unsafe { sys::cuDriverGetVersion(&mut got) }.result().map_err(asked("the driver's version"))?;
    if got < LEAST_DRIVER {
        return Err(Error::OldDriver { got, least: LEAST_DRIVER });
    }
    match result::init() {
        Err(e) if e.0 == CUresult::CUDA_ERROR_NO_DEVICE => return Ok(0),
        answer => answer.map_err(asked("starting the driver"))?,
    }
    result::device::get_count().map(|n| n.max(0) as usize).map_err(asked("the number of devices"))
}
