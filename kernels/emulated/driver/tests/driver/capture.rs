//! What may be captured, and how a capture ends.

use super::*;

const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

fn end(stream: usize) -> (Code, usize) {
    let mut graph = 0;
    (call!(cuStreamEndCapture(stream, &mut graph)), graph)
}

#[test]
fn what_waits_ends_a_capture() {
    let d = Driver::new();
    let (function, at, stream) = (d.function(&text(NUMBERS)), d.alloc(4096), d.stream());
    let mut out = [0u8; 16];
    for (mode, alloc, load, copy, ended) in [(THREAD_LOCAL, 900, 0, 901, 901), (RELAXED, 0, 0, 0, 0)] {
        let mut other = 0;
        assert_eq!(call!(cuStreamBeginCapture_v2(stream, mode)), 0);
        assert_eq!(call!(cuMemAlloc_v2(&mut other, 4096)), alloc);
        assert_eq!(d.load(&text(NUMBERS)).0, load);
        assert_eq!(call!(cuMemcpyDtoHAsync_v2(out.as_mut_ptr().cast(), at, 16, stream)), copy);
        assert_eq!(end(stream).0, ended);

        assert_eq!(call!(cuStreamBeginCapture_v2(stream, mode)), 0);
        assert_eq!(call!(cuStreamSynchronize(stream)), 900);
        assert_eq!(d.warp(function, stream, at), 901);
        assert_eq!(end(stream).0, 901);

        assert_eq!(call!(cuStreamBeginCapture_v2(stream, mode)), 0);
        assert_eq!(call!(cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), at, 16)), 0);
        assert_eq!(call!(cuCtxSynchronize()), 900);
        assert_eq!(end(stream).0, 901);
    }
    assert_eq!(end(stream).0, 401);
    assert_eq!(call!(cuStreamBeginCapture_v2(0, THREAD_LOCAL)), 900);
    assert_eq!(call!(cuCtxSynchronize()), 0);
}

#[test]
fn a_graph_runs_with_the_arguments_it_was_captured_with() {
    let d = Driver::new();
    let add = text(
        "mov.u32 %r0, %tid.x; mul.wide.u32 %x1, %r0, 4; add.s64 %x0, %x0, %x1; ld.global.u32 %r1, [%x0];
        add.u32 %r1, %r1, 1; st.global.u32 [%x0], %r1;",
    );
    let (function, at, stream) = (d.function(&add), d.alloc(4096), d.stream());
    let (mut status, mut graph) = (7, 0);
    assert_eq!(call!(cuMemsetD8Async(at, 0, 4096, stream)), 0);
    assert_eq!(call!(cuStreamBeginCapture_v2(stream, THREAD_LOCAL)), 0);
    assert_eq!((call!(cuStreamIsCapturing(stream, &mut status)), status), (0, 1));
    assert_eq!(d.warp(function, stream, at), 0);
    assert_eq!(d.warp(function, stream, at), 0);
    let (code, captured) = end(stream);
    assert_eq!(code, 0);
    assert_eq!((call!(cuStreamIsCapturing(stream, &mut status)), status), (0, 0));
    assert_eq!(call!(cuGraphInstantiateWithFlags(&mut graph, captured, 0)), 0);
    assert_eq!(call!(cuGraphDestroy(captured)), 0);
    assert_eq!(call!(cuStreamSynchronize(stream)), 0);
    assert_eq!(d.words(at, 2), [0, 0]);
    for _ in 0..3 {
        assert_eq!(call!(cuGraphLaunch(graph, stream)), 0);
    }
    assert_eq!(call!(cuStreamSynchronize(stream)), 0);
    assert_eq!(d.words(at, 32), [6; 32]);
    assert_eq!(call!(cuGraphExecDestroy(graph)), 0);
    assert_eq!(call!(cuGraphLaunch(graph, stream)), 400);
}
