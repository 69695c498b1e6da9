//! Order between operations.

use xc_emulated_ptx::{Kind, Memory};

/// Operations of two streams on one word: (stream, number, clock, whether it writes), and whether they are ordered.
#[test]
fn operations_are_ordered_by_their_clocks() {
    type Operation<'a> = (u32, u32, &'a [u32], bool);
    let cases: [(&[Operation], bool); 9] = [
        (&[(0, 1, &[0], true), (0, 2, &[1], true)], true),
        (&[(0, 1, &[0], true), (1, 1, &[0, 0], true)], false),
        (&[(0, 1, &[0], true), (1, 1, &[1, 0], true)], true),
        (&[(0, 1, &[0], true), (1, 1, &[0, 0], false)], false),
        (&[(0, 1, &[0], false), (1, 1, &[0, 0], false)], true),
        (&[(0, 1, &[0], false), (1, 1, &[0, 0], true)], false),
        // Two readers that do not know of each other: a writer has to come after both.
        (&[(0, 1, &[], false), (1, 1, &[], false), (2, 1, &[1, 1, 0], true)], true),
        (&[(0, 1, &[], false), (1, 1, &[], false), (2, 1, &[0, 1, 0], true)], false),
        (&[(0, 1, &[], false), (1, 1, &[], false), (2, 1, &[1, 0, 0], true)], false),
    ];
    for (operations, are_ordered) in cases {
        let mut memory = Memory::default();
        memory.order.begin_after_all();
        let at = memory.alloc(4);
        memory.write(at, &[0; 4]).unwrap();
        memory.order.settle();
        let mut result = Ok(());
        for &(stream, number, clock, writes) in operations {
            memory.order.begin(stream, number, clock.to_vec());
            result = result.and(if writes { memory.write(at, &[1; 4]) } else { memory.read(at, 4).map(|_| ()) });
        }
        assert_eq!(result.is_ok(), are_ordered, "{operations:?}");
    }
}

#[test]
fn what_is_settled_comes_before_all_that_begins_later() {
    let mut memory = Memory::default();
    memory.order.begin(0, 1, vec![]);
    let at = memory.alloc(4);
    memory.write(at, &[1; 4]).unwrap();
    memory.order.settle();
    memory.order.begin(1, 1, vec![]);
    memory.write(at, &[2; 4]).unwrap();
    memory.order.begin(2, 1, vec![]);
    assert_eq!(memory.read(at, 4).unwrap_err().kind, Kind::Race);
}

#[test]
fn bytes_are_kept_apart() {
    let mut memory = Memory::default();
    memory.order.begin(0, 1, vec![]);
    let at = memory.alloc(1000);
    memory.write(at, &[1; 500]).unwrap();
    memory.order.begin(1, 1, vec![]);
    memory.write(at + 500, &[2; 500]).unwrap();
    memory.order.begin(2, 1, vec![1, 0]);
    assert_eq!(memory.read(at, 500).unwrap(), [1; 500]);
    assert_eq!(memory.read(at + 499, 2).unwrap_err().kind, Kind::Race);
}

#[test]
fn allocations_have_bounds() {
    let mut memory = Memory::default();
    memory.order.begin_after_all();
    let (a, b) = (memory.alloc(100), memory.alloc(1));
    assert!(a % 512 == 0 && b % 512 == 0 && b >= a + 4096);
    assert!(memory.holds(a, 100) && !memory.holds(a, 101) && !memory.holds(a - 1, 2) && !memory.holds(b + 1, 1));
    assert_eq!(memory.write(a + 99, &[0; 2]).unwrap_err().kind, Kind::Bounds);
    assert_eq!((memory.len_at(a), memory.len_at(a + 1)), (Some(100), None));
    memory.free(a).unwrap();
    assert!(!memory.holds(a, 1) && memory.free(a).is_err());
    memory.reset();
    assert!(!memory.holds(b, 1) && memory.alloc(1) > b);
}
