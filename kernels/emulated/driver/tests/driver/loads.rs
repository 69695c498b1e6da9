//! Codes of texts.

use super::*;

#[test]
fn texts_are_refused_with_a_cards_codes() {
    let d = Driver::new();
    let good = text(NUMBERS);
    let second = good.split_once(".address_size 64\n").unwrap().1;
    for (what, text, code) in [
        ("a good text", good.clone(), 0),
        ("garbage", "hello".into(), 200),
        ("nothing", String::new(), 200),
        ("cut", good[..good.len() / 2].into(), 218),
        ("version 9.9", good.replace("7.0", "9.9"), 222),
        ("version 9.0", good.replace("7.0", "9.0"), 0),
        ("version 6.0 with sm_80", good.replace("7.0", "6.0"), 218),
        ("target sm_90", good.replace("sm_80", "sm_90").replace("7.0", "8.0"), 0),
        ("target sm_100", good.replace("sm_80", "sm_100").replace("7.0", "8.6"), 218),
        ("target sm_90a", good.replace("sm_80", "sm_90a").replace("7.0", "8.0"), 0),
        ("an unknown instruction", good.replace("mov.u32", "mavo.u32"), 218),
        ("a register that is not declared", good.replace("%r0, %tid.x", "%r77, %tid.x"), 218),
        ("two kernels of one name", format!("{good}{second}"), 218),
        ("a character that is not ASCII", good.replace("ret;", "// \u{fc}\nret;"), 218),
        ("the same among instructions", good.replace("ret;", "\u{fc}\u{20ac} ret;"), 218),
        ("line ends of Windows", good.replace('\n', "\r\n"), 0),
        ("a pragma that is newer", good.replace("ret;", ".pragma \"used_bytes_mask 1\";\nret;"), 218),
        (
            "the same where it is known",
            good.replace("ret;", ".pragma \"used_bytes_mask 1\";\nret;").replace("7.0", "8.3"),
            0,
        ),
        ("another pragma", good.replace("ret;", ".pragma \"nounroll\";\nret;"), 0),
    ] {
        assert_eq!(d.load(&text).0, code, "{what}: {}", read(xc_emulated_refusal));
    }
}

#[test]
fn a_refusal_names_the_line_and_goes_into_the_log() {
    let _d = Driver::new();
    let wrong = CString::new(text("add.rn.ftz.f32 %r0, %r0, %r0;")).unwrap();
    let (mut log, mut module) = ([0u8; 200], 0);
    let options = [5, 6];
    let values = [log.as_mut_ptr().cast::<c_void>(), 200 as *mut c_void];
    let code = call!(cuModuleLoadDataEx(&mut module, wrong.as_ptr().cast(), 2, options.as_ptr(), values.as_ptr()));
    assert_eq!(code, 218);
    let refusal = read(xc_emulated_refusal);
    assert!(refusal.contains("line 8") && refusal.contains("add.rn.ftz.f32"), "{refusal}");
    assert!(log.starts_with(refusal.as_bytes()));
}

#[test]
fn approximate_instructions_load_when_they_are_allowed() {
    let d = Driver::new();
    let approximate =
        text(".reg .f32 %f<2>; mov.f32 %f0, 0f40000000; ex2.approx.ftz.f32 %f1, %f0; st.global.f32 [%x0], %f1;");
    assert_eq!(d.load(&approximate).0, 218);
    xc_emulated_set_approximate(1);
    let function = d.function(&approximate);
    xc_emulated_set_approximate(0);
    let at = d.alloc(4);
    assert_eq!(d.launch(function, [1; 3], [1; 3], 0, 0, at), 0);
    assert_eq!(d.words(at, 1), [4f32.to_bits()]);
}

#[test]
fn functions_are_found_by_name() {
    let d = Driver::new();
    let (_, module) = d.load(&text(NUMBERS));
    let mut function = 0;
    assert_eq!(call!(cuModuleGetFunction(&mut function, module, c"nobody".as_ptr())), 500);
    assert_eq!(call!(cuModuleUnload(module)), 0);
    assert_eq!(call!(cuModuleUnload(module)), 400);
}

#[test]
fn texts_of_a_folder_stand_in_for_those_that_are_given() {
    let d = Driver::new();
    let folder = std::env::temp_dir().join(format!("xc-emulated-texts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine.ptx"), text("st.global.u32 [%x0], 7;")).unwrap();
    let written = |name: &str| {
        let given = format!("// Written by kernels/compile from cu/{name}.cu with flags.\n{}", text(NUMBERS));
        let (function, at) = (d.function(&given), d.alloc(4));
        assert_eq!(d.launch(function, [1; 3], [1; 3], 0, 0, at), 0);
        d.words(at, 1)[0]
    };
    let path = CString::new(folder.to_str().unwrap()).unwrap();
    call!(xc_emulated_replace_texts(path.as_ptr()));
    assert_eq!((written("mine"), written("another")), (7, 0));
    call!(xc_emulated_replace_texts(null()));
    assert_eq!(written("mine"), 0);
    std::fs::remove_dir_all(folder).unwrap();
}
